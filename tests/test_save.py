"""Saving oracles: the same bits after loading, and one clear error for any other file."""

import json
import os
import pickle
import re
import subprocess
import sys
import zipfile
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import buropt as bo
from buropt import files

Layer = namedtuple("Layer", ["w", "b"])
ROOT = Path(bo.__file__).parents[1]


def rng():
    return np.random.default_rng(0)


def logistic(dtype="float64", sparse=False, **options):
    A = rng().standard_normal((20, 3)).astype(dtype)
    y = np.sign(rng().standard_normal(20)).astype(dtype)
    return bo.compile(
        lambda x, a, b: np.logaddexp(0, -b * (a @ x)),
        np.ones(3, dtype),
        data=(sp.csr_array(A * (A > 0)) if sparse else A, y),
        regularizer=lambda x: 0.1 * (x @ x),
        **options,
    )


def nested():
    def loss(p, a):
        hidden = np.tanh(p["layers"][0].w @ a + p["layers"][0].b)
        return np.sum(p[(1, "out")][0] * hidden * p[2.5]) + p[True] ** 2

    p = {
        "layers": [Layer(rng().standard_normal((2, 3)), np.zeros(2))],
        (1, "out"): (np.ones(2), None),
        2.5: np.float64(0.5),
        True: 3,
    }
    return bo.compile(loss, p, data=rng().standard_normal((7, 3)))


def kinds():
    """A sample of a float, an integer that picks, and a mask."""
    data = (rng().standard_normal(9), np.arange(9) % 4, np.arange(9) % 2 == 0)
    return bo.compile(lambda x, a, k, m: np.where(m, np.take(x, k) * a, a * a), np.ones(4), data)


def tokens():
    """Samples as a dict; integers of one array as indices and labels."""

    def loss(p, sample):
        hidden = np.sum(p["table"][sample["tokens"][:3]], axis=0)
        return (np.take(hidden, sample["label"]) - sample["tokens"][3]) ** 2

    data = {"tokens": np.arange(28).reshape(7, 4) % 5, "label": np.arange(7) % 2}
    return bo.compile(loss, {"table": rng().standard_normal((5, 2))}, data)


def no_data():
    return bo.compile(lambda x: np.sum((x[1:] - x[:-1] ** 2) ** 2), np.linspace(0, 1, 5))


ORACLES = {
    "dense": logistic,
    "float32": lambda: logistic("float32"),
    "sparse": lambda: logistic(sparse=True),
    "weights": lambda: logistic(weights=np.arange(20.0)),
    "workers": lambda: logistic(workers=3),
    "shuffled": lambda: logistic(workers=np.split(rng().permutation(20), [3, 11]), threads=2),
    "nested": nested,
    "kinds": kinds,
    "tokens": tokens,
    "no data": no_data,
}


def results(oracle):
    """Bits of all that an oracle computes."""
    x = rng().standard_normal(oracle.dim).astype(oracle.dtype)
    v = rng().standard_normal(oracle.dim).astype(oracle.dtype)
    found = [oracle.value(x), oracle.grad(x), *oracle.value_and_grad(x), oracle.x0]
    found += [oracle.hvp(x, v), oracle.jvp(x, v)]
    if oracle.n_samples:
        found += [oracle.grad(x, [1, 3, 3]), oracle.grad(x, [2], [0.5]), oracle.worker_grads(x)]
        found.append(oracle.per_sample_grads(x))
    return [np.asarray(each).tobytes() for each in found]


@pytest.mark.parametrize("name", ORACLES)
def test_a_loaded_oracle_gives_the_same_bits(name, tmp_path):
    oracle = ORACLES[name]()
    path = tmp_path / "oracle.buropt"
    oracle.save(path)
    again = bo.load(path)
    assert results(again) == results(oracle)
    assert repr(again) == repr(oracle)
    assert str(again.graph) == str(oracle.graph)
    again.save(tmp_path / "again.buropt")
    assert (tmp_path / "again.buropt").read_bytes() == path.read_bytes()


def test_parameters_keep_their_form(tmp_path):
    nested().save(tmp_path / "oracle.buropt")
    oracle = bo.load(tmp_path / "oracle.buropt")
    tree = oracle.unflatten(oracle.x0)
    assert list(tree) == ["layers", (1, "out"), 2.5, True]
    assert type(tree["layers"][0]) is Layer
    assert tree[(1, "out")][1] is None
    assert oracle.flatten(tree).tolist() == oracle.x0.tolist()


LOADER = """
import sys, numpy as np, buropt as bo
oracle = bo.load(sys.argv[1])
tree = oracle.unflatten(oracle.x0)
print(type(tree["layers"][0]).__name__, oracle.grad(oracle.x0).tobytes().hex())
"""


def test_loading_needs_neither_the_loss_nor_the_classes(tmp_path):
    oracle = nested()
    oracle.save(tmp_path / "oracle.buropt")
    command = [sys.executable, "-c", LOADER, tmp_path / "oracle.buropt"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["Layer", oracle.grad(oracle.x0).tobytes().hex()]


def test_the_file_is_a_zip_of_arrays(tmp_path):
    path = tmp_path / "oracle.buropt"
    logistic(sparse=True, weights=np.arange(20.0)).save(path)
    with np.load(path) as arrays:
        assert arrays["x0"].tolist() == [1, 1, 1]
        assert arrays["weights"].tolist() == list(range(20))
        assert arrays["data/0/row_starts"].dtype == np.int64
    assert zipfile.ZipFile(path).testzip() is None
    kinds().save(path)
    with np.load(path) as arrays:
        assert arrays["data/1"].dtype == np.int64
        assert arrays["data/2"].dtype == bool


def test_the_page_on_saving(tmp_path, monkeypatch):
    """Its examples run as they stand."""
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[1] / "docs" / "saving.md").read_text()
    names = {}
    for block in re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        exec(compile(block, "saving.md", "exec"), names)
    oracle = names["oracle"]
    assert results(names["again"]) == results(oracle)
    assert (names["other"].n_samples, names["other"].n_workers) == (100, 2)
    assert names["values"]["hidden"].shape == (2, 4)
    assert names["hidden"].shape == (500, 4)
    assert Path("loss.buropt").stat().st_size < 4000
    for member in zipfile.ZipFile("oracle.buropt").namelist():
        documented = re.sub(r"(?<=/)\d+", "<k>", member)
        assert f"`{documented}`" in page


# Other data


def test_without_its_data(tmp_path):
    path = tmp_path / "oracle.buropt"
    oracle = logistic(weights=np.arange(20.0), workers=4)
    oracle.save(path, data=False)
    assert path.stat().st_size < 3000
    with pytest.raises(ValueError, match=r"without its data\. Pass data=\.\.\., with data\[0"):
        bo.load(path)
    A, y = oracle._samples.arrays
    again = bo.load(path, (A, y), weights=np.arange(20.0), workers=4)
    assert results(again) == results(oracle)
    assert bo.load(path, data=(A[:5], y[:5])).n_samples == 5
    assert bo.load(path, data=(A, y.astype(int))).n_samples == 20  # integers may stand for floats


def test_other_data_and_settings_in_place_of_the_saved_ones(tmp_path):
    path = tmp_path / "oracle.buropt"
    oracle = logistic(workers=4, weights=np.full(20, 2.0), threads=1)
    oracle.save(path)
    assert bo.load(path).n_workers == 4
    assert bo.load(path).threads == 1
    assert bo.load(path, workers=2, threads=3).n_workers == 2
    assert bo.load(path, threads=3).threads == 3
    other = bo.load(path, data=(np.ones((6, 3)), np.ones(6)))
    assert (other.n_samples, other.n_workers) == (6, 1)
    x = np.zeros(3)
    assert other.value(x) == pytest.approx(np.log(2))  # the saved weights go with the saved data
    assert bo.load(path, weights=np.ones(20)).value(x) == pytest.approx(np.log(2))


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (np.ones((6, 3)), r"got data\[0\] an array of numbers of shape \(N, 3\)$"),
        ((np.ones((6, 4)), np.ones(6)), r"data\[0\] an array of numbers of shape \(N, 4\)"),
        ((sp.csr_array(np.ones((6, 3))), np.ones(6)), r"got data\[0\] a sparse matrix"),
    ],
)
def test_data_that_do_not_fit(data, text, tmp_path):
    path = tmp_path / "oracle.buropt"
    logistic().save(path, data=False)
    with pytest.raises(ValueError, match=text):
        bo.load(path, data)


def test_floats_are_no_integers(tmp_path):
    path = tmp_path / "oracle.buropt"
    kinds().save(path, data=False)
    with pytest.raises(ValueError, match=r"needs .* data\[1\] an array of integers"):
        bo.load(path, data=(np.ones(3), np.ones(3), np.ones(3, bool)))


def test_samples_keep_their_form_and_indices_their_range(tmp_path):
    path = tmp_path / "oracle.buropt"
    tokens().save(path, data=False)
    text = r"needs data\['tokens'\] an array of integers of shape \(N, 4\), data\['label'\]"
    with pytest.raises(ValueError, match=text):
        bo.load(path, data=(np.zeros((2, 4), int), np.zeros(2, int)))
    good = {"tokens": np.array([[0, 4, 1, 99]]), "label": np.array([-1])}
    assert bo.load(path, data=good).n_samples == 1
    bad = {"tokens": np.array([[0, 5, 1, 0]]), "label": np.array([0])}
    with pytest.raises(IndexError, match=r"data\['tokens'\] holds 5 at \[1\] in sample 0"):
        bo.load(path, data=bad)


def test_an_oracle_without_data_takes_none(tmp_path):
    path = tmp_path / "oracle.buropt"
    no_data().save(path, data=False)
    assert results(bo.load(path)) == results(no_data())
    with pytest.raises(ValueError, match="it needs no data, got data"):
        bo.load(path, data=np.ones(3))


# Writing


def test_a_failure_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "oracle.buropt"
    logistic().save(path)
    before = path.read_bytes()

    def full_disk(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        no_data().save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["oracle.buropt"]


def test_where_a_file_cannot_be(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*; create it first"):
        no_data().save(tmp_path / "nowhere" / "oracle.buropt")
    with pytest.raises(FileNotFoundError):
        bo.load(tmp_path / "oracle.buropt")


def test_a_link_stays_a_link_and_permissions_follow_the_umask(tmp_path):
    (tmp_path / "link.buropt").symlink_to(tmp_path / "oracle.buropt")
    no_data().save(tmp_path / "link.buropt")
    assert (tmp_path / "link.buropt").is_symlink()
    (tmp_path / "plain").touch()
    modes = {(tmp_path / name).stat().st_mode for name in ("oracle.buropt", "plain")}
    assert len(modes) == 1


def test_a_key_that_cannot_be_saved(tmp_path):
    oracle = bo.compile(lambda p: p[b"x"] ** 2, {b"x": 1.0})
    with pytest.raises(TypeError, match=r"the key b'x' cannot be saved\. Use"):
        oracle.save(tmp_path / "oracle.buropt")
    assert list(tmp_path.iterdir()) == []


# Reading what is no whole file of this version


def refused(path, content, *texts):
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r".") as caught:
        bo.load(path)
    check_text(caught.value, path, *texts)


def check_text(error, path, *texts):
    """One error, about that file, and what to do."""
    message = str(error)
    assert message.startswith(f"{path} ")
    assert message.endswith(".")
    assert error.__suppress_context__ or error.__context__ is None
    for text in texts:
        assert text in message


def content(tmp_path, oracle=None):
    (oracle or logistic(workers=2)).save(tmp_path / "good.buropt")
    return (tmp_path / "good.buropt").read_bytes()


@pytest.mark.parametrize("foreign", [b"", b"\n", b"a,b\n1,2\n", pickle.dumps([1]), bytes(1000)])
def test_foreign_files(foreign, tmp_path):
    refused(tmp_path / "x.buropt", foreign, "is not a file of buropt")


def test_foreign_archives(tmp_path):
    np.savez(tmp_path / "x.npz", x=np.ones(3))
    refused(tmp_path / "x.npz", (tmp_path / "x.npz").read_bytes(), "is not a file of buropt")
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("buropt.json", json.dumps({"format": "other"}))
    refused(tmp_path / "x.zip", (tmp_path / "x.zip").read_bytes(), "is not a file of buropt")


def test_a_newer_version(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "VERSION", 2)
    newer = content(tmp_path)
    monkeypatch.undo()
    refused(tmp_path / "x.buropt", newer, "written by a newer buropt (version 2", "Update buropt")


def test_a_newer_graph_in_a_file_of_this_version(tmp_path):
    whole = content(tmp_path)
    (tmp_path / "x.buropt").write_bytes(whole)
    rewrite(tmp_path / "x.buropt", graph=lambda graph: graph[:8] + b"\x09" + graph[9:])
    refused(tmp_path / "x.buropt", (tmp_path / "x.buropt").read_bytes(), "newer buropt")


def test_truncated_files(tmp_path):
    whole = content(tmp_path)
    for n in {*range(2, len(whole), 9), len(whole) - 1}:
        refused(tmp_path / "x.buropt", whole[:n], "truncated or damaged", "Copy or save it again")


def test_every_flipped_byte_is_noticed_or_changes_nothing(tmp_path):
    """A ZIP archive has fields, such as dates, that say nothing about its members."""
    oracle = no_data()
    whole = content(tmp_path, oracle)
    expected = oracle.grad(oracle.x0).tobytes()
    path = tmp_path / "x.buropt"
    n_harmless = 0
    for k in range(len(whole)):
        flipped = bytearray(whole)
        flipped[k] ^= 0xFF
        path.write_bytes(bytes(flipped))
        try:
            again = bo.load(path)
        except ValueError as error:
            check_text(error, path)
        else:
            n_harmless += 1
            assert again.grad(again.x0).tobytes() == expected
    assert n_harmless < len(whole) / 4


def rewrite(path, graph=lambda graph: graph, change=lambda content: content):
    """The same file with another graph or other JSON, and checksums to match."""
    with files.reading(path, "oracle", "") as file:
        members = {
            name: file.array(name) if name.endswith(".npy") else graph(file.bytes(name))
            for name in file._infos
            if name != "buropt.json"
        }
        changed = change(file.content)
    files.write(path, "oracle", changed, members)


def places(tree, path=()):
    """Where something stands in a tree of JSON."""
    yield path
    if isinstance(tree, dict | list):
        for key, child in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from places(child, (*path, key))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2**40) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_wrong_descriptions_with_fitting_checksums(tmp_path_factory, data):
    tmp_path = tmp_path_factory.mktemp("save")
    path = tmp_path / "x.buropt"
    data.draw(st.sampled_from([nested, kinds, tokens, logistic]))().save(path)

    def change(content):
        where = data.draw(st.sampled_from([p for p in places(content) if p]))
        parent = content
        for key in where[:-1]:
            parent = parent[key]
        parent[where[-1]] = data.draw(JSON)
        return content

    rewrite(path, change=change)
    try:
        bo.load(path)
    except ValueError as error:
        check_text(error, path)


@pytest.mark.parametrize("name", ["x0.npy", "data/1.npy", "functions.graph", "workers/sizes.npy"])
def test_a_missing_member(name, tmp_path):
    path = tmp_path / "x.buropt"
    path.write_bytes(content(tmp_path))
    with files.reading(path, "oracle", "") as file:
        members = {n: file.bytes(n) for n in file._infos if n not in ("buropt.json", name)}
    files.write(path, "oracle", file.content, members)
    refused(path, path.read_bytes(), "does not hold valid oracle", name)
