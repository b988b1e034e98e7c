"""The container that oracles and arrays are saved in: one file, checked before it is believed.

A file is a ZIP archive of uncompressed members, so that any ZIP tool and `numpy.load` can read it.
Arrays are members in NumPy's npy format, `buropt.json` says what they mean, and lists every other
member with its size and CRC-32. `docs/saving.md` is the specification.

Reading trusts nothing: whatever is wrong with a file becomes one ValueError that names it, no code
is run, and nothing is allocated that the file could not fill.
"""

from __future__ import annotations

import importlib.metadata
import io
import json
import os
import secrets
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import IO, Any, TypeAlias, cast

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

VERSION = 1
"""Of the container and of what it can hold; written, and read up to here."""

_MANIFEST = "buropt.json"
_CHUNK = 1 << 20
_DATE = (1980, 1, 1, 0, 0, 0)  # the same content gives the same file

Member: TypeAlias = bytes | NDArray[Any]

# What interpreting a file that is not as it should be may raise.
_UNEXPECTED = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    NotImplementedError,
    RuntimeError,
    TypeError,
    ValueError,
    struct.error,
)


class Refused(ValueError):
    """Carries the whole text of the one error."""


def _foreign(path: str) -> Refused:
    return Refused(f"{path} is not a file of buropt. Pass what its own functions saved.")


def _damaged(path: str, what: str) -> Refused:
    return Refused(f"{path} is damaged: {what}. Copy or save it again.")


def write(
    path: str | PathLike[str], holds: str, content: Any, members: Mapping[str, Member]
) -> None:
    """Write a file at once: under its name there is the old one or the whole new one.

    Parameters
    ----------
    path : path
    holds : str
        What the file is, "oracle", "arrays" or "checkpoint".
    content : dict or list
        What JSON can say of it.
    members : dict
        Bytes and arrays of numbers by name.

    Raises
    ------
    OSError
        If it cannot be written; an old file is still there then.
    """
    with replacing(Path(path)) as file, zipfile.ZipFile(file, "w") as archive:
        listed = {}
        for name, member in members.items():
            info = _add(archive, name, member)
            listed[name] = {"bytes": info.file_size, "crc32": info.CRC}
        manifest = {
            "format": "buropt",
            "version": VERSION,
            "written_by": f"buropt {importlib.metadata.version('buropt')}",
            "holds": holds,
            "members": listed,
            holds: content,
        }
        _add(archive, _MANIFEST, json.dumps(manifest, indent=1, allow_nan=False).encode())


def _add(archive: zipfile.ZipFile, name: str, member: Member) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _DATE)
    info.external_attr = 0o644 << 16  # permissions, for those who unpack it
    with archive.open(info, "w", force_zip64=True) as file:
        if isinstance(member, bytes):
            file.write(member)
        else:
            array = np.ascontiguousarray(member, member.dtype.newbyteorder("<"))
            # ascontiguousarray makes a vector of a number.
            array = array.reshape(member.shape)
            npy.write_array_header_1_0(file, npy.header_data_from_array_1_0(array))
            file.write(array.reshape(-1).view(np.uint8).data)
    return info


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A new file that takes the place of `path` when it is complete and on the disk."""
    target = Path(os.path.realpath(path))  # a link stays one
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{path}: there is no folder {target.parent}; create it first")
    temporary = target.parent / f".{target.name}.{secrets.token_hex(4)}.tmp"
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    with suppress(OSError):  # the new name is on the disk, too, where folders can be synced
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


class Contents:
    """An open file whose list of members has been checked; each is checked when it is read.

    Attributes
    ----------
    holds : str
    content : dict or list
        What JSON said.
    size : int
        Bytes of the file.
    """

    def __init__(self, path: str, archive: zipfile.ZipFile, size: int) -> None:
        self.size = size
        self._path = path
        self._archive = archive
        self._infos = {info.filename: info for info in archive.infolist()}
        if _MANIFEST not in self._infos:
            raise _foreign(path)
        remaining = size
        for info in archive.infolist():
            remaining -= info.file_size
            is_plain = info.compress_type == zipfile.ZIP_STORED and not info.flag_bits & 1
            is_inside = 0 <= info.header_offset < size and remaining >= 0
            if not is_plain or not is_inside or info.file_size != info.compress_size:
                raise _damaged(path, f"its member {info.filename!r} is not as it was written")
        self._read_manifest(json.loads(self.bytes(_MANIFEST).decode()))

    def _read_manifest(self, manifest: Any) -> None:
        if not isinstance(manifest, dict) or manifest.get("format") != "buropt":
            raise _foreign(self._path)
        version = manifest.get("version")
        if not isinstance(version, int) or version < 1:
            raise _damaged(self._path, f"version {version!r}")
        if version > VERSION:
            raise Refused(
                f"{self._path} was written by a newer buropt (version {version} of the format; "
                f"this one reads up to {VERSION}). Update buropt."
            )
        self.holds: str = manifest["holds"]
        self.content: Any = manifest[self.holds]
        listed = {
            info.filename: {"bytes": info.file_size, "crc32": info.CRC}
            for info in self._archive.infolist()
            if info.filename != _MANIFEST
        }
        if manifest["members"] != listed or len(listed) + 1 != len(self._archive.infolist()):
            raise _damaged(self._path, "its members are not those that were written")

    def __contains__(self, name: str) -> bool:
        return name in self._infos

    def bytes(self, name: str) -> bytes:
        """The bytes of a member."""
        return self._read(name).tobytes()

    def array(self, name: str) -> NDArray[Any]:
        """A member as an array in memory of its own."""
        raw = self._read(name)
        head = io.BytesIO(raw[: 1 << 16].tobytes())
        if npy.read_magic(head) != (1, 0):
            raise ValueError(f"{name} is not an array")
        shape, is_fortran, dtype = npy.read_array_header_1_0(head)
        if is_fortran or dtype.kind not in "fiub" or dtype.byteorder == ">":
            raise ValueError(f"{name} is not an array of numbers")
        values = raw[head.tell() :].view(dtype).reshape(shape)
        return values if values.flags.aligned else values.copy()

    def _read(self, name: str) -> NDArray[np.uint8]:
        info = self._infos[name]
        raw = np.empty(info.file_size, np.uint8)
        place = raw.data
        with self._archive.open(info) as opened:
            file = cast(io.BufferedIOBase, opened)
            while place:
                n = file.readinto(place[:_CHUNK])
                if n == 0:
                    raise EOFError
                place = place[n:]
            file.read(1)  # compares the checksum
        return raw


@contextmanager
def reading(path: str | PathLike[str], holds: str, instead: str) -> Iterator[Contents]:
    """Open a file of that kind; what goes wrong inside is one error about the file.

    Parameters
    ----------
    path : path
    holds : str
        "oracle", "arrays" or "checkpoint".
    instead : str
        What to call for a file that holds something else.

    Raises
    ------
    ValueError
        If the file is foreign, truncated, damaged, of a newer version or of another kind.
    OSError
        If it cannot be opened.
    """
    name = os.fsdecode(path)
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        try:
            if file.read(2) not in (b"PK", b"P"):
                raise _foreign(name)
            with zipfile.ZipFile(file) as archive:
                contents = Contents(name, archive, size)
                if contents.holds != holds:
                    raise Refused(f"{name} holds {contents.holds}. Use {instead}.")
                yield contents
        except Refused as error:
            raise ValueError(str(error)) from None
        except (zipfile.BadZipFile, zlib.error, EOFError):
            raise ValueError(
                f"{name} is truncated or damaged: its checksums do not fit. Copy or save it again."
            ) from None
        except _UNEXPECTED as error:
            raise ValueError(
                f"{name} does not hold valid {holds}: {error!r}. Save it again."
            ) from None
