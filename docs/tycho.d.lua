---@meta
-- Made by make docs.
---@class tycho.Tensor
local Tensor = {}
---@class tycho
local tycho = {}

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

--- Gaussian error linear unit
---@param x tycho.Tensor
---@param approximate? string
---@return tycho.Tensor
function tycho.gelu(x, approximate) end

--- Gaussian error linear unit
---@param x tycho.Tensor
---@param approximate? string
---@return tycho.Tensor
function Tensor.gelu(x, approximate) end

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

--- a + weight * (b - a)
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param weight tycho.Tensor|number
---@return tycho.Tensor
function tycho.lerp(a, b, weight) end

--- a + weight * (b - a)
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
---@return tycho.Tensor
function tycho.sum(x, dim, keepdim) end

--- sum over dim (all dims where nil)
---@param x tycho.Tensor
---@param dim? integer|integer[]
---@param keepdim? boolean
---@return tycho.Tensor
function Tensor.sum(x, dim, keepdim) end

--- mean over dim (all dims where nil)
---@param x tycho.Tensor
---@param dim? integer|integer[]
---@param keepdim? boolean
---@return tycho.Tensor
function tycho.mean(x, dim, keepdim) end

--- mean over dim (all dims where nil)
---@param x tycho.Tensor
---@param dim? integer|integer[]
---@param keepdim? boolean
---@return tycho.Tensor
function Tensor.mean(x, dim, keepdim) end

--- product over dim (all dims where nil)
---@param x tycho.Tensor
---@param dim? integer|integer[]
---@param keepdim? boolean
---@return tycho.Tensor
function tycho.prod(x, dim, keepdim) end

--- product over dim (all dims where nil)
---@param x tycho.Tensor
---@param dim? integer|integer[]
---@param keepdim? boolean
---@return tycho.Tensor
function Tensor.prod(x, dim, keepdim) end

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

--- maxima over dim and their indices
---@param x tycho.Tensor
---@param dim integer
---@param keepdim? boolean
---@return tycho.Tensor, tycho.Tensor
function tycho.max_dim(x, dim, keepdim) end

--- maxima over dim and their indices
---@param x tycho.Tensor
---@param dim integer
---@param keepdim? boolean
---@return tycho.Tensor, tycho.Tensor
function Tensor.max_dim(x, dim, keepdim) end

--- minima over dim and their indices
---@param x tycho.Tensor
---@param dim integer
---@param keepdim? boolean
---@return tycho.Tensor, tycho.Tensor
function tycho.min_dim(x, dim, keepdim) end

--- minima over dim and their indices
---@param x tycho.Tensor
---@param dim integer
---@param keepdim? boolean
---@return tycho.Tensor, tycho.Tensor
function Tensor.min_dim(x, dim, keepdim) end

--- running sum along dim
---@param x tycho.Tensor
---@param dim integer
---@return tycho.Tensor
function tycho.cumsum(x, dim) end

--- running sum along dim
---@param x tycho.Tensor
---@param dim integer
---@return tycho.Tensor
function Tensor.cumsum(x, dim) end

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
---@return tycho.Tensor
function tycho.cast(x, dtype) end

--- a copy in another dtype
---@param x tycho.Tensor
---@param dtype string
---@return tycho.Tensor
function Tensor.cast(x, dtype) end

--- src in x's shape and dtype; copy_ writes it into x
---@param x tycho.Tensor
---@param src tycho.Tensor|number
---@return tycho.Tensor
function tycho.copy_(x, src) end

--- src in x's shape and dtype; copy_ writes it into x
---@param x tycho.Tensor
---@param src tycho.Tensor|number
---@return tycho.Tensor
function Tensor.copy_(x, src) end

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

--- x with pad = {left, right, top, bottom, ...} elements more, from the last dim on
---@param x tycho.Tensor
---@param pad integer[]
---@param mode? string
---@param value? number
---@return tycho.Tensor
function tycho.pad(x, pad, mode, value) end

--- x with pad = {left, right, top, bottom, ...} elements more, from the last dim on
---@param x tycho.Tensor
---@param pad integer[]
---@param mode? string
---@param value? number
---@return tycho.Tensor
function Tensor.pad(x, pad, mode, value) end

--- tensors one after another along dim
---@param tensors tycho.Tensor[]
---@param dim? integer
---@return tycho.Tensor
function tycho.cat(tensors, dim) end

--- tensors one after another along dim
---@param tensors tycho.Tensor[]
---@param dim? integer
---@return tycho.Tensor
function Tensor.cat(tensors, dim) end

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

--- first, first + step, ... up to and including last
---@param first number
---@param last number
---@param step? number
---@param dtype? string
---@param device? string
---@return tycho.Tensor
function Tensor.range(first, last, step, dtype, device) end

--- steps numbers evenly from first to last
---@param first number
---@param last number
---@param steps integer
---@param dtype? string
---@param device? string
---@return tycho.Tensor
function tycho.linspace(first, last, steps, dtype, device) end

--- steps numbers evenly from first to last
---@param first number
---@param last number
---@param steps integer
---@param dtype? string
---@param device? string
---@return tycho.Tensor
function Tensor.linspace(first, last, steps, dtype, device) end

--- n x m, 1 on the diagonal
---@param n integer
---@param m? integer
---@param dtype? string
---@param device? string
---@return tycho.Tensor
function tycho.eye(n, m, dtype, device) end

--- n x m, 1 on the diagonal
---@param n integer
---@param m? integer
---@param dtype? string
---@param device? string
---@return tycho.Tensor
function Tensor.eye(n, m, dtype, device) end

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

--- whole numbers low to high, both included
---@param low integer
---@param high integer
---@param size integer|integer[]
---@param dtype? string
---@param device? string
---@return tycho.Tensor
function Tensor.randint(low, high, size, dtype, device) end

--- 1 to n in random order
---@param n integer
---@param dtype? string
---@param device? string
---@return tycho.Tensor
function tycho.randperm(n, dtype, device) end

--- 1 to n in random order
---@param n integer
---@param dtype? string
---@param device? string
---@return tycho.Tensor
function Tensor.randperm(n, dtype, device) end

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
function tycho.normal_(x, mean, std) end

--- like x, normal
---@param x tycho.Tensor
---@param mean? number
---@param std? number
---@return tycho.Tensor
function Tensor.normal_(x, mean, std) end

--- 1 with probability x, else 0
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.bernoulli(x) end

--- 1 with probability x, else 0
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.bernoulli(x) end

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
---@return tycho.Tensor
function tycho.softmax(x, dim) end

--- exp(x) / sum(exp(x)) along dim
---@param x tycho.Tensor
---@param dim integer
---@return tycho.Tensor
function Tensor.softmax(x, dim) end

--- log of softmax along dim
---@param x tycho.Tensor
---@param dim integer
---@return tycho.Tensor
function tycho.log_softmax(x, dim) end

--- log of softmax along dim
---@param x tycho.Tensor
---@param dim integer
---@return tycho.Tensor
function Tensor.log_softmax(x, dim) end

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

--- indices of the elements that are not 0, one row each
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.nonzero(x) end

--- indices of the elements that are not 0, one row each
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.nonzero(x) end

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
---@param count_include_pad? boolean
---@return tycho.Tensor
function tycho.avg_pool2d(x, kernel_size, stride, padding, count_include_pad) end

--- mean of each kernel_size window of the last two dims
---@param x tycho.Tensor
---@param kernel_size integer|integer[]
---@param stride? integer|integer[]
---@param padding? integer|integer[]
---@param count_include_pad? boolean
---@return tycho.Tensor
function Tensor.avg_pool2d(x, kernel_size, stride, padding, count_include_pad) end

--- means of windows chosen so that output_size results
---@param x tycho.Tensor
---@param output_size integer|integer[]
---@return tycho.Tensor
function tycho.adaptive_avg_pool2d(x, output_size) end

--- means of windows chosen so that output_size results
---@param x tycho.Tensor
---@param output_size integer|integer[]
---@return tycho.Tensor
function Tensor.adaptive_avg_pool2d(x, output_size) end

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

--- x, or a copy in row-major memory order
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.contiguous(x) end

--- x, or a copy in row-major memory order
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.contiguous(x) end

--- dims first to last as one
---@param x tycho.Tensor
---@param first? integer
---@param last? integer
---@return tycho.Tensor
function tycho.flatten(x, first, last) end

--- dims first to last as one
---@param x tycho.Tensor
---@param first? integer
---@param last? integer
---@return tycho.Tensor
function Tensor.flatten(x, first, last) end

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

--- dims a and b exchanged
---@param x tycho.Tensor
---@param a integer
---@param b integer
---@return tycho.Tensor
function tycho.transpose(x, a, b) end

--- dims a and b exchanged
---@param x tycho.Tensor
---@param a integer
---@param b integer
---@return tycho.Tensor
function Tensor.transpose(x, a, b) end

--- a matrix transposed
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.t(x) end

--- a matrix transposed
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor.t(x) end

--- dim from moved to place to
---@param x tycho.Tensor
---@param from integer
---@param to integer
---@return tycho.Tensor
function tycho.movedim(x, from, to) end

--- dim from moved to place to
---@param x tycho.Tensor
---@param from integer
---@param to integer
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

--- length elements of dim from first on
---@param x tycho.Tensor
---@param dim integer
---@param first integer
---@param length integer
---@return tycho.Tensor
function tycho.narrow(x, dim, first, length) end

--- length elements of dim from first on
---@param x tycho.Tensor
---@param dim integer
---@param first integer
---@param length integer
---@return tycho.Tensor
function Tensor.narrow(x, dim, first, length) end

--- tensors of one shape along a new dim
---@param tensors tycho.Tensor[]
---@param dim? integer
---@return tycho.Tensor
function tycho.stack(tensors, dim) end

--- tensors of one shape along a new dim
---@param tensors tycho.Tensor[]
---@param dim? integer
---@return tycho.Tensor
function Tensor.stack(tensors, dim) end

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

--- elements moved by shift along dim, around the end (through all elements where dim is nil)
---@param x tycho.Tensor
---@param shift integer
---@param dim? integer
---@return tycho.Tensor
function tycho.roll(x, shift, dim) end

--- elements moved by shift along dim, around the end (through all elements where dim is nil)
---@param x tycho.Tensor
---@param shift integer
---@param dim? integer
---@return tycho.Tensor
function Tensor.roll(x, shift, dim) end

--- x in another dtype, on another device, or as target is; x itself where nothing changes
---@param x tycho.Tensor
---@param target any
---@param non_blocking? boolean
---@return tycho.Tensor
function tycho.to(x, target, non_blocking) end

--- x in another dtype, on another device, or as target is; x itself where nothing changes
---@param x tycho.Tensor
---@param target any
---@param non_blocking? boolean
---@return tycho.Tensor
function Tensor.to(x, target, non_blocking) end

--- zeros in x's shape and dtype
---@param x tycho.Tensor
---@param dtype? string
---@param device? string
---@param requires_grad? boolean
---@return tycho.Tensor
function tycho.zeros_like(x, dtype, device, requires_grad) end

--- zeros in x's shape and dtype
---@param x tycho.Tensor
---@param dtype? string
---@param device? string
---@param requires_grad? boolean
---@return tycho.Tensor
function Tensor.zeros_like(x, dtype, device, requires_grad) end

--- ones in x's shape and dtype
---@param x tycho.Tensor
---@param dtype? string
---@param device? string
---@param requires_grad? boolean
---@return tycho.Tensor
function tycho.ones_like(x, dtype, device, requires_grad) end

--- ones in x's shape and dtype
---@param x tycho.Tensor
---@param dtype? string
---@param device? string
---@param requires_grad? boolean
---@return tycho.Tensor
function Tensor.ones_like(x, dtype, device, requires_grad) end

--- rand in x's shape and dtype
---@param x tycho.Tensor
---@param dtype? string
---@param device? string
---@param requires_grad? boolean
---@return tycho.Tensor
function tycho.rand_like(x, dtype, device, requires_grad) end

--- rand in x's shape and dtype
---@param x tycho.Tensor
---@param dtype? string
---@param device? string
---@param requires_grad? boolean
---@return tycho.Tensor
function Tensor.rand_like(x, dtype, device, requires_grad) end

--- randn in x's shape and dtype
---@param x tycho.Tensor
---@param dtype? string
---@param device? string
---@param requires_grad? boolean
---@return tycho.Tensor
function tycho.randn_like(x, dtype, device, requires_grad) end

--- randn in x's shape and dtype
---@param x tycho.Tensor
---@param dtype? string
---@param device? string
---@param requires_grad? boolean
---@return tycho.Tensor
function Tensor.randn_like(x, dtype, device, requires_grad) end

--- empty in x's shape and dtype
---@param x tycho.Tensor
---@param dtype? string
---@param device? string
---@param requires_grad? boolean
---@return tycho.Tensor
function tycho.empty_like(x, dtype, device, requires_grad) end

--- empty in x's shape and dtype
---@param x tycho.Tensor
---@param dtype? string
---@param device? string
---@param requires_grad? boolean
---@return tycho.Tensor
function Tensor.empty_like(x, dtype, device, requires_grad) end

--- x's shape and dtype, all value
---@param x tycho.Tensor
---@param value any
---@param dtype? string
---@param device? string
---@param requires_grad? boolean
---@return tycho.Tensor
function tycho.full_like(x, value, dtype, device, requires_grad) end

--- x's shape and dtype, all value
---@param x tycho.Tensor
---@param value any
---@param dtype? string
---@param device? string
---@param requires_grad? boolean
---@return tycho.Tensor
function Tensor.full_like(x, value, dtype, device, requires_grad) end

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

--- variance over dim; correction is subtracted from the count
---@param x tycho.Tensor
---@param dim? integer|integer[]
---@param correction? number
---@param keepdim? boolean
---@return tycho.Tensor
function tycho.var(x, dim, correction, keepdim) end

--- variance over dim; correction is subtracted from the count
---@param x tycho.Tensor
---@param dim? integer|integer[]
---@param correction? number
---@param keepdim? boolean
---@return tycho.Tensor
function Tensor.var(x, dim, correction, keepdim) end

--- standard deviation over dim
---@param x tycho.Tensor
---@param dim? integer|integer[]
---@param correction? number
---@param keepdim? boolean
---@return tycho.Tensor
function tycho.std(x, dim, correction, keepdim) end

--- standard deviation over dim
---@param x tycho.Tensor
---@param dim? integer|integer[]
---@param correction? number
---@param keepdim? boolean
---@return tycho.Tensor
function Tensor.std(x, dim, correction, keepdim) end

--- the p-norm over dim
---@param x tycho.Tensor
---@param p? number
---@param dim? integer|integer[]
---@param keepdim? boolean
---@return tycho.Tensor
function tycho.norm(x, p, dim, keepdim) end

--- the p-norm over dim
---@param x tycho.Tensor
---@param p? number
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

--- x with src's slices added at index along dim
---@param x tycho.Tensor
---@param dim integer
---@param index tycho.Tensor
---@param src tycho.Tensor
---@return tycho.Tensor
function tycho.index_add(x, dim, index, src) end

--- x with src's slices added at index along dim
---@param x tycho.Tensor
---@param dim integer
---@param index tycho.Tensor
---@param src tycho.Tensor
---@return tycho.Tensor
function Tensor.index_add(x, dim, index, src) end

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

--- the rows of weight that ids name
---@param ids tycho.Tensor
---@param weight tycho.Tensor
---@return tycho.Tensor
function tycho.embedding(ids, weight) end

--- the rows of weight that ids name
---@param ids tycho.Tensor
---@param weight tycho.Tensor
---@return tycho.Tensor
function Tensor.embedding(ids, weight) end

--- 1 at each id's place along a new last dim of size classes
---@param ids tycho.Tensor
---@param classes integer
---@return tycho.Tensor
function tycho.one_hot(ids, classes) end

--- 1 at each id's place along a new last dim of size classes
---@param ids tycho.Tensor
---@param classes integer
---@return tycho.Tensor
function Tensor.one_hot(ids, classes) end

--- maximum of each kernel_size window of the last two dims
---@param x tycho.Tensor
---@param kernel_size integer|integer[]
---@param stride? integer|integer[]
---@param padding? integer|integer[]
---@param return_indices? boolean
---@return tycho.Tensor
function tycho.max_pool2d(x, kernel_size, stride, padding, return_indices) end

--- maximum of each kernel_size window of the last two dims
---@param x tycho.Tensor
---@param kernel_size integer|integer[]
---@param stride? integer|integer[]
---@param padding? integer|integer[]
---@param return_indices? boolean
---@return tycho.Tensor
function Tensor.max_pool2d(x, kernel_size, stride, padding, return_indices) end

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

--- squared differences
---@param x tycho.Tensor
---@param y tycho.Tensor
---@param reduction? string
---@return tycho.Tensor
function tycho.mse_loss(x, y, reduction) end

--- squared differences
---@param x tycho.Tensor
---@param y tycho.Tensor
---@param reduction? string
---@return tycho.Tensor
function Tensor.mse_loss(x, y, reduction) end

--- absolute differences
---@param x tycho.Tensor
---@param y tycho.Tensor
---@param reduction? string
---@return tycho.Tensor
function tycho.l1_loss(x, y, reduction) end

--- absolute differences
---@param x tycho.Tensor
---@param y tycho.Tensor
---@param reduction? string
---@return tycho.Tensor
function Tensor.l1_loss(x, y, reduction) end

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

return tycho
