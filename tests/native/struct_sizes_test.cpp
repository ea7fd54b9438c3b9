// Structs grow at their end: what programs that were compiled against an earlier header see.
#include <stddef.h>

#include "engines.h"

namespace {

// The first fields of ds_simulator_info, and what lies behind them in the program.
struct OlderInfo {
    uint32_t struct_size;
    int32_t device_kind;
    int64_t device_index;
    int64_t num_worlds;
    int64_t num_agents;
};

struct OlderSampling {
    uint32_t struct_size;
    float temperature;
    int32_t greedy;
    float top_p;
};

// All of ds_advantages but the numbers that V-trace needs.
constexpr uint32_t kWithoutClips = offsetof(ds_advantages, rho_clip);

void results_end_where_the_caller_s_struct_ends() {
    const ds_simulator simulator = make_simulator(3, 1);
    struct {
        OlderInfo info;
        uint64_t behind;
    } program = {{sizeof(OlderInfo), -1, -1, -1, -1}, 0xA5A5A5A5};
    CHECK_EQUAL(ds_simulator_get_info(simulator, reinterpret_cast<ds_simulator_info*>(&program.info)), DS_STATUS_OK);
    CHECK_EQUAL(program.info.struct_size, sizeof(OlderInfo));
    CHECK_EQUAL(program.info.device_kind, DS_DEVICE_CPU);
    CHECK_EQUAL(program.info.num_worlds, 3);
    CHECK_EQUAL(program.info.num_agents, 2);
    CHECK_EQUAL(program.behind, 0xA5A5A5A5);
    close_simulator(simulator);
}

void fields_that_the_caller_lacks_have_their_defaults() {
    ds_simulator_config config = default_config(2);
    config.max_levels = -1;  // and stream: beyond the caller's struct
    config.stream = 1;
    config.struct_size = offsetof(ds_simulator_config, max_levels);
    const ds_simulator simulator = make_simulator(config);
    const ds_simulator plain = make_simulator(2, 1);
    CHECK(hash_of(simulator) == hash_of(plain));
    close_simulator(simulator);
    close_simulator(plain);

    OlderSampling older = {sizeof older, 0.5f, 0, 0.25f};
    ds_config made;
    ds_sampling_config* const as_now = reinterpret_cast<ds_sampling_config*>(&older);
    CHECK_EQUAL(ds_sampling_config_create(as_now, &made), DS_STATUS_OK);
    auto fields = defaults_of<ds_sampling_config>();
    CHECK_EQUAL(config_get(made, &fields), DS_STATUS_OK);
    CHECK(fields.temperature == 0.5f && fields.top_p == 0.25f);
    CHECK_EQUAL(fields.seed, -1);
    older = {sizeof older, 0, 0, 0};
    CHECK_EQUAL(ds_sampling_config_get(made, as_now), DS_STATUS_OK);
    CHECK(older.temperature == 0.5f && older.top_p == 0.25f);
    CHECK_EQUAL(ds_config_release(made), DS_STATUS_OK);
}

void calls_without_their_latest_fields_work() {
    const float rewards[2] = {1, 2}, values[2] = {0, 0};
    const uint8_t never[2] = {0, 0};
    float advantages[2], targets[2];
    ds_advantages call = {};
    call.struct_size = kWithoutClips;
    call.num_steps = 2;
    call.num_columns = 1;
    call.dtype = DS_DTYPE_FLOAT32;
    call.rewards = rewards;
    call.values = call.next_values = values;
    call.terminations = call.truncations = never;
    call.advantages = advantages;
    call.targets = targets;
    call.gamma = call.gae_lambda = 0.5;
    CHECK_EQUAL(ds_generalized_advantages(&call), DS_STATUS_OK);
    CHECK(advantages[1] == 2.f && advantages[0] == 1.5f);
}

void sizes_that_no_struct_has_are_refused() {
    ds_simulator simulator;
    for (const uint32_t size : {0u, 8u, 12u, 20u, uint32_t{sizeof(ds_simulator_config)} + 8}) {
        ds_simulator_config config = default_config(1);
        config.struct_size = size;
        CHECK_EQUAL(ds_simulator_create(&config, &simulator), DS_STATUS_INVALID_ARGUMENT);
        CHECK_EQUAL(ds_simulator_config_default(&config), DS_STATUS_INVALID_ARGUMENT);
    }
}

}  // namespace

int main() {
    RUN(results_end_where_the_caller_s_struct_ends);
    RUN(fields_that_the_caller_lacks_have_their_defaults);
    RUN(calls_without_their_latest_fields_work);
    RUN(sizes_that_no_struct_has_are_refused);
}
