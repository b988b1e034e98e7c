"""What to write instead of NumPy functions and keywords that cannot be traced."""

from __future__ import annotations

_STACK = "build the array at once with np.stack([...]) or np.concatenate([...])"
_OUTSIDE = "compute it outside of the traced function and pass the result in as data"
_EIGENVALUES = "np.linalg.eigvalsh or eigh for symmetric matrices"
_SINGULAR_VALUES = (
    "np.linalg.norm(a, 2) for the largest singular value, np.linalg.eigvalsh(a.T @ a) for the "
    "squares of all"
)
_IN_PLACE = "np.where(mask, new, old), or np.concatenate of the parts, which make a new array"
_UNKNOWN_SHAPE = f"the shape depends on the values; {_OUTSIDE}"
_PRINT = "print(x), which shows shape and dtype"
_OUTSIDE_RESULT = "return the value, and save it after the call"
_COMPARE = "compare outside of the traced function, or select with np.where(a == b, ...)"
_OF_MATRIX = "w, v = np.linalg.eigh(a) and (v * f(w)) @ v.T, for a symmetric a"
_SOLVE = "np.linalg.solve(a, b)"
_BINOMIAL = "np.exp of sums and differences of scipy.special.gammaln(n + 1)"
_COMPLEX = "real arithmetic, or a product with constant matrices of sines and cosines"

# Keys: NumPy's name without `np.`, or `keyword=`. Values: half a sentence.
HINTS: dict[str, str] = {
    "out=": "use the result of the function, as in y = np.add(a, b)",
    "where=": "select with np.where(condition, a, b) afterwards",
    "dtype=": "leave dtype out; a graph computes in one float dtype, chosen by its inputs",
    "order=": "leave order out; traced arrays are in C order",
    "initial=": (
        "combine it with the result: np.sum(x) + initial, np.prod(x) * initial, "
        "np.maximum(np.max(x), initial)"
    ),
    "allclose": _COMPARE,
    "angle": "np.where(x < 0, np.pi, 0.0)",
    "apply_over_axes": "the function itself with axis=(0, 1)",
    "arange": "give np.arange plain numbers; shapes and ranges cannot depend on traced values",
    "argpartition": _OUTSIDE,
    "at": _IN_PLACE,
    "argwhere": _UNKNOWN_SHAPE,
    "array2string": _PRINT,
    "array_equal": _COMPARE,
    "array_equiv": _COMPARE,
    "array_repr": _PRINT,
    "array_str": _PRINT,
    "copyto": _IN_PLACE,
    "empty_like": "np.zeros_like(x)",
    "fft.dct": _COMPLEX,
    "fft.dst": _COMPLEX,
    "fft.fft": _COMPLEX,
    "fft.fft2": _COMPLEX,
    "fft.fftn": _COMPLEX,
    "fft.hfft": _COMPLEX,
    "fft.ifft": _COMPLEX,
    "fft.ifft2": _COMPLEX,
    "fft.ifftn": _COMPLEX,
    "fft.ihfft": _COMPLEX,
    "fft.irfft": _COMPLEX,
    "fft.irfft2": _COMPLEX,
    "fft.irfftn": _COMPLEX,
    "fft.rfft": _COMPLEX,
    "fft.rfft2": _COMPLEX,
    "fft.rfftn": _COMPLEX,
    "fill": _STACK,
    "fill_diagonal": _IN_PLACE,
    "flatnonzero": _UNKNOWN_SHAPE,
    "histogram": "np.sum((x[:, None] >= edges[:-1]) & (x[:, None] < edges[1:]), axis=0)",
    "histogram2d": _OUTSIDE,
    "histogram_bin_edges": _OUTSIDE,
    "histogramdd": _OUTSIDE,
    "imag": "0; traced values are real",
    "intersect1d": _UNKNOWN_SHAPE,
    "item": "keep the traced scalar as it is, without converting it to a Python number",
    "ix_": "x[rows[:, None], columns]",
    "left_shift": "x * 2**n",
    "lexsort": _OUTSIDE,
    "linalg.block_diag": _STACK,
    "linalg.cho_factor": _SOLVE,
    "linalg.cho_solve": _SOLVE,
    "linalg.circulant": _STACK,
    "linalg.eig": _EIGENVALUES,
    "linalg.eigvals": _EIGENVALUES,
    "linalg.hankel": _STACK,
    "linalg.lstsq": "np.linalg.solve(a.T @ a, a.T @ b), for independent columns",
    "linalg.lu_factor": _SOLVE,
    "linalg.lu_solve": _SOLVE,
    "linalg.matrix_rank": _OUTSIDE,
    "linalg.pinv": "np.linalg.solve(a.T @ a, a.T), for independent columns",
    "linalg.qr": "r = np.linalg.cholesky(a.T @ a).T, up to signs, and a @ np.linalg.inv(r) for q",
    "linalg.solve_triangular": _SOLVE,
    "linalg.svd": _SINGULAR_VALUES,
    "linalg.svdvals": _SINGULAR_VALUES,
    "linalg.toeplitz": _STACK,
    "may_share_memory": "leave it out; traced values have no memory",
    "min_scalar_type": "x.dtype",
    "nanargmax": "np.argmax(np.where(np.isnan(x), -np.inf, x))",
    "nanargmin": "np.argmin(np.where(np.isnan(x), np.inf, x))",
    "nonzero": "np.where(condition, a, b) with all three arguments",
    "packbits": _OUTSIDE,
    "partition": _OUTSIDE,
    "place": _IN_PLACE,
    "poly": "np.convolve of the factors",
    "polydiv": _OUTSIDE,
    "polyfit": "np.linalg.solve with A = np.vander(x, n): np.linalg.solve(A.T @ A, A.T @ y)",
    "polymul": "np.convolve(a, b), which keeps leading zeros",
    "put": _IN_PLACE,
    "put_along_axis": _IN_PLACE,
    "putmask": _IN_PLACE,
    "ravel_multi_index": "i * n + j",
    "right_shift": "x // 2**n",
    "roots": _OUTSIDE,
    "save": _OUTSIDE_RESULT,
    "savetxt": _OUTSIDE_RESULT,
    "savez": _OUTSIDE_RESULT,
    "savez_compressed": _OUTSIDE_RESULT,
    "setdiff1d": _UNKNOWN_SHAPE,
    "setxor1d": _UNKNOWN_SHAPE,
    "shares_memory": "leave it out; traced values have no memory",
    "special.binom": _BINOMIAL,
    "special.comb": _BINOMIAL,
    "special.factorial": "scipy.special.gamma(n + 1)",
    "special.multigammaln": (
        "the sum of scipy.special.gammaln(a - j / 2) over j = 0, ..., d - 1, and "
        "d * (d - 1) / 4 * np.log(np.pi)"
    ),
    "special.perm": _BINOMIAL,
    "special.polygamma": "scipy.special.digamma, of which it is the n-th derivative (buropt.grad)",
    "special.poch": "np.exp(scipy.special.gammaln(x + n) - scipy.special.gammaln(x))",
    "tolist": "keep the traced array as it is, without converting it to Python numbers",
    "trim_zeros": _UNKNOWN_SHAPE,
    "union1d": _UNKNOWN_SHAPE,
    "unique": _UNKNOWN_SHAPE,
    "unique_all": _UNKNOWN_SHAPE,
    "unique_counts": _UNKNOWN_SHAPE,
    "unique_inverse": _UNKNOWN_SHAPE,
    "unique_values": _UNKNOWN_SHAPE,
    "unpackbits": _OUTSIDE,
    "unravel_index": "k // n and k % n",
    "unwrap": _OUTSIDE,
    **{
        f"linalg.{function}": _OF_MATRIX
        for function in (
            *("coshm", "cosm", "expm", "fractional_matrix_power", "funm", "logm", "signm"),
            *("sinhm", "sinm", "sqrtm", "tanhm", "tanm"),
        )
    },
}

_NOT_EMPTY = "an array with elements there"

_SHAPE_HINTS: dict[str, str] = {
    "argmax": _NOT_EMPTY,
    "argmin": _NOT_EMPTY,
    "max": _NOT_EMPTY,
    "min": _NOT_EMPTY,
    "matmul": "operands whose inner extents agree, perhaps the transpose x.T of one",
    "sparse_dot": "as many rows or entries as the data have columns",
    "concatenate": "arrays that only differ along the axis they are joined along",
    "broadcast_to": "a shape that ends like the array's; x[:, None] adds an axis",
}


def shape_hint(op: str) -> str:
    """What shapes to give a primitive whose operands do not fit, as half a sentence."""
    return _SHAPE_HINTS.get(
        op, "extents that are equal, or 1, from the last axis on; x[:, None] adds an axis"
    )
