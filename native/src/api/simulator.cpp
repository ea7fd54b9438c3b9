// Creating, describing and ending simulators.
#include "api/call.h"
#include "api/fork.h"
#include "exec/cpu/cpu_simulator.h"
#include "exec/cuda/cuda_simulator.h"
#include "runtime/cpu_features.h"

namespace doorstep {
namespace {

ds_status check_flag(const char* argument, int32_t value) {
    return check_range(argument, "pass 0 or 1", value, 0, 1);
}

ds_status check_device(const ds_simulator_config& config) {
    if (const ds_status status =
            check_range("device_kind", "pass a ds_device_kind", config.device_kind, DS_DEVICE_CPU, DS_DEVICE_AUTO)) {
        return status;
    }
    const int64_t last = config.device_kind == DS_DEVICE_CPU ? 0 : INT32_MAX;
    return check_range("device_index", "the CPU is one device", config.device_index, 0, last);
}

ds_status check_numbers(const ds_simulator_config& config) {
    struct {
        const char* argument;
        const char* hint;
        int64_t value, smallest, largest;
    } const rows[] = {
        {"num_worlds", "split larger batches over several simulators", config.num_worlds, 1, DS_MAX_WORLDS},
        {"seed", "reduce the seed modulo 2**32", config.seed, 0, DS_MAX_SEED},
        {"world_offset", "world_offset + num_worlds is at most 2**32", config.world_offset, 0,
         DS_MAX_GLOBAL_WORLDS - config.num_worlds},
        {"num_agents", "a world has one to eight agents", config.num_agents, 1, DS_MAX_AGENTS},
        {"episode_length", "pass the number of steps of an episode", config.episode_length, 1, DS_MAX_EPISODE_LENGTH},
        {"num_threads", "0 uses as many threads as the process may", config.num_threads, 0, DS_MAX_THREADS},
    };
    for (const auto& row : rows) {
        if (const ds_status status = check_range(row.argument, row.hint, row.value, row.smallest, row.largest)) {
            return status;
        }
    }
    return DS_STATUS_OK;
}

ds_status check_config(const ds_simulator_config& config) {
    if (const ds_status status = check_numbers(config)) return status;
    if (const ds_status status = check_flag("auto_reset", config.auto_reset)) return status;
    if (const ds_status status = check_flag("strict", config.strict)) return status;
    if (const ds_status status = check_flag("flat_observations", config.flat_observations)) return status;
    if (const ds_status status = check_range("action_check", "pass a ds_action_check", config.action_check,
                                             DS_ACTION_CHECK_CLAMP, DS_ACTION_CHECK_OFF)) {
        return status;
    }
    return check_device(config);
}

ds_status make_simulator(const ds_simulator_config& config, Ref<Simulator>* simulator) {
    if (config.device_kind == DS_DEVICE_CPU) return CpuSimulator::create(config, simulator);
    if (config.device_kind == DS_DEVICE_CUDA) return CudaSimulator::create(config, simulator);
    const Ref<KernelModule> usable = CudaSimulator::find_usable(config);
    return usable ? CudaSimulator::create(config, simulator) : CpuSimulator::create(config, simulator);
}

// Waits for the turn, so that no operation is running; later calls find the simulator closed.
void close_simulator(Simulator* simulator) {
    simulator->turn.lock();
    simulator->closed = true;
    const bool ended = simulator->close();
    simulator->turn.unlock();
    unwatch_forks(simulator);
    // No call updates a closed simulator, but work begun or recorded earlier may still use the attachment
    if (ended) simulator->attachment.release();
}

}  // namespace

ds_status check_cpu() {
    if (cpu_features().sufficient()) return DS_STATUS_OK;
    return fail(DS_STATUS_DEVICE, "", "use a CPU of 2013 (Intel Haswell), 2017 (AMD Zen) or later, and an operating "
                "system or virtual machine that exposes its features",
                "this CPU lacks features that doorstep needs (all of these must be 1): %s", cpu_features_text());
}

}  // namespace doorstep

using namespace doorstep;

ds_status ds_simulator_config_default(ds_simulator_config* config) {
    if (const ds_status status = check_struct(config, "config")) return status;
    *config = {};
    config->struct_size = sizeof *config;
    config->device_kind = DS_DEVICE_CPU;
    config->num_worlds = 1;
    config->num_agents = 2;
    config->episode_length = 200;
    config->auto_reset = 1;
    config->action_check = DS_ACTION_CHECK_CLAMP;
    config->stream = DS_STREAM_OWN;
    return DS_STATUS_OK;
}

ds_status ds_simulator_create(const ds_simulator_config* config, ds_simulator* simulator) {
    if (const ds_status status = check_struct(config, "config")) return status;
    if (!simulator) return fail_null("simulator");
    if (const ds_status status = check_config(*config)) return status;
    if (const ds_status status = check_cpu()) return status;
    Ref<Simulator> made;
    if (const ds_status status = make_simulator(*config, &made)) return status;
    const char* hint = "close other simulators, or raise the memory limit";
    if (!watch_forks(made.get())) {
        return fail(DS_STATUS_OUT_OF_MEMORY, "", hint, "no memory is left for the fork handlers");
    }
    const ds_simulator handle = simulators.insert(made);
    if (!handle) {
        close_simulator(made.get());
        return fail(DS_STATUS_OUT_OF_MEMORY, "", hint, "no memory is left for the simulator's handle");
    }
    *simulator = handle;
    return DS_STATUS_OK;
}

ds_status ds_simulator_close(ds_simulator simulator) {
    const Ref<Simulator> found = simulators.remove(simulator);
    if (!found) return fail_closed("simulator");
    close_simulator(found.get());
    return DS_STATUS_OK;
}

ds_status ds_simulator_get_info(ds_simulator simulator, ds_simulator_info* info) {
    if (const ds_status status = check_struct(info, "info")) return status;
    const Ref<Simulator> found = simulators.find(simulator);
    if (!found) return fail_closed("simulator");
    const ds_simulator_config& config = found->config();
    const WorldModel& model = found->model();
    info->device_kind = config.device_kind;
    info->device_index = config.device_index;
    info->num_worlds = config.num_worlds;
    info->num_agents = config.num_agents;
    info->num_bodies = model.num_bodies;
    info->num_statics = model.num_statics;
    info->num_buttons = model.num_buttons;
    info->num_doors = model.num_doors;
    info->num_threads = config.num_threads;
    info->world_bytes = static_cast<int64_t>(model.world_bytes);
    info->allocated_bytes = found->allocated_bytes();
    info->step_count = found->step_count();
    info->stream = found->stream();
    return DS_STATUS_OK;
}

ds_status ds_simulator_get_health(ds_simulator simulator, ds_health* health) {
    if (const ds_status status = check_struct(health, "health")) return status;
    const SimulatorCall call(simulator);
    if (call.status()) return call.status();
    return call->read_health(health);
}

ds_status ds_simulator_set_stream(ds_simulator simulator, uint64_t stream) {
    const SimulatorCall call(simulator);
    if (call.status()) return call.status();
    return call->set_stream(stream);
}
