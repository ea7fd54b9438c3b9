#include "render/vulkan/shader_compiler.h"

#include "render/api/core.h"

namespace doorstep {
namespace {

// From the specification of SPIR-V.
constexpr uint32_t kSpirvMagic = 0x07230203, kSpirvHeaderWords = 5;
constexpr uint32_t kOpCapability = 17, kOpVariable = 59, kOpDecorate = 71;
constexpr uint32_t kOpControlBarrier = 224, kOpMemoryBarrier = 225;
constexpr uint32_t kDecorationBinding = 33, kStorageWorkgroup = 4;
constexpr uint32_t kCapabilityShader = 1, kCapabilityInt16 = 22, kCapabilityStorageBuffer16BitAccess = 4433;

ds_status refuse(const char* name, const char* what) {
    return fail(DS_STATUS_SHADER, "material", kMaterialHint, "%s: a material may not %s", name, what);
}

struct Instruction {
    uint32_t opcode, count;  // count: words, including the first
    const uint32_t* operands;
};

bool is_offered(uint32_t capability) {
    return capability == kCapabilityShader || capability == kCapabilityInt16 ||
           capability == kCapabilityStorageBuffer16BitAccess;
}

}  // namespace

ds_status ShaderCompiler::create() {
    if (DxcCreateInstance(kDxcCompilerClass, kDxcCompiler3, reinterpret_cast<void**>(&compiler_)) >= 0) {
        return DS_STATUS_OK;
    }
    return fail(DS_STATUS_RENDERER, "renderer", "use renderer=\"raycast\"", "the shader compiler DXC did not start");
}

ds_status ShaderCompiler::compile(const Text& source, const wchar_t* profile, Spirv* spirv) {
    if (!source.complete()) return fail(DS_STATUS_OUT_OF_MEMORY, "", "", "no memory for the source of a shader");
    const wchar_t* arguments[] = {L"-spirv", L"-fspv-target-env=vulkan1.3", L"-enable-16bit-types", L"-E", L"main",
                                  L"-T",     profile};
    const DxcBuffer buffer{source.data(), source.length(), kDxcUtf8};
    IDxcResult* result = nullptr;
    HResult compiled = compiler_->Compile(&buffer, arguments, sizeof arguments / sizeof *arguments, nullptr, kDxcResult,
                                          reinterpret_cast<void**>(&result));
    if (compiled >= 0) result->GetStatus(&compiled);
    if (compiled >= 0) compiled = result->GetResult(&spirv->blob_);
    if (compiled >= 0 && spirv->blob_ && spirv->bytes() > 0) {
        result->Release();
        return DS_STATUS_OK;
    }
    IDxcBlob* errors = nullptr;
    if (result) result->GetErrorBuffer(&errors);
    const bool told = errors && errors->GetBufferSize() > 1;
    fail(DS_STATUS_SHADER, "material", kMaterialHint, "%.*s", told ? static_cast<int>(errors->GetBufferSize()) : 64,
         told ? static_cast<const char*>(errors->GetBufferPointer()) : "the shader compiler failed without a message");
    if (errors) errors->Release();
    if (result) result->Release();
    return DS_STATUS_SHADER;
}

ds_status check_material(const Spirv& spirv, uint32_t bindings, const char* name) {
    const uint32_t* words = spirv.words();
    const size_t count = spirv.bytes() / sizeof(uint32_t);
    if (count < kSpirvHeaderWords || words[0] != kSpirvMagic) {
        return fail(DS_STATUS_INTERNAL, "", "", "DXC's output is not SPIR-V");
    }
    uint32_t free_bindings = bindings;
    for (size_t i = kSpirvHeaderWords; i < count;) {
        const Instruction instruction{words[i] & 0xffff, words[i] >> 16, words + i + 1};
        if (instruction.count == 0 || instruction.count > count - i) break;
        const uint32_t* operands = instruction.operands;
        if (instruction.opcode == kOpCapability && !is_offered(operands[0])) {
            return fail(DS_STATUS_SHADER, "material", "use float, int and uint, and functions of single pixels",
                        "%s: the material needs SPIR-V's capability %u, which doorstep does not enable", name,
                        operands[0]);
        }
        if (instruction.opcode == kOpDecorate && operands[1] == kDecorationBinding) {
            const uint32_t bit = operands[2] < 32 ? 1u << operands[2] : 0;
            if (!(free_bindings & bit)) {
                return refuse(name, "declare resources (textures, buffers, samplers, non-static global variables)");
            }
            free_bindings &= ~bit;
        }
        if (instruction.opcode == kOpVariable && operands[2] == kStorageWorkgroup) {
            return refuse(name, "share memory between threads (groupshared)");
        }
        if (instruction.opcode == kOpControlBarrier || instruction.opcode == kOpMemoryBarrier) {
            return refuse(name, "wait for other threads (barriers)");
        }
        i += instruction.count;
    }
    return DS_STATUS_OK;
}

}  // namespace doorstep
