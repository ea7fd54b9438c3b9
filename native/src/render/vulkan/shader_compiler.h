// Compiles HLSL to SPIR-V with DXC.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "doorstep.h"
#include "render/vulkan/dxc.h"
#include "render/vulkan/text.h"

namespace doorstep {

// A compiled shader; words is valid while it exists.
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

    // Compiles the function main. profile: L"vs_6_2" and the like. SHADER, with the compiler's message, on failure.
    ds_status compile(const Text& source, const wchar_t* profile, Spirv* spirv);

private:
    IDxcCompiler3* compiler_ = nullptr;
};

// Checks that a shader with a user's material, called `name`, needs only what its pipeline provides: SHADER if it binds
// more than `bindings` (a bit each, of scene.hlsl), shares memory between threads, has barriers, or needs device
// features that are not enabled.
ds_status check_material(const Spirv& spirv, uint32_t bindings, const char* name);

// The form of a material, for hints.
constexpr const char* kMaterialHint =
    "a material is HLSL that defines float3 surface_colour(Surface surface); see docs/developers/materials.md";

}  // namespace doorstep
