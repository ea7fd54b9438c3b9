#include "exec/cpu/saved_world.h"

#include <string.h>

namespace doorstep {
namespace {

// Calls function(start, bytes) for each part of a world that a save holds, in the order of the save.
template <class Function>
void for_each_part(const CpuSimulator& simulator, int64_t world, const Function& function) {
    const auto row = [&](auto* tensor, int64_t elements) {
        function(reinterpret_cast<char*>(tensor + world * elements), elements * static_cast<int64_t>(sizeof *tensor));
    };
    const int64_t agents = simulator.config().num_agents;
    const TensorPointers& tensors = simulator.tensors();
    function(simulator.block(world), static_cast<int64_t>(simulator.model().world_bytes));
    row(tensors.actions, agents * 4);
    row(tensors.resets, 1);
    row(tensors.rewards, agents);
    row(tensors.dones, agents);
    row(tensors.episode_returns, agents);
    row(tensors.episode_lengths, 1);
    row(tensors.terminations, agents);
    row(tensors.truncations, agents);
}

}  // namespace

int64_t saved_world_bytes(const CpuSimulator& simulator) {
    int64_t total = 0;
    for_each_part(simulator, 0, [&](char*, int64_t bytes) { total += bytes; });
    return total;
}

void save_world(const CpuSimulator& simulator, int64_t world, char* bytes) {
    for_each_part(simulator, world, [&](char* start, int64_t length) {
        memcpy(bytes, start, static_cast<size_t>(length));
        bytes += length;
    });
}

void restore_world(const CpuSimulator& simulator, int64_t world, const char* bytes) {
    for_each_part(simulator, world, [&](char* start, int64_t length) {
        memcpy(start, bytes, static_cast<size_t>(length));
        bytes += length;
    });
}

bool saved_world_is_valid(const CpuSimulator& simulator, const char* bytes) {
    const int32_t episode_length = static_cast<int32_t>(simulator.config().episode_length);
    return simulator.model().is_valid(bytes, episode_length);
}

}  // namespace doorstep
