/* The library: its version, statuses and errors, types that all chapters use, configurations. Rules: ../doorstep.h. */
#ifndef DOORSTEP_LIBRARY_H
#define DOORSTEP_LIBRARY_H

#include <stdint.h>

#define DS_ABI_VERSION 13
#define DS_VERSION_STRING "0.1.0"
#define DS_SAVE_FORMAT_VERSION 4

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

/* ---- Types ------------------------------------------------------------------------------------------------- */

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

typedef enum ds_device_kind {
    DS_DEVICE_CPU = 0,
    DS_DEVICE_CUDA = 1,
    DS_DEVICE_AUTO = 2,
} ds_device_kind;

/* A device by kind and index. */
typedef struct ds_device {
    int32_t kind; /* ds_device_kind */
    int32_t padding;
    int64_t index; /* 0 for the CPU */
} ds_device;

/* Releases the owner of memory or of a resource that doorstep uses but did not create. Called in any thread. */
typedef void (*ds_release_owner)(void* owner);

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

/* One field of one struct of the headers, as compiled into the library; used to check the generated bindings. */
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
    DS_LIVE_ROLLOUT = 8, /* engines, their queues and replicas, shared levels, saved states */
    DS_LIVE_CONFIG = 9,  /* configurations with a handle */
    DS_LIVE_METRICS = 10, /* stores */
} ds_live_kind;

/* Number of objects of a kind (ds_live_kind) alive in this process. */
DS_API ds_status ds_live_count(int32_t kind, int64_t* count);

/* Number of threads that num_threads = 0 stands for in this process (affinity and cgroup quota). */
DS_API ds_status ds_default_thread_count(int64_t* count);

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
   PART      a ds_config of the kind `low`; 0: the default one. */
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

/* In place of the largest value of a NUMBER, see DS_CONFIG_FIELD. */
#define DS_NO_LIMIT 3.4028234663852886e+38

typedef uint64_t ds_config; /* a configuration that cannot be changed */

/* Kinds of configurations with handles, by their structs ds_<kind>_config. */
typedef enum ds_config_kind {
    DS_CONFIG_SIMULATOR = 0,
    DS_CONFIG_SAMPLING = 1,
    DS_CONFIG_SCHEDULER = 2,
    DS_CONFIG_CONTROLLER = 3,
    DS_CONFIG_METRICS = 4,
    DS_CONFIG_ROLLOUT = 5,
} ds_config_kind;

/* A ds_config is a checked copy of a struct. It lives while a handle, or a configuration or engine composed of it, refers
   to it. */

/* Functions of a kind: ds_<kind>_config_default fills in the defaults. ds_<kind>_config_create makes a configuration of
   the fields; INVALID_ARGUMENT if one is out of range or a part is of another kind. ds_<kind>_config_get reads the
   fields back, in which parts are 0, see ds_config_get_part. struct_size must be set. */

DS_API ds_status ds_config_release(ds_config config);

DS_API ds_status ds_config_get_kind(ds_config config, int32_t* kind);

/* A new handle to the part of this kind that it was composed of. INVALID_ARGUMENT if it has none. */
DS_API ds_status ds_config_get_part(ds_config config, int32_t kind, ds_config* part);

#endif
