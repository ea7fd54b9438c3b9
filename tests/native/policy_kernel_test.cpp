// The kernel of policies, compiled for the host, gives the bytes of the CPU, for any order of a block's threads and any
// number of blocks; that of DS_PRECISION_BFLOAT16 gives what it should of rounded numbers.
#include "policy_calls.h"
#include "emulation.h"
#include "rounded_products.h"

namespace {

using namespace doorstep;

void run_emulated(const ActArguments& arguments, uint32_t grid, uint32_t shared_bytes, const char* way) {
    const bool backwards = way[0] == 'b';
    const ThreadOrder order = backwards ? ThreadOrder::kBackwards : ThreadOrder::kShuffled;
    emulate_act(arguments, grid, shared_bytes, way[0] == 'f' ? ThreadOrder::kForwards : order);
}

LAW(the_kernel_gives_the_bytes_of_the_cpu) {
    for (const char* way : {"forwards", "backwards", "shuffled"})
        for (const int64_t count : {1, 31, 32, 150}) check_acting(run_emulated, 3, way, count, false);
}

LAW(any_grid_and_list_of_rows_gives_the_bytes_of_the_cpu) {
    for (const uint32_t grid : {1u, 2u, 7u}) check_acting(run_emulated, grid, "shuffled", 211, true);
}

LAW(products_of_bf16_are_those_of_rounded_numbers) { check_products_are_rounded(run_emulated, 1); }

LAW(networks_of_bf16_are_near_the_exact_ones) { check_rounded_networks(run_emulated, 3, "shuffled", 70); }

}  // namespace
