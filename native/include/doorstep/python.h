/* Python: DLPack, JAX, and tensors of Python's libraries in native code. Rules: ../doorstep.h. */
#ifndef DOORSTEP_PYTHON_H
#define DOORSTEP_PYTHON_H

#include "rooms.h"

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

/* Points *handler at a handler for XLA's FFI (jax.ffi.register_ffi_target()): "create_cpu", "step_cpu", "create_cuda",
   "step_cuda", and "initialize_cuda" for the initialize stage of the latter two. doorstep.jax calls them. */
DS_API ds_status ds_xla_handler(const char* name, void** handler);

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

/* ---- Calls on Python tensors ------------------------------------------------------------------------------- */

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

#endif
