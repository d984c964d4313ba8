-- Functions made of ops. lib.lua declares them. Each file here holds one family, and loads when one of its listed names is first used: as a
-- function of tycho, as a method, or here.
local core = require "tycho.core"
local lib = require "tycho.functional.lib"

local function family(name, names) return {"tycho.functional." .. name, names} end
local families = require("tycho.later").files {
  family("shape", [[
    adjoint atleast_1d atleast_2d atleast_3d block_diag broadcast_tensors broadcast_to cartesian_prod channel_shuffle chunk
    column_stack combinations contiguous diag diag_embed diagflat dsplit dstack expand_as flatten fliplr flipud hsplit hstack
    is_same_size meshgrid moveaxis movedim narrow ndimension nelement pixel_shuffle pixel_unshuffle ravel repeat repeat_interleave
    reshape roll rot90 row_stack split split_with_sizes squeeze sum_to_size swapaxes swapdims t tensor_split tile trace transpose
    tril_indices triu_indices unbind unflatten unsqueeze view_as vsplit vstack]]),
  family("conversions", [[
    bfloat16 bool byte cpu cuda double empty_like float full_like get_device half int is_floating_point is_pinned long nbytes new_empty
    new_full new_ones new_tensor new_zeros ones_like pin_memory rand_like randint_like randn_like record_stream reshape_as to type_as
    zero_ zeros_like]]),
  family("random", "bernoulli cauchy_ geometric_ log_normal_ normal random_"),
  family("values", [[
    allclose aminmax argmax argmin argsort argwhere bitwise_not clamp clamp_max clamp_min clip count_nonzero deg2rad dist div divide
    equal float_power heaviside isclose isin isneginf isposinf kthvalue logaddexp2 logsumexp max min msort nan_to_num nanmean nonzero
    nonzero_static norm positive rad2deg round rsub sinc std std_mean true_divide var var_mean]]),
  family("slopes", "cumulative_trapezoid diff gradient trapezoid trapz"),
  family("statistics", [[
    bucketize corrcoef cov histc histogram median mode nanmedian nanquantile quantile searchsorted unique unique_consecutive]]),
  family("products", [[
    addbmm addmm addmv addr baddbmm bilinear bmm cdist cosine_similarity cross dot einsum embedding embedding_bag ger inner kron linear
    matrix_power mm mv one_hot outer pairwise_distance pdist renorm tensordot vdot]]),
  family("linalg", [[
    cholesky_inverse cholesky_solve det inverse linalg.cholesky linalg.cholesky_ex linalg.cond linalg.cross linalg.det linalg.diagonal
    linalg.eigh linalg.eigvalsh linalg.householder_product linalg.inv linalg.inv_ex linalg.lstsq linalg.lu linalg.lu_factor
    linalg.lu_factor_ex linalg.lu_solve linalg.matmul linalg.matrix_exp linalg.matrix_norm linalg.matrix_power linalg.matrix_rank
    linalg.multi_dot linalg.norm linalg.pinv linalg.qr linalg.slogdet linalg.solve linalg.solve_ex linalg.solve_triangular linalg.svd
    linalg.svdvals linalg.tensorinv linalg.tensorsolve linalg.vander linalg.vecdot linalg.vector_norm logdet lu_unpack matrix_exp
    pca_lowrank pinverse slogdet svd svd_lowrank vander]]),
  family("spectral", [[
    fft.abs fft.angle fft.complex fft.conj fft.fft fft.fft2 fft.fftfreq fft.fftn fft.fftshift fft.hfft fft.hfft2 fft.hfftn fft.ifft
    fft.ifft2 fft.ifftn fft.ifftshift fft.ihfft fft.ihfft2 fft.ihfftn fft.irfft fft.irfft2 fft.irfftn fft.mul fft.polar fft.rfft
    fft.rfft2 fft.rfftfreq fft.rfftn istft stft]]),
  family("windows", [[
    bartlett_window blackman_window hamming_window hann_window kaiser_window signal.windows.bartlett signal.windows.blackman
    signal.windows.cosine signal.windows.exponential signal.windows.gaussian signal.windows.general_cosine
    signal.windows.general_hamming signal.windows.hamming signal.windows.hann signal.windows.kaiser signal.windows.nuttall]]),
  family("special", [[
    ldexp mvlgamma ndtr polygamma special.digamma special.entr special.erf special.erfc special.erfcx special.erfinv special.exp2
    special.expit special.expm1 special.gammainc special.gammaincc special.gammaln special.i0 special.i0e special.i1 special.i1e
    special.log1p special.log_ndtr special.log_softmax special.logit special.logsumexp special.multigammaln special.ndtr special.ndtri
    special.polygamma special.psi special.round special.sinc special.softmax special.xlog1py special.xlogy special.zeta]]),
  family("places", [[
    as_strided_scatter diagonal_scatter fill_diagonal_ index_add index_copy index_fill index_put index_reduce index_select
    masked_scatter masked_select put scatter scatter_reduce select_scatter slice_scatter take take_along_dim unravel_index]]),
  family("layers", [[
    adaptive_avg_pool1d adaptive_avg_pool2d adaptive_max_pool1d adaptive_max_pool2d alpha_dropout avg_pool1d batch_norm conv1d conv2d
    conv_transpose1d conv_transpose2d dropout dropout1d dropout2d dropout3d feature_alpha_dropout gelu glu group_norm gumbel_softmax
    instance_norm layer_norm local_response_norm lp_pool1d lp_pool2d lp_pool3d max_pool1d max_pool2d normalize prelu relu6 rms_norm
    rrelu scaled_dot_product_attention softmin tanhshrink]]),
  family("spatial", "fold im2col interpolate pad upsample"),
  family("volumes", "adaptive_avg_pool3d adaptive_max_pool3d avg_pool3d conv3d conv_transpose3d max_pool3d"),
  family("sampling", "affine_grid grid_sample max_unpool1d max_unpool2d max_unpool3d"),
  family("quantize", "fake_quantize_per_channel_affine fake_quantize_per_tensor_affine"),
  family("losses", [[
    binary_cross_entropy binary_cross_entropy_with_logits cosine_embedding_loss cross_entropy ctc_loss gaussian_nll_loss
    hinge_embedding_loss huber_loss kl_div l1_loss margin_ranking_loss mse_loss multi_margin_loss multilabel_margin_loss
    multilabel_soft_margin_loss nll_loss poisson_nll_loss smooth_l1_loss soft_margin_loss triplet_margin_loss
    triplet_margin_with_distance_loss]]),
  family("linear_cross_entropy", "linear_cross_entropy")}
lib.families = families
families:fills(lib.functions)
for name in pairs(core.methods) do if families:of(name) then core.methods[name] = nil end end     -- left by an earlier load of the library
families:fills(core.methods)

-- Whether a family has a function or a method of that name. An op may have the name too; then the function takes precedence.
function lib.has(name) return families:of(name) ~= nil end
-- The function of that name, or the op.
function lib.find(name) return lib.has(name) and lib.functions[name] or core.ops[name] end
-- A function's declared signature.
function lib.signature_of(name)
  families:read(name)
  for _, f in ipairs(lib.signatures) do if f.name == name then return f.signature end end
end
-- Reads all families, and sorts their declarations.
function lib.all()
  families:all()
  local place = {}
  for i, file in ipairs(families.files) do place[file[1]] = i end
  for i, f in ipairs(lib.signatures) do f.at = place[families:of(f.name)] * 1000 + i end
  table.sort(lib.signatures, function(a, b) return a.at < b.at end)
end

-- The tables of tycho that hold functions, outer tables first.
lib.places = {"fft", "linalg", "signal", "signal.windows", "special"}

-- ops that PyTorch has in torch.nn.functional
for name in ([[
  relu silu sigmoid tanh leaky_relu elu selu celu mish softplus softsign softshrink hardshrink hardswish hardsigmoid logsigmoid
  threshold softmax log_softmax hardtanh avg_pool2d]]):gmatch("%S+") do lib.nn[name] = true end

return lib
