#include "view_cases.h"

#include "check.h"
#include "device_memory.h"
#include "embedded.h"
#include "random_actions.h"
#include "render/raycast/block_views.h"
#include "simulators.h"
#include "view_calls.h"

namespace gpu_model {
namespace {

using namespace doorstep;

constexpr int kSide = 64, kWarmUp = 60;

// Worlds after some steps of random actions.
class SteppedWorlds {
public:
    SteppedWorlds(bool plays_levels, int num_agents, int num_worlds) {
        ds_simulator_config config = default_config(num_worlds);
        config.num_agents = num_agents;
        config.num_threads = 1;
        config.max_levels = plays_levels;
        simulator_ = make_simulator(config);
        const ds_tensor_info actions = tensor_of(simulator_, DS_TENSOR_actions);
        Draws draws{3};
        for (int step = 0; step < kWarmUp; ++step) {
            write_random_actions(draws, static_cast<int32_t*>(actions.data), actions.shape[0] * actions.shape[1]);
            CHECK_EQUAL(ds_simulator_step(simulator_), DS_STATUS_OK);
        }
        find_fields(num_agents);
    }
    SteppedWorlds(const SteppedWorlds&) = delete;
    SteppedWorlds& operator=(const SteppedWorlds&) = delete;
    ~SteppedWorlds() { close_simulator(simulator_); }

    // Of one world.
    WorldFields fields_of(int world) const {
        WorldFields fields = fields_;
        for (FieldView* field : {&fields.body_positions, &fields.body_rotations, &fields.body_sizes, &fields.body_kinds,
                                 &fields.static_positions, &fields.static_sizes, &fields.static_kinds,
                                 &fields.button_positions, &fields.button_pressed})
            field->data += world * field->world_stride;
        return fields;
    }

private:
    FieldView view(int32_t field) {
        ds_tensor_info info{};
        info.struct_size = sizeof info;
        CHECK_EQUAL(ds_simulator_view_state(simulator_, field, &info), DS_STATUS_OK);
        return {static_cast<const char*>(info.data), info.strides[0], info.strides[1],
                info.rank > 2 ? info.strides[2] : 0};
    }

    void find_fields(int num_agents) {
        ds_simulator_info info{};
        info.struct_size = sizeof info;
        CHECK_EQUAL(ds_simulator_get_info(simulator_, &info), DS_STATUS_OK);
        fields_ = {num_agents,
                   static_cast<int32_t>(info.num_bodies),
                   static_cast<int32_t>(info.num_statics),
                   static_cast<int32_t>(info.num_buttons),
                   view(DS_STATE_body_positions),
                   view(DS_STATE_body_rotations),
                   view(DS_STATE_body_sizes),
                   view(DS_STATE_body_kinds),
                   view(DS_STATE_static_positions),
                   view(DS_STATE_static_sizes),
                   view(DS_STATE_static_kinds),
                   view(DS_STATE_button_positions),
                   view(DS_STATE_button_pressed)};
    }

    ds_simulator simulator_ = 0;
    WorldFields fields_{};
};

class Pictures {
public:
    explicit Pictures(const WorldFields& fields) : constants_(kRig) {
        const auto pixels = static_cast<size_t>(fields.num_agents * kSide * kSide);
        rgb_.assign(4 * pixels, 77);
        depth_.assign(pixels, 77.f);
        memory_.resize(static_cast<size_t>(constants_.bytes()));
        constants_.write(memory_.data());
        call = constants_.call({fields, 1, kRig, {rgb_.data(), depth_.data(), nullptr, nullptr}}, memory_.data());
    }
    Pictures(const Pictures&) = delete;
    Pictures& operator=(const Pictures&) = delete;

    bool operator==(const Pictures& other) const { return rgb_ == other.rgb_ && depth_ == other.depth_; }

    alignas(kDeviceAlignment) ViewsCall call;

private:
    static constexpr CameraRig kRig{kSide, kSide, 1.1917536f, 1.1917536f, {0.f, 0.f, 1.5f}, {1.f, 0.f, 0.f, 0.f}};
    RaycastConstants constants_;
    DeviceArray<uint8_t> rgb_;
    DeviceArray<float> depth_;
    DeviceArray<char> memory_;
};

bool sees_meshes(const ViewsCall& call, int agent) {
    return with_limits(call.views.fields, [&](auto limits) {
        static DrawingMemory<decltype(limits)> memory;
        read_boxes<NarrowFloat>(call.views.fields, 0, memory);
        aim(call.views, 0, agent, memory.view);
        find_faces<NarrowFloat>(call, memory);
        return memory.view.meshes != 0;
    });
}

enum ViewStage { kRead, kFind, kTake, kPlace, kFaces, kMark, kDraw, kEnd, kViewStages };

// The costs by stage, from those of the work between two barriers, in order.
TileCost by_stage(const TileCost& intervals, bool meshes, int rounds) {
    TileCost stages(kViewStages);
    size_t at = 0;
    const auto take = [&](ViewStage stage) { stages[stage].add(intervals.at(at++)); };
    for (const ViewStage stage : {kRead, kFind, kTake}) take(stage);
    if (meshes) take(kPlace);
    for (int round = 0; round < rounds; ++round) {
        take(kFaces);
        if (meshes) take(kMark);
        take(kDraw);
    }
    take(kEnd);
    CHECK_EQUAL(at, intervals.size());
    return stages;
}

}  // namespace

Measured measure_views(bool plays_levels, int num_agents, int num_worlds) {
    const SteppedWorlds worlds(plays_levels, num_agents, num_worlds);
    const ptx::Program program = ptx::read_embedded(kViewsModule);
    const ViewKernel kernel = find_view_kernel(worlds.fields_of(0));
    const int tiles = with_limits(worlds.fields_of(0), [&](auto limits) {
        return block_tiles<decltype(limits)>(num_agents);
    });
    const int rounds = kSide * kSide / (kTileSide * kTileSide * tiles);
    const BlockNeeds needs{kViewThreads, kernel.block_bytes, registers_of(kViewsModule, kernel.name)};
    TileCosts costs(cache_lines(needs));
    std::vector<TileCost> views;
    for (int world = 0; world < num_worlds; ++world) {
        const WorldFields fields = worlds.fields_of(world);
        Pictures expected(fields), interpreted(fields);
        draw_narrow(expected.call);
        costs.tiles.clear();
        ptx::launch_in_warps(
            program, program.kernel(kernel.name),
            {static_cast<uint32_t>(num_agents), kViewThreads, kernel.block_bytes, &interpreted.call}, costs);
        CHECK(interpreted == expected);
        for (int agent = 0; agent < num_agents; ++agent) {
            const TileCost& intervals = costs.tiles[static_cast<size_t>(agent)];
            views.push_back(by_stage(intervals, sees_meshes(expected.call, agent), rounds));
        }
    }
    return {"", "view", 1,
            {"read the world", "find the sides in view", "take them", "place meshes", "find the faces of tiles",
             "mark triangles of tiles", "draw pixels", "end"},
            views, needs, {4096, 32768}};
}

}  // namespace gpu_model
