// Calls of several policies on the CPU as one, whose rows are divided over threads together: policies with few rows
// each cost one wake-up of the threads for all of them, and share these evenly.
#pragma once

#include "exec/simulator.h"
#include "policy/policy.h"

namespace doorstep {

struct PolicyCall {
    int64_t index;       // of the caller's own
    const Policy* policy;
    ActCall call;        // with num_rows, at least 1
    int64_t first_tile;  // of all tiles; written by act_together()
};

// Acts for calls with distinct rows, on the simulator's threads. scratch: scratch_bytes for each of them, enough for
// every policy. Returns trouble bits.
uint32_t act_together(Simulator& simulator, PolicyCall* calls, int64_t count, char* scratch, int64_t scratch_bytes);

}  // namespace doorstep
