// The interface of the DirectX Shader Compiler, as far as doorstep uses it, declared so that no headers are needed;
// names are the compiler's. On Linux its IUnknown has no virtual destructor, and wchar_t has 4 bytes.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace doorstep {

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

}  // namespace doorstep
