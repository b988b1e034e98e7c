"""Real data that come with scikit-learn: nothing is downloaded.

Features are standardized over the samples (mean 0, variance 1; a constant feature becomes 0), since
their raw scales differ by orders of magnitude and would drown every other effect in an experiment.
"""

from __future__ import annotations

import numpy as np

from buropt.data.dataset import Array, Dataset, Labels, map_labels
from buropt.data.libsvm import FloatName


def breast_cancer(
    *, standardize: bool = True, bias: bool = True, dtype: FloatName = "float64"
) -> Dataset:
    """Wisconsin breast cancer: 569 samples, 30 features (31 with the bias), two classes.

    Parameters
    ----------
    standardize : bool
        Give every feature mean 0 and variance 1.
    bias : bool
        Append a column of ones, the intercept of a linear model.
    dtype : {"float64", "float32"}

    Returns
    -------
    Dataset
        Dense; labels -1 (malignant) and +1 (benign).
    """
    from sklearn.datasets import load_breast_cancer

    A, y = load_breast_cancer(return_X_y=True)
    return _dataset("breast_cancer", A, y, "auto", standardize, bias, dtype)


def digits(
    *,
    positive: int | None = None,
    standardize: bool = True,
    bias: bool = True,
    dtype: FloatName = "float64",
) -> Dataset:
    """Handwritten digits of 8 x 8 pixels: 1797 samples, 64 features (65 with the bias).

    Parameters
    ----------
    positive : int, optional
        One digit against the rest: labels +1 and -1. By default labels are the digits 0 to 9.
    standardize, bias, dtype
        As in `breast_cancer`.

    Raises
    ------
    ValueError
        If `positive` is not a digit.
    """
    from sklearn.datasets import load_digits

    A, y = load_digits(return_X_y=True)
    dataset = _dataset("digits", A, y, "raw", standardize, bias, dtype)
    return dataset if positive is None else dataset.binary(positive)


def _dataset(
    name: str, A: Array, y: Array, labels: Labels, standardize: bool, bias: bool, dtype: FloatName
) -> Dataset:
    if standardize:
        spread = A.std(axis=0)
        A = (A - A.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    if bias:
        A = np.column_stack([A, np.ones(len(A))])
    y, mapping = map_labels(y.astype(np.float64), labels, name)
    return Dataset(np.ascontiguousarray(A, dtype=dtype), y.astype(dtype), name, mapping)
