rockspec_format = "3.0"
package = "tycho"
version = "0.1.0-1"
source = {url = "git+file://.", tag = "v0.1.0"}
description = {
  summary = "Tensors, gradients and training for LuaJIT",
  detailed = "Tensors on the CPU with autograd, nn and optim libraries in the manner of PyTorch. A C module over OpenBLAS and oneDNN.",
  license = "MIT",
}
supported_platforms = {"linux"}
dependencies = {"lua == 5.1"}
test_dependencies = {"busted"}
-- The Makefile knows the instruction sets; the rock calls it. README.md lists the packages that must be there.
build = {
  type = "make",
  build_target = "all",
  install_target = "install",
  build_variables = {},
  install_variables = {PREFIX_LUA = "$(LUADIR)", PREFIX_LIB = "$(LIBDIR)"},
  copy_directories = {"docs", "examples"},
}
test = {type = "busted"}
