// Agents that touch statics only: as many together as there are lanes, from any worlds of the tile.
#pragma once

#include "physics/slide.h"
#include "sim/flight.h"

namespace doorstep {

// Writes one lane of the batch; returns the number of its walls.
template <WorldTile TileT>
DS_INLINE int gather_sliding_agent(const SlidingAgents<TileT>& agents, int lane,
                                   SlideBatch<typename TileT::Wide>& batch) {
    const auto& bodies = agents.world(lane).bodies;
    const auto& statics = agents.world(lane).statics;
    const int agent = agents.agent(lane);
    const Vec3 position = bodies.position(agent);
    batch.x[lane] = position.x;
    batch.y[lane] = position.y;
    batch.rotation_w[lane] = bodies.rotation_w[agent];
    batch.rotation_z[lane] = bodies.rotation_z[agent];
    const Vec3 force = force_of(agents.action(lane), bodies.heading(agent));
    batch.force_x[lane] = force.x;
    batch.force_y[lane] = force.y;
    batch.torque[lane] = torque_of(agents.action(lane));
    int count = 0;
    for (uint32_t walls = agents.walls(lane).bits; walls; count++) {
        DS_ASSERT(count < kMaxSlideWalls);
        const int i = take_lowest_bit(walls);
        batch.wall_x[count][lane] = statics.x[i];
        batch.wall_y[count][lane] = statics.y[i];
        batch.wall_half_x[count][lane] = 0.5f * statics.size_x[i];
        batch.wall_half_y[count][lane] = 0.5f * statics.size_y[i];
    }
    return count;
}

// ---- Stage

template <WorldTile TileT>
DS_METHOD void Stages<TileT>::slide_agents(const SlidingAgents& agents, SlideBatch& batch, SlidingBodies& bodies) {
    for (int k = 0; k < kMaxSlideWalls; k++)
        for (int lane = 0; lane < SlideBatch::kLanes; lane++) {
            batch.wall_x[k][lane] = batch.wall_y[k][lane] = kNoWall;
            batch.wall_half_x[k][lane] = batch.wall_half_y[k][lane] = 0.f;
        }
    int wall_count = 0;
    for (int lane = 0; lane < SlideBatch::kLanes; lane++) {
        const int count = gather_sliding_agent(agents, lane, batch);
        wall_count = count > wall_count ? count : wall_count;
    }
    slide_batch(batch, wall_count);
    for (int lane = 0; lane < agents.count; lane++)
        settle_agent(*bodies.of[lane], agents.agent(lane), batch.x[lane], batch.y[lane], batch.rotation_w[lane],
                     batch.rotation_z[lane]);
}

}  // namespace doorstep
