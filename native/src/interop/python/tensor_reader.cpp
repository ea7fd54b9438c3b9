#include "interop/python/tensor_reader.h"

#include "runtime/status.h"

namespace doorstep {
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

bool examine_type(PyObject* type, long long (&numbers)[kNumTypeNumbers]) {
    const PyOwned found = call_reader("examine_type", type);
    for (int i = 0; found && i < kNumTypeNumbers; ++i) {
        numbers[i] = python().PyLong_AsLongLong(python().PyTuple_GetItem(found.get(), i));
    }
    if (found) return true;
    take_python_error(DS_STATUS_LIBRARY, "");
    return false;
}

ds_status read_by_python(PyObject* object, int64_t index, const ReadRules& rules, TensorView* view, bool* is_plain) {
    const PyOwned name = index < 0 ? to_python(rules.argument)
                                   : PyOwned(python().PyUnicode_FromFormat("%s[%lld]", rules.argument,
                                                                           static_cast<long long>(index)));
    const PyOwned result = call_reader("read", object, to_python(reinterpret_cast<uint64_t>(view)), name,
                                       to_python(rules.requires_grad_allowed), to_python(rules.written),
                                       to_python(rules.stream));
    if (!result) return take_python_error(DS_STATUS_INVALID_ARGUMENT, rules.argument);
    *is_plain = result.get() == python().True;
    return DS_STATUS_OK;
}

ds_status current_stream_by_python(PyObject* object, int32_t device_type, int64_t device_index, uint64_t* stream) {
    const PyOwned result = call_reader("current_stream", object, to_python(int64_t{device_type}),
                                       to_python(device_index));
    if (!result) return take_python_error(DS_STATUS_DEVICE, "device");
    *stream = python().PyLong_AsUnsignedLongLong(result.get());
    return DS_STATUS_OK;
}

ds_status make_like_by_python(PyObject* object, bool zeros, PyObject** made) {
    PyOwned result = call_reader("make_like", object, to_python(zeros));
    if (!result) return take_python_error(DS_STATUS_INVALID_ARGUMENT, "tensor");
    *made = result.release();
    return DS_STATUS_OK;
}

}  // namespace doorstep
