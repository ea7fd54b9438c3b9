#include "exec/saved_world.h"

#include <string.h>

namespace doorstep {

int64_t SavedParts::bytes() const {
    int64_t total = 0;
    for (const Part& part : parts) total += part.bytes;
    return total;
}

void SavedParts::save(int64_t world, char* saved) const {
    for (const Part& part : parts) {
        memcpy(saved, part.start + world * part.bytes, static_cast<size_t>(part.bytes));
        saved += part.bytes;
    }
}

void SavedParts::restore(int64_t world, const char* saved) const {
    for (const Part& part : parts) {
        memcpy(part.start + world * part.bytes, saved, static_cast<size_t>(part.bytes));
        saved += part.bytes;
    }
}

SavedParts saved_parts(const Simulator& simulator) {
    const auto rows = [](auto* tensor, int64_t elements) {
        return SavedParts::Part{reinterpret_cast<char*>(tensor), elements * static_cast<int64_t>(sizeof *tensor)};
    };
    const int64_t agents = simulator.config().num_agents;
    const Simulation& simulation = simulator.simulation();
    const TensorPointers& tensors = simulation.tensors;
    return {{{static_cast<char*>(simulation.worlds), static_cast<int64_t>(simulator.model().world_bytes)},
             rows(tensors.actions, agents * 4),
             rows(tensors.resets, 1),
             rows(tensors.rewards, agents),
             rows(tensors.dones, agents),
             rows(tensors.episode_returns, agents),
             rows(tensors.episode_lengths, 1),
             rows(tensors.terminations, agents),
             rows(tensors.truncations, agents)}};
}

int64_t saved_world_bytes(const Simulator& simulator) { return saved_parts(simulator).bytes(); }

bool saved_world_is_valid(const Simulator& simulator, const char* saved) {
    return simulator.model().is_valid(saved, simulator.simulation().rules.episode_length);
}

}  // namespace doorstep
