// Pages of host memory, mapped from the operating system; and the memory of tensors, on any device.
#pragma once

#include <stdint.h>

#include <atomic>
#include <utility>

#include "doorstep/rooms.h"
#include "runtime/reference.h"

namespace doorstep {

// ---- Pages ----

// How much memory is available now, and the limit that applies.
struct AvailableMemory {
    int64_t bytes;
    const char* limit;  // for messages: "the memory limit of this control group"
};

// root: folder that contains proc and sys; tests pass another.
AvailableMemory available_memory(const char* root = "");

// Whether this much more may be allocated on the heap, which Linux promises and later kills the process for. Small
// amounts are added up until it is worth the time to ask.
bool has_memory_for(int64_t bytes);

// Zeroed, page-aligned memory; the destructor unmaps it.
class Pages {
public:
    Pages() = default;
    Pages(Pages&& other) noexcept : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
    Pages& operator=(Pages&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    ~Pages();

    char* data() const { return data_; }
    int64_t bytes() const { return bytes_; }
    explicit operator bool() const { return data_ != nullptr; }

private:
    friend Pages map_pages(int64_t bytes, const char* argument);
    Pages(char* data, int64_t bytes) : data_(data), bytes_(bytes) {}

    char* data_ = nullptr;
    int64_t bytes_ = 0;
};

// Empty, with the thread's error set, if `bytes` cannot be allocated. The amount is compared with the available
// memory first, because Linux overcommits and later kills the process.
Pages map_pages(int64_t bytes, const char* argument);

// ---- Memory of tensors ----

// Memory of tensors, on any device: a simulator's own block of worlds, tensors and tables, or the caller's memory that
// a tensor is bound to. It is freed, or its owner released, when the simulator and all holders of a view have released
// it.

// Sum of the bytes of some memories while they exist.
struct ByteCount : RefCounted {
    std::atomic<int64_t> bytes{0};
};

// A word of the owner of memory, and its value at first.
struct WatchedWord {
    const uint64_t* word = nullptr;
    uint64_t value = 0;
    bool has_changed() const { return __atomic_load_n(word, __ATOMIC_RELAXED) != value; }
};

class Memory : public RefCounted {
public:
    static constexpr int kWatched = 2;

    virtual ~Memory();

    char* data() const { return data_; }  // a device address
    int64_t bytes() const { return bytes_; }
    int32_t device_kind() const { return device_kind_; }  // CPU or CUDA
    int32_t device_index() const { return device_index_; }
    bool contains(const void* start, int64_t bytes) const;
    bool overlaps(const void* start, int64_t bytes) const;

    // The owner of the caller's memory is released with this object.
    void take_over(ForeignOwner owner) { owner_ = owner; }

    // Words of the owner, or null, that change when it moves the memory. tensor: its name, for messages.
    void watch(const char* tensor, const uint64_t* first, const uint64_t* second);
    bool has_moved() const {  // whether one has changed
        return (watched_[0].word && watched_[0].has_changed()) || (watched_[1].word && watched_[1].has_changed());
    }
    ds_status check() const;  // INVALID_STATE then
    const WatchedWord& watched(int i) const { return watched_[i]; }

    // Counts its bytes in the total until it ends.
    void count_in(Ref<ByteCount> count);

    // Copy bytes of this memory to or from the host, ordered after all work begun on the simulator; they return when
    // the copy is done.
    virtual ds_status read(const void* start, int64_t bytes, void* host) = 0;
    virtual ds_status write(void* start, int64_t bytes, const void* host) = 0;

    // Orders further work on a CUDA stream after all work begun on the simulator.
    virtual ds_status order(uint64_t stream) = 0;

protected:
    Memory(char* data, int64_t bytes, int32_t device_kind, int32_t device_index);
    // For memory that may still be in use: its owner is never released.
    void abandon_owner() { owner_ = {}; }

private:
    char* data_;
    int64_t bytes_;
    int32_t device_kind_;
    int32_t device_index_;
    ForeignOwner owner_;
    Ref<ByteCount> count_;
    const char* tensor_ = "";
    WatchedWord watched_[kWatched];
};

}  // namespace doorstep
