// The simulation for one number of agents (DS_AGENTS), eight lanes wide. Compiled once per number, for AVX2.
#include "sim/world_model.h"

#include <string.h>

#include "exec/cpu/world_models.h"
#include "sim/step.h"

namespace doorstep {
namespace {

using Float = WideFloat;
using W = World<DS_AGENTS>;
using WorldTile = TileInPlace<W, Float>;

FlightTable flight_table;

// Calls body(block, tile) for every tile of a run of worlds.
template <class Body>
void for_each_tile(const Simulation& simulation, int64_t first, int64_t count, const Body& body) {
    LoneThread block;
    Workspace<W, Float, 1, 1> workspace;
    WorldTile::Records records;
    for (int64_t slot = first; slot < first + count; slot += kTileWorlds) {
        const int64_t left = first + count - slot;
        WorldTile tile{simulation, flight_table, static_cast<char*>(simulation.worlds) + slot * kBlockBytes<W>, records,
                       workspace, slot, static_cast<int>(left < kTileWorlds ? left : kTileWorlds)};
        body(block, tile);
    }
}

void create(const Simulation& simulation, int64_t first, int64_t count, uint32_t seed, uint64_t world_offset) {
    for_each_tile(simulation, first, count,
                  [&](auto& block, auto& tile) { create_tile<Float>(block, tile, seed, world_offset); });
}

uint32_t step(const Simulation& simulation, int64_t first, int64_t count, uint64_t* ticks) {
    uint32_t trouble = kTroubleNone;
    for_each_tile(simulation, first, count, [&](auto& block, auto& tile) {
        step_tile<Float>(block, tile, ticks);
        trouble |= trouble_of(tile);
    });
    return trouble;
}

void reset(const Simulation& simulation, int64_t first, int64_t count, const uint8_t* mask) {
    for_each_tile(simulation, first, count, [&](auto& block, auto& tile) {
        reset_tile<Float>(block, tile, mask ? mask + tile.first : nullptr);
    });
}

uint32_t refresh(const Simulation& simulation, int64_t first, int64_t count) {
    uint32_t trouble = kTroubleNone;
    for_each_tile(simulation, first, count, [&](auto& block, auto& tile) {
        refresh_tile<Float>(block, tile, nullptr);
        trouble |= trouble_of(tile);
    });
    return trouble;
}

bool find_bad_action(const Simulation& simulation, int64_t first, int64_t count, BadAction* bad) {
    const int32_t* actions = simulation.tensors.actions;
    constexpr int64_t kRow = W::kAgents * kActionComponents;
    for (int64_t i = first * kRow; i < (first + count) * kRow; i++) {
        const int component = static_cast<int>(i % kActionComponents);
        if (static_cast<uint32_t>(actions[i]) < static_cast<uint32_t>(kActionSizes[component])) continue;
        const int64_t agent = i / kActionComponents;
        *bad = {agent / W::kAgents, static_cast<int32_t>(agent % W::kAgents), component, actions[i],
                kActionSizes[component] - 1};
        return true;
    }
    return false;
}

void read_health(const void* block, WorldHealth* health) {
    const W& world = *static_cast<const W*>(block);
    *health = {world.clamped_actions,  world.dropped_contacts, world.nonfinite_values,
               world.repaired_indices, world.culprit_body,     world.culprit_step};
}

bool is_valid_world(const W& world, int32_t episode_length) {
    if (!has_valid_indices(world)) return false;
    if (world.steps_remaining < 0 || world.steps_remaining > episode_length) return false;
    if (world.done != 0 && world.done != 1) return false;
    if ((world.asleep & ~W::kCubeBits) != 0) return false;
    for (int i = W::kBodies; i < W::kBodyLanes; i++)
        if (world.min_x[i] != kNowhere || world.x[W::kButtonLanes + i] != kNowhere) return false;
    for (int i = 0; i < W::kBodyLanes; i++) {
        const int32_t kind = i < W::kAgents ? DS_ENTITY_AGENT : i < W::kBodies ? DS_ENTITY_CUBE : DS_ENTITY_NONE;
        if (world.body_kind[i] != kind) return false;
    }
    for (int a = 0; a < W::kAgents; a++)
        if (world.joined[a] != -1 && (world.joined[a] < W::kAgents || world.joined[a] >= W::kBodies)) return false;
    for (const auto& room : world.room_slots)
        for (uint8_t thing : room)
            if (thing != kEmptySlot && thing >= W::kThings) return false;
    return true;
}

bool is_valid(const void* block, int32_t episode_length) {
    W world;  // a saved block need not be aligned
    memcpy(static_cast<void*>(&world), block, sizeof world);
    return is_valid_world(world, episode_length);
}

int64_t count_valid(const void* blocks, int64_t count, int32_t episode_length) {
    const char* block = static_cast<const char*>(blocks);
    for (int64_t i = 0; i < count; i++, block += kBlockBytes<W>)
        if (!is_valid_world(*reinterpret_cast<const W*>(block), episode_length)) return i;
    return count;
}

// ---- Offsets of the state fields

constexpr int64_t kFloatBytes = sizeof(float);

constexpr StateField rows_of(size_t offset, int64_t items) {
    return {static_cast<ptrdiff_t>(offset), nullptr, 1, {items, 1}, {kFloatBytes, 0}};
}
// Structure of arrays: coordinate k of item i lies k rows of `pitch` floats further.
constexpr StateField vectors_of(size_t offset, int64_t items, int64_t coordinates, int64_t pitch) {
    return {static_cast<ptrdiff_t>(offset), nullptr, 2, {items, coordinates}, {kFloatBytes, pitch * kFloatBytes}};
}

struct BodySizes {
    float extent[W::kBodies][3];
};
constexpr BodySizes make_body_sizes() {
    BodySizes sizes{};
    for (int i = 0; i < W::kBodies; i++)
        for (int k = 0; k < 3; k++) sizes.extent[i][k] = 2.f * (i < W::kAgents ? kAgentHalfExtent : kCubeHalfExtent);
    return sizes;
}
constexpr BodySizes kBodySizes = make_body_sizes();

constexpr WorldModel make_model() {
    WorldModel model{};
    model.num_agents = W::kAgents;
    model.num_bodies = W::kBodies;
    model.num_statics = W::kStatics;
    model.num_buttons = W::kButtons;
    model.num_doors = W::kDoors;
    model.flat_observation_size = flat_size(W::kAgents);
    model.world_bytes = kBlockBytes<W>;
    StateField* field = model.state_fields;
    constexpr size_t kBodyOffset = sizeof(float) * W::kButtonLanes;
    field[DS_STATE_body_positions] = vectors_of(offsetof(W, x) + kBodyOffset, W::kBodies, 3, W::kThings);
    field[DS_STATE_body_rotations] = vectors_of(offsetof(W, rotation_w), W::kBodies, 4, W::kBodyLanes);
    field[DS_STATE_body_linear_velocities] = vectors_of(offsetof(W, velocity_x), W::kBodies, 3, W::kBodyLanes);
    field[DS_STATE_body_angular_velocities] = vectors_of(offsetof(W, spin_x), W::kBodies, 3, W::kBodyLanes);
    field[DS_STATE_body_sizes] = {-1, &kBodySizes, 2, {W::kBodies, 3}, {3 * kFloatBytes, kFloatBytes}};
    field[DS_STATE_body_kinds] = rows_of(offsetof(W, body_kind), W::kBodies);
    field[DS_STATE_static_positions] = vectors_of(offsetof(W, static_x), W::kStatics, 3, W::kStaticLanes);
    field[DS_STATE_static_sizes] = vectors_of(offsetof(W, static_size_x), W::kStatics, 3, W::kStaticLanes);
    field[DS_STATE_static_kinds] = rows_of(offsetof(W, static_kind), W::kStatics);
    field[DS_STATE_button_positions] = vectors_of(offsetof(W, x), W::kButtons, 3, W::kThings);
    field[DS_STATE_button_pressed] = rows_of(offsetof(W, button_pressed), W::kButtons);
    field[DS_STATE_button_doors] = rows_of(offsetof(W, button_door), W::kButtons);
    field[DS_STATE_door_open] = rows_of(offsetof(W, door_open), W::kDoors);
    field[DS_STATE_door_static] = rows_of(offsetof(W, door_static), W::kDoors);
    field[DS_STATE_agent_grabs] = rows_of(offsetof(W, grabs), W::kAgents);
    field[DS_STATE_agent_max_y] = rows_of(offsetof(W, agent_max_y), W::kAgents);
    field[DS_STATE_episode_index] = {static_cast<ptrdiff_t>(offsetof(W, episode_index)), nullptr, 0, {1, 1}, {0, 0}};
    model.create = create;
    model.step = step;
    model.reset = reset;
    model.refresh = refresh;
    model.find_bad_action = find_bad_action;
    model.read_health = read_health;
    model.is_valid = is_valid;
    model.count_valid = count_valid;
    return model;
}

constexpr WorldModel kModel = make_model();

}  // namespace

template <>
const WorldModel& world_model<DS_AGENTS>() {
    return kModel;
}
template <>
void prepare_world_model<DS_AGENTS>() {
    make_flight_table(flight_table);
}

}  // namespace doorstep
