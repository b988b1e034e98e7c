"""SciPy's optimizers with derivatives from buropt; import it by ``import buropt.scipy``.

`Pieces` are the functions for a call of SciPy's own; `minimize` and the others make that call, and
take and give parameters nested as the user has them.
"""

from buropt.scipy.constraints import NonlinearConstraint as NonlinearConstraint
from buropt.scipy.minimizing import minimize as minimize
from buropt.scipy.pieces import Pieces as Pieces

__all__ = ["NonlinearConstraint", "Pieces", "minimize"]
