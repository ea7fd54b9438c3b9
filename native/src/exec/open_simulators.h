// The simulators that a fork waits for: those that are open, with a handle of their own or as part of something else.
#pragma once

#include "exec/simulator.h"

namespace doorstep {

void list_open(Simulator* simulator);
void unlist_open(Simulator* simulator);

// For api/fork.cpp: waits for the running step of each, and holds their turns until one of the other two.
void lock_open_simulators();
void unlock_open_simulators();
void enter_forked_child_with_simulators();

}  // namespace doorstep
