---@meta
-- Made by make docs.
---@class tycho.Tensor
local Tensor = {}
---@class tycho
local tycho = {linalg = {}}

--- -x
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.neg(x) end

--- -x
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.neg(x) end

--- absolute value
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.abs(x) end

--- absolute value
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.abs(x) end

--- -1, 0 or 1
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.sign(x) end

--- -1, 0 or 1
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.sign(x) end

--- x times x
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.square(x) end

--- x times x
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.square(x) end

--- e to the power of x
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.exp(x) end

--- e to the power of x
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.exp(x) end

--- exp(x) - 1, exact near 0
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.expm1(x) end

--- exp(x) - 1, exact near 0
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.expm1(x) end

--- natural logarithm
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.log(x) end

--- natural logarithm
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.log(x) end

--- logarithm to base 2
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.log2(x) end

--- logarithm to base 2
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.log2(x) end

--- logarithm to base 10
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.log10(x) end

--- logarithm to base 10
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.log10(x) end

--- log(1 + x), exact near 0
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.log1p(x) end

--- log(1 + x), exact near 0
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.log1p(x) end

--- square root
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.sqrt(x) end

--- square root
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.sqrt(x) end

--- 1 / sqrt(x)
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.rsqrt(x) end

--- 1 / sqrt(x)
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.rsqrt(x) end

--- 1 / x
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.reciprocal(x) end

--- 1 / x
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.reciprocal(x) end

--- sine of radians
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.sin(x) end

--- sine of radians
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.sin(x) end

--- cosine of radians
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.cos(x) end

--- cosine of radians
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.cos(x) end

--- tangent of radians
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.tan(x) end

--- tangent of radians
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.tan(x) end

--- inverse sine, in radians
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.asin(x) end

--- inverse sine, in radians
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.asin(x) end

--- inverse cosine, in radians
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.acos(x) end

--- inverse cosine, in radians
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.acos(x) end

--- inverse tangent, in radians
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.atan(x) end

--- inverse tangent, in radians
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.atan(x) end

--- hyperbolic sine
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.sinh(x) end

--- hyperbolic sine
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.sinh(x) end

--- hyperbolic cosine
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.cosh(x) end

--- hyperbolic cosine
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.cosh(x) end

--- inverse hyperbolic sine
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.asinh(x) end

--- inverse hyperbolic sine
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.asinh(x) end

--- inverse hyperbolic cosine
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.acosh(x) end

--- inverse hyperbolic cosine
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.acosh(x) end

--- inverse hyperbolic tangent
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.atanh(x) end

--- inverse hyperbolic tangent
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.atanh(x) end

--- hyperbolic tangent
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.tanh(x) end

--- hyperbolic tangent
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.tanh(x) end

--- error function
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.erf(x) end

--- error function
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.erf(x) end

--- 1 - erf(x)
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.erfc(x) end

--- 1 - erf(x)
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.erfc(x) end

--- inverse of erf
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.erfinv(x) end

--- inverse of erf
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.erfinv(x) end

--- logarithm of the absolute value of the gamma function
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.lgamma(x) end

--- logarithm of the absolute value of the gamma function
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.lgamma(x) end

--- 2 to the power of x
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.exp2(x) end

--- 2 to the power of x
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.exp2(x) end

--- 1 / (1 + exp(-x))
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.sigmoid(x) end

--- 1 / (1 + exp(-x))
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.sigmoid(x) end

--- max(x, 0)
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.relu(x) end

--- max(x, 0)
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.relu(x) end

--- x * sigmoid(x)
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.silu(x) end

--- x * sigmoid(x)
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.silu(x) end

--- x where x > 0, else negative_slope * x
---@param x tycho.Tensor
---@param negative_slope? number
---@return tycho.Tensor
function tycho.leaky_relu(x, negative_slope) end

--- x where x > 0, else negative_slope * x
---@param x tycho.Tensor
---@param negative_slope? number
---@return tycho.Tensor
function Tensor.leaky_relu(x, negative_slope) end

--- x where x > 0, else alpha * (exp(x) - 1)
---@param x tycho.Tensor
---@param alpha? number
---@return tycho.Tensor
function tycho.elu(x, alpha) end

--- x where x > 0, else alpha * (exp(x) - 1)
---@param x tycho.Tensor
---@param alpha? number
---@return tycho.Tensor
function Tensor.elu(x, alpha) end

--- log(1 + exp(beta * x)) / beta
---@param x tycho.Tensor
---@param beta? number
---@param threshold? number
---@return tycho.Tensor
function tycho.softplus(x, beta, threshold) end

--- log(1 + exp(beta * x)) / beta
---@param x tycho.Tensor
---@param beta? number
---@param threshold? number
---@return tycho.Tensor
function Tensor.softplus(x, beta, threshold) end

--- scaled elu that keeps mean and variance
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.selu(x) end

--- scaled elu that keeps mean and variance
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.selu(x) end

--- x where x > 0, else alpha * (exp(x / alpha) - 1)
---@param x tycho.Tensor
---@param alpha? number
---@return tycho.Tensor
function tycho.celu(x, alpha) end

--- x where x > 0, else alpha * (exp(x / alpha) - 1)
---@param x tycho.Tensor
---@param alpha? number
---@return tycho.Tensor
function Tensor.celu(x, alpha) end

--- x * tanh(log(1 + exp(x)))
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.mish(x) end

--- x * tanh(log(1 + exp(x)))
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.mish(x) end

--- log(sigmoid(x)), without overflow
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.logsigmoid(x) end

--- log(sigmoid(x)), without overflow
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.logsigmoid(x) end

--- x / (1 + |x|)
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.softsign(x) end

--- x / (1 + |x|)
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.softsign(x) end

--- x moved by lambd towards 0
---@param x tycho.Tensor
---@param lambd? number
---@return tycho.Tensor
function tycho.softshrink(x, lambd) end

--- x moved by lambd towards 0
---@param x tycho.Tensor
---@param lambd? number
---@return tycho.Tensor
function Tensor.softshrink(x, lambd) end

--- x, 0 within -lambd..lambd
---@param x tycho.Tensor
---@param lambd? number
---@return tycho.Tensor
function tycho.hardshrink(x, lambd) end

--- x, 0 within -lambd..lambd
---@param x tycho.Tensor
---@param lambd? number
---@return tycho.Tensor
function Tensor.hardshrink(x, lambd) end

--- x * clamp(x + 3, 0, 6) / 6
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.hardswish(x) end

--- x * clamp(x + 3, 0, 6) / 6
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.hardswish(x) end

--- clamp(x + 3, 0, 6) / 6
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.hardsigmoid(x) end

--- clamp(x + 3, 0, 6) / 6
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.hardsigmoid(x) end

--- x where x > threshold, else value
---@param x tycho.Tensor
---@param threshold number
---@param value number
---@return tycho.Tensor
function tycho.threshold(x, threshold, value) end

--- x where x > threshold, else value
---@param x tycho.Tensor
---@param threshold number
---@param value number
---@return tycho.Tensor
function Tensor.threshold(x, threshold, value) end

--- x limited to min_val..max_val; at the borders the gradient is 0
---@param x tycho.Tensor
---@param min_val? number
---@param max_val? number
---@return tycho.Tensor
function tycho.hardtanh(x, min_val, max_val) end

--- x limited to min_val..max_val; at the borders the gradient is 0
---@param x tycho.Tensor
---@param min_val? number
---@param max_val? number
---@return tycho.Tensor
function Tensor.hardtanh(x, min_val, max_val) end

--- x limited to min..max; either may be nil
---@param x tycho.Tensor
---@param min? number
---@param max? number
---@return tycho.Tensor
function tycho.clamp(x, min, max) end

--- x limited to min..max; either may be nil
---@param x tycho.Tensor
---@param min? number
---@param max? number
---@return tycho.Tensor
function Tensor.clamp(x, min, max) end

--- largest whole number not above x
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.floor(x) end

--- largest whole number not above x
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.floor(x) end

--- smallest whole number not below x
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.ceil(x) end

--- smallest whole number not below x
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.ceil(x) end

--- nearest whole number, halves to even
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.round(x) end

--- nearest whole number, halves to even
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.round(x) end

--- whole part
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.trunc(x) end

--- whole part
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.trunc(x) end

--- the part after the point, with x's sign
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.frac(x) end

--- the part after the point, with x's sign
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.frac(x) end

--- true where x is negative, -0 included
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.signbit(x) end

--- true where x is negative, -0 included
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.signbit(x) end

--- true where x is NaN
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.isnan(x) end

--- true where x is NaN
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.isnan(x) end

--- true where x is infinite
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.isinf(x) end

--- true where x is infinite
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.isinf(x) end

--- true where x is neither infinite nor NaN
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.isfinite(x) end

--- true where x is neither infinite nor NaN
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.isfinite(x) end

--- true where x is 0
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.logical_not(x) end

--- true where x is 0
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.logical_not(x) end

--- a + alpha * b
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@param alpha? number
---@return tycho.Tensor
function tycho.add(a, b, alpha) end

--- a + alpha * b
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@param alpha? number
---@return tycho.Tensor
function Tensor.add(a, b, alpha) end

--- a - alpha * b
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@param alpha? number
---@return tycho.Tensor
function tycho.sub(a, b, alpha) end

--- a - alpha * b
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@param alpha? number
---@return tycho.Tensor
function Tensor.sub(a, b, alpha) end

--- a * b, by elements
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.mul(a, b) end

--- a * b, by elements
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor.mul(a, b) end

--- a / b, by elements
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.div(a, b) end

--- a / b, by elements
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor.div(a, b) end

--- largest whole number not above a / b
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.floor_divide(a, b) end

--- largest whole number not above a / b
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor.floor_divide(a, b) end

--- a - b * floor(a / b): has the sign of b
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.remainder(a, b) end

--- a - b * floor(a / b): has the sign of b
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor.remainder(a, b) end

--- a - b * trunc(a / b): has the sign of a
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.fmod(a, b) end

--- a - b * trunc(a / b): has the sign of a
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor.fmod(a, b) end

--- a to the power of b
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.pow(a, b) end

--- a to the power of b
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor.pow(a, b) end

--- the larger; NaN wins
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.maximum(a, b) end

--- the larger; NaN wins
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor.maximum(a, b) end

--- the smaller; NaN wins
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.minimum(a, b) end

--- the smaller; NaN wins
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor.minimum(a, b) end

--- the larger; a number wins over NaN
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.fmax(a, b) end

--- the larger; a number wins over NaN
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor.fmax(a, b) end

--- the smaller; a number wins over NaN
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.fmin(a, b) end

--- the smaller; a number wins over NaN
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor.fmin(a, b) end

--- square root of a * a + b * b
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.hypot(a, b) end

--- square root of a * a + b * b
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor.hypot(a, b) end

--- a with the sign of b
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.copysign(a, b) end

--- a with the sign of b
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor.copysign(a, b) end

--- log(exp(a) + exp(b)), without overflow
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.logaddexp(a, b) end

--- log(exp(a) + exp(b)), without overflow
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor.logaddexp(a, b) end

--- a * log(b), 0 where a is 0
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.xlogy(a, b) end

--- a * log(b), 0 where a is 0
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor.xlogy(a, b) end

--- bits that both have
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.bitwise_and(a, b) end

--- bits that both have
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor.bitwise_and(a, b) end

--- bits that one has
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.bitwise_or(a, b) end

--- bits that one has
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor.bitwise_or(a, b) end

--- bits that just one has
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.bitwise_xor(a, b) end

--- bits that just one has
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor.bitwise_xor(a, b) end

--- a's bits moved b places up
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.bitwise_left_shift(a, b) end

--- a's bits moved b places up
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor.bitwise_left_shift(a, b) end

--- a's bits moved b places down; the sign stays
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.bitwise_right_shift(a, b) end

--- a's bits moved b places down; the sign stays
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor.bitwise_right_shift(a, b) end

--- angle of the point (b, a)
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.atan2(a, b) end

--- angle of the point (b, a)
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor.atan2(a, b) end

--- a == b, by elements
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.eq(a, b) end

--- a == b, by elements
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor.eq(a, b) end

--- a != b, by elements
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.ne(a, b) end

--- a != b, by elements
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor.ne(a, b) end

--- a < b, by elements
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.lt(a, b) end

--- a < b, by elements
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor.lt(a, b) end

--- a <= b, by elements
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.le(a, b) end

--- a <= b, by elements
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor.le(a, b) end

--- a > b, by elements
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.gt(a, b) end

--- a > b, by elements
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor.gt(a, b) end

--- a >= b, by elements
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.ge(a, b) end

--- a >= b, by elements
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor.ge(a, b) end

--- true where both are not 0
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.logical_and(a, b) end

--- true where both are not 0
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor.logical_and(a, b) end

--- true where one is not 0
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.logical_or(a, b) end

--- true where one is not 0
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor.logical_or(a, b) end

--- true where just one is not 0
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.logical_xor(a, b) end

--- true where just one is not 0
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor.logical_xor(a, b) end

--- x's shape and dtype, all elements value
---@param x tycho.Tensor
---@param value tycho.Tensor|number
---@return tycho.Tensor
function tycho.fill_(x, value) end

--- x's shape and dtype, all elements value
---@param x tycho.Tensor
---@param value tycho.Tensor|number
---@return tycho.Tensor
function Tensor.fill_(x, value) end

--- a where cond is true, else b
---@param cond tycho.Tensor
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.where(cond, a, b) end

--- a where cond is true, else b
---@param cond tycho.Tensor
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor.where(cond, a, b) end

--- value where mask is true, else x
---@param x tycho.Tensor
---@param mask tycho.Tensor
---@param value tycho.Tensor|number
---@return tycho.Tensor
function tycho.masked_fill(x, mask, value) end

--- value where mask is true, else x
---@param x tycho.Tensor
---@param mask tycho.Tensor
---@param value tycho.Tensor|number
---@return tycho.Tensor
function Tensor.masked_fill(x, mask, value) end

--- a + weight * (b - a); exactly b where weight is 1 and both are finite
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param weight tycho.Tensor|number
---@return tycho.Tensor
function tycho.lerp(a, b, weight) end

--- a + weight * (b - a); exactly b where weight is 1 and both are finite
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param weight tycho.Tensor|number
---@return tycho.Tensor
function Tensor.lerp(a, b, weight) end

--- a + value * b * c
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param c tycho.Tensor
---@param value? number
---@return tycho.Tensor
function tycho.addcmul(a, b, c, value) end

--- a + value * b * c
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param c tycho.Tensor
---@param value? number
---@return tycho.Tensor
function Tensor.addcmul(a, b, c, value) end

--- a + value * b / c
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param c tycho.Tensor
---@param value? number
---@return tycho.Tensor
function tycho.addcdiv(a, b, c, value) end

--- a + value * b / c
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param c tycho.Tensor
---@param value? number
---@return tycho.Tensor
function Tensor.addcdiv(a, b, c, value) end

--- sum over dim (all dims where nil)
---@param x tycho.Tensor
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param dtype? string
---@return tycho.Tensor
function tycho.sum(x, dim, keepdim, dtype) end

--- sum over dim (all dims where nil)
---@param x tycho.Tensor
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param dtype? string
---@return tycho.Tensor
function Tensor.sum(x, dim, keepdim, dtype) end

--- mean over dim (all dims where nil)
---@param x tycho.Tensor
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param dtype? string
---@return tycho.Tensor
function tycho.mean(x, dim, keepdim, dtype) end

--- mean over dim (all dims where nil)
---@param x tycho.Tensor
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param dtype? string
---@return tycho.Tensor
function Tensor.mean(x, dim, keepdim, dtype) end

--- product over dim (all dims where nil)
---@param x tycho.Tensor
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param dtype? string
---@return tycho.Tensor
function tycho.prod(x, dim, keepdim, dtype) end

--- product over dim (all dims where nil)
---@param x tycho.Tensor
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param dtype? string
---@return tycho.Tensor
function Tensor.prod(x, dim, keepdim, dtype) end

--- maximum over dim (all dims where nil)
---@param x tycho.Tensor
---@param dim? integer|integer[]
---@param keepdim? boolean
---@return tycho.Tensor
function tycho.amax(x, dim, keepdim) end

--- maximum over dim (all dims where nil)
---@param x tycho.Tensor
---@param dim? integer|integer[]
---@param keepdim? boolean
---@return tycho.Tensor
function Tensor.amax(x, dim, keepdim) end

--- minimum over dim (all dims where nil)
---@param x tycho.Tensor
---@param dim? integer|integer[]
---@param keepdim? boolean
---@return tycho.Tensor
function tycho.amin(x, dim, keepdim) end

--- minimum over dim (all dims where nil)
---@param x tycho.Tensor
---@param dim? integer|integer[]
---@param keepdim? boolean
---@return tycho.Tensor
function Tensor.amin(x, dim, keepdim) end

--- true where one element is not 0
---@param x tycho.Tensor
---@param dim? integer|integer[]
---@param keepdim? boolean
---@return tycho.Tensor
function tycho.any(x, dim, keepdim) end

--- true where one element is not 0
---@param x tycho.Tensor
---@param dim? integer|integer[]
---@param keepdim? boolean
---@return tycho.Tensor
function Tensor.any(x, dim, keepdim) end

--- true where no element is 0
---@param x tycho.Tensor
---@param dim? integer|integer[]
---@param keepdim? boolean
---@return tycho.Tensor
function tycho.all(x, dim, keepdim) end

--- true where no element is 0
---@param x tycho.Tensor
---@param dim? integer|integer[]
---@param keepdim? boolean
---@return tycho.Tensor
function Tensor.all(x, dim, keepdim) end

--- running sum along dim
---@param x tycho.Tensor
---@param dim integer
---@param dtype? string
---@return tycho.Tensor
function tycho.cumsum(x, dim, dtype) end

--- running sum along dim
---@param x tycho.Tensor
---@param dim integer
---@param dtype? string
---@return tycho.Tensor
function Tensor.cumsum(x, dim, dtype) end

--- running product along dim
---@param x tycho.Tensor
---@param dim integer
---@param dtype? string
---@return tycho.Tensor
function tycho.cumprod(x, dim, dtype) end

--- running product along dim
---@param x tycho.Tensor
---@param dim integer
---@param dtype? string
---@return tycho.Tensor
function Tensor.cumprod(x, dim, dtype) end

--- running maximum along dim and its indices, the last of equals
---@param x tycho.Tensor
---@param dim integer
---@return tycho.Tensor, tycho.Tensor
function tycho.cummax(x, dim) end

--- running maximum along dim and its indices, the last of equals
---@param x tycho.Tensor
---@param dim integer
---@return tycho.Tensor, tycho.Tensor
function Tensor.cummax(x, dim) end

--- running minimum along dim and its indices, the last of equals
---@param x tycho.Tensor
---@param dim integer
---@return tycho.Tensor, tycho.Tensor
function tycho.cummin(x, dim) end

--- running minimum along dim and its indices, the last of equals
---@param x tycho.Tensor
---@param dim integer
---@return tycho.Tensor, tycho.Tensor
function Tensor.cummin(x, dim) end

--- log of the running sum of exp(x) along dim, without overflow
---@param x tycho.Tensor
---@param dim integer
---@param dtype? string
---@return tycho.Tensor
function tycho.logcumsumexp(x, dim, dtype) end

--- log of the running sum of exp(x) along dim, without overflow
---@param x tycho.Tensor
---@param dim integer
---@param dtype? string
---@return tycho.Tensor
function Tensor.logcumsumexp(x, dim, dtype) end

--- the same elements in another shape, without a copy
---@param x tycho.Tensor
---@param size integer|integer[]
---@return tycho.Tensor
function tycho.view(x, size) end

--- the same elements in another shape, without a copy
---@param x tycho.Tensor
---@param size integer|integer[]
---@return tycho.Tensor
function Tensor.view(x, size) end

--- dims in another order
---@param x tycho.Tensor
---@param dims integer|integer[]
---@return tycho.Tensor
function tycho.permute(x, dims) end

--- dims in another order
---@param x tycho.Tensor
---@param dims integer|integer[]
---@return tycho.Tensor
function Tensor.permute(x, dims) end

--- dims of size 1 repeated, without a copy; -1 keeps a size
---@param x tycho.Tensor
---@param size integer|integer[]
---@return tycho.Tensor
function tycho.expand(x, size) end

--- dims of size 1 repeated, without a copy; -1 keeps a size
---@param x tycho.Tensor
---@param size integer|integer[]
---@return tycho.Tensor
function Tensor.expand(x, size) end

--- elements first to last (both included) of dim, every step-th
---@param x tycho.Tensor
---@param dim integer
---@param first? integer
---@param last? integer
---@param step? integer
---@return tycho.Tensor
function tycho.slice(x, dim, first, last, step) end

--- elements first to last (both included) of dim, every step-th
---@param x tycho.Tensor
---@param dim integer
---@param first? integer
---@param last? integer
---@param step? integer
---@return tycho.Tensor
function Tensor.slice(x, dim, first, last, step) end

--- the diagonal of dim1 and dim2, offset above the main one, as the last dim
---@param x tycho.Tensor
---@param offset? integer
---@param dim1? integer
---@param dim2? integer
---@return tycho.Tensor
function tycho.diagonal(x, offset, dim1, dim2) end

--- the diagonal of dim1 and dim2, offset above the main one, as the last dim
---@param x tycho.Tensor
---@param offset? integer
---@param dim1? integer
---@param dim2? integer
---@return tycho.Tensor
function Tensor.diagonal(x, offset, dim1, dim2) end

--- windows of size elements of dim, dilation apart, every step-th, along a new last dim
---@param x tycho.Tensor
---@param dim integer
---@param size integer
---@param step integer
---@param dilation? integer
---@return tycho.Tensor
function tycho.unfold(x, dim, size, step, dilation) end

--- windows of size elements of dim, dilation apart, every step-th, along a new last dim
---@param x tycho.Tensor
---@param dim integer
---@param size integer
---@param step integer
---@param dilation? integer
---@return tycho.Tensor
function Tensor.unfold(x, dim, size, step, dilation) end

--- element index of dim; that dim goes away
---@param x tycho.Tensor
---@param dim integer
---@param index integer
---@return tycho.Tensor
function tycho.select(x, dim, index) end

--- element index of dim; that dim goes away
---@param x tycho.Tensor
---@param dim integer
---@param index integer
---@return tycho.Tensor
function Tensor.select(x, dim, index) end

--- a copy with memory of its own
---@param x tycho.Tensor
---@param memory_format? string
---@return tycho.Tensor
function tycho.clone(x, memory_format) end

--- a copy with memory of its own
---@param x tycho.Tensor
---@param memory_format? string
---@return tycho.Tensor
function Tensor.clone(x, memory_format) end

--- a copy in another dtype
---@param x tycho.Tensor
---@param dtype string
---@param memory_format? string
---@return tycho.Tensor
function tycho.cast(x, dtype, memory_format) end

--- a copy in another dtype
---@param x tycho.Tensor
---@param dtype string
---@param memory_format? string
---@return tycho.Tensor
function Tensor.cast(x, dtype, memory_format) end

--- src in x's shape and dtype; copy_ writes it into x. non_blocking: from or to pinned memory without waiting
---@param x tycho.Tensor
---@param src tycho.Tensor|number
---@param non_blocking? boolean
---@return tycho.Tensor
function tycho.copy_(x, src, non_blocking) end

--- src in x's shape and dtype; copy_ writes it into x. non_blocking: from or to pinned memory without waiting
---@param x tycho.Tensor
---@param src tycho.Tensor|number
---@param non_blocking? boolean
---@return tycho.Tensor
function Tensor.copy_(x, src, non_blocking) end

--- the lower triangle, from diagonal k down; else 0
---@param x tycho.Tensor
---@param k? integer
---@return tycho.Tensor
function tycho.tril(x, k) end

--- the lower triangle, from diagonal k down; else 0
---@param x tycho.Tensor
---@param k? integer
---@return tycho.Tensor
function Tensor.tril(x, k) end

--- the upper triangle, from diagonal k up; else 0
---@param x tycho.Tensor
---@param k? integer
---@return tycho.Tensor
function tycho.triu(x, k) end

--- the upper triangle, from diagonal k up; else 0
---@param x tycho.Tensor
---@param k? integer
---@return tycho.Tensor
function Tensor.triu(x, k) end

--- elements of dims in reverse order
---@param x tycho.Tensor
---@param dims integer|integer[]
---@return tycho.Tensor
function tycho.flip(x, dims) end

--- elements of dims in reverse order
---@param x tycho.Tensor
---@param dims integer|integer[]
---@return tycho.Tensor
function Tensor.flip(x, dims) end

--- tensors one after another along dim
---@param tensors tycho.Tensor[]
---@param dim? integer
---@return tycho.Tensor
function tycho.cat(tensors, dim) end

--- tensors of one shape along a new dim
---@param tensors tycho.Tensor[]
---@param dim? integer
---@return tycho.Tensor
function tycho.stack(tensors, dim) end

--- a tensor with whatever its memory held
---@param size integer|integer[]
---@param dtype? string
---@param device? string
---@return tycho.Tensor
function tycho.empty(size, dtype, device) end

--- all 0
---@param size integer|integer[]
---@param dtype? string
---@param device? string
---@return tycho.Tensor
function tycho.zeros(size, dtype, device) end

--- all 1
---@param size integer|integer[]
---@param dtype? string
---@param device? string
---@return tycho.Tensor
function tycho.ones(size, dtype, device) end

--- all value
---@param size integer|integer[]
---@param value any
---@param dtype? string
---@param device? string
---@return tycho.Tensor
function tycho.full(size, value, dtype, device) end

--- first, first + step, ... up to and including last
---@param first number
---@param last number
---@param step? number
---@param dtype? string
---@param device? string
---@return tycho.Tensor
function tycho.range(first, last, step, dtype, device) end

--- steps numbers evenly from first to last
---@param first number
---@param last number
---@param steps integer
---@param dtype? string
---@param device? string
---@return tycho.Tensor
function tycho.linspace(first, last, steps, dtype, device) end

--- n x m, 1 on the diagonal
---@param n integer
---@param m? integer
---@param dtype? string
---@param device? string
---@return tycho.Tensor
function tycho.eye(n, m, dtype, device) end

--- uniform in [0, 1)
---@param size integer|integer[]
---@param dtype? string
---@param device? string
---@return tycho.Tensor
function tycho.rand(size, dtype, device) end

--- normal, mean 0, deviation 1
---@param size integer|integer[]
---@param dtype? string
---@param device? string
---@return tycho.Tensor
function tycho.randn(size, dtype, device) end

--- whole numbers low to high, both included
---@param low integer
---@param high integer
---@param size integer|integer[]
---@param dtype? string
---@param device? string
---@return tycho.Tensor
function tycho.randint(low, high, size, dtype, device) end

--- 1 to n in random order
---@param n integer
---@param dtype? string
---@param device? string
---@return tycho.Tensor
function tycho.randperm(n, dtype, device) end

--- like x, uniform in [low, high)
---@param x tycho.Tensor
---@param low? number
---@param high? number
---@return tycho.Tensor
function tycho.uniform_(x, low, high) end

--- like x, uniform in [low, high)
---@param x tycho.Tensor
---@param low? number
---@param high? number
---@return tycho.Tensor
function Tensor.uniform_(x, low, high) end

--- like x, normal
---@param x tycho.Tensor
---@param mean? number
---@param std? number
---@return tycho.Tensor
function tycho.normal(x, mean, std) end

--- like x, exponential of rate lambd
---@param x tycho.Tensor
---@param lambd? number
---@return tycho.Tensor
function tycho.exponential(x, lambd) end

--- like x, exponential of rate lambd
---@param x tycho.Tensor
---@param lambd? number
---@return tycho.Tensor
function Tensor.exponential(x, lambd) end

--- n indices for each row of x, drawn with probabilities in proportion to it
---@param x tycho.Tensor
---@param n integer
---@param replacement? boolean
---@return tycho.Tensor
function tycho.multinomial(x, n, replacement) end

--- n indices for each row of x, drawn with probabilities in proportion to it
---@param x tycho.Tensor
---@param n integer
---@param replacement? boolean
---@return tycho.Tensor
function Tensor.multinomial(x, n, replacement) end

--- matrix product, batch dims broadcast; of vectors as PyTorch's
---@param a tycho.Tensor
---@param b tycho.Tensor
---@return tycho.Tensor
function tycho.matmul(a, b) end

--- matrix product, batch dims broadcast; of vectors as PyTorch's
---@param a tycho.Tensor
---@param b tycho.Tensor
---@return tycho.Tensor
function Tensor.matmul(a, b) end

--- x @ weight^T + bias
---@param x tycho.Tensor
---@param weight tycho.Tensor
---@param bias? tycho.Tensor
---@return tycho.Tensor
function tycho.linear(x, weight, bias) end

--- x @ weight^T + bias
---@param x tycho.Tensor
---@param weight tycho.Tensor
---@param bias? tycho.Tensor
---@return tycho.Tensor
function Tensor.linear(x, weight, bias) end

--- exp(x) / sum(exp(x)) along dim
---@param x tycho.Tensor
---@param dim integer
---@param dtype? string
---@return tycho.Tensor
function tycho.softmax(x, dim, dtype) end

--- exp(x) / sum(exp(x)) along dim
---@param x tycho.Tensor
---@param dim integer
---@param dtype? string
---@return tycho.Tensor
function Tensor.softmax(x, dim, dtype) end

--- log of softmax along dim
---@param x tycho.Tensor
---@param dim integer
---@param dtype? string
---@return tycho.Tensor
function tycho.log_softmax(x, dim, dtype) end

--- log of softmax along dim
---@param x tycho.Tensor
---@param dim integer
---@param dtype? string
---@return tycho.Tensor
function Tensor.log_softmax(x, dim, dtype) end

--- x's elements at index along dim
---@param x tycho.Tensor
---@param dim integer
---@param index tycho.Tensor
---@return tycho.Tensor
function tycho.gather(x, dim, index) end

--- x's elements at index along dim
---@param x tycho.Tensor
---@param dim integer
---@param index tycho.Tensor
---@return tycho.Tensor
function Tensor.gather(x, dim, index) end

--- x with src written at index along dim
---@param x tycho.Tensor
---@param dim integer
---@param index tycho.Tensor
---@param src tycho.Tensor|number
---@return tycho.Tensor
function tycho.scatter(x, dim, index, src) end

--- x with src written at index along dim
---@param x tycho.Tensor
---@param dim integer
---@param index tycho.Tensor
---@param src tycho.Tensor|number
---@return tycho.Tensor
function Tensor.scatter(x, dim, index, src) end

--- x with src added at index along dim
---@param x tycho.Tensor
---@param dim integer
---@param index tycho.Tensor
---@param src tycho.Tensor
---@return tycho.Tensor
function tycho.scatter_add(x, dim, index, src) end

--- x with src added at index along dim
---@param x tycho.Tensor
---@param dim integer
---@param index tycho.Tensor
---@param src tycho.Tensor
---@return tycho.Tensor
function Tensor.scatter_add(x, dim, index, src) end

--- x in order along dim and the indices of that order, equals in theirs; NaN is the largest
---@param x tycho.Tensor
---@param dim? integer
---@param descending? boolean
---@param stable? boolean
---@return tycho.Tensor, tycho.Tensor
function tycho.sort(x, dim, descending, stable) end

--- x in order along dim and the indices of that order, equals in theirs; NaN is the largest
---@param x tycho.Tensor
---@param dim? integer
---@param descending? boolean
---@param stable? boolean
---@return tycho.Tensor, tycho.Tensor
function Tensor.sort(x, dim, descending, stable) end

--- the k largest (or smallest) along dim in order, and their indices
---@param x tycho.Tensor
---@param k integer
---@param dim? integer
---@param largest? boolean
---@param sorted? boolean
---@return tycho.Tensor, tycho.Tensor
function tycho.topk(x, k, dim, largest, sorted) end

--- the k largest (or smallest) along dim in order, and their indices
---@param x tycho.Tensor
---@param k integer
---@param dim? integer
---@param largest? boolean
---@param sorted? boolean
---@return tycho.Tensor, tycho.Tensor
function Tensor.topk(x, k, dim, largest, sorted) end

--- for each value the index before which it would be put into the sorted last dim (right: after equals)
---@param sorted tycho.Tensor
---@param values tycho.Tensor
---@param right? boolean
---@return tycho.Tensor
function tycho.searchsorted(sorted, values, right) end

--- for each value the index before which it would be put into the sorted last dim (right: after equals)
---@param sorted tycho.Tensor
---@param values tycho.Tensor
---@param right? boolean
---@return tycho.Tensor
function Tensor.searchsorted(sorted, values, right) end

--- how often each id from 1 on occurs, or the sums of their weights
---@param ids tycho.Tensor
---@param weights? tycho.Tensor
---@param minlength? integer
---@return tycho.Tensor
function tycho.bincount(ids, weights, minlength) end

--- how often each id from 1 on occurs, or the sums of their weights
---@param ids tycho.Tensor
---@param weights? tycho.Tensor
---@param minlength? integer
---@return tycho.Tensor
function Tensor.bincount(ids, weights, minlength) end

--- 2-D convolution of x (N,C,H,W) with weight (O,C/groups,kH,kW)
---@param x tycho.Tensor
---@param weight tycho.Tensor
---@param bias? tycho.Tensor
---@param stride? integer|integer[]
---@param padding? integer|integer[]
---@param dilation? integer|integer[]
---@param groups? integer
---@return tycho.Tensor
function tycho.conv2d(x, weight, bias, stride, padding, dilation, groups) end

--- 2-D convolution of x (N,C,H,W) with weight (O,C/groups,kH,kW)
---@param x tycho.Tensor
---@param weight tycho.Tensor
---@param bias? tycho.Tensor
---@param stride? integer|integer[]
---@param padding? integer|integer[]
---@param dilation? integer|integer[]
---@param groups? integer
---@return tycho.Tensor
function Tensor.conv2d(x, weight, bias, stride, padding, dilation, groups) end

--- mean of each kernel_size window of the last two dims
---@param x tycho.Tensor
---@param kernel_size integer|integer[]
---@param stride? integer|integer[]
---@param padding? integer|integer[]
---@param ceil_mode? boolean
---@param count_include_pad? boolean
---@param divisor_override? integer
---@return tycho.Tensor
function tycho.avg_pool2d(x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override) end

--- mean of each kernel_size window of the last two dims
---@param x tycho.Tensor
---@param kernel_size integer|integer[]
---@param stride? integer|integer[]
---@param padding? integer|integer[]
---@param ceil_mode? boolean
---@param count_include_pad? boolean
---@param divisor_override? integer
---@return tycho.Tensor
function Tensor.avg_pool2d(x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override) end

--- the elements in another shape; a view where that is possible, else a copy
---@param x tycho.Tensor
---@param size integer|integer[]
---@return tycho.Tensor
function tycho.reshape(x, size) end

--- the elements in another shape; a view where that is possible, else a copy
---@param x tycho.Tensor
---@param size integer|integer[]
---@return tycho.Tensor
function Tensor.reshape(x, size) end

--- x, or a copy in row-major memory order, or with channels last
---@param x tycho.Tensor
---@param memory_format? string
---@return tycho.Tensor
function tycho.contiguous(x, memory_format) end

--- x, or a copy in row-major memory order, or with channels last
---@param x tycho.Tensor
---@param memory_format? string
---@return tycho.Tensor
function Tensor.contiguous(x, memory_format) end

--- dims start_dim to end_dim as one
---@param x tycho.Tensor
---@param start_dim? integer
---@param end_dim? integer
---@return tycho.Tensor
function tycho.flatten(x, start_dim, end_dim) end

--- dims start_dim to end_dim as one
---@param x tycho.Tensor
---@param start_dim? integer
---@param end_dim? integer
---@return tycho.Tensor
function Tensor.flatten(x, start_dim, end_dim) end

--- without dims of size 1 (all of them where dim is nil)
---@param x tycho.Tensor
---@param dim? integer|integer[]
---@return tycho.Tensor
function tycho.squeeze(x, dim) end

--- without dims of size 1 (all of them where dim is nil)
---@param x tycho.Tensor
---@param dim? integer|integer[]
---@return tycho.Tensor
function Tensor.squeeze(x, dim) end

--- with a dim of size 1 more, at dim
---@param x tycho.Tensor
---@param dim integer
---@return tycho.Tensor
function tycho.unsqueeze(x, dim) end

--- with a dim of size 1 more, at dim
---@param x tycho.Tensor
---@param dim integer
---@return tycho.Tensor
function Tensor.unsqueeze(x, dim) end

--- dims dim0 and dim1 exchanged
---@param x tycho.Tensor
---@param dim0 integer
---@param dim1 integer
---@return tycho.Tensor
function tycho.transpose(x, dim0, dim1) end

--- dims dim0 and dim1 exchanged
---@param x tycho.Tensor
---@param dim0 integer
---@param dim1 integer
---@return tycho.Tensor
function Tensor.transpose(x, dim0, dim1) end

--- matrices transposed
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.adjoint(x) end

--- matrices transposed
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.adjoint(x) end

--- a matrix transposed
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.t(x) end

--- a matrix transposed
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.t(x) end

--- x summed over the dims along which size broadcasts to its shape
---@param x tycho.Tensor
---@param size integer|integer[]
---@return tycho.Tensor
function tycho.sum_to_size(x, size) end

--- x summed over the dims along which size broadcasts to its shape
---@param x tycho.Tensor
---@param size integer|integer[]
---@return tycho.Tensor
function Tensor.sum_to_size(x, size) end

--- dim from, or several in a list, moved to place to, or places; the others keep their order
---@param x tycho.Tensor
---@param from any
---@param to any
---@return tycho.Tensor
function tycho.movedim(x, from, to) end

--- dim from, or several in a list, moved to place to, or places; the others keep their order
---@param x tycho.Tensor
---@param from any
---@param to any
---@return tycho.Tensor
function Tensor.movedim(x, from, to) end

--- expanded to other's shape
---@param x tycho.Tensor
---@param other tycho.Tensor
---@return tycho.Tensor
function tycho.expand_as(x, other) end

--- expanded to other's shape
---@param x tycho.Tensor
---@param other tycho.Tensor
---@return tycho.Tensor
function Tensor.expand_as(x, other) end

--- viewed in other's shape
---@param x tycho.Tensor
---@param other tycho.Tensor
---@return tycho.Tensor
function tycho.view_as(x, other) end

--- viewed in other's shape
---@param x tycho.Tensor
---@param other tycho.Tensor
---@return tycho.Tensor
function Tensor.view_as(x, other) end

--- length elements of dim from start on
---@param x tycho.Tensor
---@param dim integer
---@param start integer
---@param length integer
---@return tycho.Tensor
function tycho.narrow(x, dim, start, length) end

--- length elements of dim from start on
---@param x tycho.Tensor
---@param dim integer
---@param start integer
---@param length integer
---@return tycho.Tensor
function Tensor.narrow(x, dim, start, length) end

--- a list of parts of size elements (or of the sizes in a list) along dim
---@param x tycho.Tensor
---@param size any
---@param dim? integer
---@return tycho.Tensor
function tycho.split(x, size, dim) end

--- a list of parts of size elements (or of the sizes in a list) along dim
---@param x tycho.Tensor
---@param size any
---@param dim? integer
---@return tycho.Tensor
function Tensor.split(x, size, dim) end

--- a list of at most n parts of equal size along dim (the last may be smaller)
---@param x tycho.Tensor
---@param n integer
---@param dim? integer
---@return tycho.Tensor
function tycho.chunk(x, n, dim) end

--- a list of at most n parts of equal size along dim (the last may be smaller)
---@param x tycho.Tensor
---@param n integer
---@param dim? integer
---@return tycho.Tensor
function Tensor.chunk(x, n, dim) end

--- the list of slices along dim
---@param x tycho.Tensor
---@param dim? integer
---@return tycho.Tensor
function tycho.unbind(x, dim) end

--- the list of slices along dim
---@param x tycho.Tensor
---@param dim? integer
---@return tycho.Tensor
function Tensor.unbind(x, dim) end

--- x repeated along each dim (PyTorch's Tensor.repeat)
---@param x tycho.Tensor
---@param repeats integer|integer[]
---@return tycho.Tensor
function tycho.tile(x, repeats) end

--- x repeated along each dim (PyTorch's Tensor.repeat)
---@param x tycho.Tensor
---@param repeats integer|integer[]
---@return tycho.Tensor
function Tensor.tile(x, repeats) end

--- elements moved by shift along dim, around the end (through all elements where dim is nil); lists for several dims
---@param x tycho.Tensor
---@param shift any
---@param dim? integer|integer[]
---@return tycho.Tensor
function tycho.roll(x, shift, dim) end

--- elements moved by shift along dim, around the end (through all elements where dim is nil); lists for several dims
---@param x tycho.Tensor
---@param shift any
---@param dim? integer|integer[]
---@return tycho.Tensor
function Tensor.roll(x, shift, dim) end

--- dim as several dims of the given sizes (one may be -1)
---@param x tycho.Tensor
---@param dim integer
---@param size integer|integer[]
---@return tycho.Tensor
function tycho.unflatten(x, dim, size) end

--- dim as several dims of the given sizes (one may be -1)
---@param x tycho.Tensor
---@param dim integer
---@param size integer|integer[]
---@return tycho.Tensor
function Tensor.unflatten(x, dim, size) end

--- expanded to size
---@param x tycho.Tensor
---@param size integer|integer[]
---@return tycho.Tensor
function tycho.broadcast_to(x, size) end

--- expanded to size
---@param x tycho.Tensor
---@param size integer|integer[]
---@return tycho.Tensor
function Tensor.broadcast_to(x, size) end

--- the tensors, all expanded to one shape, as so many results
---@param tensors tycho.Tensor[]
---@return tycho.Tensor
function tycho.broadcast_tensors(tensors) end

--- each element of dim repeats times in a row (of all elements where dim is nil); repeats may be a tensor of counts; without it x is the counts, of their positions
---@param x tycho.Tensor
---@param repeats? any
---@param dim? integer
---@return tycho.Tensor
function tycho.repeat_interleave(x, repeats, dim) end

--- each element of dim repeats times in a row (of all elements where dim is nil); repeats may be a tensor of counts; without it x is the counts, of their positions
---@param x tycho.Tensor
---@param repeats? any
---@param dim? integer
---@return tycho.Tensor
function Tensor.repeat_interleave(x, repeats, dim) end

--- turned k times by 90 degrees from the first of dims to the second
---@param x tycho.Tensor
---@param k? integer
---@param dims? integer|integer[]
---@return tycho.Tensor
function tycho.rot90(x, k, dims) end

--- turned k times by 90 degrees from the first of dims to the second
---@param x tycho.Tensor
---@param k? integer
---@param dims? integer|integer[]
---@return tycho.Tensor
function Tensor.rot90(x, k, dims) end

--- dim 2 in reverse order
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.fliplr(x) end

--- dim 2 in reverse order
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.fliplr(x) end

--- dim 1 in reverse order
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.flipud(x) end

--- dim 1 in reverse order
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.flipud(x) end

--- matrices, of dims dim1 and dim2, whose diagonal is x's last dim
---@param x tycho.Tensor
---@param offset? integer
---@param dim1? integer
---@param dim2? integer
---@return tycho.Tensor
function tycho.diag_embed(x, offset, dim1, dim2) end

--- matrices, of dims dim1 and dim2, whose diagonal is x's last dim
---@param x tycho.Tensor
---@param offset? integer
---@param dim1? integer
---@param dim2? integer
---@return tycho.Tensor
function Tensor.diag_embed(x, offset, dim1, dim2) end

--- a matrix with the vector x on its diagonal, or the diagonal of the matrix x
---@param x tycho.Tensor
---@param offset? integer
---@return tycho.Tensor
function tycho.diag(x, offset) end

--- a matrix with the vector x on its diagonal, or the diagonal of the matrix x
---@param x tycho.Tensor
---@param offset? integer
---@return tycho.Tensor
function Tensor.diag(x, offset) end

--- a matrix with all elements of x on its diagonal
---@param x tycho.Tensor
---@param offset? integer
---@return tycho.Tensor
function tycho.diagflat(x, offset) end

--- a matrix with all elements of x on its diagonal
---@param x tycho.Tensor
---@param offset? integer
---@return tycho.Tensor
function Tensor.diagflat(x, offset) end

--- sum of a matrix's diagonal
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.trace(x) end

--- sum of a matrix's diagonal
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.trace(x) end

--- the vectors, each expanded to the grid of all, as so many results
---@param tensors tycho.Tensor[]
---@param indexing? string
---@return tycho.Tensor
function tycho.meshgrid(tensors, indexing) end

--- x with at least 1 dims
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.atleast_1d(x) end

--- x with at least 1 dims
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.atleast_1d(x) end

--- x with at least 2 dims
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.atleast_2d(x) end

--- x with at least 2 dims
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.atleast_2d(x) end

--- x with at least 3 dims
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.atleast_3d(x) end

--- x with at least 3 dims
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.atleast_3d(x) end

--- tensors of at least 1 dims one after another along dim 2
---@param tensors tycho.Tensor[]
---@return tycho.Tensor
function tycho.hstack(tensors) end

--- tensors of at least 2 dims one after another along dim 1
---@param tensors tycho.Tensor[]
---@return tycho.Tensor
function tycho.vstack(tensors) end

--- tensors of at least 3 dims one after another along dim 3
---@param tensors tycho.Tensor[]
---@return tycho.Tensor
function tycho.dstack(tensors) end

--- vectors as columns beside matrices
---@param tensors tycho.Tensor[]
---@return tycho.Tensor
function tycho.column_stack(tensors) end

--- a list of parts: so many of near equal size, or cut before the indices in a list or tensor
---@param x tycho.Tensor
---@param sections any
---@param dim? integer
---@return tycho.Tensor
function tycho.tensor_split(x, sections, dim) end

--- a list of parts: so many of near equal size, or cut before the indices in a list or tensor
---@param x tycho.Tensor
---@param sections any
---@param dim? integer
---@return tycho.Tensor
function Tensor.tensor_split(x, sections, dim) end

--- a 2 x n tensor: row and column of each element of the triangle
---@param rows integer
---@param cols integer
---@param k? integer
---@return tycho.Tensor
function tycho.tril_indices(rows, cols, k) end

--- a 2 x n tensor: row and column of each element of the triangle
---@param rows integer
---@param cols integer
---@param k? integer
---@return tycho.Tensor
function tycho.triu_indices(rows, cols, k) end

--- all combinations of the vectors' elements, one row each
---@param tensors tycho.Tensor[]
---@return tycho.Tensor
function tycho.cartesian_prod(tensors) end

--- all choices of r elements of a vector in order, one row each
---@param x tycho.Tensor
---@param r? integer
---@param with_replacement? boolean
---@return tycho.Tensor
function tycho.combinations(x, r, with_replacement) end

--- all choices of r elements of a vector in order, one row each
---@param x tycho.Tensor
---@param r? integer
---@param with_replacement? boolean
---@return tycho.Tensor
function Tensor.combinations(x, r, with_replacement) end

--- a matrix with the matrices along its diagonal
---@param tensors tycho.Tensor[]
---@return tycho.Tensor
function tycho.block_diag(tensors) end

--- (N, C r^2, H, W) as (N, C, H r, W r)
---@param x tycho.Tensor
---@param factor integer
---@return tycho.Tensor
function tycho.pixel_shuffle(x, factor) end

--- (N, C r^2, H, W) as (N, C, H r, W r)
---@param x tycho.Tensor
---@param factor integer
---@return tycho.Tensor
function Tensor.pixel_shuffle(x, factor) end

--- channels (dim 2), which lie in groups, so that each group's first come first
---@param x tycho.Tensor
---@param groups integer
---@return tycho.Tensor
function tycho.channel_shuffle(x, groups) end

--- channels (dim 2), which lie in groups, so that each group's first come first
---@param x tycho.Tensor
---@param groups integer
---@return tycho.Tensor
function Tensor.channel_shuffle(x, groups) end

--- (N, C, H r, W r) as (N, C r^2, H, W)
---@param x tycho.Tensor
---@param factor integer
---@return tycho.Tensor
function tycho.pixel_unshuffle(x, factor) end

--- (N, C, H r, W r) as (N, C r^2, H, W)
---@param x tycho.Tensor
---@param factor integer
---@return tycho.Tensor
function Tensor.pixel_unshuffle(x, factor) end

--- x in another dtype, on another device (both: to(device, dtype)), as target is, or in another memory_format; x itself where nothing changes, unless copy. non_blocking: to a GPU from pinned memory, and from a GPU to pinned memory, without waiting
---@param x tycho.Tensor
---@param target? any
---@param dtype? any
---@param device? string
---@param non_blocking? boolean
---@param copy? boolean
---@param memory_format? string
---@return tycho.Tensor
function tycho.to(x, target, dtype, device, non_blocking, copy, memory_format) end

--- x in another dtype, on another device (both: to(device, dtype)), as target is, or in another memory_format; x itself where nothing changes, unless copy. non_blocking: to a GPU from pinned memory, and from a GPU to pinned memory, without waiting
---@param x tycho.Tensor
---@param target? any
---@param dtype? any
---@param device? string
---@param non_blocking? boolean
---@param copy? boolean
---@param memory_format? string
---@return tycho.Tensor
function Tensor.to(x, target, dtype, device, non_blocking, copy, memory_format) end

--- zeros in x's shape, dtype and layout
---@param x tycho.Tensor
---@param dtype? string
---@param device? string
---@param requires_grad? boolean
---@param pin_memory? boolean
---@return tycho.Tensor
function tycho.zeros_like(x, dtype, device, requires_grad, pin_memory) end

--- zeros in x's shape, dtype and layout
---@param x tycho.Tensor
---@param dtype? string
---@param device? string
---@param requires_grad? boolean
---@param pin_memory? boolean
---@return tycho.Tensor
function Tensor.zeros_like(x, dtype, device, requires_grad, pin_memory) end

--- ones in x's shape, dtype and layout
---@param x tycho.Tensor
---@param dtype? string
---@param device? string
---@param requires_grad? boolean
---@param pin_memory? boolean
---@return tycho.Tensor
function tycho.ones_like(x, dtype, device, requires_grad, pin_memory) end

--- ones in x's shape, dtype and layout
---@param x tycho.Tensor
---@param dtype? string
---@param device? string
---@param requires_grad? boolean
---@param pin_memory? boolean
---@return tycho.Tensor
function Tensor.ones_like(x, dtype, device, requires_grad, pin_memory) end

--- rand in x's shape, dtype and layout
---@param x tycho.Tensor
---@param dtype? string
---@param device? string
---@param requires_grad? boolean
---@param pin_memory? boolean
---@return tycho.Tensor
function tycho.rand_like(x, dtype, device, requires_grad, pin_memory) end

--- rand in x's shape, dtype and layout
---@param x tycho.Tensor
---@param dtype? string
---@param device? string
---@param requires_grad? boolean
---@param pin_memory? boolean
---@return tycho.Tensor
function Tensor.rand_like(x, dtype, device, requires_grad, pin_memory) end

--- randn in x's shape, dtype and layout
---@param x tycho.Tensor
---@param dtype? string
---@param device? string
---@param requires_grad? boolean
---@param pin_memory? boolean
---@return tycho.Tensor
function tycho.randn_like(x, dtype, device, requires_grad, pin_memory) end

--- randn in x's shape, dtype and layout
---@param x tycho.Tensor
---@param dtype? string
---@param device? string
---@param requires_grad? boolean
---@param pin_memory? boolean
---@return tycho.Tensor
function Tensor.randn_like(x, dtype, device, requires_grad, pin_memory) end

--- empty in x's shape, dtype and layout
---@param x tycho.Tensor
---@param dtype? string
---@param device? string
---@param requires_grad? boolean
---@param pin_memory? boolean
---@return tycho.Tensor
function tycho.empty_like(x, dtype, device, requires_grad, pin_memory) end

--- empty in x's shape, dtype and layout
---@param x tycho.Tensor
---@param dtype? string
---@param device? string
---@param requires_grad? boolean
---@param pin_memory? boolean
---@return tycho.Tensor
function Tensor.empty_like(x, dtype, device, requires_grad, pin_memory) end

--- whole numbers low to high, both included, in x's shape and dtype
---@param x tycho.Tensor
---@param low integer
---@param high integer
---@param dtype? string
---@param device? string
---@param requires_grad? boolean
---@param pin_memory? boolean
---@return tycho.Tensor
function tycho.randint_like(x, low, high, dtype, device, requires_grad, pin_memory) end

--- whole numbers low to high, both included, in x's shape and dtype
---@param x tycho.Tensor
---@param low integer
---@param high integer
---@param dtype? string
---@param device? string
---@param requires_grad? boolean
---@param pin_memory? boolean
---@return tycho.Tensor
function Tensor.randint_like(x, low, high, dtype, device, requires_grad, pin_memory) end

--- x's shape, dtype and layout, all value
---@param x tycho.Tensor
---@param value any
---@param dtype? string
---@param device? string
---@param requires_grad? boolean
---@param pin_memory? boolean
---@return tycho.Tensor
function tycho.full_like(x, value, dtype, device, requires_grad, pin_memory) end

--- x's shape, dtype and layout, all value
---@param x tycho.Tensor
---@param value any
---@param dtype? string
---@param device? string
---@param requires_grad? boolean
---@param pin_memory? boolean
---@return tycho.Tensor
function Tensor.full_like(x, value, dtype, device, requires_grad, pin_memory) end

--- normally distributed numbers; mean and std are numbers or tensors, whose common shape is the result's, or numbers for a given size
---@param mean any
---@param std? any
---@param size? any
---@param dtype? string
---@return tycho.Tensor
function tycho.normal(mean, std, size, dtype) end

--- without dim the largest element; with dim the maxima and their indices
---@param x tycho.Tensor
---@param dim? any
---@param keepdim? boolean
---@return tycho.Tensor
function tycho.max(x, dim, keepdim) end

--- without dim the largest element; with dim the maxima and their indices
---@param x tycho.Tensor
---@param dim? any
---@param keepdim? boolean
---@return tycho.Tensor
function Tensor.max(x, dim, keepdim) end

--- without dim the smallest element; with dim the minima and their indices
---@param x tycho.Tensor
---@param dim? any
---@param keepdim? boolean
---@return tycho.Tensor
function tycho.min(x, dim, keepdim) end

--- without dim the smallest element; with dim the minima and their indices
---@param x tycho.Tensor
---@param dim? any
---@param keepdim? boolean
---@return tycho.Tensor
function Tensor.min(x, dim, keepdim) end

--- index of the maximum along dim (among all elements where dim is nil)
---@param x tycho.Tensor
---@param dim? integer
---@param keepdim? boolean
---@return tycho.Tensor
function tycho.argmax(x, dim, keepdim) end

--- index of the maximum along dim (among all elements where dim is nil)
---@param x tycho.Tensor
---@param dim? integer
---@param keepdim? boolean
---@return tycho.Tensor
function Tensor.argmax(x, dim, keepdim) end

--- index of the minimum along dim (among all elements where dim is nil)
---@param x tycho.Tensor
---@param dim? integer
---@param keepdim? boolean
---@return tycho.Tensor
function tycho.argmin(x, dim, keepdim) end

--- index of the minimum along dim (among all elements where dim is nil)
---@param x tycho.Tensor
---@param dim? integer
---@param keepdim? boolean
---@return tycho.Tensor
function Tensor.argmin(x, dim, keepdim) end

--- variance over dim; correction (0 where unbiased is false) is subtracted from the count
---@param x tycho.Tensor
---@param dim? any
---@param unbiased? boolean
---@param keepdim? boolean
---@param correction? number
---@return tycho.Tensor
function tycho.var(x, dim, unbiased, keepdim, correction) end

--- variance over dim; correction (0 where unbiased is false) is subtracted from the count
---@param x tycho.Tensor
---@param dim? any
---@param unbiased? boolean
---@param keepdim? boolean
---@param correction? number
---@return tycho.Tensor
function Tensor.var(x, dim, unbiased, keepdim, correction) end

--- standard deviation over dim
---@param x tycho.Tensor
---@param dim? any
---@param unbiased? boolean
---@param keepdim? boolean
---@param correction? number
---@return tycho.Tensor
function tycho.std(x, dim, unbiased, keepdim, correction) end

--- standard deviation over dim
---@param x tycho.Tensor
---@param dim? any
---@param unbiased? boolean
---@param keepdim? boolean
---@param correction? number
---@return tycho.Tensor
function Tensor.std(x, dim, unbiased, keepdim, correction) end

--- var and mean over dim
---@param x tycho.Tensor
---@param dim? integer|integer[]
---@param correction? number
---@param keepdim? boolean
---@return tycho.Tensor
function tycho.var_mean(x, dim, correction, keepdim) end

--- var and mean over dim
---@param x tycho.Tensor
---@param dim? integer|integer[]
---@param correction? number
---@param keepdim? boolean
---@return tycho.Tensor
function Tensor.var_mean(x, dim, correction, keepdim) end

--- std and mean over dim
---@param x tycho.Tensor
---@param dim? integer|integer[]
---@param correction? number
---@param keepdim? boolean
---@return tycho.Tensor
function tycho.std_mean(x, dim, correction, keepdim) end

--- std and mean over dim
---@param x tycho.Tensor
---@param dim? integer|integer[]
---@param correction? number
---@param keepdim? boolean
---@return tycho.Tensor
function Tensor.std_mean(x, dim, correction, keepdim) end

--- the p-norm over dim; 2 where p is nil or 'fro'
---@param x tycho.Tensor
---@param p? any
---@param dim? integer|integer[]
---@param keepdim? boolean
---@return tycho.Tensor
function tycho.norm(x, p, dim, keepdim) end

--- the p-norm over dim; 2 where p is nil or 'fro'
---@param x tycho.Tensor
---@param p? any
---@param dim? integer|integer[]
---@param keepdim? boolean
---@return tycho.Tensor
function Tensor.norm(x, p, dim, keepdim) end

--- log of the sum of exp(x) over dim, without overflow
---@param x tycho.Tensor
---@param dim integer|integer[]
---@param keepdim? boolean
---@return tycho.Tensor
function tycho.logsumexp(x, dim, keepdim) end

--- log of the sum of exp(x) over dim, without overflow
---@param x tycho.Tensor
---@param dim integer|integer[]
---@param keepdim? boolean
---@return tycho.Tensor
function Tensor.logsumexp(x, dim, keepdim) end

--- how many elements are not 0
---@param x tycho.Tensor
---@param dim? integer|integer[]
---@return tycho.Tensor
function tycho.count_nonzero(x, dim) end

--- how many elements are not 0
---@param x tycho.Tensor
---@param dim? integer|integer[]
---@return tycho.Tensor
function Tensor.count_nonzero(x, dim) end

--- whether both have the same shape and elements (a boolean)
---@param a tycho.Tensor
---@param b tycho.Tensor
---@return tycho.Tensor
function tycho.equal(a, b) end

--- whether both have the same shape and elements (a boolean)
---@param a tycho.Tensor
---@param b tycho.Tensor
---@return tycho.Tensor
function Tensor.equal(a, b) end

--- true where |a - b| <= atol + rtol |b|
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param rtol? number
---@param atol? number
---@param equal_nan? boolean
---@return tycho.Tensor
function tycho.isclose(a, b, rtol, atol, equal_nan) end

--- true where |a - b| <= atol + rtol |b|
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param rtol? number
---@param atol? number
---@param equal_nan? boolean
---@return tycho.Tensor
function Tensor.isclose(a, b, rtol, atol, equal_nan) end

--- whether all elements are close (a boolean)
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param rtol? number
---@param atol? number
---@param equal_nan? boolean
---@return tycho.Tensor
function tycho.allclose(a, b, rtol, atol, equal_nan) end

--- whether all elements are close (a boolean)
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param rtol? number
---@param atol? number
---@param equal_nan? boolean
---@return tycho.Tensor
function Tensor.allclose(a, b, rtol, atol, equal_nan) end

--- minimum and maximum over dim (all dims where nil)
---@param x tycho.Tensor
---@param dim? integer
---@param keepdim? boolean
---@return tycho.Tensor
function tycho.aminmax(x, dim, keepdim) end

--- minimum and maximum over dim (all dims where nil)
---@param x tycho.Tensor
---@param dim? integer
---@param keepdim? boolean
---@return tycho.Tensor
function Tensor.aminmax(x, dim, keepdim) end

--- sum over dim, NaN as 0
---@param x tycho.Tensor
---@param dim? integer|integer[]
---@param keepdim? boolean
---@return tycho.Tensor
function tycho.nansum(x, dim, keepdim) end

--- sum over dim, NaN as 0
---@param x tycho.Tensor
---@param dim? integer|integer[]
---@param keepdim? boolean
---@return tycho.Tensor
function Tensor.nansum(x, dim, keepdim) end

--- mean over dim of what isn't NaN
---@param x tycho.Tensor
---@param dim? integer|integer[]
---@param keepdim? boolean
---@return tycho.Tensor
function tycho.nanmean(x, dim, keepdim) end

--- mean over dim of what isn't NaN
---@param x tycho.Tensor
---@param dim? integer|integer[]
---@param keepdim? boolean
---@return tycho.Tensor
function Tensor.nanmean(x, dim, keepdim) end

--- the indices that put x in order along dim
---@param x tycho.Tensor
---@param dim? integer
---@param descending? boolean
---@param stable? boolean
---@return tycho.Tensor
function tycho.argsort(x, dim, descending, stable) end

--- the indices that put x in order along dim
---@param x tycho.Tensor
---@param dim? integer
---@param descending? boolean
---@param stable? boolean
---@return tycho.Tensor
function Tensor.argsort(x, dim, descending, stable) end

--- x in order along dim 1
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.msort(x) end

--- x in order along dim 1
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.msort(x) end

--- the k-th smallest along dim and its index
---@param x tycho.Tensor
---@param k integer
---@param dim? integer
---@param keepdim? boolean
---@return tycho.Tensor
function tycho.kthvalue(x, k, dim, keepdim) end

--- the k-th smallest along dim and its index
---@param x tycho.Tensor
---@param k integer
---@param dim? integer
---@param keepdim? boolean
---@return tycho.Tensor
function Tensor.kthvalue(x, k, dim, keepdim) end

--- true where an element of x is among values (invert: is not)
---@param x tycho.Tensor
---@param values tycho.Tensor
---@param invert? boolean
---@return tycho.Tensor
function tycho.isin(x, values, invert) end

--- true where an element of x is among values (invert: is not)
---@param x tycho.Tensor
---@param values tycho.Tensor
---@param invert? boolean
---@return tycho.Tensor
function Tensor.isin(x, values, invert) end

--- derivative of lgamma
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.digamma(x) end

--- derivative of lgamma
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.digamma(x) end

--- n-th derivative of digamma
---@param n integer
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.polygamma(n, x) end

--- n-th derivative of digamma
---@param n integer
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.polygamma(n, x) end

--- logarithm of the multivariate gamma function of dimension p
---@param x tycho.Tensor
---@param p integer
---@return tycho.Tensor
function tycho.mvlgamma(x, p) end

--- logarithm of the multivariate gamma function of dimension p
---@param x tycho.Tensor
---@param p integer
---@return tycho.Tensor
function Tensor.mvlgamma(x, p) end

--- NaN and infinities as numbers: posinf and neginf default to the dtype's largest and smallest
---@param x tycho.Tensor
---@param nan? number
---@param posinf? number
---@param neginf? number
---@return tycho.Tensor
function tycho.nan_to_num(x, nan, posinf, neginf) end

--- NaN and infinities as numbers: posinf and neginf default to the dtype's largest and smallest
---@param x tycho.Tensor
---@param nan? number
---@param posinf? number
---@param neginf? number
---@return tycho.Tensor
function Tensor.nan_to_num(x, nan, posinf, neginf) end

--- x limited to min..max; either may be nil, a number or a tensor
---@param x tycho.Tensor
---@param min? tycho.Tensor|number
---@param max? tycho.Tensor|number
---@return tycho.Tensor
function tycho.clamp(x, min, max) end

--- x limited to min..max; either may be nil, a number or a tensor
---@param x tycho.Tensor
---@param min? tycho.Tensor|number
---@param max? tycho.Tensor|number
---@return tycho.Tensor
function Tensor.clamp(x, min, max) end

--- a / b, by elements; rounded towards 0 (trunc) or down (floor), where asked for, in the operands' dtype
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@param rounding_mode? string
---@return tycho.Tensor
function tycho.div(a, b, rounding_mode) end

--- a / b, by elements; rounded towards 0 (trunc) or down (floor), where asked for, in the operands' dtype
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@param rounding_mode? string
---@return tycho.Tensor
function Tensor.div(a, b, rounding_mode) end

--- the larger of x and min
---@param x tycho.Tensor
---@param min tycho.Tensor|number
---@return tycho.Tensor
function tycho.clamp_min(x, min) end

--- the larger of x and min
---@param x tycho.Tensor
---@param min tycho.Tensor|number
---@return tycho.Tensor
function Tensor.clamp_min(x, min) end

--- the smaller of x and max
---@param x tycho.Tensor
---@param max tycho.Tensor|number
---@return tycho.Tensor
function tycho.clamp_max(x, max) end

--- the smaller of x and max
---@param x tycho.Tensor
---@param max tycho.Tensor|number
---@return tycho.Tensor
function Tensor.clamp_max(x, max) end

--- all bits inverted; booleans negated
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.bitwise_not(x) end

--- all bits inverted; booleans negated
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.bitwise_not(x) end

--- 0 below 0, 1 above, values at 0
---@param x tycho.Tensor
---@param values tycho.Tensor|number
---@return tycho.Tensor
function tycho.heaviside(x, values) end

--- 0 below 0, 1 above, values at 0
---@param x tycho.Tensor
---@param values tycho.Tensor|number
---@return tycho.Tensor
function Tensor.heaviside(x, values) end

--- sin(pi x) / (pi x), 1 at 0
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.sinc(x) end

--- sin(pi x) / (pi x), 1 at 0
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.sinc(x) end

--- log(x / (1 - x)); x is first limited to eps .. 1 - eps where eps is given
---@param x tycho.Tensor
---@param eps? number
---@return tycho.Tensor
function tycho.logit(x, eps) end

--- log(x / (1 - x)); x is first limited to eps .. 1 - eps where eps is given
---@param x tycho.Tensor
---@param eps? number
---@return tycho.Tensor
function Tensor.logit(x, eps) end

--- degrees as radians
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.deg2rad(x) end

--- degrees as radians
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.deg2rad(x) end

--- radians as degrees
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.rad2deg(x) end

--- radians as degrees
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.rad2deg(x) end

--- true where x is infinite and positive
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.isposinf(x) end

--- true where x is infinite and positive
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.isposinf(x) end

--- true where x is infinite and negative
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.isneginf(x) end

--- true where x is infinite and negative
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.isneginf(x) end

--- x itself
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.positive(x) end

--- x itself
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.positive(x) end

--- log2(2^a + 2^b), without overflow
---@param a tycho.Tensor
---@param b tycho.Tensor
---@return tycho.Tensor
function tycho.logaddexp2(a, b) end

--- log2(2^a + 2^b), without overflow
---@param a tycho.Tensor
---@param b tycho.Tensor
---@return tycho.Tensor
function Tensor.logaddexp2(a, b) end

--- nearest number of so many decimals, halves to even
---@param x tycho.Tensor
---@param decimals? integer
---@return tycho.Tensor
function tycho.round(x, decimals) end

--- nearest number of so many decimals, halves to even
---@param x tycho.Tensor
---@param decimals? integer
---@return tycho.Tensor
function Tensor.round(x, decimals) end

--- b - alpha * a
---@param a tycho.Tensor
---@param b tycho.Tensor|number
---@param alpha? number
---@return tycho.Tensor
function tycho.rsub(a, b, alpha) end

--- b - alpha * a
---@param a tycho.Tensor
---@param b tycho.Tensor|number
---@param alpha? number
---@return tycho.Tensor
function Tensor.rsub(a, b, alpha) end

--- a to the power of b in float64
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.float_power(a, b) end

--- a to the power of b in float64
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor.float_power(a, b) end

--- differences of neighbours along dim, n times; prepend and append: what comes before x and after it
---@param x tycho.Tensor
---@param n? integer
---@param dim? integer
---@param prepend? tycho.Tensor
---@param append? tycho.Tensor
---@return tycho.Tensor
function tycho.diff(x, n, dim, prepend, append) end

--- differences of neighbours along dim, n times; prepend and append: what comes before x and after it
---@param x tycho.Tensor
---@param n? integer
---@param dim? integer
---@param prepend? tycho.Tensor
---@param append? tycho.Tensor
---@return tycho.Tensor
function Tensor.diff(x, n, dim, prepend, append) end

--- the p-norm of a - b
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param p? number
---@return tycho.Tensor
function tycho.dist(a, b, p) end

--- the p-norm of a - b
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param p? number
---@return tycho.Tensor
function Tensor.dist(a, b, p) end

--- indices of the elements that are not 0, one row each; as_tuple: a result for each dim
---@param x tycho.Tensor
---@param as_tuple? boolean
---@return tycho.Tensor
function tycho.nonzero(x, as_tuple) end

--- indices of the elements that are not 0, one row each; as_tuple: a result for each dim
---@param x tycho.Tensor
---@param as_tuple? boolean
---@return tycho.Tensor
function Tensor.nonzero(x, as_tuple) end

--- indices of the elements that are not 0, one row each
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.argwhere(x) end

--- indices of the elements that are not 0, one row each
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.argwhere(x) end

--- 1 with probability x, else 0; with p like x, 1 with probability p
---@param x tycho.Tensor
---@param p? any
---@return tycho.Tensor
function tycho.bernoulli(x, p) end

--- 1 with probability x, else 0; with p like x, 1 with probability p
---@param x tycho.Tensor
---@param p? any
---@return tycho.Tensor
function Tensor.bernoulli(x, p) end

--- the middle value (the lower of two), without dim of all elements; with dim its index too
---@param x tycho.Tensor
---@param dim? integer
---@param keepdim? boolean
---@return tycho.Tensor
function tycho.median(x, dim, keepdim) end

--- the middle value (the lower of two), without dim of all elements; with dim its index too
---@param x tycho.Tensor
---@param dim? integer
---@param keepdim? boolean
---@return tycho.Tensor
function Tensor.median(x, dim, keepdim) end

--- the middle value (the lower of two), without dim of all elements; with dim its index too; NaN is left out
---@param x tycho.Tensor
---@param dim? integer
---@param keepdim? boolean
---@return tycho.Tensor
function tycho.nanmedian(x, dim, keepdim) end

--- the middle value (the lower of two), without dim of all elements; with dim its index too; NaN is left out
---@param x tycho.Tensor
---@param dim? integer
---@param keepdim? boolean
---@return tycho.Tensor
function Tensor.nanmedian(x, dim, keepdim) end

--- the value below which a part q (a number or a vector, 0..1) of x lies along dim
---@param x tycho.Tensor
---@param q any
---@param dim? integer
---@param keepdim? boolean
---@param interpolation? string
---@return tycho.Tensor
function tycho.quantile(x, q, dim, keepdim, interpolation) end

--- the value below which a part q (a number or a vector, 0..1) of x lies along dim
---@param x tycho.Tensor
---@param q any
---@param dim? integer
---@param keepdim? boolean
---@param interpolation? string
---@return tycho.Tensor
function Tensor.quantile(x, q, dim, keepdim, interpolation) end

--- the value below which a part q (a number or a vector, 0..1) of x lies along dim; NaN is left out
---@param x tycho.Tensor
---@param q any
---@param dim? integer
---@param keepdim? boolean
---@param interpolation? string
---@return tycho.Tensor
function tycho.nanquantile(x, q, dim, keepdim, interpolation) end

--- the value below which a part q (a number or a vector, 0..1) of x lies along dim; NaN is left out
---@param x tycho.Tensor
---@param q any
---@param dim? integer
---@param keepdim? boolean
---@param interpolation? string
---@return tycho.Tensor
function Tensor.nanquantile(x, q, dim, keepdim, interpolation) end

--- the distinct elements (slices along dim) in order; then, where asked for, each one's index among them, and how often each occurs
---@param x tycho.Tensor
---@param sorted? boolean
---@param return_inverse? boolean
---@param return_counts? boolean
---@param dim? integer
---@return tycho.Tensor
function tycho.unique(x, sorted, return_inverse, return_counts, dim) end

--- the distinct elements (slices along dim) in order; then, where asked for, each one's index among them, and how often each occurs
---@param x tycho.Tensor
---@param sorted? boolean
---@param return_inverse? boolean
---@param return_counts? boolean
---@param dim? integer
---@return tycho.Tensor
function Tensor.unique(x, sorted, return_inverse, return_counts, dim) end

--- the elements in row-major order without those that repeat the one before; then, where asked for, each element's index among them, and how often each occurs in a row
---@param x tycho.Tensor
---@param return_inverse? boolean
---@param return_counts? boolean
---@return tycho.Tensor
function tycho.unique_consecutive(x, return_inverse, return_counts) end

--- the elements in row-major order without those that repeat the one before; then, where asked for, each element's index among them, and how often each occurs in a row
---@param x tycho.Tensor
---@param return_inverse? boolean
---@param return_counts? boolean
---@return tycho.Tensor
function Tensor.unique_consecutive(x, return_inverse, return_counts) end

--- the most frequent value along dim (the least of several) and its last index
---@param x tycho.Tensor
---@param dim? integer
---@param keepdim? boolean
---@return tycho.Tensor
function tycho.mode(x, dim, keepdim) end

--- the most frequent value along dim (the least of several) and its last index
---@param x tycho.Tensor
---@param dim? integer
---@param keepdim? boolean
---@return tycho.Tensor
function Tensor.mode(x, dim, keepdim) end

--- how many elements (or how much weight) fall between neighbouring edges: bins equal parts of range = {least, most}, x's own where nil, or a tensor of edges; and the edges
---@param x tycho.Tensor
---@param bins any
---@param range? any
---@param weight? tycho.Tensor
---@param density? boolean
---@return tycho.Tensor
function tycho.histogram(x, bins, range, weight, density) end

--- how many elements (or how much weight) fall between neighbouring edges: bins equal parts of range = {least, most}, x's own where nil, or a tensor of edges; and the edges
---@param x tycho.Tensor
---@param bins any
---@param range? any
---@param weight? tycho.Tensor
---@param density? boolean
---@return tycho.Tensor
function Tensor.histogram(x, bins, range, weight, density) end

--- for each element the index before which it would be put into boundaries
---@param x tycho.Tensor|number
---@param boundaries tycho.Tensor
---@param right? boolean
---@param out_int32? boolean
---@return tycho.Tensor
function tycho.bucketize(x, boundaries, right, out_int32) end

--- for each element the index before which it would be put into boundaries
---@param x tycho.Tensor|number
---@param boundaries tycho.Tensor
---@param right? boolean
---@param out_int32? boolean
---@return tycho.Tensor
function Tensor.bucketize(x, boundaries, right, out_int32) end

--- how many elements fall into each of bins equal parts of min..max (of x's own range where both are 0)
---@param x tycho.Tensor
---@param bins? integer
---@param min? number
---@param max? number
---@return tycho.Tensor
function tycho.histc(x, bins, min, max) end

--- how many elements fall into each of bins equal parts of min..max (of x's own range where both are 0)
---@param x tycho.Tensor
---@param bins? integer
---@param min? number
---@param max? number
---@return tycho.Tensor
function Tensor.histc(x, bins, min, max) end

--- covariances of the rows of x; fweights: how often each column counts, aweights: how much
---@param x tycho.Tensor
---@param correction? integer
---@param fweights? tycho.Tensor
---@param aweights? tycho.Tensor
---@return tycho.Tensor
function tycho.cov(x, correction, fweights, aweights) end

--- covariances of the rows of x; fweights: how often each column counts, aweights: how much
---@param x tycho.Tensor
---@param correction? integer
---@param fweights? tycho.Tensor
---@param aweights? tycho.Tensor
---@return tycho.Tensor
function Tensor.cov(x, correction, fweights, aweights) end

--- correlations of the rows of x
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.corrcoef(x) end

--- correlations of the rows of x
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.corrcoef(x) end

--- product of two matrices
---@param a tycho.Tensor
---@param b tycho.Tensor
---@return tycho.Tensor
function tycho.mm(a, b) end

--- product of two matrices
---@param a tycho.Tensor
---@param b tycho.Tensor
---@return tycho.Tensor
function Tensor.mm(a, b) end

--- products of two batches of matrices
---@param a tycho.Tensor
---@param b tycho.Tensor
---@return tycho.Tensor
function tycho.bmm(a, b) end

--- products of two batches of matrices
---@param a tycho.Tensor
---@param b tycho.Tensor
---@return tycho.Tensor
function Tensor.bmm(a, b) end

--- matrix times vector
---@param a tycho.Tensor
---@param b tycho.Tensor
---@return tycho.Tensor
function tycho.mv(a, b) end

--- matrix times vector
---@param a tycho.Tensor
---@param b tycho.Tensor
---@return tycho.Tensor
function Tensor.mv(a, b) end

--- product of two vectors
---@param a tycho.Tensor
---@param b tycho.Tensor
---@return tycho.Tensor
function tycho.dot(a, b) end

--- product of two vectors
---@param a tycho.Tensor
---@param b tycho.Tensor
---@return tycho.Tensor
function Tensor.dot(a, b) end

--- every element of a times every element of b
---@param a tycho.Tensor
---@param b tycho.Tensor
---@return tycho.Tensor
function tycho.outer(a, b) end

--- every element of a times every element of b
---@param a tycho.Tensor
---@param b tycho.Tensor
---@return tycho.Tensor
function Tensor.outer(a, b) end

--- beta * x + alpha * (a @ b)
---@param x tycho.Tensor
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param beta? number
---@param alpha? number
---@return tycho.Tensor
function tycho.addmm(x, a, b, beta, alpha) end

--- beta * x + alpha * (a @ b)
---@param x tycho.Tensor
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param beta? number
---@param alpha? number
---@return tycho.Tensor
function Tensor.addmm(x, a, b, beta, alpha) end

--- beta * x + alpha * (a @ b)
---@param x tycho.Tensor
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param beta? number
---@param alpha? number
---@return tycho.Tensor
function tycho.baddbmm(x, a, b, beta, alpha) end

--- beta * x + alpha * (a @ b)
---@param x tycho.Tensor
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param beta? number
---@param alpha? number
---@return tycho.Tensor
function Tensor.baddbmm(x, a, b, beta, alpha) end

--- beta * x + alpha * (a @ b)
---@param x tycho.Tensor
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param beta? number
---@param alpha? number
---@return tycho.Tensor
function tycho.addmv(x, a, b, beta, alpha) end

--- beta * x + alpha * (a @ b)
---@param x tycho.Tensor
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param beta? number
---@param alpha? number
---@return tycho.Tensor
function Tensor.addmv(x, a, b, beta, alpha) end

--- beta * x + alpha * the sum over the batch of a @ b
---@param x tycho.Tensor
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param beta? number
---@param alpha? number
---@return tycho.Tensor
function tycho.addbmm(x, a, b, beta, alpha) end

--- beta * x + alpha * the sum over the batch of a @ b
---@param x tycho.Tensor
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param beta? number
---@param alpha? number
---@return tycho.Tensor
function Tensor.addbmm(x, a, b, beta, alpha) end

--- beta * x + alpha * outer(a, b)
---@param x tycho.Tensor
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param beta? number
---@param alpha? number
---@return tycho.Tensor
function tycho.addr(x, a, b, beta, alpha) end

--- beta * x + alpha * outer(a, b)
---@param x tycho.Tensor
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param beta? number
---@param alpha? number
---@return tycho.Tensor
function Tensor.addr(x, a, b, beta, alpha) end

--- sums of products over the last dims
---@param a tycho.Tensor
---@param b tycho.Tensor
---@return tycho.Tensor
function tycho.inner(a, b) end

--- sums of products over the last dims
---@param a tycho.Tensor
---@param b tycho.Tensor
---@return tycho.Tensor
function Tensor.inner(a, b) end

--- sums of products over dims: the last of a with so many first ones of b, or {{dims of a}, {dims of b}}
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param dims? any
---@return tycho.Tensor
function tycho.tensordot(a, b, dims) end

--- sums of products over dims: the last of a with so many first ones of b, or {{dims of a}, {dims of b}}
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param dims? any
---@return tycho.Tensor
function Tensor.tensordot(a, b, dims) end

--- every element of a times the whole of b
---@param a tycho.Tensor
---@param b tycho.Tensor
---@return tycho.Tensor
function tycho.kron(a, b) end

--- every element of a times the whole of b
---@param a tycho.Tensor
---@param b tycho.Tensor
---@return tycho.Tensor
function Tensor.kron(a, b) end

--- a square matrix n times with itself
---@param x tycho.Tensor
---@param n integer
---@return tycho.Tensor
function tycho.matrix_power(x, n) end

--- a square matrix n times with itself
---@param x tycho.Tensor
---@param n integer
---@return tycho.Tensor
function Tensor.matrix_power(x, n) end

--- vector product along a dim of size 3
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param dim? integer
---@return tycho.Tensor
function tycho.cross(a, b, dim) end

--- vector product along a dim of size 3
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param dim? integer
---@return tycho.Tensor
function Tensor.cross(a, b, dim) end

--- p-norms of the differences of every row of a with every row of b
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param p? number
---@return tycho.Tensor
function tycho.cdist(a, b, p) end

--- p-norms of the differences of every row of a with every row of b
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param p? number
---@return tycho.Tensor
function Tensor.cdist(a, b, p) end

--- dot product over the product of the norms along dim
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param dim? integer
---@param eps? number
---@return tycho.Tensor
function tycho.cosine_similarity(a, b, dim, eps) end

--- dot product over the product of the norms along dim
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param dim? integer
---@param eps? number
---@return tycho.Tensor
function Tensor.cosine_similarity(a, b, dim, eps) end

--- p-norms of the differences of all pairs of rows, in order
---@param x tycho.Tensor
---@param p? number
---@return tycho.Tensor
function tycho.pdist(x, p) end

--- p-norms of the differences of all pairs of rows, in order
---@param x tycho.Tensor
---@param p? number
---@return tycho.Tensor
function Tensor.pdist(x, p) end

--- x with each slice along dim whose p-norm is above maxnorm scaled down to it
---@param x tycho.Tensor
---@param p number
---@param dim integer
---@param maxnorm number
---@return tycho.Tensor
function tycho.renorm(x, p, dim, maxnorm) end

--- x with each slice along dim whose p-norm is above maxnorm scaled down to it
---@param x tycho.Tensor
---@param p number
---@param dim integer
---@param maxnorm number
---@return tycho.Tensor
function Tensor.renorm(x, p, dim, maxnorm) end

--- p-norm of a - b + eps along the last dim
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param p? number
---@param eps? number
---@param keepdim? boolean
---@return tycho.Tensor
function tycho.pairwise_distance(a, b, p, eps, keepdim) end

--- p-norm of a - b + eps along the last dim
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param p? number
---@param eps? number
---@param keepdim? boolean
---@return tycho.Tensor
function Tensor.pairwise_distance(a, b, p, eps, keepdim) end

--- a^T weight[k] b + bias[k] for each k
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param weight tycho.Tensor
---@param bias? tycho.Tensor
---@return tycho.Tensor
function tycho.bilinear(a, b, weight, bias) end

--- a^T weight[k] b + bias[k] for each k
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param weight tycho.Tensor
---@param bias? tycho.Tensor
---@return tycho.Tensor
function Tensor.bilinear(a, b, weight, bias) end

--- activation(x @ weight^T + bias)
---@param x tycho.Tensor
---@param weight tycho.Tensor
---@param bias? tycho.Tensor
---@param activation? string
---@return tycho.Tensor
function tycho.linear(x, weight, bias, activation) end

--- activation(x @ weight^T + bias)
---@param x tycho.Tensor
---@param weight tycho.Tensor
---@param bias? tycho.Tensor
---@param activation? string
---@return tycho.Tensor
function Tensor.linear(x, weight, bias, activation) end

--- the elements of dim that the vector index names
---@param x tycho.Tensor
---@param dim integer
---@param index tycho.Tensor
---@return tycho.Tensor
function tycho.index_select(x, dim, index) end

--- the elements of dim that the vector index names
---@param x tycho.Tensor
---@param dim integer
---@param index tycho.Tensor
---@return tycho.Tensor
function Tensor.index_select(x, dim, index) end

--- x with alpha times src's slices added at index along dim
---@param x tycho.Tensor
---@param dim integer
---@param index tycho.Tensor
---@param src tycho.Tensor
---@param alpha? number
---@return tycho.Tensor
function tycho.index_add(x, dim, index, src, alpha) end

--- x with alpha times src's slices added at index along dim
---@param x tycho.Tensor
---@param dim integer
---@param index tycho.Tensor
---@param src tycho.Tensor
---@param alpha? number
---@return tycho.Tensor
function Tensor.index_add(x, dim, index, src, alpha) end

--- the elements where mask is true, as a vector
---@param x tycho.Tensor
---@param mask tycho.Tensor
---@return tycho.Tensor
function tycho.masked_select(x, mask) end

--- the elements where mask is true, as a vector
---@param x tycho.Tensor
---@param mask tycho.Tensor
---@return tycho.Tensor
function Tensor.masked_select(x, mask) end

--- the rows of weight that ids name; that of padding_idx gets no gradient; max_norm: rows that are named become no longer, in place; scale_grad_by_freq: an id's gradients are divided by how often it is there; they are dense, sparse or not
---@param ids tycho.Tensor
---@param weight tycho.Tensor
---@param padding_idx? integer
---@param max_norm? number
---@param norm_type? number
---@param scale_grad_by_freq? boolean
---@param sparse? boolean
---@return tycho.Tensor
function tycho.embedding(ids, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse) end

--- the rows of weight that ids name; that of padding_idx gets no gradient; max_norm: rows that are named become no longer, in place; scale_grad_by_freq: an id's gradients are divided by how often it is there; they are dense, sparse or not
---@param ids tycho.Tensor
---@param weight tycho.Tensor
---@param padding_idx? integer
---@param max_norm? number
---@param norm_type? number
---@param scale_grad_by_freq? boolean
---@param sparse? boolean
---@return tycho.Tensor
function Tensor.embedding(ids, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse) end

--- sum, mean or maximum of the rows of weight that each row of ids names, or each bag that begins at an offset (include_last_offset: the last one is the end); mode sum takes a weight for each id; padding_idx takes no part
---@param ids tycho.Tensor
---@param weight tycho.Tensor
---@param offsets? tycho.Tensor
---@param max_norm? number
---@param norm_type? number
---@param mode? string
---@param per_sample_weights? tycho.Tensor
---@param include_last_offset? boolean
---@param padding_idx? integer
---@param scale_grad_by_freq? boolean
---@param sparse? boolean
---@return tycho.Tensor
function tycho.embedding_bag(ids, weight, offsets, max_norm, norm_type, mode, per_sample_weights, include_last_offset, padding_idx, scale_grad_by_freq, sparse) end

--- sum, mean or maximum of the rows of weight that each row of ids names, or each bag that begins at an offset (include_last_offset: the last one is the end); mode sum takes a weight for each id; padding_idx takes no part
---@param ids tycho.Tensor
---@param weight tycho.Tensor
---@param offsets? tycho.Tensor
---@param max_norm? number
---@param norm_type? number
---@param mode? string
---@param per_sample_weights? tycho.Tensor
---@param include_last_offset? boolean
---@param padding_idx? integer
---@param scale_grad_by_freq? boolean
---@param sparse? boolean
---@return tycho.Tensor
function Tensor.embedding_bag(ids, weight, offsets, max_norm, norm_type, mode, per_sample_weights, include_last_offset, padding_idx, scale_grad_by_freq, sparse) end

--- 1 at each id's place along a new last dim of size num_classes (the largest id where nil)
---@param ids tycho.Tensor
---@param num_classes? integer
---@return tycho.Tensor
function tycho.one_hot(ids, num_classes) end

--- 1 at each id's place along a new last dim of size num_classes (the largest id where nil)
---@param ids tycho.Tensor
---@param num_classes? integer
---@return tycho.Tensor
function Tensor.one_hot(ids, num_classes) end

--- x with src written at index along dim
---@param x tycho.Tensor
---@param dim integer
---@param index tycho.Tensor
---@param src tycho.Tensor|number
---@return tycho.Tensor
function tycho.index_copy(x, dim, index, src) end

--- x with src written at index along dim
---@param x tycho.Tensor
---@param dim integer
---@param index tycho.Tensor
---@param src tycho.Tensor|number
---@return tycho.Tensor
function Tensor.index_copy(x, dim, index, src) end

--- x with value written at index along dim
---@param x tycho.Tensor
---@param dim integer
---@param index tycho.Tensor
---@param value tycho.Tensor|number
---@return tycho.Tensor
function tycho.index_fill(x, dim, index, value) end

--- x with value written at index along dim
---@param x tycho.Tensor
---@param dim integer
---@param index tycho.Tensor
---@param value tycho.Tensor|number
---@return tycho.Tensor
function Tensor.index_fill(x, dim, index, value) end

--- the elements that index names in row-major order
---@param x tycho.Tensor
---@param index tycho.Tensor
---@return tycho.Tensor
function tycho.take(x, index) end

--- the elements that index names in row-major order
---@param x tycho.Tensor
---@param index tycho.Tensor
---@return tycho.Tensor
function Tensor.take(x, index) end

--- x's elements at index along dim; other dims broadcast
---@param x tycho.Tensor
---@param index tycho.Tensor
---@param dim? integer
---@return tycho.Tensor
function tycho.take_along_dim(x, index, dim) end

--- x's elements at index along dim; other dims broadcast
---@param x tycho.Tensor
---@param index tycho.Tensor
---@param dim? integer
---@return tycho.Tensor
function Tensor.take_along_dim(x, index, dim) end

--- x with src's elements, in order, where mask is true
---@param x tycho.Tensor
---@param mask tycho.Tensor
---@param src tycho.Tensor
---@return tycho.Tensor
function tycho.masked_scatter(x, mask, src) end

--- x with src's elements, in order, where mask is true
---@param x tycho.Tensor
---@param mask tycho.Tensor
---@param src tycho.Tensor
---@return tycho.Tensor
function Tensor.masked_scatter(x, mask, src) end

--- sums of products by Einstein's convention, for instance 'bij,bjk->bik', of the tensors given or of a list of them; ... stands for further dims
---@param equation string
---@param a any
---@param b? tycho.Tensor
---@param c? tycho.Tensor
---@param d? tycho.Tensor
---@param e? tycho.Tensor
---@param f? tycho.Tensor
---@return tycho.Tensor
function tycho.einsum(equation, a, b, c, d, e, f) end

--- the lower triangular L of x = L L^T, for a positive-definite x (upper: L^T)
---@param x tycho.Tensor
---@param upper? boolean
---@return tycho.Tensor
function tycho.linalg.cholesky(x, upper) end

--- Q with orthonormal columns and the upper triangular R of x = Q R (mode r: R alone)
---@param x tycho.Tensor
---@param mode? string
---@return tycho.Tensor
function tycho.linalg.qr(x, mode) end

--- eigenvalues of symmetric matrices in ascending order, and as columns their vectors; one triangle is read
---@param x tycho.Tensor
---@param UPLO? string
---@return tycho.Tensor
function tycho.linalg.eigh(x, UPLO) end

--- eigenvalues of symmetric matrices in ascending order
---@param x tycho.Tensor
---@param UPLO? string
---@return tycho.Tensor
function tycho.linalg.eigvalsh(x, UPLO) end

--- U, S and V^T of x = U diag(S) V^T, S descending; without full_matrices as many columns and rows as there are values
---@param x tycho.Tensor
---@param full_matrices? boolean
---@return tycho.Tensor
function tycho.linalg.svd(x, full_matrices) end

--- singular values, descending
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.linalg.svdvals(x) end

--- x of a x = b (left=false: of x a = b) for square matrices a
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param left? boolean
---@return tycho.Tensor
function tycho.linalg.solve(a, b, left) end

--- x of a x = b (left=false: of x a = b) for triangular matrices a; the other triangle isn't read
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param upper boolean
---@param left? boolean
---@param unitriangular? boolean
---@return tycho.Tensor
function tycho.linalg.solve_triangular(a, b, upper, left, unitriangular) end

--- inverses of square matrices
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.linalg.inv(x) end

--- sign and logarithm of the absolute value of determinants
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.linalg.slogdet(x) end

--- determinants of square matrices; without a gradient where one is singular
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.linalg.det(x) end

--- x with the least norm of a x - b; where several have it, the one that is least itself. a must have full rank
---@param a tycho.Tensor
---@param b tycho.Tensor
---@return tycho.Tensor
function tycho.linalg.lstsq(a, b) end

--- Moore-Penrose pseudoinverses; singular values up to rtol times the largest count as 0
---@param x tycho.Tensor
---@param rtol? number
---@return tycho.Tensor
function tycho.linalg.pinv(x, rtol) end

--- how many singular values are above atol and above rtol times the largest
---@param x tycho.Tensor
---@param atol? number
---@param rtol? number
---@return tycho.Tensor
function tycho.linalg.matrix_rank(x, atol, rtol) end

--- ord-norm (2 where nil) over dim (all dims where nil)
---@param x tycho.Tensor
---@param ord? any
---@param dim? any
---@param keepdim? boolean
---@return tycho.Tensor
function tycho.linalg.vector_norm(x, ord, dim, keepdim) end

--- norm of the matrices in two dims (the last two where nil): 'fro' (where nil), 'nuc', inf, -inf, 1, -1, 2 or -2
---@param x tycho.Tensor
---@param ord? any
---@param dim? any
---@param keepdim? boolean
---@return tycho.Tensor
function tycho.linalg.matrix_norm(x, ord, dim, keepdim) end

--- vector_norm or, where ord is given and x is a matrix or dim has two dims, matrix_norm
---@param x tycho.Tensor
---@param ord? any
---@param dim? any
---@param keepdim? boolean
---@return tycho.Tensor
function tycho.linalg.norm(x, ord, dim, keepdim) end

--- condition numbers: the p-norm (2 where nil) of x times that of its inverse
---@param x tycho.Tensor
---@param p? any
---@return tycho.Tensor
function tycho.linalg.cond(x, p) end

--- sums of products along dim
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param dim? integer
---@return tycho.Tensor
function tycho.linalg.vecdot(a, b, dim) end

--- product of two or more matrices, in the order that takes the fewest multiplications
---@param tensors tycho.Tensor[]
---@return tycho.Tensor
function tycho.linalg.multi_dot(tensors) end

--- e to the power of square matrices
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.linalg.matrix_exp(x) end

--- the diagonals of matrices, as their last dim
---@param x tycho.Tensor
---@param offset? integer
---@param dim1? integer
---@param dim2? integer
---@return tycho.Tensor
function tycho.linalg.diagonal(x, offset, dim1, dim2) end

--- logarithm of determinants, NaN where they are negative
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.logdet(x) end

--- logarithm of determinants, NaN where they are negative
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.logdet(x) end

--- U, S and V (linalg.svd gives V^T)
---@param x tycho.Tensor
---@param some? boolean
---@return tycho.Tensor
function tycho.svd(x, some) end

--- U, S and V (linalg.svd gives V^T)
---@param x tycho.Tensor
---@param some? boolean
---@return tycho.Tensor
function Tensor.svd(x, some) end

--- x of A x = b, where l is A's Cholesky factor
---@param b tycho.Tensor
---@param l tycho.Tensor
---@param upper? boolean
---@return tycho.Tensor
function tycho.cholesky_solve(b, l, upper) end

--- x of A x = b, where l is A's Cholesky factor
---@param b tycho.Tensor
---@param l tycho.Tensor
---@param upper? boolean
---@return tycho.Tensor
function Tensor.cholesky_solve(b, l, upper) end

--- inverse of the matrix whose Cholesky factor l is
---@param l tycho.Tensor
---@param upper? boolean
---@return tycho.Tensor
function tycho.cholesky_inverse(l, upper) end

--- inverse of the matrix whose Cholesky factor l is
---@param l tycho.Tensor
---@param upper? boolean
---@return tycho.Tensor
function Tensor.cholesky_inverse(l, upper) end

--- integral along dim by the trapezoidal rule, at places x or dx apart
---@param y tycho.Tensor
---@param x? any
---@param dim? integer
---@param dx? number
---@return tycho.Tensor
function tycho.trapezoid(y, x, dim, dx) end

--- integral along dim by the trapezoidal rule, at places x or dx apart
---@param y tycho.Tensor
---@param x? any
---@param dim? integer
---@param dx? number
---@return tycho.Tensor
function Tensor.trapezoid(y, x, dim, dx) end

--- trapezoid up to each place along dim, from the second on
---@param y tycho.Tensor
---@param x? any
---@param dim? integer
---@param dx? number
---@return tycho.Tensor
function tycho.cumulative_trapezoid(y, x, dim, dx) end

--- trapezoid up to each place along dim, from the second on
---@param y tycho.Tensor
---@param x? any
---@param dim? integer
---@param dx? number
---@return tycho.Tensor
function Tensor.cumulative_trapezoid(y, x, dim, dx) end

--- the powers of a vector's elements as rows, from n - 1 (n: its size) down to 0, or up
---@param x tycho.Tensor
---@param n? integer
---@param increasing? boolean
---@return tycho.Tensor
function tycho.vander(x, n, increasing) end

--- the powers of a vector's elements as rows, from n - 1 (n: its size) down to 0, or up
---@param x tycho.Tensor
---@param n? integer
---@param increasing? boolean
---@return tycho.Tensor
function Tensor.vander(x, n, increasing) end

--- pairs of a real part and an imaginary one (0 where nil)
---@param real tycho.Tensor
---@param imag? tycho.Tensor
---@return tycho.Tensor
function tycho.fft.complex(real, imag) end

--- pairs of these absolute values and angles (radians)
---@param abs tycho.Tensor
---@param angle tycho.Tensor
---@return tycho.Tensor
function tycho.fft.polar(abs, angle) end

--- absolute values of pairs; the gradient at 0 is 0
---@param z tycho.Tensor
---@return tycho.Tensor
function tycho.fft.abs(z) end

--- angles of pairs, in radians
---@param z tycho.Tensor
---@return tycho.Tensor
function tycho.fft.angle(z) end

--- pairs with the other sign of the imaginary part
---@param z tycho.Tensor
---@return tycho.Tensor
function tycho.fft.conj(z) end

--- products of pairs, with broadcasting
---@param a tycho.Tensor
---@param b tycho.Tensor
---@return tycho.Tensor
function tycho.fft.mul(a, b) end

--- Fourier transform of pairs along dim, which counts the dims before the pairs'; n: elements, cut or filled up with zeros
---@param x tycho.Tensor
---@param n? integer
---@param dim? integer
---@param norm? string
---@return tycho.Tensor
function tycho.fft.fft(x, n, dim, norm) end

--- the inverse of fft.fft: pairs from pairs
---@param x tycho.Tensor
---@param n? integer
---@param dim? integer
---@param norm? string
---@return tycho.Tensor
function tycho.fft.ifft(x, n, dim, norm) end

--- Fourier transform of real elements along dim: the first n / 2 + 1 pairs, of which the others are conjugates
---@param x tycho.Tensor
---@param n? integer
---@param dim? integer
---@param norm? string
---@return tycho.Tensor
function tycho.fft.rfft(x, n, dim, norm) end

--- the inverse of fft.rfft: n real elements (2 (m - 1) where nil) of a dim from m pairs
---@param x tycho.Tensor
---@param n? integer
---@param dim? integer
---@param norm? string
---@return tycho.Tensor
function tycho.fft.irfft(x, n, dim, norm) end

--- n real sums (2 (m - 1) where nil) of the m pairs that a signal with conjugates begins with
---@param x tycho.Tensor
---@param n? integer
---@param dim? integer
---@param norm? string
---@return tycho.Tensor
function tycho.fft.hfft(x, n, dim, norm) end

--- the inverse of fft.hfft: the first n / 2 + 1 pairs from n real elements
---@param x tycho.Tensor
---@param n? integer
---@param dim? integer
---@param norm? string
---@return tycho.Tensor
function tycho.fft.ihfft(x, n, dim, norm) end

--- fft.fft over the last two dims, or those named; s: their sizes
---@param x tycho.Tensor
---@param s? integer[]
---@param dim? integer[]
---@param norm? string
---@return tycho.Tensor
function tycho.fft.fft2(x, s, dim, norm) end

--- fft.fft over all dims, or those named; s: their sizes
---@param x tycho.Tensor
---@param s? integer[]
---@param dim? integer[]
---@param norm? string
---@return tycho.Tensor
function tycho.fft.fftn(x, s, dim, norm) end

--- fft.ifft over the last two dims, or those named; s: their sizes
---@param x tycho.Tensor
---@param s? integer[]
---@param dim? integer[]
---@param norm? string
---@return tycho.Tensor
function tycho.fft.ifft2(x, s, dim, norm) end

--- fft.ifft over all dims, or those named; s: their sizes
---@param x tycho.Tensor
---@param s? integer[]
---@param dim? integer[]
---@param norm? string
---@return tycho.Tensor
function tycho.fft.ifftn(x, s, dim, norm) end

--- fft.rfft over the last two dims, or those named; s: their sizes
---@param x tycho.Tensor
---@param s? integer[]
---@param dim? integer[]
---@param norm? string
---@return tycho.Tensor
function tycho.fft.rfft2(x, s, dim, norm) end

--- fft.rfft over all dims, or those named; s: their sizes
---@param x tycho.Tensor
---@param s? integer[]
---@param dim? integer[]
---@param norm? string
---@return tycho.Tensor
function tycho.fft.rfftn(x, s, dim, norm) end

--- fft.irfft over the last two dims, or those named; s: their sizes
---@param x tycho.Tensor
---@param s? integer[]
---@param dim? integer[]
---@param norm? string
---@return tycho.Tensor
function tycho.fft.irfft2(x, s, dim, norm) end

--- fft.irfft over all dims, or those named; s: their sizes
---@param x tycho.Tensor
---@param s? integer[]
---@param dim? integer[]
---@param norm? string
---@return tycho.Tensor
function tycho.fft.irfftn(x, s, dim, norm) end

--- the frequencies of fft.fft's n results, with d between samples
---@param n integer
---@param d? number
---@param dtype? string
---@param device? string
---@return tycho.Tensor
function tycho.fft.fftfreq(n, d, dtype, device) end

--- the frequencies of fft.rfft's n / 2 + 1 results, with d between samples
---@param n integer
---@param d? number
---@param dtype? string
---@param device? string
---@return tycho.Tensor
function tycho.fft.rfftfreq(n, d, dtype, device) end

--- frequency 0 in the middle of the dims named
---@param x tycho.Tensor
---@param dim integer[]
---@return tycho.Tensor
function tycho.fft.fftshift(x, dim) end

--- the inverse of fft.fftshift
---@param x tycho.Tensor
---@param dim integer[]
---@return tycho.Tensor
function tycho.fft.ifftshift(x, dim) end

--- the Hann window of n elements; periodic=false: a symmetric one
---@param n integer
---@param periodic? boolean
---@param dtype? string
---@param device? string
---@return tycho.Tensor
function tycho.hann_window(n, periodic, dtype, device) end

--- the Hamming window of n elements; periodic=false: a symmetric one
---@param n integer
---@param periodic? boolean
---@param dtype? string
---@param device? string
---@return tycho.Tensor
function tycho.hamming_window(n, periodic, dtype, device) end

--- the Blackman window of n elements; periodic=false: a symmetric one
---@param n integer
---@param periodic? boolean
---@param dtype? string
---@param device? string
---@return tycho.Tensor
function tycho.blackman_window(n, periodic, dtype, device) end

--- spectra of pieces of n_fft elements, hop_length (n_fft / 4) apart: of (L) or (N, L) real elements pairs (N, n_fft / 2 + 1, pieces, 2)
---@param x tycho.Tensor
---@param n_fft integer
---@param hop_length? integer
---@param win_length? integer
---@param window? tycho.Tensor
---@param center? boolean
---@param pad_mode? string
---@param normalized? boolean
---@param onesided? boolean
---@return tycho.Tensor
function tycho.stft(x, n_fft, hop_length, win_length, window, center, pad_mode, normalized, onesided) end

--- spectra of pieces of n_fft elements, hop_length (n_fft / 4) apart: of (L) or (N, L) real elements pairs (N, n_fft / 2 + 1, pieces, 2)
---@param x tycho.Tensor
---@param n_fft integer
---@param hop_length? integer
---@param win_length? integer
---@param window? tycho.Tensor
---@param center? boolean
---@param pad_mode? string
---@param normalized? boolean
---@param onesided? boolean
---@return tycho.Tensor
function Tensor.stft(x, n_fft, hop_length, win_length, window, center, pad_mode, normalized, onesided) end

--- the elements whose stft is x, pairs (N, n_fft / 2 + 1, pieces, 2), nearest by least squares; length: how many (what the pieces hold)
---@param x tycho.Tensor
---@param n_fft integer
---@param hop_length? integer
---@param win_length? integer
---@param window? tycho.Tensor
---@param center? boolean
---@param normalized? boolean
---@param onesided? boolean
---@param length? integer
---@return tycho.Tensor
function tycho.istft(x, n_fft, hop_length, win_length, window, center, normalized, onesided, length) end

--- the elements whose stft is x, pairs (N, n_fft / 2 + 1, pieces, 2), nearest by least squares; length: how many (what the pieces hold)
---@param x tycho.Tensor
---@param n_fft integer
---@param hop_length? integer
---@param win_length? integer
---@param window? tycho.Tensor
---@param center? boolean
---@param normalized? boolean
---@param onesided? boolean
---@param length? integer
---@return tycho.Tensor
function Tensor.istft(x, n_fft, hop_length, win_length, window, center, normalized, onesided, length) end

--- x with values written (or added) where a list of index tensors, one for each dim from the first on, or of masks points
---@param x tycho.Tensor
---@param indices any
---@param values tycho.Tensor|number
---@param accumulate? boolean
---@return tycho.Tensor
function tycho.index_put(x, indices, values, accumulate) end

--- x with values written (or added) where a list of index tensors, one for each dim from the first on, or of masks points
---@param x tycho.Tensor
---@param indices any
---@param values tycho.Tensor|number
---@param accumulate? boolean
---@return tycho.Tensor
function Tensor.index_put(x, indices, values, accumulate) end

--- x with src's elements written (or added) where index points in row-major order
---@param x tycho.Tensor
---@param index tycho.Tensor
---@param src tycho.Tensor
---@param accumulate? boolean
---@return tycho.Tensor
function tycho.put(x, index, src, accumulate) end

--- x with src's elements written (or added) where index points in row-major order
---@param x tycho.Tensor
---@param index tycho.Tensor
---@param src tycho.Tensor
---@param accumulate? boolean
---@return tycho.Tensor
function Tensor.put(x, index, src, accumulate) end

--- x reduced with src's elements at index along dim; without include_self only src's count where there are any
---@param x tycho.Tensor
---@param dim integer
---@param index tycho.Tensor
---@param src tycho.Tensor
---@param reduce string
---@param include_self? boolean
---@return tycho.Tensor
function tycho.scatter_reduce(x, dim, index, src, reduce, include_self) end

--- x reduced with src's elements at index along dim; without include_self only src's count where there are any
---@param x tycho.Tensor
---@param dim integer
---@param index tycho.Tensor
---@param src tycho.Tensor
---@param reduce string
---@param include_self? boolean
---@return tycho.Tensor
function Tensor.scatter_reduce(x, dim, index, src, reduce, include_self) end

--- x reduced with src's slices at the positions that the vector index names along dim
---@param x tycho.Tensor
---@param dim integer
---@param index tycho.Tensor
---@param src tycho.Tensor
---@param reduce string
---@param include_self? boolean
---@return tycho.Tensor
function tycho.index_reduce(x, dim, index, src, reduce, include_self) end

--- x reduced with src's slices at the positions that the vector index names along dim
---@param x tycho.Tensor
---@param dim integer
---@param index tycho.Tensor
---@param src tycho.Tensor
---@param reduce string
---@param include_self? boolean
---@return tycho.Tensor
function Tensor.index_reduce(x, dim, index, src, reduce, include_self) end

--- x with src written over elements first to last of dim, every step-th
---@param x tycho.Tensor
---@param src tycho.Tensor
---@param dim? integer
---@param first? integer
---@param last? integer
---@param step? integer
---@return tycho.Tensor
function tycho.slice_scatter(x, src, dim, first, last, step) end

--- x with src written over elements first to last of dim, every step-th
---@param x tycho.Tensor
---@param src tycho.Tensor
---@param dim? integer
---@param first? integer
---@param last? integer
---@param step? integer
---@return tycho.Tensor
function Tensor.slice_scatter(x, src, dim, first, last, step) end

--- x with src written over element index of dim
---@param x tycho.Tensor
---@param src tycho.Tensor
---@param dim integer
---@param index integer
---@return tycho.Tensor
function tycho.select_scatter(x, src, dim, index) end

--- x with src written over element index of dim
---@param x tycho.Tensor
---@param src tycho.Tensor
---@param dim integer
---@param index integer
---@return tycho.Tensor
function Tensor.select_scatter(x, src, dim, index) end

--- x with src written over a diagonal
---@param x tycho.Tensor
---@param src tycho.Tensor
---@param offset? integer
---@param dim1? integer
---@param dim2? integer
---@return tycho.Tensor
function tycho.diagonal_scatter(x, src, offset, dim1, dim2) end

--- x with src written over a diagonal
---@param x tycho.Tensor
---@param src tycho.Tensor
---@param offset? integer
---@param dim1? integer
---@param dim2? integer
---@return tycho.Tensor
function Tensor.diagonal_scatter(x, src, offset, dim1, dim2) end

--- positions in row-major order as indices into a tensor of that size, a tensor for each dim
---@param index tycho.Tensor
---@param size integer|integer[]
---@return tycho.Tensor
function tycho.unravel_index(index, size) end

--- positions in row-major order as indices into a tensor of that size, a tensor for each dim
---@param index tycho.Tensor
---@param size integer|integer[]
---@return tycho.Tensor
function Tensor.unravel_index(index, size) end

--- 1-D convolution of x (N,C,L) with weight (O,C/groups,k); padding may be 'same' or 'valid'
---@param x tycho.Tensor
---@param weight tycho.Tensor
---@param bias? tycho.Tensor
---@param stride? integer
---@param padding? any
---@param dilation? integer
---@param groups? integer
---@return tycho.Tensor
function tycho.conv1d(x, weight, bias, stride, padding, dilation, groups) end

--- 1-D convolution of x (N,C,L) with weight (O,C/groups,k); padding may be 'same' or 'valid'
---@param x tycho.Tensor
---@param weight tycho.Tensor
---@param bias? tycho.Tensor
---@param stride? integer
---@param padding? any
---@param dilation? integer
---@param groups? integer
---@return tycho.Tensor
function Tensor.conv1d(x, weight, bias, stride, padding, dilation, groups) end

--- transposed 2-D convolution of x (N,C,H,W) with weight (C,O/groups,kH,kW)
---@param x tycho.Tensor
---@param weight tycho.Tensor
---@param bias? tycho.Tensor
---@param stride? integer|integer[]
---@param padding? integer|integer[]
---@param output_padding? integer|integer[]
---@param groups? integer
---@param dilation? integer|integer[]
---@return tycho.Tensor
function tycho.conv_transpose2d(x, weight, bias, stride, padding, output_padding, groups, dilation) end

--- transposed 2-D convolution of x (N,C,H,W) with weight (C,O/groups,kH,kW)
---@param x tycho.Tensor
---@param weight tycho.Tensor
---@param bias? tycho.Tensor
---@param stride? integer|integer[]
---@param padding? integer|integer[]
---@param output_padding? integer|integer[]
---@param groups? integer
---@param dilation? integer|integer[]
---@return tycho.Tensor
function Tensor.conv_transpose2d(x, weight, bias, stride, padding, output_padding, groups, dilation) end

--- transposed 1-D convolution of x (N,C,L) with weight (C,O/groups,k)
---@param x tycho.Tensor
---@param weight tycho.Tensor
---@param bias? tycho.Tensor
---@param stride? integer
---@param padding? integer
---@param output_padding? integer
---@param groups? integer
---@param dilation? integer
---@return tycho.Tensor
function tycho.conv_transpose1d(x, weight, bias, stride, padding, output_padding, groups, dilation) end

--- transposed 1-D convolution of x (N,C,L) with weight (C,O/groups,k)
---@param x tycho.Tensor
---@param weight tycho.Tensor
---@param bias? tycho.Tensor
---@param stride? integer
---@param padding? integer
---@param output_padding? integer
---@param groups? integer
---@param dilation? integer
---@return tycho.Tensor
function Tensor.conv_transpose1d(x, weight, bias, stride, padding, output_padding, groups, dilation) end

--- 2-D convolution of x (N,C,H,W) with weight (O,C/groups,kH,kW); padding may be 'same' or 'valid'
---@param x tycho.Tensor
---@param weight tycho.Tensor
---@param bias? tycho.Tensor
---@param stride? integer|integer[]
---@param padding? any
---@param dilation? integer|integer[]
---@param groups? integer
---@return tycho.Tensor
function tycho.conv2d(x, weight, bias, stride, padding, dilation, groups) end

--- 2-D convolution of x (N,C,H,W) with weight (O,C/groups,kH,kW); padding may be 'same' or 'valid'
---@param x tycho.Tensor
---@param weight tycho.Tensor
---@param bias? tycho.Tensor
---@param stride? integer|integer[]
---@param padding? any
---@param dilation? integer|integer[]
---@param groups? integer
---@return tycho.Tensor
function Tensor.conv2d(x, weight, bias, stride, padding, dilation, groups) end

--- maximum of each kernel_size window of the last two dims
---@param x tycho.Tensor
---@param kernel_size integer|integer[]
---@param stride? integer|integer[]
---@param padding? integer|integer[]
---@param dilation? integer|integer[]
---@param ceil_mode? boolean
---@param return_indices? boolean
---@return tycho.Tensor
function tycho.max_pool2d(x, kernel_size, stride, padding, dilation, ceil_mode, return_indices) end

--- maximum of each kernel_size window of the last two dims
---@param x tycho.Tensor
---@param kernel_size integer|integer[]
---@param stride? integer|integer[]
---@param padding? integer|integer[]
---@param dilation? integer|integer[]
---@param ceil_mode? boolean
---@param return_indices? boolean
---@return tycho.Tensor
function Tensor.max_pool2d(x, kernel_size, stride, padding, dilation, ceil_mode, return_indices) end

--- maximum of each kernel_size window of the last dim
---@param x tycho.Tensor
---@param kernel_size integer
---@param stride? integer
---@param padding? integer
---@param dilation? integer
---@param ceil_mode? boolean
---@param return_indices? boolean
---@return tycho.Tensor
function tycho.max_pool1d(x, kernel_size, stride, padding, dilation, ceil_mode, return_indices) end

--- maximum of each kernel_size window of the last dim
---@param x tycho.Tensor
---@param kernel_size integer
---@param stride? integer
---@param padding? integer
---@param dilation? integer
---@param ceil_mode? boolean
---@param return_indices? boolean
---@return tycho.Tensor
function Tensor.max_pool1d(x, kernel_size, stride, padding, dilation, ceil_mode, return_indices) end

--- mean of each kernel_size window of the last dim
---@param x tycho.Tensor
---@param kernel_size integer
---@param stride? integer
---@param padding? integer
---@param ceil_mode? boolean
---@param count_include_pad? boolean
---@return tycho.Tensor
function tycho.avg_pool1d(x, kernel_size, stride, padding, ceil_mode, count_include_pad) end

--- mean of each kernel_size window of the last dim
---@param x tycho.Tensor
---@param kernel_size integer
---@param stride? integer
---@param padding? integer
---@param ceil_mode? boolean
---@param count_include_pad? boolean
---@return tycho.Tensor
function Tensor.avg_pool1d(x, kernel_size, stride, padding, ceil_mode, count_include_pad) end

--- means of windows chosen so that output_size results; {h, false} keeps the width
---@param x tycho.Tensor
---@param output_size any
---@return tycho.Tensor
function tycho.adaptive_avg_pool2d(x, output_size) end

--- means of windows chosen so that output_size results; {h, false} keeps the width
---@param x tycho.Tensor
---@param output_size any
---@return tycho.Tensor
function Tensor.adaptive_avg_pool2d(x, output_size) end

--- means of windows of the last dim chosen so that output_size results
---@param x tycho.Tensor
---@param output_size integer
---@return tycho.Tensor
function tycho.adaptive_avg_pool1d(x, output_size) end

--- means of windows of the last dim chosen so that output_size results
---@param x tycho.Tensor
---@param output_size integer
---@return tycho.Tensor
function Tensor.adaptive_avg_pool1d(x, output_size) end

--- maxima of windows chosen so that output_size results; {h, false} keeps the width
---@param x tycho.Tensor
---@param output_size any
---@param return_indices? boolean
---@return tycho.Tensor
function tycho.adaptive_max_pool2d(x, output_size, return_indices) end

--- maxima of windows chosen so that output_size results; {h, false} keeps the width
---@param x tycho.Tensor
---@param output_size any
---@param return_indices? boolean
---@return tycho.Tensor
function Tensor.adaptive_max_pool2d(x, output_size, return_indices) end

--- maxima of windows of the last dim chosen so that output_size results
---@param x tycho.Tensor
---@param output_size integer
---@param return_indices? boolean
---@return tycho.Tensor
function tycho.adaptive_max_pool1d(x, output_size, return_indices) end

--- maxima of windows of the last dim chosen so that output_size results
---@param x tycho.Tensor
---@param output_size integer
---@param return_indices? boolean
---@return tycho.Tensor
function Tensor.adaptive_max_pool1d(x, output_size, return_indices) end

--- p-norm of each kernel_size window
---@param x tycho.Tensor
---@param p number
---@param kernel_size integer
---@param stride? integer
---@param ceil_mode? boolean
---@return tycho.Tensor
function tycho.lp_pool1d(x, p, kernel_size, stride, ceil_mode) end

--- p-norm of each kernel_size window
---@param x tycho.Tensor
---@param p number
---@param kernel_size integer
---@param stride? integer
---@param ceil_mode? boolean
---@return tycho.Tensor
function Tensor.lp_pool1d(x, p, kernel_size, stride, ceil_mode) end

--- p-norm of each kernel_size window
---@param x tycho.Tensor
---@param p number
---@param kernel_size integer|integer[]
---@param stride? integer|integer[]
---@param ceil_mode? boolean
---@return tycho.Tensor
function tycho.lp_pool2d(x, p, kernel_size, stride, ceil_mode) end

--- p-norm of each kernel_size window
---@param x tycho.Tensor
---@param p number
---@param kernel_size integer|integer[]
---@param stride? integer|integer[]
---@param ceil_mode? boolean
---@return tycho.Tensor
function Tensor.lp_pool2d(x, p, kernel_size, stride, ceil_mode) end

--- p-norm of each kernel_size window
---@param x tycho.Tensor
---@param p number
---@param kernel_size integer|integer[]
---@param stride? integer|integer[]
---@param ceil_mode? boolean
---@return tycho.Tensor
function tycho.lp_pool3d(x, p, kernel_size, stride, ceil_mode) end

--- p-norm of each kernel_size window
---@param x tycho.Tensor
---@param p number
---@param kernel_size integer|integer[]
---@param stride? integer|integer[]
---@param ceil_mode? boolean
---@return tycho.Tensor
function Tensor.lp_pool3d(x, p, kernel_size, stride, ceil_mode) end

--- x with pad = {left, right, top, bottom, ...} elements more, from the last dim on; value (0, false where nil) is a constant padding's
---@param x tycho.Tensor
---@param pad integer[]
---@param mode? string
---@param value? any
---@return tycho.Tensor
function tycho.pad(x, pad, mode, value) end

--- x with pad = {left, right, top, bottom, ...} elements more, from the last dim on; value (0, false where nil) is a constant padding's
---@param x tycho.Tensor
---@param pad integer[]
---@param mode? string
---@param value? any
---@return tycho.Tensor
function Tensor.pad(x, pad, mode, value) end

--- windows of (N,C,H,W) as columns (N, C kH kW, L); PyTorch's nn.functional.unfold
---@param x tycho.Tensor
---@param kernel_size integer|integer[]
---@param dilation? integer|integer[]
---@param padding? integer|integer[]
---@param stride? integer|integer[]
---@return tycho.Tensor
function tycho.im2col(x, kernel_size, dilation, padding, stride) end

--- windows of (N,C,H,W) as columns (N, C kH kW, L); PyTorch's nn.functional.unfold
---@param x tycho.Tensor
---@param kernel_size integer|integer[]
---@param dilation? integer|integer[]
---@param padding? integer|integer[]
---@param stride? integer|integer[]
---@return tycho.Tensor
function Tensor.im2col(x, kernel_size, dilation, padding, stride) end

--- columns (N, C kH kW, L) added up into (N,C,H,W): im2col's transpose
---@param x tycho.Tensor
---@param output_size integer|integer[]
---@param kernel_size integer|integer[]
---@param dilation? integer|integer[]
---@param padding? integer|integer[]
---@param stride? integer|integer[]
---@return tycho.Tensor
function tycho.fold(x, output_size, kernel_size, dilation, padding, stride) end

--- columns (N, C kH kW, L) added up into (N,C,H,W): im2col's transpose
---@param x tycho.Tensor
---@param output_size integer|integer[]
---@param kernel_size integer|integer[]
---@param dilation? integer|integer[]
---@param padding? integer|integer[]
---@param stride? integer|integer[]
---@return tycho.Tensor
function Tensor.fold(x, output_size, kernel_size, dilation, padding, stride) end

--- images (N,C,H,W), lines (N,C,L) or volumes (N,C,D,H,W) of another size
---@param x tycho.Tensor
---@param size? any
---@param scale_factor? any
---@param mode? string
---@param align_corners? boolean
---@param recompute_scale_factor? boolean
---@param antialias? boolean
---@return tycho.Tensor
function tycho.interpolate(x, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias) end

--- images (N,C,H,W), lines (N,C,L) or volumes (N,C,D,H,W) of another size
---@param x tycho.Tensor
---@param size? any
---@param scale_factor? any
---@param mode? string
---@param align_corners? boolean
---@param recompute_scale_factor? boolean
---@param antialias? boolean
---@return tycho.Tensor
function Tensor.interpolate(x, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias) end

--- elements set to 0 with probability p, the others scaled by 1 / (1 - p)
---@param x tycho.Tensor
---@param p? number
---@param training? boolean
---@return tycho.Tensor
function tycho.dropout(x, p, training) end

--- elements set to 0 with probability p, the others scaled by 1 / (1 - p)
---@param x tycho.Tensor
---@param p? number
---@param training? boolean
---@return tycho.Tensor
function Tensor.dropout(x, p, training) end

--- each channel (dim 2) normalised by the batch's statistics (training) or the running ones, then scaled and shifted
---@param x tycho.Tensor
---@param mean? tycho.Tensor
---@param var? tycho.Tensor
---@param weight? tycho.Tensor
---@param bias? tycho.Tensor
---@param training? boolean
---@param momentum? number
---@param eps? number
---@return tycho.Tensor
function tycho.batch_norm(x, mean, var, weight, bias, training, momentum, eps) end

--- each channel (dim 2) normalised by the batch's statistics (training) or the running ones, then scaled and shifted
---@param x tycho.Tensor
---@param mean? tycho.Tensor
---@param var? tycho.Tensor
---@param weight? tycho.Tensor
---@param bias? tycho.Tensor
---@param training? boolean
---@param momentum? number
---@param eps? number
---@return tycho.Tensor
function Tensor.batch_norm(x, mean, var, weight, bias, training, momentum, eps) end

--- normalised over the last dims, of shape size, then scaled and shifted
---@param x tycho.Tensor
---@param size integer|integer[]
---@param weight? tycho.Tensor
---@param bias? tycho.Tensor
---@param eps? number
---@return tycho.Tensor
function tycho.layer_norm(x, size, weight, bias, eps) end

--- normalised over the last dims, of shape size, then scaled and shifted
---@param x tycho.Tensor
---@param size integer|integer[]
---@param weight? tycho.Tensor
---@param bias? tycho.Tensor
---@param eps? number
---@return tycho.Tensor
function Tensor.layer_norm(x, size, weight, bias, eps) end

--- divided by the root mean square over the last dims, of shape size, then scaled
---@param x tycho.Tensor
---@param size integer|integer[]
---@param weight? tycho.Tensor
---@param eps? number
---@return tycho.Tensor
function tycho.rms_norm(x, size, weight, eps) end

--- divided by the root mean square over the last dims, of shape size, then scaled
---@param x tycho.Tensor
---@param size integer|integer[]
---@param weight? tycho.Tensor
---@param eps? number
---@return tycho.Tensor
function Tensor.rms_norm(x, size, weight, eps) end

--- channels (dim 2) normalised in groups, for each item of the batch, then scaled and shifted
---@param x tycho.Tensor
---@param groups integer
---@param weight? tycho.Tensor
---@param bias? tycho.Tensor
---@param eps? number
---@return tycho.Tensor
function tycho.group_norm(x, groups, weight, bias, eps) end

--- channels (dim 2) normalised in groups, for each item of the batch, then scaled and shifted
---@param x tycho.Tensor
---@param groups integer
---@param weight? tycho.Tensor
---@param bias? tycho.Tensor
---@param eps? number
---@return tycho.Tensor
function Tensor.group_norm(x, groups, weight, bias, eps) end

--- each channel of each item normalised on its own, then scaled and shifted
---@param x tycho.Tensor
---@param mean? tycho.Tensor
---@param var? tycho.Tensor
---@param weight? tycho.Tensor
---@param bias? tycho.Tensor
---@param use_input_stats? boolean
---@param momentum? number
---@param eps? number
---@return tycho.Tensor
function tycho.instance_norm(x, mean, var, weight, bias, use_input_stats, momentum, eps) end

--- each channel of each item normalised on its own, then scaled and shifted
---@param x tycho.Tensor
---@param mean? tycho.Tensor
---@param var? tycho.Tensor
---@param weight? tycho.Tensor
---@param bias? tycho.Tensor
---@param use_input_stats? boolean
---@param momentum? number
---@param eps? number
---@return tycho.Tensor
function Tensor.instance_norm(x, mean, var, weight, bias, use_input_stats, momentum, eps) end

--- divided by a power of the mean square over size neighbouring channels
---@param x tycho.Tensor
---@param size integer
---@param alpha? number
---@param beta? number
---@param k? number
---@return tycho.Tensor
function tycho.local_response_norm(x, size, alpha, beta, k) end

--- divided by a power of the mean square over size neighbouring channels
---@param x tycho.Tensor
---@param size integer
---@param alpha? number
---@param beta? number
---@param k? number
---@return tycho.Tensor
function Tensor.local_response_norm(x, size, alpha, beta, k) end

--- divided by its p-norm along dim (2), or dims
---@param x tycho.Tensor
---@param p? number
---@param dim? integer|integer[]
---@param eps? number
---@return tycho.Tensor
function tycho.normalize(x, p, dim, eps) end

--- divided by its p-norm along dim (2), or dims
---@param x tycho.Tensor
---@param p? number
---@param dim? integer|integer[]
---@param eps? number
---@return tycho.Tensor
function Tensor.normalize(x, p, dim, eps) end

--- whole channels set to 0 with probability p, the others scaled by 1 / (1 - p)
---@param x tycho.Tensor
---@param p? number
---@param training? boolean
---@return tycho.Tensor
function tycho.dropout1d(x, p, training) end

--- whole channels set to 0 with probability p, the others scaled by 1 / (1 - p)
---@param x tycho.Tensor
---@param p? number
---@param training? boolean
---@return tycho.Tensor
function Tensor.dropout1d(x, p, training) end

--- whole channels set to 0 with probability p, the others scaled by 1 / (1 - p)
---@param x tycho.Tensor
---@param p? number
---@param training? boolean
---@return tycho.Tensor
function tycho.dropout2d(x, p, training) end

--- whole channels set to 0 with probability p, the others scaled by 1 / (1 - p)
---@param x tycho.Tensor
---@param p? number
---@param training? boolean
---@return tycho.Tensor
function Tensor.dropout2d(x, p, training) end

--- whole channels set to 0 with probability p, the others scaled by 1 / (1 - p)
---@param x tycho.Tensor
---@param p? number
---@param training? boolean
---@return tycho.Tensor
function tycho.dropout3d(x, p, training) end

--- whole channels set to 0 with probability p, the others scaled by 1 / (1 - p)
---@param x tycho.Tensor
---@param p? number
---@param training? boolean
---@return tycho.Tensor
function Tensor.dropout3d(x, p, training) end

--- dropout that keeps mean and variance under selu
---@param x tycho.Tensor
---@param p? number
---@param training? boolean
---@return tycho.Tensor
function tycho.alpha_dropout(x, p, training) end

--- dropout that keeps mean and variance under selu
---@param x tycho.Tensor
---@param p? number
---@param training? boolean
---@return tycho.Tensor
function Tensor.alpha_dropout(x, p, training) end

--- Gaussian error linear unit: x times the normal distribution's value at x
---@param x tycho.Tensor
---@param approximate? string
---@return tycho.Tensor
function tycho.gelu(x, approximate) end

--- Gaussian error linear unit: x times the normal distribution's value at x
---@param x tycho.Tensor
---@param approximate? string
---@return tycho.Tensor
function Tensor.gelu(x, approximate) end

--- x limited to 0..6
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.relu6(x) end

--- x limited to 0..6
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.relu6(x) end

--- x - tanh(x)
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.tanhshrink(x) end

--- x - tanh(x)
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.tanhshrink(x) end

--- softmax of -x
---@param x tycho.Tensor
---@param dim integer
---@return tycho.Tensor
function tycho.softmin(x, dim) end

--- softmax of -x
---@param x tycho.Tensor
---@param dim integer
---@return tycho.Tensor
function Tensor.softmin(x, dim) end

--- the first half of dim times sigmoid of the second
---@param x tycho.Tensor
---@param dim? integer
---@return tycho.Tensor
function tycho.glu(x, dim) end

--- the first half of dim times sigmoid of the second
---@param x tycho.Tensor
---@param dim? integer
---@return tycho.Tensor
function Tensor.glu(x, dim) end

--- x where x > 0, else weight * x; weight has one element, or one for each channel (dim 2)
---@param x tycho.Tensor
---@param weight tycho.Tensor
---@return tycho.Tensor
function tycho.prelu(x, weight) end

--- x where x > 0, else weight * x; weight has one element, or one for each channel (dim 2)
---@param x tycho.Tensor
---@param weight tycho.Tensor
---@return tycho.Tensor
function Tensor.prelu(x, weight) end

--- leaky_relu whose slope is drawn from lower..upper while training
---@param x tycho.Tensor
---@param lower? number
---@param upper? number
---@param training? boolean
---@return tycho.Tensor
function tycho.rrelu(x, lower, upper, training) end

--- leaky_relu whose slope is drawn from lower..upper while training
---@param x tycho.Tensor
---@param lower? number
---@param upper? number
---@param training? boolean
---@return tycho.Tensor
function Tensor.rrelu(x, lower, upper, training) end

--- a sample from the categories along dim that gradients flow through
---@param x tycho.Tensor
---@param tau? number
---@param hard? boolean
---@param dim? integer
---@return tycho.Tensor
function tycho.gumbel_softmax(x, tau, hard, dim) end

--- a sample from the categories along dim that gradients flow through
---@param x tycho.Tensor
---@param tau? number
---@param hard? boolean
---@param dim? integer
---@return tycho.Tensor
function Tensor.gumbel_softmax(x, tau, hard, dim) end

--- softmax(q @ k^T * scale + attn_mask) @ v; a bool mask is true where to attend; scale defaults to 1 / sqrt(D)
---@param q tycho.Tensor
---@param k tycho.Tensor
---@param v tycho.Tensor
---@param attn_mask? tycho.Tensor
---@param dropout_p? number
---@param is_causal? boolean
---@param scale? number
---@param enable_gqa? boolean
---@return tycho.Tensor
function tycho.scaled_dot_product_attention(q, k, v, attn_mask, dropout_p, is_causal, scale, enable_gqa) end

--- softmax(q @ k^T * scale + attn_mask) @ v; a bool mask is true where to attend; scale defaults to 1 / sqrt(D)
---@param q tycho.Tensor
---@param k tycho.Tensor
---@param v tycho.Tensor
---@param attn_mask? tycho.Tensor
---@param dropout_p? number
---@param is_causal? boolean
---@param scale? number
---@param enable_gqa? boolean
---@return tycho.Tensor
function Tensor.scaled_dot_product_attention(q, k, v, attn_mask, dropout_p, is_causal, scale, enable_gqa) end

--- 3-D convolution of x (N,C,D,H,W) with weight (O,C/groups,kD,kH,kW); padding may be 'same' or 'valid'
---@param x tycho.Tensor
---@param weight tycho.Tensor
---@param bias? tycho.Tensor
---@param stride? integer|integer[]
---@param padding? any
---@param dilation? integer|integer[]
---@param groups? integer
---@return tycho.Tensor
function tycho.conv3d(x, weight, bias, stride, padding, dilation, groups) end

--- 3-D convolution of x (N,C,D,H,W) with weight (O,C/groups,kD,kH,kW); padding may be 'same' or 'valid'
---@param x tycho.Tensor
---@param weight tycho.Tensor
---@param bias? tycho.Tensor
---@param stride? integer|integer[]
---@param padding? any
---@param dilation? integer|integer[]
---@param groups? integer
---@return tycho.Tensor
function Tensor.conv3d(x, weight, bias, stride, padding, dilation, groups) end

--- transposed 3-D convolution of x (N,C,D,H,W) with weight (C,O/groups,kD,kH,kW)
---@param x tycho.Tensor
---@param weight tycho.Tensor
---@param bias? tycho.Tensor
---@param stride? integer|integer[]
---@param padding? integer|integer[]
---@param output_padding? integer|integer[]
---@param groups? integer
---@param dilation? integer|integer[]
---@return tycho.Tensor
function tycho.conv_transpose3d(x, weight, bias, stride, padding, output_padding, groups, dilation) end

--- transposed 3-D convolution of x (N,C,D,H,W) with weight (C,O/groups,kD,kH,kW)
---@param x tycho.Tensor
---@param weight tycho.Tensor
---@param bias? tycho.Tensor
---@param stride? integer|integer[]
---@param padding? integer|integer[]
---@param output_padding? integer|integer[]
---@param groups? integer
---@param dilation? integer|integer[]
---@return tycho.Tensor
function Tensor.conv_transpose3d(x, weight, bias, stride, padding, output_padding, groups, dilation) end

--- maximum of each kernel_size window of the last three dims
---@param x tycho.Tensor
---@param kernel_size integer|integer[]
---@param stride? integer|integer[]
---@param padding? integer|integer[]
---@param dilation? integer|integer[]
---@param ceil_mode? boolean
---@param return_indices? boolean
---@return tycho.Tensor
function tycho.max_pool3d(x, kernel_size, stride, padding, dilation, ceil_mode, return_indices) end

--- maximum of each kernel_size window of the last three dims
---@param x tycho.Tensor
---@param kernel_size integer|integer[]
---@param stride? integer|integer[]
---@param padding? integer|integer[]
---@param dilation? integer|integer[]
---@param ceil_mode? boolean
---@param return_indices? boolean
---@return tycho.Tensor
function Tensor.max_pool3d(x, kernel_size, stride, padding, dilation, ceil_mode, return_indices) end

--- mean of each kernel_size window of the last three dims
---@param x tycho.Tensor
---@param kernel_size integer|integer[]
---@param stride? integer|integer[]
---@param padding? integer|integer[]
---@param ceil_mode? boolean
---@param count_include_pad? boolean
---@param divisor_override? integer
---@return tycho.Tensor
function tycho.avg_pool3d(x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override) end

--- mean of each kernel_size window of the last three dims
---@param x tycho.Tensor
---@param kernel_size integer|integer[]
---@param stride? integer|integer[]
---@param padding? integer|integer[]
---@param ceil_mode? boolean
---@param count_include_pad? boolean
---@param divisor_override? integer
---@return tycho.Tensor
function Tensor.avg_pool3d(x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override) end

--- means of windows of the last three dims chosen so that output_size results: a number, or three, of which false keeps a dim's size
---@param x tycho.Tensor
---@param output_size any
---@return tycho.Tensor
function tycho.adaptive_avg_pool3d(x, output_size) end

--- means of windows of the last three dims chosen so that output_size results: a number, or three, of which false keeps a dim's size
---@param x tycho.Tensor
---@param output_size any
---@return tycho.Tensor
function Tensor.adaptive_avg_pool3d(x, output_size) end

--- maxima of windows of the last three dims chosen so that output_size results
---@param x tycho.Tensor
---@param output_size integer|integer[]
---@param return_indices? boolean
---@return tycho.Tensor
function tycho.adaptive_max_pool3d(x, output_size, return_indices) end

--- maxima of windows of the last three dims chosen so that output_size results
---@param x tycho.Tensor
---@param output_size integer|integer[]
---@param return_indices? boolean
---@return tycho.Tensor
function Tensor.adaptive_max_pool3d(x, output_size, return_indices) end

--- x (N,C,H,W) read at the places (x, y) of grid (N,Ho,Wo,2), where -1 and 1 are its borders; or (N,C,D,H,W) at the places (x, y, z) of (N,Do,Ho,Wo,3)
---@param x tycho.Tensor
---@param grid tycho.Tensor
---@param mode? string
---@param padding_mode? string
---@param align_corners? boolean
---@return tycho.Tensor
function tycho.grid_sample(x, grid, mode, padding_mode, align_corners) end

--- x (N,C,H,W) read at the places (x, y) of grid (N,Ho,Wo,2), where -1 and 1 are its borders; or (N,C,D,H,W) at the places (x, y, z) of (N,Do,Ho,Wo,3)
---@param x tycho.Tensor
---@param grid tycho.Tensor
---@param mode? string
---@param padding_mode? string
---@param align_corners? boolean
---@return tycho.Tensor
function Tensor.grid_sample(x, grid, mode, padding_mode, align_corners) end

--- the grid for grid_sample that affine maps theta (N,2,3) make for pictures of size {N, C, H, W}, or (N,3,4) for volumes {N, C, D, H, W}
---@param theta tycho.Tensor
---@param size integer[]
---@param align_corners? boolean
---@return tycho.Tensor
function tycho.affine_grid(theta, size, align_corners) end

--- the grid for grid_sample that affine maps theta (N,2,3) make for pictures of size {N, C, H, W}, or (N,3,4) for volumes {N, C, D, H, W}
---@param theta tycho.Tensor
---@param size integer[]
---@param align_corners? boolean
---@return tycho.Tensor
function Tensor.affine_grid(theta, size, align_corners) end

--- x where max_pool1d(..., {return_indices=true}) found its maxima, zeros elsewhere
---@param x tycho.Tensor
---@param indices tycho.Tensor
---@param kernel_size integer
---@param stride? integer
---@param padding? integer
---@param output_size? any
---@return tycho.Tensor
function tycho.max_unpool1d(x, indices, kernel_size, stride, padding, output_size) end

--- x where max_pool1d(..., {return_indices=true}) found its maxima, zeros elsewhere
---@param x tycho.Tensor
---@param indices tycho.Tensor
---@param kernel_size integer
---@param stride? integer
---@param padding? integer
---@param output_size? any
---@return tycho.Tensor
function Tensor.max_unpool1d(x, indices, kernel_size, stride, padding, output_size) end

--- x where max_pool2d(..., {return_indices=true}) found its maxima, zeros elsewhere
---@param x tycho.Tensor
---@param indices tycho.Tensor
---@param kernel_size integer|integer[]
---@param stride? integer|integer[]
---@param padding? integer|integer[]
---@param output_size? any
---@return tycho.Tensor
function tycho.max_unpool2d(x, indices, kernel_size, stride, padding, output_size) end

--- x where max_pool2d(..., {return_indices=true}) found its maxima, zeros elsewhere
---@param x tycho.Tensor
---@param indices tycho.Tensor
---@param kernel_size integer|integer[]
---@param stride? integer|integer[]
---@param padding? integer|integer[]
---@param output_size? any
---@return tycho.Tensor
function Tensor.max_unpool2d(x, indices, kernel_size, stride, padding, output_size) end

--- x where max_pool3d(..., {return_indices=true}) found its maxima, zeros elsewhere
---@param x tycho.Tensor
---@param indices tycho.Tensor
---@param kernel_size integer|integer[]
---@param stride? integer|integer[]
---@param padding? integer|integer[]
---@param output_size? any
---@return tycho.Tensor
function tycho.max_unpool3d(x, indices, kernel_size, stride, padding, output_size) end

--- x where max_pool3d(..., {return_indices=true}) found its maxima, zeros elsewhere
---@param x tycho.Tensor
---@param indices tycho.Tensor
---@param kernel_size integer|integer[]
---@param stride? integer|integer[]
---@param padding? integer|integer[]
---@param output_size? any
---@return tycho.Tensor
function Tensor.max_unpool3d(x, indices, kernel_size, stride, padding, output_size) end

--- squared differences, times weight; with weights the mean is a weighted one
---@param x tycho.Tensor
---@param y tycho.Tensor
---@param weight? tycho.Tensor
---@param reduction? string
---@return tycho.Tensor
function tycho.mse_loss(x, y, weight, reduction) end

--- squared differences, times weight; with weights the mean is a weighted one
---@param x tycho.Tensor
---@param y tycho.Tensor
---@param weight? tycho.Tensor
---@param reduction? string
---@return tycho.Tensor
function Tensor.mse_loss(x, y, weight, reduction) end

--- absolute differences, times weight; with weights the mean is a weighted one
---@param x tycho.Tensor
---@param y tycho.Tensor
---@param weight? tycho.Tensor
---@param reduction? string
---@return tycho.Tensor
function tycho.l1_loss(x, y, weight, reduction) end

--- absolute differences, times weight; with weights the mean is a weighted one
---@param x tycho.Tensor
---@param y tycho.Tensor
---@param weight? tycho.Tensor
---@param reduction? string
---@return tycho.Tensor
function Tensor.l1_loss(x, y, weight, reduction) end

--- squared differences below beta, absolute ones above
---@param x tycho.Tensor
---@param y tycho.Tensor
---@param beta? number
---@param reduction? string
---@return tycho.Tensor
function tycho.smooth_l1_loss(x, y, beta, reduction) end

--- squared differences below beta, absolute ones above
---@param x tycho.Tensor
---@param y tycho.Tensor
---@param beta? number
---@param reduction? string
---@return tycho.Tensor
function Tensor.smooth_l1_loss(x, y, beta, reduction) end

--- half the squared differences below delta, delta times absolute ones above, times weight
---@param x tycho.Tensor
---@param y tycho.Tensor
---@param delta? number
---@param weight? tycho.Tensor
---@param reduction? string
---@return tycho.Tensor
function tycho.huber_loss(x, y, delta, weight, reduction) end

--- half the squared differences below delta, delta times absolute ones above, times weight
---@param x tycho.Tensor
---@param y tycho.Tensor
---@param delta? number
---@param weight? tycho.Tensor
---@param reduction? string
---@return tycho.Tensor
function Tensor.huber_loss(x, y, delta, weight, reduction) end

--- target * (log(target) - x); x is a logarithm, target too where log_target is true
---@param x tycho.Tensor
---@param target tycho.Tensor
---@param log_target? boolean
---@param reduction? string
---@return tycho.Tensor
function tycho.kl_div(x, target, log_target, reduction) end

--- target * (log(target) - x); x is a logarithm, target too where log_target is true
---@param x tycho.Tensor
---@param target tycho.Tensor
---@param log_target? boolean
---@param reduction? string
---@return tycho.Tensor
function Tensor.kl_div(x, target, log_target, reduction) end

--- cross-entropy of probabilities x with y in 0..1; logarithms are kept above -100
---@param x tycho.Tensor
---@param y tycho.Tensor
---@param weight? tycho.Tensor
---@param reduction? string
---@return tycho.Tensor
function tycho.binary_cross_entropy(x, y, weight, reduction) end

--- cross-entropy of probabilities x with y in 0..1; logarithms are kept above -100
---@param x tycho.Tensor
---@param y tycho.Tensor
---@param weight? tycho.Tensor
---@param reduction? string
---@return tycho.Tensor
function Tensor.binary_cross_entropy(x, y, weight, reduction) end

--- cross-entropy of sigmoid(x) with y in 0..1
---@param x tycho.Tensor
---@param y tycho.Tensor
---@param weight? tycho.Tensor
---@param pos_weight? tycho.Tensor
---@param reduction? string
---@return tycho.Tensor
function tycho.binary_cross_entropy_with_logits(x, y, weight, pos_weight, reduction) end

--- cross-entropy of sigmoid(x) with y in 0..1
---@param x tycho.Tensor
---@param y tycho.Tensor
---@param weight? tycho.Tensor
---@param pos_weight? tycho.Tensor
---@param reduction? string
---@return tycho.Tensor
function Tensor.binary_cross_entropy_with_logits(x, y, weight, pos_weight, reduction) end

--- cross-entropy of softmax(x) along dim 2 with labels from 1 (int64), or with class probabilities in x's shape
---@param x tycho.Tensor
---@param target tycho.Tensor
---@param weight? tycho.Tensor
---@param ignore_index? integer
---@param label_smoothing? number
---@param reduction? string
---@return tycho.Tensor
function tycho.cross_entropy(x, target, weight, ignore_index, label_smoothing, reduction) end

--- cross-entropy of softmax(x) along dim 2 with labels from 1 (int64), or with class probabilities in x's shape
---@param x tycho.Tensor
---@param target tycho.Tensor
---@param weight? tycho.Tensor
---@param ignore_index? integer
---@param label_smoothing? number
---@param reduction? string
---@return tycho.Tensor
function Tensor.cross_entropy(x, target, weight, ignore_index, label_smoothing, reduction) end

--- minus the log-probability in x of each label
---@param x tycho.Tensor
---@param target tycho.Tensor
---@param weight? tycho.Tensor
---@param ignore_index? integer
---@param reduction? string
---@return tycho.Tensor
function tycho.nll_loss(x, target, weight, ignore_index, reduction) end

--- minus the log-probability in x of each label
---@param x tycho.Tensor
---@param target tycho.Tensor
---@param weight? tycho.Tensor
---@param ignore_index? integer
---@param reduction? string
---@return tycho.Tensor
function Tensor.nll_loss(x, target, weight, ignore_index, reduction) end

--- minus the log-probability that log_probs (T,N,C) spell the targets (N,S), or one after the other (sum of lengths), with repeats and blanks between them; labels and blank count from 1
---@param log_probs tycho.Tensor
---@param targets tycho.Tensor
---@param input_lengths any
---@param target_lengths any
---@param blank? integer
---@param reduction? string
---@param zero_infinity? boolean
---@return tycho.Tensor
function tycho.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity) end

--- minus the log-probability that log_probs (T,N,C) spell the targets (N,S), or one after the other (sum of lengths), with repeats and blanks between them; labels and blank count from 1
---@param log_probs tycho.Tensor
---@param targets tycho.Tensor
---@param input_lengths any
---@param target_lengths any
---@param blank? integer
---@param reduction? string
---@param zero_infinity? boolean
---@return tycho.Tensor
function Tensor.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity) end

--- negative log-likelihood of counts under a Poisson of rate exp(x), or x
---@param x tycho.Tensor
---@param target tycho.Tensor
---@param log_input? boolean
---@param full? boolean
---@param eps? number
---@param reduction? string
---@return tycho.Tensor
function tycho.poisson_nll_loss(x, target, log_input, full, eps, reduction) end

--- negative log-likelihood of counts under a Poisson of rate exp(x), or x
---@param x tycho.Tensor
---@param target tycho.Tensor
---@param log_input? boolean
---@param full? boolean
---@param eps? number
---@param reduction? string
---@return tycho.Tensor
function Tensor.poisson_nll_loss(x, target, log_input, full, eps, reduction) end

--- negative log-likelihood under a normal of mean x and variance var
---@param x tycho.Tensor
---@param target tycho.Tensor
---@param var tycho.Tensor|number
---@param full? boolean
---@param eps? number
---@param reduction? string
---@return tycho.Tensor
function tycho.gaussian_nll_loss(x, target, var, full, eps, reduction) end

--- negative log-likelihood under a normal of mean x and variance var
---@param x tycho.Tensor
---@param target tycho.Tensor
---@param var tycho.Tensor|number
---@param full? boolean
---@param eps? number
---@param reduction? string
---@return tycho.Tensor
function Tensor.gaussian_nll_loss(x, target, var, full, eps, reduction) end

--- x where target is 1, margin - x (not below 0) where it is -1
---@param x tycho.Tensor
---@param target tycho.Tensor
---@param margin? number
---@param reduction? string
---@return tycho.Tensor
function tycho.hinge_embedding_loss(x, target, margin, reduction) end

--- x where target is 1, margin - x (not below 0) where it is -1
---@param x tycho.Tensor
---@param target tycho.Tensor
---@param margin? number
---@param reduction? string
---@return tycho.Tensor
function Tensor.hinge_embedding_loss(x, target, margin, reduction) end

--- how much target * (a - b) falls short of margin
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param target tycho.Tensor
---@param margin? number
---@param reduction? string
---@return tycho.Tensor
function tycho.margin_ranking_loss(a, b, target, margin, reduction) end

--- how much target * (a - b) falls short of margin
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param target tycho.Tensor
---@param margin? number
---@param reduction? string
---@return tycho.Tensor
function Tensor.margin_ranking_loss(a, b, target, margin, reduction) end

--- log(1 + exp(-target * x))
---@param x tycho.Tensor
---@param target tycho.Tensor
---@param reduction? string
---@return tycho.Tensor
function tycho.soft_margin_loss(x, target, reduction) end

--- log(1 + exp(-target * x))
---@param x tycho.Tensor
---@param target tycho.Tensor
---@param reduction? string
---@return tycho.Tensor
function Tensor.soft_margin_loss(x, target, reduction) end

--- 1 - cos where target is 1, cos - margin (not below 0) where it is -1
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param target tycho.Tensor
---@param margin? number
---@param reduction? string
---@return tycho.Tensor
function tycho.cosine_embedding_loss(a, b, target, margin, reduction) end

--- 1 - cos where target is 1, cos - margin (not below 0) where it is -1
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param target tycho.Tensor
---@param margin? number
---@param reduction? string
---@return tycho.Tensor
function Tensor.cosine_embedding_loss(a, b, target, margin, reduction) end

--- how much the distance to near plus margin exceeds that to far
---@param anchor tycho.Tensor
---@param near tycho.Tensor
---@param far tycho.Tensor
---@param margin? number
---@param p? number
---@param eps? number
---@param swap? boolean
---@param reduction? string
---@return tycho.Tensor
function tycho.triplet_margin_loss(anchor, near, far, margin, p, eps, swap, reduction) end

--- how much the distance to near plus margin exceeds that to far
---@param anchor tycho.Tensor
---@param near tycho.Tensor
---@param far tycho.Tensor
---@param margin? number
---@param p? number
---@param eps? number
---@param swap? boolean
---@param reduction? string
---@return tycho.Tensor
function Tensor.triplet_margin_loss(anchor, near, far, margin, p, eps, swap, reduction) end

--- how much the other classes come within margin of the label's
---@param x tycho.Tensor
---@param target tycho.Tensor
---@param p? number
---@param margin? number
---@param weight? tycho.Tensor
---@param reduction? string
---@return tycho.Tensor
function tycho.multi_margin_loss(x, target, p, margin, weight, reduction) end

--- how much the other classes come within margin of the label's
---@param x tycho.Tensor
---@param target tycho.Tensor
---@param p? number
---@param margin? number
---@param weight? tycho.Tensor
---@param reduction? string
---@return tycho.Tensor
function Tensor.multi_margin_loss(x, target, p, margin, weight, reduction) end

--- binary cross-entropy with logits, mean over classes
---@param x tycho.Tensor
---@param target tycho.Tensor
---@param weight? tycho.Tensor
---@param reduction? string
---@return tycho.Tensor
function tycho.multilabel_soft_margin_loss(x, target, weight, reduction) end

--- binary cross-entropy with logits, mean over classes
---@param x tycho.Tensor
---@param target tycho.Tensor
---@param weight? tycho.Tensor
---@param reduction? string
---@return tycho.Tensor
function Tensor.multilabel_soft_margin_loss(x, target, weight, reduction) end

--- how much classes that aren't labels come within 1 of those that are; target has x's shape: labels, then 0
---@param x tycho.Tensor
---@param target tycho.Tensor
---@param reduction? string
---@return tycho.Tensor
function tycho.multilabel_margin_loss(x, target, reduction) end

--- how much classes that aren't labels come within 1 of those that are; target has x's shape: labels, then 0
---@param x tycho.Tensor
---@param target tycho.Tensor
---@param reduction? string
---@return tycho.Tensor
function Tensor.multilabel_margin_loss(x, target, reduction) end

--- triplet_margin_loss with a distance of one's own, a function of two tensors
---@param anchor tycho.Tensor
---@param near tycho.Tensor
---@param far tycho.Tensor
---@param distance_function? any
---@param margin? number
---@param swap? boolean
---@param reduction? string
---@return tycho.Tensor
function tycho.triplet_margin_with_distance_loss(anchor, near, far, distance_function, margin, swap, reduction) end

--- triplet_margin_loss with a distance of one's own, a function of two tensors
---@param anchor tycho.Tensor
---@param near tycho.Tensor
---@param far tycho.Tensor
---@param distance_function? any
---@param margin? number
---@param swap? boolean
---@param reduction? string
---@return tycho.Tensor
function Tensor.triplet_margin_with_distance_loss(anchor, near, far, distance_function, margin, swap, reduction) end

--- cross_entropy of linear(x, linear_weight, linear_bias), x (..., in_features), target (...) with labels from 1, weight of classes; chunk_size rows at a time, so that the scores are never there together; such parts have no second derivative and aren't compiled
---@param x tycho.Tensor
---@param linear_weight tycho.Tensor
---@param target tycho.Tensor
---@param linear_bias? tycho.Tensor
---@param weight? tycho.Tensor
---@param reduction? string
---@param ignore_index? integer
---@param label_smoothing? number
---@param chunk_size? integer
---@return tycho.Tensor
function tycho.linear_cross_entropy(x, linear_weight, target, linear_bias, weight, reduction, ignore_index, label_smoothing, chunk_size) end

--- cross_entropy of linear(x, linear_weight, linear_bias), x (..., in_features), target (...) with labels from 1, weight of classes; chunk_size rows at a time, so that the scores are never there together; such parts have no second derivative and aren't compiled
---@param x tycho.Tensor
---@param linear_weight tycho.Tensor
---@param target tycho.Tensor
---@param linear_bias? tycho.Tensor
---@param weight? tycho.Tensor
---@param reduction? string
---@param ignore_index? integer
---@param label_smoothing? number
---@param chunk_size? integer
---@return tycho.Tensor
function Tensor.linear_cross_entropy(x, linear_weight, target, linear_bias, weight, reduction, ignore_index, label_smoothing, chunk_size) end

return tycho
