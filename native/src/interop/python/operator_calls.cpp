#include "interop/python/operator_calls.h"

#include <string.h>

#include "interop/dlpack.h"
#include "interop/python/fast_calls.h"
#include "interop/python/tensor_bridge.h"

namespace doorstep {
namespace {

constexpr int kMostOperands = 32, kMostExtents = 32, kMostCallBytes = 1024;
constexpr int32_t kFloats = 1 << DS_DTYPE_FLOAT32 | 1 << DS_DTYPE_FLOAT64;
constexpr int32_t kBool = 1 << 5;

// The common header of all call structs.
struct CallHead {
    uint32_t struct_size;
    int32_t device_kind;
    int64_t device_index;
    uint64_t stream;
};
static_assert(offsetof(ds_advantages, stream) == offsetof(CallHead, stream));
static_assert(offsetof(ds_multi_discrete, stream) == offsetof(CallHead, stream));
static_assert(offsetof(ds_batch, stream) == offsetof(CallHead, stream));

// The bit of a dtype in a ds_operand's dtypes; 0 for dtypes that no operator takes.
int32_t dtype_bit(const TensorView& view) {
    if (view.dtype_lanes != 1) return 0;
    switch (view.dtype_code << 8 | view.dtype_bits) {
        case kDLInt << 8 | 32: return 1 << DS_DTYPE_INT32;
        case kDLUInt << 8 | 8: return 1 << DS_DTYPE_UINT8;
        case kDLFloat << 8 | 32: return 1 << DS_DTYPE_FLOAT32;
        case kDLFloat << 8 | 64: return 1 << DS_DTYPE_FLOAT64;
        case kDLBool << 8 | 8: return kBool;
        default: return 0;
    }
}

// The tensors of one call, and the call struct filled in from them.
class OperatorCall {
public:
    explicit OperatorCall(const ds_operator& described) : operator_(described) {
        memcpy(extents_, described.extents, sizeof(int64_t) * static_cast<size_t>(described.extent_count));
        memcpy(call_, described.call, static_cast<size_t>(described.call_bytes));
    }

    // False if a tensor does not meet its requirements.
    bool read(PyObject* const* tensors) {
        for (int i = 0; i < operator_.operand_count; ++i)
            if (!read(operator_.operands[i], tensors[i])) return false;
        return !overlap() && place_call(tensors[0]);
    }

    ds_status run() {
        switch (operator_.function) {
            case DS_OPERATOR_GENERALIZED_ADVANTAGES: return ds_generalized_advantages(as<ds_advantages>());
            case DS_OPERATOR_V_TRACE: return ds_v_trace(as<ds_advantages>());
            case DS_OPERATOR_MULTI_DISCRETE_SAMPLE: return ds_multi_discrete_sample(as<ds_multi_discrete>());
            case DS_OPERATOR_MULTI_DISCRETE_EVALUATE: return ds_multi_discrete_evaluate(as<ds_multi_discrete>());
            case DS_OPERATOR_MULTI_DISCRETE_BACKWARD: return ds_multi_discrete_backward(as<ds_multi_discrete>());
            default: break;
        }
        as<ds_batch>()->tensors = reinterpret_cast<void**>(call_ + sizeof(ds_batch));
        return ds_batch_step(as<ds_batch>());
    }

private:
    struct Span {
        uint64_t begin, end;
        bool written;
    };

    template <class Call>
    Call* as() {
        return reinterpret_cast<Call*>(call_);
    }

    template <class Value>
    void put(int32_t at, Value value) {
        if (at >= 0) memcpy(call_ + at, &value, sizeof value);
    }

    bool read(const ds_operand& operand, PyObject* tensor) {
        if (tensor == python().None) return operand.optional != 0;
        TensorView view{};
        ReadRules rules;
        rules.written = operand.access != 0;
        rules.requires_grad_allowed = !rules.written;
        if (read_tensor(tensor, rules, &view)) return false;
        if (!view.contiguous || view.rank != operand.rank || !same_device(view)) return false;
        if (!has_dtype(operand, view) || !has_shape(operand, view)) return false;
        const uint64_t begin = reinterpret_cast<uint64_t>(view.data);
        if (view.count) spans_[span_count_++] = {begin, begin + bytes_of(view), rules.written};
        first_ = first_ ? first_ : begin;
        put(operand.address_at, view.count ? begin : first_);  // no elements: any address, never used
        return true;
    }

    static uint64_t bytes_of(const TensorView& view) {
        return static_cast<uint64_t>(view.count) * static_cast<uint64_t>(element_bytes(view));
    }

    bool same_device(const TensorView& view) {
        if (!device_type_) {
            device_type_ = view.device_type;
            device_index_ = view.device_index;
        }
        return view.device_type == device_type_ && view.device_index == device_index_;
    }

    bool has_dtype(const ds_operand& operand, const TensorView& view) {
        const int32_t bit = dtype_bit(view);
        if (!(operand.dtypes & bit)) return false;
        if (operand.dtypes != kFloats) return true;
        float_ = float_ ? float_ : bit;
        return bit == float_;
    }

    bool has_shape(const ds_operand& operand, const TensorView& view) {
        for (int axis = 0; axis < view.rank; ++axis) {
            int64_t& extent = extents_[operand.extents[axis]];
            extent = extent < 0 ? view.shape[axis] : extent;
            if (extent != view.shape[axis]) return false;
        }
        return true;
    }

    // Whether a written tensor shares memory with any other.
    bool overlap() const {
        for (int i = 0; i < span_count_; ++i)
            for (int j = 0; j < i; ++j) {
                const bool apart = spans_[i].end <= spans_[j].begin || spans_[j].end <= spans_[i].begin;
                if (!apart && (spans_[i].written || spans_[j].written)) return true;
            }
        return false;
    }

    bool place_call(PyObject* tensor) {
        if (device_type_ != kDLCPU && device_type_ != kDLCUDA) return false;
        auto* head = as<CallHead>();
        head->device_kind = device_type_ == kDLCPU ? DS_DEVICE_CPU : DS_DEVICE_CUDA;
        head->device_index = device_type_ == kDLCPU ? 0 : device_index_;
        head->stream = 0;
        if (device_type_ == kDLCUDA && current_stream(tensor, device_type_, device_index_, &head->stream))
            return false;
        for (int i = 0; i < operator_.extent_count; ++i) put(operator_.extents_at[i], extents_[i]);
        const bool is_double = float_ == 1 << DS_DTYPE_FLOAT64;
        put(operator_.dtype_at, static_cast<int32_t>(is_double ? DS_DTYPE_FLOAT64 : DS_DTYPE_FLOAT32));
        return true;
    }

    const ds_operator& operator_;
    alignas(8) char call_[kMostCallBytes];
    int64_t extents_[kMostExtents];
    Span spans_[kMostOperands];
    int span_count_ = 0;
    uint64_t first_ = 0;       // address of the first tensor
    int32_t float_ = 0;        // bit of the dtype of the floats
    int32_t device_type_ = 0;  // of all tensors; 0: not known yet
    int64_t device_index_ = 0;
};

bool fits(const ds_operator& described, Py_ssize_t tensors) {
    return described.struct_size == sizeof described && described.operand_count == tensors &&
           described.operand_count <= kMostOperands && described.extent_count <= kMostExtents &&
           described.call_bytes <= kMostCallBytes;
}

}  // namespace

PyObject* fast_call_operator(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
    const unsigned long long address = count ? python().PyLong_AsUnsignedLongLong(arguments[0]) : 0;
    const auto* described = reinterpret_cast<const ds_operator*>(address);
    if (python().PyErr_Occurred()) return nullptr;
    if (!described || !fits(*described, count - 1)) {
        python().PyErr_SetString(python().TypeError, "call_operator() takes an operator and all of its tensors");
        return nullptr;
    }
    OperatorCall call(*described);
    if (!call.read(arguments + 1)) return python().PyBool_FromLong(0);
    ds_status status;
    {
        const WithoutGil others_run;
        status = call.run();
    }
    return status ? raise_status(status) : python().PyBool_FromLong(1);
}

}  // namespace doorstep
