// Functions of the library as Python builtins, which take a tenth of the time of ctypes calls. A fast call raises
// exceptions, as Python's own functions do, instead of returning a status. The table of all stands at the end.
#include <string.h>

#include <new>

#include "doorstep/policies_and_rollouts.h"
#include "interop/python/tensor_bridge.h"
#include "runtime/argument_checks.h"

namespace doorstep {
namespace {

// Set by ds_python_bind() and never released: fast calls may run until the process ends.
constinit PyObject* raise_last_error = nullptr;
constinit PyObject* module_name = nullptr;

// Sets the exception of a failing status; returns null, as a failing fast call must.
PyObject* raise_status(ds_status status) {
    DS_ASSERT(status != DS_STATUS_OK && raise_last_error);
    const PyOwned number(python().PyLong_FromLongLong(status));
    if (number) const PyOwned never(python().PyObject_CallFunctionObjArgs(raise_last_error, number.get(), nullptr));
    return nullptr;
}

bool check_count(const char* name, Py_ssize_t count, Py_ssize_t expected) {
    if (count == expected) return true;
    python().PyErr_Format(python().TypeError, "%s() takes %zd arguments, not %zd", name, expected, count);
    return false;
}

// Other Python threads run during the call, which must not use Python.
template <class Call>
ds_status without_gil(Call call) {
    const WithoutGil others_run;
    return call();
}

// ---- Stepping a simulator ----

// Attribute names, created by fast_step_method() and never released.
constinit PyObject* step_handle = nullptr;
constinit PyObject* step_in_turn = nullptr;

PyObject* step(ds_simulator simulator) {
    const ds_status status = without_gil([&] { return ds_simulator_step(simulator); });
    return status ? raise_status(status) : return_none();
}

PyObject* step_object(PyObject* self, PyObject* const*, Py_ssize_t count) {
    if (count) {  // as in gymnasium: sim.step(actions)
        python().PyErr_SetString(python().TypeError,
                                 "Simulator.step() takes no arguments: set sim.actions, then call sim.step(); "
                                 "environments whose step() takes actions are in doorstep.envs");
        return nullptr;
    }
    const PyOwned handle(python().PyObject_GetAttr(self, step_handle));
    if (!handle) return nullptr;
    const ds_simulator simulator = python().PyLong_AsUnsignedLong(handle.get());
    if (simulator) return step(simulator);
    return python().PyObject_CallMethodObjArgs(self, step_in_turn, nullptr);
}

PyMethodDef step_row = {"step", reinterpret_cast<void*>(step_object), METH_FASTCALL, nullptr};

PyObject* fast_step(PyObject*, PyObject* handle) {
    const ds_simulator simulator = python().PyLong_AsUnsignedLong(handle);
    if (simulator == UINT64_MAX && python().PyErr_Occurred()) return nullptr;
    return step(simulator);
}

// The method `step` for the class of simulators. Its instances have `_step_handle`, the handle of a simulator that can
// be stepped at once, or 0 if `_step_in_turn()` must be called instead.
PyObject* fast_step_method(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
    if (!check_count("step_method", count, 2)) return nullptr;
    const char* doc = python().PyUnicode_AsUTF8AndSize(arguments[1], nullptr);
    step_handle = python().PyUnicode_InternFromString("_step_handle");
    step_in_turn = python().PyUnicode_InternFromString("_step_in_turn");
    if (!doc || !step_handle || !step_in_turn) return nullptr;
    python().Py_IncRef(arguments[1]);  // the row points into its text
    step_row.doc = doc;
    return python().PyDescr_NewMethod(reinterpret_cast<PyTypeObject*>(arguments[0]), &step_row);
}

// ---- Tensors of a CPU simulator and arrays of any library, without a Python frame ----

constexpr const char* kCapsule = "doorstep tensor";

// The properties that an array must have, in DLPack's terms.
struct Target {
    ds_simulator simulator;
    int32_t tensor;
    DLDataType dtype;
    int32_t rank;
    int64_t shape[DS_MAX_DIMENSIONS];
    uint64_t bytes;
};

Target make_target(ds_simulator simulator, int32_t tensor, const ds_tensor_info& info) {
    DS_ASSERT(info.dtype >= 0 && info.dtype < DS_DTYPE_COUNT && info.rank <= DS_MAX_DIMENSIONS);
    const DLDataType dtype = kDataTypes[info.dtype];
    Target target = {simulator, tensor, dtype, info.rank, {}, dtype.bits / 8u};
    for (int axis = 0; axis < info.rank; ++axis) {
        target.shape[axis] = info.shape[axis];
        target.bytes *= static_cast<uint64_t>(info.shape[axis]);
    }
    return target;
}

// Whether the shape equals the target's from an axis on, whose extent is `first`, or lacks only trailing 1s.
bool has_shape(const Target& target, int axis, int64_t first, const TensorView& view) {
    DS_ASSERT(axis < target.rank && view.rank > 0);
    const int rank = target.rank - axis;
    if (view.rank > rank || view.shape[0] != first) return false;
    for (int i = 1; i < rank; ++i) {
        if (target.shape[axis + i] != (i < view.rank ? view.shape[i] : 1)) return false;
    }
    return true;
}

bool fits(const Target& target, const TensorView& view) {
    return view.device_type == kDLCPU && view.contiguous && view.dtype_code == target.dtype.code &&
           view.dtype_bits == target.dtype.bits && view.dtype_lanes == target.dtype.lanes && view.rank > 0 &&
           (has_shape(target, 0, target.shape[0], view) ||
            has_shape(target, 1, target.shape[0] * target.shape[1], view));
}

const Target& target_of(PyObject* capsule) {
    return *static_cast<Target*>(python().PyCapsule_GetPointer(capsule, kCapsule));
}

PyObject* set(PyObject* self, PyObject* array) {
    const Target& target = target_of(self);
    TensorView view;
    if (read_tensor(array, {}, &view) || !fits(target, view)) return python().PyBool_FromLong(0);
    const ds_status status = without_gil([&] {
        return ds_simulator_set_tensor(target.simulator, target.tensor, view.data, target.bytes, DS_DEVICE_CPU);
    });
    return status ? raise_status(status) : python().PyBool_FromLong(1);
}

PyMethodDef set_row = {"set_tensor", reinterpret_cast<void*>(set), METH_O,
                       "set_tensor(array, /)\n--\n\nSets a tensor and returns True if the array fits, else False."};

// The array is released here, not soon after, so that its memory can be used again at once.
PyObject* redirect_to(const Target& target, PyObject* array) {
    ds_binding binding = {target.tensor, nullptr, target.bytes, nullptr, nullptr};
    TensorView view;
    if (array) {
        const ReadRules rules = {.written = true};
        if (const ds_status status = read_tensor(array, rules, &view)) return raise_status(status);
        if (!fits(target, view)) {
            python().PyErr_SetString(python().TypeError, "redirect() takes an array like the tensor, or None");
            return nullptr;
        }
        python().Py_IncRef(array);
        binding.data = view.data;
        binding.owner = array;
        binding.release_owner = ds_python_release;
    }
    const ds_status status = without_gil([&] { return ds_simulator_redirect(target.simulator, &binding); });
    if (status && array) python().Py_DecRef(array);
    if (status) return raise_status(status);
    ds_python_release_now();
    return return_none();
}

PyObject* redirect(PyObject* self, PyObject* array) {
    return redirect_to(target_of(self), array == python().None ? nullptr : array);
}

PyMethodDef redirect_row = {"redirect", reinterpret_cast<void*>(redirect), METH_O,
                            "redirect(array, /)\n--\n\nRedirects a tensor; None: to the simulator's own memory."};

void delete_target(PyObject* capsule) {
    delete static_cast<Target*>(python().PyCapsule_GetPointer(capsule, kCapsule));
}

// A callable of the row's function, whose self is a capsule of a Target. arguments: a handle and a tensor.
PyObject* make_bound(PyMethodDef& row, PyObject* const* arguments) {
    const ds_simulator simulator = python().PyLong_AsUnsignedLongLong(arguments[0]);
    const int32_t tensor = static_cast<int32_t>(python().PyLong_AsLongLong(arguments[1]));
    if (python().PyErr_Occurred()) return nullptr;
    ds_tensor_info info;
    info.struct_size = sizeof info;
    if (const ds_status status = ds_simulator_get_tensor(simulator, tensor, &info)) return raise_status(status);
    Target* target = new (std::nothrow) Target(make_target(simulator, tensor, info));
    if (!target) return python().PyErr_NoMemory();
    const PyOwned capsule(python().PyCapsule_New(target, kCapsule, delete_target));
    if (!capsule) {
        delete target;
        return nullptr;
    }
    return python().PyCFunction_NewEx(&row, capsule.get(), nullptr);
}

// The callable returns True if it has set the tensor, and False, with nothing changed, if the array needs checks or
// conversions, which Python code then does.
PyObject* fast_bind_setter(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
    return check_count("bind_setter", count, 2) ? make_bound(set_row, arguments) : nullptr;
}

PyObject* fast_bind_redirect(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
    return check_count("bind_redirect", count, 2) ? make_bound(redirect_row, arguments) : nullptr;
}

// ---- Functions of doorstep.interop ----

constexpr ReadRules kAnythingOfMany = {.requires_grad_allowed = true, .argument = "tensors"};

// Converts an int that Python code has checked to be an unsigned 64-bit number.
uint64_t to_number(PyObject* object) { return python().PyLong_AsUnsignedLongLong(object); }

PyObject* fast_description_type(PyObject*, PyObject* base) { return make_description_type(base); }

PyObject* fast_is_tensor(PyObject*, PyObject* object) {
    const TensorType* type = find_tensor_type(object);
    return type ? python().PyBool_FromLong(type->kind != TensorKind::kNone) : raise_status(last_status());
}

PyObject* fast_describe(PyObject*, PyObject* tensor) {
    TensorView view;
    const ds_status status = read_tensor(tensor, kAnything, &view);
    return status ? raise_status(status) : make_description(view);
}

PyObject* fast_describe_many(PyObject*, PyObject* tensors) {
    const PyOwned objects(python().PySequence_Tuple(tensors));
    if (!objects) return nullptr;
    const Py_ssize_t count = python().PyTuple_Size(objects.get());
    PyOwned descriptions(python().PyTuple_New(count));
    for (Py_ssize_t i = 0; descriptions && i < count; ++i) {
        TensorView view;
        const ds_status status = read_tensor(python().PyTuple_GetItem(objects.get(), i), kAnythingOfMany, &view, i);
        if (status) return raise_status(status);
        PyObject* made = make_description(view);
        if (!made || python().PyTuple_SetItem(descriptions.get(), i, made)) return nullptr;
    }
    return descriptions.release();
}

PyObject* fast_signature(PyObject*, PyObject* tensor) {
    TensorView view;
    if (const ds_status status = read_tensor(tensor, kAnything, &view)) return raise_status(status);
    char text[DS_PYTHON_SIGNATURE_BYTES];
    const uint64_t length = write_signature(view, text);
    return python().PyUnicode_FromStringAndSize(text, static_cast<Py_ssize_t>(length));
}

// A device type of 0 means the tensor's own device.
PyObject* fast_current_stream(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
    if (!check_count("current_stream", count, 3)) return nullptr;
    auto device_type = static_cast<int32_t>(to_number(arguments[1]));
    auto device_index = static_cast<int64_t>(to_number(arguments[2]));
    if (!device_type) {
        TensorView view;
        if (const ds_status status = read_tensor(arguments[0], kAnything, &view)) return raise_status(status);
        device_type = view.device_type;
        device_index = view.device_index;
    }
    uint64_t stream;
    const ds_status status = current_stream(arguments[0], device_type, device_index, &stream);
    return status ? raise_status(status) : python().PyLong_FromUnsignedLongLong(stream);
}

PyObject* fast_copy_to_pointer(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
    if (!check_count("copy_to_pointer", count, 3)) return nullptr;
    auto* pointer = reinterpret_cast<void*>(to_number(arguments[1]));
    const ds_status status = ds_python_copy_to_pointer(arguments[0], pointer, to_number(arguments[2]));
    return status ? raise_status(status) : return_none();
}

PyObject* fast_copy_from_pointer(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
    if (!check_count("copy_from_pointer", count, 3)) return nullptr;
    const auto* pointer = reinterpret_cast<const void*>(to_number(arguments[1]));
    const ds_status status = ds_python_copy_from_pointer(arguments[0], pointer, to_number(arguments[2]));
    return status ? raise_status(status) : return_none();
}

// Copies tensors of the host one behind the other. Plain tensors are read and copied without giving up the GIL: no other
// thread can give them other memory, and free what is read, between the two.
PyObject* fast_pack(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
    if (!check_count("pack", count, 3)) return nullptr;
    const PyOwned objects(python().PySequence_Tuple(arguments[0]));
    if (!objects) return nullptr;
    char* to = reinterpret_cast<char*>(to_number(arguments[1]));
    uint64_t left = to_number(arguments[2]);
    for (Py_ssize_t i = 0, size = python().PyTuple_Size(objects.get()); i < size; ++i) {
        TensorView view{};
        view.struct_size = sizeof view;
        const ds_status status = read_tensor(python().PyTuple_GetItem(objects.get(), i), kAnythingOfMany, &view, i);
        if (status) return raise_status(status);
        const uint64_t bytes = static_cast<uint64_t>(view.count * element_bytes(view));
        if (view.device_type != kDLCPU || bytes > left) {
            return raise_status(fail(DS_STATUS_INVALID_ARGUMENT, "tensors", "",
                                     "the tensors are not on the CPU, or have more bytes than there is room for"));
        }
        if (const ds_status copied = ds_python_copy_out(&view, 0, to, bytes)) return raise_status(copied);
        to += bytes;
        left -= bytes;
    }
    return python().PyLong_FromUnsignedLongLong(left);
}

// (type, ds_memory, address of a ds_tensor_info); None if the class has no exchange API.
PyObject* fast_tensor_over(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
    if (!check_count("tensor_over", count, 3)) return nullptr;
    const TensorType* type = find_tensor_type_of(reinterpret_cast<PyTypeObject*>(arguments[0]));
    if (!type) return raise_status(last_status());
    if (!type->api) return return_none();
    const auto* info = reinterpret_cast<const ds_tensor_info*>(to_number(arguments[2]));
    void *managed, *made;
    if (const ds_status status = ds_dlpack_export(to_number(arguments[1]), info, 1, &managed)) {
        return raise_status(status);
    }
    const ds_status status = ds_python_tensor_over(arguments[0], managed, &made);
    return status ? raise_status(status) : static_cast<PyObject*>(made);
}

PyObject* fast_empty_like(PyObject*, PyObject* tensor) {
    void* made;
    const ds_status status = ds_python_empty_like(tensor, &made);
    return status ? raise_status(status) : static_cast<PyObject*>(made);
}

PyObject* fast_zeros_like(PyObject*, PyObject* tensor) {
    void* made;
    const ds_status status = ds_python_zeros_like(tensor, &made);
    return status ? raise_status(status) : static_cast<PyObject*>(made);
}

// ---- Calls on Python tensors, checked against the table of an operator ----

constexpr int kMostOperands = 32, kMostExtents = 32, kMostCallBytes = 1024;
constexpr int32_t kFloats = 1 << DS_DTYPE_FLOAT32 | 1 << DS_DTYPE_FLOAT64;
constexpr int32_t kBool = 1 << DS_DTYPE_COUNT;  // which no tensor of a simulator has

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

// The bit of a dtype in a ds_operand's dtypes; 0 for dtypes without one.
int32_t dtype_bit(const TensorView& view) {
    const auto is = [&](DLDataType type) {
        return view.dtype_code == type.code && view.dtype_bits == type.bits && view.dtype_lanes == type.lanes;
    };
    for (int dtype = 0; dtype < DS_DTYPE_COUNT; ++dtype) {
        if (is(kDataTypes[dtype])) return 1 << dtype;
    }
    return is({kDLBool, 8, 1}) ? kBool : 0;
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
        DS_ASSERT(operator_.function == DS_OPERATOR_STEP);
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
        DS_ASSERT(at + static_cast<int32_t>(sizeof value) <= operator_.call_bytes);
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
        DS_ASSERT(span_count_ < kMostOperands);
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
            DS_ASSERT(operand.extents[axis] >= 0 && operand.extents[axis] < operator_.extent_count);
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

// False, with nothing done, if a tensor is not plain or does not meet its row's requirements; the caller then finds the
// reason. The operator is the address of a ds_operator. Raises the exception of a call that fails.
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
    const ds_status status = without_gil([&] { return call.run(); });
    return status ? raise_status(status) : python().PyBool_FromLong(1);
}

// ---- Acting of a policy on rows of the host, by a call that was prepared before ----

bool is_plain(const TensorView& view, ds_dtype dtype) {
    return view.device_type == kDLCPU && view.contiguous && dtype_bit(view) == 1 << dtype && view.rank > 0;
}

bool fits(const ds_policy_call& call, const TensorView& observations, const TensorView& actions) {
    if (!is_plain(observations, DS_DTYPE_FLOAT32) || !is_plain(actions, DS_DTYPE_INT32)) return false;
    if (observations.rank != actions.rank) return false;
    const int last = actions.rank - 1;
    for (int axis = 0; axis < last; ++axis)
        if (observations.shape[axis] != actions.shape[axis]) return false;
    return observations.shape[last] == call.observation_stride && actions.shape[last] == DS_ACTION_COMPONENT_COUNT &&
           actions.count == call.num_rows * DS_ACTION_COMPONENT_COUNT;
}

// False, with nothing done, if the observations are not plain, or of another shape than the call and the actions; the
// caller then finds the reason. (ds_policy, address of a ds_policy_call, observations, actions, function that counts
// steps). Several threads may use the call at the same time. Raises the exception of a call that fails.
PyObject* fast_act(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
    if (!check_count("act", count, 5)) return nullptr;
    const ds_policy policy = to_number(arguments[0]);
    const auto* prepared = reinterpret_cast<const ds_policy_call*>(to_number(arguments[1]));
    if (python().PyErr_Occurred()) return nullptr;
    ds_policy_call call = *prepared;
    TensorView observations, actions;
    if (read_tensor(arguments[2], kAnything, &observations) || read_tensor(arguments[3], {.written = true}, &actions) ||
        !fits(call, observations, actions)) {
        return python().PyBool_FromLong(0);
    }
    const PyOwned step(python().PyObject_CallFunctionObjArgs(arguments[4], nullptr));
    if (!step) return nullptr;
    call.step = static_cast<uint32_t>(to_number(step.get()));  // modulo 2**32
    call.observations = static_cast<const float*>(observations.data);
    call.actions = static_cast<int32_t*>(actions.data);
    const ds_status status = without_gil([&] { return ds_policy_act(policy, &call); });
    return status ? raise_status(status) : python().PyBool_FromLong(1);
}

// ---- The table ----

// A row: the builtin `name` is the function fast_<name>.
#define DS_FAST_CALL(name, flags, doc) {#name, reinterpret_cast<void*>(fast_##name), flags, doc}

PyMethodDef table[] = {
    DS_FAST_CALL(step, METH_O, "step(handle, /)\n--\n\nds_simulator_step()."),
    DS_FAST_CALL(step_method, METH_FASTCALL, "step_method(type, doc, /)\n--\n\nSimulator.step."),
    DS_FAST_CALL(bind_setter, METH_FASTCALL, "bind_setter(handle, tensor, /)\n--\n\nA callable that sets a tensor."),
    DS_FAST_CALL(bind_redirect, METH_FASTCALL,
                 "bind_redirect(handle, tensor, /)\n--\n\nA callable that redirects a tensor."),
    DS_FAST_CALL(description_type, METH_O, "description_type(base, /)\n--\n\nCreates the type of native descriptions."),
    DS_FAST_CALL(is_tensor, METH_O,
                 "is_tensor(object, /)\n--\n\nWhether an object is a tensor of some library: whether its class has "
                 "`__dlpack__`."),
    DS_FAST_CALL(describe, METH_O, "describe(tensor, /)\n--\n\nDescribes a tensor."),
    DS_FAST_CALL(describe_many, METH_O,
                 "describe_many(tensors, /)\n--\n\nDescribes many tensors in one call."),
    DS_FAST_CALL(signature, METH_O,
                 "signature(tensor, /)\n--\n\nThe properties that decide where a tensor can be used, as a short text: a key "
                 "for caches."),
    DS_FAST_CALL(current_stream, METH_FASTCALL,
                 "current_stream(tensor, device_type, device_index, /)\n--\n\nThe current stream of its library."),
    DS_FAST_CALL(copy_to_pointer, METH_FASTCALL,
                 "copy_to_pointer(tensor, pointer, nbytes, /)\n--\n\nCopies the elements out of a tensor."),
    DS_FAST_CALL(copy_from_pointer, METH_FASTCALL,
                 "copy_from_pointer(tensor, pointer, nbytes, /)\n--\n\nCopies the elements into a tensor."),
    DS_FAST_CALL(pack, METH_FASTCALL,
                 "pack(tensors, pointer, nbytes, /)\n--\n\nCopies tensors of the host to an address, and returns how many "
                 "bytes are left there."),
    DS_FAST_CALL(tensor_over, METH_FASTCALL, "tensor_over(type, memory, info, /)\n--\n\nCreates a tensor over memory."),
    DS_FAST_CALL(empty_like, METH_O, "empty_like(tensor, /)\n--\n\nCreates a tensor like this one."),
    DS_FAST_CALL(zeros_like, METH_O, "zeros_like(tensor, /)\n--\n\nCreates a tensor of zeros like this one."),
    DS_FAST_CALL(act, METH_FASTCALL,
                 "act(policy, call, observations, actions, count_step, /)\n--\n\nds_policy_act() of plain arrays."),
    DS_FAST_CALL(call_operator, METH_FASTCALL, "call_operator(operator, /, *tensors)\n--\n\nCalls an operator."),
};

#undef DS_FAST_CALL

bool add_builtins(PyObject* calls) {
    for (PyMethodDef& row : table) {
        const PyOwned builtin(python().PyCFunction_NewEx(&row, nullptr, module_name));
        if (!builtin || python().PyDict_SetItemString(calls, row.name, builtin.get())) return false;
    }
    return true;
}

}  // namespace
}  // namespace doorstep

using namespace doorstep;

ds_status ds_python_bind(void* raise, void** fast_calls) {
    if (const ds_status status = check_call(raise, "raise_last_error", fast_calls, "fast_calls")) return status;
    raise_last_error = static_cast<PyObject*>(raise);
    python().Py_IncRef(raise_last_error);
    if (!module_name) module_name = python().PyUnicode_InternFromString("doorstep._native");
    PyOwned calls(module_name ? python().PyDict_New() : nullptr);
    if (calls && add_builtins(calls.get())) {
        *fast_calls = calls.release();
        return DS_STATUS_OK;
    }
    return fail(DS_STATUS_OUT_OF_MEMORY, "", "free some memory", "no memory is left for the library's builtins");
}
