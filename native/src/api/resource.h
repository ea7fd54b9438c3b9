// Translates handles of CUDA resources into objects and back.
#pragma once

#include "api/call.h"
#include "runtime/cuda/resource.h"

namespace doorstep {

inline constinit HandleRegistry<Resource> resources;

// Null, with the thread's error set, if the resource was released or never existed.
Ref<Resource> find_handle(ds_resource handle, const char* argument);

ds_status fail_wrong_kind(const char* argument, ds_resource_kind given, ds_resource_kind expected);

// The same for one kind of resource: INVALID_ARGUMENT if the handle is of another.
template <class T>
Ref<T> find_handle(ds_resource handle, const char* argument) {
    Ref<Resource> found = find_handle(handle, argument);
    if (found && found->kind() != T::kKind) {
        fail_wrong_kind(argument, found->kind(), T::kKind);
        return {};
    }
    return resource_cast<T>(std::move(found));
}

// INVALID_ARGUMENT for 0.
ds_status check_bytes(uint64_t bytes);

// A new handle to a resource just created; if it is null, the status of the failure.
ds_status give_handle(Ref<Resource> made, ds_resource* handle);

}  // namespace doorstep
