// Interpreting the embedded PTX of the policies' kernel on the host gives the bytes of the CPU; that of
// DS_PRECISION_BFLOAT16 gives what it should of rounded numbers.
#include <algorithm>
#include <numeric>

#include "embedded.h"
#include "machine.h"
#include "policy_calls.h"
#include "rounded_products.h"

namespace {

using namespace doorstep;

void run_act_interpreted(const ActArguments& arguments, uint32_t grid, uint32_t shared_bytes, const char* way) {
    static const ptx::Program exact = ptx::read_embedded(kPoliciesModule);
    static const ptx::Program bf16 = ptx::read_embedded(kBf16PoliciesModule);
    const bool rounds = arguments.network.precision == DS_PRECISION_BFLOAT16;
    const ptx::Program& program = rounds ? bf16 : exact;
    std::vector<uint32_t> order(kActThreads);
    std::iota(order.begin(), order.end(), 0u);
    if (way[0] == 'b') std::reverse(order.begin(), order.end());
    const ptx::Function& kernel = program.kernel(rounds ? kActBf16Kernel : kActKernel);
    ptx::launch(program, kernel, {grid, kActThreads, shared_bytes, &arguments}, order);
}

LAW(the_ptx_of_the_policies_gives_the_bytes_of_the_cpu) {
    check_acting(run_act_interpreted, 2, "forwards", 70, false);
    check_acting(run_act_interpreted, 1, "backwards", 50, true);
}

LAW(products_of_bf16_are_those_of_rounded_numbers) { check_products_are_rounded(run_act_interpreted, 5); }

LAW(networks_of_bf16_are_near_the_exact_ones) { check_rounded_networks(run_act_interpreted, 1, "backwards", 25); }

}  // namespace
