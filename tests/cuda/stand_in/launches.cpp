#include "launches.h"

#include <stdlib.h>
#include <unistd.h>

#include <map>
#include <vector>

#include "exec/cuda/kernels.h"
#include "machine.h"
#include "math/float_environment.h"
#include "render/raycast/block_views.h"
#include "sim/observe.h"
#include "sim/world.h"
#include "training/kernels.h"

namespace stand_in {
namespace {

using doorstep::FieldView;
using doorstep::ViewsCall;

// ---- Worlds

constexpr int64_t kBytesOfWorlds[] = {
#define STAND_IN_WORLD(number, ...) doorstep::kBlockBytes<doorstep::CompiledWorld<number>::W>,
    DS_WORLD_KIND_TABLE(STAND_IN_WORLD)
};

int64_t bytes_of_world(int kind_of_worlds) { return kBytesOfWorlds[kind_of_worlds - 1]; }

// The bytes of a tensor, from the shape in its row of the table.
int64_t tensor_bytes(const char* shape, int64_t element, int64_t num_worlds, int agents, int64_t max_levels,
                     int64_t flat_size) {
    int64_t bytes = element;
    for (const char* at = shape; *at; ++at) {
        if (*at == ',') continue;
        if (*at == 'N') bytes *= num_worlds;
        else if (*at == 'L') bytes *= max_levels;
        else if (*at == 'F') bytes *= flat_size;
        else if (*at != 'A') bytes *= strtol(at, const_cast<char**>(&at), 10), --at;
        else if (at[1] != '-') bytes *= agents;
        else bytes *= agents - 1, at += 2;
    }
    return bytes;
}

void add_tensors(const doorstep::Simulation& simulation, int64_t num_worlds, int num_agents, Accesses& accesses) {
    const doorstep::TensorPointers& tensors = simulation.tensors;
#define STAND_IN_TENSOR(name, dtype, shape, ...)                                                    \
    accesses.add_given(#name, tensors.name,                                                         \
                       tensor_bytes(shape, sizeof *tensors.name, num_worlds, num_agents,            \
                                    simulation.max_levels, simulation.flat.size), true, 256);
    DS_TENSOR_TABLE(STAND_IN_TENSOR)
}

// The levels and saved worlds of given episodes, whose addresses are on the device: known when the kernel runs.
std::vector<Access> given_beginnings(const Launch& launch, const doorstep::KernelArguments& arguments) {
    std::vector<Access> found;
    Accesses accesses(launch, &found);
    for (int64_t world = 0; arguments.starts && world < arguments.num_worlds; ++world) {
        if (!arguments.mask[world]) continue;
        const doorstep::EpisodeStart& start = arguments.starts[world];
        accesses.add_given("a given level", start.level, sizeof(ds_level), false);
        accesses.add_given("a saved world", start.saved, bytes_of_world(launch.kind_of_worlds), false);
    }
    return found;
}

// Programs stay: work that was begun may outlive the module that it came with.
const ptx::Program* program_of(const std::string& ptx) {
    static std::map<std::string, ptx::Program> programs;
    if (ptx.empty()) return nullptr;
    const auto known = programs.find(ptx);
    return &(known != programs.end() ? known : programs.emplace(ptx, ptx::read_program(ptx.c_str())).first)->second;
}

// After a step, as Settings::planted says.
void fail_as_planted(const doorstep::KernelArguments& arguments, int64_t bytes_of_world) {
    const std::string& planted = driver().settings.planted;
    while (planted == "hang") pause();
    if (planted == "crash") driver().lost = kIllegalAddress;
    if (planted == "wrong_bit") {
        constexpr int64_t kFirstCoordinate = sizeof(float) * doorstep::CompiledWorld<2>::W::kButtonLanes;
        const int64_t world = arguments.num_worlds / 2 * bytes_of_world;
        static_cast<char*>(arguments.simulation.worlds)[world + kFirstCoordinate] ^= 1;
    }
}

int make_world_launch(const Launch& launch, const doorstep::KernelArguments& arguments, Task* task) {
    const int kind = launch.kind_of_worlds, num_agents = arguments.simulation.num_agents;
    const doorstep::KernelShape& shape = doorstep::find_kernel_shape({num_agents, arguments.simulation.max_levels > 0});
    TRY(check_shape(launch, static_cast<uint32_t>(shape.threads), shape.shared_bytes, sizeof arguments));
    const bool is_of_kind = kind == doorstep::number_of({num_agents, arguments.simulation.max_levels > 0});
    REFUSE_IF(!is_of_kind, kInvalidValue, "a kernel of kind %d for %d agents", kind, num_agents);
    const int tile_worlds = arguments.tile_worlds;
    REFUSE_IF(tile_worlds < 1 || tile_worlds > shape.tile_worlds, kInvalidValue, "tiles of %d worlds", tile_worlds);
    const doorstep::EmulatedKernel kernel = doorstep::find_emulated_kernel(kind, launch.kernel.c_str());
    if (!kernel) return refuse(kNotFound, "there is no emulation of " + launch.kernel);
    task->what = text("%s of %ld worlds", launch.kernel.c_str(), arguments.num_worlds);

    Accesses accesses(launch, &task->accesses);
    const int64_t num_worlds = arguments.num_worlds;
    accesses.add("worlds", arguments.simulation.worlds, num_worlds * bytes_of_world(kind), true, 64);
    const int64_t max_levels = arguments.simulation.max_levels;
    add_tensors(arguments.simulation, num_worlds, num_agents, accesses);
    const int64_t bytes_of_levels = max_levels * static_cast<int64_t>(sizeof(ds_level));
    accesses.add_given("levels", arguments.simulation.levels, bytes_of_levels, false);
    accesses.add("flights", arguments.flights, sizeof(doorstep::FlightTable), false);
    accesses.add("trouble", arguments.trouble, sizeof(uint32_t) * doorstep::kTroubleKinds, true);
    const int64_t workspace = launch.grid * doorstep::workspace_bytes(shape, tile_worlds);
    accesses.add("workspace", arguments.workspace, workspace, true, 256);
    accesses.add_given("mask", arguments.mask, num_worlds, false);
    const int64_t bytes_of_starts = num_worlds * static_cast<int64_t>(sizeof(doorstep::EpisodeStart));
    accesses.add_given("starts", arguments.starts, bytes_of_starts, false);
    accesses.add_given("seed_and_offset", arguments.seed_and_offset, 8, false);
    const ptx::Program* const program = program_of(launch.ptx);
    const bool steps = launch.kernel == doorstep::kKernelNames[doorstep::kKernel_step];
    task->run = [=] {
        const doorstep::DefaultFloatEnvironment device;  // independent of the host's
        const OpenMemory given(given_beginnings(launch, arguments));
        if (program) {
            ptx::launch(*program, launch.kernel, {launch.grid, launch.threads, launch.shared_bytes, &arguments});
        } else {
            kernel(arguments, launch.grid, launch.threads, next_thread_order());
        }
        if (steps) fail_as_planted(arguments, bytes_of_world(kind));
    };
    return accesses.code;
}

// ---- Training

// An array of a call, and whether it is written.
struct Array {
    const char* name;
    const void* address;
    int64_t bytes;
    bool writes;
};

std::vector<Array> arrays_of(const ds_advantages& call, const std::string&) {
    const int64_t count = call.num_steps * call.num_columns, bytes = count * (call.dtype == DS_DTYPE_FLOAT64 ? 8 : 4);
    return {{"rewards", call.rewards, bytes, false},          {"values", call.values, bytes, false},
            {"next_values", call.next_values, bytes, false},  {"terminations", call.terminations, count, false},
            {"truncations", call.truncations, count, false},  {"log_ratios", call.log_ratios, bytes, false},
            {"advantages", call.advantages, bytes, true},     {"targets", call.targets, bytes, true}};
}

std::vector<Array> arrays_of(const ds_multi_discrete& call, const std::string& kernel) {
    const int64_t element = call.dtype == DS_DTYPE_FLOAT64 ? 8 : 4;
    int64_t width = 0;
    for (int k = 0; k < call.num_components; ++k) width += call.sizes[k];
    const int64_t logits = call.num_rows * width * element, choices = call.num_rows * call.num_components;
    const bool draws = kernel.find("sample") != std::string::npos;
    return {{"logits", call.logits, logits, false},
            {"uniforms", call.uniforms, choices * element, false},
            {"actions", call.actions, choices * 4, draws},
            {"log_probabilities", call.log_probabilities, call.num_rows * element, true},
            {"entropies", call.entropies, call.num_rows * element, true},
            {"log_probability_gradients", call.log_probability_gradients, call.num_rows * element, false},
            {"entropy_gradients", call.entropy_gradients, call.num_rows * element, false},
            {"logit_gradients", call.logit_gradients, logits, true}};
}

int make_training_launch(const Launch& launch, const auto& call, Task* task) {
    const doorstep::EmulatedTrainingKernel run = doorstep::find_emulated_training_kernel(launch.kernel.c_str());
    if (!run) return refuse(kNotFound, "there is no emulation of " + launch.kernel);
    TRY(check_shape(launch, doorstep::kTrainingThreads, 0, sizeof call));
    Accesses accesses(launch, &task->accesses);
    for (const Array& array : arrays_of(call, launch.kernel))
        accesses.add_given(array.name, array.address, array.bytes, array.writes);
    task->what = launch.kernel;
    task->run = [=, order = next_thread_order()] {
        const doorstep::DefaultFloatEnvironment device;  // independent of the host's
        run(&call, launch.grid, launch.threads, order);
    };
    return accesses.code;
}

// ---- Views

void add_fields(const doorstep::WorldFields& fields, int64_t worlds, Accesses& accesses) {
    const struct {
        const char* name;
        const FieldView& field;
        int items, components;
    } all[] = {{"body_positions", fields.body_positions, fields.num_bodies, 3},
               {"body_rotations", fields.body_rotations, fields.num_bodies, 4},
               {"body_sizes", fields.body_sizes, fields.num_bodies, 3},
               {"body_kinds", fields.body_kinds, fields.num_bodies, 1},
               {"static_positions", fields.static_positions, fields.num_statics, 3},
               {"static_sizes", fields.static_sizes, fields.num_statics, 3},
               {"static_kinds", fields.static_kinds, fields.num_statics, 1},
               {"button_positions", fields.button_positions, fields.num_buttons, 3},
               {"button_pressed", fields.button_pressed, fields.num_buttons, 1}};
    for (const auto& [name, field, items, components] : all) {
        const int64_t last = (worlds - 1) * field.world_stride + (items - 1) * field.item_stride +
                             (components - 1) * field.component_stride;
        accesses.add_given(name, field.data, last + 4, false);
    }
}

void add_pixels(const ViewsCall& call, Accesses& accesses) {
    const int64_t pixels = call.views.num_worlds * call.views.fields.num_agents * call.grid.width * call.grid.height;
    accesses.add_given("rgb", call.views.tensors.rgb, 4 * pixels, true);
    accesses.add_given("depth", call.views.tensors.depth, 4 * pixels, true);
    accesses.add_given("segmentation", call.views.tensors.segmentation, 2 * pixels, true);
    accesses.add_given("normals", call.views.tensors.normals, 12 * pixels, true);
}

}  // namespace

doorstep::ThreadOrder next_thread_order() {
    static int launches = 0;
    return static_cast<doorstep::ThreadOrder>(launches++ % 3);
}

int check_shape(const Launch& launch, uint32_t threads, uint32_t shared_bytes, size_t parameter_bytes) {
    if (launch.parameter_bytes && launch.parameter_bytes != static_cast<int>(parameter_bytes))
        return refuse(kInvalidValue, text("%s: its parameter has %zu bytes on the host, %d in the machine code",
                                          launch.kernel.c_str(), parameter_bytes, launch.parameter_bytes));
    if (launch.threads == threads && launch.shared_bytes >= shared_bytes) return kSuccess;
    return refuse(kInvalidValue, text("%s: %u threads and %u bytes of shared memory, it needs %u and %u",
                                      launch.kernel.c_str(), launch.threads, launch.shared_bytes, threads,
                                      shared_bytes));
}

int make_launch(const Launch& launch, const void* parameter, Task* task) {
    if (launch.kind_of_worlds)
        return make_world_launch(launch, *static_cast<const doorstep::KernelArguments*>(parameter), task);
#define STAND_IN_TRAINING(name, Call, items)                     \
    if (launch.kernel.starts_with("doorstep_" #name "_float"))   \
        return make_training_launch(launch, *static_cast<const Call*>(parameter), task);
    DS_TRAINING_KERNEL_TABLE(STAND_IN_TRAINING)
    return refuse(kNotFound, "there is no emulation of " + launch.kernel);
}

int make_view_launch(const Launch& launch, const void* parameter, Task* task) {
    const ViewsCall call = *static_cast<const ViewsCall*>(parameter);
    const doorstep::ViewKernel kernel = doorstep::find_view_kernel(call.views.fields);
    if (launch.kernel != kernel.name) return refuse(kInvalidValue, launch.kernel + ": the worlds need " + kernel.name);
    TRY(check_shape(launch, doorstep::kViewThreads, kernel.block_bytes, sizeof call));
    Accesses accesses(launch, &task->accesses);
    add_fields(call.views.fields, call.views.num_worlds, accesses);
    add_pixels(call, accesses);
    accesses.add_given("mesh", call.mesh, sizeof *call.mesh, false);
    accesses.add_given("grid.right", call.grid.right, 4 * call.grid.width, false);
    accesses.add_given("grid.up", call.grid.up, 4 * call.grid.height, false);
    task->what = launch.kernel;
    task->run = [=, order = next_thread_order()] {
        const doorstep::DefaultFloatEnvironment environment;  // independent of the host's
        doorstep::emulate_draw_views(call, launch.grid, order);
    };
    return accesses.code;
}

}  // namespace stand_in
