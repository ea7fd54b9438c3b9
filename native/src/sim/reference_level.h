// The reference's generator, rewards and physics as a level.
#pragma once

#include "sim/constants.h"
#include "sim/world_model.h"

namespace doorstep {

constexpr ds_level reference_level() {
    ds_level level{};
    level.struct_size = sizeof level;
    level.source = DS_LEVEL_SOURCE_GENERATED;
    level.room_types[0] = DS_ROOM_DOUBLE_BUTTON;
    level.room_types[1] = DS_ROOM_CUBE_BLOCKING;
    level.room_types[2] = DS_ROOM_CUBE_BUTTONS;
    level.rewards = {kRewardPerMetre, kSlackReward, kBonusFactor, kBonusDistance, 0.f, 0.f, 0.f, 0.f, kMaxProgress};
    const float mass = 1.f / kCubeInverseMass;
    level.physics = {{mass, mass},
                     {1.f, 1.f},
                     {kWalkingForce, kWalkingForce},
                     {kTurningTorque, kTurningTorque},
                     {kDoorSpeed, kDoorSpeed}};
    return level;
}

// rewards: null for those of the levels.
inline GivenRewards given(const ds_level_rewards* rewards) {
    return rewards ? GivenRewards{*rewards, 1} : GivenRewards{reference_level().rewards, 0};
}

}  // namespace doorstep
