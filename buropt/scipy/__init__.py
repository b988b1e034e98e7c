"""SciPy's optimizers with derivatives from buropt; import it by ``import buropt.scipy``.

`Pieces` are the functions for a call of SciPy's own; `minimize` and the others make that call, and
take and give parameters nested as the user has them.
"""

from buropt.scipy.constraints import NonlinearConstraint as NonlinearConstraint
from buropt.scipy.fitting import curve_fit as curve_fit
from buropt.scipy.fitting import least_squares as least_squares
from buropt.scipy.global_search import basinhopping as basinhopping
from buropt.scipy.global_search import dual_annealing as dual_annealing
from buropt.scipy.minimizing import minimize as minimize
from buropt.scipy.pieces import Pieces as Pieces
from buropt.scipy.roots import fsolve as fsolve
from buropt.scipy.roots import root as root

__all__ = [
    "NonlinearConstraint",
    "Pieces",
    "basinhopping",
    "curve_fit",
    "dual_annealing",
    "fsolve",
    "least_squares",
    "minimize",
    "root",
]
