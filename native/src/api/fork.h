// Keeps every simulator and every handle usable on both sides of a fork.
#pragma once

namespace doorstep {

class Simulator;

// From now on a fork waits for changes of the handles to complete. False if memory ran out.
bool install_fork_handlers();

// The same, and a fork waits for the simulator's running step. False if memory ran out.
bool watch_forks(Simulator* simulator);
void unwatch_forks(Simulator* simulator);

}  // namespace doorstep
