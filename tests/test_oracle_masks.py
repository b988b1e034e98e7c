"""Boolean data are masks in the loss, as in NumPy; masked arrays and matrices are refused."""

import numpy as np
import pytest

import buropt as bo

X = np.array([1.0, 0.5, -2.0])
MASKS = np.array([[True, False, True], [True, True, False]])
TARGETS = np.array([True, False])

LOSSES = {
    "sum of masks": lambda x, a, b: np.sum((a + a) * x),
    "not": lambda x, a, b: np.sum(~a * x),
    "selection": lambda x, a, b: np.sum(np.where(a, x, 0.25)),
    "logic": lambda x, a, b: np.sum((a & b) * x + (a ^ b) * x**2),
    "numbers": lambda x, a, b: (a @ x - b) ** 2 + (2 * b - 1) * x[0],
    "like": lambda x, a, b: np.sum(x * (np.ones_like(a) + a)),
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", LOSSES)
def test_values_are_numpys(name, dtype):
    loss = LOSSES[name]
    f = bo.compile(loss, X, (MASKS, TARGETS), dtype=dtype)
    expected = np.mean([loss(X, a, b) for a, b in zip(MASKS, TARGETS, strict=True)])
    assert f.value(X) == pytest.approx(expected, rel=1e-6)
    for j in range(2):
        gradient = bo.grad(loss)(X, MASKS[j], TARGETS[j])
        np.testing.assert_allclose(f.grad(X, [j]), gradient, rtol=1e-6)


def test_lists_of_booleans_are_masks_and_arithmetic_on_them_is_refused():
    assert bo.compile(lambda x, b: x[0] * ~b, X, [TARGETS.tolist()]).value(X) == 0.5
    with pytest.raises(TypeError, match=r"np\.negative is not defined for booleans"):
        bo.compile(lambda x, b: -b * x[0], X, (TARGETS,))


MASKED = np.ma.array(X, mask=[False, True, False])


@pytest.mark.parametrize(
    ("x0", "data", "text"),
    [
        (MASKED, None, r"x0 is a masked array, whose mask would be lost; pass its filled\(...\)"),
        ({"w": [X, MASKED]}, None, r"x0\['w'\]\[1\] is a masked array"),
        (np.matrix(X), None, r"x0 is of type matrix, .*; pass np\.asarray\(...\) of it"),
        (X, (MASKS, MASKED[:2]), r"data\[1\] is a masked array"),
        (X, MASKED, r"data\[0\] is a masked array"),
        (X, np.matrix(MASKS), r"data\[0\] is of type matrix"),
    ],
)
def test_what_a_conversion_would_change_is_refused(x0, data, text):
    with pytest.raises(TypeError, match=text):
        bo.compile(lambda x, *sample: 0.0, x0, data)
