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
    find_emulated_kernel(kind, kKernelNames[kernel])(arguments, grid, threads, order);
}

constexpr KernelLaunch kLaunches[] = {{run_emulated, 5, "forwards"},
                                      {run_emulated, 5, "backwards"},
                                      {run_emulated, 1, "shuffled"},
                                      {run_emulated, 4, "shuffled"}};

void expect_bytes_of_the_cpu(bool plays_levels) {
    for (int num_agents : kEmulatedAgents)
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

void a_kernel_is_known_by_its_kind_of_worlds_and_its_name() {
    CHECK(find_emulated_kernel({1, false}, "doorstep_step") != nullptr);
    CHECK(find_emulated_kernel({2, false}, "doorstep_step") != find_emulated_kernel({1, false}, "doorstep_step"));
    CHECK(find_emulated_kernel({2, false}, "doorstep_step") != find_emulated_kernel({2, true}, "doorstep_step"));
    CHECK(find_emulated_kernel({2, false}, "doorstep_fly") == nullptr);
    CHECK(find_emulated_kernel({0, false}, "doorstep_step") == nullptr);
    CHECK(find_emulated_kernel({9, false}, "doorstep_step") == nullptr);
}

}  // namespace

int main() {
    RUN(kernels_give_the_bytes_of_the_cpu);
    RUN(kernels_of_levels_give_the_bytes_of_the_cpu);
    RUN(a_kernel_is_known_by_its_kind_of_worlds_and_its_name);
}
