/* Episodes in a level of one's own, played by a network in an engine: a program in C11 that uses libdoorstep.so.
 *
 *     cc -std=c11 -I native/include examples/rooms.c path/to/libdoorstep.so -o rooms
 */
#include <stdio.h>
#include <stdlib.h>

#include "doorstep.h"

enum { EPISODES = 512, AGENTS = 2, INPUTS = 94 };

/* Ends the program with the message of a call that failed. */
static void check(ds_status status) {
    if (!status) return;
    ds_error error = {.struct_size = sizeof error};
    ds_last_error(&error);
    fprintf(stderr, "%s (%s)\n", error.message, error.hint);
    exit(1);
}

/* A room 20 by 12 metres. The episode ends when an agent reaches the far side. */
static ds_shared_level corridor(void) {
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
    ds_shared_level shared;
    check(ds_shared_level_create(&level, AGENTS, &shared));
    return shared;
}

/* One linear layer, whose weights stay the caller's. */
static ds_policy linear_policy(const float* weights) {
    const ds_layer_config config = {.struct_size = sizeof config, .kind = DS_LAYER_LINEAR, .num_inputs = INPUTS,
                                    .num_outputs = DS_NUM_LOGITS, .weights = weights};
    ds_layer layer;
    ds_policy policy;
    check(ds_layer_create(&config, &layer));
    check(ds_policy_create(&layer, 1, 0, DS_PRECISION_FLOAT32, &policy));
    check(ds_layer_release(layer)); /* the policy keeps it */
    return policy;
}

/* An engine with one replica of 64 worlds, whose policy 0 is the given one. */
static ds_engine engine_with(ds_policy policy) {
    ds_simulator_config worlds = {.struct_size = sizeof worlds};
    ds_rollout_config rollout = {.struct_size = sizeof rollout};
    ds_config config;
    ds_engine engine;
    check(ds_simulator_config_default(&worlds));
    check(ds_rollout_config_default(&rollout));
    worlds.num_worlds = 64;
    worlds.max_levels = 1;
    check(ds_simulator_config_create(&worlds, &rollout.simulator));
    check(ds_rollout_config_create(&rollout, &config));
    check(ds_engine_create(config, NULL, 0, &engine));
    check(ds_config_release(rollout.simulator));
    check(ds_config_release(config));
    check(ds_engine_set_policy(engine, 0, DS_POLICY_NATIVE, policy, 0, 0, 0));
    return engine;
}

int main(void) {
    static float weights[DS_NUM_LOGITS * INPUTS];
    static ds_episode_request requests[EPISODES];
    static ds_episode_output outputs[EPISODES];
    static uint64_t ids[EPISODES];
    check(ds_check_version(DS_ABI_VERSION, DS_VERSION_STRING));
    for (int i = 0; i < DS_NUM_LOGITS * INPUTS; ++i) weights[i] = (float)((i * 7919) % 101 - 50) / 100;
    const ds_policy policy = linear_policy(weights);
    const ds_engine engine = engine_with(policy);
    const ds_shared_level level = corridor();
    for (int i = 0; i < EPISODES; ++i) {
        requests[i] = (ds_episode_request){.seed = i, .sampling_seed = i, .level = level, .sampling = {1, 1}};
    }
    ds_outputs queue;
    ds_delivery delivery = {0};
    uint64_t accepted, taken, goals = 0;
    check(ds_engine_open_outputs(engine, 0, &queue));
    check(ds_engine_submit(engine, queue, requests, EPISODES, -1, ids, &accepted));
    do { /* until none is to come */
        check(ds_outputs_take(queue, EPISODES, EPISODES, -1, &delivery, outputs, &taken));
        for (uint64_t i = 0; i < taken; ++i) goals += outputs[i].reason == DS_EPISODE_GOAL;
        delivery.received = taken;
    } while (taken > 0);
    printf("%d times an agent reached the goal in %d episodes\n", (int)goals, EPISODES);
    check(ds_outputs_release(queue));
    check(ds_engine_release(engine));
    check(ds_shared_level_release(level));
    check(ds_policy_release(policy));
    return 0;
}
