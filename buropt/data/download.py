"""Files by URL: downloaded once, checked against their SHA-256, kept in a cache folder.

pooch has the folder, the checksum and the move into place; this module adds to it what long
downloads need. What has arrived is kept in a file that ends in .part, and a connection that was cut
is continued there (HTTP's Range), at once or by the next run. Of several processes that want a
file, as in a parallel sweep, one downloads it and the others wait; the jobs of one sweep also share
what could not be had, so that without a network each of them ends at once.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPException
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit
from urllib.request import Request, urlopen

from buropt.data.dataset import Dataset, Labels
from buropt.data.libsvm import FloatName, PathLike, load_libsvm

CACHE_VARIABLE = "BUROPT_CACHE"
FAILURES_VARIABLE = "BUROPT_FAILED_DOWNLOADS"  # a file, for all jobs of a sweep
ATTEMPTS = 3  # in a row that bring nothing new
PAUSE = 0.5  # seconds before the second attempt; doubles from one to the next
TIMEOUT = 30.0  # seconds without a byte
CHUNK = 1 << 16  # bytes
BY_HAND = "get it yourself and pass its place as path=... (data.path=...)"

_log = logging.getLogger("buropt.data")


def fetch(url: str, sha256: str | None = None, *, cache: PathLike | None = None) -> Path:
    """The file at `url`, from the cache if it is there, else downloaded.

    Parameters
    ----------
    url : str
        http:// or https://
    sha256 : str, optional
        64 hexadecimal digits. None: any content will do, with a warning that tells the SHA-256 of
        what was downloaded.
    cache : path, optional
        Folder that keeps files, under the host and the path of their URL. None: the environment
        variable BUROPT_CACHE, else the system's place for caches (~/.cache/buropt on Linux).

    Returns
    -------
    Path

    Raises
    ------
    ValueError
        If `url` or `sha256` is not one, or the content has another SHA-256: nothing is kept then.
    OSError
        If there is no such file, or the connection fails time and again: what has arrived is kept.
    """
    file = cached(url, cache)
    if sha256 is not None:
        sha256 = sha256.strip().lower()
        if len(sha256) != 64 or set(sha256) - set("0123456789abcdef"):
            raise ValueError(f"sha256={sha256!r} is not one: write 64 hexadecimal digits, or null")
    if _is_whole(file, sha256):  # before anything is written: the folder may be others'
        return file
    file.parent.mkdir(parents=True, exist_ok=True)
    with _locked(file.parent):
        if not _is_whole(file, sha256):
            with _shared_failure(url, sha256):
                _retrieve(url, sha256, file)
    return file


def fetch_libsvm(
    path: PathLike | None = None,
    *,
    url: str | None = None,
    sha256: str | None = None,
    cache: PathLike | None = None,
    n_features: int | None = None,
    zero_based: bool = False,
    dtype: FloatName = "float64",
    labels: Labels = "auto",
    positive: float | None = None,
) -> Dataset:
    """`load_libsvm` of a file of one's own, or of one that `fetch` gets.

    Parameters
    ----------
    path : path, optional
        The file, which is used in place of the download, or a folder that has one of the URL's
        name. A file with another SHA-256 is read with a warning.
    url, sha256, cache
        As in `fetch`; not needed with a path.
    n_features, zero_based, dtype, labels, positive
        As in `load_libsvm`.

    Raises
    ------
    ValueError, TypeError, OSError
        As in `fetch` and `load_libsvm`.
    """
    if url is None:
        file = path
    elif path is None or not os.fspath(path):
        file = fetch(url, sha256, cache=cache)
    else:
        file = Path(path).expanduser()
        if file.is_dir():
            file /= _place(url).name
        if sha256 is not None and file.is_file() and checksum(file) != sha256.lower():
            _log.warning("%s is not the file of %s: its SHA-256 is another", file, url)
    return load_libsvm(
        file,
        n_features=n_features,
        zero_based=zero_based,
        dtype=dtype,
        labels=labels,
        positive=positive,
    )


def cached(url: str, cache: PathLike | None = None) -> Path:
    """Where the file of `url` is, or will be, in the cache."""
    folder = cache or os.environ.get(CACHE_VARIABLE)
    if not folder:
        import pooch

        folder = pooch.os_cache("buropt")
    return Path(folder).expanduser().absolute() / _place(url)


def checksum(file: Path) -> str:
    """SHA-256 of a file, as 64 hexadecimal digits."""
    digest = hashlib.sha256()
    with file.open("rb") as content:
        while chunk := content.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def _is_whole(file: Path, sha256: str | None) -> bool:
    return file.exists() and sha256 in (None, checksum(file))


def _place(url: str) -> PurePosixPath:
    """Host and path of a URL, which no two files share."""
    parts = urlsplit(url)
    steps = [step for step in unquote(parts.path).split("/") if step]
    if parts.scheme not in ("http", "https") or not parts.netloc or not steps or ".." in steps:
        raise ValueError(f"url={url!r} names no file: write http://... or https://...")
    if parts.query:
        steps[-1] += f"?{parts.query.replace('/', '_')}"
    return PurePosixPath(parts.netloc, *steps)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One process at a time; the lock goes with the process that holds it."""
    with (folder / ".lock").open("a") as file:
        with suppress(OSError):  # a network disk without locks
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def sharing_failures(place: Path) -> Iterator[None]:
    """While active, this process and those that it starts try a download that failed no more.

    Parameters
    ----------
    place : Path
        The file by which they know; what an earlier sweep has left there is forgotten.
    """
    place.unlink(missing_ok=True)
    os.environ[FAILURES_VARIABLE] = str(place.absolute())
    try:
        yield
    finally:
        del os.environ[FAILURES_VARIABLE]
        place.unlink(missing_ok=True)


@contextmanager
def _shared_failure(url: str, sha256: str | None) -> Iterator[None]:
    """Around a download: fails at once where another process has, and tells the others."""
    place = os.environ.get(FAILURES_VARIABLE)
    key = f"{url} {sha256}"
    if place is not None and os.path.exists(place):
        for line in Path(place).read_text(encoding="utf-8").splitlines():
            failure = json.loads(line)
            if failure["key"] == key:
                kind = ValueError if failure["is_damaged"] else OSError
                raise kind(f"{failure['message']} (another job of this sweep has tried)")
    try:
        yield
    except (ValueError, OSError) as error:
        is_damaged = isinstance(error, ValueError)
        failure = {"key": key, "is_damaged": is_damaged, "message": str(error)}
        if place is not None:
            with suppress(OSError), open(place, "a", encoding="utf-8") as file:
                file.write(json.dumps(failure) + "\n")
        raise


def _retrieve(url: str, sha256: str | None, file: Path) -> None:
    """Download to `file`, which is replaced at the end only, and if the SHA-256 is right."""
    import pooch

    part = file.with_name(file.name + ".part")
    if sha256 is None:
        part.unlink(missing_ok=True)  # nothing would tell if it was the beginning of another file
    continued = part.exists()
    _log.info("downloading %s to %s", url, file)
    noise = pooch.get_logger()
    level = noise.level
    noise.setLevel(logging.WARNING)
    try:
        pooch.retrieve(
            url,
            known_hash=sha256,
            fname=file.name,
            path=file.parent,
            downloader=_Downloader(part),
        )
    except ValueError as error:  # of the checksum
        if continued:  # the file may have changed since its beginning came
            return _retrieve(url, sha256, file)
        raise ValueError(
            f"the file at {url} does not have the SHA-256 {sha256}: it is damaged or was changed, "
            "and was not kept; try again, or if the new one is meant write its SHA-256, or null, "
            "for sha256=... (data.sha256=...)"
        ) from error
    finally:
        noise.setLevel(level)
    if sha256 is None:
        _log.warning(
            "%s was downloaded unchecked; to be sure of it from now on, write sha256=%s "
            "(data.sha256=...)",
            url,
            checksum(file),
        )


class _Downloader:
    """For pooch: downloads to `part`, continuing it, and moves it when it is whole."""

    def __init__(self, part: Path):
        self.part = part

    def __call__(self, url: str, output_file: Any, pooch: Any) -> None:
        failures, problem = 0, ""
        while failures < ATTEMPTS:
            if failures > 0:
                time.sleep(PAUSE * 2 ** (failures - 1))
            before = self.size
            try:
                if self.transfer(url):
                    os.replace(self.part, output_file)
                    return
                problem = "the connection was cut"
            except HTTPError as error:
                error.close()
                problem = f"the server answers {error.code} ({error.reason})"
                if error.code < 500 and error.code != 429:  # it will not be there in a second
                    raise OSError(f"{url} cannot be downloaded: {problem}; {BY_HAND}") from error
            except (URLError, TimeoutError, ConnectionError, HTTPException) as error:
                problem = f"no connection ({getattr(error, 'reason', None) or error})"
            _log.info("%s: %s", url, problem)
            failures = 1 if self.size > before else failures + 1
        kept = f"; {self.size} bytes are kept, the next run continues there" if self.size else ""
        raise ConnectionError(f"{url} cannot be downloaded: {problem}{kept}; {BY_HAND}")

    @property
    def size(self) -> int:
        """Bytes that have arrived."""
        return self.part.stat().st_size if self.part.exists() else 0

    def transfer(self, url: str) -> bool:
        """One request for what is missing; whether the file is whole."""
        have = self.size
        headers = {"User-Agent": "buropt"} | ({"Range": f"bytes={have}-"} if have else {})
        try:
            response = urlopen(Request(url, headers=headers), timeout=TIMEOUT)
        except HTTPError as error:
            if error.code != 416 or not have:
                raise
            error.close()
            if error.headers.get("Content-Range") == f"bytes */{have}":  # nothing was missing
                return True
            self.part.unlink()  # longer than the file: of another one
            return False
        with response:
            begins, _, total = response.headers.get("Content-Range", "").partition("/")
            if response.status == 206 and not begins.startswith(f"bytes {have}-"):
                self.part.unlink()  # not what was asked for
                return False
            if response.status != 206:  # all of it, from the beginning
                total = response.headers.get("Content-Length", "")
            with self.part.open("ab" if response.status == 206 else "wb") as file:
                while chunk := response.read1(CHUNK):
                    file.write(chunk)
        return not total.isdigit() or self.size == int(total)
