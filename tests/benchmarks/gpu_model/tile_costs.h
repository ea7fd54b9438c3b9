// Watches a kernel whose warps run in lockstep, and adds up what each barrier interval of its tiles costs.
#pragma once

#include <vector>

#include "warp_order.h"
#include "machine.h"
#include "wavefronts.h"

namespace gpu_model {

// Cycles from issue to use.
constexpr uint32_t kSharedLatency = 23, kL1Latency = 35, kL2Latency = 260;

struct Cost {
    double slots = 0;         // machine instructions of warps
    double lane_slots = 0;    // and of threads
    double wavefronts = 0;    // of loads and stores
    double l2_bytes = 0;    // sectors that L2 is asked for or given
    double cycles[kOrders] = {};  // from the first warp's start to the last warp's end, if the block runs alone

    void add(const Cost& other);
};

// The intervals of a block, which processes one tile.
using TileCost = std::vector<Cost>;

class TileCosts : public ptx::WarpWatcher {
public:
    // cache_lines: of L1, a block's part.
    explicit TileCosts(size_t cache_lines) : cache_(cache_lines) {}

    std::vector<TileCost> tiles;

    void begin_block(const char* shared, uint32_t shared_bytes, uint32_t threads) override;
    void execute(uint32_t warp, ptx::Thread* lane, uint32_t mask, const ptx::Instruction& instruction) override;
    void end_interval() override;

private:
    struct Warp {
        WarpOrder orders[kOrders] = {WarpOrder(kStrict), WarpOrder(kFree)};
        uint32_t mask = 0;  // of the last instruction
    };

    uint32_t access_memory(uint32_t warp, ptx::Thread* lane, uint32_t mask, const ptx::Instruction& instruction);
    uint32_t access_local(uint32_t warp, WarpAccess access, bool loads);
    uint32_t access_device(const WarpAccess& access, bool loads);

    LineCache cache_;
    std::vector<Warp> warps_;
    const char* shared_ = nullptr;
    uint32_t shared_bytes_ = 0;
    uint64_t begun_[kOrders] = {};
    Cost cost_;
};

}  // namespace gpu_model
