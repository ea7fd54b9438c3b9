// The interface between XLA and a custom call: the parts of XLA's FFI C API (xla/ffi/api/c_api.h, version 0.1 and
// later, which only append) that the handlers use. Structs and fields have XLA's names without the prefix, in XLA's
// order; a test compares them with the header that jaxlib ships.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace doorstep::xla {

// ---- Common first fields of structs

enum Extension_Type : int { kExtensionMetadata = 1 };

struct Extension_Base {
    size_t struct_size;
    Extension_Type type;
    Extension_Base* next;
};

struct Api_Version {
    size_t struct_size;
    Extension_Base* extension_start;
    int major_version;
    int minor_version;
};

// ---- Errors. XLA creates and destroys them.

struct Error;

enum Error_Code : int {
    kErrorInvalidArgument = 3,
    kErrorResourceExhausted = 8,
    kErrorFailedPrecondition = 9,
    kErrorInternal = 13,
};

struct Error_Create_Args {
    size_t struct_size;
    Extension_Base* extension_start;
    const char* message;
    Error_Code errc;
};

// ---- Arguments, results, attributes

enum DataType : int { kS32 = 4, kS64 = 5, kU8 = 6, kU32 = 8, kF32 = 11, kF64 = 12 };

struct Buffer {
    size_t struct_size;
    Extension_Base* extension_start;
    DataType dtype;
    void* data;
    int64_t rank;
    int64_t* dims;
};

enum ArgType : int { kArgBuffer = 1 };
enum RetType : int { kRetBuffer = 1 };
enum AttrType : int { kAttrArray = 1 };

struct ByteSpan {
    const char* ptr;
    size_t len;
};

struct Array {
    DataType dtype;
    size_t size;
    void* data;
};

struct Args {
    size_t struct_size;
    Extension_Base* extension_start;
    int64_t size;
    ArgType* types;
    void** args;
};

struct Rets {
    size_t struct_size;
    Extension_Base* extension_start;
    int64_t size;
    RetType* types;
    void** rets;
};

struct Attrs {
    size_t struct_size;
    Extension_Base* extension_start;
    int64_t size;
    AttrType* types;
    ByteSpan** names;
    void** attrs;
};

// ---- Calls

struct ExecutionContext;
struct Future;
struct InternalApi;

enum ExecutionStage : int { kStageExecute = 3 };

struct Api;

struct CallFrame {
    size_t struct_size;
    Extension_Base* extension_start;
    const Api* api;
    ExecutionContext* ctx;
    ExecutionStage stage;
    Args args;
    Rets rets;
    Attrs attrs;
    Future* future;
};

using Handler = Error*(CallFrame* call_frame);

// A handler's metadata, which XLA requests through an extension of the call frame.
using Handler_Traits = uint32_t;
constexpr Handler_Traits kCommandBufferCompatible = 1u << 0;  // its launches may be captured into a CUDA graph

struct Metadata {
    size_t struct_size;
    Api_Version api_version;
    Handler_Traits traits;
};

struct Metadata_Extension {
    Extension_Base extension_base;
    Metadata* metadata;
};

// ---- XLA's functions

struct Stream_Get_Args {
    size_t struct_size;
    Extension_Base* extension_start;
    ExecutionContext* ctx;
    void* stream;
};

struct DeviceOrdinal_Get_Args {
    size_t struct_size;
    Extension_Base* extension_start;
    ExecutionContext* ctx;
    int32_t device_ordinal;
};

struct Api {
    size_t struct_size;
    Extension_Base* extension_start;
    Api_Version api_version;
    const InternalApi* internal_api;
    Error* (*Error_Create)(Error_Create_Args* args);
    void* Error_GetMessage;
    void* Error_Destroy;
    void* Handler_Register;
    Error* (*Stream_Get)(Stream_Get_Args* args);
    void* Type_Register;
    void* ExecutionContext_Get;
    void* State_Set;
    void* State_Get;
    void* DeviceMemory_Allocate;
    void* DeviceMemory_Free;
    void* ThreadPool_Schedule;
    void* ThreadPool_NumThreads;
    void* Future_Create;
    void* Future_SetAvailable;
    void* Future_SetError;
    void* RunId_Get;
    Error* (*DeviceOrdinal_Get)(DeviceOrdinal_Get_Args* args);
};

// XLA's struct_size ends with the last field, without the padding after it.
#define DS_XLA_STRUCT_SIZE(type, last_field) (offsetof(type, last_field) + sizeof(type::last_field))

}  // namespace doorstep::xla
