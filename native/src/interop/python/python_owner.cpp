// Python objects that own memory used here. They are let go in any thread, with or without the GIL: by the simulator's
// last user, by another library that drops a tensor, within an operation. Taking the GIL there could wait for a thread
// that waits for the simulator, so Python's main thread is asked to do it, soon.
#include <atomic>
#include <new>

#include "doorstep.h"
#include "interop/python/python_api.h"

namespace doorstep {
namespace {

struct Released {
    PyObject* object;
    Released* next;
};

constinit std::atomic<Released*> first_released{nullptr};

// Needs the GIL.
int let_go(void*) {
    Released* next = first_released.exchange(nullptr, std::memory_order_acquire);
    while (Released* released = next) {
        next = released->next;
        python().Py_DecRef(released->object);
        delete released;
    }
    return 0;
}

}  // namespace
}  // namespace doorstep

using namespace doorstep;

// Once Python ends, or without memory, the reference is kept: a leak is better than a crash. If Python's queue is full,
// whoever is released next takes this object along.
void ds_python_release(void* object) {
    const Python* found = find_python();
    if (!found || !found->Py_IsInitialized()) return;
    Released* released = new (std::nothrow) Released{static_cast<PyObject*>(object), nullptr};
    if (!released) return;
    released->next = first_released.load(std::memory_order_relaxed);
    while (!first_released.compare_exchange_weak(released->next, released, std::memory_order_release)) {
    }
    found->Py_AddPendingCall(let_go, nullptr);
}

void ds_python_release_now(void) {
    const Python* found = find_python();
    if (found && found->Py_IsInitialized()) let_go(nullptr);
}
