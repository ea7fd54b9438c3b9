// Levels: their checks, and the table of a simulator.
#include <math.h>
#include <stdio.h>

#include <memory>
#include <new>

#include "api/arguments.h"

#include "api/save.h"
#include "sim/reference_level.h"

namespace doorstep {
namespace {

// ---- One level

// A level that is being checked: its place in the caller's array, for messages.
struct CheckedLevel {
    const ds_level& level;
    uint64_t index;

    // field: a printf format of up to one number, the place in an array.
    ds_status fail_field(const char* field, int place, double value, const char* allowed) const {
        char name[64];
        snprintf(name, sizeof name, field, place);
        return fail(DS_STATUS_INVALID_ARGUMENT, "levels", "ds_level_default() is a valid level",
                    "levels[%lu].%s is %g; it must be %s", index, name, value, allowed);
    }
    ds_status check_count(const char* field, int64_t value, int64_t low, int64_t high) const {
        if (value >= low && value <= high) return DS_STATUS_OK;
        char allowed[64];
        snprintf(allowed, sizeof allowed, "%ld to %ld", low, high);
        return fail_field(field, 0, static_cast<double>(value), allowed);
    }
    ds_status check_number(const char* field, int place, float value, float low, float high) const {
        if (value >= low && value <= high) return DS_STATUS_OK;  // false for NaN
        char allowed[64];
        snprintf(allowed, sizeof allowed, "%g to %g", static_cast<double>(low), static_cast<double>(high));
        return fail_field(field, place, static_cast<double>(value), allowed);
    }
    ds_status check_range_of(const char* field, int place, ds_range range, float low, float high) const {
        if (const ds_status status = check_number(field, place, range.low, low, high)) return status;
        if (const ds_status status = check_number(field, place, range.high, low, high)) return status;
        if (range.low <= range.high) return DS_STATUS_OK;
        return fail_field(field, place, static_cast<double>(range.high), "at least its low end");
    }
};

constexpr float kFarthest = 1000.f;  // metres: of anything in a level from the origin
constexpr float kLargestReward = 1e6f;
constexpr float kLargestYaw = 2.f * kPi;

ds_status check_box(const CheckedLevel& checked, const char* field, int place, const ds_level_box& box) {
    for (const float position : {box.x, box.y})
        if (const ds_status status = checked.check_number(field, place, position, -kFarthest, kFarthest)) return status;
    if (const ds_status status = checked.check_number(field, place, box.z, 0.f, kFarthest)) return status;
    for (const float size : {box.size_x, box.size_y, box.size_z})
        if (const ds_status status = checked.check_number(field, place, size, 0.01f, kFarthest)) return status;
    return DS_STATUS_OK;
}

ds_status check_counts(const CheckedLevel& checked) {
    const ds_level& level = checked.level;
    if (const ds_status s = checked.check_count("num_walls", level.num_walls, 0, DS_LEVEL_MAX_STATICS)) return s;
    if (const ds_status s = checked.check_count("num_doors", level.num_doors, 0, DS_LEVEL_MAX_DOORS)) return s;
    if (const ds_status s = checked.check_count("num_walls + num_doors", level.num_walls + level.num_doors, 0,
                                                DS_LEVEL_MAX_STATICS)) {
        return s;
    }
    if (const ds_status s = checked.check_count("num_buttons", level.num_buttons, 0, DS_LEVEL_MAX_BUTTONS)) return s;
    if (const ds_status s = checked.check_count("num_cubes", level.num_cubes, 0, DS_LEVEL_MAX_CUBES)) return s;
    return checked.check_count("num_rooms", level.num_rooms, 1, DS_LEVEL_MAX_ROOMS);
}

ds_status check_statics(const CheckedLevel& checked) {
    const ds_level& level = checked.level;
    for (int i = 0; i < level.num_walls; ++i)
        if (const ds_status status = check_box(checked, "walls[%d]", i, level.walls[i])) return status;
    for (int i = 0; i < level.num_doors; ++i) {
        if (const ds_status status = check_box(checked, "doors[%d].panel", i, level.doors[i].panel)) return status;
        const float persistent = static_cast<float>(level.doors[i].persistent);
        if (const ds_status s = checked.check_number("doors[%d].persistent", i, persistent, 0.f, 1.f)) return s;
    }
    return DS_STATUS_OK;
}

ds_status check_objects(const CheckedLevel& checked, int64_t num_agents) {
    const ds_level& level = checked.level;
    const auto check_place = [&](const char* field, int i, float value) {
        return checked.check_number(field, i, value, -kFarthest, kFarthest);
    };
    for (int i = 0; i < level.num_buttons; ++i) {
        const ds_level_button& button = level.buttons[i];
        if (const ds_status status = check_place("buttons[%d].x", i, button.x)) return status;
        if (const ds_status status = check_place("buttons[%d].y", i, button.y)) return status;
        if (button.door < 0 || button.door >= level.num_doors)
            return checked.fail_field("buttons[%d].door", i, button.door, "the index of a door of the level");
    }
    for (int i = 0; i < level.num_cubes; ++i) {
        const ds_level_cube& cube = level.cubes[i];
        if (const ds_status status = check_place("cubes[%d].x", i, cube.x)) return status;
        if (const ds_status status = check_place("cubes[%d].y", i, cube.y)) return status;
        if (const ds_status s = checked.check_number("cubes[%d].yaw", i, cube.yaw, -kLargestYaw, kLargestYaw)) return s;
    }
    if (const ds_status s = checked.check_count("num_agents", level.num_agents, num_agents, DS_MAX_AGENTS)) return s;
    for (int i = 0; i < level.num_agents; ++i) {
        const ds_level_agent& agent = level.agents[i];
        if (const ds_status s = checked.check_range_of("agents[%d].x", i, agent.x, -kFarthest, kFarthest)) return s;
        if (const ds_status s = checked.check_range_of("agents[%d].y", i, agent.y, -kFarthest, kFarthest)) return s;
        if (const ds_status s = checked.check_range_of("agents[%d].yaw", i, agent.yaw, -kLargestYaw, kLargestYaw))
            return s;
    }
    return DS_STATUS_OK;
}

ds_status check_rooms(const CheckedLevel& checked) {
    const ds_level& level = checked.level;
    for (int i = 0; i < level.num_rooms; ++i) {
        const ds_level_room& room = level.rooms[i];
        const float start = i > 0 ? level.rooms[i - 1].end : -kFarthest;
        if (const ds_status s = checked.check_number("rooms[%d].start", i, room.start, start, kFarthest)) return s;
        const float shortest_end = room.start + 0.01f;
        if (const ds_status s = checked.check_number("rooms[%d].end", i, room.end, shortest_end, kFarthest)) return s;
        if (room.door < -1 || room.door >= level.num_doors)
            return checked.fail_field("rooms[%d].door", i, room.door, "-1 or the index of a door of the level");
    }
    return DS_STATUS_OK;
}

ds_status check_contents(const CheckedLevel& checked, int64_t num_agents) {
    if (const ds_status status = check_counts(checked)) return status;
    if (const ds_status status = check_statics(checked)) return status;
    if (const ds_status status = check_objects(checked, num_agents)) return status;
    return check_rooms(checked);
}

ds_status check_goal(const CheckedLevel& checked) {
    const ds_level_goal& goal = checked.level.goal;
    if (const ds_status s = checked.check_count("goal.agents", goal.agents, DS_GOAL_NONE, DS_GOAL_ALL)) return s;
    if (goal.agents == DS_GOAL_NONE) return DS_STATUS_OK;
    if (!(goal.min_x < goal.max_x))
        return checked.fail_field("goal.max_x", 0, static_cast<double>(goal.max_x), "larger than goal.min_x");
    if (!(goal.min_y < goal.max_y))
        return checked.fail_field("goal.max_y", 0, static_cast<double>(goal.max_y), "larger than goal.min_y");
    return DS_STATUS_OK;
}

// check_number(field, value, low): checks one of them.
template <class CheckNumber>
ds_status check_rewards(const ds_level_rewards& rewards, const CheckNumber& check_number) {
    const struct {
        const char* field;
        float value, low;
    } rows[] = {{"rewards.progress", rewards.progress, -kLargestReward},
                {"rewards.idle", rewards.idle, -kLargestReward},
                {"rewards.bonus_factor", rewards.bonus_factor, -kLargestReward},
                {"rewards.bonus_distance", rewards.bonus_distance, 0.f},
                {"rewards.room", rewards.room, -kLargestReward},
                {"rewards.exit", rewards.exit, -kLargestReward},
                {"rewards.cube_approach", rewards.cube_approach, -kLargestReward},
                {"rewards.goal", rewards.goal, -kLargestReward},
                {"rewards.max_y", rewards.max_y, -kLargestReward}};
    for (const auto& row : rows)
        if (const ds_status s = check_number(row.field, row.value, row.low)) return s;
    return DS_STATUS_OK;
}

ds_status check_rewards(const CheckedLevel& checked) {
    return check_rewards(checked.level.rewards, [&](const char* field, float value, float low) {
        return checked.check_number(field, 0, value, low, kLargestReward);
    });
}

ds_status check_physics(const CheckedLevel& checked) {
    const ds_level_physics& physics = checked.level.physics;
    const struct {
        const char* field;
        ds_range range;
        float low, high;
    } rows[] = {{"physics.cube_mass", physics.cube_mass, 1.f, 1000.f},
                {"physics.friction", physics.friction, 0.f, 2.f},
                {"physics.walking_force", physics.walking_force, 0.f, 2000.f},
                {"physics.turning_torque", physics.turning_torque, 0.f, 640.f},
                {"physics.door_speed", physics.door_speed, 0.1f, 100.f}};
    for (const auto& row : rows)
        if (const ds_status s = checked.check_range_of(row.field, 0, row.range, row.low, row.high)) return s;
    return DS_STATUS_OK;
}

ds_status check_length(const CheckedLevel& checked) {
    const int32_t low = checked.level.min_episode_length, high = checked.level.max_episode_length;
    if (low == 0 && high == 0) return DS_STATUS_OK;
    if (const ds_status s = checked.check_count("min_episode_length", low, 1, DS_MAX_EPISODE_LENGTH)) return s;
    return checked.check_count("max_episode_length", high, low, DS_MAX_EPISODE_LENGTH);
}

ds_status check_whole(const CheckedLevel& checked, int64_t num_agents) {
    const ds_level& level = checked.level;
    if (const ds_status s = checked.check_count("struct_size", level.struct_size, sizeof level, sizeof level)) return s;
    if (const ds_status s = checked.check_count("source", level.source, DS_LEVEL_SOURCE_FIXED,
                                                DS_LEVEL_SOURCE_GENERATED)) {
        return s;
    }
    for (const int32_t type : level.room_types)
        if (const ds_status s = checked.check_count("room_types", type, DS_ROOM_ANY, DS_ROOM_CUBE_BUTTONS)) return s;
    if (const ds_status s = checked.check_number("cubes_near_buttons", 0, level.cubes_near_buttons, 0.f, 1.f)) return s;
    if (const ds_status s = checked.check_count("first_room", level.first_room, 0, DS_LEVEL_GENERATED_ROOMS - 1)) {
        return s;
    }
    if (level.source == DS_LEVEL_SOURCE_FIXED)
        if (const ds_status status = check_contents(checked, num_agents)) return status;
    if (const ds_status status = check_goal(checked)) return status;
    if (const ds_status status = check_rewards(checked)) return status;
    if (const ds_status status = check_physics(checked)) return status;
    return check_length(checked);
}

}  // namespace

ds_status check_level(const ds_level& level, uint64_t index, int64_t num_agents) {
    return check_whole({level, index}, num_agents);
}

ds_status check_rewards(const ds_level_rewards& rewards) {
    return check_rewards(rewards, [](const char* field, float value, float low) {
        if (low <= value && value <= kLargestReward) return DS_STATUS_OK;
        char allowed[64];
        snprintf(allowed, sizeof allowed, "pass %g to %g", static_cast<double>(low), static_cast<double>(kLargestReward));
        return fail(DS_STATUS_INVALID_ARGUMENT, field, allowed, "%s is %g", field, static_cast<double>(value));
    });
}

namespace {

// ---- The table

ds_status check_weights(const float* weights, uint64_t count) {
    const char* hint = "pass numbers that are not negative, one of them positive; or null for equal ones";
    bool any = false;
    for (uint64_t i = 0; i < count; ++i) {
        if (!(weights[i] >= 0.f) || !isfinite(weights[i])) {
            return fail(DS_STATUS_INVALID_ARGUMENT, "weights", hint, "weights[%lu] is %g",
                        i, static_cast<double>(weights[i]));
        }
        any |= weights[i] > 0.f;
    }
    if (any) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, "weights", hint, "all %lu weights are zero", count);
}

ds_status check_levels(const Simulator& simulator, const ds_level* levels, uint64_t count, const float* weights) {
    const ds_simulator_config& config = simulator.config();
    if (config.max_levels == 0) {
        return fail(DS_STATUS_INVALID_ARGUMENT, "levels", "create the simulator with max_levels",
                    "this simulator plays the reference's levels only");
    }
    if (count < 1 || count > static_cast<uint64_t>(config.max_levels)) {
        return fail(DS_STATUS_INVALID_ARGUMENT, "levels", "create the simulator with a larger max_levels",
                    "%lu levels were passed; this simulator takes 1 to %ld", count, config.max_levels);
    }
    if (!levels) return fail_null("levels");
    for (uint64_t i = 0; i < count; ++i)
        if (const ds_status status = check_level(levels[i], i, config.num_agents)) return status;
    return weights ? check_weights(weights, count) : DS_STATUS_OK;
}

// ---- Given episodes

ds_status check_start(const Simulator& simulator, const ds_episode_start& start, uint64_t index, Ref<SavedState>* state) {
    const ds_simulator_config& config = simulator.config();
    if (start.state) {
        const char* hint = "0: a saved state has its own";
        if (const ds_status status = check_range("seed", hint, start.seed, 0, 0)) return status;
        if (const ds_status status = check_range("max_steps", hint, start.max_steps, 0, 0)) return status;
        if (start.level) return fail(DS_STATUS_INVALID_ARGUMENT, "level", "pass null", "a saved state has its own level");
        return find_state(start.state, simulator.model().kind, config.episode_length, state);
    }
    if (const ds_status status = check_seed(start.seed)) return status;
    if (const ds_status status = check_range("max_steps", "0 is no limit", start.max_steps, 0, DS_MAX_EPISODE_LENGTH)) {
        return status;
    }
    if (!start.level) return DS_STATUS_OK;
    if (config.max_levels > 0) return check_level(*start.level, index, config.num_agents);
    return fail(DS_STATUS_INVALID_ARGUMENT, "level", "create the simulator with max_levels",
                "this simulator plays the reference's levels only");
}

// What a call of ds_simulator_begin() passes on, by slot.
class GivenEpisodes {
public:
    GivenEpisodes(const Simulator& simulator, uint64_t count)
        : starts(new (std::nothrow) EpisodeStart[static_cast<size_t>(simulator.config().num_worlds)]),
          states(new (std::nothrow) Ref<SavedState>[count]),
          worlds(new (std::nothrow) int64_t[count]) {}

    ds_status fill(const Simulator& simulator, const ds_episode_start* given, uint64_t count) {
        if (!starts || !states || !worlds) {
            return fail(DS_STATUS_OUT_OF_MEMORY, "starts", "begin fewer episodes at a time",
                        "no memory is left to pass on %lu episodes", count);
        }
        for (uint64_t i = 0; i < count; ++i) {
            if (const ds_status status = check_start(simulator, given[i], i, &states[i])) return status;
            worlds[i] = given[i].world;
        }
        return DS_STATUS_OK;
    }
    // The worlds have been checked.
    void place(const ds_episode_start* given, uint64_t count) {
        for (uint64_t i = 0; i < count; ++i) {
            const ds_episode_start& start = given[i];
            const void* saved = states[i] ? states[i]->block() : nullptr;
            starts[static_cast<size_t>(start.world)] = {start.level, saved, static_cast<uint32_t>(start.seed),
                                                        static_cast<int32_t>(start.max_steps)};
        }
    }

    std::unique_ptr<EpisodeStart[]> starts;
    std::unique_ptr<Ref<SavedState>[]> states;
    std::unique_ptr<int64_t[]> worlds;
};

}  // namespace
}  // namespace doorstep

using namespace doorstep;

ds_status ds_level_default(ds_level* level) {
    if (const ds_status status = check_struct(level, "level")) return status;
    *level = reference_level();
    return DS_STATUS_OK;
}

ds_status ds_simulator_set_levels(ds_simulator simulator, const ds_level* levels, uint64_t count,
                                  const float* weights) {
    const SimulatorCall call(simulator);
    if (call.status()) return call.status();
    if (const ds_status status = check_levels(*call, levels, count, weights)) return status;
    return call->set_levels(levels, static_cast<int64_t>(count), weights);
}

ds_status ds_simulator_set_rewards(ds_simulator simulator, const ds_level_rewards* rewards) {
    const SimulatorCall call(simulator);
    if (call.status()) return call.status();
    if (rewards)
        if (const ds_status status = check_rewards(*rewards)) return status;
    call->set_rewards(rewards);
    return DS_STATUS_OK;
}

ds_status ds_simulator_begin(ds_simulator simulator, const ds_episode_start* starts, uint64_t count) {
    if (!starts) return fail_null("starts");
    SimulatorCall call(simulator);
    if (const ds_status status = call.begin_work()) return status;
    if (const ds_status status =
            check_range("count", "pass each world at most once", static_cast<int64_t>(count), 1, call->config().num_worlds)) {
        return status;
    }
    GivenEpisodes episodes(*call, count);
    if (const ds_status status = episodes.fill(*call, starts, count)) return status;
    const WorldSelection selection(*call, episodes.worlds.get(), count, 0);
    if (selection.status()) return selection.status();
    episodes.place(starts, count);
    const ds_status status = call->begin(call->mask(), episodes.starts.get());
    return status ? status : call->update();
}
