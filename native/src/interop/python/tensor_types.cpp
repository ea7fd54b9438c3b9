#include "interop/python/tensor_types.h"

#include <string.h>

#include <atomic>
#include <new>

#include "interop/python/tensor_reader.h"
#include "runtime/status.h"

namespace doorstep {
namespace {

// Types are kept until the process ends: programs have few. Types beyond the capacity are examined each time. Half of
// the entries is for the libraries' own types; types that are not tensors use at most half of the rest.
constexpr uint32_t kCapacity = 512;
constinit std::atomic<const TensorType*> known_types[kCapacity]{};
constinit std::atomic<uint32_t> num_others{0};

// Offset in every object of its type's address; found with the first type.
constexpr uint32_t kAskPython = 0;
constinit std::atomic<uint32_t> type_offset{kAskPython};

std::atomic<const TensorType*>* slot_of(const PyTypeObject* type, uint32_t probe) {
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

bool examine(PyTypeObject* type, TensorType* examined) {
    long long numbers[kNumTypeNumbers];
    if (!examine_type(reinterpret_cast<PyObject*>(type), numbers)) return false;
    const auto offset = [&](int i) { return static_cast<uint32_t>(numbers[i]); };
    type_offset.store(offset(11), std::memory_order_relaxed);
    examined->type = type;
    examined->kind = static_cast<TensorKind>(numbers[0]);
    examined->library = static_cast<uint8_t>(numbers[1]);
    examined->is_own = numbers[2] != 0;
    examined->has_plain_attributes = numbers[3] != 0;
    examined->api = reinterpret_cast<const DLPackExchangeAPI*>(numbers[4]);
    examined->layout = {offset(5), offset(6), offset(7), offset(8), offset(9), offset(10)};
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
    if (const TensorType* known = find_known(type)) return known;
    if (!examine(type, &not_kept)) return nullptr;
    auto* kept = new (std::nothrow) TensorType(not_kept);
    if (kept && keep(kept)) return kept;
    delete kept;
    return &not_kept;
}

}  // namespace doorstep
