"""`least_squares` and `curve_fit` with exact Jacobians."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy.optimize
import scipy.sparse as sp
from scipy.optimize import OptimizeResult

from buropt.autodiff import jacobian
from buropt.autodiff.compiled import Direct
from buropt.scipy.bounds import of_pairs, read_bounds
from buropt.scipy.parameters import Parameters
from buropt.scipy.pieces import are_finite
from buropt.scipy.result import NON_FINITE
from buropt.scipy.sparse_jacobian import SparseJacobian
from buropt.scipy.vector import Values, VectorPieces, in_a_row


def least_squares(
    fun: Callable[..., Any],
    x0: Any,
    *,
    args: Any = (),
    kwargs: Mapping[str, Any] | None = None,
    bounds: Any = (-np.inf, np.inf),
    sparse: bool = False,
    **options: Any,
) -> OptimizeResult:
    """Minimize half the sum of squares of residuals by `scipy.optimize.least_squares`.

    Parameters
    ----------
    fun : callable
        ``fun(x, *args, **kwargs)`` in NumPy, with `x` nested as x0: the residuals, an array or a
        nest of arrays and numbers.
    x0 : array, number, or nested dict, list, tuple of arrays
        Start point.
    args, kwargs
        More arguments of `fun`.
    bounds : optional
        ``(low, high)`` or `Bounds` as SciPy documents it; or pairs, in a row or nested like x0.
    sparse : bool
        Give SciPy the Jacobian as a sparse matrix. Which entries can be nonzero is read from the
        structure of `fun`; the values are exact, from few products. For the methods "trf" and
        "dogbox".
    **options
        As SciPy documents them: method, ftol, xtol, gtol, x_scale, loss, max_nfev, ...

    Returns
    -------
    OptimizeResult
        SciPy's; `x`, `grad` and `active_mask` are nested as x0, and `jac` of shape (m, n) is a
        nest of arrays (m, ...) unless it is sparse. A run that ends at residuals or a Jacobian
        that are not finite has ``success=False`` and ``status=-1``.

    Raises
    ------
    TypeError
        For an oracle, which has one value and no residuals.
    ValueError
        As SciPy does, for example for residuals that are not finite at x0.
    """
    parameters = Parameters.read(x0)
    pieces = VectorPieces(_with_keywords(fun, kwargs), parameters)
    args = args if isinstance(args, tuple) else (args,)
    jac: Callable[..., Any] = pieces.jac
    if sparse:
        exact = SparseJacobian(pieces.function, len(parameters.start), args)

        def sparse_jac(x: Any, *unused: Any) -> Any:
            return exact(parameters.computed(x))

        jac = sparse_jac
    if isinstance(bounds, dict) or not _is_scipys(bounds, parameters):
        bounds = of_pairs(read_bounds(bounds, parameters))
    result = scipy.optimize.least_squares(
        pieces.fun, parameters.start, jac=jac, bounds=bounds, args=args, **options
    )
    values = result.jac.data if sp.issparse(result.jac) else np.asarray(result.jac)
    if not (are_finite(result.fun) and are_finite(values)):
        result.update(
            success=False,
            status=NON_FINITE,
            message="Not finite: the residuals or the Jacobian where the method ended.",
        )
    return _in_users_form(result, parameters)


def _is_scipys(bounds: Any, parameters: Parameters) -> bool:
    """Whether bounds are a pair (low, high) of all numbers, and not a list nested like x0."""
    if isinstance(bounds, scipy.optimize.Bounds):
        return True
    sides = [np.asarray(side).ravel() for side in bounds]
    return len(sides) == 2 and all(
        side.dtype.kind in "fiu" and side.size in (1, parameters.start.size) for side in sides
    )


def _with_keywords(fun: Callable[..., Any], kwargs: Mapping[str, Any] | None) -> Callable[..., Any]:
    if not kwargs:
        return fun

    def with_keywords(x: Any, *args: Any) -> Any:
        return fun(x, *args, **kwargs)

    with_keywords.__wrapped__ = fun  # type: ignore[attr-defined]  # messages name the user's
    return with_keywords


def _in_users_form(result: OptimizeResult, parameters: Parameters) -> OptimizeResult:
    if parameters.is_vector:
        return result
    if not sp.issparse(result.jac):
        lines = np.asarray(result.jac)
        shapes, starts = parameters.spec.shapes, parameters.spec.offsets
        blocks = [
            lines[:, start : start + int(np.prod(shape))].reshape(-1, *shape)
            for start, shape in zip(starts, shapes, strict=True)
        ]
        result.jac = parameters.spec.structure.unflatten(blocks)
    for name in ("x", "grad", "active_mask"):
        result[name] = parameters.tree(result[name])
    return result


def curve_fit(f: Callable[..., Any], xdata: Any, ydata: Any, p0: Any = None, **options: Any) -> Any:
    """Fit a curve by `scipy.optimize.curve_fit` with the exact Jacobian by the parameters.

    Parameters
    ----------
    f : callable
        ``f(xdata, *params)`` in NumPy, with numbers as parameters.
    xdata, ydata : array
    p0 : array, shape (k,), optional
        Start; by default SciPy's, for which the number of parameters is taken from `f`.
    **options
        As SciPy documents them: sigma, absolute_sigma, check_finite, bounds, method, full_output,
        nan_policy, ...

    Returns
    -------
    popt : ndarray, shape (k,)
    pcov : ndarray, shape (k, k)
        And more with ``full_output=True``.
    """

    def of_vector(p: Any, x: Any) -> Any:
        return f(x, *(p[k] for k in range(p.shape[0])))

    of_vector.__wrapped__ = f  # type: ignore[attr-defined]  # messages name the user's function
    row = in_a_row(of_vector)
    values, slopes = Direct(Values(row)), jacobian(row)

    def model(x: Any, *params: Any) -> Any:
        return np.asarray(values(np.array(params, np.float64), x), np.float64)

    def jac(x: Any, *params: Any) -> Any:
        return np.asarray(slopes(np.array(params, np.float64), x), np.float64)

    model.__signature__ = inspect.signature(f)  # type: ignore[attr-defined]  # SciPy counts them
    return scipy.optimize.curve_fit(model, xdata, ydata, p0, jac=jac, **options)
