// Python's C API: functions of the stable ABI, found in the running process. Nothing is linked and no Python header is
// included, so one binary serves every CPython from 3.10 on, and programs without Python.
//
// Objects are opaque: only functions access them, because their layout differs between versions and builds. The
// exceptions are a few words whose offsets are found by experiment (tensor_bridge.h). Every function needs the GIL,
// except those that take it.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "doorstep/python.h"
#include "math/base.h"

namespace doorstep {

struct PyObject;
struct PyTypeObject;
struct PyThreadState;
using Py_ssize_t = ptrdiff_t;
using PyCapsule_Destructor = void (*)(PyObject* capsule);

// A row of a table of functions (PyMethodDef); it must outlive all objects created from it.
struct PyMethodDef {
    const char* name;
    void* function;  // PyFunction or PyFunctionOfMany, depending on flags
    int flags;
    const char* doc;  // "name(arguments)\n--\n\nSentence." gives Python a signature
};
// METH_NOARGS (argument is null) and METH_O.
using PyFunction = PyObject* (*)(PyObject* self, PyObject* argument);
// METH_FASTCALL.
using PyFunctionOfMany = PyObject* (*)(PyObject* self, PyObject* const* arguments, Py_ssize_t count);
inline constexpr int METH_NOARGS = 0x0004, METH_O = 0x0008, METH_FASTCALL = 0x0080;

// An object's memory (Py_buffer).
struct Py_buffer {
    void* buf;
    PyObject* obj;
    Py_ssize_t len;
    Py_ssize_t itemsize;
    int readonly;
    int ndim;
    char* format;
    Py_ssize_t* shape;
    Py_ssize_t* strides;  // in bytes
    Py_ssize_t* suboffsets;
    void* internal;
};
inline constexpr int PyBUF_RECORDS_RO = 0x001C;  // with format and strides, read-only allowed

// The specification of a new Python type. Slots end with {0, nullptr}; slots have Python's names, their numbers are
// part of the stable ABI.
struct PyType_Slot {
    int slot;
    void* function;
};
struct PyType_Spec {
    const char* name;
    int basicsize;
    int itemsize;
    unsigned int flags;
    PyType_Slot* slots;
};
inline constexpr int Py_tp_dealloc = 52, Py_tp_traverse = 71, Py_tp_getset = 73;
inline constexpr unsigned int Py_TPFLAGS_DISALLOW_INSTANTIATION = 1u << 7;
struct PyGetSetDef {
    const char* name;
    PyObject* (*get)(PyObject* self, void* closure);
    int (*set)(PyObject* self, PyObject* value, void* closure);
    const char* doc;
    void* closure;
};

// X(result, name, parameters). Every version from 3.10 on exports them; all are in the stable ABI of 3.11.
#define DS_PYTHON_FUNCTIONS(X)                                                                                      \
    X(void, Py_IncRef, (PyObject * object))                                                                         \
    X(void, Py_DecRef, (PyObject * object))                                                                         \
    X(int, Py_IsInitialized, (void))                                                                                \
    X(int, Py_AddPendingCall, (int (*function)(void*), void* argument))                                             \
    X(PyThreadState*, PyEval_SaveThread, (void))                                                                    \
    X(void, PyEval_RestoreThread, (PyThreadState * state))                                                          \
    X(PyObject*, PyErr_Occurred, (void))                                                                            \
    X(void, PyErr_Clear, (void))                                                                                    \
    X(void, PyErr_SetString, (PyObject * type, const char* message))                                                \
    X(PyObject*, PyErr_Format, (PyObject * type, const char* format, ...))                                          \
    X(void, PyErr_SetInterrupt, (void))                                                                             \
    X(PyObject*, PyErr_NoMemory, (void))                                                                            \
    X(void, PyErr_Fetch, (PyObject** type, PyObject** value, PyObject** traceback))                                 \
    X(void, PyErr_NormalizeException, (PyObject * *type, PyObject * *value, PyObject * *traceback))                 \
    X(PyObject*, PyImport_ImportModule, (const char* name))                                                         \
    X(PyObject*, PyObject_Type, (PyObject * object))                                                                \
    X(PyObject*, PyObject_GetAttr, (PyObject * object, PyObject * name))                                            \
    X(PyObject*, PyObject_GetAttrString, (PyObject * object, const char* name))                                     \
    X(int, PyObject_IsInstance, (PyObject * object, PyObject * type))                                               \
    X(int, PyObject_GetBuffer, (PyObject * object, Py_buffer * view, int flags))                                    \
    X(void, PyBuffer_Release, (Py_buffer * view))                                                                   \
    X(PyObject*, PyObject_Str, (PyObject * object))                                                                 \
    X(PyObject*, PyObject_CallFunctionObjArgs, (PyObject * callable, ...))                                          \
    X(PyObject*, PyObject_CallMethodObjArgs, (PyObject * object, PyObject * name, ...))                             \
    X(PyObject*, PyType_FromSpecWithBases, (PyType_Spec * spec, PyObject * bases))                                  \
    X(PyObject*, PyObject_Init, (PyObject * memory, PyTypeObject * type))                                           \
    X(void*, PyObject_Malloc, (size_t bytes))                                                                       \
    X(void, PyObject_Free, (void* memory))                                                                          \
    X(PyObject*, PyCFunction_NewEx, (PyMethodDef * definition, PyObject * self, PyObject * module_name))            \
    X(PyObject*, PyDescr_NewMethod, (PyTypeObject * type, PyMethodDef * definition))                                \
    X(PyObject*, PyCapsule_New, (void* pointer, const char* name, PyCapsule_Destructor destructor))                 \
    X(void*, PyCapsule_GetPointer, (PyObject * capsule, const char* name))                                          \
    X(int, PyCapsule_IsValid, (PyObject * capsule, const char* name))                                               \
    X(PyObject*, PyBool_FromLong, (long value))                                                                     \
    X(PyObject*, PyLong_FromLongLong, (long long value))                                                            \
    X(PyObject*, PyLong_FromUnsignedLongLong, (unsigned long long value))                                           \
    X(long long, PyLong_AsLongLong, (PyObject * object))                                                            \
    X(unsigned long, PyLong_AsUnsignedLong, (PyObject * object))                                                    \
    X(unsigned long long, PyLong_AsUnsignedLongLong, (PyObject * object))                                           \
    X(PyObject*, PyUnicode_FromString, (const char* text))                                                          \
    X(PyObject*, PyUnicode_FromStringAndSize, (const char* text, Py_ssize_t size))                                  \
    X(PyObject*, PyUnicode_InternFromString, (const char* text))                                                    \
    X(PyObject*, PyUnicode_FromFormat, (const char* format, ...))                                                   \
    X(const char*, PyUnicode_AsUTF8AndSize, (PyObject * text, Py_ssize_t * size))                                   \
    X(PyObject*, PyTuple_New, (Py_ssize_t size))                                                                    \
    X(PyObject*, PyTuple_Pack, (Py_ssize_t size, ...))                                                              \
    X(Py_ssize_t, PyTuple_Size, (PyObject * tuple))                                                                 \
    X(PyObject*, PyTuple_GetItem, (PyObject * tuple, Py_ssize_t index))                                             \
    X(int, PyTuple_SetItem, (PyObject * tuple, Py_ssize_t index, PyObject * stolen))                                \
    X(PyObject*, PySequence_Tuple, (PyObject * object))                                                             \
    X(PyObject*, PyDict_New, (void))                                                                                \
    X(int, PyDict_SetItemString, (PyObject * dict, const char* key, PyObject * value))

// X(name, symbol): single objects.
#define DS_PYTHON_OBJECTS(X)                                                                                        \
    X(None, _Py_NoneStruct)                                                                                         \
    X(True, _Py_TrueStruct)

// X(name): the class is PyExc_<name> in C.
#define DS_PYTHON_EXCEPTIONS(X)                                                                                     \
    X(TypeError)                                                                                                    \
    X(KeyboardInterrupt)

struct Python {
#define DS_PYTHON_POINTER(result, name, parameters) result(*name) parameters;
    DS_PYTHON_FUNCTIONS(DS_PYTHON_POINTER)
#undef DS_PYTHON_POINTER
#define DS_PYTHON_OBJECT(name, symbol) PyObject* name;
    DS_PYTHON_OBJECTS(DS_PYTHON_OBJECT)
#undef DS_PYTHON_OBJECT
#define DS_PYTHON_EXCEPTION(name) PyObject* name;
    DS_PYTHON_EXCEPTIONS(DS_PYTHON_EXCEPTION)
#undef DS_PYTHON_EXCEPTION
};

// Finds all functions of the table, once. Null if one is missing: the process has no Python, or its functions are not
// visible to libraries. The caller holds the GIL, if Python exists.
const Python* find_python();
// LIBRARY, with the name of the missing function, if find_python() fails.
ds_status check_python();

extern Python python_table;

// Valid once find_python() has succeeded, as it has wherever Python calls the library.
inline const Python& python() {
    DS_ASSERT(python_table.Py_IsInitialized);
    return python_table;
}

// For tests: replaces the Python of the process.
void use_python(const Python& table);

// A reference that is released at the end of its scope, which holds the GIL.
class PyOwned {
public:
    explicit PyOwned(PyObject* object = nullptr) : object_(object) {}
    ~PyOwned() {
        if (object_) python().Py_DecRef(object_);
    }
    PyOwned(PyOwned&& other) noexcept : object_(other.release()) {}
    PyOwned& operator=(PyOwned&& other) noexcept {
        PyObject* old = object_;
        object_ = other.release();
        if (old) python().Py_DecRef(old);
        return *this;
    }
    PyOwned(const PyOwned&) = delete;
    PyOwned& operator=(const PyOwned&) = delete;

    PyObject* get() const { return object_; }
    explicit operator bool() const { return object_ != nullptr; }
    PyObject* release() {
        PyObject* object = object_;
        object_ = nullptr;
        return object;
    }

private:
    PyObject* object_;
};

// Releases the GIL while it exists: other Python threads run, and its scope must not use Python.
class WithoutGil {
public:
    WithoutGil() : state_(python().PyEval_SaveThread()) {}
    ~WithoutGil() { python().PyEval_RestoreThread(state_); }
    WithoutGil(const WithoutGil&) = delete;
    WithoutGil& operator=(const WithoutGil&) = delete;

private:
    PyThreadState* state_;
};

// The result of a function that returns nothing: a new reference to None.
inline PyObject* return_none() {
    python().Py_IncRef(python().None);
    return python().None;
}

}  // namespace doorstep
