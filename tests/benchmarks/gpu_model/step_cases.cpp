#include "step_cases.h"

#include <string.h>

#include "check.h"
#include "device_memory.h"
#include "embedded.h"
#include "exec/cuda/kernels.h"
#include "exec/tensors.h"
#include "math/float_environment.h"
#include "random_actions.h"
#include "sim/observation_layout.h"
#include "sim/reference_level.h"

namespace gpu_model {

const char* const kSceneNames[kStepScenes] = {"normal", "cubes", "level", "drawn"};

namespace {

using namespace doorstep;

constexpr int kWarmUp = 60;

ds_level level_of(StepScene scene) {
    ds_level level = reference_level();
    if (scene == kDrawnPhysics) {
        level.physics.friction = {0.5f, 1.5f};
        level.physics.cube_mass = {5.f, 30.f};
    }
    return level;
}

class Worlds {
public:
    Worlds(StepScene scene, int num_agents, int num_worlds)
        : model_(find_world_model({num_agents, scene == kReferenceLevels || scene == kDrawnPhysics}, false)),
          num_worlds_(num_worlds),
          level_(level_of(scene)) {
        allocate();
        model_.create(simulation_, 0, num_worlds_, 5, 0);
        if (scene == kAmongCubes) place_beside_cubes();
    }
    Worlds(const Worlds& other)
        : model_(other.model_), num_worlds_(other.num_worlds_), level_(other.level_) {
        allocate();
        memcpy(simulation_.worlds, other.simulation_.worlds, bytes());
        tensors_ = other.tensors_;
        point_to_tensors();
    }

    void write_actions(Draws& draws) {
        write_random_actions(draws, simulation_.tensors.actions, int64_t{num_worlds_} * model_.num_agents);
    }
    void step() { model_.step(simulation_, 0, num_worlds_, nullptr); }

    bool operator==(const Worlds& other) const {
        return memcmp(simulation_.worlds, other.simulation_.worlds, bytes()) == 0 && tensors_ == other.tensors_;
    }
    const Simulation& simulation() const { return simulation_; }
    WorldKind kind() const { return model_.kind; }

private:
    size_t bytes() const { return model_.world_bytes * static_cast<size_t>(num_worlds_); }

    void allocate() {
        const int64_t num_levels = model_.kind.plays_levels ? 1 : 0;
        blocks_.resize(bytes());
        simulation_.worlds = blocks_.data();
        simulation_.rules.episode_length = 200;
        simulation_.rules.auto_reset = 1;
        simulation_.levels = &level_;
        simulation_.max_levels = num_levels;
        simulation_.given_rewards = given(nullptr);
        simulation_.num_agents = model_.num_agents;
        simulation_.flat = layout_of(kDefaultObservations, model_.num_agents);
        const Dimensions dimensions{num_worlds_, model_.num_agents, simulation_.flat.size, num_levels};
        for (const TensorRow& row : kTensorRows) {
            ds_tensor_info info;
            describe_tensor(row, dimensions, &info);
            tensors_.emplace_back(static_cast<size_t>(tensor_bytes(info)));
        }
        point_to_tensors();
        for (int64_t i = 0; i < num_worlds_ * num_levels; i++) simulation_.tensors.level_weights[i] = 1.f;
    }

    void point_to_tensors() {
#define DS_POINT(name, ...) \
    simulation_.tensors.name = reinterpret_cast<decltype(simulation_.tensors.name)>(tensors_[DS_TENSOR_##name].data());
        DS_TENSOR_TABLE(DS_POINT)
#undef DS_POINT
        simulation_.tensors.observations = simulation_.tensors.final_observations = nullptr;  // the default
    }

    float& coordinate(int64_t world, int64_t body, int64_t axis) {
        const StateField& row = model_.state_fields[DS_STATE_body_positions];
        return *reinterpret_cast<float*>(static_cast<char*>(simulation_.worlds) +
                                         world * static_cast<int64_t>(model_.world_bytes) + row.offset +
                                         body * row.strides[0] + axis * row.strides[1]);
    }

    // Each agent in front of a cube of the second or third room.
    void place_beside_cubes() {
        for (int64_t world = 0; world < num_worlds_; world++)
            for (int64_t agent = 0; agent < model_.num_agents; agent++) {
                const int64_t place = agent % 2, cube = model_.num_agents + (world % 2 == 0 ? place : 3 + place);
                coordinate(world, agent, 0) = coordinate(world, cube, 0) + 2.5f * static_cast<float>(agent / 2);
                coordinate(world, agent, 1) = coordinate(world, cube, 1) - 2.8f;
            }
        model_.refresh(simulation_, 0, num_worlds_);
    }

    const WorldModel& model_;
    const int num_worlds_;
    const ds_level level_;
    DeviceArray<char> blocks_;
    std::vector<DeviceArray<uint8_t>> tensors_;
    Simulation simulation_{};
};

// The work between two barriers of the step kernel, in order; that of the solver has barriers of its own.
std::vector<const char*> interval_names() {
    std::vector<const char*> names{"load worlds"};
    names.insert(names.end(), kStageNames, kStageNames + kNumStages);
    for (const char* name : {"report trouble", "store worlds", "end"}) names.push_back(name);
    return names;
}

// A block's threads meet within solving bodies, or not at all where no world needs the solver: the intervals of a tile
// in which they do become one.
void join_meetings(std::vector<TileCost>& tiles, const std::vector<const char*>& names) {
    constexpr size_t kSolving = 1 + kStage_solve_bodies;
    for (TileCost& tile : tiles) {
        const size_t after = names.size() - 1 - kSolving;
        const auto first = tile.begin() + kSolving, end = tile.end() - static_cast<ptrdiff_t>(after);
        Cost solving;
        for (auto one = first; one != end; ++one) solving.add(*one);
        tile.insert(tile.erase(first, end), solving);
        CHECK_EQUAL(tile.size(), names.size());
    }
}

void step_interpreted(const ptx::Program& program, const Worlds& worlds, int num_worlds, TileCosts& costs) {
    static const DeviceArray<FlightTable> flights = [] {
        DeviceArray<FlightTable> tables(1);
        make_flight_table(tables[0]);
        return tables;
    }();
    const KernelShape& shape = find_kernel_shape(worlds.kind());
    const uint32_t grid = static_cast<uint32_t>((num_worlds + shape.tile_worlds - 1) / shape.tile_worlds);
    DeviceArray<char> workspace(static_cast<size_t>(workspace_bytes(shape, shape.tile_worlds)) * grid);
    DeviceArray<uint32_t> trouble(kTroubleKinds);
    alignas(kDeviceAlignment) KernelArguments arguments{};
    arguments.simulation = worlds.simulation();
    arguments.flights = flights.data();
    arguments.workspace = workspace.data();
    arguments.trouble = trouble.data();
    arguments.num_worlds = num_worlds;
    arguments.tile_worlds = shape.tile_worlds;
    ptx::launch_in_warps(program, program.kernel(kKernelNames[kKernel_step]),
                         {grid, static_cast<uint32_t>(shape.threads), shape.shared_bytes, &arguments}, costs);
}

}  // namespace

Measured measure_steps(StepScene scene, int num_agents, int num_worlds, int num_steps) {
    const DefaultFloatEnvironment environment;
    Worlds worlds(scene, num_agents, num_worlds);
    Draws draws{3};
    for (int step = 0; step < kWarmUp; step++) {
        worlds.write_actions(draws);
        worlds.step();
    }
    const int module = number_of(worlds.kind());
    const KernelShape& shape = find_kernel_shape(worlds.kind());
    const BlockNeeds needs{static_cast<uint32_t>(shape.threads), shape.shared_bytes,
                           registers_of(module, kKernelNames[kKernel_step])};
    const ptx::Program program = ptx::read_embedded(module);
    TileCosts costs(cache_lines(needs));
    for (int step = 0; step < num_steps; step++) {
        worlds.write_actions(draws);
        Worlds interpreted = worlds;
        worlds.step();
        step_interpreted(program, interpreted, num_worlds, costs);
        CHECK(interpreted == worlds);
    }
    const std::vector<const char*> stages = interval_names();
    join_meetings(costs.tiles, stages);
    return {"", "world", static_cast<double>(shape.tile_worlds), stages, costs.tiles, needs,
            {8192, 65536, 262144}};
}

}  // namespace gpu_model
