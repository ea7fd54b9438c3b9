// Actions: the four integers of an agent, and their force, torque and grab.
#pragma once

#include "sim/world.h"

namespace doorstep {

struct Action {
    int32_t amount, angle, turn, grab;
};

static_assert(kActionComponents == 4, "an Action has as many members as DS_ACTION_TABLE has rows");

constexpr float kDiagonal = 0.70710678f;
constexpr float kMoveSines[8] = {0.f, kDiagonal, 1.f, kDiagonal, 0.f, -kDiagonal, -1.f, -kDiagonal};

// Sine and cosine of angle * 45 degrees, clockwise from forward.
DS_INLINE Heading move_direction(int32_t angle) {
    return {kMoveSines[(angle + 2) & 7], kMoveSines[angle & 7]};
}

// One row per legal action, and per action with amount 4, which the reference's random driver draws.
constexpr int kFlightAmounts = kMoveAmounts + 1;
constexpr int kFlights = kFlightAmounts * kMoveAngles * kTurns;

// Row of the flight table, or -1 if the action has none.
DS_INLINE int flight_of(Action action) {
    if (static_cast<uint32_t>(action.amount) >= kFlightAmounts) return -1;
    if (static_cast<uint32_t>(action.turn) >= kTurns) return -1;
    return (action.amount * kMoveAngles + (action.angle & 7)) * kTurns + action.turn;
}

// Legal values unchanged; others by the simulator's ds_action_check. Returns how many were clamped.
DS_INLINE int read_action(const int32_t* row, int32_t action_check, Action& action) {
    int32_t values[kActionComponents];
    int moved = 0;
    for (int i = 0; i < kActionComponents; i++) {
        const bool unchecked = action_check == DS_ACTION_CHECK_OFF;
        values[i] = unchecked ? clamp(row[i], -kMaxAction, kMaxAction) : clamp(row[i], 0, kActionSizes[i] - 1);
        moved += values[i] != row[i];
    }
    action = {values[0], values[1], values[2], values[3]};
    return moved;
}

DS_INLINE Vec3 force_of(Action action, Heading heading, float per_amount = kForcePerAmount) {
    const float magnitude = static_cast<float>(action.amount) * per_amount;
    const Heading direction = move_direction(action.angle);
    return rotate(heading, Vec3{magnitude * direction.sine, magnitude * direction.cosine, 0.f});
}

DS_INLINE float torque_of(Action action, float per_turn = kTorquePerTurn) {
    return static_cast<float>(action.turn - kNeutralTurn) * per_turn;
}

// True, and *bad filled, if a component of an action of the worlds [first, first + count) is out of range.
inline bool find_bad_action(const Simulation& simulation, int64_t first, int64_t count, BadAction* bad) {
    const int32_t* actions = simulation.tensors.actions;
    const int num_agents = simulation.num_agents;
    const int64_t row = num_agents * kActionComponents;
    for (int64_t i = first * row; i < (first + count) * row; i++) {
        const int component = static_cast<int>(i % kActionComponents);
        if (static_cast<uint32_t>(actions[i]) < static_cast<uint32_t>(kActionSizes[component])) continue;
        const int64_t agent = i / kActionComponents;
        *bad = {agent / num_agents, static_cast<int32_t>(agent % num_agents), component, actions[i],
                kActionSizes[component] - 1};
        return true;
    }
    return false;
}

}  // namespace doorstep
