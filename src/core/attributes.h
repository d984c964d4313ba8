/* Where each op's attributes stand in ty_call.at: made from ops.def by scripts/attributes. */
#ifndef TY_ATTRIBUTES_H
#define TY_ATTRIBUTES_H
enum {
  TY_AT_gamma_slope_n = 0,
  TY_AT_logit_eps = 0,
  TY_AT_leaky_relu_negative_slope = 0,
  TY_AT_elu_alpha = 0,
  TY_AT_softplus_beta = 0, TY_AT_softplus_threshold = 1,
  TY_AT_celu_alpha = 0,
  TY_AT_softshrink_lambd = 0,
  TY_AT_hardshrink_lambd = 0,
  TY_AT_threshold_threshold = 0, TY_AT_threshold_value = 1,
  TY_AT_hardtanh_min_val = 0, TY_AT_hardtanh_max_val = 1,
  TY_AT_clamp_min = 0, TY_AT_clamp_max = 1,
  TY_AT_finite_min = 0, TY_AT_finite_max = 1,
  TY_AT_add_alpha = 0,
  TY_AT_sub_alpha = 0,
  TY_AT_addcmul_value = 0,
  TY_AT_addcdiv_value = 0,
  TY_AT_smooth_l1_backward_beta = 0,
  TY_AT_softplus_backward_beta = 0, TY_AT_softplus_backward_threshold = 1,
  TY_AT_leaky_relu_backward_negative_slope = 0,
  TY_AT_hardtanh_backward_min_val = 0, TY_AT_hardtanh_backward_max_val = 1,
  TY_AT_clamp_backward_min = 0, TY_AT_clamp_backward_max = 1,
  TY_AT_smooth_l1_terms_beta = 0,
  TY_AT_sum_dim = 0, TY_AT_sum_keepdim = 1, TY_AT_sum_dtype = 2,
  TY_AT_nansum_dim = 0, TY_AT_nansum_keepdim = 1, TY_AT_nansum_dtype = 2,
  TY_AT_mean_dim = 0, TY_AT_mean_keepdim = 1, TY_AT_mean_dtype = 2,
  TY_AT_prod_dim = 0, TY_AT_prod_keepdim = 1, TY_AT_prod_dtype = 2,
  TY_AT_amax_dim = 0, TY_AT_amax_keepdim = 1,
  TY_AT_amin_dim = 0, TY_AT_amin_keepdim = 1,
  TY_AT_any_dim = 0, TY_AT_any_keepdim = 1,
  TY_AT_all_dim = 0, TY_AT_all_keepdim = 1,
  TY_AT_norm2_dim = 0, TY_AT_norm2_keepdim = 1, TY_AT_norm2_dtype = 2,
  TY_AT_max_dim_dim = 0, TY_AT_max_dim_keepdim = 1,
  TY_AT_min_dim_dim = 0, TY_AT_min_dim_keepdim = 1,
  TY_AT_cumsum_dim = 0, TY_AT_cumsum_dtype = 1,
  TY_AT_cumprod_dim = 0, TY_AT_cumprod_dtype = 1,
  TY_AT_cummax_dim = 0,
  TY_AT_cummin_dim = 0,
  TY_AT_logcumsumexp_dim = 0, TY_AT_logcumsumexp_dtype = 1,
  TY_AT_cumprod_backward_dim = 0,
  TY_AT_view_size = 0,
  TY_AT_permute_dims = 0,
  TY_AT_expand_size = 0,
  TY_AT_slice_dim = 0, TY_AT_slice_first = 1, TY_AT_slice_last = 2, TY_AT_slice_step = 3,
  TY_AT_diagonal_offset = 0, TY_AT_diagonal_dim1 = 1, TY_AT_diagonal_dim2 = 2,
  TY_AT_unfold_dim = 0, TY_AT_unfold_size = 1, TY_AT_unfold_step = 2, TY_AT_unfold_dilation = 3,
  TY_AT_as_strided_size = 0, TY_AT_as_strided_stride = 1, TY_AT_as_strided_storage_offset = 2,
  TY_AT_select_dim = 0, TY_AT_select_index = 1,
  TY_AT_to_device_device = 0, TY_AT_to_device_non_blocking = 1,
  TY_AT_clone_memory_format = 0,
  TY_AT_cast_dtype = 0, TY_AT_cast_memory_format = 1,
  TY_AT_copy_non_blocking = 0,
  TY_AT_tril_k = 0,
  TY_AT_triu_k = 0,
  TY_AT_flip_dims = 0,
  TY_AT_pad_constant_pad = 0, TY_AT_pad_constant_value = 1,
  TY_AT_strided_take_layout = 0, TY_AT_strided_take_size = 1, TY_AT_strided_take_stride = 2, TY_AT_strided_take_offset = 3,
  TY_AT_strided_put_layout = 0, TY_AT_strided_put_size = 1, TY_AT_strided_put_stride = 2, TY_AT_strided_put_offset = 3,
  TY_AT_overlap_add_dim = 0, TY_AT_overlap_add_n = 1, TY_AT_overlap_add_step = 2, TY_AT_overlap_add_dilation = 3,
  TY_AT_cat_dim = 0,
  TY_AT_stack_dim = 0,
  TY_AT_empty_size = 0, TY_AT_empty_dtype = 1, TY_AT_empty_device = 2, TY_AT_empty_memory_format = 3,
  TY_AT_zeros_size = 0, TY_AT_zeros_dtype = 1, TY_AT_zeros_device = 2,
  TY_AT_ones_size = 0, TY_AT_ones_dtype = 1, TY_AT_ones_device = 2,
  TY_AT_full_size = 0, TY_AT_full_value = 1, TY_AT_full_dtype = 2, TY_AT_full_device = 3,
  TY_AT_range_first = 0, TY_AT_range_last = 1, TY_AT_range_step = 2, TY_AT_range_dtype = 3, TY_AT_range_device = 4,
  TY_AT_linspace_first = 0, TY_AT_linspace_last = 1, TY_AT_linspace_steps = 2, TY_AT_linspace_dtype = 3,
    TY_AT_linspace_device = 4,
  TY_AT_eye_n = 0, TY_AT_eye_m = 1, TY_AT_eye_dtype = 2, TY_AT_eye_device = 3,
  TY_AT_rand_size = 0, TY_AT_rand_dtype = 1, TY_AT_rand_device = 2,
  TY_AT_randn_size = 0, TY_AT_randn_dtype = 1, TY_AT_randn_device = 2,
  TY_AT_randint_low = 0, TY_AT_randint_high = 1, TY_AT_randint_size = 2, TY_AT_randint_dtype = 3, TY_AT_randint_device = 4,
  TY_AT_randperm_n = 0, TY_AT_randperm_dtype = 1, TY_AT_randperm_device = 2,
  TY_AT_uniform_low = 0, TY_AT_uniform_high = 1,
  TY_AT_normal_mean = 0, TY_AT_normal_std = 1,
  TY_AT_exponential_lambd = 0,
  TY_AT_multinomial_n = 0, TY_AT_multinomial_replacement = 1,
  TY_AT_drawn_kind = 0,
  TY_AT_augment_size = 0, TY_AT_augment_padding = 1, TY_AT_augment_flip = 2, TY_AT_augment_cutout = 3, TY_AT_augment_random = 4,
    TY_AT_augment_dtype = 5,
  TY_AT_rng_state_device = 0,
  TY_AT_dropout_mask_p = 0,
  TY_AT_cholesky_factor_check = 0,
  TY_AT_solve_system_check = 0,
  TY_AT_solve_triangle_upper = 0, TY_AT_solve_triangle_unit = 1,
  TY_AT_invert_check = 0,
  TY_AT_eigen_rows_upper = 0,
  TY_AT_qr_rows_complete = 0,
  TY_AT_order_of_rows_m = 0,
  TY_AT_fourier_n = 0, TY_AT_fourier_kind = 1, TY_AT_fourier_scale = 2, TY_AT_fourier_inner = 3,
  TY_AT_pairs_product_conjugate = 0,
  TY_AT_softmax_dim = 0, TY_AT_softmax_dtype = 1,
  TY_AT_log_softmax_dim = 0, TY_AT_log_softmax_dtype = 1,
  TY_AT_softmax_backward_dim = 0,
  TY_AT_log_softmax_backward_dim = 0,
  TY_AT_index_dims = 0, TY_AT_index_ids = 1,
  TY_AT_index_put_dims = 0, TY_AT_index_put_accumulate = 1,
  TY_AT_gather_dim = 0,
  TY_AT_scatter_dim = 0,
  TY_AT_scatter_add_dim = 0,
  TY_AT_scatter_combine_dim = 0, TY_AT_scatter_combine_how = 1,
  TY_AT_bag_padding = 0,
  TY_AT_sort_dim = 0, TY_AT_sort_descending = 1, TY_AT_sort_stable = 2,
  TY_AT_topk_k = 0, TY_AT_topk_dim = 1, TY_AT_topk_largest = 2, TY_AT_topk_sorted = 3,
  TY_AT_order_statistics_dim = 0,
  TY_AT_searchsorted_right = 0,
  TY_AT_bincount_minlength = 0,
  TY_AT_conv2d_stride = 0, TY_AT_conv2d_padding = 1, TY_AT_conv2d_dilation = 2, TY_AT_conv2d_groups = 3,
  TY_AT_conv2d_backward_input_size = 0, TY_AT_conv2d_backward_input_stride = 1, TY_AT_conv2d_backward_input_padding = 2,
    TY_AT_conv2d_backward_input_dilation = 3, TY_AT_conv2d_backward_input_groups = 4,
  TY_AT_conv2d_backward_weight_size = 0, TY_AT_conv2d_backward_weight_stride = 1, TY_AT_conv2d_backward_weight_padding = 2,
    TY_AT_conv2d_backward_weight_dilation = 3, TY_AT_conv2d_backward_weight_groups = 4,
  TY_AT_max_pool2d_indices_kernel_size = 0, TY_AT_max_pool2d_indices_stride = 1, TY_AT_max_pool2d_indices_padding = 2,
    TY_AT_max_pool2d_indices_ceil_mode = 3, TY_AT_max_pool2d_indices_dilation = 4,
  TY_AT_max_pool2d_values_kernel_size = 0, TY_AT_max_pool2d_values_stride = 1, TY_AT_max_pool2d_values_padding = 2,
    TY_AT_max_pool2d_values_ceil_mode = 3, TY_AT_max_pool2d_values_dilation = 4,
  TY_AT_max_pool2d_backward_size = 0, TY_AT_max_pool2d_backward_kernel_size = 1, TY_AT_max_pool2d_backward_stride = 2,
    TY_AT_max_pool2d_backward_padding = 3, TY_AT_max_pool2d_backward_ceil_mode = 4, TY_AT_max_pool2d_backward_dilation = 5,
  TY_AT_avg_pool2d_kernel_size = 0, TY_AT_avg_pool2d_stride = 1, TY_AT_avg_pool2d_padding = 2, TY_AT_avg_pool2d_ceil_mode = 3,
    TY_AT_avg_pool2d_count_include_pad = 4, TY_AT_avg_pool2d_divisor_override = 5,
  TY_AT_avg_pool2d_backward_size = 0, TY_AT_avg_pool2d_backward_kernel_size = 1, TY_AT_avg_pool2d_backward_stride = 2,
    TY_AT_avg_pool2d_backward_padding = 3, TY_AT_avg_pool2d_backward_ceil_mode = 4,
    TY_AT_avg_pool2d_backward_count_include_pad = 5, TY_AT_avg_pool2d_backward_divisor_override = 6,
  TY_AT_adaptive_avg_pool2d_windows_output_size = 0,
  TY_AT_adaptive_avg_pool2d_backward_size = 0,
  TY_AT_adaptive_max_pool2d_indices_output_size = 0,
  TY_AT_resize_size = 0, TY_AT_resize_mode = 1, TY_AT_resize_align_corners = 2, TY_AT_resize_factor_h = 3,
    TY_AT_resize_factor_w = 4,
  TY_AT_resize_backward_shape = 0, TY_AT_resize_backward_size = 1, TY_AT_resize_backward_mode = 2,
    TY_AT_resize_backward_align_corners = 3, TY_AT_resize_backward_factor_h = 4, TY_AT_resize_backward_factor_w = 5,
  TY_AT_distances_p = 0,
  TY_AT_distances_backward_p = 0,
  TY_AT_grid_sample_take_mode = 0, TY_AT_grid_sample_take_padding_mode = 1, TY_AT_grid_sample_take_align_corners = 2,
  TY_AT_grid_sample_backward_grid_padding_mode = 0, TY_AT_grid_sample_backward_grid_align_corners = 1,
  TY_AT_grid_sample_backward_x_shape = 0, TY_AT_grid_sample_backward_x_mode = 1, TY_AT_grid_sample_backward_x_padding_mode = 2,
    TY_AT_grid_sample_backward_x_align_corners = 3,
  TY_AT_attention_causal = 0, TY_AT_attention_scale = 1, TY_AT_attention_dropout = 2,
  TY_AT_attention_backward_causal = 0, TY_AT_attention_backward_scale = 1, TY_AT_attention_backward_dropout = 2,
  TY_AT_attention_backward_with_mask_causal = 0, TY_AT_attention_backward_with_mask_scale = 1,
    TY_AT_attention_backward_with_mask_dropout = 2,
  TY_AT_recurrent_kind = 0, TY_AT_recurrent_reverse = 1,
  TY_AT_recurrent_backward_kind = 0, TY_AT_recurrent_backward_reverse = 1,
  TY_AT_batch_norm_stats_training = 0, TY_AT_batch_norm_stats_momentum = 1, TY_AT_batch_norm_stats_eps = 2,
  TY_AT_batch_norm_backward_training = 0,
  TY_AT_layer_norm_stats_size = 0, TY_AT_layer_norm_stats_eps = 1,
  TY_AT_group_norm_stats_groups = 0, TY_AT_group_norm_stats_eps = 1,
  TY_AT_rms_norm_stats_size = 0, TY_AT_rms_norm_stats_eps = 1,
  TY_AT_cross_entropy_rows_ignore_index = 0, TY_AT_cross_entropy_rows_label_smoothing = 1,
  TY_AT_cross_entropy_backward_ignore_index = 0, TY_AT_cross_entropy_backward_label_smoothing = 1,
  TY_AT_cross_entropy_mean_ignore_index = 0, TY_AT_cross_entropy_mean_label_smoothing = 1,
  TY_AT_cross_entropy_mean_backward_ignore_index = 0, TY_AT_cross_entropy_mean_backward_label_smoothing = 1,
  TY_AT_sgd_step_momentum = 0, TY_AT_sgd_step_dampening = 1, TY_AT_sgd_step_weight_decay = 2, TY_AT_sgd_step_nesterov = 3,
    TY_AT_sgd_step_maximize = 4,
  TY_AT_adamw_step_beta1 = 0, TY_AT_adamw_step_beta2 = 1, TY_AT_adamw_step_eps = 2, TY_AT_adamw_step_weight_decay = 3,
    TY_AT_adamw_step_decoupled = 4, TY_AT_adamw_step_maximize = 5,
  TY_AT_rmsprop_step_alpha = 0, TY_AT_rmsprop_step_eps = 1, TY_AT_rmsprop_step_weight_decay = 2, TY_AT_rmsprop_step_momentum = 3,
    TY_AT_rmsprop_step_maximize = 4,
  TY_AT_adagrad_step_lr_decay = 0, TY_AT_adagrad_step_eps = 1, TY_AT_adagrad_step_weight_decay = 2,
    TY_AT_adagrad_step_maximize = 3,
  TY_AT_nadam_step_beta1 = 0, TY_AT_nadam_step_beta2 = 1, TY_AT_nadam_step_eps = 2, TY_AT_nadam_step_weight_decay = 3,
    TY_AT_nadam_step_decoupled = 4, TY_AT_nadam_step_momentum_decay = 5, TY_AT_nadam_step_maximize = 6,
    TY_AT_nadam_step_beta_ratio = 7,
  TY_AT_radam_step_beta1 = 0, TY_AT_radam_step_beta2 = 1, TY_AT_radam_step_eps = 2, TY_AT_radam_step_weight_decay = 3,
    TY_AT_radam_step_decoupled = 4, TY_AT_radam_step_maximize = 5,
  TY_AT_adamax_step_beta1 = 0, TY_AT_adamax_step_beta2 = 1, TY_AT_adamax_step_eps = 2, TY_AT_adamax_step_weight_decay = 3,
    TY_AT_adamax_step_maximize = 4,
  TY_AT_adadelta_step_rho = 0, TY_AT_adadelta_step_eps = 1, TY_AT_adadelta_step_weight_decay = 2,
    TY_AT_adadelta_step_maximize = 3,
  TY_AT_amp_update_growth_factor = 0, TY_AT_amp_update_backoff_factor = 1, TY_AT_amp_update_growth_interval = 2,
  TY_AT_collective_kind = 0, TY_AT_collective_reduction = 1, TY_AT_collective_peer = 2, TY_AT_collective_tag = 3,
    TY_AT_collective_group = 4,
};
#define TY_ATTRIBUTES(X) \
  X(gamma_slope, n) X(logit, eps) X(leaky_relu, negative_slope) X(elu, alpha) X(softplus, beta) X(softplus, threshold) \
  X(celu, alpha) X(softshrink, lambd) X(hardshrink, lambd) X(threshold, threshold) X(threshold, value) X(hardtanh, min_val) \
  X(hardtanh, max_val) X(clamp, min) X(clamp, max) X(finite, min) X(finite, max) X(add, alpha) X(sub, alpha) X(addcmul, value) \
  X(addcdiv, value) X(smooth_l1_backward, beta) X(softplus_backward, beta) X(softplus_backward, threshold) \
  X(leaky_relu_backward, negative_slope) X(hardtanh_backward, min_val) X(hardtanh_backward, max_val) X(clamp_backward, min) \
  X(clamp_backward, max) X(smooth_l1_terms, beta) X(sum, dim) X(sum, keepdim) X(sum, dtype) X(nansum, dim) X(nansum, keepdim) \
  X(nansum, dtype) X(mean, dim) X(mean, keepdim) X(mean, dtype) X(prod, dim) X(prod, keepdim) X(prod, dtype) X(amax, dim) \
  X(amax, keepdim) X(amin, dim) X(amin, keepdim) X(any, dim) X(any, keepdim) X(all, dim) X(all, keepdim) X(norm2, dim) \
  X(norm2, keepdim) X(norm2, dtype) X(max_dim, dim) X(max_dim, keepdim) X(min_dim, dim) X(min_dim, keepdim) X(cumsum, dim) \
  X(cumsum, dtype) X(cumprod, dim) X(cumprod, dtype) X(cummax, dim) X(cummin, dim) X(logcumsumexp, dim) X(logcumsumexp, dtype) \
  X(cumprod_backward, dim) X(view, size) X(permute, dims) X(expand, size) X(slice, dim) X(slice, first) X(slice, last) \
  X(slice, step) X(diagonal, offset) X(diagonal, dim1) X(diagonal, dim2) X(unfold, dim) X(unfold, size) X(unfold, step) \
  X(unfold, dilation) X(as_strided, size) X(as_strided, stride) X(as_strided, storage_offset) X(select, dim) X(select, index) \
  X(to_device, device) X(to_device, non_blocking) X(clone, memory_format) X(cast, dtype) X(cast, memory_format) \
  X(copy, non_blocking) X(tril, k) X(triu, k) X(flip, dims) X(pad_constant, pad) X(pad_constant, value) X(strided_take, layout) \
  X(strided_take, size) X(strided_take, stride) X(strided_take, offset) X(strided_put, layout) X(strided_put, size) \
  X(strided_put, stride) X(strided_put, offset) X(overlap_add, dim) X(overlap_add, n) X(overlap_add, step) \
  X(overlap_add, dilation) X(cat, dim) X(stack, dim) X(empty, size) X(empty, dtype) X(empty, device) X(empty, memory_format) \
  X(zeros, size) X(zeros, dtype) X(zeros, device) X(ones, size) X(ones, dtype) X(ones, device) X(full, size) X(full, value) \
  X(full, dtype) X(full, device) X(range, first) X(range, last) X(range, step) X(range, dtype) X(range, device) \
  X(linspace, first) X(linspace, last) X(linspace, steps) X(linspace, dtype) X(linspace, device) X(eye, n) X(eye, m) \
  X(eye, dtype) X(eye, device) X(rand, size) X(rand, dtype) X(rand, device) X(randn, size) X(randn, dtype) X(randn, device) \
  X(randint, low) X(randint, high) X(randint, size) X(randint, dtype) X(randint, device) X(randperm, n) X(randperm, dtype) \
  X(randperm, device) X(uniform, low) X(uniform, high) X(normal, mean) X(normal, std) X(exponential, lambd) X(multinomial, n) \
  X(multinomial, replacement) X(drawn, kind) X(augment, size) X(augment, padding) X(augment, flip) X(augment, cutout) \
  X(augment, random) X(augment, dtype) X(rng_state, device) X(dropout_mask, p) X(cholesky_factor, check) X(solve_system, check) \
  X(solve_triangle, upper) X(solve_triangle, unit) X(invert, check) X(eigen_rows, upper) X(qr_rows, complete) X(order_of_rows, m) \
  X(fourier, n) X(fourier, kind) X(fourier, scale) X(fourier, inner) X(pairs_product, conjugate) X(softmax, dim) \
  X(softmax, dtype) X(log_softmax, dim) X(log_softmax, dtype) X(softmax_backward, dim) X(log_softmax_backward, dim) \
  X(index, dims) X(index, ids) X(index_put, dims) X(index_put, accumulate) X(gather, dim) X(scatter, dim) X(scatter_add, dim) \
  X(scatter_combine, dim) X(scatter_combine, how) X(bag, padding) X(sort, dim) X(sort, descending) X(sort, stable) X(topk, k) \
  X(topk, dim) X(topk, largest) X(topk, sorted) X(order_statistics, dim) X(searchsorted, right) X(bincount, minlength) \
  X(conv2d, stride) X(conv2d, padding) X(conv2d, dilation) X(conv2d, groups) X(conv2d_backward_input, size) \
  X(conv2d_backward_input, stride) X(conv2d_backward_input, padding) X(conv2d_backward_input, dilation) \
  X(conv2d_backward_input, groups) X(conv2d_backward_weight, size) X(conv2d_backward_weight, stride) \
  X(conv2d_backward_weight, padding) X(conv2d_backward_weight, dilation) X(conv2d_backward_weight, groups) \
  X(max_pool2d_indices, kernel_size) X(max_pool2d_indices, stride) X(max_pool2d_indices, padding) \
  X(max_pool2d_indices, ceil_mode) X(max_pool2d_indices, dilation) X(max_pool2d_values, kernel_size) X(max_pool2d_values, stride) \
  X(max_pool2d_values, padding) X(max_pool2d_values, ceil_mode) X(max_pool2d_values, dilation) X(max_pool2d_backward, size) \
  X(max_pool2d_backward, kernel_size) X(max_pool2d_backward, stride) X(max_pool2d_backward, padding) \
  X(max_pool2d_backward, ceil_mode) X(max_pool2d_backward, dilation) X(avg_pool2d, kernel_size) X(avg_pool2d, stride) \
  X(avg_pool2d, padding) X(avg_pool2d, ceil_mode) X(avg_pool2d, count_include_pad) X(avg_pool2d, divisor_override) \
  X(avg_pool2d_backward, size) X(avg_pool2d_backward, kernel_size) X(avg_pool2d_backward, stride) X(avg_pool2d_backward, padding) \
  X(avg_pool2d_backward, ceil_mode) X(avg_pool2d_backward, count_include_pad) X(avg_pool2d_backward, divisor_override) \
  X(adaptive_avg_pool2d_windows, output_size) X(adaptive_avg_pool2d_backward, size) X(adaptive_max_pool2d_indices, output_size) \
  X(resize, size) X(resize, mode) X(resize, align_corners) X(resize, factor_h) X(resize, factor_w) X(resize_backward, shape) \
  X(resize_backward, size) X(resize_backward, mode) X(resize_backward, align_corners) X(resize_backward, factor_h) \
  X(resize_backward, factor_w) X(distances, p) X(distances_backward, p) X(grid_sample_take, mode) \
  X(grid_sample_take, padding_mode) X(grid_sample_take, align_corners) X(grid_sample_backward_grid, padding_mode) \
  X(grid_sample_backward_grid, align_corners) X(grid_sample_backward_x, shape) X(grid_sample_backward_x, mode) \
  X(grid_sample_backward_x, padding_mode) X(grid_sample_backward_x, align_corners) X(attention, causal) X(attention, scale) \
  X(attention, dropout) X(attention_backward, causal) X(attention_backward, scale) X(attention_backward, dropout) \
  X(attention_backward_with_mask, causal) X(attention_backward_with_mask, scale) X(attention_backward_with_mask, dropout) \
  X(recurrent, kind) X(recurrent, reverse) X(recurrent_backward, kind) X(recurrent_backward, reverse) \
  X(batch_norm_stats, training) X(batch_norm_stats, momentum) X(batch_norm_stats, eps) X(batch_norm_backward, training) \
  X(layer_norm_stats, size) X(layer_norm_stats, eps) X(group_norm_stats, groups) X(group_norm_stats, eps) X(rms_norm_stats, size) \
  X(rms_norm_stats, eps) X(cross_entropy_rows, ignore_index) X(cross_entropy_rows, label_smoothing) \
  X(cross_entropy_backward, ignore_index) X(cross_entropy_backward, label_smoothing) X(cross_entropy_mean, ignore_index) \
  X(cross_entropy_mean, label_smoothing) X(cross_entropy_mean_backward, ignore_index) \
  X(cross_entropy_mean_backward, label_smoothing) X(sgd_step, momentum) X(sgd_step, dampening) X(sgd_step, weight_decay) \
  X(sgd_step, nesterov) X(sgd_step, maximize) X(adamw_step, beta1) X(adamw_step, beta2) X(adamw_step, eps) \
  X(adamw_step, weight_decay) X(adamw_step, decoupled) X(adamw_step, maximize) X(rmsprop_step, alpha) X(rmsprop_step, eps) \
  X(rmsprop_step, weight_decay) X(rmsprop_step, momentum) X(rmsprop_step, maximize) X(adagrad_step, lr_decay) \
  X(adagrad_step, eps) X(adagrad_step, weight_decay) X(adagrad_step, maximize) X(nadam_step, beta1) X(nadam_step, beta2) \
  X(nadam_step, eps) X(nadam_step, weight_decay) X(nadam_step, decoupled) X(nadam_step, momentum_decay) X(nadam_step, maximize) \
  X(nadam_step, beta_ratio) X(radam_step, beta1) X(radam_step, beta2) X(radam_step, eps) X(radam_step, weight_decay) \
  X(radam_step, decoupled) X(radam_step, maximize) X(adamax_step, beta1) X(adamax_step, beta2) X(adamax_step, eps) \
  X(adamax_step, weight_decay) X(adamax_step, maximize) X(adadelta_step, rho) X(adadelta_step, eps) \
  X(adadelta_step, weight_decay) X(adadelta_step, maximize) X(amp_update, growth_factor) X(amp_update, backoff_factor) \
  X(amp_update, growth_interval) X(collective, kind) X(collective, reduction) X(collective, peer) X(collective, tag) \
  X(collective, group)
#endif
