#include "interop/python/tensor_bridge.h"

#include <string.h>

#include <atomic>
#include <new>
#include <type_traits>

#include "runtime/argument_checks.h"

namespace doorstep {

// ---- The reader in Python ----

namespace {

// A new reference to a function of the reader. Null, with Python's exception set, if doorstep cannot be imported.
PyOwned find_function(const char* name) {
    const PyOwned module(python().PyImport_ImportModule("doorstep._tensors.callbacks"));
    return PyOwned(module ? python().PyObject_GetAttrString(module.get(), name) : nullptr);
}

PyOwned to_python(int64_t number) { return PyOwned(python().PyLong_FromLongLong(number)); }
PyOwned to_python(uint64_t number) { return PyOwned(python().PyLong_FromUnsignedLongLong(number)); }
PyOwned to_python(bool value) { return PyOwned(python().PyBool_FromLong(value)); }
PyOwned to_python(const char* text) { return PyOwned(python().PyUnicode_FromString(text)); }

// Calls reader.<name>(object, ...). Failing to create the small arguments is reported like a failing call.
template <class... Arguments>
PyOwned call_reader(const char* name, PyObject* object, const Arguments&... arguments) {
    const PyOwned function = find_function(name);
    if (!function || !(... && arguments)) return PyOwned();
    return PyOwned(python().PyObject_CallFunctionObjArgs(function.get(), object, arguments.get()..., nullptr));
}

// Text of an attribute of an exception, or "" if it has none.
const char* text_of(const PyOwned& object) {
    const char* text = object ? python().PyUnicode_AsUTF8AndSize(object.get(), nullptr) : nullptr;
    if (!text) python().PyErr_Clear();
    return text ? text : "";
}

PyOwned attribute(PyObject* object, const char* name) {
    PyOwned found(python().PyObject_GetAttrString(object, name));
    if (!found) python().PyErr_Clear();
    return found;
}

// The exception's first argument, or null.
PyOwned first_argument(PyObject* exception) {
    const PyOwned arguments = attribute(exception, "args");
    if (!arguments || python().PyTuple_Size(arguments.get()) < 1) return PyOwned();
    PyObject* first = python().PyTuple_GetItem(arguments.get(), 0);
    python().Py_IncRef(first);
    return PyOwned(first);
}

bool is_error_of_doorstep(PyObject* exception) {
    const PyOwned errors(python().PyImport_ImportModule("doorstep.errors"));
    const PyOwned base(errors ? python().PyObject_GetAttrString(errors.get(), "DoorstepError") : nullptr);
    const int answer = base ? python().PyObject_IsInstance(exception, base.get()) : -1;
    if (answer < 0) python().PyErr_Clear();
    return answer > 0;
}

}  // namespace

ds_status take_python_error(ds_status status, const char* argument) {
    DS_ASSERT(status != DS_STATUS_OK && argument);
    PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
    python().PyErr_Fetch(&type, &value, &traceback);
    python().PyErr_NormalizeException(&type, &value, &traceback);
    const PyOwned owned_type(type), exception(value), owned_traceback(traceback);
    if (!exception) return fail(status, argument, "", "the tensor's library failed without an exception");
    if (type == python().KeyboardInterrupt) {
        // An interrupt during the library's code is not lost: the main thread raises it again in Python.
        python().PyErr_SetInterrupt();
        return fail(status, argument, "", "the tensor's library was interrupted");
    }
    if (!is_error_of_doorstep(value)) {
        const PyOwned message(python().PyObject_Str(value)), name = attribute(type, "__name__");
        return fail(status, argument, "", "%s: %s", text_of(name), text_of(message));
    }
    const PyOwned number = attribute(value, "status"), message = first_argument(value);
    const PyOwned their_argument = attribute(value, "argument"), hint = attribute(value, "hint");
    const auto own_status = static_cast<ds_status>(python().PyLong_AsLongLong(number.get()));
    return fail(own_status, text_of(their_argument), text_of(hint), "%s", text_of(message));
}

ds_status make_like_by_python(PyObject* object, bool zeros, void** made) {
    PyOwned result = call_reader("make_like", object, to_python(zeros));
    if (!result) return take_python_error(DS_STATUS_INVALID_ARGUMENT, "tensor");
    *made = result.release();
    return DS_STATUS_OK;
}

// ---- Types ----

namespace {

// Types are kept until the process ends: programs have few. Types beyond the capacity are examined each time. Half of
// the entries is for the libraries' own types; types that are not tensors use at most half of the rest.
constexpr uint32_t kCapacity = 512;
constinit std::atomic<const TensorType*> known_types[kCapacity]{};
constinit std::atomic<uint32_t> num_others{0};

// Offset in every object of its type's address, or 0 if unknown; found with the first type.
constexpr uint32_t kAskPython = 0;
constinit std::atomic<uint32_t> type_offset{kAskPython};

std::atomic<const TensorType*>* slot_of(const PyTypeObject* type, uint32_t probe) {
    DS_ASSERT(type && probe < kCapacity);
    return &known_types[((reinterpret_cast<uintptr_t>(type) >> 4) + probe) % kCapacity];
}

const TensorType* find_known(const PyTypeObject* type) {
    for (uint32_t probe = 0; probe < kCapacity; ++probe) {
        const TensorType* known = slot_of(type, probe)->load(std::memory_order_acquire);
        if (!known) return nullptr;
        if (known->type == type) return known;
    }
    return nullptr;
}

// Whether there was a free entry.
bool keep(TensorType* examined) {
    DS_ASSERT(examined->type);
    if (!examined->is_own) {
        const uint32_t most = examined->kind == TensorKind::kNone ? kCapacity / 4 : kCapacity / 2;
        if (num_others.load() >= most) return false;
        num_others.fetch_add(1);  // a race may exceed the limit by a few, harmlessly
    }
    for (uint32_t probe = 0; probe < kCapacity; ++probe) {
        const TensorType* expected = nullptr;
        if (!slot_of(examined->type, probe)->compare_exchange_strong(expected, examined)) continue;
        python().Py_IncRef(reinterpret_cast<PyObject*>(examined->type));
        return true;
    }
    return false;
}

// The reader's examine_type() returns numbers: TensorKind, ds_python_library, is_own, has_plain_attributes, address of
// the exchange API, the six offsets of TorchLayout; and, for any type, type_offset.
constexpr int kNumTypeNumbers = 12;

bool examine(PyTypeObject* type, TensorType* examined) {
    const PyOwned found = call_reader("examine_type", reinterpret_cast<PyObject*>(type));
    if (!found) {
        take_python_error(DS_STATUS_LIBRARY, "");
        return false;
    }
    long long numbers[kNumTypeNumbers];
    for (int i = 0; i < kNumTypeNumbers; ++i) {
        numbers[i] = python().PyLong_AsLongLong(python().PyTuple_GetItem(found.get(), i));
    }
    DS_ASSERT(numbers[0] >= 0 && numbers[0] <= static_cast<int>(TensorKind::kReader));
    DS_ASSERT(numbers[1] >= 0 && numbers[1] <= DS_PYTHON_LIBRARY_DOORSTEP && numbers[11] > 0);
    DS_ASSERT(numbers[0] != static_cast<int>(TensorKind::kExchange) || numbers[4]);
    const auto offset = [&](int i) { return static_cast<uint32_t>(numbers[i]); };
    examined->type = type;
    examined->kind = static_cast<TensorKind>(numbers[0]);
    examined->library = static_cast<uint8_t>(numbers[1]);
    examined->is_own = numbers[2] != 0;
    examined->has_plain_attributes = numbers[3] != 0;
    examined->api = reinterpret_cast<const DLPackExchangeAPI*>(numbers[4]);
    examined->layout = {offset(5), offset(6), offset(7), offset(8), offset(9), offset(10)};
    type_offset.store(offset(11), std::memory_order_relaxed);
    return true;
}

// Plain data, so that foreign threads run no constructor.
thread_local TensorType not_kept;

}  // namespace

const TensorType* find_tensor_type(PyObject* object) {
    // Borrowed: the object keeps its type alive. Py_TYPE through Python would take a reference, which costs more time.
    if (const uint32_t offset = type_offset.load(std::memory_order_relaxed); offset != kAskPython) {
        PyTypeObject* type;
        memcpy(&type, reinterpret_cast<const char*>(object) + offset, sizeof type);
        return find_tensor_type_of(type);
    }
    const PyOwned type(python().PyObject_Type(object));
    return find_tensor_type_of(reinterpret_cast<PyTypeObject*>(type.get()));
}

const TensorType* find_tensor_type_of(PyTypeObject* type) {
    DS_ASSERT(type);
    if (const TensorType* known = find_known(type)) return known;
    if (!examine(type, &not_kept)) return nullptr;
    auto* kept = new (std::nothrow) TensorType(not_kept);
    if (kept && keep(kept)) return kept;
    delete kept;
    return &not_kept;
}

// ---- Reading ----

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
    DS_ASSERT(keys);  // 0 is a free entry
    for (std::atomic<uint64_t>& known : plain_keys) {
        uint64_t expected = 0;
        if (known.compare_exchange_strong(expected, keys) || expected == keys) return;
    }
}

template <class Value>
Value load_at(const void* object, uint32_t offset) {
    DS_ASSERT(object);
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

// Fills in all that depends on extents. stride_of(axis, packed): a stride in elements, which would be `packed` if the
// tensor were contiguous.
template <class Stride>
void fill_shape(int rank, const int64_t* shape, Stride stride_of, TensorView* view) {
    DS_ASSERT(rank >= 0 && rank <= kMaxRank);
    int64_t count = 1;
    bool contiguous = true;
    for (int axis = rank - 1; axis >= 0; --axis) {
        const int64_t extent = shape[axis], stride = stride_of(axis, count);
        contiguous = contiguous && (extent == 1 || stride == count);
        view->shape[axis] = extent;
        view->strides[axis] = stride;
        count *= extent;
    }
    view->rank = rank;
    view->count = count;
    view->contiguous = contiguous || count == 0;
}

// False if the view cannot represent it.
bool fill(const DLTensor& tensor, uint8_t library, TensorView* view) {
    if (tensor.ndim < 0 || tensor.ndim > kMaxRank) return false;
    view->data = tensor.data ? static_cast<char*>(tensor.data) + tensor.byte_offset : nullptr;
    view->device_type = tensor.device.device_type;
    view->device_index = tensor.device.device_id;
    view->dtype_code = tensor.dtype.code;
    view->dtype_bits = tensor.dtype.bits;
    view->dtype_lanes = tensor.dtype.lanes;
    view->requires_grad = 0;
    view->read_only = 0;
    view->library = library;
    const auto stride_of = [&](int axis, int64_t packed) { return tensor.strides ? tensor.strides[axis] : packed; };
    fill_shape(tensor.ndim, tensor.shape, stride_of, view);
    return true;
}

// Resizing a storage leaves its tensors unchanged, with an address and a shape that exceed the memory.
bool lies_in_storage(const TensorView& view, const char* implementation, const TorchLayout& layout) {
    DS_ASSERT(view.count >= 0 && view.rank <= kMaxRank && layout.storage > 0);
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

// An element type in the notation of Python's struct module, without size and byte order: one letter.
bool parse_letter(char letter, uint8_t* code) {
    switch (letter) {
        case 'b': case 'h': case 'i': case 'l': case 'q': case 'n': *code = kDLInt; return true;
        case 'B': case 'H': case 'I': case 'L': case 'Q': case 'N': *code = kDLUInt; return true;
        case 'e': case 'f': case 'd': *code = kDLFloat; return true;
        case '?': *code = kDLBool; return true;
        default: return false;
    }
}

bool parse_format(const char* format, uint8_t* code) {
    if (*format == '@' || *format == '=' || *format == '<') ++format;
    const bool complex = *format == 'Z';
    if (complex) ++format;
    if (!parse_letter(format[0], code) || format[1]) return false;
    if (!complex) return true;
    const bool known = *code == kDLFloat && *format != 'e';
    *code = kDLComplex;
    return known;
}

// Kinds of tensors. Each returns false for tensors that are not plain; the reader then reads or refuses them.

bool read_torch(const TensorType& type, PyObject* object, TensorView* view) {
    DS_ASSERT(type.api && type.layout.implementation > 0);
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
    DS_ASSERT(type.api);
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

// False unless the elements are plain numbers in the machine's byte order.
bool fill(const Py_buffer& buffer, TensorView* view) {
    static_assert(std::is_same_v<Py_ssize_t, int64_t>);
    DS_ASSERT(buffer.ndim >= 0 && buffer.itemsize >= 0);
    if (buffer.ndim > kMaxRank || !buffer.format || !parse_format(buffer.format, &view->dtype_code)) return false;
    view->device_type = kDLCPU;
    view->device_index = 0;
    view->dtype_bits = static_cast<uint8_t>(buffer.itemsize * 8);
    view->dtype_lanes = 1;
    view->requires_grad = 0;
    view->read_only = buffer.readonly != 0;
    view->library = DS_PYTHON_LIBRARY_NUMPY;
    bool whole = true;  // a field of a record may have a stride of any number of bytes
    const auto stride_of = [&](int axis, int64_t) {
        whole = whole && (buffer.strides[axis] % buffer.itemsize == 0 || buffer.shape[axis] <= 1);
        return buffer.strides[axis] / buffer.itemsize;
    };
    fill_shape(buffer.ndim, buffer.shape, stride_of, view);
    view->data = view->count ? buffer.buf : nullptr;
    return whole;
}

bool read_buffer(PyObject* object, TensorView* view) {
    Py_buffer buffer;
    if (python().PyObject_GetBuffer(object, &buffer, PyBUF_RECORDS_RO)) {
        python().PyErr_Clear();
        return false;
    }
    const bool plain = fill(buffer, view);
    python().PyBuffer_Release(&buffer);
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

// *is_plain: it is a plain tensor of PyTorch, and so is every one with the same dispatch keys.
ds_status read_by_python(PyObject* object, int64_t index, const ReadRules& rules, TensorView* view, bool* is_plain) {
    const PyOwned name = index < 0 ? to_python(rules.argument)
                                   : PyOwned(python().PyUnicode_FromFormat("%s[%ld]", rules.argument,
                                                                           index));
    const PyOwned result = call_reader("read", object, to_python(reinterpret_cast<uint64_t>(view)), name,
                                       to_python(rules.requires_grad_allowed), to_python(rules.written),
                                       to_python(rules.stream));
    if (!result) return take_python_error(DS_STATUS_INVALID_ARGUMENT, rules.argument);
    *is_plain = result.get() == python().True;
    return DS_STATUS_OK;
}

}  // namespace

ds_status read_tensor(PyObject* object, const ReadRules& rules, TensorView* view, int64_t index) {
    DS_ASSERT(object && view && rules.argument);
    const TensorType* type = find_tensor_type(object);
    if (!type) return last_status();
    if (read_plain(*type, object, view) && obeys(*view, rules)) return DS_STATUS_OK;
    const bool is_torch = type->kind == TensorKind::kTorch;
    const TorchLayout layout = type->layout;
    bool is_plain;
    if (const ds_status status = read_by_python(object, index, rules, view, &is_plain)) return status;
    DS_ASSERT(view->rank >= 0 && view->rank <= kMaxRank && view->library <= DS_PYTHON_LIBRARY_DOORSTEP);
    if (!is_plain || !is_torch) return DS_STATUS_OK;
    remember_as_plain(load_at<uint64_t>(load_at<const char*>(object, layout.implementation), layout.keys));
    return DS_STATUS_OK;
}

ds_status current_stream(PyObject* object, int32_t device_type, int64_t device_index, uint64_t* stream) {
    const TensorType* type = find_tensor_type(object);
    if (!type) return last_status();
    if (!type->api) {
        const PyOwned result = call_reader("current_stream", object, to_python(int64_t{device_type}),
                                           to_python(device_index));
        if (!result) return take_python_error(DS_STATUS_DEVICE, "device");
        *stream = python().PyLong_AsUnsignedLongLong(result.get());
        return DS_STATUS_OK;
    }
    void* current = nullptr;
    if (type->api->current_work_stream(device_type, static_cast<int32_t>(device_index), &current)) {
        return take_python_error(DS_STATUS_DEVICE, "device");
    }
    *stream = reinterpret_cast<uint64_t>(current);
    return DS_STATUS_OK;
}

// ---- Entry points ----

ds_status check_call(const void* object, const char* object_name, const void* result, const char* result_name) {
    if (!object) return fail_null(object_name);
    if (!result) return fail_null(result_name);
    return check_python();
}

ds_status check_view(const TensorView* tensor) {
    if (const ds_status status = check_struct(tensor, "tensor")) return status;
    return check_range("tensor.rank", "describe it with ds_python_read_tensors", tensor->rank, 0, kMaxRank);
}

namespace {

ds_status check_rules(const ds_python_rules* given, ReadRules* rules) {
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

}  // namespace
}  // namespace doorstep

using namespace doorstep;

ds_status ds_python_read_tensors(void* const* objects, uint64_t count, const ds_python_rules* given,
                                 ds_python_tensor* tensors) {
    if (const ds_status status = check_call(objects, "objects", tensors, "tensors")) return status;
    ReadRules rules{.argument = "objects"};
    if (const ds_status status = check_rules(given, &rules)) return status;
    for (uint64_t i = 0; i < count; ++i) {
        if (!objects[i]) return fail_null("objects");
        if (const ds_status status = check_struct(&tensors[i], "tensors")) return status;
    }
    for (uint64_t i = 0; i < count; ++i) {
        auto* object = static_cast<PyObject*>(objects[i]);
        if (const ds_status status = read_tensor(object, rules, &tensors[i], static_cast<int64_t>(i))) return status;
    }
    return DS_STATUS_OK;
}

