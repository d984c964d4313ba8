-- Transforms and decoding of pictures: torchvision's and Pillow's values (spec/golden_transforms.py), draws, errors.
local tycho = require "tycho"
local helper = require "spec.helper"
local fails = helper.fails
local data, T = tycho.data, tycho.data.transforms
local F, cpu = T.functional, {device = "cpu"}

local function near(a, b, eps, name)
  assert.equal(tostring(b.shape), tostring(a.shape), name)
  local d = a:double():sub(b:double()):abs():max():item()
  assert.is_true(d <= (eps or 1e-6), ("%s: %g away"):format(name or "?", d))
end
local write = helper.write_file

describe("transforms", function()
  local gold = tycho.load("spec/golden/transforms.safetensors", {device = "cpu"})
  local x, g = gold.x, gold.g

  it("give torchvision's values", function()
    for _, s in ipairs {{7, 9}, {26, 34}, {5, 40}} do
      local name = ("resize_%d_%d"):format(s[1], s[2])
      near(F.resize(x, s), gold[name .. "_aa"], 2e-6, name .. "_aa")
      near(F.resize(x, s, {antialias = false}), gold[name], 2e-6, name)
      near(F.resize(x, s, {interpolation = "nearest"}), gold[name .. "_nearest"], 0, name .. "_nearest")
    end
    near(F.resize(x, 8), gold.resize_short, 2e-6, "resize_short")
    near(F.center_crop(x, 9), gold.center_crop_9, 0, "center_crop")
    near(F.center_crop(x, {15, 20}), gold.center_crop_15, 0, "center_crop")
    near(F.crop(x, 3, 4, 6, 7), gold.crop, 0, "crop")
    near(F.pad(x, {1, 2, 3, 4}, {fill = 0.25}), gold.pad_constant, 0, "pad")
    near(F.pad(x, {2, 3}, {padding_mode = "edge"}), gold.pad_edge, 0, "pad")
    near(F.pad(x, 4, {padding_mode = "reflect"}), gold.pad_reflect, 0, "pad")
    near(F.hflip(x), gold.hflip, 0, "hflip")
    near(F.vflip(x), gold.vflip, 0, "vflip")
    for _, a in ipairs {"0", "17.5", "-90", "200"} do
      near(F.rotate(x, tonumber(a)), gold["rotate_" .. a], 0, "rotate " .. a)
      near(F.rotate(x, tonumber(a), {interpolation = "bilinear", fill = 0.3}), gold["rotate_" .. a .. "_bilinear"],
        2e-5, "rotate bilinear " .. a)
    end
    near(F.affine(x, 20, {2, -3}, 1.3, {10, 0}, {interpolation = "bilinear"}), gold.affine, 2e-5, "affine")
    near(F.affine(x, -50, {0, 1}, 0.7, {-15, 8}, {fill = 0.5}), gold.affine_2, 0, "affine_2")
    local corners, ends = {{1, 1}, {17, 1}, {17, 13}, {1, 13}}, {{3, 2}, {15, 1}, {16, 11}, {2, 13}}
    near(F.perspective(x, corners, ends), gold.perspective, 2e-5, "perspective")
    ends = {{4, 3}, {14, 2}, {17, 12}, {2, 10}}
    near(F.perspective(x, corners, ends, {interpolation = "nearest"}), gold.perspective_nearest, 0, "perspective_nearest")
    fails("three of the points lie on a line", F.perspective, x, corners, {{1, 1}, {2, 2}, {3, 3}, {1, 13}})
    fails("lists of four points", F.perspective, x, corners, {{1, 1}})
    for _, f in ipairs {"0.0", "0.4", "1.0", "1.7"} do
      for _, name in ipairs {"brightness", "contrast", "saturation", "sharpness"} do
        near(F["adjust_" .. name](x, tonumber(f)), gold[name .. "_" .. f], 1e-6, name .. f)
      end
    end
    near(F.adjust_contrast(g, 0.4), gold.contrast_gray, 1e-6, "contrast of grey")
    for _, f in ipairs {"-0.5", "-0.2", "0.1", "0.5"} do near(F.adjust_hue(x, tonumber(f)), gold["hue_" .. f], 2e-6, "hue" .. f) end
    near(F.rgb_to_grayscale(x, 3), gold.grayscale, 1e-6, "grayscale")
    near(F.normalize(x, {0.4, 0.5, 0.6}, {0.2, 0.3, 0.25}), gold.normalize, 1e-6, "normalize")
    near(F.gaussian_blur(x, {5, 3}, {1.3, 0.7}), gold.blur, 1e-6, "blur")
    near(F.gaussian_blur(x, 7), gold.blur_default, 1e-6, "blur")
    near(T.GaussianBlur(7, 0.3 * 2 + 0.8)(x), gold.blur_default, 1e-6, "blur")
    near(F.solarize(x, 0.5), gold.solarize, 1e-6, "solarize")
    near(F.invert(x), gold.invert, 0, "invert")
    near(F.autocontrast(x * 0.5 + 0.2), gold.autocontrast, 1e-6, "autocontrast")
    near(F.posterize(x, 3), gold.posterize, 1e-6, "posterize")
    near(F.equalize(x), gold.equalize, 1e-6, "equalize")
  end)

  it("give torchvision's values for its further arguments and functions, too", function()
    for _, s in ipairs {{7, 9}, {26, 34}, {5, 40}} do
      local name, cubic = ("resize_%d_%d_cubic"):format(s[1], s[2]), {interpolation = "bicubic"}
      near(F.resize(x, s, cubic), gold[name .. "_aa"], 2e-6, name .. "_aa")
      near(F.resize(x, s, {interpolation = "bicubic", antialias = false}), gold[name], 2e-6, name)
    end
    local bytes = x:gt(0.5):to("uint8") * 255             -- kept in 0..1; rounded there
    near(F.resize(bytes, {26, 34}, {interpolation = "bicubic"}), gold.resize_cubic_bytes, 0.5 / 255 + 1e-6, "bytes")
    near(F.resize(x, 8, {max_size = 9}), gold.resize_most, 2e-6, "max_size")
    near(T.Resize(8, {max_size = 9})(x), gold.resize_most, 2e-6, "max_size")
    fails("Resize: max_size must be above size, 8, got 8", T.Resize, 8, {max_size = 8})
    fails("Resize: max_size is for a size of the shorter side", T.Resize, {8, 9}, {max_size = 10})
    near(F.resized_crop(x, 3, 4, 6, 7, {5, 9}), gold.resized_crop, 2e-6, "resized_crop")
    near(F.crop(x, -1, -2, 6, 7), gold.crop_outside, 0, "crop")
    local three = {fill = {0.1, 0.2, 0.3}}
    local padded = F.pad(x, 2, three)
    for c = 1, 3 do near(padded[c], F.pad(x[{ {c, c} }], 2, {fill = c / 10})[1], 0) end
    fails("pad: a picture of 1 channels with 3 values to fill with", F.pad, g, 2, three)
    near(F.pad(x, 2, {}), F.pad(x, 2), 0)
    fails("RandomErasing: value must be a number, a list of 1 to 4 or 'random', got 'rand'", T.RandomErasing, 1, {value = "rand"})
    fails("ElasticTransform: alpha must be a number or two, got 'a'", T.ElasticTransform, "a")
    fails("Resize: max_size must be at most 32768", T.Resize, 3, {max_size = 40000})
    fails("Pad: fill must be a number or a list of 1 to 4, got 'x'", T.Pad, 1, {fill = "x"})
    for _, a in ipairs {"17.5", "-90", "200"} do
      near(F.rotate(x, tonumber(a), {expand = true, fill = three.fill}), gold["rotate_" .. a .. "_expand"], 0, "expand " .. a)
      near(T.RandomRotation({tonumber(a), tonumber(a)}, {expand = true, fill = three.fill})(x), gold["rotate_" .. a .. "_expand"], 0)
    end
    near(F.rotate(x, 30, {center = {2.5, 3.5}}), gold.rotate_center, 0, "center")
    near(F.rotate(x, 30, {center = {2.5, 3.5}, expand = true}), gold.rotate_center_expand, 0, "center and expand")
    near(F.affine(x, 20, {2, -3}, 1.3, {10, 5}, {center = {4.5, 5.5}}), gold.affine_center, 0, "center of affine")
    near(T.RandomAffine({20, 20}, {center = {4.5, 5.5}})(x), F.affine(x, 20, {0, 0}, 1, 0, {center = {4.5, 5.5}}), 0)
    fails("rotate: center must be a list {x, y}, in pixels from 1, got 3", F.rotate, x, 30, {center = 3})
    near(F.adjust_gamma(x, 0.7, 1.2), gold.gamma, 2e-6, "gamma")
    near(F.to_grayscale(x, 3), gold.grayscale, 1e-6)
    assert.equal("float16", F.convert_image_dtype(bytes, "float16").dtype)
    near(F.elastic_transform(x, gold.displacement), gold.elastic, 2e-5, "elastic")
    near(F.elastic_transform(x, gold.displacement, "nearest", {0.5, 0.2, 0.1}), gold.elastic_nearest, 0, "elastic, nearest")
    near(T.ElasticTransform(0, 1)(x), x, 1e-5)
    fails("GaussianBlur: a kernel of 41x41 is too large", T.ElasticTransform(), x)
    assert.is_true(T.ElasticTransform {alpha = 80, sigma = 1, fill = 1}(x):ne(x):float():mean():item() > 0.5)
    local d = 3 * 13 * 17
    near(T.LinearTransformation(tycho.eye(d, cpu):roll(1, 1) * 2, tycho.full({d}, 0.25, cpu))(x), gold.whitened, 1e-6, "whitened")
    near(T.LinearTransformation(tycho.eye(d, cpu), tycho.zeros({d}, cpu))(bytes), bytes:float() / 255, 1e-6, "of bytes")
    local erased = F.erase(x, 2, 3, 4, 5, 7)
    assert.same({20, true}, {erased[1]:eq(7):sum():item(), erased:eq(7)[{ {}, {2, 5}, {3, 7} }]:all():item()})
    fails("erase: the rectangle of 4x5 at row 12, column 3 isn't within", F.erase, x, 12, 3, 4, 5, 7)
    assert.equal(5, #F.five_crop(x, 4))
    near(F.ten_crop(x, 4)[6], F.hflip(x)[{ {}, {1, 4}, {1, 4} }], 0)
    fails("transforms.functional has no 'rotat'; did you mean 'rotate'?", function() return F.rotat end)
  end)

  it("work on bytes, views, batches and what came of another transform", function()
    local bytes = (x * 255):round():to("uint8")
    near(F.resize(bytes, {7, 9}), gold.resize_7_9_aa, 2e-6)
    near(F.hflip(F.hflip(bytes)), x, 1e-7)
    near(F.crop(x:transpose(2, 3), 4, 3, 7, 6), gold.crop:transpose(2, 3), 0)
    near(T.Compose {T.Resize({7, 9}), T.Normalize({0.5}, {0.5})}(x), (gold.resize_7_9_aa - 0.5) / 0.5, 5e-6)
    local batch = tycho.stack({x, x}, 1)
    near(T.Resize({7, 9})(batch)[2], gold.resize_7_9_aa, 2e-6)
    near(T.Compose {T.CenterCrop(9), function(y) return y * 2 end}(x), gold.center_crop_9 * 2, 0)
    near(T.Normalize({0.4, 0.5, 0.6}, {0.2, 0.3, 0.25})(F.hflip(x)), F.hflip(gold.normalize), 0)
    assert.equal("float16", T.Compose({T.ToTensor(), T.ConvertImageDtype("float16")})(x).dtype)
    near(T.ConvertImageDtype("bfloat16")(x), x:bfloat16(), 0)
    near(T.ToTensor()(bytes), x, 0)
  end)

  it("draw what they should", function()
    tycho.manual_seed(3)
    local a = T.RandomCrop(8)(x)
    tycho.manual_seed(3)
    near(T.RandomCrop(8)(x), a, 0)
    -- each place comes about as often: 6 rows x 10 columns of crops
    local where = tycho.range(1, 13 * 17):view(1, 13, 17):to("float32"):cpu()
    local count = {}
    local crop = T.RandomCrop(8)
    for _ = 1, 6000 do local v = crop(where)[{1, 1, 1}]; count[v] = (count[v] or 0) + 1 end
    local n = 0
    for _, c in pairs(count) do n = n + 1; assert.is_true(c > 50 and c < 160) end
    assert.equal(60, n)
    -- smaller pictures get what is needed on both sides, and of each place comes about as much
    local needed, places = T.RandomCrop(15, {pad_if_needed = true, fill = -1}), {}
    for _ = 1, 2000 do
      local y = needed(where)
      local inside = y[1]:ge(0):nonzero()
      local top, left = inside[{1, 1}], inside[{1, 2}]
      local first = where[{1, 1, 1}] + y[{1, top, left}] - 1
      local at = ("%d %d"):format(top, (first - 1) % 17 - left)
      places[at] = (places[at] or 0) + 1
      assert.equal(13 * 15, #inside)
    end
    n = 0
    for _, c in pairs(places) do n = n + 1; assert.is_true(c > 100 and c < 360) end
    assert.equal(9, n)
    fails("RandomCrop: a picture of 13x17, padding included, is smaller than the crop of 15x15", T.RandomCrop(15), where)
    local noise = T.RandomErasing(1, {value = "random", scale = {0.5, 0.5}})(tycho.zeros(3, 200, 200, cpu))
    noise = noise[noise:ne(0)]
    assert.is_true(math.abs(noise:mean():item()) < 0.02 and math.abs(noise:std():item() - 1) < 0.02)
    local flips, flip = 0, T.RandomHorizontalFlip(0.3)
    for _ = 1, 3000 do if flip(where)[{1, 1, 1}] ~= 1 then flips = flips + 1 end end
    assert.is_true(flips > 800 and flips < 1000)
    local y = T.RandomErasing(1, {value = 9})(x)
    local gone = y:eq(9):float():mean():item()
    assert.is_true(gone > 0.01 and gone < 0.4)
    for _ = 1, 50 do
      assert.equal("3x5x6", tostring(T.RandomResizedCrop({5, 6})(x).shape))
      for _, t in ipairs {T.RandAugment(3, 15), T.TrivialAugmentWide(), T.ColorJitter(0.4, 0.4, 0.4, 0.1),
          T.RandomAffine(30, {translate = {0.2, 0.2}, scale = {0.8, 1.2}, shear = 10}), T.RandomRotation({-10, 90}),
          T.RandomEqualize(), T.RandomPerspective(0.7, 1)} do
        local z = t(x)
        assert.equal("3x13x17", tostring(z.shape))
        assert.is_true(z:min():item() >= 0 and z:max():item() <= 1)
      end
    end
    local m, t = T.MixUp {num_classes = 4}(tycho.ones(4, 1, 2, 2), tycho.tensor({1, 2, 3, 4}):long())
    near(m, tycho.ones(4, 1, 2, 2), 1e-6)
    near(t:sum(2), tycho.ones(4), 1e-6)
    local ids = tycho.range(1, 2):view(2, 1, 1, 1):expand(2, 1, 8, 8)
    local c, s = T.CutMix {num_classes = 2}(ids, tycho.tensor({1, 2}):long())
    assert.near(c[1]:eq(1):float():mean():item(), s[{1, 1}], 1e-6)
  end)

  it("AutoAugment makes what torchvision's makes, and leaves as much as it is #cpu", function()
    tycho.manual_seed(11)
    local small = gold.small:float() / 255
    for _, policy in ipairs {"imagenet", "cifar10", "svhn"} do
      local all, same, n = gold["auto_augment_" .. policy]:float() / 255, 0, 1500
      local t, seen, near_to = T.AutoAugment(policy), {}, 0
      for _ = 1, n do
        -- torchvision rounds in between; and a shear of 0.2 takes row 3 from half-way between pixels, which may be either
        local off, which = (all - t(small)):abs():mean({2, 3, 4}):min(1)
        assert.is_true(off:item() < 0.03, ("%s: %g away"):format(policy, off:item()))
        if off:item() < 0.005 then near_to = near_to + 1 end
        seen[which:item()] = true
        if (all[which:item()] - small):abs():max():item() == 0 then same = same + 1 end
      end
      assert.is_true(near_to > 0.95 * n, ("%s: %d of %d"):format(policy, near_to, n))
      assert.near(gold["auto_augment_" .. policy .. "_same"][1], same / n, 0.04)
      local count = 0
      for _ in pairs(seen) do count = count + 1 end
      assert.is_true(count > 0.7 * all.shape[1], ("%s: %d of %d"):format(policy, count, all.shape[1]))
    end
    fails("AutoAugment: argument 1 (policy) must be one of imagenet,cifar10,svhn, got 'mnist'", T.AutoAugment, "mnist")
  end)

  it("are applied, or chosen, at random", function()
    local one = tycho.zeros(1, 4, 4, {device = "cpu"})
    local function plus(n) return T.Normalize({-n}, {1}) end
    local function shares(t, n)
      local count = {}
      for _ = 1, n do local v = t(one):min():item() count[v] = (count[v] or 0) + 1 end
      for v, c in pairs(count) do count[v] = c / n end
      return count
    end
    local function both(c_list, lua_list, check)          -- what C runs by itself, and what has a function in it
      check(c_list)
      check(lua_list)
    end
    both(T.RandomApply({plus(1), plus(2)}, 0.3), T.RandomApply({function(y) return y + 1 end, plus(2)}, 0.3), function(t)
      local s = shares(t, 3000)
      assert.is_true(math.abs(s[3] - 0.3) < 0.04 and math.abs(s[0] - 0.7) < 0.04)
    end)
    both(T.RandomChoice({plus(1), T.Compose {plus(1), plus(1)}, plus(3)}, {p = {1, 2, 1}}),
      T.RandomChoice({plus(1), function(y) return y + 2 end, plus(3)}, {p = {1, 2, 1}}), function(t)
      local s = shares(t, 3000)
      assert.is_true(math.abs(s[1] - 0.25) < 0.04 and math.abs(s[2] - 0.5) < 0.04 and math.abs(s[3] - 0.25) < 0.04)
    end)
    assert.equal(1, shares(T.RandomChoice {plus(5)}, 10)[5])
    local nested = shares(T.Compose {T.RandomApply({T.RandomApply({plus(1)}, 0.5), plus(2)}, 0.5), plus(10)}, 3000)
    assert.is_true(math.abs(nested[10] - 0.5) < 0.04 and math.abs(nested[12] - 0.25) < 0.04 and math.abs(nested[13] - 0.25) < 0.04)
    assert.equal("RandomApply({Resize, Grayscale}, p=0.5)", tostring(T.RandomApply {T.Resize(8), T.Grayscale()}))
    -- pictures that may get another size are told so one by one
    local sizes = {}
    for _ = 1, 40 do sizes[tostring(T.RandomApply {T.Resize({2, 3})}(one).shape)] = true end
    assert.same({["1x2x3"] = true, ["1x4x4"] = true}, sizes)
    fails("p must be a probability from 0 to 1", T.RandomApply, {plus(1)}, 2)
    fails("put ConvertImageDtype after it", T.RandomApply, {T.ConvertImageDtype("float16")})
    fails("p must be a list of 2 weights", T.RandomChoice, {plus(1), plus(2)}, {p = {1}})
    fails("RandomChoice: the list is empty", T.RandomChoice, {})
    fails("item 2 of the list is a number", T.RandomApply, {plus(1), 5})
    fails("a blur's kernel must be odd", T.GaussianBlur, 4)
    fails("a kernel of 5x5 is too large for a picture of 2x2", T.GaussianBlur(5), tycho.ones(1, 2, 2, {device = "cpu"}))
  end)

  it("say what is wrong", function()
    fails("RandomCrop: a picture of 13x17, padding included, is smaller than the crop of 32x32", T.RandomCrop(32), x)
    fails("a probability", T.RandomHorizontalFlip, 2)
    fails("did you mean 'padding'", T.RandomCrop, 3, {paddin = 2})
    fails("Resize: size must be", T.Resize, "a")
    fails("std must be above 0", T.Normalize, {0.5}, {0})
    fails("mean has 2 values, but std has 1", T.Normalize, {0.5, 0.5}, {1})
    fails("3 channels with 2 means", T.Normalize({0.5, 0.5}, {1, 1}), x)
    fails("CxHxW", T.CenterCrop(2), tycho.ones(3, {device = "cpu"}))
    fails("must be a picture", T.CenterCrop(2), 5)
    fails("did you mean 'RandomCrop'", function() return T.RandmCrop end)
    fails("item 2 of the list is a number", T.Compose, {T.ToTensor(), 5})
    fails("num_classes=", T.MixUp(), tycho.ones(2, 1, 1, 1), tycho.tensor({1, 1}):long())
  end)
end)

describe("pictures", function()
  local gold = tycho.load("spec/golden/pictures.safetensors", {device = "cpu"})
  it("are read as Pillow reads them", function()
    for name, want in pairs(gold) do
      local off = data.read_image("spec/golden/" .. name):mul(255):sub(want:float()):abs()
      assert.is_true(off:max():item() <= (name:find "jpg" and 2 or 1e-4), name)
    end
    assert.equal("1x24x31", tostring(data.read_image("spec/golden/gray.jpg", {gray = true}).shape))
    assert.equal("1x24x31", tostring(data.read_image("spec/golden/cmyk.jpg", {gray = true}).shape))
    near(data.read_image("spec/golden/picture.png", {gray = true}):mul(255), gold["gray.png"][{ {1, 1} }]:float(), 0.501)
  end)
  it("that can't be read are errors that name the file", function()
    fails("No such file", data.read_image, "spec/golden/none.jpg")
    fails("neither a JPEG nor a PNG", data.read_image, "spec/golden/transforms.safetensors")
    local path = os.tmpname()
    for _, name in ipairs {"picture.png", "picture.jpg"} do
      local f = assert(io.open("spec/golden/" .. name, "rb"))
      local s = f:read "*a"
      f:close()
      for n = 0, #s - 5, 7 do                     -- the last four bytes are a check of the end mark
        write(path, s:sub(1, n))
        fails(path, data.read_image, path)
      end
    end
    write(path, "\137PNG\r\n\26\n\0\0\0\rIHDR\0\0\255\255\0\0\255\255\8\2\0\0\0" .. ("x"):rep(100))
    fails(path, data.read_image, path)
    os.remove(path)
  end)
end)
