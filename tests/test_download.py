"""Downloads, against a server on this machine that behaves well or badly."""

from __future__ import annotations

import bz2
import functools
import hashlib
import http.server
import logging
import lzma
import os
import re
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from buropt.data import download, fetch, fetch_libsvm

TEXT = "".join(f"{1 - 2 * (j % 2)} {1 + j % 11}:0.5 {12 + j % 7}:{j}\n" for j in range(2000))
CONTENT = TEXT.encode()
SHA256 = hashlib.sha256(CONTENT).hexdigest()
HALF = len(CONTENT) // 2


class Handler(http.server.BaseHTTPRequestHandler):
    """The first part of the path says how the rest is served."""

    protocol_version = "HTTP/1.1"
    requests: list[str]  # path and range of every request so far

    def do_GET(self) -> None:
        _, way, name = self.path.split("/", 2)
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        start = int(asked[1]) if asked and way != "rangeless" else 0
        self.requests.append(f"{way} {start}")
        content = {"a.bz2": bz2.compress(CONTENT), "a.xz": lzma.compress(CONTENT)}.get(
            name, CONTENT
        )
        number = sum(request.startswith(way) for request in self.requests)
        if way == "missing" or (way == "busy" and number == 1):
            return self.answer(404 if way == "missing" else 503, b"", {})
        if start >= len(content):
            return self.answer(416, b"", {"Content-Range": f"bytes */{len(content)}"})
        end = len(content)
        if way == "cut" or (way in ("cut_once", "rangeless") and number == 1):
            end = min(start + HALF // 2, len(content))
        if way == "stuck":
            end = max(start, HALF)
        headers = {}
        if start > 0:
            shift = 1 if way == "shifted" else 0
            headers = {"Content-Range": f"bytes {start + shift}-{len(content) - 1}/{len(content)}"}
        self.answer(206 if start > 0 else 200, content[start:], headers, end - start)

    def answer(
        self, code: int, content: bytes, headers: dict[str, str], sent: int | None = None
    ) -> None:
        self.send_response(code)
        for name, value in (headers | {"Content-Length": str(len(content))}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content[:sent])
        self.close_connection = sent is not None and sent < len(content)

    def log_message(self, format: str, *args: object) -> None:
        pass


class Server(http.server.ThreadingHTTPServer):
    requests: list[str]

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def ranges(self, way: str) -> list[int]:
        """Where each request of this way began."""
        return [int(asked.split()[1]) for asked in self.requests if asked.split()[0] == way]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(download, "PAUSE", 0.001)
    monkeypatch.setenv("no_proxy", "*")
    requests: list[str] = []
    with Server(("127.0.0.1", 0), type("Own", (Handler,), {"requests": requests})) as server:
        server.requests = requests
        thread = threading.Thread(target=functools.partial(server.serve_forever, 0.01))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def files(folder: Path) -> list[str]:
    """Everything in the cache but the lock."""
    return sorted(
        path.name for path in folder.rglob("*") if path.is_file() and path.name != ".lock"
    )


def test_a_file_is_downloaded_once_and_found_without_a_connection(server, tmp_path):
    url = f"{server.address}/good/a9a"
    file = fetch(url, SHA256, cache=tmp_path)
    assert file.read_bytes() == CONTENT
    assert file.name == "a9a"
    assert files(tmp_path) == ["a9a"]
    server.shutdown()
    server.server_close()
    assert fetch(url, SHA256.upper(), cache=tmp_path) == file
    assert server.ranges("good") == [0]


def test_a_file_that_is_there_needs_no_right_to_write(tmp_path):
    url = "http://nowhere.invalid/sets/a9a"
    file = download.cached(url, tmp_path)
    file.parent.mkdir(parents=True)
    file.write_bytes(CONTENT)
    assert fetch(url, SHA256, cache=tmp_path) == file
    assert os.listdir(file.parent) == ["a9a"]  # no lock


def test_a_connection_that_is_cut_is_continued(server, tmp_path):
    file = fetch(f"{server.address}/cut/a9a", SHA256, cache=tmp_path)
    assert file.read_bytes() == CONTENT
    starts = server.ranges("cut")
    assert len(starts) > 3
    assert starts == sorted(set(starts))


def test_what_has_arrived_is_kept_for_the_next_run(server, tmp_path):
    stuck = f"{server.address}/stuck/a9a"
    with pytest.raises(ConnectionError, match=rf"cut.*; {HALF} bytes are kept.*\(data\.path=") as e:
        fetch(stuck, SHA256, cache=tmp_path)
    assert stuck in str(e.value)
    assert "\n" not in str(e.value)
    assert files(tmp_path) == ["a9a.part"]
    good = f"{server.address}/good/a9a"
    part = download.cached(good, tmp_path).with_name("a9a.part")
    part.parent.mkdir()
    download.cached(stuck, tmp_path).with_name("a9a.part").rename(part)
    assert fetch(good, SHA256, cache=tmp_path).read_bytes() == CONTENT
    assert server.ranges("good") == [HALF]
    assert files(tmp_path) == ["a9a"]


@pytest.mark.parametrize("way", ["rangeless", "shifted"])
def test_a_server_without_ranges_or_with_wrong_ones(way, server, tmp_path):
    url = f"{server.address}/{way}/a9a"
    part = download.cached(url, tmp_path).with_name("a9a.part")
    part.parent.mkdir(parents=True)
    part.write_bytes(CONTENT[:HALF])
    assert fetch(url, SHA256, cache=tmp_path).read_bytes() == CONTENT
    assert files(tmp_path) == ["a9a"]


@pytest.mark.parametrize("kept", [CONTENT, CONTENT + b"more"], ids=["whole", "longer"])
def test_a_part_that_needs_nothing_more(kept, server, tmp_path):
    url = f"{server.address}/good/a9a"
    part = download.cached(url, tmp_path).with_name("a9a.part")
    part.parent.mkdir(parents=True)
    part.write_bytes(kept)
    assert fetch(url, SHA256, cache=tmp_path).read_bytes() == CONTENT


def test_a_part_of_another_file_is_given_up(server, tmp_path):
    url = f"{server.address}/good/a9a"
    part = download.cached(url, tmp_path).with_name("a9a.part")
    part.parent.mkdir(parents=True)
    part.write_bytes(b"?" * HALF)
    assert fetch(url, SHA256, cache=tmp_path).read_bytes() == CONTENT
    assert server.ranges("good") == [HALF, 0]


def test_a_wrong_checksum_is_refused_and_nothing_is_kept(server, tmp_path):
    url = f"{server.address}/good/a9a"
    with pytest.raises(ValueError, match=r"does not have the SHA-256 0000.* was not kept") as error:
        fetch(url, "0" * 64, cache=tmp_path)
    assert url in str(error.value)
    assert "\n" not in str(error.value)
    assert files(tmp_path) == []


def test_a_damaged_file_in_the_cache_is_replaced(server, tmp_path):
    url = f"{server.address}/good/a9a"
    file = download.cached(url, tmp_path)
    file.parent.mkdir(parents=True)
    file.write_bytes(CONTENT[:HALF])
    assert fetch(url, SHA256, cache=tmp_path).read_bytes() == CONTENT


def test_a_damaged_file_stays_when_there_is_nothing_better(server, tmp_path):
    url = f"{server.address}/missing/a9a"
    file = download.cached(url, tmp_path)
    file.parent.mkdir(parents=True)
    file.write_bytes(CONTENT[:HALF])
    with pytest.raises(OSError, match="404"):
        fetch(url, SHA256, cache=tmp_path)
    assert files(tmp_path) == ["a9a"]


def test_without_a_checksum_there_is_a_warning_that_tells_it(server, tmp_path, caplog):
    url = f"{server.address}/good/a9a"
    part = download.cached(url, tmp_path).with_name("a9a.part")
    part.parent.mkdir(parents=True)
    part.write_bytes(b"?" * HALF)  # nothing would tell that it is of another file
    assert fetch(url, cache=tmp_path).read_bytes() == CONTENT
    (warning,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert f"sha256={SHA256}" in warning.getMessage()
    caplog.clear()
    assert fetch(url, cache=tmp_path).read_bytes() == CONTENT
    assert caplog.records == []


def test_there_is_no_such_file(server, tmp_path):
    url = f"{server.address}/missing/a9a"
    with pytest.raises(OSError, match=r"404 \(Not Found\).*\(data\.path=\.\.\.\)") as error:
        fetch(url, SHA256, cache=tmp_path)
    assert url in str(error.value)
    assert server.ranges("missing") == [0]  # asked once
    assert files(tmp_path) == []


def test_the_jobs_of_a_sweep_share_a_failure_and_later_sweeps_do_not(server, tmp_path):
    missing, good = (f"{server.address}/{way}/a9a" for way in ("missing", "good"))
    for sweep in (1, 2):
        with download.sharing_failures(tmp_path / "failed"):
            for said in (
                r"404 .*path=\.\.\.\)$",
                r"404 .*\(another job of this sweep has tried\)$",
            ):
                with pytest.raises(OSError, match=said):
                    fetch(missing, SHA256, cache=tmp_path)
            for _ in range(2):
                with pytest.raises(ValueError, match="does not have the SHA-256 0000"):
                    fetch(good, "0" * 64, cache=tmp_path)
            assert fetch(good, SHA256, cache=tmp_path / str(sweep)).read_bytes() == CONTENT
        assert server.ranges("missing") == [0] * sweep
        assert server.ranges("good") == [0, 0] * sweep
    assert files(tmp_path) == ["a9a", "a9a"]
    assert download.FAILURES_VARIABLE not in os.environ


def test_a_busy_server_is_asked_again(server, tmp_path):
    assert fetch(f"{server.address}/busy/a9a", SHA256, cache=tmp_path).read_bytes() == CONTENT


def test_offline_the_error_says_where_the_file_is_and_data_path(server, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    url = f"http://127.0.0.1:{port}/a9a"
    with pytest.raises(ConnectionError, match=r"no connection \(.*\(data\.path=\.\.\.\)") as error:
        fetch(url, SHA256, cache=tmp_path)
    assert url in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("name", "packed"), [("a.bz2", bz2.compress), ("a.xz", lzma.compress)])
def test_compressed_files(name, packed, server, tmp_path):
    sha256 = hashlib.sha256(packed(CONTENT)).hexdigest()
    url = f"{server.address}/cut_once/{name}"
    dataset = fetch_libsvm(url=url, sha256=sha256, cache=tmp_path)
    assert dataset.name == "a"
    assert dataset.A.shape == (2000, 18)
    plain = fetch_libsvm(url=f"{server.address}/good/a9a", sha256=SHA256, cache=tmp_path)
    assert np.array_equal(dataset.A.toarray(), plain.A.toarray())


def test_of_several_that_start_together_one_downloads(server, tmp_path):
    url = f"{server.address}/cut_once/a9a"
    with ThreadPoolExecutor(3) as pool:
        found = pool.map(lambda _: fetch(url, SHA256, cache=tmp_path).read_bytes(), range(3))
        assert list(found) == [CONTENT] * 3
    assert len(server.ranges("cut_once")) == 2


def test_where_the_cache_is(tmp_path, monkeypatch):
    url = "https://example.org/~b/sets/a9a"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.delenv("BUROPT_CACHE", raising=False)
    at = Path("example.org", "~b", "sets", "a9a")
    assert download.cached(url) == tmp_path / "xdg" / "buropt" / at
    monkeypatch.setenv("BUROPT_CACHE", str(tmp_path / "own"))
    assert download.cached(url) == tmp_path / "own" / at
    assert download.cached(url, tmp_path / "set") == tmp_path / "set" / at
    assert download.cached(f"{url}?v=a/b", tmp_path).name == "a9a?v=a_b"


@pytest.mark.parametrize("url", ["a9a", "ftp://example.org/a9a", "http://a.b/", "http://a.b/../c"])
def test_urls_that_name_no_file(url, tmp_path):
    with pytest.raises(ValueError, match="names no file"):
        fetch(url, SHA256, cache=tmp_path)


def test_a_checksum_that_is_none(tmp_path):
    with pytest.raises(ValueError, match="sha256='abc' is not one: write 64 hexadecimal digits"):
        fetch("http://example.org/a9a", "abc", cache=tmp_path)
    assert files(tmp_path) == []


def test_a_file_of_ones_own_takes_the_place_of_the_download(tmp_path, caplog):
    url = "http://nowhere.invalid/sets/a9a"
    (tmp_path / "a9a").write_text(TEXT)
    for path in (tmp_path / "a9a", tmp_path):
        dataset = fetch_libsvm(path, url=url, sha256=SHA256)
        assert dataset.A.shape == (2000, 18)
        assert dataset.name == "a9a"
    assert "its SHA-256 is another" not in caplog.text
    fetch_libsvm(tmp_path, url=url, sha256="0" * 64)
    assert "its SHA-256 is another" in caplog.text
    with pytest.raises(FileNotFoundError, match="w8a"):
        fetch_libsvm(tmp_path, url="http://nowhere.invalid/sets/w8a", sha256=SHA256)
    with pytest.raises(ValueError, match="no LIBSVM file was named"):
        fetch_libsvm()
