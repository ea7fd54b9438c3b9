// The components of an action, from DS_ACTION_TABLE.
#pragma once

#include "doorstep/rooms.h"

namespace doorstep {

#define DS_ACTION_SIZE(name, size, neutral, sentence) size,
#define DS_NEUTRAL_VALUE(name, size, neutral, sentence) neutral,
constexpr int32_t kActionSizes[] = {DS_ACTION_TABLE(DS_ACTION_SIZE)};
constexpr int32_t kNeutralAction[] = {DS_ACTION_TABLE(DS_NEUTRAL_VALUE)};
#undef DS_ACTION_SIZE
#undef DS_NEUTRAL_VALUE
constexpr int kActionComponents = DS_ACTION_COMPONENT_COUNT;

}  // namespace doorstep
