#include "render/embree/memory_margin.h"

#include <stdlib.h>
#include <sys/mman.h>

#include <atomic>

#include "render/api/core.h"
#include "runtime/futex.h"

namespace doorstep {
namespace {

// Sums of all current margins.
std::atomic<int64_t> held_memory{0}, held_address_space{0};

constinit Mutex heap_mutex;

// Address space of the heaps, plus one more while one of them is created.
int64_t address_space_of(int64_t new_threads) { return new_threads ? (new_threads + 1) * kThreadHeapBytes : 0; }

// Memory counts against limits of address space and of data, and against a kernel's remaining memory if it does not
// overcommit; address space alone, as for new heaps, counts against the first only.
bool can_be_mapped(int64_t memory, int64_t address_space) {
    const auto all = static_cast<size_t>(memory + address_space);
    void* data = mmap(nullptr, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) return false;
    const bool is_granted = mprotect(data, static_cast<size_t>(memory), PROT_READ | PROT_WRITE) == 0;
    munmap(data, all);
    return is_granted;
}

}  // namespace

ds_status MemoryMargin::take(const char* what, int64_t bytes, int64_t new_threads) {
    memory_ = bytes;
    address_space_ = address_space_of(new_threads);
    const int64_t memory = held_memory.fetch_add(memory_) + memory_;
    const int64_t address_space = held_address_space.fetch_add(address_space_) + address_space_;
    if (can_be_mapped(memory, address_space)) return DS_STATUS_OK;
    return fail(DS_STATUS_OUT_OF_MEMORY, "", "use fewer worlds or threads, or raise the memory limit",
                "Embree needs %ld bytes of memory to %s, and %ld bytes of address space for the heaps of new "
                "threads; the operating system refuses them",
                memory, what, address_space);
}

MemoryMargin::~MemoryMargin() {
    held_memory.fetch_sub(memory_);
    held_address_space.fetch_sub(address_space_);
}

void make_thread_heap() {
    const MutexGuard guard(heap_mutex);
    void* volatile block = malloc(1);  // volatile, so that the compiler does not remove it
    free(block);
}

void forget_memory_margins() {
    heap_mutex.reset();
    held_memory.store(0);
    held_address_space.store(0);
}

}  // namespace doorstep
