#include "interop/python/python_api.h"

#include <dlfcn.h>

#include <atomic>

#include "runtime/futex.h"
#include "runtime/status.h"

namespace doorstep {

constinit Python python_table{};

namespace {

constinit Mutex looking;
constinit std::atomic<bool> found{false};  // once true, no thread takes the lock, not even in a forked child
constinit const char* missing = nullptr;

template <class Pointer>
bool look_up(const char* symbol, Pointer* pointer) {
    void* address = dlsym(RTLD_DEFAULT, symbol);
    *pointer = reinterpret_cast<Pointer>(address);
    if (!address) missing = symbol;
    return address != nullptr;
}

bool look_up_exception(const char* symbol, PyObject** type) {
    PyObject** variable;
    if (!look_up(symbol, &variable)) return false;
    *type = *variable;
    return true;
}

bool look_up_everything(Python* table) {
    bool complete = true;
#define DS_LOOK_UP(result, name, parameters) complete = complete && look_up(#name, &table->name);
    DS_PYTHON_FUNCTIONS(DS_LOOK_UP)
#undef DS_LOOK_UP
#define DS_LOOK_UP(name, symbol) complete = complete && look_up(#symbol, &table->name);
    DS_PYTHON_OBJECTS(DS_LOOK_UP)
#undef DS_LOOK_UP
#define DS_LOOK_UP(name) complete = complete && look_up_exception("PyExc_" #name, &table->name);
    DS_PYTHON_EXCEPTIONS(DS_LOOK_UP)
#undef DS_LOOK_UP
    return complete;
}

}  // namespace

const Python* find_python() {
    if (found) return &python_table;
    const MutexGuard lock(looking);
    if (!found) found = look_up_everything(&python_table);
    DS_ASSERT(found || missing);
    return found ? &python_table : nullptr;
}

ds_status check_python() {
    if (find_python()) return DS_STATUS_OK;
    const MutexGuard lock(looking);
    DS_ASSERT(missing);
    return fail(DS_STATUS_LIBRARY, "", "load libpython so that its symbols are global (RTLD_GLOBAL)",
                "Python's %s is not visible to libraries in this process", missing);
}

void use_python(const Python& table) {
    const MutexGuard lock(looking);
    python_table = table;
    found = true;
}

}  // namespace doorstep
