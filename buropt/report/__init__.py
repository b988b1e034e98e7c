"""A page about a run or a sweep, in one HTML file: `python -m buropt.report FOLDER`.

`content` collects what the page shows, `thin` the points of its curves, `write` puts both and the
files of the folder `page` into one file, which loads nothing from anywhere.
"""

from buropt.report.write import write_report as write_report

__all__ = ["write_report"]
