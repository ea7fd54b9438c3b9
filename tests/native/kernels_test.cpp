// The kernels of the CUDA executor, compiled for the host, give the bytes of the CPU executor, for any order of a
// block's threads and any number of blocks.
#include "emulation.h"
#include "kernel_batches.h"

namespace {

using namespace doorstep;

void run_emulated(WorldKind kind, KernelId kernel, const KernelArguments& arguments, uint32_t grid, const char* way) {
    const ThreadOrder order = way[0] == 'f' ? ThreadOrder::kForwards : way[0] == 'b' ? ThreadOrder::kBackwards
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

LAW(kernels_give_the_bytes_of_the_cpu_with_and_without_levels) {
    for (int num_agents : {1, 2, 3, 5, 8})
        for (int variant = 0; variant < 12; variant++) {
            const KernelLaunch& launch = kLaunches[variant / 2];
            KernelBatches batches({num_agents, variant % 2 != 0}, 75, launch);  // not a multiple of any tile
            batches.create();
            for (int step = 0; step < 35; step++) {
                batches.step(step);
                if (step == 10) batches.edit_and_refresh();
                if (step == 20) batches.reset_some();
                if (step == 30) batches.begin_some();
            }
        }
}

LAW(a_side_at_no_distance_is_seen_as_on_the_cpu) {
    for (const bool plays_levels : {false, true}) {
        KernelBatches batches({2, plays_levels}, 48, {run_emulated, 2, "forwards"});
        batches.create();
        batches.stand_at_corners_and_refresh();
        batches.step(0);
    }
}

// Few worlds among the blocks that run at once; and limits of blocks and tiles by scratch memory.
LAW(worlds_are_divided_among_blocks_as_scratch_memory_allows) {
    constexpr int64_t kResident = 100, kAny = INT64_MAX;
    const struct {
        int64_t worlds, scratch, blocks, tile;
    } rows[] = {{1, kAny, 1, 1},          {100, kAny, 100, 1},      {101, kAny, 51, 2},     {1000, kAny, 100, 10},
                {1600, kAny, 100, 16},    {1000000, kAny, 100, 16}, {1600, 800000, 100, 16}, {1600, 799999, 99, 16},
                {1600, 8000, 1, 16},      {1600, 7999, 1, 7},       {1600, 1000, 1, 1},     {50, 20500, 20, 1}};
    for (const auto& [worlds, scratch, blocks, tile] : rows) {
        const KernelShape shape{16, 64, 0, 1000};
        const TileDivision division = divide_into_tiles(shape, worlds, kResident, scratch);
        CHECK_EQUAL(division.blocks, blocks);
        CHECK_EQUAL(division.tile_worlds, tile);
        CHECK(division.blocks * workspace_bytes(shape, division.tile_worlds) <= scratch);
    }
}

}  // namespace
