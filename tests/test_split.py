"""Splits among workers are partitions, seeded, and what their names promise."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from buropt.data import contiguous, dirichlet, shuffled, sorted_by_label, split_workers

LABELS = np.random.default_rng(0).integers(0, 3, 1000).astype(float)


def assert_partition(shards, n_samples, n_workers):
    assert len(shards) == n_workers
    for shard in shards:
        assert shard.dtype == np.int64
        assert len(shard) > 0
        assert (np.diff(shard) > 0).all()
    np.testing.assert_array_equal(np.sort(np.concatenate(shards)), np.arange(n_samples))


@given(st.integers(1, 60), st.data())
def test_even_splits(n_samples, data):
    n_workers = data.draw(st.integers(1, n_samples))
    y = np.array(data.draw(st.lists(st.integers(0, 3), min_size=n_samples, max_size=n_samples)))
    for kind in ("contiguous", "shuffled", "sorted"):
        shards = split_workers(y, n_workers, kind)
        assert_partition(shards, n_samples, n_workers)
        sizes = [len(shard) for shard in shards]
        assert max(sizes) - min(sizes) <= 1


@given(st.integers(1, 8), st.floats(2.0, 100), st.integers(0, 2**32))
def test_dirichlet_is_a_partition(n_workers, alpha, seed):
    assert_partition(dirichlet(LABELS, n_workers, alpha=alpha, seed=seed), 1000, n_workers)


def test_contiguous_blocks():
    assert [shard.tolist() for shard in contiguous(7, 3)] == [[0, 1, 2], [3, 4], [5, 6]]


def test_sorted_by_label_keeps_labels_together():
    shards = sorted_by_label(np.array([1, -1, 1, -1, -1, 1]), 3)
    assert [shard.tolist() for shard in shards] == [[1, 3], [0, 4], [2, 5]]


def test_shuffled_workers_look_alike():
    shares = [np.mean(LABELS[shard] == 0) for shard in shuffled(1000, 4)]
    assert np.ptp(shares) < 0.15
    assert any((np.diff(shard) > 1).any() for shard in shuffled(1000, 4))


@pytest.mark.parametrize("kind", ["shuffled", "dirichlet"])
def test_same_seed_same_split(kind):
    first, again, other = (split_workers(LABELS, 5, kind, seed=seed) for seed in (1, 1, 2))
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)
    assert any(not np.array_equal(a, b) for a, b in zip(first, other, strict=True))


def test_alpha_sets_how_much_workers_differ():
    def spread(alpha):
        shards = dirichlet(LABELS, 4, alpha=alpha, seed=0)
        return np.std([len(shard) for shard in shards])

    assert spread(0.5) > 20 * spread(1e4)


def test_split_workers_passes_its_arguments_on():
    for got, expected in [
        (split_workers(LABELS, 3), contiguous(1000, 3)),
        (split_workers(LABELS, 3, "shuffled", seed=4), shuffled(1000, 3, seed=4)),
        (split_workers(LABELS, 3, "sorted"), sorted_by_label(LABELS, 3)),
        (
            split_workers(LABELS, 3, "dirichlet", alpha=2.0, seed=4),
            dirichlet(LABELS, 3, alpha=2.0, seed=4),
        ),
    ]:
        for a, b in zip(got, expected, strict=True):
            np.testing.assert_array_equal(a, b)


def test_errors():
    with pytest.raises(ValueError, match=r"split=random is not a choice\. The choices are cont"):
        split_workers(LABELS, 2, "random")
    for kind in ("contiguous", "shuffled", "sorted", "dirichlet"):
        with pytest.raises(ValueError, match="n_workers=3: worker 2 would be empty; write n_work"):
            split_workers(np.ones(2), 3, kind)
        with pytest.raises(ValueError, match="n_workers=0 is out of range"):
            split_workers(np.ones(2), 0, kind)
    with pytest.raises(ValueError, match=r"leaves worker \d+ without samples .* raise alpha=0.001"):
        dirichlet(LABELS, 50, alpha=0.001)
    for alpha in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="must be positive and finite"):
            dirichlet(LABELS, 2, alpha=alpha)
    with pytest.raises(ValueError, match=r"labels have shape \(2, 1\)"):
        sorted_by_label(np.ones((2, 1)), 2)
