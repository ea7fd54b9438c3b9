// Interpreting the embedded PTX of the policies' kernel on the host gives the bytes of the CPU.
#include <algorithm>
#include <numeric>

#include "embedded.h"
#include "machine.h"
#include "policy_calls.h"

namespace {

using namespace doorstep;

void run_act_interpreted(const ActArguments& arguments, uint32_t grid, uint32_t shared_bytes, const char* way) {
    static const ptx::Program program = ptx::read_embedded(kPoliciesModule);
    std::vector<uint32_t> order(kActThreads);
    std::iota(order.begin(), order.end(), 0u);
    if (way[0] == 'b') std::reverse(order.begin(), order.end());
    ptx::launch(program, program.kernel(kActKernel), {grid, kActThreads, shared_bytes, &arguments}, order);
}

void the_ptx_of_the_policies_gives_the_bytes_of_the_cpu() {
    check_acting(run_act_interpreted, 2, "forwards", 70, false);
    check_acting(run_act_interpreted, 1, "backwards", 50, true);
}

}  // namespace

int main() { RUN(the_ptx_of_the_policies_gives_the_bytes_of_the_cpu); }
