// The model of a GPU on programs whose costs can be counted by hand.
#include "check.h"
#include "device.h"

namespace {

using namespace gpu_model;

constexpr size_t kLines = 8;  // of the cache

// Runs the only kernel of the text with one warp, and returns its only interval.
Cost cost_of(const char* text) {
    const ptx::Program program = ptx::read_program(text);
    TileCosts costs(kLines);
    ptx::launch_in_warps(program, program.functions.back(), {1, ptx::kWarp, 32 * 128, nullptr}, costs);
    CHECK_EQUAL(costs.tiles.size(), 1);
    CHECK_EQUAL(costs.tiles[0].size(), 1);
    return costs.tiles[0][0];
}

// Comments: when the instruction is issued in the program's order, and the lanes that execute it.
LAW(lanes_that_part_at_a_branch_meet_again) {
    const Cost cost = cost_of(R"(
.visible .entry parting(
)
{
.reg .pred %p<2>;
.reg .b32 %r<4>;
mov.u32 %r1, %tid.x;        // no machine instruction
setp.lt.u32 %p1, %r1, 8;    // 0: 32
@%p1 bra $few;              // 4: 32
add.s32 %r2, %r1, 1;        // 5: 24
add.s32 %r2, %r2, 1;        // 9: 24
bra.uni $end;               // 10: 24
$few:
add.s32 %r2, %r1, 3;        // 11: 8
$end:
add.s32 %r3, %r2, 1;        // 15: 32
ret;                        // 16: 32
})");
    CHECK_EQUAL(cost.slots, 8);
    CHECK_EQUAL(cost.lane_slots, 4 * 32 + 3 * 24 + 8);
    CHECK_EQUAL(cost.cycles[kStrict], 17);
    CHECK(cost.cycles[kFree] >= 8 && cost.cycles[kFree] < 17);
}

LAW(what_does_not_fit_the_device_takes_another_round) {
    Cost tile;
    tile.slots = 10;
    tile.cycles[kStrict] = 1e6;
    const BlockNeeds needs{64, 26000, 96};
    const auto seconds = [&](int64_t tiles) { return seconds_for(tiles, {tile}, needs, kStrict, 1e9, kDevices[0]); };
    CHECK_NEAR(seconds(1), 1e-3, 1e-5);
    CHECK_NEAR(seconds(8 * kMultiprocessors), 1e-3, 1e-5);
    CHECK_NEAR(seconds(8 * kMultiprocessors + 1), 2e-3, 1e-5);
    tile.l2_bytes = 1e10;  // more than all else
    CHECK_NEAR(seconds(1), 1e10 / kDevices[0].bytes_per_second, 1e-9);
}

}  // namespace
