// Native threads, and how many of them this process may use.
#pragma once

#include <pthread.h>
#include <stdint.h>

namespace doorstep {

// CPUs in the affinity mask, or the quota of the control group (rounded up) if that is smaller; 1 .. DS_MAX_THREADS.
int64_t default_thread_count();

// Starts a thread that blocks all signals, so that the process's signals reach the threads that expect them. False if
// the operating system refuses.
bool start_thread(pthread_t* thread, void* (*entry)(void*), void* argument);
void join_thread(pthread_t thread);

}  // namespace doorstep
