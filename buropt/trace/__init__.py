"""Recording a function: NumPy calls on tracers become nodes of a graph.

Start reading at `recording.Trace` (one recording) and `tracer.Tracer` (a traced array); the
functions that can be traced are the rows of `ufuncs/` and `functions/`. Rules know these
two classes, which for their part find rules in the tables of `dispatch.py` only.
"""

# Importing these fills the tables of rules.
from buropt.trace import functions as _functions  # noqa: F401
from buropt.trace import indexing as _indexing  # noqa: F401
from buropt.trace import ufuncs as _ufuncs  # noqa: F401
from buropt.trace.dispatch import supported_functions as supported_functions
from buropt.trace.errors import DisconnectedInputWarning as DisconnectedInputWarning
from buropt.trace.errors import RandomDrawWarning as RandomDrawWarning
from buropt.trace.errors import TraceError as TraceError
from buropt.trace.errors import UnsupportedOpError as UnsupportedOpError
from buropt.trace.recording import Trace as Trace
from buropt.trace.sparse import SparseRow as SparseRow
from buropt.trace.tags import tag as tag
from buropt.trace.tracer import Tracer as Tracer

__all__ = [
    "DisconnectedInputWarning",
    "RandomDrawWarning",
    "SparseRow",
    "Trace",
    "TraceError",
    "Tracer",
    "UnsupportedOpError",
    "supported_functions",
    "tag",
]
