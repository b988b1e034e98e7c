"""Problems: ordinary per-sample losses, compiled, with their constants."""

from buropt.problems.base import Counters as Counters
from buropt.problems.base import Problem as Problem
from buropt.problems.compiled import compiled as compiled
from buropt.problems.compiled import from_oracle as from_oracle
from buropt.problems.constants import Constants as Constants
from buropt.problems.least_squares import least_squares as least_squares
from buropt.problems.logistic import logistic as logistic
from buropt.problems.logistic_nonconvex_reg import logistic_nonconvex_reg as logistic_nonconvex_reg
from buropt.problems.nonconvex_logistic import nonconvex_logistic as nonconvex_logistic
from buropt.problems.quadratic import quadratic as quadratic
from buropt.problems.quadratic import synthetic_quadratic as synthetic_quadratic
