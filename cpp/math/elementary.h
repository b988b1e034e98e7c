// All elementary functions. Each is a template on the number type (float, double or a pack of them)
// with one algorithm for all four, an error of at most 2 units in the last place over the whole
// range (inverse hyperbolic and trigonometric functions: 3), and IEEE special values.
#pragma once

#include "math/bessel.h"
#include "math/cbrt.h"
#include "math/entropy.h"
#include "math/error_function.h"
#include "math/exp.h"
#include "math/exprel.h"
#include "math/gamma.h"
#include "math/hyperbolic.h"
#include "math/hypot.h"
#include "math/inverse_hyperbolic.h"
#include "math/inverse_trig.h"
#include "math/log.h"
#include "math/logistic.h"
#include "math/power.h"
#include "math/rounding.h"
#include "math/sign.h"
#include "math/trig.h"
