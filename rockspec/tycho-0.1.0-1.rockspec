rockspec_format = "3.0"
package = "tycho"
version = "0.1.0-1"
source = {url = "git+file://.", tag = "v0.1.0"}
description = {
  summary = "Tensors, gradients and training for LuaJIT",
  detailed = "Tensors, automatic differentiation and training on the CPU and on NVIDIA GPUs, with PyTorch's names and Lua's manners.",
  license = "MIT",
}
supported_platforms = {"linux"}
dependencies = {"lua == 5.1"}
test_dependencies = {"busted"}
-- The Makefile knows the instruction sets; the rock calls it. docs/install.md lists the packages that must be there.
build = {
  type = "make",
  build_target = "all",
  install_target = "install",
  build_variables = {},
  install_variables = {PREFIX_LUA = "$(LUADIR)", PREFIX_LIB = "$(LIBDIR)"},
  copy_directories = {"docs", "examples"},
}
test = {type = "busted"}
