// The threads of a CUDA block as a crew; see policy/block_loop.h.
#pragma once

#include "policy/block_loop.h"

namespace doorstep {

alignas(16) extern __shared__ float shared_memory[];

struct CudaCrew {
    static constexpr bool kCallsHost = false;
    template <class Value>
    struct PerThread {
        DS_METHOD explicit PerThread(const CudaCrew&) {}
        DS_METHOD Value& operator[](Part) { return value; }
        Value value;
    };

    DS_METHOD int64_t index() const { return blockIdx.x; }
    DS_METHOD int64_t count() const { return gridDim.x; }
    DS_METHOD float* shared() const { return shared_memory; }
    template <class Stage>
    DS_METHOD void each(const Stage& stage) const {
        stage(Part{static_cast<int>(threadIdx.x), kActThreads});
        __syncthreads();
    }
    DS_METHOD void add(unsigned long long* sum, unsigned long long more) const { atomicAdd(sum, more); }
};

}  // namespace doorstep
