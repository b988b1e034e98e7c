"""Values inside of a loss: named by `bo.tag`, asked for by `Oracle.intermediates`, and saved."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

import buropt as bo

N = 700  # several tiles


def rng():
    return np.random.default_rng(0)


W, V = rng().standard_normal((4, 3)), rng().standard_normal(4)
A, Y = rng().standard_normal((N, 3)), np.sign(rng().standard_normal(N))


def loss(p, a, b):
    hidden = bo.tag(np.tanh(p["W"] @ a), "hidden")
    score = bo.tag(p["v"] @ hidden, "score")
    bo.tag(np.argmax(hidden), "winner")
    bo.tag(score * b > 0, "is right")
    bo.tag(p["v"] ** 2, "squares")
    return np.logaddexp(0, -b * score)


def oracle(**options):
    return bo.compile(loss, {"W": W, "v": V}, (A, Y), **options)


def test_values_by_name():
    o = oracle(threads=2)
    found = o.intermediates(o.x0)
    hidden = np.tanh(A @ W.T)
    assert list(found) == ["hidden", "score", "winner", "is right", "squares"]
    np.testing.assert_allclose(found["hidden"], hidden, rtol=1e-14)
    np.testing.assert_allclose(found["score"], hidden @ V, rtol=1e-13)
    np.testing.assert_array_equal(found["winner"], hidden.argmax(axis=1))
    np.testing.assert_array_equal(found["is right"], (hidden @ V) * Y > 0)
    np.testing.assert_array_equal(found["squares"], V**2)  # the same for all samples
    assert [found[name].dtype for name in found] == ["f8", "f8", "i8", bool, "f8"]


def test_some_samples_and_some_names():
    o = oracle()
    everything = o.intermediates(o.x0)
    picked = o.intermediates(o.x0, [3, 699, 3], names=["winner", "hidden"])
    assert list(picked) == ["winner", "hidden"]
    np.testing.assert_array_equal(picked["hidden"], everything["hidden"][[3, 699, 3]])
    np.testing.assert_array_equal(picked["winner"], everything["winner"][[3, 699, 3]])
    assert o.intermediates(o.x0, names=[]) == {}


def test_naming_changes_nothing():
    def plain(p, a, b):
        score = p["v"] @ np.tanh(p["W"] @ a)
        return np.logaddexp(0, -b * score)

    x = rng().standard_normal(16)
    o, other = oracle(), bo.compile(plain, {"W": W, "v": V}, (A, Y))
    assert o.value(x) == other.value(x)
    assert o.grad(x).tobytes() == other.grad(x).tobytes()
    assert str(o.graph) == str(other.graph)
    array = np.ones(3)
    assert bo.tag(array, "a") is array
    assert bo.tag(2.0, "a") == 2.0
    assert bo.grad(lambda x: bo.tag(x * x, "square"))(3.0) == 6.0


def test_inputs_and_constants_can_be_named():
    def loss(x, a):
        bo.tag(x, "x")
        bo.tag(a, "a")
        bo.tag(0 * x + 1 - x / x, "nothing")
        return bo.tag(a @ x, "loss")

    o = bo.compile(loss, np.ones(3), A, regularizer=lambda x: bo.tag(x @ x, "regularizer"))
    found = o.intermediates(2 * np.ones(3))
    np.testing.assert_array_equal(found["x"], [2, 2, 2])
    np.testing.assert_array_equal(found["a"], A)
    np.testing.assert_array_equal(found["nothing"], np.zeros(3))
    np.testing.assert_allclose(found["loss"], A @ [2, 2, 2], rtol=1e-13, atol=1e-14)
    assert found["regularizer"] == 12.0


def test_sparse_data_and_none():
    o = bo.compile(lambda x, a: bo.tag(a @ x, "z") ** 2, np.ones(3), sp.csr_array(A))
    np.testing.assert_allclose(o.intermediates(np.ones(3))["z"], A.sum(axis=1), atol=1e-14)
    o = bo.compile(lambda x: np.sum(bo.tag(np.exp(x), "e")), np.zeros(2, np.float32))
    found = o.intermediates(np.zeros(2))["e"]
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, [1, 1])


def test_a_value_changed_in_place_keeps_what_it_was():
    def loss(x):
        y = bo.tag(x * 2, "before")
        y += 1
        return np.sum(bo.tag(y, "after"))

    o = bo.compile(loss, np.ones(2))
    found = o.intermediates(np.ones(2))
    assert found["before"].tolist() == [2, 2]
    assert found["after"].tolist() == [3, 3]


def test_wrong_names():
    o = oracle()
    with pytest.raises(ValueError, match=r"no intermediate value 'hiden'; the loss tags 'hidden'"):
        o.intermediates(o.x0, names=["hiden"])
    untagged = bo.compile(lambda x: x @ x, np.ones(2))
    assert untagged.intermediates(np.ones(2)) == {}
    with pytest.raises(ValueError, match=r"the loss tags none\. Name values by bo.tag"):
        untagged.intermediates(np.ones(2), names=["z"])
    with pytest.raises(ValueError, match=r"x must have shape \(16,\), got \(3,\)"):
        o.intermediates(np.ones(3))


def twice(x):
    for _ in range(2):
        x = bo.tag(np.sin(x), "sine")
    return np.sum(x)


@pytest.mark.parametrize(
    ("function", "data", "text"),
    [
        (twice, None, r"(?s)tag 'sine' is given to two values\. .*test_intermediates.*own name"),
        (lambda x: bo.tag([x], "x")[0] @ x, None, "tag 'x': a list cannot be tagged"),
        (lambda x, a: bo.tag(a, "a") @ x, sp.csr_array(A), r"data\[0\] is a sparse row"),
        (lambda x: bo.tag(x @ x, ""), None, "a string that is not empty, got ''"),
    ],
)
def test_wrong_tags(function, data, text):
    with pytest.raises(TypeError, match=text):
        bo.compile(function, np.ones(3), data)


# Files


def test_saved_and_loaded(tmp_path):
    o = oracle()
    o.save_intermediates(tmp_path / "values.buropt", o.x0, [5, 1], ["winner", "hidden"])
    found = bo.load_arrays(tmp_path / "values.buropt")
    expected = o.intermediates(o.x0, [5, 1], ["winner", "hidden"])
    assert list(found) == list(expected)
    for name in expected:
        assert found[name].dtype == expected[name].dtype
        np.testing.assert_array_equal(found[name], expected[name])


def test_names_are_saved_with_the_oracle(tmp_path):
    o = oracle()
    o.save(tmp_path / "oracle.buropt")
    again = bo.load(tmp_path / "oracle.buropt")
    expected, found = o.intermediates(o.x0), again.intermediates(o.x0)
    assert [(n, v.dtype, v.tobytes()) for n, v in found.items()] == [
        (n, v.dtype, v.tobytes()) for n, v in expected.items()
    ]
    with pytest.raises(ValueError, match=r"oracle\.buropt holds oracle\. Use bo\.load\."):
        bo.load_arrays(tmp_path / "oracle.buropt")


def test_one_kind_of_file_for_another(tmp_path):
    bo.save_arrays(tmp_path / "x.buropt", {"x": np.ones(3)})
    with pytest.raises(ValueError, match=r"x\.buropt holds arrays\. Use bo\.load_arrays\."):
        bo.load(tmp_path / "x.buropt")


@settings(max_examples=50, deadline=None)
@given(
    st.dictionaries(
        st.text(max_size=5),
        st.sampled_from(["f2", "f4", ">f8", "i1", "<u4", ">i8", "?"]).flatmap(
            lambda dtype: arrays(dtype, array_shapes(min_dims=0, min_side=0, max_side=4))
        ),
        max_size=3,
    )
)
def test_arrays_come_back_as_they_were(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("arrays") / "x.buropt"
    bo.save_arrays(path, content)
    found = bo.load_arrays(path)
    assert list(found) == list(content)
    for name, array in content.items():
        assert found[name].dtype == array.dtype.newbyteorder("<")
        np.testing.assert_array_equal(found[name], array)
        assert found[name].flags.writeable


def test_strided_arrays_numbers_and_lists(tmp_path):
    path = tmp_path / "x.buropt"
    array = np.arange(24.0).reshape(4, 6)
    bo.save_arrays(path, {"a": array.T[::2], "b": np.asfortranarray(array), "c": 3, "d": [1.5]})
    found = bo.load_arrays(path)
    np.testing.assert_array_equal(found["a"], array.T[::2])
    np.testing.assert_array_equal(found["b"], array)
    assert (found["c"], found["d"].tolist()) == (3, [1.5])


@pytest.mark.parametrize(
    "content", [{"a": np.array([object()])}, {"a": 1j}, {"a": "text"}, {1: np.ones(2)}]
)
def test_what_is_not_saved(content, tmp_path):
    with pytest.raises(TypeError, match="save_arrays: "):
        bo.save_arrays(tmp_path / "x.buropt", content)
    assert list(tmp_path.iterdir()) == []


def test_a_value_is_not_written_over_by_the_last_instruction():
    def loss(x, a):
        margin = bo.tag(a @ x, "margin")
        return bo.tag(np.tanh(margin), "squashed")

    data = np.linspace(-1, 1, 21).reshape(7, 3)
    oracle = bo.compile(loss, np.zeros(3), data=data)
    found = oracle.intermediates(np.ones(3))
    assert np.allclose(found["margin"], data.sum(axis=1))
    assert np.allclose(found["squashed"], np.tanh(data.sum(axis=1)))
