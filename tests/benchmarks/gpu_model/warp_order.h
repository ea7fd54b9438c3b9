// When a warp executes its instructions if nothing else runs on the multiprocessor. The compiler's order is between two:
// that of the PTX, and the best within each basic block.
#pragma once

#include <stdint.h>

#include <vector>

#include "program.h"

namespace gpu_model {

enum Order { kStrict, kFree, kOrders };

// An instruction: the machine instructions that it becomes, and the cycles until its result can be used.
struct Issue {
    uint32_t slots, latency;
    const size_t* sources;  // registers of the warp
    int source_count;
    const size_t* results;
    int result_count;
    bool ends_block;  // of the program's basic blocks
};

class WarpOrder {
public:
    explicit WarpOrder(Order order) : order_(order) {}

    // Cycles since the kernel began.
    uint64_t now() const { return now_; }
    void wait_until(uint64_t cycle) { now_ = cycle; }

    void issue(const Issue& issue);
    // All that was issued has begun.
    void end_block();

private:
    uint64_t& ready(size_t place);

    const Order order_;
    uint64_t now_ = 0;                // kFree: when the basic block began
    uint64_t slots_ = 0, latest_ = 0;  // kFree, of the basic block: slots; when the last store or branch begins
    std::vector<uint64_t> ready_;     // when each register of the warp can be used
};

}  // namespace gpu_model
