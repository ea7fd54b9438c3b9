// The interface of sim/ for the layers above: sizes and fields of a world, and functions on runs of worlds.
//
// Worlds are compiled once per row of DS_WORLD_KIND_TABLE (sizes are compile-time constants in every loop of a step). A
// WorldModel is the table of such an instance for a number of agents; find_world_model() returns it. All functions
// process the worlds [first, first + count) of a Simulation, allocate nothing, cannot fail, and may run on any number
// of threads as long as no two of them share a world.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "doorstep/rooms.h"
#include "sim/stage_table.h"

namespace doorstep {

constexpr int kTileWorlds = 64;     // worlds that pass through the stages together; runs should be multiples of it

// The C type of a dtype: Element_FLOAT32 is float.
#define DS_ELEMENT(name, number, type, dlpack_code) using Element_##name = type;
DS_DTYPE_TABLE(DS_ELEMENT)
#undef DS_ELEMENT

// Base addresses of the tensors, world-major; null where a simulator lacks the tensor.
struct TensorPointers {
#define DS_TENSOR_POINTER(name, dtype, ...) Element_##dtype* name;
    DS_TENSOR_TABLE(DS_TENSOR_POINTER)
#undef DS_TENSOR_POINTER
};

// Bits returned by a step: trouble in at least one of its worlds.
enum Trouble : uint32_t {
    kTroubleNone = 0,
    kTroubleDroppedContacts = 1u << DS_TROUBLE_DROPPED_CONTACTS,
    kTroubleNonfinite = 1u << DS_TROUBLE_NONFINITE,
    kTroubleRepairedIndex = 1u << DS_TROUBLE_REPAIRED_INDEX,
};

struct Rules {
    int32_t episode_length;
    int32_t auto_reset;        // 0 or 1
    int32_t action_check;      // ds_action_check; RAISE is checked before the step, by find_bad_action
    int32_t look_for_edits;    // 1 once the caller has a view of the blocks
};

// The rewards that the worlds were given. Those that play the reference's levels only have no others.
struct GivenRewards {
    ds_level_rewards rewards;
    int32_t replace_those_of_levels;  // 0 or 1
};

// The parts of the flat observation, and how many values of an agent they are.
struct FlatLayout {
    ds_observations parts;
    int32_t size;
};

// All inputs of the functions below: the addresses of blocks and tensors, and the rules.
struct Simulation {
    void* worlds;              // blocks, world_bytes apart, 64-byte aligned
    TensorPointers tensors;
    Rules rules;
    const ds_level* levels;    // max_levels of them, and as many in each row of level_weights
    int64_t max_levels;        // 0 in worlds that play the reference's levels only
    GivenRewards given_rewards;
    FlatLayout flat;
    int32_t num_agents;        // of each world
};

// How a world begins an episode that does not follow its last one: as the first episode of a simulator of one world
// with this seed, or as a world that was saved, whose episode goes on. Nothing that the world did before matters.
struct EpisodeStart {
    const ds_level* level;  // on the simulation's device; null: the simulation's own
    const void* saved;      // a block, likewise, without edits; null: a new world. The rest is not used then
    uint32_t seed;
    int32_t max_steps;      // the episode ends after so many, or earlier; 0: no such limit
};

// The place of a state field in a block. Strides in bytes; the stride over worlds is the block size.
struct StateField {
    ptrdiff_t offset;          // -1: not in the block; the same constant for every world, see `constant`
    const void* constant;      // for fields fixed by the model
    int32_t rank;              // dimensions after N
    int64_t shape[2];
    int64_t strides[2];
};

// Counters of one world, see ds_health.
struct WorldHealth {
    uint32_t clamped_actions;
    uint32_t dropped_contacts;
    uint32_t nonfinite_values;
    uint32_t repaired_indices;
    int32_t culprit_body;      // -1: none
    int32_t culprit_step;      // -1: none; steps since the world's creation (not of the episode)
};

// What the agents of a world have reached in its episode; of those that exist.
struct EpisodeProgress {
    bool is_over;                  // the episode: further steps do not count
    float returns[DS_MAX_AGENTS];  // sum of rewards
    float max_y[DS_MAX_AGENTS];    // metres
};

// The first action out of range, for the error message.
struct BadAction {
    int64_t world;
    int32_t agent, component, value, maximum;
};

struct WorldKind {
    int num_agents;
    bool plays_levels;  // any levels; otherwise the reference's
};

// X(number, least, most, Capacity): the kinds that are compiled, for numbers of agents and a capacity of sim/world.h.
// The number of agents is a constant of the code if it is the only one.
#define DS_WORLD_KIND_TABLE(X)    \
    X(1, 1, 1, ReferenceCapacity) \
    X(2, 2, 2, ReferenceCapacity) \
    X(3, 3, 3, ReferenceCapacity) \
    X(4, 4, 8, ReferenceCapacity) \
    X(5, 2, 2, LevelCapacity)     \
    X(6, 1, 8, LevelCapacity)

// The number of the first row for a kind of worlds.
constexpr int number_of(WorldKind kind) {
    enum : bool { ReferenceCapacity = false, LevelCapacity = true };
#define DS_IS_OF_KIND(number, least, most, Capacity) \
    if (kind.num_agents >= least && kind.num_agents <= most && kind.plays_levels == Capacity) return number;
    DS_WORLD_KIND_TABLE(DS_IS_OF_KIND)
#undef DS_IS_OF_KIND
    return 0;
}

struct WorldModel {
    WorldKind kind;
    int32_t num_agents, num_bodies, num_statics, num_buttons, num_doors;
    size_t world_bytes;
    StateField state_fields[DS_STATE_COUNT];

    // Generates episodes 0 and 1 of global worlds world_offset + first ..., writes every tensor.
    void (*create)(const Simulation&, int64_t first, int64_t count, uint32_t seed, uint64_t world_offset);
    // One step. ticks: kNumStages counters to add to, or null. Returns Trouble bits.
    uint32_t (*step)(const Simulation&, int64_t first, int64_t count, uint64_t* ticks);
    // Regenerates the worlds whose mask byte is set (null: all), as ds_simulator_reset, or begins the given episodes
    // (null: the next ones). mask and starts are indexed by slot. Returns Trouble bits.
    uint32_t (*reset)(const Simulation&, int64_t first, int64_t count, const uint8_t* mask, const EpisodeStart* starts);
    // Recomputes derived data and all observations. Returns Trouble bits.
    uint32_t (*refresh)(const Simulation&, int64_t first, int64_t count);
    // True, and *bad filled, if an action is out of range.
    bool (*find_bad_action)(const Simulation&, int64_t first, int64_t count, BadAction* bad);

    // On single blocks:
    void (*read_health)(const void* block, WorldHealth* health);
    void (*read_progress)(const void* block, EpisodeProgress* progress);
    bool (*is_valid)(const void* block, int num_agents, int32_t episode_length);  // whether a restore may accept it
    void (*absorb_edits)(void* block);                                            // as refresh, of a valid one

    // Number of leading blocks that are valid. Aligned as a simulation's.
    int64_t (*count_valid)(const void* blocks, int64_t count, int num_agents, int32_t episode_length);
};

#if !defined(__CUDACC__)
// 1 .. DS_MAX_AGENTS agents. avx512: for processors that have it; the bits are the same. See prepared_model().
const WorldModel& find_world_model(WorldKind kind, bool avx512);

// Names of the stages, kNumStages of them.
extern const char* const kStageNames[kNumStages];
#endif

}  // namespace doorstep
