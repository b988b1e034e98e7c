"""Functions of scipy.special in traced functions; their accuracy is in test_special.py."""

import scipy.special

# Calls with a matrix with both signs, a vector with both, a positive vector.
VALUES = {
    "scipy.special.cbrt": lambda a, v, p: scipy.special.cbrt(a),
    "scipy.special.cosm1": lambda a, v, p: scipy.special.cosm1(a),
    "scipy.special.erf": lambda a, v, p: scipy.special.erf(a),
    "scipy.special.erfc": lambda a, v, p: scipy.special.erfc(a),
    "scipy.special.erfcinv": lambda a, v, p: scipy.special.erfcinv(p / 8),
    "scipy.special.erfcx": lambda a, v, p: scipy.special.erfcx(a),
    "scipy.special.erfinv": lambda a, v, p: scipy.special.erfinv(a / 4),
    "scipy.special.exp10": lambda a, v, p: scipy.special.exp10(a),
    "scipy.special.exp2": lambda a, v, p: scipy.special.exp2(a),
    "scipy.special.log_ndtr": lambda a, v, p: scipy.special.log_ndtr(9 * a),
    "scipy.special.logit": lambda a, v, p: scipy.special.logit(p / 8),
    "scipy.special.ndtr": lambda a, v, p: scipy.special.ndtr(a),
    "scipy.special.ndtri": lambda a, v, p: scipy.special.ndtri(p / 8),
    "scipy.special.round": lambda a, v, p: scipy.special.round(a),
}
