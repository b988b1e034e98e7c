"""The compiled oracle: `compile`, and the `Oracle` that it gives.

Start reading at `oracle.py`. What an oracle can be asked is split by topic into `queries`,
`workers`, `hessians` and `entries`; `objective` holds the graphs, `data` the samples, and the other
modules the programs behind the answers.
"""

from buropt.oracle.oracle import Oracle as Oracle
from buropt.oracle.oracle import compile as compile

__all__ = ["Oracle", "compile"]
