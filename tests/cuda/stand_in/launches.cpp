#include "launches.h"

#include <unistd.h>

#include <map>
#include <vector>

#include "exec/cuda/kernels.h"
#include "machine.h"
#include "math/float_environment.h"
#include "policy/kernels.h"
#include "render/raycast/block_views.h"
#include "sim/observe.h"
#include "sim/world.h"
#include "training/kernels.h"

namespace stand_in {
namespace {

using doorstep::ActArguments;
using doorstep::ActCall;

// The result must not depend on the order of the threads.
doorstep::ThreadOrder next_thread_order() {
    static int launches = 0;
    return static_cast<doorstep::ThreadOrder>(launches++ % 3);
}

// A code, and a violation, if the launch has another number of threads or less shared memory, or the kernel's only
// parameter has another size in the machine code than on the host.
int check_shape(const Launch& launch, uint32_t threads, uint32_t shared_bytes, size_t parameter_bytes) {
    if (launch.parameter_bytes && launch.parameter_bytes != static_cast<int>(parameter_bytes))
        return refuse(kInvalidValue, text("%s: its parameter has %zu bytes on the host, %d in the machine code",
                                          launch.kernel.c_str(), parameter_bytes, launch.parameter_bytes));
    if (launch.threads == threads && launch.shared_bytes >= shared_bytes) return kSuccess;
    return refuse(kInvalidValue, text("%s: %u threads and %u bytes of shared memory, it needs %u and %u",
                                      launch.kernel.c_str(), launch.threads, launch.shared_bytes, threads,
                                      shared_bytes));
}

// ---- Worlds

// The levels and saved worlds of given episodes, whose addresses are on the device: known when the kernel runs.
std::vector<Access> given_beginnings(const Launch& launch, const doorstep::KernelArguments& arguments) {
    std::vector<Access> found;
    Accesses accesses(launch, &found);
    for (int64_t world = 0; arguments.starts && world < arguments.num_worlds; ++world) {
        if (arguments.mask[world]) accesses.read({arguments.starts[world].level, arguments.starts[world].saved});
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
void fail_as_planted(const doorstep::KernelArguments& arguments) {
    const std::string& planted = driver().settings.planted;
    while (planted == "hang") pause();
    if (planted == "wrong_bit") {
        using W = doorstep::CompiledWorld<2>::W;
        constexpr int64_t kFirstCoordinate = sizeof(float) * W::kButtonLanes;
        const int64_t world = arguments.num_worlds / 2 * doorstep::kBlockBytes<W>;
        static_cast<char*>(arguments.simulation.worlds)[world + kFirstCoordinate] ^= 1;
    }
}

int make_world_launch(const Launch& launch, const doorstep::KernelArguments& arguments, Task* task) {
    const doorstep::WorldKind kind{arguments.simulation.num_agents, arguments.simulation.max_levels > 0};
    const doorstep::KernelShape& shape = doorstep::find_kernel_shape(kind);
    const int number = doorstep::number_of(kind);
    TRY(check_shape(launch, static_cast<uint32_t>(shape.threads), shape.shared_bytes, sizeof arguments));
    const bool is_other = launch.kind_of_worlds && launch.kind_of_worlds != number;
    REFUSE_IF(is_other, kInvalidValue, "a kernel of kind %d for worlds of kind %d", launch.kind_of_worlds, number);
    const int tile_worlds = arguments.tile_worlds;
    REFUSE_IF(tile_worlds < 1 || tile_worlds > shape.tile_worlds, kInvalidValue, "tiles of %d worlds", tile_worlds);
    const doorstep::EmulatedKernel kernel = doorstep::find_emulated_kernel(number, launch.kernel.c_str());
    task->what = text("%s of %ld worlds", launch.kernel.c_str(), arguments.num_worlds);

    Accesses accesses(launch, &task->accesses);
    const doorstep::Simulation& simulation = arguments.simulation;
    accesses.write({simulation.worlds}, 64);
#define STAND_IN_TENSOR(name, ...) accesses.write({simulation.tensors.name}, 256);
    DS_TENSOR_TABLE(STAND_IN_TENSOR)
    accesses.write({arguments.workspace}, 256);
    accesses.write({arguments.trouble});
    accesses.read({simulation.levels, arguments.flights, arguments.mask, arguments.starts, arguments.seed_and_offset});
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
        if (steps) fail_as_planted(arguments);
    };
    return accesses.code;
}

// ---- Training

void add_arrays(const ds_advantages& call, const std::string&, Accesses& accesses) {
    accesses.read({call.rewards, call.values, call.next_values, call.terminations, call.truncations, call.log_ratios});
    accesses.write({call.advantages, call.targets});
}

void add_arrays(const ds_multi_discrete& call, const std::string& kernel, Accesses& accesses) {
    accesses.read({call.logits, call.uniforms, call.log_probability_gradients, call.entropy_gradients});
    accesses.write({call.log_probabilities, call.entropies, call.logit_gradients});
    if (kernel.find("sample") == std::string::npos) accesses.read({call.actions});
    else accesses.write({call.actions});
}

int make_training_launch(const Launch& launch, const auto& call, Task* task) {
    const doorstep::EmulatedTrainingKernel run = doorstep::find_emulated_training_kernel(launch.kernel.c_str());
    TRY(check_shape(launch, doorstep::kTrainingThreads, 0, sizeof call));
    Accesses accesses(launch, &task->accesses);
    add_arrays(call, launch.kernel, accesses);
    task->what = launch.kernel;
    task->run = [=, order = next_thread_order()] {
        const doorstep::DefaultFloatEnvironment device;  // independent of the host's
        run(&call, launch.grid, launch.threads, order);
    };
    return accesses.code;
}

// ---- Views

int make_view_launch(const Launch& launch, const void* parameter, Task* task) {
    const auto call = *static_cast<const doorstep::ViewsCall*>(parameter);
    const doorstep::ViewKernel kernel = doorstep::find_view_kernel(call.views.fields);
    if (launch.kernel != kernel.name) return refuse(kInvalidValue, launch.kernel + ": the worlds need " + kernel.name);
    TRY(check_shape(launch, doorstep::kViewThreads, kernel.block_bytes, sizeof call));
    Accesses accesses(launch, &task->accesses);
    const doorstep::WorldFields& fields = call.views.fields;
    const doorstep::ViewTensors& pixels = call.views.tensors;
    for (const doorstep::FieldView& field :
         {fields.body_positions, fields.body_rotations, fields.body_sizes, fields.body_kinds, fields.static_positions,
          fields.static_sizes, fields.static_kinds, fields.button_positions, fields.button_pressed})
        accesses.read({field.data});
    accesses.read({call.mesh, call.grid.right, call.grid.up});
    accesses.write({pixels.rgb, pixels.depth, pixels.segmentation, pixels.normals});
    task->what = launch.kernel;
    task->run = [=, order = next_thread_order()] {
        const doorstep::DefaultFloatEnvironment environment;  // independent of the host's
        doorstep::emulate_draw_views(call, launch.grid, order);
    };
    return accesses.code;
}

// ---- Policies

int make_act_launch(const Launch& launch, const void* parameter, Task* task) {
    const ActArguments arguments = *static_cast<const ActArguments*>(parameter);
    const ActCall& call = arguments.call;
    const bool rounds = launch.kernel == doorstep::kActBf16Kernel;
    if (rounds != (arguments.network.precision == DS_PRECISION_BFLOAT16))
        return refuse(kInvalidValue, text("%s: precision %d", launch.kernel.c_str(), arguments.network.precision));
    const int64_t scratch = arguments.scratch_floats * 4;
    const int64_t shared = doorstep::kStagedFloats * 4 + (arguments.scratch ? 0 : scratch);
    TRY(check_shape(launch, doorstep::kActThreads, static_cast<uint32_t>(shared), sizeof arguments));
    Accesses accesses(launch, &task->accesses);
    accesses.write({arguments.scratch, call.logits});
    // nonfinite_rows is added to atomically: launches do not race
    accesses.read({arguments.network.layers, arguments.nonfinite_rows, call.rows, call.step_counter, arguments.range});
    task->what = text("%s of %ld rows", launch.kernel.c_str(), call.num_rows);
    task->run = [=, order = doorstep::ThreadOrder{next_thread_order()}] {
        const doorstep::DefaultFloatEnvironment device;  // independent of the host's
        std::vector<Access> found;
        Accesses accesses(launch, &found);
        for (int64_t i = 0; i < arguments.network.num_layers; ++i) {
            const ds_layer_config& layer = arguments.network.layers[i];
            accesses.read({layer.weights, layer.biases, layer.hidden_weights, layer.hidden_biases});
        }
        accesses.read({call.observations, call.sampling, call.keys});
        accesses.write({call.states, call.actions, call.nonfinite, call.log_probs, call.values});
        const OpenMemory opened(found);
        if (!accesses.code) doorstep::emulate_act(arguments, launch.grid, launch.shared_bytes, order);
    };
    return accesses.code;
}

int make_prepare_launch(const Launch& launch, const doorstep::PlayedRows& call, Task* task) {
    TRY(check_shape(launch, doorstep::kPrepareThreads, 0, sizeof call));
    if (int64_t{launch.grid} * launch.threads < call.num_rows)
        return refuse(kInvalidValue, launch.kernel + ": too few threads");
    Accesses accesses(launch, &task->accesses);
    accesses.read({call.rows, call.keys, call.step_counter, call.policies});
    accesses.write({call.observations, call.actions});
    task->what = launch.kernel;
    task->run = [=] {
        std::vector<Access> found;
        Accesses accesses(launch, &found);
        for (int64_t row = 0; row < call.num_rows; ++row) {
            if (call.rows[row].chooser != doorstep::RowChooser::kNetwork) continue;
            accesses.write({call.policies[call.rows[row].policy].states});
        }
        const OpenMemory opened(found);
        if (!accesses.code) doorstep::emulate_prepare_rows(call);
    };
    return accesses.code;
}

int make_count_launch(const Launch& launch, uint32_t* counter, Task* task) {
    TRY(check_shape(launch, 1, 0, sizeof counter));
    Accesses accesses(launch, &task->accesses);
    accesses.write({counter});
    task->what = launch.kernel;
    task->run = [=] { ++*counter; };
    return accesses.code;
}

}  // namespace

int make_launch(const Launch& launch, const void* parameter, Task* task) {
    const std::string& name = launch.kernel;
    for (const char* of_worlds : doorstep::kKernelNames)
        if (name == of_worlds)
            return make_world_launch(launch, *static_cast<const doorstep::KernelArguments*>(parameter), task);
#define STAND_IN_TRAINING(kernel, Call, items)           \
    if (name.starts_with("doorstep_" #kernel "_float"))  \
        return make_training_launch(launch, *static_cast<const Call*>(parameter), task);
    DS_TRAINING_KERNEL_TABLE(STAND_IN_TRAINING)
    if (name == doorstep::kDrawViewsName || name == doorstep::kDrawLevelViewsName)
        return make_view_launch(launch, parameter, task);
    if (name == doorstep::kActKernel || name == doorstep::kActBf16Kernel)
        return make_act_launch(launch, parameter, task);
    if (name == doorstep::kPrepareRowsKernel)
        return make_prepare_launch(launch, *static_cast<const doorstep::PlayedRows*>(parameter), task);
    if (name == doorstep::kCountStepKernel)
        return make_count_launch(launch, *static_cast<uint32_t* const*>(parameter), task);
    return refuse(kNotFound, "there is no emulation of " + name);
}

}  // namespace stand_in
