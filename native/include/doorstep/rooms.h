/* Rooms: simulators and batches of worlds, their tensors, levels and configuration. Rules: ../doorstep.h. */
#ifndef DOORSTEP_ROOMS_H
#define DOORSTEP_ROOMS_H

#include "library.h"

typedef uint64_t ds_simulator; /* a batch of worlds */
typedef uint64_t ds_memory;    /* a reference to memory that contains tensors of a simulator */
typedef uint64_t ds_event;     /* the end of an asynchronous step */

typedef enum ds_access {
    DS_ACCESS_READ = 0,
    DS_ACCESS_READ_WRITE = 1,
} ds_access;

/* Handling of an action outside its range. CLAMP: moved to the nearest legal value and counted. RAISE: the step is
   refused. OFF: the reference's formulas are applied to any value within +-32767. */
typedef enum ds_action_check {
    DS_ACTION_CHECK_CLAMP = 0,
    DS_ACTION_CHECK_RAISE = 1,
    DS_ACTION_CHECK_OFF = 2,
} ds_action_check;

/* Kinds of entities in a world; observations contain kind / 6. */
typedef enum ds_entity_kind {
    DS_ENTITY_NONE = 0,
    DS_ENTITY_BUTTON = 1,
    DS_ENTITY_CUBE = 2,
    DS_ENTITY_WALL = 3,
    DS_ENTITY_AGENT = 4,
    DS_ENTITY_DOOR = 5,
} ds_entity_kind;

/* Limits of the configuration. */
enum {
    DS_MAX_AGENTS = 8,
    DS_MAX_EPISODE_LENGTH = 1000000,
    DS_MAX_WORLDS = 1073741824, /* 2**30 */
    DS_MAX_THREADS = 1024,
    DS_MAX_LEVELS = 1048576, /* 2**20 */
    DS_MAX_DIMENSIONS = 5,
    DS_MAX_OBSERVATION_SCALE = 1000000,
};
/* 2**32 - 1; and 2**32, which world_offset + num_worlds may not exceed. */
#define DS_MAX_SEED 4294967295
#define DS_MAX_GLOBAL_WORLDS 4294967296

/* In place of a CUstream: a stream that the simulator creates for itself. Other values are CUstreams of the driver: 0
   and 1 are the legacy default stream, 2 is the per-thread default stream. */
#define DS_STREAM_OWN UINT64_MAX

/* ---- Actions ----------------------------------------------------------------------------------------------- */

/* The components of an action, in the order of the last dimension of the tensor "actions". X(name, size, neutral,
   sentence). Legal values are 0 to size - 1; a reset sets the neutral ones. */
#define DS_ACTION_TABLE(X)                                                                                         \
    X(move_amount, 4, 0, "How hard the agent walks: 0 = not at all, 3 = hardest.")                                 \
    X(move_angle, 8, 0, "Where it walks: 45 degrees each, clockwise from forward.")                                \
    X(turn, 5, 2, "How it turns: 0 = hard right, 2 = not at all, 4 = hard left.")                                  \
    X(grab, 2, 0, "1 = grab the cube ahead, or release the one that is held.")

typedef enum ds_action_component {
#define DS_ACTION_ENUM(name, size, neutral, sentence) DS_ACTION_##name,
    DS_ACTION_TABLE(DS_ACTION_ENUM)
#undef DS_ACTION_ENUM
    DS_ACTION_COMPONENT_COUNT
} ds_action_component;

/* ---- Tensors ----------------------------------------------------------------------------------------------- */

/* All tensors that a simulator exports, in the order used everywhere.
   X(name, dtype, shape, access, presence, lifetime, saving, sentence).
   shape: N worlds, A agents; F is the length of the flat observation (94 for two agents, if it is made of the default
   parts), L is max_levels. All are C-contiguous and aligned to 256 bytes.
   presence: ALWAYS, FLAT: only with parts for it (ds_observations), or LEVELS: only with max_levels > 0.
   lifetime: STEP: written by every step; EPISODE: written where an episode ends, and kept until the next one does.
   saving: SAVED: a save contains it; UNSAVED: recomputed from the world, or left as it is. */
#define DS_TENSOR_TABLE(X)                                                                                         \
    X(resets, INT32, "N,1", READ_WRITE, ALWAYS, STEP, SAVED,                                                       \
      "Nonzero before a step: the step regenerates the world at its end and sets the value back to 0.")            \
    X(actions, INT32, "N,A,4", READ_WRITE, ALWAYS, STEP, SAVED,                                                    \
      "Move amount 0-3, move angle 0-7 (45 degrees each, clockwise from forward), turn 0-4 (0 = hard right, "      \
      "2 = none, 4 = hard left), grab 0-1; a reset sets (0, 0, 2, 0).")                                            \
    X(rewards, FLOAT32, "N,A,1", READ, ALWAYS, STEP, SAVED, "Reward of this step.")                                \
    X(dones, INT32, "N,A,1", READ, ALWAYS, STEP, SAVED,                                                            \
      "1 after the last step of an episode, 0 again from the first step of the next one.")                         \
    X(terminations, UINT8, "N,A,1", READ, ALWAYS, STEP, SAVED,                                                     \
      "1 where the episode ended in a terminal state; always 0 with the default rules, which only time out.")      \
    X(truncations, UINT8, "N,A,1", READ, ALWAYS, STEP, SAVED,                                                      \
      "1 where the episode reached its step limit in this step.")                                                  \
    X(steps_remaining, INT32, "N,A,1", READ, ALWAYS, STEP, UNSAVED,                                                \
      "Steps left in the episode, from episode_length down to 0.")                                                 \
    X(self_observations, FLOAT32, "N,A,8", READ, ALWAYS, STEP, UNSAVED,                                            \
      "x in room / 10, y in room / room length, x / 40, y / 40, z / 40, largest y / 40, yaw / pi "                 \
      "(counter-clockwise), 1 while grabbing.")                                                                    \
    X(partner_observations, FLOAT32, "N,A,A-1,3", READ, ALWAYS, STEP, UNSAVED,                                     \
      "The other agents in index order: distance / 40, bearing / pi (clockwise from forward), 1 while grabbing.")  \
    X(room_entity_observations, FLOAT32, "N,A,6,3", READ, ALWAYS, STEP, UNSAVED,                                   \
      "Buttons, then cubes of the agent's room: distance / 40, bearing / pi, kind / 6; empty slots: (0, 1, 0).")   \
    X(door_observations, FLOAT32, "N,A,3", READ, ALWAYS, STEP, UNSAVED,                                            \
      "Door of the agent's room: distance / 40, bearing / pi, 1 if open.")                                         \
    X(lidar, FLOAT32, "N,A,30,2", READ, ALWAYS, STEP, UNSAVED,                                                     \
      "30 rays, 12 degrees apart, counter-clockwise from forward: distance / 40, kind / 6; a miss is (0, 0).")     \
    X(observations, FLOAT32, "N,A,F", READ, FLAT, STEP, UNSAVED,                                                   \
      "The flat observation: parts side by side, by default self_observations to agent_index.")                    \
    X(final_steps_remaining, INT32, "N,A,1", READ, ALWAYS, EPISODE, UNSAVED,                                       \
      "steps_remaining at the end of the latest ended episode.")                                                   \
    X(final_self_observations, FLOAT32, "N,A,8", READ, ALWAYS, EPISODE, UNSAVED,                                   \
      "self_observations at the end of the latest ended episode, before the world was regenerated.")               \
    X(final_partner_observations, FLOAT32, "N,A,A-1,3", READ, ALWAYS, EPISODE, UNSAVED,                            \
      "Likewise, partner_observations.")                                                                           \
    X(final_room_entity_observations, FLOAT32, "N,A,6,3", READ, ALWAYS, EPISODE, UNSAVED,                          \
      "Likewise, room_entity_observations.")                                                                       \
    X(final_door_observations, FLOAT32, "N,A,3", READ, ALWAYS, EPISODE, UNSAVED, "Likewise, door_observations.")   \
    X(final_lidar, FLOAT32, "N,A,30,2", READ, ALWAYS, EPISODE, UNSAVED, "Likewise, lidar.")                        \
    X(final_observations, FLOAT32, "N,A,F", READ, FLAT, EPISODE, UNSAVED, "Likewise, observations.")               \
    X(episode_returns, FLOAT32, "N,A,1", READ, ALWAYS, EPISODE, SAVED,                                             \
      "Sum of rewards of the latest ended episode.")                                                               \
    X(episode_lengths, INT32, "N,1", READ, ALWAYS, EPISODE, SAVED, "Steps of the latest ended episode.")          \
    X(level_weights, FLOAT32, "N,L", READ_WRITE, LEVELS, EPISODE, UNSAVED,                                         \
      "How likely each world draws each level at a reset, relative to the sum of its row; negative, infinite and " \
      "NaN count as 0.")                                                                                           \
    X(level_indices, INT32, "N,1", READ, LEVELS, EPISODE, UNSAVED, "Index of the present level.")

typedef enum ds_tensor_id {
#define DS_TENSOR_ENUM(name, ...) DS_TENSOR_##name,
    DS_TENSOR_TABLE(DS_TENSOR_ENUM)
#undef DS_TENSOR_ENUM
    DS_TENSOR_COUNT
} ds_tensor_id;

/* Parts of the flat observation. X(name, shape, sentence); shape: of an agent's values, as in DS_TENSOR_TABLE. All but
   the last one are the default, in this order. */
#define DS_OBSERVATION_PART_TABLE(X)                                                                               \
    X(self_observations, "8", "The tensor.")                                                                       \
    X(partner_observations, "A-1,3", "The tensor.")                                                                \
    X(room_entity_observations, "6,3", "The tensor.")                                                              \
    X(door_observations, "3", "The tensor.")                                                                       \
    X(lidar, "30,2", "The tensor.")                                                                                \
    X(steps_remaining, "1", "The tensor, divided by the length of the episode.")                                   \
    X(agent_index, "1", "Number of the agent in its world / max(A-1, 1).")                                         \
    X(physics, "5", "The state field, each number divided by the reference's.")

typedef enum ds_observation_part {
#define DS_OBSERVATION_PART_ENUM(name, ...) DS_OBSERVATION_PART_##name,
    DS_OBSERVATION_PART_TABLE(DS_OBSERVATION_PART_ENUM)
#undef DS_OBSERVATION_PART_ENUM
    DS_OBSERVATION_PART_COUNT
} ds_observation_part;

/* The flat observation: parts side by side in this order, each at most once, multiplied by its scale. */
typedef struct ds_observations {
    int32_t num_parts; /* 0: there is no flat observation */
    int32_t parts[8];  /* ds_observation_part */
    float scales[8];   /* above 0, at most DS_MAX_OBSERVATION_SCALE */
} ds_observations;

/* Fields of the world blocks, as strided views. X(name, dtype, shape, access, sentence). B bodies (agents first,
   then cubes), S statics, K buttons, D doors. The next step uses edits of writable fields. */
#define DS_STATE_TABLE(X)                                                                                          \
    X(body_positions, FLOAT32, "N,B,3", READ_WRITE, "Metres. Agents: bottom centre; cubes: centre.")               \
    X(body_rotations, FLOAT32, "N,B,4", READ_WRITE, "Unit quaternions (w, x, y, z); agents rotate about z only.")  \
    X(body_linear_velocities, FLOAT32, "N,B,3", READ_WRITE, "Metres per second.")                                  \
    X(body_angular_velocities, FLOAT32, "N,B,3", READ_WRITE, "Radians per second, world axes.")                    \
    X(body_sizes, FLOAT32, "N,B,3", READ, "Full extents in metres, given by the kind of the body.")                \
    X(body_kinds, INT32, "N,B", READ, "Entity kind; 0 = slot unused.")                                             \
    X(static_positions, FLOAT32, "N,S,3", READ_WRITE, "Walls and doors, bottom centre, metres.")                   \
    X(static_sizes, FLOAT32, "N,S,3", READ_WRITE, "Full extents of the axis-aligned boxes, metres.")               \
    X(static_kinds, INT32, "N,S", READ_WRITE, "Entity kind; 0 = slot unused.")                                     \
    X(button_positions, FLOAT32, "N,K,3", READ_WRITE, "Centre of the pressure plate, metres, z = 0.")              \
    X(button_pressed, INT32, "N,K", READ_WRITE, "1 while a body stands on it.")                                    \
    X(button_doors, INT32, "N,K", READ_WRITE, "Index of the door it opens.")                                       \
    X(door_open, INT32, "N,D", READ_WRITE, "1 if the door is open or opening.")                                    \
    X(door_static, INT32, "N,D", READ_WRITE, "Static slot of the door's panel.")                                   \
    X(door_persistent, INT32, "N,D", READ_WRITE, "1 if the door stays open once opened.")                          \
    X(agent_grabs, INT32, "N,A", READ_WRITE, "Index of the body the agent holds, or -1.")                          \
    X(physics, FLOAT32, "N,5", READ,                                                                               \
      "As drawn for this episode: mass of cubes (kg), friction factor, walking force (N), turning torque (N m), "  \
      "speed of doors (m/s).")                                                                                     \
    X(agent_max_y, FLOAT32, "N,A", READ_WRITE, "Largest y reached in this episode, metres, at most 80.")           \
    X(episode_index, UINT32, "N", READ, "Number of levels this world generated before the current one.")

typedef enum ds_state_id {
#define DS_STATE_ENUM(name, dtype, shape, access, sentence) DS_STATE_##name,
    DS_STATE_TABLE(DS_STATE_ENUM)
#undef DS_STATE_ENUM
    DS_STATE_COUNT
} ds_state_id;

/* A tensor or state field. Strides are in bytes. The pointer is valid while a reference to the memory exists. */
typedef struct ds_tensor_info {
    uint32_t struct_size;
    int32_t dtype;  /* ds_dtype */
    int32_t access; /* ds_access */
    int32_t rank;
    void* data;
    int64_t shape[5];   /* DS_MAX_DIMENSIONS */
    int64_t strides[5];
} ds_tensor_info;

/* ---- Levels ------------------------------------------------------------------------------------------------ */

/* Capacities of a level; those of the worlds of a simulator with levels (max_levels > 0). */
enum {
    DS_LEVEL_MAX_STATICS = 32, /* walls and doors together */
    DS_LEVEL_MAX_DOORS = 8,
    DS_LEVEL_MAX_BUTTONS = 12,
    DS_LEVEL_MAX_CUBES = 24,
    DS_LEVEL_MAX_ROOMS = 8,
    DS_LEVEL_GENERATED_ROOMS = 3,
};

/* Where the contents of a level come from. FIXED: from its fields. GENERATED: drawn at every reset as the reference
   does, from room_types; goal, rewards, physics and episode_length are still the level's. */
typedef enum ds_level_source {
    DS_LEVEL_SOURCE_FIXED = 0,
    DS_LEVEL_SOURCE_GENERATED = 1,
} ds_level_source;

/* Rooms of the reference's generator. Its own levels are DOUBLE_BUTTON, CUBE_BLOCKING, CUBE_BUTTONS. */
typedef enum ds_room_type {
    DS_ROOM_ANY = -1, /* one of those below, all equally likely */
    DS_ROOM_SINGLE_BUTTON = 0,
    DS_ROOM_DOUBLE_BUTTON = 1,
    DS_ROOM_CUBE_BLOCKING = 2,
    DS_ROOM_CUBE_BUTTONS = 3,
} ds_room_type;

/* Which agents must be in the goal for the episode to end. */
typedef enum ds_goal_agents {
    DS_GOAL_NONE = 0, /* there is no goal */
    DS_GOAL_ANY = 1,
    DS_GOAL_ALL = 2,
} ds_goal_agents;

/* A number drawn at every reset, uniform in [low, high); low where they are equal. */
typedef struct ds_range {
    float low;
    float high;
} ds_range;

/* An axis-aligned box: bottom centre and full extents, metres. */
typedef struct ds_level_box {
    float x;
    float y;
    float z;
    float size_x;
    float size_y;
    float size_z;
} ds_level_box;

typedef struct ds_level_door {
    ds_level_box panel;
    int32_t persistent; /* 1: stays open once opened */
} ds_level_door;

typedef struct ds_level_button {
    float x;
    float y;
    int32_t door; /* index of the door; it opens while all of its buttons are pressed */
} ds_level_button;

typedef struct ds_level_cube {
    float x;
    float y;
    float yaw; /* radians, counter-clockwise */
} ds_level_cube;

typedef struct ds_level_agent {
    ds_range x;
    ds_range y;
    ds_range yaw; /* radians, counter-clockwise from +y */
} ds_level_agent;

/* Rooms follow each other along y. An agent observes the door and the first six entities (buttons, then cubes, by their
   position at the start) of its room. The first room extends to minus infinity, the last one to infinity. */
typedef struct ds_level_room {
    float start;
    float end; /* y in metres; the end is the start of the next room */
    int32_t door;     /* index of the door that agents observe in this room, or -1 */
} ds_level_room;

typedef struct ds_level_goal {
    int32_t agents; /* ds_goal_agents */
    float min_x;
    float max_x;
    float min_y;
    float max_y; /* metres; an agent is in the goal when its centre is */
} ds_level_goal;

/* Reward of an agent per step: progress per metre beyond its largest y so far, or idle without progress; progress is
   multiplied by bonus_factor while the largest y of all other agents is within bonus_distance metres. room: for every
   room that it enters for the first time. exit: the first time that it is beyond the end of the last room.
   cube_approach: for all agents, per metre by which cubes came nearer to the buttons of doors that are not persistent;
   negative metres where they went away. Each button of such a door has a cube of its own, those that make the sum of
   the distances the smallest; the distance of a cube that covers its button is 0. goal: for all agents, in the step in
   which the goal ends the episode. */
typedef struct ds_level_rewards {
    float progress;
    float idle;
    float bonus_factor;
    float bonus_distance;
    float room;
    float exit;
    float cube_approach;
    float goal;
    float max_y; /* metres; y beyond it is no progress */
} ds_level_rewards;

typedef struct ds_level_physics {
    ds_range cube_mass;      /* kilograms, 1 .. 1000; agents have 1 kg */
    ds_range friction;       /* factor of all friction coefficients, 0 .. 2 */
    ds_range walking_force;  /* newtons at move amount 3, 0 .. 2000 */
    ds_range turning_torque; /* newton metres at the hardest turn, 0 .. 640 */
    ds_range door_speed;     /* metres per second, 0.1 .. 100 */
} ds_level_physics;

/* A level. Start from ds_level_default(), which is the reference's generator. */
typedef struct ds_level {
    uint32_t struct_size;
    int32_t source; /* ds_level_source */
    int32_t room_types[3]; /* GENERATED: ds_room_type of each room */
    int32_t first_room;    /* GENERATED: 0 .. 2. 0: agents begin as the reference's do; else anywhere in this room that
                              is free, and the doors behind them are closed */
    float cubes_near_buttons; /* GENERATED: 0 .. 1, how likely each cube of a CUBE_BUTTONS room is moved from where the
                                 reference's generator puts it to anywhere on the way to the button on its side */
    int32_t num_walls;
    int32_t num_doors;
    int32_t num_buttons;
    int32_t num_cubes;
    int32_t num_agents;
    int32_t num_rooms; /* FIXED */
    int32_t min_episode_length;
    int32_t max_episode_length; /* drawn at every reset, both inclusive; 0: the simulator's */
    ds_level_goal goal;
    ds_level_rewards rewards;
    ds_level_physics physics;
    ds_level_box walls[32]; /* DS_LEVEL_MAX_STATICS */
    ds_level_door doors[8];
    ds_level_button buttons[12];
    ds_level_cube cubes[24];
    ds_level_agent agents[8]; /* DS_MAX_AGENTS; at least as many as the simulator has */
    ds_level_room rooms[8];
} ds_level;

typedef uint64_t ds_saved_state; /* a world in the midst of an episode, from which any number of episodes go on */

/* An episode that does not follow the world's last one: the first episode of a simulator of one world with this seed,
   whatever the world did before; or that of a saved state, which goes on bit for bit. */
typedef struct ds_episode_start {
    int64_t world;         /* slot */
    int64_t seed;          /* 0 .. 2**32 - 1 */
    int64_t max_steps;     /* the episode ends after so many steps, or earlier; 0: no such limit. The time left that
                              worlds without levels observe is a part of the simulator's episode_length still */
    const ds_level* level; /* the level to play; null: as the simulator draws it. Only with max_levels > 0. The world is
                              then as in a simulator that has only this level, of which level_indices says 0 */
    ds_saved_state state;  /* 0: none; else seed, max_steps and level are 0 */
} ds_episode_start;

/* ---- Configuration ----------------------------------------------------------------------------------------- */

enum {
    DS_DEVICE_INDEX_CURRENT = -1, /* the GPU of the CUDA context that is current in the thread that creates a simulator,
                                     which then says its index; the first GPU without one */
};

#define DS_SIMULATOR_CONFIG_TABLE(X)                                                                               \
    X(DEVICE, device, DS_DEVICE_CPU, DS_DEVICE_CPU, DS_DEVICE_AUTO, ALL, "",                                       \
      "Where the worlds are: cpu, cuda, cuda:K or auto.", "pass a ds_device_kind")                                 \
    X(REQUIRED, num_worlds, 1, 1, DS_MAX_WORLDS, ALL, "worlds", "Worlds that are stepped at once.",                \
      "split larger batches")                                                                                      \
    X(INTEGER, seed, 0, 0, DS_MAX_SEED, ALL, "", "The same seed gives the same levels.",                           \
      "reduce the seed modulo 2**32")                                                                              \
    X(INTEGER, world_offset, 0, 0, DS_MAX_GLOBAL_WORLDS, ALL, "worlds",                                            \
      "World i is global world world_offset + i; world_offset + num_worlds is at most 2**32.",                     \
      "world_offset + num_worlds is at most 2**32")                                                                \
    X(INTEGER, num_agents, 2, 1, DS_MAX_AGENTS, ALL, "agents", "Agents in each world.",                            \
      "choose a number in this range")                                                                             \
    X(INTEGER, episode_length, 200, 1, DS_MAX_EPISODE_LENGTH, ALL, "steps", "Steps of an episode.",                \
      "pass the number of steps of an episode")                                                                    \
    X(OPTIONAL, num_threads, 0, 1, DS_MAX_THREADS, ALL, "threads",                                                 \
      "Threads that step; none: as many as the process may use.", "0 uses as many threads as the process may")     \
    X(FLAG, auto_reset, 1, 0, 1, ALL, "", "A step regenerates the worlds whose episode it ends.", "pass 0 or 1")   \
    X(CHOICE, action_check, DS_ACTION_CHECK_CLAMP, DS_ACTION_CHECK_CLAMP, DS_ACTION_CHECK_OFF, ALL, "",            \
      "Handling of actions out of range.", "pass a ds_action_check")                                               \
    X(FLAG, strict, 0, 0, 1, ALL, "", "Trouble in a world makes the next call fail.", "pass 0 or 1")               \
    X(OBSERVATIONS, observations, 7, 0, 8, ALL, "",                                                                \
      "Parts of the flat observation, in order, with their scales.",                                               \
      "pass each ds_observation_part at most once, with a scale above 0")                                          \
    X(INTEGER, max_levels, 0, 0, DS_MAX_LEVELS, ALL, "levels",                                                     \
      "Room for this many levels; 0: the reference's levels only.", "0 plays the reference's levels only")

/* Configuration of a simulator. Start from ds_simulator_config_default(). */
typedef struct ds_simulator_config {
    uint32_t struct_size;
    DS_SIMULATOR_CONFIG_TABLE(DS_CONFIG_FIELD)
    uint64_t stream;            /* CUDA: a CUstream, or DS_STREAM_OWN; DS_STREAM_OWN on the CPU. Not part of a ds_config:
                                   there it is DS_STREAM_OWN */
} ds_simulator_config;

DS_API ds_status ds_simulator_config_default(ds_simulator_config* fields);
DS_API ds_status ds_simulator_config_create(const ds_simulator_config* fields, ds_config* config);
DS_API ds_status ds_simulator_config_get(ds_config config, ds_simulator_config* fields);

/* Properties of a simulator after creation. */
typedef struct ds_simulator_info {
    uint32_t struct_size;
    int32_t device_kind;
    int64_t device_index;
    int64_t num_worlds;
    int64_t num_agents;
    int64_t num_bodies;
    int64_t num_statics;
    int64_t num_buttons;
    int64_t num_doors;
    int64_t num_threads;
    int64_t world_bytes;     /* one world block */
    int64_t allocated_bytes; /* all memory the simulator allocated */
    int64_t step_count;      /* steps begun by calls since creation; replays of a CUDA graph are not counted */
    uint64_t stream;         /* the CUstream that the work is ordered on; 0 on the CPU */
} ds_simulator_info;

/* Counts of trouble in all worlds since creation: invalid inputs, values that are not finite, dropped contacts. */
typedef struct ds_health {
    uint32_t struct_size;
    int32_t culprit_body;      /* body of the latest occurrence, or -1 */
    int64_t culprit_world;     /* its world (slot), or -1 */
    int64_t culprit_step;      /* that world's step count at the time, or -1 */
    uint64_t clamped_actions;  /* action values moved into their range */
    uint64_t dropped_contacts; /* contacts beyond the capacity of a world */
    uint64_t nonfinite_values; /* bodies, edited worlds, or draws from level weights, with a value that is not finite */
    uint64_t repaired_indices; /* state indices edited to impossible values and set back; draws of a level without a
                                  positive weight */
} ds_health;

/* ---- Simulator --------------------------------------------------------------------------------------------- */

/* Creates the worlds and generates their first levels (episode index 1). INVALID_ARGUMENT, OUT_OF_MEMORY, DEVICE. */
DS_API ds_status ds_simulator_create(const ds_simulator_config* config, ds_simulator* simulator);

/* Ends the simulator: waits for a running step, stops its threads. Its memory is freed with its last reference. */
DS_API ds_status ds_simulator_close(ds_simulator simulator);

DS_API ds_status ds_simulator_get_info(ds_simulator simulator, ds_simulator_info* info);

/* Steps every world once. INVALID_ARGUMENT if actions are checked and one is out of range; SIMULATION in strict
   mode if an earlier step counted trouble. In both cases no world is stepped. */
DS_API ds_status ds_simulator_step(ds_simulator simulator);

/* As ds_simulator_step, but returns at once; wait for the event to know that the step has ended. */
DS_API ds_status ds_simulator_step_async(ds_simulator simulator, ds_event* event);

/* An event that ends with all work begun so far. Waiting for it in several calls never waits for later work. */
DS_API ds_status ds_simulator_get_end(ds_simulator simulator, ds_event* event);

/* Regenerates worlds at once without simulating: rewards and dones become 0, observations are refreshed.
   worlds: count distinct slots, or null for all worlds. */
DS_API ds_status ds_simulator_reset(ds_simulator simulator, const int64_t* worlds, uint64_t count);

/* As ds_simulator_reset for the slots whose mask byte is not zero; count must equal num_worlds. */
DS_API ds_status ds_simulator_reset_mask(ds_simulator simulator, const uint8_t* mask, uint64_t count);

/* Fills in the reference's generator, rewards and physics; level->struct_size must be set. */
DS_API ds_status ds_level_default(ds_level* level);

/* Replaces the levels from which worlds draw at their next resets, ordered after all work begun on the simulator;
   worlds keep their present ones until then. weights: count numbers that are not negative and not all zero, written to
   the rows of the tensor "level_weights" of all worlds; null: all equal. INVALID_ARGUMENT if count exceeds max_levels,
   or if a level is refused: a field out of range, or fewer agents than the simulator's. */
DS_API ds_status ds_simulator_set_levels(ds_simulator simulator, const ds_level* levels, uint64_t count,
                                         const float* weights);

/* Rewards by which all worlds are scored from the next step on, in place of those of their levels, which worlds keep;
   null: those of the levels again. They are not part of the worlds: saves and hashes do not contain them.
   INVALID_ARGUMENT if a field is out of range. */
DS_API ds_status ds_simulator_set_rewards(ds_simulator simulator, const ds_level_rewards* rewards);

/* Begins given episodes in distinct worlds, without simulating; observations show them. A level given here has no place
   among the simulator's: "level_indices" is 0. INVALID_ARGUMENT, with nothing changed, if a world, seed or level is
   refused. */
DS_API ds_status ds_simulator_begin(ds_simulator simulator, const ds_episode_start* starts, uint64_t count);

/* Recomputes all observations from the current state, after edits. */
DS_API ds_status ds_simulator_refresh(ds_simulator simulator);

/* Counts of trouble so far. */
DS_API ds_status ds_simulator_get_health(ds_simulator simulator, ds_health* health);

/* CUDA: begins all further work on another stream (as in ds_simulator_config), ordered after the work begun before. */
DS_API ds_status ds_simulator_set_stream(ds_simulator simulator, uint64_t stream);

/* ---- Tensors and state ------------------------------------------------------------------------------------- */

/* Describes a tensor (ds_tensor_id). INVALID_ARGUMENT if this simulator does not have it. */
DS_API ds_status ds_simulator_get_tensor(ds_simulator simulator, int32_t tensor, ds_tensor_info* info);

/* Describes a state field (ds_state_id). From the first call on, every step checks the state for edits. */
DS_API ds_status ds_simulator_get_state(ds_simulator simulator, int32_t field, ds_tensor_info* info);

/* As ds_simulator_get_state, for callers that only read: steps do not check for edits. */
DS_API ds_status ds_simulator_view_state(ds_simulator simulator, int32_t field, ds_tensor_info* info);

/* A new reference to the simulator's own memory, which contains its state and all tensors that are not bound; release
   it with ds_memory_release. */
DS_API ds_status ds_simulator_get_memory(ds_simulator simulator, ds_memory* memory);
/* Another reference to the same memory. */
DS_API ds_status ds_memory_share(ds_memory memory, ds_memory* shared);
DS_API ds_status ds_memory_release(ds_memory memory);

/* Copies the elements of a tensor or state field into (read) or from (write) a C-contiguous host array of `bytes`
   bytes, ordered after all work begun on the simulator; returns when the copy is done. */
DS_API ds_status ds_memory_read(ds_memory memory, const ds_tensor_info* info, void* host, uint64_t bytes);
DS_API ds_status ds_memory_write(ds_memory memory, const ds_tensor_info* info, const void* host, uint64_t bytes);

/* Allocates memory for an attachment: `bytes` zeros on the simulator's device, at *data, aligned to 256 bytes. It is
   counted in allocated_bytes. Like the simulator's own memory it is freed with its last reference, after the work that
   uses it. memory: a new reference, to be released with ds_memory_release. */
DS_API ds_status ds_simulator_allocate(ds_simulator simulator, uint64_t bytes, ds_memory* memory, void** data);

/* CUDA: orders further work on `stream` (a CUstream) after all work begun on the simulator. */
DS_API ds_status ds_memory_order(ds_memory memory, uint64_t stream);

/* A tensor and the caller's memory, on the simulator's device, to use for it. */
typedef struct ds_binding {
    int64_t tensor;                 /* ds_tensor_id */
    void* data;                     /* aligned to its elements; null: back to the simulator's own memory */
    uint64_t bytes;                 /* of the whole tensor, C-contiguous */
    void* owner;                    /* passed to release_owner once neither the simulator nor any reference needs */
    ds_release_owner release_owner; /* the memory; a null release_owner: the caller keeps the memory valid */
} ds_binding;

/* Binds count distinct tensors: copies their elements into the given memory, which the simulator reads and writes from
   then on and ds_simulator_get_tensor() reports. Tensors obtained before show the old memory. memories: count new
   references to the memories that the tensors then use, to be released with ds_memory_release. Waits for all work begun
   on the simulator; a graph recorded before keeps using the old memory. INVALID_ARGUMENT if the memory overlaps that of
   another tensor; then nothing has changed and no owner was taken over. */
DS_API ds_status ds_simulator_bind(ds_simulator simulator, const ds_binding* bindings, uint64_t count,
                                   ds_memory* memories);

/* CPU: binds one tensor and copies nothing: its elements are undefined until the next step, refresh or reset of all
   worlds writes them. Only for tensors that each of these writes as a whole: lifetime STEP and UNSAVED; INVALID_ARGUMENT
   for others, and as for ds_simulator_bind. */
DS_API ds_status ds_simulator_redirect(ds_simulator simulator, const ds_binding* binding);

/* Watches the memory that a tensor is bound to. Each of two words, or null, is an address where the memory's owner keeps
   what differs once it has moved the memory, such as its own pointer to it, valid until the owner is released. If one
   has changed since this call, calls that use the tensors or the memory fail with INVALID_STATE, and nothing has
   changed: all that step, change or save worlds, and those of ds_memory. ds_simulator_bind then binds the tensor to
   other memory, whose elements stay as they are. Nothing watches the memory while such a call runs. */
DS_API ds_status ds_simulator_watch(ds_simulator simulator, int32_t tensor, const uint64_t* first,
                                    const uint64_t* second);
/* INVALID_STATE if this memory is watched, and has moved. */
DS_API ds_status ds_memory_check(ds_memory memory);

/* Sets a writable tensor from a C-contiguous array of `bytes` bytes, ordered after all work begun on the simulator.
   device_kind: DS_DEVICE_CPU for a host array, which may be changed after the call; otherwise the simulator's device,
   for an array there; the call only begins that copy, and on CUDA it may be recorded into a graph. */
DS_API ds_status ds_simulator_set_tensor(ds_simulator simulator, int32_t tensor, const void* data, uint64_t bytes,
                                         int32_t device_kind);

/* ---- Attachments ------------------------------------------------------------------------------------------- */

/* Processes the items [first, first + count). worker: number of the thread, below ds_turn::num_workers. */
typedef void (*ds_task)(void* context, int64_t first, int64_t count, int32_t worker);

/* Splits [0, count) among the threads of a pool, calls task on each part and returns when all parts are done. */
typedef void (*ds_run)(void* pool, int64_t count, ds_task task, void* context);

struct ds_turn;
typedef ds_status (*ds_update)(void* context, const struct ds_turn* turn);

/* The device, stream and threads that an attachment's update uses. */
typedef struct ds_turn {
    uint32_t struct_size;
    int32_t device_kind;  /* the simulator's: DS_DEVICE_CPU or DS_DEVICE_CUDA */
    int64_t device_index;
    uint64_t stream;      /* CUDA: the CUstream to begin work on, possibly captured into a graph; 0 on the CPU */
    int64_t num_workers;  /* CPU: threads of the pool; 0 on CUDA */
    void* pool;           /* CPU: the simulator's threads, for run(pool, ...); items should take microseconds */
    ds_run run;           /* CPU; null on CUDA */
} ds_turn;

/* Functions of another library, called whenever a simulator's worlds have changed. */
typedef struct ds_attachment {
    uint32_t struct_size;
    int32_t padding;
    void* context;
    ds_update update;         /* must not call functions of this simulator or its memory: they would wait for its end */
    ds_release_owner release; /* release(context) once the simulator has ended; or null */
} ds_attachment;

/* Attaches something to a simulator until the simulator ends; INVALID_ARGUMENT if something is attached already.
   update(context, turn) is called at once; if that fails nothing is attached, release is not called, and its status is
   returned. From then on it is called at the end of every step, reset, refresh and restore, before an asynchronous
   step counts as ended. If it fails there, the worlds have changed nevertheless and the call returns its status. After
   an asynchronous step on the CPU, the next call that steps, changes or reads worlds returns it and does nothing. */
DS_API ds_status ds_simulator_attach(ds_simulator simulator, const ds_attachment* attachment);

/* *attached: 1 if something is attached to the simulator, else 0. */
DS_API ds_status ds_simulator_has_attachment(ds_simulator simulator, int32_t* attached);

/* ---- Batches: worlds in the caller's memory ------------------------------------------------------------------- */

/* A batch is a set of worlds whose blocks and tensors are in the caller's memory. It has no handle: each call receives
   all addresses, and a world's block contains everything that determines its future except the rules given here. The
   same seed, actions and rules give the same bits as a simulator's. A call reads and writes only the memory it is given
   and allocates nothing; no other code may access that memory meanwhile.

   On the CPU the call returns when the work is done; batches of more than 64 worlds take turns on threads that all
   batches of the process share. On CUDA the work is one launch on `stream`, which may be recorded into a graph. */
typedef struct ds_batch {
    uint32_t struct_size;
    int32_t device_kind;     /* DS_DEVICE_CPU or DS_DEVICE_CUDA */
    int64_t device_index;    /* 0 for the CPU */
    uint64_t stream;         /* CUDA: a CUstream; 0 on the CPU */
    int64_t num_worlds;      /* 1 .. DS_MAX_WORLDS */
    int64_t num_agents;      /* 1 .. DS_MAX_AGENTS */
    int64_t episode_length;  /* steps, 1 .. DS_MAX_EPISODE_LENGTH */
    int32_t auto_reset;      /* 0 or 1 */
    int32_t action_check;    /* DS_ACTION_CHECK_CLAMP or DS_ACTION_CHECK_OFF */
    void* worlds;            /* num_worlds * world_bytes, aligned to 64 bytes; opaque: copy blocks only as a whole */
    void** tensors;          /* DS_TENSOR_COUNT addresses in the order of the table (a host array read in the call),
                                each aligned to its elements; FLAT ones may be null. resets and actions are written too:
                                0 and neutral actions after a reset; "level_indices" is written where an episode begins. */
    void* scratch;           /* CUDA: aligned to 256 bytes, any contents; null on the CPU */
    int64_t scratch_bytes;   /* see ds_batch_info; steps are slower with less */
    uint32_t* trouble;       /* DS_TROUBLE_KINDS words on the device, or null; a step sets the word of each kind of
                                trouble it counts to 1 */
    const ds_level* levels;  /* max_levels of them on the device, from which worlds draw by their rows of the tensor
                                "level_weights"; not checked: pass levels that ds_simulator_set_levels accepts */
    int64_t max_levels;      /* 0 .. DS_MAX_LEVELS; 0: the reference's levels, without the tensors of presence LEVELS */
    const ds_level_rewards* reward; /* on the host: in place of the rewards of levels; null: theirs */
    const ds_observations* observations; /* on the host: what FLAT tensors are made of, if they are given; null: the
                                            default parts */
} ds_batch;

/* Sizes of a batch. */
typedef struct ds_batch_info {
    uint32_t struct_size;
    int32_t flat_observation_size;  /* F of the tensor table */
    int64_t world_bytes;            /* one world's block */
    int64_t scratch_bytes;          /* CUDA: recommended; 0 on the CPU */
    int64_t smallest_scratch_bytes; /* CUDA: the least accepted; 0 on the CPU */
} ds_batch_info;

/* Kinds of trouble, each a word of ds_batch::trouble: contacts beyond the capacity of a world; values that are not
   finite; indices edited to impossible values. */
typedef enum ds_trouble {
    DS_TROUBLE_DROPPED_CONTACTS = 0,
    DS_TROUBLE_NONFINITE = 1,
    DS_TROUBLE_REPAIRED_INDEX = 2,
    DS_TROUBLE_KINDS,
} ds_trouble;

/* The sizes for a batch's device, num_worlds, num_agents and observations, and for max_levels being zero or not; its
   other fields may be zero. */
DS_API ds_status ds_batch_get_info(const ds_batch* batch, ds_batch_info* info);

/* CUDA: loads the kernels for a batch's device and num_agents, and for max_levels being zero or not, and waits for
   them; its other fields may be zero. They stay loaded until ds_batch_release() has been called as often. Does nothing
   on the CPU. */
DS_API ds_status ds_batch_prepare(const ds_batch* batch);
DS_API ds_status ds_batch_release(const ds_batch* batch);

/* Creates the worlds, whatever the memory contains, and writes every tensor of lifetime STEP. World i is global world
   world_offset + i of the seed; ranges as in ds_simulator_config. */
DS_API ds_status ds_batch_create(const ds_batch* batch, int64_t seed, int64_t world_offset);

/* The same, with seed and world_offset read from two words on the batch's device. Global worlds wrap modulo 2**32. */
DS_API ds_status ds_batch_create_from(const ds_batch* batch, const uint32_t* seed_and_offset);

/* Steps every world once. On the CPU: INVALID_STATE, with nothing changed, if a block was not written by
   ds_batch_create or ds_batch_step under these rules. On CUDA inputs are not validated; pass only such blocks. */
DS_API ds_status ds_batch_step(const ds_batch* batch);

/* The same with inputs that stay unchanged: they are first copied into the tensors actions and resets (zeros for null
   resets), even if the step is then refused. */
DS_API ds_status ds_batch_step_from(const ds_batch* batch, const int32_t* actions, const int32_t* resets);

/* ---- Events ------------------------------------------------------------------------------------------------ */

/* Waits for the end of one step and of all work begun on the simulator before it, at most timeout_ns (negative: without
   limit, 0: only queries). PENDING if it has not ended. */
DS_API ds_status ds_event_wait(ds_event event, int64_t timeout_ns);
DS_API ds_status ds_event_close(ds_event event);

/* ---- Save, restore, hash ----------------------------------------------------------------------------------- */

/* Size in bytes of a save of count worlds. */
DS_API ds_status ds_simulator_save_size(ds_simulator simulator, uint64_t count, uint64_t* bytes);

/* Saves worlds (null: all) into buffer; bytes must equal ds_simulator_save_size. */
DS_API ds_status ds_simulator_save(ds_simulator simulator, const int64_t* worlds, uint64_t count, void* buffer,
                                   uint64_t bytes);

/* Restores a save into the slots worlds (null: slots 0, 1, ...). INVALID_STATE, with nothing changed, if the bytes are
   not a save, are damaged, or were saved under other rules or capacities. Observations are recomputed. */
DS_API ds_status ds_simulator_restore(ds_simulator simulator, const void* data, uint64_t bytes, const int64_t* worlds,
                                      uint64_t count);

/* The state of a save of one world. Actions and resets that are pending there are no part of it. INVALID_STATE if the
   bytes are not a save of one world, are damaged, or if its episode is over. */
DS_API ds_status ds_saved_state_create(const void* data, uint64_t bytes, ds_saved_state* state);
/* Requests that were submitted keep the state. */
DS_API ds_status ds_saved_state_release(ds_saved_state state);

/* Sum (modulo 2**64) of the hashes of worlds (null: all). */
DS_API ds_status ds_simulator_hash(ds_simulator simulator, const int64_t* worlds, uint64_t count, uint64_t* hash);

/* A 64-bit hash per world, of its block, independent of its slot; count must equal num_worlds. */
DS_API ds_status ds_simulator_world_hashes(ds_simulator simulator, uint64_t* hashes, uint64_t count);

/* ---- Profile ----------------------------------------------------------------------------------------------- */

/* Name of a stage of a step, in order from 0; null beyond the last. */
DS_API const char* ds_stage_name(int32_t stage);

/* Starts (1) or stops (0) counting time per stage; starting clears the counts. */
DS_API ds_status ds_simulator_profile(ds_simulator simulator, int32_t enabled);

/* Time stamp counter ticks spent in each stage, over all threads; count is the number of stages. */
DS_API ds_status ds_simulator_get_profile(ds_simulator simulator, uint64_t* ticks, uint64_t count);

#endif
