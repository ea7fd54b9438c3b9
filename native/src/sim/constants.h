// Constants of the escape room. Units as in physics/constants.h.
#pragma once

#include "doorstep/rooms.h"
#include "physics/constants.h"
#include "sim/action_table.h"

namespace doorstep {

constexpr int kRooms = 3;
constexpr float kWorldLength = 40.f;  // along y
constexpr float kWorldWidth = 20.f;   // along x, centred at 0
constexpr float kRoomLength = kWorldLength / 3.f;
constexpr float kWallThickness = 1.f;
constexpr float kBorderHeight = 5.f;
constexpr float kRoomWallHeight = 4.375f;  // end walls and doors

constexpr float kDoorSlot = kWorldWidth / 3.f;      // opening of an end wall
constexpr float kDoorWidth = 0.8f * kDoorSlot;      // the panel in it
constexpr float kStepsPerSecond = 25.f;
constexpr float kDoorSpeed = 30.f;                  // metres per second
constexpr float kDoorDrop = kDoorSpeed / kStepsPerSecond;  // metres a panel moves per step
constexpr float kDoorClearance = 0.125f;            // how far below the floor an open panel's top sinks, at least
constexpr float kDoorSinkLimit = -(kRoomWallHeight + kDoorClearance);  // an open panel above this keeps sinking

constexpr float kButtonSize = 1.3f;
constexpr float kButtonHalf = 0.65f;
constexpr float kButtonHeight = 0.25f;

constexpr int kMoveAmounts = kActionSizes[0], kMoveAngles = kActionSizes[1], kTurns = kActionSizes[2];
constexpr int kNeutralTurn = kNeutralAction[2];
constexpr float kWalkingForce = 1000.f;    // newtons at the largest amount
constexpr float kTurningTorque = 320.f;    // newton metres at the hardest turn
constexpr float kForcePerAmount = kWalkingForce / static_cast<float>(kMoveAmounts - 1);
constexpr float kTorquePerTurn = kTurningTorque / static_cast<float>(kNeutralTurn);
constexpr int kMaxAction = 32767;  // unchecked actions are clamped to this
constexpr float kGrabRange = 2.f;

constexpr float kRewardPerMetre = 0.05f;
constexpr float kSlackReward = -0.005f;
constexpr float kBonusFactor = 1.25f;
constexpr float kBonusDistance = 2.f;
constexpr float kMaxProgress = 2.f * kWorldLength;

constexpr int kEntitySlots = 6;  // observed entities per room
constexpr int kLidarRays = 30;
constexpr int kLidarLines = 15;  // ray i + 15 is opposite to ray i
constexpr float kLidarRange = 200.f;
constexpr float kDistanceScale = 1.f / 40.f;
constexpr int kEntityKinds = 6;

// Sizes of an agent's observations
constexpr int kSelfSize = 8;
constexpr int kPolarSize = 3;  // distance, bearing, and what it is or does
constexpr int kLidarSize = 2 * kLidarRays;
constexpr int kPhysics = sizeof(ds_level_physics) / sizeof(ds_range);  // numbers of ds_level_physics

}  // namespace doorstep
