// The one block of memory behind a simulator: worlds, tensors and tables, on whatever device. It is taken once, and
// given back when the simulator and everyone who holds a view of it have let go.
#pragma once

#include <stdint.h>

#include "doorstep.h"
#include "runtime/reference.h"

namespace doorstep {

class Memory : public RefCounted {
public:
    virtual ~Memory();

    char* data() const { return data_; }  // an address of the device
    int64_t bytes() const { return bytes_; }
    int32_t device_kind() const { return device_kind_; }  // CPU or CUDA
    int32_t device_index() const { return device_index_; }
    bool contains(const void* start, int64_t bytes) const;

    // Copy bytes of this memory to or from the host, after everything that was begun on the simulator; they return
    // when the copy is done.
    virtual ds_status read(const void* start, int64_t bytes, void* host) = 0;
    virtual ds_status write(void* start, int64_t bytes, const void* host) = 0;

    // What is begun on a CUDA stream from now on comes after everything that was begun on the simulator.
    virtual ds_status order(uint64_t stream) = 0;

protected:
    Memory(char* data, int64_t bytes, int32_t device_kind, int32_t device_index);

private:
    char* data_;
    int64_t bytes_;
    int32_t device_kind_;
    int32_t device_index_;
};

}  // namespace doorstep
