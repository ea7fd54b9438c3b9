// Who evaluates a tile of rows: one thread on the CPU, the threads of a block on CUDA.
//
// A crew has each(stage), which calls stage(part) for the part of every thread and returns when all are done; and
// PerThread<Value>, a value of each thread between two stages. Variables set between two calls of each() are set to the
// same values by every thread. kCallsHost: it can call functions of the host.
#pragma once

#include "math/base.h"

namespace doorstep {

// The items of a thread: first, first + stride, ...
struct Part {
    int first, stride;
};

struct OneThread {
    static constexpr bool kCallsHost = true;
    template <class Stage>
    DS_METHOD void each(const Stage& stage) const {
        stage(Part{0, 1});
    }
};

}  // namespace doorstep
