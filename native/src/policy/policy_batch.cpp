#include "policy/policy_batch.h"

#include <algorithm>

namespace doorstep {
namespace {

struct Job {
    const PolicyCall *calls, *end;
    char* scratch;
    int64_t scratch_bytes;
    std::atomic<uint32_t> trouble{kPolicyTroubleNone};

    const PolicyCall* call_with(int64_t tile) const {
        const auto is_before = [](int64_t at, const PolicyCall& call) { return at < call.first_tile; };
        return std::upper_bound(calls, end, tile, is_before) - 1;
    }
};

int64_t tiles_of(int64_t rows) { return (rows + kTileRows - 1) / kTileRows; }

void act_on_tiles(Job& job, int64_t first, int64_t count, int32_t worker) {
    char* const scratch = job.scratch + worker * job.scratch_bytes;
    const int64_t end = first + count;
    uint32_t trouble = kPolicyTroubleNone;
    for (const PolicyCall* at = job.call_with(first); first < end; ++at) {
        const int64_t row = (first - at->first_tile) * kTileRows;
        const int64_t rows = std::min(at->call.num_rows - row, (end - first) * kTileRows);
        trouble |= at->policy->act(at->call, row, rows, scratch);
        first += tiles_of(rows);
    }
    if (trouble) job.trouble.fetch_or(trouble, std::memory_order_relaxed);
}

}  // namespace

uint32_t act_together(Simulator& simulator, PolicyCall* calls, int64_t count, char* scratch, int64_t scratch_bytes) {
    int64_t tiles = 0;
    for (int64_t i = 0; i < count; ++i) {
        DS_ASSERT(calls[i].call.num_rows > 0 && calls[i].policy->scratch_bytes() <= scratch_bytes);
        calls[i].first_tile = tiles;
        tiles += tiles_of(calls[i].call.num_rows);
    }
    Job job = {calls, calls + count, scratch, scratch_bytes};
    simulator.run_on_host(
        tiles, 1,
        [](void* context, int64_t first, int64_t number, int32_t worker) {
            act_on_tiles(*static_cast<Job*>(context), first, number, worker);
        },
        &job);
    return job.trouble.load(std::memory_order_relaxed);
}

}  // namespace doorstep
