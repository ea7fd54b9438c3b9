// Saves with a right checksum and anything else: restored or refused; and what was restored steps.
#include <stdlib.h>

#include <vector>

#include "api/save.h"
#include "patches.h"

using namespace doorstep;

namespace {

void require(bool holds) {
    if (!holds) abort();
}

ds_simulator make(int64_t num_agents, int64_t max_levels) {
    ds_simulator_config config{};
    config.struct_size = sizeof config;
    require(ds_simulator_config_default(&config) == DS_STATUS_OK);
    config.num_worlds = 1;
    config.num_agents = num_agents;
    config.num_threads = 1;
    config.episode_length = 8;
    config.max_levels = max_levels;
    ds_simulator simulator;
    require(ds_simulator_create(&config, &simulator) == DS_STATUS_OK);
    return simulator;
}

std::vector<char> save_of(ds_simulator simulator) {
    uint64_t bytes;
    require(ds_simulator_save_size(simulator, 1, &bytes) == DS_STATUS_OK);
    std::vector<char> save(bytes);
    require(ds_simulator_save(simulator, nullptr, 0, save.data(), bytes) == DS_STATUS_OK);
    return save;
}

struct Subject {
    explicit Subject(int64_t num_agents, int64_t max_levels)
        : simulator(make(num_agents, max_levels)), save(save_of(simulator)) {}

    ds_simulator simulator;
    std::vector<char> save;
};

void restore_and_step(const Subject& subject, const std::vector<char>& save) {
    if (ds_simulator_restore(subject.simulator, save.data(), save.size(), nullptr, 0) != DS_STATUS_OK) return;
    for (int i = 0; i < 3; ++i) require(ds_simulator_step(subject.simulator) == DS_STATUS_OK);
    require(ds_simulator_reset(subject.simulator, nullptr, 0) == DS_STATUS_OK);
}

void resume(const std::vector<char>& save) {
    ds_saved_state state;
    if (ds_saved_state_create(save.data(), save.size(), &state) != DS_STATUS_OK) return;
    require(ds_saved_state_release(state) == DS_STATUS_OK);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* input, size_t bytes) {
    static const Subject subjects[] = {Subject(1, 0), Subject(2, 0), Subject(2, 1)};
    if (bytes < 1) return 0;
    const Subject& subject = subjects[input[0] % 3];
    std::vector<char> save = subject.save;
    const bool spares_header = input[0] & 0x80;
    const size_t start = spares_header ? sizeof(SaveHeader) : 0;
    apply_patches(input + 1, bytes - 1, save.data() + start, save.size() - start);
    SaveHeader header;
    memcpy(&header, save.data(), sizeof header);
    if (header.count == 1 && header.saved_world_bytes == save.size() - sizeof header) {
        header.checksum = save_checksum(header, save.data() + sizeof header);
        memcpy(save.data(), &header, sizeof header);
    }
    restore_and_step(subject, save);
    resume(save);
    return 0;
}
