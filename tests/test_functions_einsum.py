"""np.einsum: any subscripts that NumPy takes, for any number of operands."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tracing import assert_like_numpy, assert_slopes, evaluate, few

import buropt as bo
from buropt.trace import Trace

VALUES = {
    "np.einsum": lambda a, v, p: np.einsum("ij,j->i", a, v) + np.einsum("i,i", v, p),
}


@st.composite
def contractions(draw, n_operands):
    """Subscripts and arrays that fit: repeated letters, ellipses, extents of 1, any result."""
    extents = {letter: draw(st.integers(1, 3)) for letter in "abcd"}
    dots = draw(st.lists(st.integers(1, 3), max_size=2))
    terms, shapes, present = [], [], set()
    for _ in range(n_operands):
        letters = draw(st.lists(st.sampled_from("abcd"), max_size=3))
        ones = {c for c in set(letters) if draw(st.integers(0, 5)) == 0}
        shape = [1 if c in ones else extents[c] for c in letters]
        if draw(st.booleans()):
            n_dots = draw(st.integers(0, len(dots)))
            at = draw(st.integers(0, len(letters)))
            own = [1 if draw(st.integers(0, 5)) == 0 else n for n in dots[len(dots) - n_dots :]]
            letters[at:at] = ["..."]
            shape[at:at] = own
        present |= set(letters)
        terms.append("".join(letters))
        shapes.append(shape)
    text = ",".join(terms)
    if draw(st.booleans()):
        kept = draw(st.permutations(sorted(present - {"..."})))
        kept = kept[: draw(st.integers(0, len(kept)))]
        if "..." in present:
            kept.insert(draw(st.integers(0, len(kept))), "...")
        text += "->" + "".join(kept)
    rng = np.random.default_rng(draw(st.integers(0, 100)))
    return text, [rng.normal(size=shape) for shape in shapes]


@few
@given(contractions(1))
def test_one_operand(drawn):
    text, arrays = drawn
    assert_like_numpy(lambda a: np.einsum(text, a), *arrays, rtol=1e-12, atol=1e-13)
    assert_slopes(lambda a: np.einsum(text, a), *arrays)


@few
@given(contractions(2))
def test_two_operands(drawn):
    text, arrays = drawn
    assert_like_numpy(lambda a, b: np.einsum(text, a, b), *arrays, rtol=1e-12, atol=1e-13)
    assert_slopes(lambda a, b: np.einsum(text, a, b), *arrays)


@few
@given(contractions(3))
def test_three_operands(drawn):
    text, arrays = drawn
    assert_like_numpy(lambda *x: np.einsum(text, *x), *arrays, rtol=1e-12, atol=1e-12)
    assert_slopes(lambda *x: np.einsum(text, *x), *arrays)


@few
@given(contractions(4))
def test_four_operands(drawn):
    text, arrays = drawn
    assert_like_numpy(lambda *x: np.einsum(text, *x), *arrays, rtol=1e-12, atol=1e-12)


A, B, V = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4), np.arange(3.0)


@pytest.mark.parametrize(
    "function",
    [
        lambda a, b, v: np.einsum(a, [0, 1], v, [1]),
        lambda a, b, v: np.einsum(a, [0, 1], v, [1], [1, 0]),
        lambda a, b, v: np.einsum(a, [Ellipsis, 30], b, [30, 2], [2, Ellipsis]),
        lambda a, b, v: np.einsum(a, [27, 0], a, [27, 1]),  # letters come after capitals
        lambda a, b, v: np.einsum("aB,Bc", a, b),
        lambda a, b, v: np.einsum(" i j , j -> i ", a, v),
        lambda a, b, v: np.einsum("ij,jk,k,i,->", a, b, b[0], a[:, 0], 2.0, optimize="optimal"),
        lambda a, b, v: np.einsum("ij,jk", a, b, optimize=True),
        lambda a, b, v: np.einsum("...,...->...", a, 2.0),
        lambda a, b, v: np.einsum("->", a[0, 1]),
        lambda a, b, v: np.einsum("i,i", v, np.array([2.0])),
        lambda a, b, v: np.einsum("ij,ij,ij->ij", a, a, 3 * a),
        lambda a, b, v: np.einsum("i,j,k->kji", v, v, v),
        lambda a, b, v: np.einsum("ij,j->i", a[:, :0], v[:0]),
        lambda a, b, v: np.einsum("ij->ij", a[:0]),
    ],
)
def test_forms(function):
    assert_like_numpy(function, A, B, V)


INTEGERS, MASK = np.array([[1, -2, 3], [4, 0, 2]]), np.array([[True, False, True], [True] * 3])


@pytest.mark.parametrize(
    "subscripts", ["ij,ij", "ij,kj->ik", "ij,ij->ij", "ij,kj->ij", "ij,kl->ijkl"]
)
def test_integers_and_masks(subscripts):
    assert_like_numpy(lambda t: np.einsum(subscripts, t, t), INTEGERS)
    assert_like_numpy(lambda m: np.einsum(subscripts, m, ~m), MASK)
    assert_like_numpy(lambda t, m: np.einsum(subscripts, t, m), INTEGERS, MASK)
    assert_like_numpy(lambda m, a: np.einsum(subscripts, m, a), MASK, A)


def test_a_mask_alone():
    for subscripts in ("ij->ji", "ij->j", "ij->"):
        assert_like_numpy(lambda m, s=subscripts: np.einsum(s, m), MASK)
    assert_like_numpy(lambda m: np.einsum("ii->i", m[:, :2]), MASK)


def test_a_result_that_moves_elements_is_a_view():
    def change(a):
        a = a + 0.0
        diagonal = np.einsum("ii->i", a[:, :2])
        a += 1
        return diagonal

    with pytest.raises(bo.TraceError, match="shares its memory"):
        evaluate(change, A)

    def keep(a):
        product = np.einsum("ij,ij->ij", a, a)
        product += 1
        return product

    assert_like_numpy(keep, A)


def test_products_of_many_operands_are_small():
    """The order of the products is chosen: no array of all indices is formed."""
    with Trace() as trace:
        arrays = [trace.input(f"x{i}", (30, 30)) for i in range(5)]
        result = np.einsum("ab,bc,cd,de,ef->af", *arrays)
    listing = str(trace.builder.build([result.node], ["y"]))
    assert listing.count("matmul") == 4
    assert "30, 30, 30" not in listing


def test_a_stack_of_products_is_one():
    with Trace() as trace:
        a, b = trace.input("a", (7, 30, 20)), trace.input("b", (20, 7, 40))
        result = np.einsum("nij,jnk->ink", a, b)
    listing = str(trace.builder.build([result.node], ["y"]))
    assert listing.count("matmul") == 1
    assert "multiply" not in listing


@pytest.mark.parametrize(
    ("subscripts", "shapes", "text"),
    [
        ("ii", [(3, 1)], "the index i stands for axes of extents 3 and 1 of one operand"),
        ("i,i", [(3,), (2,)], "the index i stands for axes of extents 3 and 2"),
        ("i...,i...", [(3, 2), (3, 3)], "an ellipsis stands for axes of extents 2 and 3"),
        ("...i->i", [(2, 3)], "an ellipsis stands for axes that the result does not name"),
        ("i->ii", [(3,)], "the result has the index i twice"),
        ("i->j", [(3,)], "the result has the index j, which no operand has"),
        ("ij", [(3,)], r"the subscripts 'ij' do not fit an operand of shape \(3,\)"),
        ("i", [(2, 3)], r"the subscripts 'i' do not fit an operand of shape \(2, 3\)"),
        ("ij...", [(3,)], "do not fit"),
        ("i,j", [(3,)], "subscripts for 2 operands, but there are 1"),
        ("i.j", [(2, 3)], "'.' in 'i.j' is neither a letter nor part of one ellipsis"),
        ("...i...", [(3, 3)], "neither a letter nor part of one ellipsis"),
        ("1", [(3,)], "'1' in '1' is neither"),
    ],
)
def test_wrong_subscripts(subscripts, shapes, text):
    arrays = [np.ones(shape) for shape in shapes]
    with pytest.raises(ValueError):  # noqa: PT011 - NumPy's texts differ between versions
        np.einsum(subscripts, *arrays)
    with pytest.raises(ValueError, match=f"np.einsum: .*{text}.*at .*test_functions_einsum"):
        evaluate(lambda *x: np.einsum(subscripts, *x), *arrays)


def test_wrong_lists():
    with pytest.raises(ValueError, match="the subscript 52 is not between 0 and 51"):
        evaluate(lambda a: np.einsum(a, [0, 52]), A)
    with pytest.raises(ValueError, match="two ellipses"):
        evaluate(lambda a: np.einsum(a, [..., ...]), A)


def test_refused_keywords():
    with pytest.raises(bo.UnsupportedOpError, match="the argument dtype="):
        evaluate(lambda a: np.einsum("ij->", a, dtype=np.int64), A)
    with pytest.raises(bo.UnsupportedOpError, match="the argument out="):
        evaluate(lambda a: np.einsum("ij->i", a, out=np.empty(2)), A)
