// Replaces NVIDIA's library in builds without it: a compiler that supports no architecture.
#include "exec/cuda/nv_ptx_compiler.h"

namespace {
constexpr nvPTXCompileResult kNothing = NVPTXCOMPILE_ERROR_INTERNAL;
}

nvPTXCompileResult nvPTXCompilerGetVersion(unsigned*, unsigned*) { return kNothing; }
nvPTXCompileResult nvPTXCompilerGetNumSupportedArchs(int*) { return kNothing; }
nvPTXCompileResult nvPTXCompilerGetSupportedArchs(int*) { return kNothing; }
nvPTXCompileResult nvPTXCompilerCreate(nvPTXCompilerHandle*, size_t, const char*) { return kNothing; }
nvPTXCompileResult nvPTXCompilerDestroy(nvPTXCompilerHandle*) { return kNothing; }
nvPTXCompileResult nvPTXCompilerCompile(nvPTXCompilerHandle, int, const char* const*) { return kNothing; }
nvPTXCompileResult nvPTXCompilerGetCompiledProgramSize(nvPTXCompilerHandle, size_t*) { return kNothing; }
nvPTXCompileResult nvPTXCompilerGetCompiledProgram(nvPTXCompilerHandle, void*) { return kNothing; }
nvPTXCompileResult nvPTXCompilerGetErrorLogSize(nvPTXCompilerHandle, size_t*) { return kNothing; }
nvPTXCompileResult nvPTXCompilerGetErrorLog(nvPTXCompilerHandle, char*) { return kNothing; }
