"""The record that every reader and generator of data returns."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Labels: TypeAlias = Literal["auto", "raw"] | Mapping[Any, float]
"""How labels are read: see `map_labels`."""

_log = logging.getLogger("buropt.data")


@dataclass(frozen=True, eq=False)
class Dataset:
    """Samples and their labels.

    Attributes
    ----------
    A : scipy.sparse.csr_array or ndarray, shape (n_samples, n_features)
        One sample a row.
    y : ndarray, shape (n_samples,)
        Labels or regression targets, in the dtype of `A`.
    name : str
        For messages and reports.
    label_mapping : dict
        What each label of the source became; empty when labels stand as they were.
    qid : ndarray of int64, shape (n_samples,), or None
        Query ids, when the reader was asked for them.
    """

    A: Any
    y: Array
    name: str
    label_mapping: dict[float, float] = field(default_factory=dict)
    qid: NDArray[np.int64] | None = None

    @property
    def n_samples(self) -> int:
        """Rows of `A`."""
        return int(self.A.shape[0])

    @property
    def n_features(self) -> int:
        """Columns of `A`."""
        return int(self.A.shape[1])

    @property
    def classes(self) -> Array:
        """Distinct labels, in increasing order."""
        return np.unique(self.y)

    def binary(self, positive: float) -> Dataset:
        """One class against the rest: label `positive` becomes +1, every other one -1.

        Raises
        ------
        ValueError
            If no sample, or every sample, has the label `positive`.
        """
        chosen = self.y == positive
        if not chosen.any() or chosen.all():
            raise ValueError(
                f"{self.name}: positive={positive:g} does not cut the samples in two; choose one "
                f"of several labels, here {_listed(self.classes)}"
            )
        y = np.where(chosen, 1.0, -1.0).astype(self.y.dtype)
        mapping = {float(label): 1.0 if label == positive else -1.0 for label in self.classes}
        _log.info("%s: label %g -> +1, the other %d -> -1", self.name, positive, len(mapping) - 1)
        return replace(self, y=y, label_mapping=mapping)

    def __repr__(self) -> str:
        kind = f"sparse, {self.A.nnz} non-zeros" if is_sparse(self.A) else "dense"
        return f"Dataset({self.name}: {self.n_samples} x {self.n_features}, {kind}, {self.A.dtype})"


def is_sparse(A: Any) -> bool:
    """Whether `A` is a SciPy sparse array or matrix."""
    return bool(sp.issparse(A))


def map_labels(y: Array, labels: Labels, name: str) -> tuple[Array, dict[float, float]]:
    """Labels for a loss, with the mapping that led to them, which is also logged.

    Parameters
    ----------
    y : ndarray, shape (n_samples,)
    labels : "auto", "raw" or mapping
        "auto" sends two distinct labels to -1 and +1 in increasing order ({0, 1}, {1, 2} and
        {-1, 1} alike) and keeps one or more than two as they are; "raw" keeps all as they are (for
        regression); a mapping such as {"0": -1, "1": 1} says it label by label.
    name : str
        Stands for the data in messages.

    Returns
    -------
    (ndarray, dict)
        The labels; what each label became (empty when kept as they are).

    Raises
    ------
    ValueError
        For an unknown `labels`, or a label that the mapping leaves out.
    """
    distinct = np.unique(y)
    if isinstance(labels, Mapping):
        mapping = {float(old): float(new) for old, new in labels.items()}
        missing = [label for label in distinct if float(label) not in mapping]
        if missing:
            raise ValueError(
                f"{name}: labels= says nothing about {_listed(np.array(missing))}; the labels in "
                f"the data are {_listed(distinct)}"
            )
    elif labels == "auto":
        if len(distinct) != 2:
            return y, {}
        mapping = {float(distinct[0]): -1.0, float(distinct[1]): 1.0}
    elif labels == "raw":
        return y, {}
    else:
        raise ValueError(
            f'labels={labels!r} is unknown; write "auto", "raw" or a mapping such as '
            "{0: -1, 1: 1}"
        )
    said = ", ".join(f"{old:g} -> {new:+g}" for old, new in mapping.items())
    _log.info("%s: labels %s", name, said)
    new_labels = np.array([mapping[float(label)] for label in distinct])
    return new_labels[np.searchsorted(distinct, y)], mapping


def _listed(labels: Array) -> str:
    shown = ", ".join(f"{label:g}" for label in labels[:10])
    return shown if len(labels) <= 10 else f"{shown}, ... ({len(labels)} in all)"
