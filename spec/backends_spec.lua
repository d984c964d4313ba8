-- tycho.backends: how exact products and convolutions are, by each of its names.
local tycho = require "tycho"
local fails = require("spec.helper").fails

describe("backends", function()
  it("say how exact products are, as flags and as words", function()
    assert.equal("highest", tycho.get_float32_matmul_precision())
    tycho.set_float32_matmul_precision "high"
    local b = tycho.backends
    assert.same({true, false, false}, {b.cuda.matmul.allow_tf32, b.cudnn.allow_tf32, b.cuda.allow_tf32})
    b.cuda.allow_tf32 = true
    assert.is_true(b.cudnn.allow_tf32 and b.cuda.allow_tf32)
    b.cuda.matmul.allow_tf32 = false
    assert.same({false, true, false}, {b.cuda.matmul.allow_tf32, b.cudnn.allow_tf32, b.cuda.allow_tf32})
    assert.same({"ieee", "tf32"}, {b.cuda.matmul.fp32_precision, b.cudnn.conv.fp32_precision})
    b.cudnn.conv.fp32_precision, b.cuda.matmul.fp32_precision = "ieee", "tf32"
    assert.same({true, false}, {b.cuda.matmul.allow_tf32, b.cudnn.allow_tf32})
    b.cuda.allow_tf32 = false
    assert.equal("highest", tycho.get_float32_matmul_precision())
    assert.equal(7, b.cudnn.flags({deterministic = true, benchmark = true}, function(x)
      assert.is_true(b.cudnn.deterministic and b.cudnn.benchmark and b.cudnn.enabled)
      return x
    end, 7))
    fails("must be a boolean, got 1", b.cudnn.flags, {deterministic = 1}, print)
    fails("backends.cudnn has no 'benchmarc'", b.cudnn.flags, {benchmarc = true}, print)
    fails("boom", b.cudnn.flags, {benchmark = true}, function() error("boom", 0) end)
    assert.is_false(b.cudnn.deterministic or b.cudnn.benchmark)
    assert.equal(tycho.cuda.is_available(), b.cudnn.is_available())
    fails("backends.cudnn.conv can't be set", function() b.cudnn.conv = "tf32" end)
    b.cuda.matmul.allow_fp16_reduced_precision_reduction = false
    fails("backends.cuda.matmul.allow_bf16_reduced_precision_reduction must be false, got true", function()
      b.cuda.matmul.allow_bf16_reduced_precision_reduction = true
    end)
    fails("backends.cudnn.conv.fp32_precision must be 'tf32' or 'ieee', got 'high'", function() b.cudnn.conv.fp32_precision = "high" end)
    fails("'highest', 'high' or 'medium'", tycho.set_float32_matmul_precision, "low")
  end)
end)
