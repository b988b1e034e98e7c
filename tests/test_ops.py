"""Every primitive, by its row in primitives.py: values, shapes, derivatives, batches, errors.

One graph holds the value, both first derivatives and two ways to the second; it is run on single
operands, and on batches of them with every choice of operands that differ from sample to sample.
"""

import itertools
from functools import cache

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from primitive_rows import INTERNAL
from primitives import OPS, call, names, operands_of, row_of

import buropt as bo
from buropt import _core
from buropt.autodiff.differences import Differences

# Those with an attribute, such as integer_power, are no functions of arrays alone.
ELEMENTWISE = [name for name in names(elementwise=True) if not OPS[name]["attributes"]]
EXAMPLES = [(name, k) for name in names() for k in range(len(row_of(name).examples))]
SAMPLES = 11


def test_every_primitive_has_a_row():
    for name, op in OPS.items():
        if not op["derived"] and name not in INTERNAL:
            row = row_of(name)  # raises what is missing
            assert row.examples, name
            if op["arity"] != 1 and not row.errors:
                pytest.fail(f"the row of {name} has no use with wrong shapes")
    assert set(INTERNAL) <= set(OPS)


class Derivatives:
    """Value, tangent, cotangents, and both second derivatives of one use of a primitive.

    The last two are the derivative of the cotangents along the tangents, in forward mode, and of
    their product with the tangents, in reverse: equal, since second derivatives are symmetric.
    """

    def __init__(self, name, k, dtype=np.float64, batched=()):
        self.row, self.example = row_of(name), row_of(name).examples[k]
        self.name, self.dtype, self.batched = name, dtype, batched
        builder = _core.Builder(np.dtype(dtype).name)
        shapes = [operand.shape for operand in operands_of(name, self.example)]
        self.batched = batched or (False,) * len(shapes)
        nodes = [
            builder.input(f"x{i}", shape, batched=is_batched)
            for i, (shape, is_batched) in enumerate(zip(shapes, self.batched, strict=True))
        ]
        self.by = [i for i in range(len(shapes)) if i not in self.row.indices]
        operands = nodes if self.row.operands is None else self.row.operands(builder, nodes)
        value = builder.emit(name, operands, self.example.attributes)
        self.shape = builder.shape(value)
        assert builder.batched(value) == any(self.batched)
        tangents = [builder.input(f"t{i}", shapes[i], batched=self.batched[i]) for i in self.by]
        cotangent = builder.input("u", self.shape, batched=any(self.batched))
        wrt = [nodes[i] for i in self.by]
        outputs = [value, *builder.jvp([value], wrt, tangents)]
        reverse = builder.vjp([value], [cotangent], wrt, per_sample=True)
        outputs += reverse
        outputs += builder.jvp(reverse, wrt, tangents)
        outputs += builder.vjp(reverse, tangents, wrt, per_sample=True)
        self.graph = builder.build(outputs, [f"y{i}" for i in range(len(outputs))])
        self._inputs = [
            *zip(shapes, self.batched, strict=True),
            *((shapes[i], self.batched[i]) for i in self.by),
            (self.shape, any(self.batched)),
        ]
        self._outputs = [(builder.shape(node), builder.batched(node)) for node in outputs]
        if not any(self.batched):
            self._program = _core.Program(self.graph)

    def arguments(self, seed=0, count=None):
        """Operands, tangents and the cotangent; of `count` samples where they are batched."""
        rng = np.random.default_rng(seed)
        operands = operands_of(self.name, self.example, self.dtype, seed)
        if count is not None:
            many = operands_of(self.name, self.example, self.dtype, seed, count)
            operands = [
                b if is_batched else a
                for a, b, is_batched in zip(operands, many, self.batched, strict=True)
            ]
        others = [
            rng.standard_normal((count, *shape) if is_batched and count is not None else shape)
            for shape, is_batched in self._inputs[len(operands) :]
        ]
        return [*operands, *(other.astype(self.dtype) for other in others)]

    def __call__(self, arguments):
        """(value, tangent, cotangents, second derivatives, the same in reverse)."""
        if any(self.batched):
            results = self._query(arguments)
        else:
            results = [np.asarray(one) for one in self._program(*arguments)]
        n = len(self.by)
        value, tangent, *rest = results
        return value, tangent, rest[:n], rest[n : 2 * n], rest[2 * n :]

    def _query(self, arguments):
        query = _core.Query(
            self.graph,
            [(f"x{i}", shape, rows) for i, (shape, rows) in enumerate(self._inputs)],
            [(f"y{i}", shape, rows) for i, (shape, rows) in enumerate(self._outputs)],
            [("rows" if rows else "vector", i, 0) for i, (_, rows) in enumerate(self._inputs)],
            [(i, 0) for i in range(len(self._outputs))],
            [],
            [],
            0,
            1,
        )
        none = [None] * len(self._outputs)
        arrays = [np.asarray(one, order="C") for one in arguments]
        count = next(len(one) for one, (_, rows) in zip(arrays, self._inputs, strict=True) if rows)
        results = query(arrays, None, None, 1.0, none)
        # What no sample influences, such as a derivative that is 0, is the same for all of them.
        return [
            one if rows else np.broadcast_to(one, (count, *shape))
            for one, (shape, rows) in zip(results, self._outputs, strict=True)
        ]


@cache
def derivatives(name, k, dtype=np.float64, batched=()):
    return Derivatives(name, k, dtype, batched)


def reference(name, arrays, attributes):
    """In float64 whatever the dtype: NumPy's own float32 loses digits here and there."""
    arrays = [np.asarray(array, np.result_type(array, np.float64)) for array in arrays]
    return np.asarray(row_of(name).reference(*arrays, **attributes))


# ---- values


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_value_of_the_tile_kernel(name, dtype):
    row = row_of(name)
    eps = np.finfo(dtype).eps
    for size in (1, 2, 7, 8, 9, 16, 33, 100):
        arrays = domain_points(name, size, dtype)
        expected = reference(name, arrays, {})
        # Where terms of a result cancel, it is right to rounding of the terms.
        atol = row.ulp * eps if row.cancels else 0
        np.testing.assert_allclose(
            _core.elementwise(name, *arrays), expected, rtol=row.ulp * eps, atol=atol
        )


def domain_points(name, size, dtype):
    rng = np.random.default_rng(size)
    arrays = [rng.uniform(low, high, size).astype(dtype) for low, high in OPS[name]["domain"]]
    for k in row_of(name).indices:
        arrays[k] = np.round(arrays[k])
    return arrays


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_value_at_special_points(name, dtype):
    """Zeros of both signs, infinities, NaN, the borders of the domain, the largest and smallest."""
    row, info = row_of(name), np.finfo(dtype)
    points = [0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan]
    points += [*itertools.chain(*OPS[name]["domain"]), *row.special]
    if row.extremes:
        points += [info.max, -info.max, info.tiny, info.smallest_subnormal, 1e3, -1e3]
    grid = np.meshgrid(*[np.array(points, dtype)] * OPS[name]["arity"], indexing="ij")
    arrays = [np.ascontiguousarray(axis.ravel()) for axis in grid]
    with np.errstate(all="ignore"):
        expected = reference(name, arrays, {}).astype(dtype)
    result = _core.elementwise(name, *arrays)
    mask = np.ones(result.shape, bool) if row.except_at is None else ~row.except_at(*arrays)
    eps = info.eps
    np.testing.assert_allclose(
        result[mask],
        expected[mask],
        rtol=4 * row.ulp * eps,
        atol=4 * info.tiny if not row.cancels else row.ulp * eps,
    )
    zeros = mask & (expected == 0)
    np.testing.assert_array_equal(np.signbit(result[zeros]), np.signbit(expected[zeros]))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("name", "k"), EXAMPLES)
def test_value_and_shape_of_every_example(name, k, dtype):
    d = derivatives(name, k, dtype)
    arguments = d.arguments()
    value = d(arguments)[0]
    operands = arguments[: len(d.batched)]
    expected = reference(name, operands, d.example.attributes)
    assert value.shape == expected.shape == d.shape
    eps = np.finfo(dtype).eps
    scale = np.max(np.abs(expected), initial=0, where=np.isfinite(expected))
    np.testing.assert_allclose(value, expected, rtol=d.row.ulp * eps, atol=d.row.ulp * eps * scale)


# ---- derivatives


@pytest.mark.parametrize(("name", "k"), EXAMPLES)
def test_derivatives(name, k):
    """Against differences; both modes are transposes of each other, both second orders equal."""
    d = derivatives(name, k)
    arguments = d.arguments(seed=1)
    n = len(d.batched)
    operands, tangents, u = arguments[:n], arguments[n:-1], arguments[-1]
    _, tangent, cotangents, forward, reverse = d(arguments)
    if d.row.constant:
        for one in (tangent, *cotangents, *forward, *reverse):
            assert not one.any()
        return

    def moved(step):
        result = list(operands)
        for i, t in zip(d.by, tangents, strict=True):
            result[i] = operands[i] + step[0] * t
        return result

    def total(step):
        return np.sum(u * reference(name, moved(step), d.example.attributes))

    along = np.vdot(u, tangent)
    slope = difference(total)
    assert along == pytest.approx(slope.value, rel=d.row.rtol, abs=10 * slope.uncertainty + 1e-14)
    both = sum(np.vdot(c, t) for c, t in zip(cotangents, tangents, strict=True))
    assert both == pytest.approx(along, rel=1e-12, abs=1e-12 * np.abs(u * tangent).sum())
    for i in range(len(d.by)):
        scale = np.max(np.abs(forward[i]), initial=0)
        np.testing.assert_allclose(forward[i], reverse[i], rtol=1e-11, atol=1e-11 * scale + 1e-14)
        weights = np.random.default_rng(2).standard_normal(forward[i].shape)

        def slope_at(step, i=i, weights=weights):
            others = arguments[n:]
            return np.sum(weights * d([*moved(step), *others])[2][i])

        slope = difference(slope_at)
        assert np.sum(weights * forward[i]) == pytest.approx(
            slope.value, rel=1e-6, abs=10 * slope.uncertainty + 1e-10 * scale + 1e-13
        )


def difference(function):
    with np.errstate(all="ignore"):
        return Differences(function, np.zeros(1), try_complex=True).along(np.ones(1))


@pytest.mark.parametrize(("name", "k"), EXAMPLES)
def test_derivatives_in_float32(name, k):
    wide, narrow = derivatives(name, k), derivatives(name, k, np.float32)
    arguments = narrow.arguments(seed=1)
    results = narrow(arguments)
    expected = wide([one.astype(np.float64) for one in arguments])
    for one, reference_one in zip(flat(results), flat(expected), strict=True):
        assert one.dtype == np.float32 or one.ndim == 0
        scale = np.max(np.abs(reference_one), initial=0)
        np.testing.assert_allclose(one, reference_one, rtol=2e-4, atol=2e-5 * scale + 1e-7)


def flat(results):
    value, tangent, *lists = results
    return [value, tangent, *itertools.chain(*lists)]


PRECISE = [name for name in ELEMENTWISE if row_of(name).precise is not None]


@pytest.mark.parametrize("name", PRECISE)
def test_slopes_in_high_precision(name):
    """Against mpmath, to a few units in the last place: no difference is that good."""
    row = row_of(name)
    points = domain_points(name, 6, np.float64)
    by = tuple(range(len(points)))
    gradients = bo.grad(lambda *args: np.sum(call(name, args, {})), by)(*points)
    with mpmath.workdps(40):
        for i in range(6):
            at = [mpmath.mpf(float(array[i])) for array in points]
            for k in by:
                order = tuple(int(j == k) for j in by)
                slope = float(mpmath.diff(row.precise, tuple(at), order))
                rel = row.slope_ulp * np.finfo(np.float64).eps
                assert gradients[k][i] == pytest.approx(slope, rel=rel, abs=1e-16)


# ---- batches


def is_drawn(pattern):
    """Any operands batched; of those that take many, one or all of them."""
    return any(pattern) and (len(pattern) <= 3 or sum(pattern) in (1, len(pattern)))


BATCHED = [
    (name, k, pattern)
    for name, k in EXAMPLES
    for pattern in itertools.product((False, True), repeat=len(row_of(name).examples[k].operands))
    if is_drawn(pattern)
]


@pytest.mark.parametrize(("name", "k", "pattern"), BATCHED)
def test_batches(name, k, pattern):
    """A batch is its samples, one by one; a sample's bits do not depend on the rest of its tile."""
    batch, single = Derivatives(name, k, batched=pattern), derivatives(name, k)
    arguments = batch.arguments(count=SAMPLES)
    is_batched = [rows for _, rows in batch._inputs]
    together = flat(batch(arguments))
    for sample in (0, 1, SAMPLES - 1):
        rows = [a[sample] if b else a for a, b in zip(arguments, is_batched, strict=True)]
        expected = flat(single(rows))
        for i, (result, one) in enumerate(zip(together, expected, strict=True)):
            scale = np.max(np.abs(one), initial=0)
            np.testing.assert_allclose(
                result[sample], one, rtol=1e-12, atol=1e-13 * scale + 1e-300, err_msg=f"result {i}"
            )
        one_row = slice(sample, sample + 1)
        tile = [a[one_row] if b else a for a, b in zip(arguments, is_batched, strict=True)]
        for result, one in zip(together, flat(batch(tile)), strict=True):
            assert result[sample].tobytes() == one[0].tobytes()


# ---- errors


ERRORS = [(name, k) for name in names() for k in range(len(row_of(name).errors))]


@pytest.mark.parametrize(("name", "k"), ERRORS)
def test_wrong_shapes_are_refused(name, k):
    """The text names the primitive and the shapes."""
    row = row_of(name)
    example, text = row.errors[k]
    builder = _core.Builder("float64")
    nodes = [
        builder.input(f"x{i}", operand.shape)
        for i, operand in enumerate(operands_of(name, example))
    ]

    def use():
        operands = nodes if row.operands is None else row.operands(builder, nodes)
        builder.emit(name, operands, example.attributes)

    with pytest.raises((ValueError, IndexError, TypeError), match=f"buropt.*{text}"):
        use()


@pytest.mark.parametrize("name", [name for name in names() if OPS[name]["arity"] > 0])
def test_a_wrong_number_of_operands_is_refused(name):
    builder = _core.Builder("float64")
    arity = OPS[name]["arity"]
    nodes = [builder.input(f"x{i}", (2,)) for i in range(arity + 1)]
    with pytest.raises(TypeError, match=rf"buropt\.{name} takes {arity} operands, got {arity + 1}"):
        builder.emit(name, nodes)
    with pytest.raises(TypeError, match=rf"buropt\.{name}: unknown attribute"):
        builder.emit(name, nodes[:-1], {"no such thing": 1})


def test_unknown_and_wrong_operands():
    with pytest.raises(ValueError, match="no primitive named 'exq'"):
        _core.elementwise("exq", np.ones(2))
    with pytest.raises(TypeError, match="'add' is not an elementwise primitive of 1 operands"):
        _core.elementwise("add", np.ones(2))
    with pytest.raises(ValueError, match=r"shapes \(2,\) and \(3,\) differ"):
        _core.elementwise("add", np.ones(2), np.ones(3))


# ---- executors


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_scalar_executor_equals_tile_kernel(name):
    arrays = domain_points(name, 5, np.float64)
    by = tuple(k for k in range(len(arrays)) if k not in row_of(name).indices) or (0,)

    def total(*args):
        return np.sum(call(name, args, {}) * 1.0)

    small = bo.value_and_grad(total, argnums=by)(*arrays)
    big_arrays = [np.tile(a, 2000) for a in arrays]  # too many elements to unroll
    big = bo.value_and_grad(total, argnums=by)(*big_arrays)
    assert big[0] == pytest.approx(2000 * small[0], rel=1e-12)
    for a, b in zip(small[1], big[1], strict=True):
        np.testing.assert_allclose(np.tile(a, 2000), b, rtol=1e-13, atol=1e-300)


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_result_does_not_depend_on_the_position(name):
    arrays = domain_points(name, 50, np.float64)
    whole = _core.elementwise(name, *arrays)
    for start in (1, 2, 3, 7, 13, 46):
        part = _core.elementwise(name, *[np.ascontiguousarray(a[start:]) for a in arrays])
        assert part.tobytes() == whole[start:].tobytes()


@given(
    n=st.integers(-6, 6).filter(bool),
    x=st.floats(-4, 4).filter(lambda v: abs(v) > 1e-3),
)
def test_integer_power(n, x):
    value, slope = bo.value_and_grad(lambda t: t**n)(x)
    assert value == pytest.approx(float(x) ** n, rel=1e-14)
    assert slope == pytest.approx(n * float(x) ** (n - 1), rel=1e-14)


# Second derivatives where the first cotangent happens to be zero: the rule that a zero cotangent
# gives zero at a singular point must not cut the derivative through the cotangent.
SECOND_DERIVATIVES = {
    "divide": (lambda x: (x / 2) ** 2, 0.0, 0.5),
    "divide, shifted": (lambda x: ((x - 1) / 2) ** 2, 1.0, 0.5),
    "log": (lambda x: np.log(x) ** 2, 1.0, 2.0),
    "log1p": (lambda x: np.log1p(x) ** 2, 0.0, 2.0),
    "sqrt": (lambda x: (np.sqrt(x) - 1) ** 2, 1.0, 0.5),
    "reciprocal": (lambda x: (np.reciprocal(x) - 1) ** 2, 1.0, 2.0),
    "where": (lambda x: np.where(x > -1, np.sin(x) ** 2, 0.0), 0.0, 2.0),
    "power": (lambda x: (x**1.5 - 1) ** 2, 1.0, 4.5),
}


@pytest.mark.parametrize("name", SECOND_DERIVATIVES)
@pytest.mark.parametrize("size", [1, 3000])  # scalar and tile executor
def test_second_derivative_at_a_zero_cotangent(name, size):
    f, x, second = SECOND_DERIVATIVES[name]
    gradient = bo.grad(lambda x: np.sum(f(x)))
    hvp = bo.grad(lambda x: np.sum(gradient(x)))(np.full(size, x))
    np.testing.assert_allclose(hvp, np.full(size, second), rtol=1e-12)


def test_mixed_derivative_of_power_at_exponent_zero():
    by_a = bo.grad(lambda a, b: a**b)
    assert bo.grad(by_a, argnums=1)(2.0, 0.0) == pytest.approx(0.5)
    by_b = bo.grad(lambda a, b: a**b, argnums=1)
    assert bo.grad(by_b)(2.0, 0.0) == pytest.approx(0.5)
