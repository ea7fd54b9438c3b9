// The kernels of the CUDA executor give the bytes of the CPU executor: run on the host, whatever the order of a block's
// threads and the number of blocks.
#include <string.h>

#include <vector>

#include "check.h"
#include "draws.h"
#include "emulation.h"
#include "exec/cpu/float_environment.h"
#include "exec/tensor_table.h"

namespace {

using namespace doorstep;

constexpr int kWorlds = 75;  // no multiple of any tile
constexpr int kSteps = 60;
constexpr int32_t kEpisodeLength = 25;
constexpr uint32_t kSeed = 23, kWorldOffset = 1000;

struct Launch {
    uint32_t grid;
    ThreadOrder order;
};
constexpr Launch kLaunches[] = {
    {3, ThreadOrder::kForwards}, {3, ThreadOrder::kBackwards}, {1, ThreadOrder::kShuffled}, {4, ThreadOrder::kShuffled}};

// Worlds and tensors, stepped by the CPU executor or by kernels.
struct Batch {
    std::vector<char> blocks;
    std::vector<std::vector<uint8_t>> tensors;
    Simulation simulation;
};

void allocate(Batch& batch, const WorldModel& model) {
    // The CPU executor wants no alignment of its own; kernels copy 16 bytes at a time
    batch.blocks.resize(model.world_bytes * kWorlds + 64);
    char* aligned = batch.blocks.data() + (64 - reinterpret_cast<uintptr_t>(batch.blocks.data()) % 64);
    TensorPointers pointers;
    const Dimensions dimensions{kWorlds, model.num_agents, model.flat_observation_size};
    for (const TensorRow& row : kTensorRows) {
        ds_tensor_info info;
        describe_tensor(row, dimensions, &info);
        batch.tensors.emplace_back(static_cast<size_t>(tensor_bytes(info)));
    }
#define DS_POINT(name, dtype, shape, access, sentence) \
    pointers.name = reinterpret_cast<decltype(pointers.name)>(batch.tensors[DS_TENSOR_##name].data());
    DS_TENSOR_TABLE(DS_POINT)
#undef DS_POINT
    batch.simulation = {aligned, pointers, kEpisodeLength, 1, DS_ACTION_CHECK_CLAMP, 0};
}

void expect_equal(const Batch& expected, const Batch& batch, const WorldModel& model, const Launch& launch,
                  const char* after, int step) {
    const size_t bytes = model.world_bytes * kWorlds;
    bool equal = memcmp(expected.simulation.worlds, batch.simulation.worlds, bytes) == 0;
    const char* what = "worlds";
    for (size_t i = 0; i < DS_TENSOR_COUNT && equal; i++) {
        equal = expected.tensors[i] == batch.tensors[i];
        what = kTensorRows[i].name;
    }
    if (equal) return;
    fprintf(stderr, "%d agents, grid of %u, order %d: %s differ after %s %d\n", model.num_agents, launch.grid,
            static_cast<int>(launch.order), what, after, step);
    abort();
}

// The kernels of a number of agents, with what they are launched with.
struct Device {
    int num_agents;
    Launch launch;
    const FlightTable* flights;

    uint32_t run(KernelId kernel, const Batch& batch, const uint8_t* mask) {
        const KernelShape& shape = find_kernel_shape(num_agents);
        std::vector<uint64_t> space(static_cast<size_t>(shape.workspace_bytes_per_block) * launch.grid / 8 + 1);
        uint32_t trouble[kTroubleKinds] = {};
        const KernelArguments arguments{batch.simulation, flights,      space.data(), trouble, mask,
                                        kWorlds,          kWorldOffset, kSeed,        0};
        find_emulated_kernel(num_agents, kKernelNames[kernel])(arguments, launch.grid,
                                                               static_cast<uint32_t>(shape.threads), launch.order);
        uint32_t bits = 0;
        for (int kind = 0; kind < kTroubleKinds; kind++) bits |= trouble[kind] << kind;
        return bits;
    }
};

// Legal actions, sometimes others, and a few manual resets.
void write_actions(Batch& batch, int num_agents, int step) {
    Draws draws{kSeed + 1000003u * static_cast<uint64_t>(step)};
    int32_t* row = batch.simulation.tensors.actions;
    for (int slot = 0; slot < kWorlds * num_agents; slot++, row += 4) {
        row[0] = static_cast<int32_t>(draws.below(draws.below(30) == 0 ? 9 : 4));
        row[1] = static_cast<int32_t>(draws.below(8));
        row[2] = static_cast<int32_t>(draws.below(5));
        row[3] = draws.below(8) == 0;
    }
    for (int i = 0; i < kWorlds; i++) batch.simulation.tensors.resets[i] = draws.below(100) == 0;
}

// Puts the first agent of some worlds beside a cube, one of them with a speed that is not finite.
void edit_worlds(Batch& batch, const WorldModel& model) {
    const auto element = [&](int field, int64_t world, int64_t item, int64_t coordinate) -> float& {
        const StateField& row = model.state_fields[field];
        return *reinterpret_cast<float*>(static_cast<char*>(batch.simulation.worlds) +
                                         world * static_cast<int64_t>(model.world_bytes) + row.offset +
                                         item * row.strides[0] + coordinate * row.strides[1]);
    };
    for (int64_t world = 0; world < kWorlds; world += 3) {
        const int64_t cube = model.num_agents + world % 5;
        for (int64_t k = 0; k < 2; k++)
            element(DS_STATE_body_positions, world, 0, k) =
                element(DS_STATE_body_positions, world, cube, k) - (k == 1 ? 2.4f : 0.2f);
    }
    element(DS_STATE_body_linear_velocities, 7, 0, 0) = __builtin_nanf("");
    batch.simulation.look_for_edits = 1;
}

void step_together(int num_agents, const Launch& launch) {
    const DefaultFloatEnvironment environment;
    const WorldModel& model = find_world_model(num_agents);
    FlightTable flights;
    make_flight_table(flights);
    Device device{num_agents, launch, &flights};
    Batch expected, batch;
    allocate(expected, model);
    allocate(batch, model);

    model.create(expected.simulation, 0, kWorlds, kSeed, kWorldOffset);
    CHECK_EQUAL(device.run(kKernel_create, batch, nullptr), 0u);
    expect_equal(expected, batch, model, launch, "creation", 0);

    std::vector<uint8_t> mask(kWorlds);
    for (int step = 0; step < kSteps; step++) {
        write_actions(expected, num_agents, step);
        write_actions(batch, num_agents, step);
        CHECK_EQUAL(device.run(kKernel_step, batch, nullptr), model.step(expected.simulation, 0, kWorlds, nullptr));
        expect_equal(expected, batch, model, launch, "step", step);
        if (step == 10) {
            edit_worlds(expected, model);
            edit_worlds(batch, model);
            for (size_t i = 0; i < kWorlds; i++) mask[i] = 1;
            const uint32_t trouble = model.refresh(expected.simulation, 0, kWorlds);
            CHECK_EQUAL(trouble, static_cast<uint32_t>(kTroubleNonfinite));
            CHECK_EQUAL(device.run(kKernel_refresh, batch, mask.data()), trouble);
            expect_equal(expected, batch, model, launch, "refresh", step);
        }
        if (step == 20) {
            for (size_t i = 0; i < kWorlds; i++) mask[i] = i % 4 == 1;
            model.reset(expected.simulation, 0, kWorlds, mask.data());
            device.run(kKernel_reset, batch, mask.data());
            expect_equal(expected, batch, model, launch, "reset", step);
        }
    }
}

void kernels_give_the_bytes_of_the_cpu() {
    for (int num_agents = 1; num_agents <= DS_MAX_AGENTS; num_agents++)
        for (const Launch& launch : kLaunches) step_together(num_agents, launch);
}

void a_kernel_is_known_by_its_number_of_agents_and_its_name() {
    CHECK(find_emulated_kernel(1, "doorstep_step") != nullptr);
    CHECK(find_emulated_kernel(2, "doorstep_step") != find_emulated_kernel(1, "doorstep_step"));
    CHECK(find_emulated_kernel(2, "doorstep_fly") == nullptr);
    CHECK(find_emulated_kernel(0, "doorstep_step") == nullptr);
    CHECK(find_emulated_kernel(9, "doorstep_step") == nullptr);
}

}  // namespace

int main() {
    RUN(kernels_give_the_bytes_of_the_cpu);
    RUN(a_kernel_is_known_by_its_number_of_agents_and_its_name);
}
