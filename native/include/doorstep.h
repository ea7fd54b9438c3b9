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
 *  3. Handles are 8-byte ids {kind, generation, index}; zero is null. A stale or null handle gives DS_STATUS_CLOSED, and
 *     a handle of another kind DS_STATUS_INVALID_ARGUMENT, never undefined behaviour. Pointers must be valid; a null
 *     pointer is an argument error unless documented otherwise.
 *  4. Every function may be called from any thread. Calls on one simulator are serialised in the order they arrive.
 *  5. Structs that begin with struct_size, which the caller sets to their size, grow at their end. Those of programs that
 *     were compiled against an earlier header with this DS_ABI_VERSION are accepted, but in arrays: fields that they lack
 *     have their defaults, or are not written.
 *  6. A simulator allocates all its memory when it is created, or in ds_simulator_allocate(). Stepping allocates
 *     nothing.
 */
#ifndef DOORSTEP_H
#define DOORSTEP_H

#include <stdint.h>

#define DS_ABI_VERSION 9
#define DS_VERSION_STRING "0.1.0"
#define DS_SAVE_FORMAT_VERSION 3

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
    X(INVALID_STATE, 4, StateError, ValueError,                                                                    \
      "Saved bytes are damaged or do not fit, or a state forbids the call.")                                       \
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
    DS_LIVE_LAYER = 6,    /* layers of policies */
    DS_LIVE_POLICY = 7,
    DS_LIVE_ROLLOUT = 8, /* engines, their queues and replicas, and shared levels */
    DS_LIVE_CONFIG = 9,  /* configurations with a handle */
    DS_LIVE_METRICS = 10, /* stores */
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
    DS_MAX_OBSERVATION_SCALE = 1000000,
};
/* 2**32 - 1; and 2**32, which world_offset + num_worlds may not exceed. */
#define DS_MAX_SEED 4294967295
#define DS_MAX_GLOBAL_WORLDS 4294967296

/* In place of the largest value of a NUMBER, see DS_CONFIG_FIELD. */
#define DS_NO_LIMIT 3.4028234663852886e+38

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

/* ---- Handles ----------------------------------------------------------------------------------------------- */

typedef uint64_t ds_simulator; /* a batch of worlds */
typedef uint64_t ds_memory;    /* a reference to memory that contains tensors of a simulator */
typedef uint64_t ds_event;     /* the end of an asynchronous step */
typedef uint64_t ds_resource;  /* a CUDA context, stream, event, memory, module, kernel or graph */
typedef uint64_t ds_layer;     /* a layer of policies */
typedef uint64_t ds_policy;    /* a network that chooses actions */
typedef uint64_t ds_config;    /* a configuration that cannot be changed */

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

/* An episode that does not follow the world's last one: the first episode of a simulator of one world with this seed,
   whatever the world did before. */
typedef struct ds_episode_start {
    int64_t world;         /* slot */
    int64_t seed;          /* 0 .. 2**32 - 1 */
    int64_t max_steps;     /* the episode ends after so many steps, or earlier; 0: no such limit. The time left that
                              worlds without levels observe is a part of the simulator's episode_length still */
    const ds_level* level; /* the level to play; null: as the simulator draws it. Only with max_levels > 0 */
} ds_episode_start;

/* ---- Configuration ----------------------------------------------------------------------------------------- */

/* A configuration is a struct whose fields are the rows of a table, and so are its defaults, its checks, and the
   dataclass of the Python package with its options of the command line.
   X(kind, name, default, low, high, of, unit, sentence, remedy): `of` is the type that has the field, or ALL; the
   remedy is the hint of an error.

   Kinds:
   INTEGER   int64_t, low .. high.
   REQUIRED  an INTEGER that has a default in C only.
   OPTIONAL  an INTEGER, or low - 1 for none.
   NUMBER    float, low .. high.
   POSITIVE  a NUMBER, more than 0.
   FLAG      int32_t, 0 or 1.
   CHOICE    int32_t, a member of the enumeration that low and high belong to.
   TYPE      a CHOICE that decides which of the other fields are used.
   DEVICE    two fields, _kind (ds_device_kind) and _index.
   DEVICES   an array of ds_device, and before it num_, the number of those that are given.
   OBSERVATIONS  a ds_observations; the default has the first `default` parts, with scale 1.
   PART      a ds_config of the kind `low`. */
#define DS_CONFIG_FIELD(kind, name, ...) DS_CONFIG_FIELD_##kind(name)
#define DS_CONFIG_FIELD_INTEGER(name) int64_t name;
#define DS_CONFIG_FIELD_REQUIRED(name) int64_t name;
#define DS_CONFIG_FIELD_OPTIONAL(name) int64_t name;
#define DS_CONFIG_FIELD_NUMBER(name) float name;
#define DS_CONFIG_FIELD_POSITIVE(name) float name;
#define DS_CONFIG_FIELD_FLAG(name) int32_t name;
#define DS_CONFIG_FIELD_CHOICE(name) int32_t name;
#define DS_CONFIG_FIELD_TYPE(name) int32_t name;
#define DS_CONFIG_FIELD_DEVICE(name) int32_t name##_kind; int64_t name##_index;
#define DS_CONFIG_FIELD_DEVICES(name) int32_t num_##name; ds_device name[256];
#define DS_CONFIG_FIELD_OBSERVATIONS(name) ds_observations name;
#define DS_CONFIG_FIELD_PART(name) ds_config name;

enum {
    DS_MAX_REPLICAS = 256,
    DS_DEVICE_INDEX_CURRENT = -1, /* the GPU of the CUDA context that is current in the thread that creates a simulator,
                                     which then says its index; the first GPU without one */
};

/* A device by kind and index. */
typedef struct ds_device {
    int32_t kind; /* ds_device_kind */
    int32_t padding;
    int64_t index; /* 0 for the CPU */
} ds_device;

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

/* How an agent's action is chosen by logits. */
typedef struct ds_sampling {
    float temperature; /* logits are divided by it; 0: the value with the largest logit of each component is chosen, the
                          first of equal ones; at least 0 */
    float top_p;       /* more than 0, at most 1: per component, only the fewest most likely values whose probabilities
                          reach this sum are drawn; not used where temperature is 0 */
} ds_sampling;

/* The same as a configuration. */
#define DS_SAMPLING_CONFIG_TABLE(X)                                                                                \
    X(NUMBER, temperature, 1, 0, DS_NO_LIMIT, ALL, "",                                                             \
      "Logits are divided by it. The smaller, the likelier the most likely values become; 0 is as greedy.", "")    \
    X(FLAG, greedy, 0, 0, 1, ALL, "", "Choose the value with the largest logit, the first of equal ones.",         \
      "pass 0 or 1")                                                                                               \
    X(POSITIVE, top_p, 1, 0, 1, ALL, "",                                                                           \
      "Draw only from the fewest most likely values whose probabilities reach this sum, per component; 1: all.",   \
      "")                                                                                                          \
    X(OPTIONAL, seed, -1, 0, DS_MAX_SEED, ALL, "",                                                                 \
      "Of the random numbers. Without one, a request uses its episode's seed, and a policy draws one.",            \
      "-1 for no seed")

typedef struct ds_sampling_config {
    uint32_t struct_size;
    DS_SAMPLING_CONFIG_TABLE(DS_CONFIG_FIELD)
} ds_sampling_config;

/* Kinds of configurations with handles, by their structs ds_<kind>_config. */
typedef enum ds_config_kind {
    DS_CONFIG_SIMULATOR = 0,
    DS_CONFIG_SAMPLING = 1,
    DS_CONFIG_SCHEDULER = 2,
    DS_CONFIG_CONTROLLER = 3,
    DS_CONFIG_METRICS = 4,
    DS_CONFIG_ROLLOUT = 5,
} ds_config_kind;

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

/* ---- Configurations with handles --------------------------------------------------------------------------- */

/* A ds_config is a checked copy of a struct. It lives while a handle, or a configuration or engine composed of it, refers
   to it. */

/* For each kind: its defaults; a configuration of its fields, INVALID_ARGUMENT if one is out of range or a part is of
   another kind; and the fields read back, where parts are 0, see ds_config_get_part. struct_size must be set. */
DS_API ds_status ds_simulator_config_default(ds_simulator_config* fields);
DS_API ds_status ds_simulator_config_create(const ds_simulator_config* fields, ds_config* config);
DS_API ds_status ds_simulator_config_get(ds_config config, ds_simulator_config* fields);

DS_API ds_status ds_sampling_config_default(ds_sampling_config* fields);
DS_API ds_status ds_sampling_config_create(const ds_sampling_config* fields, ds_config* config);
DS_API ds_status ds_sampling_config_get(ds_config config, ds_sampling_config* fields);

DS_API ds_status ds_config_release(ds_config config);

DS_API ds_status ds_config_get_kind(ds_config config, int32_t* kind);

/* A new handle to the part of this kind that it was composed of. INVALID_ARGUMENT if it has none. */
DS_API ds_status ds_config_get_part(ds_config config, int32_t kind, ds_config* part);

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
    double gamma;                /* what a reward is worth a step earlier */
    double gae_lambda;           /* also the lambda of V-trace */
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

/* ---- Policies ---------------------------------------------------------------------------------------------- */

/* A policy is a network that reads flat observations (the tensor "observations") and chooses actions: layers one after
   another, the last of which give a logit per value of each component of DS_ACTION_TABLE, DS_NUM_LOGITS in all. It is
   evaluated where its weights are: on the CPU or on a CUDA device, in single precision.

   Weights are read where the caller keeps them, in every call: who changes them in place changes the policy. The caller
   lets no call run meanwhile.

   A row's results have the same bits whatever the other rows of the call, its place among them, the thread, the
   processor and the device. Calls on one policy may run at the same time. On the CPU a call allocates memory only if
   more run at once than ever before.

   On CUDA a call begins one launch on a stream of the caller's, which may be captured, and returns. All arrays are on
   the policy's device and not checked, except for null pointers. Launches for one policy are executed in the order of
   the calls, on whichever streams; the stream of the latest call exists until the next call or the policy's end. A
   captured launch is ordered by the code that captures it.

   A layer lives while a handle or a policy refers to it; a policy lives while a handle or a call does. */

enum {
    DS_NUM_LOGITS = 19,         /* sum of the sizes in DS_ACTION_TABLE */
    DS_MAX_POLICY_LAYERS = 256,
    DS_MAX_LAYER_WIDTH = 65536, /* inputs or outputs of a layer */
};

/* Kinds of layers, as in PyTorch: the modules of these names with the same formulas and layouts of weights. */
typedef enum ds_layer_kind {
    DS_LAYER_LINEAR = 0,
    DS_LAYER_LAYER_NORM = 1, /* over all inputs */
    DS_LAYER_RMS_NORM = 2,   /* likewise, without biases */
    DS_LAYER_LSTM = 3,       /* one layer, one direction; gates i, f, g, o; its state is h, then c */
    DS_LAYER_GRU = 4,        /* likewise; gates r, z, n; its state is h */
    DS_LAYER_RELU = 5,       /* this and all that follow: per element */
    DS_LAYER_RELU6 = 6,
    DS_LAYER_LEAKY_RELU = 7,
    DS_LAYER_ELU = 8,
    DS_LAYER_CELU = 9,
    DS_LAYER_SELU = 10,
    DS_LAYER_SILU = 11,
    DS_LAYER_MISH = 12,
    DS_LAYER_SIGMOID = 13,
    DS_LAYER_HARDSIGMOID = 14,
    DS_LAYER_HARDSWISH = 15,
    DS_LAYER_TANH = 16,
    DS_LAYER_SOFTSIGN = 17,
    DS_LAYER_SOFTPLUS = 18,
    DS_LAYER_GELU = 19,
    DS_LAYER_GELU_TANH = 20, /* with the approximation by tanh */
} ds_layer_kind;

/* Types of weights. Those of 16 bits are widened when they are read: all arithmetic is in single precision. */
typedef enum ds_weight_type {
    DS_WEIGHT_FLOAT32 = 0,
    DS_WEIGHT_BFLOAT16 = 1,
} ds_weight_type;

/* A layer. I inputs, O outputs; G is O for LINEAR, 4 O for LSTM, 3 O for GRU. Arrays are C-contiguous and aligned to
   their elements; null biases are zero, null weights of norms are one. Fields that a kind lacks are zero. */
typedef struct ds_layer_config {
    uint32_t struct_size;
    int32_t kind;                   /* ds_layer_kind */
    int64_t num_inputs;             /* 1 .. DS_MAX_LAYER_WIDTH; 0 for kinds that work per element */
    int64_t num_outputs;            /* 1 .. DS_MAX_LAYER_WIDTH for LINEAR, LSTM, GRU; else 0 */
    int32_t weight_type;            /* ds_weight_type, of all arrays */
    float parameter;                /* norms: epsilon; LEAKY_RELU: slope below 0; ELU, CELU: alpha; SOFTPLUS: beta */
    const void* weights;            /* [G, I]; norms: [I] */
    const void* biases;             /* [G]; LAYER_NORM: [I] */
    const void* hidden_weights;     /* LSTM, GRU: [G, O] */
    const void* hidden_biases;      /* LSTM, GRU: [G] */
    void* owner;                    /* passed to release_owner once no handle and no policy needs the arrays; with a */
    ds_release_owner release_owner; /* null release_owner the caller keeps them valid */
    int64_t device_index;           /* of the arrays */
    int32_t device_kind;            /* ds_device_kind, likewise */
    int32_t padding;
} ds_layer_config;

/* Creates a layer. INVALID_ARGUMENT; then the owner was not taken over. */
DS_API ds_status ds_layer_create(const ds_layer_config* config, ds_layer* layer);
DS_API ds_status ds_layer_release(ds_layer layer);

/* The layer as it was created, without its owner. */
DS_API ds_status ds_layer_get_config(ds_layer layer, ds_layer_config* config);

typedef struct ds_policy_info {
    uint32_t struct_size;
    int32_t num_layers;
    int32_t num_heads;
    int32_t vector_width;      /* rows that one instruction processes on this processor */
    int64_t num_inputs;        /* floats of an observation */
    int64_t state_size;        /* floats of a recurrent state; 0: the policy has none */
    int64_t nonfinite_rows;    /* rows so far for which no action could be chosen, see ds_policy_act(); CUDA: in calls
                                  that have ended */
    int64_t device_index;
    int32_t device_kind;       /* ds_device_kind */
    int32_t has_value;         /* its last head is the value */
} ds_policy_info;

/* Composes a policy of `count` layers: each takes the outputs of the one before. The last num_heads of them, LINEAR,
   take the same inputs instead; their outputs side by side are the logits. One more head with one output, the last one,
   is the value of the observations. 0 heads: the logits are the outputs of the last layer. INVALID_ARGUMENT if the
   numbers of inputs and outputs do not fit, there are not DS_NUM_LOGITS, or the layers are on several devices. CUDA: loads the kernel; DEVICE, OUT_OF_MEMORY. */
DS_API ds_status ds_policy_create(const ds_layer* layers, uint64_t count, uint64_t num_heads, ds_policy* policy);
DS_API ds_status ds_policy_release(ds_policy policy);

DS_API ds_status ds_policy_get_info(ds_policy policy, ds_policy_info* info);

/* A new handle to one of its layers, 0 to num_layers - 1; release it with ds_layer_release. */
DS_API ds_status ds_policy_get_layer(ds_policy policy, uint64_t index, ds_layer* layer);

/* A new policy with copies of all weights as they are now. CUDA: waits for the calls so far, then for the copies. */
DS_API ds_status ds_policy_freeze(ds_policy policy, ds_policy* frozen);

/* What an agent's random numbers depend on, and nothing else: different for every action of a run. */
typedef struct ds_sampling_key {
    uint32_t key[2];
    uint32_t step;
    uint32_t agent; /* below 2**30 */
} ds_sampling_key;

/* Rows of a policy's inputs and outputs. Row i of the call is row rows[i] of all arrays but logits. */
typedef struct ds_policy_call {
    uint32_t struct_size;
    uint32_t step;                  /* added to the step of every key, modulo 2**32 */
    int64_t num_rows;
    const int32_t* rows;            /* num_rows distinct indices, at least 0; null: 0, 1, ... */
    const float* observations;      /* rows of num_inputs floats */
    int64_t observation_stride;     /* floats from a row to the next, at least num_inputs */
    float* states;                  /* rows of state_size floats, updated in place; zero at the start of an episode;
                                       null if the policy has none */
    int64_t state_stride;           /* floats, at least state_size */
    const ds_sampling* sampling;    /* a row each; null in ds_policy_forward */
    const ds_sampling_key* keys;    /* a row each; null in ds_policy_forward */
    int32_t* actions;               /* rows of DS_ACTION_COMPONENT_COUNT; null in ds_policy_forward */
    float* logits;                  /* [num_rows, DS_NUM_LOGITS], by i; ds_policy_act: or null */
    uint8_t* nonfinite;             /* a row each: 1 if no action could be chosen, else 0; or null */
    const uint32_t* step_counter;   /* one number, which is added too when the call is executed; or null */
    uint64_t stream;                /* CUDA: the CUstream; 0: the legacy default stream. CPU: 0 */
    float* log_probs;               /* a row each: the logarithm of the probability with which the action was drawn, by
                                       temperature and top_p too: 0 of a greedy choice, NaN where none could be made; or
                                       null, as in ds_policy_forward */
    float* values;                  /* a row each: the value, NaN of policies that have none; or null */
} ds_policy_call;

/* Computes logits, values and the next states; on the CPU on the calling thread. */
DS_API ds_status ds_policy_forward(ds_policy policy, const ds_policy_call* call);

/* The same, and chooses actions. A logit of minus infinity excludes its value. Where a logit is NaN or infinity, or all
   values of a component are excluded, the action is the neutral one, and the row is counted in nonfinite_rows. */
DS_API ds_status ds_policy_act(ds_policy policy, const ds_policy_call* call);

/* ---- Metrics ----------------------------------------------------------------------------------------------- */

/* A store holds series: what was recorded of things like steps or waits. Each is known by its name and its labels. Queues
   and replicas of rollouts record in the store that their queue was created with. Recording takes no lock; readers see
   values soon after. Series that a store has stay there. */

typedef uint64_t ds_metrics; /* a store of series, and a trace */
typedef uint64_t ds_series;  /* one series; it outlives the store */

enum {
    DS_MAX_SERIES = 16384,              /* of a store */
    DS_MAX_TRACE_EVENTS = 16777216,     /* of each queue and replica; 2**24 */
    DS_MAX_TRACE_TRACKS = 256,          /* queues and replicas in the trace of a store */
    DS_TIME_SERIES_POINTS = 512,        /* most points of a time series */
    DS_SKETCH_RELATIVE_ERROR_PERCENT = 1,
    DS_SKETCH_WINDOW_SECONDS = 60,      /* longest window of recent values */
};

typedef enum ds_series_kind {
    DS_SERIES_COUNTER = 0,     /* a number that grows, and stays at 2**63 - 1 */
    DS_SERIES_TIME_SERIES = 1, /* values over time: totals of equal spans, which become longer as time passes */
    DS_SERIES_SKETCH = 2,      /* quantiles of values, within a relative error; values below 2**-40 count as 0, values
                                  above 2**40 as 2**40 */
} ds_series_kind;

/* name: letters, digits and underscores. labels: as Prometheus writes them, a="x",b="y", in the order of their names;
   values escape \\, \" and line feeds. */
typedef struct ds_series_info {
    uint32_t struct_size;
    int32_t kind;          /* ds_series_kind */
    char name[64];
    char labels[256];
    char description[192]; /* a sentence, or "" */
} ds_series_info;

/* What a series has recorded. */
typedef struct ds_series_totals {
    uint32_t struct_size;
    int32_t padding;
    int64_t count;         /* of values; of a counter: its number */
    double sum;
    double minimum;        /* 0 without values, as below; 0 for counters */
    double maximum;
    double last;           /* of a time series: its latest value */
    int64_t last_ns;       /* when that was, on ds_monotonic_ns() */
} ds_series_totals;

/* The values of one span of a time series. */
typedef struct ds_series_point {
    int64_t start_ns;      /* on ds_monotonic_ns() */
    int64_t length_ns;
    int64_t count;         /* of values, at least 1 */
    double sum;
    double minimum;
    double maximum;
} ds_series_point;

/* What an engine measures. */
#define DS_METRICS_CONFIG_TABLE(X)                                                                                 \
    X(FLAG, enabled, 1, 0, 1, ALL, "", "Whether it measures at all.", "pass 0 or 1")                               \
    X(INTEGER, trace, 0, 0, DS_MAX_TRACE_EVENTS, ALL, "events",                                                    \
      "Events that the queue and each replica keep for a trace, the latest ones; one takes 48 bytes.",             \
      "0 is no trace")

typedef struct ds_metrics_config {
    uint32_t struct_size;
    DS_METRICS_CONFIG_TABLE(DS_CONFIG_FIELD)
} ds_metrics_config;

DS_API ds_status ds_metrics_config_default(ds_metrics_config* fields);
DS_API ds_status ds_metrics_config_create(const ds_metrics_config* fields, ds_config* config);
DS_API ds_status ds_metrics_config_get(ds_config config, ds_metrics_config* fields);

/* trace_capacity: events that each queue and each replica keeps, the latest ones, 0 .. DS_MAX_TRACE_EVENTS; 0: none. */
DS_API ds_status ds_metrics_create(int64_t trace_capacity, ds_metrics* metrics);
/* A part of the store, for an engine of several that share it: what is opened in it has these labels too, and is in both.
   Its trace is the store's. labels: as in ds_series_info; a series that has one of them already is INVALID_ARGUMENT. */
DS_API ds_status ds_metrics_label(ds_metrics metrics, const char* labels, ds_metrics* part);
/* Releases the handle. The store lives while a queue or a replica uses it. */
DS_API ds_status ds_metrics_release(ds_metrics metrics);
/* Opens the series with this name and these labels, or creates it with the description.
   INVALID_ARGUMENT if it is of another kind, or the store has DS_MAX_SERIES others. */
DS_API ds_status ds_metrics_open_series(ds_metrics metrics, int32_t kind, const char* name, const char* labels,
                                        const char* description, ds_series* series);
DS_API ds_status ds_metrics_num_series(ds_metrics metrics, uint64_t* count);
/* A new handle to one of them, 0 to num_series - 1, in the order of their creation. */
DS_API ds_status ds_metrics_get_series(ds_metrics metrics, uint64_t index, ds_series* series);
/* Adds what all series of another store have recorded to the series of this one. without: names of labels that are left
   out, separated by commas, so that series that differ in nothing else become one; "": none. */
DS_API ds_status ds_metrics_merge(ds_metrics metrics, ds_metrics source, const char* without);

DS_API ds_status ds_series_release(ds_series series);
DS_API ds_status ds_series_get_info(ds_series series, ds_series_info* info);
DS_API ds_status ds_series_get_totals(ds_series series, ds_series_totals* totals);
/* Adds a value: to a counter an integer, 0 to 2**53; to a sketch a number, at least 0; to a time series any number.
   time_ns: when it was, on ds_monotonic_ns(), at least 0; counters ignore it. */
DS_API ds_status ds_series_record(ds_series series, double value, int64_t time_ns);
/* values: [count], the quantiles of a sketch: with a fraction q, the value at place floor(q * (n - 1)) of its n values in
   ascending order, within 1%; 0 if there are none. fractions: [count], 0 to 1. window_ns: 0: of all values; otherwise of
   those of the last window_ns nanoseconds and up to 8.6 seconds before, at most DS_SKETCH_WINDOW_SECONDS. */
DS_API ds_status ds_series_get_quantiles(ds_series series, int64_t window_ns, const double* fractions, uint64_t count,
                                         double* values);
/* Up to most points of a time series, in the order of time. */
DS_API ds_status ds_series_get_points(ds_series series, uint64_t most, ds_series_point* points, uint64_t* count);

/* What an event of a trace tells. The first ones take time. */
typedef enum ds_trace_kind {
    DS_TRACE_SUBMIT = 0,  /* count: requests that were submitted */
    DS_TRACE_ANSWER = 1,  /* count: requests that were answered without play */
    DS_TRACE_TAKE = 2,    /* count: requests that a replica took */
    DS_TRACE_BEGIN = 3,   /* count: episodes that began */
    DS_TRACE_ACT = 4,     /* count: rows; detail: index of the policy */
    DS_TRACE_STEP = 5,    /* count: worlds that played */
    DS_TRACE_END = 6,     /* count: episodes that ended */
    DS_TRACE_WAIT = 7,    /* for requests */
    DS_TRACE_REQUEST_SUBMITTED = 8, /* of a request with DS_RECORD_TRACE, at a point of time, as below */
    DS_TRACE_REQUEST_BEGUN = 9,
    DS_TRACE_REQUEST_ENDED = 10,    /* detail: ds_episode_reason */
} ds_trace_kind;

typedef struct ds_trace_event {
    int64_t start_ns;      /* on ds_monotonic_ns() */
    int64_t duration_ns;
    uint64_t request;      /* id, or 0 */
    int64_t count;
    int32_t kind;          /* ds_trace_kind */
    int32_t detail;
    int32_t track;         /* of the queue or replica: its number in the store */
    int32_t replica;       /* number of the replica; of a queue: -1 */
} ds_trace_event;

/* Copies the events that are kept, track by track, in the order in which they were recorded. events: room for `most`, or
   null: then *count is the number there is room for in the store. Tracks that may not fit are left out. */
DS_API ds_status ds_metrics_get_trace(ds_metrics metrics, uint64_t most, ds_trace_event* events, uint64_t* count);

/* ---- Rollouts ---------------------------------------------------------------------------------------------- */

/* Episodes as requests. Callers submit requests to an engine, from any thread. Its replicas, each a simulator with a
   thread of its own, play them, each in a world, and callers take the results. What an episode's result is depends on
   its request alone: not on its replica, world, or the order of arrival. */

typedef uint64_t ds_shared_level;  /* a level that requests refer to */
typedef uint64_t ds_engine;        /* replicas, the requests that they play, and the results */

enum {
    DS_MAX_POLICIES = 1024,           /* of an engine */
    DS_MAX_QUEUE_CAPACITY = 16777216, /* 2**24 */
};

/* How a replica takes requests. FIXED_CHUNK: in order of arrival, at most max_chunk per step. DYNAMIC_CHUNK: in order of
   arrival, as many per step as keep the time to begin episodes below a fraction of a step's. PRIORITY: the highest
   priority first. EARLIEST_DEADLINE: those without one last. LEAST_REMAINING_STEPS: the smallest max_steps first, those
   without a limit last. FAIR_SHARE: the policy that has been given the fewest steps first, in order of arrival for
   each. */
typedef enum ds_scheduler {
    DS_SCHEDULER_FIXED_CHUNK = 0,
    DS_SCHEDULER_DYNAMIC_CHUNK = 1,
    DS_SCHEDULER_PRIORITY = 2,
    DS_SCHEDULER_EARLIEST_DEADLINE = 3,
    DS_SCHEDULER_LEAST_REMAINING_STEPS = 4,
    DS_SCHEDULER_FAIR_SHARE = 5,
} ds_scheduler;

/* Why an episode ended. */
typedef enum ds_episode_reason {
    DS_EPISODE_GOAL = 0,      /* the level's goal was reached */
    DS_EPISODE_TIME = 1,      /* the level's or the simulator's length, or max_steps */
    DS_EPISODE_CANCELLED = 2,
    DS_EPISODE_EXPIRED = 3,   /* its deadline passed */
    DS_EPISODE_FAILED = 4,    /* see ds_failure_cause */
} ds_episode_reason;

/* Why an episode FAILED. Positive numbers are those of callers, of ds_engine_return_rows() or ds_engine_set_policy(). */
typedef enum ds_failure_cause {
    DS_CAUSE_NONE = 0,
    DS_CAUSE_MEMORY = -1,     /* no memory was left for what its request records, or for its policy */
    DS_CAUSE_SIMULATION = -2, /* in strict mode: a step counted trouble */
    DS_CAUSE_CLOSED = -3,     /* the engine was closed before the result was known */
    DS_CAUSE_REPLICA = -4,    /* the last replica has failed, see ds_engine_get_replica() */
    DS_CAUSE_DEVICE = -5,     /* its policy is on a CUDA device where its replica is not */
    DS_CAUSE_LOGITS = -16,    /* less 8 * step + agent: a native policy could choose no action, see ds_policy_act(); the
                                 episode made this step with the neutral one */
} ds_failure_cause;

/* What a request asks for beside its result. Bits. */
typedef enum ds_episode_record {
    DS_RECORD_ACTIONS = 1,      /* the result has the actions of all steps */
    DS_RECORD_OBSERVATIONS = 2, /* likewise, observations before each step, and rewards */
    DS_RECORD_STREAM = 4,       /* an output after every step */
    DS_RECORD_TRACE = 8,        /* its way through the engine is shown in the trace, if there is one */
    DS_RECORD_LOG_PROBS = 16,   /* as ACTIONS, and logarithms of the probabilities with which they were chosen, and the
                                   versions of the policies. Not in engines with replicas on CUDA, as the next two */
    DS_RECORD_VALUES = 32,      /* as ACTIONS, and what native policies with a value head expected */
    DS_RECORD_STATES = 64,      /* as ACTIONS, and recurrent states of native policies, before each step and at the end */
} ds_episode_record;

/* An episode to be played. Zeroed, it is seed 0 on the simulator's own level with policy 0 for all agents, which chooses
   the most likely actions. */
typedef struct ds_episode_request {
    uint64_t tag;            /* the caller's; comes back with the outputs */
    int64_t seed;            /* of the level, 0 .. 2**32 - 1 */
    int64_t sampling_seed;   /* of the actions, 0 .. 2**32 - 1 */
    ds_shared_level level;   /* 0: as the simulator draws it */
    int64_t max_steps;       /* 0: no limit beyond the level's */
    int64_t priority;        /* for the scheduler PRIORITY; larger is earlier */
    int64_t deadline_ns;     /* on ds_monotonic_ns(); 0: none */
    ds_sampling sampling;    /* of native policies */
    int32_t record;          /* bits of ds_episode_record */
    int32_t policies[8];     /* DS_MAX_AGENTS; index of each agent's policy */
    int32_t replica;         /* for the controller CALLER: the number of the one that plays it; -1: any */
    int32_t padding;
} ds_episode_request;

typedef enum ds_output_kind {
    DS_OUTPUT_RESULT = 0, /* the last output of a request */
    DS_OUTPUT_STEP = 1,   /* one step, of requests with DS_RECORD_STREAM */
} ds_output_kind;

/* An output of a request. */
typedef struct ds_episode_output {
    uint64_t id;
    uint64_t tag;
    uint64_t state_hash;  /* of the world at the end, as ds_simulator_world_hashes(); 0 if no step was made */
    ds_memory data;       /* what the request asked to record, see below; the caller releases it. 0: nothing */
    const void* data_start;
    uint64_t data_bytes;
    int64_t submitted_ns; /* on ds_monotonic_ns() */
    int64_t started_ns;   /* 0 if it never started */
    int64_t ended_ns;
    int64_t cause;        /* ds_failure_cause */
    int32_t kind;         /* ds_output_kind */
    int32_t reason;       /* ds_episode_reason; of a step: -1 */
    int32_t length;       /* steps so far */
    int32_t num_agents;
    int32_t replica;      /* number of the replica, or -1 */
    int32_t world;        /* its slot, or -1 */
    float returns[8];     /* sum of each agent's rewards */
    float max_y[8];       /* largest y of each agent, metres */
    int32_t record;       /* of the request */
    int32_t state_size;   /* S: the most floats of a recurrent state that a policy of the episode had at its beginning */
} ds_episode_output;

/* data of a result is a row per step, and of a step one row. A row is, in this order:
     int32 actions [A, 4];
     with DS_RECORD_LOG_PROBS float32 log_probs [A], as in ds_policy_call: also of random and idle actions, NaN of a
       caller's; then int32 versions [A] of the policies that chose, see ds_engine_set_policy();
     with DS_RECORD_VALUES float32 values [A], as in ds_policy_call, NaN of policies that are not native;
     with DS_RECORD_STATES float32 states [A, S] from before the action; shorter ones have zeros at the end;
     with DS_RECORD_OBSERVATIONS float32 observations [A, F] from before the step, then float32 rewards [A].
   Behind the rows of a result are the states [A, S] and the observations [A, F] after its last step, if it has them. */

#define DS_SCHEDULER_CONFIG_TABLE(X)                                                                               \
    X(TYPE, type, DS_SCHEDULER_DYNAMIC_CHUNK, DS_SCHEDULER_FIXED_CHUNK, DS_SCHEDULER_FAIR_SHARE, ALL, "",          \
      "Which requests are played first.", "pass a ds_scheduler")                                                   \
    X(OPTIONAL, max_chunk, 0, 1, DS_MAX_WORLDS, ALL, "episodes",                                                   \
      "Most episodes that a replica begins between two steps; none: as many as it has free worlds.",               \
      "0 is no limit")                                                                                             \
    X(POSITIVE, begin_fraction, 1, 0, 1, DYNAMIC_CHUNK, "steps",                                                   \
      "Part of a step's time that the episodes begun between two steps may take.", "")

typedef struct ds_scheduler_config {
    uint32_t struct_size;
    DS_SCHEDULER_CONFIG_TABLE(DS_CONFIG_FIELD)
    int32_t padding;
} ds_scheduler_config;

DS_API ds_status ds_scheduler_config_default(ds_scheduler_config* fields);
DS_API ds_status ds_scheduler_config_create(const ds_scheduler_config* fields, ds_config* config);
DS_API ds_status ds_scheduler_config_get(ds_config config, ds_scheduler_config* fields);

/* How requests reach the replicas. PULL: all take from one queue. ROUND_ROBIN: each has a queue of its own, and the next
   request goes to the next one. CALLER: likewise, but to the one that the request names. */
typedef enum ds_controller {
    DS_CONTROLLER_PULL = 0,
    DS_CONTROLLER_ROUND_ROBIN = 1,
    DS_CONTROLLER_CALLER = 2,
} ds_controller;

#define DS_CONTROLLER_CONFIG_TABLE(X)                                                                              \
    X(TYPE, type, DS_CONTROLLER_PULL, DS_CONTROLLER_PULL, DS_CONTROLLER_CALLER, ALL, "",                           \
      "How requests reach the replicas.", "pass a ds_controller")                                                  \
    X(INTEGER, depth, 4096, 1, DS_MAX_QUEUE_CAPACITY, ROUND_ROBIN, "requests",                                     \
      "Requests that wait for one replica at most; the others wait in the engine's queue.", "")

typedef struct ds_controller_config {
    uint32_t struct_size;
    DS_CONTROLLER_CONFIG_TABLE(DS_CONFIG_FIELD)
} ds_controller_config;

DS_API ds_status ds_controller_config_default(ds_controller_config* fields);
DS_API ds_status ds_controller_config_create(const ds_controller_config* fields, ds_config* config);
DS_API ds_status ds_controller_config_get(ds_config config, ds_controller_config* fields);

/* Configuration of an engine. Of the simulator auto_reset is not used, nor are seed and world_offset; without
   observations it has the default parts. */
#define DS_ROLLOUT_CONFIG_TABLE(X)                                                                                 \
    X(DEVICES, devices, 0, 0, DS_MAX_REPLICAS, ALL, "",                                                            \
      "One replica is made on each; none: one, on the simulator's device.", "pass at most 256 devices")            \
    X(PART, simulator, 0, DS_CONFIG_SIMULATOR, DS_CONFIG_SIMULATOR, ALL, "",                                       \
      "Of every replica. Requests with levels need a positive max_levels.", "")                                    \
    X(PART, scheduler, 0, DS_CONFIG_SCHEDULER, DS_CONFIG_SCHEDULER, ALL, "", "How replicas take requests.", "")    \
    X(PART, controller, 0, DS_CONFIG_CONTROLLER, DS_CONFIG_CONTROLLER, ALL, "",                                    \
      "How requests reach replicas.", "")                                                                          \
    X(PART, metrics, 0, DS_CONFIG_METRICS, DS_CONFIG_METRICS, ALL, "", "What the engine measures.", "")            \
    X(INTEGER, queue_capacity, 1048576, 1, DS_MAX_QUEUE_CAPACITY, ALL, "requests",                                 \
      "Requests that wait at most.", "")                                                                           \
    X(INTEGER, max_policies, 64, 1, DS_MAX_POLICIES, ALL, "policies",                                              \
      "Different policies that unanswered requests may have.", "")

typedef struct ds_rollout_config {
    uint32_t struct_size;
    DS_ROLLOUT_CONFIG_TABLE(DS_CONFIG_FIELD)
} ds_rollout_config;

DS_API ds_status ds_rollout_config_default(ds_rollout_config* fields);
DS_API ds_status ds_rollout_config_create(const ds_rollout_config* fields, ds_config* config);
DS_API ds_status ds_rollout_config_get(ds_config config, ds_rollout_config* fields);

/* Nanoseconds of the clock of deadlines and times. */
DS_API int64_t ds_monotonic_ns(void);

/* Copies a level, which must suit num_agents agents. */
DS_API ds_status ds_shared_level_create(const ds_level* level, int64_t num_agents, ds_shared_level* shared);
/* Requests that were submitted keep the level. */
DS_API ds_status ds_shared_level_release(ds_shared_level shared);

/* How the actions of a policy of requests are chosen. */
typedef enum ds_policy_kind {
    DS_POLICY_CALLER = 0,  /* by the caller, see ds_engine_take_rows() */
    DS_POLICY_RANDOM = 1,  /* all legal actions are equally likely */
    DS_POLICY_IDLE = 2,
    DS_POLICY_NATIVE = 3,  /* by a ds_policy */
    DS_POLICY_FAILING = 4, /* not at all: its episodes end before their next step, as FAILED */
} ds_policy_kind;

/* Rows of agents that await actions of a policy of the caller's. The arrays are those of `data`. */
typedef struct ds_rows {
    uint32_t struct_size;
    int32_t replica;          /* number of the replica that asks */
    int32_t policy;           /* whose actions are needed */
    int32_t padding;
    uint64_t id;              /* for ds_engine_return_rows() */
    uint64_t data;            /* a ds_memory, which the caller releases */
    int64_t num_rows;         /* R */
    int64_t num_inputs;       /* F */
    int64_t num_replica_rows; /* of all worlds of the replica */
    const int32_t* rows;      /* [R]: world * num_agents + agent, ascending */
    const int64_t* steps;     /* [R]: steps that the row's episode has made */
    const uint32_t* keys;     /* [R, 2]: random key of the row's episode, agent and step */
    const uint64_t* tags;     /* [R]: of the row's request */
    const float* rewards;     /* [R]: of the row's step before this; nothing if its steps are 0 */
    float* observations;      /* [R, F] */
} ds_rows;

/* Counts of an engine. Requests are counted since its creation. */
typedef struct ds_engine_info {
    uint32_t struct_size;
    int32_t num_replicas;
    int32_t num_playing;      /* replicas that have not ended */
    int32_t padding;
    int64_t submitted;
    int64_t waiting;          /* not taken by a replica */
    int64_t unanswered;       /* without a result */
    int64_t outputs;          /* that can be taken */
    int64_t unasked_rows;     /* that wait until a caller returns other rows of their replica and policy */
} ds_engine_info;

/* What a replica has done so far. */
typedef struct ds_replica_info {
    uint32_t struct_size;
    int32_t has_ended;
    int64_t num_worlds;
    int64_t steps;
    int64_t world_steps;   /* steps of worlds that played an episode: at most steps * num_worlds */
    int64_t episodes;      /* begun */
} ds_replica_info;

/* As ds_engine_submit() does: INVALID_ARGUMENT if an engine of this configuration refuses one of the requests. */
DS_API ds_status ds_episode_requests_check(ds_config config, const ds_episode_request* requests, uint64_t count);

/* Creates the replicas and starts their threads. config: of an engine. rewards: as of ds_simulator_set_rewards(), for all
   episodes; null: those of the levels. metrics: a store to record in, which other engines may have too; 0: one of its
   own, as the configuration says. In a forked child an engine of its parent is CLOSED. */
DS_API ds_status ds_engine_create(ds_config config, const ds_level_rewards* rewards, ds_metrics metrics,
                                  ds_engine* engine);
/* A new handle to its configuration. */
DS_API ds_status ds_engine_get_config(ds_engine engine, ds_config* config);
/* A new handle to its store; 0 if it measures nothing. */
DS_API ds_status ds_engine_get_metrics(ds_engine engine, ds_metrics* metrics);
DS_API ds_status ds_engine_get_info(ds_engine engine, ds_engine_info* info);
/* What a replica has done; `info` is filled in, too, if it has failed: then its failure is this call's. */
DS_API ds_status ds_engine_get_replica(ds_engine engine, int64_t number, ds_replica_info* info);

/* Policy `index` of the requests, from the replicas' next passes on. All are DS_POLICY_CALLER at first. policy: of NATIVE
   the ds_policy, of FAILING the cause, which is positive; else 0. version: a number of the caller's, recorded with the
   actions of the policy: to tell which weights chose them. Recurrent states of episodes that are played go on where
   policies have states of one size. Does not wait. */
DS_API ds_status ds_engine_set_policy(ds_engine engine, int64_t index, int32_t kind, uint64_t policy, int32_t version);
/* Labels of the metrics of policy `index` from the next passes on, as in ds_series_info: such as policy="a"; "": its
   number. A series for which there is no room or no memory is not recorded; the counter dropped_series counts it. */
DS_API ds_status ds_engine_label_policy(ds_engine engine, int64_t index, const char* labels);
/* Submits requests in order, as far as there is room: waits for it at most timeout_ns (negative: without limit).
   *accepted: how many; ids: [count], those of the accepted ones. PENDING if not all were accepted. CLOSED if the engine is
   closed or its replicas have failed. INVALID_ARGUMENT, with none accepted, if one is refused. */
DS_API ds_status ds_engine_submit(ds_engine engine, const ds_episode_request* requests, uint64_t count,
                                  int64_t timeout_ns, uint64_t* ids, uint64_t* accepted);
/* Cancels a request, waiting or running: its result follows soon, CANCELLED unless it is ending already. *found: 0 if it
   has ended, or never existed. INVALID_ARGUMENT if another engine gave the id: its upper 12 bits are the number of the
   engine, which differs in 4,095 successive ones. */
DS_API ds_status ds_engine_cancel(ds_engine engine, uint64_t request_id, int32_t* found);
/* Takes up to most outputs, in order; waits for the first at most timeout_ns (negative: without limit). PENDING if no
   output came in this time. CLOSED if the engine has ended and all outputs have been taken. */
DS_API ds_status ds_engine_take(ds_engine engine, uint64_t most, int64_t timeout_ns, ds_episode_output* outputs,
                                uint64_t* taken);
/* Waits until no request is unanswered, at most timeout_ns (negative: without limit). PENDING if some are. */
DS_API ds_status ds_engine_drain(ds_engine engine, int64_t timeout_ns);

/* Takes rows that await actions of the caller's, from any thread: all rows of a replica and a policy that can step. Until
   they are returned their episodes wait, and on CUDA those of the whole replica; no others of the policy are asked for.
   Waits for rows at most timeout_ns (negative: without limit). PENDING if none came in this time. CLOSED if the engine has
   ended. */
DS_API ds_status ds_engine_take_rows(ds_engine engine, int64_t timeout_ns, ds_rows* rows);
/* Returns rows once. actions: [R, 4], which are copied. cause: 0; or a positive number: the rows' episodes end before this
   step, as FAILED, and actions may be null. */
DS_API ds_status ds_engine_return_rows(ds_engine engine, uint64_t id, const int32_t* actions, int64_t cause);

/* Ends a replica soon: others play what it has. The engine ends with the last one. Takes no lock and does not wait. */
DS_API ds_status ds_engine_end_replica(ds_engine engine, int64_t number);
/* Ends the engine soon: requests without a result get one, FAILED. Takes no lock and does not wait. */
DS_API ds_status ds_engine_close(ds_engine engine);
/* Waits until all replicas have ended and all requests are answered, at most timeout_ns (negative: without limit). PENDING
   if that is not so. */
DS_API ds_status ds_engine_join(ds_engine engine, int64_t timeout_ns);
/* Closes the engine and releases the handle. Does not wait: replicas end by themselves. */
DS_API ds_status ds_engine_release(ds_engine engine);

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

/* The device's default pool, which is not owned. */
DS_API ds_status ds_memory_pool_default(ds_resource context, ds_resource* pool);

/* Allocates memory from a pool in the order of the stream; it is freed in the order of the same stream. */
DS_API ds_status ds_device_memory_create(ds_resource pool, ds_resource stream, uint64_t bytes, ds_resource* memory);
DS_API ds_status ds_device_memory_borrow(ds_resource context, uint64_t raw, uint64_t bytes, void* owner,
                                         ds_release_owner release_owner, ds_resource* memory);
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

/* Loads kernels that are part of this library, for the context's device. name: "views"; INVALID_ARGUMENT for any other.
   DEVICE if this build has no machine code of them for the device. */
DS_API ds_status ds_module_load_builtin(ds_resource context, const char* name, ds_resource* module);
DS_API ds_status ds_kernel_get(ds_resource module, const char* name, ds_resource* kernel);
/* arguments: addresses of the parameters' values, as for cuLaunchKernel; grid and block: x, y, z. */
DS_API ds_status ds_kernel_launch(ds_resource kernel, ds_resource stream, const uint32_t* grid,
                                  const uint32_t* block, uint32_t shared_bytes, void** arguments);

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

/* Describes `count` tensors. objects: PyObject*[count]; rules: or null for (no grad, not written, DS_STREAM_OWN);
   tensors: [count], with struct_size set. If one is refused, the message names its index and the contents of all
   `tensors` are undefined. */
DS_API ds_status ds_python_read_tensors(void* const* objects, uint64_t count, const ds_python_rules* rules,
                                        ds_python_tensor* tensors);

/* Writes "[torch,D2,Sfloat32,cpu,4x5]" and a 0: library, number of dimensions, dtype, device, shape, then "strided",
   "grad", "readonly" where they apply. Tensors with equal signatures pass the same checks. text:
   DS_PYTHON_SIGNATURE_BYTES; length: without the 0, or null. Needs no GIL. */
DS_API ds_status ds_python_signature(const ds_python_tensor* tensor, char* text, uint64_t* length);

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
