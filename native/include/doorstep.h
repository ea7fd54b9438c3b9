/*
 * doorstep: a simulator that steps thousands of 3D multi-agent escape rooms at once.
 *
 * This header is the only interface of the native library. The ctypes declarations, constants, error classes and
 * layout checks of the Python package and the tables of the documentation are generated from it
 * (native/generate_bindings.py).
 *
 * Rules that hold for every function:
 *  1. Every call returns a ds_status. Results go to pointer arguments, which come last. A call that does not return
 *     DS_STATUS_OK has changed nothing and written nothing, unless documented otherwise.
 *  2. After a failure, ds_last_error() gives the message, the argument and the remedy. They are kept per thread, until
 *     the thread's next failing call.
 *  3. Handles are 8-byte ids {index, generation}; zero is null. A stale or null handle gives DS_STATUS_CLOSED, never
 *     undefined behaviour. Pointers must be valid; a null pointer is an argument error unless documented otherwise.
 *  4. Every function may be called from any thread. Calls on one simulator are serialised in the order they arrive.
 *  5. A simulator allocates all its memory when it is created, or in ds_simulator_allocate(). Stepping allocates
 *     nothing.
 */
#ifndef DOORSTEP_H
#define DOORSTEP_H

#include <stdint.h>

#define DS_ABI_VERSION 5
#define DS_VERSION_STRING "0.1.0"
#define DS_SAVE_FORMAT_VERSION 2

#if defined(__cplusplus)
#define DS_API extern "C" __attribute__((visibility("default")))
#else
#define DS_API __attribute__((visibility("default")))
#endif

/* ---- Status ------------------------------------------------------------------------------------------------ */

/* X(name, number, Python class, Python base classes, sentence) */
#define DS_STATUS_TABLE(X)                                                                                         \
    X(OK, 0, None, None, "The call succeeded.")                                                                    \
    X(PENDING, 1, None, None, "The work has not finished within the timeout.")                                     \
    X(INTERNAL, 2, DoorstepError, Exception, "A defect in doorstep; please report it.")                            \
    X(INVALID_ARGUMENT, 3, ArgumentError, ValueError, "An argument is outside its allowed range.")                 \
    X(INVALID_STATE, 4, StateError, ValueError, "Saved bytes are invalid, damaged or do not fit the simulator.")   \
    X(CLOSED, 5, ClosedError, RuntimeError, "The object was closed or never existed.")                             \
    X(OUT_OF_MEMORY, 6, OutOfMemoryError, MemoryError, "The requested memory cannot be allocated.")                \
    X(LIBRARY, 7, LibraryError, ImportError, "The native library is missing, outdated or not doorstep's.")         \
    X(DEVICE, 8, DeviceError, RuntimeError, "The device cannot be used.")                                          \
    X(NO_DRIVER, 9, NoDriverError, DeviceError, "No NVIDIA driver was found.")                                     \
    X(DRIVER_VERSION, 10, DriverVersionError, DeviceError, "The NVIDIA driver is too old.")                        \
    X(NO_DEVICE, 11, NoDeviceError, DeviceError, "No device has this index.")                                      \
    X(SIMULATION, 12, SimulationError, RuntimeError, "A capacity ran out or a value is not finite (strict mode).") \
    X(DEVICE_BUSY, 13, DeviceBusyError, DeviceError, "The device is in use and accepts no further process.")       \
    X(DRIVER_FUNCTION, 14, DriverFunctionError, DeviceError, "The NVIDIA driver lacks a required function.")       \
    X(RENDERER, 15, RendererError, RuntimeError, "The renderer cannot be used here.")                              \
    X(SHADER, 16, ShaderError, ValueError, "A material does not compile.")

typedef enum ds_status {
#define DS_STATUS_ENUM(name, number, python_class, python_base, sentence) DS_STATUS_##name = number,
    DS_STATUS_TABLE(DS_STATUS_ENUM)
#undef DS_STATUS_ENUM
    DS_STATUS_COUNT
} ds_status;

/* This thread's latest error. The strings are valid until the thread's next failing call. */
typedef struct ds_error {
    uint32_t struct_size;
    int32_t status;       /* ds_status */
    const char* message;  /* what happened, with the value and the allowed range */
    const char* argument; /* name of the argument, or "" */
    const char* hint;     /* the remedy, or "" */
    int32_t driver_code;  /* CUresult of the CUDA driver, or 0 */
    int32_t padding;
} ds_error;

/* ---- Enumerations ------------------------------------------------------------------------------------------ */

/* Types of elements. X(name, number, C type, DLPack's type code). numpy and PyTorch have the same names in lower case. */
#define DS_DTYPE_TABLE(X)                                                                                          \
    X(UINT8, 0, uint8_t, 1)                                                                                        \
    X(INT32, 1, int32_t, 0)                                                                                        \
    X(UINT32, 2, uint32_t, 1)                                                                                      \
    X(FLOAT32, 3, float, 2)                                                                                        \
    X(FLOAT64, 4, double, 2)

typedef enum ds_dtype {
#define DS_DTYPE_ENUM(name, number, type, dlpack_code) DS_DTYPE_##name = number,
    DS_DTYPE_TABLE(DS_DTYPE_ENUM)
#undef DS_DTYPE_ENUM
    DS_DTYPE_COUNT
} ds_dtype;

typedef enum ds_access {
    DS_ACCESS_READ = 0,
    DS_ACCESS_READ_WRITE = 1,
} ds_access;

typedef enum ds_device_kind {
    DS_DEVICE_CPU = 0,
    DS_DEVICE_CUDA = 1,
    DS_DEVICE_AUTO = 2,
} ds_device_kind;

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

/* Kinds of objects that ds_live_count() counts. */
typedef enum ds_live_kind {
    DS_LIVE_SIMULATOR = 0,
    DS_LIVE_MEMORY = 1,
    DS_LIVE_EVENT = 2,
    DS_LIVE_EXPORT = 3, /* tensors exported through DLPack */
    DS_LIVE_THREAD = 4,
    DS_LIVE_RESOURCE = 5, /* CUDA resources of any kind */
} ds_live_kind;

/* Kinds of CUDA resources. */
typedef enum ds_resource_kind {
    DS_RESOURCE_CONTEXT = 0,
    DS_RESOURCE_STREAM = 1,
    DS_RESOURCE_EVENT = 2,
    DS_RESOURCE_MEMORY_POOL = 3,
    DS_RESOURCE_DEVICE_MEMORY = 4,
    DS_RESOURCE_PINNED_MEMORY = 5,
    DS_RESOURCE_MODULE = 6,
    DS_RESOURCE_KERNEL = 7,
    DS_RESOURCE_GRAPH = 8,
    DS_RESOURCE_GRAPH_EXEC = 9,
    DS_RESOURCE_EXPORTED_MEMORY = 10,
    DS_RESOURCE_IMPORTED_MEMORY = 11,
    DS_RESOURCE_SEMAPHORE = 12,
    DS_RESOURCE_KIND_COUNT,
} ds_resource_kind;

/* Who ends a CUDA resource. OWNED: doorstep, with the last handle. BORROWED: its creator, who must keep it valid until
   the last handle is released. FOREIGN: an owner given with it, which is released with the last handle. */
typedef enum ds_ownership {
    DS_OWNERSHIP_OWNED = 0,
    DS_OWNERSHIP_BORROWED = 1,
    DS_OWNERSHIP_FOREIGN = 2,
} ds_ownership;

/* Limits of the configuration. */
enum {
    DS_MAX_AGENTS = 8,
    DS_MAX_EPISODE_LENGTH = 1000000,
    DS_MAX_WORLDS = 1073741824, /* 2**30 */
    DS_MAX_THREADS = 1024,
    DS_MAX_LEVELS = 1048576, /* 2**20 */
    DS_MAX_DIMENSIONS = 5,
    DS_MAX_ACTION_COMPONENTS = 16,
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
   shape: N worlds, A agents; F is the length of the flat observation (94 for two agents), L is max_levels. All are
   C-contiguous and aligned to 256 bytes.
   presence: ALWAYS, FLAT: only with flat_observations, or LEVELS: only with max_levels > 0.
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
      "All of the above concatenated, then steps_remaining / episode_length, then agent index / max(A-1, 1).")     \
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
      "How likely each world draws each level at a reset, relative to the sum of its row; negative is 0.")         \
    X(levels, INT32, "N,1", READ, LEVELS, EPISODE, UNSAVED, "Index of the present level.")

typedef enum ds_tensor_id {
#define DS_TENSOR_ENUM(name, ...) DS_TENSOR_##name,
    DS_TENSOR_TABLE(DS_TENSOR_ENUM)
#undef DS_TENSOR_ENUM
    DS_TENSOR_COUNT
} ds_tensor_id;

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

/* ---- Handles ----------------------------------------------------------------------------------------------- */

typedef uint64_t ds_simulator; /* a batch of worlds */
typedef uint64_t ds_memory;    /* a reference to memory that contains tensors of a simulator */
typedef uint64_t ds_event;     /* the end of an asynchronous step */
typedef uint64_t ds_resource;  /* a CUDA context, stream, event, memory, module, kernel or graph */

/* Releases the owner of memory or of a resource that doorstep uses but did not create. Called in any thread. */
typedef void (*ds_release_owner)(void* owner);

/* Processes the items [first, first + count). worker: number of the thread, below ds_turn::num_workers. */
typedef void (*ds_task)(void* context, int64_t first, int64_t count, int32_t worker);

/* Splits [0, count) among the threads of a pool, calls task on each part and returns when all parts are done. */
typedef void (*ds_run)(void* pool, int64_t count, ds_task task, void* context);

/* See ds_attachment. */
struct ds_turn;
typedef ds_status (*ds_update)(void* context, const struct ds_turn* turn);

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

/* Reward of an agent per step: progress per metre beyond its largest y so far, or idle if there is none; progress is
   multiplied by bonus_factor while the largest y of all other agents is within bonus_distance metres. room: for every
   room that it enters for the first time. goal: for all agents, in the step in which the goal ends the episode. */
typedef struct ds_level_rewards {
    float progress;
    float idle;
    float bonus_factor;
    float bonus_distance;
    float room;
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

/* ---- Configuration ----------------------------------------------------------------------------------------- */

/* Configuration of a simulator. Start from ds_simulator_config_default(). */
typedef struct ds_simulator_config {
    uint32_t struct_size;
    int32_t device_kind;        /* ds_device_kind */
    int64_t device_index;       /* 0 for the CPU */
    int64_t num_worlds;         /* 1 .. DS_MAX_WORLDS */
    int64_t seed;               /* 0 .. 2**32 - 1; the same seed gives the same levels */
    int64_t world_offset;       /* world i is global world world_offset + i; sum at most 2**32 */
    int64_t num_agents;         /* 1 .. DS_MAX_AGENTS */
    int64_t episode_length;     /* steps, 1 .. DS_MAX_EPISODE_LENGTH */
    int64_t num_threads;        /* 1 .. DS_MAX_THREADS; 0: as many as the process may use */
    int32_t auto_reset;         /* 0 or 1 */
    int32_t action_check;       /* ds_action_check */
    int32_t strict;             /* 0 or 1: trouble in a world (ds_health) makes the next call fail */
    int32_t flat_observations;  /* 0 or 1: also write "observations" */
    int64_t max_levels;         /* 0 .. DS_MAX_LEVELS: room for this many levels; 0: the reference's levels only */
    uint64_t stream;            /* CUDA: a CUstream, or DS_STREAM_OWN; DS_STREAM_OWN on the CPU */
} ds_simulator_config;

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
    uint64_t nonfinite_values; /* bodies, or edited worlds, found with a value that is not finite */
    uint64_t repaired_indices; /* state indices edited to impossible values and set back */
} ds_health;

/* ---- Library ----------------------------------------------------------------------------------------------- */

/* Must be the first call after loading. Fails with DS_STATUS_LIBRARY if the caller was built against another ABI or
   version, and with DS_STATUS_DEVICE if this CPU lacks instructions that the library uses (AVX2, FMA, BMI2). */
DS_API ds_status ds_check_version(uint32_t abi_version, const char* version);

/* Version of the library. Never fails; may be called before ds_check_version(). */
DS_API const char* ds_version(void);

/* Fills the thread's latest error; error->struct_size must be set. */
DS_API ds_status ds_last_error(ds_error* error);

/* Sets the thread's latest error, for libraries that report errors as doorstep's. status: any but OK and PENDING;
   argument and hint: or "". The strings are copied; long ones are truncated. */
DS_API ds_status ds_set_error(int32_t status, const char* argument, const char* hint, const char* message);

/* CPU features the library needs and whether this CPU has them, comma-separated ("avx2=1,fma=1,..."). */
DS_API const char* ds_cpu_features(void);

/* One field of one struct of this header, as compiled into the library; used to check the generated bindings. */
typedef struct ds_layout_entry {
    const char* struct_name;
    const char* field_name; /* "" for the struct as a whole */
    uint64_t offset;
    uint64_t size;
} ds_layout_entry;

/* Points *entries at the library's layout table. */
DS_API ds_status ds_layout(const ds_layout_entry** entries, uint64_t* count);

/* Points *api at the table of all functions, for native libraries that use doorstep without linking it; its type is
   in doorstep_api.h. version: the DS_ABI_VERSION compiled against; LIBRARY if it differs from this library's. Later
   versions append functions: compare struct_size before using them. */
struct ds_api;
DS_API ds_status ds_get_api(uint32_t version, const struct ds_api** api);

/* Number of objects of a kind (ds_live_kind) alive in this process. */
DS_API ds_status ds_live_count(int32_t kind, int64_t* count);

/* Number of threads that num_threads = 0 stands for in this process (affinity and cgroup quota). */
DS_API ds_status ds_default_thread_count(int64_t* count);

/* ---- Simulator --------------------------------------------------------------------------------------------- */

/* Fills in the defaults; config->struct_size must be set. */
DS_API ds_status ds_simulator_config_default(ds_simulator_config* config);

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

/* Waits for all work begun before, at most timeout_ns (negative: without limit). PENDING if it has not ended. */
DS_API ds_status ds_simulator_wait(ds_simulator simulator, int64_t timeout_ns);

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

/* Sets a writable tensor from a C-contiguous array of `bytes` bytes, ordered after all work begun on the simulator.
   device_kind: DS_DEVICE_CPU for a host array, which may be changed after the call; otherwise the simulator's device,
   for an array there; the call only begins that copy, and on CUDA it may be recorded into a graph. */
DS_API ds_status ds_simulator_set_tensor(ds_simulator simulator, int32_t tensor, const void* data, uint64_t bytes,
                                         int32_t device_kind);

/* ---- Attachments ------------------------------------------------------------------------------------------- */

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
    ds_update update;         /* must not call functions of this simulator: they would wait for update to end */
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
                                0 and neutral actions after a reset; "levels" is written where an episode begins. */
    void* scratch;           /* CUDA: aligned to 256 bytes, any contents; null on the CPU */
    int64_t scratch_bytes;   /* see ds_batch_info; steps are slower with less */
    uint32_t* trouble;       /* DS_TROUBLE_KINDS words on the device, or null; a step sets the word of each kind of
                                trouble it counts to 1 */
    const ds_level* levels;  /* max_levels of them on the device, from which worlds draw by their rows of the tensor
                                "level_weights"; not checked: pass levels that ds_simulator_set_levels accepts */
    int64_t max_levels;      /* 0 .. DS_MAX_LEVELS; 0: the reference's levels, without the tensors of presence LEVELS */
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

/* The sizes for a batch's device, num_worlds and num_agents, and for max_levels being zero or not; its other fields may
   be zero. */
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

/* Points *handler at a handler for XLA's FFI (jax.ffi.register_ffi_target()): "create_cpu", "step_cpu", "create_cuda",
   "step_cuda", and "initialize_cuda" for the initialize stage of the latter two. doorstep.jax calls them. */
DS_API ds_status ds_xla_handler(const char* name, void** handler);

/* ---- Training kernels -------------------------------------------------------------------------------------- */

/* Training functions on the tensors of many steps. Arrays are C-contiguous, are on the call's device and have the
   call's dtype (DS_DTYPE_FLOAT32 or DS_DTYPE_FLOAT64) unless declared otherwise; outputs overlap no other array. The
   same arrays give the same bits on every device.

   On the CPU a call returns when the work is done. On CUDA the work is one launch on `stream` (a CUstream), which may
   be recorded into a graph; call ds_training_prepare() for the device first. */

/* num_steps steps of num_columns agents. All arrays are [num_steps, num_columns]. */
typedef struct ds_advantages {
    uint32_t struct_size;
    int32_t device_kind;         /* DS_DEVICE_CPU or DS_DEVICE_CUDA */
    int64_t device_index;        /* 0 for the CPU */
    uint64_t stream;             /* CUDA: a CUstream; 0 on the CPU */
    int64_t num_steps;
    int64_t num_columns;
    int32_t dtype;               /* ds_dtype */
    int32_t padding;
    const void* rewards;
    const void* values;          /* value estimates of the observations before the step */
    const void* next_values;     /* of those after the step; where an episode ended, of its final observation */
    const uint8_t* terminations; /* nonzero: the episode ended; the value after it is 0 */
    const uint8_t* truncations;  /* nonzero: the episode was cut off; next_values is the value after it */
    const void* log_ratios;      /* V-trace: log(target policy / behaviour policy) of the actions; else null */
    void* advantages;
    void* targets;               /* for the value function */
    double discount;
    double trace_decay;          /* lambda */
    double rho_clip;             /* V-trace: ratios are clipped at these */
    double c_clip;
} ds_advantages;

/* Actions of num_components independent components, with logits [num_rows, sum of sizes]. */
typedef struct ds_multi_discrete {
    uint32_t struct_size;
    int32_t device_kind;         /* as above */
    int64_t device_index;
    uint64_t stream;
    int64_t num_rows;
    int32_t dtype;
    int32_t num_components;      /* 1 .. DS_MAX_ACTION_COMPONENTS */
    int32_t sizes[16];           /* number of choices of each, at least 1 */
    const void* logits;
    const void* uniforms;        /* sample: [num_rows, num_components], in [0, 1) */
    int32_t* actions;            /* [num_rows, num_components]: written by sample, read by the others */
    void* log_probabilities;     /* [num_rows]: sum over the components */
    void* entropies;             /* [num_rows]: likewise */
    const void* log_probability_gradients; /* backward: [num_rows] */
    const void* entropy_gradients;         /* backward: [num_rows] */
    void* logit_gradients;                 /* backward: shape of logits */
} ds_multi_discrete;

/* CUDA: loads the training kernels for a device. They stay loaded until as many calls of ds_training_release(). */
DS_API ds_status ds_training_prepare(int64_t device_index);
DS_API ds_status ds_training_release(int64_t device_index);

/* Generalised advantage estimation; targets are advantages + values. INVALID_ARGUMENT (also: not prepared), DEVICE. */
DS_API ds_status ds_generalized_advantages(const ds_advantages* call);
/* V-trace: advantages for the policy gradient, targets for the value function. */
DS_API ds_status ds_v_trace(const ds_advantages* call);

/* Samples actions; writes their log-probabilities and the entropies. */
DS_API ds_status ds_multi_discrete_sample(const ds_multi_discrete* call);
/* Log-probabilities and entropies of given actions. An action out of range is INVALID_ARGUMENT on the CPU; on CUDA the
   log-probability of its row is NaN. */
DS_API ds_status ds_multi_discrete_evaluate(const ds_multi_discrete* call);
/* Computes the gradients of the logits from those of the log-probabilities and entropies. */
DS_API ds_status ds_multi_discrete_backward(const ds_multi_discrete* call);

/* A call on Python tensors: the tensors it takes, their requirements, and where their addresses are written.
   doorstep.torch creates these for its operators; the library's builtin call_operator executes the calls. */

/* One tensor. */
typedef struct ds_operand {
    int32_t access;      /* 0: read, 1: written, 2: read and written */
    int32_t optional;    /* 1: may be None; its address is null then */
    int32_t dtypes;      /* bit k: allows ds_dtype k; bit DS_DTYPE_COUNT: bool. Operands that allow both floats share
                            one dtype */
    int32_t rank;
    int32_t extents[4];  /* per axis, index into ds_operator::extents */
    int32_t address_at;  /* byte offset of its address in the call */
} ds_operand;

typedef struct ds_operator {
    uint32_t struct_size;
    int32_t function;           /* ds_operator_function */
    int32_t operand_count;      /* at most 32 */
    int32_t extent_count;       /* at most 32 */
    const ds_operand* operands;
    const int64_t* extents;     /* -1: given by the first tensor that has it */
    const int32_t* extents_at;  /* byte offsets in the call; -1: not written */
    const void* call;           /* ds_advantages, ds_multi_discrete, or ds_batch followed by its array of addresses;
                                   complete except for what the tensors determine */
    int32_t call_bytes;         /* at most 1024 */
    int32_t dtype_at;           /* byte offset of the floats' dtype; -1: not written */
} ds_operator;

typedef enum ds_operator_function {
    DS_OPERATOR_GENERALIZED_ADVANTAGES = 0,
    DS_OPERATOR_V_TRACE = 1,
    DS_OPERATOR_MULTI_DISCRETE_SAMPLE = 2,
    DS_OPERATOR_MULTI_DISCRETE_EVALUATE = 3,
    DS_OPERATOR_MULTI_DISCRETE_BACKWARD = 4,
    DS_OPERATOR_STEP = 5,
} ds_operator_function;

/* ---- CUDA devices ------------------------------------------------------------------------------------------ */

/* The loaded driver. Versions are numbered as the driver does: 12090 is 12.9. */
typedef struct ds_cuda_driver_info {
    uint32_t struct_size;
    int32_t version;          /* the newest CUDA version the driver supports */
    int32_t minimum_version;  /* the oldest that doorstep supports */
    int32_t device_count;
} ds_cuda_driver_info;

/* Source of the machine code for a device. */
typedef enum ds_kernel_source {
    DS_KERNEL_SOURCE_EMBEDDED = 0, /* compiled when the library was built */
    DS_KERNEL_SOURCE_COMPILER = 1, /* compiled by the library from its PTX once and cached on disk */
    DS_KERNEL_SOURCE_DRIVER = 2,   /* compiled by the driver from the library's PTX */
} ds_kernel_source;

typedef struct ds_cuda_device_info {
    uint32_t struct_size;
    int32_t compute_capability; /* 90 is 9.0 */
    int32_t multiprocessors;
    int32_t kernel_source;      /* ds_kernel_source */
    int64_t total_bytes;
    int64_t free_bytes;
    char name[128];
    uint8_t uuid[16];           /* the same in every API: VkPhysicalDeviceIDProperties.deviceUUID */
} ds_cuda_device_info;

/* Result of compiling the kernels for an architecture. */
typedef struct ds_cuda_compile_info {
    uint32_t struct_size;
    int32_t from_cache;  /* 1 if the image was found on disk */
    int64_t image_bytes;
    int64_t nanoseconds;
    char cache_path[512]; /* "" if nothing was cached */
} ds_cuda_compile_info;

/* Loads the driver unless it is loaded. NO_DRIVER, DRIVER_VERSION, DRIVER_FUNCTION, NO_DEVICE, DEVICE. */
DS_API ds_status ds_cuda_get_driver(ds_cuda_driver_info* info);

/* Describes a device. Creates its context (see ds_context_create), to query the free memory. */
DS_API ds_status ds_cuda_get_device(int64_t device_index, ds_cuda_device_info* info);

/* Compiles the embedded PTX of the kernels for num_agents agents to machine code of an architecture ("sm_103"), as for
   a device without an embedded image. Needs no GPU and no driver. INVALID_ARGUMENT if the compiler does not support
   the architecture. */
DS_API ds_status ds_cuda_compile(const char* architecture, int64_t num_agents, ds_cuda_compile_info* info);

/* Names of the architectures with embedded images, comma-separated ("sm_75,sm_80,..."). */
DS_API const char* ds_cuda_architectures(void);

/* ---- CUDA resources ---------------------------------------------------------------------------------------- */

/* A handle always refers to the same resource, which stays valid while the handle exists. A resource keeps its parents
   alive: a stream its context, device memory its pool and the stream it is freed on, a kernel its module. All functions
   may be called from any thread and leave the caller's current context as it was. `owner`, where a function takes one,
   is passed to release_owner when the last handle and the last child have been released, in any thread; with a null
   release_owner the resource is only borrowed. */

typedef struct ds_resource_info {
    uint32_t struct_size;
    int32_t kind;         /* ds_resource_kind */
    int32_t ownership;    /* ds_ownership */
    int32_t device_index;
    uint64_t raw;         /* the driver's handle or address */
    uint64_t bytes;       /* of memory; otherwise 0 */
    uint64_t host;        /* address for the CPU of pinned memory; otherwise 0 */
    int64_t references;   /* handles and children that keep it alive */
} ds_resource_info;

DS_API ds_status ds_resource_get_info(ds_resource resource, ds_resource_info* info);

/* Releases a handle. The resource ends with its last handle and child. */
DS_API ds_status ds_resource_release(ds_resource resource);

/* A new handle to the resource of this kind that doorstep created and that has this raw driver handle or first address.
   CLOSED if doorstep has none: borrowed resources and those with a foreign owner are not found. */
DS_API ds_status ds_resource_find(int32_t kind, int64_t device_index, uint64_t raw, ds_resource* resource);

/* Number of resources of a kind (ds_resource_kind) alive in this process. */
DS_API ds_status ds_resource_count(int32_t kind, int64_t* count);

/* The device's primary context, which every library of the process shares. Once created, the driver's context stays
   until the process ends, even when all handles have been released. */
DS_API ds_status ds_context_create(int64_t device_index, ds_resource* context);
DS_API ds_status ds_context_synchronize(ds_resource context);

DS_API ds_status ds_stream_create(ds_resource context, ds_resource* stream);
DS_API ds_status ds_stream_borrow(ds_resource context, uint64_t raw, void* owner, ds_release_owner release_owner,
                                  ds_resource* stream);
DS_API ds_status ds_stream_synchronize(ds_resource stream);
/* PENDING while work is unfinished. */
DS_API ds_status ds_stream_query(ds_resource stream);
/* *capturing: 1 while a graph is recorded from the stream, else 0. */
DS_API ds_status ds_stream_is_capturing(ds_resource stream, int32_t* capturing);
/* Orders further work on the stream after the event. */
DS_API ds_status ds_stream_wait_event(ds_resource stream, ds_resource event);
/* Orders further work on `stream` after all work begun on `earlier`. Does nothing if one of them is being captured:
   then the code that captures orders the work. */
DS_API ds_status ds_stream_follow(ds_resource stream, ds_resource earlier);

DS_API ds_status ds_cuda_event_create(ds_resource context, int32_t timing, ds_resource* event);
DS_API ds_status ds_cuda_event_borrow(ds_resource context, uint64_t raw, void* owner, ds_release_owner release_owner,
                                      ds_resource* event);
DS_API ds_status ds_cuda_event_record(ds_resource event, ds_resource stream);
/* As ds_event_wait. */
DS_API ds_status ds_cuda_event_wait(ds_resource event, int64_t timeout_ns);
/* Milliseconds between two recorded events with timing. PENDING if one has not been reached. */
DS_API ds_status ds_cuda_event_elapsed(ds_resource start, ds_resource end, float* milliseconds);

/* The device's default pool (not owned), or a new one. */
DS_API ds_status ds_memory_pool_default(ds_resource context, ds_resource* pool);
DS_API ds_status ds_memory_pool_create(ds_resource context, ds_resource* pool);
/* Returns the pool's free memory beyond keep_bytes to the device. */
DS_API ds_status ds_memory_pool_trim(ds_resource pool, uint64_t keep_bytes);

/* Allocates memory from a pool in the order of the stream; it is freed in the order of the same stream. */
DS_API ds_status ds_device_memory_create(ds_resource pool, ds_resource stream, uint64_t bytes, ds_resource* memory);
DS_API ds_status ds_device_memory_borrow(ds_resource context, uint64_t raw, uint64_t bytes, void* owner,
                                         ds_release_owner release_owner, ds_resource* memory);
/* Changes the stream on which the memory is freed. */
DS_API ds_status ds_device_memory_set_stream(ds_resource memory, ds_resource stream);
/* Page-locked host memory that the device can access. */
DS_API ds_status ds_pinned_memory_create(ds_resource context, uint64_t bytes, ds_resource* memory);
/* Copies between two addresses that the driver can access, in the order of the stream. */
DS_API ds_status ds_copy(ds_resource stream, uint64_t to, uint64_t from, uint64_t bytes);
/* Rows of bytes, as in images. A pitch is the distance in bytes between the starts of two rows. */
typedef struct ds_row_copy {
    uint32_t struct_size;
    int32_t padding;
    uint64_t destination;
    uint64_t destination_pitch;
    uint64_t source;
    uint64_t source_pitch;
    uint64_t row_bytes;
    uint64_t num_rows;
} ds_row_copy;

/* As ds_copy, for rows. */
DS_API ds_status ds_copy_rows(ds_resource stream, const ds_row_copy* copy);

/* Memory and semaphores that CUDA shares with another API of the process, such as Vulkan, on the same device (see uuid
   above). File descriptors are those of VK_KHR_external_memory_fd and VK_KHR_external_semaphore_fd, of the handle types
   OPAQUE_FD_BIT. Memory is freed after the work of its stream; the caller orders work on other streams before that. */

/* Device memory that the other API can import: `bytes`, rounded up. ds_resource_get_info gives the rounded size, which
   is the size to import. DEVICE if the device cannot export memory. */
DS_API ds_status ds_exported_memory_create(ds_resource stream, uint64_t bytes, ds_resource* memory);
/* A new file descriptor of the memory. The caller closes it; importing it passes its ownership to the other API. */
DS_API ds_status ds_exported_memory_export(ds_resource memory, int32_t* fd);

/* Memory that the other API has exported. bytes: its size when allocated there; dedicated: 1 for an allocation made for
   a single buffer or image (VkMemoryDedicatedAllocateInfo). If the call succeeds it takes the descriptor over (closes
   it); otherwise the descriptor stays the caller's. */
DS_API ds_status ds_imported_memory_create(ds_resource stream, int32_t fd, uint64_t bytes, int32_t dedicated,
                                           ds_resource* memory);

/* A semaphore of the other API, binary (timeline = 0) or a timeline (1). fd: as above. A semaphore released while work
   is yet to wait for it or signal it ends after that work; if that takes more than some seconds it is never freed. */
DS_API ds_status ds_semaphore_import(ds_resource context, int32_t fd, int32_t timeline, ds_resource* semaphore);
/* Signals the semaphore after all work begun on the stream. A timeline is set to value, which must exceed its current
   value; for a binary one value is 0. DEVICE may be returned after the work was begun. */
DS_API ds_status ds_semaphore_signal(ds_resource semaphore, ds_resource stream, uint64_t value);
/* Makes further work on the stream wait until a timeline has reached value, or until a binary semaphore is signalled
   (value is 0). The wait resets a binary semaphore: each signal ends one wait. */
DS_API ds_status ds_semaphore_wait(ds_resource semaphore, ds_resource stream, uint64_t value);

/* A cubin, a fatbin or PTX text that ends with a zero. */
DS_API ds_status ds_module_load(ds_resource context, const void* image, ds_resource* module);
/* Loads kernels that are part of this library, for the context's device. name: "views"; INVALID_ARGUMENT for any other.
   DEVICE if this build has no machine code of them for the device. */
DS_API ds_status ds_module_load_builtin(ds_resource context, const char* name, ds_resource* module);
DS_API ds_status ds_kernel_get(ds_resource module, const char* name, ds_resource* kernel);
/* arguments: addresses of the parameters' values, as for cuLaunchKernel; grid and block: x, y, z. */
DS_API ds_status ds_kernel_launch(ds_resource kernel, ds_resource stream, const uint32_t* grid,
                                  const uint32_t* block, uint32_t shared_bytes, void** arguments);

/* Until ds_graph_end_capture(), work begun on the stream is recorded instead of executed. */
DS_API ds_status ds_graph_begin_capture(ds_resource stream);
DS_API ds_status ds_graph_end_capture(ds_resource stream, ds_resource* graph);
DS_API ds_status ds_graph_instantiate(ds_resource graph, ds_resource* graph_exec);
DS_API ds_status ds_graph_launch(ds_resource graph_exec, ds_resource stream);

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

/* ---- Interop ----------------------------------------------------------------------------------------------- */

/* Builds a DLPack managed tensor over memory, which it keeps alive until its deleter runs. versioned: 0 gives a
   DLManagedTensor, 1 a DLManagedTensorVersioned (1.0). The caller owns *managed (or hands it to a capsule). */
DS_API ds_status ds_dlpack_export(ds_memory memory, const ds_tensor_info* info, int32_t versioned, void** managed);

/* Calls the deleter of a managed tensor that was not consumed. */
DS_API ds_status ds_dlpack_delete(void* managed, int32_t versioned);

/* Creates a new dict of Python builtins, by name, that call the library's functions (a PyObject*, owned by the caller),
   for the Python package; the caller holds the GIL. raise_last_error: a Python callable that takes a status and raises.
   LIBRARY if Python's functions are not visible in this process, OUT_OF_MEMORY with Python's exception set. */
DS_API ds_status ds_python_bind(void* raise_last_error, void** fast_calls);

/* Destructor for "dltensor" and "dltensor_versioned" capsules (a PyCapsule_Destructor). */
DS_API void ds_capsule_destructor(void* capsule);

/* A ds_release_owner for Python objects to which the owner holds a reference: Python's main thread releases it soon
   after. Needs no GIL. While Python shuts down the reference is not released. */
DS_API void ds_python_release(void* object);

/* Releases at once the references that ds_python_release() left to the main thread, which may be busy for long. The
   caller holds the GIL; the objects' finalizers run in the call. */
DS_API void ds_python_release_now(void);

/* ---- Tensors of Python ------------------------------------------------------------------------------------- */

/* Tensors of PyTorch, numpy, JAX, CuPy, Warp and any other object with `__dlpack__`, used from native code. `object` is
   a PyObject*. Unless documented otherwise, the caller holds the GIL and the Python package can be imported; no Python
   exception stays set. LIBRARY if Python's functions are not visible in this process. Plain tensors of PyTorch and
   numpy take tens of nanoseconds, others microseconds. INVALID_ARGUMENT for tensors whose memory does not contain their
   elements as described: fake, meta, nested, quantised, sparse, masked and wrapped tensors, and those with the
   conjugate or the negative bit set. */

/* Libraries whose tensors are recognised. */
typedef enum ds_python_library {
    DS_PYTHON_LIBRARY_OTHER = 0,
    DS_PYTHON_LIBRARY_TORCH = 1,
    DS_PYTHON_LIBRARY_NUMPY = 2,
    DS_PYTHON_LIBRARY_JAX = 3,
    DS_PYTHON_LIBRARY_CUPY = 4,
    DS_PYTHON_LIBRARY_WARP = 5,
    DS_PYTHON_LIBRARY_DOORSTEP = 6,
} ds_python_library;

/* Describes a tensor of any library in DLPack's terms. It owns nothing: the Python object owns the memory. */
typedef struct ds_python_tensor {
    uint32_t struct_size;
    int32_t rank;          /* at most 16 */
    void* data;            /* the first element; null if there are none */
    int64_t count;         /* number of elements */
    int32_t device_type;   /* DLPack's number: 1 CPU, 2 CUDA, ... */
    int32_t device_index;
    uint8_t dtype_code;    /* DLPack's number: 0 signed, 1 unsigned, 2 float, 4 bfloat, 5 complex, 6 bool, ... */
    uint8_t dtype_bits;
    uint16_t dtype_lanes;
    uint8_t contiguous;    /* 1 if C-contiguous */
    uint8_t requires_grad;
    uint8_t read_only;     /* 0 where the library cannot report it */
    uint8_t library;       /* ds_python_library */
    int64_t shape[16];
    int64_t strides[16];   /* in elements; of unspecified value where the extent is 1 or there are no elements */
} ds_python_tensor;

/* Requirements on tensors. */
typedef struct ds_python_rules {
    uint32_t struct_size;
    int32_t requires_grad_allowed; /* 0 or 1 */
    int32_t written;               /* 1: the caller will write to them; read-only ones are refused */
    int32_t padding;
    uint64_t stream;               /* the CUstream that the caller will work on: libraries other than PyTorch order
                                      their work before it; DS_STREAM_OWN: the caller orders */
} ds_python_rules;

enum {
    DS_PYTHON_SIGNATURE_BYTES = 512, /* enough for any signature */
};

/* Whether an object is a tensor of any library, that is, its type has `__dlpack__`. */
DS_API ds_status ds_python_is_tensor(void* object, int32_t* is_tensor);

/* Describes `count` tensors. objects: PyObject*[count]; rules: or null for (no grad, not written, DS_STREAM_OWN);
   tensors: [count], with struct_size set. If one is refused, the message names its index and the contents of all
   `tensors` are undefined. */
DS_API ds_status ds_python_read_tensors(void* const* objects, uint64_t count, const ds_python_rules* rules,
                                        ds_python_tensor* tensors);

/* Writes "[torch,D2,Sfloat32,cpu,4x5]" and a 0: library, number of dimensions, dtype, device, shape, then "strided",
   "grad", "readonly" where they apply. Tensors with equal signatures pass the same checks. text:
   DS_PYTHON_SIGNATURE_BYTES; length: without the 0, or null. Needs no GIL. */
DS_API ds_status ds_python_signature(const ds_python_tensor* tensor, char* text, uint64_t* length);

/* The current stream, on a device, of the library of this tensor: a CUstream for CUDA, 0 on the CPU. DEVICE if the
   library does not report it or cannot use that device. */
DS_API ds_status ds_python_current_stream(void* object, int32_t device_type, int64_t device_index, uint64_t* stream);

/* Copies all elements of a tensor with any strides to or from nbytes C-contiguous bytes. On the CPU the pointer is to
   host memory and the copy is done on return. On CUDA it is any address that the driver can access, and the copy is
   begun on the library's current stream of the tensor's device. Other Python threads run meanwhile. INVALID_ARGUMENT
   if the size differs, or for a write to a read-only tensor or to one whose elements share memory. Gradients are not
   tracked. */
DS_API ds_status ds_python_copy_to_pointer(void* object, void* pointer, uint64_t nbytes);
DS_API ds_status ds_python_copy_from_pointer(void* object, const void* pointer, uint64_t nbytes);

/* The same for a described tensor, on a CUstream (0 on the CPU). Needs no GIL. */
DS_API ds_status ds_python_copy_out(const ds_python_tensor* tensor, uint64_t stream, void* pointer, uint64_t nbytes);
DS_API ds_status ds_python_copy_in(const ds_python_tensor* tensor, uint64_t stream, const void* pointer,
                                   uint64_t nbytes);

/* A new C-contiguous tensor of the same library, shape, dtype and device, without gradients: *made is a new reference.
   Zeros are written on the library's current stream. */
DS_API ds_status ds_python_empty_like(void* object, void** made);
DS_API ds_status ds_python_zeros_like(void* object, void** made);

/* Creates a tensor of a class with DLPack's C exchange API (torch.Tensor) over memory: *made is a new reference.
   managed: a DLManagedTensorVersioned, taken over, also on failure. INVALID_ARGUMENT for other classes. */
DS_API ds_status ds_python_tensor_over(void* type, void* managed, void** made);

#endif
