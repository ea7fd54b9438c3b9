/*
 * doorstep: thousands of 3D escape rooms, stepped at once.
 *
 * This header is the only contract between the native library and the rest of the world. The ctypes
 * declarations, constants, error classes and layout checks of the Python package are generated from it
 * (native/generate_bindings.py), and so are the tables of the documentation.
 *
 * Rules that hold for every function:
 *  1. Every call returns a ds_status; results go to pointer arguments, which come last. A call that does not
 *     return DS_STATUS_OK has changed nothing and written nothing, unless it says otherwise.
 *  2. After a failure, ds_last_error() gives the message, the argument and the remedy, per thread, until the
 *     thread's next failing call.
 *  3. Handles are 8-byte ids {index, generation}; zero is null. A stale or null handle is DS_STATUS_CLOSED,
 *     never undefined behaviour. Pointers must be valid; null is an argument error unless stated.
 *  4. Any thread may call anything. Calls on one simulator are serialised in the order they arrive.
 *  5. All memory of a simulator is taken when it is created, or with ds_simulator_allocate(). Stepping allocates
 *     nothing.
 */
#ifndef DOORSTEP_H
#define DOORSTEP_H

#include <stdint.h>

#define DS_ABI_VERSION 4
#define DS_VERSION_STRING "0.1.0"
#define DS_SAVE_FORMAT_VERSION 1

#if defined(__cplusplus)
#define DS_API extern "C" __attribute__((visibility("default")))
#else
#define DS_API __attribute__((visibility("default")))
#endif

/* ---- Status ------------------------------------------------------------------------------------------------ */

/* X(name, number, Python class, Python base classes, sentence) */
#define DS_STATUS_TABLE(X)                                                                                         \
    X(OK, 0, None, None, "The call succeeded.")                                                                    \
    X(PENDING, 1, None, None, "The work has not finished within the time given.")                                  \
    X(INTERNAL, 2, DoorstepError, Exception, "A fault of doorstep itself; please report it.")                      \
    X(INVALID_ARGUMENT, 3, ArgumentError, ValueError, "An argument is outside its allowed range.")                 \
    X(INVALID_STATE, 4, StateError, ValueError, "Saved bytes are damaged, foreign or do not fit this simulator.")  \
    X(CLOSED, 5, ClosedError, RuntimeError, "The object was closed or never existed.")                             \
    X(OUT_OF_MEMORY, 6, OutOfMemoryError, MemoryError, "The memory asked for cannot be had.")                      \
    X(LIBRARY, 7, LibraryError, ImportError, "The native library is missing, stale or foreign.")                   \
    X(DEVICE, 8, DeviceError, RuntimeError, "The device cannot be used.")                                          \
    X(NO_DRIVER, 9, NoDriverError, DeviceError, "No NVIDIA driver was found.")                                     \
    X(DRIVER_VERSION, 10, DriverVersionError, DeviceError, "The NVIDIA driver is too old.")                        \
    X(NO_DEVICE, 11, NoDeviceError, DeviceError, "There is no such device.")                                       \
    X(SIMULATION, 12, SimulationError, RuntimeError, "A capacity ran out or a value is not finite (strict mode).") \
    X(DEVICE_BUSY, 13, DeviceBusyError, DeviceError, "The device is in use and takes no further process.")         \
    X(DRIVER_FUNCTION, 14, DriverFunctionError, DeviceError, "The NVIDIA driver lacks a function.")                \
    X(RENDERER, 15, RendererError, RuntimeError, "What draws cannot be used here.")                                \
    X(SHADER, 16, ShaderError, ValueError, "A material does not compile.")

typedef enum ds_status {
#define DS_STATUS_ENUM(name, number, python_class, python_base, sentence) DS_STATUS_##name = number,
    DS_STATUS_TABLE(DS_STATUS_ENUM)
#undef DS_STATUS_ENUM
} ds_status;

/* What went wrong in this thread's latest failing call. The strings live until that thread's next failing call. */
typedef struct ds_error {
    uint32_t struct_size;
    int32_t status;       /* ds_status */
    const char* message;  /* what happened, with the value and the allowed range */
    const char* argument; /* name of the argument, or "" */
    const char* hint;     /* what to do about it, or "" */
    int32_t driver_code;  /* the CUDA driver's CUresult, or 0 */
    int32_t padding;
} ds_error;

/* ---- Enumerations ------------------------------------------------------------------------------------------ */

typedef enum ds_dtype {
    DS_DTYPE_UINT8 = 0,
    DS_DTYPE_INT32 = 1,
    DS_DTYPE_UINT32 = 2,
    DS_DTYPE_FLOAT32 = 3,
    DS_DTYPE_FLOAT64 = 4,
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

/* What happens to an action outside its range: moved to the nearest legal value and counted; the step refused;
   the reference's formulas applied to any value within +-32767. */
typedef enum ds_action_check {
    DS_ACTION_CHECK_CLAMP = 0,
    DS_ACTION_CHECK_RAISE = 1,
    DS_ACTION_CHECK_OFF = 2,
} ds_action_check;

/* Kinds of things in a world; the observations carry kind / 6. */
typedef enum ds_entity_kind {
    DS_ENTITY_NONE = 0,
    DS_ENTITY_BUTTON = 1,
    DS_ENTITY_CUBE = 2,
    DS_ENTITY_WALL = 3,
    DS_ENTITY_AGENT = 4,
    DS_ENTITY_DOOR = 5,
} ds_entity_kind;

/* Kinds of objects whose number alive ds_live_count() tells. */
typedef enum ds_live_kind {
    DS_LIVE_SIMULATOR = 0,
    DS_LIVE_MEMORY = 1,
    DS_LIVE_EVENT = 2,
    DS_LIVE_EXPORT = 3, /* tensors handed out through DLPack */
    DS_LIVE_THREAD = 4,
    DS_LIVE_RESOURCE = 5, /* CUDA resources of any kind */
} ds_live_kind;

/* What a CUDA resource handle stands for. */
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
    DS_RESOURCE_KIND_COUNT = 13,
} ds_resource_kind;

/* Who ends a CUDA resource: its last handle; whoever made it, who must outlive the handle; an owner given with it,
   who is let go with the last handle. */
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
    DS_MAX_DIMENSIONS = 5,
    DS_MAX_ACTION_COMPONENTS = 16,
};
/* 2**32 - 1; and 2**32, which world_offset + num_worlds may not exceed. */
#define DS_MAX_SEED 4294967295
#define DS_MAX_GLOBAL_WORLDS 4294967296

/* In place of a CUstream: a stream that the simulator makes for itself. Other values are the driver's: 0 and 1 are the
   legacy default stream, 2 is the per-thread default stream. */
#define DS_STREAM_OWN UINT64_MAX

/* ---- Actions ----------------------------------------------------------------------------------------------- */

/* The components of an action, in the order of the last dimension of the tensor "actions". X(name, size, neutral,
   sentence). Legal values are 0 to size - 1; a reset sets the neutral ones. */
#define DS_ACTION_TABLE(X)                                                                                         \
    X(move_amount, 4, 0, "How hard the agent walks: 0 = not at all, 3 = hardest.")                                 \
    X(move_angle, 8, 0, "Where it walks: 45 degrees each, clockwise from forward.")                                \
    X(turn, 5, 2, "How it turns: 0 = hard right, 2 = not at all, 4 = hard left.")                                  \
    X(grab, 2, 0, "1 = grab the cube ahead, or release the one that is held.")

/* ---- Tensors ----------------------------------------------------------------------------------------------- */

/* Every tensor a simulator exports, in the order used everywhere. X(name, dtype, shape, access, sentence).
   N worlds, A agents; F is the length of the flat observation (94 for two agents). All are C-contiguous and
   aligned to 256 bytes. "observations" and "final_observations" exist only with flat_observations. */
#define DS_TENSOR_TABLE(X)                                                                                         \
    X(resets, INT32, "N,1", READ_WRITE,                                                                            \
      "Nonzero before a step: the world is regenerated at the end of that step; cleared.")                         \
    X(actions, INT32, "N,A,4", READ_WRITE,                                                                         \
      "Move amount 0-3, move angle 0-7 (45 degrees each, clockwise from forward), turn 0-4 (0 = hard right, "      \
      "2 = none, 4 = hard left), grab 0-1; set to (0, 0, 2, 0) by a reset.")                                       \
    X(rewards, FLOAT32, "N,A,1", READ, "Reward of this step.")                                                     \
    X(dones, INT32, "N,A,1", READ,                                                                                 \
      "1 on the step whose counter reached 0, 0 again from the first step of an episode.")                         \
    X(terminations, UINT8, "N,A,1", READ,                                                                          \
      "1 where the task ended by itself; never with the default rules, which only time out.")                      \
    X(truncations, UINT8, "N,A,1", READ, "1 where the episode ran out of steps in this step.")                     \
    X(steps_remaining, INT32, "N,A,1", READ, "Steps left in the episode: episode_length to 0, never negative.")    \
    X(self_observations, FLOAT32, "N,A,8", READ,                                                                   \
      "x in room / 10, y in room / room length, x / 40, y / 40, z / 40, largest y / 40, yaw / pi "                 \
      "(counter-clockwise), 1 while grabbing.")                                                                    \
    X(partner_observations, FLOAT32, "N,A,A-1,3", READ,                                                            \
      "The other agents in index order: distance / 40, bearing / pi (clockwise from forward), 1 while grabbing.")  \
    X(room_entity_observations, FLOAT32, "N,A,6,3", READ,                                                          \
      "Buttons, then cubes of the agent's room: distance / 40, bearing / pi, kind / 6; empty slot (0, 1, 0).")     \
    X(door_observations, FLOAT32, "N,A,3", READ,                                                                   \
      "Door of the agent's room: distance / 40, bearing / pi, 1 if open.")                                         \
    X(lidar, FLOAT32, "N,A,30,2", READ,                                                                            \
      "30 rays, 12 degrees apart, counter-clockwise from forward: distance / 40, kind / 6; a miss is (0, 0).")     \
    X(observations, FLOAT32, "N,A,F", READ,                                                                        \
      "All of the above side by side, then steps_remaining / episode_length, then agent index / max(A-1, 1).")     \
    X(final_steps_remaining, INT32, "N,A,1", READ, "steps_remaining at the end of the latest ended episode.")      \
    X(final_self_observations, FLOAT32, "N,A,8", READ,                                                             \
      "self_observations at the end of the latest ended episode, before the world was regenerated.")               \
    X(final_partner_observations, FLOAT32, "N,A,A-1,3", READ, "Likewise, partner_observations.")                   \
    X(final_room_entity_observations, FLOAT32, "N,A,6,3", READ, "Likewise, room_entity_observations.")             \
    X(final_door_observations, FLOAT32, "N,A,3", READ, "Likewise, door_observations.")                             \
    X(final_lidar, FLOAT32, "N,A,30,2", READ, "Likewise, lidar.")                                                  \
    X(final_observations, FLOAT32, "N,A,F", READ, "Likewise, observations.")                                       \
    X(episode_returns, FLOAT32, "N,A,1", READ, "Sum of rewards of the latest ended episode.")                      \
    X(episode_lengths, INT32, "N,1", READ, "Steps of the latest ended episode.")

typedef enum ds_tensor_id {
#define DS_TENSOR_ENUM(name, dtype, shape, access, sentence) DS_TENSOR_##name,
    DS_TENSOR_TABLE(DS_TENSOR_ENUM)
#undef DS_TENSOR_ENUM
    DS_TENSOR_COUNT
} ds_tensor_id;

/* Fields of the world blocks, as strided views. X(name, dtype, shape, access, sentence). B bodies (agents first,
   then cubes), S statics, K buttons, D doors. Edits of writable fields reach the next step. */
#define DS_STATE_TABLE(X)                                                                                          \
    X(body_positions, FLOAT32, "N,B,3", READ_WRITE, "Metres; agents: bottom centre, cubes: centre.")               \
    X(body_rotations, FLOAT32, "N,B,4", READ_WRITE, "Unit quaternions (w, x, y, z); agents only yaw.")             \
    X(body_linear_velocities, FLOAT32, "N,B,3", READ_WRITE, "Metres per second.")                                  \
    X(body_angular_velocities, FLOAT32, "N,B,3", READ_WRITE, "Radians per second, world axes.")                    \
    X(body_sizes, FLOAT32, "N,B,3", READ, "Full extents in metres, fixed by the kind of the body.")                \
    X(body_kinds, INT32, "N,B", READ, "Entity kind; 0 = slot unused.")                                             \
    X(static_positions, FLOAT32, "N,S,3", READ_WRITE, "Walls and doors, bottom centre, metres.")                   \
    X(static_sizes, FLOAT32, "N,S,3", READ_WRITE, "Full extents of the axis-aligned boxes, metres.")               \
    X(static_kinds, INT32, "N,S", READ_WRITE, "Entity kind; 0 = slot unused.")                                     \
    X(button_positions, FLOAT32, "N,K,3", READ_WRITE, "Centre of the pressure plate, metres, z = 0.")              \
    X(button_pressed, INT32, "N,K", READ_WRITE, "1 while a body stands on it.")                                    \
    X(button_doors, INT32, "N,K", READ_WRITE, "Index of the door it opens.")                                       \
    X(door_open, INT32, "N,D", READ_WRITE, "1 if the door is open or opening.")                                    \
    X(door_static, INT32, "N,D", READ_WRITE, "Static slot of the door's panel.")                                   \
    X(agent_grabs, INT32, "N,A", READ_WRITE, "Index of the body the agent holds, or -1.")                          \
    X(agent_max_y, FLOAT32, "N,A", READ_WRITE, "Largest y reached in this episode, metres, at most 80.")           \
    X(episode_index, UINT32, "N", READ, "Number of levels this world generated before the current one.")

typedef enum ds_state_id {
#define DS_STATE_ENUM(name, dtype, shape, access, sentence) DS_STATE_##name,
    DS_STATE_TABLE(DS_STATE_ENUM)
#undef DS_STATE_ENUM
    DS_STATE_COUNT
} ds_state_id;

/* A tensor or state field. Strides are in bytes. The pointer is valid while the simulator's memory is held. */
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
typedef uint64_t ds_memory;    /* a reference to memory that tensors of a simulator lie in */
typedef uint64_t ds_event;     /* the end of an asynchronous step */
typedef uint64_t ds_resource;  /* a CUDA context, stream, event, memory, module, kernel or graph */

/* Lets go of the owner of memory or of a resource that doorstep uses but did not make. Called in any thread. */
typedef void (*ds_release_owner)(void* owner);

/* Works on the items [first, first + count). worker: number of the thread, below ds_turn::num_workers. */
typedef void (*ds_task)(void* context, int64_t first, int64_t count, int32_t worker);

/* Calls task on parts that cover [0, count), on all threads of a pool; returns when all are done. */
typedef void (*ds_run)(void* pool, int64_t count, ds_task task, void* context);

/* See ds_attachment. */
struct ds_turn;
typedef ds_status (*ds_update)(void* context, const struct ds_turn* turn);

/* ---- Configuration ----------------------------------------------------------------------------------------- */

/* How a simulator is made. Start from ds_simulator_config_default(). */
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
    int32_t strict;             /* 0 or 1: trouble in a world makes the next call fail */
    int32_t flat_observations;  /* 0 or 1: also write "observations" */
    uint64_t stream;            /* CUDA: a CUstream, or DS_STREAM_OWN; DS_STREAM_OWN on the CPU */
} ds_simulator_config;

/* What a simulator is, after creation. */
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
    int64_t allocated_bytes; /* everything the simulator allocated */
    int64_t step_count;      /* steps begun by calls since creation; replays of a CUDA graph are not seen */
    uint64_t stream;         /* the CUstream that the work is ordered on; 0 on the CPU */
} ds_simulator_info;

/* Trouble counted inside the worlds since they were made. */
typedef struct ds_health {
    uint32_t struct_size;
    int32_t culprit_body;      /* body of the latest trouble, or -1 */
    int64_t culprit_world;     /* world of the latest trouble (slot), or -1 */
    int64_t culprit_step;      /* that world's step count when it happened, or -1 */
    uint64_t clamped_actions;  /* action values moved into their range */
    uint64_t dropped_contacts; /* contacts beyond the capacity of a world */
    uint64_t nonfinite_values; /* bodies, or edited worlds, found with a value that is not finite */
    uint64_t repaired_indices; /* state indices edited to impossible values and set back */
} ds_health;

/* ---- Library ----------------------------------------------------------------------------------------------- */

/* The first call after loading. Fails with DS_STATUS_LIBRARY if the caller was built against another ABI or
   version, and with DS_STATUS_DEVICE if this CPU lacks what the library was compiled for (AVX2, FMA, BMI2). */
DS_API ds_status ds_check_version(uint32_t abi_version, const char* version);

/* Version of the library itself, as a string. Never fails; may be called before anything else. */
DS_API const char* ds_version(void);

/* Fills the thread's latest error; error->struct_size must be set. */
DS_API ds_status ds_last_error(ds_error* error);

/* Sets the thread's latest error, for libraries that fail in doorstep's name. status: any but OK and PENDING; argument
   and hint: or "". The strings are copied; longer ones are cut. */
DS_API ds_status ds_set_error(int32_t status, const char* argument, const char* hint, const char* message);

/* Comma-separated CPU features the library looks for and whether they are there ("avx2=1,fma=1,..."). */
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

/* Points *api at the table of all functions, for other native libraries that use doorstep without linking it; its
   type is in doorstep_api.h. version: the DS_ABI_VERSION compiled against; LIBRARY if it is not this library's. The
   table only grows: look at struct_size before using what was added later. */
struct ds_api;
DS_API ds_status ds_get_api(uint32_t version, const struct ds_api** api);

/* Number of objects of a kind (ds_live_kind) alive in this process. */
DS_API ds_status ds_live_count(int32_t kind, int64_t* count);

/* Number of threads a simulator with num_threads = 0 would use here (affinity and cgroup quota). */
DS_API ds_status ds_default_thread_count(int64_t* count);

/* ---- Simulator --------------------------------------------------------------------------------------------- */

/* Fills in the defaults; config->struct_size must be set. */
DS_API ds_status ds_simulator_config_default(ds_simulator_config* config);

/* Makes the worlds and generates their first levels (episode index 1). INVALID_ARGUMENT, OUT_OF_MEMORY, DEVICE. */
DS_API ds_status ds_simulator_create(const ds_simulator_config* config, ds_simulator* simulator);

/* Ends the simulator: waits for a running step, stops its threads. Its memory goes when no one holds it. */
DS_API ds_status ds_simulator_close(ds_simulator simulator);

DS_API ds_status ds_simulator_get_info(ds_simulator simulator, ds_simulator_info* info);

/* Steps every world once. INVALID_ARGUMENT if actions are checked and one is out of range; SIMULATION in strict
   mode if an earlier step met trouble. In both cases nothing is stepped. */
DS_API ds_status ds_simulator_step(ds_simulator simulator);

/* As ds_simulator_step, but returns at once; the event tells when the step has ended. */
DS_API ds_status ds_simulator_step_async(ds_simulator simulator, ds_event* event);

/* Waits for everything that was begun before, at most timeout_ns (negative: without limit). PENDING if it has not
   ended. */
DS_API ds_status ds_simulator_wait(ds_simulator simulator, int64_t timeout_ns);

/* The same as an event, for whoever waits in several calls: what is begun meanwhile is not waited for. */
DS_API ds_status ds_simulator_get_end(ds_simulator simulator, ds_event* event);

/* Regenerates worlds at once without simulating: rewards and dones become 0, observations are refreshed.
   worlds: count distinct slots, or null for all worlds. */
DS_API ds_status ds_simulator_reset(ds_simulator simulator, const int64_t* worlds, uint64_t count);

/* As ds_simulator_reset for the slots whose mask byte is not zero; count must equal num_worlds. */
DS_API ds_status ds_simulator_reset_mask(ds_simulator simulator, const uint8_t* mask, uint64_t count);

/* Recomputes all observations from the current state, after edits. */
DS_API ds_status ds_simulator_refresh(ds_simulator simulator);

/* Trouble met so far. */
DS_API ds_status ds_simulator_get_health(ds_simulator simulator, ds_health* health);

/* CUDA: from now on the work goes to another stream (as in ds_simulator_config), after what was begun before. */
DS_API ds_status ds_simulator_set_stream(ds_simulator simulator, uint64_t stream);

/* ---- Tensors and state ------------------------------------------------------------------------------------- */

/* Describes a tensor (ds_tensor_id). INVALID_ARGUMENT if this simulator does not have it. */
DS_API ds_status ds_simulator_get_tensor(ds_simulator simulator, int32_t tensor, ds_tensor_info* info);

/* Describes a state field (ds_state_id). From the first call on, every step looks for edits of the state. */
DS_API ds_status ds_simulator_get_state(ds_simulator simulator, int32_t field, ds_tensor_info* info);

/* As ds_simulator_get_state, for whoever will only read: the steps do not look for edits. */
DS_API ds_status ds_simulator_view_state(ds_simulator simulator, int32_t field, ds_tensor_info* info);

/* A new reference to the simulator's own memory, where its state and its tensors lie unless they are bound; release it
   with ds_memory_release. */
DS_API ds_status ds_simulator_get_memory(ds_simulator simulator, ds_memory* memory);
/* Another reference to the same memory. */
DS_API ds_status ds_memory_share(ds_memory memory, ds_memory* shared);
DS_API ds_status ds_memory_release(ds_memory memory);

/* Copies the elements of a tensor or state field into (read) or from (write) a C-contiguous host array of `bytes`
   bytes, after everything that was begun on the simulator; returns when the copy is done. */
DS_API ds_status ds_memory_read(ds_memory memory, const ds_tensor_info* info, void* host, uint64_t bytes);
DS_API ds_status ds_memory_write(ds_memory memory, const ds_tensor_info* info, const void* host, uint64_t bytes);

/* Memory for an attachment: `bytes` zeros on the simulator's device, at *data, aligned to 256 bytes. It is counted in
   allocated_bytes and goes when no one holds it, after the work that uses it, like the simulator's own. memory: a new
   reference, to be released with ds_memory_release. */
DS_API ds_status ds_simulator_allocate(ds_simulator simulator, uint64_t bytes, ds_memory* memory, void** data);

/* CUDA: what is begun on `stream` (a CUstream) from now on sees everything begun on the simulator before. */
DS_API ds_status ds_memory_order(ds_memory memory, uint64_t stream);

/* A tensor, and memory of the caller on the simulator's device that it shall lie in. */
typedef struct ds_binding {
    int64_t tensor;                 /* ds_tensor_id */
    void* data;                     /* aligned to its elements; null: back to the simulator's own memory */
    uint64_t bytes;                 /* of the whole tensor, which is C-contiguous */
    void* owner;                    /* let go by release_owner(owner) once neither the simulator nor any reference */
    ds_release_owner release_owner; /* needs the memory; a null release_owner: the caller keeps it valid */
} ds_binding;

/* Binds count distinct tensors: from now on the simulator reads and writes them there, and ds_simulator_get_tensor()
   says so; tensors taken before show the old memory. Elements are copied to the new place first. memories: count new
   references to the memories that the tensors then lie in, to be released with ds_memory_release. Waits for what was
   begun on the simulator; a graph recorded before keeps using the old memory. INVALID_ARGUMENT if memory overlaps that
   of another tensor; then nothing has changed and no owner was taken over. */
DS_API ds_status ds_simulator_bind(ds_simulator simulator, const ds_binding* bindings, uint64_t count,
                                   ds_memory* memories);

/* Sets a writable tensor from a C-contiguous array of `bytes` bytes, after everything that was begun on the simulator.
   device_kind: DS_DEVICE_CPU for an array on the host, which may be changed after the call; otherwise the simulator's,
   for one on its device, from which the copy is only begun: on CUDA it may be recorded into a graph. */
DS_API ds_status ds_simulator_set_tensor(ds_simulator simulator, int32_t tensor, const void* data, uint64_t bytes,
                                         int32_t device_kind);

/* ---- Attachments ------------------------------------------------------------------------------------------- */

/* How an attachment works inside the simulator's turn. */
typedef struct ds_turn {
    uint32_t struct_size;
    int32_t device_kind;  /* the simulator's: DS_DEVICE_CPU or DS_DEVICE_CUDA */
    int64_t device_index;
    uint64_t stream;      /* CUDA: the CUstream to begin work on, which may be recorded into a graph; 0 on the CPU */
    int64_t num_workers;  /* CPU: threads of the pool; 0 on CUDA */
    void* pool;           /* CPU: the simulator's threads, for run(pool, ...); items should take microseconds */
    ds_run run;           /* CPU; null on CUDA */
} ds_turn;

/* What another library does whenever the worlds of a simulator have changed. */
typedef struct ds_attachment {
    uint32_t struct_size;
    int32_t padding;
    void* context;
    ds_update update;         /* may not call functions of this simulator, which wait for its turn */
    ds_release_owner release; /* release(context) once the simulator has ended; or null */
} ds_attachment;

/* Attaches something to a simulator for the rest of its life; INVALID_ARGUMENT if something is attached already.
   update(context, turn) is called at once; if that fails nothing is attached, release is not called, and its status is
   returned. From then on it is called at the end of every step, reset, refresh and restore, before an asynchronous
   step counts as ended. If it fails there, the worlds have changed nevertheless, and its status is returned; after an
   asynchronous step on the CPU by the next call that steps, changes or reads out worlds, which then does nothing. */
DS_API ds_status ds_simulator_attach(ds_simulator simulator, const ds_attachment* attachment);

/* ---- Batches: worlds in the caller's memory ------------------------------------------------------------------- */

/* A batch is worlds whose blocks and tensors lie in memory of the caller. There is no handle: each call is told where
   everything is, and a world's block holds all that decides its future but the rules given here. Same seed, actions
   and rules, same bits as a simulator's. A call reads and writes what it is given and nothing else, allocates nothing,
   and needs no more than that nobody else touches the memory meanwhile.

   On the CPU the call returns when the work is done; batches of more than 64 worlds take turns on threads that the
   whole process shares. On CUDA the work is one launch on `stream`, which may be recorded into a graph. */
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
    void* worlds;            /* num_worlds * world_bytes, aligned to 64 bytes; to be copied whole, never looked into */
    void** tensors;          /* DS_TENSOR_COUNT addresses in the order of the table (the array is read at once, on the
                                host), each aligned to its elements; those of observations and final_observations may
                                be null. final_*, episode_returns and episode_lengths are written for worlds that end
                                only. resets and actions are written too: 0 and neutral actions after a reset. */
    void* scratch;           /* CUDA: aligned to 256 bytes, contents do not matter; null on the CPU */
    int64_t scratch_bytes;   /* see ds_batch_info; a step takes longer with less */
    uint32_t* trouble;       /* DS_TROUBLE_KINDS words on the device, of which those of the trouble met are set to 1;
                                or null */
} ds_batch;

/* What a batch needs. */
typedef struct ds_batch_info {
    uint32_t struct_size;
    int32_t flat_observation_size;  /* F of the tensor table */
    int64_t world_bytes;            /* one block */
    int64_t scratch_bytes;          /* CUDA: best; 0 on the CPU */
    int64_t smallest_scratch_bytes; /* CUDA: the least that is taken; 0 on the CPU */
} ds_batch_info;

/* Words of ds_batch::trouble: contacts beyond the capacity of a world; values that are not finite; indices edited to
   impossible values. */
enum {
    DS_TROUBLE_KINDS = 3,
};

/* Says what a batch of this device, num_worlds and num_agents needs; the rest of it may be zero. */
DS_API ds_status ds_batch_get_info(const ds_batch* batch, ds_batch_info* info);

/* CUDA: loads what steps of batches of this device and num_agents need, and waits for it; the rest may be zero. It is
   kept until ds_batch_release() has been called as often. Nothing to do on the CPU. */
DS_API ds_status ds_batch_prepare(const ds_batch* batch);
DS_API ds_status ds_batch_release(const ds_batch* batch);

/* Makes the worlds, whatever the memory holds, and writes every tensor but final_*, episode_returns and
   episode_lengths. World i is global world world_offset + i of the seed; ranges as in ds_simulator_config. */
DS_API ds_status ds_batch_create(const ds_batch* batch, int64_t seed, int64_t world_offset);

/* The same, with two words in memory of the batch's device: seed, world_offset. Global worlds count modulo 2**32. */
DS_API ds_status ds_batch_create_from(const ds_batch* batch, const uint32_t* seed_and_offset);

/* Steps every world once. On the CPU INVALID_STATE, with nothing changed, if a block cannot be one that
   ds_batch_create or ds_batch_step wrote under these rules. On CUDA such a block is not noticed. */
DS_API ds_status ds_batch_step(const ds_batch* batch);

/* The same with inputs that stay as they are: copies of them are put into the tensors actions and resets first, zeros
   for null resets; also if the step is then refused. */
DS_API ds_status ds_batch_step_from(const ds_batch* batch, const int32_t* actions, const int32_t* resets);

/* Points *handler at a handler of XLA's FFI, for jax.ffi.register_ffi_target() and the like: "create_cpu", "step_cpu",
   "create_cuda", "step_cuda", and "initialize_cuda" for the stage before the latter two. doorstep.jax calls them. */
DS_API ds_status ds_xla_handler(const char* name, void** handler);

/* ---- Training kernels -------------------------------------------------------------------------------------- */

/* What training computes from the tensors of many steps. Arrays are C-contiguous, lie on the device that the call
   names, and have the call's dtype (DS_DTYPE_FLOAT32 or DS_DTYPE_FLOAT64) unless they are declared otherwise; what is
   written overlaps nothing else. The same arrays give the same bits on every device.

   On the CPU a call returns when the work is done. On CUDA the work is one launch on `stream` (a CUstream), which may
   be recorded into a graph; the device must have been prepared. */

/* num_steps steps, time first, of num_columns columns: agents of worlds. All arrays are [num_steps, num_columns]. */
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
    const void* values;          /* of what was observed before the step */
    const void* next_values;     /* of what was observed after it: of an episode that ended, its final observation */
    const uint8_t* terminations; /* nonzero: the episode ended and nothing is worth anything after */
    const uint8_t* truncations;  /* nonzero: the episode was cut; next_values says what might have followed */
    const void* log_ratios;      /* V-trace: log(target policy / behaviour policy) of the actions; else null */
    void* advantages;
    void* targets;               /* for the value function */
    double discount;
    double trace_decay;          /* lambda */
    double rho_clip;             /* V-trace: ratios are clipped at these */
    double c_clip;
} ds_advantages;

/* Rows of logits [num_rows, sum of sizes] of actions with num_components independent components. */
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
    int32_t* actions;            /* [num_rows, num_components]: what sample writes and the others read */
    void* log_probabilities;     /* [num_rows]: sum over the components */
    void* entropies;             /* [num_rows]: likewise */
    const void* log_probability_gradients; /* backward: [num_rows] */
    const void* entropy_gradients;         /* backward: [num_rows] */
    void* logit_gradients;                 /* backward: like logits */
} ds_multi_discrete;

/* CUDA: loads the training kernels for a device. They are kept until ds_training_release() has been called as often. */
DS_API ds_status ds_training_prepare(int64_t device_index);
DS_API ds_status ds_training_release(int64_t device_index);

/* Generalised advantage estimation; targets are advantages + values. INVALID_ARGUMENT (also: not prepared), DEVICE. */
DS_API ds_status ds_generalized_advantages(const ds_advantages* call);
/* V-trace: advantages for the policy gradient, targets for the value function. */
DS_API ds_status ds_v_trace(const ds_advantages* call);

/* Draws actions, with their log-probabilities and the entropies. */
DS_API ds_status ds_multi_discrete_sample(const ds_multi_discrete* call);
/* Log-probabilities and entropies of given actions. An action out of range is INVALID_ARGUMENT on the CPU; on CUDA the
   log-probability of its row is NaN. */
DS_API ds_status ds_multi_discrete_evaluate(const ds_multi_discrete* call);
/* From the gradients of log-probabilities and entropies those of the logits. */
DS_API ds_status ds_multi_discrete_backward(const ds_multi_discrete* call);

/* A call on tensors of Python: which tensors it takes, what they must be, and where their addresses go. doorstep.torch
   makes these for its operators; the builtin call_operator of the library does the calls. */

/* One tensor. */
typedef struct ds_operand {
    int32_t access;      /* 0: read, 1: written, 2: read and written */
    int32_t optional;    /* 1: may be None; its address is null then */
    int32_t dtypes;      /* bit k: of ds_dtype k; bit 5: bool. Those with both floats are of the same one */
    int32_t rank;
    int32_t extents[4];  /* index of the extent of each axis */
    int32_t address_at;  /* place in the call */
} ds_operand;

typedef struct ds_operator {
    uint32_t struct_size;
    int32_t function;           /* ds_operator_function */
    int32_t operand_count;      /* at most 32 */
    int32_t extent_count;       /* at most 32 */
    const ds_operand* operands;
    const int64_t* extents;     /* -1: what the first tensor with it has */
    const int32_t* extents_at;  /* places in the call, -1: none */
    const void* call;           /* ds_advantages, ds_multi_discrete, or ds_batch with its array of addresses behind it;
                                   all but what the tensors tell */
    int32_t call_bytes;         /* at most 1024 */
    int32_t dtype_at;           /* place of the dtype of the floats, -1: none */
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

/* The driver, once found. Versions as the driver counts them: 12090 is 12.9. */
typedef struct ds_cuda_driver_info {
    uint32_t struct_size;
    int32_t version;          /* the newest CUDA version the driver knows */
    int32_t minimum_version;  /* the oldest that doorstep works with */
    int32_t device_count;
} ds_cuda_driver_info;

/* Where the machine code for a device comes from. */
typedef enum ds_kernel_source {
    DS_KERNEL_SOURCE_EMBEDDED = 0, /* compiled when the library was built */
    DS_KERNEL_SOURCE_COMPILER = 1, /* compiled by the library from its PTX, once, kept on disk */
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

/* What compiling the kernels for an architecture gave. */
typedef struct ds_cuda_compile_info {
    uint32_t struct_size;
    int32_t from_cache;  /* 1 if it was found on disk */
    int64_t image_bytes;
    int64_t nanoseconds;
    char cache_path[512]; /* "" if nothing was kept */
} ds_cuda_compile_info;

/* Opens the driver if that has not been done. NO_DRIVER, DRIVER_VERSION, DRIVER_FUNCTION, NO_DEVICE, DEVICE. */
DS_API ds_status ds_cuda_get_driver(ds_cuda_driver_info* info);

/* Describes a device. Makes its context for a moment, to ask for the free memory. */
DS_API ds_status ds_cuda_get_device(int64_t device_index, ds_cuda_device_info* info);

/* Compiles the embedded PTX of the kernels for num_agents agents to machine code of an architecture ("sm_103"), as is
   done for a device without an embedded image. Needs no GPU and no driver. INVALID_ARGUMENT if the compiler does not
   know the architecture. */
DS_API ds_status ds_cuda_compile(const char* architecture, int64_t num_agents, ds_cuda_compile_info* info);

/* Names of the architectures with embedded images, comma-separated ("sm_75,sm_80,..."). */
DS_API const char* ds_cuda_architectures(void);

/* ---- CUDA resources ---------------------------------------------------------------------------------------- */

/* A handle always means the same resource, and while it exists the resource is valid. A resource keeps its parents
   alive: a stream its context, device memory its pool and the stream it is freed on, a kernel its module. Everything
   may be called from any thread; the caller's current context is left as it was. `owner`, where asked for, is let go
   by release_owner(owner) when the last handle and the last child have gone, in any thread; with a null release_owner
   the resource is only borrowed. */

typedef struct ds_resource_info {
    uint32_t struct_size;
    int32_t kind;         /* ds_resource_kind */
    int32_t ownership;    /* ds_ownership */
    int32_t device_index;
    uint64_t raw;         /* the driver's handle or address */
    uint64_t bytes;       /* of memory; otherwise 0 */
    uint64_t host;        /* address for the CPU of pinned memory; otherwise 0 */
    int64_t references;   /* handles and children that keep it */
} ds_resource_info;

DS_API ds_status ds_resource_get_info(ds_resource resource, ds_resource_info* info);

/* Gives a handle back. The resource ends when no child needs it either. */
DS_API ds_status ds_resource_release(ds_resource resource);

/* A new handle to the resource of this kind that doorstep made and that has this raw driver handle or first address.
   CLOSED if there is none: what is borrowed or has a foreign owner is not found. */
DS_API ds_status ds_resource_find(int32_t kind, int64_t device_index, uint64_t raw, ds_resource* resource);

/* Number of resources of a kind (ds_resource_kind) alive in this process. */
DS_API ds_status ds_resource_count(int32_t kind, int64_t* count);

/* The device's primary context, which every library of the process shares. */
DS_API ds_status ds_context_create(int64_t device_index, ds_resource* context);
DS_API ds_status ds_context_synchronize(ds_resource context);

DS_API ds_status ds_stream_create(ds_resource context, ds_resource* stream);
DS_API ds_status ds_stream_borrow(ds_resource context, uint64_t raw, void* owner, ds_release_owner release_owner,
                                  ds_resource* stream);
DS_API ds_status ds_stream_synchronize(ds_resource stream);
/* PENDING while work is left. */
DS_API ds_status ds_stream_query(ds_resource stream);
/* *capturing: 1 while a graph is recorded from the stream, else 0. */
DS_API ds_status ds_stream_is_capturing(ds_resource stream, int32_t* capturing);
/* What is begun on the stream from now on waits for the event. */
DS_API ds_status ds_stream_wait_event(ds_resource stream, ds_resource event);
/* What is begun on the stream from now on comes after what was begun on `earlier`. Nothing happens if one of them is
   being recorded: whoever records orders the work. */
DS_API ds_status ds_stream_follow(ds_resource stream, ds_resource earlier);

DS_API ds_status ds_cuda_event_create(ds_resource context, int32_t timing, ds_resource* event);
DS_API ds_status ds_cuda_event_borrow(ds_resource context, uint64_t raw, void* owner, ds_release_owner release_owner,
                                      ds_resource* event);
DS_API ds_status ds_cuda_event_record(ds_resource event, ds_resource stream);
/* As ds_event_wait. */
DS_API ds_status ds_cuda_event_wait(ds_resource event, int64_t timeout_ns);
/* Milliseconds between two recorded events with timing. PENDING if one has not happened. */
DS_API ds_status ds_cuda_event_elapsed(ds_resource start, ds_resource end, float* milliseconds);

/* The device's default pool (not owned), or a new one. */
DS_API ds_status ds_memory_pool_default(ds_resource context, ds_resource* pool);
DS_API ds_status ds_memory_pool_create(ds_resource context, ds_resource* pool);
/* Returns to the device what is free beyond keep_bytes. */
DS_API ds_status ds_memory_pool_trim(ds_resource pool, uint64_t keep_bytes);

/* Memory from a pool, ready for work on the stream, freed on it. */
DS_API ds_status ds_device_memory_create(ds_resource pool, ds_resource stream, uint64_t bytes, ds_resource* memory);
DS_API ds_status ds_device_memory_borrow(ds_resource context, uint64_t raw, uint64_t bytes, void* owner,
                                         ds_release_owner release_owner, ds_resource* memory);
/* The stream on which it is freed, from now on. */
DS_API ds_status ds_device_memory_set_stream(ds_resource memory, ds_resource stream);
/* Page-locked memory of the host that the device sees too. */
DS_API ds_status ds_pinned_memory_create(ds_resource context, uint64_t bytes, ds_resource* memory);
/* Copies between any two addresses that the driver knows, in the order of the stream. */
DS_API ds_status ds_copy(ds_resource stream, uint64_t to, uint64_t from, uint64_t bytes);
/* Rows of bytes, as images have them. A pitch is the distance between the beginnings of two rows. */
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
   OPAQUE_FD_BIT. Memory is given back after the work of its stream; what is begun with it on other streams is ordered
   before that by the caller. */

/* Device memory that the other API can import: `bytes`, rounded up to what ds_resource_get_info then tells, which is the
   size to import. DEVICE if the device cannot export memory. */
DS_API ds_status ds_exported_memory_create(ds_resource stream, uint64_t bytes, ds_resource* memory);
/* A new file descriptor of the memory. The caller closes it, or an import into the other API takes it over. */
DS_API ds_status ds_exported_memory_export(ds_resource memory, int32_t* fd);

/* Memory that the other API has exported. bytes: what it was allocated with there; dedicated: 1 for an allocation that
   was made for a single buffer or image (VkMemoryDedicatedAllocateInfo). The descriptor is taken over (closed) if the
   call succeeds; otherwise it stays the caller's, as it was. */
DS_API ds_status ds_imported_memory_create(ds_resource stream, int32_t fd, uint64_t bytes, int32_t dedicated,
                                           ds_resource* memory);

/* A semaphore of the other API, binary (timeline = 0) or a timeline (1). fd: as above. One that work still waits for or
   is to signal when it is released ends after that work; if that takes more than some seconds it is never given back. */
DS_API ds_status ds_semaphore_import(ds_resource context, int32_t fd, int32_t timeline, ds_resource* semaphore);
/* After what was begun on the stream the semaphore is signalled: a timeline is set to value, which must be greater than
   it was; value is 0 for a binary one. DEVICE may come after the work was begun. */
DS_API ds_status ds_semaphore_signal(ds_resource semaphore, ds_resource stream, uint64_t value);
/* What is begun on the stream from now on waits until a timeline has reached value; until a binary one is signalled
   (value is 0), which that undoes: every signal ends one wait. */
DS_API ds_status ds_semaphore_wait(ds_resource semaphore, ds_resource stream, uint64_t value);

/* A cubin, a fatbin or PTX text that ends with a zero. */
DS_API ds_status ds_module_load(ds_resource context, const void* image, ds_resource* module);
/* Kernels that are part of this library, for the context's device. name: "views". INVALID_ARGUMENT for another one;
   DEVICE if this build, or this device, has no machine code for it. */
DS_API ds_status ds_module_load_builtin(ds_resource context, const char* name, ds_resource* module);
DS_API ds_status ds_kernel_get(ds_resource module, const char* name, ds_resource* kernel);
/* arguments: addresses of the parameters' values, as cuLaunchKernel takes them; grid and block: x, y, z. */
DS_API ds_status ds_kernel_launch(ds_resource kernel, ds_resource stream, const uint32_t* grid,
                                  const uint32_t* block, uint32_t shared_bytes, void** arguments);

/* What is begun on the stream from now on is recorded instead of done, until ds_graph_end_capture(). */
DS_API ds_status ds_graph_begin_capture(ds_resource stream);
DS_API ds_status ds_graph_end_capture(ds_resource stream, ds_resource* graph);
DS_API ds_status ds_graph_instantiate(ds_resource graph, ds_resource* graph_exec);
DS_API ds_status ds_graph_launch(ds_resource graph_exec, ds_resource stream);

/* ---- Events ------------------------------------------------------------------------------------------------ */

/* An event is the end of one step, and of everything begun on the simulator before it. Waits for it, at most timeout_ns (negative: without limit, 0: only asks). PENDING if not yet. */
DS_API ds_status ds_event_wait(ds_event event, int64_t timeout_ns);
DS_API ds_status ds_event_close(ds_event event);

/* ---- Save, restore, hash ----------------------------------------------------------------------------------- */

/* Bytes that saving count worlds takes. */
DS_API ds_status ds_simulator_save_size(ds_simulator simulator, uint64_t count, uint64_t* bytes);

/* Saves worlds (null: all) into buffer; bytes must be what ds_simulator_save_size says. */
DS_API ds_status ds_simulator_save(ds_simulator simulator, const int64_t* worlds, uint64_t count, void* buffer,
                                   uint64_t bytes);

/* Restores a save into the slots worlds (null: slots 0, 1, ...). INVALID_STATE if the bytes are not a save, are
   damaged, or come from other rules or capacities; nothing changes then. Observations are recomputed. */
DS_API ds_status ds_simulator_restore(ds_simulator simulator, const void* data, uint64_t bytes, const int64_t* worlds,
                                      uint64_t count);

/* Sum (modulo 2**64) of the hashes of worlds (null: all). */
DS_API ds_status ds_simulator_hash(ds_simulator simulator, const int64_t* worlds, uint64_t count, uint64_t* hash);

/* A 64-bit hash per world, of its block, independent of its slot; count must equal num_worlds. */
DS_API ds_status ds_simulator_world_hashes(ds_simulator simulator, uint64_t* hashes, uint64_t count);

/* ---- Profile ----------------------------------------------------------------------------------------------- */

/* Names of the stages of a step, in order; null beyond the last. */
DS_API const char* ds_stage_name(int32_t stage);

/* Starts (1) or stops (0) counting time per stage; starting clears the counts. */
DS_API ds_status ds_simulator_profile(ds_simulator simulator, int32_t enabled);

/* Time stamp counter ticks spent in each stage, over all threads; count is the number of stages. */
DS_API ds_status ds_simulator_get_profile(ds_simulator simulator, uint64_t* ticks, uint64_t count);

/* ---- Interop ----------------------------------------------------------------------------------------------- */

/* Builds a DLPack managed tensor over memory, which it keeps alive until its deleter runs. versioned: 0 gives a
   DLManagedTensor, 1 a DLManagedTensorVersioned (1.0). The caller owns *managed (or hands it to a capsule). */
DS_API ds_status ds_dlpack_export(ds_memory memory, const ds_tensor_info* info, int32_t versioned, void** managed);

/* Calls the deleter of a managed tensor that nobody consumed. */
DS_API ds_status ds_dlpack_delete(void* managed, int32_t versioned);

/* The functions of the library as builtins of Python, in a new dict by name (a PyObject*, owned by the caller), for the
   Python package; the caller holds the GIL. raise_last_error: a Python callable that takes a status and raises. LIBRARY
   if the functions of Python are not visible in this process, OUT_OF_MEMORY with Python's exception set. */
DS_API ds_status ds_python_bind(void* raise_last_error, void** fast_calls);

/* Destructor for "dltensor" and "dltensor_versioned" capsules (a PyCapsule_Destructor). */
DS_API void ds_capsule_destructor(void* capsule);

/* A ds_release_owner for Python objects of which the owner holds a reference: Python's main thread gives it back, soon.
   Needs no lock of Python; while Python ends the reference stays. */
DS_API void ds_python_release(void* object);

/* Gives back at once what ds_python_release() has left to the main thread, which may be busy for long. The caller holds
   the GIL and is ready for whatever the objects do at their end. */
DS_API void ds_python_release_now(void);

/* ---- Tensors of Python ------------------------------------------------------------------------------------- */

/* Tensors of PyTorch, numpy, JAX, CuPy, Warp and whatever else has `__dlpack__`, used from native code. `object` is a
   PyObject*. Except where it says otherwise, the caller holds the GIL and the Python package can be imported; a Python
   exception never stays set. LIBRARY if the functions of Python are not visible in this process. Plain tensors of
   PyTorch and numpy take tens of nanoseconds, others microseconds. Refused, with INVALID_ARGUMENT, is whatever does not
   lie in memory as it is described: fake, meta, nested, quantised, sparse, masked and wrapped tensors, and those with
   the conjugate or the negative bit set. */

/* Libraries whose tensors are known by name. */
typedef enum ds_python_library {
    DS_PYTHON_LIBRARY_OTHER = 0,
    DS_PYTHON_LIBRARY_TORCH = 1,
    DS_PYTHON_LIBRARY_NUMPY = 2,
    DS_PYTHON_LIBRARY_JAX = 3,
    DS_PYTHON_LIBRARY_CUPY = 4,
    DS_PYTHON_LIBRARY_WARP = 5,
    DS_PYTHON_LIBRARY_DOORSTEP = 6,
} ds_python_library;

/* What a tensor of any library is, in the terms of DLPack. It holds nothing: the memory is the Python object's. */
typedef struct ds_python_tensor {
    uint32_t struct_size;
    int32_t rank;          /* at most 16 */
    void* data;            /* the first element; null if there are none */
    int64_t count;         /* number of elements */
    int32_t device_type;   /* as DLPack counts: 1 CPU, 2 CUDA, ... */
    int32_t device_index;
    uint8_t dtype_code;    /* as DLPack counts: 0 signed, 1 unsigned, 2 float, 4 bfloat, 5 complex, 6 bool, ... */
    uint8_t dtype_bits;
    uint16_t dtype_lanes;
    uint8_t contiguous;    /* 1 if the elements lie side by side in row-major order */
    uint8_t requires_grad;
    uint8_t read_only;     /* 0 where the library cannot tell */
    uint8_t library;       /* ds_python_library */
    int64_t shape[16];
    int64_t strides[16];   /* in elements; of unspecified value where the extent is 1 or there are no elements */
} ds_python_tensor;

/* What tensors must be like. */
typedef struct ds_python_rules {
    uint32_t struct_size;
    int32_t requires_grad_allowed; /* 0 or 1 */
    int32_t written;               /* 1: the caller will write to them, so that none may be read-only */
    int32_t padding;
    uint64_t stream;               /* the CUstream that the caller will work on: libraries other than PyTorch order
                                      their work before it; DS_STREAM_OWN: the caller orders */
} ds_python_rules;

enum {
    DS_PYTHON_SIGNATURE_BYTES = 512, /* enough for any signature */
};

/* Whether an object is a tensor of some library: whether its type has `__dlpack__`. */
DS_API ds_status ds_python_is_tensor(void* object, int32_t* is_tensor);

/* Describes `count` tensors. objects: PyObject*[count]; rules: or null for (no grad, not written, DS_STREAM_OWN);
   tensors: [count], with struct_size set. The message names the index of the one that is refused; all tensors are
   undefined then. */
DS_API ds_status ds_python_read_tensors(void* const* objects, uint64_t count, const ds_python_rules* rules,
                                        ds_python_tensor* tensors);

/* Writes "[torch,D2,Sfloat32,cpu,4x5]" and a 0: library, number of dimensions, dtype, device, shape, then "strided",
   "grad", "readonly" where it is so. Who has checked a signature need not check another tensor with the same. text:
   DS_PYTHON_SIGNATURE_BYTES; length: without the 0, or null. Needs no GIL. */
DS_API ds_status ds_python_signature(const ds_python_tensor* tensor, char* text, uint64_t* length);

/* The stream on which the library of this tensor works now on a device: a CUstream for CUDA, 0 on the CPU. DEVICE if the
   library does not tell or cannot use that device. */
DS_API ds_status ds_python_current_stream(void* object, int32_t device_type, int64_t device_index, uint64_t* stream);

/* Copies all elements, whatever the strides, to or from nbytes bytes where they lie side by side in row-major order. On
   the CPU the pointer is to host memory and the copy is done on return; on CUDA it is any address that the driver
   knows, and the copy is begun on the library's current stream of the tensor's device. Other Python threads run
   meanwhile. INVALID_ARGUMENT if the size differs, or for a write to a read-only tensor or to one whose elements share
   memory. Gradients do not follow. */
DS_API ds_status ds_python_copy_to_pointer(void* object, void* pointer, uint64_t nbytes);
DS_API ds_status ds_python_copy_from_pointer(void* object, const void* pointer, uint64_t nbytes);

/* The same for a tensor that was described, on a CUstream (0 on the CPU). Needs no GIL. */
DS_API ds_status ds_python_copy_out(const ds_python_tensor* tensor, uint64_t stream, void* pointer, uint64_t nbytes);
DS_API ds_status ds_python_copy_in(const ds_python_tensor* tensor, uint64_t stream, const void* pointer,
                                   uint64_t nbytes);

/* A new C-contiguous tensor of the same library, shape, dtype and device, without gradients: *made is a new reference.
   Zeros are written on the library's current stream. */
DS_API ds_status ds_python_empty_like(void* object, void** made);
DS_API ds_status ds_python_zeros_like(void* object, void** made);

/* A tensor of a class with DLPack's C exchange API (torch.Tensor) over memory: *made is a new reference. managed: a
   DLManagedTensorVersioned, taken over, also on failure. INVALID_ARGUMENT for other classes. */
DS_API ds_status ds_python_tensor_over(void* type, void* managed, void** made);

#endif
