// The kernel of policies, compiled for the host, gives the bytes of the CPU, for any order of a block's threads and any
// number of blocks.
#include "policy_calls.h"
#include "policy_emulation.h"

namespace {

using namespace doorstep;

void run_emulated(const ActArguments& arguments, uint32_t grid, uint32_t shared_bytes, const char* way) {
    emulate_act(arguments, grid, shared_bytes,
                way[0] == 'f'   ? ThreadOrder::kForwards
                : way[0] == 'b' ? ThreadOrder::kBackwards
                                : ThreadOrder::kShuffled);
}

void the_kernel_gives_the_bytes_of_the_cpu() {
    for (const char* way : {"forwards", "backwards", "shuffled"})
        for (const int64_t count : {1, 31, 32, 150}) check_acting(run_emulated, 3, way, count, false);
}

void any_grid_and_list_of_rows_gives_the_bytes_of_the_cpu() {
    for (const uint32_t grid : {1u, 2u, 7u}) check_acting(run_emulated, grid, "shuffled", 211, true);
}

}  // namespace

int main() {
    RUN(the_kernel_gives_the_bytes_of_the_cpu);
    RUN(any_grid_and_list_of_rows_gives_the_bytes_of_the_cpu);
}
