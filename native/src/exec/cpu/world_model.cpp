// The simulation for one number of agents (DS_AGENTS), eight lanes wide. Compiled once per number, for AVX2.
#include "sim/world_model.h"

#include <string.h>

#include "exec/cpu/world_models.h"
#include "sim/step.h"

namespace doorstep {
namespace {

using Float = WideFloat;
using W = World<DS_AGENTS>;

static_assert(sizeof(W) % 64 == 0, "blocks follow one another, each aligned to a cache line");

FlightTable flight_table;

W* worlds_of(const Simulation& simulation, int64_t first) { return static_cast<W*>(simulation.worlds) + first; }

template <class Body>
void for_each_tile(int64_t first, int64_t count, Body&& body) {
    for (int64_t done = 0; done < count; done += kTileWorlds)
        body(first + done, count - done < kTileWorlds ? count - done : kTileWorlds);
}

void observe_all(const Simulation& simulation, int64_t slot) {
    observe_whole_world<Float>(*worlds_of(simulation, slot), current_observations(simulation.tensors), slot,
                               simulation.episode_length);
}

void clear_outcome(const Simulation& simulation, int64_t slot, W& world) {
    const float no_rewards[W::kAgents] = {};
    world.done = 0;
    simulation.tensors.resets[slot] = 0;
    neutral_actions<W>(simulation.tensors.actions + slot * W::kAgents * kActionComponents);
    write_score(simulation.tensors, slot, world, no_rewards, false);
}

void begin_next_level(const Simulation& simulation, int64_t slot) {
    W& world = *worlds_of(simulation, slot);
    world.episode_index++;
    generate_level(world, simulation.episode_length);
    clear_outcome(simulation, slot, world);
    observe_all(simulation, slot);
}

void create(const Simulation& simulation, int64_t first, int64_t count, uint32_t seed, uint64_t world_offset) {
    for (int64_t slot = first; slot < first + count; slot++) {
        W& world = *worlds_of(simulation, slot);
        memset(static_cast<void*>(&world), 0, sizeof world);
        world.seed = seed;
        world.global_index = static_cast<uint32_t>(world_offset + static_cast<uint64_t>(slot));
        world.culprit_body = world.culprit_step = -1;
        // Episode 0 is never seen: the reference replaces it before the first observation, and so do we
        begin_next_level(simulation, slot);
    }
}

uint32_t step(const Simulation& simulation, int64_t first, int64_t count, uint64_t* ticks) {
    uint32_t trouble = kTroubleNone;
    for_each_tile(first, count, [&](int64_t slot, int64_t worlds) {
        Tile<W> tile(simulation, flight_table, worlds_of(simulation, slot), slot, worlds);
        step_tile<Float>(tile, ticks);
        trouble |= tile.trouble;
    });
    return trouble;
}

void reset(const Simulation& simulation, int64_t first, int64_t count, const uint8_t* mask) {
    for (int64_t slot = first; slot < first + count; slot++) {
        if (mask && !mask[slot]) continue;
        begin_next_level(simulation, slot);
    }
}

uint32_t refresh(const Simulation& simulation, int64_t first, int64_t count) {
    uint32_t trouble = kTroubleNone;
    for (int64_t slot = first; slot < first + count; slot++) {
        trouble |= absorb_edits<Float>(*worlds_of(simulation, slot));
        observe_all(simulation, slot);
    }
    return trouble;
}

bool find_bad_action(const Simulation& simulation, int64_t first, int64_t count, BadAction* bad) {
    const int32_t* actions = simulation.tensors.actions;
    constexpr int64_t kRow = W::kAgents * kActionComponents;
    for (int64_t i = first * kRow; i < (first + count) * kRow; i++) {
        const int component = static_cast<int>(i % kActionComponents);
        if (static_cast<uint32_t>(actions[i]) <= static_cast<uint32_t>(kActionLimits[component])) continue;
        const int64_t agent = i / kActionComponents;
        *bad = {agent / W::kAgents, static_cast<int32_t>(agent % W::kAgents), component, actions[i],
                kActionLimits[component]};
        return true;
    }
    return false;
}

void read_health(const void* block, WorldHealth* health) {
    const W& world = *static_cast<const W*>(block);
    *health = {world.clamped_actions,  world.dropped_contacts, world.nonfinite_values,
               world.repaired_indices, world.culprit_body,     world.culprit_step};
}

bool is_valid(const void* block, int32_t episode_length) {
    W world;  // a saved block need not be aligned
    memcpy(static_cast<void*>(&world), block, sizeof world);
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

// ---- Where the state fields lie

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
    model.world_bytes = sizeof(W);
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
