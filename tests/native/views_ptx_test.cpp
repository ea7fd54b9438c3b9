// Interpreting the embedded PTX of the kernels that draw views on the host gives the bytes of the CPU.
#include <algorithm>
#include <numeric>

#include "embedded.h"
#include "machine.h"
#include "render/raycast/block_views.h"
#include "view_calls.h"

namespace {

using namespace doorstep;

void draw_interpreted(const ViewsCall& call, uint32_t grid, bool backwards) {
    static const ptx::Program program = ptx::read_embedded(kViewsModule);
    std::vector<uint32_t> order(kViewThreads);
    std::iota(order.begin(), order.end(), 0u);
    if (backwards) std::reverse(order.begin(), order.end());
    const ViewKernel kernel = find_view_kernel(call.views.fields);
    ptx::launch(program, program.kernel(kernel.name),
                {grid, kViewThreads, kernel.block_bytes, &call}, order);
}

void check(int num_agents, int num_worlds, int width, int height, uint32_t grid, bool backwards,
           LevelSlots slots = kReferenceSlots) {
    const LevelWorlds worlds(num_agents, num_worlds, 60 + static_cast<uint64_t>(num_agents), slots);
    const CameraRig rig = rig_of(width, height, 1.f);
    ViewPixels expected(worlds, rig), interpreted(worlds, rig);
    draw_narrow(expected.call);
    draw_interpreted(interpreted.call, grid, backwards);
    CHECK(interpreted == expected);
}

void the_ptx_gives_the_bytes_of_the_cpu() {
    check(2, 6, 24, 16, 3, false);
    check(2, 12, 13, 9, 50, true);
}

void the_ptx_gives_the_bytes_of_the_cpu_for_one_agent_and_eight() {
    check(1, 3, 20, 12, 1, true);
    check(8, 2, 17, 11, 5, false);
}

void the_ptx_gives_the_bytes_of_the_cpu_for_as_many_objects_as_there_are() {
    check(2, 3, 24, 16, 4, false, kMostSlots);
    check(8, 1, 24, 26, 3, true, kMostSlots);
}

}  // namespace

int main() {
    RUN(the_ptx_gives_the_bytes_of_the_cpu);
    RUN(the_ptx_gives_the_bytes_of_the_cpu_for_one_agent_and_eight);
    RUN(the_ptx_gives_the_bytes_of_the_cpu_for_as_many_objects_as_there_are);
}
