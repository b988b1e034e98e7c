"""LIBSVM files that are compressed: several streams in a file, and what is cut off or damaged."""

import bz2
import gzip
import lzma

import pytest

from buropt.data import load_libsvm


@pytest.fixture
def write(tmp_path):
    def write_bytes(content, name):
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return write_bytes


def refusal(path):
    """The text of the ValueError, with the path cut off its front."""
    with pytest.raises(ValueError, match=r"decompress|line") as caught:
        load_libsvm(path)
    return str(caught.value).removeprefix(str(path))


@pytest.mark.parametrize(
    ("name", "compress"),
    [("a.gz", gzip.compress), ("a.bz2", bz2.compress), ("a.xz", lzma.compress)],
)
def test_damaged_compressed_files(write, name, compress):
    whole = compress(b"".join(b"%d %d:1\n" % (i % 2, i) for i in range(1, 2000)))
    suffix = name[1:]
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 0xFF
    for content in (whole[: len(whole) // 2], whole[:-1], bytes(flipped), b"1 1:1\n"):
        text = refusal(write(content, name))
        assert text.startswith(f" does not decompress as {suffix}: it is cut off or damaged")


@pytest.mark.parametrize(("name", "module"), [("a.gz", gzip), ("a.bz2", bz2), ("a.xz", lzma)])
def test_compressed_files_of_several_streams(write, name, module):
    halves = [module.compress(b"1 1:1\n" * 9000), module.compress(b"-1 2:1\n" * 9000)]
    assert load_libsvm(write(b"".join(halves), name)).n_samples == 18000
    padded = write(bytes(4).join([*halves, b""]), name)
    if module is bz2:
        assert "does not decompress" in refusal(padded)
    else:  # zeros, in .xz four at a time, may lie between the streams and after them
        assert load_libsvm(padded).n_samples == 18000
    damaged = bytearray(halves[1])
    damaged[2] ^= 0xFF  # at its very start, where it no longer looks like a stream
    tails = [bytes(damaged), halves[1][:-1], halves[1][:3], b"junk"]
    if module is not gzip:  # any number of zeros is legal there
        tails.append(bytes(3) + halves[1])
    for tail in tails:
        text = refusal(write(halves[0] + tail, name))
        assert text.startswith(f" does not decompress as {name[1:]}: it is cut off or damaged")


def test_errors_in_compressed_files_name_the_line(write):
    assert refusal(write(gzip.compress(b"1 1:1\n1 0:1\n"), "a.gz")).startswith(", line 2: index 0")
