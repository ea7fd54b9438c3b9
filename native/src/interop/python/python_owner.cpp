// Owners of memory on both sides: capsules of tensors that Python did not take, and Python objects that own memory used
// here. They may be released in any thread, with or without the GIL: by a
// simulator's last user, by another library that drops a tensor, during an operation. Taking the GIL there could wait
// for a thread that waits for the simulator, so Python's main thread releases them, soon after.
#include <atomic>
#include <new>

#include "interop/python/python_api.h"
#include "runtime/dlpack.h"

namespace doorstep {
namespace {

struct Released {
    PyObject* object;
    Released* next;
};

constinit std::atomic<Released*> first_released{nullptr};

// Needs the GIL.
int release_queued(void*) {
    Released* next = first_released.exchange(nullptr, std::memory_order_acquire);
    while (Released* released = next) {
        DS_ASSERT(released->object);
        next = released->next;
        python().Py_DecRef(released->object);
        delete released;
    }
    return 0;
}

// A consumer renames the capsule: one with its first name was not consumed.
template <class Managed>
bool delete_unconsumed(PyObject* capsule, const char* name) {
    if (!python().PyCapsule_IsValid(capsule, name)) return false;
    delete_exported(static_cast<Managed*>(python().PyCapsule_GetPointer(capsule, name)));
    return true;
}

}  // namespace
}  // namespace doorstep

using namespace doorstep;

void ds_capsule_destructor(void* object) {
    DS_ASSERT(object);
    auto* capsule = static_cast<PyObject*>(object);
    if (!find_python() || delete_unconsumed<DLManagedTensorVersioned>(capsule, "dltensor_versioned")) return;
    delete_unconsumed<DLManagedTensor>(capsule, "dltensor");
}

// While Python shuts down, or without memory, the reference is leaked, because releasing it could crash. If Python's
// queue is full, the next release queues this object too.
void ds_python_release(void* object) {
    const Python* found = find_python();
    if (!found || !found->Py_IsInitialized()) return;
    Released* released = new (std::nothrow) Released{static_cast<PyObject*>(object), nullptr};
    if (!released) return;
    released->next = first_released.load(std::memory_order_relaxed);
    while (!first_released.compare_exchange_weak(released->next, released, std::memory_order_release)) {
    }
    found->Py_AddPendingCall(release_queued, nullptr);
}

void ds_python_release_now(void) {
    const Python* found = find_python();
    if (found && found->Py_IsInitialized()) release_queued(nullptr);
}
