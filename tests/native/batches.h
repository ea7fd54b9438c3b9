// A batch on the CPU for tests: the caller's memory and its description.
#pragma once

#include <stdlib.h>
#include <string.h>

#include <memory>
#include <vector>

#include "check.h"
#include "doorstep.h"
#include "exec/tensors.h"

struct Free {
    void operator()(char* memory) const { free(memory); }
};

// Memory of exactly that size, so that a sanitizer detects accesses beyond; `filling` is its previous contents.
inline std::unique_ptr<char, Free> take_memory(int64_t bytes, int filling) {
    std::unique_ptr<char, Free> memory;
    void* address = nullptr;
    CHECK_EQUAL(posix_memalign(&address, 64, static_cast<size_t>(bytes)), 0);
    memset(address, filling, static_cast<size_t>(bytes));
    memory.reset(static_cast<char*>(address));
    return memory;
}

class HostBatch {
public:
    explicit HostBatch(int64_t num_worlds, int64_t num_agents = 2, int64_t episode_length = 200, int filling = 0xA5,
                       int64_t max_levels = 0) {
        batch.struct_size = sizeof batch;
        batch.num_worlds = num_worlds;
        batch.num_agents = num_agents;
        batch.episode_length = episode_length;
        batch.auto_reset = 1;
        batch.max_levels = max_levels;
        batch.tensors = tensors;
        batch.trouble = trouble;
        info.struct_size = sizeof info;
        CHECK_EQUAL(ds_batch_get_info(&batch, &info), DS_STATUS_OK);
        batch.worlds = take(num_worlds * info.world_bytes, filling);
        for (int tensor = 0; tensor < DS_TENSOR_COUNT; ++tensor) tensors[tensor] = take(bytes_of(tensor), filling);
    }
    HostBatch(const HostBatch&) = delete;
    HostBatch& operator=(const HostBatch&) = delete;

    int64_t bytes_of(int tensor) const {
        ds_tensor_info row;
        doorstep::describe_tensor(doorstep::kTensorRows[tensor],
                                  {batch.num_worlds, batch.num_agents, info.flat_observation_size, batch.max_levels},
                                  &row);
        return doorstep::tensor_bytes(row);
    }
    template <class Element>
    Element* tensor(ds_tensor_id id) const {
        return static_cast<Element*>(tensors[id]);
    }
    char* world(int64_t i) const { return static_cast<char*>(batch.worlds) + i * info.world_bytes; }
    std::vector<char> all_worlds() const { return {world(0), world(batch.num_worlds)}; }

    ds_batch batch{};
    ds_batch_info info{};
    void* tensors[DS_TENSOR_COUNT];
    uint32_t trouble[DS_TROUBLE_KINDS] = {};

private:
    char* take(int64_t bytes, int filling) {
        memories_.push_back(take_memory(bytes, filling));
        return memories_.back().get();
    }

    std::vector<std::unique_ptr<char, Free>> memories_;
};
