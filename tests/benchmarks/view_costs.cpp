// The cost of a view on a GPU, counted rather than timed: interprets the embedded PTX on the host and counts its
// instructions by stage, per view. Prints Markdown tables.
#include <stdio.h>

#include <numeric>
#include <vector>

#include "check.h"
#include "draws.h"
#include "embedded.h"
#include "machine.h"
#include "render/raycast/block_views.h"
#include "render/raycast/constants.h"

namespace {

using namespace doorstep;

constexpr int kWorlds = 64, kSide = 64, kWarmUp = 60;

// Worlds after some steps of random actions.
class SteppedWorlds {
public:
    SteppedWorlds(int num_agents, int64_t max_levels) {
        ds_simulator_config config{};
        config.struct_size = sizeof config;
        CHECK_EQUAL(ds_simulator_config_default(&config), DS_STATUS_OK);
        config.num_worlds = kWorlds;
        config.num_agents = num_agents;
        config.num_threads = 1;
        config.max_levels = max_levels;
        CHECK_EQUAL(ds_simulator_create(&config, &simulator_), DS_STATUS_OK);
        step();
        find_fields(num_agents);
    }
    ~SteppedWorlds() { ds_simulator_close(simulator_); }

    WorldFields fields{};

private:
    void step() {
        ds_tensor_info actions{};
        actions.struct_size = sizeof actions;
        CHECK_EQUAL(ds_simulator_get_tensor(simulator_, DS_TENSOR_actions, &actions), DS_STATUS_OK);
        Draws draws{3};
        for (int step = 0; step < kWarmUp; ++step) {
            int32_t* row = static_cast<int32_t*>(actions.data);
            for (int64_t slot = 0; slot < actions.shape[0] * actions.shape[1]; ++slot, row += 4) {
                row[0] = static_cast<int32_t>(draws.below(4));
                row[1] = static_cast<int32_t>(draws.below(8));
                row[2] = static_cast<int32_t>(draws.below(5));
                row[3] = static_cast<int32_t>(draws.below(2));
            }
            CHECK_EQUAL(ds_simulator_step(simulator_), DS_STATUS_OK);
        }
    }

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
        fields = {num_agents,
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
};

struct Stage {
    const char* name;
    double threads = 0, warps = 0, longest = 0;
};

void add(Stage& stage, const ptx::IntervalCost& cost) {
    stage.threads += static_cast<double>(cost.thread_instructions);
    stage.warps += static_cast<double>(cost.warp_instructions);
    stage.longest += static_cast<double>(cost.longest_thread);
}

class CostTable {
public:
    explicit CostTable(int rounds) : rounds_(rounds) {}

    // The work between two barriers of a view, in order; the last interval is the kernel's end. Advances `at` past it.
    void add_view(const std::vector<ptx::IntervalCost>& costs, bool meshes, size_t& at) {
        for (Stage* stage : {&read_, &find_, &take_}) add(*stage, costs[at++]);
        if (meshes) add(place_, costs[at++]);
        for (int round = 0; round < rounds_; ++round) {
            add(tiles_, costs[at++]);
            if (meshes) add(mark_, costs[at++]);
            add(draw_, costs[at++]);
        }
        ++at;
        with_meshes_ += meshes;
        ++views_;
    }

    void print() const {
        printf("%.0f%% of %d views have a mesh in sight\n\n", 100. * with_meshes_ / views_, views_);
        printf("| stage | thread instructions | warp instructions | longest thread |\n|---|---|---|---|\n");
        Stage all{"all"};
        for (const Stage* stage : {&read_, &find_, &take_, &place_, &tiles_, &mark_, &draw_}) {
            print(*stage);
            all.threads += stage->threads, all.warps += stage->warps, all.longest += stage->longest;
        }
        print(all);
        printf("\n%.1f warp instructions per 32 pixels\n", 32 * all.warps / views_ / (kSide * kSide));
    }

private:
    void print(const Stage& stage) const {
        printf("| %s | %.0f | %.0f | %.0f |\n", stage.name, stage.threads / views_, stage.warps / views_,
               stage.longest / views_);
    }

    Stage read_{"read the world"}, find_{"find the sides in view"}, take_{"take them"}, place_{"place meshes"},
        tiles_{"find the faces of tiles"}, mark_{"mark triangles of tiles"}, draw_{"draw pixels"};
    int rounds_, views_ = 0, with_meshes_ = 0;
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

// max_levels: of the worlds; they play the reference's level.
void count(const ptx::Program& program, int num_agents, int64_t max_levels) {
    const SteppedWorlds worlds(num_agents, max_levels);
    const ViewKernel kernel = find_view_kernel(worlds.fields);
    const int tiles =
        with_limits(worlds.fields, [&](auto limits) { return block_tiles<decltype(limits)>(num_agents); });
    const CameraRig rig{kSide, kSide, 1.1917536f, 1.1917536f, {0.f, 0.f, 1.5f}, {1.f, 0.f, 0.f, 0.f}};
    const RaycastConstants constants(rig);
    std::vector<char> memory(static_cast<size_t>(constants.bytes()) + 64);
    char* aligned = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64);
    constants.write(aligned);
    const auto pixels = static_cast<size_t>(num_agents * kSide * kSide);
    std::vector<uint8_t> rgb(4 * pixels);
    std::vector<float> depth(pixels);
    std::vector<uint32_t> order(kViewThreads);
    std::iota(order.begin(), order.end(), 0u);
    CostTable table(kSide * kSide / (kTileSide * kTileSide * tiles));
    for (int world = 0; world < kWorlds; ++world) {
        WorldFields fields = worlds.fields;
        for (FieldView* field : {&fields.body_positions, &fields.body_rotations, &fields.body_sizes, &fields.body_kinds,
                                 &fields.static_positions, &fields.static_sizes, &fields.static_kinds,
                                 &fields.button_positions, &fields.button_pressed})
            field->data += world * field->world_stride;
        ViewsCall call = constants.call({fields, 1, rig, {rgb.data(), depth.data(), nullptr, nullptr}}, aligned);
        std::vector<ptx::IntervalCost> costs;
        const uint32_t blocks = static_cast<uint32_t>(num_agents);
        ptx::launch(program, program.kernel(kernel.name),
                    {blocks, kViewThreads, kernel.block_bytes, &call, &order, &costs});
        size_t at = 0;
        for (int agent = 0; agent < num_agents; ++agent) table.add_view(costs, sees_meshes(call, agent), at);
        CHECK_EQUAL(at, costs.size());
    }
    printf("%d agents, %s: %u bytes a block\n\n", num_agents, kernel.name, kernel.block_bytes);
    table.print();
}

}  // namespace

int main() {
    const ptx::Program program = ptx::read_embedded(kViewsModule);
    for (int64_t max_levels : {0, 1})
        for (int num_agents : {1, 2, 8}) count(program, num_agents, max_levels);
}
