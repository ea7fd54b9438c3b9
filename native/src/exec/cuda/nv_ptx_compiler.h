// The functions of NVIDIA's PTX compiler library that doorstep calls, as its manual describes them.
#pragma once

#include <stddef.h>

extern "C" {

struct nvPTXCompiler;
typedef nvPTXCompiler* nvPTXCompilerHandle;

enum nvPTXCompileResult {
    NVPTXCOMPILE_SUCCESS = 0,
    NVPTXCOMPILE_ERROR_INTERNAL = 4,
    NVPTXCOMPILE_ERROR_OUT_OF_MEMORY = 5,
};

nvPTXCompileResult nvPTXCompilerGetVersion(unsigned* major, unsigned* minor);
nvPTXCompileResult nvPTXCompilerGetNumSupportedArchs(int* count);
nvPTXCompileResult nvPTXCompilerGetSupportedArchs(int* architectures);
nvPTXCompileResult nvPTXCompilerCreate(nvPTXCompilerHandle* compiler, size_t bytes, const char* ptx);
nvPTXCompileResult nvPTXCompilerDestroy(nvPTXCompilerHandle* compiler);
nvPTXCompileResult nvPTXCompilerCompile(nvPTXCompilerHandle compiler, int num_options, const char* const* options);
nvPTXCompileResult nvPTXCompilerGetCompiledProgramSize(nvPTXCompilerHandle compiler, size_t* bytes);
nvPTXCompileResult nvPTXCompilerGetCompiledProgram(nvPTXCompilerHandle compiler, void* image);
nvPTXCompileResult nvPTXCompilerGetErrorLogSize(nvPTXCompilerHandle compiler, size_t* bytes);
nvPTXCompileResult nvPTXCompilerGetErrorLog(nvPTXCompilerHandle compiler, char* log);

}  // extern "C"
