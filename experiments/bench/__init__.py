"""Benchmarks of buropt beside its peers: `python -m experiments.bench`, see `__main__.py`."""
