"""The compiled oracle: `compile`, and the `Oracle` that it gives.

Start reading at `compiling.py` and `oracle.py`. What an oracle can be asked is split by topic into
`queries`, `workers`, `hessians` and `entries`; `objective` holds the graphs, `data` the samples,
and the other modules the programs behind the answers.
"""

from buropt.oracle.compiling import compile as compile
from buropt.oracle.oracle import Oracle as Oracle

__all__ = ["Oracle", "compile"]
