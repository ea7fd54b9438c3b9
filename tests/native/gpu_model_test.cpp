// The model of a GPU on programs whose costs can be counted by hand.
#include "check.h"
#include "device.h"

namespace {

using namespace gpu_model;

constexpr size_t kLines = 8;  // of the cache

// Runs the only kernel of the text with one warp, and returns its only interval.
Cost cost_of(const char* text, const void* parameter = nullptr) {
    const ptx::Program program = ptx::read_program(text);
    TileCosts costs(kLines);
    ptx::launch_in_warps(program, program.functions.back(), {1, ptx::kWarp, 32 * 128, parameter}, costs);
    CHECK_EQUAL(costs.tiles.size(), 1);
    CHECK_EQUAL(costs.tiles[0].size(), 1);
    return costs.tiles[0][0];
}

// Comments: when the instruction is issued in the program's order, and the lanes that execute it.
void lanes_that_part_at_a_branch_meet_again() {
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

void a_loop_takes_as_long_as_the_lane_with_most_rounds() {
    const Cost cost = cost_of(R"(
.visible .entry looping(
)
{
.reg .pred %p<2>;
.reg .b32 %r<3>;
mov.u32 %r1, %tid.x;
mov.u32 %r2, 0;
$loop:
add.s32 %r2, %r2, 1;
setp.le.u32 %p1, %r2, %r1;  // lane k: k + 1 rounds
@%p1 bra $loop;
ret;
})");
    CHECK_EQUAL(cost.slots, 32 * 3 + 1);
    CHECK_EQUAL(cost.lane_slots, 3 * (32 * 33 / 2) + 32);
    CHECK_EQUAL(cost.cycles[kStrict], 32 * 9 + 1);  // a round: addition, 4 cycles later comparison, 4 later branch
}

void operands_that_are_ready_are_not_waited_for_in_free_order() {
    const Cost cost = cost_of(R"(
.visible .entry ordering(
)
{
.reg .f32 %f<7>;
mov.f32 %f1, 0f3F800000;
div.rn.f32 %f2, %f1, %f1;   // 0, 10 instructions, result at 70
add.rn.f32 %f3, %f2, %f2;   // 70
div.rn.f32 %f4, %f1, %f1;   // 71, result at 141; free: 0
add.rn.f32 %f5, %f4, %f4;   // 141
ret;                        // 142
})");
    CHECK_EQUAL(cost.slots, 23);
    CHECK_EQUAL(cost.cycles[kStrict], 143);
    CHECK_EQUAL(cost.cycles[kFree], 23);  // nothing needs the sums
}

WarpAccess access_of(uint32_t mask, uint32_t bytes, uint64_t stride) {
    WarpAccess access{mask, bytes, {}};
    for (uint64_t lane = 0; lane < 32; ++lane) access.address[lane] = 4096 + lane * stride;
    return access;
}

void lanes_that_share_a_bank_take_turns() {
    CHECK_EQUAL(shared_wavefronts(access_of(~0u, 4, 4)), 1);
    CHECK_EQUAL(shared_wavefronts(access_of(~0u, 4, 0)), 1);  // the same word
    CHECK_EQUAL(shared_wavefronts(access_of(~0u, 4, 8)), 2);
    CHECK_EQUAL(shared_wavefronts(access_of(~0u, 4, 128)), 32);
    CHECK_EQUAL(shared_wavefronts(access_of(~0u, 4, 132)), 1);  // padded
    CHECK_EQUAL(shared_wavefronts(access_of(0xFF, 4, 128)), 8);
    CHECK_EQUAL(shared_wavefronts(access_of(~0u, 16, 16)), 4);
    CHECK_EQUAL(shared_wavefronts(access_of(~0u, 1, 1)), 1);
}

void device_memory_is_accessed_by_lines() {
    CHECK_EQUAL(units_of(access_of(~0u, 4, 4), kLineBytes).size(), 1);
    CHECK_EQUAL(units_of(access_of(~0u, 16, 16), kLineBytes).size(), 4);
    CHECK_EQUAL(units_of(access_of(~0u, 4, 1472), kLineBytes).size(), 32);
    CHECK_EQUAL(units_of(access_of(3, 4, 128), kSectorBytes).size(), 2);
}

// Each lane stores to its line of shared memory, then all read one number of device memory, twice.
void latencies_are_those_of_the_memory() {
    alignas(128) const uint32_t number[32] = {7};
    const uint32_t* const parameter = number;
    const Cost cost = cost_of(R"(
.extern .shared .align 16 .b8 memory[];
.visible .entry reading(
.param .u64 reading_param_0
)
{
.reg .b32 %r<5>;
.reg .b64 %rd<5>;
ld.param.u64 %rd1, [reading_param_0];  // an operand of the machine
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd2, %r1, 128;           // 0
mov.u64 %rd3, memory;
add.s64 %rd4, %rd3, %rd2;              // 4
st.shared.u32 [%rd4], %r1;             // 8
ld.global.u32 %r2, [%rd1];             // 9, from L2
ld.global.u32 %r3, [%rd1];             // 10, from L1
add.s32 %r3, %r3, %r3;                 // 45
add.s32 %r2, %r2, %r2;                 // 269
ret;                                   // 270
})", &parameter);
    CHECK_EQUAL(cost.slots, 8);
    CHECK_EQUAL(cost.wavefronts, 32 + 2);
    CHECK_EQUAL(cost.device_bytes, 32);
    CHECK_EQUAL(cost.cycles[kStrict], 271);
}

void a_cache_forgets_what_was_not_used_for_longest() {
    LineCache cache(2);
    CHECK(!cache.touch(1));
    CHECK(!cache.touch(2));
    CHECK(cache.touch(1));
    CHECK(!cache.touch(3));
    CHECK(cache.touch(1));
    CHECK(!cache.touch(2));
}

// The limits of compute capability 9.0.
void blocks_share_a_multiprocessor() {
    CHECK_EQUAL(resident_blocks({64, 26000, 96}), 8);
    CHECK_EQUAL(resident_blocks({128, 74 << 10, 168}), 3);
    CHECK_EQUAL(resident_blocks({256, 0, 128}), 2);
    CHECK_EQUAL(resident_blocks({32, 0, 16}), 32);
}

void warps_wait_for_each_other_where_they_are_many() {
    Cost mean;
    mean.slots = 2000;  // of two warps
    const double alone = contended_cycles(mean, 5000, 1, 2);
    CHECK(alone >= 5000 && alone < 5200);
    const double many = contended_cycles(mean, 5000, 32, 2);
    CHECK(many > 32 * 2000 / 4 && many < 1.3 * 32 * 2000 / 4);
    mean.wavefronts = 4000;  // more than the schedulers' work
    CHECK_NEAR(contended_cycles(mean, 5000, 32, 2), 32 * 4000, 1000);
}

void what_does_not_fit_the_device_takes_another_round() {
    Cost tile;
    tile.slots = 10;
    tile.cycles[kStrict] = 1e6;
    const BlockNeeds needs{64, 26000, 96};
    const auto seconds = [&](int64_t tiles) { return seconds_for(tiles, {tile}, needs, kStrict, 1e9, kDevices[0]); };
    CHECK_NEAR(seconds(1), 1e-3, 1e-5);
    CHECK_NEAR(seconds(8 * kMultiprocessors), 1e-3, 1e-5);
    CHECK_NEAR(seconds(8 * kMultiprocessors + 1), 2e-3, 1e-5);
    tile.device_bytes = 1e10;  // more than all else
    CHECK_NEAR(seconds(1), 1e10 / kDevices[0].bytes_per_second, 1e-9);
}

}  // namespace

int main() {
    RUN(lanes_that_part_at_a_branch_meet_again);
    RUN(a_loop_takes_as_long_as_the_lane_with_most_rounds);
    RUN(operands_that_are_ready_are_not_waited_for_in_free_order);
    RUN(lanes_that_share_a_bank_take_turns);
    RUN(device_memory_is_accessed_by_lines);
    RUN(latencies_are_those_of_the_memory);
    RUN(a_cache_forgets_what_was_not_used_for_longest);
    RUN(blocks_share_a_multiprocessor);
    RUN(warps_wait_for_each_other_where_they_are_many);
    RUN(what_does_not_fit_the_device_takes_another_round);
}
