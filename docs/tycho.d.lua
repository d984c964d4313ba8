---@meta
-- Made by make docs.

---@class tycho.Tensor
---@field shape integer[] the sizes, a list; two compare by value, and print as 2x3
---@field dtype string such as "float32"
---@field device string "cpu", "cuda:0"
---@field requires_grad boolean whether a gradient is asked for; may be assigned to a leaf
---@field grad tycho.Tensor? the gradients that backward has added up, or nil; may be assigned
---@field is_leaf boolean whether no recorded op made it
---@field ndim integer the number of dims
---@field is_cuda boolean whether it is on a GPU
---@field T tycho.Tensor the transpose of a matrix, a vector itself: a view
---@field mT tycho.Tensor the last two dims swapped: a view
---@field H tycho.Tensor as T: what is real is its own conjugate
---@field mH tycho.Tensor as mT
---@operator add(any): tycho.Tensor
---@operator sub(any): tycho.Tensor
---@operator mul(any): tycho.Tensor
---@operator div(any): tycho.Tensor
---@operator mod(any): tycho.Tensor
---@operator pow(any): tycho.Tensor
---@operator unm: tycho.Tensor
---@operator len: integer
local Tensor = {}

---@class tycho
---@field bfloat16 string
---@field bool string
---@field channels_last string
---@field contiguous_format string
---@field double string
---@field e number
---@field float string
---@field float16 string
---@field float32 string
---@field float64 string
---@field half string
---@field inf number
---@field int string
---@field int32 string
---@field int64 string
---@field long string
---@field nan number
---@field newaxis string
---@field pi number
---@field preserve_format string
---@field uint8 string
---@field version string
local tycho = {}

-- What functions give: methods by the names in reference.md.
local classes = {}

tycho.fft = {}
tycho.linalg = {}
tycho.signal = {}
tycho.signal.windows = {}
tycho.special = {}
--- `(x)` -x
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.neg(x) end

--- -x
---@return tycho.Tensor
function Tensor:neg() end

--- `(x)` -x
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.neg_(x) end

--- -x
---@return tycho.Tensor
function Tensor:neg_() end

--- `(x)` -x
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.negative(x) end

--- -x
---@return tycho.Tensor
function Tensor:negative() end

--- -x
---@return tycho.Tensor
function Tensor:negative_() end

--- `(x)` absolute value
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.abs(x) end

--- absolute value
---@return tycho.Tensor
function Tensor:abs() end

--- `(x)` absolute value
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.abs_(x) end

--- absolute value
---@return tycho.Tensor
function Tensor:abs_() end

--- `(x)` absolute value
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.absolute(x) end

--- absolute value
---@return tycho.Tensor
function Tensor:absolute() end

--- absolute value
---@return tycho.Tensor
function Tensor:absolute_() end

--- `(x)` -1, 0 or 1
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.sign(x) end

--- -1, 0 or 1
---@return tycho.Tensor
function Tensor:sign() end

--- `(x)` -1, 0 or 1
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.sign_(x) end

--- -1, 0 or 1
---@return tycho.Tensor
function Tensor:sign_() end

--- `(x)` -1, 0 or 1
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.sgn(x) end

--- -1, 0 or 1
---@return tycho.Tensor
function Tensor:sgn() end

--- -1, 0 or 1
---@return tycho.Tensor
function Tensor:sgn_() end

--- `(x)` x times x
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.square(x) end

--- x times x
---@return tycho.Tensor
function Tensor:square() end

--- `(x)` x times x
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.square_(x) end

--- x times x
---@return tycho.Tensor
function Tensor:square_() end

--- `(x)` e to the power of x
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.exp(x) end

--- e to the power of x
---@return tycho.Tensor
function Tensor:exp() end

--- `(x)` e to the power of x
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.exp_(x) end

--- e to the power of x
---@return tycho.Tensor
function Tensor:exp_() end

--- `(x)` exp(x) - 1, exact near 0
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.expm1(x) end

--- exp(x) - 1, exact near 0
---@return tycho.Tensor
function Tensor:expm1() end

--- `(x)` exp(x) - 1, exact near 0
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.expm1_(x) end

--- exp(x) - 1, exact near 0
---@return tycho.Tensor
function Tensor:expm1_() end

--- `(x)` exp(x) - 1, exact near 0
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.special.expm1(x) end

--- `(x)` exp(x) - 1, exact near 0
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.special.expm1_(x) end

--- `(x)` natural logarithm
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.log(x) end

--- natural logarithm
---@return tycho.Tensor
function Tensor:log() end

--- `(x)` natural logarithm
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.log_(x) end

--- natural logarithm
---@return tycho.Tensor
function Tensor:log_() end

--- `(x)` logarithm to base 2
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.log2(x) end

--- logarithm to base 2
---@return tycho.Tensor
function Tensor:log2() end

--- `(x)` logarithm to base 2
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.log2_(x) end

--- logarithm to base 2
---@return tycho.Tensor
function Tensor:log2_() end

--- `(x)` logarithm to base 10
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.log10(x) end

--- logarithm to base 10
---@return tycho.Tensor
function Tensor:log10() end

--- `(x)` logarithm to base 10
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.log10_(x) end

--- logarithm to base 10
---@return tycho.Tensor
function Tensor:log10_() end

--- `(x)` log(1 + x), exact near 0
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.log1p(x) end

--- log(1 + x), exact near 0
---@return tycho.Tensor
function Tensor:log1p() end

--- `(x)` log(1 + x), exact near 0
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.log1p_(x) end

--- log(1 + x), exact near 0
---@return tycho.Tensor
function Tensor:log1p_() end

--- `(x)` log(1 + x), exact near 0
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.special.log1p(x) end

--- `(x)` log(1 + x), exact near 0
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.special.log1p_(x) end

--- `(x)` square root
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.sqrt(x) end

--- square root
---@return tycho.Tensor
function Tensor:sqrt() end

--- `(x)` square root
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.sqrt_(x) end

--- square root
---@return tycho.Tensor
function Tensor:sqrt_() end

--- `(x)` 1 / sqrt(x)
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.rsqrt(x) end

--- 1 / sqrt(x)
---@return tycho.Tensor
function Tensor:rsqrt() end

--- `(x)` 1 / sqrt(x)
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.rsqrt_(x) end

--- 1 / sqrt(x)
---@return tycho.Tensor
function Tensor:rsqrt_() end

--- `(x)` 1 / x
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.reciprocal(x) end

--- 1 / x
---@return tycho.Tensor
function Tensor:reciprocal() end

--- `(x)` 1 / x
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.reciprocal_(x) end

--- 1 / x
---@return tycho.Tensor
function Tensor:reciprocal_() end

--- `(x)` sine of radians
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.sin(x) end

--- sine of radians
---@return tycho.Tensor
function Tensor:sin() end

--- `(x)` sine of radians
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.sin_(x) end

--- sine of radians
---@return tycho.Tensor
function Tensor:sin_() end

--- `(x)` cosine of radians
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.cos(x) end

--- cosine of radians
---@return tycho.Tensor
function Tensor:cos() end

--- `(x)` cosine of radians
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.cos_(x) end

--- cosine of radians
---@return tycho.Tensor
function Tensor:cos_() end

--- `(x)` tangent of radians
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.tan(x) end

--- tangent of radians
---@return tycho.Tensor
function Tensor:tan() end

--- `(x)` tangent of radians
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.tan_(x) end

--- tangent of radians
---@return tycho.Tensor
function Tensor:tan_() end

--- `(x)` inverse sine, in radians
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.asin(x) end

--- inverse sine, in radians
---@return tycho.Tensor
function Tensor:asin() end

--- `(x)` inverse sine, in radians
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.asin_(x) end

--- inverse sine, in radians
---@return tycho.Tensor
function Tensor:asin_() end

--- `(x)` inverse sine, in radians
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.arcsin(x) end

--- inverse sine, in radians
---@return tycho.Tensor
function Tensor:arcsin() end

--- inverse sine, in radians
---@return tycho.Tensor
function Tensor:arcsin_() end

--- `(x)` inverse cosine, in radians
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.acos(x) end

--- inverse cosine, in radians
---@return tycho.Tensor
function Tensor:acos() end

--- `(x)` inverse cosine, in radians
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.acos_(x) end

--- inverse cosine, in radians
---@return tycho.Tensor
function Tensor:acos_() end

--- `(x)` inverse cosine, in radians
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.arccos(x) end

--- inverse cosine, in radians
---@return tycho.Tensor
function Tensor:arccos() end

--- inverse cosine, in radians
---@return tycho.Tensor
function Tensor:arccos_() end

--- `(x)` inverse tangent, in radians
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.atan(x) end

--- inverse tangent, in radians
---@return tycho.Tensor
function Tensor:atan() end

--- `(x)` inverse tangent, in radians
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.atan_(x) end

--- inverse tangent, in radians
---@return tycho.Tensor
function Tensor:atan_() end

--- `(x)` inverse tangent, in radians
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.arctan(x) end

--- inverse tangent, in radians
---@return tycho.Tensor
function Tensor:arctan() end

--- inverse tangent, in radians
---@return tycho.Tensor
function Tensor:arctan_() end

--- `(x)` hyperbolic sine
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.sinh(x) end

--- hyperbolic sine
---@return tycho.Tensor
function Tensor:sinh() end

--- `(x)` hyperbolic sine
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.sinh_(x) end

--- hyperbolic sine
---@return tycho.Tensor
function Tensor:sinh_() end

--- `(x)` hyperbolic cosine
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.cosh(x) end

--- hyperbolic cosine
---@return tycho.Tensor
function Tensor:cosh() end

--- `(x)` hyperbolic cosine
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.cosh_(x) end

--- hyperbolic cosine
---@return tycho.Tensor
function Tensor:cosh_() end

--- `(x)` inverse hyperbolic sine
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.asinh(x) end

--- inverse hyperbolic sine
---@return tycho.Tensor
function Tensor:asinh() end

--- `(x)` inverse hyperbolic sine
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.asinh_(x) end

--- inverse hyperbolic sine
---@return tycho.Tensor
function Tensor:asinh_() end

--- `(x)` inverse hyperbolic sine
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.arcsinh(x) end

--- inverse hyperbolic sine
---@return tycho.Tensor
function Tensor:arcsinh() end

--- inverse hyperbolic sine
---@return tycho.Tensor
function Tensor:arcsinh_() end

--- `(x)` inverse hyperbolic cosine
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.acosh(x) end

--- inverse hyperbolic cosine
---@return tycho.Tensor
function Tensor:acosh() end

--- `(x)` inverse hyperbolic cosine
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.acosh_(x) end

--- inverse hyperbolic cosine
---@return tycho.Tensor
function Tensor:acosh_() end

--- `(x)` inverse hyperbolic cosine
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.arccosh(x) end

--- inverse hyperbolic cosine
---@return tycho.Tensor
function Tensor:arccosh() end

--- inverse hyperbolic cosine
---@return tycho.Tensor
function Tensor:arccosh_() end

--- `(x)` inverse hyperbolic tangent
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.atanh(x) end

--- inverse hyperbolic tangent
---@return tycho.Tensor
function Tensor:atanh() end

--- `(x)` inverse hyperbolic tangent
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.atanh_(x) end

--- inverse hyperbolic tangent
---@return tycho.Tensor
function Tensor:atanh_() end

--- `(x)` inverse hyperbolic tangent
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.arctanh(x) end

--- inverse hyperbolic tangent
---@return tycho.Tensor
function Tensor:arctanh() end

--- inverse hyperbolic tangent
---@return tycho.Tensor
function Tensor:arctanh_() end

--- `(x)` hyperbolic tangent
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.tanh(x) end

--- hyperbolic tangent
---@return tycho.Tensor
function Tensor:tanh() end

--- `(x)` hyperbolic tangent
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.tanh_(x) end

--- hyperbolic tangent
---@return tycho.Tensor
function Tensor:tanh_() end

--- `(x)` error function
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.erf(x) end

--- error function
---@return tycho.Tensor
function Tensor:erf() end

--- `(x)` error function
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.erf_(x) end

--- error function
---@return tycho.Tensor
function Tensor:erf_() end

--- `(x)` error function
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.special.erf(x) end

--- `(x)` error function
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.special.erf_(x) end

--- `(x)` 1 - erf(x)
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.erfc(x) end

--- 1 - erf(x)
---@return tycho.Tensor
function Tensor:erfc() end

--- `(x)` 1 - erf(x)
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.erfc_(x) end

--- 1 - erf(x)
---@return tycho.Tensor
function Tensor:erfc_() end

--- `(x)` 1 - erf(x)
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.special.erfc(x) end

--- `(x)` 1 - erf(x)
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.special.erfc_(x) end

--- `(x)` inverse of erf
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.erfinv(x) end

--- inverse of erf
---@return tycho.Tensor
function Tensor:erfinv() end

--- `(x)` inverse of erf
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.erfinv_(x) end

--- inverse of erf
---@return tycho.Tensor
function Tensor:erfinv_() end

--- `(x)` inverse of erf
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.special.erfinv(x) end

--- `(x)` inverse of erf
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.special.erfinv_(x) end

--- `(x)` logarithm of the absolute value of the gamma function
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.lgamma(x) end

--- logarithm of the absolute value of the gamma function
---@return tycho.Tensor
function Tensor:lgamma() end

--- `(x)` logarithm of the absolute value of the gamma function
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.lgamma_(x) end

--- logarithm of the absolute value of the gamma function
---@return tycho.Tensor
function Tensor:lgamma_() end

--- `(x)` logarithm of the absolute value of the gamma function
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.special.gammaln(x) end

--- `(x)` logarithm of the absolute value of the gamma function
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.special.gammaln_(x) end

--- `(x)` derivative of lgamma
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.digamma(x) end

--- derivative of lgamma
---@return tycho.Tensor
function Tensor:digamma() end

--- `(x)` derivative of lgamma
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.digamma_(x) end

--- derivative of lgamma
---@return tycho.Tensor
function Tensor:digamma_() end

--- `(x)` derivative of lgamma
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.special.digamma(x) end

--- `(x)` derivative of lgamma
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.special.digamma_(x) end

--- `(x)` derivative of lgamma
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.special.psi(x) end

--- `(x)` derivative of lgamma
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.special.psi_(x) end

--- `(x)` -x * log(x), 0 at 0, -inf below
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.entr(x) end

--- -x * log(x), 0 at 0, -inf below
---@return tycho.Tensor
function Tensor:entr() end

--- `(x)` -x * log(x), 0 at 0, -inf below
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.entr_(x) end

--- -x * log(x), 0 at 0, -inf below
---@return tycho.Tensor
function Tensor:entr_() end

--- `(x)` -x * log(x), 0 at 0, -inf below
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.special.entr(x) end

--- `(x)` -x * log(x), 0 at 0, -inf below
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.special.entr_(x) end

--- `(x)` exp(x * x) * erfc(x), without overflow where x is large
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.erfcx(x) end

--- exp(x * x) * erfc(x), without overflow where x is large
---@return tycho.Tensor
function Tensor:erfcx() end

--- `(x)` exp(x * x) * erfc(x), without overflow where x is large
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.erfcx_(x) end

--- exp(x * x) * erfc(x), without overflow where x is large
---@return tycho.Tensor
function Tensor:erfcx_() end

--- `(x)` exp(x * x) * erfc(x), without overflow where x is large
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.special.erfcx(x) end

--- `(x)` exp(x * x) * erfc(x), without overflow where x is large
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.special.erfcx_(x) end

--- `(x)` logarithm of the standard normal distribution function, exact far below 0
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.log_ndtr(x) end

--- logarithm of the standard normal distribution function, exact far below 0
---@return tycho.Tensor
function Tensor:log_ndtr() end

--- `(x)` logarithm of the standard normal distribution function, exact far below 0
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.log_ndtr_(x) end

--- logarithm of the standard normal distribution function, exact far below 0
---@return tycho.Tensor
function Tensor:log_ndtr_() end

--- `(x)` logarithm of the standard normal distribution function, exact far below 0
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.special.log_ndtr(x) end

--- `(x)` logarithm of the standard normal distribution function, exact far below 0
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.special.log_ndtr_(x) end

--- `(x)` where the standard normal distribution function is x
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.ndtri(x) end

--- where the standard normal distribution function is x
---@return tycho.Tensor
function Tensor:ndtri() end

--- `(x)` where the standard normal distribution function is x
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.ndtri_(x) end

--- where the standard normal distribution function is x
---@return tycho.Tensor
function Tensor:ndtri_() end

--- `(x)` where the standard normal distribution function is x
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.special.ndtri(x) end

--- `(x)` where the standard normal distribution function is x
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.special.ndtri_(x) end

--- `(x)` modified Bessel function of the first kind, of order 0
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.i0(x) end

--- modified Bessel function of the first kind, of order 0
---@return tycho.Tensor
function Tensor:i0() end

--- `(x)` modified Bessel function of the first kind, of order 0
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.i0_(x) end

--- modified Bessel function of the first kind, of order 0
---@return tycho.Tensor
function Tensor:i0_() end

--- `(x)` modified Bessel function of the first kind, of order 0
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.special.i0(x) end

--- `(x)` modified Bessel function of the first kind, of order 0
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.special.i0_(x) end

--- `(x)` i0(x) * exp(-|x|)
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.i0e(x) end

--- i0(x) * exp(-|x|)
---@return tycho.Tensor
function Tensor:i0e() end

--- `(x)` i0(x) * exp(-|x|)
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.i0e_(x) end

--- i0(x) * exp(-|x|)
---@return tycho.Tensor
function Tensor:i0e_() end

--- `(x)` i0(x) * exp(-|x|)
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.special.i0e(x) end

--- `(x)` i0(x) * exp(-|x|)
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.special.i0e_(x) end

--- `(x)` modified Bessel function of the first kind, of order 1
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.i1(x) end

--- modified Bessel function of the first kind, of order 1
---@return tycho.Tensor
function Tensor:i1() end

--- `(x)` modified Bessel function of the first kind, of order 1
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.i1_(x) end

--- modified Bessel function of the first kind, of order 1
---@return tycho.Tensor
function Tensor:i1_() end

--- `(x)` modified Bessel function of the first kind, of order 1
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.special.i1(x) end

--- `(x)` modified Bessel function of the first kind, of order 1
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.special.i1_(x) end

--- `(x)` i1(x) * exp(-|x|)
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.i1e(x) end

--- i1(x) * exp(-|x|)
---@return tycho.Tensor
function Tensor:i1e() end

--- `(x)` i1(x) * exp(-|x|)
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.i1e_(x) end

--- i1(x) * exp(-|x|)
---@return tycho.Tensor
function Tensor:i1e_() end

--- `(x)` i1(x) * exp(-|x|)
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.special.i1e(x) end

--- `(x)` i1(x) * exp(-|x|)
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.special.i1e_(x) end

--- `(x)` 2 to the power of x
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.exp2(x) end

--- 2 to the power of x
---@return tycho.Tensor
function Tensor:exp2() end

--- `(x)` 2 to the power of x
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.exp2_(x) end

--- 2 to the power of x
---@return tycho.Tensor
function Tensor:exp2_() end

--- `(x)` 2 to the power of x
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.special.exp2(x) end

--- `(x)` 2 to the power of x
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.special.exp2_(x) end

--- `(x)` 1 / (1 + exp(-x))
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.sigmoid(x) end

--- 1 / (1 + exp(-x))
---@return tycho.Tensor
function Tensor:sigmoid() end

--- `(x)` 1 / (1 + exp(-x))
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.sigmoid_(x) end

--- 1 / (1 + exp(-x))
---@return tycho.Tensor
function Tensor:sigmoid_() end

--- `(x)` 1 / (1 + exp(-x))
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.expit(x) end

--- 1 / (1 + exp(-x))
---@return tycho.Tensor
function Tensor:expit() end

--- 1 / (1 + exp(-x))
---@return tycho.Tensor
function Tensor:expit_() end

--- `(x)` 1 / (1 + exp(-x))
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.special.expit(x) end

--- `(x)` 1 / (1 + exp(-x))
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.special.expit_(x) end

--- `(x, eps:number=-inf)` log(x / (1 - x)); x is first limited to eps .. 1 - eps where eps is given
---@param x tycho.Tensor
---@param eps? number|table
---@return tycho.Tensor
function tycho.logit(x, eps) end

--- `(eps:number=-inf)` log(x / (1 - x)); x is first limited to eps .. 1 - eps where eps is given
---@param eps? number|table
---@return tycho.Tensor
function Tensor:logit(eps) end

--- `(x, eps:number=-inf)` log(x / (1 - x)); x is first limited to eps .. 1 - eps where eps is given
---@param x tycho.Tensor
---@param eps? number|table
---@return tycho.Tensor
function tycho.logit_(x, eps) end

--- `(eps:number=-inf)` log(x / (1 - x)); x is first limited to eps .. 1 - eps where eps is given
---@param eps? number|table
---@return tycho.Tensor
function Tensor:logit_(eps) end

--- `(x, eps:number=-inf)` log(x / (1 - x)); x is first limited to eps .. 1 - eps where eps is given
---@param x tycho.Tensor
---@param eps? number|table
---@return tycho.Tensor
function tycho.special.logit(x, eps) end

--- `(x, eps:number=-inf)` log(x / (1 - x)); x is first limited to eps .. 1 - eps where eps is given
---@param x tycho.Tensor
---@param eps? number|table
---@return tycho.Tensor
function tycho.special.logit_(x, eps) end

--- `(x)` max(x, 0)
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.relu(x) end

--- max(x, 0)
---@return tycho.Tensor
function Tensor:relu() end

--- `(x)` max(x, 0)
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.relu_(x) end

--- max(x, 0)
---@return tycho.Tensor
function Tensor:relu_() end

--- `(x)` x * sigmoid(x)
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.silu(x) end

--- x * sigmoid(x)
---@return tycho.Tensor
function Tensor:silu() end

--- `(x)` x * sigmoid(x)
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.silu_(x) end

--- x * sigmoid(x)
---@return tycho.Tensor
function Tensor:silu_() end

--- `(x, negative_slope:number=0.01)` x where x > 0, else negative_slope * x
---@param x tycho.Tensor
---@param negative_slope? number|table
---@return tycho.Tensor
function tycho.leaky_relu(x, negative_slope) end

--- `(negative_slope:number=0.01)` x where x > 0, else negative_slope * x
---@param negative_slope? number|table
---@return tycho.Tensor
function Tensor:leaky_relu(negative_slope) end

--- `(x, negative_slope:number=0.01)` x where x > 0, else negative_slope * x
---@param x tycho.Tensor
---@param negative_slope? number|table
---@return tycho.Tensor
function tycho.leaky_relu_(x, negative_slope) end

--- `(negative_slope:number=0.01)` x where x > 0, else negative_slope * x
---@param negative_slope? number|table
---@return tycho.Tensor
function Tensor:leaky_relu_(negative_slope) end

--- `(x, alpha:number=1)` x where x > 0, else alpha * (exp(x) - 1)
---@param x tycho.Tensor
---@param alpha? number|table
---@return tycho.Tensor
function tycho.elu(x, alpha) end

--- `(alpha:number=1)` x where x > 0, else alpha * (exp(x) - 1)
---@param alpha? number|table
---@return tycho.Tensor
function Tensor:elu(alpha) end

--- `(x, alpha:number=1)` x where x > 0, else alpha * (exp(x) - 1)
---@param x tycho.Tensor
---@param alpha? number|table
---@return tycho.Tensor
function tycho.elu_(x, alpha) end

--- `(alpha:number=1)` x where x > 0, else alpha * (exp(x) - 1)
---@param alpha? number|table
---@return tycho.Tensor
function Tensor:elu_(alpha) end

--- `(x, beta:number=1, threshold:number=20)` log(1 + exp(beta * x)) / beta
---@param x tycho.Tensor
---@param beta? number|table
---@param threshold? number|table
---@return tycho.Tensor
function tycho.softplus(x, beta, threshold) end

--- `(beta:number=1, threshold:number=20)` log(1 + exp(beta * x)) / beta
---@param beta? number|table
---@param threshold? number|table
---@return tycho.Tensor
function Tensor:softplus(beta, threshold) end

--- `(x, beta:number=1, threshold:number=20)` log(1 + exp(beta * x)) / beta
---@param x tycho.Tensor
---@param beta? number|table
---@param threshold? number|table
---@return tycho.Tensor
function tycho.softplus_(x, beta, threshold) end

--- `(beta:number=1, threshold:number=20)` log(1 + exp(beta * x)) / beta
---@param beta? number|table
---@param threshold? number|table
---@return tycho.Tensor
function Tensor:softplus_(beta, threshold) end

--- `(x)` scaled elu that keeps mean and variance
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.selu(x) end

--- scaled elu that keeps mean and variance
---@return tycho.Tensor
function Tensor:selu() end

--- `(x)` scaled elu that keeps mean and variance
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.selu_(x) end

--- scaled elu that keeps mean and variance
---@return tycho.Tensor
function Tensor:selu_() end

--- `(x, alpha:number=1)` x where x > 0, else alpha * (exp(x / alpha) - 1)
---@param x tycho.Tensor
---@param alpha? number|table
---@return tycho.Tensor
function tycho.celu(x, alpha) end

--- `(alpha:number=1)` x where x > 0, else alpha * (exp(x / alpha) - 1)
---@param alpha? number|table
---@return tycho.Tensor
function Tensor:celu(alpha) end

--- `(x, alpha:number=1)` x where x > 0, else alpha * (exp(x / alpha) - 1)
---@param x tycho.Tensor
---@param alpha? number|table
---@return tycho.Tensor
function tycho.celu_(x, alpha) end

--- `(alpha:number=1)` x where x > 0, else alpha * (exp(x / alpha) - 1)
---@param alpha? number|table
---@return tycho.Tensor
function Tensor:celu_(alpha) end

--- `(x)` x * tanh(log(1 + exp(x)))
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.mish(x) end

--- x * tanh(log(1 + exp(x)))
---@return tycho.Tensor
function Tensor:mish() end

--- `(x)` x * tanh(log(1 + exp(x)))
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.mish_(x) end

--- x * tanh(log(1 + exp(x)))
---@return tycho.Tensor
function Tensor:mish_() end

--- `(x)` log(sigmoid(x)), without overflow
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.logsigmoid(x) end

--- log(sigmoid(x)), without overflow
---@return tycho.Tensor
function Tensor:logsigmoid() end

--- `(x)` log(sigmoid(x)), without overflow
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.logsigmoid_(x) end

--- log(sigmoid(x)), without overflow
---@return tycho.Tensor
function Tensor:logsigmoid_() end

--- `(x)` log(sigmoid(x)), without overflow
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.log_sigmoid(x) end

--- log(sigmoid(x)), without overflow
---@return tycho.Tensor
function Tensor:log_sigmoid() end

--- log(sigmoid(x)), without overflow
---@return tycho.Tensor
function Tensor:log_sigmoid_() end

--- `(x)` x / (1 + |x|)
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.softsign(x) end

--- x / (1 + |x|)
---@return tycho.Tensor
function Tensor:softsign() end

--- `(x)` x / (1 + |x|)
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.softsign_(x) end

--- x / (1 + |x|)
---@return tycho.Tensor
function Tensor:softsign_() end

--- `(x, lambd:number=0.5)` x moved by lambd towards 0
---@param x tycho.Tensor
---@param lambd? number|table
---@return tycho.Tensor
function tycho.softshrink(x, lambd) end

--- `(lambd:number=0.5)` x moved by lambd towards 0
---@param lambd? number|table
---@return tycho.Tensor
function Tensor:softshrink(lambd) end

--- `(x, lambd:number=0.5)` x moved by lambd towards 0
---@param x tycho.Tensor
---@param lambd? number|table
---@return tycho.Tensor
function tycho.softshrink_(x, lambd) end

--- `(lambd:number=0.5)` x moved by lambd towards 0
---@param lambd? number|table
---@return tycho.Tensor
function Tensor:softshrink_(lambd) end

--- `(x, lambd:number=0.5)` x, 0 within -lambd..lambd
---@param x tycho.Tensor
---@param lambd? number|table
---@return tycho.Tensor
function tycho.hardshrink(x, lambd) end

--- `(lambd:number=0.5)` x, 0 within -lambd..lambd
---@param lambd? number|table
---@return tycho.Tensor
function Tensor:hardshrink(lambd) end

--- `(x, lambd:number=0.5)` x, 0 within -lambd..lambd
---@param x tycho.Tensor
---@param lambd? number|table
---@return tycho.Tensor
function tycho.hardshrink_(x, lambd) end

--- `(lambd:number=0.5)` x, 0 within -lambd..lambd
---@param lambd? number|table
---@return tycho.Tensor
function Tensor:hardshrink_(lambd) end

--- `(x)` x * clamp(x + 3, 0, 6) / 6
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.hardswish(x) end

--- x * clamp(x + 3, 0, 6) / 6
---@return tycho.Tensor
function Tensor:hardswish() end

--- `(x)` x * clamp(x + 3, 0, 6) / 6
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.hardswish_(x) end

--- x * clamp(x + 3, 0, 6) / 6
---@return tycho.Tensor
function Tensor:hardswish_() end

--- `(x)` clamp(x + 3, 0, 6) / 6
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.hardsigmoid(x) end

--- clamp(x + 3, 0, 6) / 6
---@return tycho.Tensor
function Tensor:hardsigmoid() end

--- `(x)` clamp(x + 3, 0, 6) / 6
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.hardsigmoid_(x) end

--- clamp(x + 3, 0, 6) / 6
---@return tycho.Tensor
function Tensor:hardsigmoid_() end

--- `(x, threshold:number, value:number)` x where x > threshold, else value
---@param x tycho.Tensor
---@param threshold number
---@param value number
---@return tycho.Tensor
function tycho.threshold(x, threshold, value) end

--- `(threshold:number, value:number)` x where x > threshold, else value
---@param threshold number
---@param value number
---@return tycho.Tensor
function Tensor:threshold(threshold, value) end

--- `(x, threshold:number, value:number)` x where x > threshold, else value
---@param x tycho.Tensor
---@param threshold number
---@param value number
---@return tycho.Tensor
function tycho.threshold_(x, threshold, value) end

--- `(threshold:number, value:number)` x where x > threshold, else value
---@param threshold number
---@param value number
---@return tycho.Tensor
function Tensor:threshold_(threshold, value) end

--- `(x, min_val:number=-1, max_val:number=1)` x limited to min_val..max_val; at the borders the gradient is 0
---@param x tycho.Tensor
---@param min_val? number|table
---@param max_val? number|table
---@return tycho.Tensor
function tycho.hardtanh(x, min_val, max_val) end

--- `(min_val:number=-1, max_val:number=1)` x limited to min_val..max_val; at the borders the gradient is 0
---@param min_val? number|table
---@param max_val? number|table
---@return tycho.Tensor
function Tensor:hardtanh(min_val, max_val) end

--- `(x, min_val:number=-1, max_val:number=1)` x limited to min_val..max_val; at the borders the gradient is 0
---@param x tycho.Tensor
---@param min_val? number|table
---@param max_val? number|table
---@return tycho.Tensor
function tycho.hardtanh_(x, min_val, max_val) end

--- `(min_val:number=-1, max_val:number=1)` x limited to min_val..max_val; at the borders the gradient is 0
---@param min_val? number|table
---@param max_val? number|table
---@return tycho.Tensor
function Tensor:hardtanh_(min_val, max_val) end

--- `(x, min:number=-inf, max:number=inf)` x limited to min..max; either may be nil; at the borders the gradient is 0
---@param x tycho.Tensor
---@param min? number|table
---@param max? number|table
---@return tycho.Tensor
function tycho.clamp(x, min, max) end

--- `(min:number=-inf, max:number=inf)` x limited to min..max; either may be nil; at the borders the gradient is 0
---@param min? number|table
---@param max? number|table
---@return tycho.Tensor
function Tensor:clamp(min, max) end

--- `(x, min:number=-inf, max:number=inf)` x limited to min..max; either may be nil; at the borders the gradient is 0
---@param x tycho.Tensor
---@param min? number|table
---@param max? number|table
---@return tycho.Tensor
function tycho.clamp_(x, min, max) end

--- `(min:number=-inf, max:number=inf)` x limited to min..max; either may be nil; at the borders the gradient is 0
---@param min? number|table
---@param max? number|table
---@return tycho.Tensor
function Tensor:clamp_(min, max) end

--- `(x, min:number=-inf, max:number=inf)` x limited to min..max; either may be nil; at the borders the gradient is 0
---@param x tycho.Tensor
---@param min? number|table
---@param max? number|table
---@return tycho.Tensor
function tycho.clip(x, min, max) end

--- `(min:number=-inf, max:number=inf)` x limited to min..max; either may be nil; at the borders the gradient is 0
---@param min? number|table
---@param max? number|table
---@return tycho.Tensor
function Tensor:clip(min, max) end

--- `(min:number=-inf, max:number=inf)` x limited to min..max; either may be nil; at the borders the gradient is 0
---@param min? number|table
---@param max? number|table
---@return tycho.Tensor
function Tensor:clip_(min, max) end

--- `(x)` largest whole number not above x
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.floor(x) end

--- largest whole number not above x
---@return tycho.Tensor
function Tensor:floor() end

--- `(x)` largest whole number not above x
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.floor_(x) end

--- largest whole number not above x
---@return tycho.Tensor
function Tensor:floor_() end

--- `(x)` smallest whole number not below x
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.ceil(x) end

--- smallest whole number not below x
---@return tycho.Tensor
function Tensor:ceil() end

--- `(x)` smallest whole number not below x
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.ceil_(x) end

--- smallest whole number not below x
---@return tycho.Tensor
function Tensor:ceil_() end

--- `(x)` nearest whole number, halves to even
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.round(x) end

--- nearest whole number, halves to even
---@return tycho.Tensor
function Tensor:round() end

--- `(x)` nearest whole number, halves to even
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.round_(x) end

--- nearest whole number, halves to even
---@return tycho.Tensor
function Tensor:round_() end

--- `(x)` nearest whole number, halves to even
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.special.round(x) end

--- `(x)` nearest whole number, halves to even
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.special.round_(x) end

--- `(x)` whole part
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.trunc(x) end

--- whole part
---@return tycho.Tensor
function Tensor:trunc() end

--- `(x)` whole part
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.trunc_(x) end

--- whole part
---@return tycho.Tensor
function Tensor:trunc_() end

--- `(x)` whole part
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.fix(x) end

--- whole part
---@return tycho.Tensor
function Tensor:fix() end

--- whole part
---@return tycho.Tensor
function Tensor:fix_() end

--- `(x)` the part after the point, with x's sign
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.frac(x) end

--- the part after the point, with x's sign
---@return tycho.Tensor
function Tensor:frac() end

--- `(x)` the part after the point, with x's sign
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.frac_(x) end

--- the part after the point, with x's sign
---@return tycho.Tensor
function Tensor:frac_() end

--- `(x)` true where x is negative, -0 included
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.signbit(x) end

--- true where x is negative, -0 included
---@return tycho.Tensor
function Tensor:signbit() end

--- `(x)` true where x is negative, -0 included
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.signbit_(x) end

--- true where x is negative, -0 included
---@return tycho.Tensor
function Tensor:signbit_() end

--- `(x)` true where x is NaN
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.isnan(x) end

--- true where x is NaN
---@return tycho.Tensor
function Tensor:isnan() end

--- `(x)` true where x is NaN
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.isnan_(x) end

--- true where x is NaN
---@return tycho.Tensor
function Tensor:isnan_() end

--- `(x)` true where x is infinite
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.isinf(x) end

--- true where x is infinite
---@return tycho.Tensor
function Tensor:isinf() end

--- `(x)` true where x is infinite
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.isinf_(x) end

--- true where x is infinite
---@return tycho.Tensor
function Tensor:isinf_() end

--- `(x)` true where x is neither infinite nor NaN
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.isfinite(x) end

--- true where x is neither infinite nor NaN
---@return tycho.Tensor
function Tensor:isfinite() end

--- `(x)` true where x is neither infinite nor NaN
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.isfinite_(x) end

--- true where x is neither infinite nor NaN
---@return tycho.Tensor
function Tensor:isfinite_() end

--- `(x)` true where x is 0
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.logical_not(x) end

--- true where x is 0
---@return tycho.Tensor
function Tensor:logical_not() end

--- `(x)` true where x is 0
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.logical_not_(x) end

--- true where x is 0
---@return tycho.Tensor
function Tensor:logical_not_() end

--- `(a:operand, b:operand, *, alpha:number=1)` a + alpha * b
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@param options? table
---@return tycho.Tensor
function tycho.add(a, b, options) end

--- `(b:operand, *, alpha:number=1)` a + alpha * b
---@param b tycho.Tensor|number
---@param options? table
---@return tycho.Tensor
function Tensor:add(b, options) end

--- `(a:operand, b:operand, *, alpha:number=1)` a + alpha * b
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@param options? table
---@return tycho.Tensor
function tycho.add_(a, b, options) end

--- `(b:operand, *, alpha:number=1)` a + alpha * b
---@param b tycho.Tensor|number
---@param options? table
---@return tycho.Tensor
function Tensor:add_(b, options) end

--- `(a:operand, b:operand, *, alpha:number=1)` a - alpha * b
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@param options? table
---@return tycho.Tensor
function tycho.sub(a, b, options) end

--- `(b:operand, *, alpha:number=1)` a - alpha * b
---@param b tycho.Tensor|number
---@param options? table
---@return tycho.Tensor
function Tensor:sub(b, options) end

--- `(a:operand, b:operand, *, alpha:number=1)` a - alpha * b
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@param options? table
---@return tycho.Tensor
function tycho.sub_(a, b, options) end

--- `(b:operand, *, alpha:number=1)` a - alpha * b
---@param b tycho.Tensor|number
---@param options? table
---@return tycho.Tensor
function Tensor:sub_(b, options) end

--- `(a:operand, b:operand, *, alpha:number=1)` a - alpha * b
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@param options? table
---@return tycho.Tensor
function tycho.subtract(a, b, options) end

--- `(b:operand, *, alpha:number=1)` a - alpha * b
---@param b tycho.Tensor|number
---@param options? table
---@return tycho.Tensor
function Tensor:subtract(b, options) end

--- `(b:operand, *, alpha:number=1)` a - alpha * b
---@param b tycho.Tensor|number
---@param options? table
---@return tycho.Tensor
function Tensor:subtract_(b, options) end

--- `(a:operand, b:operand)` a * b, by elements
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.mul(a, b) end

--- `(b:operand)` a * b, by elements
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:mul(b) end

--- `(a:operand, b:operand)` a * b, by elements
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.mul_(a, b) end

--- `(b:operand)` a * b, by elements
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:mul_(b) end

--- `(a:operand, b:operand)` a * b, by elements
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.multiply(a, b) end

--- `(b:operand)` a * b, by elements
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:multiply(b) end

--- `(b:operand)` a * b, by elements
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:multiply_(b) end

--- `(a:operand, b:operand)` a / b, by elements
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.div(a, b) end

--- `(b:operand)` a / b, by elements
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:div(b) end

--- `(a:operand, b:operand)` a / b, by elements
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.div_(a, b) end

--- `(b:operand)` a / b, by elements
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:div_(b) end

--- `(a:operand, b:operand)` a / b, by elements
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.divide(a, b) end

--- `(b:operand)` a / b, by elements
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:divide(b) end

--- `(b:operand)` a / b, by elements
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:divide_(b) end

--- `(a:operand, b:operand)` a / b, by elements
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.true_divide(a, b) end

--- `(b:operand)` a / b, by elements
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:true_divide(b) end

--- `(b:operand)` a / b, by elements
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:true_divide_(b) end

--- `(a:operand, b:operand)` largest whole number not above a / b
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.floor_divide(a, b) end

--- `(b:operand)` largest whole number not above a / b
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:floor_divide(b) end

--- `(a:operand, b:operand)` largest whole number not above a / b
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.floor_divide_(a, b) end

--- `(b:operand)` largest whole number not above a / b
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:floor_divide_(b) end

--- `(a:operand, b:operand)` a - b * floor(a / b): has the sign of b
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.remainder(a, b) end

--- `(b:operand)` a - b * floor(a / b): has the sign of b
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:remainder(b) end

--- `(a:operand, b:operand)` a - b * floor(a / b): has the sign of b
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.remainder_(a, b) end

--- `(b:operand)` a - b * floor(a / b): has the sign of b
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:remainder_(b) end

--- `(a:operand, b:operand)` a - b * trunc(a / b): has the sign of a
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.fmod(a, b) end

--- `(b:operand)` a - b * trunc(a / b): has the sign of a
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:fmod(b) end

--- `(a:operand, b:operand)` a - b * trunc(a / b): has the sign of a
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.fmod_(a, b) end

--- `(b:operand)` a - b * trunc(a / b): has the sign of a
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:fmod_(b) end

--- `(a:operand, b:operand)` a to the power of b
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.pow(a, b) end

--- `(b:operand)` a to the power of b
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:pow(b) end

--- `(a:operand, b:operand)` a to the power of b
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.pow_(a, b) end

--- `(b:operand)` a to the power of b
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:pow_(b) end

--- `(a:operand, b:operand)` the larger; NaN wins
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.maximum(a, b) end

--- `(b:operand)` the larger; NaN wins
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:maximum(b) end

--- `(a:operand, b:operand)` the larger; NaN wins
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.maximum_(a, b) end

--- `(b:operand)` the larger; NaN wins
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:maximum_(b) end

--- `(a:operand, b:operand)` the smaller; NaN wins
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.minimum(a, b) end

--- `(b:operand)` the smaller; NaN wins
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:minimum(b) end

--- `(a:operand, b:operand)` the smaller; NaN wins
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.minimum_(a, b) end

--- `(b:operand)` the smaller; NaN wins
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:minimum_(b) end

--- `(a:operand, b:operand)` the larger; a number wins over NaN
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.fmax(a, b) end

--- `(b:operand)` the larger; a number wins over NaN
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:fmax(b) end

--- `(a:operand, b:operand)` the larger; a number wins over NaN
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.fmax_(a, b) end

--- `(b:operand)` the larger; a number wins over NaN
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:fmax_(b) end

--- `(a:operand, b:operand)` the smaller; a number wins over NaN
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.fmin(a, b) end

--- `(b:operand)` the smaller; a number wins over NaN
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:fmin(b) end

--- `(a:operand, b:operand)` the smaller; a number wins over NaN
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.fmin_(a, b) end

--- `(b:operand)` the smaller; a number wins over NaN
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:fmin_(b) end

--- `(a:operand, b:operand)` square root of a * a + b * b
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.hypot(a, b) end

--- `(b:operand)` square root of a * a + b * b
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:hypot(b) end

--- `(a:operand, b:operand)` square root of a * a + b * b
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.hypot_(a, b) end

--- `(b:operand)` square root of a * a + b * b
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:hypot_(b) end

--- `(a:operand, b:operand)` a with the sign of b
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.copysign(a, b) end

--- `(b:operand)` a with the sign of b
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:copysign(b) end

--- `(a:operand, b:operand)` a with the sign of b
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.copysign_(a, b) end

--- `(b:operand)` a with the sign of b
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:copysign_(b) end

--- `(a:operand, b:operand)` log(exp(a) + exp(b)), without overflow
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.logaddexp(a, b) end

--- `(b:operand)` log(exp(a) + exp(b)), without overflow
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:logaddexp(b) end

--- `(a:operand, b:operand)` log(exp(a) + exp(b)), without overflow
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.logaddexp_(a, b) end

--- `(b:operand)` log(exp(a) + exp(b)), without overflow
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:logaddexp_(b) end

--- `(a:operand, b:operand)` a * log(b), 0 where a is 0
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.xlogy(a, b) end

--- `(b:operand)` a * log(b), 0 where a is 0
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:xlogy(b) end

--- `(a:operand, b:operand)` a * log(b), 0 where a is 0
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.xlogy_(a, b) end

--- `(b:operand)` a * log(b), 0 where a is 0
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:xlogy_(b) end

--- `(a:operand, b:operand)` a * log(b), 0 where a is 0
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.special.xlogy(a, b) end

--- `(a:operand, b:operand)` a * log(b), 0 where a is 0
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.special.xlogy_(a, b) end

--- `(a:operand, b:operand)` a * log(1 + b), 0 where a is 0
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.xlog1py(a, b) end

--- `(b:operand)` a * log(1 + b), 0 where a is 0
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:xlog1py(b) end

--- `(a:operand, b:operand)` a * log(1 + b), 0 where a is 0
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.xlog1py_(a, b) end

--- `(b:operand)` a * log(1 + b), 0 where a is 0
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:xlog1py_(b) end

--- `(a:operand, b:operand)` a * log(1 + b), 0 where a is 0
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.special.xlog1py(a, b) end

--- `(a:operand, b:operand)` a * log(1 + b), 0 where a is 0
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.special.xlog1py_(a, b) end

--- `(a:operand, x:operand)` the lower incomplete gamma function of x, over gamma(a)
---@param a tycho.Tensor|number
---@param x tycho.Tensor|number
---@return tycho.Tensor
function tycho.igamma(a, x) end

--- `(x:operand)` the lower incomplete gamma function of x, over gamma(a)
---@param x tycho.Tensor|number
---@return tycho.Tensor
function Tensor:igamma(x) end

--- `(a:operand, x:operand)` the lower incomplete gamma function of x, over gamma(a)
---@param a tycho.Tensor|number
---@param x tycho.Tensor|number
---@return tycho.Tensor
function tycho.igamma_(a, x) end

--- `(x:operand)` the lower incomplete gamma function of x, over gamma(a)
---@param x tycho.Tensor|number
---@return tycho.Tensor
function Tensor:igamma_(x) end

--- `(a:operand, x:operand)` the lower incomplete gamma function of x, over gamma(a)
---@param a tycho.Tensor|number
---@param x tycho.Tensor|number
---@return tycho.Tensor
function tycho.special.gammainc(a, x) end

--- `(a:operand, x:operand)` the lower incomplete gamma function of x, over gamma(a)
---@param a tycho.Tensor|number
---@param x tycho.Tensor|number
---@return tycho.Tensor
function tycho.special.gammainc_(a, x) end

--- `(a:operand, x:operand)` the upper incomplete gamma function of x, over gamma(a)
---@param a tycho.Tensor|number
---@param x tycho.Tensor|number
---@return tycho.Tensor
function tycho.igammac(a, x) end

--- `(x:operand)` the upper incomplete gamma function of x, over gamma(a)
---@param x tycho.Tensor|number
---@return tycho.Tensor
function Tensor:igammac(x) end

--- `(a:operand, x:operand)` the upper incomplete gamma function of x, over gamma(a)
---@param a tycho.Tensor|number
---@param x tycho.Tensor|number
---@return tycho.Tensor
function tycho.igammac_(a, x) end

--- `(x:operand)` the upper incomplete gamma function of x, over gamma(a)
---@param x tycho.Tensor|number
---@return tycho.Tensor
function Tensor:igammac_(x) end

--- `(a:operand, x:operand)` the upper incomplete gamma function of x, over gamma(a)
---@param a tycho.Tensor|number
---@param x tycho.Tensor|number
---@return tycho.Tensor
function tycho.special.gammaincc(a, x) end

--- `(a:operand, x:operand)` the upper incomplete gamma function of x, over gamma(a)
---@param a tycho.Tensor|number
---@param x tycho.Tensor|number
---@return tycho.Tensor
function tycho.special.gammaincc_(a, x) end

--- `(s:operand, q:operand)` Hurwitz' zeta function: the sum of (q + k)^-s for k from 0; s is above 1
---@param s tycho.Tensor|number
---@param q tycho.Tensor|number
---@return tycho.Tensor
function tycho.zeta(s, q) end

--- `(q:operand)` Hurwitz' zeta function: the sum of (q + k)^-s for k from 0; s is above 1
---@param q tycho.Tensor|number
---@return tycho.Tensor
function Tensor:zeta(q) end

--- `(s:operand, q:operand)` Hurwitz' zeta function: the sum of (q + k)^-s for k from 0; s is above 1
---@param s tycho.Tensor|number
---@param q tycho.Tensor|number
---@return tycho.Tensor
function tycho.zeta_(s, q) end

--- `(q:operand)` Hurwitz' zeta function: the sum of (q + k)^-s for k from 0; s is above 1
---@param q tycho.Tensor|number
---@return tycho.Tensor
function Tensor:zeta_(q) end

--- `(s:operand, q:operand)` Hurwitz' zeta function: the sum of (q + k)^-s for k from 0; s is above 1
---@param s tycho.Tensor|number
---@param q tycho.Tensor|number
---@return tycho.Tensor
function tycho.special.zeta(s, q) end

--- `(s:operand, q:operand)` Hurwitz' zeta function: the sum of (q + k)^-s for k from 0; s is above 1
---@param s tycho.Tensor|number
---@param q tycho.Tensor|number
---@return tycho.Tensor
function tycho.special.zeta_(s, q) end

--- `(a:operand, b:operand)` greatest common divisor, 0 of two zeros
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.gcd(a, b) end

--- `(b:operand)` greatest common divisor, 0 of two zeros
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:gcd(b) end

--- `(a:operand, b:operand)` greatest common divisor, 0 of two zeros
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.gcd_(a, b) end

--- `(b:operand)` greatest common divisor, 0 of two zeros
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:gcd_(b) end

--- `(a:operand, b:operand)` least common multiple, 0 where one is 0
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.lcm(a, b) end

--- `(b:operand)` least common multiple, 0 where one is 0
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:lcm(b) end

--- `(a:operand, b:operand)` least common multiple, 0 where one is 0
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.lcm_(a, b) end

--- `(b:operand)` least common multiple, 0 where one is 0
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:lcm_(b) end

--- `(a:operand, b:operand)` bits that both have
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.bitwise_and(a, b) end

--- `(b:operand)` bits that both have
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:bitwise_and(b) end

--- `(a:operand, b:operand)` bits that both have
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.bitwise_and_(a, b) end

--- `(b:operand)` bits that both have
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:bitwise_and_(b) end

--- `(a:operand, b:operand)` bits that one has
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.bitwise_or(a, b) end

--- `(b:operand)` bits that one has
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:bitwise_or(b) end

--- `(a:operand, b:operand)` bits that one has
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.bitwise_or_(a, b) end

--- `(b:operand)` bits that one has
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:bitwise_or_(b) end

--- `(a:operand, b:operand)` bits that just one has
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.bitwise_xor(a, b) end

--- `(b:operand)` bits that just one has
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:bitwise_xor(b) end

--- `(a:operand, b:operand)` bits that just one has
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.bitwise_xor_(a, b) end

--- `(b:operand)` bits that just one has
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:bitwise_xor_(b) end

--- `(a:operand, b:operand)` a's bits moved b places up
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.bitwise_left_shift(a, b) end

--- `(b:operand)` a's bits moved b places up
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:bitwise_left_shift(b) end

--- `(a:operand, b:operand)` a's bits moved b places up
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.bitwise_left_shift_(a, b) end

--- `(b:operand)` a's bits moved b places up
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:bitwise_left_shift_(b) end

--- `(a:operand, b:operand)` a's bits moved b places down; the sign stays
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.bitwise_right_shift(a, b) end

--- `(b:operand)` a's bits moved b places down; the sign stays
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:bitwise_right_shift(b) end

--- `(a:operand, b:operand)` a's bits moved b places down; the sign stays
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.bitwise_right_shift_(a, b) end

--- `(b:operand)` a's bits moved b places down; the sign stays
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:bitwise_right_shift_(b) end

--- `(a:operand, b:operand)` angle of the point (b, a)
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.atan2(a, b) end

--- `(b:operand)` angle of the point (b, a)
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:atan2(b) end

--- `(a:operand, b:operand)` angle of the point (b, a)
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.atan2_(a, b) end

--- `(b:operand)` angle of the point (b, a)
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:atan2_(b) end

--- `(a:operand, b:operand)` angle of the point (b, a)
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.arctan2(a, b) end

--- `(b:operand)` angle of the point (b, a)
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:arctan2(b) end

--- `(b:operand)` angle of the point (b, a)
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:arctan2_(b) end

--- `(a:operand, b:operand)` a == b, by elements
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.eq(a, b) end

--- `(b:operand)` a == b, by elements
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:eq(b) end

--- `(a:operand, b:operand)` a == b, by elements
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.eq_(a, b) end

--- `(b:operand)` a == b, by elements
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:eq_(b) end

--- `(a:operand, b:operand)` a != b, by elements
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.ne(a, b) end

--- `(b:operand)` a != b, by elements
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:ne(b) end

--- `(a:operand, b:operand)` a != b, by elements
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.ne_(a, b) end

--- `(b:operand)` a != b, by elements
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:ne_(b) end

--- `(a:operand, b:operand)` a != b, by elements
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.not_equal(a, b) end

--- `(b:operand)` a != b, by elements
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:not_equal(b) end

--- `(b:operand)` a != b, by elements
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:not_equal_(b) end

--- `(a:operand, b:operand)` a < b, by elements
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.lt(a, b) end

--- `(b:operand)` a < b, by elements
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:lt(b) end

--- `(a:operand, b:operand)` a < b, by elements
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.lt_(a, b) end

--- `(b:operand)` a < b, by elements
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:lt_(b) end

--- `(a:operand, b:operand)` a < b, by elements
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.less(a, b) end

--- `(b:operand)` a < b, by elements
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:less(b) end

--- `(b:operand)` a < b, by elements
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:less_(b) end

--- `(a:operand, b:operand)` a <= b, by elements
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.le(a, b) end

--- `(b:operand)` a <= b, by elements
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:le(b) end

--- `(a:operand, b:operand)` a <= b, by elements
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.le_(a, b) end

--- `(b:operand)` a <= b, by elements
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:le_(b) end

--- `(a:operand, b:operand)` a <= b, by elements
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.less_equal(a, b) end

--- `(b:operand)` a <= b, by elements
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:less_equal(b) end

--- `(b:operand)` a <= b, by elements
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:less_equal_(b) end

--- `(a:operand, b:operand)` a > b, by elements
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.gt(a, b) end

--- `(b:operand)` a > b, by elements
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:gt(b) end

--- `(a:operand, b:operand)` a > b, by elements
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.gt_(a, b) end

--- `(b:operand)` a > b, by elements
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:gt_(b) end

--- `(a:operand, b:operand)` a > b, by elements
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.greater(a, b) end

--- `(b:operand)` a > b, by elements
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:greater(b) end

--- `(b:operand)` a > b, by elements
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:greater_(b) end

--- `(a:operand, b:operand)` a >= b, by elements
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.ge(a, b) end

--- `(b:operand)` a >= b, by elements
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:ge(b) end

--- `(a:operand, b:operand)` a >= b, by elements
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.ge_(a, b) end

--- `(b:operand)` a >= b, by elements
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:ge_(b) end

--- `(a:operand, b:operand)` a >= b, by elements
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.greater_equal(a, b) end

--- `(b:operand)` a >= b, by elements
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:greater_equal(b) end

--- `(b:operand)` a >= b, by elements
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:greater_equal_(b) end

--- `(a:operand, b:operand)` true where both are not 0
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.logical_and(a, b) end

--- `(b:operand)` true where both are not 0
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:logical_and(b) end

--- `(a:operand, b:operand)` true where both are not 0
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.logical_and_(a, b) end

--- `(b:operand)` true where both are not 0
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:logical_and_(b) end

--- `(a:operand, b:operand)` true where one is not 0
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.logical_or(a, b) end

--- `(b:operand)` true where one is not 0
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:logical_or(b) end

--- `(a:operand, b:operand)` true where one is not 0
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.logical_or_(a, b) end

--- `(b:operand)` true where one is not 0
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:logical_or_(b) end

--- `(a:operand, b:operand)` true where just one is not 0
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.logical_xor(a, b) end

--- `(b:operand)` true where just one is not 0
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:logical_xor(b) end

--- `(a:operand, b:operand)` true where just one is not 0
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.logical_xor_(a, b) end

--- `(b:operand)` true where just one is not 0
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:logical_xor_(b) end

--- `(x, value:operand)` x's shape and dtype, all elements value
---@param x tycho.Tensor
---@param value tycho.Tensor|number
---@return tycho.Tensor
function tycho.fill_(x, value) end

--- `(value:operand)` x's shape and dtype, all elements value
---@param value tycho.Tensor|number
---@return tycho.Tensor
function Tensor:fill_(value) end

--- `(cond, a:operand, b:operand)` a where cond is true, else b
---@param cond tycho.Tensor
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.where(cond, a, b) end

--- `(a:operand, b:operand)` a where cond is true, else b
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:where(a, b) end

--- `(cond, a:operand, b:operand)` a where cond is true, else b
---@param cond tycho.Tensor
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.where_(cond, a, b) end

--- `(a:operand, b:operand)` a where cond is true, else b
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:where_(a, b) end

--- `(x, mask, value:operand)` value where mask is true, else x
---@param x tycho.Tensor
---@param mask tycho.Tensor
---@param value tycho.Tensor|number
---@return tycho.Tensor
function tycho.masked_fill(x, mask, value) end

--- `(mask, value:operand)` value where mask is true, else x
---@param mask tycho.Tensor
---@param value tycho.Tensor|number
---@return tycho.Tensor
function Tensor:masked_fill(mask, value) end

--- `(x, mask, value:operand)` value where mask is true, else x
---@param x tycho.Tensor
---@param mask tycho.Tensor
---@param value tycho.Tensor|number
---@return tycho.Tensor
function tycho.masked_fill_(x, mask, value) end

--- `(mask, value:operand)` value where mask is true, else x
---@param mask tycho.Tensor
---@param value tycho.Tensor|number
---@return tycho.Tensor
function Tensor:masked_fill_(mask, value) end

--- `(a, b, weight:operand)` a + weight * (b - a); exactly b where weight is 1 and both are finite
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param weight tycho.Tensor|number
---@return tycho.Tensor
function tycho.lerp(a, b, weight) end

--- `(b, weight:operand)` a + weight * (b - a); exactly b where weight is 1 and both are finite
---@param b tycho.Tensor
---@param weight tycho.Tensor|number
---@return tycho.Tensor
function Tensor:lerp(b, weight) end

--- `(a, b, weight:operand)` a + weight * (b - a); exactly b where weight is 1 and both are finite
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param weight tycho.Tensor|number
---@return tycho.Tensor
function tycho.lerp_(a, b, weight) end

--- `(b, weight:operand)` a + weight * (b - a); exactly b where weight is 1 and both are finite
---@param b tycho.Tensor
---@param weight tycho.Tensor|number
---@return tycho.Tensor
function Tensor:lerp_(b, weight) end

--- `(a, b, c, *, value:number=1)` a + value * b * c
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param c tycho.Tensor
---@param options? table
---@return tycho.Tensor
function tycho.addcmul(a, b, c, options) end

--- `(b, c, *, value:number=1)` a + value * b * c
---@param b tycho.Tensor
---@param c tycho.Tensor
---@param options? table
---@return tycho.Tensor
function Tensor:addcmul(b, c, options) end

--- `(a, b, c, *, value:number=1)` a + value * b * c
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param c tycho.Tensor
---@param options? table
---@return tycho.Tensor
function tycho.addcmul_(a, b, c, options) end

--- `(b, c, *, value:number=1)` a + value * b * c
---@param b tycho.Tensor
---@param c tycho.Tensor
---@param options? table
---@return tycho.Tensor
function Tensor:addcmul_(b, c, options) end

--- `(a, b, c, *, value:number=1)` a + value * b / c
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param c tycho.Tensor
---@param options? table
---@return tycho.Tensor
function tycho.addcdiv(a, b, c, options) end

--- `(b, c, *, value:number=1)` a + value * b / c
---@param b tycho.Tensor
---@param c tycho.Tensor
---@param options? table
---@return tycho.Tensor
function Tensor:addcdiv(b, c, options) end

--- `(a, b, c, *, value:number=1)` a + value * b / c
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param c tycho.Tensor
---@param options? table
---@return tycho.Tensor
function tycho.addcdiv_(a, b, c, options) end

--- `(b, c, *, value:number=1)` a + value * b / c
---@param b tycho.Tensor
---@param c tycho.Tensor
---@param options? table
---@return tycho.Tensor
function Tensor:addcdiv_(b, c, options) end

--- `(x, dim:dims?, keepdim:bool=false, *, dtype:dtype?)` sum over dim (all dims where nil)
---@param x tycho.Tensor
---@param dim? integer|integer[]|table
---@param keepdim? boolean|table
---@param options? table
---@return tycho.Tensor
function tycho.sum(x, dim, keepdim, options) end

--- `(dim:dims?, keepdim:bool=false, *, dtype:dtype?)` sum over dim (all dims where nil)
---@param dim? integer|integer[]|table
---@param keepdim? boolean|table
---@param options? table
---@return tycho.Tensor
function Tensor:sum(dim, keepdim, options) end

--- `(x, dim:dims?, keepdim:bool=false, *, dtype:dtype?)` sum over dim, NaN as 0
---@param x tycho.Tensor
---@param dim? integer|integer[]|table
---@param keepdim? boolean|table
---@param options? table
---@return tycho.Tensor
function tycho.nansum(x, dim, keepdim, options) end

--- `(dim:dims?, keepdim:bool=false, *, dtype:dtype?)` sum over dim, NaN as 0
---@param dim? integer|integer[]|table
---@param keepdim? boolean|table
---@param options? table
---@return tycho.Tensor
function Tensor:nansum(dim, keepdim, options) end

--- `(x, dim:dims?, keepdim:bool=false, *, dtype:dtype?)` mean over dim (all dims where nil)
---@param x tycho.Tensor
---@param dim? integer|integer[]|table
---@param keepdim? boolean|table
---@param options? table
---@return tycho.Tensor
function tycho.mean(x, dim, keepdim, options) end

--- `(dim:dims?, keepdim:bool=false, *, dtype:dtype?)` mean over dim (all dims where nil)
---@param dim? integer|integer[]|table
---@param keepdim? boolean|table
---@param options? table
---@return tycho.Tensor
function Tensor:mean(dim, keepdim, options) end

--- `(x, dim:dims?, keepdim:bool=false, *, dtype:dtype?)` product over dim (all dims where nil)
---@param x tycho.Tensor
---@param dim? integer|integer[]|table
---@param keepdim? boolean|table
---@param options? table
---@return tycho.Tensor
function tycho.prod(x, dim, keepdim, options) end

--- `(dim:dims?, keepdim:bool=false, *, dtype:dtype?)` product over dim (all dims where nil)
---@param dim? integer|integer[]|table
---@param keepdim? boolean|table
---@param options? table
---@return tycho.Tensor
function Tensor:prod(dim, keepdim, options) end

--- `(x, dim:dims?, keepdim:bool=false)` maximum over dim (all dims where nil)
---@param x tycho.Tensor
---@param dim? integer|integer[]|table
---@param keepdim? boolean|table
---@return tycho.Tensor
function tycho.amax(x, dim, keepdim) end

--- `(dim:dims?, keepdim:bool=false)` maximum over dim (all dims where nil)
---@param dim? integer|integer[]|table
---@param keepdim? boolean|table
---@return tycho.Tensor
function Tensor:amax(dim, keepdim) end

--- `(x, dim:dims?, keepdim:bool=false)` minimum over dim (all dims where nil)
---@param x tycho.Tensor
---@param dim? integer|integer[]|table
---@param keepdim? boolean|table
---@return tycho.Tensor
function tycho.amin(x, dim, keepdim) end

--- `(dim:dims?, keepdim:bool=false)` minimum over dim (all dims where nil)
---@param dim? integer|integer[]|table
---@param keepdim? boolean|table
---@return tycho.Tensor
function Tensor:amin(dim, keepdim) end

--- `(x, dim:dims?, keepdim:bool=false)` true where one element is not 0
---@param x tycho.Tensor
---@param dim? integer|integer[]|table
---@param keepdim? boolean|table
---@return tycho.Tensor
function tycho.any(x, dim, keepdim) end

--- `(dim:dims?, keepdim:bool=false)` true where one element is not 0
---@param dim? integer|integer[]|table
---@param keepdim? boolean|table
---@return tycho.Tensor
function Tensor:any(dim, keepdim) end

--- `(x, dim:dims?, keepdim:bool=false)` true where no element is 0
---@param x tycho.Tensor
---@param dim? integer|integer[]|table
---@param keepdim? boolean|table
---@return tycho.Tensor
function tycho.all(x, dim, keepdim) end

--- `(dim:dims?, keepdim:bool=false)` true where no element is 0
---@param dim? integer|integer[]|table
---@param keepdim? boolean|table
---@return tycho.Tensor
function Tensor:all(dim, keepdim) end

--- `(x, dim:dim, *, dtype:dtype?)` running sum along dim
---@param x tycho.Tensor
---@param dim integer
---@param options? table
---@return tycho.Tensor
function tycho.cumsum(x, dim, options) end

--- `(dim:dim, *, dtype:dtype?)` running sum along dim
---@param dim integer
---@param options? table
---@return tycho.Tensor
function Tensor:cumsum(dim, options) end

--- `(x, dim:dim, *, dtype:dtype?)` running sum along dim
---@param x tycho.Tensor
---@param dim integer
---@param options? table
---@return tycho.Tensor
function tycho.cumsum_(x, dim, options) end

--- `(dim:dim, *, dtype:dtype?)` running sum along dim
---@param dim integer
---@param options? table
---@return tycho.Tensor
function Tensor:cumsum_(dim, options) end

--- `(x, dim:dim, *, dtype:dtype?)` running product along dim
---@param x tycho.Tensor
---@param dim integer
---@param options? table
---@return tycho.Tensor
function tycho.cumprod(x, dim, options) end

--- `(dim:dim, *, dtype:dtype?)` running product along dim
---@param dim integer
---@param options? table
---@return tycho.Tensor
function Tensor:cumprod(dim, options) end

--- `(x, dim:dim, *, dtype:dtype?)` running product along dim
---@param x tycho.Tensor
---@param dim integer
---@param options? table
---@return tycho.Tensor
function tycho.cumprod_(x, dim, options) end

--- `(dim:dim, *, dtype:dtype?)` running product along dim
---@param dim integer
---@param options? table
---@return tycho.Tensor
function Tensor:cumprod_(dim, options) end

--- `(x, dim:dim)` running maximum along dim and its indices, the last of equals
---@param x tycho.Tensor
---@param dim integer
---@return tycho.Tensor, tycho.Tensor
function tycho.cummax(x, dim) end

--- `(dim:dim)` running maximum along dim and its indices, the last of equals
---@param dim integer
---@return tycho.Tensor, tycho.Tensor
function Tensor:cummax(dim) end

--- `(x, dim:dim)` running minimum along dim and its indices, the last of equals
---@param x tycho.Tensor
---@param dim integer
---@return tycho.Tensor, tycho.Tensor
function tycho.cummin(x, dim) end

--- `(dim:dim)` running minimum along dim and its indices, the last of equals
---@param dim integer
---@return tycho.Tensor, tycho.Tensor
function Tensor:cummin(dim) end

--- `(x, dim:dim, *, dtype:dtype?)` log of the running sum of exp(x) along dim, without overflow
---@param x tycho.Tensor
---@param dim integer
---@param options? table
---@return tycho.Tensor
function tycho.logcumsumexp(x, dim, options) end

--- `(dim:dim, *, dtype:dtype?)` log of the running sum of exp(x) along dim, without overflow
---@param dim integer
---@param options? table
---@return tycho.Tensor
function Tensor:logcumsumexp(dim, options) end

--- `(x, dim:dim, *, dtype:dtype?)` log of the running sum of exp(x) along dim, without overflow
---@param x tycho.Tensor
---@param dim integer
---@param options? table
---@return tycho.Tensor
function tycho.logcumsumexp_(x, dim, options) end

--- `(dim:dim, *, dtype:dtype?)` log of the running sum of exp(x) along dim, without overflow
---@param dim integer
---@param options? table
---@return tycho.Tensor
function Tensor:logcumsumexp_(dim, options) end

--- `(x, size:sizes)` the same elements in another shape, without a copy
---@param x tycho.Tensor
---@param size integer|integer[]
---@return tycho.Tensor
function tycho.view(x, size) end

--- `(size:sizes)` the same elements in another shape, without a copy
---@param size integer|integer[]
---@return tycho.Tensor
function Tensor:view(size) end

--- `(x, dims:dims)` dims in another order
---@param x tycho.Tensor
---@param dims integer|integer[]
---@return tycho.Tensor
function tycho.permute(x, dims) end

--- `(dims:dims)` dims in another order
---@param dims integer|integer[]
---@return tycho.Tensor
function Tensor:permute(dims) end

--- `(x, size:sizes)` dims of size 1 repeated, without a copy; -1 keeps a size
---@param x tycho.Tensor
---@param size integer|integer[]
---@return tycho.Tensor
function tycho.expand(x, size) end

--- `(size:sizes)` dims of size 1 repeated, without a copy; -1 keeps a size
---@param size integer|integer[]
---@return tycho.Tensor
function Tensor:expand(size) end

--- `(x, dim:dim, first:int?, last:int?, step:int=1)` elements first to last (both included) of dim, every step-th
---@param x tycho.Tensor
---@param dim integer
---@param first? integer|table
---@param last? integer|table
---@param step? integer|table
---@return tycho.Tensor
function tycho.slice(x, dim, first, last, step) end

--- `(dim:dim, first:int?, last:int?, step:int=1)` elements first to last (both included) of dim, every step-th
---@param dim integer
---@param first? integer|table
---@param last? integer|table
---@param step? integer|table
---@return tycho.Tensor
function Tensor:slice(dim, first, last, step) end

--- `(x, offset:int=0, dim1:dim=1, dim2:dim=2)` the diagonal of dim1 and dim2, offset above the main one, as the last dim
---@param x tycho.Tensor
---@param offset? integer|table
---@param dim1? integer|table
---@param dim2? integer|table
---@return tycho.Tensor
function tycho.diagonal(x, offset, dim1, dim2) end

--- `(offset:int=0, dim1:dim=1, dim2:dim=2)` the diagonal of dim1 and dim2, offset above the main one, as the last dim
---@param offset? integer|table
---@param dim1? integer|table
---@param dim2? integer|table
---@return tycho.Tensor
function Tensor:diagonal(offset, dim1, dim2) end

--- `(x, dim:dim, size:int, step:int, *, dilation:int=1)` windows of size elements of dim, dilation apart, every step-th, along a new last dim
---@param x tycho.Tensor
---@param dim integer
---@param size integer
---@param step integer
---@param options? table
---@return tycho.Tensor
function tycho.unfold(x, dim, size, step, options) end

--- `(dim:dim, size:int, step:int, *, dilation:int=1)` windows of size elements of dim, dilation apart, every step-th, along a new last dim
---@param dim integer
---@param size integer
---@param step integer
---@param options? table
---@return tycho.Tensor
function Tensor:unfold(dim, size, step, options) end

--- `(x, size:ints, stride:ints, storage_offset:int=0)` a contiguous x's elements at storage_offset, from 0, and at these strides from there, which may meet some twice
---@param x tycho.Tensor
---@param size integer[]
---@param stride integer[]
---@param storage_offset? integer|table
---@return tycho.Tensor
function tycho.as_strided(x, size, stride, storage_offset) end

--- `(size:ints, stride:ints, storage_offset:int=0)` a contiguous x's elements at storage_offset, from 0, and at these strides from there, which may meet some twice
---@param size integer[]
---@param stride integer[]
---@param storage_offset? integer|table
---@return tycho.Tensor
function Tensor:as_strided(size, stride, storage_offset) end

--- `(x, dim:dim, index:int)` element index of dim; that dim goes away
---@param x tycho.Tensor
---@param dim integer
---@param index integer
---@return tycho.Tensor
function tycho.select(x, dim, index) end

--- `(dim:dim, index:int)` element index of dim; that dim goes away
---@param dim integer
---@param index integer
---@return tycho.Tensor
function Tensor:select(dim, index) end

--- `(x, *, memory_format:enum(preserve,contiguous,channels_last)=preserve)` a copy with memory of its own
---@param x tycho.Tensor
---@param options? table
---@return tycho.Tensor
function tycho.clone(x, options) end

--- `(*, memory_format:enum(preserve,contiguous,channels_last)=preserve)` a copy with memory of its own
---@param options? table
---@return tycho.Tensor
function Tensor:clone(options) end

--- `(x, dtype:dtype, *, memory_format:enum(preserve,contiguous,channels_last)=preserve)` a copy in another dtype
---@param x tycho.Tensor
---@param dtype string
---@param options? table
---@return tycho.Tensor
function tycho.cast(x, dtype, options) end

--- `(dtype:dtype, *, memory_format:enum(preserve,contiguous,channels_last)=preserve)` a copy in another dtype
---@param dtype string
---@param options? table
---@return tycho.Tensor
function Tensor:cast(dtype, options) end

--- `(x, src:operand, non_blocking:bool=false)` src in x's shape and dtype; copy_ writes it into x. non_blocking: from or to pinned memory without waiting
---@param x tycho.Tensor
---@param src tycho.Tensor|number
---@param non_blocking? boolean|table
---@return tycho.Tensor
function tycho.copy_(x, src, non_blocking) end

--- `(src:operand, non_blocking:bool=false)` src in x's shape and dtype; copy_ writes it into x. non_blocking: from or to pinned memory without waiting
---@param src tycho.Tensor|number
---@param non_blocking? boolean|table
---@return tycho.Tensor
function Tensor:copy_(src, non_blocking) end

--- `(x, k:int=0)` the lower triangle, from diagonal k down; else 0
---@param x tycho.Tensor
---@param k? integer|table
---@return tycho.Tensor
function tycho.tril(x, k) end

--- `(k:int=0)` the lower triangle, from diagonal k down; else 0
---@param k? integer|table
---@return tycho.Tensor
function Tensor:tril(k) end

--- `(x, k:int=0)` the lower triangle, from diagonal k down; else 0
---@param x tycho.Tensor
---@param k? integer|table
---@return tycho.Tensor
function tycho.tril_(x, k) end

--- `(k:int=0)` the lower triangle, from diagonal k down; else 0
---@param k? integer|table
---@return tycho.Tensor
function Tensor:tril_(k) end

--- `(x, k:int=0)` the upper triangle, from diagonal k up; else 0
---@param x tycho.Tensor
---@param k? integer|table
---@return tycho.Tensor
function tycho.triu(x, k) end

--- `(k:int=0)` the upper triangle, from diagonal k up; else 0
---@param k? integer|table
---@return tycho.Tensor
function Tensor:triu(k) end

--- `(x, k:int=0)` the upper triangle, from diagonal k up; else 0
---@param x tycho.Tensor
---@param k? integer|table
---@return tycho.Tensor
function tycho.triu_(x, k) end

--- `(k:int=0)` the upper triangle, from diagonal k up; else 0
---@param k? integer|table
---@return tycho.Tensor
function Tensor:triu_(k) end

--- `(x, dims:dims)` elements of dims in reverse order
---@param x tycho.Tensor
---@param dims integer|integer[]
---@return tycho.Tensor
function tycho.flip(x, dims) end

--- `(dims:dims)` elements of dims in reverse order
---@param dims integer|integer[]
---@return tycho.Tensor
function Tensor:flip(dims) end

--- `(tensors:tensors, dim:dim=1)` tensors one after another along dim
---@param tensors tycho.Tensor[]
---@param dim? integer|table
---@return tycho.Tensor
function tycho.cat(tensors, dim) end

--- `(tensors:tensors, dim:dim=1)` tensors one after another along dim
---@param tensors tycho.Tensor[]
---@param dim? integer|table
---@return tycho.Tensor
function tycho.concat(tensors, dim) end

--- `(tensors:tensors, dim:dim=1)` tensors one after another along dim
---@param tensors tycho.Tensor[]
---@param dim? integer|table
---@return tycho.Tensor
function tycho.concatenate(tensors, dim) end

--- `(tensors:tensors, dim:dim=1)` tensors of one shape along a new dim
---@param tensors tycho.Tensor[]
---@param dim? integer|table
---@return tycho.Tensor
function tycho.stack(tensors, dim) end

--- `(size:sizes, *, dtype:dtype?, device:device?, memory_format:enum(contiguous,channels_last)=contiguous)` a tensor with whatever its memory held
---@param size integer|integer[]
---@param options? table
---@return tycho.Tensor
function tycho.empty(size, options) end

--- `(size:sizes, *, dtype:dtype?, device:device?)` all 0
---@param size integer|integer[]
---@param options? table
---@return tycho.Tensor
function tycho.zeros(size, options) end

--- `(size:sizes, *, dtype:dtype?, device:device?)` all 1
---@param size integer|integer[]
---@param options? table
---@return tycho.Tensor
function tycho.ones(size, options) end

--- `(size:sizes, value:any, *, dtype:dtype?, device:device?)` all value
---@param size integer|integer[]
---@param value any
---@param options? table
---@return tycho.Tensor
function tycho.full(size, value, options) end

--- `(first:number, last:number, step:number=1, *, dtype:dtype?, device:device?)` first, first + step, ... up to and including last
---@param first number
---@param last number
---@param step? number|table
---@param options? table
---@return tycho.Tensor
function tycho.range(first, last, step, options) end

--- `(first:number, last:number, steps:int, *, dtype:dtype?, device:device?)` steps numbers evenly from first to last
---@param first number
---@param last number
---@param steps integer
---@param options? table
---@return tycho.Tensor
function tycho.linspace(first, last, steps, options) end

--- `(n:int, m:int?, *, dtype:dtype?, device:device?)` n x m, 1 on the diagonal
---@param n integer
---@param m? integer|table
---@param options? table
---@return tycho.Tensor
function tycho.eye(n, m, options) end

--- `(size:sizes, *, dtype:dtype?, device:device?)` uniform in [0, 1)
---@param size integer|integer[]
---@param options? table
---@return tycho.Tensor
function tycho.rand(size, options) end

--- `(size:sizes, *, dtype:dtype?, device:device?)` normal, mean 0, deviation 1
---@param size integer|integer[]
---@param options? table
---@return tycho.Tensor
function tycho.randn(size, options) end

--- `(low:int, high:int, size:sizes, *, dtype:dtype?, device:device?)` whole numbers low to high, both included
---@param low integer
---@param high integer
---@param size integer|integer[]
---@param options? table
---@return tycho.Tensor
function tycho.randint(low, high, size, options) end

--- `(n:int, *, dtype:dtype?, device:device?)` 1 to n in random order
---@param n integer
---@param options? table
---@return tycho.Tensor
function tycho.randperm(n, options) end

--- `(x, low:number=0, high:number=1)` like x, uniform in [low, high)
---@param x tycho.Tensor
---@param low? number|table
---@param high? number|table
---@return tycho.Tensor
function tycho.uniform_(x, low, high) end

--- `(low:number=0, high:number=1)` like x, uniform in [low, high)
---@param low? number|table
---@param high? number|table
---@return tycho.Tensor
function Tensor:uniform_(low, high) end

--- `(x, mean:number=0, std:number=1)` like x, normal
---@param x tycho.Tensor
---@param mean? number|table
---@param std? number|table
---@return tycho.Tensor
function tycho.normal_(x, mean, std) end

--- `(mean:number=0, std:number=1)` like x, normal
---@param mean? number|table
---@param std? number|table
---@return tycho.Tensor
function Tensor:normal_(mean, std) end

--- `(x, lambd:number=1)` like x, exponential of rate lambd
---@param x tycho.Tensor
---@param lambd? number|table
---@return tycho.Tensor
function tycho.exponential(x, lambd) end

--- `(lambd:number=1)` like x, exponential of rate lambd
---@param lambd? number|table
---@return tycho.Tensor
function Tensor:exponential(lambd) end

--- `(x, lambd:number=1)` like x, exponential of rate lambd
---@param x tycho.Tensor
---@param lambd? number|table
---@return tycho.Tensor
function tycho.exponential_(x, lambd) end

--- `(lambd:number=1)` like x, exponential of rate lambd
---@param lambd? number|table
---@return tycho.Tensor
function Tensor:exponential_(lambd) end

--- `(x, n:int, replacement:bool=false)` n indices for each row of x, drawn with probabilities in proportion to it
---@param x tycho.Tensor
---@param n integer
---@param replacement? boolean|table
---@return tycho.Tensor
function tycho.multinomial(x, n, replacement) end

--- `(n:int, replacement:bool=false)` n indices for each row of x, drawn with probabilities in proportion to it
---@param n integer
---@param replacement? boolean|table
---@return tycho.Tensor
function Tensor:multinomial(n, replacement) end

--- `(x, n:int, replacement:bool=false)` n indices for each row of x, drawn with probabilities in proportion to it
---@param x tycho.Tensor
---@param n integer
---@param replacement? boolean|table
---@return tycho.Tensor
function tycho.multinomial_(x, n, replacement) end

--- `(n:int, replacement:bool=false)` n indices for each row of x, drawn with probabilities in proportion to it
---@param n integer
---@param replacement? boolean|table
---@return tycho.Tensor
function Tensor:multinomial_(n, replacement) end

--- `(a, b)` matrix product, batch dims broadcast; of vectors as PyTorch's
---@param a tycho.Tensor
---@param b tycho.Tensor
---@return tycho.Tensor
function tycho.matmul(a, b) end

--- `(b)` matrix product, batch dims broadcast; of vectors as PyTorch's
---@param b tycho.Tensor
---@return tycho.Tensor
function Tensor:matmul(b) end

--- `(a, b)` matrix product, batch dims broadcast; of vectors as PyTorch's
---@param a tycho.Tensor
---@param b tycho.Tensor
---@return tycho.Tensor
function tycho.linalg.matmul(a, b) end

--- `(x, weight, bias?)` x @ weight^T + bias
---@param x tycho.Tensor
---@param weight tycho.Tensor
---@param bias? tycho.Tensor|table
---@return tycho.Tensor
function tycho.linear(x, weight, bias) end

--- `(weight, bias?)` x @ weight^T + bias
---@param weight tycho.Tensor
---@param bias? tycho.Tensor|table
---@return tycho.Tensor
function Tensor:linear(weight, bias) end

--- `(x, dim:dim, *, dtype:dtype?)` exp(x) / sum(exp(x)) along dim
---@param x tycho.Tensor
---@param dim integer
---@param options? table
---@return tycho.Tensor
function tycho.softmax(x, dim, options) end

--- `(dim:dim, *, dtype:dtype?)` exp(x) / sum(exp(x)) along dim
---@param dim integer
---@param options? table
---@return tycho.Tensor
function Tensor:softmax(dim, options) end

--- `(x, dim:dim, *, dtype:dtype?)` exp(x) / sum(exp(x)) along dim
---@param x tycho.Tensor
---@param dim integer
---@param options? table
---@return tycho.Tensor
function tycho.special.softmax(x, dim, options) end

--- `(x, dim:dim, *, dtype:dtype?)` log of softmax along dim
---@param x tycho.Tensor
---@param dim integer
---@param options? table
---@return tycho.Tensor
function tycho.log_softmax(x, dim, options) end

--- `(dim:dim, *, dtype:dtype?)` log of softmax along dim
---@param dim integer
---@param options? table
---@return tycho.Tensor
function Tensor:log_softmax(dim, options) end

--- `(x, dim:dim, *, dtype:dtype?)` log of softmax along dim
---@param x tycho.Tensor
---@param dim integer
---@param options? table
---@return tycho.Tensor
function tycho.special.log_softmax(x, dim, options) end

--- `(x, dim:dim, index)` x's elements at index along dim
---@param x tycho.Tensor
---@param dim integer
---@param index tycho.Tensor
---@return tycho.Tensor
function tycho.gather(x, dim, index) end

--- `(dim:dim, index)` x's elements at index along dim
---@param dim integer
---@param index tycho.Tensor
---@return tycho.Tensor
function Tensor:gather(dim, index) end

--- `(x, dim:dim, index, src:operand)` x with src written at index along dim
---@param x tycho.Tensor
---@param dim integer
---@param index tycho.Tensor
---@param src tycho.Tensor|number
---@return tycho.Tensor
function tycho.scatter(x, dim, index, src) end

--- `(dim:dim, index, src:operand)` x with src written at index along dim
---@param dim integer
---@param index tycho.Tensor
---@param src tycho.Tensor|number
---@return tycho.Tensor
function Tensor:scatter(dim, index, src) end

--- `(x, dim:dim, index, src:operand)` x with src written at index along dim
---@param x tycho.Tensor
---@param dim integer
---@param index tycho.Tensor
---@param src tycho.Tensor|number
---@return tycho.Tensor
function tycho.scatter_(x, dim, index, src) end

--- `(dim:dim, index, src:operand)` x with src written at index along dim
---@param dim integer
---@param index tycho.Tensor
---@param src tycho.Tensor|number
---@return tycho.Tensor
function Tensor:scatter_(dim, index, src) end

--- `(x, dim:dim, index, src)` x with src added at index along dim
---@param x tycho.Tensor
---@param dim integer
---@param index tycho.Tensor
---@param src tycho.Tensor
---@return tycho.Tensor
function tycho.scatter_add(x, dim, index, src) end

--- `(dim:dim, index, src)` x with src added at index along dim
---@param dim integer
---@param index tycho.Tensor
---@param src tycho.Tensor
---@return tycho.Tensor
function Tensor:scatter_add(dim, index, src) end

--- `(x, dim:dim, index, src)` x with src added at index along dim
---@param x tycho.Tensor
---@param dim integer
---@param index tycho.Tensor
---@param src tycho.Tensor
---@return tycho.Tensor
function tycho.scatter_add_(x, dim, index, src) end

--- `(dim:dim, index, src)` x with src added at index along dim
---@param dim integer
---@param index tycho.Tensor
---@param src tycho.Tensor
---@return tycho.Tensor
function Tensor:scatter_add_(dim, index, src) end

--- `(x, dim:dim=-1, descending:bool=false, stable:bool=false)` x in order along dim and the indices of that order, equals in theirs; NaN is the largest
---@param x tycho.Tensor
---@param dim? integer|table
---@param descending? boolean|table
---@param stable? boolean|table
---@return tycho.Tensor, tycho.Tensor
function tycho.sort(x, dim, descending, stable) end

--- `(dim:dim=-1, descending:bool=false, stable:bool=false)` x in order along dim and the indices of that order, equals in theirs; NaN is the largest
---@param dim? integer|table
---@param descending? boolean|table
---@param stable? boolean|table
---@return tycho.Tensor, tycho.Tensor
function Tensor:sort(dim, descending, stable) end

--- `(x, k:int, dim:dim=-1, largest:bool=true, sorted:bool=true)` the k largest (or smallest) along dim in order, and their indices
---@param x tycho.Tensor
---@param k integer
---@param dim? integer|table
---@param largest? boolean|table
---@param sorted? boolean|table
---@return tycho.Tensor, tycho.Tensor
function tycho.topk(x, k, dim, largest, sorted) end

--- `(k:int, dim:dim=-1, largest:bool=true, sorted:bool=true)` the k largest (or smallest) along dim in order, and their indices
---@param k integer
---@param dim? integer|table
---@param largest? boolean|table
---@param sorted? boolean|table
---@return tycho.Tensor, tycho.Tensor
function Tensor:topk(k, dim, largest, sorted) end

--- `(ids, weights?, minlength:int=0)` how often each id from 1 on occurs, or the sums of their weights
---@param ids tycho.Tensor
---@param weights? tycho.Tensor|table
---@param minlength? integer|table
---@return tycho.Tensor
function tycho.bincount(ids, weights, minlength) end

--- `(weights?, minlength:int=0)` how often each id from 1 on occurs, or the sums of their weights
---@param weights? tycho.Tensor|table
---@param minlength? integer|table
---@return tycho.Tensor
function Tensor:bincount(weights, minlength) end

--- `(x, weight, bias?, stride:pair=1, padding:pair=0, dilation:pair=1, groups:int=1)` 2-D convolution of x (N,C,H,W) with weight (O,C/groups,kH,kW)
---@param x tycho.Tensor
---@param weight tycho.Tensor
---@param bias? tycho.Tensor|table
---@param stride? integer|integer[]|table
---@param padding? integer|integer[]|table
---@param dilation? integer|integer[]|table
---@param groups? integer|table
---@return tycho.Tensor
function tycho.conv2d(x, weight, bias, stride, padding, dilation, groups) end

--- `(weight, bias?, stride:pair=1, padding:pair=0, dilation:pair=1, groups:int=1)` 2-D convolution of x (N,C,H,W) with weight (O,C/groups,kH,kW)
---@param weight tycho.Tensor
---@param bias? tycho.Tensor|table
---@param stride? integer|integer[]|table
---@param padding? integer|integer[]|table
---@param dilation? integer|integer[]|table
---@param groups? integer|table
---@return tycho.Tensor
function Tensor:conv2d(weight, bias, stride, padding, dilation, groups) end

--- `(x, kernel_size:pair, stride:pair?, padding:pair=0, ceil_mode:bool=false, count_include_pad:bool=true, divisor_override:int?)` mean of each kernel_size window of the last two dims
---@param x tycho.Tensor
---@param kernel_size integer|integer[]
---@param stride? integer|integer[]|table
---@param padding? integer|integer[]|table
---@param ceil_mode? boolean|table
---@param count_include_pad? boolean|table
---@param divisor_override? integer|table
---@return tycho.Tensor
function tycho.avg_pool2d(x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override) end

--- `(kernel_size:pair, stride:pair?, padding:pair=0, ceil_mode:bool=false, count_include_pad:bool=true, divisor_override:int?)` mean of each kernel_size window of the last two dims
---@param kernel_size integer|integer[]
---@param stride? integer|integer[]|table
---@param padding? integer|integer[]|table
---@param ceil_mode? boolean|table
---@param count_include_pad? boolean|table
---@param divisor_override? integer|table
---@return tycho.Tensor
function Tensor:avg_pool2d(kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override) end

--- `(x, size:sizes)` the elements in another shape; a view where that is possible, else a copy
---@param x tycho.Tensor
---@param size integer|integer[]
---@return tycho.Tensor
function tycho.reshape(x, size) end

--- `(size:sizes)` the elements in another shape; a view where that is possible, else a copy
---@param size integer|integer[]
---@return tycho.Tensor
function Tensor:reshape(size) end

--- `(x, start_dim:dim=1, end_dim:dim=-1)` dims start_dim to end_dim as one
---@param x tycho.Tensor
---@param start_dim? integer|table
---@param end_dim? integer|table
---@return tycho.Tensor
function tycho.flatten(x, start_dim, end_dim) end

--- `(start_dim:dim=1, end_dim:dim=-1)` dims start_dim to end_dim as one
---@param start_dim? integer|table
---@param end_dim? integer|table
---@return tycho.Tensor
function Tensor:flatten(start_dim, end_dim) end

--- `(x, start_dim:dim=1, end_dim:dim=-1)` dims start_dim to end_dim as one
---@param x tycho.Tensor
---@param start_dim? integer|table
---@param end_dim? integer|table
---@return tycho.Tensor
function tycho.ravel(x, start_dim, end_dim) end

--- `(start_dim:dim=1, end_dim:dim=-1)` dims start_dim to end_dim as one
---@param start_dim? integer|table
---@param end_dim? integer|table
---@return tycho.Tensor
function Tensor:ravel(start_dim, end_dim) end

--- `(x, dim:dims?)` without dims of size 1 (all of them where dim is nil)
---@param x tycho.Tensor
---@param dim? integer|integer[]|table
---@return tycho.Tensor
function tycho.squeeze(x, dim) end

--- `(dim:dims?)` without dims of size 1 (all of them where dim is nil)
---@param dim? integer|integer[]|table
---@return tycho.Tensor
function Tensor:squeeze(dim) end

--- `(x, dim:dims?)` without dims of size 1 (all of them where dim is nil)
---@param x tycho.Tensor
---@param dim? integer|integer[]|table
---@return tycho.Tensor
function tycho.squeeze_(x, dim) end

--- `(dim:dims?)` without dims of size 1 (all of them where dim is nil)
---@param dim? integer|integer[]|table
---@return tycho.Tensor
function Tensor:squeeze_(dim) end

--- `(x, dim:dim)` with a dim of size 1 more, at dim
---@param x tycho.Tensor
---@param dim integer
---@return tycho.Tensor
function tycho.unsqueeze(x, dim) end

--- `(dim:dim)` with a dim of size 1 more, at dim
---@param dim integer
---@return tycho.Tensor
function Tensor:unsqueeze(dim) end

--- `(x, dim:dim)` with a dim of size 1 more, at dim
---@param x tycho.Tensor
---@param dim integer
---@return tycho.Tensor
function tycho.unsqueeze_(x, dim) end

--- `(dim:dim)` with a dim of size 1 more, at dim
---@param dim integer
---@return tycho.Tensor
function Tensor:unsqueeze_(dim) end

--- `(x, dim:dim, start:int, length:int)` length elements of dim from start on
---@param x tycho.Tensor
---@param dim integer
---@param start integer
---@param length integer
---@return tycho.Tensor
function tycho.narrow(x, dim, start, length) end

--- `(dim:dim, start:int, length:int)` length elements of dim from start on
---@param dim integer
---@param start integer
---@param length integer
---@return tycho.Tensor
function Tensor:narrow(dim, start, length) end

--- `(x, dim0:dim, dim1:dim)` dims dim0 and dim1 exchanged
---@param x tycho.Tensor
---@param dim0 integer
---@param dim1 integer
---@return tycho.Tensor
function tycho.transpose(x, dim0, dim1) end

--- `(dim0:dim, dim1:dim)` dims dim0 and dim1 exchanged
---@param dim0 integer
---@param dim1 integer
---@return tycho.Tensor
function Tensor:transpose(dim0, dim1) end

--- `(x, dim0:dim, dim1:dim)` dims dim0 and dim1 exchanged
---@param x tycho.Tensor
---@param dim0 integer
---@param dim1 integer
---@return tycho.Tensor
function tycho.transpose_(x, dim0, dim1) end

--- `(dim0:dim, dim1:dim)` dims dim0 and dim1 exchanged
---@param dim0 integer
---@param dim1 integer
---@return tycho.Tensor
function Tensor:transpose_(dim0, dim1) end

--- `(x, dim0:dim, dim1:dim)` dims dim0 and dim1 exchanged
---@param x tycho.Tensor
---@param dim0 integer
---@param dim1 integer
---@return tycho.Tensor
function tycho.swapdims(x, dim0, dim1) end

--- `(dim0:dim, dim1:dim)` dims dim0 and dim1 exchanged
---@param dim0 integer
---@param dim1 integer
---@return tycho.Tensor
function Tensor:swapdims(dim0, dim1) end

--- `(dim0:dim, dim1:dim)` dims dim0 and dim1 exchanged
---@param dim0 integer
---@param dim1 integer
---@return tycho.Tensor
function Tensor:swapdims_(dim0, dim1) end

--- `(x)` a matrix transposed
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.t(x) end

--- a matrix transposed
---@return tycho.Tensor
function Tensor:t() end

--- `(x)` a matrix transposed
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.t_(x) end

--- a matrix transposed
---@return tycho.Tensor
function Tensor:t_() end

--- `(x, memory_format:enum(contiguous,preserve,channels_last)=contiguous)` x, or a copy in row-major memory order, or with channels last
---@param x tycho.Tensor
---@param memory_format? string|table
---@return tycho.Tensor
function tycho.contiguous(x, memory_format) end

--- `(memory_format:enum(contiguous,preserve,channels_last)=contiguous)` x, or a copy in row-major memory order, or with channels last
---@param memory_format? string|table
---@return tycho.Tensor
function Tensor:contiguous(memory_format) end

--- `(x)` matrices transposed
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.adjoint(x) end

--- matrices transposed
---@return tycho.Tensor
function Tensor:adjoint() end

--- `(x, size:sizes)` x summed over the dims along which size broadcasts to its shape
---@param x tycho.Tensor
---@param size integer|integer[]
---@return tycho.Tensor
function tycho.sum_to_size(x, size) end

--- `(size:sizes)` x summed over the dims along which size broadcasts to its shape
---@param size integer|integer[]
---@return tycho.Tensor
function Tensor:sum_to_size(size) end

--- `(x, from:any, to:any)` dim from, or several in a list, moved to place to, or places; the others keep their order
---@param x tycho.Tensor
---@param from any
---@param to any
---@return tycho.Tensor
function tycho.movedim(x, from, to) end

--- `(from:any, to:any)` dim from, or several in a list, moved to place to, or places; the others keep their order
---@param from any
---@param to any
---@return tycho.Tensor
function Tensor:movedim(from, to) end

--- `(x, from:any, to:any)` dim from, or several in a list, moved to place to, or places; the others keep their order
---@param x tycho.Tensor
---@param from any
---@param to any
---@return tycho.Tensor
function tycho.moveaxis(x, from, to) end

--- `(from:any, to:any)` dim from, or several in a list, moved to place to, or places; the others keep their order
---@param from any
---@param to any
---@return tycho.Tensor
function Tensor:moveaxis(from, to) end

--- `(x, other)` expanded to other's shape
---@param x tycho.Tensor
---@param other tycho.Tensor
---@return tycho.Tensor
function tycho.expand_as(x, other) end

--- `(other)` expanded to other's shape
---@param other tycho.Tensor
---@return tycho.Tensor
function Tensor:expand_as(other) end

--- `(x, other)` viewed in other's shape
---@param x tycho.Tensor
---@param other tycho.Tensor
---@return tycho.Tensor
function tycho.view_as(x, other) end

--- `(other)` viewed in other's shape
---@param other tycho.Tensor
---@return tycho.Tensor
function Tensor:view_as(other) end

--- `(x, size:any, dim:int=1)` a list of parts of size elements (or of the sizes in a list) along dim
---@param x tycho.Tensor
---@param size any
---@param dim? integer|table
---@return tycho.Tensor
function tycho.split(x, size, dim) end

--- `(size:any, dim:int=1)` a list of parts of size elements (or of the sizes in a list) along dim
---@param size any
---@param dim? integer|table
---@return tycho.Tensor
function Tensor:split(size, dim) end

--- `(x, size:any, dim:int=1)` a list of parts of size elements (or of the sizes in a list) along dim
---@param x tycho.Tensor
---@param size any
---@param dim? integer|table
---@return tycho.Tensor
function tycho.split_with_sizes(x, size, dim) end

--- `(size:any, dim:int=1)` a list of parts of size elements (or of the sizes in a list) along dim
---@param size any
---@param dim? integer|table
---@return tycho.Tensor
function Tensor:split_with_sizes(size, dim) end

--- `(x, n:int, dim:int=1)` a list of at most n parts of equal size along dim (the last may be smaller)
---@param x tycho.Tensor
---@param n integer
---@param dim? integer|table
---@return tycho.Tensor
function tycho.chunk(x, n, dim) end

--- `(n:int, dim:int=1)` a list of at most n parts of equal size along dim (the last may be smaller)
---@param n integer
---@param dim? integer|table
---@return tycho.Tensor
function Tensor:chunk(n, dim) end

--- `(x, dim:int=1)` the list of slices along dim
---@param x tycho.Tensor
---@param dim? integer|table
---@return tycho.Tensor
function tycho.unbind(x, dim) end

--- `(dim:int=1)` the list of slices along dim
---@param dim? integer|table
---@return tycho.Tensor
function Tensor:unbind(dim) end

--- `(x, repeats:sizes)` x repeated along each dim, or the last (PyTorch's Tensor.repeat, and tile)
---@param x tycho.Tensor
---@param repeats integer|integer[]
---@return tycho.Tensor
function tycho.tile(x, repeats) end

--- `(repeats:sizes)` x repeated along each dim, or the last (PyTorch's Tensor.repeat, and tile)
---@param repeats integer|integer[]
---@return tycho.Tensor
function Tensor:tile(repeats) end

--- `(x, repeats:sizes)` x repeated along each dim, or the last (PyTorch's Tensor.repeat, and tile)
---@param x tycho.Tensor
---@param repeats integer|integer[]
---@return tycho.Tensor
tycho["repeat"] = function(x, repeats) end

--- `(repeats:sizes)` x repeated along each dim, or the last (PyTorch's Tensor.repeat, and tile)
---@param repeats integer|integer[]
---@return tycho.Tensor
Tensor["repeat"] = function(repeats) end

--- `(x, shift:any, dim:dims?)` elements moved by shift along dim, around the end (through all elements where dim is nil); lists for several dims
---@param x tycho.Tensor
---@param shift any
---@param dim? integer|integer[]|table
---@return tycho.Tensor
function tycho.roll(x, shift, dim) end

--- `(shift:any, dim:dims?)` elements moved by shift along dim, around the end (through all elements where dim is nil); lists for several dims
---@param shift any
---@param dim? integer|integer[]|table
---@return tycho.Tensor
function Tensor:roll(shift, dim) end

--- `(x, dim:int, size:sizes)` dim as several dims of the given sizes (one may be -1)
---@param x tycho.Tensor
---@param dim integer
---@param size integer|integer[]
---@return tycho.Tensor
function tycho.unflatten(x, dim, size) end

--- `(dim:int, size:sizes)` dim as several dims of the given sizes (one may be -1)
---@param dim integer
---@param size integer|integer[]
---@return tycho.Tensor
function Tensor:unflatten(dim, size) end

--- `(x, size:sizes)` expanded to size
---@param x tycho.Tensor
---@param size integer|integer[]
---@return tycho.Tensor
function tycho.broadcast_to(x, size) end

--- `(size:sizes)` expanded to size
---@param size integer|integer[]
---@return tycho.Tensor
function Tensor:broadcast_to(size) end

--- `(tensors:tensors)` the tensors, all expanded to one shape, as so many results
---@param tensors tycho.Tensor[]
---@return tycho.Tensor
function tycho.broadcast_tensors(tensors) end

--- `(x, repeats:any?, dim:int?, *, output_size:int?)` each element of dim repeats times in a row (of all elements where dim is nil); repeats may be a tensor of counts; without it x is the counts, of their positions. output_size: the sum of the counts, which a GPU is waited for without it
---@param x tycho.Tensor
---@param repeats? any
---@param dim? integer|table
---@param options? table
---@return tycho.Tensor
function tycho.repeat_interleave(x, repeats, dim, options) end

--- `(repeats:any?, dim:int?, *, output_size:int?)` each element of dim repeats times in a row (of all elements where dim is nil); repeats may be a tensor of counts; without it x is the counts, of their positions. output_size: the sum of the counts, which a GPU is waited for without it
---@param repeats? any
---@param dim? integer|table
---@param options? table
---@return tycho.Tensor
function Tensor:repeat_interleave(repeats, dim, options) end

--- `(x, k:int=1, dims:dims?)` turned k times by 90 degrees from the first of dims to the second
---@param x tycho.Tensor
---@param k? integer|table
---@param dims? integer|integer[]|table
---@return tycho.Tensor
function tycho.rot90(x, k, dims) end

--- `(k:int=1, dims:dims?)` turned k times by 90 degrees from the first of dims to the second
---@param k? integer|table
---@param dims? integer|integer[]|table
---@return tycho.Tensor
function Tensor:rot90(k, dims) end

--- `(x)` dim 2 in reverse order
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.fliplr(x) end

--- dim 2 in reverse order
---@return tycho.Tensor
function Tensor:fliplr() end

--- `(x)` dim 1 in reverse order
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.flipud(x) end

--- dim 1 in reverse order
---@return tycho.Tensor
function Tensor:flipud() end

--- `(x, offset:int=0, dim1:int=-2, dim2:int=-1)` matrices, of dims dim1 and dim2, whose diagonal is x's last dim
---@param x tycho.Tensor
---@param offset? integer|table
---@param dim1? integer|table
---@param dim2? integer|table
---@return tycho.Tensor
function tycho.diag_embed(x, offset, dim1, dim2) end

--- `(offset:int=0, dim1:int=-2, dim2:int=-1)` matrices, of dims dim1 and dim2, whose diagonal is x's last dim
---@param offset? integer|table
---@param dim1? integer|table
---@param dim2? integer|table
---@return tycho.Tensor
function Tensor:diag_embed(offset, dim1, dim2) end

--- `(x, offset:int=0)` a matrix with the vector x on its diagonal, or the diagonal of the matrix x
---@param x tycho.Tensor
---@param offset? integer|table
---@return tycho.Tensor
function tycho.diag(x, offset) end

--- `(offset:int=0)` a matrix with the vector x on its diagonal, or the diagonal of the matrix x
---@param offset? integer|table
---@return tycho.Tensor
function Tensor:diag(offset) end

--- `(x, offset:int=0)` a matrix with all elements of x on its diagonal
---@param x tycho.Tensor
---@param offset? integer|table
---@return tycho.Tensor
function tycho.diagflat(x, offset) end

--- `(offset:int=0)` a matrix with all elements of x on its diagonal
---@param offset? integer|table
---@return tycho.Tensor
function Tensor:diagflat(offset) end

--- `(x)` sum of a matrix's diagonal
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.trace(x) end

--- sum of a matrix's diagonal
---@return tycho.Tensor
function Tensor:trace() end

--- `(tensors:tensors, *, indexing:enum(ij,xy)=ij)` the vectors, each expanded to the grid of all, as so many results
---@param tensors tycho.Tensor[]
---@param options? table
---@return tycho.Tensor
function tycho.meshgrid(tensors, options) end

--- `(x:any)` x, or each tensor of a list, with at least 1 dims
---@param x any
---@return tycho.Tensor
function tycho.atleast_1d(x) end

--- x, or each tensor of a list, with at least 1 dims
---@return tycho.Tensor
function Tensor:atleast_1d() end

--- `(x:any)` x, or each tensor of a list, with at least 2 dims
---@param x any
---@return tycho.Tensor
function tycho.atleast_2d(x) end

--- x, or each tensor of a list, with at least 2 dims
---@return tycho.Tensor
function Tensor:atleast_2d() end

--- `(x:any)` x, or each tensor of a list, with at least 3 dims
---@param x any
---@return tycho.Tensor
function tycho.atleast_3d(x) end

--- x, or each tensor of a list, with at least 3 dims
---@return tycho.Tensor
function Tensor:atleast_3d() end

--- `(tensors:tensors)` tensors of at least 1 dims one after another along dim 2
---@param tensors tycho.Tensor[]
---@return tycho.Tensor
function tycho.hstack(tensors) end

--- `(tensors:tensors)` tensors of at least 2 dims one after another along dim 1
---@param tensors tycho.Tensor[]
---@return tycho.Tensor
function tycho.vstack(tensors) end

--- `(tensors:tensors)` tensors of at least 2 dims one after another along dim 1
---@param tensors tycho.Tensor[]
---@return tycho.Tensor
function tycho.row_stack(tensors) end

--- `(tensors:tensors)` tensors of at least 3 dims one after another along dim 3
---@param tensors tycho.Tensor[]
---@return tycho.Tensor
function tycho.dstack(tensors) end

--- `(tensors:tensors)` vectors as columns beside matrices
---@param tensors tycho.Tensor[]
---@return tycho.Tensor
function tycho.column_stack(tensors) end

--- `(x, sections:any, dim:int=1)` a list of parts: so many of near equal size, or cut before the indices in a list or tensor
---@param x tycho.Tensor
---@param sections any
---@param dim? integer|table
---@return tycho.Tensor
function tycho.tensor_split(x, sections, dim) end

--- `(sections:any, dim:int=1)` a list of parts: so many of near equal size, or cut before the indices in a list or tensor
---@param sections any
---@param dim? integer|table
---@return tycho.Tensor
function Tensor:tensor_split(sections, dim) end

--- `(row:int, col:int, offset:int=0, *, dtype:enum(int64,int32)=int64, device:device?)` a 2 x n tensor: row and column of each element of the triangle of row x col
---@param row integer
---@param col integer
---@param offset? integer|table
---@param options? table
---@return tycho.Tensor
function tycho.tril_indices(row, col, offset, options) end

--- `(row:int, col:int, offset:int=0, *, dtype:enum(int64,int32)=int64, device:device?)` a 2 x n tensor: row and column of each element of the triangle of row x col
---@param row integer
---@param col integer
---@param offset? integer|table
---@param options? table
---@return tycho.Tensor
function tycho.triu_indices(row, col, offset, options) end

--- `(tensors:tensors)` all combinations of the vectors' elements, one row each
---@param tensors tycho.Tensor[]
---@return tycho.Tensor
function tycho.cartesian_prod(tensors) end

--- `(x, r:int=2, with_replacement:bool=false)` all choices of r elements of a vector in order, one row each
---@param x tycho.Tensor
---@param r? integer|table
---@param with_replacement? boolean|table
---@return tycho.Tensor
function tycho.combinations(x, r, with_replacement) end

--- `(r:int=2, with_replacement:bool=false)` all choices of r elements of a vector in order, one row each
---@param r? integer|table
---@param with_replacement? boolean|table
---@return tycho.Tensor
function Tensor:combinations(r, with_replacement) end

--- `(tensors:tensors)` a matrix with the matrices along its diagonal
---@param tensors tycho.Tensor[]
---@return tycho.Tensor
function tycho.block_diag(tensors) end

--- `(x, factor:int)` (N, C r^2, H, W) as (N, C, H r, W r)
---@param x tycho.Tensor
---@param factor integer
---@return tycho.Tensor
function tycho.pixel_shuffle(x, factor) end

--- `(factor:int)` (N, C r^2, H, W) as (N, C, H r, W r)
---@param factor integer
---@return tycho.Tensor
function Tensor:pixel_shuffle(factor) end

--- `(x, groups:int)` channels (dim 2), which lie in groups, so that each group's first come first
---@param x tycho.Tensor
---@param groups integer
---@return tycho.Tensor
function tycho.channel_shuffle(x, groups) end

--- `(groups:int)` channels (dim 2), which lie in groups, so that each group's first come first
---@param groups integer
---@return tycho.Tensor
function Tensor:channel_shuffle(groups) end

--- `(x, factor:int)` (N, C, H r, W r) as (N, C r^2, H, W)
---@param x tycho.Tensor
---@param factor integer
---@return tycho.Tensor
function tycho.pixel_unshuffle(x, factor) end

--- `(factor:int)` (N, C, H r, W r) as (N, C r^2, H, W)
---@param factor integer
---@return tycho.Tensor
function Tensor:pixel_unshuffle(factor) end

--- `(x, axis0:int, axis1:int)` as transpose
---@param x tycho.Tensor
---@param axis0 integer
---@param axis1 integer
---@return tycho.Tensor
function tycho.swapaxes(x, axis0, axis1) end

--- `(axis0:int, axis1:int)` as transpose
---@param axis0 integer
---@param axis1 integer
---@return tycho.Tensor
function Tensor:swapaxes(axis0, axis1) end

--- `(axis0:int, axis1:int)` as transpose
---@param axis0 integer
---@param axis1 integer
---@return tycho.Tensor
function Tensor:swapaxes_(axis0, axis1) end

--- `(x, target:any?, dtype:any?, *, device:device?, non_blocking:bool=false, copy:bool=false, memory_format:enum(preserve,contiguous,channels_last)=preserve)` x in another dtype, on another device (both: to(device, dtype)), as target is, or in another memory_format; x itself where nothing changes, unless copy. non_blocking: to a GPU from pinned memory, and from a GPU to pinned memory, without waiting
---@param x tycho.Tensor
---@param target? any
---@param dtype? any
---@param options? table
---@return tycho.Tensor
function tycho.to(x, target, dtype, options) end

--- `(target:any?, dtype:any?, *, device:device?, non_blocking:bool=false, copy:bool=false, memory_format:enum(preserve,contiguous,channels_last)=preserve)` x in another dtype, on another device (both: to(device, dtype)), as target is, or in another memory_format; x itself where nothing changes, unless copy. non_blocking: to a GPU from pinned memory, and from a GPU to pinned memory, without waiting
---@param target? any
---@param dtype? any
---@param options? table
---@return tycho.Tensor
function Tensor:to(target, dtype, options) end

--- `(x, *, dtype:dtype?, device:device?, requires_grad:bool=false, pin_memory:bool=false, memory_format:enum(preserve,contiguous,channels_last)=preserve)` zeros in x's shape, dtype and layout
---@param x tycho.Tensor
---@param options? table
---@return tycho.Tensor
function tycho.zeros_like(x, options) end

--- `(*, dtype:dtype?, device:device?, requires_grad:bool=false, pin_memory:bool=false, memory_format:enum(preserve,contiguous,channels_last)=preserve)` zeros in x's shape, dtype and layout
---@param options? table
---@return tycho.Tensor
function Tensor:zeros_like(options) end

--- `(x, *, dtype:dtype?, device:device?, requires_grad:bool=false, pin_memory:bool=false, memory_format:enum(preserve,contiguous,channels_last)=preserve)` ones in x's shape, dtype and layout
---@param x tycho.Tensor
---@param options? table
---@return tycho.Tensor
function tycho.ones_like(x, options) end

--- `(*, dtype:dtype?, device:device?, requires_grad:bool=false, pin_memory:bool=false, memory_format:enum(preserve,contiguous,channels_last)=preserve)` ones in x's shape, dtype and layout
---@param options? table
---@return tycho.Tensor
function Tensor:ones_like(options) end

--- `(x, *, dtype:dtype?, device:device?, requires_grad:bool=false, pin_memory:bool=false, memory_format:enum(preserve,contiguous,channels_last)=preserve)` rand in x's shape, dtype and layout
---@param x tycho.Tensor
---@param options? table
---@return tycho.Tensor
function tycho.rand_like(x, options) end

--- `(*, dtype:dtype?, device:device?, requires_grad:bool=false, pin_memory:bool=false, memory_format:enum(preserve,contiguous,channels_last)=preserve)` rand in x's shape, dtype and layout
---@param options? table
---@return tycho.Tensor
function Tensor:rand_like(options) end

--- `(x, *, dtype:dtype?, device:device?, requires_grad:bool=false, pin_memory:bool=false, memory_format:enum(preserve,contiguous,channels_last)=preserve)` randn in x's shape, dtype and layout
---@param x tycho.Tensor
---@param options? table
---@return tycho.Tensor
function tycho.randn_like(x, options) end

--- `(*, dtype:dtype?, device:device?, requires_grad:bool=false, pin_memory:bool=false, memory_format:enum(preserve,contiguous,channels_last)=preserve)` randn in x's shape, dtype and layout
---@param options? table
---@return tycho.Tensor
function Tensor:randn_like(options) end

--- `(x, *, dtype:dtype?, device:device?, requires_grad:bool=false, pin_memory:bool=false, memory_format:enum(preserve,contiguous,channels_last)=preserve)` empty in x's shape, dtype and layout
---@param x tycho.Tensor
---@param options? table
---@return tycho.Tensor
function tycho.empty_like(x, options) end

--- `(*, dtype:dtype?, device:device?, requires_grad:bool=false, pin_memory:bool=false, memory_format:enum(preserve,contiguous,channels_last)=preserve)` empty in x's shape, dtype and layout
---@param options? table
---@return tycho.Tensor
function Tensor:empty_like(options) end

--- `(x, low:int, high:int, *, dtype:dtype?, device:device?, requires_grad:bool=false, pin_memory:bool=false, memory_format:enum(preserve,contiguous,channels_last)=preserve)` whole numbers low to high, both included, in x's shape and dtype
---@param x tycho.Tensor
---@param low integer
---@param high integer
---@param options? table
---@return tycho.Tensor
function tycho.randint_like(x, low, high, options) end

--- `(low:int, high:int, *, dtype:dtype?, device:device?, requires_grad:bool=false, pin_memory:bool=false, memory_format:enum(preserve,contiguous,channels_last)=preserve)` whole numbers low to high, both included, in x's shape and dtype
---@param low integer
---@param high integer
---@param options? table
---@return tycho.Tensor
function Tensor:randint_like(low, high, options) end

--- `(x, value:any, *, dtype:dtype?, device:device?, requires_grad:bool=false, pin_memory:bool=false, memory_format:enum(preserve,contiguous,channels_last)=preserve)` x's shape, dtype and layout, all value
---@param x tycho.Tensor
---@param value any
---@param options? table
---@return tycho.Tensor
function tycho.full_like(x, value, options) end

--- `(value:any, *, dtype:dtype?, device:device?, requires_grad:bool=false, pin_memory:bool=false, memory_format:enum(preserve,contiguous,channels_last)=preserve)` x's shape, dtype and layout, all value
---@param value any
---@param options? table
---@return tycho.Tensor
function Tensor:full_like(value, options) end

--- `(mean:any, std:any?, size:any?, *, dtype:string?)` normally distributed numbers; mean and std are numbers or tensors, whose common shape is the result's, or numbers for a given size
---@param mean any
---@param std? any
---@param size? any
---@param options? table
---@return tycho.Tensor
function tycho.normal(mean, std, size, options) end

--- `(x, p:any?)` 1 with probability x, else 0; with p like x, 1 with probability p
---@param x tycho.Tensor
---@param p? any
---@return tycho.Tensor
function tycho.bernoulli(x, p) end

--- `(p:any?)` 1 with probability x, else 0; with p like x, 1 with probability p
---@param p? any
---@return tycho.Tensor
function Tensor:bernoulli(p) end

--- `(x, p:any?)` 1 with probability x, else 0; with p like x, 1 with probability p
---@param x tycho.Tensor
---@param p? any
---@return tycho.Tensor
function tycho.bernoulli_(x, p) end

--- `(p:any?)` 1 with probability x, else 0; with p like x, 1 with probability p
---@param p? any
---@return tycho.Tensor
function Tensor:bernoulli_(p) end

--- `(x, dim:any?, keepdim:bool=false)` without dim the largest element; with dim the maxima and their indices
---@param x tycho.Tensor
---@param dim? any
---@param keepdim? boolean|table
---@return tycho.Tensor
function tycho.max(x, dim, keepdim) end

--- `(dim:any?, keepdim:bool=false)` without dim the largest element; with dim the maxima and their indices
---@param dim? any
---@param keepdim? boolean|table
---@return tycho.Tensor
function Tensor:max(dim, keepdim) end

--- `(x, dim:any?, keepdim:bool=false)` without dim the smallest element; with dim the minima and their indices
---@param x tycho.Tensor
---@param dim? any
---@param keepdim? boolean|table
---@return tycho.Tensor
function tycho.min(x, dim, keepdim) end

--- `(dim:any?, keepdim:bool=false)` without dim the smallest element; with dim the minima and their indices
---@param dim? any
---@param keepdim? boolean|table
---@return tycho.Tensor
function Tensor:min(dim, keepdim) end

--- `(x, dim:int?, keepdim:bool=false)` index of the maximum along dim (among all elements where dim is nil)
---@param x tycho.Tensor
---@param dim? integer|table
---@param keepdim? boolean|table
---@return tycho.Tensor
function tycho.argmax(x, dim, keepdim) end

--- `(dim:int?, keepdim:bool=false)` index of the maximum along dim (among all elements where dim is nil)
---@param dim? integer|table
---@param keepdim? boolean|table
---@return tycho.Tensor
function Tensor:argmax(dim, keepdim) end

--- `(x, dim:int?, keepdim:bool=false)` index of the minimum along dim (among all elements where dim is nil)
---@param x tycho.Tensor
---@param dim? integer|table
---@param keepdim? boolean|table
---@return tycho.Tensor
function tycho.argmin(x, dim, keepdim) end

--- `(dim:int?, keepdim:bool=false)` index of the minimum along dim (among all elements where dim is nil)
---@param dim? integer|table
---@param keepdim? boolean|table
---@return tycho.Tensor
function Tensor:argmin(dim, keepdim) end

--- `(x, dim:any?, unbiased:bool=true, keepdim:bool=false, *, correction:number=1)` variance over dim; correction (0 where unbiased is false) is subtracted from the count
---@param x tycho.Tensor
---@param dim? any
---@param unbiased? boolean|table
---@param keepdim? boolean|table
---@param options? table
---@return tycho.Tensor
function tycho.var(x, dim, unbiased, keepdim, options) end

--- `(dim:any?, unbiased:bool=true, keepdim:bool=false, *, correction:number=1)` variance over dim; correction (0 where unbiased is false) is subtracted from the count
---@param dim? any
---@param unbiased? boolean|table
---@param keepdim? boolean|table
---@param options? table
---@return tycho.Tensor
function Tensor:var(dim, unbiased, keepdim, options) end

--- `(x, dim:any?, unbiased:bool=true, keepdim:bool=false, *, correction:number=1)` standard deviation over dim
---@param x tycho.Tensor
---@param dim? any
---@param unbiased? boolean|table
---@param keepdim? boolean|table
---@param options? table
---@return tycho.Tensor
function tycho.std(x, dim, unbiased, keepdim, options) end

--- `(dim:any?, unbiased:bool=true, keepdim:bool=false, *, correction:number=1)` standard deviation over dim
---@param dim? any
---@param unbiased? boolean|table
---@param keepdim? boolean|table
---@param options? table
---@return tycho.Tensor
function Tensor:std(dim, unbiased, keepdim, options) end

--- `(x, dim:any?, unbiased:bool=true, keepdim:bool=false, *, correction:number=1)` var and mean over dim
---@param x tycho.Tensor
---@param dim? any
---@param unbiased? boolean|table
---@param keepdim? boolean|table
---@param options? table
---@return tycho.Tensor
function tycho.var_mean(x, dim, unbiased, keepdim, options) end

--- `(dim:any?, unbiased:bool=true, keepdim:bool=false, *, correction:number=1)` var and mean over dim
---@param dim? any
---@param unbiased? boolean|table
---@param keepdim? boolean|table
---@param options? table
---@return tycho.Tensor
function Tensor:var_mean(dim, unbiased, keepdim, options) end

--- `(x, dim:any?, unbiased:bool=true, keepdim:bool=false, *, correction:number=1)` std and mean over dim
---@param x tycho.Tensor
---@param dim? any
---@param unbiased? boolean|table
---@param keepdim? boolean|table
---@param options? table
---@return tycho.Tensor
function tycho.std_mean(x, dim, unbiased, keepdim, options) end

--- `(dim:any?, unbiased:bool=true, keepdim:bool=false, *, correction:number=1)` std and mean over dim
---@param dim? any
---@param unbiased? boolean|table
---@param keepdim? boolean|table
---@param options? table
---@return tycho.Tensor
function Tensor:std_mean(dim, unbiased, keepdim, options) end

--- `(x, p:any?, dim:dims?, keepdim:bool=false, *, dtype:dtype?)` the p-norm over dim; 2 where p is nil or 'fro'; x is converted to dtype first
---@param x tycho.Tensor
---@param p? any
---@param dim? integer|integer[]|table
---@param keepdim? boolean|table
---@param options? table
---@return tycho.Tensor
function tycho.norm(x, p, dim, keepdim, options) end

--- `(p:any?, dim:dims?, keepdim:bool=false, *, dtype:dtype?)` the p-norm over dim; 2 where p is nil or 'fro'; x is converted to dtype first
---@param p? any
---@param dim? integer|integer[]|table
---@param keepdim? boolean|table
---@param options? table
---@return tycho.Tensor
function Tensor:norm(p, dim, keepdim, options) end

--- `(x, dim:dims, keepdim:bool=false)` log of the sum of exp(x) over dim, without overflow
---@param x tycho.Tensor
---@param dim integer|integer[]
---@param keepdim? boolean|table
---@return tycho.Tensor
function tycho.logsumexp(x, dim, keepdim) end

--- `(dim:dims, keepdim:bool=false)` log of the sum of exp(x) over dim, without overflow
---@param dim integer|integer[]
---@param keepdim? boolean|table
---@return tycho.Tensor
function Tensor:logsumexp(dim, keepdim) end

--- `(x, dim:dims, keepdim:bool=false)` log of the sum of exp(x) over dim, without overflow
---@param x tycho.Tensor
---@param dim integer|integer[]
---@param keepdim? boolean|table
---@return tycho.Tensor
function tycho.special.logsumexp(x, dim, keepdim) end

--- `(x, dim:dims?)` how many elements are not 0
---@param x tycho.Tensor
---@param dim? integer|integer[]|table
---@return tycho.Tensor
function tycho.count_nonzero(x, dim) end

--- `(dim:dims?)` how many elements are not 0
---@param dim? integer|integer[]|table
---@return tycho.Tensor
function Tensor:count_nonzero(dim) end

--- `(a, b)` whether both have the same shape and elements (a boolean)
---@param a tycho.Tensor
---@param b tycho.Tensor
---@return tycho.Tensor
function tycho.equal(a, b) end

--- `(b)` whether both have the same shape and elements (a boolean)
---@param b tycho.Tensor
---@return tycho.Tensor
function Tensor:equal(b) end

--- `(a, b, rtol:number=1e-5, atol:number=1e-8, equal_nan:bool=false)` true where |a - b| <= atol + rtol |b|
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param rtol? number|table
---@param atol? number|table
---@param equal_nan? boolean|table
---@return tycho.Tensor
function tycho.isclose(a, b, rtol, atol, equal_nan) end

--- `(b, rtol:number=1e-5, atol:number=1e-8, equal_nan:bool=false)` true where |a - b| <= atol + rtol |b|
---@param b tycho.Tensor
---@param rtol? number|table
---@param atol? number|table
---@param equal_nan? boolean|table
---@return tycho.Tensor
function Tensor:isclose(b, rtol, atol, equal_nan) end

--- `(a, b, rtol:number=1e-5, atol:number=1e-8, equal_nan:bool=false)` whether all elements are close (a boolean)
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param rtol? number|table
---@param atol? number|table
---@param equal_nan? boolean|table
---@return tycho.Tensor
function tycho.allclose(a, b, rtol, atol, equal_nan) end

--- `(b, rtol:number=1e-5, atol:number=1e-8, equal_nan:bool=false)` whether all elements are close (a boolean)
---@param b tycho.Tensor
---@param rtol? number|table
---@param atol? number|table
---@param equal_nan? boolean|table
---@return tycho.Tensor
function Tensor:allclose(b, rtol, atol, equal_nan) end

--- `(x, *, dim:int?, keepdim:bool=false)` minimum and maximum over dim (all dims where nil)
---@param x tycho.Tensor
---@param options? table
---@return tycho.Tensor
function tycho.aminmax(x, options) end

--- `(*, dim:int?, keepdim:bool=false)` minimum and maximum over dim (all dims where nil)
---@param options? table
---@return tycho.Tensor
function Tensor:aminmax(options) end

--- `(x, dim:dims?, keepdim:bool=false, *, dtype:dtype?)` mean over dim of what isn't NaN
---@param x tycho.Tensor
---@param dim? integer|integer[]|table
---@param keepdim? boolean|table
---@param options? table
---@return tycho.Tensor
function tycho.nanmean(x, dim, keepdim, options) end

--- `(dim:dims?, keepdim:bool=false, *, dtype:dtype?)` mean over dim of what isn't NaN
---@param dim? integer|integer[]|table
---@param keepdim? boolean|table
---@param options? table
---@return tycho.Tensor
function Tensor:nanmean(dim, keepdim, options) end

--- `(x, dim:int=-1, descending:bool=false, stable:bool=false)` the indices that put x in order along dim
---@param x tycho.Tensor
---@param dim? integer|table
---@param descending? boolean|table
---@param stable? boolean|table
---@return tycho.Tensor
function tycho.argsort(x, dim, descending, stable) end

--- `(dim:int=-1, descending:bool=false, stable:bool=false)` the indices that put x in order along dim
---@param dim? integer|table
---@param descending? boolean|table
---@param stable? boolean|table
---@return tycho.Tensor
function Tensor:argsort(dim, descending, stable) end

--- `(x)` x in order along dim 1
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.msort(x) end

--- x in order along dim 1
---@return tycho.Tensor
function Tensor:msort() end

--- `(x, k:int, dim:int=-1, keepdim:bool=false)` the k-th smallest along dim and its index
---@param x tycho.Tensor
---@param k integer
---@param dim? integer|table
---@param keepdim? boolean|table
---@return tycho.Tensor
function tycho.kthvalue(x, k, dim, keepdim) end

--- `(k:int, dim:int=-1, keepdim:bool=false)` the k-th smallest along dim and its index
---@param k integer
---@param dim? integer|table
---@param keepdim? boolean|table
---@return tycho.Tensor
function Tensor:kthvalue(k, dim, keepdim) end

--- `(x, values:operand, *, assume_unique:bool=false, invert:bool=false)` true where an element of x is among values (invert: is not); assume_unique has no effect
---@param x tycho.Tensor
---@param values tycho.Tensor|number
---@param options? table
---@return tycho.Tensor
function tycho.isin(x, values, options) end

--- `(values:operand, *, assume_unique:bool=false, invert:bool=false)` true where an element of x is among values (invert: is not); assume_unique has no effect
---@param values tycho.Tensor|number
---@param options? table
---@return tycho.Tensor
function Tensor:isin(values, options) end

--- `(x, nan:number=0, posinf:number?, neginf:number?)` NaN and infinities as numbers: posinf and neginf default to the dtype's largest and smallest
---@param x tycho.Tensor
---@param nan? number|table
---@param posinf? number|table
---@param neginf? number|table
---@return tycho.Tensor
function tycho.nan_to_num(x, nan, posinf, neginf) end

--- `(nan:number=0, posinf:number?, neginf:number?)` NaN and infinities as numbers: posinf and neginf default to the dtype's largest and smallest
---@param nan? number|table
---@param posinf? number|table
---@param neginf? number|table
---@return tycho.Tensor
function Tensor:nan_to_num(nan, posinf, neginf) end

--- `(x, nan:number=0, posinf:number?, neginf:number?)` NaN and infinities as numbers: posinf and neginf default to the dtype's largest and smallest
---@param x tycho.Tensor
---@param nan? number|table
---@param posinf? number|table
---@param neginf? number|table
---@return tycho.Tensor
function tycho.nan_to_num_(x, nan, posinf, neginf) end

--- `(nan:number=0, posinf:number?, neginf:number?)` NaN and infinities as numbers: posinf and neginf default to the dtype's largest and smallest
---@param nan? number|table
---@param posinf? number|table
---@param neginf? number|table
---@return tycho.Tensor
function Tensor:nan_to_num_(nan, posinf, neginf) end

--- `(x, min:operand?, max:operand?)` x limited to min..max; either may be nil, a number or a tensor
---@param x tycho.Tensor
---@param min? tycho.Tensor|number|table
---@param max? tycho.Tensor|number|table
---@return tycho.Tensor
function tycho.clamp(x, min, max) end

--- `(min:operand?, max:operand?)` x limited to min..max; either may be nil, a number or a tensor
---@param min? tycho.Tensor|number|table
---@param max? tycho.Tensor|number|table
---@return tycho.Tensor
function Tensor:clamp(min, max) end

--- `(x, min:operand?, max:operand?)` x limited to min..max; either may be nil, a number or a tensor
---@param x tycho.Tensor
---@param min? tycho.Tensor|number|table
---@param max? tycho.Tensor|number|table
---@return tycho.Tensor
function tycho.clamp_(x, min, max) end

--- `(min:operand?, max:operand?)` x limited to min..max; either may be nil, a number or a tensor
---@param min? tycho.Tensor|number|table
---@param max? tycho.Tensor|number|table
---@return tycho.Tensor
function Tensor:clamp_(min, max) end

--- `(x, min:operand?, max:operand?)` x limited to min..max; either may be nil, a number or a tensor
---@param x tycho.Tensor
---@param min? tycho.Tensor|number|table
---@param max? tycho.Tensor|number|table
---@return tycho.Tensor
function tycho.clip(x, min, max) end

--- `(min:operand?, max:operand?)` x limited to min..max; either may be nil, a number or a tensor
---@param min? tycho.Tensor|number|table
---@param max? tycho.Tensor|number|table
---@return tycho.Tensor
function Tensor:clip(min, max) end

--- `(min:operand?, max:operand?)` x limited to min..max; either may be nil, a number or a tensor
---@param min? tycho.Tensor|number|table
---@param max? tycho.Tensor|number|table
---@return tycho.Tensor
function Tensor:clip_(min, max) end

--- `(a:operand, b:operand, *, rounding_mode:enum(none,trunc,floor)=none)` a / b, by elements; rounded towards 0 (trunc) or down (floor), where asked for, in the operands' dtype
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@param options? table
---@return tycho.Tensor
function tycho.div(a, b, options) end

--- `(b:operand, *, rounding_mode:enum(none,trunc,floor)=none)` a / b, by elements; rounded towards 0 (trunc) or down (floor), where asked for, in the operands' dtype
---@param b tycho.Tensor|number
---@param options? table
---@return tycho.Tensor
function Tensor:div(b, options) end

--- `(a:operand, b:operand, *, rounding_mode:enum(none,trunc,floor)=none)` a / b, by elements; rounded towards 0 (trunc) or down (floor), where asked for, in the operands' dtype
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@param options? table
---@return tycho.Tensor
function tycho.div_(a, b, options) end

--- `(b:operand, *, rounding_mode:enum(none,trunc,floor)=none)` a / b, by elements; rounded towards 0 (trunc) or down (floor), where asked for, in the operands' dtype
---@param b tycho.Tensor|number
---@param options? table
---@return tycho.Tensor
function Tensor:div_(b, options) end

--- `(a:operand, b:operand, *, rounding_mode:enum(none,trunc,floor)=none)` a / b, by elements; rounded towards 0 (trunc) or down (floor), where asked for, in the operands' dtype
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@param options? table
---@return tycho.Tensor
function tycho.divide(a, b, options) end

--- `(b:operand, *, rounding_mode:enum(none,trunc,floor)=none)` a / b, by elements; rounded towards 0 (trunc) or down (floor), where asked for, in the operands' dtype
---@param b tycho.Tensor|number
---@param options? table
---@return tycho.Tensor
function Tensor:divide(b, options) end

--- `(b:operand, *, rounding_mode:enum(none,trunc,floor)=none)` a / b, by elements; rounded towards 0 (trunc) or down (floor), where asked for, in the operands' dtype
---@param b tycho.Tensor|number
---@param options? table
---@return tycho.Tensor
function Tensor:divide_(b, options) end

--- `(a:operand, b:operand, *, rounding_mode:enum(none,trunc,floor)=none)` a / b, by elements; rounded towards 0 (trunc) or down (floor), where asked for, in the operands' dtype
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@param options? table
---@return tycho.Tensor
function tycho.true_divide(a, b, options) end

--- `(b:operand, *, rounding_mode:enum(none,trunc,floor)=none)` a / b, by elements; rounded towards 0 (trunc) or down (floor), where asked for, in the operands' dtype
---@param b tycho.Tensor|number
---@param options? table
---@return tycho.Tensor
function Tensor:true_divide(b, options) end

--- `(b:operand, *, rounding_mode:enum(none,trunc,floor)=none)` a / b, by elements; rounded towards 0 (trunc) or down (floor), where asked for, in the operands' dtype
---@param b tycho.Tensor|number
---@param options? table
---@return tycho.Tensor
function Tensor:true_divide_(b, options) end

--- `(x, min:operand)` the larger of x and min
---@param x tycho.Tensor
---@param min tycho.Tensor|number
---@return tycho.Tensor
function tycho.clamp_min(x, min) end

--- `(min:operand)` the larger of x and min
---@param min tycho.Tensor|number
---@return tycho.Tensor
function Tensor:clamp_min(min) end

--- `(x, min:operand)` the larger of x and min
---@param x tycho.Tensor
---@param min tycho.Tensor|number
---@return tycho.Tensor
function tycho.clamp_min_(x, min) end

--- `(min:operand)` the larger of x and min
---@param min tycho.Tensor|number
---@return tycho.Tensor
function Tensor:clamp_min_(min) end

--- `(x, max:operand)` the smaller of x and max
---@param x tycho.Tensor
---@param max tycho.Tensor|number
---@return tycho.Tensor
function tycho.clamp_max(x, max) end

--- `(max:operand)` the smaller of x and max
---@param max tycho.Tensor|number
---@return tycho.Tensor
function Tensor:clamp_max(max) end

--- `(x, max:operand)` the smaller of x and max
---@param x tycho.Tensor
---@param max tycho.Tensor|number
---@return tycho.Tensor
function tycho.clamp_max_(x, max) end

--- `(max:operand)` the smaller of x and max
---@param max tycho.Tensor|number
---@return tycho.Tensor
function Tensor:clamp_max_(max) end

--- `(x)` all bits inverted; booleans negated
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.bitwise_not(x) end

--- all bits inverted; booleans negated
---@return tycho.Tensor
function Tensor:bitwise_not() end

--- `(x)` all bits inverted; booleans negated
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.bitwise_not_(x) end

--- all bits inverted; booleans negated
---@return tycho.Tensor
function Tensor:bitwise_not_() end

--- `(x, values:operand)` 0 below 0, 1 above, values at 0
---@param x tycho.Tensor
---@param values tycho.Tensor|number
---@return tycho.Tensor
function tycho.heaviside(x, values) end

--- `(values:operand)` 0 below 0, 1 above, values at 0
---@param values tycho.Tensor|number
---@return tycho.Tensor
function Tensor:heaviside(values) end

--- `(x, values:operand)` 0 below 0, 1 above, values at 0
---@param x tycho.Tensor
---@param values tycho.Tensor|number
---@return tycho.Tensor
function tycho.heaviside_(x, values) end

--- `(values:operand)` 0 below 0, 1 above, values at 0
---@param values tycho.Tensor|number
---@return tycho.Tensor
function Tensor:heaviside_(values) end

--- `(x)` sin(pi x) / (pi x), 1 at 0
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.sinc(x) end

--- sin(pi x) / (pi x), 1 at 0
---@return tycho.Tensor
function Tensor:sinc() end

--- `(x)` sin(pi x) / (pi x), 1 at 0
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.sinc_(x) end

--- sin(pi x) / (pi x), 1 at 0
---@return tycho.Tensor
function Tensor:sinc_() end

--- `(x)` sin(pi x) / (pi x), 1 at 0
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.special.sinc(x) end

--- `(x)` sin(pi x) / (pi x), 1 at 0
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.special.sinc_(x) end

--- `(x)` degrees as radians
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.deg2rad(x) end

--- degrees as radians
---@return tycho.Tensor
function Tensor:deg2rad() end

--- `(x)` degrees as radians
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.deg2rad_(x) end

--- degrees as radians
---@return tycho.Tensor
function Tensor:deg2rad_() end

--- `(x)` radians as degrees
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.rad2deg(x) end

--- radians as degrees
---@return tycho.Tensor
function Tensor:rad2deg() end

--- `(x)` radians as degrees
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.rad2deg_(x) end

--- radians as degrees
---@return tycho.Tensor
function Tensor:rad2deg_() end

--- `(x)` true where x is infinite and positive
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.isposinf(x) end

--- true where x is infinite and positive
---@return tycho.Tensor
function Tensor:isposinf() end

--- `(x)` true where x is infinite and negative
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.isneginf(x) end

--- true where x is infinite and negative
---@return tycho.Tensor
function Tensor:isneginf() end

--- `(x)` x itself
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.positive(x) end

--- x itself
---@return tycho.Tensor
function Tensor:positive() end

--- `(a, b)` log2(2^a + 2^b), without overflow
---@param a tycho.Tensor
---@param b tycho.Tensor
---@return tycho.Tensor
function tycho.logaddexp2(a, b) end

--- `(b)` log2(2^a + 2^b), without overflow
---@param b tycho.Tensor
---@return tycho.Tensor
function Tensor:logaddexp2(b) end

--- `(x, *, decimals:int=0)` nearest number of so many decimals, halves to even
---@param x tycho.Tensor
---@param options? table
---@return tycho.Tensor
function tycho.round(x, options) end

--- `(*, decimals:int=0)` nearest number of so many decimals, halves to even
---@param options? table
---@return tycho.Tensor
function Tensor:round(options) end

--- `(x, *, decimals:int=0)` nearest number of so many decimals, halves to even
---@param x tycho.Tensor
---@param options? table
---@return tycho.Tensor
function tycho.round_(x, options) end

--- `(*, decimals:int=0)` nearest number of so many decimals, halves to even
---@param options? table
---@return tycho.Tensor
function Tensor:round_(options) end

--- `(x, *, decimals:int=0)` nearest number of so many decimals, halves to even
---@param x tycho.Tensor
---@param options? table
---@return tycho.Tensor
function tycho.special.round(x, options) end

--- `(x, *, decimals:int=0)` nearest number of so many decimals, halves to even
---@param x tycho.Tensor
---@param options? table
---@return tycho.Tensor
function tycho.special.round_(x, options) end

--- `(a, b:operand, *, alpha:number=1)` b - alpha * a
---@param a tycho.Tensor
---@param b tycho.Tensor|number
---@param options? table
---@return tycho.Tensor
function tycho.rsub(a, b, options) end

--- `(b:operand, *, alpha:number=1)` b - alpha * a
---@param b tycho.Tensor|number
---@param options? table
---@return tycho.Tensor
function Tensor:rsub(b, options) end

--- `(a:operand, b:operand)` a to the power of b in float64
---@param a tycho.Tensor|number
---@param b tycho.Tensor|number
---@return tycho.Tensor
function tycho.float_power(a, b) end

--- `(b:operand)` a to the power of b in float64
---@param b tycho.Tensor|number
---@return tycho.Tensor
function Tensor:float_power(b) end

--- `(a, b, p:number=2)` the p-norm of a - b
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param p? number|table
---@return tycho.Tensor
function tycho.dist(a, b, p) end

--- `(b, p:number=2)` the p-norm of a - b
---@param b tycho.Tensor
---@param p? number|table
---@return tycho.Tensor
function Tensor:dist(b, p) end

--- `(x, *, as_tuple:bool=false)` indices of the elements that are not 0, one row each; as_tuple: a result for each dim
---@param x tycho.Tensor
---@param options? table
---@return tycho.Tensor
function tycho.nonzero(x, options) end

--- `(*, as_tuple:bool=false)` indices of the elements that are not 0, one row each; as_tuple: a result for each dim
---@param options? table
---@return tycho.Tensor
function Tensor:nonzero(options) end

--- `(x, size:int, fill_value:int=0)` indices of the first elements that are not 0, in exactly `size` rows; rows that are left have fill_value. Doesn't wait for a GPU
---@param x tycho.Tensor
---@param size integer
---@param fill_value? integer|table
---@return tycho.Tensor
function tycho.nonzero_static(x, size, fill_value) end

--- `(size:int, fill_value:int=0)` indices of the first elements that are not 0, in exactly `size` rows; rows that are left have fill_value. Doesn't wait for a GPU
---@param size integer
---@param fill_value? integer|table
---@return tycho.Tensor
function Tensor:nonzero_static(size, fill_value) end

--- `(x)` indices of the elements that are not 0, one row each
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.argwhere(x) end

--- indices of the elements that are not 0, one row each
---@return tycho.Tensor
function Tensor:argwhere() end

--- `(x, n:int=1, dim:int=-1, prepend:tensor?, append:tensor?)` differences of neighbours along dim, n times; prepend and append: what comes before x and after it
---@param x tycho.Tensor
---@param n? integer|table
---@param dim? integer|table
---@param prepend? tycho.Tensor|table
---@param append? tycho.Tensor|table
---@return tycho.Tensor
function tycho.diff(x, n, dim, prepend, append) end

--- `(n:int=1, dim:int=-1, prepend:tensor?, append:tensor?)` differences of neighbours along dim, n times; prepend and append: what comes before x and after it
---@param n? integer|table
---@param dim? integer|table
---@param prepend? tycho.Tensor|table
---@param append? tycho.Tensor|table
---@return tycho.Tensor
function Tensor:diff(n, dim, prepend, append) end

--- `(y, x:any?, dim:int=-1, *, dx:number=1)` integral along dim by the trapezoidal rule, at places x or dx apart
---@param y tycho.Tensor
---@param x? any
---@param dim? integer|table
---@param options? table
---@return tycho.Tensor
function tycho.trapezoid(y, x, dim, options) end

--- `(x:any?, dim:int=-1, *, dx:number=1)` integral along dim by the trapezoidal rule, at places x or dx apart
---@param x? any
---@param dim? integer|table
---@param options? table
---@return tycho.Tensor
function Tensor:trapezoid(x, dim, options) end

--- `(y, x:any?, dim:int=-1, *, dx:number=1)` integral along dim by the trapezoidal rule, at places x or dx apart
---@param y tycho.Tensor
---@param x? any
---@param dim? integer|table
---@param options? table
---@return tycho.Tensor
function tycho.trapz(y, x, dim, options) end

--- `(x:any?, dim:int=-1, *, dx:number=1)` integral along dim by the trapezoidal rule, at places x or dx apart
---@param x? any
---@param dim? integer|table
---@param options? table
---@return tycho.Tensor
function Tensor:trapz(x, dim, options) end

--- `(y, x:any?, dim:int=-1, *, dx:number=1)` trapezoid up to each place along dim, from the second on
---@param y tycho.Tensor
---@param x? any
---@param dim? integer|table
---@param options? table
---@return tycho.Tensor
function tycho.cumulative_trapezoid(y, x, dim, options) end

--- `(x:any?, dim:int=-1, *, dx:number=1)` trapezoid up to each place along dim, from the second on
---@param x? any
---@param dim? integer|table
---@param options? table
---@return tycho.Tensor
function Tensor:cumulative_trapezoid(x, dim, options) end

--- `(x, *, spacing:any?, dim:dims?, edge_order:int=1)` a list of x's slopes along each dim; spacing: how far apart places are (1), or a list with that, or a vector of places, for each
---@param x tycho.Tensor
---@param options? table
---@return tycho.Tensor
function tycho.gradient(x, options) end

--- `(*, spacing:any?, dim:dims?, edge_order:int=1)` a list of x's slopes along each dim; spacing: how far apart places are (1), or a list with that, or a vector of places, for each
---@param options? table
---@return tycho.Tensor
function Tensor:gradient(options) end

--- `(x, dim:int?, keepdim:bool=false)` the middle value (the lower of two), without dim of all elements; with dim its index too
---@param x tycho.Tensor
---@param dim? integer|table
---@param keepdim? boolean|table
---@return tycho.Tensor
function tycho.median(x, dim, keepdim) end

--- `(dim:int?, keepdim:bool=false)` the middle value (the lower of two), without dim of all elements; with dim its index too
---@param dim? integer|table
---@param keepdim? boolean|table
---@return tycho.Tensor
function Tensor:median(dim, keepdim) end

--- `(x, dim:int?, keepdim:bool=false)` the middle value (the lower of two), without dim of all elements; with dim its index too; NaN is left out
---@param x tycho.Tensor
---@param dim? integer|table
---@param keepdim? boolean|table
---@return tycho.Tensor
function tycho.nanmedian(x, dim, keepdim) end

--- `(dim:int?, keepdim:bool=false)` the middle value (the lower of two), without dim of all elements; with dim its index too; NaN is left out
---@param dim? integer|table
---@param keepdim? boolean|table
---@return tycho.Tensor
function Tensor:nanmedian(dim, keepdim) end

--- `(x, q:any, dim:int?, keepdim:bool=false, *, interpolation:enum(linear,lower,higher,nearest,midpoint)=linear)` the value below which a part q (a number or a vector, 0..1) of x lies along dim
---@param x tycho.Tensor
---@param q any
---@param dim? integer|table
---@param keepdim? boolean|table
---@param options? table
---@return tycho.Tensor
function tycho.quantile(x, q, dim, keepdim, options) end

--- `(q:any, dim:int?, keepdim:bool=false, *, interpolation:enum(linear,lower,higher,nearest,midpoint)=linear)` the value below which a part q (a number or a vector, 0..1) of x lies along dim
---@param q any
---@param dim? integer|table
---@param keepdim? boolean|table
---@param options? table
---@return tycho.Tensor
function Tensor:quantile(q, dim, keepdim, options) end

--- `(x, q:any, dim:int?, keepdim:bool=false, *, interpolation:enum(linear,lower,higher,nearest,midpoint)=linear)` the value below which a part q (a number or a vector, 0..1) of x lies along dim; NaN is left out
---@param x tycho.Tensor
---@param q any
---@param dim? integer|table
---@param keepdim? boolean|table
---@param options? table
---@return tycho.Tensor
function tycho.nanquantile(x, q, dim, keepdim, options) end

--- `(q:any, dim:int?, keepdim:bool=false, *, interpolation:enum(linear,lower,higher,nearest,midpoint)=linear)` the value below which a part q (a number or a vector, 0..1) of x lies along dim; NaN is left out
---@param q any
---@param dim? integer|table
---@param keepdim? boolean|table
---@param options? table
---@return tycho.Tensor
function Tensor:nanquantile(q, dim, keepdim, options) end

--- `(x, *, sorted:bool=true, return_inverse:bool=false, return_counts:bool=false, dim:int?)` the distinct elements (slices along dim) in order; then, where asked for, each one's index among them, and how often each occurs
---@param x tycho.Tensor
---@param options? table
---@return tycho.Tensor
function tycho.unique(x, options) end

--- `(*, sorted:bool=true, return_inverse:bool=false, return_counts:bool=false, dim:int?)` the distinct elements (slices along dim) in order; then, where asked for, each one's index among them, and how often each occurs
---@param options? table
---@return tycho.Tensor
function Tensor:unique(options) end

--- `(x, return_inverse:bool=false, return_counts:bool=false, dim:int?)` the elements in row-major order (slices along dim) without those that repeat the one before; then, where asked for, each one's index among them, and how often each occurs in a row
---@param x tycho.Tensor
---@param return_inverse? boolean|table
---@param return_counts? boolean|table
---@param dim? integer|table
---@return tycho.Tensor
function tycho.unique_consecutive(x, return_inverse, return_counts, dim) end

--- `(return_inverse:bool=false, return_counts:bool=false, dim:int?)` the elements in row-major order (slices along dim) without those that repeat the one before; then, where asked for, each one's index among them, and how often each occurs in a row
---@param return_inverse? boolean|table
---@param return_counts? boolean|table
---@param dim? integer|table
---@return tycho.Tensor
function Tensor:unique_consecutive(return_inverse, return_counts, dim) end

--- `(x, dim:int=-1, keepdim:bool=false)` the most frequent value along dim (the least of several) and its last index
---@param x tycho.Tensor
---@param dim? integer|table
---@param keepdim? boolean|table
---@return tycho.Tensor
function tycho.mode(x, dim, keepdim) end

--- `(dim:int=-1, keepdim:bool=false)` the most frequent value along dim (the least of several) and its last index
---@param dim? integer|table
---@param keepdim? boolean|table
---@return tycho.Tensor
function Tensor:mode(dim, keepdim) end

--- `(x, bins:any, *, range:any?, weight:tensor?, density:bool=false)` how many elements (or how much weight) fall between neighbouring edges: bins equal parts of range = {least, most}, x's own where nil, or a tensor of edges; and the edges
---@param x tycho.Tensor
---@param bins any
---@param options? table
---@return tycho.Tensor
function tycho.histogram(x, bins, options) end

--- `(bins:any, *, range:any?, weight:tensor?, density:bool=false)` how many elements (or how much weight) fall between neighbouring edges: bins equal parts of range = {least, most}, x's own where nil, or a tensor of edges; and the edges
---@param bins any
---@param options? table
---@return tycho.Tensor
function Tensor:histogram(bins, options) end

--- `(sorted, values:operand, *, right:bool=false, side:enum(left,right)=left, sorter:tensor?, out_int32:bool=false)` for each value the index before which it would be put into the sorted last dim (right: after equals); sorter: what sorts it, if nothing has
---@param sorted tycho.Tensor
---@param values tycho.Tensor|number
---@param options? table
---@return tycho.Tensor
function tycho.searchsorted(sorted, values, options) end

--- `(values:operand, *, right:bool=false, side:enum(left,right)=left, sorter:tensor?, out_int32:bool=false)` for each value the index before which it would be put into the sorted last dim (right: after equals); sorter: what sorts it, if nothing has
---@param values tycho.Tensor|number
---@param options? table
---@return tycho.Tensor
function Tensor:searchsorted(values, options) end

--- `(x:operand, boundaries, *, right:bool=false, out_int32:bool=false)` for each element the index before which it would be put into boundaries
---@param x tycho.Tensor|number
---@param boundaries tycho.Tensor
---@param options? table
---@return tycho.Tensor
function tycho.bucketize(x, boundaries, options) end

--- `(boundaries, *, right:bool=false, out_int32:bool=false)` for each element the index before which it would be put into boundaries
---@param boundaries tycho.Tensor
---@param options? table
---@return tycho.Tensor
function Tensor:bucketize(boundaries, options) end

--- `(x, bins:int=100, min:number=0, max:number=0)` how many elements fall into each of bins equal parts of min..max (of x's own range where both are the same)
---@param x tycho.Tensor
---@param bins? integer|table
---@param min? number|table
---@param max? number|table
---@return tycho.Tensor
function tycho.histc(x, bins, min, max) end

--- `(bins:int=100, min:number=0, max:number=0)` how many elements fall into each of bins equal parts of min..max (of x's own range where both are the same)
---@param bins? integer|table
---@param min? number|table
---@param max? number|table
---@return tycho.Tensor
function Tensor:histc(bins, min, max) end

--- `(x, *, correction:int=1, fweights:tensor?, aweights:tensor?)` covariances of the rows of x; fweights: how often each column counts, aweights: how much
---@param x tycho.Tensor
---@param options? table
---@return tycho.Tensor
function tycho.cov(x, options) end

--- `(*, correction:int=1, fweights:tensor?, aweights:tensor?)` covariances of the rows of x; fweights: how often each column counts, aweights: how much
---@param options? table
---@return tycho.Tensor
function Tensor:cov(options) end

--- `(x)` correlations of the rows of x
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.corrcoef(x) end

--- correlations of the rows of x
---@return tycho.Tensor
function Tensor:corrcoef() end

--- `(a, b)` product of two matrices
---@param a tycho.Tensor
---@param b tycho.Tensor
---@return tycho.Tensor
function tycho.mm(a, b) end

--- `(b)` product of two matrices
---@param b tycho.Tensor
---@return tycho.Tensor
function Tensor:mm(b) end

--- `(a, b)` products of two batches of matrices
---@param a tycho.Tensor
---@param b tycho.Tensor
---@return tycho.Tensor
function tycho.bmm(a, b) end

--- `(b)` products of two batches of matrices
---@param b tycho.Tensor
---@return tycho.Tensor
function Tensor:bmm(b) end

--- `(a, b)` matrix times vector
---@param a tycho.Tensor
---@param b tycho.Tensor
---@return tycho.Tensor
function tycho.mv(a, b) end

--- `(b)` matrix times vector
---@param b tycho.Tensor
---@return tycho.Tensor
function Tensor:mv(b) end

--- `(a, b)` product of two vectors
---@param a tycho.Tensor
---@param b tycho.Tensor
---@return tycho.Tensor
function tycho.dot(a, b) end

--- `(b)` product of two vectors
---@param b tycho.Tensor
---@return tycho.Tensor
function Tensor:dot(b) end

--- `(a, b)` product of two vectors
---@param a tycho.Tensor
---@param b tycho.Tensor
---@return tycho.Tensor
function tycho.vdot(a, b) end

--- `(b)` product of two vectors
---@param b tycho.Tensor
---@return tycho.Tensor
function Tensor:vdot(b) end

--- `(a, b)` every element of a times every element of b
---@param a tycho.Tensor
---@param b tycho.Tensor
---@return tycho.Tensor
function tycho.outer(a, b) end

--- `(b)` every element of a times every element of b
---@param b tycho.Tensor
---@return tycho.Tensor
function Tensor:outer(b) end

--- `(a, b)` every element of a times every element of b
---@param a tycho.Tensor
---@param b tycho.Tensor
---@return tycho.Tensor
function tycho.ger(a, b) end

--- `(b)` every element of a times every element of b
---@param b tycho.Tensor
---@return tycho.Tensor
function Tensor:ger(b) end

--- `(x, a, b, *, beta:number=1, alpha:number=1)` beta * x + alpha * (a @ b)
---@param x tycho.Tensor
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param options? table
---@return tycho.Tensor
function tycho.addmm(x, a, b, options) end

--- `(a, b, *, beta:number=1, alpha:number=1)` beta * x + alpha * (a @ b)
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param options? table
---@return tycho.Tensor
function Tensor:addmm(a, b, options) end

--- `(x, a, b, *, beta:number=1, alpha:number=1)` beta * x + alpha * (a @ b)
---@param x tycho.Tensor
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param options? table
---@return tycho.Tensor
function tycho.addmm_(x, a, b, options) end

--- `(a, b, *, beta:number=1, alpha:number=1)` beta * x + alpha * (a @ b)
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param options? table
---@return tycho.Tensor
function Tensor:addmm_(a, b, options) end

--- `(x, a, b, *, beta:number=1, alpha:number=1)` beta * x + alpha * (a @ b)
---@param x tycho.Tensor
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param options? table
---@return tycho.Tensor
function tycho.baddbmm(x, a, b, options) end

--- `(a, b, *, beta:number=1, alpha:number=1)` beta * x + alpha * (a @ b)
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param options? table
---@return tycho.Tensor
function Tensor:baddbmm(a, b, options) end

--- `(x, a, b, *, beta:number=1, alpha:number=1)` beta * x + alpha * (a @ b)
---@param x tycho.Tensor
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param options? table
---@return tycho.Tensor
function tycho.baddbmm_(x, a, b, options) end

--- `(a, b, *, beta:number=1, alpha:number=1)` beta * x + alpha * (a @ b)
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param options? table
---@return tycho.Tensor
function Tensor:baddbmm_(a, b, options) end

--- `(x, a, b, *, beta:number=1, alpha:number=1)` beta * x + alpha * (a @ b)
---@param x tycho.Tensor
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param options? table
---@return tycho.Tensor
function tycho.addmv(x, a, b, options) end

--- `(a, b, *, beta:number=1, alpha:number=1)` beta * x + alpha * (a @ b)
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param options? table
---@return tycho.Tensor
function Tensor:addmv(a, b, options) end

--- `(x, a, b, *, beta:number=1, alpha:number=1)` beta * x + alpha * (a @ b)
---@param x tycho.Tensor
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param options? table
---@return tycho.Tensor
function tycho.addmv_(x, a, b, options) end

--- `(a, b, *, beta:number=1, alpha:number=1)` beta * x + alpha * (a @ b)
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param options? table
---@return tycho.Tensor
function Tensor:addmv_(a, b, options) end

--- `(x, a, b, *, beta:number=1, alpha:number=1)` beta * x + alpha * the sum over the batch of a @ b
---@param x tycho.Tensor
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param options? table
---@return tycho.Tensor
function tycho.addbmm(x, a, b, options) end

--- `(a, b, *, beta:number=1, alpha:number=1)` beta * x + alpha * the sum over the batch of a @ b
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param options? table
---@return tycho.Tensor
function Tensor:addbmm(a, b, options) end

--- `(x, a, b, *, beta:number=1, alpha:number=1)` beta * x + alpha * the sum over the batch of a @ b
---@param x tycho.Tensor
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param options? table
---@return tycho.Tensor
function tycho.addbmm_(x, a, b, options) end

--- `(a, b, *, beta:number=1, alpha:number=1)` beta * x + alpha * the sum over the batch of a @ b
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param options? table
---@return tycho.Tensor
function Tensor:addbmm_(a, b, options) end

--- `(x, a, b, *, beta:number=1, alpha:number=1)` beta * x + alpha * outer(a, b)
---@param x tycho.Tensor
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param options? table
---@return tycho.Tensor
function tycho.addr(x, a, b, options) end

--- `(a, b, *, beta:number=1, alpha:number=1)` beta * x + alpha * outer(a, b)
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param options? table
---@return tycho.Tensor
function Tensor:addr(a, b, options) end

--- `(x, a, b, *, beta:number=1, alpha:number=1)` beta * x + alpha * outer(a, b)
---@param x tycho.Tensor
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param options? table
---@return tycho.Tensor
function tycho.addr_(x, a, b, options) end

--- `(a, b, *, beta:number=1, alpha:number=1)` beta * x + alpha * outer(a, b)
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param options? table
---@return tycho.Tensor
function Tensor:addr_(a, b, options) end

--- `(a, b)` sums of products over the last dims
---@param a tycho.Tensor
---@param b tycho.Tensor
---@return tycho.Tensor
function tycho.inner(a, b) end

--- `(b)` sums of products over the last dims
---@param b tycho.Tensor
---@return tycho.Tensor
function Tensor:inner(b) end

--- `(a, b, dims:any?)` sums of products over dims: the last of a with so many first ones of b, or {{dims of a}, {dims of b}}
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param dims? any
---@return tycho.Tensor
function tycho.tensordot(a, b, dims) end

--- `(b, dims:any?)` sums of products over dims: the last of a with so many first ones of b, or {{dims of a}, {dims of b}}
---@param b tycho.Tensor
---@param dims? any
---@return tycho.Tensor
function Tensor:tensordot(b, dims) end

--- `(a, b)` every element of a times the whole of b
---@param a tycho.Tensor
---@param b tycho.Tensor
---@return tycho.Tensor
function tycho.kron(a, b) end

--- `(b)` every element of a times the whole of b
---@param b tycho.Tensor
---@return tycho.Tensor
function Tensor:kron(b) end

--- `(x, n:int)` a square matrix n times with itself
---@param x tycho.Tensor
---@param n integer
---@return tycho.Tensor
function tycho.matrix_power(x, n) end

--- `(n:int)` a square matrix n times with itself
---@param n integer
---@return tycho.Tensor
function Tensor:matrix_power(n) end

--- `(x, n:int)` a square matrix n times with itself
---@param x tycho.Tensor
---@param n integer
---@return tycho.Tensor
function tycho.linalg.matrix_power(x, n) end

--- `(a, b, dim:int?)` vector product along a dim of size 3 (the first one that has it where nil)
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param dim? integer|table
---@return tycho.Tensor
function tycho.cross(a, b, dim) end

--- `(b, dim:int?)` vector product along a dim of size 3 (the first one that has it where nil)
---@param b tycho.Tensor
---@param dim? integer|table
---@return tycho.Tensor
function Tensor:cross(b, dim) end

--- `(a, b, p:number=2, *, compute_mode:enum(use_mm_for_euclid_dist_if_necessary,use_mm_for_euclid_dist,donot_use_mm_for_euclid_dist)=use_mm_for_euclid_dist_if_necessary)` p-norms of the differences of every row of a with every row of b; by a product of matrices, which is less exact where rows are nearly equal, for p = 2 and more than 25 rows of more than 32 elements, unless compute_mode says otherwise
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param p? number|table
---@param options? table
---@return tycho.Tensor
function tycho.cdist(a, b, p, options) end

--- `(b, p:number=2, *, compute_mode:enum(use_mm_for_euclid_dist_if_necessary,use_mm_for_euclid_dist,donot_use_mm_for_euclid_dist)=use_mm_for_euclid_dist_if_necessary)` p-norms of the differences of every row of a with every row of b; by a product of matrices, which is less exact where rows are nearly equal, for p = 2 and more than 25 rows of more than 32 elements, unless compute_mode says otherwise
---@param b tycho.Tensor
---@param p? number|table
---@param options? table
---@return tycho.Tensor
function Tensor:cdist(b, p, options) end

--- `(a, b, dim:int=2, eps:number=1e-8)` dot product over the product of the norms along dim
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param dim? integer|table
---@param eps? number|table
---@return tycho.Tensor
function tycho.cosine_similarity(a, b, dim, eps) end

--- `(b, dim:int=2, eps:number=1e-8)` dot product over the product of the norms along dim
---@param b tycho.Tensor
---@param dim? integer|table
---@param eps? number|table
---@return tycho.Tensor
function Tensor:cosine_similarity(b, dim, eps) end

--- `(x, p:number=2)` p-norms of the differences of all pairs of rows, in order
---@param x tycho.Tensor
---@param p? number|table
---@return tycho.Tensor
function tycho.pdist(x, p) end

--- `(p:number=2)` p-norms of the differences of all pairs of rows, in order
---@param p? number|table
---@return tycho.Tensor
function Tensor:pdist(p) end

--- `(x, p:number, dim:int, maxnorm:number)` x with each slice along dim whose p-norm is above maxnorm scaled down to it
---@param x tycho.Tensor
---@param p number
---@param dim integer
---@param maxnorm number
---@return tycho.Tensor
function tycho.renorm(x, p, dim, maxnorm) end

--- `(p:number, dim:int, maxnorm:number)` x with each slice along dim whose p-norm is above maxnorm scaled down to it
---@param p number
---@param dim integer
---@param maxnorm number
---@return tycho.Tensor
function Tensor:renorm(p, dim, maxnorm) end

--- `(x, p:number, dim:int, maxnorm:number)` x with each slice along dim whose p-norm is above maxnorm scaled down to it
---@param x tycho.Tensor
---@param p number
---@param dim integer
---@param maxnorm number
---@return tycho.Tensor
function tycho.renorm_(x, p, dim, maxnorm) end

--- `(p:number, dim:int, maxnorm:number)` x with each slice along dim whose p-norm is above maxnorm scaled down to it
---@param p number
---@param dim integer
---@param maxnorm number
---@return tycho.Tensor
function Tensor:renorm_(p, dim, maxnorm) end

--- `(a, b, p:number=2, eps:number=1e-6, keepdim:bool=false)` p-norm of a - b + eps along the last dim
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param p? number|table
---@param eps? number|table
---@param keepdim? boolean|table
---@return tycho.Tensor
function tycho.pairwise_distance(a, b, p, eps, keepdim) end

--- `(b, p:number=2, eps:number=1e-6, keepdim:bool=false)` p-norm of a - b + eps along the last dim
---@param b tycho.Tensor
---@param p? number|table
---@param eps? number|table
---@param keepdim? boolean|table
---@return tycho.Tensor
function Tensor:pairwise_distance(b, p, eps, keepdim) end

--- `(a, b, weight, bias:tensor?)` a^T weight[k] b + bias[k] for each k
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param weight tycho.Tensor
---@param bias? tycho.Tensor|table
---@return tycho.Tensor
function tycho.bilinear(a, b, weight, bias) end

--- `(b, weight, bias:tensor?)` a^T weight[k] b + bias[k] for each k
---@param b tycho.Tensor
---@param weight tycho.Tensor
---@param bias? tycho.Tensor|table
---@return tycho.Tensor
function Tensor:bilinear(b, weight, bias) end

--- `(x, weight, bias:tensor?, *, activation:enum(none,relu)=none)` activation(x @ weight^T + bias); weight: (out, in), or (in), for one output without a dim
---@param x tycho.Tensor
---@param weight tycho.Tensor
---@param bias? tycho.Tensor|table
---@param options? table
---@return tycho.Tensor
function tycho.linear(x, weight, bias, options) end

--- `(weight, bias:tensor?, *, activation:enum(none,relu)=none)` activation(x @ weight^T + bias); weight: (out, in), or (in), for one output without a dim
---@param weight tycho.Tensor
---@param bias? tycho.Tensor|table
---@param options? table
---@return tycho.Tensor
function Tensor:linear(weight, bias, options) end

--- `(ids, weight, padding_idx:int?, max_norm:number?, norm_type:number=2, scale_grad_by_freq:bool=false, sparse:bool=false)` the rows of weight that ids name; that of padding_idx gets no gradient; max_norm: rows that are named become no longer, in place; scale_grad_by_freq: an id's gradients are divided by how often it is there; they are dense, sparse or not
---@param ids tycho.Tensor
---@param weight tycho.Tensor
---@param padding_idx? integer|table
---@param max_norm? number|table
---@param norm_type? number|table
---@param scale_grad_by_freq? boolean|table
---@param sparse? boolean|table
---@return tycho.Tensor
function tycho.embedding(ids, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse) end

--- `(weight, padding_idx:int?, max_norm:number?, norm_type:number=2, scale_grad_by_freq:bool=false, sparse:bool=false)` the rows of weight that ids name; that of padding_idx gets no gradient; max_norm: rows that are named become no longer, in place; scale_grad_by_freq: an id's gradients are divided by how often it is there; they are dense, sparse or not
---@param weight tycho.Tensor
---@param padding_idx? integer|table
---@param max_norm? number|table
---@param norm_type? number|table
---@param scale_grad_by_freq? boolean|table
---@param sparse? boolean|table
---@return tycho.Tensor
function Tensor:embedding(weight, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse) end

--- `(ids, weight, offsets:tensor?, max_norm:number?, norm_type:number=2, *, mode:enum(sum,mean,max)=mean, per_sample_weights:tensor?, include_last_offset:bool=false, padding_idx:int?, scale_grad_by_freq:bool=false, sparse:bool=false)` sum, mean or maximum of the rows of weight that each row of ids names, or each bag that begins at an offset (include_last_offset: the last one is the end); mode sum takes a weight for each id; padding_idx takes no part
---@param ids tycho.Tensor
---@param weight tycho.Tensor
---@param offsets? tycho.Tensor|table
---@param max_norm? number|table
---@param norm_type? number|table
---@param options? table
---@return tycho.Tensor
function tycho.embedding_bag(ids, weight, offsets, max_norm, norm_type, options) end

--- `(weight, offsets:tensor?, max_norm:number?, norm_type:number=2, *, mode:enum(sum,mean,max)=mean, per_sample_weights:tensor?, include_last_offset:bool=false, padding_idx:int?, scale_grad_by_freq:bool=false, sparse:bool=false)` sum, mean or maximum of the rows of weight that each row of ids names, or each bag that begins at an offset (include_last_offset: the last one is the end); mode sum takes a weight for each id; padding_idx takes no part
---@param weight tycho.Tensor
---@param offsets? tycho.Tensor|table
---@param max_norm? number|table
---@param norm_type? number|table
---@param options? table
---@return tycho.Tensor
function Tensor:embedding_bag(weight, offsets, max_norm, norm_type, options) end

--- `(ids, num_classes:int?)` 1 at each id's place along a new last dim of size num_classes (the largest id where nil or -1)
---@param ids tycho.Tensor
---@param num_classes? integer|table
---@return tycho.Tensor
function tycho.one_hot(ids, num_classes) end

--- `(num_classes:int?)` 1 at each id's place along a new last dim of size num_classes (the largest id where nil or -1)
---@param num_classes? integer|table
---@return tycho.Tensor
function Tensor:one_hot(num_classes) end

--- `(equation:string, a:any, b:tensor?, c:tensor?, d:tensor?, e:tensor?, f:tensor?)` sums of products by Einstein's convention, for instance 'bij,bjk->bik', of the tensors given or of a list of them; ... stands for further dims
---@param equation string
---@param a any
---@param b? tycho.Tensor|table
---@param c? tycho.Tensor|table
---@param d? tycho.Tensor|table
---@param e? tycho.Tensor|table
---@param f? tycho.Tensor|table
---@return tycho.Tensor
function tycho.einsum(equation, a, b, c, d, e, f) end

--- `(x, *, upper:bool=false)` the lower triangular L of x = L L^T, for a positive-definite x (upper: L^T)
---@param x tycho.Tensor
---@param options? table
---@return tycho.Tensor
function tycho.linalg.cholesky(x, options) end

--- `(x, *, upper:bool=false, check_errors:bool=false)` linalg.cholesky, and for each matrix 0 or the order of its first minor that isn't positive: it has no factor, but there is no error
---@param x tycho.Tensor
---@param options? table
---@return tycho.Tensor
function tycho.linalg.cholesky_ex(x, options) end

--- `(x)` L below U of x with rows exchanged, in one matrix, and the row, from 1, that each was exchanged with; of singular matrices too
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.linalg.lu_factor(x) end

--- `(x, *, check_errors:bool=false)` linalg.lu_factor, and for each matrix 0 or which element of U's diagonal is the first 0: such a matrix has no solutions
---@param x tycho.Tensor
---@param options? table
---@return tycho.Tensor
function tycho.linalg.lu_factor_ex(x, options) end

--- `(x)` P, L and U of x = P L U: a permutation, a lower triangle of units, an upper one
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.linalg.lu(x) end

--- `(lu, pivots)` P, L and U of what linalg.lu_factor gives
---@param lu tycho.Tensor
---@param pivots tycho.Tensor
---@return tycho.Tensor
function tycho.lu_unpack(lu, pivots) end

--- `(lu, pivots, b, *, left:bool=true, adjoint:bool=false)` x of a x = b (left=false: x a = b; adjoint: with a^T) by what linalg.lu_factor gives of a
---@param lu tycho.Tensor
---@param pivots tycho.Tensor
---@param b tycho.Tensor
---@param options? table
---@return tycho.Tensor
function tycho.linalg.lu_solve(lu, pivots, b, options) end

--- `(x, mode:enum(reduced,complete,r)=reduced)` Q with orthonormal columns and the upper triangular R of x = Q R (mode r: R alone)
---@param x tycho.Tensor
---@param mode? string|table
---@return tycho.Tensor
function tycho.linalg.qr(x, mode) end

--- `(x, UPLO:enum(L,U)=L)` eigenvalues of symmetric matrices in ascending order, and as columns their vectors; one triangle is read
---@param x tycho.Tensor
---@param UPLO? string|table
---@return tycho.Tensor
function tycho.linalg.eigh(x, UPLO) end

--- `(x, UPLO:enum(L,U)=L)` eigenvalues of symmetric matrices in ascending order
---@param x tycho.Tensor
---@param UPLO? string|table
---@return tycho.Tensor
function tycho.linalg.eigvalsh(x, UPLO) end

--- `(x, full_matrices:bool=true)` U, S and V^T of x = U diag(S) V^T, S descending; without full_matrices as many columns and rows as there are values
---@param x tycho.Tensor
---@param full_matrices? boolean|table
---@return tycho.Tensor
function tycho.linalg.svd(x, full_matrices) end

--- `(x)` singular values, descending
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.linalg.svdvals(x) end

--- `(a, b, *, left:bool=true)` x of a x = b (left=false: of x a = b) for square matrices a
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param options? table
---@return tycho.Tensor
function tycho.linalg.solve(a, b, options) end

--- `(a, b, *, left:bool=true, check_errors:bool=false)` linalg.solve, and for each matrix 0 or, where it is singular, which element of U's diagonal is 0: its solution is NaN, and no error
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param options? table
---@return tycho.Tensor
function tycho.linalg.solve_ex(a, b, options) end

--- `(a, b, *, upper:bool, left:bool=true, unitriangular:bool=false)` x of a x = b (left=false: of x a = b) for triangular matrices a; the other triangle isn't read
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param options? table
---@return tycho.Tensor
function tycho.linalg.solve_triangular(a, b, options) end

--- `(x)` inverses of square matrices
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.linalg.inv(x) end

--- `(x)` inverses of square matrices
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.inverse(x) end

--- inverses of square matrices
---@return tycho.Tensor
function Tensor:inverse() end

--- `(x, *, check_errors:bool=false)` linalg.inv, and for each matrix 0 or, where it is singular, which element of U's diagonal is 0: its inverse is NaN, and no error
---@param x tycho.Tensor
---@param options? table
---@return tycho.Tensor
function tycho.linalg.inv_ex(x, options) end

--- `(x)` sign and logarithm of the absolute value of determinants
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.linalg.slogdet(x) end

--- `(x)` sign and logarithm of the absolute value of determinants
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.slogdet(x) end

--- sign and logarithm of the absolute value of determinants
---@return tycho.Tensor
function Tensor:slogdet() end

--- `(x)` determinants of square matrices; within vmap and compile a singular one has a gradient of NaN; second derivatives of a singular one are right where its singular values differ
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.linalg.det(x) end

--- `(x)` determinants of square matrices; within vmap and compile a singular one has a gradient of NaN; second derivatives of a singular one are right where its singular values differ
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.det(x) end

--- determinants of square matrices; within vmap and compile a singular one has a gradient of NaN; second derivatives of a singular one are right where its singular values differ
---@return tycho.Tensor
function Tensor:det() end

--- `(a, b)` x with the least norm of a x - b; where several have it, the one that is least itself. a must have full rank
---@param a tycho.Tensor
---@param b tycho.Tensor
---@return tycho.Tensor
function tycho.linalg.lstsq(a, b) end

--- `(x, rtol:any?, *, atol:any?, hermitian:bool=false)` Moore-Penrose pseudoinverses; singular values up to atol, or to rtol times the largest, count as 0; hermitian says that x is symmetric
---@param x tycho.Tensor
---@param rtol? any
---@param options? table
---@return tycho.Tensor
function tycho.linalg.pinv(x, rtol, options) end

--- `(x, tol:any?, hermitian:bool=false, *, atol:any?, rtol:any?)` how many singular values (of symmetric matrices, hermitian: sizes of eigenvalues) are above atol, or tol, and above rtol times the largest
---@param x tycho.Tensor
---@param tol? any
---@param hermitian? boolean|table
---@param options? table
---@return tycho.Tensor
function tycho.linalg.matrix_rank(x, tol, hermitian, options) end

--- `(x, ord:any?, dim:any?, keepdim:bool=false, *, dtype:dtype?)` ord-norm (2 where nil) over dim (all dims where nil)
---@param x tycho.Tensor
---@param ord? any
---@param dim? any
---@param keepdim? boolean|table
---@param options? table
---@return tycho.Tensor
function tycho.linalg.vector_norm(x, ord, dim, keepdim, options) end

--- `(x, ord:any?, dim:any?, keepdim:bool=false, *, dtype:dtype?)` norm of the matrices in two dims (the last two where nil): 'fro' (where nil), 'nuc', inf, -inf, 1, -1, 2 or -2
---@param x tycho.Tensor
---@param ord? any
---@param dim? any
---@param keepdim? boolean|table
---@param options? table
---@return tycho.Tensor
function tycho.linalg.matrix_norm(x, ord, dim, keepdim, options) end

--- `(x, ord:any?, dim:any?, keepdim:bool=false, *, dtype:dtype?)` vector_norm or, where ord is given and x is a matrix or dim has two dims, matrix_norm
---@param x tycho.Tensor
---@param ord? any
---@param dim? any
---@param keepdim? boolean|table
---@param options? table
---@return tycho.Tensor
function tycho.linalg.norm(x, ord, dim, keepdim, options) end

--- `(x, p:any?)` condition numbers: the p-norm (2 where nil) of x times that of its inverse
---@param x tycho.Tensor
---@param p? any
---@return tycho.Tensor
function tycho.linalg.cond(x, p) end

--- `(a, b, dim:int=-1)` sums of products along dim
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param dim? integer|table
---@return tycho.Tensor
function tycho.linalg.vecdot(a, b, dim) end

--- `(tensors:tensors)` product of two or more matrices, in the order that takes the fewest multiplications
---@param tensors tycho.Tensor[]
---@return tycho.Tensor
function tycho.linalg.multi_dot(tensors) end

--- `(x)` e to the power of square matrices
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.linalg.matrix_exp(x) end

--- `(x)` e to the power of square matrices
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.matrix_exp(x) end

--- e to the power of square matrices
---@return tycho.Tensor
function Tensor:matrix_exp() end

--- `(a, b, dim:int=-1)` vector product along dim, of size 3
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param dim? integer|table
---@return tycho.Tensor
function tycho.linalg.cross(a, b, dim) end

--- `(x, *, offset:int=0, dim1:dim=-2, dim2:dim=-1)` the diagonals of matrices, as their last dim
---@param x tycho.Tensor
---@param options? table
---@return tycho.Tensor
function tycho.linalg.diagonal(x, options) end

--- `(x, rcond:any?)` linalg.pinv: singular values up to rcond times the largest count as 0
---@param x tycho.Tensor
---@param rcond? any
---@return tycho.Tensor
function tycho.pinverse(x, rcond) end

--- `(rcond:any?)` linalg.pinv: singular values up to rcond times the largest count as 0
---@param rcond? any
---@return tycho.Tensor
function Tensor:pinverse(rcond) end

--- `(x)` logarithm of determinants, NaN where they are negative
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.logdet(x) end

--- logarithm of determinants, NaN where they are negative
---@return tycho.Tensor
function Tensor:logdet() end

--- `(x, some:bool=true)` U, S and V (linalg.svd gives V^T)
---@param x tycho.Tensor
---@param some? boolean|table
---@return tycho.Tensor
function tycho.svd(x, some) end

--- `(some:bool=true)` U, S and V (linalg.svd gives V^T)
---@param some? boolean|table
---@return tycho.Tensor
function Tensor:svd(some) end

--- `(b, l, upper:bool=false)` x of A x = b, where l is A's Cholesky factor
---@param b tycho.Tensor
---@param l tycho.Tensor
---@param upper? boolean|table
---@return tycho.Tensor
function tycho.cholesky_solve(b, l, upper) end

--- `(l, upper:bool=false)` x of A x = b, where l is A's Cholesky factor
---@param l tycho.Tensor
---@param upper? boolean|table
---@return tycho.Tensor
function Tensor:cholesky_solve(l, upper) end

--- `(l, upper:bool=false)` inverse of the matrix whose Cholesky factor l is
---@param l tycho.Tensor
---@param upper? boolean|table
---@return tycho.Tensor
function tycho.cholesky_inverse(l, upper) end

--- `(upper:bool=false)` inverse of the matrix whose Cholesky factor l is
---@param upper? boolean|table
---@return tycho.Tensor
function Tensor:cholesky_inverse(upper) end

--- `(x, ind:int=2)` y of tensordot(y, tensordot(x, z, k), ind) = z: x's inverse as a map from its dims after ind (k many) to the first ind
---@param x tycho.Tensor
---@param ind? integer|table
---@return tycho.Tensor
function tycho.linalg.tensorinv(x, ind) end

--- `(a, b, dims:ints?)` x of tensordot(a, x, x's dims) = b; dims: those of a that are moved to its end first
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param dims? integer[]|table
---@return tycho.Tensor
function tycho.linalg.tensorsolve(a, b, dims) end

--- `(x, tau)` the first columns of H1 H2 ..., Hi = I - tau_i v v^T, where v is column i of x below its diagonal, with 1 there
---@param x tycho.Tensor
---@param tau tycho.Tensor
---@return tycho.Tensor
function tycho.linalg.householder_product(x, tau) end

--- `(x, q:int=6, niter:int=2, m:tensor?)` U, S, V of x (less m) nearly U diag(S) V^T, of the q largest singular values, by a random projection and niter iterations
---@param x tycho.Tensor
---@param q? integer|table
---@param niter? integer|table
---@param m? tycho.Tensor|table
---@return tycho.Tensor
function tycho.svd_lowrank(x, q, niter, m) end

--- `(x, q:int?, center:bool=true, niter:int=2)` svd_lowrank of x less, where center, its columns' means: V's columns are the principal directions; q: 6, or x's smaller size
---@param x tycho.Tensor
---@param q? integer|table
---@param center? boolean|table
---@param niter? integer|table
---@return tycho.Tensor
function tycho.pca_lowrank(x, q, center, niter) end

--- `(x, n:int?)` the powers of vectors' elements as rows, from 0 to n - 1 (n: their size)
---@param x tycho.Tensor
---@param n? integer|table
---@return tycho.Tensor
function tycho.linalg.vander(x, n) end

--- `(x, n:int?, increasing:bool=false)` the powers of a vector's elements as rows, from n - 1 (n: its size) down to 0, or up
---@param x tycho.Tensor
---@param n? integer|table
---@param increasing? boolean|table
---@return tycho.Tensor
function tycho.vander(x, n, increasing) end

--- `(n:int?, increasing:bool=false)` the powers of a vector's elements as rows, from n - 1 (n: its size) down to 0, or up
---@param n? integer|table
---@param increasing? boolean|table
---@return tycho.Tensor
function Tensor:vander(n, increasing) end

--- `(real, imag?)` pairs of a real part and an imaginary one (0 where nil)
---@param real tycho.Tensor
---@param imag? tycho.Tensor|table
---@return tycho.Tensor
function tycho.fft.complex(real, imag) end

--- `(abs, angle)` pairs of these absolute values and angles (radians)
---@param abs tycho.Tensor
---@param angle tycho.Tensor
---@return tycho.Tensor
function tycho.fft.polar(abs, angle) end

--- `(z)` absolute values of pairs; the gradient at 0 is 0
---@param z tycho.Tensor
---@return tycho.Tensor
function tycho.fft.abs(z) end

--- `(z)` angles of pairs, in radians
---@param z tycho.Tensor
---@return tycho.Tensor
function tycho.fft.angle(z) end

--- `(z)` pairs with the other sign of the imaginary part
---@param z tycho.Tensor
---@return tycho.Tensor
function tycho.fft.conj(z) end

--- `(a, b)` products of pairs, with broadcasting
---@param a tycho.Tensor
---@param b tycho.Tensor
---@return tycho.Tensor
function tycho.fft.mul(a, b) end

--- `(x, n:int?, dim:int=-1, norm:enum(backward,ortho,forward)=backward)` Fourier transform of pairs along dim, which counts the dims before the pairs'; n: elements, cut or filled up with zeros
---@param x tycho.Tensor
---@param n? integer|table
---@param dim? integer|table
---@param norm? string|table
---@return tycho.Tensor
function tycho.fft.fft(x, n, dim, norm) end

--- `(x, n:int?, dim:int=-1, norm:enum(backward,ortho,forward)=backward)` the inverse of fft.fft: pairs from pairs
---@param x tycho.Tensor
---@param n? integer|table
---@param dim? integer|table
---@param norm? string|table
---@return tycho.Tensor
function tycho.fft.ifft(x, n, dim, norm) end

--- `(x, n:int?, dim:int=-1, norm:enum(backward,ortho,forward)=backward)` Fourier transform of real elements along dim: the first n / 2 + 1 pairs, of which the others are conjugates
---@param x tycho.Tensor
---@param n? integer|table
---@param dim? integer|table
---@param norm? string|table
---@return tycho.Tensor
function tycho.fft.rfft(x, n, dim, norm) end

--- `(x, n:int?, dim:int=-1, norm:enum(backward,ortho,forward)=backward)` the inverse of fft.rfft: n real elements (2 (m - 1) where nil) of a dim from m pairs
---@param x tycho.Tensor
---@param n? integer|table
---@param dim? integer|table
---@param norm? string|table
---@return tycho.Tensor
function tycho.fft.irfft(x, n, dim, norm) end

--- `(x, n:int?, dim:int=-1, norm:enum(backward,ortho,forward)=backward)` n real sums (2 (m - 1) where nil) of the m pairs that a signal with conjugates begins with
---@param x tycho.Tensor
---@param n? integer|table
---@param dim? integer|table
---@param norm? string|table
---@return tycho.Tensor
function tycho.fft.hfft(x, n, dim, norm) end

--- `(x, n:int?, dim:int=-1, norm:enum(backward,ortho,forward)=backward)` the inverse of fft.hfft: the first n / 2 + 1 pairs from n real elements
---@param x tycho.Tensor
---@param n? integer|table
---@param dim? integer|table
---@param norm? string|table
---@return tycho.Tensor
function tycho.fft.ihfft(x, n, dim, norm) end

--- `(x, s:ints?, dim:ints?, norm:enum(backward,ortho,forward)=backward)` fft.fft over the last two dims, or those named; s: their sizes
---@param x tycho.Tensor
---@param s? integer[]|table
---@param dim? integer[]|table
---@param norm? string|table
---@return tycho.Tensor
function tycho.fft.fft2(x, s, dim, norm) end

--- `(x, s:ints?, dim:ints?, norm:enum(backward,ortho,forward)=backward)` fft.fft over all dims, or those named; s: their sizes
---@param x tycho.Tensor
---@param s? integer[]|table
---@param dim? integer[]|table
---@param norm? string|table
---@return tycho.Tensor
function tycho.fft.fftn(x, s, dim, norm) end

--- `(x, s:ints?, dim:ints?, norm:enum(backward,ortho,forward)=backward)` fft.ifft over the last two dims, or those named; s: their sizes
---@param x tycho.Tensor
---@param s? integer[]|table
---@param dim? integer[]|table
---@param norm? string|table
---@return tycho.Tensor
function tycho.fft.ifft2(x, s, dim, norm) end

--- `(x, s:ints?, dim:ints?, norm:enum(backward,ortho,forward)=backward)` fft.ifft over all dims, or those named; s: their sizes
---@param x tycho.Tensor
---@param s? integer[]|table
---@param dim? integer[]|table
---@param norm? string|table
---@return tycho.Tensor
function tycho.fft.ifftn(x, s, dim, norm) end

--- `(x, s:ints?, dim:ints?, norm:enum(backward,ortho,forward)=backward)` fft.rfft over the last two dims, or those named; s: their sizes
---@param x tycho.Tensor
---@param s? integer[]|table
---@param dim? integer[]|table
---@param norm? string|table
---@return tycho.Tensor
function tycho.fft.rfft2(x, s, dim, norm) end

--- `(x, s:ints?, dim:ints?, norm:enum(backward,ortho,forward)=backward)` fft.rfft over all dims, or those named; s: their sizes
---@param x tycho.Tensor
---@param s? integer[]|table
---@param dim? integer[]|table
---@param norm? string|table
---@return tycho.Tensor
function tycho.fft.rfftn(x, s, dim, norm) end

--- `(x, s:ints?, dim:ints?, norm:enum(backward,ortho,forward)=backward)` fft.irfft over the last two dims, or those named; s: their sizes
---@param x tycho.Tensor
---@param s? integer[]|table
---@param dim? integer[]|table
---@param norm? string|table
---@return tycho.Tensor
function tycho.fft.irfft2(x, s, dim, norm) end

--- `(x, s:ints?, dim:ints?, norm:enum(backward,ortho,forward)=backward)` fft.irfft over all dims, or those named; s: their sizes
---@param x tycho.Tensor
---@param s? integer[]|table
---@param dim? integer[]|table
---@param norm? string|table
---@return tycho.Tensor
function tycho.fft.irfftn(x, s, dim, norm) end

--- `(x, s:ints?, dim:ints?, norm:enum(backward,ortho,forward)=backward)` fft.hfft over the last of the last two dims, or those named, after fft.fft over the others; s: their sizes
---@param x tycho.Tensor
---@param s? integer[]|table
---@param dim? integer[]|table
---@param norm? string|table
---@return tycho.Tensor
function tycho.fft.hfft2(x, s, dim, norm) end

--- `(x, s:ints?, dim:ints?, norm:enum(backward,ortho,forward)=backward)` the inverse of fft.hfft2
---@param x tycho.Tensor
---@param s? integer[]|table
---@param dim? integer[]|table
---@param norm? string|table
---@return tycho.Tensor
function tycho.fft.ihfft2(x, s, dim, norm) end

--- `(x, s:ints?, dim:ints?, norm:enum(backward,ortho,forward)=backward)` fft.hfft over the last of all dims, or those named, after fft.fft over the others; s: their sizes
---@param x tycho.Tensor
---@param s? integer[]|table
---@param dim? integer[]|table
---@param norm? string|table
---@return tycho.Tensor
function tycho.fft.hfftn(x, s, dim, norm) end

--- `(x, s:ints?, dim:ints?, norm:enum(backward,ortho,forward)=backward)` the inverse of fft.hfftn
---@param x tycho.Tensor
---@param s? integer[]|table
---@param dim? integer[]|table
---@param norm? string|table
---@return tycho.Tensor
function tycho.fft.ihfftn(x, s, dim, norm) end

--- `(n:int, d:number=1, *, dtype:dtype?, device:device?)` the frequencies of fft.fft's n results, with d between samples
---@param n integer
---@param d? number|table
---@param options? table
---@return tycho.Tensor
function tycho.fft.fftfreq(n, d, options) end

--- `(n:int, d:number=1, *, dtype:dtype?, device:device?)` the frequencies of fft.rfft's n / 2 + 1 results, with d between samples
---@param n integer
---@param d? number|table
---@param options? table
---@return tycho.Tensor
function tycho.fft.rfftfreq(n, d, options) end

--- `(x, dim:ints?)` frequency 0 in the middle of the dims named, of all where dim is nil
---@param x tycho.Tensor
---@param dim? integer[]|table
---@return tycho.Tensor
function tycho.fft.fftshift(x, dim) end

--- `(x, dim:ints?)` the inverse of fft.fftshift
---@param x tycho.Tensor
---@param dim? integer[]|table
---@return tycho.Tensor
function tycho.fft.ifftshift(x, dim) end

--- `(x, n_fft:int, hop_length:int?, win_length:int?, window?, center:bool=true, pad_mode:enum(constant,reflect,replicate,circular)=reflect, normalized:bool=false, onesided:bool=true, return_complex:bool=true)` spectra of pieces of n_fft elements, hop_length (n_fft / 4) apart: of (L) or (N, L) real elements pairs (N, n_fft / 2 + 1, pieces, 2)
---@param x tycho.Tensor
---@param n_fft integer
---@param hop_length? integer|table
---@param win_length? integer|table
---@param window? tycho.Tensor|table
---@param center? boolean|table
---@param pad_mode? string|table
---@param normalized? boolean|table
---@param onesided? boolean|table
---@param return_complex? boolean|table
---@return tycho.Tensor
function tycho.stft(x, n_fft, hop_length, win_length, window, center, pad_mode, normalized, onesided, return_complex) end

--- `(n_fft:int, hop_length:int?, win_length:int?, window?, center:bool=true, pad_mode:enum(constant,reflect,replicate,circular)=reflect, normalized:bool=false, onesided:bool=true, return_complex:bool=true)` spectra of pieces of n_fft elements, hop_length (n_fft / 4) apart: of (L) or (N, L) real elements pairs (N, n_fft / 2 + 1, pieces, 2)
---@param n_fft integer
---@param hop_length? integer|table
---@param win_length? integer|table
---@param window? tycho.Tensor|table
---@param center? boolean|table
---@param pad_mode? string|table
---@param normalized? boolean|table
---@param onesided? boolean|table
---@param return_complex? boolean|table
---@return tycho.Tensor
function Tensor:stft(n_fft, hop_length, win_length, window, center, pad_mode, normalized, onesided, return_complex) end

--- `(x, n_fft:int, hop_length:int?, win_length:int?, window?, center:bool=true, normalized:bool=false, onesided:bool=true, length:int?)` the elements whose stft is x, pairs (N, n_fft / 2 + 1, pieces, 2), nearest by least squares; length: how many (what the pieces hold)
---@param x tycho.Tensor
---@param n_fft integer
---@param hop_length? integer|table
---@param win_length? integer|table
---@param window? tycho.Tensor|table
---@param center? boolean|table
---@param normalized? boolean|table
---@param onesided? boolean|table
---@param length? integer|table
---@return tycho.Tensor
function tycho.istft(x, n_fft, hop_length, win_length, window, center, normalized, onesided, length) end

--- `(n_fft:int, hop_length:int?, win_length:int?, window?, center:bool=true, normalized:bool=false, onesided:bool=true, length:int?)` the elements whose stft is x, pairs (N, n_fft / 2 + 1, pieces, 2), nearest by least squares; length: how many (what the pieces hold)
---@param n_fft integer
---@param hop_length? integer|table
---@param win_length? integer|table
---@param window? tycho.Tensor|table
---@param center? boolean|table
---@param normalized? boolean|table
---@param onesided? boolean|table
---@param length? integer|table
---@return tycho.Tensor
function Tensor:istft(n_fft, hop_length, win_length, window, center, normalized, onesided, length) end

--- `(n:int, periodic:bool=true, *, dtype:dtype?, device:device?)` the Hann window of n elements; periodic=false: a symmetric one
---@param n integer
---@param periodic? boolean|table
---@param options? table
---@return tycho.Tensor
function tycho.hann_window(n, periodic, options) end

--- `(n:int, periodic:bool=true, *, dtype:dtype?, device:device?)` the Hamming window of n elements; periodic=false: a symmetric one
---@param n integer
---@param periodic? boolean|table
---@param options? table
---@return tycho.Tensor
function tycho.hamming_window(n, periodic, options) end

--- `(n:int, periodic:bool=true, *, dtype:dtype?, device:device?)` the Blackman window of n elements; periodic=false: a symmetric one
---@param n integer
---@param periodic? boolean|table
---@param options? table
---@return tycho.Tensor
function tycho.blackman_window(n, periodic, options) end

--- `(n:int, periodic:bool=true, *, dtype:dtype?, device:device?)` the Bartlett window of n elements; periodic=false: a symmetric one
---@param n integer
---@param periodic? boolean|table
---@param options? table
---@return tycho.Tensor
function tycho.bartlett_window(n, periodic, options) end

--- `(n:int, periodic:bool=true, beta:number=12, *, dtype:dtype?, device:device?)` the Kaiser window of n elements; a larger beta: a narrower one
---@param n integer
---@param periodic? boolean|table
---@param beta? number|table
---@param options? table
---@return tycho.Tensor
function tycho.kaiser_window(n, periodic, beta, options) end

--- `(n:int, *, sym:bool=true, dtype:dtype?, device:device?)` the Hann window of n elements; sym=false: one period of many
---@param n integer
---@param options? table
---@return tycho.Tensor
function tycho.signal.windows.hann(n, options) end

--- `(n:int, *, sym:bool=true, dtype:dtype?, device:device?)` the Hamming window of n elements; sym=false: one period of many
---@param n integer
---@param options? table
---@return tycho.Tensor
function tycho.signal.windows.hamming(n, options) end

--- `(n:int, *, sym:bool=true, dtype:dtype?, device:device?)` the Blackman window of n elements; sym=false: one period of many
---@param n integer
---@param options? table
---@return tycho.Tensor
function tycho.signal.windows.blackman(n, options) end

--- `(n:int, *, sym:bool=true, dtype:dtype?, device:device?)` the Bartlett window of n elements; sym=false: one period of many
---@param n integer
---@param options? table
---@return tycho.Tensor
function tycho.signal.windows.bartlett(n, options) end

--- `(n:int, *, sym:bool=true, dtype:dtype?, device:device?)` the Nuttall window of n elements; sym=false: one period of many
---@param n integer
---@param options? table
---@return tycho.Tensor
function tycho.signal.windows.nuttall(n, options) end

--- `(n:int, *, sym:bool=true, dtype:dtype?, device:device?)` the Cosine window of n elements; sym=false: one period of many
---@param n integer
---@param options? table
---@return tycho.Tensor
function tycho.signal.windows.cosine(n, options) end

--- `(n:int, *, beta:number=12, sym:bool=true, dtype:dtype?, device:device?)` the Kaiser window; a larger beta: a narrower one
---@param n integer
---@param options? table
---@return tycho.Tensor
function tycho.signal.windows.kaiser(n, options) end

--- `(n:int, *, std:number=1, sym:bool=true, dtype:dtype?, device:device?)` the Gaussian window of standard deviation std, in elements
---@param n integer
---@param options? table
---@return tycho.Tensor
function tycho.signal.windows.gaussian(n, options) end

--- `(n:int, *, center:number?, tau:number=1, sym:bool=true, dtype:dtype?, device:device?)` exp(-|k - center| / tau) for k = 0 .. n - 1; center, which only a window with sym=false may have, defaults to the middle
---@param n integer
---@param options? table
---@return tycho.Tensor
function tycho.signal.windows.exponential(n, options) end

--- `(n:int, *, a:any, sym:bool=true, dtype:dtype?, device:device?)` sums of cosines: of a's numbers the i-th is the weight of cos(2 pi (i - 1) k / (n - 1)), with the other sign for each second one
---@param n integer
---@param options? table
---@return tycho.Tensor
function tycho.signal.windows.general_cosine(n, options) end

--- `(n:int, *, alpha:number=0.54, sym:bool=true, dtype:dtype?, device:device?)` alpha - (1 - alpha) cos(2 pi k / (n - 1))
---@param n integer
---@param options? table
---@return tycho.Tensor
function tycho.signal.windows.general_hamming(n, options) end

--- `(n:int, x)` n-th derivative of digamma
---@param n integer
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.polygamma(n, x) end

--- `(x)` n-th derivative of digamma
---@param x tycho.Tensor
---@return tycho.Tensor
function Tensor:polygamma(x) end

--- `(n:int, x)` n-th derivative of digamma
---@param n integer
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.special.polygamma(n, x) end

--- `(x, p:int)` logarithm of the multivariate gamma function of dimension p
---@param x tycho.Tensor
---@param p integer
---@return tycho.Tensor
function tycho.mvlgamma(x, p) end

--- `(p:int)` logarithm of the multivariate gamma function of dimension p
---@param p integer
---@return tycho.Tensor
function Tensor:mvlgamma(p) end

--- `(x, p:int)` logarithm of the multivariate gamma function of dimension p
---@param x tycho.Tensor
---@param p integer
---@return tycho.Tensor
function tycho.special.multigammaln(x, p) end

--- `(x)` the standard normal distribution function
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.ndtr(x) end

--- the standard normal distribution function
---@return tycho.Tensor
function Tensor:ndtr() end

--- `(x)` the standard normal distribution function
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.ndtr_(x) end

--- the standard normal distribution function
---@return tycho.Tensor
function Tensor:ndtr_() end

--- `(x)` the standard normal distribution function
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.special.ndtr(x) end

--- `(x)` the standard normal distribution function
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.special.ndtr_(x) end

--- `(x, other:operand)` x * 2^other
---@param x tycho.Tensor
---@param other tycho.Tensor|number
---@return tycho.Tensor
function tycho.ldexp(x, other) end

--- `(other:operand)` x * 2^other
---@param other tycho.Tensor|number
---@return tycho.Tensor
function Tensor:ldexp(other) end

--- `(x, other:operand)` x * 2^other
---@param x tycho.Tensor
---@param other tycho.Tensor|number
---@return tycho.Tensor
function tycho.ldexp_(x, other) end

--- `(other:operand)` x * 2^other
---@param other tycho.Tensor|number
---@return tycho.Tensor
function Tensor:ldexp_(other) end

--- `(x, dim:int, index)` the elements of dim that the vector index names
---@param x tycho.Tensor
---@param dim integer
---@param index tycho.Tensor
---@return tycho.Tensor
function tycho.index_select(x, dim, index) end

--- `(dim:int, index)` the elements of dim that the vector index names
---@param dim integer
---@param index tycho.Tensor
---@return tycho.Tensor
function Tensor:index_select(dim, index) end

--- `(x, dim:int, index, src, *, alpha:number=1)` x with alpha times src's slices added at index along dim
---@param x tycho.Tensor
---@param dim integer
---@param index tycho.Tensor
---@param src tycho.Tensor
---@param options? table
---@return tycho.Tensor
function tycho.index_add(x, dim, index, src, options) end

--- `(dim:int, index, src, *, alpha:number=1)` x with alpha times src's slices added at index along dim
---@param dim integer
---@param index tycho.Tensor
---@param src tycho.Tensor
---@param options? table
---@return tycho.Tensor
function Tensor:index_add(dim, index, src, options) end

--- `(x, dim:int, index, src, *, alpha:number=1)` x with alpha times src's slices added at index along dim
---@param x tycho.Tensor
---@param dim integer
---@param index tycho.Tensor
---@param src tycho.Tensor
---@param options? table
---@return tycho.Tensor
function tycho.index_add_(x, dim, index, src, options) end

--- `(dim:int, index, src, *, alpha:number=1)` x with alpha times src's slices added at index along dim
---@param dim integer
---@param index tycho.Tensor
---@param src tycho.Tensor
---@param options? table
---@return tycho.Tensor
function Tensor:index_add_(dim, index, src, options) end

--- `(x, mask)` the elements where mask is true, as a vector
---@param x tycho.Tensor
---@param mask tycho.Tensor
---@return tycho.Tensor
function tycho.masked_select(x, mask) end

--- `(mask)` the elements where mask is true, as a vector
---@param mask tycho.Tensor
---@return tycho.Tensor
function Tensor:masked_select(mask) end

--- `(x, dim:int, index, src:operand)` x with src written at index along dim
---@param x tycho.Tensor
---@param dim integer
---@param index tycho.Tensor
---@param src tycho.Tensor|number
---@return tycho.Tensor
function tycho.index_copy(x, dim, index, src) end

--- `(dim:int, index, src:operand)` x with src written at index along dim
---@param dim integer
---@param index tycho.Tensor
---@param src tycho.Tensor|number
---@return tycho.Tensor
function Tensor:index_copy(dim, index, src) end

--- `(x, dim:int, index, src:operand)` x with src written at index along dim
---@param x tycho.Tensor
---@param dim integer
---@param index tycho.Tensor
---@param src tycho.Tensor|number
---@return tycho.Tensor
function tycho.index_copy_(x, dim, index, src) end

--- `(dim:int, index, src:operand)` x with src written at index along dim
---@param dim integer
---@param index tycho.Tensor
---@param src tycho.Tensor|number
---@return tycho.Tensor
function Tensor:index_copy_(dim, index, src) end

--- `(x, dim:int, index, value:operand)` x with value written at index along dim
---@param x tycho.Tensor
---@param dim integer
---@param index tycho.Tensor
---@param value tycho.Tensor|number
---@return tycho.Tensor
function tycho.index_fill(x, dim, index, value) end

--- `(dim:int, index, value:operand)` x with value written at index along dim
---@param dim integer
---@param index tycho.Tensor
---@param value tycho.Tensor|number
---@return tycho.Tensor
function Tensor:index_fill(dim, index, value) end

--- `(x, dim:int, index, value:operand)` x with value written at index along dim
---@param x tycho.Tensor
---@param dim integer
---@param index tycho.Tensor
---@param value tycho.Tensor|number
---@return tycho.Tensor
function tycho.index_fill_(x, dim, index, value) end

--- `(dim:int, index, value:operand)` x with value written at index along dim
---@param dim integer
---@param index tycho.Tensor
---@param value tycho.Tensor|number
---@return tycho.Tensor
function Tensor:index_fill_(dim, index, value) end

--- `(x, index)` the elements that index names in row-major order
---@param x tycho.Tensor
---@param index tycho.Tensor
---@return tycho.Tensor
function tycho.take(x, index) end

--- `(index)` the elements that index names in row-major order
---@param index tycho.Tensor
---@return tycho.Tensor
function Tensor:take(index) end

--- `(x, index, dim:int?)` x's elements at index along dim; other dims broadcast
---@param x tycho.Tensor
---@param index tycho.Tensor
---@param dim? integer|table
---@return tycho.Tensor
function tycho.take_along_dim(x, index, dim) end

--- `(index, dim:int?)` x's elements at index along dim; other dims broadcast
---@param index tycho.Tensor
---@param dim? integer|table
---@return tycho.Tensor
function Tensor:take_along_dim(index, dim) end

--- `(x, mask, src)` x with src's elements, in order, where mask is true
---@param x tycho.Tensor
---@param mask tycho.Tensor
---@param src tycho.Tensor
---@return tycho.Tensor
function tycho.masked_scatter(x, mask, src) end

--- `(mask, src)` x with src's elements, in order, where mask is true
---@param mask tycho.Tensor
---@param src tycho.Tensor
---@return tycho.Tensor
function Tensor:masked_scatter(mask, src) end

--- `(x, mask, src)` x with src's elements, in order, where mask is true
---@param x tycho.Tensor
---@param mask tycho.Tensor
---@param src tycho.Tensor
---@return tycho.Tensor
function tycho.masked_scatter_(x, mask, src) end

--- `(mask, src)` x with src's elements, in order, where mask is true
---@param mask tycho.Tensor
---@param src tycho.Tensor
---@return tycho.Tensor
function Tensor:masked_scatter_(mask, src) end

--- `(x, indices:any, values:operand, accumulate:bool=false)` x with values written (or added) where a list of index tensors, one for each dim from the first on, or of masks points
---@param x tycho.Tensor
---@param indices any
---@param values tycho.Tensor|number
---@param accumulate? boolean|table
---@return tycho.Tensor
function tycho.index_put(x, indices, values, accumulate) end

--- `(indices:any, values:operand, accumulate:bool=false)` x with values written (or added) where a list of index tensors, one for each dim from the first on, or of masks points
---@param indices any
---@param values tycho.Tensor|number
---@param accumulate? boolean|table
---@return tycho.Tensor
function Tensor:index_put(indices, values, accumulate) end

--- `(x, indices:any, values:operand, accumulate:bool=false)` x with values written (or added) where a list of index tensors, one for each dim from the first on, or of masks points
---@param x tycho.Tensor
---@param indices any
---@param values tycho.Tensor|number
---@param accumulate? boolean|table
---@return tycho.Tensor
function tycho.index_put_(x, indices, values, accumulate) end

--- `(indices:any, values:operand, accumulate:bool=false)` x with values written (or added) where a list of index tensors, one for each dim from the first on, or of masks points
---@param indices any
---@param values tycho.Tensor|number
---@param accumulate? boolean|table
---@return tycho.Tensor
function Tensor:index_put_(indices, values, accumulate) end

--- `(x, index, src, accumulate:bool=false)` x with src's elements written (or added) where index points in row-major order
---@param x tycho.Tensor
---@param index tycho.Tensor
---@param src tycho.Tensor
---@param accumulate? boolean|table
---@return tycho.Tensor
function tycho.put(x, index, src, accumulate) end

--- `(index, src, accumulate:bool=false)` x with src's elements written (or added) where index points in row-major order
---@param index tycho.Tensor
---@param src tycho.Tensor
---@param accumulate? boolean|table
---@return tycho.Tensor
function Tensor:put(index, src, accumulate) end

--- `(x, index, src, accumulate:bool=false)` x with src's elements written (or added) where index points in row-major order
---@param x tycho.Tensor
---@param index tycho.Tensor
---@param src tycho.Tensor
---@param accumulate? boolean|table
---@return tycho.Tensor
function tycho.put_(x, index, src, accumulate) end

--- `(index, src, accumulate:bool=false)` x with src's elements written (or added) where index points in row-major order
---@param index tycho.Tensor
---@param src tycho.Tensor
---@param accumulate? boolean|table
---@return tycho.Tensor
function Tensor:put_(index, src, accumulate) end

--- `(x, dim:int, index, src:operand, *, reduce:enum(none,add,multiply)=none)` x with src written at index along dim; reduce: added to what is there, or multiplied with it
---@param x tycho.Tensor
---@param dim integer
---@param index tycho.Tensor
---@param src tycho.Tensor|number
---@param options? table
---@return tycho.Tensor
function tycho.scatter(x, dim, index, src, options) end

--- `(dim:int, index, src:operand, *, reduce:enum(none,add,multiply)=none)` x with src written at index along dim; reduce: added to what is there, or multiplied with it
---@param dim integer
---@param index tycho.Tensor
---@param src tycho.Tensor|number
---@param options? table
---@return tycho.Tensor
function Tensor:scatter(dim, index, src, options) end

--- `(x, dim:int, index, src:operand, *, reduce:enum(none,add,multiply)=none)` x with src written at index along dim; reduce: added to what is there, or multiplied with it
---@param x tycho.Tensor
---@param dim integer
---@param index tycho.Tensor
---@param src tycho.Tensor|number
---@param options? table
---@return tycho.Tensor
function tycho.scatter_(x, dim, index, src, options) end

--- `(dim:int, index, src:operand, *, reduce:enum(none,add,multiply)=none)` x with src written at index along dim; reduce: added to what is there, or multiplied with it
---@param dim integer
---@param index tycho.Tensor
---@param src tycho.Tensor|number
---@param options? table
---@return tycho.Tensor
function Tensor:scatter_(dim, index, src, options) end

--- `(x, dim:int, index, src, reduce:enum(sum,prod,mean,amax,amin), *, include_self:bool=true)` x reduced with src's elements at index along dim; without include_self only src's count where there are any
---@param x tycho.Tensor
---@param dim integer
---@param index tycho.Tensor
---@param src tycho.Tensor
---@param reduce string
---@param options? table
---@return tycho.Tensor
function tycho.scatter_reduce(x, dim, index, src, reduce, options) end

--- `(dim:int, index, src, reduce:enum(sum,prod,mean,amax,amin), *, include_self:bool=true)` x reduced with src's elements at index along dim; without include_self only src's count where there are any
---@param dim integer
---@param index tycho.Tensor
---@param src tycho.Tensor
---@param reduce string
---@param options? table
---@return tycho.Tensor
function Tensor:scatter_reduce(dim, index, src, reduce, options) end

--- `(x, dim:int, index, src, reduce:enum(sum,prod,mean,amax,amin), *, include_self:bool=true)` x reduced with src's elements at index along dim; without include_self only src's count where there are any
---@param x tycho.Tensor
---@param dim integer
---@param index tycho.Tensor
---@param src tycho.Tensor
---@param reduce string
---@param options? table
---@return tycho.Tensor
function tycho.scatter_reduce_(x, dim, index, src, reduce, options) end

--- `(dim:int, index, src, reduce:enum(sum,prod,mean,amax,amin), *, include_self:bool=true)` x reduced with src's elements at index along dim; without include_self only src's count where there are any
---@param dim integer
---@param index tycho.Tensor
---@param src tycho.Tensor
---@param reduce string
---@param options? table
---@return tycho.Tensor
function Tensor:scatter_reduce_(dim, index, src, reduce, options) end

--- `(x, dim:int, index, src, reduce:enum(prod,mean,amax,amin), *, include_self:bool=true)` x reduced with src's slices at the positions that the vector index names along dim
---@param x tycho.Tensor
---@param dim integer
---@param index tycho.Tensor
---@param src tycho.Tensor
---@param reduce string
---@param options? table
---@return tycho.Tensor
function tycho.index_reduce(x, dim, index, src, reduce, options) end

--- `(dim:int, index, src, reduce:enum(prod,mean,amax,amin), *, include_self:bool=true)` x reduced with src's slices at the positions that the vector index names along dim
---@param dim integer
---@param index tycho.Tensor
---@param src tycho.Tensor
---@param reduce string
---@param options? table
---@return tycho.Tensor
function Tensor:index_reduce(dim, index, src, reduce, options) end

--- `(x, dim:int, index, src, reduce:enum(prod,mean,amax,amin), *, include_self:bool=true)` x reduced with src's slices at the positions that the vector index names along dim
---@param x tycho.Tensor
---@param dim integer
---@param index tycho.Tensor
---@param src tycho.Tensor
---@param reduce string
---@param options? table
---@return tycho.Tensor
function tycho.index_reduce_(x, dim, index, src, reduce, options) end

--- `(dim:int, index, src, reduce:enum(prod,mean,amax,amin), *, include_self:bool=true)` x reduced with src's slices at the positions that the vector index names along dim
---@param dim integer
---@param index tycho.Tensor
---@param src tycho.Tensor
---@param reduce string
---@param options? table
---@return tycho.Tensor
function Tensor:index_reduce_(dim, index, src, reduce, options) end

--- `(x, src, dim:int=1, first:int?, last:int?, step:int=1)` x with src written over elements first to last of dim, every step-th
---@param x tycho.Tensor
---@param src tycho.Tensor
---@param dim? integer|table
---@param first? integer|table
---@param last? integer|table
---@param step? integer|table
---@return tycho.Tensor
function tycho.slice_scatter(x, src, dim, first, last, step) end

--- `(src, dim:int=1, first:int?, last:int?, step:int=1)` x with src written over elements first to last of dim, every step-th
---@param src tycho.Tensor
---@param dim? integer|table
---@param first? integer|table
---@param last? integer|table
---@param step? integer|table
---@return tycho.Tensor
function Tensor:slice_scatter(src, dim, first, last, step) end

--- `(x, src, dim:int, index:int)` x with src written over element index of dim
---@param x tycho.Tensor
---@param src tycho.Tensor
---@param dim integer
---@param index integer
---@return tycho.Tensor
function tycho.select_scatter(x, src, dim, index) end

--- `(src, dim:int, index:int)` x with src written over element index of dim
---@param src tycho.Tensor
---@param dim integer
---@param index integer
---@return tycho.Tensor
function Tensor:select_scatter(src, dim, index) end

--- `(x, src, offset:int=0, dim1:int=1, dim2:int=2)` x with src written over a diagonal
---@param x tycho.Tensor
---@param src tycho.Tensor
---@param offset? integer|table
---@param dim1? integer|table
---@param dim2? integer|table
---@return tycho.Tensor
function tycho.diagonal_scatter(x, src, offset, dim1, dim2) end

--- `(src, offset:int=0, dim1:int=1, dim2:int=2)` x with src written over a diagonal
---@param src tycho.Tensor
---@param offset? integer|table
---@param dim1? integer|table
---@param dim2? integer|table
---@return tycho.Tensor
function Tensor:diagonal_scatter(src, offset, dim1, dim2) end

--- `(x, src, size:ints, stride:ints, storage_offset:int=0)` x, contiguous, with src written over its elements at as_strided's places
---@param x tycho.Tensor
---@param src tycho.Tensor
---@param size integer[]
---@param stride integer[]
---@param storage_offset? integer|table
---@return tycho.Tensor
function tycho.as_strided_scatter(x, src, size, stride, storage_offset) end

--- `(src, size:ints, stride:ints, storage_offset:int=0)` x, contiguous, with src written over its elements at as_strided's places
---@param src tycho.Tensor
---@param size integer[]
---@param stride integer[]
---@param storage_offset? integer|table
---@return tycho.Tensor
function Tensor:as_strided_scatter(src, size, stride, storage_offset) end

--- `(index, size:sizes)` positions in row-major order as indices into a tensor of that size, a tensor for each dim
---@param index tycho.Tensor
---@param size integer|integer[]
---@return tycho.Tensor
function tycho.unravel_index(index, size) end

--- `(size:sizes)` positions in row-major order as indices into a tensor of that size, a tensor for each dim
---@param size integer|integer[]
---@return tycho.Tensor
function Tensor:unravel_index(size) end

--- `(x, weight, bias:tensor?, stride:single=1, padding:any?, dilation:single=1, groups:int=1)` 1-D convolution of x (N,C,L) with weight (O,C/groups,k); padding may be 'same' or 'valid'
---@param x tycho.Tensor
---@param weight tycho.Tensor
---@param bias? tycho.Tensor|table
---@param stride? integer|integer[]|table
---@param padding? any
---@param dilation? integer|integer[]|table
---@param groups? integer|table
---@return tycho.Tensor
function tycho.conv1d(x, weight, bias, stride, padding, dilation, groups) end

--- `(weight, bias:tensor?, stride:single=1, padding:any?, dilation:single=1, groups:int=1)` 1-D convolution of x (N,C,L) with weight (O,C/groups,k); padding may be 'same' or 'valid'
---@param weight tycho.Tensor
---@param bias? tycho.Tensor|table
---@param stride? integer|integer[]|table
---@param padding? any
---@param dilation? integer|integer[]|table
---@param groups? integer|table
---@return tycho.Tensor
function Tensor:conv1d(weight, bias, stride, padding, dilation, groups) end

--- `(x, weight, bias:tensor?, stride:pair=1, padding:pair=0, output_padding:pair=0, groups:int=1, dilation:pair=1)` transposed 2-D convolution of x (N,C,H,W) with weight (C,O/groups,kH,kW)
---@param x tycho.Tensor
---@param weight tycho.Tensor
---@param bias? tycho.Tensor|table
---@param stride? integer|integer[]|table
---@param padding? integer|integer[]|table
---@param output_padding? integer|integer[]|table
---@param groups? integer|table
---@param dilation? integer|integer[]|table
---@return tycho.Tensor
function tycho.conv_transpose2d(x, weight, bias, stride, padding, output_padding, groups, dilation) end

--- `(weight, bias:tensor?, stride:pair=1, padding:pair=0, output_padding:pair=0, groups:int=1, dilation:pair=1)` transposed 2-D convolution of x (N,C,H,W) with weight (C,O/groups,kH,kW)
---@param weight tycho.Tensor
---@param bias? tycho.Tensor|table
---@param stride? integer|integer[]|table
---@param padding? integer|integer[]|table
---@param output_padding? integer|integer[]|table
---@param groups? integer|table
---@param dilation? integer|integer[]|table
---@return tycho.Tensor
function Tensor:conv_transpose2d(weight, bias, stride, padding, output_padding, groups, dilation) end

--- `(x, weight, bias:tensor?, stride:single=1, padding:single=0, output_padding:single=0, groups:int=1, dilation:single=1)` transposed 1-D convolution of x (N,C,L) with weight (C,O/groups,k)
---@param x tycho.Tensor
---@param weight tycho.Tensor
---@param bias? tycho.Tensor|table
---@param stride? integer|integer[]|table
---@param padding? integer|integer[]|table
---@param output_padding? integer|integer[]|table
---@param groups? integer|table
---@param dilation? integer|integer[]|table
---@return tycho.Tensor
function tycho.conv_transpose1d(x, weight, bias, stride, padding, output_padding, groups, dilation) end

--- `(weight, bias:tensor?, stride:single=1, padding:single=0, output_padding:single=0, groups:int=1, dilation:single=1)` transposed 1-D convolution of x (N,C,L) with weight (C,O/groups,k)
---@param weight tycho.Tensor
---@param bias? tycho.Tensor|table
---@param stride? integer|integer[]|table
---@param padding? integer|integer[]|table
---@param output_padding? integer|integer[]|table
---@param groups? integer|table
---@param dilation? integer|integer[]|table
---@return tycho.Tensor
function Tensor:conv_transpose1d(weight, bias, stride, padding, output_padding, groups, dilation) end

--- `(x, weight, bias:tensor?, stride:pair=1, padding:any?, dilation:pair=1, groups:int=1)` 2-D convolution of x (N,C,H,W) with weight (O,C/groups,kH,kW); padding may be 'same' or 'valid'
---@param x tycho.Tensor
---@param weight tycho.Tensor
---@param bias? tycho.Tensor|table
---@param stride? integer|integer[]|table
---@param padding? any
---@param dilation? integer|integer[]|table
---@param groups? integer|table
---@return tycho.Tensor
function tycho.conv2d(x, weight, bias, stride, padding, dilation, groups) end

--- `(weight, bias:tensor?, stride:pair=1, padding:any?, dilation:pair=1, groups:int=1)` 2-D convolution of x (N,C,H,W) with weight (O,C/groups,kH,kW); padding may be 'same' or 'valid'
---@param weight tycho.Tensor
---@param bias? tycho.Tensor|table
---@param stride? integer|integer[]|table
---@param padding? any
---@param dilation? integer|integer[]|table
---@param groups? integer|table
---@return tycho.Tensor
function Tensor:conv2d(weight, bias, stride, padding, dilation, groups) end

--- `(x, kernel_size:pair, stride:pair?, padding:pair=0, dilation:pair=1, ceil_mode:bool=false, return_indices:bool=false)` maximum of each kernel_size window of the last two dims
---@param x tycho.Tensor
---@param kernel_size integer|integer[]
---@param stride? integer|integer[]|table
---@param padding? integer|integer[]|table
---@param dilation? integer|integer[]|table
---@param ceil_mode? boolean|table
---@param return_indices? boolean|table
---@return tycho.Tensor
function tycho.max_pool2d(x, kernel_size, stride, padding, dilation, ceil_mode, return_indices) end

--- `(kernel_size:pair, stride:pair?, padding:pair=0, dilation:pair=1, ceil_mode:bool=false, return_indices:bool=false)` maximum of each kernel_size window of the last two dims
---@param kernel_size integer|integer[]
---@param stride? integer|integer[]|table
---@param padding? integer|integer[]|table
---@param dilation? integer|integer[]|table
---@param ceil_mode? boolean|table
---@param return_indices? boolean|table
---@return tycho.Tensor
function Tensor:max_pool2d(kernel_size, stride, padding, dilation, ceil_mode, return_indices) end

--- `(x, kernel_size:single, stride:single?, padding:single=0, dilation:single=1, ceil_mode:bool=false, return_indices:bool=false)` maximum of each kernel_size window of the last dim
---@param x tycho.Tensor
---@param kernel_size integer|integer[]
---@param stride? integer|integer[]|table
---@param padding? integer|integer[]|table
---@param dilation? integer|integer[]|table
---@param ceil_mode? boolean|table
---@param return_indices? boolean|table
---@return tycho.Tensor
function tycho.max_pool1d(x, kernel_size, stride, padding, dilation, ceil_mode, return_indices) end

--- `(kernel_size:single, stride:single?, padding:single=0, dilation:single=1, ceil_mode:bool=false, return_indices:bool=false)` maximum of each kernel_size window of the last dim
---@param kernel_size integer|integer[]
---@param stride? integer|integer[]|table
---@param padding? integer|integer[]|table
---@param dilation? integer|integer[]|table
---@param ceil_mode? boolean|table
---@param return_indices? boolean|table
---@return tycho.Tensor
function Tensor:max_pool1d(kernel_size, stride, padding, dilation, ceil_mode, return_indices) end

--- `(x, kernel_size:single, stride:single?, padding:single=0, ceil_mode:bool=false, count_include_pad:bool=true)` mean of each kernel_size window of the last dim
---@param x tycho.Tensor
---@param kernel_size integer|integer[]
---@param stride? integer|integer[]|table
---@param padding? integer|integer[]|table
---@param ceil_mode? boolean|table
---@param count_include_pad? boolean|table
---@return tycho.Tensor
function tycho.avg_pool1d(x, kernel_size, stride, padding, ceil_mode, count_include_pad) end

--- `(kernel_size:single, stride:single?, padding:single=0, ceil_mode:bool=false, count_include_pad:bool=true)` mean of each kernel_size window of the last dim
---@param kernel_size integer|integer[]
---@param stride? integer|integer[]|table
---@param padding? integer|integer[]|table
---@param ceil_mode? boolean|table
---@param count_include_pad? boolean|table
---@return tycho.Tensor
function Tensor:avg_pool1d(kernel_size, stride, padding, ceil_mode, count_include_pad) end

--- `(x, output_size:any)` means of windows chosen so that output_size results; {h, false} keeps the width
---@param x tycho.Tensor
---@param output_size any
---@return tycho.Tensor
function tycho.adaptive_avg_pool2d(x, output_size) end

--- `(output_size:any)` means of windows chosen so that output_size results; {h, false} keeps the width
---@param output_size any
---@return tycho.Tensor
function Tensor:adaptive_avg_pool2d(output_size) end

--- `(x, output_size:single)` means of windows of the last dim chosen so that output_size results
---@param x tycho.Tensor
---@param output_size integer|integer[]
---@return tycho.Tensor
function tycho.adaptive_avg_pool1d(x, output_size) end

--- `(output_size:single)` means of windows of the last dim chosen so that output_size results
---@param output_size integer|integer[]
---@return tycho.Tensor
function Tensor:adaptive_avg_pool1d(output_size) end

--- `(x, output_size:any, return_indices:bool=false)` maxima of windows chosen so that output_size results; {h, false} keeps the width
---@param x tycho.Tensor
---@param output_size any
---@param return_indices? boolean|table
---@return tycho.Tensor
function tycho.adaptive_max_pool2d(x, output_size, return_indices) end

--- `(output_size:any, return_indices:bool=false)` maxima of windows chosen so that output_size results; {h, false} keeps the width
---@param output_size any
---@param return_indices? boolean|table
---@return tycho.Tensor
function Tensor:adaptive_max_pool2d(output_size, return_indices) end

--- `(x, output_size:single, return_indices:bool=false)` maxima of windows of the last dim chosen so that output_size results
---@param x tycho.Tensor
---@param output_size integer|integer[]
---@param return_indices? boolean|table
---@return tycho.Tensor
function tycho.adaptive_max_pool1d(x, output_size, return_indices) end

--- `(output_size:single, return_indices:bool=false)` maxima of windows of the last dim chosen so that output_size results
---@param output_size integer|integer[]
---@param return_indices? boolean|table
---@return tycho.Tensor
function Tensor:adaptive_max_pool1d(output_size, return_indices) end

--- `(x, p:number, kernel_size:single, stride:single?, ceil_mode:bool=false)` p-norm of each kernel_size window
---@param x tycho.Tensor
---@param p number
---@param kernel_size integer|integer[]
---@param stride? integer|integer[]|table
---@param ceil_mode? boolean|table
---@return tycho.Tensor
function tycho.lp_pool1d(x, p, kernel_size, stride, ceil_mode) end

--- `(p:number, kernel_size:single, stride:single?, ceil_mode:bool=false)` p-norm of each kernel_size window
---@param p number
---@param kernel_size integer|integer[]
---@param stride? integer|integer[]|table
---@param ceil_mode? boolean|table
---@return tycho.Tensor
function Tensor:lp_pool1d(p, kernel_size, stride, ceil_mode) end

--- `(x, p:number, kernel_size:pair, stride:pair?, ceil_mode:bool=false)` p-norm of each kernel_size window
---@param x tycho.Tensor
---@param p number
---@param kernel_size integer|integer[]
---@param stride? integer|integer[]|table
---@param ceil_mode? boolean|table
---@return tycho.Tensor
function tycho.lp_pool2d(x, p, kernel_size, stride, ceil_mode) end

--- `(p:number, kernel_size:pair, stride:pair?, ceil_mode:bool=false)` p-norm of each kernel_size window
---@param p number
---@param kernel_size integer|integer[]
---@param stride? integer|integer[]|table
---@param ceil_mode? boolean|table
---@return tycho.Tensor
function Tensor:lp_pool2d(p, kernel_size, stride, ceil_mode) end

--- `(x, p:number, kernel_size:triple, stride:triple?, ceil_mode:bool=false)` p-norm of each kernel_size window
---@param x tycho.Tensor
---@param p number
---@param kernel_size integer|integer[]
---@param stride? integer|integer[]|table
---@param ceil_mode? boolean|table
---@return tycho.Tensor
function tycho.lp_pool3d(x, p, kernel_size, stride, ceil_mode) end

--- `(p:number, kernel_size:triple, stride:triple?, ceil_mode:bool=false)` p-norm of each kernel_size window
---@param p number
---@param kernel_size integer|integer[]
---@param stride? integer|integer[]|table
---@param ceil_mode? boolean|table
---@return tycho.Tensor
function Tensor:lp_pool3d(p, kernel_size, stride, ceil_mode) end

--- `(x, p:number=0.5, training:bool=true)` elements set to 0 with probability p, the others scaled by 1 / (1 - p)
---@param x tycho.Tensor
---@param p? number|table
---@param training? boolean|table
---@return tycho.Tensor
function tycho.dropout(x, p, training) end

--- `(p:number=0.5, training:bool=true)` elements set to 0 with probability p, the others scaled by 1 / (1 - p)
---@param p? number|table
---@param training? boolean|table
---@return tycho.Tensor
function Tensor:dropout(p, training) end

--- `(x, mean:tensor?, var:tensor?, weight:tensor?, bias:tensor?, training:bool=false, momentum:number=0.1, eps:number=1e-5)` each channel (dim 2) normalised by the batch's statistics (training) or the running ones, then scaled and shifted
---@param x tycho.Tensor
---@param mean? tycho.Tensor|table
---@param var? tycho.Tensor|table
---@param weight? tycho.Tensor|table
---@param bias? tycho.Tensor|table
---@param training? boolean|table
---@param momentum? number|table
---@param eps? number|table
---@return tycho.Tensor
function tycho.batch_norm(x, mean, var, weight, bias, training, momentum, eps) end

--- `(mean:tensor?, var:tensor?, weight:tensor?, bias:tensor?, training:bool=false, momentum:number=0.1, eps:number=1e-5)` each channel (dim 2) normalised by the batch's statistics (training) or the running ones, then scaled and shifted
---@param mean? tycho.Tensor|table
---@param var? tycho.Tensor|table
---@param weight? tycho.Tensor|table
---@param bias? tycho.Tensor|table
---@param training? boolean|table
---@param momentum? number|table
---@param eps? number|table
---@return tycho.Tensor
function Tensor:batch_norm(mean, var, weight, bias, training, momentum, eps) end

--- `(x, size:sizes, weight:tensor?, bias:tensor?, eps:number=1e-5)` normalised over the last dims, of shape size, then scaled and shifted
---@param x tycho.Tensor
---@param size integer|integer[]
---@param weight? tycho.Tensor|table
---@param bias? tycho.Tensor|table
---@param eps? number|table
---@return tycho.Tensor
function tycho.layer_norm(x, size, weight, bias, eps) end

--- `(size:sizes, weight:tensor?, bias:tensor?, eps:number=1e-5)` normalised over the last dims, of shape size, then scaled and shifted
---@param size integer|integer[]
---@param weight? tycho.Tensor|table
---@param bias? tycho.Tensor|table
---@param eps? number|table
---@return tycho.Tensor
function Tensor:layer_norm(size, weight, bias, eps) end

--- `(x, size:sizes, weight:tensor?, eps:number?)` divided by the root mean square over the last dims, of shape size, then scaled
---@param x tycho.Tensor
---@param size integer|integer[]
---@param weight? tycho.Tensor|table
---@param eps? number|table
---@return tycho.Tensor
function tycho.rms_norm(x, size, weight, eps) end

--- `(size:sizes, weight:tensor?, eps:number?)` divided by the root mean square over the last dims, of shape size, then scaled
---@param size integer|integer[]
---@param weight? tycho.Tensor|table
---@param eps? number|table
---@return tycho.Tensor
function Tensor:rms_norm(size, weight, eps) end

--- `(x, groups:int, weight:tensor?, bias:tensor?, eps:number=1e-5)` channels (dim 2) normalised in groups, for each item of the batch, then scaled and shifted
---@param x tycho.Tensor
---@param groups integer
---@param weight? tycho.Tensor|table
---@param bias? tycho.Tensor|table
---@param eps? number|table
---@return tycho.Tensor
function tycho.group_norm(x, groups, weight, bias, eps) end

--- `(groups:int, weight:tensor?, bias:tensor?, eps:number=1e-5)` channels (dim 2) normalised in groups, for each item of the batch, then scaled and shifted
---@param groups integer
---@param weight? tycho.Tensor|table
---@param bias? tycho.Tensor|table
---@param eps? number|table
---@return tycho.Tensor
function Tensor:group_norm(groups, weight, bias, eps) end

--- `(x, mean:tensor?, var:tensor?, weight:tensor?, bias:tensor?, use_input_stats:bool=true, momentum:number=0.1, eps:number=1e-5)` each channel of each item normalised on its own, then scaled and shifted
---@param x tycho.Tensor
---@param mean? tycho.Tensor|table
---@param var? tycho.Tensor|table
---@param weight? tycho.Tensor|table
---@param bias? tycho.Tensor|table
---@param use_input_stats? boolean|table
---@param momentum? number|table
---@param eps? number|table
---@return tycho.Tensor
function tycho.instance_norm(x, mean, var, weight, bias, use_input_stats, momentum, eps) end

--- `(mean:tensor?, var:tensor?, weight:tensor?, bias:tensor?, use_input_stats:bool=true, momentum:number=0.1, eps:number=1e-5)` each channel of each item normalised on its own, then scaled and shifted
---@param mean? tycho.Tensor|table
---@param var? tycho.Tensor|table
---@param weight? tycho.Tensor|table
---@param bias? tycho.Tensor|table
---@param use_input_stats? boolean|table
---@param momentum? number|table
---@param eps? number|table
---@return tycho.Tensor
function Tensor:instance_norm(mean, var, weight, bias, use_input_stats, momentum, eps) end

--- `(x, size:int, alpha:number=1e-4, beta:number=0.75, k:number=1)` divided by a power of the mean square over size neighbouring channels
---@param x tycho.Tensor
---@param size integer
---@param alpha? number|table
---@param beta? number|table
---@param k? number|table
---@return tycho.Tensor
function tycho.local_response_norm(x, size, alpha, beta, k) end

--- `(size:int, alpha:number=1e-4, beta:number=0.75, k:number=1)` divided by a power of the mean square over size neighbouring channels
---@param size integer
---@param alpha? number|table
---@param beta? number|table
---@param k? number|table
---@return tycho.Tensor
function Tensor:local_response_norm(size, alpha, beta, k) end

--- `(x, p:number=2, dim:dims?, eps:number=1e-12)` divided by its p-norm along dim (2), or dims
---@param x tycho.Tensor
---@param p? number|table
---@param dim? integer|integer[]|table
---@param eps? number|table
---@return tycho.Tensor
function tycho.normalize(x, p, dim, eps) end

--- `(p:number=2, dim:dims?, eps:number=1e-12)` divided by its p-norm along dim (2), or dims
---@param p? number|table
---@param dim? integer|integer[]|table
---@param eps? number|table
---@return tycho.Tensor
function Tensor:normalize(p, dim, eps) end

--- `(x, p:number=0.5, training:bool=true)` whole channels set to 0 with probability p, the others scaled by 1 / (1 - p)
---@param x tycho.Tensor
---@param p? number|table
---@param training? boolean|table
---@return tycho.Tensor
function tycho.dropout1d(x, p, training) end

--- `(p:number=0.5, training:bool=true)` whole channels set to 0 with probability p, the others scaled by 1 / (1 - p)
---@param p? number|table
---@param training? boolean|table
---@return tycho.Tensor
function Tensor:dropout1d(p, training) end

--- `(x, p:number=0.5, training:bool=true)` whole channels set to 0 with probability p, the others scaled by 1 / (1 - p)
---@param x tycho.Tensor
---@param p? number|table
---@param training? boolean|table
---@return tycho.Tensor
function tycho.dropout2d(x, p, training) end

--- `(p:number=0.5, training:bool=true)` whole channels set to 0 with probability p, the others scaled by 1 / (1 - p)
---@param p? number|table
---@param training? boolean|table
---@return tycho.Tensor
function Tensor:dropout2d(p, training) end

--- `(x, p:number=0.5, training:bool=true)` whole channels set to 0 with probability p, the others scaled by 1 / (1 - p)
---@param x tycho.Tensor
---@param p? number|table
---@param training? boolean|table
---@return tycho.Tensor
function tycho.dropout3d(x, p, training) end

--- `(p:number=0.5, training:bool=true)` whole channels set to 0 with probability p, the others scaled by 1 / (1 - p)
---@param p? number|table
---@param training? boolean|table
---@return tycho.Tensor
function Tensor:dropout3d(p, training) end

--- `(x, p:number=0.5, training:bool=false)` dropout that keeps mean and variance under selu
---@param x tycho.Tensor
---@param p? number|table
---@param training? boolean|table
---@return tycho.Tensor
function tycho.alpha_dropout(x, p, training) end

--- `(p:number=0.5, training:bool=false)` dropout that keeps mean and variance under selu
---@param p? number|table
---@param training? boolean|table
---@return tycho.Tensor
function Tensor:alpha_dropout(p, training) end

--- `(x, p:number=0.5, training:bool=false)` alpha_dropout of whole channels
---@param x tycho.Tensor
---@param p? number|table
---@param training? boolean|table
---@return tycho.Tensor
function tycho.feature_alpha_dropout(x, p, training) end

--- `(p:number=0.5, training:bool=false)` alpha_dropout of whole channels
---@param p? number|table
---@param training? boolean|table
---@return tycho.Tensor
function Tensor:feature_alpha_dropout(p, training) end

--- `(x, approximate:enum(none,tanh)=none)` Gaussian error linear unit: x times the normal distribution's value at x
---@param x tycho.Tensor
---@param approximate? string|table
---@return tycho.Tensor
function tycho.gelu(x, approximate) end

--- `(approximate:enum(none,tanh)=none)` Gaussian error linear unit: x times the normal distribution's value at x
---@param approximate? string|table
---@return tycho.Tensor
function Tensor:gelu(approximate) end

--- `(x, approximate:enum(none,tanh)=none)` Gaussian error linear unit: x times the normal distribution's value at x
---@param x tycho.Tensor
---@param approximate? string|table
---@return tycho.Tensor
function tycho.gelu_(x, approximate) end

--- `(approximate:enum(none,tanh)=none)` Gaussian error linear unit: x times the normal distribution's value at x
---@param approximate? string|table
---@return tycho.Tensor
function Tensor:gelu_(approximate) end

--- `(x)` x limited to 0..6
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.relu6(x) end

--- x limited to 0..6
---@return tycho.Tensor
function Tensor:relu6() end

--- `(x)` x limited to 0..6
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.relu6_(x) end

--- x limited to 0..6
---@return tycho.Tensor
function Tensor:relu6_() end

--- `(x)` x - tanh(x)
---@param x tycho.Tensor
---@return tycho.Tensor
function tycho.tanhshrink(x) end

--- x - tanh(x)
---@return tycho.Tensor
function Tensor:tanhshrink() end

--- `(x, dim:int, *, dtype:dtype?)` softmax of -x
---@param x tycho.Tensor
---@param dim integer
---@param options? table
---@return tycho.Tensor
function tycho.softmin(x, dim, options) end

--- `(dim:int, *, dtype:dtype?)` softmax of -x
---@param dim integer
---@param options? table
---@return tycho.Tensor
function Tensor:softmin(dim, options) end

--- `(x, dim:int=-1)` the first half of dim times sigmoid of the second
---@param x tycho.Tensor
---@param dim? integer|table
---@return tycho.Tensor
function tycho.glu(x, dim) end

--- `(dim:int=-1)` the first half of dim times sigmoid of the second
---@param dim? integer|table
---@return tycho.Tensor
function Tensor:glu(dim) end

--- `(x, weight)` x where x > 0, else weight * x; weight has one element, or one for each channel (dim 2)
---@param x tycho.Tensor
---@param weight tycho.Tensor
---@return tycho.Tensor
function tycho.prelu(x, weight) end

--- `(weight)` x where x > 0, else weight * x; weight has one element, or one for each channel (dim 2)
---@param weight tycho.Tensor
---@return tycho.Tensor
function Tensor:prelu(weight) end

--- `(x, lower:number=0.125, upper:number=0.3333333333333333, training:bool=false)` leaky_relu whose slope is drawn from lower..upper while training
---@param x tycho.Tensor
---@param lower? number|table
---@param upper? number|table
---@param training? boolean|table
---@return tycho.Tensor
function tycho.rrelu(x, lower, upper, training) end

--- `(lower:number=0.125, upper:number=0.3333333333333333, training:bool=false)` leaky_relu whose slope is drawn from lower..upper while training
---@param lower? number|table
---@param upper? number|table
---@param training? boolean|table
---@return tycho.Tensor
function Tensor:rrelu(lower, upper, training) end

--- `(x, tau:number=1, hard:bool=false, dim:int=-1, *, eps:number?)` a sample from the categories along dim that gradients flow through; eps has no effect
---@param x tycho.Tensor
---@param tau? number|table
---@param hard? boolean|table
---@param dim? integer|table
---@param options? table
---@return tycho.Tensor
function tycho.gumbel_softmax(x, tau, hard, dim, options) end

--- `(tau:number=1, hard:bool=false, dim:int=-1, *, eps:number?)` a sample from the categories along dim that gradients flow through; eps has no effect
---@param tau? number|table
---@param hard? boolean|table
---@param dim? integer|table
---@param options? table
---@return tycho.Tensor
function Tensor:gumbel_softmax(tau, hard, dim, options) end

--- `(q, k, v, attn_mask:tensor?, dropout_p:number=0, is_causal:bool=false, *, scale:number?, enable_gqa:bool=false)` softmax(q @ k^T * scale + attn_mask) @ v; a bool mask is true where to attend; scale defaults to 1 / sqrt(D); what is dropped, not by what the rest is multiplied, goes by dropout_p rounded to 1 / 65536
---@param q tycho.Tensor
---@param k tycho.Tensor
---@param v tycho.Tensor
---@param attn_mask? tycho.Tensor|table
---@param dropout_p? number|table
---@param is_causal? boolean|table
---@param options? table
---@return tycho.Tensor
function tycho.scaled_dot_product_attention(q, k, v, attn_mask, dropout_p, is_causal, options) end

--- `(k, v, attn_mask:tensor?, dropout_p:number=0, is_causal:bool=false, *, scale:number?, enable_gqa:bool=false)` softmax(q @ k^T * scale + attn_mask) @ v; a bool mask is true where to attend; scale defaults to 1 / sqrt(D); what is dropped, not by what the rest is multiplied, goes by dropout_p rounded to 1 / 65536
---@param k tycho.Tensor
---@param v tycho.Tensor
---@param attn_mask? tycho.Tensor|table
---@param dropout_p? number|table
---@param is_causal? boolean|table
---@param options? table
---@return tycho.Tensor
function Tensor:scaled_dot_product_attention(k, v, attn_mask, dropout_p, is_causal, options) end

--- `(x, pad:any, mode:enum(constant,reflect,replicate,circular)=constant, value:any?)` x with pad = {left, right, top, bottom, ...} elements more, from the last dim on; value (0, false where nil) is a constant padding's
---@param x tycho.Tensor
---@param pad any
---@param mode? string|table
---@param value? any
---@return tycho.Tensor
function tycho.pad(x, pad, mode, value) end

--- `(pad:any, mode:enum(constant,reflect,replicate,circular)=constant, value:any?)` x with pad = {left, right, top, bottom, ...} elements more, from the last dim on; value (0, false where nil) is a constant padding's
---@param pad any
---@param mode? string|table
---@param value? any
---@return tycho.Tensor
function Tensor:pad(pad, mode, value) end

--- `(x, kernel_size:pair, dilation:pair=1, padding:pair=0, stride:pair=1)` windows of (N,C,H,W) as columns (N, C kH kW, L); PyTorch's nn.functional.unfold
---@param x tycho.Tensor
---@param kernel_size integer|integer[]
---@param dilation? integer|integer[]|table
---@param padding? integer|integer[]|table
---@param stride? integer|integer[]|table
---@return tycho.Tensor
function tycho.im2col(x, kernel_size, dilation, padding, stride) end

--- `(kernel_size:pair, dilation:pair=1, padding:pair=0, stride:pair=1)` windows of (N,C,H,W) as columns (N, C kH kW, L); PyTorch's nn.functional.unfold
---@param kernel_size integer|integer[]
---@param dilation? integer|integer[]|table
---@param padding? integer|integer[]|table
---@param stride? integer|integer[]|table
---@return tycho.Tensor
function Tensor:im2col(kernel_size, dilation, padding, stride) end

--- `(x, output_size:pair, kernel_size:pair, dilation:pair=1, padding:pair=0, stride:pair=1)` columns (N, C kH kW, L) added up into (N,C,H,W): im2col's transpose
---@param x tycho.Tensor
---@param output_size integer|integer[]
---@param kernel_size integer|integer[]
---@param dilation? integer|integer[]|table
---@param padding? integer|integer[]|table
---@param stride? integer|integer[]|table
---@return tycho.Tensor
function tycho.fold(x, output_size, kernel_size, dilation, padding, stride) end

--- `(output_size:pair, kernel_size:pair, dilation:pair=1, padding:pair=0, stride:pair=1)` columns (N, C kH kW, L) added up into (N,C,H,W): im2col's transpose
---@param output_size integer|integer[]
---@param kernel_size integer|integer[]
---@param dilation? integer|integer[]|table
---@param padding? integer|integer[]|table
---@param stride? integer|integer[]|table
---@return tycho.Tensor
function Tensor:fold(output_size, kernel_size, dilation, padding, stride) end

--- `(x, size:any?, scale_factor:any?, mode:enum(nearest,nearest-exact,linear,bilinear,bicubic,trilinear,area)=nearest, align_corners:bool=false, recompute_scale_factor:bool=false, antialias:bool=false)` images (N,C,H,W), lines (N,C,L) or volumes (N,C,D,H,W) of another size
---@param x tycho.Tensor
---@param size? any
---@param scale_factor? any
---@param mode? string|table
---@param align_corners? boolean|table
---@param recompute_scale_factor? boolean|table
---@param antialias? boolean|table
---@return tycho.Tensor
function tycho.interpolate(x, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias) end

--- `(size:any?, scale_factor:any?, mode:enum(nearest,nearest-exact,linear,bilinear,bicubic,trilinear,area)=nearest, align_corners:bool=false, recompute_scale_factor:bool=false, antialias:bool=false)` images (N,C,H,W), lines (N,C,L) or volumes (N,C,D,H,W) of another size
---@param size? any
---@param scale_factor? any
---@param mode? string|table
---@param align_corners? boolean|table
---@param recompute_scale_factor? boolean|table
---@param antialias? boolean|table
---@return tycho.Tensor
function Tensor:interpolate(size, scale_factor, mode, align_corners, recompute_scale_factor, antialias) end

--- `(x, size:any?, scale_factor:any?, mode:enum(nearest,nearest-exact,linear,bilinear,bicubic,trilinear,area)=nearest, align_corners:bool=false, recompute_scale_factor:bool=false, antialias:bool=false)` images (N,C,H,W), lines (N,C,L) or volumes (N,C,D,H,W) of another size
---@param x tycho.Tensor
---@param size? any
---@param scale_factor? any
---@param mode? string|table
---@param align_corners? boolean|table
---@param recompute_scale_factor? boolean|table
---@param antialias? boolean|table
---@return tycho.Tensor
function tycho.upsample(x, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias) end

--- `(size:any?, scale_factor:any?, mode:enum(nearest,nearest-exact,linear,bilinear,bicubic,trilinear,area)=nearest, align_corners:bool=false, recompute_scale_factor:bool=false, antialias:bool=false)` images (N,C,H,W), lines (N,C,L) or volumes (N,C,D,H,W) of another size
---@param size? any
---@param scale_factor? any
---@param mode? string|table
---@param align_corners? boolean|table
---@param recompute_scale_factor? boolean|table
---@param antialias? boolean|table
---@return tycho.Tensor
function Tensor:upsample(size, scale_factor, mode, align_corners, recompute_scale_factor, antialias) end

--- `(x, weight, bias:tensor?, stride:triple=1, padding:any?, dilation:triple=1, groups:int=1)` 3-D convolution of x (N,C,D,H,W) with weight (O,C/groups,kD,kH,kW); padding may be 'same' or 'valid'
---@param x tycho.Tensor
---@param weight tycho.Tensor
---@param bias? tycho.Tensor|table
---@param stride? integer|integer[]|table
---@param padding? any
---@param dilation? integer|integer[]|table
---@param groups? integer|table
---@return tycho.Tensor
function tycho.conv3d(x, weight, bias, stride, padding, dilation, groups) end

--- `(weight, bias:tensor?, stride:triple=1, padding:any?, dilation:triple=1, groups:int=1)` 3-D convolution of x (N,C,D,H,W) with weight (O,C/groups,kD,kH,kW); padding may be 'same' or 'valid'
---@param weight tycho.Tensor
---@param bias? tycho.Tensor|table
---@param stride? integer|integer[]|table
---@param padding? any
---@param dilation? integer|integer[]|table
---@param groups? integer|table
---@return tycho.Tensor
function Tensor:conv3d(weight, bias, stride, padding, dilation, groups) end

--- `(x, weight, bias:tensor?, stride:triple=1, padding:triple=0, output_padding:triple=0, groups:int=1, dilation:triple=1)` transposed 3-D convolution of x (N,C,D,H,W) with weight (C,O/groups,kD,kH,kW)
---@param x tycho.Tensor
---@param weight tycho.Tensor
---@param bias? tycho.Tensor|table
---@param stride? integer|integer[]|table
---@param padding? integer|integer[]|table
---@param output_padding? integer|integer[]|table
---@param groups? integer|table
---@param dilation? integer|integer[]|table
---@return tycho.Tensor
function tycho.conv_transpose3d(x, weight, bias, stride, padding, output_padding, groups, dilation) end

--- `(weight, bias:tensor?, stride:triple=1, padding:triple=0, output_padding:triple=0, groups:int=1, dilation:triple=1)` transposed 3-D convolution of x (N,C,D,H,W) with weight (C,O/groups,kD,kH,kW)
---@param weight tycho.Tensor
---@param bias? tycho.Tensor|table
---@param stride? integer|integer[]|table
---@param padding? integer|integer[]|table
---@param output_padding? integer|integer[]|table
---@param groups? integer|table
---@param dilation? integer|integer[]|table
---@return tycho.Tensor
function Tensor:conv_transpose3d(weight, bias, stride, padding, output_padding, groups, dilation) end

--- `(x, kernel_size:triple, stride:triple?, padding:triple=0, dilation:triple=1, ceil_mode:bool=false, return_indices:bool=false)` maximum of each kernel_size window of the last three dims
---@param x tycho.Tensor
---@param kernel_size integer|integer[]
---@param stride? integer|integer[]|table
---@param padding? integer|integer[]|table
---@param dilation? integer|integer[]|table
---@param ceil_mode? boolean|table
---@param return_indices? boolean|table
---@return tycho.Tensor
function tycho.max_pool3d(x, kernel_size, stride, padding, dilation, ceil_mode, return_indices) end

--- `(kernel_size:triple, stride:triple?, padding:triple=0, dilation:triple=1, ceil_mode:bool=false, return_indices:bool=false)` maximum of each kernel_size window of the last three dims
---@param kernel_size integer|integer[]
---@param stride? integer|integer[]|table
---@param padding? integer|integer[]|table
---@param dilation? integer|integer[]|table
---@param ceil_mode? boolean|table
---@param return_indices? boolean|table
---@return tycho.Tensor
function Tensor:max_pool3d(kernel_size, stride, padding, dilation, ceil_mode, return_indices) end

--- `(x, kernel_size:triple, stride:triple?, padding:triple=0, ceil_mode:bool=false, count_include_pad:bool=true, divisor_override:int?)` mean of each kernel_size window of the last three dims
---@param x tycho.Tensor
---@param kernel_size integer|integer[]
---@param stride? integer|integer[]|table
---@param padding? integer|integer[]|table
---@param ceil_mode? boolean|table
---@param count_include_pad? boolean|table
---@param divisor_override? integer|table
---@return tycho.Tensor
function tycho.avg_pool3d(x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override) end

--- `(kernel_size:triple, stride:triple?, padding:triple=0, ceil_mode:bool=false, count_include_pad:bool=true, divisor_override:int?)` mean of each kernel_size window of the last three dims
---@param kernel_size integer|integer[]
---@param stride? integer|integer[]|table
---@param padding? integer|integer[]|table
---@param ceil_mode? boolean|table
---@param count_include_pad? boolean|table
---@param divisor_override? integer|table
---@return tycho.Tensor
function Tensor:avg_pool3d(kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override) end

--- `(x, output_size:any)` means of windows of the last three dims chosen so that output_size results: a number, or three, of which false keeps a dim's size
---@param x tycho.Tensor
---@param output_size any
---@return tycho.Tensor
function tycho.adaptive_avg_pool3d(x, output_size) end

--- `(output_size:any)` means of windows of the last three dims chosen so that output_size results: a number, or three, of which false keeps a dim's size
---@param output_size any
---@return tycho.Tensor
function Tensor:adaptive_avg_pool3d(output_size) end

--- `(x, output_size:any, return_indices:bool=false)` maxima of windows of the last three dims chosen so that output_size results: as adaptive_avg_pool3d's
---@param x tycho.Tensor
---@param output_size any
---@param return_indices? boolean|table
---@return tycho.Tensor
function tycho.adaptive_max_pool3d(x, output_size, return_indices) end

--- `(output_size:any, return_indices:bool=false)` maxima of windows of the last three dims chosen so that output_size results: as adaptive_avg_pool3d's
---@param output_size any
---@param return_indices? boolean|table
---@return tycho.Tensor
function Tensor:adaptive_max_pool3d(output_size, return_indices) end

--- `(x, grid, mode:enum(bilinear,nearest,bicubic)=bilinear, padding_mode:enum(zeros,border,reflection)=zeros, align_corners:bool=false)` x (N,C,H,W) read at the places (x, y) of grid (N,Ho,Wo,2), where -1 and 1 are its borders; or (N,C,D,H,W) at the places (x, y, z) of (N,Do,Ho,Wo,3)
---@param x tycho.Tensor
---@param grid tycho.Tensor
---@param mode? string|table
---@param padding_mode? string|table
---@param align_corners? boolean|table
---@return tycho.Tensor
function tycho.grid_sample(x, grid, mode, padding_mode, align_corners) end

--- `(grid, mode:enum(bilinear,nearest,bicubic)=bilinear, padding_mode:enum(zeros,border,reflection)=zeros, align_corners:bool=false)` x (N,C,H,W) read at the places (x, y) of grid (N,Ho,Wo,2), where -1 and 1 are its borders; or (N,C,D,H,W) at the places (x, y, z) of (N,Do,Ho,Wo,3)
---@param grid tycho.Tensor
---@param mode? string|table
---@param padding_mode? string|table
---@param align_corners? boolean|table
---@return tycho.Tensor
function Tensor:grid_sample(grid, mode, padding_mode, align_corners) end

--- `(theta, size:ints, align_corners:bool=false)` the grid for grid_sample that affine maps theta (N,2,3) make for pictures of size {N, C, H, W}, or (N,3,4) for volumes {N, C, D, H, W}
---@param theta tycho.Tensor
---@param size integer[]
---@param align_corners? boolean|table
---@return tycho.Tensor
function tycho.affine_grid(theta, size, align_corners) end

--- `(size:ints, align_corners:bool=false)` the grid for grid_sample that affine maps theta (N,2,3) make for pictures of size {N, C, H, W}, or (N,3,4) for volumes {N, C, D, H, W}
---@param size integer[]
---@param align_corners? boolean|table
---@return tycho.Tensor
function Tensor:affine_grid(size, align_corners) end

--- `(x, indices, kernel_size:single, stride:single?, padding:single=0, output_size:any?)` x where max_pool1d(..., {return_indices=true}) found its maxima, zeros elsewhere
---@param x tycho.Tensor
---@param indices tycho.Tensor
---@param kernel_size integer|integer[]
---@param stride? integer|integer[]|table
---@param padding? integer|integer[]|table
---@param output_size? any
---@return tycho.Tensor
function tycho.max_unpool1d(x, indices, kernel_size, stride, padding, output_size) end

--- `(indices, kernel_size:single, stride:single?, padding:single=0, output_size:any?)` x where max_pool1d(..., {return_indices=true}) found its maxima, zeros elsewhere
---@param indices tycho.Tensor
---@param kernel_size integer|integer[]
---@param stride? integer|integer[]|table
---@param padding? integer|integer[]|table
---@param output_size? any
---@return tycho.Tensor
function Tensor:max_unpool1d(indices, kernel_size, stride, padding, output_size) end

--- `(x, indices, kernel_size:pair, stride:pair?, padding:pair=0, output_size:any?)` x where max_pool2d(..., {return_indices=true}) found its maxima, zeros elsewhere
---@param x tycho.Tensor
---@param indices tycho.Tensor
---@param kernel_size integer|integer[]
---@param stride? integer|integer[]|table
---@param padding? integer|integer[]|table
---@param output_size? any
---@return tycho.Tensor
function tycho.max_unpool2d(x, indices, kernel_size, stride, padding, output_size) end

--- `(indices, kernel_size:pair, stride:pair?, padding:pair=0, output_size:any?)` x where max_pool2d(..., {return_indices=true}) found its maxima, zeros elsewhere
---@param indices tycho.Tensor
---@param kernel_size integer|integer[]
---@param stride? integer|integer[]|table
---@param padding? integer|integer[]|table
---@param output_size? any
---@return tycho.Tensor
function Tensor:max_unpool2d(indices, kernel_size, stride, padding, output_size) end

--- `(x, indices, kernel_size:triple, stride:triple?, padding:triple=0, output_size:any?)` x where max_pool3d(..., {return_indices=true}) found its maxima, zeros elsewhere
---@param x tycho.Tensor
---@param indices tycho.Tensor
---@param kernel_size integer|integer[]
---@param stride? integer|integer[]|table
---@param padding? integer|integer[]|table
---@param output_size? any
---@return tycho.Tensor
function tycho.max_unpool3d(x, indices, kernel_size, stride, padding, output_size) end

--- `(indices, kernel_size:triple, stride:triple?, padding:triple=0, output_size:any?)` x where max_pool3d(..., {return_indices=true}) found its maxima, zeros elsewhere
---@param indices tycho.Tensor
---@param kernel_size integer|integer[]
---@param stride? integer|integer[]|table
---@param padding? integer|integer[]|table
---@param output_size? any
---@return tycho.Tensor
function Tensor:max_unpool3d(indices, kernel_size, stride, padding, output_size) end

--- `(x, scale:any, zero_point:any, quant_min:int, quant_max:int)` x rounded to scale (q - zero_point), q whole from quant_min to quant_max; scale and zero_point: numbers, or tensors of one element
---@param x tycho.Tensor
---@param scale any
---@param zero_point any
---@param quant_min integer
---@param quant_max integer
---@return tycho.Tensor
function tycho.fake_quantize_per_tensor_affine(x, scale, zero_point, quant_min, quant_max) end

--- `(x, scale:tensor, zero_point:tensor, axis:int, quant_min:int, quant_max:int)` the same with a scale and a zero_point for each index of dim axis: vectors
---@param x tycho.Tensor
---@param scale tycho.Tensor
---@param zero_point tycho.Tensor
---@param axis integer
---@param quant_min integer
---@param quant_max integer
---@return tycho.Tensor
function tycho.fake_quantize_per_channel_affine(x, scale, zero_point, axis, quant_min, quant_max) end

--- `(x, y, *, weight:tensor?, reduction:enum(none,mean,sum)=mean)` squared differences, times weight; with weights the mean is a weighted one
---@param x tycho.Tensor
---@param y tycho.Tensor
---@param options? table
---@return tycho.Tensor
function tycho.mse_loss(x, y, options) end

--- `(y, *, weight:tensor?, reduction:enum(none,mean,sum)=mean)` squared differences, times weight; with weights the mean is a weighted one
---@param y tycho.Tensor
---@param options? table
---@return tycho.Tensor
function Tensor:mse_loss(y, options) end

--- `(x, y, *, weight:tensor?, reduction:enum(none,mean,sum)=mean)` absolute differences, times weight; with weights the mean is a weighted one
---@param x tycho.Tensor
---@param y tycho.Tensor
---@param options? table
---@return tycho.Tensor
function tycho.l1_loss(x, y, options) end

--- `(y, *, weight:tensor?, reduction:enum(none,mean,sum)=mean)` absolute differences, times weight; with weights the mean is a weighted one
---@param y tycho.Tensor
---@param options? table
---@return tycho.Tensor
function Tensor:l1_loss(y, options) end

--- `(x, y, *, beta:number=1, reduction:enum(none,mean,sum)=mean)` squared differences below beta, absolute ones above
---@param x tycho.Tensor
---@param y tycho.Tensor
---@param options? table
---@return tycho.Tensor
function tycho.smooth_l1_loss(x, y, options) end

--- `(y, *, beta:number=1, reduction:enum(none,mean,sum)=mean)` squared differences below beta, absolute ones above
---@param y tycho.Tensor
---@param options? table
---@return tycho.Tensor
function Tensor:smooth_l1_loss(y, options) end

--- `(x, y, *, delta:number=1, weight:tensor?, reduction:enum(none,mean,sum)=mean)` half the squared differences below delta, delta times absolute ones above, times weight
---@param x tycho.Tensor
---@param y tycho.Tensor
---@param options? table
---@return tycho.Tensor
function tycho.huber_loss(x, y, options) end

--- `(y, *, delta:number=1, weight:tensor?, reduction:enum(none,mean,sum)=mean)` half the squared differences below delta, delta times absolute ones above, times weight
---@param y tycho.Tensor
---@param options? table
---@return tycho.Tensor
function Tensor:huber_loss(y, options) end

--- `(x, target, *, log_target:bool=false, reduction:enum(none,mean,sum,batchmean)=mean)` target * (log(target) - x); x is a logarithm, target too where log_target is true
---@param x tycho.Tensor
---@param target tycho.Tensor
---@param options? table
---@return tycho.Tensor
function tycho.kl_div(x, target, options) end

--- `(target, *, log_target:bool=false, reduction:enum(none,mean,sum,batchmean)=mean)` target * (log(target) - x); x is a logarithm, target too where log_target is true
---@param target tycho.Tensor
---@param options? table
---@return tycho.Tensor
function Tensor:kl_div(target, options) end

--- `(x, y, weight:tensor?, *, reduction:enum(none,mean,sum)=mean)` cross-entropy of probabilities x with y in 0..1; logarithms are kept above -100
---@param x tycho.Tensor
---@param y tycho.Tensor
---@param weight? tycho.Tensor|table
---@param options? table
---@return tycho.Tensor
function tycho.binary_cross_entropy(x, y, weight, options) end

--- `(y, weight:tensor?, *, reduction:enum(none,mean,sum)=mean)` cross-entropy of probabilities x with y in 0..1; logarithms are kept above -100
---@param y tycho.Tensor
---@param weight? tycho.Tensor|table
---@param options? table
---@return tycho.Tensor
function Tensor:binary_cross_entropy(y, weight, options) end

--- `(x, y, weight:tensor?, *, pos_weight:tensor?, reduction:enum(none,mean,sum)=mean)` cross-entropy of sigmoid(x) with y in 0..1
---@param x tycho.Tensor
---@param y tycho.Tensor
---@param weight? tycho.Tensor|table
---@param options? table
---@return tycho.Tensor
function tycho.binary_cross_entropy_with_logits(x, y, weight, options) end

--- `(y, weight:tensor?, *, pos_weight:tensor?, reduction:enum(none,mean,sum)=mean)` cross-entropy of sigmoid(x) with y in 0..1
---@param y tycho.Tensor
---@param weight? tycho.Tensor|table
---@param options? table
---@return tycho.Tensor
function Tensor:binary_cross_entropy_with_logits(y, weight, options) end

--- `(x, target, weight:tensor?, *, ignore_index:int=-100, label_smoothing:number=0, reduction:enum(none,mean,sum)=mean)` cross-entropy of softmax(x) along dim 2 with labels from 1 (int64), or with class probabilities in x's shape
---@param x tycho.Tensor
---@param target tycho.Tensor
---@param weight? tycho.Tensor|table
---@param options? table
---@return tycho.Tensor
function tycho.cross_entropy(x, target, weight, options) end

--- `(target, weight:tensor?, *, ignore_index:int=-100, label_smoothing:number=0, reduction:enum(none,mean,sum)=mean)` cross-entropy of softmax(x) along dim 2 with labels from 1 (int64), or with class probabilities in x's shape
---@param target tycho.Tensor
---@param weight? tycho.Tensor|table
---@param options? table
---@return tycho.Tensor
function Tensor:cross_entropy(target, weight, options) end

--- `(x, target, weight:tensor?, *, ignore_index:int=-100, reduction:enum(none,mean,sum)=mean)` minus the log-probability in x of each label
---@param x tycho.Tensor
---@param target tycho.Tensor
---@param weight? tycho.Tensor|table
---@param options? table
---@return tycho.Tensor
function tycho.nll_loss(x, target, weight, options) end

--- `(target, weight:tensor?, *, ignore_index:int=-100, reduction:enum(none,mean,sum)=mean)` minus the log-probability in x of each label
---@param target tycho.Tensor
---@param weight? tycho.Tensor|table
---@param options? table
---@return tycho.Tensor
function Tensor:nll_loss(target, weight, options) end

--- `(log_probs, targets, input_lengths:any, target_lengths:any, blank:int=1, reduction:enum(none,mean,sum)=mean, zero_infinity:bool=false)` minus the log-probability that log_probs (T,N,C) spell the targets (N,S), or one after the other (sum of lengths), with repeats and blanks between them; labels and blank count from 1
---@param log_probs tycho.Tensor
---@param targets tycho.Tensor
---@param input_lengths any
---@param target_lengths any
---@param blank? integer|table
---@param reduction? string|table
---@param zero_infinity? boolean|table
---@return tycho.Tensor
function tycho.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity) end

--- `(targets, input_lengths:any, target_lengths:any, blank:int=1, reduction:enum(none,mean,sum)=mean, zero_infinity:bool=false)` minus the log-probability that log_probs (T,N,C) spell the targets (N,S), or one after the other (sum of lengths), with repeats and blanks between them; labels and blank count from 1
---@param targets tycho.Tensor
---@param input_lengths any
---@param target_lengths any
---@param blank? integer|table
---@param reduction? string|table
---@param zero_infinity? boolean|table
---@return tycho.Tensor
function Tensor:ctc_loss(targets, input_lengths, target_lengths, blank, reduction, zero_infinity) end

--- `(x, target, log_input:bool=true, full:bool=false, *, eps:number=1e-8, reduction:enum(none,mean,sum)=mean)` negative log-likelihood of counts under a Poisson of rate exp(x), or x
---@param x tycho.Tensor
---@param target tycho.Tensor
---@param log_input? boolean|table
---@param full? boolean|table
---@param options? table
---@return tycho.Tensor
function tycho.poisson_nll_loss(x, target, log_input, full, options) end

--- `(target, log_input:bool=true, full:bool=false, *, eps:number=1e-8, reduction:enum(none,mean,sum)=mean)` negative log-likelihood of counts under a Poisson of rate exp(x), or x
---@param target tycho.Tensor
---@param log_input? boolean|table
---@param full? boolean|table
---@param options? table
---@return tycho.Tensor
function Tensor:poisson_nll_loss(target, log_input, full, options) end

--- `(x, target, var:operand, full:bool=false, eps:number=1e-6, reduction:enum(none,mean,sum)=mean)` negative log-likelihood under a normal of mean x and variance var
---@param x tycho.Tensor
---@param target tycho.Tensor
---@param var tycho.Tensor|number
---@param full? boolean|table
---@param eps? number|table
---@param reduction? string|table
---@return tycho.Tensor
function tycho.gaussian_nll_loss(x, target, var, full, eps, reduction) end

--- `(target, var:operand, full:bool=false, eps:number=1e-6, reduction:enum(none,mean,sum)=mean)` negative log-likelihood under a normal of mean x and variance var
---@param target tycho.Tensor
---@param var tycho.Tensor|number
---@param full? boolean|table
---@param eps? number|table
---@param reduction? string|table
---@return tycho.Tensor
function Tensor:gaussian_nll_loss(target, var, full, eps, reduction) end

--- `(x, target, margin:number=1, *, reduction:enum(none,mean,sum)=mean)` x where target is 1, margin - x (not below 0) where it is -1
---@param x tycho.Tensor
---@param target tycho.Tensor
---@param margin? number|table
---@param options? table
---@return tycho.Tensor
function tycho.hinge_embedding_loss(x, target, margin, options) end

--- `(target, margin:number=1, *, reduction:enum(none,mean,sum)=mean)` x where target is 1, margin - x (not below 0) where it is -1
---@param target tycho.Tensor
---@param margin? number|table
---@param options? table
---@return tycho.Tensor
function Tensor:hinge_embedding_loss(target, margin, options) end

--- `(a, b, target, margin:number=0, *, reduction:enum(none,mean,sum)=mean)` how much target * (a - b) falls short of margin
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param target tycho.Tensor
---@param margin? number|table
---@param options? table
---@return tycho.Tensor
function tycho.margin_ranking_loss(a, b, target, margin, options) end

--- `(b, target, margin:number=0, *, reduction:enum(none,mean,sum)=mean)` how much target * (a - b) falls short of margin
---@param b tycho.Tensor
---@param target tycho.Tensor
---@param margin? number|table
---@param options? table
---@return tycho.Tensor
function Tensor:margin_ranking_loss(b, target, margin, options) end

--- `(x, target, *, reduction:enum(none,mean,sum)=mean)` log(1 + exp(-target * x))
---@param x tycho.Tensor
---@param target tycho.Tensor
---@param options? table
---@return tycho.Tensor
function tycho.soft_margin_loss(x, target, options) end

--- `(target, *, reduction:enum(none,mean,sum)=mean)` log(1 + exp(-target * x))
---@param target tycho.Tensor
---@param options? table
---@return tycho.Tensor
function Tensor:soft_margin_loss(target, options) end

--- `(a, b, target, margin:number=0, *, reduction:enum(none,mean,sum)=mean)` 1 - cos where target is 1, cos - margin (not below 0) where it is -1
---@param a tycho.Tensor
---@param b tycho.Tensor
---@param target tycho.Tensor
---@param margin? number|table
---@param options? table
---@return tycho.Tensor
function tycho.cosine_embedding_loss(a, b, target, margin, options) end

--- `(b, target, margin:number=0, *, reduction:enum(none,mean,sum)=mean)` 1 - cos where target is 1, cos - margin (not below 0) where it is -1
---@param b tycho.Tensor
---@param target tycho.Tensor
---@param margin? number|table
---@param options? table
---@return tycho.Tensor
function Tensor:cosine_embedding_loss(b, target, margin, options) end

--- `(anchor, near, far, margin:number=1, p:number=2, eps:number=1e-6, swap:bool=false, *, reduction:enum(none,mean,sum)=mean)` how much the distance to near plus margin exceeds that to far
---@param anchor tycho.Tensor
---@param near tycho.Tensor
---@param far tycho.Tensor
---@param margin? number|table
---@param p? number|table
---@param eps? number|table
---@param swap? boolean|table
---@param options? table
---@return tycho.Tensor
function tycho.triplet_margin_loss(anchor, near, far, margin, p, eps, swap, options) end

--- `(near, far, margin:number=1, p:number=2, eps:number=1e-6, swap:bool=false, *, reduction:enum(none,mean,sum)=mean)` how much the distance to near plus margin exceeds that to far
---@param near tycho.Tensor
---@param far tycho.Tensor
---@param margin? number|table
---@param p? number|table
---@param eps? number|table
---@param swap? boolean|table
---@param options? table
---@return tycho.Tensor
function Tensor:triplet_margin_loss(near, far, margin, p, eps, swap, options) end

--- `(x, target, p:number=1, margin:number=1, weight:tensor?, *, reduction:enum(none,mean,sum)=mean)` how much the other classes come within margin of the label's
---@param x tycho.Tensor
---@param target tycho.Tensor
---@param p? number|table
---@param margin? number|table
---@param weight? tycho.Tensor|table
---@param options? table
---@return tycho.Tensor
function tycho.multi_margin_loss(x, target, p, margin, weight, options) end

--- `(target, p:number=1, margin:number=1, weight:tensor?, *, reduction:enum(none,mean,sum)=mean)` how much the other classes come within margin of the label's
---@param target tycho.Tensor
---@param p? number|table
---@param margin? number|table
---@param weight? tycho.Tensor|table
---@param options? table
---@return tycho.Tensor
function Tensor:multi_margin_loss(target, p, margin, weight, options) end

--- `(x, target, weight:tensor?, *, reduction:enum(none,mean,sum)=mean)` binary cross-entropy with logits, mean over classes
---@param x tycho.Tensor
---@param target tycho.Tensor
---@param weight? tycho.Tensor|table
---@param options? table
---@return tycho.Tensor
function tycho.multilabel_soft_margin_loss(x, target, weight, options) end

--- `(target, weight:tensor?, *, reduction:enum(none,mean,sum)=mean)` binary cross-entropy with logits, mean over classes
---@param target tycho.Tensor
---@param weight? tycho.Tensor|table
---@param options? table
---@return tycho.Tensor
function Tensor:multilabel_soft_margin_loss(target, weight, options) end

--- `(x, target, *, reduction:enum(none,mean,sum)=mean)` how much classes that aren't labels come within 1 of those that are; target has x's shape: labels, then 0
---@param x tycho.Tensor
---@param target tycho.Tensor
---@param options? table
---@return tycho.Tensor
function tycho.multilabel_margin_loss(x, target, options) end

--- `(target, *, reduction:enum(none,mean,sum)=mean)` how much classes that aren't labels come within 1 of those that are; target has x's shape: labels, then 0
---@param target tycho.Tensor
---@param options? table
---@return tycho.Tensor
function Tensor:multilabel_margin_loss(target, options) end

--- `(anchor, near, far, *, distance_function:any?, margin:number=1, swap:bool=false, reduction:enum(none,mean,sum)=mean)` triplet_margin_loss with a distance of one's own, a function of two tensors
---@param anchor tycho.Tensor
---@param near tycho.Tensor
---@param far tycho.Tensor
---@param options? table
---@return tycho.Tensor
function tycho.triplet_margin_with_distance_loss(anchor, near, far, options) end

--- `(near, far, *, distance_function:any?, margin:number=1, swap:bool=false, reduction:enum(none,mean,sum)=mean)` triplet_margin_loss with a distance of one's own, a function of two tensors
---@param near tycho.Tensor
---@param far tycho.Tensor
---@param options? table
---@return tycho.Tensor
function Tensor:triplet_margin_with_distance_loss(near, far, options) end

--- `(x, linear_weight, target, *, linear_bias:tensor?, weight:tensor?, reduction:enum(none,mean,sum)=mean, ignore_index:int=-100, label_smoothing:number=0, chunk_size:int?)` cross_entropy of linear(x, linear_weight, linear_bias), x (..., in_features), target (...) with labels from 1, or (..., classes) with probabilities, weight of classes; chunk_size rows at a time, so that the scores are never there together; such parts have no second derivative and aren't compiled
---@param x tycho.Tensor
---@param linear_weight tycho.Tensor
---@param target tycho.Tensor
---@param options? table
---@return tycho.Tensor
function tycho.linear_cross_entropy(x, linear_weight, target, options) end

--- `(linear_weight, target, *, linear_bias:tensor?, weight:tensor?, reduction:enum(none,mean,sum)=mean, ignore_index:int=-100, label_smoothing:number=0, chunk_size:int?)` cross_entropy of linear(x, linear_weight, linear_bias), x (..., in_features), target (...) with labels from 1, or (..., classes) with probabilities, weight of classes; chunk_size rows at a time, so that the scores are never there together; such parts have no second derivative and aren't compiled
---@param linear_weight tycho.Tensor
---@param target tycho.Tensor
---@param options? table
---@return tycho.Tensor
function Tensor:linear_cross_entropy(linear_weight, target, options) end

tycho.distributions = {}
tycho.distributions.transforms = {}
tycho.distributions.Transform = {}
tycho.distributions.transforms.Transform = tycho.distributions.Transform
tycho.nn = {}
tycho.nn.functional = {}
tycho.nn.functional.adaptive_avg_pool1d = tycho.adaptive_avg_pool1d
tycho.nn.functional.adaptive_avg_pool2d = tycho.adaptive_avg_pool2d
tycho.nn.functional.adaptive_avg_pool3d = tycho.adaptive_avg_pool3d
tycho.nn.functional.adaptive_max_pool1d = tycho.adaptive_max_pool1d
tycho.nn.functional.adaptive_max_pool2d = tycho.adaptive_max_pool2d
tycho.nn.functional.adaptive_max_pool3d = tycho.adaptive_max_pool3d
tycho.nn.functional.affine_grid = tycho.affine_grid
tycho.nn.functional.alpha_dropout = tycho.alpha_dropout
tycho.nn.functional.avg_pool1d = tycho.avg_pool1d
tycho.nn.functional.avg_pool2d = tycho.avg_pool2d
tycho.nn.functional.avg_pool3d = tycho.avg_pool3d
tycho.nn.functional.batch_norm = tycho.batch_norm
tycho.nn.functional.bilinear = tycho.bilinear
tycho.nn.functional.binary_cross_entropy = tycho.binary_cross_entropy
tycho.nn.functional.binary_cross_entropy_with_logits = tycho.binary_cross_entropy_with_logits
tycho.nn.functional.celu = tycho.celu
tycho.nn.functional.celu_ = tycho.celu_
tycho.nn.functional.channel_shuffle = tycho.channel_shuffle
tycho.nn.functional.conv1d = tycho.conv1d
tycho.nn.functional.conv2d = tycho.conv2d
tycho.nn.functional.conv3d = tycho.conv3d
tycho.nn.functional.conv_transpose1d = tycho.conv_transpose1d
tycho.nn.functional.conv_transpose2d = tycho.conv_transpose2d
tycho.nn.functional.conv_transpose3d = tycho.conv_transpose3d
tycho.nn.functional.cosine_embedding_loss = tycho.cosine_embedding_loss
tycho.nn.functional.cosine_similarity = tycho.cosine_similarity
tycho.nn.functional.cross_entropy = tycho.cross_entropy
tycho.nn.functional.ctc_loss = tycho.ctc_loss
tycho.nn.functional.dropout = tycho.dropout
tycho.nn.functional.dropout1d = tycho.dropout1d
tycho.nn.functional.dropout2d = tycho.dropout2d
tycho.nn.functional.dropout3d = tycho.dropout3d
tycho.nn.functional.elu = tycho.elu
tycho.nn.functional.elu_ = tycho.elu_
tycho.nn.functional.embedding = tycho.embedding
tycho.nn.functional.embedding_bag = tycho.embedding_bag
tycho.nn.functional.feature_alpha_dropout = tycho.feature_alpha_dropout
tycho.nn.functional.fold = tycho.fold
tycho.nn.functional.gaussian_nll_loss = tycho.gaussian_nll_loss
tycho.nn.functional.gelu = tycho.gelu
tycho.nn.functional.glu = tycho.glu
tycho.nn.functional.grid_sample = tycho.grid_sample
tycho.nn.functional.group_norm = tycho.group_norm
tycho.nn.functional.gumbel_softmax = tycho.gumbel_softmax
tycho.nn.functional.hardshrink = tycho.hardshrink
tycho.nn.functional.hardsigmoid = tycho.hardsigmoid
tycho.nn.functional.hardswish = tycho.hardswish
tycho.nn.functional.hardtanh = tycho.hardtanh
tycho.nn.functional.hardtanh_ = tycho.hardtanh_
tycho.nn.functional.hinge_embedding_loss = tycho.hinge_embedding_loss
tycho.nn.functional.huber_loss = tycho.huber_loss
tycho.nn.functional.im2col = tycho.im2col
tycho.nn.functional.instance_norm = tycho.instance_norm
tycho.nn.functional.interpolate = tycho.interpolate
tycho.nn.functional.kl_div = tycho.kl_div
tycho.nn.functional.l1_loss = tycho.l1_loss
tycho.nn.functional.layer_norm = tycho.layer_norm
tycho.nn.functional.leaky_relu = tycho.leaky_relu
tycho.nn.functional.leaky_relu_ = tycho.leaky_relu_
tycho.nn.functional.linear = tycho.linear
tycho.nn.functional.linear_cross_entropy = tycho.linear_cross_entropy
tycho.nn.functional.local_response_norm = tycho.local_response_norm
tycho.nn.functional.log_softmax = tycho.log_softmax
tycho.nn.functional.logsigmoid = tycho.logsigmoid
tycho.nn.functional.lp_pool1d = tycho.lp_pool1d
tycho.nn.functional.lp_pool2d = tycho.lp_pool2d
tycho.nn.functional.lp_pool3d = tycho.lp_pool3d
tycho.nn.functional.margin_ranking_loss = tycho.margin_ranking_loss
tycho.nn.functional.max_pool1d = tycho.max_pool1d
tycho.nn.functional.max_pool2d = tycho.max_pool2d
tycho.nn.functional.max_pool3d = tycho.max_pool3d
tycho.nn.functional.max_unpool1d = tycho.max_unpool1d
tycho.nn.functional.max_unpool2d = tycho.max_unpool2d
tycho.nn.functional.max_unpool3d = tycho.max_unpool3d
tycho.nn.functional.mish = tycho.mish
tycho.nn.functional.mse_loss = tycho.mse_loss
tycho.nn.functional.multi_margin_loss = tycho.multi_margin_loss
tycho.nn.functional.multilabel_margin_loss = tycho.multilabel_margin_loss
tycho.nn.functional.multilabel_soft_margin_loss = tycho.multilabel_soft_margin_loss
tycho.nn.functional.nll_loss = tycho.nll_loss
tycho.nn.functional.normalize = tycho.normalize
tycho.nn.functional.one_hot = tycho.one_hot
tycho.nn.functional.pad = tycho.pad
tycho.nn.functional.pairwise_distance = tycho.pairwise_distance
tycho.nn.functional.pdist = tycho.pdist
tycho.nn.functional.pixel_shuffle = tycho.pixel_shuffle
tycho.nn.functional.pixel_unshuffle = tycho.pixel_unshuffle
tycho.nn.functional.poisson_nll_loss = tycho.poisson_nll_loss
tycho.nn.functional.prelu = tycho.prelu
tycho.nn.functional.relu = tycho.relu
tycho.nn.functional.relu6 = tycho.relu6
tycho.nn.functional.relu_ = tycho.relu_
tycho.nn.functional.rms_norm = tycho.rms_norm
tycho.nn.functional.rrelu = tycho.rrelu
tycho.nn.functional.scaled_dot_product_attention = tycho.scaled_dot_product_attention
tycho.nn.functional.selu = tycho.selu
tycho.nn.functional.selu_ = tycho.selu_
tycho.nn.functional.sigmoid = tycho.sigmoid
tycho.nn.functional.silu = tycho.silu
tycho.nn.functional.smooth_l1_loss = tycho.smooth_l1_loss
tycho.nn.functional.soft_margin_loss = tycho.soft_margin_loss
tycho.nn.functional.softmax = tycho.softmax
tycho.nn.functional.softmin = tycho.softmin
tycho.nn.functional.softplus = tycho.softplus
tycho.nn.functional.softshrink = tycho.softshrink
tycho.nn.functional.softsign = tycho.softsign
tycho.nn.functional.tanh = tycho.tanh
tycho.nn.functional.tanhshrink = tycho.tanhshrink
tycho.nn.functional.threshold = tycho.threshold
tycho.nn.functional.threshold_ = tycho.threshold_
tycho.nn.functional.triplet_margin_loss = tycho.triplet_margin_loss
tycho.nn.functional.triplet_margin_with_distance_loss = tycho.triplet_margin_with_distance_loss
tycho.nn.functional.unfold = tycho.im2col
tycho.nn.functional.upsample = tycho.upsample

---@class tycho.nn.Module
tycho.nn.Module = {}

---@class tycho.Generator
classes.Generator = {}

---@class tycho.ctx
classes.ctx = {}

---@class tycho.Optimizer
classes.Optimizer = {}

---@class tycho.LBFGS
classes.LBFGS = {}

---@class tycho.Scheduler
classes.Scheduler = {}

---@class tycho.PackedSequence
classes.PackedSequence = {}

---@class tycho.GradScaler
classes.GradScaler = {}

---@class tycho.compiled
classes.compiled = {}

---@class tycho.traced
classes.traced = {}

---@class tycho.Event
classes.Event = {}

---@class tycho.Stream
classes.Stream = {}

---@class tycho.Graph
classes.Graph = {}

---@class tycho.Work
classes.Work = {}

---@class tycho.DataLoader
classes.DataLoader = {}

---@class tycho.Prefetcher
classes.Prefetcher = {}

---@class tycho.Dataset
classes.Dataset = {}

---@class tycho.TensorDataset
classes.TensorDataset = {}

---@class tycho.Pictures
classes.Pictures = {}

---@class tycho.TextFile
classes.TextFile = {}

---@class tycho.CSV
classes.CSV = {}

---@class tycho.Distribution
classes.Distribution = {}

---@class tycho.Manager
classes.Manager = {}

---@class tycho.Profile
classes.Profile = {}

---@class tycho.Timer
classes.Timer = {}

---@class tycho.bar
classes.bar = {}

---@class tycho.SummaryWriter
classes.SummaryWriter = {}

--- `(output_size)` `nn.functional.adaptive_avg_pool1d`
---@class tycho.nn.AdaptiveAvgPool1d: tycho.nn.Module
---@overload fun(output_size?: any): tycho.nn.AdaptiveAvgPool1d
tycho.nn.AdaptiveAvgPool1d = {}

--- `(output_size)` `nn.functional.adaptive_avg_pool2d`
---@class tycho.nn.AdaptiveAvgPool2d: tycho.nn.Module
---@overload fun(output_size?: any): tycho.nn.AdaptiveAvgPool2d
tycho.nn.AdaptiveAvgPool2d = {}

--- `(output_size)` `nn.functional.adaptive_avg_pool3d`
---@class tycho.nn.AdaptiveAvgPool3d: tycho.nn.Module
---@overload fun(output_size?: any): tycho.nn.AdaptiveAvgPool3d
tycho.nn.AdaptiveAvgPool3d = {}

--- `(in_features, n_classes, cutoffs, div_value=4, head_bias=false)` 
---@class tycho.nn.AdaptiveLogSoftmaxWithLoss: tycho.nn.Module
---@overload fun(in_features?: any, n_classes?: any, cutoffs?: any, div_value?: any, head_bias?: any): tycho.nn.AdaptiveLogSoftmaxWithLoss
tycho.nn.AdaptiveLogSoftmaxWithLoss = {}

--- `(output_size, return_indices=false)` `nn.functional.adaptive_max_pool1d`
---@class tycho.nn.AdaptiveMaxPool1d: tycho.nn.Module
---@overload fun(output_size?: any, return_indices?: any): tycho.nn.AdaptiveMaxPool1d
tycho.nn.AdaptiveMaxPool1d = {}

--- `(output_size, return_indices=false)` `nn.functional.adaptive_max_pool2d`
---@class tycho.nn.AdaptiveMaxPool2d: tycho.nn.Module
---@overload fun(output_size?: any, return_indices?: any): tycho.nn.AdaptiveMaxPool2d
tycho.nn.AdaptiveMaxPool2d = {}

--- `(output_size, return_indices=false)` `nn.functional.adaptive_max_pool3d`
---@class tycho.nn.AdaptiveMaxPool3d: tycho.nn.Module
---@overload fun(output_size?: any, return_indices?: any): tycho.nn.AdaptiveMaxPool3d
tycho.nn.AdaptiveMaxPool3d = {}

--- `(p=0.5, inplace=false)` 
---@class tycho.nn.AlphaDropout: tycho.nn.Module
---@overload fun(p?: any, inplace?: any): tycho.nn.AlphaDropout
tycho.nn.AlphaDropout = {}

--- `(kernel_size, stride=nil, padding=0, ceil_mode=false, count_include_pad=true)` `nn.functional.avg_pool1d`
---@class tycho.nn.AvgPool1d: tycho.nn.Module
---@overload fun(kernel_size?: any, stride?: any, padding?: any, ceil_mode?: any, count_include_pad?: any): tycho.nn.AvgPool1d
tycho.nn.AvgPool1d = {}

--- `(kernel_size, stride=nil, padding=0, ceil_mode=false, count_include_pad=true, divisor_override=nil)` `nn.functional.avg_pool2d`
---@class tycho.nn.AvgPool2d: tycho.nn.Module
---@overload fun(kernel_size?: any, stride?: any, padding?: any, ceil_mode?: any, count_include_pad?: any, divisor_override?: any): tycho.nn.AvgPool2d
tycho.nn.AvgPool2d = {}

--- `(kernel_size, stride=nil, padding=0, ceil_mode=false, count_include_pad=true, divisor_override=nil)` `nn.functional.avg_pool3d`
---@class tycho.nn.AvgPool3d: tycho.nn.Module
---@overload fun(kernel_size?: any, stride?: any, padding?: any, ceil_mode?: any, count_include_pad?: any, divisor_override?: any): tycho.nn.AvgPool3d
tycho.nn.AvgPool3d = {}

--- `(weight=nil, *, reduction="mean")` `nn.functional.binary_cross_entropy`
---@class tycho.nn.BCELoss: tycho.nn.Module
---@overload fun(weight?: any, options?: any): tycho.nn.BCELoss
tycho.nn.BCELoss = {}

--- `(weight=nil, *, pos_weight=nil, reduction="mean")` `nn.functional.binary_cross_entropy_with_logits`
---@class tycho.nn.BCEWithLogitsLoss: tycho.nn.Module
---@overload fun(weight?: any, options?: any): tycho.nn.BCEWithLogitsLoss
tycho.nn.BCEWithLogitsLoss = {}

--- `(num_features, eps=1e-5, momentum=0.1, affine=true, track_running_stats=true, *, bias=true)` 
---@class tycho.nn.BatchNorm1d: tycho.nn.Module
---@overload fun(num_features?: any, eps?: any, momentum?: any, affine?: any, track_running_stats?: any, options?: any): tycho.nn.BatchNorm1d
tycho.nn.BatchNorm1d = {}

--- `(num_features, eps=1e-5, momentum=0.1, affine=true, track_running_stats=true, *, bias=true)` 
---@class tycho.nn.BatchNorm2d: tycho.nn.Module
---@overload fun(num_features?: any, eps?: any, momentum?: any, affine?: any, track_running_stats?: any, options?: any): tycho.nn.BatchNorm2d
tycho.nn.BatchNorm2d = {}

--- `(num_features, eps=1e-5, momentum=0.1, affine=true, track_running_stats=true, *, bias=true)` 
---@class tycho.nn.BatchNorm3d: tycho.nn.Module
---@overload fun(num_features?: any, eps?: any, momentum?: any, affine?: any, track_running_stats?: any, options?: any): tycho.nn.BatchNorm3d
tycho.nn.BatchNorm3d = {}

--- `(in1_features, in2_features, out_features, bias=true)` 
---@class tycho.nn.Bilinear: tycho.nn.Module
---@overload fun(in1_features?: any, in2_features?: any, out_features?: any, bias?: any): tycho.nn.Bilinear
tycho.nn.Bilinear = {}

--- `(alpha=1, inplace=false)` `nn.functional.celu`
---@class tycho.nn.CELU: tycho.nn.Module
---@overload fun(alpha?: any, inplace?: any): tycho.nn.CELU
tycho.nn.CELU = {}

--- `(blank=1, reduction="mean", zero_infinity=false)` `nn.functional.ctc_loss`
---@class tycho.nn.CTCLoss: tycho.nn.Module
---@overload fun(blank?: any, reduction?: any, zero_infinity?: any): tycho.nn.CTCLoss
tycho.nn.CTCLoss = {}

--- `(groups)` `nn.functional.channel_shuffle`
---@class tycho.nn.ChannelShuffle: tycho.nn.Module
---@overload fun(groups?: any): tycho.nn.ChannelShuffle
tycho.nn.ChannelShuffle = {}

--- `(module, segments=1, save=nil)` 
---@class tycho.nn.Checkpoint: tycho.nn.Module
---@overload fun(module?: any, segments?: any, save?: any): tycho.nn.Checkpoint
tycho.nn.Checkpoint = {}

--- `(padding)` 
---@class tycho.nn.CircularPad1d: tycho.nn.Module
---@overload fun(padding?: any): tycho.nn.CircularPad1d
tycho.nn.CircularPad1d = {}

--- `(padding)` 
---@class tycho.nn.CircularPad2d: tycho.nn.Module
---@overload fun(padding?: any): tycho.nn.CircularPad2d
tycho.nn.CircularPad2d = {}

--- `(padding)` 
---@class tycho.nn.CircularPad3d: tycho.nn.Module
---@overload fun(padding?: any): tycho.nn.CircularPad3d
tycho.nn.CircularPad3d = {}

--- `(padding, value)` 
---@class tycho.nn.ConstantPad1d: tycho.nn.Module
---@overload fun(padding?: any, value?: any): tycho.nn.ConstantPad1d
tycho.nn.ConstantPad1d = {}

--- `(padding, value)` 
---@class tycho.nn.ConstantPad2d: tycho.nn.Module
---@overload fun(padding?: any, value?: any): tycho.nn.ConstantPad2d
tycho.nn.ConstantPad2d = {}

--- `(padding, value)` 
---@class tycho.nn.ConstantPad3d: tycho.nn.Module
---@overload fun(padding?: any, value?: any): tycho.nn.ConstantPad3d
tycho.nn.ConstantPad3d = {}

--- `(in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=true, padding_mode="zeros")` 
---@class tycho.nn.Conv1d: tycho.nn.Module
---@overload fun(in_channels?: any, out_channels?: any, kernel_size?: any, stride?: any, padding?: any, dilation?: any, groups?: any, bias?: any, padding_mode?: any): tycho.nn.Conv1d
tycho.nn.Conv1d = {}

--- `(in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=true, padding_mode="zeros")` 
---@class tycho.nn.Conv2d: tycho.nn.Module
---@overload fun(in_channels?: any, out_channels?: any, kernel_size?: any, stride?: any, padding?: any, dilation?: any, groups?: any, bias?: any, padding_mode?: any): tycho.nn.Conv2d
tycho.nn.Conv2d = {}

--- `(in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=true, padding_mode="zeros")` 
---@class tycho.nn.Conv3d: tycho.nn.Module
---@overload fun(in_channels?: any, out_channels?: any, kernel_size?: any, stride?: any, padding?: any, dilation?: any, groups?: any, bias?: any, padding_mode?: any): tycho.nn.Conv3d
tycho.nn.Conv3d = {}

--- `(in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=true, dilation=1, padding_mode="zeros")` 
---@class tycho.nn.ConvTranspose1d: tycho.nn.Module
---@overload fun(in_channels?: any, out_channels?: any, kernel_size?: any, stride?: any, padding?: any, output_padding?: any, groups?: any, bias?: any, dilation?: any, padding_mode?: any): tycho.nn.ConvTranspose1d
tycho.nn.ConvTranspose1d = {}

--- `(in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=true, dilation=1, padding_mode="zeros")` 
---@class tycho.nn.ConvTranspose2d: tycho.nn.Module
---@overload fun(in_channels?: any, out_channels?: any, kernel_size?: any, stride?: any, padding?: any, output_padding?: any, groups?: any, bias?: any, dilation?: any, padding_mode?: any): tycho.nn.ConvTranspose2d
tycho.nn.ConvTranspose2d = {}

--- `(in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=true, dilation=1, padding_mode="zeros")` 
---@class tycho.nn.ConvTranspose3d: tycho.nn.Module
---@overload fun(in_channels?: any, out_channels?: any, kernel_size?: any, stride?: any, padding?: any, output_padding?: any, groups?: any, bias?: any, dilation?: any, padding_mode?: any): tycho.nn.ConvTranspose3d
tycho.nn.ConvTranspose3d = {}

--- `(margin=0, *, reduction="mean")` `nn.functional.cosine_embedding_loss`
---@class tycho.nn.CosineEmbeddingLoss: tycho.nn.Module
---@overload fun(margin?: any, options?: any): tycho.nn.CosineEmbeddingLoss
tycho.nn.CosineEmbeddingLoss = {}

--- `(dim=2, eps=1e-8)` `nn.functional.cosine_similarity`
---@class tycho.nn.CosineSimilarity: tycho.nn.Module
---@overload fun(dim?: any, eps?: any): tycho.nn.CosineSimilarity
tycho.nn.CosineSimilarity = {}

--- `(weight=nil, *, ignore_index=-100, label_smoothing=0, reduction="mean")` `nn.functional.cross_entropy`
---@class tycho.nn.CrossEntropyLoss: tycho.nn.Module
---@overload fun(weight?: any, options?: any): tycho.nn.CrossEntropyLoss
tycho.nn.CrossEntropyLoss = {}

--- `(p=0.5, inplace=false)` 
---@class tycho.nn.Dropout: tycho.nn.Module
---@overload fun(p?: any, inplace?: any): tycho.nn.Dropout
tycho.nn.Dropout = {}

--- `(p=0.5, inplace=false)` 
---@class tycho.nn.Dropout1d: tycho.nn.Module
---@overload fun(p?: any, inplace?: any): tycho.nn.Dropout1d
tycho.nn.Dropout1d = {}

--- `(p=0.5, inplace=false)` 
---@class tycho.nn.Dropout2d: tycho.nn.Module
---@overload fun(p?: any, inplace?: any): tycho.nn.Dropout2d
tycho.nn.Dropout2d = {}

--- `(p=0.5, inplace=false)` 
---@class tycho.nn.Dropout3d: tycho.nn.Module
---@overload fun(p?: any, inplace?: any): tycho.nn.Dropout3d
tycho.nn.Dropout3d = {}

--- `(alpha=1, inplace=false)` `nn.functional.elu`
---@class tycho.nn.ELU: tycho.nn.Module
---@overload fun(alpha?: any, inplace?: any): tycho.nn.ELU
tycho.nn.ELU = {}

--- `(num_embeddings, embedding_dim, padding_idx=nil, max_norm=nil, norm_type=2, scale_grad_by_freq=false, sparse=false)` 
---@class tycho.nn.Embedding: tycho.nn.Module
---@overload fun(num_embeddings?: any, embedding_dim?: any, padding_idx?: any, max_norm?: any, norm_type?: any, scale_grad_by_freq?: any, sparse?: any): tycho.nn.Embedding
tycho.nn.Embedding = {}

--- `(num_embeddings, embedding_dim, max_norm=nil, norm_type=2, scale_grad_by_freq=false, mode="mean", sparse=false, include_last_offset=false, padding_idx=nil)` 
---@class tycho.nn.EmbeddingBag: tycho.nn.Module
---@overload fun(num_embeddings?: any, embedding_dim?: any, max_norm?: any, norm_type?: any, scale_grad_by_freq?: any, mode?: any, sparse?: any, include_last_offset?: any, padding_idx?: any): tycho.nn.EmbeddingBag
tycho.nn.EmbeddingBag = {}

--- `(p=0.5, inplace=false)` 
---@class tycho.nn.FeatureAlphaDropout: tycho.nn.Module
---@overload fun(p?: any, inplace?: any): tycho.nn.FeatureAlphaDropout
tycho.nn.FeatureAlphaDropout = {}

--- `(start_dim=2, end_dim=-1)` `tycho.flatten`
---@class tycho.nn.Flatten: tycho.nn.Module
---@overload fun(start_dim?: any, end_dim?: any): tycho.nn.Flatten
tycho.nn.Flatten = {}

--- `(output_size, kernel_size, dilation=1, padding=0, stride=1)` `nn.functional.fold`
---@class tycho.nn.Fold: tycho.nn.Module
---@overload fun(output_size?: any, kernel_size?: any, dilation?: any, padding?: any, stride?: any): tycho.nn.Fold
tycho.nn.Fold = {}

--- `(approximate="none")` `nn.functional.gelu`
---@class tycho.nn.GELU: tycho.nn.Module
---@overload fun(approximate?: any): tycho.nn.GELU
tycho.nn.GELU = {}

--- `(dim=-1)` `nn.functional.glu`
---@class tycho.nn.GLU: tycho.nn.Module
---@overload fun(dim?: any): tycho.nn.GLU
tycho.nn.GLU = {}

--- `(input_size, hidden_size, num_layers=1, bias=true, batch_first=false, dropout=0, bidirectional=false)` 
---@class tycho.nn.GRU: tycho.nn.Module
---@overload fun(input_size?: any, hidden_size?: any, num_layers?: any, bias?: any, batch_first?: any, dropout?: any, bidirectional?: any): tycho.nn.GRU
tycho.nn.GRU = {}

--- `(input_size, hidden_size, bias=true)` 
---@class tycho.nn.GRUCell: tycho.nn.Module
---@overload fun(input_size?: any, hidden_size?: any, bias?: any): tycho.nn.GRUCell
tycho.nn.GRUCell = {}

--- `(*, full=false, eps=1e-6, reduction="mean")` `nn.functional.gaussian_nll_loss`
---@class tycho.nn.GaussianNLLLoss: tycho.nn.Module
---@overload fun(options?: any): tycho.nn.GaussianNLLLoss
tycho.nn.GaussianNLLLoss = {}

--- `(num_groups, num_channels, eps=1e-5, affine=true, *, bias=true)` 
---@class tycho.nn.GroupNorm: tycho.nn.Module
---@overload fun(num_groups?: any, num_channels?: any, eps?: any, affine?: any, options?: any): tycho.nn.GroupNorm
tycho.nn.GroupNorm = {}

--- `(lambd=0.5)` `nn.functional.hardshrink`
---@class tycho.nn.Hardshrink: tycho.nn.Module
---@overload fun(lambd?: any): tycho.nn.Hardshrink
tycho.nn.Hardshrink = {}

--- `(inplace=false)` `nn.functional.hardsigmoid`
---@class tycho.nn.Hardsigmoid: tycho.nn.Module
---@overload fun(inplace?: any): tycho.nn.Hardsigmoid
tycho.nn.Hardsigmoid = {}

--- `(inplace=false)` `nn.functional.hardswish`
---@class tycho.nn.Hardswish: tycho.nn.Module
---@overload fun(inplace?: any): tycho.nn.Hardswish
tycho.nn.Hardswish = {}

--- `(min_val=-1, max_val=1, inplace=false)` `nn.functional.hardtanh`
---@class tycho.nn.Hardtanh: tycho.nn.Module
---@overload fun(min_val?: any, max_val?: any, inplace?: any): tycho.nn.Hardtanh
tycho.nn.Hardtanh = {}

--- `(margin=1, *, reduction="mean")` `nn.functional.hinge_embedding_loss`
---@class tycho.nn.HingeEmbeddingLoss: tycho.nn.Module
---@overload fun(margin?: any, options?: any): tycho.nn.HingeEmbeddingLoss
tycho.nn.HingeEmbeddingLoss = {}

--- `(reduction="mean", delta=1, *, weight=nil)` `nn.functional.huber_loss`
---@class tycho.nn.HuberLoss: tycho.nn.Module
---@overload fun(reduction?: any, delta?: any, options?: any): tycho.nn.HuberLoss
tycho.nn.HuberLoss = {}

--- 
---@class tycho.nn.Identity: tycho.nn.Module
---@overload fun(): tycho.nn.Identity
tycho.nn.Identity = {}

--- `(num_features, eps=1e-5, momentum=0.1, affine=false, track_running_stats=false, *, bias=true)` 
---@class tycho.nn.InstanceNorm1d: tycho.nn.Module
---@overload fun(num_features?: any, eps?: any, momentum?: any, affine?: any, track_running_stats?: any, options?: any): tycho.nn.InstanceNorm1d
tycho.nn.InstanceNorm1d = {}

--- `(num_features, eps=1e-5, momentum=0.1, affine=false, track_running_stats=false, *, bias=true)` 
---@class tycho.nn.InstanceNorm2d: tycho.nn.Module
---@overload fun(num_features?: any, eps?: any, momentum?: any, affine?: any, track_running_stats?: any, options?: any): tycho.nn.InstanceNorm2d
tycho.nn.InstanceNorm2d = {}

--- `(num_features, eps=1e-5, momentum=0.1, affine=false, track_running_stats=false, *, bias=true)` 
---@class tycho.nn.InstanceNorm3d: tycho.nn.Module
---@overload fun(num_features?: any, eps?: any, momentum?: any, affine?: any, track_running_stats?: any, options?: any): tycho.nn.InstanceNorm3d
tycho.nn.InstanceNorm3d = {}

--- `(*, log_target=false, reduction="mean")` `nn.functional.kl_div`
---@class tycho.nn.KLDivLoss: tycho.nn.Module
---@overload fun(options?: any): tycho.nn.KLDivLoss
tycho.nn.KLDivLoss = {}

--- `(*, weight=nil, reduction="mean")` `nn.functional.l1_loss`
---@class tycho.nn.L1Loss: tycho.nn.Module
---@overload fun(options?: any): tycho.nn.L1Loss
tycho.nn.L1Loss = {}

--- `(norm_type, kernel_size, stride=nil, ceil_mode=false)` `nn.functional.lp_pool1d`
---@class tycho.nn.LPPool1d: tycho.nn.Module
---@overload fun(norm_type?: any, kernel_size?: any, stride?: any, ceil_mode?: any): tycho.nn.LPPool1d
tycho.nn.LPPool1d = {}

--- `(norm_type, kernel_size, stride=nil, ceil_mode=false)` `nn.functional.lp_pool2d`
---@class tycho.nn.LPPool2d: tycho.nn.Module
---@overload fun(norm_type?: any, kernel_size?: any, stride?: any, ceil_mode?: any): tycho.nn.LPPool2d
tycho.nn.LPPool2d = {}

--- `(norm_type, kernel_size, stride=nil, ceil_mode=false)` `nn.functional.lp_pool3d`
---@class tycho.nn.LPPool3d: tycho.nn.Module
---@overload fun(norm_type?: any, kernel_size?: any, stride?: any, ceil_mode?: any): tycho.nn.LPPool3d
tycho.nn.LPPool3d = {}

--- `(input_size, hidden_size, num_layers=1, bias=true, batch_first=false, dropout=0, bidirectional=false, proj_size=0)` 
---@class tycho.nn.LSTM: tycho.nn.Module
---@overload fun(input_size?: any, hidden_size?: any, num_layers?: any, bias?: any, batch_first?: any, dropout?: any, bidirectional?: any, proj_size?: any): tycho.nn.LSTM
tycho.nn.LSTM = {}

--- `(input_size, hidden_size, bias=true)` 
---@class tycho.nn.LSTMCell: tycho.nn.Module
---@overload fun(input_size?: any, hidden_size?: any, bias?: any): tycho.nn.LSTMCell
tycho.nn.LSTMCell = {}

--- `(normalized_shape, eps=1e-5, elementwise_affine=true, bias=true)` 
---@class tycho.nn.LayerNorm: tycho.nn.Module
---@overload fun(normalized_shape?: any, eps?: any, elementwise_affine?: any, bias?: any): tycho.nn.LayerNorm
tycho.nn.LayerNorm = {}

--- `(eps=1e-5, momentum=0.1, affine=true, track_running_stats=true, *, bias=true)` as `BatchNorm1d`; its first argument follows from the first input
---@class tycho.nn.LazyBatchNorm1d: tycho.nn.Module
---@overload fun(eps?: any, momentum?: any, affine?: any, track_running_stats?: any, options?: any): tycho.nn.LazyBatchNorm1d
tycho.nn.LazyBatchNorm1d = {}

--- `(eps=1e-5, momentum=0.1, affine=true, track_running_stats=true, *, bias=true)` as `BatchNorm2d`; its first argument follows from the first input
---@class tycho.nn.LazyBatchNorm2d: tycho.nn.Module
---@overload fun(eps?: any, momentum?: any, affine?: any, track_running_stats?: any, options?: any): tycho.nn.LazyBatchNorm2d
tycho.nn.LazyBatchNorm2d = {}

--- `(eps=1e-5, momentum=0.1, affine=true, track_running_stats=true, *, bias=true)` as `BatchNorm3d`; its first argument follows from the first input
---@class tycho.nn.LazyBatchNorm3d: tycho.nn.Module
---@overload fun(eps?: any, momentum?: any, affine?: any, track_running_stats?: any, options?: any): tycho.nn.LazyBatchNorm3d
tycho.nn.LazyBatchNorm3d = {}

--- `(out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=true, padding_mode="zeros")` as `Conv1d`; its first argument follows from the first input
---@class tycho.nn.LazyConv1d: tycho.nn.Module
---@overload fun(out_channels?: any, kernel_size?: any, stride?: any, padding?: any, dilation?: any, groups?: any, bias?: any, padding_mode?: any): tycho.nn.LazyConv1d
tycho.nn.LazyConv1d = {}

--- `(out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=true, padding_mode="zeros")` as `Conv2d`; its first argument follows from the first input
---@class tycho.nn.LazyConv2d: tycho.nn.Module
---@overload fun(out_channels?: any, kernel_size?: any, stride?: any, padding?: any, dilation?: any, groups?: any, bias?: any, padding_mode?: any): tycho.nn.LazyConv2d
tycho.nn.LazyConv2d = {}

--- `(out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=true, padding_mode="zeros")` as `Conv3d`; its first argument follows from the first input
---@class tycho.nn.LazyConv3d: tycho.nn.Module
---@overload fun(out_channels?: any, kernel_size?: any, stride?: any, padding?: any, dilation?: any, groups?: any, bias?: any, padding_mode?: any): tycho.nn.LazyConv3d
tycho.nn.LazyConv3d = {}

--- `(out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=true, dilation=1, padding_mode="zeros")` as `ConvTranspose1d`; its first argument follows from the first input
---@class tycho.nn.LazyConvTranspose1d: tycho.nn.Module
---@overload fun(out_channels?: any, kernel_size?: any, stride?: any, padding?: any, output_padding?: any, groups?: any, bias?: any, dilation?: any, padding_mode?: any): tycho.nn.LazyConvTranspose1d
tycho.nn.LazyConvTranspose1d = {}

--- `(out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=true, dilation=1, padding_mode="zeros")` as `ConvTranspose2d`; its first argument follows from the first input
---@class tycho.nn.LazyConvTranspose2d: tycho.nn.Module
---@overload fun(out_channels?: any, kernel_size?: any, stride?: any, padding?: any, output_padding?: any, groups?: any, bias?: any, dilation?: any, padding_mode?: any): tycho.nn.LazyConvTranspose2d
tycho.nn.LazyConvTranspose2d = {}

--- `(out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=true, dilation=1, padding_mode="zeros")` as `ConvTranspose3d`; its first argument follows from the first input
---@class tycho.nn.LazyConvTranspose3d: tycho.nn.Module
---@overload fun(out_channels?: any, kernel_size?: any, stride?: any, padding?: any, output_padding?: any, groups?: any, bias?: any, dilation?: any, padding_mode?: any): tycho.nn.LazyConvTranspose3d
tycho.nn.LazyConvTranspose3d = {}

--- `(eps=1e-5, momentum=0.1, affine=false, track_running_stats=false, *, bias=true)` as `InstanceNorm1d`; its first argument follows from the first input
---@class tycho.nn.LazyInstanceNorm1d: tycho.nn.Module
---@overload fun(eps?: any, momentum?: any, affine?: any, track_running_stats?: any, options?: any): tycho.nn.LazyInstanceNorm1d
tycho.nn.LazyInstanceNorm1d = {}

--- `(eps=1e-5, momentum=0.1, affine=false, track_running_stats=false, *, bias=true)` as `InstanceNorm2d`; its first argument follows from the first input
---@class tycho.nn.LazyInstanceNorm2d: tycho.nn.Module
---@overload fun(eps?: any, momentum?: any, affine?: any, track_running_stats?: any, options?: any): tycho.nn.LazyInstanceNorm2d
tycho.nn.LazyInstanceNorm2d = {}

--- `(eps=1e-5, momentum=0.1, affine=false, track_running_stats=false, *, bias=true)` as `InstanceNorm3d`; its first argument follows from the first input
---@class tycho.nn.LazyInstanceNorm3d: tycho.nn.Module
---@overload fun(eps?: any, momentum?: any, affine?: any, track_running_stats?: any, options?: any): tycho.nn.LazyInstanceNorm3d
tycho.nn.LazyInstanceNorm3d = {}

--- as `Linear`; its first argument follows from the first input
---@class tycho.nn.LazyLinear: tycho.nn.Module
---@overload fun(): tycho.nn.LazyLinear
tycho.nn.LazyLinear = {}

--- `(negative_slope=0.01, inplace=false)` `nn.functional.leaky_relu`
---@class tycho.nn.LeakyReLU: tycho.nn.Module
---@overload fun(negative_slope?: any, inplace?: any): tycho.nn.LeakyReLU
tycho.nn.LeakyReLU = {}

--- `(in_features, out_features, bias=true)` 
---@class tycho.nn.Linear: tycho.nn.Module
---@overload fun(in_features?: any, out_features?: any, bias?: any): tycho.nn.Linear
tycho.nn.Linear = {}

--- `(in_features, num_classes, bias=false, *, weight=nil, reduction="mean", ignore_index=-100, label_smoothing=0, chunk_size=nil)` 
---@class tycho.nn.LinearCrossEntropyLoss: tycho.nn.Module
---@overload fun(in_features?: any, num_classes?: any, bias?: any, options?: any): tycho.nn.LinearCrossEntropyLoss
tycho.nn.LinearCrossEntropyLoss = {}

--- `(size, alpha=1e-4, beta=0.75, k=1)` `nn.functional.local_response_norm`
---@class tycho.nn.LocalResponseNorm: tycho.nn.Module
---@overload fun(size?: any, alpha?: any, beta?: any, k?: any): tycho.nn.LocalResponseNorm
tycho.nn.LocalResponseNorm = {}

--- `nn.functional.logsigmoid`
---@class tycho.nn.LogSigmoid: tycho.nn.Module
---@overload fun(): tycho.nn.LogSigmoid
tycho.nn.LogSigmoid = {}

--- `(dim=nil)` 
---@class tycho.nn.LogSoftmax: tycho.nn.Module
---@overload fun(dim?: any): tycho.nn.LogSoftmax
tycho.nn.LogSoftmax = {}

--- `(*, weight=nil, reduction="mean")` `nn.functional.mse_loss`
---@class tycho.nn.MSELoss: tycho.nn.Module
---@overload fun(options?: any): tycho.nn.MSELoss
tycho.nn.MSELoss = {}

--- `(margin=0, *, reduction="mean")` `nn.functional.margin_ranking_loss`
---@class tycho.nn.MarginRankingLoss: tycho.nn.Module
---@overload fun(margin?: any, options?: any): tycho.nn.MarginRankingLoss
tycho.nn.MarginRankingLoss = {}

--- `(kernel_size, stride=nil, padding=0, dilation=1, return_indices=false, ceil_mode=false)` `nn.functional.max_pool1d`
---@class tycho.nn.MaxPool1d: tycho.nn.Module
---@overload fun(kernel_size?: any, stride?: any, padding?: any, dilation?: any, return_indices?: any, ceil_mode?: any): tycho.nn.MaxPool1d
tycho.nn.MaxPool1d = {}

--- `(kernel_size, stride=nil, padding=0, dilation=1, return_indices=false, ceil_mode=false)` `nn.functional.max_pool2d`
---@class tycho.nn.MaxPool2d: tycho.nn.Module
---@overload fun(kernel_size?: any, stride?: any, padding?: any, dilation?: any, return_indices?: any, ceil_mode?: any): tycho.nn.MaxPool2d
tycho.nn.MaxPool2d = {}

--- `(kernel_size, stride=nil, padding=0, dilation=1, return_indices=false, ceil_mode=false)` `nn.functional.max_pool3d`
---@class tycho.nn.MaxPool3d: tycho.nn.Module
---@overload fun(kernel_size?: any, stride?: any, padding?: any, dilation?: any, return_indices?: any, ceil_mode?: any): tycho.nn.MaxPool3d
tycho.nn.MaxPool3d = {}

--- `(kernel_size, stride=nil, padding=0)` 
---@class tycho.nn.MaxUnpool1d: tycho.nn.Module
---@overload fun(kernel_size?: any, stride?: any, padding?: any): tycho.nn.MaxUnpool1d
tycho.nn.MaxUnpool1d = {}

--- `(kernel_size, stride=nil, padding=0)` 
---@class tycho.nn.MaxUnpool2d: tycho.nn.Module
---@overload fun(kernel_size?: any, stride?: any, padding?: any): tycho.nn.MaxUnpool2d
tycho.nn.MaxUnpool2d = {}

--- `(kernel_size, stride=nil, padding=0)` 
---@class tycho.nn.MaxUnpool3d: tycho.nn.Module
---@overload fun(kernel_size?: any, stride?: any, padding?: any): tycho.nn.MaxUnpool3d
tycho.nn.MaxUnpool3d = {}

--- `(inplace=false)` `nn.functional.mish`
---@class tycho.nn.Mish: tycho.nn.Module
---@overload fun(inplace?: any): tycho.nn.Mish
tycho.nn.Mish = {}

--- 
---@class tycho.nn.ModuleDict: tycho.nn.Module
---@overload fun(): tycho.nn.ModuleDict
tycho.nn.ModuleDict = {}

--- 
---@class tycho.nn.ModuleList: tycho.nn.Module
---@overload fun(): tycho.nn.ModuleList
tycho.nn.ModuleList = {}

--- `(*, reduction="mean")` `nn.functional.multilabel_margin_loss`
---@class tycho.nn.MultiLabelMarginLoss: tycho.nn.Module
---@overload fun(options?: any): tycho.nn.MultiLabelMarginLoss
tycho.nn.MultiLabelMarginLoss = {}

--- `(weight=nil, *, reduction="mean")` `nn.functional.multilabel_soft_margin_loss`
---@class tycho.nn.MultiLabelSoftMarginLoss: tycho.nn.Module
---@overload fun(weight?: any, options?: any): tycho.nn.MultiLabelSoftMarginLoss
tycho.nn.MultiLabelSoftMarginLoss = {}

--- `(p=1, margin=1, weight=nil, *, reduction="mean")` `nn.functional.multi_margin_loss`
---@class tycho.nn.MultiMarginLoss: tycho.nn.Module
---@overload fun(p?: any, margin?: any, weight?: any, options?: any): tycho.nn.MultiMarginLoss
tycho.nn.MultiMarginLoss = {}

--- `(embed_dim, num_heads, dropout=0, bias=true, add_bias_kv=false, add_zero_attn=false, kdim=nil, vdim=nil, batch_first=false)` 
---@class tycho.nn.MultiheadAttention: tycho.nn.Module
---@overload fun(embed_dim?: any, num_heads?: any, dropout?: any, bias?: any, add_bias_kv?: any, add_zero_attn?: any, kdim?: any, vdim?: any, batch_first?: any): tycho.nn.MultiheadAttention
tycho.nn.MultiheadAttention = {}

--- `(weight=nil, *, ignore_index=-100, reduction="mean")` `nn.functional.nll_loss`
---@class tycho.nn.NLLLoss: tycho.nn.Module
---@overload fun(weight?: any, options?: any): tycho.nn.NLLLoss
tycho.nn.NLLLoss = {}

--- `(num_parameters=1, init=0.25)` 
---@class tycho.nn.PReLU: tycho.nn.Module
---@overload fun(num_parameters?: any, init?: any): tycho.nn.PReLU
tycho.nn.PReLU = {}

--- `(p=2, eps=1e-6, keepdim=false)` `nn.functional.pairwise_distance`
---@class tycho.nn.PairwiseDistance: tycho.nn.Module
---@overload fun(p?: any, eps?: any, keepdim?: any): tycho.nn.PairwiseDistance
tycho.nn.PairwiseDistance = {}

--- 
---@class tycho.nn.ParameterDict: tycho.nn.Module
---@overload fun(): tycho.nn.ParameterDict
tycho.nn.ParameterDict = {}

--- 
---@class tycho.nn.ParameterList: tycho.nn.Module
---@overload fun(): tycho.nn.ParameterList
tycho.nn.ParameterList = {}

--- `(upscale_factor)` `nn.functional.pixel_shuffle`
---@class tycho.nn.PixelShuffle: tycho.nn.Module
---@overload fun(upscale_factor?: any): tycho.nn.PixelShuffle
tycho.nn.PixelShuffle = {}

--- `(downscale_factor)` `nn.functional.pixel_unshuffle`
---@class tycho.nn.PixelUnshuffle: tycho.nn.Module
---@overload fun(downscale_factor?: any): tycho.nn.PixelUnshuffle
tycho.nn.PixelUnshuffle = {}

--- `(log_input=true, full=false, *, eps=1e-8, reduction="mean")` `nn.functional.poisson_nll_loss`
---@class tycho.nn.PoissonNLLLoss: tycho.nn.Module
---@overload fun(log_input?: any, full?: any, options?: any): tycho.nn.PoissonNLLLoss
tycho.nn.PoissonNLLLoss = {}

--- `(normalized_shape, eps=nil, elementwise_affine=true)` 
---@class tycho.nn.RMSNorm: tycho.nn.Module
---@overload fun(normalized_shape?: any, eps?: any, elementwise_affine?: any): tycho.nn.RMSNorm
tycho.nn.RMSNorm = {}

--- `(input_size, hidden_size, num_layers=1, nonlinearity="tanh", bias=true, batch_first=false, dropout=0, bidirectional=false)` 
---@class tycho.nn.RNN: tycho.nn.Module
---@overload fun(input_size?: any, hidden_size?: any, num_layers?: any, nonlinearity?: any, bias?: any, batch_first?: any, dropout?: any, bidirectional?: any): tycho.nn.RNN
tycho.nn.RNN = {}

--- `(input_size, hidden_size, bias=true, nonlinearity="tanh")` 
---@class tycho.nn.RNNCell: tycho.nn.Module
---@overload fun(input_size?: any, hidden_size?: any, bias?: any, nonlinearity?: any): tycho.nn.RNNCell
tycho.nn.RNNCell = {}

--- `(lower=0.125, upper=nil, inplace=false)` 
---@class tycho.nn.RReLU: tycho.nn.Module
---@overload fun(lower?: any, upper?: any, inplace?: any): tycho.nn.RReLU
tycho.nn.RReLU = {}

--- `(inplace=false)` `nn.functional.relu`
---@class tycho.nn.ReLU: tycho.nn.Module
---@overload fun(inplace?: any): tycho.nn.ReLU
tycho.nn.ReLU = {}

--- `(inplace=false)` `nn.functional.relu6`
---@class tycho.nn.ReLU6: tycho.nn.Module
---@overload fun(inplace?: any): tycho.nn.ReLU6
tycho.nn.ReLU6 = {}

--- `(padding)` 
---@class tycho.nn.ReflectionPad1d: tycho.nn.Module
---@overload fun(padding?: any): tycho.nn.ReflectionPad1d
tycho.nn.ReflectionPad1d = {}

--- `(padding)` 
---@class tycho.nn.ReflectionPad2d: tycho.nn.Module
---@overload fun(padding?: any): tycho.nn.ReflectionPad2d
tycho.nn.ReflectionPad2d = {}

--- `(padding)` 
---@class tycho.nn.ReflectionPad3d: tycho.nn.Module
---@overload fun(padding?: any): tycho.nn.ReflectionPad3d
tycho.nn.ReflectionPad3d = {}

--- `(padding)` 
---@class tycho.nn.ReplicationPad1d: tycho.nn.Module
---@overload fun(padding?: any): tycho.nn.ReplicationPad1d
tycho.nn.ReplicationPad1d = {}

--- `(padding)` 
---@class tycho.nn.ReplicationPad2d: tycho.nn.Module
---@overload fun(padding?: any): tycho.nn.ReplicationPad2d
tycho.nn.ReplicationPad2d = {}

--- `(padding)` 
---@class tycho.nn.ReplicationPad3d: tycho.nn.Module
---@overload fun(padding?: any): tycho.nn.ReplicationPad3d
tycho.nn.ReplicationPad3d = {}

--- `(inplace=false)` `nn.functional.selu`
---@class tycho.nn.SELU: tycho.nn.Module
---@overload fun(inplace?: any): tycho.nn.SELU
tycho.nn.SELU = {}

--- 
---@class tycho.nn.Sequential: tycho.nn.Module
---@overload fun(): tycho.nn.Sequential
tycho.nn.Sequential = {}

--- `(inplace=false)` `nn.functional.silu`
---@class tycho.nn.SiLU: tycho.nn.Module
---@overload fun(inplace?: any): tycho.nn.SiLU
tycho.nn.SiLU = {}

--- `nn.functional.sigmoid`
---@class tycho.nn.Sigmoid: tycho.nn.Module
---@overload fun(): tycho.nn.Sigmoid
tycho.nn.Sigmoid = {}

--- `(*, beta=1, reduction="mean")` `nn.functional.smooth_l1_loss`
---@class tycho.nn.SmoothL1Loss: tycho.nn.Module
---@overload fun(options?: any): tycho.nn.SmoothL1Loss
tycho.nn.SmoothL1Loss = {}

--- `(*, reduction="mean")` `nn.functional.soft_margin_loss`
---@class tycho.nn.SoftMarginLoss: tycho.nn.Module
---@overload fun(options?: any): tycho.nn.SoftMarginLoss
tycho.nn.SoftMarginLoss = {}

--- `(dim=nil)` 
---@class tycho.nn.Softmax: tycho.nn.Module
---@overload fun(dim?: any): tycho.nn.Softmax
tycho.nn.Softmax = {}

--- 
---@class tycho.nn.Softmax2d: tycho.nn.Module
---@overload fun(): tycho.nn.Softmax2d
tycho.nn.Softmax2d = {}

--- `(dim=nil)` 
---@class tycho.nn.Softmin: tycho.nn.Module
---@overload fun(dim?: any): tycho.nn.Softmin
tycho.nn.Softmin = {}

--- `(beta=1, threshold=20)` `nn.functional.softplus`
---@class tycho.nn.Softplus: tycho.nn.Module
---@overload fun(beta?: any, threshold?: any): tycho.nn.Softplus
tycho.nn.Softplus = {}

--- `(lambd=0.5)` `nn.functional.softshrink`
---@class tycho.nn.Softshrink: tycho.nn.Module
---@overload fun(lambd?: any): tycho.nn.Softshrink
tycho.nn.Softshrink = {}

--- `nn.functional.softsign`
---@class tycho.nn.Softsign: tycho.nn.Module
---@overload fun(): tycho.nn.Softsign
tycho.nn.Softsign = {}

--- `(num_features, eps=1e-5, momentum=0.1, affine=true, track_running_stats=true, process_group=nil, *, bias=true)` 
---@class tycho.nn.SyncBatchNorm: tycho.nn.Module
---@overload fun(num_features?: any, eps?: any, momentum?: any, affine?: any, track_running_stats?: any, process_group?: any, options?: any): tycho.nn.SyncBatchNorm
tycho.nn.SyncBatchNorm = {}

--- `nn.functional.tanh`
---@class tycho.nn.Tanh: tycho.nn.Module
---@overload fun(): tycho.nn.Tanh
tycho.nn.Tanh = {}

--- `nn.functional.tanhshrink`
---@class tycho.nn.Tanhshrink: tycho.nn.Module
---@overload fun(): tycho.nn.Tanhshrink
tycho.nn.Tanhshrink = {}

--- `(threshold, value, inplace=false)` `nn.functional.threshold`
---@class tycho.nn.Threshold: tycho.nn.Module
---@overload fun(threshold?: any, value?: any, inplace?: any): tycho.nn.Threshold
tycho.nn.Threshold = {}

--- `(d_model=512, nhead=8, num_encoder_layers=6, num_decoder_layers=6, dim_feedforward=2048, dropout=0.1, activation="relu", custom_encoder=nil, custom_decoder=nil, layer_norm_eps=1e-5, batch_first=false, norm_first=false, bias=true)` 
---@class tycho.nn.Transformer: tycho.nn.Module
---@overload fun(d_model?: any, nhead?: any, num_encoder_layers?: any, num_decoder_layers?: any, dim_feedforward?: any, dropout?: any, activation?: any, custom_encoder?: any, custom_decoder?: any, layer_norm_eps?: any, batch_first?: any, norm_first?: any, bias?: any): tycho.nn.Transformer
tycho.nn.Transformer = {}

--- `(decoder_layer, num_layers, norm=nil)` 
---@class tycho.nn.TransformerDecoder: tycho.nn.Module
---@overload fun(decoder_layer?: any, num_layers?: any, norm?: any): tycho.nn.TransformerDecoder
tycho.nn.TransformerDecoder = {}

--- `(d_model, nhead, dim_feedforward=2048, dropout=0.1, activation="relu", layer_norm_eps=1e-5, batch_first=false, norm_first=false, bias=true)` 
---@class tycho.nn.TransformerDecoderLayer: tycho.nn.Module
---@overload fun(d_model?: any, nhead?: any, dim_feedforward?: any, dropout?: any, activation?: any, layer_norm_eps?: any, batch_first?: any, norm_first?: any, bias?: any): tycho.nn.TransformerDecoderLayer
tycho.nn.TransformerDecoderLayer = {}

--- `(encoder_layer, num_layers, norm=nil, enable_nested_tensor=true, mask_check=true)` 
---@class tycho.nn.TransformerEncoder: tycho.nn.Module
---@overload fun(encoder_layer?: any, num_layers?: any, norm?: any, enable_nested_tensor?: any, mask_check?: any): tycho.nn.TransformerEncoder
tycho.nn.TransformerEncoder = {}

--- `(d_model, nhead, dim_feedforward=2048, dropout=0.1, activation="relu", layer_norm_eps=1e-5, batch_first=false, norm_first=false, bias=true)` 
---@class tycho.nn.TransformerEncoderLayer: tycho.nn.Module
---@overload fun(d_model?: any, nhead?: any, dim_feedforward?: any, dropout?: any, activation?: any, layer_norm_eps?: any, batch_first?: any, norm_first?: any, bias?: any): tycho.nn.TransformerEncoderLayer
tycho.nn.TransformerEncoderLayer = {}

--- `(margin=1, p=2, eps=1e-6, swap=false, *, reduction="mean")` `nn.functional.triplet_margin_loss`
---@class tycho.nn.TripletMarginLoss: tycho.nn.Module
---@overload fun(margin?: any, p?: any, eps?: any, swap?: any, options?: any): tycho.nn.TripletMarginLoss
tycho.nn.TripletMarginLoss = {}

--- `(*, distance_function=nil, margin=1, swap=false, reduction="mean")` `nn.functional.triplet_margin_with_distance_loss`
---@class tycho.nn.TripletMarginWithDistanceLoss: tycho.nn.Module
---@overload fun(options?: any): tycho.nn.TripletMarginWithDistanceLoss
tycho.nn.TripletMarginWithDistanceLoss = {}

--- `(dim, unflattened_size)` `tycho.unflatten`
---@class tycho.nn.Unflatten: tycho.nn.Module
---@overload fun(dim?: any, unflattened_size?: any): tycho.nn.Unflatten
tycho.nn.Unflatten = {}

--- `(kernel_size, dilation=1, padding=0, stride=1)` `nn.functional.unfold`
---@class tycho.nn.Unfold: tycho.nn.Module
---@overload fun(kernel_size?: any, dilation?: any, padding?: any, stride?: any): tycho.nn.Unfold
tycho.nn.Unfold = {}

--- `(size=nil, scale_factor=nil, mode="nearest", align_corners=nil, recompute_scale_factor=nil)` `nn.functional.interpolate`
---@class tycho.nn.Upsample: tycho.nn.Module
---@overload fun(size?: any, scale_factor?: any, mode?: any, align_corners?: any, recompute_scale_factor?: any): tycho.nn.Upsample
tycho.nn.Upsample = {}

--- `(size=nil, scale_factor=nil)` 
---@class tycho.nn.UpsamplingBilinear2d: tycho.nn.Module
---@overload fun(size?: any, scale_factor?: any): tycho.nn.UpsamplingBilinear2d
tycho.nn.UpsamplingBilinear2d = {}

--- `(size=nil, scale_factor=nil)` `nn.functional.interpolate`
---@class tycho.nn.UpsamplingNearest2d: tycho.nn.Module
---@overload fun(size?: any, scale_factor?: any): tycho.nn.UpsamplingNearest2d
tycho.nn.UpsamplingNearest2d = {}

--- `(padding)` 
---@class tycho.nn.ZeroPad1d: tycho.nn.Module
---@overload fun(padding?: any): tycho.nn.ZeroPad1d
tycho.nn.ZeroPad1d = {}

--- `(padding)` 
---@class tycho.nn.ZeroPad2d: tycho.nn.Module
---@overload fun(padding?: any): tycho.nn.ZeroPad2d
tycho.nn.ZeroPad2d = {}

--- `(padding)` 
---@class tycho.nn.ZeroPad3d: tycho.nn.Module
---@overload fun(padding?: any): tycho.nn.ZeroPad3d
tycho.nn.ZeroPad3d = {}

tycho.nn.parallel = {}
--- `(module, {bucket_cap_mb=25, broadcast_buffers=true, find_unused_parameters=false, overlap=true, process_group=})` the module, whose gradients after backward are the means over all processes; each process has its own share of the data. broadcast_buffers: each forward in training begins with rank 0's buffers. find_unused_parameters: for a forward that doesn't use all parameters each time. overlap = false: gradients stay this process's own until reduce_gradients() is called, which a compiled step can do (not with find_unused_parameters, which asks all processes each time). PyTorch's gradient_as_bucket_view and static_graph are taken, and change nothing.
---@class tycho.nn.parallel.DistributedDataParallel: tycho.nn.Module
---@overload fun(module?: any, options?: any): tycho.nn.parallel.DistributedDataParallel
tycho.nn.parallel.DistributedDataParallel = {}

tycho.optim = {}
tycho.optim.swa_utils = {}
--- `(model, {device=, decay=, avg_fn=, multi_avg_fn=, use_buffers=false})` a copy of the model, in .module, which it runs, on the model's device unless given. Its parameters are averages: exponential with decay, by the user's function if given, else the mean of all updates (stochastic weight averaging, Izmailov et al. 2018). use_buffers: floating buffers are averaged too; others are copied.
---@class tycho.optim.swa_utils.AveragedModel: tycho.nn.Module
---@overload fun(model?: any, options?: any): tycho.optim.swa_utils.AveragedModel
tycho.optim.swa_utils.AveragedModel = {}

tycho.vision = {}
tycho.vision.ops = {}
--- `(output_size, spatial_scale, sampling_ratio, aligned=false)` roi_align as a layer, called with pictures and boxes.
---@class tycho.vision.ops.RoIAlign: tycho.nn.Module
---@overload fun(output_size?: any, spatial_scale?: any, sampling_ratio?: any, aligned?: any): tycho.vision.ops.RoIAlign
tycho.vision.ops.RoIAlign = {}

--- `(output_size, spatial_scale, sampling_ratio)` ps_roi_align as a layer, called with pictures and boxes.
---@class tycho.vision.ops.PSRoIAlign: tycho.nn.Module
---@overload fun(output_size?: any, spatial_scale?: any, sampling_ratio?: any): tycho.vision.ops.PSRoIAlign
tycho.vision.ops.PSRoIAlign = {}

--- `(output_size, spatial_scale)` roi_pool as a layer, called with pictures and boxes.
---@class tycho.vision.ops.RoIPool: tycho.nn.Module
---@overload fun(output_size?: any, spatial_scale?: any): tycho.vision.ops.RoIPool
tycho.vision.ops.RoIPool = {}

--- `(featmap_names, output_size, sampling_ratio, {canonical_scale=224, canonical_level=4})` roi_align of each box on the level of a pyramid that fits its size (Lin et al. 2017): one of canonical_scale pixels on canonical_level, one half as large on the next finer level; level l is the features that are 2^l times smaller than the pictures. Called with features, boxes (a list with a matrix (L, 4) for each picture, in the pictures' pixels) and the pictures' sizes (a list of {height, width}); featmap_names lists the fields of the features that are used, finest first, as {1, 2, 3}. Gives (K, C, height, width) in the boxes' order. Waits for the GPU.
---@class tycho.vision.ops.MultiScaleRoIAlign: tycho.nn.Module
---@overload fun(featmap_names?: any, output_size?: any, sampling_ratio?: any, options?: any): tycho.vision.ops.MultiScaleRoIAlign
tycho.vision.ops.MultiScaleRoIAlign = {}

--- `(in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=true)` deform_conv2d as a layer, called with pictures, offset and mask (or nil).
---@class tycho.vision.ops.DeformConv2d: tycho.nn.Module
---@overload fun(in_channels?: any, out_channels?: any, kernel_size?: any, stride?: any, padding?: any, dilation?: any, groups?: any, bias?: any): tycho.vision.ops.DeformConv2d
tycho.vision.ops.DeformConv2d = {}

--- `(p, mode)` stochastic_depth as a layer, for residual branches.
---@class tycho.vision.ops.StochasticDepth: tycho.nn.Module
---@overload fun(p?: any, mode?: any): tycho.vision.ops.StochasticDepth
tycho.vision.ops.StochasticDepth = {}

--- `(dims)` permute as a layer.
---@class tycho.vision.ops.Permute: tycho.nn.Module
---@overload fun(dims?: any): tycho.vision.ops.Permute
tycho.vision.ops.Permute = {}

--- `(in_channels, out_channels, kernel_size=3, stride=1, padding=nil, groups=1, norm_layer=nn.BatchNorm2d, activation_layer=nn.ReLU, dilation=1, {bias=nil})` a convolution that keeps the size (unless padding is given), norm_layer(out_channels) and activation_layer(); false: none. bias: by default only without a norm. Conv3dNormActivation: of volumes.
---@class tycho.vision.ops.Conv2dNormActivation: tycho.nn.Module
---@overload fun(in_channels?: any, out_channels?: any, kernel_size?: any, stride?: any, padding?: any, groups?: any, norm_layer?: any, activation_layer?: any, dilation?: any, options?: any): tycho.vision.ops.Conv2dNormActivation
tycho.vision.ops.Conv2dNormActivation = {}

--- `(in_channels, out_channels, kernel_size=3, stride=1, padding=nil, groups=1, norm_layer=nn.BatchNorm2d, activation_layer=nn.ReLU, dilation=1, {bias=nil})` a convolution that keeps the size (unless padding is given), norm_layer(out_channels) and activation_layer(); false: none. bias: by default only without a norm. Conv3dNormActivation: of volumes.
---@class tycho.vision.ops.Conv3dNormActivation: tycho.nn.Module
---@overload fun(in_channels?: any, out_channels?: any, kernel_size?: any, stride?: any, padding?: any, groups?: any, norm_layer?: any, activation_layer?: any, dilation?: any, options?: any): tycho.vision.ops.Conv3dNormActivation
tycho.vision.ops.Conv3dNormActivation = {}

--- `(in_channels, hidden_channels, norm_layer=nil, activation_layer=nn.ReLU, inplace=nil, bias=true, dropout=0)` Linear layers to each of the sizes of the list hidden_channels, each but the last followed by norm_layer(size), activation_layer() and Dropout, the last by Dropout.
---@class tycho.vision.ops.MLP: tycho.nn.Module
---@overload fun(in_channels?: any, hidden_channels?: any, norm_layer?: any, activation_layer?: any, inplace?: any, bias?: any, dropout?: any): tycho.vision.ops.MLP
tycho.vision.ops.MLP = {}

--- `(input_channels, squeeze_channels, activation=nn.ReLU, scale_activation=nn.Sigmoid)` scales each channel by a function of all channels' means (Hu et al. 2018).
---@class tycho.vision.ops.SqueezeExcitation: tycho.nn.Module
---@overload fun(input_channels?: any, squeeze_channels?: any, activation?: any, scale_activation?: any): tycho.vision.ops.SqueezeExcitation
tycho.vision.ops.SqueezeExcitation = {}

--- `(num_features, eps=1e-5)` batch norm in evaluation, whatever the mode, whose statistics, weight and bias are buffers.
---@class tycho.vision.ops.FrozenBatchNorm2d: tycho.nn.Module
---@overload fun(num_features?: any, eps?: any): tycho.vision.ops.FrozenBatchNorm2d
tycho.vision.ops.FrozenBatchNorm2d = {}

--- one more level of a pyramid: every second pixel of the coarsest.
---@class tycho.vision.ops.LastLevelMaxPool: tycho.nn.Module
---@overload fun(): tycho.vision.ops.LastLevelMaxPool
tycho.vision.ops.LastLevelMaxPool = {}

--- `(in_channels, out_channels)` two more levels, by convolutions of stride 2 (Lin et al. 2017, RetinaNet): of the coarsest result if in_channels and out_channels are the same, else of the coarsest input.
---@class tycho.vision.ops.LastLevelP6P7: tycho.nn.Module
---@overload fun(in_channels?: any, out_channels?: any): tycho.vision.ops.LastLevelP6P7
tycho.vision.ops.LastLevelP6P7 = {}

--- `(in_channels_list, out_channels, extra_blocks=nil, norm_layer=nil)` brings features of several scales to out_channels, each with what the coarser ones know (Lin et al. 2017). Called with a list of features (N, C, H, W), finest first, whose channels are in_channels_list; gives such a list. extra_blocks(results, inputs): a module that adds levels, as LastLevelMaxPool().
---@class tycho.vision.ops.FeaturePyramidNetwork: tycho.nn.Module
---@overload fun(in_channels_list?: any, out_channels?: any, extra_blocks?: any, norm_layer?: any): tycho.vision.ops.FeaturePyramidNetwork
tycho.vision.ops.FeaturePyramidNetwork = {}

tycho.vision.models = {}
--- `(inplanes, planes, stride=1, downsample=nil, groups=1, base_width=64, dilation=1, norm_layer=nn.BatchNorm2d)` two 3x3 convolutions and what goes around them: x, or downsample(x). For ResNet.
---@class tycho.vision.models.BasicBlock: tycho.nn.Module
---@overload fun(inplanes?: any, planes?: any, stride?: any, downsample?: any, groups?: any, base_width?: any, dilation?: any, norm_layer?: any): tycho.vision.models.BasicBlock
tycho.vision.models.BasicBlock = {}

--- `(inplanes, planes, stride=1, downsample=nil, groups=1, base_width=64, dilation=1, norm_layer=nn.BatchNorm2d)` convolutions of 1x1, 3x3 and 1x1, the last to 4 * planes channels, and what goes around them. For ResNet.
---@class tycho.vision.models.Bottleneck: tycho.nn.Module
---@overload fun(inplanes?: any, planes?: any, stride?: any, downsample?: any, groups?: any, base_width?: any, dilation?: any, norm_layer?: any): tycho.vision.models.Bottleneck
tycho.vision.models.Bottleneck = {}

--- `(block, layers, num_classes=1000, zero_init_residual=false, groups=1, width_per_group=64, replace_stride_with_dilation=nil, norm_layer=nn.BatchNorm2d)` pictures (N, 3, H, W) give (N, num_classes). block: BasicBlock or Bottleneck; layers: how many of them each of the four stages has. zero_init_residual: blocks begin as the identity. replace_stride_with_dilation: for each of the last three stages whether it dilates instead of halving the size.
---@class tycho.vision.models.ResNet: tycho.nn.Module
---@overload fun(block?: any, layers?: any, num_classes?: any, zero_init_residual?: any, groups?: any, width_per_group?: any, replace_stride_with_dilation?: any, norm_layer?: any): tycho.vision.models.ResNet
tycho.vision.models.ResNet = {}

--- `(num_classes=1000, dropout=0.5)` pictures (N, 3, H, W) of 63x63 or more give (N, num_classes).
---@class tycho.vision.models.AlexNet: tycho.nn.Module
---@overload fun(num_classes?: any, dropout?: any): tycho.vision.models.AlexNet
tycho.vision.models.AlexNet = {}

--- `(channels, batch_norm=false, num_classes=1000, dropout=0.5)` pictures (N, 3, H, W) of 32x32 or more give (N, num_classes). channels: those of each 3x3 convolution, with "M" where the size is halved.
---@class tycho.vision.models.VGG: tycho.nn.Module
---@overload fun(channels?: any, batch_norm?: any, num_classes?: any, dropout?: any): tycho.vision.models.VGG
tycho.vision.models.VGG = {}

--- `(version="1_0", num_classes=1000, dropout=0.5)` pictures (N, 3, H, W) give (N, num_classes). version: "1_0" or "1_1", which halves sizes sooner.
---@class tycho.vision.models.SqueezeNet: tycho.nn.Module
---@overload fun(version?: any, num_classes?: any, dropout?: any): tycho.vision.models.SqueezeNet
tycho.vision.models.SqueezeNet = {}

--- `(growth_rate=32, block_config={6, 12, 24, 16}, num_init_features=64, bn_size=4, drop_rate=0, num_classes=1000)` pictures (N, 3, H, W) of 32x32 or more give (N, num_classes). growth_rate: the channels that each layer adds; block_config: the layers of each block; bn_size: how many times growth_rate channels the 3x3 convolutions read.
---@class tycho.vision.models.DenseNet: tycho.nn.Module
---@overload fun(growth_rate?: any, block_config?: any, num_init_features?: any, bn_size?: any, drop_rate?: any, num_classes?: any): tycho.vision.models.DenseNet
tycho.vision.models.DenseNet = {}

--- `(num_classes=1000, width_mult=1, dropout=0.2, norm_layer=nn.BatchNorm2d)` pictures (N, 3, H, W) give (N, num_classes). width_mult multiplies the channels, which stay multiples of 8.
---@class tycho.vision.models.MobileNetV2: tycho.nn.Module
---@overload fun(num_classes?: any, width_mult?: any, dropout?: any, norm_layer?: any): tycho.vision.models.MobileNetV2
tycho.vision.models.MobileNetV2 = {}

--- `(blocks, last_channel, num_classes=1000, width_mult=1, dropout=0.2, norm_layer=nil, reduced_tail=false, dilated=false)` pictures (N, 3, H, W) give (N, num_classes). blocks: a list of {kernel, expanded channels, channels, "SE" or "", "RE" or "HS", stride}; of the last three, reduced_tail halves the channels, and dilated keeps the size. norm_layer: by default nn.BatchNorm2d with eps 0.001, momentum 0.01.
---@class tycho.vision.models.MobileNetV3: tycho.nn.Module
---@overload fun(blocks?: any, last_channel?: any, num_classes?: any, width_mult?: any, dropout?: any, norm_layer?: any, reduced_tail?: any, dilated?: any): tycho.vision.models.MobileNetV3
tycho.vision.models.MobileNetV3 = {}

--- `(alpha, num_classes=1000, dropout=0.2)` pictures (N, 3, H, W) give (N, num_classes) (Tan et al. 2018, B1). alpha multiplies the channels, which stay multiples of 8.
---@class tycho.vision.models.MNASNet: tycho.nn.Module
---@overload fun(alpha?: any, num_classes?: any, dropout?: any): tycho.vision.models.MNASNet
tycho.vision.models.MNASNet = {}

--- `(stages, dropout, stochastic_depth_prob=0.2, num_classes=1000, norm_layer=nn.BatchNorm2d, last_channel=nil, width_mult=1, depth_mult=1)` pictures (N, 3, H, W) give (N, num_classes). stages: a list of {"mb" or "fused", expansion, kernel, stride, channels before, channels, blocks}, whose channels and blocks the last two arguments multiply. stochastic_depth_prob: that of the last block's being left out. last_channel: the channels that the classifier reads, by default 4 times the last stage's.
---@class tycho.vision.models.EfficientNet: tycho.nn.Module
---@overload fun(stages?: any, dropout?: any, stochastic_depth_prob?: any, num_classes?: any, norm_layer?: any, last_channel?: any, width_mult?: any, depth_mult?: any): tycho.vision.models.EfficientNet
tycho.vision.models.EfficientNet = {}

--- `(num_classes=1000, aux_logits=true, transform_input=false, dropout=0.2, dropout_aux=0.7)` pictures (N, 3, H, W) give (N, num_classes); in training with aux_logits those of the second and of the first inner classifier, too. transform_input: pictures have ImageNet's means and deviations, and weights were trained on others; true where weights are given.
---@class tycho.vision.models.GoogLeNet: tycho.nn.Module
---@overload fun(num_classes?: any, aux_logits?: any, transform_input?: any, dropout?: any, dropout_aux?: any): tycho.vision.models.GoogLeNet
tycho.vision.models.GoogLeNet = {}

--- `(num_classes=1000, aux_logits=true, transform_input=false, dropout=0.5)` pictures (N, 3, H, W) of 75x75 or more, usually 299x299, give (N, num_classes); in training with aux_logits those of the inner classifier, too. transform_input: as GoogLeNet's.
---@class tycho.vision.models.Inception3: tycho.nn.Module
---@overload fun(num_classes?: any, aux_logits?: any, transform_input?: any, dropout?: any): tycho.vision.models.Inception3
tycho.vision.models.Inception3 = {}

--- `(stages_repeats, stages_out_channels, num_classes=1000)` pictures (N, 3, H, W) give (N, num_classes). The first is a list of the blocks of three stages, the second of the channels of the first layer, of the stages, and of the last convolution.
---@class tycho.vision.models.ShuffleNetV2: tycho.nn.Module
---@overload fun(stages_repeats?: any, stages_out_channels?: any, num_classes?: any): tycho.vision.models.ShuffleNetV2
tycho.vision.models.ShuffleNetV2 = {}

--- `(depth, w_0, w_a, w_m, group_width, se_ratio=nil, num_classes=1000, stem_width=32)` pictures (N, 3, H, W) give (N, num_classes). depth: how many blocks; w_0, w_a, w_m: their first width, its increase from block to block, and the ratio of two stages' widths; group_width: the channels of each group of the 3x3 convolutions; se_ratio: that of SqueezeExcitation's inner channels.
---@class tycho.vision.models.RegNet: tycho.nn.Module
---@overload fun(depth?: any, w_0?: any, w_a?: any, w_m?: any, group_width?: any, se_ratio?: any, num_classes?: any, stem_width?: any): tycho.vision.models.RegNet
tycho.vision.models.RegNet = {}

--- `(channels, depths, stochastic_depth_prob=0, layer_scale=1e-6, num_classes=1000)` pictures (N, 3, H, W) of 32x32 or more give (N, num_classes). channels, depths: the channels and the blocks of each stage, between which sizes are halved. stochastic_depth_prob: that of the last block's being left out; layer_scale: what blocks are multiplied by at first.
---@class tycho.vision.models.ConvNeXt: tycho.nn.Module
---@overload fun(channels?: any, depths?: any, stochastic_depth_prob?: any, layer_scale?: any, num_classes?: any): tycho.vision.models.ConvNeXt
tycho.vision.models.ConvNeXt = {}

--- `(image_size, patch_size, num_layers, num_heads, hidden_dim, mlp_dim, dropout=0, attention_dropout=0, num_classes=1000, representation_size=nil)` pictures (N, 3, image_size, image_size) give (N, num_classes). representation_size: the width of a layer with tanh before the last.
---@class tycho.vision.models.VisionTransformer: tycho.nn.Module
---@overload fun(image_size?: any, patch_size?: any, num_layers?: any, num_heads?: any, hidden_dim?: any, mlp_dim?: any, dropout?: any, attention_dropout?: any, num_classes?: any, representation_size?: any): tycho.vision.models.VisionTransformer
tycho.vision.models.VisionTransformer = {}

--- `(patch_size, embed_dim, depths, num_heads, window_size, mlp_ratio=4, dropout=0, attention_dropout=0, stochastic_depth_prob=0.1, num_classes=1000, version=1)` pictures (N, 3, H, W) give (N, num_classes). patch_size and window_size are {height, width}, of pixels and of patches; depths, num_heads: the blocks and the heads of each stage, between which sizes are halved. stochastic_depth_prob: that of the last block's being left out.
---@class tycho.vision.models.SwinTransformer: tycho.nn.Module
---@overload fun(patch_size?: any, embed_dim?: any, depths?: any, num_heads?: any, window_size?: any, mlp_ratio?: any, dropout?: any, attention_dropout?: any, stochastic_depth_prob?: any, num_classes?: any, version?: any): tycho.vision.models.SwinTransformer
tycho.vision.models.SwinTransformer = {}

--- the same memory without history: changes in place show in both
function Tensor:detach() end

--- the same memory without history: changes in place show in both
function tycho.detach() end

--- the number of dims
function Tensor:dim() end

--- the number of dims
function Tensor:ndimension() end

--- gives the memory back now, unless others share it; the tensor can't be used any more
function Tensor:free() end

--- whether it has been laid out channels-last: by contiguous, to, or a convolution of such
function Tensor:is_channels_last() end

--- `(memory_format="contiguous")` whether the elements lie in order ("channels_last": with the channels side by side)
---@param memory_format? any
function Tensor:is_contiguous(memory_format) end

--- the element of a tensor that has one, as a Lua number (exact to 2^53) or boolean; a GPU is waited for
function Tensor:item() end

--- the number of elements
function Tensor:numel() end

--- the number of elements
function tycho.numel() end

--- the number of elements
function Tensor:nelement() end

--- `(requires_grad=true)` sets whether a leaf collects a gradient; gives the tensor
---@param requires_grad? any
function Tensor:requires_grad_(requires_grad) end

--- `(other)` whether both lie in one storage
---@param other any
function Tensor:shares_memory(other) end

--- `(dim=)` one dim's size or, without dim, all of them, as x.shape
---@param dim? any
function Tensor:size(dim) end

--- `(dim=)` the step from an element to the next along a dim or, without dim, a list of all; in elements
---@param dim? any
function Tensor:stride(dim) end

--- the elements as nested lists of Lua numbers or booleans; a GPU is waited for
function Tensor:totable() end

--- the elements as nested lists of Lua numbers or booleans; a GPU is waited for
function Tensor:tolist() end

--- `(value, *, dtype:dtype?, device:device?, requires_grad:bool=false, pin_memory:bool=false)` A new tensor, without history, from a number, a boolean, nested lists of these, or a copy of a tensor. dtype: float32 unless given, "bool" for booleans, its own for a tensor. The lists must be of one length at each depth; a list of 0-dim tensors counts as numbers.
---@param value any
---@param options? table
function tycho.tensor(value, options) end

--- `(value, *, dtype:dtype?, device:device?)` As tensor, but a tensor that has that dtype and device already is given back itself, with its history.
---@param value any
---@param options? table
function tycho.as_tensor(value, options) end

--- `(dim)` for i, row in x:iter(dim) do: the slices along a dim (1 unless given), each a view.
---@param dim any
function Tensor:iter(dim) end

--- A text that describes a tensor: dtype, shape, device, strides, bytes; least and largest element, mean and std of those that aren't NaN or infinite, and how many are. It waits for the GPU.
function Tensor:describe() end

--- `(fn, ...)` as no_grad. inference_mode(false, fn, ...) only calls fn.
---@param fn any
function tycho.inference_mode(fn, ...) end

--- whether ops are recorded for backward at this point.
function tycho.is_grad_enabled() end

--- `(on)` turns recording on or off from here on, in this coroutine. set_grad_enabled(on, fn, ...): only while fn runs.
---@param on any
function tycho.set_grad_enabled(on) end

--- `(x)` the tensor outlives every scope; returns x.
---@param x any
function tycho.keep(x) end

--- `(value)` whether it is a tensor.
---@param value any
function tycho.is_tensor(value) end

--- `(seed)` seeds the random generators of the CPU and of all GPUs with a whole number from 0.
---@param seed any
function tycho.manual_seed(seed) end

--- The state of the CPU's random generator, for set_rng_state: a list of its seed and offset. For GPUs see tycho.cuda.get_rng_state.
function tycho.get_rng_state() end

--- `(state, offset)` Puts the CPU's random generator into a state that get_rng_state gave.
---@param state any
---@param offset any
function tycho.set_rng_state(state, offset) end

--- `({precision=4, threshold=1000, edgeitems=3, linewidth=80, sci_mode=, profile=})` how tensors are printed. sci_mode: scientific notation always (true), never (false), or "auto", as the numbers need it. profile: "default", "full" or "short" sets several options at once.
---@param options? table
function tycho.set_printoptions(options) end

--- `({sizes}, {sizes}, ...)` the common shape that tensors of these shapes broadcast to.
function tycho.broadcast_shapes(...) end

--- `(a, b)` The dtype that a + b would have: tensors, numbers, booleans.
---@param a any
---@param b any
function tycho.result_type(a, b) end

--- `(from, to)` Whether a value of dtype `from` can become one of dtype `to`, perhaps rounded: a float can't become an integer, nor an integer a boolean.
---@param from any
---@param to any
function tycho.can_cast(from, to) end

--- `(precision)` "highest": float32 products are full precision. "high", "medium": on GPUs operands may be rounded to TF32 (10 bits of mantissa), which is faster.
---@param precision any
function tycho.set_float32_matmul_precision(precision) end

--- "highest", or "high" where products may use TF32.
function tycho.get_float32_matmul_precision() end

--- The seed set by the last manual_seed, or at the start of the process.
function tycho.initial_seed() end

--- `(fn, ...)` Calls fn(...) and gives its results; afterwards restores the random generators of the CPU and the GPUs to their states before the call.
---@param fn any
function tycho.fork_rng(fn, ...) end

--- The dtype that creators use where none is given: always "float32". It can't be changed; creators take {dtype=}.
function tycho.get_default_dtype() end

--- The device that creators use where none is given: "cpu" at first; "cuda" means the GPU that is current at the time.
function tycho.get_default_device() end

--- `(device)` From now on creators, modules' parameters and tycho.load use this device where none is given: "cpu", "cuda", "cuda:1".
---@param device any
function tycho.set_default_device(device) end

--- `(name, index)` A device's name, checked: "cpu", "cuda"; device("cuda", 1) is "cuda:1".
---@param name any
---@param index any
function tycho.device(name, index) end

--- `(dtype)` What a floating dtype can hold: {bits=, eps=, max=, min=, tiny=, smallest_normal=, dtype=}.
---@param dtype any
function tycho.finfo(dtype) end

--- `(dtype)` What int32, int64 or uint8 can hold: {bits=, min=, max=, dtype=}; numbers are exact to 2^53.
---@param dtype any
function tycho.iinfo(dtype) end

--- `(on)` true: the same inputs give the same bits in every run, with which some GPU kernels are slower.
---@param on any
function tycho.use_deterministic_algorithms(on) end

--- `(err)` Whether err, what pcall gave, is an error for lack of memory, on a device or the host: then fewer items at a time may do.
---@param err any
function tycho.is_out_of_memory(err) end

--- Whether use_deterministic_algorithms(true) is in force.
function tycho.are_deterministic_algorithms_enabled() end

tycho.compiler = {}
--- Whether this is the call of a compiled function that is recorded, or compared with what was recorded.
function tycho.compiler.is_compiling() end

--- `(n)` how many threads CPU ops use, from 1; get_num_threads() tells. The default is OpenMP's (OMP_NUM_THREADS).
---@param n any
function tycho.set_num_threads(n) end

--- `(n)` how many threads CPU ops use, from 1; get_num_threads() tells. The default is OpenMP's (OMP_NUM_THREADS).
---@param n any
function tycho.get_num_threads(n) end

--- `(first:number, last:number, steps:int, base:number=10, *, dtype:dtype?, device:device?, requires_grad:bool=false)` steps numbers from base^first to base^last, their exponents evenly spaced.
---@param first number
---@param last number
---@param steps integer
---@param base? number|table
---@param options? table
function tycho.logspace(first, last, steps, base, options) end

--- `(x)` Random counts from Poisson distributions whose rates are x's elements, in x's shape and dtype.
---@param x any
function tycho.poisson(x) end

--- `(count, prob)` Random numbers of successes in count trials, each of probability prob: floating tensors of one shape.
---@param count any
---@param prob any
function tycho.binomial(count, prob) end

--- `(ptr, {sizes}, {dtype=})` a CPU tensor over the memory of an FFI array or pointer of numbers, which the tensor keeps alive. Nothing is copied: changes show on both sides. dtype follows from the element type (void *: float32, bytes: uint8; an unsigned 16-bit type is float16), and may be another one of the same width. An array that is too small for the sizes is an error; a pointer's end can't be checked.
---@param ptr any
---@param options? table
function tycho.from_ffi(ptr, options) end

--- A void * to the first element, also in device memory: for libraries called through the FFI. That cdata keeps the memory alive; a pointer computed from it doesn't.
function Tensor:data_ptr() end

--- an FFI pointer (float *, int64_t *, ...; 16-bit floats are uint16_t) to the elements of a contiguous CPU tensor, for loops that LuaJIT compiles; its indices begin at 0. That cdata keeps the memory alive; a pointer computed from it doesn't. PyTorch's x.data, without a call, is an error. LuaJIT doesn't check the values that it reads this way: a NaN with unusual bits, as unwritten memory or a file may hold, becomes another Lua value, and may crash. totable() and item() do check.
function Tensor:data() end

--- The bytes of an element.
function Tensor:element_size() end

--- As to() with that dtype; a tensor that has it already is returned itself.
function Tensor:bfloat16() end

--- As to() with that dtype; a tensor that has it already is returned itself.
function Tensor:bool() end

--- As to() with that dtype; a tensor that has it already is returned itself.
function Tensor:byte() end

--- As to() with that dtype; a tensor that has it already is returned itself.
function Tensor:double() end

--- As to() with that dtype; a tensor that has it already is returned itself.
function Tensor:float() end

--- As to() with that dtype; a tensor that has it already is returned itself.
function Tensor:half() end

--- As to() with that dtype; a tensor that has it already is returned itself.
function Tensor:int() end

--- As to() with that dtype; a tensor that has it already is returned itself.
function Tensor:long() end

--- As x:to("cpu"): returns x itself if it is there already, else waits for the GPU.
function Tensor:cpu() end

--- `(gpu, {non_blocking=false})` moved to that GPU, a number from 0 or "cuda:0", or by default to the current one.
---@param gpu any
---@param options? table
function Tensor:cuda(gpu, options) end

--- A copy in pinned memory, from which a GPU copies without blocking the host. Without a GPU it is x itself.
function Tensor:pin_memory() end

--- `(x)` Whether the dtype is a floating-point one.
---@param x any
function tycho.is_floating_point(x) end

--- `(x)` Whether the dtype is a floating-point one.
---@param x any
function Tensor:is_floating_point(x) end

--- The number of the tensor's GPU; -1: it is on the CPU.
function Tensor:get_device() end

--- Whether the tensor is in pinned memory.
function Tensor:is_pinned() end

--- The bytes of all elements.
function Tensor:nbytes() end

--- Does nothing: the allocator itself keeps track of streams that use memory.
function Tensor:record_stream() end

--- `(other)` Converts to the other tensor's dtype and device.
---@param other any
function Tensor:type_as(other) end

--- `(x)` Sets all elements to 0.
---@param x any
function tycho.zero_(x) end

--- `(x)` Sets all elements to 0.
---@param x any
function Tensor:zero_(x) end

--- `(sizes, {dtype=, device=, requires_grad=})` as zeros, ones and empty, by default with x's dtype and device.
---@param sizes any
---@param options? table
function Tensor:new_empty(sizes, options) end

--- `(sizes, {dtype=, device=, requires_grad=})` as zeros, ones and empty, by default with x's dtype and device.
---@param sizes any
---@param options? table
function Tensor:new_ones(sizes, options) end

--- `(sizes, {dtype=, device=, requires_grad=})` as zeros, ones and empty, by default with x's dtype and device.
---@param sizes any
---@param options? table
function Tensor:new_zeros(sizes, options) end

--- `(sizes, value, {dtype=, device=, requires_grad=})` as full, by default with x's dtype and device.
---@param sizes any
---@param value any
---@param options? table
function Tensor:new_full(sizes, value, options) end

--- `(value, {dtype=, device=, requires_grad=})` as tensor(value), by default with x's dtype and device.
---@param value any
---@param options? table
function Tensor:new_tensor(value, options) end

--- `(other)` reshape to the other tensor's shape.
---@param other any
function Tensor:reshape_as(other) end

--- `(mean=1, std=2)` in place, e to the power of draws from a normal distribution of this mean and deviation.
---@param mean? any
---@param std? any
function Tensor:log_normal_(mean, std) end

--- `(median=0, sigma=1)` in place, draws from a Cauchy distribution.
---@param median? any
---@param sigma? any
function Tensor:cauchy_(median, sigma) end

--- `(p)` in place, the number of trials of probability p (0 < p < 1) up to the first success: whole numbers from 1.
---@param p any
function Tensor:geometric_(p) end

--- `(low, high)` in place, whole numbers from low to high, both included; random_(high) from 0; random_() up to the largest for which the dtype holds all whole numbers.
---@param low any
---@param high any
function tycho.random_(low, high) end

--- `(low, high)` in place, whole numbers from low to high, both included; random_(high) from 0; random_() up to the largest for which the dtype holds all whole numbers.
---@param low any
---@param high any
function Tensor:random_(low, high) end

--- `(other)` Whether both have the same shape.
---@param other any
function Tensor:is_same_size(other) end

--- `(sections)` a list of parts along dim 2 (of a vector 1); vsplit along dim 1, dsplit along dim 3. sections: the number of parts, or a list of the positions before which to cut. As tensor_split.
---@param sections any
function tycho.dsplit(sections) end

--- `(sections)` a list of parts along dim 2 (of a vector 1); vsplit along dim 1, dsplit along dim 3. sections: the number of parts, or a list of the positions before which to cut. As tensor_split.
---@param sections any
function tycho.hsplit(sections) end

--- `(sections)` a list of parts along dim 2 (of a vector 1); vsplit along dim 1, dsplit along dim 3. sections: the number of parts, or a list of the positions before which to cut. As tensor_split.
---@param sections any
function tycho.vsplit(sections) end

--- `(sections)` a list of parts along dim 2 (of a vector 1); vsplit along dim 1, dsplit along dim 3. sections: the number of parts, or a list of the positions before which to cut. As tensor_split.
---@param sections any
function Tensor:dsplit(sections) end

--- `(sections)` a list of parts along dim 2 (of a vector 1); vsplit along dim 1, dsplit along dim 3. sections: the number of parts, or a list of the positions before which to cut. As tensor_split.
---@param sections any
function Tensor:hsplit(sections) end

--- `(sections)` a list of parts along dim 2 (of a vector 1); vsplit along dim 1, dsplit along dim 3. sections: the number of parts, or a list of the positions before which to cut. As tensor_split.
---@param sections any
function Tensor:vsplit(sections) end

--- `(value, wrap=false)` in place. For more than 2 dims, of equal size: the elements whose indices are all equal. wrap: in a matrix with more rows than columns the diagonal restarts after one further row.
---@param value any
---@param wrap? any
function Tensor:fill_diagonal_(value, wrap) end

--- `(fn, ...)` Calls fn(...) and gives its results. Tensors made meanwhile are released when it ends, and their memory with them, except the results, also in tables, and those that keep() was called for; a later use of a released tensor is an error. For loops over large tensors, which would otherwise wait for the collector.
---@param fn any
function tycho.scope(fn, ...) end

--- `(fn, ...)` calls fn(...) without recording ops for backward, and gives its results; enable_grad with recording. fn may be a module. Afterwards, even if fn errs, the previous mode is restored; it belongs to the running coroutine.
---@param fn any
function tycho.no_grad(fn, ...) end

--- `(fn, ...)` calls fn(...) without recording ops for backward, and gives its results; enable_grad with recording. fn may be a module. Afterwards, even if fn errs, the previous mode is restored; it belongs to the running coroutine.
---@param fn any
function tycho.enable_grad(fn, ...) end

--- `(a, b)` The dtype that an op gives for operands of these two dtypes.
---@param a any
---@param b any
function tycho.promote_types(a, b) end

tycho.backends = {}
tycho.backends.cudnn = {}
--- cuDNN's version as a number, 91900 for 9.19; nil without a GPU.
function tycho.backends.cudnn.version() end

--- Whether there is a GPU; if not, false and the reason.
function tycho.backends.cudnn.is_available() end

--- `(switches, fn, ...)` calls fn(...) with these switches, a table {benchmark=, deterministic=, allow_tf32=}, and gives its results.
---@param switches any
---@param fn any
function tycho.backends.cudnn.flags(switches, fn, ...) end

tycho.backends.cuda = {}
--- Whether scaled_dot_product_attention may go that way (see nn.attention.SDPBackend).
function tycho.backends.cuda.cudnn_sdp_enabled() end

--- Whether scaled_dot_product_attention may go that way (see nn.attention.SDPBackend).
function tycho.backends.cuda.flash_sdp_enabled() end

--- Whether scaled_dot_product_attention may go that way (see nn.attention.SDPBackend).
function tycho.backends.cuda.math_sdp_enabled() end

--- Whether scaled_dot_product_attention may go that way (see nn.attention.SDPBackend).
function tycho.backends.cuda.mem_efficient_sdp_enabled() end

--- `(on)` Sets whether scaled_dot_product_attention may go that way, a boolean.
---@param on any
function tycho.backends.cuda.enable_cudnn_sdp(on) end

--- `(on)` Sets whether scaled_dot_product_attention may go that way, a boolean.
---@param on any
function tycho.backends.cuda.enable_flash_sdp(on) end

--- `(on)` Sets whether scaled_dot_product_attention may go that way, a boolean.
---@param on any
function tycho.backends.cuda.enable_math_sdp(on) end

--- `(on)` Sets whether scaled_dot_product_attention may go that way, a boolean.
---@param on any
function tycho.backends.cuda.enable_mem_efficient_sdp(on) end

tycho.backends.mps = {}
--- For programs that ask: there are no GPUs but CUDA's.
function tycho.backends.mps.is_available() end

--- For programs that ask: there are no GPUs but CUDA's.
function tycho.backends.mps.is_built() end

--- `(device="cpu")` a random generator separate from the device's. Functions that draw take it as {generator = g}: randn, uniform_, randperm, nn.init, random_split, DataLoader, samplers. After the same manual_seed it gives the same numbers as the device's own.
---@param device? any
---@return tycho.Generator
function tycho.Generator(device) end

--- `(fn, ...)` Calls fn(...), whose ops on the generator's device draw from this generator, and gives fn's results.
---@param fn any
function classes.Generator:draw(fn, ...) end

--- `(seed)` Restarts from a seed, a whole number from 0; returns the generator.
---@param seed any
function classes.Generator:manual_seed(seed) end

--- The generator's last seed.
function classes.Generator:initial_seed() end

--- Restarts from a seed taken from the system's clock, and returns the seed.
function classes.Generator:seed() end

--- The state for set_state: a list of seed and offset.
function classes.Generator:get_state() end

--- `(state)` Continues from a state that get_state gave; gives the generator.
---@param state any
function classes.Generator:set_state(state) end

--- A table with the generator's state, for checkpoints.
function classes.Generator:state_dict() end

--- `(d)` Continues from what state_dict gave.
---@param d any
function classes.Generator:load_state_dict(d) end

--- Another generator in the same state.
function classes.Generator:clone_state() end

--- `(grad=, retain_graph=create_graph, create_graph=false, inputs=)` computes the gradients of x with respect to the leaves that it was made from and adds them to their .grad. grad: the gradient of x itself, of its shape; it may be left out where x has one element. Afterwards the graph's saved tensors are released, unless retain_graph: a second backward that needs them is then an error. create_graph: the gradients have a graph of their own, for second derivatives; it holds the leaves, so set their .grad to nil (zero_grad) or use tycho.grad, or the memory is never freed. inputs: a tensor or a list, leaves or results; only these get gradients.
---@param grad? any
---@param retain_graph? any
---@param create_graph? any
---@param inputs? any
function Tensor:backward(grad, retain_graph, create_graph, inputs) end

tycho.autograd = {}
--- `(tensors, grad_tensors?, retain_graph?, create_graph:bool=false, *, inputs?)` backward for several tensors at once; grad_tensors: a gradient for each, false or nil for a tensor of one element.
---@param tensors any
---@param grad_tensors? any
---@param retain_graph? any
---@param create_graph? boolean|table
---@param options? table
function tycho.autograd.backward(tensors, grad_tensors, retain_graph, create_graph, options) end

--- `(outputs, inputs, grad_outputs?, retain_graph?, create_graph:bool=false, *, allow_unused:bool=false, materialize_grads:bool=false, only_inputs:bool=true, is_grads_batched:bool=false)` Returns the gradients of outputs with respect to inputs, and leaves .grad alone: a tensor for a tensor, a list for a list. grad_outputs: the gradients of the outputs, needed where an output has several elements. is_grads_batched: these have an additional first dim, and so have the results: one pass for each index of it. An input that wasn't used is an error; allow_unused: it gets nil; materialize_grads: zeros, as an input gets that was used, but that no gradient reaches (steps such as relu's second derivative).
---@param outputs any
---@param inputs any
---@param grad_outputs? any
---@param retain_graph? any
---@param create_graph? boolean|table
---@param options? table
function tycho.autograd.grad(outputs, inputs, grad_outputs, retain_graph, create_graph, options) end

--- `(outputs, inputs, grad_outputs?, retain_graph?, create_graph:bool=false, *, allow_unused:bool=false, materialize_grads:bool=false, only_inputs:bool=true, is_grads_batched:bool=false)` Returns the gradients of outputs with respect to inputs, and leaves .grad alone: a tensor for a tensor, a list for a list. grad_outputs: the gradients of the outputs, needed where an output has several elements. is_grads_batched: these have an additional first dim, and so have the results: one pass for each index of it. An input that wasn't used is an error; allow_unused: it gets nil; materialize_grads: zeros, as an input gets that was used, but that no gradient reaches (steps such as relu's second derivative).
---@param outputs any
---@param inputs any
---@param grad_outputs? any
---@param retain_graph? any
---@param create_graph? boolean|table
---@param options? table
function tycho.grad(outputs, inputs, grad_outputs, retain_graph, create_graph, options) end

--- `(fn)` fn(grad) is called in backward when this tensor's gradient is complete; a value other than nil that it returns replaces the gradient. Gives a handle with remove().
---@param fn any
function Tensor:register_hook(fn) end

--- `(fn)` fn(leaf) is called after backward has added to this leaf's .grad: an optimizer can step at once, and drop the gradient. Gives a handle with remove().
---@param fn any
function Tensor:register_post_accumulate_grad_hook(fn) end

--- backward also puts this result's gradient into its .grad, as for a leaf.
function Tensor:retain_grad() end

tycho.autograd.graph = {}
--- `(tensors, fn, {mode="all"})` "all": fn(grads, n) is called in backward when each of the n tensors that requires grad has got its gradient; grads: a table with these at the tensors' places. "any": fn(grad) is called with the first gradient of a backward. Gives a handle with remove(). A backward that reaches a part of the tensors doesn't call fn in mode "all".
---@param tensors any
---@param fn any
---@param options? table
function tycho.autograd.graph.register_multi_grad_hook(tensors, fn, options) end

--- `(pack, unpack, fn, ...)` Calls fn(...) and gives its results. For each tensor that ops save for backward meanwhile, pack(tensor) returns a value that is kept instead; in backward unpack(value) returns the tensor, of the same shape, dtype and device. Both run without recording, and fn isn't compiled. An in-place op saves its result as it is. Of nested saved_tensors_hooks only the innermost counts. Tensors that pack returns, also in a table, outlive every scope.
---@param pack any
---@param unpack any
---@param fn any
function tycho.autograd.graph.saved_tensors_hooks(pack, unpack, fn, ...) end

--- `({pin_memory=true}, fn, ...)` calls fn(...) and gives its results; tensors that GPU ops save for backward meanwhile are moved to the CPU, into pinned memory unless pin_memory = false, and copied back when backward needs them, so that they occupy GPU memory only while they are copied. Leaves stay where they are. The options may be left out.
---@param fn any
function tycho.autograd.graph.save_on_cpu(fn, ...) end

--- `(x, ...)` in forward: keeps tensors among its arguments and results for backward, where saved_tensors() returns them.
---@param x any
function classes.ctx:save_for_backward(x, ...) end

--- What save_for_backward was given, as several values. A tensor that was changed in place since is an error.
function classes.ctx:saved_tensors() end

--- `(y, ...)` in forward: these results, such as indices, carry no gradient.
---@param y any
function classes.ctx:mark_non_differentiable(y, ...) end

--- `(x, ...)` in forward: these arguments, which it returns, were changed in place; they get the new history.
---@param x any
function classes.ctx:mark_dirty(x, ...) end

--- `(on)` false: for a result that nothing used, backward gets nil instead of zeros.
---@param on any
function classes.ctx:set_materialize_grads(on) end

--- `({forward = function(ctx, ...), backward = function(ctx, g, ...)})` an op of the user's, which is called as F(x) or F.apply(x). forward runs without recording; backward gets a gradient for each result and returns one, or nil, for each argument of forward. With a third function setup_context(ctx, inputs, output), forward is called without ctx. ctx.needs_input_grad[i]: whether argument i needs a gradient. PyTorch's jvp, vmap and generate_vmap_rule may be there, and aren't called: func.jvp and vmap follow from these two. Within vmap both are called with one example's tensors, which are held by save_for_backward or a field of ctx, and mark_dirty is an error.
---@param options? table
function tycho.autograd.Function(options) end

--- `(backward)` an autograd.Function's backward that computes without recording, for code that can't be differentiated itself, such as a kernel of the program's own. Gradients of its gradients, with respect to what came to it or was saved by save_for_backward, are an error instead of being silently zero.
---@param backward any
function tycho.autograd.once_differentiable(backward) end

--- `(on)` true: a gradient that contains NaN is an error, which names the op that made it and the line of the program that called that op. Compiled functions run uncompiled meanwhile. Slow: for debugging. The mode belongs to the running coroutine.
---@param on any
function tycho.autograd.set_detect_anomaly(on) end

--- Whether set_detect_anomaly(true) is in force here.
function tycho.autograd.is_anomaly_enabled() end

--- `(fn, ...)` Calls fn(...) with set_detect_anomaly(true), and gives its results.
---@param fn any
function tycho.autograd.detect_anomaly(fn, ...) end

--- `(fn, inputs, eps=1e-6, atol=1e-5, rtol=1e-3, raise_exception=true, nondet_tol=0)` compares the gradients of fn's results with central differences of step eps, for the float64 inputs that require grad. Returns true; at the first difference it raises an error that shows it, or without raise_exception returns false.
---@param fn any
---@param inputs any
---@param eps? any
---@param atol? any
---@param rtol? any
---@param raise_exception? any
---@param nondet_tol? any
function tycho.autograd.gradcheck(fn, inputs, eps, atol, rtol, raise_exception, nondet_tol) end

--- `(fn, inputs, grad_outputs, eps=1e-6, atol=1e-5, rtol=1e-3, raise_exception=true, nondet_tol=0)` the same for the gradients of fn's results, as functions of the inputs and of the incoming gradients grad_outputs (nil: fixed numbers), one for each float64 result.
---@param fn any
---@param inputs any
---@param grad_outputs any
---@param eps? any
---@param atol? any
---@param rtol? any
---@param raise_exception? any
---@param nondet_tol? any
function tycho.autograd.gradgradcheck(fn, inputs, grad_outputs, eps, atol, rtol, raise_exception, nondet_tol) end

tycho.autograd.functional = {}
--- `(fn, inputs, {create_graph=false})` for each result of fn and each input a tensor with the result's dims, then the input's. inputs: a tensor, or a list of fn's arguments; lists are returned for lists, and for several results. create_graph: the results have a history that leads to the inputs. captured, used by func.lua: also keep a history that leads to tensors captured by fn.
---@param fn any
---@param inputs any
---@param options? table
function tycho.autograd.functional.jacobian(fn, inputs, options) end

--- `(fn, inputs, {create_graph=false})` the second derivatives of a function whose result is one number: a tensor with the input's dims twice; for a list of inputs a list of lists.
---@param fn any
---@param inputs any
---@param options? table
function tycho.autograd.functional.hessian(fn, inputs, options) end

--- `(fn, inputs, v, {create_graph=false})` fn's results, and v, which has the results' shapes, times the Jacobian.
---@param fn any
---@param inputs any
---@param v any
---@param options? table
function tycho.autograd.functional.vjp(fn, inputs, v, options) end

--- `(fn, inputs, v, {create_graph=false})` fn's results, and the Jacobian times v, which has the inputs' shapes. Computed as the gradient of a gradient.
---@param fn any
---@param inputs any
---@param v any
---@param options? table
function tycho.autograd.functional.jvp(fn, inputs, v, options) end

--- `(fn, inputs, v, {create_graph=false})` fn's result, one number, and its Hessian times v, which has the inputs' shapes. vhp is the same, since the Hessian is symmetric.
---@param fn any
---@param inputs any
---@param v any
---@param options? table
function tycho.autograd.functional.hvp(fn, inputs, v, options) end

--- `(fn, inputs, v, {create_graph=false})` fn's result, one number, and its Hessian times v, which has the inputs' shapes. vhp is the same, since the Hessian is symmetric.
---@param fn any
---@param inputs any
---@param v any
---@param options? table
function tycho.autograd.functional.vhp(fn, inputs, v, options) end

tycho.utils = {}
--- `(fn, ...)` calls fn(...), whose intermediate values aren't kept for backward; backward runs fn again, with the same random numbers and autocast. Options, in a table after all arguments: save = {"linear", "attention"} keeps results of these ops (by the names that a profile shows) all the same, so that backward needn't compute them again: PyTorch's selective checkpoints. Not those of ops that draw random numbers, and not those of a checkpoint within, which has a list of its own. preserve_rng_state = false draws other random numbers. PyTorch's use_reentrant, determinism_check, early_stop and debug may stand there, too, without effect: results of another shape are always an error. Within vmap nothing is computed again: all values are kept.
---@param fn any
function tycho.utils.checkpoint(fn, ...) end

--- `(functions, segments, input)` runs the functions (a Sequential, or a list of functions and modules) one after another, in so many parts, each recomputed by itself. Options as checkpoint's.
---@param functions any
---@param segments any
---@param input any
function tycho.utils.checkpoint_sequential(functions, segments, input) end

tycho.func = {}
--- `(net, tensors, ...)` the result of net(...) with these tensors in place of its parameters and buffers, named as in its state dict, in a table or a list of such tables; others stay. A parameter in several places is replaced in all of them, and two tensors for it are an error. Gradients flow to the tensors given; the module is restored when forward ends, or errs. If forward yields, other coroutines can't replace the same module's meanwhile; its coroutine must be resumed to its end, and one that forward resumes must leave its own functional_call of the module first. PyTorch's options, in a table after all arguments: strict = true: all must be given; tie_weights = false: only the named place is replaced.
---@param net any
---@param tensors any
function tycho.func.functional_call(net, tensors, ...) end

--- `(fn, argnums=1, {has_aux=})` a function of fn's arguments that gives the gradient of fn's first result, one number, with respect to argument argnums (a list of numbers: as many gradients), then fn's further results, with PyTorch's has_aux or without.
---@param fn any
---@param argnums? any
---@param options? table
function tycho.func.grad(fn, argnums, options) end

--- `(fn, argnums=1, {has_aux=})` as grad; the value follows the gradients, then fn's further results.
---@param fn any
---@param argnums? any
---@param options? table
function tycho.func.grad_and_value(fn, argnums, options) end

--- `(fn, ..., {has_aux=false})` fn's results for these arguments, tensors or tables of tensors, and last a function that takes a weight for each result, of the same structure, and gives the arguments' gradients. has_aux: fn's first result, that function, then fn's further results, which have no gradients.
---@param fn any
function tycho.func.vjp(fn, ...) end

--- `(fn, primals, tangents, {has_aux=false})` fn's result for a list of arguments, tensors or tables of tensors, and its derivative along a list of directions of the same structure; lists of them for several results. A result may be a table of tensors too. has_aux: fn's further results follow, and have no derivative.
---@param fn any
---@param primals any
---@param tangents any
---@param options? table
function tycho.func.jvp(fn, primals, tangents, options) end

--- `(fn, ...)` fn's results for these arguments, tensors or tables of tensors, and last a function that takes a direction for each argument and gives the results' derivatives along them: jvp for many directions at one point, for which fn is called once.
---@param fn any
function tycho.func.linearize(fn, ...) end

--- `(fn, argnums=1, {has_aux=false, chunk_size=})` a function of fn's arguments that gives the Jacobian of fn's result with respect to argument argnums: a tensor; for a table of tensors a table alike; for a list of numbers as many. For a result that is a table, such a table of Jacobians; for several results a list. has_aux: fn's further results follow, and have no Jacobian. Rows are computed one by one, in the least memory, so chunk_size changes nothing.
---@param fn any
---@param argnums? any
---@param options? table
function tycho.func.jacrev(fn, argnums, options) end

--- `(fn, argnums=1, {has_aux=false, chunk_size=, randomness=})` as jacrev, and computed the same way.
---@param fn any
---@param argnums? any
---@param options? table
function tycho.func.jacfwd(fn, argnums, options) end

--- `(fn, argnums=1)` a function of fn's arguments that gives the second derivatives of fn's result with respect to that argument: a tensor with the argument's dims twice, after the result's dims if that isn't one number; for tables and lists of numbers, nested tables.
---@param fn any
---@param argnums? any
function tycho.func.hessian(fn, argnums) end

--- `(models)` the parameters of modules of one kind, stacked by name, as new leaves, and their buffers: two tables, for vmap of functional_call over an ensemble.
---@param models any
function tycho.func.stack_module_state(models) end

--- `(root)` makes the batch norms in a module keep no running statistics and use the batch's also in evaluation: so calls write nothing, which vmap requires of what it doesn't map. Gives root. An error if root isn't a module.
---@param root any
function tycho.func.replace_all_batch_norm_modules_(root) end

--- `(fn, in_dims=1, out_dims=1, {randomness="error", chunk_size})` a function of fn's arguments with an additional dim, that of the examples, which gives fn's results for all of them; fn sees one example's shapes. in_dims: that dim in all tensors of the arguments; or a list with a number for each argument, false for arguments that are the same for all examples, a table of such for a table of tensors. out_dims: that dim in the results; false for results that don't differ. fn can't read values (item, if x[1] > 0), nor write values that differ into tensors from outside. randomness: "different": each example draws its own numbers; "same": all get the same; "error". chunk_size: the number of examples computed at once, to save memory.
---@param fn any
---@param in_dims? any
---@param out_dims? any
---@param options? table
function tycho.func.vmap(fn, in_dims, out_dims, options) end

--- `(fn, in_dims=1, out_dims=1, {randomness="error", chunk_size})` a function of fn's arguments with an additional dim, that of the examples, which gives fn's results for all of them; fn sees one example's shapes. in_dims: that dim in all tensors of the arguments; or a list with a number for each argument, false for arguments that are the same for all examples, a table of such for a table of tensors. out_dims: that dim in the results; false for results that don't differ. fn can't read values (item, if x[1] > 0), nor write values that differ into tensors from outside. randomness: "different": each example draws its own numbers; "same": all get the same; "error". chunk_size: the number of examples computed at once, to save memory.
---@param fn any
---@param in_dims? any
---@param out_dims? any
---@param options? table
function tycho.vmap(fn, in_dims, out_dims, options) end

--- `(t, requires_grad=true)` t's memory as a leaf that requires grad; assigned to a module, it becomes one of its parameters.
---@param t any
---@param requires_grad? any
function tycho.nn.Parameter(t, requires_grad) end

--- `(t, {persistent=true})` t's memory as a tensor that becomes a buffer of the module it is assigned to; persistent = false: left out of state dicts.
---@param t any
---@param options? table
function tycho.nn.Buffer(t, options) end

--- `(fn, {prepend=false, with_kwargs=false, always_call=false})` fn(module, inputs, output, ...) is called after each forward; inputs is a list. A value other than nil that it returns replaces the results. prepend: runs before the existing hooks. with_kwargs: fn(module, inputs, options, output, ...), where options is the last argument if that is a table of names, else {}. always_call: it is also called when forward errs, without an output. Gives a handle with remove().
---@param fn any
---@param options? table
function tycho.nn.Module:register_forward_hook(fn, options) end

--- `(fn, {prepend=false})` fn(module, grad_inputs, grad_outputs) is called when backward has computed these gradients: lists by place, nil where there is none. A list that it returns replaces grad_inputs. Gives a handle with remove().
---@param fn any
---@param options? table
function tycho.nn.Module:register_full_backward_hook(fn, options) end

--- `(fn, {prepend=false})` fn(module, grad_outputs) is called when backward has these, before it goes through the module; a list that it returns replaces them. Gives a handle with remove().
---@param fn any
---@param options? table
function tycho.nn.Module:register_full_backward_pre_hook(fn, options) end

--- `(fn, {prepend=false, with_kwargs=false})` fn(module, inputs) is called before each forward; inputs is a list. A list, or a single input, that it returns replaces them. with_kwargs: fn(module, inputs, options), as above; it may return new ones of both. Gives a handle with remove().
---@param fn any
---@param options? table
function tycho.nn.Module:register_forward_pre_hook(fn, options) end

--- `(options)` from now on calls of this module go through tycho.compile, with its options, and so does their part of a backward pass; compiling the whole training step as one function is faster. A clone() isn't compiled. Gives the module. tycho.compile(net) instead leaves net as it is, and gives a module that stands in for it.
---@param options any
function tycho.nn.Module:compile(options) end

--- `(name)` A new class: local Net = nn.Module:extend("Net"), with methods Net:init(...) and Net:forward(...). Net(...) makes an instance: its init assigns modules, Parameters and buffers to self; net(...) runs forward. A program's class can be extended too, Deep = Net:extend("Deep"): Deep:init calls Net.init(self, ...) before it assigns anything.
---@param name any
function tycho.nn.Module:extend(name) end

--- `(name, tensor, {persistent=true})` a tensor that moves with the module and isn't trained; nil: only reserves the name. persistent = false: left out of state dicts.
---@param name any
---@param tensor any
---@param options? table
function tycho.nn.Module:register_buffer(name, tensor, options) end

--- `(name, value)` As self[name] = parameter; value: a Parameter, or nil, which only reserves the name.
---@param name any
---@param value any
function tycho.nn.Module:register_parameter(name, value) end

--- `(name, value)` As self[name] = module; gives the module that contains it.
---@param name any
---@param value any
function tycho.nn.Module:add_module(name, value) end

--- `(name, value)` As self[name] = module; gives the module that contains it.
---@param name any
---@param value any
function tycho.nn.Module:register_module(name, value) end

--- `(recurse=true)` a list of the parameters of the module and of those in it, each once, in the order of assignment; recurse = false: only its own.
---@param recurse? any
function tycho.nn.Module:parameters(recurse) end

--- `(prefix="", recurse=true, {remove_duplicate=true})` for name, p in net:named_parameters() do: names with dots, such as "layers.0.weight". remove_duplicate = false: a parameter in several places comes under each of its names.
---@param prefix? any
---@param recurse? any
---@param options? table
function tycho.nn.Module:named_parameters(prefix, recurse, options) end

--- `(recurse=true)` a list of the buffers, as parameters().
---@param recurse? any
function tycho.nn.Module:buffers(recurse) end

--- `(prefix="", recurse=true, {remove_duplicate=true})` for name, b in net:named_buffers() do.
---@param prefix? any
---@param recurse? any
---@param options? table
function tycho.nn.Module:named_buffers(prefix, recurse, options) end

--- A list: the module itself, and all modules within it, each once.
function tycho.nn.Module:modules() end

--- `(prefix="", {remove_duplicate=true})` for name, m in net:named_modules() do: the module itself under the name "", then all modules within it.
---@param prefix? any
---@param options? table
function tycho.nn.Module:named_modules(prefix, options) end

--- A list of the modules directly in this one, each once.
function tycho.nn.Module:children() end

--- for name, m in net:named_children() do: the modules directly in this one, each once.
function tycho.nn.Module:named_children() end

--- `(path, m)` Replaces the module at a path such as "layers.0".
---@param path any
---@param m any
function tycho.nn.Module:set_submodule(path, m) end

--- `(path)` The module at a path such as "layers.0"; "" is the module itself. An error if there is none.
---@param path any
function tycho.nn.Module:get_submodule(path) end

--- `(path)` The parameter at a path such as "layers.0.weight". An error if there is none.
---@param path any
function tycho.nn.Module:get_parameter(path) end

--- `(path)` The buffer at a path such as "norm.running_mean". An error if there is none.
---@param path any
function tycho.nn.Module:get_buffer(path) end

--- `(mode=true)` sets training mode for the module and all within it: dropout drops, batch norm uses the batch's statistics. Gives the module.
---@param mode? any
function tycho.nn.Module:train(mode) end

--- Evaluation mode: train(false). Gives the module.
function tycho.nn.Module:eval() end

--- `(fn)` Calls fn(module) for each module, children before the one they are in. Gives the module.
---@param fn any
function tycho.nn.Module:apply(fn) end

--- `({set_to_none=true})` the parameters' gradients become nil or, with set_to_none = false, zeros.
---@param options? table
function tycho.nn.Module:zero_grad(options) end

--- `(requires_grad=true)` whether the parameters collect gradients: net:requires_grad_(false) freezes them. Gives the module.
---@param requires_grad? any
function tycho.nn.Module:requires_grad_(requires_grad) end

--- `(v, class)` Whether v is a module of a class, such as nn.Linear, or of a class that extends it; given a list of classes, of one of them.
---@param v any
---@param class any
function tycho.nn.isinstance(v, class) end

--- `(v)` Whether v is a module.
---@param v any
function tycho.nn.is_module(v) end

--- A copy with memory of its own and without gradients: of parameters, buffers and modules (shared ones stay shared), and of tensors and tables in other fields; functions and objects with a metatable aren't copied.
function tycho.nn.Module:clone() end

--- `(fn, {prepend=false, with_kwargs=false, always_call=false})` as Module's register_forward_hook, for every module that there is and will be; called before a module's own. Gives a handle with remove().
---@param fn any
---@param options? table
function tycho.nn.register_module_forward_hook(fn, options) end

--- `(fn, {with_kwargs=false})` as Module's register_forward_pre_hook, for every module; called before a module's own. Gives a handle with remove().
---@param fn any
---@param options? table
function tycho.nn.register_module_forward_pre_hook(fn, options) end

--- `(fn)` as Module's register_full_backward_hook, for every module. Gives a handle with remove().
---@param fn any
function tycho.nn.register_module_full_backward_hook(fn) end

--- `(fn)` as Module's register_full_backward_pre_hook, for every module. Gives a handle with remove().
---@param fn any
function tycho.nn.register_module_full_backward_pre_hook(fn) end

--- `({prefix="", keep_vars=false})` a table of parameters and persistent buffers by name, sharing memory with the module. Names are PyTorch's: "0.weight" is seq[1]'s. The value of a module's get_extra_state() is included. prefix: put before all names; keep_vars: the parameters themselves, not detached.
---@param options? table
function tycho.nn.Module:state_dict(options) end

--- `(fn)` fn(module, prefix, keep_vars) is called before state_dict() reads the module, also as part of another module.
---@param fn any
function tycho.nn.Module:register_state_dict_pre_hook(fn) end

--- `(fn)` fn(module, state, prefix) is called after state_dict() has read the module; it may change the state.
---@param fn any
function tycho.nn.Module:register_state_dict_post_hook(fn) end

--- `(fn)` fn(module, state, prefix) is called before load_state_dict() checks a state; it may change that table, a copy of the one given.
---@param fn any
function tycho.nn.Module:register_load_state_dict_pre_hook(fn) end

--- `(fn)` fn(module, {missing_keys=, unexpected_keys=}) is called when everything has been loaded.
---@param fn any
function tycho.nn.Module:register_load_state_dict_post_hook(fn) end

--- `(state, {strict=true, assign=false})` copies the tensors of a state dict in. Everything is checked before anything changes, but for what a class's own set_extra_state refuses: it is called last. Missing or unexpected names are an error, unless strict = false. assign: the parameters and buffers take over the state's own tensors, memory and dtype. Gives the module and, with strict = false, the names that didn't fit: {missing_keys = names, unexpected_keys = names}.
---@param state any
---@param options? table
function tycho.nn.Module:load_state_dict(state, options) end

--- `(target, dtype, o)` to(dtype), to(device), to(tensor), to(device, dtype), or {device=, dtype=, non_blocking=false}: converts the floating parameters and buffers, or moves all of them, in place: handles and optimizers keep them. The state of an optimizer that has stepped isn't moved: move the model first. memory_format is accepted without effect: the library chooses the layout of filters. Gives the module.
---@param target any
---@param dtype any
---@param o any
function tycho.nn.Module:to(target, dtype, o) end

--- `(device)` to_empty(device), or {device=}: moves all parameters and buffers without their values, which are anything afterwards: for a state that is to be loaded. Gradients become nil. Gives the module.
---@param device any
function tycho.nn.Module:to_empty(device) end

--- As to("float16").
function tycho.nn.Module:half() end

--- As to("bfloat16").
function tycho.nn.Module:bfloat16() end

--- As to("float32").
function tycho.nn.Module:float() end

--- As to("float64").
function tycho.nn.Module:double() end

--- As to("cpu").
function tycho.nn.Module:cpu() end

--- `(gpu)` Moves to a GPU: a number from 0, a name, or by default the current one.
---@param gpu any
function tycho.nn.Module:cuda(gpu) end

--- `(m)` Appends a member; gives the list.
---@param m any
function tycho.nn.ModuleList:append(m) end

--- `(m)` Appends a member; gives the list.
---@param m any
function tycho.nn.Sequential:append(m) end

--- `({a, b})` appends the members of a list; gives the list. Called on a class, Sequential:extend("Name") makes a subclass, as for any module.
---@param options? table
function tycho.nn.ModuleList:extend(options) end

--- `({a, b})` appends the members of a list; gives the list. Called on a class, Sequential:extend("Name") makes a subclass, as for any module.
---@param options? table
function tycho.nn.ParameterList:extend(options) end

--- `({a, b})` appends the members of a list; gives the list. Called on a class, Sequential:extend("Name") makes a subclass, as for any module.
---@param options? table
function tycho.nn.Sequential:extend(options) end

--- `(at, m)` Adds a member before the one at a position, which counts from 1; gives the list.
---@param at any
---@param m any
function tycho.nn.ModuleList:insert(at, m) end

--- `(at, m)` Adds a member before the one at a position, which counts from 1; gives the list.
---@param at any
---@param m any
function tycho.nn.ParameterList:insert(at, m) end

--- `(at, m)` Adds a member before the one at a position, which counts from 1; gives the list.
---@param at any
---@param m any
function tycho.nn.Sequential:insert(at, m) end

--- `(at)` Removes the member at a position (the last one unless given), and returns it.
---@param at any
function tycho.nn.ModuleList:pop(at) end

--- `(at)` Removes the member at a position (the last one unless given), and returns it.
---@param at any
function tycho.nn.ParameterList:pop(at) end

--- `(at)` Removes the member at a position (the last one unless given), and returns it.
---@param at any
function tycho.nn.Sequential:pop(at) end

--- `(p)` Appends a parameter, or a tensor, which becomes one; gives the list.
---@param p any
function tycho.nn.ParameterList:append(p) end

--- `(weight, freeze=true, padding_idx=, max_norm=, norm_type=2, scale_grad_by_freq=false)` an Embedding over the memory of weight (num_embeddings, embedding_dim).
---@param weight any
---@param freeze? any
---@param padding_idx? any
---@param max_norm? any
---@param norm_type? any
---@param scale_grad_by_freq? any
function tycho.nn.Embedding:from_pretrained(weight, freeze, padding_idx, max_norm, norm_type, scale_grad_by_freq) end

--- `(x, output_size)` output_size, a list of sizes (or a whole shape, whose last sizes count), replaces output_padding
---@param x any
---@param output_size any
function tycho.nn.ConvTranspose1d:forward(x, output_size) end

--- `(x, output_size)` output_size, a list of sizes (or a whole shape, whose last sizes count), replaces output_padding
---@param x any
---@param output_size any
function tycho.nn.ConvTranspose2d:forward(x, output_size) end

--- `(x, output_size)` output_size, a list of sizes (or a whole shape, whose last sizes count), replaces output_padding
---@param x any
---@param output_size any
function tycho.nn.ConvTranspose3d:forward(x, output_size) end

--- Resets the running statistics: mean 0, variance 1.
function tycho.nn.BatchNorm1d:reset_running_stats() end

--- Resets the running statistics: mean 0, variance 1.
function tycho.nn.BatchNorm2d:reset_running_stats() end

--- Resets the running statistics: mean 0, variance 1.
function tycho.nn.BatchNorm3d:reset_running_stats() end

--- Resets the running statistics: mean 0, variance 1.
function tycho.nn.InstanceNorm1d:reset_running_stats() end

--- Resets the running statistics: mean 0, variance 1.
function tycho.nn.InstanceNorm2d:reset_running_stats() end

--- Resets the running statistics: mean 0, variance 1.
function tycho.nn.InstanceNorm3d:reset_running_stats() end

--- `(model, sizes, {dtype=})` a text table of the layers that forward runs, with the shapes of their results and their parameters. sizes: a list of a batch's sizes, as {1, 3, 32, 32}, or an input; or a list of these, one for each of forward's arguments. dtype: the inputs', by default the first parameter's: "int64" for ids.
---@param model any
---@param sizes any
---@param options? table
function tycho.nn.summary(model, sizes, options) end

--- `(map, ...)` Adds members from a table, a list of {name, member}, or another dict; they replace members of the same names.
---@param map any
function tycho.nn.ModuleDict:update(map, ...) end

--- `(map, ...)` Adds members from a table, a list of {name, member}, or another dict; they replace members of the same names.
---@param map any
function tycho.nn.ParameterDict:update(map, ...) end

--- for name, member in dict:items() do: in the order in which they were given
function tycho.nn.ModuleDict:items() end

--- for name, member in dict:items() do: in the order in which they were given
function tycho.nn.ParameterDict:items() end

--- A list of the names; also for name in dict:keys() do.
function tycho.nn.ModuleDict:keys() end

--- A list of the names; also for name in dict:keys() do.
function tycho.nn.ParameterDict:keys() end

--- A list of the members, in order.
function tycho.nn.ModuleDict:values() end

--- A list of the members, in order.
function tycho.nn.ParameterDict:values() end

--- The number of members, which # can't give for a table such as a module.
function tycho.nn.ModuleDict:len() end

--- The number of members, which # can't give for a table such as a module.
function tycho.nn.ParameterDict:len() end

--- `(key)` Whether there is a member of that name.
---@param key any
function tycho.nn.ModuleDict:contains(key) end

--- `(key)` Whether there is a member of that name.
---@param key any
function tycho.nn.ParameterDict:contains(key) end

--- `(key, default)` The member of that name, or default.
---@param key any
---@param default any
function tycho.nn.ModuleDict:get(key, default) end

--- `(key, default)` The member of that name, or default.
---@param key any
---@param default any
function tycho.nn.ParameterDict:get(key, default) end

--- `(key, default)` The member of that name; if there is none, default is added as it.
---@param key any
---@param default any
function tycho.nn.ModuleDict:setdefault(key, default) end

--- `(key, default)` The member of that name; if there is none, default is added as it.
---@param key any
---@param default any
function tycho.nn.ParameterDict:setdefault(key, default) end

--- `(key)` Removes the member of that name, and returns it.
---@param key any
function tycho.nn.ModuleDict:pop(key) end

--- `(key)` Removes the member of that name, and returns it.
---@param key any
function tycho.nn.ParameterDict:pop(key) end

--- Removes all members.
function tycho.nn.ModuleDict:clear() end

--- Removes all members.
function tycho.nn.ParameterDict:clear() end

--- `(weight, freeze=true, {options})` over the memory of weight (num_embeddings, embedding_dim).
---@param weight any
---@param freeze? any
---@param options? table
function tycho.nn.EmbeddingBag:from_pretrained(weight, freeze, options) end

--- `(ids, offsets=, per_sample_weights=)` each row of a matrix of ids is a bag; in a vector the bags begin at offsets, which count from 1.
---@param ids any
---@param offsets? any
---@param per_sample_weights? any
function tycho.nn.EmbeddingBag:forward(ids, offsets, per_sample_weights) end

tycho.nn.grad = {}
--- `(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1)` the gradient of conv2d with respect to its input, of that size; conv1d_input and conv3d_input likewise.
---@param input_size any
---@param weight any
---@param grad_output any
---@param stride? any
---@param padding? any
---@param dilation? any
---@param groups? any
function tycho.nn.grad.conv1d_input(input_size, weight, grad_output, stride, padding, dilation, groups) end

--- `(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1)` the gradient of conv2d with respect to its input, of that size; conv1d_input and conv3d_input likewise.
---@param input_size any
---@param weight any
---@param grad_output any
---@param stride? any
---@param padding? any
---@param dilation? any
---@param groups? any
function tycho.nn.grad.conv2d_input(input_size, weight, grad_output, stride, padding, dilation, groups) end

--- `(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1)` the gradient of conv2d with respect to its input, of that size; conv1d_input and conv3d_input likewise.
---@param input_size any
---@param weight any
---@param grad_output any
---@param stride? any
---@param padding? any
---@param dilation? any
---@param groups? any
function tycho.nn.grad.conv3d_input(input_size, weight, grad_output, stride, padding, dilation, groups) end

--- `(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1)` the gradient with respect to the weight.
---@param input any
---@param weight_size any
---@param grad_output any
---@param stride? any
---@param padding? any
---@param dilation? any
---@param groups? any
function tycho.nn.grad.conv1d_weight(input, weight_size, grad_output, stride, padding, dilation, groups) end

--- `(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1)` the gradient with respect to the weight.
---@param input any
---@param weight_size any
---@param grad_output any
---@param stride? any
---@param padding? any
---@param dilation? any
---@param groups? any
function tycho.nn.grad.conv2d_weight(input, weight_size, grad_output, stride, padding, dilation, groups) end

--- `(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1)` the gradient with respect to the weight.
---@param input any
---@param weight_size any
---@param grad_output any
---@param stride? any
---@param padding? any
---@param dilation? any
---@param groups? any
function tycho.nn.grad.conv3d_weight(input, weight_size, grad_output, stride, padding, dilation, groups) end

--- `(x (N, in_features))` the log-probabilities of all classes, (N, n_classes).
---@param x any
function tycho.nn.AdaptiveLogSoftmaxWithLoss:log_prob(x) end

--- `(x (N, in_features))` the likeliest class of each row, int64 (N).
---@param x any
function tycho.nn.AdaptiveLogSoftmaxWithLoss:predict(x) end

--- `(c)` The states to return: one, or two.
---@param c any
function tycho.nn.GRU:forward(c) end

--- `(c)` The states to return: one, or two.
---@param c any
function tycho.nn.GRUCell:forward(c) end

--- `(c)` The states to return: one, or two.
---@param c any
function tycho.nn.LSTM:forward(c) end

--- `(c)` The states to return: one, or two.
---@param c any
function tycho.nn.LSTMCell:forward(c) end

--- `(c)` The states to return: one, or two.
---@param c any
function tycho.nn.RNN:forward(c) end

--- `(c)` The states to return: one, or two.
---@param c any
function tycho.nn.RNNCell:forward(c) end

--- Does nothing; the parameters need no flattening.
function tycho.nn.GRU:flatten_parameters() end

--- Does nothing; the parameters need no flattening.
function tycho.nn.LSTM:flatten_parameters() end

--- Does nothing; the parameters need no flattening.
function tycho.nn.RNN:flatten_parameters() end

--- `(n, {dtype=, device=})` n x n, 0 and above the diagonal -inf: each position sees itself and those before it. Called on the class, or on a model.
---@param n any
---@param options? table
function tycho.nn.Transformer:generate_square_subsequent_mask(n, options) end

tycho.nn.attention = {}
--- `(backends, fn, ...)` calls fn(...) with these ways of attention alone, and gives its results. backends: one of SDPBackend, or a list. What cuDNN doesn't take goes by the library's own op, so CUDNN_ATTENTION alone allows that too; with MATH, all goes by MATH.
---@param backends any
---@param fn any
function tycho.nn.attention.sdpa_kernel(backends, fn, ...) end

--- `(mask_mod, B, H, Q, K, device)` create_block_mask(mask_mod, B, H, Q_LEN, KV_LEN, device="cpu"), create_mask: a bool mask (B, H, Q_LEN, KV_LEN) for flex_attention or scaled_dot_product_attention, true where to attend. mask_mod(b, h, q, k) gives it from the places, from 1: int64 tensors of shapes (B, 1, 1, 1), (H, 1, 1), (Q_LEN, 1) and (KV_LEN), as function(b, h, q, k) return q:ge(k) end. B, H: nil if it is the same for all.
---@param mask_mod any
---@param B any
---@param H any
---@param Q any
---@param K any
---@param device any
function tycho.nn.attention.create_block_mask(mask_mod, B, H, Q, K, device) end

--- `(mask_mod, B, H, Q, K, device)` create_block_mask(mask_mod, B, H, Q_LEN, KV_LEN, device="cpu"), create_mask: a bool mask (B, H, Q_LEN, KV_LEN) for flex_attention or scaled_dot_product_attention, true where to attend. mask_mod(b, h, q, k) gives it from the places, from 1: int64 tensors of shapes (B, 1, 1, 1), (H, 1, 1), (Q_LEN, 1) and (KV_LEN), as function(b, h, q, k) return q:ge(k) end. B, H: nil if it is the same for all.
---@param mask_mod any
---@param B any
---@param H any
---@param Q any
---@param K any
---@param device any
function tycho.nn.attention.create_mask(mask_mod, B, H, Q, K, device) end

--- `(mask_mod, ...)` a mask function that is true where all are.
---@param mask_mod any
function tycho.nn.attention.and_masks(mask_mod, ...) end

--- `(mask_mod, ...)` one that is true where any is.
---@param mask_mod any
function tycho.nn.attention.or_masks(mask_mod, ...) end

--- `(query, key, value, score_mod=nil, block_mask=nil, scale=nil, enable_gqa=false, return_lse=false)` attention of (B, H, Q, D), (B, H, K, D) and (B, H, K, E), whose scores score_mod(score, b, h, q, k) changes before the softmax: score is (B, H, Q, K), float32 or float64, and the places are as create_block_mask's, so that function(s, b, h, q, k) return s + bias[{h, q - k + n}] end adds a learnt bias. It may use tensors that require gradients. block_mask: a bool mask that broadcasts to the scores. return_lse: also gives the scores' log-sum-exp (B, H, Q). With score_mod its memory grows with the number of scores.
---@param query any
---@param key any
---@param value any
---@param score_mod? any
---@param block_mask? any
---@param scale? any
---@param enable_gqa? any
---@param return_lse? any
function tycho.nn.attention.flex_attention(query, key, value, score_mod, block_mask, scale, enable_gqa, return_lse) end

--- Ends the wrapper, and gives the module: gradients are this process's own from now on. Until then a module that was wrapped exchanges its gradients, also where the wrapper isn't used any more; one that is wrapped again, in the newest wrapper only.
function tycho.nn.parallel.DistributedDataParallel:unwrap() end

--- With overlap = false, after backward: replaces the gradients by their means over all processes.
function tycho.nn.parallel.DistributedDataParallel:reduce_gradients() end

--- `(state, fn)` fn(state, bucket) exchanges the gradients of each bucket in the place of the mean over all processes. It gives a tensor like bucket:buffer(), or a function that waits for one and gives it. bucket: buffer(), one vector; gradients() and parameters(), lists; index(), from 1; is_last(); group; and async_op, which it hands to all_reduce: true while backward goes on. nn.parallel.fp16_compress_hook and bf16_compress_hook (state: a group, or nil) exchange 16-bit numbers. Errors if there is a hook.
---@param state any
---@param fn any
function tycho.nn.parallel.DistributedDataParallel:register_comm_hook(state, fn) end

--- `(fn, ...)` Calls fn(...) without exchanging gradients, and gives its results. Gradients add up in this process until a backward outside of it: for gradient accumulation.
---@param fn any
function tycho.nn.parallel.DistributedDataParallel:no_sync(fn, ...) end

--- `({divide_by_initial_world_size=true, throw_on_early_termination=false}, fn, ...)` calls fn(...), a training loop, and gives its results, where processes may have different numbers of batches. A process whose fn has returned takes part in the others' exchanges, with gradients of 0, until all have; then all take the parameters and buffers of one that trained to the end. divide_by_initial_world_size = false: gradients are means over the processes that still have batches. throw_on_early_termination: an error in all processes once one has none. The options may be left out. Each forward with gradients must be followed by one backward; module and optimizer must make no exchanges of their own (SyncBatchNorm, ZeroRedundancyOptimizer).
---@param fn any
function tycho.nn.parallel.DistributedDataParallel:join(fn, ...) end

--- `(module, process_group=)` replaces each BatchNorm in the module, keeping its parameters and buffers; gives the module.
---@param module any
---@param process_group? any
function tycho.nn.SyncBatchNorm:convert_sync_batchnorm(module, process_group) end

--- `(group, bucket)` For register_comm_hook(group, fp16_compress_hook): gradients are exchanged as float16.
---@param group any
---@param bucket any
function tycho.nn.parallel.fp16_compress_hook(group, bucket) end

--- `(group, bucket)` For register_comm_hook(group, bf16_compress_hook): gradients are exchanged as bfloat16.
---@param group any
---@param bucket any
function tycho.nn.parallel.bf16_compress_hook(group, bucket) end

tycho.nn.utils = {}
--- `(tensors, norm_type=2, error_if_nonfinite=false)` the norm of all elements of a list of tensors, a tensor on their device.
---@param tensors any
---@param norm_type? any
---@param error_if_nonfinite? any
function tycho.nn.utils.get_total_norm(tensors, norm_type, error_if_nonfinite) end

--- `(params, max_norm, total_norm)` multiplies the gradients by max_norm / total_norm if that is below 1.
---@param params any
---@param max_norm any
---@param total_norm any
function tycho.nn.utils.clip_grads_with_norm_(params, max_norm, total_norm) end

--- `(params, max_norm, norm_type=2, error_if_nonfinite=false)` scales the gradients down so that their norm as one vector (math.huge or "inf": the largest element) is at most max_norm. Gives their norm before, a tensor. It doesn't wait for the GPU, unless error_if_nonfinite. PyTorch's foreach has no effect.
---@param params any
---@param max_norm any
---@param norm_type? any
---@param error_if_nonfinite? any
function tycho.nn.utils.clip_grad_norm_(params, max_norm, norm_type, error_if_nonfinite) end

--- `(params, clip_value)` limits the elements of the gradients to -clip_value..clip_value.
---@param params any
---@param clip_value any
function tycho.nn.utils.clip_grad_value_(params, clip_value) end

--- `(params)` The elements of a list of parameters as one vector, with its history.
---@param params any
function tycho.nn.utils.parameters_to_vector(params) end

--- `(v, params)` Writes a vector's elements into a list of parameters, in order.
---@param v any
---@param params any
function tycho.nn.utils.vector_to_parameters(v, params) end

--- `(conv, bn, transpose=false)` a convolution equivalent to conv followed by bn, both in eval mode. transpose: conv is a transposed one, of one group.
---@param conv any
---@param bn any
---@param transpose? any
function tycho.nn.utils.fuse_conv_bn_eval(conv, bn, transpose) end

tycho.nn.utils.fusion = {}
--- `(conv, bn, transpose=false)` a convolution equivalent to conv followed by bn, both in eval mode. transpose: conv is a transposed one, of one group.
---@param conv any
---@param bn any
---@param transpose? any
function tycho.nn.utils.fusion.fuse_conv_bn_eval(conv, bn, transpose) end

--- `(linear, bn)` The same for a Linear and a BatchNorm1d after it.
---@param linear any
---@param bn any
function tycho.nn.utils.fuse_linear_bn_eval(linear, bn) end

--- `(linear, bn)` The same for a Linear and a BatchNorm1d after it.
---@param linear any
---@param bn any
function tycho.nn.utils.fusion.fuse_linear_bn_eval(linear, bn) end

--- `(state, prefix)` Removes prefix from names in a state dict, in place: such as that of a model wrapped by DistributedDataParallel or compile.
---@param state any
---@param prefix any
function tycho.nn.utils.consume_prefix_in_state_dict_if_present(state, prefix) end

--- `(nn.Linear, 3, 4)` makes the module, for values that will be loaded, and leaves the random generators as they were.
---@param nn any
function tycho.nn.utils.skip_init(nn) end

tycho.nn.utils.rnn = {}
--- `(list, batch_first=false, padding_value=0, padding_side="right")` joins tensors (L_i, *) to one (L, N, *), or (N, L, *), where L is the longest one's.
---@param list any
---@param batch_first? any
---@param padding_value? any
---@param padding_side? any
function tycho.nn.utils.rnn.pad_sequence(list, batch_first, padding_value, padding_side) end

--- `(padded, lengths, batch_first=false)` the list of sequences that pad_sequence was given.
---@param padded any
---@param lengths any
---@param batch_first? any
function tycho.nn.utils.rnn.unpad_sequence(padded, lengths, batch_first) end

--- `(...)` As a tensor's to: moved to a device, or converted to a dtype.
function classes.PackedSequence:to(...) end

--- `(data (sum of lengths, *), batch_sizes, sorted_indices=, unsorted_indices=)` sequences that are packed already; or those of a packed one with other data: rnn.PackedSequence(embedding(p.data), p.batch_sizes, p.sorted_indices, p.unsorted_indices). batch_sizes: a list, or a tensor.
---@param data any
---@param batch_sizes any
---@param sorted_indices? any
---@param unsorted_indices? any
---@return tycho.PackedSequence
function tycho.nn.utils.rnn.PackedSequence(data, batch_sizes, sorted_indices, unsorted_indices) end

--- `(x, lengths, batch_first=false, enforce_sorted=true)` packs x (L, N, *), or (N, L, *), by each sequence's length, a list or a tensor, for recurrent layers. enforce_sorted: the longest must come first.
---@param x any
---@param lengths any
---@param batch_first? any
---@param enforce_sorted? any
function tycho.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first, enforce_sorted) end

--- `(list, enforce_sorted=true)` packs a list of (L_i, *).
---@param list any
---@param enforce_sorted? any
function tycho.nn.utils.rnn.pack_sequence(list, enforce_sorted) end

--- `(packed, batch_first=false, padding_value=0, total_length=)` the padded tensor, (L, N, *) or (N, L, *), and the lengths, an int64 vector on the CPU. total_length: L, if it is to be larger than the longest.
---@param packed any
---@param batch_first? any
---@param padding_value? any
---@param total_length? any
function tycho.nn.utils.rnn.pad_packed_sequence(packed, batch_first, padding_value, total_length) end

--- `(p)` The list of (L_i, *) that pack_sequence was given.
---@param p any
function tycho.nn.utils.rnn.unpack_sequence(p) end

--- `(module, name="weight", dim=1)` from now on module[name] is computed from two parameters: name_v, its direction, and name_g, its norm over all dims except dim (0: over all). Gives the module.
---@param module any
---@param name? any
---@param dim? any
function tycho.nn.utils.weight_norm(module, name, dim) end

--- `(module, name="weight")` makes module[name] a parameter again, with its last value. Gives the module.
---@param module any
---@param name? any
function tycho.nn.utils.remove_weight_norm(module, name) end

--- `(module, name="weight", n_power_iterations=1, eps=1e-12, dim=)` from now on module[name] is the parameter name_orig divided by its largest singular value, which power iteration updates at each forward in training. dim: the outputs' dim, by default 1, for transposed convolutions 2. Gives the module.
---@param module any
---@param name? any
---@param n_power_iterations? any
---@param eps? any
---@param dim? any
function tycho.nn.utils.spectral_norm(module, name, n_power_iterations, eps, dim) end

--- `(module, name="weight")` makes module[name] a parameter again, with its last value. Gives the module.
---@param module any
---@param name? any
function tycho.nn.utils.remove_spectral_norm(module, name) end

tycho.nn.utils.parametrize = {}
--- `(module, name=)` whether that tensor of the module, or without name any, is parametrized.
---@param module any
---@param name? any
function tycho.nn.utils.parametrize.is_parametrized(module, name) end

--- `(module, name, parametrization)` from now on module[name] is parametrization(original), a module's result, computed on each access; state dicts have the original. A parametrization with right_inverse(value) allows assignment to module[name]. Several parametrizations are applied in order; registering a further one leaves the originals, so the tensor changes. The result must have module[name]'s shape and dtype, unless {unsafe=true}. Gives the module.
---@param module any
---@param name any
---@param parametrization any
function tycho.nn.utils.parametrize.register_parametrization(module, name, parametrization) end

--- `(fn, ...)` calls fn(...) and gives its results; within it each parametrized tensor is computed only once, at its first access, even if its originals change: for weights that a forward pass uses several times, as in a recurrent net.
---@param fn any
function tycho.nn.utils.parametrize.cached(fn, ...) end

--- `(module, name, leave_parametrized=true)` makes module[name] a parameter again, with its current value or, with leave_parametrized = false, the original. Gives the module.
---@param module any
---@param name any
---@param leave_parametrized? any
function tycho.nn.utils.parametrize.remove_parametrizations(module, name, leave_parametrized) end

tycho.nn.utils.parametrizations = {}
--- `(module, name="weight", dim=1)` computes the tensor from its norm over all dims except dim, original0 (0: over all), and its direction, original1. States of nn.utils.weight_norm, with the names weight_g and weight_v, are accepted too. Gives the module.
---@param module any
---@param name? any
---@param dim? any
function tycho.nn.utils.parametrizations.weight_norm(module, name, dim) end

--- `(module, name="weight", n_power_iterations=1, eps=1e-12, dim=)` the tensor divided by its largest singular value, which power iteration updates whenever it is computed in training. dim: the outputs' dim, by default 1, for transposed convolutions 2. Gives the module.
---@param module any
---@param name? any
---@param n_power_iterations? any
---@param eps? any
---@param dim? any
function tycho.nn.utils.parametrizations.spectral_norm(module, name, n_power_iterations, eps, dim) end

--- `(module, name="weight", orthogonal_map=, use_trivialization=true)` the weight (..., n, k) has orthonormal columns, or rows if it is wide. orthogonal_map: "matrix_exp" (default for square matrices), "cayley" or "householder" (default for others). use_trivialization = false, which "householder" doesn't allow: it begins at the map's own value for the weight. Gives the module.
---@param module any
---@param name? any
---@param orthogonal_map? any
---@param use_trivialization? any
function tycho.nn.utils.parametrizations.orthogonal(module, name, orthogonal_map, use_trivialization) end

tycho.nn.utils.prune = {}
--- `(module, name)` holds nothing at 0 yet: module[name] is computed from name_orig and a mask of ones, name_mask. This function and those that follow give the module; amount is a share, below 1, of what isn't held at 0 yet, or a number of elements or slices.
---@param module any
---@param name any
function tycho.nn.utils.prune.identity(module, name) end

--- `(module, name, mask)` holds the elements at 0 where the mask is 0.
---@param module any
---@param name any
---@param mask any
function tycho.nn.utils.prune.custom_from_mask(module, name, mask) end

--- `(module, name, amount)` holds randomly drawn elements at 0.
---@param module any
---@param name any
---@param amount any
function tycho.nn.utils.prune.random_unstructured(module, name, amount) end

--- `(module, name, amount, importance_scores=)` holds the smallest elements, or those of the smallest scores, at 0.
---@param module any
---@param name any
---@param amount any
---@param importance_scores? any
function tycho.nn.utils.prune.l1_unstructured(module, name, amount, importance_scores) end

--- `(module, name, amount, dim)` holds randomly drawn slices along dim at 0.
---@param module any
---@param name any
---@param amount any
---@param dim any
function tycho.nn.utils.prune.random_structured(module, name, amount, dim) end

--- `(module, name, amount, n, dim, importance_scores=)` holds the slices along dim that have the smallest n-norm at 0.
---@param module any
---@param name any
---@param amount any
---@param n any
---@param dim any
---@param importance_scores? any
function tycho.nn.utils.prune.ln_structured(module, name, amount, n, dim, importance_scores) end

tycho.nn.utils.prune.BasePruningMethod = {}
--- `(self, name, signature)` A user's own method: local Every = BasePruningMethod:extend("Every", "n=2"), whose second argument lists the arguments' names in order, with defaults; they are self's fields in Every:compute_mask(t, default_mask), which returns the mask: t has the scores (the parameter, unless others are given), default_mask, a copy, ones. Then Every.apply(module, name, {n = 3}), also with importance_scores=, or as global_unstructured's pruning_method. Where elements are held at 0 already, t and default_mask are vectors of the others; Every.PRUNING_TYPE = "structured": of the slices along self.dim that aren't 0, "global": of all elements.
---@param self any
---@param name any
---@param signature any
function tycho.nn.utils.prune.BasePruningMethod.extend(self, name, signature) end

--- `(parameters, pruning_method=prune.L1Unstructured, amount=, importance_scores=)` holds the smallest elements of all parameters in a list of {module, name} together at 0 (prune.RandomUnstructured: randomly drawn elements; a class made by BasePruningMethod:extend: those that it selects, with its arguments in the table of options). importance_scores: a list with a tensor for each parameter, or false where its own values count.
---@param parameters any
---@param pruning_method? any
---@param amount? any
---@param importance_scores? any
function tycho.nn.utils.prune.global_unstructured(parameters, pruning_method, amount, importance_scores) end

--- `(module, name)` makes module[name] a parameter again; pruned elements are 0, and may change.
---@param module any
---@param name any
function tycho.nn.utils.prune.remove(module, name) end

--- `(module)` whether it, or a module within it, has a pruned parameter.
---@param module any
function tycho.nn.utils.prune.is_pruned(module) end

tycho.nn.init = {}
--- `(x, a=0, b=1, {generator=})` Uniform numbers from a to b.
---@param x any
---@param a? any
---@param b? any
---@param options? table
function tycho.nn.init.uniform_(x, a, b, options) end

--- `(x, mean=0, std=1, {generator=})` Normal numbers.
---@param x any
---@param mean? any
---@param std? any
---@param options? table
function tycho.nn.init.normal_(x, mean, std, options) end

--- `(x, val)` All elements become val.
---@param x any
---@param val any
function tycho.nn.init.constant_(x, val) end

--- `(x)` All elements become 0.
---@param x any
function tycho.nn.init.zeros_(x) end

--- `(x)` All elements become 1.
---@param x any
function tycho.nn.init.ones_(x) end

--- `(x, mean=0, std=1, a=-2, b=2, {generator=})` Normal numbers within a..b: others are drawn again. An error unless std is above 0 and a not above b.
---@param x any
---@param mean? any
---@param std? any
---@param a? any
---@param b? any
---@param options? table
function tycho.nn.init.trunc_normal_(x, mean, std, a, b, options) end

--- `(nonlinearity, param=)` the gain of "linear", "sigmoid", "conv2d" and the like is 1, of "tanh" 5/3, of "relu" sqrt(2), of "leaky_relu" sqrt(2 / (1 + param^2)) (param: its slope, 0.01), of "selu" 3/4.
---@param nonlinearity any
---@param param? any
function tycho.nn.init.calculate_gain(nonlinearity, param) end

--- `(x, sparsity, std=0.01, {generator=})` for a matrix: normal numbers, with the share `sparsity` of each column, at random places, set to 0.
---@param x any
---@param sparsity any
---@param std? any
---@param options? table
function tycho.nn.init.sparse_(x, sparsity, std, options) end

--- `(x, gain=1, {generator=})` Glorot and Bengio 2010: uniform numbers in -b..b, b = gain sqrt(6 / (fan_in + fan_out)).
---@param x any
---@param gain? any
---@param options? table
function tycho.nn.init.xavier_uniform_(x, gain, options) end

--- `(x, gain=1, {generator=})` Glorot and Bengio 2010: normal numbers of std gain sqrt(2 / (fan_in + fan_out)).
---@param x any
---@param gain? any
---@param options? table
function tycho.nn.init.xavier_normal_(x, gain, options) end

--- `(x, a=0, mode="fan_in", nonlinearity="leaky_relu", {generator=})` He et al. 2015: uniform numbers in -b..b, b = gain sqrt(3 / fan), with the gain of nonlinearity for slope a; mode: "fan_in" or "fan_out".
---@param x any
---@param a? any
---@param mode? any
---@param nonlinearity? any
---@param options? table
function tycho.nn.init.kaiming_uniform_(x, a, mode, nonlinearity, options) end

--- `(x, a=0, mode="fan_in", nonlinearity="leaky_relu", {generator=})` He et al. 2015: normal numbers of std gain / sqrt(fan); as kaiming_uniform_.
---@param x any
---@param a? any
---@param mode? any
---@param nonlinearity? any
---@param options? table
function tycho.nn.init.kaiming_normal_(x, a, mode, nonlinearity, options) end

--- `(x)` The identity matrix, for a tensor of 2 dims.
---@param x any
function tycho.nn.init.eye_(x) end

--- `(x, groups=1)` The identity for a convolution's weight, in each of its groups: as many channels as possible pass unchanged.
---@param x any
---@param groups? any
function tycho.nn.init.dirac_(x, groups) end

--- `(x, gain=1, {generator=})` Orthogonal rows, or columns if there are fewer of them, of length gain (Saxe et al. 2013).
---@param x any
---@param gain? any
---@param options? table
function tycho.nn.init.orthogonal_(x, gain, options) end

--- `(params, {lr=0.001, dampening=0, master_weights=false, maximize=false, momentum=0, nesterov=false, weight_decay=0})` Gradient descent: v = momentum v + (1 - dampening)(g + weight_decay p); p = p - lr v. nesterov: by g + momentum v.
---@param params any
---@param options? table
---@return tycho.Optimizer
function tycho.optim.SGD(params, options) end

--- `(params, {lr=0.001, amsgrad=false, betas={0.9, 0.999}, decoupled_weight_decay=false, eps=1e-08, master_weights=false, maximize=false, weight_decay=0})` Kingma and Ba 2014. Adam adds weight_decay p to the gradient; AdamW (Loshchilov and Hutter 2017), and Adam with decoupled_weight_decay, multiplies p by 1 - lr weight_decay.
---@param params any
---@param options? table
---@return tycho.Optimizer
function tycho.optim.Adam(params, options) end

--- `(params, {lr=0.001, amsgrad=false, betas={0.9, 0.999}, decoupled_weight_decay=true, eps=1e-08, master_weights=false, maximize=false, weight_decay=0.01})` Kingma and Ba 2014. Adam adds weight_decay p to the gradient; AdamW (Loshchilov and Hutter 2017), and Adam with decoupled_weight_decay, multiplies p by 1 - lr weight_decay.
---@param params any
---@param options? table
---@return tycho.Optimizer
function tycho.optim.AdamW(params, options) end

--- `(params, {lr=0.002, betas={0.9, 0.999}, decoupled_weight_decay=false, eps=1e-08, master_weights=false, maximize=false, momentum_decay=0.004, weight_decay=0})` Adam with Nesterov's momentum (Dozat 2016). Its momentum schedule follows from the step count, momentum_decay and beta1; a state's beta1_seen records changes of beta1.
---@param params any
---@param options? table
---@return tycho.Optimizer
function tycho.optim.NAdam(params, options) end

--- `(params, {lr=0.001, betas={0.9, 0.999}, decoupled_weight_decay=false, eps=1e-08, master_weights=false, maximize=false, weight_decay=0})` Adam without the second moment in the first steps, until that is known well enough (Liu et al. 2019).
---@param params any
---@param options? table
---@return tycho.Optimizer
function tycho.optim.RAdam(params, options) end

--- `(params, {lr=0.002, betas={0.9, 0.999}, eps=1e-08, master_weights=false, maximize=false, weight_decay=0})` Adam with the largest gradient, decayed by the second beta, in place of the second moment (Kingma and Ba 2014).
---@param params any
---@param options? table
---@return tycho.Optimizer
function tycho.optim.Adamax(params, options) end

--- `(params, {lr=1, eps=1e-06, master_weights=false, maximize=false, rho=0.9, weight_decay=0})` The gradient times the root mean square of past updates over that of past gradients (Zeiler 2012).
---@param params any
---@param options? table
---@return tycho.Optimizer
function tycho.optim.Adadelta(params, options) end

--- `(params, {lr=0.01, alpha=0.99, centered=false, eps=1e-08, master_weights=false, maximize=false, momentum=0, weight_decay=0})` The gradient divided by the root of a running mean of its squares (Hinton). centered: by its standard deviation.
---@param params any
---@param options? table
---@return tycho.Optimizer
function tycho.optim.RMSprop(params, options) end

--- `(params, {lr=0.01, eps=1e-10, initial_accumulator_value=0, lr_decay=0, master_weights=false, maximize=false, weight_decay=0})` The gradient divided by the root of the sum of all its past squares (Duchi et al. 2011).
---@param params any
---@param options? table
---@return tycho.Optimizer
function tycho.optim.Adagrad(params, options) end

tycho.optim.Optimizer = {}
--- `(self, name, defaults)` A user's own optimizer: local Lion = optim.Optimizer:extend("Lion", {lr = 1e-4, beta = 0.9}), with two methods. Lion:new_state(p, group, s) puts a parameter's state, tensors and numbers, into s at its first step. Lion:rule(group, p, grad, s, t, write) computes the new values of the parameter and its state by ops, and calls write(tensor, new value) for each; t counts steps from 1: a float64 tensor without dims, on the parameters' device, for arithmetic; for what Lua decides, count in the state: s.k = (s.k or 0) + 1. The defaults list all options. Then Lion(net:parameters(), {lr = 1e-3}). A rate that changes while a compiled step runs must be a tensor on that device, {lr = tycho.tensor(1e-3, {device = "cuda"})}, which schedulers write to: as a number each value is recorded anew. A method Lion:init(params, options), if there is one, is called when self has its groups (so Optimizer.init(self, ...), which PyTorch's classes call, does nothing): an optimizer around another makes the inner one there, self.base = optim.SGD(self.param_groups), whose groups are the same tables. Groups, zero_grad, state dicts, schedulers, GradScaler, float32 masters and compiled steps work with it. optim.SGD:extend and so on begin as that class instead: their methods may be replaced, and call the class's as optim.SGD.step(self).
---@param self any
---@param name any
---@param defaults any
function tycho.optim.Optimizer.extend(self, name, defaults) end

--- `(self, params, options)` does nothing; a user's init may call it, as PyTorch's do.
---@param self any
---@param params any
---@param options any
function tycho.optim.Optimizer.init(self, params, options) end

--- `({params = list, lr = ...})` adds a group; settings that it doesn't name are those the optimizer was made with.
---@param options? table
function classes.Optimizer:add_param_group(options) end

--- `(sub_name, more)` A class that begins as this one: local Mine = optim.SGD:extend("Mine", {k = 1}); its methods call this one's as optim.SGD.step(self).
---@param sub_name any
---@param more any
function classes.LBFGS:extend(sub_name, more) end

--- `({set_to_none=true})` all gradients become nil or, with set_to_none = false, zeros.
---@param options? table
function classes.Optimizer:zero_grad(options) end

--- `(fn)` fn(optimizer) is called before each step. Gives a handle with remove().
---@param fn any
function classes.Optimizer:register_step_pre_hook(fn) end

--- `(fn)` fn(optimizer) is called after each step. Gives a handle with remove().
---@param fn any
function classes.Optimizer:register_step_post_hook(fn) end

--- `(fn)` fn(optimizer) is called before state_dict makes one. Gives a handle with remove().
---@param fn any
function classes.Optimizer:register_state_dict_pre_hook(fn) end

--- `(fn)` fn(optimizer, d) is called with each state dict that is made, and may change it or return another. Gives a handle with remove().
---@param fn any
function classes.Optimizer:register_state_dict_post_hook(fn) end

--- `(fn)` fn(optimizer, d) is called before a state dict is loaded, and may return another. Gives a handle with remove().
---@param fn any
function classes.Optimizer:register_load_state_dict_pre_hook(fn) end

--- `(fn)` fn(optimizer) is called after a state dict is loaded. Gives a handle with remove().
---@param fn any
function classes.Optimizer:register_load_state_dict_post_hook(fn) end

--- `(closure=)` one update of the parameters from their gradients; those without one are left alone. closure, if given, is called first, with recording on; its result, the loss, is returned.
---@param closure? any
function classes.Optimizer:step(closure) end

--- Whether step is a method of the program's own, of its class or put into the optimizer: then a GradScaler must call it.
function classes.Optimizer:has_own_step() end

--- The state and the groups' settings as a table, for tycho.save; parameters are numbered by their place over all groups, from 1. Later steps change the tensors in it.
function classes.Optimizer:state_dict() end

--- `(p, group, s)` puts what parameter p begins with into its state s; a program's own class may have none.
---@param p any
---@param group any
---@param s any
function classes.Optimizer:new_state(p, group, s) end

--- `(group, p, grad, state, t, write)` computes a step; a program's own class must have one, or a step of its own.
---@param group any
---@param p any
---@param grad any
---@param state any
---@param t any
---@param write any
function classes.Optimizer:rule(group, p, grad, state, t, write) end

--- `(d)` Loads copies of what state_dict gave, Tycho's or, but for LBFGS, PyTorch's, parameter by place. Everything is checked before anything changes.
---@param d any
function classes.Optimizer:load_state_dict(d) end

--- `(params, {lr=1, history_size=100, line_search_fn=false, max_eval=false, max_iter=20, tolerance_change=1e-09, tolerance_grad=1e-07})` A quasi-Newton method for losses over the whole data; one group of parameters. line_search_fn: "strong_wolfe".
---@param params any
---@param options? table
---@return tycho.Optimizer
function tycho.optim.LBFGS(params, options) end

--- `(closure)` up to max_iter updates. closure clears the gradients, computes the loss, runs backward and returns the loss; it is called up to max_eval times (max_iter * 5 / 4 unless given). Gives the first loss.
---@param closure any
function classes.LBFGS:step(closure) end

--- `(params, {lr=0.01, etas={0.5, 1.2}, master_weights=false, maximize=false, step_sizes={1e-06, 50}})` A step size for each element, which grows while the gradient's sign stays, and shrinks when it changes (Riedmiller and Braun 1993).
---@param params any
---@param options? table
---@return tycho.Optimizer
function tycho.optim.Rprop(params, options) end

--- `(params, {lr=0.01, alpha=0.75, lambd=0.0001, master_weights=false, maximize=false, t0=1000000, weight_decay=0})` Gradient descent; state[p].ax is the average of the parameter's past values (Polyak and Juditsky 1992).
---@param params any
---@param options? table
---@return tycho.Optimizer
function tycho.optim.ASGD(params, options) end

--- `(params, {lr=0.01, beta2_decay=-0.8, d=1, eps={false, 0.001}, master_weights=false, maximize=false, weight_decay=0})` Adam without momentum; a matrix's second moments are kept for its rows and columns only (Shazeer and Stern 2018).
---@param params any
---@param options? table
---@return tycho.Optimizer
function tycho.optim.Adafactor(params, options) end

--- `(params, {lr=0.001, adjust_lr_fn=original, eps=1e-07, master_weights=false, maximize=false, momentum=0.95, nesterov=true, ns_coefficients={3.4445, -4.775, 2.0315}, ns_steps=5, weight_decay=0.1})` For matrices only: the momentum made orthogonal by Newton-Schulz iterations, on a GPU in bfloat16 (Jordan et al. 2024).
---@param params any
---@param options? table
---@return tycho.Optimizer
function tycho.optim.Muon(params, options) end

--- The mean of all values, as AveragedModel's multi_avg_fn: a function (average, values, n) of two lists of tensors, which changes the first list's in place; n: the number of updates so far.
function tycho.optim.swa_utils.get_swa_multi_avg_fn() end

--- `(decay=0.999)` an exponential moving average, decay * average + (1 - decay) * value, as multi_avg_fn.
---@param decay? any
function tycho.optim.swa_utils.get_ema_multi_avg_fn(decay) end

--- The mean of all values, as AveragedModel's avg_fn: a function (average, value, n) of tensors that returns the new average.
function tycho.optim.swa_utils.get_swa_avg_fn() end

--- `(decay=0.999)` an exponential moving average, as avg_fn.
---@param decay? any
function tycho.optim.swa_utils.get_ema_avg_fn(decay) end

--- `(model)` Adds the model's current parameters to the averages; the first time they are copied.
---@param model any
function tycho.optim.swa_utils.AveragedModel:update_parameters(model) end

--- `(loader, model, {device=})` recomputes batch norm's running statistics, as means over the loader's batches, whose first field is the input: for an averaged model, which has never run.
---@param loader any
---@param model any
---@param options? table
function tycho.optim.swa_utils.update_bn(loader, model, options) end

tycho.optim.lr_scheduler = {}
--- `(optimizer, step_size, gamma=0.1, last_epoch=-1)` lr * gamma^floor(epoch / step_size)
---@param optimizer any
---@param step_size any
---@param gamma? any
---@param last_epoch? any
---@return tycho.Scheduler
function tycho.optim.lr_scheduler.StepLR(optimizer, step_size, gamma, last_epoch) end

--- `(optimizer, milestones, gamma=0.1, last_epoch=-1)` lr * gamma at each milestone; milestones: a list of epochs
---@param optimizer any
---@param milestones any
---@param gamma? any
---@param last_epoch? any
---@return tycho.Scheduler
function tycho.optim.lr_scheduler.MultiStepLR(optimizer, milestones, gamma, last_epoch) end

--- `(optimizer, gamma, last_epoch=-1)` lr * gamma^epoch
---@param optimizer any
---@param gamma any
---@param last_epoch? any
---@return tycho.Scheduler
function tycho.optim.lr_scheduler.ExponentialLR(optimizer, gamma, last_epoch) end

--- `(optimizer, T_max, eta_min=0, last_epoch=-1)` along half a cosine from lr to eta_min in T_max epochs, and back
---@param optimizer any
---@param T_max any
---@param eta_min? any
---@param last_epoch? any
---@return tycho.Scheduler
function tycho.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max, eta_min, last_epoch) end

--- `(optimizer, T_0, T_mult=1, eta_min=0, last_epoch=-1)` along half a cosine from lr to eta_min; restarts after T_0 epochs, then each time after T_mult times as many; step(epoch) also takes fractions
---@param optimizer any
---@param T_0 any
---@param T_mult? any
---@param eta_min? any
---@param last_epoch? any
---@return tycho.Scheduler
function tycho.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0, T_mult, eta_min, last_epoch) end

--- `(optimizer, start_factor=1/3, end_factor=1, total_iters=5, last_epoch=-1)` lr * a factor that goes from start_factor to end_factor in total_iters epochs
---@param optimizer any
---@param start_factor? any
---@param end_factor? any
---@param total_iters? any
---@param last_epoch? any
---@return tycho.Scheduler
function tycho.optim.lr_scheduler.LinearLR(optimizer, start_factor, end_factor, total_iters, last_epoch) end

--- `(optimizer, factor=1/3, total_iters=5, last_epoch=-1)` lr * factor for total_iters epochs, then lr
---@param optimizer any
---@param factor? any
---@param total_iters? any
---@param last_epoch? any
---@return tycho.Scheduler
function tycho.optim.lr_scheduler.ConstantLR(optimizer, factor, total_iters, last_epoch) end

--- `(optimizer, total_iters=5, power=1, last_epoch=-1)` lr * (1 - epoch / total_iters)^power, then 0
---@param optimizer any
---@param total_iters? any
---@param power? any
---@param last_epoch? any
---@return tycho.Scheduler
function tycho.optim.lr_scheduler.PolynomialLR(optimizer, total_iters, power, last_epoch) end

--- `(optimizer, lr_lambda, last_epoch=-1)` lr * lr_lambda(epoch); lr_lambda: a function, or a list of one for each group
---@param optimizer any
---@param lr_lambda any
---@param last_epoch? any
---@return tycho.Scheduler
function tycho.optim.lr_scheduler.LambdaLR(optimizer, lr_lambda, last_epoch) end

--- `(optimizer, lr_lambda, last_epoch=-1)` multiplied by lr_lambda(epoch) at each epoch except the first; lr_lambda as in LambdaLR
---@param optimizer any
---@param lr_lambda any
---@param last_epoch? any
---@return tycho.Scheduler
function tycho.optim.lr_scheduler.MultiplicativeLR(optimizer, lr_lambda, last_epoch) end

--- `(optimizer, base_lr, max_lr, step_size_up=2000, step_size_down=nil, mode="triangular", gamma=1, scale_fn=nil, scale_mode="cycle", cycle_momentum=true, base_momentum=nil, max_momentum=nil, last_epoch=-1)` from base_lr to max_lr and back in straight lines; triangular2 halves the height each cycle, exp_range shrinks it by gamma each step. Momentum moves in the opposite direction, from max_momentum to base_momentum. scale_fn(n): a height of the user's own, where n is the cycle from 1 or, with scale_mode="iterations", the step from 0
---@param optimizer any
---@param base_lr any
---@param max_lr any
---@param step_size_up? any
---@param step_size_down? any
---@param mode? any
---@param gamma? any
---@param scale_fn? any
---@param scale_mode? any
---@param cycle_momentum? any
---@param base_momentum? any
---@param max_momentum? any
---@param last_epoch? any
---@return tycho.Scheduler
function tycho.optim.lr_scheduler.CyclicLR(optimizer, base_lr, max_lr, step_size_up, step_size_down, mode, gamma, scale_fn, scale_mode, cycle_momentum, base_momentum, max_momentum, last_epoch) end

--- `(optimizer, max_lr, total_steps=nil, epochs=nil, steps_per_epoch=nil, pct_start=0.3, anneal_strategy="cos", cycle_momentum=true, base_momentum=nil, max_momentum=nil, div_factor=25, final_div_factor=1e4, three_phase=false, last_epoch=-1)` up to max_lr in pct_start of total_steps (or epochs * steps_per_epoch), then down to almost nothing (Smith and Topin 2017); momentum moves in the opposite direction; step() after each batch
---@param optimizer any
---@param max_lr any
---@param total_steps? any
---@param epochs? any
---@param steps_per_epoch? any
---@param pct_start? any
---@param anneal_strategy? any
---@param cycle_momentum? any
---@param base_momentum? any
---@param max_momentum? any
---@param div_factor? any
---@param final_div_factor? any
---@param three_phase? any
---@param last_epoch? any
---@return tycho.Scheduler
function tycho.optim.lr_scheduler.OneCycleLR(optimizer, max_lr, total_steps, epochs, steps_per_epoch, pct_start, anneal_strategy, cycle_momentum, base_momentum, max_momentum, div_factor, final_div_factor, three_phase, last_epoch) end

--- `(optimizer, schedulers, milestones, last_epoch=-1)` one schedule after another: at each milestone the next one begins, at its own epoch 0, also one that has schedules of its own
---@param optimizer any
---@param schedulers any
---@param milestones any
---@param last_epoch? any
---@return tycho.Scheduler
function tycho.optim.lr_scheduler.SequentialLR(optimizer, schedulers, milestones, last_epoch) end

--- `(optimizer, schedulers)` all schedules at every step, each applied to the result of the others. ChainedScheduler(schedulers), as PyTorch's, or (optimizer, schedulers)
---@param optimizer any
---@param schedulers any
---@return tycho.Scheduler
function tycho.optim.lr_scheduler.ChainedScheduler(optimizer, schedulers) end

--- `(optimizer, swa_lr, anneal_epochs=10, anneal_strategy="cos", last_epoch=-1)` from the current rate to swa_lr in anneal_epochs, where it stays: for stochastic weight averaging; anneal_strategy "cos" or "linear"
---@param optimizer any
---@param swa_lr any
---@param anneal_epochs? any
---@param anneal_strategy? any
---@param last_epoch? any
---@return tycho.Scheduler
function tycho.optim.lr_scheduler.SWALR(optimizer, swa_lr, anneal_epochs, anneal_strategy, last_epoch) end

--- `(optimizer, swa_lr, anneal_epochs=10, anneal_strategy="cos", last_epoch=-1)` from the current rate to swa_lr in anneal_epochs, where it stays: for stochastic weight averaging; anneal_strategy "cos" or "linear"
---@param optimizer any
---@param swa_lr any
---@param anneal_epochs? any
---@param anneal_strategy? any
---@param last_epoch? any
function tycho.optim.swa_utils.SWALR(optimizer, swa_lr, anneal_epochs, anneal_strategy, last_epoch) end

--- `(optimizer, mode="min", factor=0.1, patience=10, threshold=1e-4, threshold_mode="rel", cooldown=0, min_lr=nil, eps=1e-8)` lr * factor when the metric passed to step(metric) hasn't improved for more than patience steps
---@param optimizer any
---@param mode? any
---@param factor? any
---@param patience? any
---@param threshold? any
---@param threshold_mode? any
---@param cooldown? any
---@param min_lr? any
---@param eps? any
---@return tycho.Scheduler
function tycho.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode, factor, patience, threshold, threshold_mode, cooldown, min_lr, eps) end

tycho.optim.lr_scheduler.LRScheduler = {}
--- `(self, name, signature)` A user's own schedule: local Halved = LRScheduler:extend("Halved", "every=10"), with a method Halved:lr_at(epoch, base, i), which gives the rate of group i, whose initial rate is base, at an epoch, counted from 0; here: return base * 0.5 ^ math.floor(epoch / self.every). Then Halved(optimizer, {every = 5}). The second argument lists the arguments' names in order, with defaults; nil: none. Instead of lr_at there may be a method Halved:get_lr(), which gives a list of all groups' rates at self.last_epoch, from self.base_lrs and self.optimizer.param_groups.
---@param self any
---@param name any
---@param signature any
function tycho.optim.lr_scheduler.LRScheduler.extend(self, name, signature) end

--- `(epoch)` Moves to the next epoch (or other unit), and sets the groups' rates. Called after the optimizer's step.
---@param epoch any
function classes.Scheduler:step(epoch) end

--- A list of the rates that it set last, one for each group.
function classes.Scheduler:get_last_lr() end

--- Its position and settings, as a table of numbers and lists of numbers, for tycho.save.
function classes.Scheduler:state_dict() end

--- `(d)` Continues from what state_dict gave, Tycho's or PyTorch's. The current rates belong to the optimizer, and come with its state.
---@param d any
function classes.Scheduler:load_state_dict(d) end

tycho.amp = {}
--- `({dtype=, enabled=true, device=}, fn, ...)` calls fn(...) and gives its results; inside, matrix products, convolutions and attention compute in the 16-bit dtype, and losses, softmax, norms, sums and powers in float32. device: by default all; dtype: by default float16 on GPUs, bfloat16 on the CPU. backward() belongs outside: it computes in the dtypes that forward chose.
---@param fn any
function tycho.amp.autocast(fn, ...) end

--- `({dtype=, enabled=true, device=}, fn, ...)` calls fn(...) and gives its results; inside, matrix products, convolutions and attention compute in the 16-bit dtype, and losses, softmax, norms, sums and powers in float32. device: by default all; dtype: by default float16 on GPUs, bfloat16 on the CPU. backward() belongs outside: it computes in the dtypes that forward chose.
---@param fn any
function tycho.autocast(fn, ...) end

--- `(device=)` whether autocast is on here for "cpu" or "cuda", or by default for either; and its dtype.
---@param device? any
function tycho.amp.is_autocast_enabled(device) end

--- `(device=)` whether autocast is on here for "cpu" or "cuda", or by default for either; and its dtype.
---@param device? any
function tycho.is_autocast_enabled(device) end

--- `(device)` The dtype that autocast computes in on a device ("cuda" or "cpu"), or would.
---@param device any
function tycho.amp.get_autocast_dtype(device) end

--- `(device)` The dtype that autocast computes in on a device ("cuda" or "cpu"), or would.
---@param device any
function tycho.get_autocast_dtype(device) end

--- `(fn, {cast_inputs=})` makes fn the forward of an autograd.Function whose backward, made by custom_bwd, runs under the same autocast as forward. cast_inputs: where autocast is on, floating arguments (except float64) are converted to this dtype, and fn runs without autocast.
---@param fn any
---@param options? table
function tycho.amp.custom_fwd(fn, options) end

--- `(fn)` makes fn the backward that goes with custom_fwd.
---@param fn any
function tycho.amp.custom_bwd(fn) end

--- `(loss, ...)` A loss (or a table of losses) times the scale; its backward gives gradients that are scaled too.
---@param loss any
function classes.GradScaler:scale(loss, ...) end

--- `(opt)` Divides the optimizer's gradients by the scale, in place, for code between backward() and step(), such as clipping. Once for each step.
---@param opt any
function classes.GradScaler:unscale_(opt) end

--- `(opt)` the optimizer's step, unless one of its gradients is infinite or NaN; the device decides that, and the host doesn't wait. If unscale_() wasn't called, the step itself divides by the scale, and p.grad stays scaled.
---@param opt any
function classes.GradScaler:step(opt) end

--- `(new_scale=)` ends the iteration: the scale shrinks by backoff_factor if a step was skipped, and grows by growth_factor after growth_interval consecutive steps without a skip. new_scale, a number or a tensor of one element, sets the scale instead.
---@param new_scale? any
function classes.GradScaler:update(new_scale) end

--- The scale as a number. Waits for the GPU.
function classes.GradScaler:get_scale() end

--- Whether the scaler has any effect: the option enabled.
function classes.GradScaler:is_enabled() end

--- The current value of this setting.
function classes.GradScaler:get_backoff_factor() end

--- The current value of this setting.
function classes.GradScaler:get_growth_factor() end

--- The current value of this setting.
function classes.GradScaler:get_growth_interval() end

--- `(v)` Changes this setting.
---@param v any
function classes.GradScaler:set_backoff_factor(v) end

--- `(v)` Changes this setting.
---@param v any
function classes.GradScaler:set_growth_factor(v) end

--- `(v)` Changes this setting.
---@param v any
function classes.GradScaler:set_growth_interval(v) end

--- Scale, settings and count as a table of numbers, for tycho.save. Waits for the GPU.
function classes.GradScaler:state_dict() end

--- `(d)` Continues from what state_dict gave.
---@param d any
function classes.GradScaler:load_state_dict(d) end

--- `(init_scale=65536, growth_factor=2, backoff_factor=0.5, growth_interval=2000, enabled=true)` scales losses so that 16-bit gradients don't become 0. Its state lives on the loss's device; PyTorch's argument for that, a string, may come first.
---@param init_scale? any
---@param growth_factor? any
---@param backoff_factor? any
---@param growth_interval? any
---@param enabled? any
---@return tycho.GradScaler
function tycho.amp.GradScaler(init_scale, growth_factor, backoff_factor, growth_interval, enabled) end

--- `(init_scale=65536, growth_factor=2, backoff_factor=0.5, growth_interval=2000, enabled=true)` scales losses so that 16-bit gradients don't become 0. Its state lives on the loss's device; PyTorch's argument for that, a string, may come first.
---@param init_scale? any
---@param growth_factor? any
---@param backoff_factor? any
---@param growth_interval? any
---@param enabled? any
---@return tycho.GradScaler
function tycho.GradScaler(init_scale, growth_factor, backoff_factor, growth_interval, enabled) end

--- `(fn, {dtype="float16"})` calls fn(), which runs forward, or backward too, and reports how each layer's results and their gradients would suffer in a 16-bit dtype. Gives a report, then fn's results. The report is a list of {name=, kind=, dtype=, activation=, gradient=}, in the order of first use, and prints as a table; activation and gradient hold max and min of |x| (finite, not 0), and the shares of elements too large for the dtype (overflow), or so small that they lose digits or become 0 (underflow); over several calls the worst.
---@param fn any
---@param options? table
function tycho.amp.debug(fn, options) end

--- What was recorded: a list, which prints as text, with an entry for each way through fn: {calls=, compiled=, steps= (names of the recorded ops), kernels= (what runs: {ops=, fused=, elements=, reads=, writes=, why= (no more was fused)}), nodes= (of the captured graph, on a GPU), backward= (where the results' gradients come from outside: a list of {calls=, steps=, kernels=, nodes=}, an entry for each kind of gradients), why= (it isn't compiled)}; a field that doesn't apply is nil.
function classes.compiled:report() end

--- `(fn, {guard="full", max_variants=8, fusion=true, steps=})` a function (for a module, a module) that does what fn does: its first calls run as written and are recorded, later ones replay the record. guard = "full": fn still runs, without computing, and is compared with the record, so that every change is seen; "inputs": only the arguments are compared. max_variants: how many kinds of arguments (shapes, dtypes, modes) are recorded, and how many ways through fn for each; after as many consecutive calls that went a new way, or couldn't be recorded, it gives up; where calls had only differed it tries again after four times as many calls. fusion: chains of pointwise ops become one kernel. steps = k: one call does k steps, and the arguments and results have a row for each. Backward may be called within fn, or outside of it: then it is recorded separately. torch.compile's mode, fullgraph, dynamic and backend are accepted, and have no effect. TYCHO_DEBUG=compile prints what is recorded and why not, TYCHO_DEBUG=fusion what becomes one kernel.
---@param fn any
---@param options? table
function tycho.compile(fn, options) end

--- The program as text, a line for each value.
function classes.traced:graph() end

tycho.jit = {}
--- `(model, example, ...)` a module that does the same ops as the model, a module or a function, without its Lua source. The model runs with the examples, tensors or tables of them, without gradients, in its present mode. Later calls may have another batch size where the model does the same ops for two batch sizes; the batch is dim 1 or 2 of the first example, and at most one dim of each other. Other dims (a sequence's length, a picture's height and width) may differ too, where the model does the same ops for several sizes, or for all multiples of a number, with numbers that stay the same or are multiples of sizes. Dims of one size in the examples may have to stay equal: give examples whose sizes are equal only where they must be. Sizes from 0 to 1000 are tried, each as far as that is expected to take less than a tenth of a second: where the model gives other results than the trace, the trace refuses them. Arguments may be nil, booleans, numbers and strings: then a call must have the same ones. A model whose course depends on values is an error. The trace has the ops' own gradients: detach() and no_grad within the model and gradients that an embedding's padding_idx alters are not part of it, and a backward through a trace whose model has an autograd.Function (scale_grad_by_freq is one) is an error: train the model first, then trace it. dtypes that a model asks for, as by x:to(y.dtype), are fixed: trace it in the one that it will run in; where a trial shows such a model, its trace refuses other dtypes.
---@param model any
---@param example any
function tycho.jit.trace(model, example, ...) end

--- `(path, more)` Writes one safetensors file: the tensors under their names, and the program as JSON in the metadata.
---@param path any
---@param more any
function classes.traced:save(path, more) end

--- `(path, {device=})` the module that save() wrote. The whole file is checked before it is used.
---@param path any
---@param options? table
function tycho.jit.load(path, options) end

--- `(traced)` a traced module for inference, whose tensors are constants: values that depend on constants alone are computed now, and a batch_norm in evaluation mode becomes part of the convolution before it.
---@param traced any
function tycho.jit.freeze(traced) end

tycho.cuda = {}
--- `(i)` makes GPU i, from 0, or "cuda:0" the current one in this coroutine; current_stream(device=): the stream that a device's work goes to.
---@param i any
function tycho.cuda.set_device(i) end

--- `(i)` makes GPU i, from 0, or "cuda:0" the current one in this coroutine; current_stream(device=): the stream that a device's work goes to.
---@param i any
function tycho.cuda.current_stream(i) end

--- Whether there is a GPU; if not, false and the reason.
function tycho.cuda.is_available() end

--- Whether the GPU library has been opened, which the first use of a GPU does.
function tycho.cuda.is_initialized() end

--- The number of GPUs.
function tycho.cuda.device_count() end

--- The number of the current GPU, from 0.
function tycho.cuda.current_device() end

--- `(device)` Waits until a device (by default the current one) has done all its work.
---@param device any
function tycho.cuda.synchronize(device) end

--- How often the host has waited for a GPU so far. If this doesn't grow during a step, the host never waited in it.
function tycho.cuda.sync_count() end

--- `(device)` A table {name=, major=, minor=, multi_processor_count=, total_memory=, warp_size=, max_threads_per_multi_processor=, regs_per_multiprocessor=, L2_cache_size=, shared_memory_per_multiprocessor=, shared_memory_per_block=}; memory in bytes.
---@param device any
function tycho.cuda.get_device_properties(device) end

--- `(device)` The GPU's name, such as "NVIDIA H100".
---@param device any
function tycho.cuda.get_device_name(device) end

--- `(device)` The compute capability: two numbers, 9 and 0 for sm_90.
---@param device any
function tycho.cuda.get_device_capability(device) end

--- `(device, peer)` Whether a GPU can read a peer's memory directly; else copies between them go through the host.
---@param device any
---@param peer any
function tycho.cuda.can_device_access_peer(device, peer) end

--- `(device)` Whether the GPU computes in bfloat16 (sm_80 and later).
---@param device any
function tycho.cuda.is_bf16_supported(device) end

tycho.cuda.amp = {}
--- `({dtype="float16", enabled=true}, fn, ...)` as tycho.amp.autocast with device = "cuda".
---@param fn any
function tycho.cuda.amp.autocast(fn, ...) end

--- `(device)` The state of a GPU's random generator (by default the current GPU's), for set_rng_state: a list of its seed and offset.
---@param device any
function tycho.cuda.get_rng_state(device) end

--- A list of all GPUs' states.
function tycho.cuda.get_rng_state_all() end

--- `(states)` Sets the states of all GPUs' random generators from a list.
---@param states any
function tycho.cuda.set_rng_state_all(states) end

--- `(state, device)` Sets a GPU's random generator to a state that get_rng_state gave.
---@param state any
---@param device any
function tycho.cuda.set_rng_state(state, device) end

--- The current GPU's generator's last seed.
function tycho.cuda.initial_seed() end

--- `(seed)` Seeds the current GPU's random generator; without a GPU it does nothing. tycho.manual_seed seeds all devices.
---@param seed any
function tycho.cuda.manual_seed(seed) end

--- `(seed)` Seeds the random generators of all GPUs.
---@param seed any
function tycho.cuda.manual_seed_all(seed) end

--- `(on)` true: waits for each op, so that an error (an index out of range, a device fault) is raised at the call that caused it. Slow: for debugging.
---@param on any
function tycho.cuda.set_sync_debug(on) end

--- `(mode)` "error": a hidden wait for the device (item(), copies to the CPU, sizes that depend on data) is an error; "warn": it prints the program's line to stderr; "default": neither. Also as 2, 1, 0.
---@param mode any
function tycho.cuda.set_sync_debug_mode(mode) end

--- The mode as a number: 0, 1 or 2.
function tycho.cuda.get_sync_debug_mode() end

--- `(stream=)` the event occurs when the stream (by default the current one) has done its present work; wait(stream=): later work of the stream waits for the event; synchronize(): the host waits for it.
---@param stream? any
function classes.Event:record(stream) end

--- `(stream=)` the event occurs when the stream (by default the current one) has done its present work; wait(stream=): later work of the stream waits for the event; synchronize(): the host waits for it.
---@param stream? any
function classes.Event:wait(stream) end

--- `(stream=)` the event occurs when the stream (by default the current one) has done its present work; wait(stream=): later work of the stream waits for the event; synchronize(): the host waits for it.
---@param stream? any
function classes.Event:synchronize(stream) end

--- whether the event has occurred; elapsed_time(other): milliseconds from this event to the other, both made with enable_timing.
function classes.Event:query() end

--- whether the event has occurred; elapsed_time(other): milliseconds from this event to the other, both made with enable_timing.
function classes.Event:elapsed_time() end

--- `({enable_timing=false, blocking=false})` a mark in a stream's work, on the current device. blocking: a host that waits for it sleeps rather than spin.
---@param options? table
---@return tycho.Event
function tycho.cuda.Event(options) end

--- the host waits for all of the stream's work; query(): whether all of it is done.
function classes.Stream:synchronize() end

--- the host waits for all of the stream's work; query(): whether all of it is done.
function classes.Stream:query() end

--- `(e)` Makes later work of this stream wait for the event.
---@param e any
function classes.Stream:wait_event(e) end

--- `(e)` Records an event, by default a new one, in this stream, and returns it.
---@param e any
function classes.Stream:record_event(e) end

--- `(other)` Makes later work of this stream wait for the other stream's present work.
---@param other any
function classes.Stream:wait_stream(other) end

--- `(device=, {priority=0})` a new stream of a device, by default the current one; work of priority -1 runs before work of priority 0. Its fields: device, priority.
---@param device? any
---@param options? table
---@return tycho.Stream
function tycho.cuda.Stream(device, options) end

--- `(handle, device=)` a stream that the program, or a library that it uses, has made itself, so that both put work into it in order. handle: its cudaStream_t, as an FFI pointer or light userdata. It must exist as long as memory of tensors that it was current for may be reused, and graphs that it replayed exist: free them and call empty_cache() before it is destroyed.
---@param handle any
---@param device? any
function tycho.cuda.ExternalStream(handle, device) end

--- CUDA's handle of the stream (a cudaStream_t, as light userdata), for libraries called through the FFI.
function classes.Stream:cuda_stream() end

--- `(device)` The stream that is a device's current one initially.
---@param device any
function tycho.cuda.default_stream(device) end

--- `(s)` Makes s the current stream of its device; s is kept for the life of the process.
---@param s any
function tycho.cuda.set_stream(s) end

--- `(device, fn, ...)` Calls fn(...) with a device as the current one, and gives its results.
---@param device any
---@param fn any
function tycho.cuda.device(device, fn, ...) end

--- Whether a graph is being recorded.
function tycho.cuda.is_current_stream_capturing() end

--- `(s, fn, ...)` Calls fn(...) with s as the current stream, and s's device as the current device; gives its results. s = nil: only calls fn.
---@param s any
---@param fn any
function tycho.cuda.stream(s, fn, ...) end

--- Frees the graph's memory; the graph can't be replayed any more.
function classes.Graph:reset() end

--- Runs the recorded work on the current stream: it reads its inputs and writes its results at the recorded addresses.
function classes.Graph:replay() end

--- The graph's memory, for another graph's option pool: graphs of one pool share memory, so they must be replayed in the order in which they were recorded.
function classes.Graph:pool() end

--- A pool for the option pool, before there is a graph.
function tycho.cuda.graph_pool_handle() end

--- `(o, fn, ...)` graph({pool=}, fn, ...), or graph(fn, ...): records the work that fn puts into streams of the current device, without running it; gives the graph and fn's results, which hold values after g:replay(). Shapes are fixed, new inputs are copied into the old ones (copy_), and fn must not wait for the device. Things made once at first use (plans, an optimizer's state) must exist already: call fn once before. pool: another graph's g:pool(), or a graph_pool_handle(), whose memory is shared.
---@param o any
---@param fn any
function tycho.cuda.graph(o, fn, ...) end

--- `(source, name)` the kernel __global__ void name(...) of a CUDA C source text, called as k(grid, block, arguments ...), which runs in the current stream. grid, block: numbers, or lists of up to 3. A pointer takes a contiguous tensor of its dtype on one GPU (unsigned short *: of any 16-bit dtype, void *: of any); a pointer that isn't const is written to, without a gradient, which an autograd.Function can provide. Numbers are checked against their type. NVRTC compiles the kernel at the first call, without contracting products and sums (use fmaf()), and it is cached on disk.
---@param source any
---@param name any
function tycho.cuda.kernel(source, name) end

tycho.cuda.nvtx = {}
--- ends the range begun by the last range_push.
function tycho.cuda.nvtx.range_pop() end

--- `(text)` Names on the timelines of Nsight and similar tools: range_push(text) begins a range, mark(text) marks a moment.
---@param text any
function tycho.cuda.nvtx.mark(text) end

--- `(text)` Names on the timelines of Nsight and similar tools: range_push(text) begins a range, mark(text) marks a moment.
---@param text any
function tycho.cuda.nvtx.range_push(text) end

--- `(text, fn, ...)` Calls fn(...) within a range of that name; gives its results.
---@param text any
---@param fn any
function tycho.cuda.nvtx.range(text, fn, ...) end

tycho.cuda.profiler = {}
--- start() and stop() bound what an external profiler that waits for them records.
function tycho.cuda.profiler.start() end

--- start() and stop() bound what an external profiler that waits for them records.
function tycho.cuda.profiler.stop() end

--- `(callables, sample_args, {num_warmup_iters=3, allow_unused_input=false})` gives a function or module, or a list of them that run one after another, whose forward and backward are replayed as graphs; a module in its present mode. sample_args: a list of tensors (for a list, a list of such lists) of the arguments' shapes and dtypes, which require grad where the arguments will.
---@param callables any
---@param sample_args any
---@param options? table
function tycho.cuda.make_graphed_callables(callables, sample_args, options) end

--- `(device)` The device's free and total memory in bytes: two numbers.
---@param device any
function tycho.cuda.mem_get_info(device) end

tycho.cuda.memory = {}
--- `(device)` The device's free and total memory in bytes: two numbers.
---@param device any
function tycho.cuda.memory.mem_get_info(device) end

--- `(device)` Resets max_memory_allocated and max_memory_reserved to the present values.
---@param device any
function tycho.cuda.memory.reset_peak_memory_stats(device) end

--- `(device)` Resets max_memory_allocated and max_memory_reserved to the present values.
---@param device any
function tycho.cuda.reset_peak_memory_stats(device) end

--- Returns unused cached memory to the devices, and unused pinned memory to the system. Waits for the devices.
function tycho.cuda.empty_cache() end

--- Returns unused cached memory to the devices, and unused pinned memory to the system. Waits for the devices.
function tycho.cuda.memory.empty_cache() end

--- `(device)` What the allocator holds: allocated, reserved and their peaks max_allocated, max_reserved in bytes, allocations, segments, num_alloc_retries (allocations for which the cache was emptied), num_ooms, blocks (by size, {most=, used=, free=}); also by PyTorch's names: .current and .peak of "allocated_bytes.all", "active_bytes.all" and "reserved_bytes.all", .current of "allocation.all", "active.all" and "segment.all".
---@param device any
function tycho.cuda.memory.memory_stats(device) end

--- `(device)` What the allocator holds: allocated, reserved and their peaks max_allocated, max_reserved in bytes, allocations, segments, num_alloc_retries (allocations for which the cache was emptied), num_ooms, blocks (by size, {most=, used=, free=}); also by PyTorch's names: .current and .peak of "allocated_bytes.all", "active_bytes.all" and "reserved_bytes.all", .current of "allocation.all", "active.all" and "segment.all".
---@param device any
function tycho.cuda.memory_stats(device) end

--- `(device)` The bytes in tensors (allocated) or taken from the device (reserved), and their peaks (max); 0 without a GPU.
---@param device any
function tycho.cuda.max_memory_allocated(device) end

--- `(device)` The bytes in tensors (allocated) or taken from the device (reserved), and their peaks (max); 0 without a GPU.
---@param device any
function tycho.cuda.max_memory_reserved(device) end

--- `(device)` The bytes in tensors (allocated) or taken from the device (reserved), and their peaks (max); 0 without a GPU.
---@param device any
function tycho.cuda.memory.max_memory_allocated(device) end

--- `(device)` The bytes in tensors (allocated) or taken from the device (reserved), and their peaks (max); 0 without a GPU.
---@param device any
function tycho.cuda.memory.max_memory_reserved(device) end

--- `(device)` The bytes in tensors (allocated) or taken from the device (reserved), and their peaks (max); 0 without a GPU.
---@param device any
function tycho.cuda.memory.memory_allocated(device) end

--- `(device)` The bytes in tensors (allocated) or taken from the device (reserved), and their peaks (max); 0 without a GPU.
---@param device any
function tycho.cuda.memory.memory_reserved(device) end

--- `(device)` The bytes in tensors (allocated) or taken from the device (reserved), and their peaks (max); 0 without a GPU.
---@param device any
function tycho.cuda.memory_allocated(device) end

--- `(device)` The bytes in tensors (allocated) or taken from the device (reserved), and their peaks (max); 0 without a GPU.
---@param device any
function tycho.cuda.memory_reserved(device) end

--- `(device)` What the allocator holds, as a text table.
---@param device any
function tycho.cuda.memory.memory_summary(device) end

--- `(device)` What the allocator holds, as a text table.
---@param device any
function tycho.cuda.memory_summary(device) end

--- `(fraction, device)` Sets the share of the device's memory, above 0 and up to 1, that this process may reserve; beyond it there is an out-of-memory error.
---@param fraction any
---@param device any
function tycho.cuda.memory.set_per_process_memory_fraction(fraction, device) end

--- `(fraction, device)` Sets the share of the device's memory, above 0 and up to 1, that this process may reserve; beyond it there is an out-of-memory error.
---@param fraction any
---@param device any
function tycho.cuda.set_per_process_memory_fraction(fraction, device) end

--- `(device)` The share of the device's memory that this process may reserve.
---@param device any
function tycho.cuda.get_per_process_memory_fraction(device) end

--- `(device)` The share of the device's memory that this process may reserve.
---@param device any
function tycho.cuda.memory.get_per_process_memory_fraction(device) end

--- `(settings)` Settings of the GPUs' allocator, from now on, as a table or as PyTorch's text "max_split_size_mb:128,garbage_collection_threshold:0.8"; also read from the environment variable TYCHO_CUDA_ALLOC_CONF at first. Those left out stay as they are; false switches one off. max_split_size_mb: cached blocks that are larger aren't cut up, so that requests of many sizes fragment memory less. garbage_collection_threshold: above this share of the device's memory, or of what set_per_process_memory_fraction allows, the cached segments unused longest are given back before new ones are taken. roundup_power2_divisions: sizes are rounded up to one of so many steps between two powers of two, so that blocks are reused for similar sizes. expandable_segments: new segments are ranges of addresses that get memory piece by piece where it is needed, so that shapes which change from step to step don't scatter free memory over segments.
---@param settings any
function tycho.cuda.memory.set_allocator_settings(settings) end

--- `(settings)` Settings of the GPUs' allocator, from now on, as a table or as PyTorch's text "max_split_size_mb:128,garbage_collection_threshold:0.8"; also read from the environment variable TYCHO_CUDA_ALLOC_CONF at first. Those left out stay as they are; false switches one off. max_split_size_mb: cached blocks that are larger aren't cut up, so that requests of many sizes fragment memory less. garbage_collection_threshold: above this share of the device's memory, or of what set_per_process_memory_fraction allows, the cached segments unused longest are given back before new ones are taken. roundup_power2_divisions: sizes are rounded up to one of so many steps between two powers of two, so that blocks are reused for similar sizes. expandable_segments: new segments are ranges of addresses that get memory piece by piece where it is needed, so that shapes which change from step to step don't scatter free memory over segments.
---@param settings any
function tycho.cuda.set_allocator_settings(settings) end

--- `(path, alloc_name, free_name)` functions of a shared library that give GPU memory instead of the driver, for a MemPool or change_current_allocator(): void *alloc(ssize_t size, int device, cudaStream_t stream), NULL where there is none, and void free(void *p, ssize_t size, int device, cudaStream_t stream). They may be called from any thread, must not call Tycho, and are asked for segments that Tycho caches and cuts into tensors' blocks.
---@param path any
---@param alloc_name any
---@param free_name any
function tycho.cuda.CUDAPluggableAllocator(path, alloc_name, free_name) end

--- `(path, alloc_name, free_name)` functions of a shared library that give GPU memory instead of the driver, for a MemPool or change_current_allocator(): void *alloc(ssize_t size, int device, cudaStream_t stream), NULL where there is none, and void free(void *p, ssize_t size, int device, cudaStream_t stream). They may be called from any thread, must not call Tycho, and are asked for segments that Tycho caches and cuts into tensors' blocks.
---@param path any
---@param alloc_name any
---@param free_name any
function tycho.cuda.memory.CUDAPluggableAllocator(path, alloc_name, free_name) end

--- `(allocator)` Makes a CUDAPluggableAllocator give all GPU memory that isn't in pools; before the first tensor on a GPU.
---@param allocator any
function tycho.cuda.change_current_allocator(allocator) end

--- `(allocator)` Makes a CUDAPluggableAllocator give all GPU memory that isn't in pools; before the first tensor on a GPU.
---@param allocator any
function tycho.cuda.memory.change_current_allocator(allocator) end

--- `(allocator=)` a pool of GPU memory, whose segments only serve what is allocated within use_mem_pool(): apart from other memory, or from an allocator of the program's own. Field id. When it and its tensors are gone, the memory goes back; what graphs had, with empty_cache().
---@param allocator? any
function tycho.cuda.MemPool(allocator) end

--- `(allocator=)` a pool of GPU memory, whose segments only serve what is allocated within use_mem_pool(): apart from other memory, or from an allocator of the program's own. Field id. When it and its tensors are gone, the memory goes back; what graphs had, with empty_cache().
---@param allocator? any
function tycho.cuda.memory.MemPool(allocator) end

--- `(pool, fn, ...)` Calls fn(...), whose new GPU memory comes from a MemPool; gives its results.
---@param pool any
---@param fn any
function tycho.cuda.memory.use_mem_pool(pool, fn, ...) end

--- `(pool, fn, ...)` Calls fn(...), whose new GPU memory comes from a MemPool; gives its results.
---@param pool any
---@param fn any
function tycho.cuda.use_mem_pool(pool, fn, ...) end

--- `(on=true, {max_entries=100000})` begins the history of GPU memory, for memory_history() and dump_memory_snapshot(): the allocator's last max_entries events of each device, and the line of the program that allocated each block. false: ends it and drops the events; blocks keep their lines. As in PyTorch, on may be an option, enabled: "all" (true), "state" (only the lines of blocks) or false; context and stacks are taken without effect.
---@param on? any
---@param options? table
function tycho.cuda.memory.record_memory_history(on, options) end

--- `(on=true, {max_entries=100000})` begins the history of GPU memory, for memory_history() and dump_memory_snapshot(): the allocator's last max_entries events of each device, and the line of the program that allocated each block. false: ends it and drops the events; blocks keep their lines. As in PyTorch, on may be an option, enabled: "all" (true), "state" (only the lines of blocks) or false; context and stacks are taken without effect.
---@param on? any
---@param options? table
function tycho.cuda.record_memory_history(on, options) end

--- `(device)` What the allocator did since record_memory_history(), the oldest first: a list of {action=, address=, size=, stream=, time_us=, where=}. action: "alloc", "free_requested", "free_completed" (no stream uses the block any more), "segment_alloc" and "segment_free" (memory from the device, and back), "segment_map" and "segment_unmap" (the same, of a part of an expandable segment), "oom" (it has device_free= instead of an address). size in bytes; time_us: microseconds since 1970; where="train.lua:12", or nil: the line that allocated the block.
---@param device any
function tycho.cuda.memory.memory_history(device) end

--- `(device)` What the allocator did since record_memory_history(), the oldest first: a list of {action=, address=, size=, stream=, time_us=, where=}. action: "alloc", "free_requested", "free_completed" (no stream uses the block any more), "segment_alloc" and "segment_free" (memory from the device, and back), "segment_map" and "segment_unmap" (the same, of a part of an expandable segment), "oom" (it has device_free= instead of an address). size in bytes; time_us: microseconds since 1970; where="train.lua:12", or nil: the line that allocated the block.
---@param device any
function tycho.cuda.memory_history(device) end

--- `(device)` What the allocator holds, a list of segments {device=, address=, total_size=, allocated_size=, segment_type="small"|"large", stream=, pool= (a MemPool's id, or 0), expandable= (one range of an expandable segment), blocks={ {address=, size=, where="train.lua:12" or nil, state="active_allocated"|"active_awaiting_free"|"inactive"}, ...}}; sizes in bytes.
---@param device any
function tycho.cuda.memory.memory_snapshot(device) end

--- `(device)` What the allocator holds, a list of segments {device=, address=, total_size=, allocated_size=, segment_type="small"|"large", stream=, pool= (a MemPool's id, or 0), expandable= (one range of an expandable segment), blocks={ {address=, size=, where="train.lua:12" or nil, state="active_allocated"|"active_awaiting_free"|"inactive"}, ...}}; sizes in bytes.
---@param device any
function tycho.cuda.memory_snapshot(device) end

--- `(path)` Writes the allocator's segments and its history on all devices to a file in PyTorch's form, for its tools that draw them (python -m torch.cuda._memory_viz trace_plot FILE, or the page memory_viz).
---@param path any
function tycho.cuda.dump_memory_snapshot(path) end

--- `(path)` Writes the allocator's segments and its history on all devices to a file in PyTorch's form, for its tools that draw them (python -m torch.cuda._memory_viz trace_plot FILE, or the page memory_viz).
---@param path any
function tycho.cuda.memory.dump_memory_snapshot(path) end

tycho.distributed = {}
--- Whether tycho was built with MPI; if not, false and the reason. Starts nothing.
function tycho.distributed.is_available() end

--- Whether init_process_group has been called, and destroy_process_group hasn't.
function tycho.distributed.is_initialized() end

--- `(backend=, {timeout=1800})` connects the processes that mpirun has started; without mpirun there is only this one. timeout: seconds that a call may wait for the others. backend is PyTorch's argument, without effect: the tensors' devices decide between MPI and NCCL. With TYCHO_DEBUG=distributed in the environment the processes compare their next exchange before each one, so that a difference is an error rather than a hang.
---@param backend? any
---@param options? table
function tycho.distributed.init_process_group(backend, options) end

--- `(group)` Forgets the group of all. Connections stay open until the processes end, each waiting for the others.
---@param group any
function tycho.distributed.destroy_process_group(group) end

--- `(ranks)` a group of the processes with these ranks, a list; all processes must call it, in the same order.
---@param ranks any
function tycho.distributed.new_group(ranks) end

--- `(group)` This process's number, from 0, in a group or among all processes; nil if it isn't in the group.
---@param group any
function tycho.distributed.get_rank(group) end

--- `(group)` The number of processes in a group, or in all.
---@param group any
function tycho.distributed.get_world_size(group) end

--- This process's number on its machine, from 0: the GPU it should take.
function tycho.distributed.get_local_rank() end

--- Always "mpi".
function tycho.distributed.get_backend() end

--- Waits until the exchange is done; for tensors on a GPU, only makes the current stream wait.
function classes.Work:wait() end

--- Whether the exchange is done.
function classes.Work:is_completed() end

--- `(x, op?, group?, async_op:bool=false)` Sets x to the sum of all processes' x; op: "sum", "mean", "product", "min", "max", or distributed.ReduceOp.SUM and so on. For NaN and a number, min and max give NaN on the CPU, and the number on GPUs, as NCCL does. async_op: returns at once, with a Work to wait() for.
---@param x any
---@param op? any
---@param group? any
---@param async_op? boolean|table
function tycho.distributed.all_reduce(x, op, group, async_op) end

--- `(x, dst:int, op?, group?, async_op:bool=false)` As all_reduce, but only the process of rank dst gets the result.
---@param x any
---@param dst integer
---@param op? any
---@param group? any
---@param async_op? boolean|table
function tycho.distributed.reduce(x, dst, op, group, async_op) end

--- `(x, src:int, group?, async_op:bool=false)` Sets x to the x of the process of rank src.
---@param x any
---@param src integer
---@param group? any
---@param async_op? boolean|table
function tycho.distributed.broadcast(x, src, group, async_op) end

--- `(out, x, group?, async_op:bool=false)` Sets out, whose dim 1 is x's times the number of processes, to all processes' x, in the order of ranks.
---@param out any
---@param x any
---@param group? any
---@param async_op? boolean|table
function tycho.distributed.all_gather_into_tensor(out, x, group, async_op) end

--- `(out, x, op?, group?, async_op:bool=false)` Sets out to this process's part, along dim 1, of the sum of all processes' x.
---@param out any
---@param x any
---@param op? any
---@param group? any
---@param async_op? boolean|table
function tycho.distributed.reduce_scatter_tensor(out, x, op, group, async_op) end

--- `(out, x, group?, async_op:bool=false)` Sends part i of x, along dim 1, to process i; out receives the parts for this one, in the order of ranks.
---@param out any
---@param x any
---@param group? any
---@param async_op? boolean|table
function tycho.distributed.all_to_all_single(out, x, group, async_op) end

--- `(list, x, group?)` Sets the tensors of list, one for each process, to the processes' x.
---@param list any
---@param x any
---@param group? any
function tycho.distributed.all_gather(list, x, group) end

--- `(out, list, op?, group?)` Sets out to the sum of all processes' list items for this process.
---@param out any
---@param list any
---@param op? any
---@param group? any
function tycho.distributed.reduce_scatter(out, list, op, group) end

--- `(outputs, inputs, group?)` Sends inputs[i] to process i, counted from 1; outputs receive the tensors for this process.
---@param outputs any
---@param inputs any
---@param group? any
function tycho.distributed.all_to_all(outputs, inputs, group) end

--- `(x, dst:int, group?, tag:int=0)` Sends x to the process of rank dst; gives a Work. tag: tells messages between two processes apart (CPU). A GPU's stream does one exchange after the other: if two processes send to each other, one must call irecv first, or both use batch_isend_irecv.
---@param x any
---@param dst integer
---@param group? any
---@param tag? integer|table
function tycho.distributed.isend(x, dst, group, tag) end

--- `(x, src:int, group?, tag:int=0)` Sets x to what the process of rank src sends; gives a Work.
---@param x any
---@param src integer
---@param group? any
---@param tag? integer|table
function tycho.distributed.irecv(x, src, group, tag) end

--- `(op, x, peer, group, tag)` An exchange for batch_isend_irecv: op is distributed.isend or distributed.irecv.
---@param op any
---@param x any
---@param peer any
---@param group any
---@param tag any
function tycho.distributed.P2POp(op, x, peer, group, tag) end

--- `(list)` Begins the exchanges of a list of P2POp; gives their Works. The list's order doesn't matter: each process takes them in the same order, by the two ranks and the direction, so that on GPUs, where a stream does one exchange after the other, processes can't wait in a ring.
---@param list any
function tycho.distributed.batch_isend_irecv(list) end

--- `(x, dst:int, group?, tag:int=0)` As isend, but waits until it is done.
---@param x any
---@param dst integer
---@param group? any
---@param tag? integer|table
function tycho.distributed.send(x, dst, group, tag) end

--- `(x, src:int, group?, tag:int=0)` As irecv, but waits until it is done.
---@param x any
---@param src integer
---@param group? any
---@param tag? integer|table
function tycho.distributed.recv(x, src, group, tag) end

--- `(x, list?, dst:int=0, group?)` Sets the tensors of list, at the process of rank dst, to all processes' x; the others pass no list.
---@param x any
---@param list? any
---@param dst? integer|table
---@param group? any
function tycho.distributed.gather(x, list, dst, group) end

--- `(x, list?, src:int=0, group?)` Sets x to the list item that the process of rank src has for this one; the others pass no list.
---@param x any
---@param list? any
---@param src? integer|table
---@param group? any
function tycho.distributed.scatter(x, list, src, group) end

--- `(group)` Waits until all processes call it, and this one's GPUs have done their work.
---@param group any
function tycho.distributed.barrier(group) end

--- `(list, src=0, group=)` sets the values of list to those of the process of rank src: any that tycho.save takes, and tensors on the CPU.
---@param list any
---@param src? any
---@param group? any
function tycho.distributed.broadcast_object_list(list, src, group) end

--- `(list, value, group)` Sets list to the values of all processes, in the order of ranks.
---@param list any
---@param value any
---@param group any
function tycho.distributed.all_gather_object(list, value, group) end

tycho.distributed.functional = {}
--- `(x, op="sum", group=)` the sum of all processes' x, a new tensor through which gradients flow back to all; so too the following.
---@param x any
---@param op? any
---@param group? any
function tycho.distributed.functional.all_reduce(x, op, group) end

--- `(x, group=)` all processes' x one after another along dim 1.
---@param x any
---@param group? any
function tycho.distributed.functional.all_gather(x, group) end

--- `(x, op="sum", group=)` this process's part, along dim 1, of the sum of all x.
---@param x any
---@param op? any
---@param group? any
function tycho.distributed.functional.reduce_scatter(x, op, group) end

--- `(x, group=)` sends part i of x, along dim 1, to process i; gives the parts for this one.
---@param x any
---@param group? any
function tycho.distributed.functional.all_to_all(x, group) end

tycho.distributed.fsdp = {}
--- `(net, {process_group=, reshard_after_forward=true, mp_policy={param_dtype=, reduce_dtype=, output_dtype=}})` from now on each process holds only its rows of net's parameters, of their gradients and of the state of an optimizer made afterwards. forward gathers the whole parameters, and drops them when it ends, unless reshard_after_forward = false; backward gathers them again. Gradients are the means over all processes. Shard the blocks of a model first, one by one, then the model: for _, b in ipairs(net.blocks) do fully_shard(b) end fully_shard(net). mp_policy: the dtypes in which parameters are exchanged and used, gradients reduced, and results returned; floating arguments are converted to param_dtype too, unless cast_forward_inputs = false. State dicts have whole parameters, in all processes, which must all call state_dict(). clip_grad_norm_ and GradScaler support shards; get_total_norm, of a list of gradients, gives only this process's norm. net:set_requires_gradient_sync(false) lets gradients add up without exchanges, until it is true again. Gives net.
---@param net any
---@param options? table
function tycho.distributed.fsdp.fully_shard(net, options) end

--- `(net, name)` makes net[name], a user's method such as "generate", run with whole parameters, as forward does.
---@param net any
---@param name any
function tycho.distributed.fsdp.register_fsdp_forward_method(net, name) end

--- `({param_dtype=, reduce_dtype=, output_dtype=, cast_forward_inputs=true})` fully_shard's mp_policy.
---@param options? table
function tycho.distributed.fsdp.MixedPrecisionPolicy(options) end

--- `(opt)` the optimizer's state_dict() with whole tensors; all processes must call it, and get it.
---@param opt any
function tycho.distributed.fsdp.optim_state_dict(opt) end

--- `(opt, state)` loads such a state, or one of an optimizer of the whole model.
---@param opt any
---@param state any
function tycho.distributed.fsdp.load_optim_state_dict(opt, state) end

tycho.distributed.optim = {}
--- `(params, {optimizer_class=, process_group=, ...})` an optimizer of that class, with its options, whose state for each parameter is kept in one process only; all processes need the same gradients, as DistributedDataParallel gives them. Each step ends with an exchange of the changed parameters. Schedulers and GradScaler accept it as any optimizer. state_dict() has this process's share, until consolidate_state_dict(to) has collected all shares in one process; load_state_dict takes a whole state and keeps the share.
---@param params any
---@param options? table
function tycho.distributed.optim.ZeroRedundancyOptimizer(params, options) end

tycho.data = {}
--- `(items)` the batch that a loader makes of a list of items, each a list {field}: tensors are stacked, numbers become int64 if all are whole, else float32, tables are collated by their fields, strings become a list.
---@param items any
function tycho.data.collate(items) end

--- `(items)` the batch that a loader makes of a list of items, each a list {field}: tensors are stacked, numbers become int64 if all are whole, else float32, tables are collated by their fields, strings become a list.
---@param items any
function tycho.data.default_collate(items) end

--- The number of items.
function classes.TensorDataset:size() end

--- `(i)` Item i: the i-th row of each tensor, as several values.
---@param i any
function classes.TensorDataset:get(i) end

--- `(indices)` The items at the given positions, an int64 tensor, as a batch.
---@param indices any
function classes.TensorDataset:batch(indices) end

--- `(device)` The same items on a device.
---@param device any
function classes.TensorDataset:to(device) end

--- `(x, y, ...)` item i is x[i], y[i], ...; tensors of the same dim 1.
---@param x any
---@param y any
---@return tycho.TensorDataset
function tycho.data.TensorDataset(x, y, ...) end

--- `(dataset, indices)` the items at these positions, a list or an int64 tensor. A change of its field `indices` takes effect in the next epoch.
---@param dataset any
---@param indices any
function tycho.data.Subset(dataset, indices) end

--- `({a, b, ...})` the items of the datasets, one dataset after another.
---@param options? table
function tycho.data.ConcatDataset(options) end

--- `({a, b, ...})` the items of datasets with iter(), one dataset after another; has iter() itself.
---@param options? table
function tycho.data.ChainDataset(options) end

--- `(a, b, ...)` item i has the fields of a's item i, then b's, and so on. StackDataset{name=a, ...}: item i is a table {name=a's item i, ...}, where an item of several fields is a list.
---@param a any
---@param b any
function tycho.data.StackDataset(a, b, ...) end

--- `(dataset, {n1, n2, ...}, {seed=, generator=})` a list of Subsets of that many items, drawn at random. The sizes add up to the number of items, or are fractions that add up to 1.
---@param dataset any
---@param options? table
function tycho.data.random_split(dataset, options) end

--- `(path, {gray=false})` a JPEG or PNG file as a float32 tensor CxHxW of values in 0..1; gray: one channel.
---@param path any
---@param options? table
function tycho.data.read_image(path, options) end

--- `(path, {header=true, separator=",", dtype="float32"})` a text file of numbers as a tensor rows x columns, and the list of column names. An empty field is NaN. With an integer dtype each field must be a whole number of its range, and below 2^53.
---@param path any
---@param options? table
function tycho.data.read_csv(path, options) end

--- `(dataset, {batch_size=1, shuffle=false, drop_last=false, num_workers=0, pin_memory=false, prefetch_factor=2, seed=, generator=, sampler=, batch_sampler=, collate=, timeout=5})` for x, y in loader:iter() do gives batches: the items' fields, stacked. The dataset has size() and get(i), or only iter(), whose order it then follows; a list of items or a tensor will do too. num_workers: threads, or processes for datasets written in Lua, which must be given as data.Dataset("module", {...}). seed: determines the order; unless given it is drawn now, from generator or the CPU's own. sampler, batch_sampler: an object of data's, a list of positions (a list of such lists), or any object with iter(). collate(items): gets a list of items, each a list of fields, and returns the batch's fields; it runs in this thread, a dataset's own collate(items) where the items are made. batch_size = false: items one by one. prefetch_factor: pending batches for each worker; timeout: seconds that an item may take in a worker, 0: no limit. Accepted without effect: persistent_workers (they stay until close()), multiprocessing_context, pin_memory_device, in_order (batches always come in order).
---@param dataset any
---@param options? table
---@return tycho.DataLoader
function tycho.data.DataLoader(dataset, options) end

--- The number of batches in an epoch.
function classes.DataLoader:size() end

--- Ends threads and worker processes now, not only when the loader is collected; a later iter() starts them again.
function classes.DataLoader:close() end

--- for x, y in loader:iter() do: a new epoch, or the rest of the one whose state was loaded. Leaving the loop early ends its epoch. Loops may be nested.
function classes.DataLoader:iter() end

--- Its place in the data: epoch, position and seed, as a table of numbers for tycho.save.
function classes.DataLoader:state_dict() end

--- `(d)` Makes the next iter() continue at the place that state_dict gave. The batch size must be the same.
---@param d any
function classes.DataLoader:load_state_dict(d) end

--- `(loader, device="cuda")` iterates as the loader does, with batches on the device: the next batch is copied meanwhile, on a stream of its own, from pinned memory (the loader's pin_memory) without blocking the host. On the CPU it passes batches on. Field waited: the seconds spent waiting for batches.
---@param loader any
---@param device? any
---@return tycho.Prefetcher
function tycho.data.Prefetcher(loader, device) end

--- The loader's size.
function classes.Prefetcher:size() end

--- for x, y in prefetcher:iter() do: as the loader's.
function classes.Prefetcher:iter() end

--- The loader's place after the batch given last.
function classes.Prefetcher:state_dict() end

--- `(d)` As the loader's.
---@param d any
function classes.Prefetcher:load_state_dict(d) end

--- As the loader's.
function classes.Prefetcher:close() end

--- The number of items. The dataset is made in this process too for that.
function classes.Dataset:size() end

--- `(i)` Item i, made in this process.
---@param i any
function classes.Dataset:get(i) end

--- `(module, data)` a dataset that worker processes make for themselves: require(module) returns a function, which is called with data, a plain table of numbers, strings, booleans, tensors and tables, and returns an object with size() and get(i), or only with iter().
---@param module any
---@param data any
---@return tycho.Dataset
function tycho.data.Dataset(module, data) end

--- in a worker process {id, num_workers}, id from 1, else nil. A dataset with iter() that calls this before its first item decides itself which share it gives in each worker; otherwise every worker goes over all items, and makes some of the batches.
function tycho.data.get_worker_info() end

--- `(dataset)` all positions in order. dataset may be a number of items, here and below.
---@param dataset any
function tycho.data.SequentialSampler(dataset) end

--- `(dataset, replacement=false, num_samples=, generator=, {seed=})` positions in random order, num_samples of them (as many as items unless given). seed, or a seed that generator draws now, replaces the loader's.
---@param dataset any
---@param replacement? any
---@param num_samples? any
---@param generator? any
---@param options? table
function tycho.data.RandomSampler(dataset, replacement, num_samples, generator, options) end

--- `(positions, {seed=, generator=})` the positions of a list in random order.
---@param positions any
---@param options? table
function tycho.data.SubsetRandomSampler(positions, options) end

--- `(weights, num_samples, {replacement=true, seed=, generator=})` position i is drawn in proportion to weights[i].
---@param weights any
---@param num_samples any
---@param options? table
function tycho.data.WeightedRandomSampler(weights, num_samples, options) end

--- `(dataset, num_replicas=, rank=, shuffle=true, seed=0, drop_last=false)` this process's share of the positions; ranks count from 0; num_replicas and rank follow from tycho.distributed unless given. Shares are equal: some items are repeated, or with drop_last left out. All processes need the same seed.
---@param dataset any
---@param num_replicas? any
---@param rank? any
---@param shuffle? any
---@param seed? any
---@param drop_last? any
function tycho.data.DistributedSampler(dataset, num_replicas, rank, shuffle, seed, drop_last) end

--- `(sampler, batch_size, drop_last=false)` lists of positions, for a DataLoader's batch_sampler.
---@param sampler any
---@param batch_size any
---@param drop_last? any
function tycho.data.BatchSampler(sampler, batch_size, drop_last) end

--- The number of pictures.
function classes.Pictures:size() end

--- `(i)` Picture i, float32 CxHxW in 0..1 unless a transform changes that, and its label, which counts from 1.
---@param i any
function classes.Pictures:get(i) end

--- `(device)` The whole dataset on a device: its batch(positions), of an int64 tensor, gathers pictures and labels there and applies the transform (crops, flips, Cutout, Normalize) in one kernel, also within compiled steps.
---@param device any
function classes.Pictures:to(device) end

tycho.data.datasets = {}
--- `({root=, train=true, transform=})` 28x28 pictures of clothes in 10 classes, from the four IDX files (or .gz) in the folder root, by default that of Debian's package dataset-fashion-mnist. train = false: the test part. Labels count from 1; ds.classes[label] is the class's name. Nothing is downloaded: if files are missing, the error shows the command that fetches them. Options may also follow the path: FashionMNIST(root, {...}); so too for the other datasets.
---@param options? table
function tycho.data.datasets.FashionMNIST(options) end

--- `({root="mnist", train=true, transform=})` 28x28 pictures of digits; digit 0 has label 1.
---@param options? table
function tycho.data.datasets.MNIST(options) end

--- `({root="cifar10", train=true, transform=})` 3x32x32 pictures in 10 classes, from the files of the binary version.
---@param options? table
function tycho.data.datasets.CIFAR10(options) end

--- `({root="cifar100", train=true, transform=})` 3x32x32 pictures in 100 classes, from the files of the binary version.
---@param options? table
function tycho.data.datasets.CIFAR100(options) end

--- `({root=, train=, transform=, gray=false, allow_empty=false})` pictures root/class/.../file.jpg or .png; the classes are the folders' names, sorted. If train is given, the classes are in root/train, or root/val (or root/test). gray: one channel. allow_empty: a folder without pictures is a class too, not an error. Fields: paths, a list; labels, or PyTorch's name targets, a tensor; classes; class_to_idx.
---@param options? table
function tycho.data.datasets.ImageFolder(options) end

--- The number of windows.
function classes.TextFile:size() end

--- `(i)` Window i: block_size ids, and the same window shifted by one.
---@param i any
function classes.TextFile:get(i) end

--- `(text)` The ids of a string's characters, an int64 vector; a character that the file doesn't contain is an error.
---@param text any
function classes.TextFile:encode(text) end

--- `(ids)` The string for ids, a tensor or a list.
---@param ids any
function classes.TextFile:decode(ids) end

--- `({root=FILE, train=true, block_size=128, stride=block_size, split=0.9, transform=})` the characters (bytes) of a text as ids from 1, in the order of their codes. Item i is a window of block_size ids, and the same window shifted by one. The first `split` of the text is for training. ds.vocab[id] is a character, ds.id_of[character] its id, #ds.vocab their number, ds.ids all ids of this part.
---@param options? table
---@return tycho.TextFile
function tycho.data.datasets.TextFile(options) end

--- `({root=FILE, dtype="uint16", train=, block_size=128, stride=block_size, split=0.9})` a file of token ids from 0, uint16 or int32, as tokenizers write them. It is memory-mapped, and must not become shorter while in use. Items are windows as TextFile's, with ids from 1. Without train it is the whole file.
---@param options? table
function tycho.data.datasets.TokenFile(options) end

--- The number of rows.
function classes.CSV:size() end

--- `(i)` Row i, and its target, if there is one.
---@param i any
function classes.CSV:get(i) end

--- `(indices)` The rows at the given positions, an int64 tensor, and their targets.
---@param indices any
function classes.CSV:batch(indices) end

--- `({root=FILE, target=, header=true, separator=",", labels=false})` item i is row i, float32 numbers. target: the name or number of a column that items give separately, as float32 or, with labels = true, as int64 from 1, where the file counts from 0. ds.columns: the names of the other columns.
---@param options? table
---@return tycho.CSV
function tycho.data.datasets.CSV(options) end

tycho.data.transforms = {}
--- `(size, {interpolation="bilinear", max_size=, antialias=true})` resizes the shorter side to size, or to less where the longer side would be above max_size; or the picture to {height, width}; "bilinear", "bicubic" or "nearest". Transforms are called with a picture, float32 or uint8 CxHxW, or given as a dataset's transform.
---@param size any
---@param options? table
function tycho.data.transforms.Resize(size, options) end

--- `(size)` the middle; size: a number, or {height, width}.
---@param size any
function tycho.data.transforms.CenterCrop(size) end

--- `(size, padding=0, {pad_if_needed=false, fill=0, padding_mode="constant"})` a crop at a random place, after padding as in Pad; pad_if_needed: smaller pictures are padded further, else they are an error.
---@param size any
---@param padding? any
---@param options? table
function tycho.data.transforms.RandomCrop(size, padding, options) end

--- `(size, scale={0.08, 1}, ratio={3/4, 4/3}, {interpolation="bilinear", antialias=true})` a random rectangle, whose share of the area is in scale and whose width over height in ratio, resized to size.
---@param size any
---@param scale? any
---@param ratio? any
---@param options? table
function tycho.data.transforms.RandomResizedCrop(size, scale, ratio, options) end

--- `(padding, {fill=0, padding_mode="constant"})` padding: a number, {left and right, top and bottom} or {left, top, right, bottom}; "constant", "edge" or "reflect". fill, here and elsewhere: a number, or a list with one for each channel.
---@param padding any
---@param options? table
function tycho.data.transforms.Pad(padding, options) end

--- `(p=0.5)` left and right swapped, with probability p.
---@param p? any
function tycho.data.transforms.RandomHorizontalFlip(p) end

--- `(p=0.5)` top and bottom swapped, with probability p.
---@param p? any
function tycho.data.transforms.RandomVerticalFlip(p) end

--- `(degrees, {interpolation="nearest", expand=false, center=, fill=0})` by an angle of -degrees..degrees, or {least, most}, about the middle, or center = {x, y}, in pixels from 1; expand: the picture becomes as large as the rotated one.
---@param degrees any
---@param options? table
function tycho.data.transforms.RandomRotation(degrees, options) end

--- `(degrees, {translate=, scale=, shear=, interpolation="nearest", fill=0, center=})` rotated as in RandomRotation; moved by up to translate = {share of the width, of the height}; scaled by a factor in scale = {least, most}; sheared by degrees: a number, {least, most} along x, or four numbers, along y too.
---@param degrees any
---@param options? table
function tycho.data.transforms.RandomAffine(degrees, options) end

--- `(distortion_scale=0.5, p=0.5, {interpolation="bilinear", fill=0})` with probability p each corner moves inwards by up to distortion_scale of half the picture.
---@param distortion_scale? any
---@param p? any
---@param options? table
function tycho.data.transforms.RandomPerspective(distortion_scale, p, options) end

--- `(brightness=0, contrast=0, saturation=0, hue=0)` each a number x, a factor of 1 - x to 1 + x (hue: a shift of -x to x, up to 0.5), or a list {least, most}.
---@param brightness? any
---@param contrast? any
---@param saturation? any
---@param hue? any
function tycho.data.transforms.ColorJitter(brightness, contrast, saturation, hue) end

--- `(num_output_channels=1)` grey, in 1 or 3 channels.
---@param num_output_channels? any
function tycho.data.transforms.Grayscale(num_output_channels) end

--- `(p=0.1)` grey in all channels, with probability p.
---@param p? any
function tycho.data.transforms.RandomGrayscale(p) end

--- `(p=0.5)` 1 - x, with probability p.
---@param p? any
function tycho.data.transforms.RandomInvert(p) end

--- `(bits, p=0.5)` keeps only the upper bits of 8, with probability p.
---@param bits any
---@param p? any
function tycho.data.transforms.RandomPosterize(bits, p) end

--- `(threshold, p=0.5)` inverts values at or above threshold, in 0..1, with probability p.
---@param threshold any
---@param p? any
function tycho.data.transforms.RandomSolarize(threshold, p) end

--- `(p=0.5)` stretches each channel to the whole range, with probability p.
---@param p? any
function tycho.data.transforms.RandomAutocontrast(p) end

--- `(p=0.5)` equalizes each channel's histogram, with probability p.
---@param p? any
function tycho.data.transforms.RandomEqualize(p) end

--- `(factor, p=0.5)` a factor of 0 blurs, 1 changes nothing, 2 sharpens, with probability p.
---@param factor any
---@param p? any
function tycho.data.transforms.RandomAdjustSharpness(factor, p) end

--- `(kernel_size, sigma={0.1, 2})` sigma: a number, or a list {least, most} from which it is drawn.
---@param kernel_size any
---@param sigma? any
function tycho.data.transforms.GaussianBlur(kernel_size, sigma) end

--- `(mean, std)` (x - mean) / std for each channel; numbers or lists of 1 to 4.
---@param mean any
---@param std any
function tycho.data.transforms.Normalize(mean, std) end

--- `(p=0.5, scale={0.02, 0.33}, ratio={0.3, 3.3}, value=0)` with probability p sets a rectangle to value: a number, a list with one for each channel, or "random", normal variates. scale: its share of the area, ratio: of its sides.
---@param p? any
---@param scale? any
---@param ratio? any
---@param value? any
function tycho.data.transforms.RandomErasing(p, scale, ratio, value) end

--- `(size)` sets a square of that side, at a random place, to 0.
---@param size any
function tycho.data.transforms.Cutout(size) end

--- `(num_ops=2, magnitude=9, {interpolation="nearest", fill=0})` num_ops random changes out of fourteen (shear, move, rotate, colours, ...), of strength magnitude out of 30.
---@param num_ops? any
---@param magnitude? any
---@param options? table
function tycho.data.transforms.RandAugment(num_ops, magnitude, options) end

--- `(policy="imagenet", {interpolation="nearest", fill=0})` two of these changes, each with a probability; the pair is one of 25 found for a dataset: "imagenet", "cifar10" or "svhn" (Cubuk et al. 2019).
---@param policy? any
---@param options? table
function tycho.data.transforms.AutoAugment(policy, options) end

--- `({interpolation="nearest", fill=0})` one of RandAugment's changes, of any strength.
---@param options? table
function tycho.data.transforms.TrivialAugmentWide(options) end

--- returns its input: pictures are tensors already.
function tycho.data.transforms.ToTensor() end

--- `(matrix, mean)` a picture of D values as a row, less mean (D), times matrix (D x D): whitening.
---@param matrix any
---@param mean any
function tycho.data.transforms.LinearTransformation(matrix, mean) end

--- `(alpha=50, sigma=5, {interpolation="bilinear", fill=0})` pixels moved by random, smooth distances: each of -alpha..alpha, blurred by a Gaussian of sigma, pixels; alpha, sigma: a number, or {along x, along y}.
---@param alpha? any
---@param sigma? any
---@param options? table
function tycho.data.transforms.ElasticTransform(alpha, sigma, options) end

--- `(dtype="float32")` converts to this floating dtype; uint8's 0..255 become 0..1.
---@param dtype? any
function tycho.data.transforms.ConvertImageDtype(dtype) end

--- `(fn)` a function of a picture as a transform; a dataset that uses it makes its items in Lua.
---@param fn any
function tycho.data.transforms.Lambda(fn) end

--- `({a, b, ...})` transforms one after another; functions may be among them.
---@param options? table
function tycho.data.transforms.Compose(options) end

--- `({a, b, ...}, p=0.5)` all of them with probability p, else none.
---@param p? any
---@param options? table
function tycho.data.transforms.RandomApply(p, options) end

--- `({a, b, ...})` all of them, in an order drawn anew for each picture.
---@param options? table
function tycho.data.transforms.RandomOrder(options) end

--- `({a, b, ...}, {p=weights})` one of them.
---@param options? table
function tycho.data.transforms.RandomChoice(options) end

--- `(size)` a list of the four corners and the centre.
---@param size any
function tycho.data.transforms.FiveCrop(size) end

--- `(size, vertical_flip=false)` FiveCrop's five, and five of the mirrored picture.
---@param size any
---@param vertical_flip? any
function tycho.data.transforms.TenCrop(size, vertical_flip) end

--- `({alpha=1, num_classes=})` called with a batch x (N, C, H, W) and its labels; gives x mixed with itself rolled by one item, with a share drawn from Beta(alpha, alpha), and the labels as shares (N, num_classes), which cross_entropy accepts.
---@param options? table
function tycho.data.transforms.MixUp(options) end

--- `({alpha=1, num_classes=})` as MixUp; a rectangle of the picture is replaced by that of the other picture.
---@param options? table
function tycho.data.transforms.CutMix(options) end

tycho.data.transforms.functional = {}
--- `(x, top, left, height, width)` the rectangle whose first row is top and first column left, from 1, or less; parts outside the picture are 0. These functions take a picture (C, H, W), or a batch of pictures.
---@param x any
---@param top any
---@param left any
---@param height any
---@param width any
function tycho.data.transforms.functional.crop(x, top, left, height, width) end

--- `(x, size)` as CenterCrop.
---@param x any
---@param size any
function tycho.data.transforms.functional.center_crop(x, size) end

--- `(x, size, {interpolation="bilinear", max_size=, antialias=true})` as Resize.
---@param x any
---@param size any
---@param options? table
function tycho.data.transforms.functional.resize(x, size, options) end

--- `(x, top, left, height, width, size, {interpolation="bilinear", antialias=true})` a crop, resized.
---@param x any
---@param top any
---@param left any
---@param height any
---@param width any
---@param size any
---@param options? table
function tycho.data.transforms.functional.resized_crop(x, top, left, height, width, size, options) end

--- `(x, padding, {fill=0, padding_mode="constant"})` as Pad.
---@param x any
---@param padding any
---@param options? table
function tycho.data.transforms.functional.pad(x, padding, options) end

--- `(x)` left and right swapped.
---@param x any
function tycho.data.transforms.functional.hflip(x) end

--- `(x)` top and bottom swapped.
---@param x any
function tycho.data.transforms.functional.vflip(x) end

--- `(x, degrees, {interpolation="nearest", expand=false, center=, fill=0})` counterclockwise about the middle, or center = {x, y}, in pixels from 1; expand: the picture becomes as large as the rotated one.
---@param x any
---@param degrees any
---@param options? table
function tycho.data.transforms.functional.rotate(x, degrees, options) end

--- `(x, degrees, translate, scale, shear, {interpolation="nearest", fill=0, center=})` rotated, moved by translate = {x, y} pixels, scaled, sheared by degrees: a number, or {x, y}.
---@param x any
---@param degrees any
---@param translate any
---@param scale any
---@param shear any
---@param options? table
function tycho.data.transforms.functional.affine(x, degrees, translate, scale, shear, options) end

--- `(x, startpoints, endpoints, {interpolation="bilinear", fill=0})` the map that takes four points {{x, y}, ...}, in pixels from 1, to four others.
---@param x any
---@param startpoints any
---@param endpoints any
---@param options? table
function tycho.data.transforms.functional.perspective(x, startpoints, endpoints, options) end

--- `(x, mean, std)` as Normalize.
---@param x any
---@param mean any
---@param std any
function tycho.data.transforms.functional.normalize(x, mean, std) end

--- `(x, kernel_size, sigma=)` kernel_size: a number, or {x, y}; sigma likewise, by default 0.3 ((kernel_size - 1) / 2 - 1) + 0.8.
---@param x any
---@param kernel_size any
---@param sigma? any
function tycho.data.transforms.functional.gaussian_blur(x, kernel_size, sigma) end

--- `(x, factor:number)` adjust_brightness(x, factor) and so on: a factor of 1 changes nothing; for hue the factor is a shift of -0.5..0.5, and 0 changes nothing.
---@param x any
---@param factor number
function tycho.data.transforms.functional.adjust_brightness(x, factor) end

--- `(x, factor:number)` adjust_brightness(x, factor) and so on: a factor of 1 changes nothing; for hue the factor is a shift of -0.5..0.5, and 0 changes nothing.
---@param x any
---@param factor number
function tycho.data.transforms.functional.adjust_contrast(x, factor) end

--- `(x, factor:number)` adjust_brightness(x, factor) and so on: a factor of 1 changes nothing; for hue the factor is a shift of -0.5..0.5, and 0 changes nothing.
---@param x any
---@param factor number
function tycho.data.transforms.functional.adjust_hue(x, factor) end

--- `(x, factor:number)` adjust_brightness(x, factor) and so on: a factor of 1 changes nothing; for hue the factor is a shift of -0.5..0.5, and 0 changes nothing.
---@param x any
---@param factor number
function tycho.data.transforms.functional.adjust_saturation(x, factor) end

--- `(x, factor:number)` adjust_brightness(x, factor) and so on: a factor of 1 changes nothing; for hue the factor is a shift of -0.5..0.5, and 0 changes nothing.
---@param x any
---@param factor number
function tycho.data.transforms.functional.adjust_sharpness(x, factor) end

--- `(x, bits)` keeps only the upper bits of 8.
---@param x any
---@param bits any
function tycho.data.transforms.functional.posterize(x, bits) end

--- `(x, threshold)` inverts values at or above threshold, in 0..1.
---@param x any
---@param threshold any
function tycho.data.transforms.functional.solarize(x, threshold) end

--- `(x, num_output_channels:int=1)` rgb_to_grayscale(x, num_output_channels=1), to_grayscale: as Grayscale.
---@param x any
---@param num_output_channels? integer|table
function tycho.data.transforms.functional.rgb_to_grayscale(x, num_output_channels) end

--- `(x, num_output_channels:int=1)` rgb_to_grayscale(x, num_output_channels=1), to_grayscale: as Grayscale.
---@param x any
---@param num_output_channels? integer|table
function tycho.data.transforms.functional.to_grayscale(x, num_output_channels) end

--- `(x)` As RandomAutocontrast, RandomEqualize and RandomInvert, always.
---@param x any
function tycho.data.transforms.functional.autocontrast(x) end

--- `(x)` As RandomAutocontrast, RandomEqualize and RandomInvert, always.
---@param x any
function tycho.data.transforms.functional.equalize(x) end

--- `(x)` As RandomAutocontrast, RandomEqualize and RandomInvert, always.
---@param x any
function tycho.data.transforms.functional.invert(x) end

--- `(x, gamma, gain=1)` gain * x ^ gamma, kept in 0..1.
---@param x any
---@param gamma any
---@param gain? any
function tycho.data.transforms.functional.adjust_gamma(x, gamma, gain) end

--- `(x, dtype="float32")` as ConvertImageDtype.
---@param x any
---@param dtype? any
function tycho.data.transforms.functional.convert_image_dtype(x, dtype) end

--- `(x, top, left, height, width, value, {inplace=false})` with a rectangle, from 1, set to value: a number or a tensor that expands to C x height x width.
---@param x any
---@param top any
---@param left any
---@param height any
---@param width any
---@param value any
---@param options? table
function tycho.data.transforms.functional.erase(x, top, left, height, width, value, options) end

--- `(x, size)` a list of the four corners and the centre.
---@param x any
---@param size any
function tycho.data.transforms.functional.five_crop(x, size) end

--- `(x, size, vertical_flip=false)` five_crop's five, and five of the mirrored picture.
---@param x any
---@param size any
---@param vertical_flip? any
function tycho.data.transforms.functional.ten_crop(x, size, vertical_flip) end

--- `(x, displacement, {interpolation="bilinear", fill=0})` each pixel of the result comes from where displacement (1, H, W, 2), in x and y, moves it; the picture's width and height are 2.
---@param x any
---@param displacement any
---@param options? table
function tycho.data.transforms.functional.elastic_transform(x, displacement, options) end

--- `(boxes)` the area of each box.
---@param boxes any
function tycho.vision.ops.box_area(boxes) end

--- `(boxes1, boxes2)` intersection over union of each of N boxes with each of M: (N, M).
---@param boxes1 any
---@param boxes2 any
function tycho.vision.ops.box_iou(boxes1, boxes2) end

--- `(boxes1, boxes2)` IoU less the share of the box around both that neither covers (Rezatofighi et al. 2019): (N, M).
---@param boxes1 any
---@param boxes2 any
function tycho.vision.ops.generalized_box_iou(boxes1, boxes2) end

--- `(boxes1, boxes2, eps=1e-7)` IoU less the squared distance of the centres over the squared diagonal around both: (N, M).
---@param boxes1 any
---@param boxes2 any
---@param eps? any
function tycho.vision.ops.distance_box_iou(boxes1, boxes2, eps) end

--- `(boxes1, boxes2, eps=1e-7)` distance_box_iou less a term for different proportions (Zheng et al. 2020): (N, M).
---@param boxes1 any
---@param boxes2 any
---@param eps? any
function tycho.vision.ops.complete_box_iou(boxes1, boxes2, eps) end

--- `(boxes1, boxes2, {reduction="none", eps=1e-7})` 1 - the generalized IoU of each box and its target.
---@param boxes1 any
---@param boxes2 any
---@param options? table
function tycho.vision.ops.generalized_box_iou_loss(boxes1, boxes2, options) end

--- `(boxes1, boxes2, {reduction="none", eps=1e-7})` 1 - the distance IoU.
---@param boxes1 any
---@param boxes2 any
---@param options? table
function tycho.vision.ops.distance_box_iou_loss(boxes1, boxes2, options) end

--- `(boxes1, boxes2, {reduction="none", eps=1e-7})` 1 - the complete IoU.
---@param boxes1 any
---@param boxes2 any
---@param options? table
function tycho.vision.ops.complete_box_iou_loss(boxes1, boxes2, options) end

--- `(inputs, targets, alpha=0.25, gamma=2, reduction="none")` binary cross-entropy of logits, in which correct predictions count less (Lin et al. 2017); alpha weights targets of 1, 1 - alpha those of 0; negative: no weights.
---@param inputs any
---@param targets any
---@param alpha? any
---@param gamma? any
---@param reduction? any
function tycho.vision.ops.sigmoid_focal_loss(inputs, targets, alpha, gamma, reduction) end

--- `(boxes, in_fmt, out_fmt)` converts between formats: "xyxy" (corners), "xywh" (corner and size), "cxcywh" (centre and size).
---@param boxes any
---@param in_fmt any
---@param out_fmt any
function tycho.vision.ops.box_convert(boxes, in_fmt, out_fmt) end

--- `(boxes, {h, w})` the part of each box inside a picture of that size.
---@param boxes any
---@param options? table
function tycho.vision.ops.clip_boxes_to_image(boxes, options) end

--- `(boxes, min_size)` the indices of the boxes whose width and height are at least min_size.
---@param boxes any
---@param min_size any
function tycho.vision.ops.remove_small_boxes(boxes, min_size) end

--- `(masks)` the box around the nonzero elements of each of (N, H, W) masks, none of which may be empty; pixels count from 0.
---@param masks any
function tycho.vision.ops.masks_to_boxes(masks) end

--- `(boxes, scores, iou_threshold)` the indices of the boxes that don't overlap a better one by more than the threshold (intersection over union), best first: int64. Waits for the GPU.
---@param boxes any
---@param scores any
---@param iou_threshold any
function tycho.vision.ops.nms(boxes, scores, iou_threshold) end

--- `(boxes, scores, idxs, iou_threshold)` nms separately for each class; idxs: the boxes' classes.
---@param boxes any
---@param scores any
---@param idxs any
---@param iou_threshold any
function tycho.vision.ops.batched_nms(boxes, scores, idxs, iou_threshold) end

--- `(input, boxes, output_size, spatial_scale=1, sampling_ratio=-1, aligned=false)` the features (N, C, H, W) in each box, as a grid of output_size cells, a number or {height, width}: (K, C, height, width) (He et al. 2017). boxes: (K, 5), the picture's number, from 1, and the box; or a list with a matrix (L, 4) for each picture. spatial_scale converts them to the features' pixels. A cell is the mean of sampling_ratio^2 samples or, if that isn't above 0, of about one for each pixel (then it waits for the GPU). aligned: pixels have their centres at halves, and boxes may be smaller than a pixel. Boxes have no gradient.
---@param input any
---@param boxes any
---@param output_size any
---@param spatial_scale? any
---@param sampling_ratio? any
---@param aligned? any
function tycho.vision.ops.roi_align(input, boxes, output_size, spatial_scale, sampling_ratio, aligned) end

--- `(input, boxes, output_size, spatial_scale=1, sampling_ratio=-1)` roi_align, aligned, in which each cell of the grid has channels of its own: (N, C * height * width, H, W) gives (K, C, height, width) (Dai et al. 2016).
---@param input any
---@param boxes any
---@param output_size any
---@param spatial_scale? any
---@param sampling_ratio? any
function tycho.vision.ops.ps_roi_align(input, boxes, output_size, spatial_scale, sampling_ratio) end

--- `(input, boxes, output_size, spatial_scale=1)` as roi_align, but boxes are rounded to whole pixels, and a cell is the maximum of its pixels, 0 where it has none (Girshick 2015). Waits for the GPU.
---@param input any
---@param boxes any
---@param output_size any
---@param spatial_scale? any
function tycho.vision.ops.roi_pool(input, boxes, output_size, spatial_scale) end

--- `(input, offset, weight, bias=nil, stride=1, padding=0, dilation=1, mask=nil)` (N, C, H, W) and weight (O, C/groups, KH, KW) give (N, O, OH, OW). offset (N, 2 * G * KH * KW, OH, OW): by how many pixels down, then right, each point of a window lies beside its place, for each of G groups of channels. mask (N, G * KH * KW, OH, OW) multiplies the points. Outside of the picture is 0.
---@param input any
---@param offset any
---@param weight any
---@param bias? any
---@param stride? any
---@param padding? any
---@param dilation? any
---@param mask? any
function tycho.vision.ops.deform_conv2d(input, offset, weight, bias, stride, padding, dilation, mask) end

--- `(input, p, mode, training=true)` in training, with probability p zeros, else input / (1 - p); mode: "batch" for all of it, "row" for each row separately.
---@param input any
---@param p any
---@param mode any
---@param training? any
function tycho.vision.ops.stochastic_depth(input, p, mode, training) end

--- `(input, p, block_size, {eps=1e-6, training=true})` in training, zeros blocks of block_size x block_size elements of each channel of (N, C, H, W), about the share p of all elements, and scales the others so that their sum stays (Ghiasi et al. 2018). DropBlock2d(p, block_size, {eps=1e-6}) is the layer.
---@param input any
---@param p any
---@param block_size any
---@param options? table
function tycho.vision.ops.DropBlock2d(input, p, block_size, options) end

--- `(input, p, block_size, {eps=1e-6, training=true})` in training, zeros blocks of block_size x block_size elements of each channel of (N, C, H, W), about the share p of all elements, and scales the others so that their sum stays (Ghiasi et al. 2018). DropBlock2d(p, block_size, {eps=1e-6}) is the layer.
---@param input any
---@param p any
---@param block_size any
---@param options? table
function tycho.vision.ops.drop_block2d(input, p, block_size, options) end

--- `(input, p, block_size, {eps=1e-6, training=true})` drop_block2d of volumes (N, C, D, H, W); DropBlock3d is the layer.
---@param input any
---@param p any
---@param block_size any
---@param options? table
function tycho.vision.ops.DropBlock3d(input, p, block_size, options) end

--- `(input, p, block_size, {eps=1e-6, training=true})` drop_block2d of volumes (N, C, D, H, W); DropBlock3d is the layer.
---@param input any
---@param p any
---@param block_size any
---@param options? table
function tycho.vision.ops.drop_block3d(input, p, block_size, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.alexnet(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.convnext_base(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.convnext_large(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.convnext_small(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.convnext_tiny(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.densenet121(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.densenet161(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.densenet169(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.densenet201(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.efficientnet_b0(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.efficientnet_b1(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.efficientnet_b2(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.efficientnet_b3(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.efficientnet_b4(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.efficientnet_b5(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.efficientnet_b6(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.efficientnet_b7(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.efficientnet_v2_l(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.efficientnet_v2_m(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.efficientnet_v2_s(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.googlenet(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.inception_v3(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.mnasnet0_5(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.mnasnet0_75(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.mnasnet1_0(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.mnasnet1_3(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.mobilenet_v2(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.mobilenet_v3_large(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.mobilenet_v3_small(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.regnet_x_16gf(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.regnet_x_1_6gf(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.regnet_x_32gf(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.regnet_x_3_2gf(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.regnet_x_400mf(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.regnet_x_800mf(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.regnet_x_8gf(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.regnet_y_128gf(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.regnet_y_16gf(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.regnet_y_1_6gf(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.regnet_y_32gf(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.regnet_y_3_2gf(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.regnet_y_400mf(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.regnet_y_800mf(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.regnet_y_8gf(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.resnet101(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.resnet152(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.resnet18(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.resnet34(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.resnet50(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.resnext101_32x8d(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.resnext101_64x4d(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.resnext50_32x4d(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.shufflenet_v2_x0_5(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.shufflenet_v2_x1_0(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.shufflenet_v2_x1_5(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.shufflenet_v2_x2_0(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.squeezenet1_0(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.squeezenet1_1(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.swin_b(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.swin_s(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.swin_t(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.swin_v2_b(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.swin_v2_s(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.swin_v2_t(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.vgg11(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.vgg11_bn(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.vgg13(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.vgg13_bn(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.vgg16(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.vgg16_bn(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.vgg19(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.vgg19_bn(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.vit_b_16(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.vit_b_32(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.vit_h_14(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.vit_l_16(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.vit_l_32(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.wide_resnet101_2(weights, options) end

--- `(weights=nil, {num_classes=1000, ...})` a network of that name. weights: a state dict or the path of one, as torchvision's are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
---@param weights? any
---@param options? table
function tycho.vision.models.wide_resnet50_2(weights, options) end

--- entropy() in nats; cdf(x), the probability of values up to x; icdf(p), its inverse; an error if the distribution has none.
function classes.Distribution:cdf() end

--- entropy() in nats; cdf(x), the probability of values up to x; icdf(p), its inverse; an error if the distribution has none.
function classes.Distribution:entropy() end

--- entropy() in nats; cdf(x), the probability of values up to x; icdf(p), its inverse; an error if the distribution has none.
function classes.Distribution:icdf() end

--- exp of the entropy, of the batch's shape. An error if there is no entropy.
function classes.Distribution:perplexity() end

--- `(sample_shape)` draws without history. The result has the dims of sample_shape, a list of sizes, then the batch dims, then those of one event.
---@param sample_shape any
function classes.Distribution:sample(sample_shape) end

--- `(sample_shape)` draws as differentiable functions of the parameters; an error if there is no such way.
---@param sample_shape any
function classes.Distribution:rsample(sample_shape) end

--- `({batch_shape})` the same distribution with these batch dims, its parameters as views. An error if its own batch dims don't broadcast to them. Values have the new batch dims before the event's.
---@param options? table
function classes.Distribution:expand(options) end

--- `({expand=true})` every possible value, along dim 1: a tensor with as many entries, then the batch dims (each of size 1 with expand=false) and the event's. An error if there is no finite list of them, see has_enumerate_support.
---@param options? table
function classes.Distribution:enumerate_support(options) end

--- `(on)` whether parameters and values are checked where validate_args isn't given.
---@param on any
function classes.Distribution:set_default_validate_args(on) end

--- `(loc, scale)` the mean, and the standard deviation. Distributions have sample(shape), rsample(shape), log_prob(x), entropy(), cdf(x), icdf(p), mean, mode, variance, stddev, batch_shape, event_shape, where these exist. Parameters are numbers or tensors, which broadcast; {validate_args = false} skips the checks of parameters and of log_prob's values.
---@param loc any
---@param scale any
---@return tycho.Distribution
function tycho.distributions.Normal(loc, scale) end

--- `(loc, scale)` e to the power of a draw of Normal(loc, scale).
---@param loc any
---@param scale any
---@return tycho.Distribution
function tycho.distributions.LogNormal(loc, scale) end

--- `(low, high)` low is included, high isn't.
---@param low any
---@param high any
---@return tycho.Distribution
function tycho.distributions.Uniform(low, high) end

--- `(rate)` the mean is 1 / rate.
---@param rate any
---@return tycho.Distribution
function tycho.distributions.Exponential(rate) end

--- `(loc, scale)` the density is proportional to exp(-|x - loc| / scale).
---@param loc any
---@param scale any
---@return tycho.Distribution
function tycho.distributions.Laplace(loc, scale) end

--- `(probs=, logits=)` 1 with probability probs, else 0, floating. Exactly one of the two is given; logits are log(p / (1 - p)).
---@param probs? any
---@param logits? any
---@return tycho.Distribution
function tycho.distributions.Bernoulli(probs, logits) end

--- `(probs=, logits=)` the number of failures before the first success, from 0.
---@param probs? any
---@param logits? any
---@return tycho.Distribution
function tycho.distributions.Geometric(probs, logits) end

--- `(probs=, logits=)` int64 from 1 to n, the size of the last dim of probs, which needn't add up to 1, or of logits.
---@param probs? any
---@param logits? any
---@return tycho.Distribution
function tycho.distributions.Categorical(probs, logits) end

--- `(probs=, logits=)` as Categorical; values are vectors with a 1 at the category's place.
---@param probs? any
---@param logits? any
---@return tycho.Distribution
function tycho.distributions.OneHotCategorical(probs, logits) end

--- `(base_distribution, reinterpreted_batch_ndims)` treats that many last batch dims as dims of one event, whose log-probabilities add up.
---@param base_distribution any
---@param reinterpreted_batch_ndims any
---@return tycho.Distribution
function tycho.distributions.Independent(base_distribution, reinterpreted_batch_ndims) end

--- `(concentration, rate)` the mean is concentration / rate.
---@param concentration any
---@param rate any
---@return tycho.Distribution
function tycho.distributions.Gamma(concentration, rate) end

--- `(df)` the sum of squares of df standard normal numbers.
---@param df any
---@return tycho.Distribution
function tycho.distributions.Chi2(df) end

--- `(concentration)` vectors, along the last dim, of numbers >= 0 that add up to 1.
---@param concentration any
---@return tycho.Distribution
function tycho.distributions.Dirichlet(concentration) end

--- `(concentration1, concentration0)` within 0..1; the mean is concentration1 / (concentration1 + concentration0).
---@param concentration1 any
---@param concentration0 any
---@return tycho.Distribution
function tycho.distributions.Beta(concentration1, concentration0) end

--- `(df, loc=0, scale=1)` Student's t with df degrees of freedom, scaled and shifted.
---@param df any
---@param loc? any
---@param scale? any
---@return tycho.Distribution
function tycho.distributions.StudentT(df, loc, scale) end

--- `(rate)` counts from 0, floating, with mean rate.
---@param rate any
---@return tycho.Distribution
function tycho.distributions.Poisson(rate) end

--- `(total_count=1, probs=, logits=)` the number of successes in total_count trials, a whole number or a tensor of them.
---@param total_count? any
---@param probs? any
---@param logits? any
---@return tycho.Distribution
function tycho.distributions.Binomial(total_count, probs, logits) end

--- `(total_count, probs=, logits=)` the number of successes before total_count failures; probs: of a success.
---@param total_count any
---@param probs? any
---@param logits? any
---@return tycho.Distribution
function tycho.distributions.NegativeBinomial(total_count, probs, logits) end

--- `(total_count=1, probs=, logits=)` for each category the number of total_count draws (a number) of a Categorical that chose it: vectors along the last dim.
---@param total_count? any
---@param probs? any
---@param logits? any
---@return tycho.Distribution
function tycho.distributions.Multinomial(total_count, probs, logits) end

--- `(loc, scale)` the ratio of two normal numbers, scaled and shifted; it has no mean.
---@param loc any
---@param scale any
---@return tycho.Distribution
function tycho.distributions.Cauchy(loc, scale) end

--- `(loc, scale)` the distribution that the largest of many numbers approaches.
---@param loc any
---@param scale any
---@return tycho.Distribution
function tycho.distributions.Gumbel(loc, scale) end

--- `(scale, *, validate_args=nil)` HalfNormal(scale), HalfCauchy(scale): the absolute values of Normal(0, scale) and Cauchy(0, scale).
---@param scale any
---@param options? table
---@return tycho.Distribution
function tycho.distributions.HalfNormal(scale, options) end

--- `(scale, *, validate_args=nil)` HalfNormal(scale), HalfCauchy(scale): the absolute values of Normal(0, scale) and Cauchy(0, scale).
---@param scale any
---@param options? table
---@return tycho.Distribution
function tycho.distributions.HalfCauchy(scale, options) end

--- `(scale, concentration)` scale times an Exponential(1) draw to the power of 1 / concentration.
---@param scale any
---@param concentration any
---@return tycho.Distribution
function tycho.distributions.Weibull(scale, concentration) end

--- `(scale, alpha)` from scale on, with density proportional to x^-(alpha + 1).
---@param scale any
---@param alpha any
---@return tycho.Distribution
function tycho.distributions.Pareto(scale, alpha) end

--- `(loc, scale, concentration)` values that exceed a high level loc, with a light tail if concentration is below 0, an exponential one if it is 0, a heavy one if it is above 0. All three broadcast; scale is above 0.
---@param loc any
---@param scale any
---@param concentration any
---@return tycho.Distribution
function tycho.distributions.GeneralizedPareto(loc, scale, concentration) end

--- `(mixture_distribution, component_distribution)` the first, a Categorical, chooses along the components' last batch dim; values are those of one component. An error if the numbers of components differ.
---@param mixture_distribution any
---@param component_distribution any
---@return tycho.Distribution
function tycho.distributions.MixtureSameFamily(mixture_distribution, component_distribution) end

--- `(loc, {covariance_matrix=} | {precision_matrix=} | {scale_tril=})` events are vectors of n elements, loc's last dim; the matrix is n x n; the dims before broadcast. An error unless exactly one matrix is given, of the right size and positive definite.
---@param loc any
---@param options? table
---@return tycho.Distribution
function tycho.distributions.MultivariateNormal(loc, options) end

--- `(loc, cov_factor, cov_diag)` the covariance is cov_factor times its transpose plus the diagonal matrix of cov_diag, which is above 0. loc and cov_diag have n elements in their last dim, cov_factor's last two dims are n x rank; the dims before broadcast. An error if sizes don't fit.
---@param loc any
---@param cov_factor any
---@param cov_diag any
---@return tycho.Distribution
function tycho.distributions.LowRankMultivariateNormal(loc, cov_factor, cov_diag) end

--- `(dim, concentration=1)` the dim x dim Cholesky factor of a correlation matrix whose density is proportional to its determinant to the power of concentration - 1 (a number, or a tensor of the batch's shape). An error if dim is below 2 or concentration isn't above 0.
---@param dim any
---@param concentration? any
---@return tycho.Distribution
function tycho.distributions.LKJCholesky(dim, concentration) end

--- `(df, {covariance_matrix=} | {precision_matrix=} | {scale_tril=})` n x n matrices, each the sum of df normal vectors of this covariance times their transposes. df, a number or a tensor that broadcasts with the matrices' batch dims, must be above n - 1, else an error; so is giving no or several matrices. Draws have gradients for df and the matrix.
---@param df any
---@param options? table
---@return tycho.Distribution
function tycho.distributions.Wishart(df, options) end

--- `(loc, concentration)` angles in radians, drawn in -pi..pi around loc, the closer the higher concentration, which is above 0; both broadcast. mean and variance are the circular ones. Draws have no gradients.
---@param loc any
---@param concentration any
---@return tycho.Distribution
function tycho.distributions.VonMises(loc, concentration) end

--- `(concentration, rate)` 1 divided by a draw of Gamma(concentration, rate).
---@param concentration any
---@param rate any
---@return tycho.Distribution
function tycho.distributions.InverseGamma(concentration, rate) end

--- `(df1, df2)` the ratio of two Chi2 draws, each divided by its degrees of freedom.
---@param df1 any
---@param df2 any
---@return tycho.Distribution
function tycho.distributions.FisherSnedecor(df1, df2) end

--- `(concentration1, concentration0)` within 0..1, similar to Beta, with a cdf in closed form.
---@param concentration1 any
---@param concentration0 any
---@return tycho.Distribution
function tycho.distributions.Kumaraswamy(concentration1, concentration0) end

--- `(temperature, {probs=} | {logits=})` between 0 and 1, the closer to a Bernoulli's draws the lower the temperature, with gradients (Maddison et al. 2017, Jang et al. 2017).
---@param temperature any
---@param options? table
---@return tycho.Distribution
function tycho.distributions.RelaxedBernoulli(temperature, options) end

--- `(temperature, {probs=} | {logits=})` vectors of numbers that add up to 1, the closer to OneHotCategorical's the lower the temperature, with gradients.
---@param temperature any
---@param options? table
---@return tycho.Distribution
function tycho.distributions.RelaxedOneHotCategorical(temperature, options) end

--- `(probs=, logits=)` as OneHotCategorical, but rsample's draws pass gradients on to the probabilities (Bengio et al. 2013).
---@param probs? any
---@param logits? any
---@return tycho.Distribution
function tycho.distributions.OneHotCategoricalStraightThrough(probs, logits) end

--- `({probs=} | {logits=})` within 0..1, for grey levels of pictures (Loaiza-Ganem and Cunningham 2019).
---@param options? table
---@return tycho.Distribution
function tycho.distributions.ContinuousBernoulli(options) end

--- `(base_distribution, transforms)` draws to which a transform, or a list of them in order, is applied. Its batch and event dims follow from the base's. log_prob raises if a transform isn't bijective. Transforms with cache_size = 1, counted back from the last one, remember the input of the last rsample: log_prob of that very tensor then doesn't invert them, which would lose digits (all of them where a tanh is saturated), and has no gradient through it.
---@param base_distribution any
---@param transforms any
---@return tycho.Distribution
function tycho.distributions.TransformedDistribution(base_distribution, transforms) end

--- `(loc, scale)` StickBreakingTransform of a Normal's vectors: n numbers along the last dim of loc and scale (one if they are numbers) become n + 1 numbers >= 0 that add up to 1. An error if scale isn't above 0.
---@param loc any
---@param scale any
---@return tycho.Distribution
function tycho.distributions.LogisticNormal(loc, scale) end

--- `(name, signature)` A user's own distribution: local Kumaraswamy = Distribution:extend("Kumaraswamy", "a, b"), whose second argument lists the parameters' names in order, with defaults, and whose methods use ops: draw(shape), draws with all these dims, differentiable functions of the parameters if has_rsample = true; log_prob(x); entropy(), cdf(x), icdf(p), where these exist; and get.mean(self), get.variance(self), get.mode(self), which compute fields. support, a constraint, limits the values that log_prob accepts; arg_constraints = {a = constraints.positive} limits parameters. Parameters become tensors of one shape in self; a class whose draws have event dims has init(o), with the arguments by name, which sets self's tensors, self.batch_shape and self.event_shape. The library's classes and users' own can also be extended: distributions.Normal:extend("Mine").
---@param name any
---@param signature any
function classes.Distribution:extend(name, signature) end

--- The base of all distributions: its method extend makes a class. Calling it is an error.
---@return tycho.Distribution
function tycho.distributions.Distribution() end

--- `(self, name, signature)` A user's own transform: local Leaky = Transform:extend("Leaky", "alpha=0.1"), whose second argument lists the arguments' names in order, with defaults; they are self's fields. Methods: forward(x); inverse(y); log_abs_det_jacobian(x, y), with x's dims except the last domain.event_dim; init(self), which checks arguments; forward_shape(shape) and inverse_shape(shape) if sizes change. Fields, with their defaults: domain and codomain, constraints (constraints.real; real_vector treats the last dim as one value, as coupling layers do), bijective (true), sign (of monotone transforms of numbers: 1 keeps their order, -1 reverses it).
---@param self any
---@param name any
---@param signature any
function tycho.distributions.Transform.extend(self, name, signature) end

--- `(...)` y = exp(x)
function tycho.distributions.ExpTransform(...) end

--- `(...)` y = exp(x)
function tycho.distributions.transforms.ExpTransform(...) end

--- `(...)` y = tanh(x)
function tycho.distributions.TanhTransform(...) end

--- `(...)` y = tanh(x)
function tycho.distributions.transforms.TanhTransform(...) end

--- `(...)` y = 1 / (1 + exp(-x)), kept off 0 and 1, and so is y in the inverse
function tycho.distributions.SigmoidTransform(...) end

--- `(...)` y = 1 / (1 + exp(-x)), kept off 0 and 1, and so is y in the inverse
function tycho.distributions.transforms.SigmoidTransform(...) end

--- `(...)` y = log(1 + exp(x))
function tycho.distributions.SoftplusTransform(...) end

--- `(...)` y = log(1 + exp(x))
function tycho.distributions.transforms.SoftplusTransform(...) end

--- `(...)` y = |x|: not bijective; its inverse is the nonnegative value
function tycho.distributions.AbsTransform(...) end

--- `(...)` y = |x|: not bijective; its inverse is the nonnegative value
function tycho.distributions.transforms.AbsTransform(...) end

--- `(loc, scale, {event_dim=0})` y = loc + scale x; loc and scale are numbers or tensors that broadcast with x; log-determinants are summed over the last event_dim dims
---@param loc any
---@param scale any
---@param options? table
function tycho.distributions.AffineTransform(loc, scale, options) end

--- `(loc, scale, {event_dim=0})` y = loc + scale x; loc and scale are numbers or tensors that broadcast with x; log-determinants are summed over the last event_dim dims
---@param loc any
---@param scale any
---@param options? table
function tycho.distributions.transforms.AffineTransform(loc, scale, options) end

--- `(exponent)` y = x ^ exponent for values above 0; exponent is a number or a tensor that broadcasts with x
---@param exponent any
function tycho.distributions.PowerTransform(exponent) end

--- `(exponent)` y = x ^ exponent for values above 0; exponent is a number or a tensor that broadcasts with x
---@param exponent any
function tycho.distributions.transforms.PowerTransform(exponent) end

--- `(distribution)` y = distribution:cdf(x), within 0..1; the inverse needs the distribution's icdf
---@param distribution any
function tycho.distributions.CumulativeDistributionTransform(distribution) end

--- `(distribution)` y = distribution:cdf(x), within 0..1; the inverse needs the distribution's icdf
---@param distribution any
function tycho.distributions.transforms.CumulativeDistributionTransform(distribution) end

--- `(base_transform, reinterpreted_batch_ndims)` base_transform with its log-determinants summed over that many more dims
---@param base_transform any
---@param reinterpreted_batch_ndims any
function tycho.distributions.IndependentTransform(base_transform, reinterpreted_batch_ndims) end

--- `(base_transform, reinterpreted_batch_ndims)` base_transform with its log-determinants summed over that many more dims
---@param base_transform any
---@param reinterpreted_batch_ndims any
function tycho.distributions.transforms.IndependentTransform(base_transform, reinterpreted_batch_ndims) end

--- `({in_shape}, {out_shape})` reshapes the last dims, in_shape, to out_shape, which has as many elements
---@param options? table
function tycho.distributions.ReshapeTransform(options) end

--- `({in_shape}, {out_shape})` reshapes the last dims, in_shape, to out_shape, which has as many elements
---@param options? table
function tycho.distributions.transforms.ReshapeTransform(options) end

--- `({parts})` the parts in order
---@param options? table
function tycho.distributions.ComposeTransform(options) end

--- `({parts})` the parts in order
---@param options? table
function tycho.distributions.transforms.ComposeTransform(options) end

--- `({transforms}, {dim=1, lengths})` transforms the first lengths[1] elements along dim (by default 1 each) by the first, and so on. An error if x has another number of elements there.
---@param options? table
function tycho.distributions.CatTransform(options) end

--- `({transforms}, {dim=1, lengths})` transforms the first lengths[1] elements along dim (by default 1 each) by the first, and so on. An error if x has another number of elements there.
---@param options? table
function tycho.distributions.transforms.CatTransform(options) end

--- `({transforms}, {dim=1})` transforms select(dim, i) by the i-th transform
---@param options? table
function tycho.distributions.StackTransform(options) end

--- `({transforms}, {dim=1})` transforms select(dim, i) by the i-th transform
---@param options? table
function tycho.distributions.transforms.StackTransform(options) end

--- The identity
function tycho.distributions.transforms.identity_transform() end

--- `(...)` y = softmax(x) along the last dim: not bijective, as x + c gives the same; its inverse is log(y)
function tycho.distributions.SoftmaxTransform(...) end

--- `(...)` y = softmax(x) along the last dim: not bijective, as x + c gives the same; its inverse is log(y)
function tycho.distributions.transforms.SoftmaxTransform(...) end

--- n numbers to n + 1 numbers >= 0 that add up to 1: each takes its share of what the ones before left.
function tycho.distributions.StickBreakingTransform() end

--- n numbers to n + 1 numbers >= 0 that add up to 1: each takes its share of what the ones before left.
function tycho.distributions.transforms.StickBreakingTransform() end

--- `(...)` Square matrices to lower triangular ones with a diagonal above 0, exp of x's; elements above x's diagonal are ignored: not bijective
function tycho.distributions.LowerCholeskyTransform(...) end

--- `(...)` Square matrices to lower triangular ones with a diagonal above 0, exp of x's; elements above x's diagonal are ignored: not bijective
function tycho.distributions.transforms.LowerCholeskyTransform(...) end

--- `(...)` Square matrices to positive definite ones: LowerCholeskyTransform's result times its transpose: not bijective
function tycho.distributions.PositiveDefiniteTransform(...) end

--- `(...)` Square matrices to positive definite ones: LowerCholeskyTransform's result times its transpose: not bijective
function tycho.distributions.transforms.PositiveDefiniteTransform(...) end

--- n (n - 1) / 2 numbers to the Cholesky factor of an n x n correlation matrix.
function tycho.distributions.CorrCholeskyTransform() end

--- n (n - 1) / 2 numbers to the Cholesky factor of an n x n correlation matrix.
function tycho.distributions.transforms.CorrCholeskyTransform() end

tycho.distributions.constraints = {}
--- `(lower_bound)` numbers above lower_bound. A bound is a number or a tensor that broadcasts with values.
---@param lower_bound any
function tycho.distributions.constraints.greater_than(lower_bound) end

--- `(lower_bound)` numbers at or above lower_bound.
---@param lower_bound any
function tycho.distributions.constraints.greater_than_eq(lower_bound) end

--- `(upper_bound)` numbers below upper_bound.
---@param upper_bound any
function tycho.distributions.constraints.less_than(upper_bound) end

--- `(lower_bound, upper_bound)` numbers between the bounds, both included.
---@param lower_bound any
---@param upper_bound any
function tycho.distributions.constraints.interval(lower_bound, upper_bound) end

--- `(lower_bound, upper_bound)` numbers between the bounds, only the lower one included.
---@param lower_bound any
---@param upper_bound any
function tycho.distributions.constraints.half_open_interval(lower_bound, upper_bound) end

--- `(lower_bound, upper_bound)` whole numbers between the bounds, both included.
---@param lower_bound any
---@param upper_bound any
function tycho.distributions.constraints.integer_interval(lower_bound, upper_bound) end

--- `(upper_bound)` counts from 0 along the last dim whose sum is at most upper_bound
---@param upper_bound any
function tycho.distributions.constraints.multinomial(upper_bound) end

--- `(base_constraint, reinterpreted_batch_ndims)` base_constraint holds for all of that many more dims, which belong to the value
---@param base_constraint any
---@param reinterpreted_batch_ndims any
function tycho.distributions.constraints.independent(base_constraint, reinterpreted_batch_ndims) end

--- `(base_constraint, dim)` base_constraint holds for x, with a new dim, along all of its bounds there: a mixture's values must be possible for each component
---@param base_constraint any
---@param dim any
function tycho.distributions.constraints.throughout(base_constraint, dim) end

--- `(list, dim=1, lengths)` the first constraint holds for lengths[1] elements along dim (by default 1 each), and so on
---@param list any
---@param dim? any
---@param lengths any
function tycho.distributions.constraints.cat(list, dim, lengths) end

--- `(list, dim=1)` the i-th constraint holds for select(dim, i)
---@param list any
---@param dim? any
function tycho.distributions.constraints.stack(list, dim) end

--- `(constraint)` A bijective transform of the real numbers to the values that satisfy the constraint; an error if there is none.
---@param constraint any
function tycho.distributions.biject_to(constraint) end

--- `(constraint)` A transform of the real numbers to the values that satisfy the constraint, for optimizing parameters: it needn't be bijective.
---@param constraint any
function tycho.distributions.transform_to(constraint) end

tycho.distributions.kl = {}
--- `(P, Q, fn)` makes fn(p, q) the kl_divergence of a p of class P and a q of class Q; it returns a tensor of the shape that both batches broadcast to. It also holds for subclasses for which nothing is registered. Without fn: gives a function that takes fn. The last one registered counts. An error if P or Q isn't a class, or fn can't be called.
---@param P any
---@param Q any
---@param fn any
function tycho.distributions.kl.register_kl(P, Q, fn) end

--- `(P, Q, fn)` makes fn(p, q) the kl_divergence of a p of class P and a q of class Q; it returns a tensor of the shape that both batches broadcast to. It also holds for subclasses for which nothing is registered. Without fn: gives a function that takes fn. The last one registered counts. An error if P or Q isn't a class, or fn can't be called.
---@param P any
---@param Q any
---@param fn any
function tycho.distributions.register_kl(P, Q, fn) end

--- `(p, q)` how much is lost, in nats, if q stands for p: a tensor of the shape that both batches broadcast to, infinite where p has values that q never has. An error if no rule is known for their classes.
---@param p any
---@param q any
function tycho.distributions.kl.kl_divergence(p, q) end

--- `(p, q)` how much is lost, in nats, if q stands for p: a tensor of the shape that both batches broadcast to, infinite where p has values that q never has. An error if no rule is known for their classes.
---@param p any
---@param q any
function tycho.distributions.kl_divergence(p, q) end

--- `(path, value, {max_shard_size=})` writes a tensor, or nested tables of tensors, numbers, strings and booleans, as a safetensors file, whatever its name; an existing file is replaced once the new one is complete. max_shard_size, in bytes: writes a flat table of tensors as several files and path.index.json, which load reads.
---@param path any
---@param value any
---@param options? table
function tycho.save(path, value, options) end

--- `(path, device=)` the value that save wrote; other safetensors files, also by their .index.json, as a table of tensors; PyTorch's .pt files of tensors and plain data: code in them is never run, whatever weights_only= says. device: for the tensors, by default the default device; map_location is PyTorch's name for it, and its mmap has no effect.
---@param path any
---@param device? any
function tycho.load(path, device) end

--- `(path, {device="cpu"})` the tensor in a .npy file. Integer types that Tycho lacks become wider ones; arrays of objects are refused.
---@param path any
---@param options? table
function tycho.load_npy(path, options) end

--- `(path, x)` a tensor as a .npy file; bfloat16 becomes float32.
---@param path any
---@param x any
function tycho.save_npy(path, x) end

--- `(path, {device="cpu"})` a table of the tensors in a .npz file by name.
---@param path any
---@param options? table
function tycho.load_npz(path, options) end

--- `(path, {name = tensor, ...})` writes a .npz file; a list's names are arr_0, arr_1, ...
---@param path any
---@param options? table
function tycho.save_npz(path, options) end

tycho.checkpoint = {}
--- `({dir=, keep=3, async=true})` writes checkpoints, files step-N.safetensors in the folder dir, of which the last `keep` are kept (false: all). async: a thread writes while training goes on.
---@param options? table
---@return tycho.Manager
function tycho.checkpoint.Manager(options) end

--- `(step, {name = member, ...})` saves the state dicts of members that have one, others as values (any that tycho.save takes), and all random generators. Everything is copied now. Once this save has begun, raises any error of the previous one.
---@param step any
---@param options? table
function classes.Manager:save(step, options) end

--- Waits until the last save is on disk; raises if it failed.
function classes.Manager:wait() end

--- The step being saved, the bytes written and the total bytes; nil if none is being saved.
function classes.Manager:progress() end

--- A list of the steps that have checkpoints, the last saved first.
function classes.Manager:steps() end

--- `(step, {name = member, ...})` loads into members that have load_state_dict, and into tensors; restores the random generators; gives the step, and a table of the plain values.
---@param step any
---@param options? table
function classes.Manager:restore(step, options) end

--- `({name = member, ...})` as restore, with the newest intact checkpoint; reports newer, damaged ones on stderr. nil if there is none; an error if all are damaged.
---@param options? table
function classes.Manager:restore_latest(options) end

--- `({group_by_input_shape=false, group_by_stack_n=0})` what ran, by name (and shapes; and, with group_by_stack_n of 1 or more, the line of the program), in the order of first calls: a list of {key=, input_shapes=, line=, count=, cpu_time_total=, self_cpu_time_total=, cuda_time_total=, self_cuda_time_total=, cpu_time=, cuda_time=, memory=, flops=}; times in us, those without _total are means per call; memory: bytes of an op's results, or for a range the growth from its begin to its end; flops: the products and sums of matrix products, convolutions and attention. GPU times lie between events around an op: for a short op on an idle device they are mostly launch latency.
---@param options? table
function classes.Profile:key_averages(options) end

--- `({sort_by="self_cpu_time_total", row_limit=20, group_by_input_shape=false, group_by_stack_n=0})` the averages as text, the largest first.
---@param options? table
function classes.Profile:table(options) end

--- `(path)` Writes a file for chrome://tracing and Perfetto: the CPU's ops in one row, each GPU's in another.
---@param path any
function classes.Profile:export_chrome_trace(path) end

tycho.profiler = {}
--- `({skip_first=0, wait=0, warmup=0, active=1, repeats=0, skip_first_wait=0})` what each step of a profile does: skip_first steps do nothing; then come rounds of wait steps that do nothing, warmup steps whose record is thrown away, and active steps that are recorded. repeats, or ["repeat"]: the number of rounds (0: without end). skip_first_wait, if not 0: the first round has no wait.
---@param options? table
function tycho.profiler.schedule(options) end

--- `(folder, worker_name="step")` for on_trace_ready: writes each trace into the folder, as a file for TensorBoard and Perfetto.
---@param folder any
---@param worker_name? any
function tycho.profiler.tensorboard_trace_handler(folder, worker_name) end

--- Begins the next step.
function classes.Profile:step() end

--- begins to record, for a profile made without a function.
function classes.Profile:start() end

--- ends what start() began; the profile prints as a table then. Waits for GPUs.
function classes.Profile:stop() end

--- `({record_shapes=false, with_stack=false, with_flops=false, schedule=, on_trace_ready=}, fn, ...)` calls fn(...) and gives its profile, which prints as a table, then fn's results. The options may be left out. with_stack: the line of the program that called each op is recorded. with_flops: the table has a column of floating-point operations, of matrix products, convolutions and attention. With a schedule fn gets the profile as its first argument and calls p:step() after each step; on_trace_ready(p) is called at the end of each round. Waits for GPUs at the end. Without fn: a profile for p:start() and p:stop(). PyTorch's activities and profile_memory are taken; memory is always recorded, and each device that something ran on.
---@param fn any
function tycho.profiler.profile(fn, ...) end

--- `(fn, ...)` Calls fn(...) and gives its results; each op and range appears on the timelines of Nsight and similar tools (tycho.cuda.nvtx).
---@param fn any
function tycho.profiler.emit_nvtx(fn, ...) end

--- `(name, fn, ...)` Calls fn(...) and gives its results; a profile that is being taken gets an entry of that name.
---@param name any
---@param fn any
function tycho.profiler.record_function(name, fn, ...) end

--- `(number=1000000)` times that many calls in a row: a measurement {median=, mean=, iqr=, times=, number_per_run=}, in seconds per call, that prints as text.
---@param number? any
function classes.Timer:timeit(number) end

--- `({min_run_time=0.2})` times rows of calls, each row long enough to be measured well, for min_run_time seconds in total; gives a measurement as timeit's.
---@param options? table
function classes.Timer:blocked_autorange(options) end

tycho.utils.benchmark = {}
--- `(stmt, {setup=, num_threads=1, label=, sub_label=, description=, env=})` times calls of the function stmt, without arguments; setup is called first. Waits for GPUs. The texts say where Compare puts what it measures: label names a table, sub_label a row, description a column.
---@param stmt any
---@param options? table
---@return tycho.Timer
function tycho.utils.benchmark.Timer(stmt, options) end

--- `(results)` tables of measurements side by side, by the label, sub_label, description and number of threads of their timers; print() prints them, tostring gives them as text.
---@param results any
function tycho.utils.benchmark.Compare(results) end

--- `({loss = 0.3})` values for the line to show.
---@param options? table
function classes.bar:set(options) end

--- Ends the line, for a loop that is left by break.
function classes.bar:close() end

--- `(loader, {desc=, total=, count=, unit=, first=})` for x, y in it do: draws a line with the rate meanwhile, redrawn on a terminal, elsewhere a new one every few seconds. Also for a list, for i, x; an iterator function; pairs(t), which can't be followed by options. total: the number of rounds; count: items in a round, for the rate; first: rounds done before. The result has set() and close().
---@param loader any
---@param options? table
function tycho.utils.progress(loader, options) end

--- `(on)` From now on Ctrl-C only makes interrupted() true, for a loop that ends between two steps; pressed twice it ends the program at once. catch_interrupt(false): restores the usual behaviour.
---@param on any
function tycho.utils.catch_interrupt(on) end

--- whether Ctrl-C was pressed since catch_interrupt().
function tycho.utils.interrupted() end

--- `(path, ys, {xs=})` draws a list of numbers as a curve, a PNG file; xs: their positions, by default 1, 2, ...
---@param path any
---@param ys any
---@param options? table
function tycho.utils.save_curve(path, ys, options) end

--- `(pictures, {nrow=8, padding=2, normalize=false, value_range={lo, hi}, scale_each=false, pad_value=0})` joins pictures N x C x H x W of values in 0..1 (uint8: 0..255), or a list of CxHxW, to one picture 3xHxW, with nrow of them in a row.
---@param pictures any
---@param options? table
function tycho.utils.make_grid(pictures, options) end

--- `(pictures, path, {options of make_grid})` writes that picture as a PNG file.
---@param pictures any
---@param path any
---@param options? table
function tycho.utils.save_image(pictures, path, options) end

tycho.utils.tensorboard = {}
--- `(log_dir=, {flush_secs=120, filename_suffix="", comment=""})` writes data for TensorBoard into a file of the folder, by default runs/ and the time; to see it: tensorboard --logdir runs. Data reach the file after flush_secs, at flush() or close(), and at the program's end.
---@param log_dir? any
---@param options? table
---@return tycho.SummaryWriter
function tycho.utils.tensorboard.SummaryWriter(log_dir, options) end

--- `(tag, value, global_step, walltime)` A number, or a tensor of one element; waits for the GPU. global_step: a whole number from 0; walltime: seconds since 1970, by default now; both also in the functions below.
---@param tag any
---@param value any
---@param global_step any
---@param walltime any
function classes.SummaryWriter:add_scalar(tag, value, global_step, walltime) end

--- `(tag, {name = value, ...}, global_step, walltime)` several curves in one chart; each is a separate run below the folder.
---@param tag any
---@param global_step any
---@param walltime any
---@param options? table
function classes.SummaryWriter:add_scalars(tag, global_step, walltime, options) end

--- `(tag, values, global_step, walltime)` A histogram of the elements of a tensor or a list.
---@param tag any
---@param values any
---@param global_step any
---@param walltime any
function classes.SummaryWriter:add_histogram(tag, values, global_step, walltime) end

--- `(tag, x, global_step, walltime, dataformats)` A picture CxHxW or HxW of values in 0..1, or of bytes. dataformats: "CHW", "HWC" or "HW", the order of its dims.
---@param tag any
---@param x any
---@param global_step any
---@param walltime any
---@param dataformats any
function classes.SummaryWriter:add_image(tag, x, global_step, walltime, dataformats) end

--- `(tag, x, global_step, walltime, {options of make_grid})` shows pictures NxCxHxW side by side.
---@param tag any
---@param x any
---@param global_step any
---@param walltime any
---@param options? table
function classes.SummaryWriter:add_images(tag, x, global_step, walltime, options) end

--- `(tag, s, global_step, walltime)` A text, shown as Markdown.
---@param tag any
---@param s any
---@param global_step any
---@param walltime any
function classes.SummaryWriter:add_text(tag, s, global_step, walltime) end

--- Writes everything added so far to the file.
function classes.SummaryWriter:flush() end

--- Closes the file.
function classes.SummaryWriter:close() end

tycho.testing = {}
--- `(actual, expected, {rtol=, atol=, equal_nan=false, check_dtype=true, check_device=true, check_stride=false, msg=})` raises, with where and by how much, unless |actual - expected| <= atol + rtol |expected| for each element. Default tolerances depend on the dtype (float32: 1.3e-6 and 1e-5). For tensors, numbers, strings, booleans, and tables of these; shapes must be the same, and dtypes and devices unless the options say otherwise. msg: the error's text, or a function that gets it and returns another.
---@param actual any
---@param expected any
---@param options? table
function tycho.testing.assert_close(actual, expected, options) end

--- `(shape, {dtype="float32", device="cpu", low=, high=, requires_grad=false, exclude_zero=false, noncontiguous=false})` a tensor of random values from low to below high; by default from -9 to 9, for uint8 from 0 to 9, for booleans both. exclude_zero: zeros become 1 (for a floating dtype its smallest number). noncontiguous: elements are two apart in memory.
---@param shape any
---@param options? table
function tycho.testing.make_tensor(shape, options) end

return tycho
