"""buropt.Value: depth, memory, copies and mistakes."""

from __future__ import annotations

import copy
import gc
import pickle
import sys
import weakref

import numpy as np
import pytest
from threads import on_a_small_stack

import buropt as bo
from buropt import Value

# Depth and life


def test_a_chain_of_a_million_operations():
    """No recursion, neither forward nor backward nor when it is dropped; nothing is left."""
    gc.collect()
    before = sys.getallocatedblocks()
    x = Value(1.0)
    v = x
    for _ in range(500_000):
        v = v + x
        v = v * 1.0
    v.backward()
    assert (v.data, x.grad) == (500_001, 500_001)
    middle = weakref.ref(v)
    del v
    assert middle() is None
    del x
    assert sys.getallocatedblocks() - before < 1000


def test_a_chain_in_a_thread_with_a_small_stack():
    def slope():
        v = x = Value(1.0)
        for _ in range(100_000):
            v = (v + x).tanh()
        v.backward()
        return x.grad

    assert 0 < on_a_small_stack(slope, 64) < 10


def test_operands_live_as_long_as_what_was_computed_from_them():
    v = Value(2.0)
    result = (v * 3).exp()
    seen = weakref.ref(next(iter(result._prev)))
    del v
    assert seen().data == 6.0
    result.backward()
    assert seen().grad == result.data
    del result
    assert seen() is None


def test_weak_references_to_a_dying_chain():
    """Callbacks run while the chain is taken apart, and may make and drop Values of their own."""
    v = Value(0.0)
    died = []
    watchers = []
    for _ in range(2000):
        v = v + 1
        watchers.append(weakref.ref(v, lambda _: died.append((Value(1.0) + 1).data)))
    del v
    assert died == [2.0] * 2000
    assert all(watcher() is None for watcher in watchers)


def test_labels_and_children_are_released():
    gc.collect()
    before = sys.getallocatedblocks()
    for k in range(10_000):
        v = Value(k, (Value(1.0), Value(2.0)), f"op {k}", f"label {k}")
        v.label = f"another {k}"
        assert len((v * 2 + 1)._prev) == 2
        with pytest.raises(TypeError):
            Value(k, (v, v, v))
    del v
    gc.collect()
    assert sys.getallocatedblocks() - before < 1000


def test_leaves_can_be_copied_and_pickled():
    v = Value(1.5, label="w")
    v.grad = 2.0
    for other in (copy.copy(v), copy.deepcopy([v])[0], pickle.loads(pickle.dumps(v))):
        assert other is not v
        assert (other.data, other.grad, other.label) == (1.5, 2.0, "w")
    a, b = copy.deepcopy([v, v])
    assert a is b
    for copier in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match=r"leave its graph; use Value\(v.data\)"):
            copier(v + 1)


# Mistakes


@pytest.mark.parametrize(
    "f",
    [
        lambda v: v + "a",
        lambda v: [1.0] - v,
        lambda v: v * None,
        lambda v: v / 1j,
        lambda v: np.complex64(1) * v,
        lambda v: v ** "a",
        lambda v: pow(v, 2, 3),
        lambda v: v < "a",
        lambda v: v // 2,
    ],
)
def test_operands_of_other_types_are_refused_by_name(f):
    with pytest.raises(TypeError, match="Value"):
        f(Value(2.0))


@pytest.mark.parametrize("data", ["1", [1.0], None, 1j, np.ones(1), Value(1.0)])
def test_data_is_a_number(data):
    name = type(data).__name__
    with pytest.raises(TypeError, match=rf"data must be a number, got .*{name}; make a Value of"):
        Value(data)
    with pytest.raises(TypeError, match="data must be a number"):
        Value(1.0).data = data


def test_other_mistakes():
    v = Value(1.0)
    with pytest.raises(TypeError, match="grad must be a number, got NoneType"):
        v.grad = None
    with pytest.raises(TypeError, match="label is a str, got int"):
        v.label = 3
    with pytest.raises(AttributeError):
        v.lable = "x"
    with pytest.raises(TypeError, match="at most two Values, got 1 of which number 0 is float"):
        Value(1.0, (2.0,))
    with pytest.raises(TypeError, match="children"):
        Value(1.0, children=(v,))
    with pytest.raises(OverflowError):
        v + 10**400
    with pytest.raises(bo.TraceError):
        bo.grad(lambda x: x * v)(1.0)
    with pytest.raises(TypeError, match="got Tracer"):
        bo.grad(lambda x: Value(x))(1.0)
