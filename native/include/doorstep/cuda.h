/* CUDA: devices, and streams, events, memory and kernels as resources. Rules: ../doorstep.h. */
#ifndef DOORSTEP_CUDA_H
#define DOORSTEP_CUDA_H

#include "library.h"

typedef uint64_t ds_resource; /* a CUDA context, stream, event, memory, module, kernel or graph */

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

/* The kernels for which the driver or a simulator reserves much of a device's memory. */
typedef enum ds_kernel {
    DS_KERNEL_STEP = 0,        /* of worlds that play the reference's levels */
    DS_KERNEL_LEVEL_STEP = 1,  /* of worlds that play any levels */
    DS_KERNEL_VIEWS = 2,       /* draws views of the former */
    DS_KERNEL_LEVEL_VIEWS = 3, /* draws views of the latter */
    DS_KERNEL_ACT = 4,         /* evaluates networks of policies */
    DS_KERNEL_COUNT,
} ds_kernel;

/* What a kernel takes of a device, beside the memory of what it works on. */
typedef struct ds_cuda_kernel_info {
    uint32_t struct_size;
    int32_t registers;        /* of a thread */
    int32_t local_bytes;      /* of a thread: its stack, and registers for which there is no room */
    int32_t threads;          /* that the device holds at once, of any kernels */
    int64_t local_memory;     /* local_bytes of all these threads: the driver reserves that much for the largest kernel
                                 of the process when it is first launched */
    int64_t scratch_memory;   /* the most that each simulator of many worlds allocates for this kernel; 0: none */
} ds_cuda_kernel_info;

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

/* Describes a kernel (ds_kernel) for num_agents agents on a device, and loads it for that. */
DS_API ds_status ds_cuda_get_kernel(int64_t device_index, int64_t num_agents, int32_t kernel,
                                    ds_cuda_kernel_info* info);

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
/* Sets bytes to 0, likewise. */
DS_API ds_status ds_clear(ds_resource stream, uint64_t to, uint64_t bytes);
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

#endif
