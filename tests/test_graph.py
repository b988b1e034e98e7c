"""The graph builder and reverse mode as a transform: shapes, folding, sharing, dead code."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buropt import _core


def builder():
    return _core.Builder("float64")


def run(b, outputs, *arrays):
    return _core.Program(b.build(outputs, [str(i) for i in range(len(outputs))]))(*arrays)


def test_equal_nodes_are_one_node():
    b = builder()
    x = b.input("x", (3,))
    first = b.emit("multiply", [x, b.emit("exp", [x])])
    assert b.emit("multiply", [x, b.emit("exp", [x])]) == first
    assert b.emit("multiply", [b.emit("exp", [x]), x]) != first  # operand order is kept


def test_constants_are_folded():
    b = builder()
    two = b.constant(np.full(3, 2.0))
    assert b.emit("add", [two, two]) == b.constant(np.full(3, 4.0))
    total = b.emit("sum", [two], {"axes": [0], "keepdims": 0})
    assert b.constant_value(total) == 6.0
    assert b.constant_value(b.input("x", ())) is None


@pytest.mark.parametrize(("op", "operand"), [("multiply", 1.0), ("divide", 1.0)])
def test_neutral_operands_disappear(op, operand):
    b = builder()
    x = b.input("x", (3,))
    assert b.emit(op, [x, b.constant(operand)]) == x


SIGNS = {
    "a + (-b)": ("subtract", lambda e, a, b: e("add", a, e("negative", b))),
    "(-a) + b": ("subtract", lambda e, a, b: e("add", e("negative", a), b)),
    "a - (-b)": ("add", lambda e, a, b: e("subtract", a, e("negative", b))),
    "(-a)(-b)": ("multiply", lambda e, a, b: e("multiply", e("negative", a), e("negative", b))),
    "-(-a * b)": ("multiply", lambda e, a, b: e("negative", e("multiply", e("negative", a), b))),
    "a - (b * -a)": (
        "add",
        lambda e, a, b: e("subtract", a, e("multiply", b, e("negative", a))),
    ),
}


@pytest.mark.parametrize("form", SIGNS)
def test_sums_and_products_absorb_signs_and_keep_every_bit(form):
    last, build = SIGNS[form]
    b = builder()
    nodes = [b.input("a", (3,)), b.input("b", (3,))]
    y = build(lambda op, *operands: b.emit(op, list(operands)), *nodes)
    graph = b.build([y], ["y"])
    assert f"= {last}(" in str(graph)
    assert "negative" not in str(graph)
    arrays = np.array([0.0, -0.0, 1.5]), np.array([0.0, 0.0, -2.5])

    def numbers(op, *operands):
        return getattr(np, op)(*operands)

    (found,) = _core.Program(graph)(*arrays)
    expected = build(numbers, *arrays)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


def test_one_number_repeated_over_an_array_is_computed_with_once():
    b = builder()
    x = b.input("x", ())
    ones = b.emit("broadcast_to", [x], {"shape": [1000]})
    total = b.emit("add", [ones, b.emit("exp", [ones])])
    assert "exp(%0)  float64 ()" in str(b.build([total], ["y"]))


def test_what_all_samples_share_is_computed_once():
    b = builder()
    x = b.input("x", (3,))
    total = b.emit("add", [b.emit("to_batched", [x]), b.emit("exp", [b.emit("to_batched", [x])])])
    assert "exp(%0)  float64 (3,)" in str(b.build([total], ["y"]))


@pytest.mark.parametrize("divisor", [2.0, -0.25, 2.0**60])
def test_division_by_a_power_of_two_is_a_product(divisor):
    b = builder()
    y = b.emit("divide", [b.input("x", (4,)), b.constant(divisor)])
    assert "multiply" in str(b.build([y], ["y"]))
    x = np.array([3.0, -0.0, 5e-324, np.inf])
    np.testing.assert_array_equal(run(b, [y], x)[0], x / divisor)
    assert "divide" in str(b.build([b.emit("divide", [b.input("z", ()), b.constant(3.0)])], ["y"]))


def test_arrangements_that_change_nothing_disappear():
    b = builder()
    x = b.input("x", (2, 3))
    assert b.emit("reshape", [x], {"shape": [2, 3]}) == x
    assert b.emit("transpose", [x], {"axes": [0, 1]}) == x
    assert b.emit("broadcast_to", [x], {"shape": [2, 3]}) == x
    assert b.emit("negative", [b.emit("negative", [x])]) == x
    assert b.emit("integer_power", [x], {"n": 1}) == x


def test_dead_code_is_cut_out_but_inputs_stay():
    b = builder()
    x, y = b.input("x", (3,)), b.input("y", (3,))
    b.emit("exp", [y])
    graph = b.build([b.emit("sin", [x])], ["sine"])
    assert graph.n_nodes == 3
    assert graph.input_names == ["x", "y"]
    assert graph.output_names == ["sine"]
    assert "%2 = sin(%0)  float64 (3,)" in str(graph)


def test_value_and_gradient_share_their_nodes():
    b = builder()
    x = b.input("x", (4,))
    value = b.emit("sum", [b.emit("exp", [x])], {"axes": [0], "keepdims": 0})
    (gradient,) = b.grad(value, [x])
    assert str(b.build([value, gradient], ["f", "g"])).count("= exp(") == 1


def test_a_graph_added_to_another_one():
    b = builder()
    x = b.input("x", (3,))
    graph = b.build([b.emit("exp", [x]), b.emit("multiply", [x, b.constant(2.0)])], ["e", "t"])

    other = builder()
    y = other.emit("sin", [other.input("y", (3,))])
    e, t = other.add_graph(graph, [y])
    assert e == other.emit("exp", [y])  # what is there already is found
    np.testing.assert_array_equal(run(other, [t], np.ones(3))[0], 2 * np.sin(np.ones(3)))
    (value, _) = other.add_graph(graph, [other.constant(np.zeros(3))])
    assert other.constant_value(value).tolist() == [1, 1, 1]  # and constants are folded
    batched = other.input("z", (3,), batched=True)
    assert other.batched(other.add_graph(graph, [batched])[0])


def test_a_graph_is_only_added_where_it_fits():
    b = builder()
    x = b.input("x", (3,))
    graph = b.build([b.emit("exp", [x])], ["e"])
    with pytest.raises(ValueError, match=r"input x has shape \(3,\), got \(4,\)"):
        b.add_graph(graph, [b.input("y", (4,))])
    with pytest.raises(TypeError, match="has 1 inputs, got 0"):
        b.add_graph(graph, [])
    other = _core.Builder("float32")
    with pytest.raises(TypeError, match="float64 graph cannot be added to one of float32"):
        other.add_graph(graph, [other.input("x", (3,))])


@pytest.mark.parametrize(
    ("op", "shapes", "attributes", "text"),
    [
        ("add", [(3,), (4,)], {}, r"buropt.add: shapes \(3,\) and \(4,\) do not broadcast"),
        ("matmul", [(3, 4), (5, 4)], {}, r"a is \(3, 4\), b is \(5, 4\); did you mean a @ b.T\?"),
        ("matmul", [(3,), ()], {}, r"scalars multiply with \*"),
        ("reshape", [(6,)], {"shape": [4]}, r"\(6,\) has 6 elements and cannot become \(4,\)"),
        ("transpose", [(2, 3)], {"axes": [0, 0]}, "not a permutation"),
        ("broadcast_to", [(3,)], {"shape": [2]}, r"\(3,\) does not broadcast to \(2,\)"),
        ("sum", [(3,)], {"axes": [1], "keepdims": 0}, "axis 1 is out of range"),
        ("concatenate", [(2, 3), (2, 4)], {"axis": 0}, "differ only along axis 0"),
        ("integer_power", [(3,)], {"n": 2**40}, "not in -2147483646 to 2147483646"),
        ("erfcx", [(3,)], {"n": -1}, "not in 0 to 1048576"),
        ("layer_norm", [(3,)], {"eps": []}, "eps is missing"),
        ("layer_norm_weight_vjp", [(4, 3), (4, 3), (4, 1)], {"eps": 0}, r"moments .* \(4, 2\)"),
        ("layer_norm_affine_vjp", [(4, 3), (4, 3), (4, 2), (2,)], {"eps": 0}, r"weight .* \(3,\)"),
        ("logsumexp_vjp", [(3,), (4, 3)], {}, r"no cotangent of shape \(3,\)"),
    ],
)
def test_shape_errors(op, shapes, attributes, text):
    b = builder()
    inputs = [b.input(f"x{i}", shape) for i, shape in enumerate(shapes)]
    with pytest.raises(ValueError, match=text):
        b.emit(op, inputs, attributes)


def test_other_errors():
    b = builder()
    x = b.input("x", (3,))
    with pytest.raises(IndexError, match="no node 7"):
        b.emit("exp", [7])
    with pytest.raises(TypeError, match="takes 2 operands, got 1"):
        b.emit("add", [x])
    with pytest.raises(IndexError, match="leave the array of shape"):
        b.emit("slice", [x], {"starts": [1], "sizes": [3], "steps": [1]})
    with pytest.raises(TypeError, match=r"must return a scalar, got an array of shape \(3,\)"):
        b.grad(x, [x])
    with pytest.raises(TypeError, match="float32 or float64, got dtype 'int64'"):
        _core.Builder("int64")
    with pytest.raises(TypeError, match="unknown attribute"):
        b.emit("exp", [x], {"base": 2})


# Arrangements, against NumPy, with gradients checked through <vjp> = linear map's transpose.

LINEAR = {
    "reshape": ((2, 6), {"shape": [3, 4]}, lambda x: x.reshape(3, 4)),
    "transpose": ((2, 3, 4), {"axes": [2, 0, 1]}, lambda x: x.transpose(2, 0, 1)),
    "broadcast_to": ((3, 1), {"shape": [2, 3, 4]}, lambda x: np.broadcast_to(x, (2, 3, 4))),
    "slice": (
        (5, 6),
        {"starts": [4, 1], "sizes": [3, 2], "steps": [-2, 3]},
        lambda x: x[4::-2, 1:5:3],
    ),
    "sum": ((2, 3, 4), {"axes": [0, 2], "keepdims": 0}, lambda x: x.sum((0, 2))),
    "slice_vjp": (
        (2,),
        {"starts": [1], "shape": [5], "steps": [2]},
        lambda x: np.array([0, x[0], 0, x[1], 0]),
    ),
}


@pytest.mark.parametrize("repeat", [1, 700])  # unrolled to scalars, and as loops
@pytest.mark.parametrize("name", LINEAR)
def test_linear_primitives_and_their_transposes(name, repeat):
    shape, attributes, expected = LINEAR[name]
    rng = np.random.default_rng(1)
    b = builder()
    x = b.input("x", shape)
    extra = b.input("extra", (repeat,))  # enough elements to keep the scalar executor away
    y = b.emit(name, [x], attributes)
    weights = rng.standard_normal(b.shape(y))
    axes = {"axes": list(range(weights.ndim)), "keepdims": 0}
    inner = b.emit("sum", [b.emit("multiply", [y, b.constant(weights)])], axes)
    total = b.emit(
        "add", [inner, b.emit("sum", [b.emit("exp", [extra])], {"axes": [0], "keepdims": 0})]
    )
    (gradient,) = b.grad(total, [x])
    data = rng.standard_normal(shape)
    out, slope = run(b, [y, gradient], data, np.zeros(repeat))
    assert np.array_equal(out, expected(data)) or name == "sum"
    np.testing.assert_allclose(out, expected(data), rtol=1e-14)
    u = rng.standard_normal(shape)
    assert np.vdot(slope, u) == pytest.approx(np.vdot(weights, expected(u)), rel=1e-13)


@given(
    seed=st.integers(0, 2**32 - 1),
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple),
    data=st.data(),
)
@settings(max_examples=40)
def test_sum_over_any_axes(seed, shape, data):
    axes = data.draw(st.sets(st.integers(0, len(shape) - 1)).map(sorted))
    keepdims = data.draw(st.booleans())
    x = np.random.default_rng(seed).standard_normal(shape)
    b = builder()
    node = b.emit("sum", [b.input("x", shape)], {"axes": axes, "keepdims": int(keepdims)})
    (out,) = run(b, [node], x)
    expected = np.sum(x, axis=tuple(axes), keepdims=keepdims)
    assert np.shape(out) == expected.shape
    np.testing.assert_allclose(out, expected, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("transpose_a", [0, 1])
@pytest.mark.parametrize("transpose_b", [0, 1])
@pytest.mark.parametrize(("m", "k", "n"), [(1, 1, 1), (3, 4, 5), (1, 7, 2), (40, 30, 50)])
def test_matmul_and_its_gradients(transpose_a, transpose_b, m, k, n):
    rng = np.random.default_rng(2)
    A = rng.standard_normal((k, m) if transpose_a else (m, k))
    B = rng.standard_normal((n, k) if transpose_b else (k, n))
    weights = rng.standard_normal((m, n))
    b = builder()
    a_node, b_node = b.input("a", A.shape), b.input("b", B.shape)
    c = b.emit("matmul", [a_node, b_node], {"transpose_a": transpose_a, "transpose_b": transpose_b})
    total = b.emit(
        "sum",
        [b.emit("multiply", [c, b.constant(weights)])],
        {"axes": [0, 1], "keepdims": 0},
    )
    out, ga, gb = run(b, [c, *b.grad(total, [a_node, b_node])], A, B)
    left, right = A.T if transpose_a else A, B.T if transpose_b else B
    np.testing.assert_allclose(out, left @ right, rtol=1e-12, atol=1e-13)
    expected_a, expected_b = weights @ right.T, left.T @ weights
    np.testing.assert_allclose(ga, expected_a.T if transpose_a else expected_a, atol=1e-12)
    np.testing.assert_allclose(gb, expected_b.T if transpose_b else expected_b, atol=1e-12)


@pytest.mark.parametrize(("m", "k", "n"), [(1, 260, 300), (9, 300, 260), (130, 784, 100)])
def test_large_products(m, k, n):
    rng = np.random.default_rng(3)
    A, B = rng.standard_normal((m, k)), rng.standard_normal((n, k))
    b = builder()
    nodes = [b.input("a", A.shape), b.input("b", B.shape)]
    c = b.emit("matmul", nodes, {"transpose_b": 1})
    np.testing.assert_allclose(run(b, [c], A, B)[0], A @ B.T, rtol=1e-11, atol=1e-11)


def test_sizes_beyond_memory_are_refused():
    b = builder()
    x = b.input("x", ())
    with pytest.raises(ValueError, match=r"buropt.broadcast_to: an array of shape .* too many"):
        b.emit("broadcast_to", [x], {"shape": [2**31, 2**31, 4]})
    with pytest.raises(ValueError, match="too many elements"):
        b.input("y", (2**33, 2**33))


def test_branch_not_taken_may_hold_anything_in_a_product():
    b = builder()
    w, x, c = b.input("w", (2,)), b.input("x", (2,)), b.input("c", ())
    value = b.emit("where", [c, b.emit("matmul", [w, x]), b.constant(0.0)])
    out, gw, gx = run(b, [value, *b.grad(value, [w, x])], [np.inf, 1.0], [1.0, 2.0], 0.0)
    assert out == 0
    assert np.array_equal(gw, [0, 0])
    assert np.array_equal(gx, [0, 0])


def test_long_chains_need_no_recursion():
    b = builder()
    x = b.input("x", ())
    node = x
    for _ in range(100_000):
        node = b.emit("sin", [node])
    (gradient,) = b.grad(node, [x])
    value, slope = run(b, [node, gradient], 1.0)
    expected, chain = 1.0, 1.0
    for _ in range(100_000):
        chain *= np.cos(expected)
        expected = np.sin(expected)
    assert value == pytest.approx(expected, rel=1e-9)
    assert slope == pytest.approx(chain, rel=1e-7)
