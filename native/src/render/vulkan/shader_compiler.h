// HLSL to SPIR-V, by DXC.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "doorstep.h"
#include "render/vulkan/dxc.h"
#include "render/vulkan/text.h"

namespace doorstep {

// A compiled shader; words live as long as it does.
class Spirv {
public:
    Spirv() = default;
    Spirv(const Spirv&) = delete;
    Spirv& operator=(const Spirv&) = delete;
    ~Spirv() {
        if (blob_) blob_->Release();
    }

    const uint32_t* words() const { return static_cast<const uint32_t*>(blob_->GetBufferPointer()); }
    size_t bytes() const { return blob_->GetBufferSize(); }

private:
    friend class ShaderCompiler;
    IDxcBlob* blob_ = nullptr;
};

class ShaderCompiler {
public:
    ShaderCompiler() = default;
    ShaderCompiler(const ShaderCompiler&) = delete;
    ShaderCompiler& operator=(const ShaderCompiler&) = delete;
    ~ShaderCompiler() {
        if (compiler_) compiler_->Release();
    }

    ds_status create();

    // Compiles the function main. profile: L"vs_6_2" and the like. What does not compile is SHADER, with the compiler's
    // message.
    ds_status compile(const Text& source, const wchar_t* profile, Spirv* spirv);

private:
    IDxcCompiler3* compiler_ = nullptr;
};

// Whether a shader made with a user's material, called `name`, needs nothing that its pipeline does not have: SHADER if
// it binds more than `bindings` (a bit each, of scene.hlsl), shares memory between threads, waits for others, or needs
// more of the device than was asked for.
ds_status check_material(const Spirv& spirv, uint32_t bindings, const char* name);

// How a material begins, for hints.
constexpr const char* kMaterialHint =
    "a material is HLSL that defines float3 surface_colour(Surface surface); see docs/materials.md";

}  // namespace doorstep
