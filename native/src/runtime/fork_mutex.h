// Mutexes of objects of which there are any number, and which a forked child goes on using or releases.
#pragma once

#include "runtime/futex.h"

namespace doorstep {

// A mutex that a fork holds, so that what it guards is consistent in the child. Its lock is taken after a simulator's
// turn and before a handle registry's; no thread holds two of them.
class ForkMutex : public Mutex {
public:
    ForkMutex();
    ~ForkMutex();
    ForkMutex(const ForkMutex&) = delete;
    ForkMutex& operator=(const ForkMutex&) = delete;

    ForkMutex* next_listed = nullptr;  // of all that exist
};

// For api/fork.cpp. None can be created or destroyed between the first and one of the others.
void lock_fork_mutexes();
void unlock_fork_mutexes();
void reset_fork_mutexes();

// Forks between the first process and this one.
uint32_t num_forks();

}  // namespace doorstep
