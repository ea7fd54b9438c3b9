/*
 * doorstep: a simulator that steps thousands of 3D multi-agent escape rooms at once.
 *
 * The only interface of the native library, in chapters that may be included alone. The ctypes declarations, constants,
 * error classes and layout checks of the Python package and the tables of the documentation are generated from them
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
 *     They need up to 96 KB of the thread's stack, and end the process at its guard page if there is less. Those that
 *     step, make or reset worlds need 256 KB; where that is not left, they make a thread for the time of the call.
 *  5. Structs that begin with struct_size, which the caller sets to their size, grow at their end. Those of programs that
 *     were compiled against an earlier header with this DS_ABI_VERSION are accepted, but in arrays: fields that they lack
 *     have their defaults, or are not written.
 *  6. A simulator allocates all its memory when it is created, or in ds_simulator_allocate(). Stepping allocates
 *     nothing.
 */
#ifndef DOORSTEP_H
#define DOORSTEP_H

#include "doorstep/library.h"               /* version, errors, types that all chapters use, configurations */
#include "doorstep/rooms.h"                 /* simulators and batches of worlds, their tensors and levels */
#include "doorstep/policies_and_rollouts.h" /* training kernels, networks, metrics, engines */
#include "doorstep/cuda.h"                  /* devices, streams, events, memory, kernels */
#include "doorstep/python.h"                /* DLPack, JAX, tensors of Python's libraries */

#endif
