-- Linear algebra: torch.linalg's functions, in tycho.linalg, and the older names of torch itself.
--
-- LAPACK computes on the CPU. A GPU has kernels for square matrices of up to 256 rows; for larger ones, and for eigenvectors, singular
-- vectors and QR, its matrices are copied to the CPU and back, which waits for the GPU. Gradients: grad/linalg.lua.
local core = require "tycho.core"
local ops, M = core.ops, core.methods
local lib = require "tycho.functional.lib"
local def, fail, wrap, need = lib.def, lib.fail, lib.wrap, lib.need
local F = lib.functions

local NO_METHOD = {method = false, float32 = true}

local function T(x) return M.transpose(x, -2, -1) end
local function rows(x) return x.shape[M.dim(x) - 1] end
local function cols(x) return x.shape[M.dim(x)] end
local function columns(x, first, last) return ops.slice(x, -1, first, last) end
local function eye(n, like) return ops.eye(n, {dtype = like.dtype, device = like.device}) end
local function need_matrix(name, x)
  if M.dim(x) < 2 then fail(name, "argument 1 must be a matrix or a batch of matrices, got shape %s", tostring(x.shape)) end
end
local function need_square(name, x)
  need_matrix(name, x)
  if rows(x) ~= cols(x) then fail(name, "argument 1 must be square, got shape %s", tostring(x.shape)) end
end

-- Whether a GPU computes this: square matrices of up to 256 rows (TY_K_SIDE in kernels/kernels.h), by the ops of class linalg.
local kernels
local function on_gpu(op, x, b)
  if not kernels then
    kernels = {}
    for _, o in ipairs(core.op_table()) do if o.class == "linalg" then kernels[ops[o.name]] = true end end
  end
  return kernels[op] and rows(x) == cols(x) and cols(x) <= 256 and (not core.is_tensor(b) or M.numel(b) < 2 ^ 31)
end

-- An op on matrices on any device. A GPU's go to the CPU and back where it has no kernel.
local function computed(op, x, b, ...)
  local device = x.device
  if device == "cpu" or on_gpu(op, x, b) then return op(x, b, ...) end
  local function back(y, ...)
    if y == nil then return end
    return M.to(y, device), back(...)
  end
  return back(op(M.cpu(x), core.is_tensor(b) and M.cpu(b) or b, ...))
end

-- An op whose second result is LAPACK's info for each matrix, which raises if check is true. A GPU's kernels don't: it is read here, which
-- waits, but not within compiled functions and vmap. b: a second operand, or nil.
local function informed(name, op, why, check, x, b)
  local y, info
  if b then y, info = computed(op, x, b, check) else y, info = computed(op, x, check) end
  if check and info.device ~= "cpu" and lib.reads() and M.item(ops.any(info)) then
    local all, at = M.totable(M.flatten(info)), 1
    while all[at] == 0 do at = at + 1 end
    fail(name, "%s " .. why, #all == 1 and "the matrix" or ("matrix %d of the batch"):format(at), all[at])
  end
  return y, info
end

---- factors ----
local function cholesky(name, x, upper, check)
  need_square(name, x)
  local l, info = informed(name, ops.cholesky_factor, "is not positive-definite (its leading minor of order %d)", check, x)
  return upper and T(l) or l, info
end
def("linalg.cholesky",
  "x, *, upper:bool=false",
  "the lower triangular L of x = L L^T, for a positive-definite x (upper: L^T)",
  function(x, upper) return (cholesky("linalg.cholesky", x, upper, true)) end, NO_METHOD)
def("linalg.cholesky_ex",
  "x, *, upper:bool=false, check_errors:bool=false",
  "linalg.cholesky, and for each matrix 0 or the order of its first minor that isn't positive: it has no factor, but there is no error",
  function(x, upper, check) return cholesky("linalg.cholesky_ex", x, upper, check) end, NO_METHOD)
-- The order of rows after the pivots' exchanges: order[i] is the row that is then i-th.
local function order_of(who, lu, pivots)
  need_matrix(who, lu)
  pivots = lib.indices(who, 2, pivots)
  local want = {unpack(lu.shape, 1, M.dim(lu) - 2)}
  want[#want + 1] = math.min(rows(lu), cols(lu))
  if M.dim(pivots) ~= #want or table.concat(want, "x") ~= table.concat(pivots.shape, "x") then
    fail(who, "argument 2 (pivots) has shape %s; for argument 1 of shape %s it must be %s", tostring(pivots.shape), tostring(lu.shape),
      table.concat(want, "x"))
  end
  return computed(ops.order_of_rows, pivots, rows(lu))
end
local function beside(order, x) return ops.expand(M.unsqueeze(order, -1), x.shape) end
local function parts_of(lu, order)
  local m, n = rows(lu), cols(lu)
  local k = math.min(m, n)
  local below = ops.tril(columns(lu, 1, k), -1)
  local l = below + ops.expand(ops.eye(m, k, {dtype = lu.dtype, device = lu.device}), below.shape)
  return T(M.to(F.one_hot(order, m), lu.dtype)), l, ops.triu(ops.slice(lu, -2, 1, k))
end
def("linalg.lu_factor",
  "x",
  "L below U of x with rows exchanged, in one matrix, and the row, from 1, that each was exchanged with; of singular matrices too",
  function(x)
    local lu, pivots = computed(ops.lu_factors, x)
    return lu, pivots
  end, NO_METHOD)
def("linalg.lu_factor_ex",
  "x, *, check_errors:bool=false",
  "linalg.lu_factor, and for each matrix 0 or which element of U's diagonal is the first 0: such a matrix has no solutions",
  function(x, check)
    local lu, pivots = computed(ops.lu_factors, x)
    local counts = ops.ne(ops.diagonal(M.detach(lu), 0, -2, -1), 0)
    local before = ops.sum(ops.cumprod(M.long(counts), -1), -1)
    local info = ops.where(ops.lt(before, cols(counts)), before + 1, 0)
    if check and M.item(ops.any(info)) then fail("linalg.lu_factor_ex", "argument 1 has a singular matrix") end
    return lu, pivots, info
  end, NO_METHOD)
def("linalg.lu", "x", "P, L and U of x = P L U: a permutation, a lower triangle of units, an upper one", function(x)
  need_matrix("linalg.lu", x)
  local lu, _, order = computed(ops.lu_factors, x)
  return parts_of(lu, order)
end, NO_METHOD)
def("lu_unpack", "lu, pivots", "P, L and U of what linalg.lu_factor gives", function(lu, pivots)
  return parts_of(lu, order_of("lu_unpack", lu, pivots))
end, {method = false})
def("linalg.lu_solve", "lu, pivots, b, *, left:bool=true, adjoint:bool=false",
  "x of a x = b (left=false: x a = b; adjoint: with a^T) by what linalg.lu_factor gives of a",
  function(lu, pivots, b, left, adjoint)
    need_square("linalg.lu_solve", lu)
    local order, solve = order_of("linalg.lu_solve", lu, pivots), F["linalg.solve_triangular"]
    if not left then b, adjoint = T(b), not adjoint end
    lu, b = lib.expand_batches("linalg.lu_solve", lu, b)
    local x
    if adjoint then
      x = solve(T(lu), b, {upper = false})
      x = solve(T(lu), x, {upper = true, unitriangular = true})
      x = ops.scatter(ops.zeros(x.shape, {dtype = x.dtype, device = x.device}), -2, beside(order, x), x)
    else
      x = solve(lu, ops.gather(b, -2, beside(order, b)), {upper = false, unitriangular = true})
      x = solve(lu, x, {upper = true})
    end
    return left and x or T(x)
  end, NO_METHOD)
def("linalg.qr",
  "x, mode:enum(reduced,complete,r)=reduced",
  "Q with orthonormal columns and the upper triangular R of x = Q R (mode r: R alone)",
  function(x, mode)
    need_matrix("linalg.qr", x)
    local packed = computed(ops.qr_rows, x, mode == "complete")
    local r = columns(packed, rows(x) + 1)
    if mode == "r" then return r end
    return T(columns(packed, 1, rows(x))), r
  end, NO_METHOD)
def("linalg.eigh",
  "x, UPLO:enum(L,U)=L",
  "eigenvalues of symmetric matrices in ascending order, and as columns their vectors; one triangle is read",
  function(x, uplo)
    local packed = computed(ops.eigen_rows, x, uplo == "U")
    return ops.select(packed, -1, 1), T(columns(packed, 2))
  end, NO_METHOD)
def("linalg.eigvalsh", "x, UPLO:enum(L,U)=L", "eigenvalues of symmetric matrices in ascending order", function(x, uplo)
  return (F["linalg.eigh"](x, uplo))
end, NO_METHOD)
def("linalg.svd",
  "x, full_matrices:bool=true",
  "U, S and V^T of x = U diag(S) V^T, S descending; without full_matrices as many columns and rows as there are values",
  function(x, full)
    need_matrix("linalg.svd", x)
    local m, n = rows(x), cols(x)
    local packed = computed(ops.svd_rows, x)
    local u, s, v = T(columns(packed, 1, m)), ops.select(packed, -1, m + 1), columns(packed, m + 2)
    -- adds columns that complete an orthonormal basis
    local function completed(q)
      local have = cols(q)
      return ops.cat({q, columns((F["linalg.qr"](M.detach(q), "complete")), have + 1)}, -1)
    end
    if full and m > n then u = completed(u) end
    if full and n > m then v = T(completed(T(v))) end
    return u, s, v
  end, NO_METHOD)
def("linalg.svdvals", "x", "singular values, descending", function(x)
  local _, s = F["linalg.svd"](x, false)
  return s
end, NO_METHOD)

---- systems ----
-- Both operands with a common batch; b as a matrix, and a function that restores b's shape. vectors: whether b may be a vector.
local function system(name, a, b, left, vectors)
  need_square(name, a)
  local vector = vectors and left and (M.dim(b) == 1 or M.dim(b) == M.dim(a) - 1)
  for d = 1, vector and M.dim(b) > 1 and M.dim(b) or 0 do vector = vector and b.shape[d] == a.shape[d] end
  if vector then b = M.unsqueeze(b, -1) end
  if M.dim(b) < 2 then fail(name, "argument 2 must be a matrix or a batch of matrices, got shape %s", tostring(b.shape)) end
  if not left then a, b = T(a), T(b) end
  if rows(b) ~= rows(a) then
    fail(name, "arguments 1 and 2 have shapes %s and %s; for each matrix argument 2 must have %d %s",
      tostring(a.shape), tostring(b.shape), rows(a), left and "rows" or "columns")
  end
  a, b = lib.expand_batches(name, a, b)
  return a, b, function(x) return vector and M.squeeze(x, -1) or left and x or T(x) end
end
local function solution(name, a, b, left, check)
  local p, q, shaped = system(name, a, b, left, true)
  local x, info = informed(name, ops.solve_system, "is singular", check, p, q)
  return shaped(x), info
end
def("linalg.solve", "a, b, *, left:bool=true", "x of a x = b (left=false: of x a = b) for square matrices a", function(a, b, left)
  return (solution("linalg.solve", a, b, left, true))
end, NO_METHOD)
def("linalg.solve_ex",
  "a, b, *, left:bool=true, check_errors:bool=false",
  "linalg.solve, and for each matrix 0 or, where it is singular, which element of U's diagonal is 0: its solution is NaN, and no error",
  function(a, b, left, check) return solution("linalg.solve_ex", a, b, left, check) end, NO_METHOD)
def("linalg.solve_triangular",
  "a, b, *, upper:bool, left:bool=true, unitriangular:bool=false",
  "x of a x = b (left=false: of x a = b) for triangular matrices a; the other triangle isn't read",
  function(a, b, upper, left, unit)
    local p, q, shaped = system("linalg.solve_triangular", a, b, left)
    return shaped(computed(ops.solve_triangle, p, q, upper == left, unit))
  end, NO_METHOD)
local function inverse(name, x, check)
  need_square(name, x)
  return informed(name, ops.invert, "is singular", check, x)
end
def("linalg.inv", "x", "inverses of square matrices", function(x) return (inverse("linalg.inv", x, true)) end, NO_METHOD)
def("linalg.inv_ex",
  "x, *, check_errors:bool=false",
  "linalg.inv, and for each matrix 0 or, where it is singular, which element of U's diagonal is 0: its inverse is NaN, and no error",
  function(x, check) return inverse("linalg.inv_ex", x, check) end, NO_METHOD)
def("linalg.slogdet", "x", "sign and logarithm of the absolute value of determinants", function(x)
  local log, sign = computed(ops.log_determinant, x)
  return sign, log
end, NO_METHOD)
-- The gradient of each matrix's determinant with respect to its elements, by its singular values. Its own gradient is right only where
-- these differ.
local function cofactors(x)
  local u, s, v = F["linalg.svd"](x)
  local _, su = computed(ops.log_determinant, u)
  local _, sv = computed(ops.log_determinant, v)
  local n = cols(x)
  local others = ops.masked_fill(ops.expand(M.unsqueeze(s, -2), x.shape), ops.eye(n, {dtype = "bool", device = x.device}), 1)
  return ops.matmul(u * M.unsqueeze(ops.prod(others, -1) * M.unsqueeze(su * sv, -1), -2), v)
end
-- Whether a determinant is 0 but for rounding, beside the product of the rows' norms, which it is at most. By logarithms: products of many
-- norms leave float64's range.
local function is_singular(x, det)
  local most = ops.sum(ops.log(ops.sqrt(ops.sum(ops.square(M.double(x)), -1))), -1)
  local near = ops.le(ops.log(ops.abs(M.double(det))), most + math.log(cols(x) * lib.EPS[x.dtype]))
  return ops.logical_and(near, ops.lt(most, math.huge))
end
-- det, the determinant of x, with its gradient where x is singular, which can't use an inverse
local singular_determinant
local function determinant_of_singular(x, det)
  singular_determinant = singular_determinant or require("tycho.autograd").Function {
    forward = function(ctx, a, value)
      ctx:save_for_backward(a)
      return ops.clone(value)
    end,
    backward = function(ctx, g) return M.unsqueeze(M.unsqueeze(g, -1), -1) * cofactors((ctx:saved_tensors())) end}
  return singular_determinant(x, det)
end
def("linalg.det",
  "x",
  "determinants of square matrices; within vmap and compile a singular one has a gradient of NaN; second derivatives of a singular one \z
    are right where its singular values differ",
  function(x)
    need_square("linalg.det", x)
    local det = computed(ops.determinant, x)
    if not x.requires_grad or not lib.reads() then return det end
    local singular = is_singular(M.detach(x), M.detach(det))
    if not M.item(ops.any(singular)) then return det end
    local those, one = M.unsqueeze(M.unsqueeze(singular, -1), -1), eye(cols(x), x)
    local of_singular = determinant_of_singular(ops.where(those, x, one), ops.where(singular, det:detach(), 1))
    return ops.where(singular, of_singular, computed(ops.determinant, ops.where(those, one, x)))
  end, NO_METHOD)
local function lstsq(a, b)
  need_matrix("linalg.lstsq", a)
  local vector = M.dim(b) == M.dim(a) - 1
  if vector then b = M.unsqueeze(b, -1) end
  local wide = rows(a) < cols(a)
  local q, r = F["linalg.qr"](wide and T(a) or a)
  local x
  if wide then x = ops.matmul(q, F["linalg.solve_triangular"](T(r), b, {upper = false}))
  else x = F["linalg.solve_triangular"](r, ops.matmul(T(q), b), {upper = true}) end
  return vector and M.squeeze(x, -1) or x
end
def("linalg.lstsq",
  "a, b",
  "x with the least norm of a x - b; where several have it, the one that is least itself. a must have full rank",
  function(a, b) return lib.exactly(lstsq, a, b) end, NO_METHOD)
-- The bound above which singular values s of x count: atol, and rtol times the largest. Each is nil, a number, or a tensor with an element
-- for each matrix; rtol's default is 0 if atol is above 0.
local function least_counted(name, x, s, atol, rtol)
  for what, v in pairs {atol = atol, rtol = rtol} do
    if type(v) ~= "number" and not core.is_tensor(v) then fail(name, "%s must be a number or a tensor, got %s", what, lib.shown(v)) end
  end
  if rtol == nil then
    rtol = math.max(rows(x), cols(x)) * (lib.EPS[x.dtype] or lib.EPS.float32)
    if core.is_tensor(atol) then rtol = ops.where(ops.gt(atol, 0), 0, rtol) elseif atol and atol > 0 then rtol = 0 end
  end
  local function each(v) return core.is_tensor(v) and M.unsqueeze(v, -1) or v end
  local least = ops.amax(s, -1, {keepdim = true}) * each(rtol)
  return atol == nil and least or ops.maximum(least, each(atol))
end
-- A pseudoinverse with its gradient for constant rank (Golub and Pereyra 1973). It doesn't use the factors' gradients, which fail for
-- repeated values.
local pseudoinverse
local function pseudoinverse_of(x, atol, rtol)
  pseudoinverse = pseudoinverse or require("tycho.autograd").Function {
    _as_ops = true,                        -- but for repeated values, where a trace's gradient is NaN
    forward = function(ctx, a, absolute, relative)
      local u, s, v = F["linalg.svd"](a, false)
      local none = ops.le(s, M.numel(s) > 0 and least_counted("linalg.pinv", a, s, absolute, relative) or s)
      local p = ops.matmul(T(v) * M.unsqueeze(ops.masked_fill(1 / ops.masked_fill(s, none, 1), none, 0), -2), T(u))
      ctx:save_for_backward(a, p)
      return p
    end,
    backward = function(ctx, g)
      local a, p = ctx:saved_tensors()
      local pt, gt = T(p), T(g)
      local left, right = eye(rows(a), a) - ops.matmul(a, p), eye(cols(a), a) - ops.matmul(p, a)
      return ops.matmul(ops.matmul(left, gt), ops.matmul(p, pt)) +
        ops.matmul(ops.matmul(ops.matmul(pt, p), gt), right) - ops.matmul(ops.matmul(pt, g), pt)
    end}
  return pseudoinverse(x, atol, rtol)
end
def("linalg.pinv",
  "x, rtol:any?, *, atol:any?, hermitian:bool=false",
  "Moore-Penrose pseudoinverses; singular values up to atol, or to rtol times the largest, count as 0; hermitian says that x is symmetric",
  function(x, rtol, atol, hermitian)
    need_matrix("linalg.pinv", x)
    if hermitian then                                          -- only one triangle is read
      need_square("linalg.pinv", x)
      x = ops.tril(x) + T(ops.tril(x, -1))
    end
    return lib.exactly(pseudoinverse_of, x, atol, rtol)
  end, NO_METHOD)
def("linalg.matrix_rank",
  "x, tol:any?, hermitian:bool=false, *, atol:any?, rtol:any?",
  "how many singular values (of symmetric matrices, hermitian: sizes of eigenvalues) are above atol, or tol, and above rtol times the largest",
  function(x, tol, hermitian, atol, rtol)
    local s = hermitian and ops.abs(F["linalg.eigvalsh"](x)) or F["linalg.svdvals"](x)
    if s.shape[M.dim(s)] == 0 then return ops.sum(M.long(s), -1) end
    if tol ~= nil then
      if type(tol) ~= "number" and not core.is_tensor(tol) then
        fail("linalg.matrix_rank", "argument 2 (tol) must be a number or a tensor, got %s", lib.shown(tol))
      end
      atol, rtol = tol, 0
    end
    return ops.sum(ops.gt(s, least_counted("linalg.matrix_rank", x, s, atol, rtol)), -1)
  end, NO_METHOD)

---- norms, products ----
def("linalg.vector_norm",
  "x, ord:any?, dim:any?, keepdim:bool=false, *, dtype:dtype?",
  "ord-norm (2 where nil) over dim (all dims where nil)",
  function(x, ord, dim, keepdim, dtype) return M.norm(x, ord, dim, {keepdim = keepdim, dtype = dtype}) end, NO_METHOD)
def("linalg.matrix_norm",
  "x, ord:any?, dim:any?, keepdim:bool=false, *, dtype:dtype?",
  "norm of the matrices in two dims (the last two where nil): 'fro' (where nil), 'nuc', inf, -inf, 1, -1, 2 or -2",
  function(x, ord, dim, keepdim, dtype)
    local name = "linalg.matrix_norm"
    need_matrix(name, x)
    if dtype then x = M.to(x, dtype) end
    ord = lib.norm_order(name, ord, "fro")
    if dim ~= nil and (type(dim) ~= "table" or #dim ~= 2) then fail(name, "dim must be a list of two dims") end
    local p, q = wrap(name, dim and dim[1] or -2, M.dim(x)), wrap(name, dim and dim[2] or -1, M.dim(x))
    if p == q then fail(name, "the two dims must differ") end
    local y
    if x.shape[p] * x.shape[q] == 0 and (ord == "nuc" or ord == 1 or ord == 2 or ord == math.huge) then ord = "fro" end         -- it is 0
    if ord == "fro" then return M.norm(x, 2, {p, q}, {keepdim = keepdim}) end
    if ord == "nuc" or ord == 2 or ord == -2 then
      local s = F["linalg.svdvals"](F.movedim(x, {p, q}, {-2, -1}))
      y = ord == "nuc" and ops.sum(s, -1) or ord == 2 and ops.amax(s, -1) or ops.amin(s, -1)
    else
      local over = math.abs(ord) == 1 and p or q
      if math.abs(ord) ~= 1 and math.abs(ord) ~= math.huge then
        fail(name, "ord must be 'fro', 'nuc', inf, -inf, 1, -1, 2 or -2, got %s", tostring(ord))
      end
      local other = (over == p) and q or p
      y = ops.sum(ops.abs(x), over)
      if other > over then other = other - 1 end
      y = (ord > 0 and ops.amax or ops.amin)(y, other)
    end
    if keepdim then y = M.unsqueeze(M.unsqueeze(y, math.min(p, q)), math.max(p, q)) end
    return y
  end, NO_METHOD)
def("linalg.norm",
  "x, ord:any?, dim:any?, keepdim:bool=false, *, dtype:dtype?",
  "vector_norm or, where ord is given and x is a matrix or dim has two dims, matrix_norm",
  function(x, ord, dim, keepdim, dtype)
    local two = type(dim) == "table" and #dim == 2 or (dim == nil and M.dim(x) == 2)
    if ord ~= nil and two then return F["linalg.matrix_norm"](x, ord, dim, keepdim, {dtype = dtype}) end
    return F["linalg.vector_norm"](x, ord, dim, keepdim, {dtype = dtype})
  end, NO_METHOD)
def("linalg.cond", "x, p:any?", "condition numbers: the p-norm (2 where nil) of x times that of its inverse", function(x, p)
  p = p == nil and 2 or p
  if M.numel(x) == 0 then return F["linalg.matrix_norm"](x, type(p) == "number" and math.abs(p) or p) end
  if p == 2 or p == -2 then
    local s = F["linalg.svdvals"](x)
    return p == 2 and ops.amax(s, -1) / ops.amin(s, -1) or ops.amin(s, -1) / ops.amax(s, -1)
  end
  need_square("linalg.cond", x)
  local none = ops.eq((F["linalg.slogdet"](M.detach(x))), 0)         -- singular: its inverse is infinite
  local some = ops.where(M.unsqueeze(M.unsqueeze(none, -1), -1), eye(rows(x), x), x)
  return ops.masked_fill(F["linalg.matrix_norm"](x, p) * F["linalg.matrix_norm"](F["linalg.inv"](some), p), none, math.huge)
end, NO_METHOD)
def("linalg.vecdot", "a, b, dim:int=-1", "sums of products along dim", function(a, b, dim) return ops.sum(a * b, dim) end, NO_METHOD)
def("linalg.multi_dot",
  "tensors:tensors",
  "product of two or more matrices, in the order that takes the fewest multiplications",
  function(list)
    local n, name = #list, "linalg.multi_dot"
    if n < 2 then fail(name, "2 or more matrices are needed, got %d", n) end
    local first, last = M.dim(list[1]) == 1, M.dim(list[n]) == 1
    list = {unpack(list)}
    if first then list[1] = M.unsqueeze(list[1], 1) end
    if last then list[n] = M.unsqueeze(list[n], 2) end
    for i = 1, n do lib.need(name, i, list[i], 2) end
    local cost, split = {}, {}
    for i = 1, n do cost[i], split[i] = {[i] = 0}, {} end
    for length = 2, n do
      for i = 1, n - length + 1 do
        local j = i + length - 1
        for k = i, j - 1 do
          local c = cost[i][k] + cost[k + 1][j] + rows(list[i]) * cols(list[k]) * cols(list[j])
          if not cost[i][j] or c < cost[i][j] then cost[i][j], split[i][j] = c, k end
        end
      end
    end
    local function product(i, j) return i == j and list[i] or ops.matmul(product(i, split[i][j]), product(split[i][j] + 1, j)) end
    local y = product(1, n)
    if last then y = M.squeeze(y, 2) end
    return first and M.squeeze(y, 1) or y
  end, NO_METHOD)
-- e^x by squaring e^(x / 2^k), computed by a Pade approximant of degree 8 for a norm up to 1.
local PADE = {1}
for i = 1, 8 do PADE[i + 1] = PADE[i] * (8 - i + 1) / (i * (16 - i + 1)) end
local function matrix_exp(x)
  need_square("linalg.matrix_exp", x)
  if M.numel(x) == 0 then return ops.clone(x) end
  local norms = ops.sum(ops.abs(M.detach(x)), -2)
  local norm = ops.amax(core.is_mapping() and core.map_out_all(norms) or norms):item()
  local k = norm > 1 and norm < math.huge and math.ceil(math.log(norm) / math.log(2)) or 0
  local y = x * 2 ^ -k
  local power, even, odd = eye(cols(x), x), nil, nil
  for i = 0, 8 do
    local term = power * PADE[i + 1]
    if i % 2 == 0 then even = even and even + term or term else odd = odd and odd + term or term end
    power = ops.matmul(power, y)
  end
  local e = F["linalg.solve"](even - odd, even + odd)
  for _ = 1, k do e = ops.matmul(e, e) end
  return e
end
def("linalg.matrix_exp", "x", "e to the power of square matrices", function(x) return lib.exactly(matrix_exp, x) end, NO_METHOD)
def("linalg.cross", "a, b, dim:int=-1", "vector product along dim, of size 3", function(a, b, dim) return F.cross(a, b, dim) end, NO_METHOD)
lib.set("linalg.matrix_power", F.matrix_power)
lib.set("linalg.matmul", ops.matmul)

def("linalg.diagonal", "x, *, offset:int=0, dim1:dim=-2, dim2:dim=-1", "the diagonals of matrices, as their last dim",
  function(x, offset, dim1, dim2) return ops.diagonal(x, offset, dim1, dim2) end, NO_METHOD)

---- torch's own names ----
for name, of in pairs {inverse = "inv", det = "det", slogdet = "slogdet", matrix_exp = "matrix_exp"} do
  lib.alias(name, "linalg." .. of)
  M[name] = F[name]
end
def("pinverse", "x, rcond:any?", "linalg.pinv: singular values up to rcond times the largest count as 0", function(x, rcond)
  return F["linalg.pinv"](x, rcond)
end)
def("logdet", "x", "logarithm of determinants, NaN where they are negative", function(x)
  local sign, log = F["linalg.slogdet"](x)
  return ops.where(ops.lt(sign, 0), 0 / 0, log)
end)
def("svd", "x, some:bool=true", "U, S and V (linalg.svd gives V^T)", function(x, some)
  local u, s, v = F["linalg.svd"](x, not some)
  return u, s, T(v)
end)
def("cholesky_solve", "b, l, upper:bool=false", "x of A x = b, where l is A's Cholesky factor", function(b, l, upper)
  if upper then l = T(l) end
  return F["linalg.solve_triangular"](T(l), F["linalg.solve_triangular"](l, b, {upper = false}), {upper = true})
end)
def("cholesky_inverse", "l, upper:bool=false", "inverse of the matrix whose Cholesky factor l is", function(l, upper)
  need_square("cholesky_inverse", l)
  return F.cholesky_solve(ops.expand(eye(cols(l), l), l.shape), l, upper)
end)

---- products of sizes, reflections, low ranks ----
local function product(sizes, first, last)
  local n = 1
  for i = first, last do n = n * sizes[i] end
  return n
end
def("linalg.tensorinv",
  "x, ind:int=2",
  "y of tensordot(y, tensordot(x, z, k), ind) = z: x's inverse as a map from its dims after ind (k many) to the first ind",
  function(x, ind)
    local name, n = "linalg.tensorinv", M.dim(x)
    if ind < 1 then fail(name, "argument 2 (ind) must be 1 or more, got %d", ind) end
    ind = math.min(ind, n)
    local shape = {unpack(x.shape, ind + 1)}
    for i = 1, ind do shape[#shape + 1] = x.shape[i] end
    local rows_, cols_ = product(x.shape, 1, ind), product(x.shape, ind + 1, n)
    if rows_ ~= cols_ then
      fail(name, "shape %s: the first %d dims have %d elements, the others %d; both must be equal", tostring(x.shape), ind, rows_, cols_)
    end
    return M.reshape(F["linalg.inv"](M.reshape(x, rows_, cols_)), shape)
  end, NO_METHOD)
def("linalg.tensorsolve", "a, b, dims:ints?", "x of tensordot(a, x, x's dims) = b; dims: those of a that are moved to its end first",
  function(a, b, dims)
    local name = "linalg.tensorsolve"
    if dims then
      local last = {}
      for i in ipairs(dims) do last[i] = M.dim(a) - #dims + i end
      a = M.movedim(a, dims, last)
    end
    local shape = {unpack(a.shape, M.dim(b) + 1)}
    local n = product(shape, 1, #shape)
    if n ~= M.numel(b) or M.numel(a) ~= n * n then
      fail(name, "shapes %s and %s: argument 1's first dims and its remaining dims must have %d elements each",
        tostring(a.shape), tostring(b.shape), M.numel(b))
    end
    return M.reshape(F["linalg.solve"](M.reshape(a, n, n), M.reshape(b, n)), shape)
  end, NO_METHOD)
def("linalg.householder_product",
  "x, tau",
  "the first columns of H1 H2 ..., Hi = I - tau_i v v^T, where v is column i of x below its diagonal, with 1 there",
  function(x, tau)
    need_matrix("linalg.householder_product", x)
    local m, n, k = rows(x), cols(x), tau.shape[M.dim(tau)] or 0
    if M.dim(tau) ~= M.dim(x) - 1 or n > m or k > n then
      fail("linalg.householder_product",
        "shapes %s and %s: argument 1 must not have more columns than rows, nor argument 2 more elements than columns",
        tostring(x.shape), tostring(tau.shape))
    end
    local q = ops.expand(columns(eye(m, x), 1, n), x.shape)
    local v = ops.tril(x, -1) + columns(eye(m, x), 1, n)
    for i = k, 1, -1 do
      local column = columns(v, i, i)
      q = q - M.unsqueeze(columns(tau, i, i), -1) * ops.matmul(column, ops.matmul(T(column), q))
    end
    return q
  end, NO_METHOD)

-- Columns that nearly span the space of x's largest singular values (Halko, Martinsson and Tropp 2009, algorithm 4.4).
local function near_range(x, q, niter)
  local function basis(y) return (F["linalg.qr"](y)) end
  local y = basis(ops.matmul(x, ops.randn({cols(x), q}, {dtype = x.dtype, device = x.device})))
  for _ = 1, niter do y = basis(ops.matmul(x, basis(ops.matmul(T(x), y)))) end
  return y
end
local function lowrank(name, x, q, niter)
  need_matrix(name, x)
  if q < 0 or q > math.min(rows(x), cols(x)) then fail(name, "q must be 0 to %d, got %d", math.min(rows(x), cols(x)), q) end
  if niter < 0 then fail(name, "niter must be 0 or more, got %d", niter) end
  local wide = rows(x) < cols(x)
  if wide then x = T(x) end
  local range = near_range(x, q, niter)
  local u, s, vt = F["linalg.svd"](ops.matmul(T(range), x), false)
  u = ops.matmul(range, u)
  if wide then return T(vt), s, u end
  return u, s, T(vt)
end
def("svd_lowrank", "x, q:int=6, niter:int=2, m:tensor?",
  "U, S, V of x (less m) nearly U diag(S) V^T, of the q largest singular values, by a random projection and niter iterations",
  function(x, q, niter, m) return lowrank("svd_lowrank", m and x - m or x, q, niter) end, NO_METHOD)
def("pca_lowrank", "x, q:int?, center:bool=true, niter:int=2",
  "svd_lowrank of x less, where center, its columns' means: V's columns are the principal directions; q: 6, or x's smaller size",
  function(x, q, center, niter)
    need_matrix("pca_lowrank", x)
    return lowrank("pca_lowrank", center and x - ops.mean(x, -2, true) or x, q or math.min(6, rows(x), cols(x)), niter)
  end, NO_METHOD)

-- powers as products, whose derivatives at 0 are finite to any order
local function powers(x, n, downward)
  if not M.is_floating_point(x) then x = M.long(x) end
  local size = {unpack(x.shape)}
  size[#size + 1] = n
  local each = ops.expand(M.unsqueeze(x, -1), size)
  if n > 0 then
    size[#size] = 1
    each = ops.cumprod(ops.cat({ops.ones(size, {dtype = x.dtype, device = x.device}), ops.slice(each, -1, 2)}, -1), -1)
  end
  return downward and ops.flip(each, -1) or each
end
def("linalg.vander", "x, n:int?", "the powers of vectors' elements as rows, from 0 to n - 1 (n: their size)", function(x, n)
  n = n or x.shape[M.dim(x)] or 0
  if M.dim(x) < 1 or n < 2 then
    fail("linalg.vander", "argument 1 must have at least 1 dim, and n must be at least 2, got shape %s and %d", tostring(x.shape), n)
  end
  return powers(x, n)
end, NO_METHOD)
def("vander", "x, n:int?, increasing:bool=false", "the powers of a vector's elements as rows, from n - 1 (n: its size) down to 0, or up",
  function(x, n, increasing)
    need("vander", 1, x, 1)
    n = n or #x
    if n < 0 then fail("vander", "argument 2 (n) must not be negative, got %d", n) end
    return n == 0 and ops.slice(powers(x, 1), 2, 1, 0) or powers(x, n, not increasing)
  end)
