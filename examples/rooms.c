/* Worlds of a level of one's own, played by a network: a program in C11 that uses libdoorstep.so.
 *
 *     cc -std=c11 -I native/include examples/rooms.c path/to/libdoorstep.so -o rooms
 */
#include <stdio.h>
#include <stdlib.h>

#include "doorstep.h"

enum { WORLDS = 64, AGENTS = 2, INPUTS = 94, ROWS = WORLDS * AGENTS };

/* Ends the program with the message of a call that failed. */
static void check(ds_status status) {
    if (!status) return;
    ds_error error = {.struct_size = sizeof error};
    ds_last_error(&error);
    fprintf(stderr, "%s (%s)\n", error.message, error.hint);
    exit(1);
}

/* A room 20 by 12 metres. The episode ends when an agent reaches the far side. */
static ds_level corridor(void) {
    static const ds_level_box walls[] = {
        {0, -0.5f, 0, 22, 1, 5}, {0, 12.5f, 0, 22, 1, 5}, {-10.5f, 6, 0, 1, 12, 5}, {10.5f, 6, 0, 1, 12, 5}};
    ds_level level = {.struct_size = sizeof level};
    check(ds_level_default(&level)); /* its rewards and physics stay */
    level.source = DS_LEVEL_SOURCE_FIXED;
    level.num_walls = 4;
    for (int i = 0; i < 4; ++i) level.walls[i] = walls[i];
    level.num_rooms = 1;
    level.rooms[0] = (ds_level_room){.start = 0, .end = 12, .door = -1};
    level.num_agents = AGENTS;
    for (int i = 0; i < AGENTS; ++i) {
        const float x = i ? 3 : -3;
        level.agents[i] = (ds_level_agent){.x = {x - 1, x + 1}, .y = {1.5f, 2}, .yaw = {-1, 1}};
    }
    level.goal = (ds_level_goal){DS_GOAL_ANY, -10, 10, 10, 12};
    level.rewards.goal = 10;
    return level;
}

/* One linear layer, whose weights stay the caller's. */
static ds_policy linear_policy(const float* weights) {
    const ds_layer_config config = {.struct_size = sizeof config, .kind = DS_LAYER_LINEAR, .num_inputs = INPUTS,
                                    .num_outputs = DS_NUM_LOGITS, .weights = weights};
    ds_layer layer;
    ds_policy policy;
    check(ds_layer_create(&config, &layer));
    check(ds_policy_create(&layer, 1, 0, &policy));
    check(ds_layer_release(layer)); /* the policy keeps it */
    return policy;
}

static void* tensor(ds_simulator simulator, ds_tensor_id id) {
    ds_tensor_info info = {.struct_size = sizeof info};
    check(ds_simulator_get_tensor(simulator, id, &info));
    return info.data;
}

int main(void) {
    static float weights[DS_NUM_LOGITS * INPUTS];
    static ds_sampling sampling[ROWS];
    static ds_sampling_key keys[ROWS];
    for (int i = 0; i < DS_NUM_LOGITS * INPUTS; ++i) weights[i] = (float)((i * 7919) % 101 - 50) / 100;
    for (uint32_t i = 0; i < ROWS; ++i) {
        sampling[i] = (ds_sampling){.temperature = 1, .top_p = 1};
        keys[i] = (ds_sampling_key){.key = {1, i / AGENTS}, .agent = i % AGENTS};
    }

    check(ds_check_version(DS_ABI_VERSION, DS_VERSION_STRING));
    ds_simulator_config config = {.struct_size = sizeof config};
    check(ds_simulator_config_default(&config));
    config.num_worlds = WORLDS;
    config.max_levels = 1;
    ds_simulator simulator;
    check(ds_simulator_create(&config, &simulator));
    const ds_level level = corridor();
    check(ds_simulator_set_levels(simulator, &level, 1, NULL));
    check(ds_simulator_reset(simulator, NULL, 0));

    const ds_policy policy = linear_policy(weights);
    ds_policy_call call = {.struct_size = sizeof call, .num_rows = ROWS, .observation_stride = INPUTS,
                           .observations = tensor(simulator, DS_TENSOR_observations), .sampling = sampling,
                           .keys = keys, .actions = tensor(simulator, DS_TENSOR_actions)};
    const uint8_t* terminations = tensor(simulator, DS_TENSOR_terminations);
    int goals = 0;
    for (call.step = 0; call.step < 400; ++call.step) {
        check(ds_policy_act(policy, &call));
        check(ds_simulator_step(simulator));
        for (int world = 0; world < WORLDS; ++world) goals += terminations[world * AGENTS];
    }
    printf("%d times an agent reached the goal in %d steps of %d worlds\n", goals, 400, WORLDS);
    check(ds_policy_release(policy));
    check(ds_simulator_close(simulator));
    return 0;
}
