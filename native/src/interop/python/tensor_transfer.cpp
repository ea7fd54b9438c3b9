// Copies between tensors of other libraries and raw addresses, and new tensors of those libraries.
#include <string.h>

#include "doorstep/cuda.h"
#include "interop/python/tensor_bridge.h"
#include "runtime/argument_checks.h"

namespace doorstep {
namespace {

// ---- The memory of a tensor in as few dimensions as possible ----

struct TensorRuns {
    int64_t run_bytes;  // contiguous bytes
    int rank;           // of the runs
    int64_t extents[kMaxRank];
    int64_t strides[kMaxRank];  // bytes from run to run; any sign
};

// Drops extents of 1 and merges dimensions that are contiguous. The tensor must have at least one element.
TensorRuns find_runs(const TensorView& view) {
    DS_ASSERT(view.count > 0 && view.rank >= 0 && view.rank <= kMaxRank);
    TensorRuns runs{};
    int64_t extents[kMaxRank], strides[kMaxRank];  // innermost first
    int rank = 0;
    const int64_t bytes = element_bytes(view);
    for (int axis = view.rank - 1; axis >= 0; --axis) {
        const int64_t extent = view.shape[axis], stride = view.strides[axis] * bytes;
        if (extent == 1) continue;
        if (rank > 0 && stride == strides[rank - 1] * extents[rank - 1]) {
            extents[rank - 1] *= extent;
        } else {
            extents[rank] = extent;
            strides[rank++] = stride;
        }
    }
    const int joined = rank > 0 && strides[0] == bytes;
    runs.run_bytes = joined ? bytes * extents[0] : bytes;
    runs.rank = rank - joined;
    DS_ASSERT(runs.rank >= 0 && runs.run_bytes > 0);
    for (int i = 0; i < runs.rank; ++i) {
        runs.extents[i] = extents[rank - 1 - i];
        runs.strides[i] = strides[rank - 1 - i];
    }
    return runs;
}

// Whether two elements share memory, as far as a single dimension shows it.
bool is_expanded(const TensorView& view) {
    DS_ASSERT(view.rank >= 0 && view.rank <= kMaxRank);
    if (view.count == 0) return false;
    for (int axis = 0; axis < view.rank; ++axis) {
        if (view.shape[axis] > 1 && view.strides[axis] == 0) return true;
    }
    return false;
}

// ---- Checks ----

enum class Transfer { kToPacked, kFromPacked };  // packed: C-contiguous elements at a raw address

bool is_on_host(const TensorView& view) { return view.device_type == kDLCPU || view.device_type == kDLCUDAHost; }
bool is_on_cuda(const TensorView& view) { return view.device_type == kDLCUDA || view.device_type == kDLCUDAManaged; }

ds_status check_device(const TensorView& view) {
    if (is_on_host(view) || is_on_cuda(view)) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, "tensor", "copy it with its own library",
                "the tensor is on device %d of DLPack's device type %d; it must be on the CPU (1) or CUDA (2)",
                view.device_index, view.device_type);
}

ds_status check_transfer(Transfer direction, const TensorView& view, const void* packed, uint64_t nbytes) {
    if (const ds_status status = check_device(view)) return status;
    if (int{view.dtype_bits} * view.dtype_lanes % 8) {
        return fail(DS_STATUS_INVALID_ARGUMENT, "tensor", "convert it to elements of whole bytes",
                    "elements of the tensor have %d bits", view.dtype_bits * view.dtype_lanes);
    }
    const auto expected = static_cast<uint64_t>(view.count * element_bytes(view));
    if (nbytes != expected) {
        return fail(DS_STATUS_INVALID_ARGUMENT, "nbytes", "pass the number of bytes of all elements",
                    "nbytes is %lu; it must be %lu", nbytes, expected);
    }
    if (!packed && nbytes) {
        return fail(DS_STATUS_INVALID_ARGUMENT, "pointer", "pass an address", "pointer is null");
    }
    if (direction == Transfer::kFromPacked && is_expanded(view)) {
        return fail(DS_STATUS_INVALID_ARGUMENT, "tensor", "pass tensor.contiguous()",
                    "elements of the tensor share memory, so that it cannot be written element by element");
    }
    return DS_STATUS_OK;
}

// ---- Copies on the host ----

void copy_run(Transfer direction, char* strided, char* packed, size_t bytes) {
    if (direction == Transfer::kToPacked) {
        memcpy(packed, strided, bytes);
    } else {
        memcpy(strided, packed, bytes);
    }
}

// Copies the runs from an axis on; returns the end of the packed ones. kBytes: bytes of a run; 0: as in `runs`.
template <size_t kBytes>
char* copy_runs(Transfer direction, const TensorRuns& runs, int axis, char* strided, char* packed) {
    const size_t bytes = kBytes ? kBytes : static_cast<size_t>(runs.run_bytes);
    DS_ASSERT(bytes == static_cast<size_t>(runs.run_bytes) && axis <= runs.rank);
    if (axis == runs.rank) {
        copy_run(direction, strided, packed, bytes);
        return packed + bytes;
    }
    const bool innermost = axis + 1 == runs.rank;
    for (int64_t i = 0; i < runs.extents[axis]; ++i, strided += runs.strides[axis]) {
        if (!innermost) {
            packed = copy_runs<kBytes>(direction, runs, axis + 1, strided, packed);
            continue;
        }
        copy_run(direction, strided, packed, bytes);
        packed += bytes;
    }
    return packed;
}

void copy_on_host(Transfer direction, const TensorRuns& runs, char* strided, char* packed) {
    DS_ASSERT(strided && packed && runs.run_bytes > 0);
    switch (runs.run_bytes) {
        case 1: copy_runs<1>(direction, runs, 0, strided, packed); break;
        case 2: copy_runs<2>(direction, runs, 0, strided, packed); break;
        case 4: copy_runs<4>(direction, runs, 0, strided, packed); break;
        case 8: copy_runs<8>(direction, runs, 0, strided, packed); break;
        default: copy_runs<0>(direction, runs, 0, strided, packed); break;
    }
}

// ---- Copies on a CUDA stream ----

// A CUstream of a tensor's device, which stays its creator's.
class BorrowedStream {
public:
    BorrowedStream(const TensorView& view, uint64_t stream) {
        status_ = ds_context_create(view.device_index, &context_);
        if (!status_) status_ = ds_stream_borrow(context_, stream, nullptr, nullptr, &stream_);
    }
    ~BorrowedStream() {
        if (stream_) ds_resource_release(stream_);
        if (context_) ds_resource_release(context_);
    }
    BorrowedStream(const BorrowedStream&) = delete;
    BorrowedStream& operator=(const BorrowedStream&) = delete;

    ds_status status() const { return status_; }
    ds_resource handle() const {
        DS_ASSERT(!status_ && stream_);
        return stream_;
    }

private:
    ds_status status_;
    ds_resource context_ = 0, stream_ = 0;
};

// Copies rows of `width` bytes between the tensor, where they are `pitch` bytes apart, and packed memory.
ds_status copy_rows(Transfer direction, ds_resource stream, uint64_t strided, int64_t pitch, uint64_t packed,
                    int64_t width, int64_t rows) {
    DS_ASSERT(stream && width > 0 && rows > 0);
    const bool to_packed = direction == Transfer::kToPacked;
    const uint64_t to = to_packed ? packed : strided, from = to_packed ? strided : packed;
    if (pitch >= width && rows > 1) {
        const auto wide = static_cast<uint64_t>(width), apart = static_cast<uint64_t>(pitch);
        ds_row_copy copy{};
        copy.struct_size = sizeof copy;
        copy.destination = to;
        copy.destination_pitch = to_packed ? wide : apart;
        copy.source = from;
        copy.source_pitch = to_packed ? apart : wide;
        copy.row_bytes = wide;
        copy.num_rows = static_cast<uint64_t>(rows);
        return ds_copy_rows(stream, &copy);
    }
    for (int64_t row = 0; row < rows; ++row) {
        const auto there = static_cast<uint64_t>(row * pitch), here = static_cast<uint64_t>(row * width);
        const ds_status status = ds_copy(stream, to + (to_packed ? here : there), from + (to_packed ? there : here),
                                         static_cast<uint64_t>(width));
        if (status) return status;
    }
    return DS_STATUS_OK;
}

ds_status copy_on_stream(Transfer direction, ds_resource stream, const TensorRuns& runs, int axis, uint64_t strided,
                         uint64_t* packed) {
    DS_ASSERT(axis >= 0 && axis <= runs.rank);
    if (axis + 1 >= runs.rank) {
        const bool single = axis == runs.rank;
        const int64_t rows = single ? 1 : runs.extents[axis], pitch = single ? 0 : runs.strides[axis];
        const ds_status status = copy_rows(direction, stream, strided, pitch, *packed, runs.run_bytes, rows);
        *packed += static_cast<uint64_t>(rows * runs.run_bytes);
        return status;
    }
    for (int64_t i = 0; i < runs.extents[axis]; ++i) {
        const uint64_t part = strided + static_cast<uint64_t>(i * runs.strides[axis]);
        if (const ds_status status = copy_on_stream(direction, stream, runs, axis + 1, part, packed)) return status;
    }
    return DS_STATUS_OK;
}

// ---- Copies ----

// Needs no Python.
ds_status transfer(Transfer direction, const TensorView& view, uint64_t stream, void* packed, uint64_t bytes) {
    if (const ds_status status = check_transfer(direction, view, packed, bytes)) return status;
    if (!bytes) return DS_STATUS_OK;
    const TensorRuns runs = find_runs(view);
    if (is_on_host(view)) {
        copy_on_host(direction, runs, static_cast<char*>(view.data), static_cast<char*>(packed));
        return DS_STATUS_OK;
    }
    const BorrowedStream on(view, stream);
    if (on.status()) return on.status();
    auto address = reinterpret_cast<uint64_t>(packed);
    return copy_on_stream(direction, on.handle(), runs, 0, reinterpret_cast<uint64_t>(view.data), &address);
}

ds_status transfer_object(Transfer direction, void* given, void* packed, uint64_t bytes) {
    if (!given) return fail_null("object");
    if (const ds_status status = check_python()) return status;
    auto* object = static_cast<PyObject*>(given);
    TensorView view;
    const ReadRules rules = {.requires_grad_allowed = true, .written = direction == Transfer::kFromPacked};
    if (const ds_status status = read_tensor(object, rules, &view)) return status;
    uint64_t stream = 0;
    if (is_on_cuda(view)) {
        if (const ds_status status = current_stream(object, kDLCUDA, view.device_index, &stream)) return status;
    }
    const WithoutGil others_run;
    return transfer(direction, view, stream, packed, bytes);
}

// Sets all bytes of a contiguous tensor to 0.
ds_status clear(const TensorView& view, uint64_t stream) {
    DS_ASSERT(view.contiguous && view.count >= 0);
    if (const ds_status status = check_device(view)) return status;
    const auto bytes = static_cast<uint64_t>(view.count * element_bytes(view));
    if (!bytes) return DS_STATUS_OK;
    if (is_on_host(view)) {
        memset(view.data, 0, bytes);
        return DS_STATUS_OK;
    }
    const BorrowedStream on(view, stream);
    return on.status() ? on.status() : ds_clear(on.handle(), reinterpret_cast<uint64_t>(view.data), bytes);
}

// ---- New tensors ----

// Called by a library's allocator; the context is a ds_status.
void take_error(void* context, const char* kind, const char* message) {
    *static_cast<ds_status*>(context) =
        fail(DS_STATUS_OUT_OF_MEMORY, "tensor", "free memory of its device", "%s: %s", kind, message);
}

// The status of an allocator that failed; `told` is what take_error() has set. By the protocol an allocator calls
// take_error() and sets no Python exception, but some libraries set one.
ds_status allocation_failure(ds_status told) {
    if (!told || python().PyErr_Occurred()) return take_python_error(DS_STATUS_OUT_OF_MEMORY, "tensor");
    return told;
}

ds_status hand_over(const DLPackExchangeAPI& api, DLManagedTensorVersioned* managed, void** made) {
    DS_ASSERT(managed && made);
    void* object;
    if (api.managed_tensor_to_py_object_no_sync(managed, &object)) {
        const ds_status status = take_python_error(DS_STATUS_INVALID_ARGUMENT, "tensor");
        delete_exported(managed);  // the library has not taken ownership
        return status;
    }
    *made = object;
    return DS_STATUS_OK;
}

ds_status allocate_like(const DLPackExchangeAPI& api, const TensorView& view, void** made) {
    DS_ASSERT(view.rank >= 0 && view.rank <= kMaxRank);
    int64_t shape[kMaxRank], strides[kMaxRank];
    int64_t count = 1;
    for (int axis = view.rank - 1; axis >= 0; --axis) {
        shape[axis] = view.shape[axis];
        strides[axis] = count;
        count *= view.shape[axis];
    }
    DLTensor prototype = {nullptr, {view.device_type, view.device_index}, view.rank,
                          {view.dtype_code, view.dtype_bits, view.dtype_lanes}, shape, strides, 0};
    DLManagedTensorVersioned* managed;
    ds_status told = DS_STATUS_OK;
    if (api.managed_tensor_allocator(&prototype, &managed, &told, take_error)) return allocation_failure(told);
    return hand_over(api, managed, made);
}

ds_status clear_new(PyObject* object) {
    TensorView view;
    DS_ASSERT(object);
    uint64_t stream = 0;
    if (const ds_status status = read_tensor(object, kAnything, &view)) return status;
    if (const ds_status status = current_stream(object, view.device_type, view.device_index, &stream)) return status;
    return clear(view, stream);
}

ds_status make_like(void* given, bool zeros, void** made) {
    if (const ds_status status = check_call(given, "object", made, "made")) return status;
    auto* object = static_cast<PyObject*>(given);
    TensorView view;
    if (const ds_status status = read_tensor(object, kAnything, &view)) return status;
    const TensorType* type = find_tensor_type(object);
    if (!type) return last_status();
    if (!type->api) return make_like_by_python(object, zeros, made);
    void* empty;
    if (const ds_status status = allocate_like(*type->api, view, &empty)) return status;
    PyOwned owned(static_cast<PyObject*>(empty));
    if (zeros) {
        if (const ds_status status = clear_new(owned.get())) return status;
    }
    *made = owned.release();
    return DS_STATUS_OK;
}

}  // namespace
}  // namespace doorstep

using namespace doorstep;

ds_status ds_python_copy_to_pointer(void* object, void* pointer, uint64_t bytes) {
    return transfer_object(Transfer::kToPacked, object, pointer, bytes);
}

ds_status ds_python_copy_from_pointer(void* object, const void* pointer, uint64_t bytes) {
    return transfer_object(Transfer::kFromPacked, object, const_cast<void*>(pointer), bytes);
}

ds_status ds_python_copy_out(const ds_python_tensor* tensor, uint64_t stream, void* pointer, uint64_t bytes) {
    if (const ds_status status = check_view(tensor)) return status;
    return transfer(Transfer::kToPacked, *tensor, stream, pointer, bytes);
}

ds_status ds_python_copy_in(const ds_python_tensor* tensor, uint64_t stream, const void* pointer, uint64_t bytes) {
    if (const ds_status status = check_view(tensor)) return status;
    return transfer(Transfer::kFromPacked, *tensor, stream, const_cast<void*>(pointer), bytes);
}

ds_status ds_python_empty_like(void* object, void** made) { return make_like(object, false, made); }
ds_status ds_python_zeros_like(void* object, void** made) { return make_like(object, true, made); }

ds_status ds_python_tensor_over(void* type, void* managed, void** made) {
    if (!managed) return fail_null("managed");
    auto* tensor = static_cast<DLManagedTensorVersioned*>(managed);
    if (const ds_status status = check_call(type, "type", made, "made")) {
        delete_exported(tensor);
        return status;
    }
    const TensorType* found = find_tensor_type_of(static_cast<PyTypeObject*>(type));
    if (found && found->api) return hand_over(*found->api, tensor, made);
    const ds_status status = found ? fail(DS_STATUS_INVALID_ARGUMENT, "type", "use its library's from_dlpack()",
                                          "type is a class without DLPack's exchange API")
                                   : last_status();
    delete_exported(tensor);
    return status;
}
