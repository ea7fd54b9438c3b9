#include "interop/python/tensor_bridge.h"

#include <string.h>

#include <atomic>

#include "interop/python/buffer_tensor.h"
#include "interop/python/tensor_reader.h"
#include "interop/python/tensor_types.h"
#include "runtime/status.h"

namespace doorstep {
namespace {

// Sets of dispatch keys whose tensors the reader found to be plain; 0: a free entry.
constinit std::atomic<uint64_t> plain_keys[8]{};

bool is_known_as_plain(uint64_t keys) {
    for (const std::atomic<uint64_t>& known : plain_keys) {
        const uint64_t plain = known.load(std::memory_order_relaxed);
        if (plain == keys) return true;
        if (!plain) return false;
    }
    return false;
}

void remember_as_plain(uint64_t keys) {
    for (std::atomic<uint64_t>& known : plain_keys) {
        uint64_t expected = 0;
        if (known.compare_exchange_strong(expected, keys) || expected == keys) return;
    }
}

template <class Value>
Value load_at(const void* object, uint32_t offset) {
    Value value;
    memcpy(&value, static_cast<const char*>(object) + offset, sizeof value);
    return value;
}

// Kept until the process ends; null, with Python's exception set, on failure.
PyObject* name_of_requires_grad() {
    static constinit std::atomic<PyObject*> name{nullptr};
    PyObject* known = name.load(std::memory_order_acquire);
    if (known) return known;
    known = python().PyUnicode_InternFromString("requires_grad");
    name.store(known, std::memory_order_release);
    return known;
}

// False if the library could not report it.
bool ask_requires_grad(PyObject* object, TensorView* view) {
    PyObject* name = name_of_requires_grad();
    const PyOwned answer(name ? python().PyObject_GetAttr(object, name) : nullptr);
    view->requires_grad = answer.get() == python().True;
    return static_cast<bool>(answer);
}

// False if the view cannot represent it.
bool fill(const DLTensor& tensor, uint8_t library, TensorView* view) {
    if (tensor.ndim < 0 || tensor.ndim > kMaxRank) return false;
    view->rank = tensor.ndim;
    view->data = tensor.data ? static_cast<char*>(tensor.data) + tensor.byte_offset : nullptr;
    view->device_type = tensor.device.device_type;
    view->device_index = tensor.device.device_id;
    view->dtype_code = tensor.dtype.code;
    view->dtype_bits = tensor.dtype.bits;
    view->dtype_lanes = tensor.dtype.lanes;
    view->requires_grad = 0;
    view->read_only = 0;
    view->library = library;
    int64_t count = 1;
    bool contiguous = true;
    for (int axis = tensor.ndim - 1; axis >= 0; --axis) {
        const int64_t extent = tensor.shape[axis];
        const int64_t stride = tensor.strides ? tensor.strides[axis] : count;
        contiguous = contiguous && (extent == 1 || stride == count);
        view->shape[axis] = extent;
        view->strides[axis] = stride;
        count *= extent;
    }
    view->count = count;
    view->contiguous = contiguous || count == 0;
    return true;
}

// Resizing a storage leaves its tensors unchanged, with an address and a shape that exceed the memory.
bool lies_in_storage(const TensorView& view, const char* implementation, const TorchLayout& layout) {
    if (!view.count) return true;
    const auto* storage = load_at<const char*>(implementation, layout.storage);
    if (!storage) return false;
    const auto begin = load_at<uint64_t>(storage, layout.storage_data);
    const auto bytes = load_at<uint64_t>(storage, layout.storage_bytes);
    int64_t elements = view.count;
    if (!view.contiguous) {
        elements = 1;
        for (int axis = 0; axis < view.rank; ++axis) elements += (view.shape[axis] - 1) * view.strides[axis];
    }
    const uint64_t offset = reinterpret_cast<uint64_t>(view.data) - begin;
    return begin && offset <= bytes && static_cast<uint64_t>(elements * element_bytes(view)) <= bytes - offset;
}

// ---- Kinds of tensors ----
// Each returns false for tensors that are not plain; the reader then reads or refuses them.

bool read_torch(const TensorType& type, PyObject* object, TensorView* view) {
    const auto* implementation = load_at<const char*>(object, type.layout.implementation);
    if (!implementation || !is_known_as_plain(load_at<uint64_t>(implementation, type.layout.keys))) return false;
    DLTensor tensor;
    if (type.api->dltensor_from_py_object_no_sync(object, &tensor)) {
        python().PyErr_Clear();
        return false;
    }
    if (!fill(tensor, type.library, view) || !lies_in_storage(*view, implementation, type.layout)) return false;
    if (!load_at<const void*>(implementation, type.layout.gradient)) return true;
    if (type.has_plain_attributes && ask_requires_grad(object, view)) return true;
    python().PyErr_Clear();
    return false;
}

bool read_exchanged(TensorType type, PyObject* object, TensorView* view) {
    DLManagedTensorVersioned* managed;
    if (type.api->managed_tensor_from_py_object_no_sync(object, &managed)) {
        python().PyErr_Clear();
        return false;
    }
    // A copy would be freed with the managed tensor.
    const bool plain = !(managed->flags & kDLPackIsCopied) && fill(managed->tensor, type.library, view);
    view->read_only = (managed->flags & kDLPackReadOnly) != 0;
    delete_exported(managed);
    return plain;
}

bool read_plain(const TensorType& type, PyObject* object, TensorView* view) {
    switch (type.kind) {
        case TensorKind::kTorch: return read_torch(type, object, view);
        case TensorKind::kExchange: return read_exchanged(type, object, view);
        case TensorKind::kBuffer: return read_buffer(object, view);
        case TensorKind::kNone:
        case TensorKind::kReader: break;
    }
    return false;
}

bool obeys(const TensorView& view, const ReadRules& rules) {
    return (view.data || view.count == 0) && (!view.requires_grad || rules.requires_grad_allowed) &&
           (!view.read_only || !rules.written);
}

}  // namespace

ds_status read_tensor_of_many(PyObject* object, int64_t index, const ReadRules& rules, TensorView* view) {
    const TensorType* type = find_tensor_type(object);
    if (!type) return last_status();
    if (read_plain(*type, object, view) && obeys(*view, rules)) return DS_STATUS_OK;
    const bool is_torch = type->kind == TensorKind::kTorch;
    const TorchLayout layout = type->layout;
    bool is_plain;
    if (const ds_status status = read_by_python(object, index, rules, view, &is_plain)) return status;
    if (!is_plain || !is_torch) return DS_STATUS_OK;
    remember_as_plain(load_at<uint64_t>(load_at<const char*>(object, layout.implementation), layout.keys));
    return DS_STATUS_OK;
}

ds_status read_tensor(PyObject* object, const ReadRules& rules, TensorView* view) {
    return read_tensor_of_many(object, -1, rules, view);
}

ds_status read_tensors(PyObject* const* objects, uint64_t count, const ReadRules& rules, TensorView* views) {
    for (uint64_t i = 0; i < count; ++i) {
        const auto index = static_cast<int64_t>(i);
        if (const ds_status status = read_tensor_of_many(objects[i], index, rules, &views[i])) return status;
    }
    return DS_STATUS_OK;
}

ds_status is_tensor(PyObject* object, bool* answer) {
    const TensorType* type = find_tensor_type(object);
    if (!type) return last_status();
    *answer = type->kind != TensorKind::kNone;
    return DS_STATUS_OK;
}

ds_status current_stream(PyObject* object, int32_t device_type, int64_t device_index, uint64_t* stream) {
    const TensorType* type = find_tensor_type(object);
    if (!type) return last_status();
    if (!type->api) return current_stream_by_python(object, device_type, device_index, stream);
    void* current = nullptr;
    if (type->api->current_work_stream(device_type, static_cast<int32_t>(device_index), &current)) {
        return take_python_error(DS_STATUS_DEVICE, "device");
    }
    *stream = reinterpret_cast<uint64_t>(current);
    return DS_STATUS_OK;
}

}  // namespace doorstep
