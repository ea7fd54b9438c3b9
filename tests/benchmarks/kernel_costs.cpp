// The cost of a step on a GPU, counted rather than timed: interprets the embedded PTX on the host and counts its
// instructions by stage, per world and step. Prints a Markdown table.
//
//     kernel_costs [cubes]      agents start next to cubes and are moved back when an episode ends
#include <stdio.h>
#include <string.h>

#include <numeric>
#include <vector>

#include "draws.h"
#include "embedded.h"
#include "exec/cuda/kernels.h"
#include "exec/tensors.h"
#include "machine.h"
#include "math/float_environment.h"
#include "sim/observation_layout.h"

namespace {

using namespace doorstep;

constexpr WorldKind kKind{2, /*plays_levels=*/false};
constexpr int kAgents = kKind.num_agents, kWorlds = 256, kWarmUp = 60, kMeasured = 12;

struct Worlds {
    const WorldModel& model = find_world_model(kKind, false);
    std::vector<char> blocks;
    std::vector<std::vector<uint8_t>> tensors;
    Simulation simulation{};
    FlightTable flights;

    Worlds() {
        make_flight_table(flights);
        blocks.resize(model.world_bytes * kWorlds + 64);
        simulation.flat = layout_of(kDefaultObservations, kAgents);
        const Dimensions dimensions{kWorlds, kAgents, simulation.flat.size, 0};
        for (const TensorRow& row : kTensorRows) {
            ds_tensor_info info;
            describe_tensor(row, dimensions, &info);
            tensors.emplace_back(static_cast<size_t>(tensor_bytes(info)));
        }
        simulation.worlds = blocks.data() + (64 - reinterpret_cast<uintptr_t>(blocks.data()) % 64);
#define DS_POINT(name, ...) \
    simulation.tensors.name = reinterpret_cast<decltype(simulation.tensors.name)>(tensors[DS_TENSOR_##name].data());
        DS_TENSOR_TABLE(DS_POINT)
#undef DS_POINT
        simulation.tensors.observations = simulation.tensors.final_observations = nullptr;  // the default
        simulation.rules.episode_length = 200;
        simulation.rules.auto_reset = 1;
        model.create(simulation, 0, kWorlds, 5, 0);
    }

    float& coordinate(int64_t world, int64_t body, int64_t axis) {
        const StateField& row = model.state_fields[DS_STATE_body_positions];
        return *reinterpret_cast<float*>(static_cast<char*>(simulation.worlds) +
                                         world * static_cast<int64_t>(model.world_bytes) + row.offset +
                                         body * row.strides[0] + axis * row.strides[1]);
    }

    // Each agent in front of a cube of the second or third room.
    void place_beside_cubes() {
        for (int64_t world = 0; world < kWorlds; world++)
            for (int64_t agent = 0; agent < kAgents; agent++) {
                const int64_t cube = kAgents + (world % 2 == 0 ? agent : 3 + agent);
                coordinate(world, agent, 0) = coordinate(world, cube, 0);
                coordinate(world, agent, 1) = coordinate(world, cube, 1) - 2.8f;
            }
        model.refresh(simulation, 0, kWorlds);
    }

    void write_actions(Draws& draws) {
        int32_t* row = simulation.tensors.actions;
        for (int slot = 0; slot < kWorlds * kAgents; slot++, row += 4) {
            row[0] = static_cast<int32_t>(draws.below(4));
            row[1] = static_cast<int32_t>(draws.below(8));
            row[2] = static_cast<int32_t>(draws.below(5));
            row[3] = static_cast<int32_t>(draws.below(2));
        }
    }
};

// The work between two barriers of the step kernel, in order: loading, the stages, trouble, storing.
std::vector<const char*> interval_names() {
    std::vector<const char*> names{"load worlds"};
    names.insert(names.end(), kStageNames, kStageNames + kNumStages);
    names.push_back("report trouble");
    names.push_back("store worlds");
    return names;
}

void print(const std::vector<ptx::IntervalCost>& costs, uint32_t blocks) {
    const std::vector<const char*> names = interval_names();
    const double steps = static_cast<double>(kWorlds) * kMeasured;
    double threads = 0, warps = 0, longest = 0;
    printf("| stage | thread instructions | warp instructions | longest thread of a tile |\n|---|---|---|---|\n");
    for (size_t k = 0; k < names.size(); k++) {
        double t = 0, w = 0, l = 0;
        for (size_t i = k; i < costs.size(); i += names.size() + 1) {  // the last interval is the kernel's end
            t += static_cast<double>(costs[i].thread_instructions);
            w += static_cast<double>(costs[i].warp_instructions);
            l += static_cast<double>(costs[i].longest_thread);
        }
        l /= static_cast<double>(blocks) * kMeasured;
        printf("| %s | %.0f | %.1f | %.0f |\n", names[k], t / steps, w / steps, l);
        threads += t, warps += w, longest += l;
    }
    printf("| all | %.0f | %.1f | %.0f |\n", threads / steps, warps / steps, longest);
}

}  // namespace

int main(int argc, char** argv) {
    const DefaultFloatEnvironment environment;
    const ptx::Program program = ptx::read_embedded(number_of(kKind));
    const KernelShape& shape = find_kernel_shape(kKind);
    const uint32_t grid = static_cast<uint32_t>((kWorlds + shape.tile_worlds - 1) / shape.tile_worlds);
    Worlds worlds;
    if (argc > 1 && strcmp(argv[1], "cubes") == 0) worlds.place_beside_cubes();
    Draws draws{3};
    for (int step = 0; step < kWarmUp; step++) {
        worlds.write_actions(draws);
        worlds.model.step(worlds.simulation, 0, kWorlds, nullptr);
    }
    std::vector<uint64_t> workspace(static_cast<size_t>(shape.workspace_bytes_per_block) * grid / 8 + 1);
    std::vector<uint32_t> order(static_cast<size_t>(shape.threads));
    std::iota(order.begin(), order.end(), 0u);
    std::vector<ptx::IntervalCost> costs;
    for (int step = 0; step < kMeasured; step++) {
        worlds.write_actions(draws);
        uint32_t trouble[kTroubleKinds] = {};
        KernelArguments arguments{};
        arguments.simulation = worlds.simulation;
        arguments.flights = &worlds.flights;
        arguments.workspace = workspace.data();
        arguments.trouble = trouble;
        arguments.num_worlds = kWorlds;
        ptx::launch(program, program.kernel("doorstep_step"),
                    {grid, static_cast<uint32_t>(shape.threads), shape.shared_bytes, &arguments, &order, &costs});
    }
    print(costs, grid);
}
