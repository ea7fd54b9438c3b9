// The kernels of the CUDA executor, compiled for the host, give the bytes of the CPU executor, for any order of a
// block's threads and any number of blocks.
#include <string.h>

#include "emulation.h"
#include "kernel_batches.h"

namespace {

using namespace doorstep;

void run_emulated(WorldKind kind, KernelId kernel, const KernelArguments& arguments, uint32_t grid, const char* way) {
    const ThreadOrder order = strcmp(way, "forwards") == 0    ? ThreadOrder::kForwards
                              : strcmp(way, "backwards") == 0 ? ThreadOrder::kBackwards
                                                              : ThreadOrder::kShuffled;
    const uint32_t threads = static_cast<uint32_t>(find_kernel_shape(kind).threads);
    find_emulated_kernel(number_of(kind), kKernelNames[kernel])(arguments, grid, threads, order);
}

constexpr KernelLaunch kLaunches[] = {{run_emulated, 5, "forwards"},
                                      {run_emulated, 5, "backwards"},
                                      {run_emulated, 1, "shuffled"},
                                      {run_emulated, 4, "shuffled"},
                                      {run_emulated, 9, "shuffled", 5},
                                      {run_emulated, 75, "forwards", 1}};

void expect_bytes_of_the_cpu(bool plays_levels) {
    for (int num_agents : {1, 2, 3, 5, 8})
        for (const KernelLaunch& launch : kLaunches) {
            KernelBatches batches({num_agents, plays_levels}, 75, launch);  // not a multiple of any tile
            batches.create();
            for (int step = 0; step < 60; step++) {
                batches.step(step);
                if (step == 10) batches.edit_and_refresh();
                if (step == 20) batches.reset_some();
                if (step == 30) batches.begin_some();
            }
        }
}

void kernels_give_the_bytes_of_the_cpu() { expect_bytes_of_the_cpu(false); }
void kernels_of_levels_give_the_bytes_of_the_cpu() { expect_bytes_of_the_cpu(true); }

void a_side_at_no_distance_is_seen_as_on_the_cpu() {
    for (const bool plays_levels : {false, true}) {
        KernelBatches batches({2, plays_levels}, 48, {run_emulated, 2, "forwards"});
        batches.create();
        batches.stand_at_corners_and_refresh();
        batches.step(0);
    }
}

void expect_division(int64_t num_worlds, int64_t scratch_bytes, int64_t blocks, int32_t tile_worlds) {
    constexpr int64_t kResident = 100;
    const KernelShape shape{16, 64, 0, 1000};
    const TileDivision division = divide_into_tiles(shape, num_worlds, kResident, scratch_bytes);
    CHECK_EQUAL(division.blocks, blocks);
    CHECK_EQUAL(division.tile_worlds, tile_worlds);
    CHECK(division.blocks * workspace_bytes(shape, division.tile_worlds) <= scratch_bytes);
}

void few_worlds_are_divided_among_the_blocks_that_run_at_once() {
    expect_division(1, INT64_MAX, 1, 1);
    expect_division(100, INT64_MAX, 100, 1);
    expect_division(101, INT64_MAX, 51, 2);
    expect_division(1000, INT64_MAX, 100, 10);
    expect_division(1600, INT64_MAX, 100, 16);
    expect_division(1000000, INT64_MAX, 100, 16);
}

void scratch_memory_limits_blocks_and_tiles() {
    expect_division(1600, 800000, 100, 16);
    expect_division(1600, 799999, 99, 16);
    expect_division(1600, 8000, 1, 16);
    expect_division(1600, 7999, 1, 7);
    expect_division(1600, 1000, 1, 1);
    expect_division(50, 20500, 20, 1);
}

void a_kernel_is_known_by_its_kind_of_worlds_and_its_name() {
    CHECK(find_emulated_kernel(1, "doorstep_step") != nullptr);
    CHECK(find_emulated_kernel(2, "doorstep_step") != find_emulated_kernel(1, "doorstep_step"));
    CHECK(find_emulated_kernel(2, "doorstep_fly") == nullptr);
    CHECK(find_emulated_kernel(0, "doorstep_step") == nullptr);
    CHECK(find_emulated_kernel(7, "doorstep_step") == nullptr);
}

}  // namespace

int main() {
    RUN(kernels_give_the_bytes_of_the_cpu);
    RUN(kernels_of_levels_give_the_bytes_of_the_cpu);
    RUN(a_side_at_no_distance_is_seen_as_on_the_cpu);
    RUN(few_worlds_are_divided_among_the_blocks_that_run_at_once);
    RUN(scratch_memory_limits_blocks_and_tiles);
    RUN(a_kernel_is_known_by_its_kind_of_worlds_and_its_name);
}
