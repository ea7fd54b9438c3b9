// What the flat observation is made of, and how many values it has.
#pragma once

#include "doorstep/rooms.h"
#include "sim/constants.h"
#include "sim/world_model.h"

namespace doorstep {

// Values of an agent's part.
constexpr int part_size(int part, int agents) {
    switch (part) {
        case DS_OBSERVATION_PART_self_observations: return kSelfSize;
        case DS_OBSERVATION_PART_partner_observations: return kPolarSize * (agents - 1);
        case DS_OBSERVATION_PART_room_entity_observations: return kPolarSize * kEntitySlots;
        case DS_OBSERVATION_PART_door_observations: return kPolarSize;
        case DS_OBSERVATION_PART_lidar: return kLidarSize;
        case DS_OBSERVATION_PART_physics: return kPhysics;
        default: return 1;
    }
}

constexpr int flat_size(const ds_observations& observations, int agents) {
    int size = 0;
    for (int i = 0; i < observations.num_parts; i++) size += part_size(observations.parts[i], agents);
    return size;
}

constexpr FlatLayout layout_of(const ds_observations& parts, int agents) { return {parts, flat_size(parts, agents)}; }

// Where an agent's flat observation has a part, and its scale. Place -1: nowhere.
struct PartPlace {
    int32_t place;
    float scale;
};
constexpr PartPlace place_of(int part, const ds_observations& observations, int agents) {
    int32_t place = 0;
    for (int i = 0; i < observations.num_parts; i++) {
        if (observations.parts[i] == part) return {place, observations.scales[i]};
        place += part_size(observations.parts[i], agents);
    }
    return {-1, 0.f};
}

// The first parts of the table, with scale 1.
constexpr ds_observations first_parts(int count) {
    ds_observations observations{};
    observations.num_parts = count;
    for (int i = 0; i < count; i++) {
        observations.parts[i] = i;
        observations.scales[i] = 1.f;
    }
    return observations;
}
constexpr ds_observations kDefaultObservations = first_parts(DS_OBSERVATION_PART_physics);

}  // namespace doorstep
