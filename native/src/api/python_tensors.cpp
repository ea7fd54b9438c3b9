// Python tensors, given as PyObject*.
#include "api/call.h"
#include "interop/python/tensor_making.h"
#include "interop/python/tensor_signature.h"
#include "interop/python/tensor_transfer.h"

namespace doorstep {
namespace {

static_assert(DS_PYTHON_SIGNATURE_BYTES == kSignatureBytes);

// The first steps of every call with an object.
ds_status begin(const void* object, const char* name, const void* result, const char* result_name) {
    if (!object) return fail_null(name);
    if (!result) return fail_null(result_name);
    return check_python();
}

ds_status read_rules(const ds_python_rules* given, ReadRules* rules) {
    if (!given) return DS_STATUS_OK;
    if (const ds_status status = check_struct(given, "rules")) return status;
    const char* hint = "pass 0 or 1";
    if (const ds_status status = check_range("rules.requires_grad_allowed", hint, given->requires_grad_allowed, 0, 1))
        return status;
    if (const ds_status status = check_range("rules.written", hint, given->written, 0, 1)) return status;
    rules->requires_grad_allowed = given->requires_grad_allowed != 0;
    rules->written = given->written != 0;
    rules->stream = given->stream;
    return DS_STATUS_OK;
}

ds_status check_tensor(const ds_python_tensor* tensor) {
    if (const ds_status status = check_struct(tensor, "tensor")) return status;
    return check_range("tensor.rank", "describe it with ds_python_read_tensors", tensor->rank, 0, kMaxRank);
}

ds_status make(void* object, bool zeros, void** made) {
    if (const ds_status status = begin(object, "object", made, "made")) return status;
    PyObject* result;
    if (const ds_status status = make_like(static_cast<PyObject*>(object), zeros, &result)) return status;
    *made = result;
    return DS_STATUS_OK;
}

ds_status copy_object(Transfer direction, void* object, void* pointer, uint64_t bytes) {
    if (!object) return fail_null("object");
    if (const ds_status status = check_python()) return status;
    return transfer_object(direction, static_cast<PyObject*>(object), pointer, bytes);
}

}  // namespace
}  // namespace doorstep

using namespace doorstep;

ds_status ds_python_is_tensor(void* object, int32_t* is_tensor) {
    if (const ds_status status = begin(object, "object", is_tensor, "is_tensor")) return status;
    bool answer;
    if (const ds_status status = doorstep::is_tensor(static_cast<PyObject*>(object), &answer)) return status;
    *is_tensor = answer;
    return DS_STATUS_OK;
}

ds_status ds_python_read_tensors(void* const* objects, uint64_t count, const ds_python_rules* given,
                                 ds_python_tensor* tensors) {
    if (const ds_status status = begin(objects, "objects", tensors, "tensors")) return status;
    ReadRules rules;
    if (const ds_status status = read_rules(given, &rules)) return status;
    for (uint64_t i = 0; i < count; ++i) {
        if (!objects[i]) return fail_null("objects");
        if (const ds_status status = check_struct(&tensors[i], "tensors")) return status;
    }
    rules.argument = "objects";
    return read_tensors(reinterpret_cast<PyObject* const*>(objects), count, rules, tensors);
}

ds_status ds_python_signature(const ds_python_tensor* tensor, char* text, uint64_t* length) {
    if (const ds_status status = check_tensor(tensor)) return status;
    if (!text) return fail_null("text");
    const uint64_t written = write_signature(*tensor, text);
    if (length) *length = written;
    return DS_STATUS_OK;
}

ds_status ds_python_current_stream(void* object, int32_t device_type, int64_t device_index, uint64_t* stream) {
    if (const ds_status status = begin(object, "object", stream, "stream")) return status;
    if (const ds_status status = check_range("device_index", "count from 0", device_index, 0, INT32_MAX)) return status;
    return current_stream(static_cast<PyObject*>(object), device_type, device_index, stream);
}

ds_status ds_python_copy_to_pointer(void* object, void* pointer, uint64_t bytes) {
    return copy_object(Transfer::kToPacked, object, pointer, bytes);
}

ds_status ds_python_copy_from_pointer(void* object, const void* pointer, uint64_t bytes) {
    return copy_object(Transfer::kFromPacked, object, const_cast<void*>(pointer), bytes);
}

ds_status ds_python_copy_out(const ds_python_tensor* tensor, uint64_t stream, void* pointer, uint64_t bytes) {
    if (const ds_status status = check_tensor(tensor)) return status;
    return transfer(Transfer::kToPacked, *tensor, stream, pointer, bytes);
}

ds_status ds_python_copy_in(const ds_python_tensor* tensor, uint64_t stream, const void* pointer, uint64_t bytes) {
    if (const ds_status status = check_tensor(tensor)) return status;
    return transfer(Transfer::kFromPacked, *tensor, stream, const_cast<void*>(pointer), bytes);
}

ds_status ds_python_empty_like(void* object, void** made) { return make(object, false, made); }
ds_status ds_python_zeros_like(void* object, void** made) { return make(object, true, made); }

ds_status ds_python_tensor_over(void* type, void* managed, void** made) {
    if (!managed) return fail_null("managed");
    auto* tensor = static_cast<DLManagedTensorVersioned*>(managed);
    PyObject* result = nullptr;
    if (const ds_status status = begin(type, "type", made, "made")) {
        delete_exported(tensor);
        return status;
    }
    if (const ds_status status = make_over(static_cast<PyObject*>(type), tensor, &result)) return status;
    *made = result;
    return DS_STATUS_OK;
}
