// Compiles HLSL to SPIR-V with DXC.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "doorstep/rooms.h"
#include "render/vulkan/shader_sources.h"

namespace doorstep {

// ---- DXC
//
// The interface of the DirectX Shader Compiler, as far as doorstep uses it, declared so that no headers are needed;
// names are the compiler's. On Linux its IUnknown has no virtual destructor, and wchar_t has 4 bytes.

struct Guid {
    uint32_t data1;
    uint16_t data2, data3;
    uint8_t data4[8];
};

// Negative: failed.
using HResult = int32_t;

// No destructors on purpose: objects end with Release().
struct IUnknown {
    virtual HResult QueryInterface(const Guid& interface, void** object) = 0;
    virtual unsigned long AddRef() = 0;
    virtual unsigned long Release() = 0;
};

struct IDxcBlob : IUnknown {
    virtual void* GetBufferPointer() = 0;
    virtual size_t GetBufferSize() = 0;
};

struct IDxcResult : IUnknown {
    virtual HResult GetStatus(HResult* status) = 0;
    virtual HResult GetResult(IDxcBlob** result) = 0;
    virtual HResult GetErrorBuffer(IDxcBlob** errors) = 0;
};

struct DxcBuffer {
    const void* bytes;
    size_t size;
    uint32_t encoding;  // a code page
};
constexpr uint32_t kDxcUtf8 = 65001;

struct IDxcCompiler3 : IUnknown {
    virtual HResult Compile(const DxcBuffer* source, const wchar_t** arguments, uint32_t argument_count,
                            void* include_handler, const Guid& interface, void** result) = 0;
};

constexpr Guid kDxcCompilerClass = {0x73e22d93, 0xe6ce, 0x47f3, {0xb5, 0xbf, 0xf0, 0x66, 0x4f, 0x39, 0xc1, 0xb0}};
constexpr Guid kDxcCompiler3 = {0x228b4687, 0x5a6a, 0x4730, {0x90, 0x0c, 0x97, 0x02, 0xb2, 0x20, 0x3f, 0x54}};
constexpr Guid kDxcResult = {0x58346cda, 0xdde7, 0x4497, {0x94, 0x61, 0x6f, 0x87, 0xaf, 0x5e, 0x06, 0x59}};

extern "C" HResult DxcCreateInstance(const Guid& class_id, const Guid& interface, void** object);

// ---- Shaders

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
