"""Trees of arrays and the flat vector: round trips, views, and errors that name the path."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from buropt.trace import Trace
from buropt.tree import flatten, flatten_leaves


class Layer(NamedTuple):
    weight: object
    bias: object


def leaf_arrays():
    shapes = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)
    return hnp.arrays(np.float64, shapes, elements=st.floats(-10, 10))


def trees():
    return st.recursive(
        leaf_arrays(),
        lambda part: (
            st.lists(part, max_size=3)
            | st.lists(part, max_size=3).map(tuple)
            | st.dictionaries(st.sampled_from("abc"), part, max_size=3)
            | st.builds(Layer, part, part)
        ),
        max_leaves=6,
    )


def assert_same_tree(a, b):
    leaves_a, structure_a = flatten_leaves(a)
    leaves_b, structure_b = flatten_leaves(b)
    assert structure_a == structure_b
    for x, y in zip(leaves_a, leaves_b, strict=True):
        np.testing.assert_array_equal(x, y)
        assert np.shape(x) == np.shape(y)


@given(tree=trees())
def test_round_trip(tree):
    leaves, structure = flatten_leaves(tree)
    assert_same_tree(structure.unflatten(leaves), tree)
    if leaves:
        vector, spec = flatten(tree)
        assert vector.shape == (spec.dim,)
        assert spec.dim == sum(leaf.size for leaf in leaves)
        assert_same_tree(spec.unflatten(vector), tree)
        np.testing.assert_array_equal(spec.flatten(tree), vector)


def test_order_and_shapes():
    tree = {"w": [np.arange(6.0).reshape(2, 3), 7.0], "b": (np.array([8, 9]), None)}
    vector, spec = flatten(tree)
    np.testing.assert_array_equal(vector, np.arange(10.0)[[0, 1, 2, 3, 4, 5, 7, 8, 9]])
    assert spec.shapes == ((2, 3), (), (2,))
    assert spec.paths == ["x0['w'][0]", "x0['w'][1]", "x0['b'][0]"]
    back = spec.unflatten(vector)
    assert list(back) == ["w", "b"]
    assert back["b"][1] is None
    assert back["w"][1].shape == ()


def test_named_tuple_paths():
    _, spec = flatten(Layer(np.ones(2), [np.ones(1)]), name="params")
    assert spec.paths == ["params.weight", "params.bias[0]"]
    assert isinstance(spec.unflatten(np.zeros(3)), Layer)


def test_leaves_are_views_of_the_vector():
    vector, spec = flatten({"w": np.ones((2, 2)), "b": 0.0})
    tree = spec.unflatten(vector)
    tree["w"][1, 0] = 5.0
    tree["b"][...] = 6.0
    np.testing.assert_array_equal(vector, [1, 1, 5, 1, 6])


@pytest.mark.parametrize("size", [1, 5, 1000, 100_000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_vectors_begin_at_a_cache_line(size, dtype):
    for _ in range(5):
        vector, spec = flatten({"a": np.ones(size, dtype), "b": 2}, dtype=dtype)
        again = spec.flatten(spec.unflatten(vector))
        assert vector.ctypes.data % 64 == again.ctypes.data % 64 == 0
        np.testing.assert_array_equal(vector, again)
        assert vector.dtype == again.dtype == dtype
        assert vector.shape == again.shape == (size + 1,)


def test_flatten_copies():
    x0 = np.ones(3)
    vector, spec = flatten(x0)
    vector[0] = 2.0
    assert x0[0] == 1.0
    assert spec.unflatten(vector) is vector


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (np.ones(2, np.float32), np.float32),
        ([np.ones(2, np.float32), np.ones(2, np.float32)], np.float32),
        ([np.ones(2, np.float32), np.ones(2)], np.float64),
        (np.array([1, 2]), np.float64),
        (3, np.float64),
    ],
)
def test_dtype(tree, expected):
    vector, spec = flatten(tree)
    assert vector.dtype == spec.dtype == expected


def test_chosen_dtype():
    assert flatten(np.ones(2), dtype="float32")[0].dtype == np.float32
    with pytest.raises(TypeError, match="float32 or float64, got int64"):
        flatten(np.ones(2), dtype=np.int64)


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"w": [np.array([True])]}, r"x0\['w'\]\[0\] has dtype bool"),
        ({"w": True}, r"x0\['w'\] has dtype bool"),
        ([np.ones(2), "text"], r"x0\[1\] is of type str"),
        ([np.ones(2) * 1j], r"x0\[0\] has dtype complex128"),
        ([np.ones(2, np.longdouble)], r"x0\[0\] has dtype .*widest supported is float64"),
        ((np.array([None]),), r"x0\[0\] has dtype object"),
    ],
)
def test_errors_name_the_path(tree, message):
    with pytest.raises(TypeError, match=message):
        flatten(tree)


def test_no_leaves():
    with pytest.raises(ValueError, match="x0 holds no arrays"):
        flatten({"w": []})


def test_other_tree_or_vector():
    _, spec = flatten({"w": np.ones((2, 3)), "b": 1.0}, name="x0")
    with pytest.raises(ValueError, match=r"x0\['w'\]: expected shape \(2, 3\), got \(3, 2\)"):
        spec.flatten({"w": np.ones((3, 2)), "b": 1.0})
    with pytest.raises(ValueError, match=r"another structure: expected x0\['w'\], x0\['b'\]"):
        spec.flatten([np.ones((2, 3)), 1.0])
    with pytest.raises(ValueError, match=r"a vector of shape \(7,\), got shape \(6,\)"):
        spec.unflatten(np.ones(6))


def test_traced_vector():
    _, spec = flatten({"w": np.ones((2, 3)), "b": 1.0})
    with Trace() as trace:
        tree = spec.unflatten(trace.input("x", (spec.dim,)))
    assert tree["w"].shape == (2, 3)
    assert tree["b"].shape == ()
