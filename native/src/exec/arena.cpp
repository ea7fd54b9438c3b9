#include "exec/arena.h"

#include "sim/observation_layout.h"

namespace doorstep {
namespace {

constexpr int64_t kAlignment = 256;

bool is_present(Presence presence, const ds_simulator_config& config) {
    switch (presence) {
        case Presence::ALWAYS: return true;
        case Presence::FLAT: return config.observations.num_parts > 0;
        case Presence::LEVELS: return config.max_levels > 0;
    }
    return false;
}

}  // namespace

// ---- Layout

int64_t Parts::place(int64_t part_bytes) {
    DS_ASSERT(part_bytes >= 0);
    const int64_t start = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    bytes = start + part_bytes;
    return start;
}

Dimensions dimensions_of(const ds_simulator_config& config, const WorldModel& model) {
    return {config.num_worlds, config.num_agents, flat_size(config.observations, model.num_agents), config.max_levels};
}

int64_t constant_bytes(const WorldModel& model, int field) {
    DS_ASSERT(field >= 0 && field < DS_STATE_COUNT);
    const StateField& row = model.state_fields[field];
    int64_t bytes = dtype_bytes(kStateRows[field].dtype);
    for (int axis = 0; axis < row.rank; ++axis) bytes += (row.shape[axis] - 1) * row.strides[axis];
    return bytes;
}

ArenaLayout lay_out_arena(const ds_simulator_config& config, const WorldModel& model) {
    ArenaLayout layout;
    layout.worlds = layout.place(config.num_worlds * static_cast<int64_t>(model.world_bytes));
    const int64_t level_bytes = config.max_levels * static_cast<int64_t>(sizeof(ds_level));
    layout.levels = level_bytes > 0 ? layout.place(level_bytes) : -1;
    for (int tensor = 0; tensor < DS_TENSOR_COUNT; ++tensor) {
        const TensorRow& row = kTensorRows[tensor];
        ds_tensor_info info;
        describe_tensor(row, dimensions_of(config, model), &info);
        layout.tensors[tensor] = is_present(row.presence, config) ? layout.place(tensor_bytes(info)) : -1;
    }
    for (int field = 0; field < DS_STATE_COUNT; ++field) {
        const bool constant = model.state_fields[field].offset < 0;
        layout.constants[field] = constant ? layout.place(constant_bytes(model, field)) : -1;
    }
    return layout;
}

// ---- Addresses

void* tensor_address(const TensorPointers& tensors, int tensor) {
    DS_ASSERT(tensor >= 0 && tensor < DS_TENSOR_COUNT);
    void* address;
    memcpy(&address, reinterpret_cast<const char*>(&tensors) + static_cast<size_t>(tensor) * sizeof address,
           sizeof address);
    return address;
}

void set_tensor_address(TensorPointers* tensors, int tensor, void* address) {
    DS_ASSERT(tensor >= 0 && tensor < DS_TENSOR_COUNT);
    memcpy(reinterpret_cast<char*>(tensors) + static_cast<size_t>(tensor) * sizeof address, &address, sizeof address);
}

void locate(const ArenaLayout& layout, char* base, Simulation* simulation) {
    DS_ASSERT(reinterpret_cast<uintptr_t>(base) % kAlignment == 0);
    const auto address = [&](int64_t offset) -> void* { return offset < 0 ? nullptr : base + offset; };
    simulation->worlds = address(layout.worlds);
    simulation->levels = static_cast<ds_level*>(address(layout.levels));
    for (int tensor = 0; tensor < DS_TENSOR_COUNT; ++tensor) {
        set_tensor_address(&simulation->tensors, tensor, address(layout.tensors[tensor]));
    }
}

// ---- Saves

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

SavedParts saved_parts(const Simulation& simulation, const WorldModel& model) {
    SavedParts saved;
    SavedParts::Part* part = saved.parts;
    *part++ = {static_cast<char*>(simulation.worlds), static_cast<int64_t>(model.world_bytes)};
    for (int tensor = 0; tensor < DS_TENSOR_COUNT; ++tensor) {
        if (!kTensorRows[tensor].saved) continue;
        ds_tensor_info row;
        describe_tensor(kTensorRows[tensor], {1, model.num_agents, simulation.flat.size, 0}, &row);
        *part++ = {static_cast<char*>(tensor_address(simulation.tensors, tensor)), tensor_bytes(row)};
    }
    DS_ASSERT(part == saved.parts + kSavedParts);
    return saved;
}

}  // namespace doorstep
