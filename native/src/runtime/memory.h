// Memory of tensors, on any device: a simulator's own block of worlds, tensors and tables, or the caller's memory that
// a tensor is bound to. It is freed, or its owner released, when the simulator and all holders of a view have released
// it.
#pragma once

#include <stdint.h>

#include <atomic>

#include "doorstep.h"
#include "runtime/foreign_owner.h"
#include "runtime/reference.h"

namespace doorstep {

// Sum of the bytes of some memories while they exist.
struct ByteCount : RefCounted {
    std::atomic<int64_t> bytes{0};
};

class Memory : public RefCounted {
public:
    virtual ~Memory();

    char* data() const { return data_; }  // a device address
    int64_t bytes() const { return bytes_; }
    int32_t device_kind() const { return device_kind_; }  // CPU or CUDA
    int32_t device_index() const { return device_index_; }
    bool contains(const void* start, int64_t bytes) const;
    bool overlaps(const void* start, int64_t bytes) const;

    // The owner of the caller's memory is released with this object.
    void take_over(ForeignOwner owner) { owner_ = owner; }

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
};

}  // namespace doorstep
