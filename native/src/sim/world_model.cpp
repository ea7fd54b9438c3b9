// The simulation of one kind of worlds (DS_KIND, its number), eight lanes wide. Compiled once for each, for AVX2.
#include "sim/world_model.h"

#include "sim/state_fields.h"
#include "sim/step_worlds.h"

namespace doorstep {
namespace {

using W = CompiledWorld<DS_KIND>::W;

void create(const Simulation& simulation, int64_t first, int64_t count, uint32_t seed, uint64_t world_offset) {
    for_each_tile<W>(simulation, first, count, [&](auto& tile) {
        tile.request = {nullptr, seed, world_offset, nullptr};
        create_tile(tile.workspace.crew, tile);
    });
}

uint32_t step(const Simulation& simulation, int64_t first, int64_t count, uint64_t* ticks) {
    return step_worlds<W>(simulation, LeavesWith<W, WideFloat>::kTable, first, count, ticks);
}
uint32_t step_with_avx512(const Simulation& simulation, int64_t first, int64_t count, uint64_t* ticks) {
    return step_worlds<W>(simulation, leaves_with_avx512<DS_KIND>(), first, count, ticks);
}

uint32_t reset(const Simulation& simulation, int64_t first, int64_t count, const uint8_t* mask,
               const EpisodeStart* starts) {
    uint32_t trouble = kTroubleNone;
    for_each_tile<W>(simulation, first, count, [&](auto& tile) {
        tile.request.mask = mask ? mask + tile.first : nullptr;
        tile.request.starts = starts ? starts + tile.first : nullptr;
        reset_tile(tile.workspace.crew, tile);
        trouble |= trouble_of(tile);
    });
    return trouble;
}

uint32_t refresh(const Simulation& simulation, int64_t first, int64_t count) {
    uint32_t trouble = kTroubleNone;
    for_each_tile<W>(simulation, first, count, [&](auto& tile) {
        refresh_tile(tile.workspace.crew, tile);
        trouble |= trouble_of(tile);
    });
    return trouble;
}

void read_health(const void* block, WorldHealth* health) {
    *health = static_cast<const W*>(block)->health;
}

void read_progress(const void* block, EpisodeProgress* progress) {
    const W& world = *static_cast<const W*>(block);
    const W::Progress& of_world = world.progress;
    progress->is_over = world.terms().is_over(world.episode);
    for (int a = 0; a < world.num_agents(); a++) {
        progress->returns[a] = of_world.episode_return[a];
        progress->max_y[a] = of_world.max_y[a];
    }
}

// A restore also refuses cubes without a positive mass and inertia, by which the solver divides.
bool is_valid_block(const void* block, int num_agents, int32_t episode_length) {
    W world;  // a saved block need not be aligned
    memcpy(static_cast<void*>(&world), block, sizeof world);
    const auto cubes = world.terms().of_cubes();
    return world.has_agents(num_agents) && is_valid(world, episode_length) && cubes.cube_inverse_mass() > 0.f &&
           cubes.cube_inverse_inertia() > 0.f && cubes.friction() >= 0.f;
}

void absorb_block_edits(void* block) { absorb_world_edits<WideFloat>(*static_cast<W*>(block)); }

int64_t count_valid(const void* blocks, int64_t count, int num_agents, int32_t episode_length) {
    const char* block = static_cast<const char*>(blocks);
    for (int64_t i = 0; i < count; i++, block += kBlockBytes<W>) {
        const W& world = *reinterpret_cast<const W*>(block);
        if (!world.has_agents(num_agents) || !is_valid(world, episode_length)) return i;
    }
    return count;
}

template <int Agents>
constexpr WorldModel make_model(decltype(WorldModel::step) step) {
    WorldModel model{};
    model.kind = {Agents, W::kPlaysLevels};
    model.num_agents = Agents;
    model.num_bodies = Agents + W::kCubes;
    model.num_statics = W::kStatics;
    model.num_buttons = W::kButtons;
    model.num_doors = W::kDoors;
    model.world_bytes = kBlockBytes<W>;
#define DS_STATE_PLACE(name, ...) model.state_fields[DS_STATE_##name] = StateFields<W, Agents>::name;
    DS_STATE_TABLE(DS_STATE_PLACE)
#undef DS_STATE_PLACE
    model.create = create;
    model.step = step;
    model.reset = reset;
    model.refresh = refresh;
    model.find_bad_action = find_bad_action;
    model.read_health = read_health;
    model.read_progress = read_progress;
    model.is_valid = is_valid_block;
    model.absorb_edits = absorb_block_edits;
    model.count_valid = count_valid;
    return model;
}

constexpr int kLeast = W::AgentCount::kLeast, kMost = W::AgentCount::kMost;
struct Models {
    WorldModel of[kMost - kLeast + 1];
};
template <int Agents = kLeast>
constexpr void fill(Models& models, decltype(WorldModel::step) step) {
    models.of[Agents - kLeast] = make_model<Agents>(step);
    if constexpr (Agents < kMost) fill<Agents + 1>(models, step);
}
constexpr Models make_models(decltype(WorldModel::step) step) {
    Models models{};
    fill(models, step);
    return models;
}
constexpr Models kModels = make_models(step), kWideModels = make_models(step_with_avx512);

}  // namespace

template <>
const WorldModel& world_model<DS_KIND>(int num_agents, bool avx512) {
    DS_ASSERT(num_agents >= kLeast && num_agents <= kMost);
    return (avx512 ? kWideModels : kModels).of[num_agents - kLeast];
}

}  // namespace doorstep
