// Interpreting the embedded PTX, from which machine code for every GPU is compiled, on the host gives the bytes of the
// CPU executor.
#include <map>

#include "embedded.h"
#include "kernel_batches.h"
#include "machine.h"
#include "render/raycast/block_views.h"
#include "training_calls.h"
#include "view_calls.h"

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
    ptx::launch(program_for(kind), kKernelNames[kernel],
                {grid, static_cast<uint32_t>(shape.threads), shape.shared_bytes, &arguments}, way[0] == 'b');
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

LAW(the_ptx_for_any_number_of_agents_gives_the_bytes_of_the_cpu) {
    step_with({2, false}, 37, 30, {run_interpreted, 2, "forwards"});
    step_with({2, false}, 37, 15, {run_interpreted, 3, "backwards"});
    for (int agents : {1, 3, 6, 8}) step_with({agents, false}, 19, 12, {run_interpreted, 2, "backwards"});
    for (int agents : {1, 2, 8}) step_with({agents, true}, 19, 12, {run_interpreted, 2, "backwards"});
}

LAW(the_ptx_sees_a_side_at_no_distance_as_the_cpu_does) {
    for (const bool plays_levels : {false, true}) {
        KernelBatches batches({2, plays_levels}, 48, {run_interpreted, 2, "forwards"});
        batches.create();
        batches.stand_at_corners_and_refresh();
        batches.step(0);
    }
}

void run_training_interpreted(const char* kernel, const void* call, uint32_t grid, int) {
    static const ptx::Program program = ptx::read_embedded(kTrainingModule);
    ptx::launch(program, kernel, {grid, kTrainingThreads, 0, call});
}

LAW(the_ptx_of_the_training_kernels_gives_the_bytes_of_the_cpu) {
    for (int64_t items : {1, 65, 200}) {
        check_training<float>({run_training_interpreted, 2, 0}, items);
        check_training<double>({run_training_interpreted, 2, 0}, items);
    }
}

void draw_interpreted(const ViewsCall& call, uint32_t grid, bool backwards) {
    static const ptx::Program program = ptx::read_embedded(kViewsModule);
    const ViewKernel kernel = find_view_kernel(call.views.fields);
    ptx::launch(program, kernel.name, {grid, kViewThreads, kernel.block_bytes, &call}, backwards);
}

void check_views(int num_agents, int num_worlds, int width, int height, uint32_t grid, bool backwards,
           LevelSlots slots = kReferenceSlots) {
    const LevelWorlds worlds(num_agents, num_worlds, 60 + static_cast<uint64_t>(num_agents), slots);
    const CameraRig rig = rig_of(width, height, 1.f);
    ViewPixels expected(worlds, rig), interpreted(worlds, rig);
    draw_narrow(expected.call);
    draw_interpreted(interpreted.call, grid, backwards);
    CHECK(interpreted == expected);
}

LAW(the_ptx_draws_views_of_any_number_of_agents_and_objects_as_the_cpu) {
    check_views(2, 6, 24, 16, 3, false);
    check_views(2, 12, 13, 9, 50, true);
    check_views(1, 3, 20, 12, 1, true);
    check_views(8, 2, 17, 11, 5, false);
    check_views(2, 3, 24, 16, 4, false, kMostSlots);
    check_views(8, 1, 24, 26, 3, true, kMostSlots);
}

// Other damage than a missing end gives an error or other bytes, and no access beyond the stream, which a sanitizer
// detects.
LAW(kernels_that_are_damaged_are_an_error) {
    const KernelImage whole = *find_ptx(2);
    for (size_t left = 0; left < 1000; left += 9) {
        const std::vector<unsigned char> cut(whole.stream, whole.stream + left);
        CHECK(!unpack_image({2, 0, cut.data(), left, whole.offset, whole.bytes}).data);
        auto error = sized<ds_error>();
        CHECK_EQUAL(ds_last_error(&error), DS_STATUS_OK);
        CHECK_EQUAL(error.status, DS_STATUS_INTERNAL);
    }
    for (size_t bit = 0; bit < 8 * 1000; bit += 37) {
        std::vector<unsigned char> changed(whole.stream, whole.stream + 1000);
        changed[bit / 8] ^= static_cast<unsigned char>(1 << bit % 8);
        unpack_image({2, 0, changed.data(), changed.size(), 0, 100'000});
    }
}

}  // namespace
