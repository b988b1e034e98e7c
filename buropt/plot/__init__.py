"""Figures of a sweep for publication: `python -m buropt.plot`, and `figure.plot_runs`."""
