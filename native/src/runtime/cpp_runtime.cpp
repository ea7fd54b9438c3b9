// The functions of the C++ runtime that the libraries call, implemented on glibc alone. Linking the compiler's runtime
// would require compiling it first, which took more than a minute of every first build.
//
// Throwing operators are omitted on purpose: without exceptions no code may call them, and the linker checks that.
#include <stdint.h>
#include <stdlib.h>

#include <new>

#include "runtime/futex.h"

// ---- Memory

namespace std {
const nothrow_t nothrow{};
}

// Null, not an exception, if there is no memory.
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return malloc(bytes ? bytes : 1); }
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept { return malloc(bytes ? bytes : 1); }

void* operator new(size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
    void* memory;
    const auto aligned = static_cast<size_t>(alignment);  // a power of two, and at least that of a pointer
    return posix_memalign(&memory, aligned, bytes ? bytes : 1) == 0 ? memory : nullptr;
}
void* operator new[](size_t bytes, std::align_val_t alignment, const std::nothrow_t& tag) noexcept {
    return operator new(bytes, alignment, tag);
}

void operator delete(void* memory) noexcept { free(memory); }
void operator delete[](void* memory) noexcept { free(memory); }
void operator delete(void* memory, size_t) noexcept { free(memory); }
void operator delete[](void* memory, size_t) noexcept { free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { free(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { free(memory); }

// ---- Static variables of functions (Itanium C++ ABI, section 3.3.3)

namespace {

// The compiler reads the first byte and calls nothing once it is 1. The other bytes are free for this implementation.
struct StaticGuard {
    std::atomic<uint8_t> initialized;
    std::atomic<uint32_t> state;
};
static_assert(sizeof(StaticGuard) == sizeof(uint64_t));

enum GuardState : uint32_t { kFree, kInitializing, kAwaited };

}  // namespace

// 1: the caller initialises the variable and then releases the guard; 0: it is initialised.
extern "C" int __cxa_guard_acquire(StaticGuard* guard) {
    while (!guard->initialized.load(std::memory_order_acquire)) {
        uint32_t found = kFree;
        if (guard->state.compare_exchange_strong(found, kInitializing)) return 1;
        if (found == kAwaited || guard->state.compare_exchange_strong(found, kAwaited)) {
            doorstep::futex_wait(guard->state, kAwaited);
        }
    }
    return 0;
}

extern "C" void __cxa_guard_release(StaticGuard* guard) {
    guard->initialized.store(1, std::memory_order_release);
    if (guard->state.exchange(kFree) == kAwaited) doorstep::futex_wake(guard->state, INT32_MAX);
}

// ---- Virtual functions

// Entry of pure virtual functions; called only through an object that is under construction.
extern "C" void __cxa_pure_virtual() { __builtin_trap(); }
