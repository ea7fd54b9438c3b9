// Interpreting the embedded PTX, from which machine code for every GPU is compiled, on the host gives the bytes of the
// CPU executor.
#include <algorithm>
#include <map>
#include <numeric>

#include "embedded.h"
#include "kernel_batches.h"
#include "machine.h"
#include "training_calls.h"

namespace {

using namespace doorstep;

const ptx::Program& program_for(WorldKind kind) {
    static std::map<int, ptx::Program> programs;
    const int number = number_of(kind);
    if (!programs.count(number)) programs.emplace(number, ptx::read_embedded(number));
    return programs.at(number);
}

void run_interpreted(WorldKind kind, KernelId kernel, const KernelArguments& arguments, uint32_t grid,
                     const char* way) {
    const KernelShape& shape = find_kernel_shape(kind);
    std::vector<uint32_t> order(static_cast<size_t>(shape.threads));
    std::iota(order.begin(), order.end(), 0u);
    if (way[0] == 'b') std::reverse(order.begin(), order.end());
    const ptx::Program& program = program_for(kind);
    ptx::launch(program, program.kernel(kKernelNames[kernel]),
                {grid, static_cast<uint32_t>(shape.threads), shape.shared_bytes, &arguments}, order);
}

void step_with(WorldKind kind, int num_worlds, int steps, const KernelLaunch& launch) {
    KernelBatches batches(kind, num_worlds, launch);
    batches.create();
    for (int step = 0; step < steps; step++) {
        batches.step(step);
        if (step == 3) batches.edit_and_refresh();
        if (step == 6) batches.reset_some();
    }
}

void the_ptx_for_two_agents_gives_the_bytes_of_the_cpu() {
    step_with({2, false}, 37, 60, {run_interpreted, 2, "forwards"});
    step_with({2, false}, 37, 30, {run_interpreted, 3, "backwards"});
}

void the_ptx_sees_a_side_at_no_distance_as_the_cpu_does() {
    for (const bool plays_levels : {false, true}) {
        KernelBatches batches({2, plays_levels}, 48, {run_interpreted, 2, "forwards"});
        batches.create();
        batches.stand_at_corners_and_refresh();
        batches.step(0);
    }
}

void the_ptx_for_any_number_of_agents_gives_the_bytes_of_the_cpu() {
    for (int agents = 1; agents <= DS_MAX_AGENTS; agents++)
        step_with({agents, false}, 19, 12, {run_interpreted, 2, "backwards"});
}

void the_ptx_for_levels_gives_the_bytes_of_the_cpu() {
    for (int agents : {1, 2, 8}) step_with({agents, true}, 19, 12, {run_interpreted, 2, "backwards"});
}

void run_training_interpreted(const char* kernel, const void* call, uint32_t grid, int) {
    static const ptx::Program program = ptx::read_embedded(kTrainingModule);
    std::vector<uint32_t> order(kTrainingThreads);
    std::iota(order.begin(), order.end(), 0u);
    ptx::launch(program, program.kernel(kernel), {grid, kTrainingThreads, 0, call}, order);
}

void the_ptx_of_the_training_kernels_gives_the_bytes_of_the_cpu() {
    for (int64_t items : {1, 65, 200}) {
        check_training<float>({run_training_interpreted, 2, 0}, items);
        check_training<double>({run_training_interpreted, 2, 0}, items);
    }
}

}  // namespace

int main() {
    RUN(the_ptx_for_two_agents_gives_the_bytes_of_the_cpu);
    RUN(the_ptx_sees_a_side_at_no_distance_as_the_cpu_does);
    RUN(the_ptx_for_any_number_of_agents_gives_the_bytes_of_the_cpu);
    RUN(the_ptx_for_levels_gives_the_bytes_of_the_cpu);
    RUN(the_ptx_of_the_training_kernels_gives_the_bytes_of_the_cpu);
}
