// Memory that tensors lie in, on whatever device: a simulator's own block of worlds, tensors and tables, or memory of the
// caller that a tensor was bound to. It is given back, or its owner is let go, when the simulator and everyone who holds
// a view of it have let go.
#pragma once

#include <stdint.h>

#include <atomic>

#include "doorstep.h"
#include "runtime/foreign_owner.h"
#include "runtime/reference.h"

namespace doorstep {

// Bytes of some memories, as long as they are there.
struct ByteCount : RefCounted {
    std::atomic<int64_t> bytes{0};
};

class Memory : public RefCounted {
public:
    virtual ~Memory();

    char* data() const { return data_; }  // an address of the device
    int64_t bytes() const { return bytes_; }
    int32_t device_kind() const { return device_kind_; }  // CPU or CUDA
    int32_t device_index() const { return device_index_; }
    bool contains(const void* start, int64_t bytes) const;
    bool overlaps(const void* start, int64_t bytes) const;

    // The owner of the caller's memory is let go with this.
    void take_over(ForeignOwner owner) { owner_ = owner; }

    // Its bytes are added until it goes.
    void count_in(Ref<ByteCount> count);

    // Copy bytes of this memory to or from the host, after everything that was begun on the simulator; they return
    // when the copy is done.
    virtual ds_status read(const void* start, int64_t bytes, void* host) = 0;
    virtual ds_status write(void* start, int64_t bytes, const void* host) = 0;

    // What is begun on a CUDA stream from now on comes after everything that was begun on the simulator.
    virtual ds_status order(uint64_t stream) = 0;

protected:
    Memory(char* data, int64_t bytes, int32_t device_kind, int32_t device_index);
    // For memory that may still be in use: its owner is never let go.
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
