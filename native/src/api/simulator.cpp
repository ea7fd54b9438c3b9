// Creating, describing and ending simulators; attachments, and the time per stage of a step.
#include "api/call.h"
#include "exec/cpu/cpu_simulator.h"
#include "exec/cuda/cuda_simulator.h"
#include "exec/simulator.h"

namespace doorstep {
namespace {

// Waits for the turn, so that no operation is running; later calls find the simulator closed.
void close_simulator(Simulator* simulator) {
    simulator->turn.lock();
    simulator->closed = true;
    const bool ended = simulator->close();
    simulator->turn.unlock();
    unlist_open(simulator);
    // No call updates a closed simulator, but work begun or recorded earlier may still use the attachment
    if (ended) simulator->attachment.release();
}

}  // namespace

ds_status make_simulator(const ds_simulator_config& given, Ref<Simulator>* simulator) {
    if (const ds_status status = check_fields(given)) return status;
    if (const ds_status status = check_cpu()) return status;
    ds_simulator_config config = given;
    if (config.device_kind == DS_DEVICE_CUDA && config.device_index == DS_DEVICE_INDEX_CURRENT) {
        if (const ds_status status = find_current_device(&config.device_index)) return status;
    }
    if (config.device_kind == DS_DEVICE_CPU) return CpuSimulator::create(config, simulator);
    if (config.device_kind == DS_DEVICE_CUDA) return CudaSimulator::create(config, simulator);
    return CudaSimulator::is_possible(config) ? CudaSimulator::create(config, simulator)
                                              : CpuSimulator::create(config, simulator);
}

}  // namespace doorstep

using namespace doorstep;

ds_status ds_simulator_create(const ds_simulator_config* config, ds_simulator* simulator) {
    ds_simulator_config defaults;
    set_defaults(&defaults);
    const Given<ds_simulator_config> given(config, "config", defaults);
    if (given.status()) return given.status();
    if (!simulator) return fail_null("simulator");
    Ref<Simulator> made;
    if (const ds_status status = make_simulator(*given, &made)) return status;
    const char* hint = "close other simulators, or raise the memory limit";
    if (!has_fork_handlers()) {
        return fail(DS_STATUS_OUT_OF_MEMORY, "", hint, "no memory is left for the fork handlers");
    }
    list_open(made.get());
    const ds_simulator handle = simulators.insert(made);
    if (!handle) {
        close_simulator(made.get());
        return fail(DS_STATUS_OUT_OF_MEMORY, "", hint, "no memory is left for the simulator's handle");
    }
    *simulator = handle;
    return DS_STATUS_OK;
}

ds_status ds_simulator_close(ds_simulator simulator) {
    const Ref<Simulator> found = simulators.remove(simulator, "simulator");
    if (!found) return last_status();
    close_simulator(found.get());
    return DS_STATUS_OK;
}

ds_status ds_simulator_get_info(ds_simulator simulator, ds_simulator_info* info) {
    Results<ds_simulator_info> results(info, "info");
    if (results.status()) return results.status();
    const Ref<Simulator> found = simulators.find(simulator, "simulator");
    if (!found) return last_status();
    const ds_simulator_config& config = found->config();
    const WorldModel& model = found->model();
    results->device_kind = config.device_kind;
    results->device_index = config.device_index;
    results->num_worlds = config.num_worlds;
    results->num_agents = config.num_agents;
    results->num_bodies = model.num_bodies;
    results->num_statics = model.num_statics;
    results->num_buttons = model.num_buttons;
    results->num_doors = model.num_doors;
    results->num_threads = config.num_threads;
    results->world_bytes = static_cast<int64_t>(model.world_bytes);
    results->allocated_bytes = found->allocated_bytes();
    results->step_count = found->step_count();
    results->stream = found->stream();
    return results.give();
}

ds_status ds_simulator_get_health(ds_simulator simulator, ds_health* health) {
    Results<ds_health> results(health, "health");
    if (results.status()) return results.status();
    const SimulatorCall call(simulator);
    if (call.status()) return call.status();
    const ds_status status = call->read_health(results.fields());
    return status ? status : results.give();
}

ds_status ds_simulator_set_stream(ds_simulator simulator, uint64_t stream) {
    const SimulatorCall call(simulator);
    if (call.status()) return call.status();
    return call->set_stream(stream);
}

// ---- Attachments ----

ds_status ds_simulator_attach(ds_simulator simulator, const ds_attachment* attachment) {
    const Given<ds_attachment> given(attachment, "attachment");
    if (given.status()) return given.status();
    if (!given->update) return fail_null("update");
    SimulatorCall call(simulator);
    if (const ds_status status = call.begin_operation()) return status;
    if (call->attachment) {
        return fail(DS_STATUS_INVALID_ARGUMENT, "simulator", "create another simulator",
                    "something is attached to this simulator already");
    }
    call->attachment.set(*given);
    const ds_status status = call->update();
    if (status) call->attachment.clear();
    return status;
}

ds_status ds_simulator_has_attachment(ds_simulator simulator, int32_t* attached) {
    if (!attached) return fail_null("attached");
    const SimulatorCall call(simulator);
    if (call.status()) return call.status();
    *attached = call->attachment ? 1 : 0;
    return DS_STATUS_OK;
}

ds_status ds_simulator_allocate(ds_simulator simulator, uint64_t bytes, ds_memory* memory, void** data) {
    if (!memory) return fail_null("memory");
    if (!data) return fail_null("data");
    const int64_t wanted = bytes > INT64_MAX ? INT64_MAX : static_cast<int64_t>(bytes);
    if (const ds_status status = check_range("bytes", "pass a positive size", wanted, 1, INT64_MAX / 2)) return status;
    SimulatorCall call(simulator);
    if (call.status()) return call.status();
    if (const ds_status status = call->prepare()) return status;
    Ref<Memory> taken;
    if (const ds_status status = call->allocate(wanted, &taken)) return status;
    if (const ds_status status = give_memory(taken, memory)) return status;
    *data = taken->data();
    return DS_STATUS_OK;
}

// ---- Profile ----

const char* ds_stage_name(int32_t stage) {
    return stage >= 0 && stage < kNumStages ? kStageNames[stage] : nullptr;
}

ds_status ds_simulator_profile(ds_simulator simulator, int32_t enabled) {
    if (const ds_status status = check_flag("enabled", enabled)) return status;
    const SimulatorCall call(simulator);
    if (call.status()) return call.status();
    return call->set_profiling(enabled);
}

ds_status ds_simulator_get_profile(ds_simulator simulator, uint64_t* ticks, uint64_t count) {
    if (!ticks) return fail_null("ticks");
    if (const ds_status status = check_range("count", "pass one counter per stage", static_cast<int64_t>(count),
                                             kNumStages, kNumStages)) {
        return status;
    }
    const SimulatorCall call(simulator);
    if (call.status()) return call.status();
    return call->read_profile(ticks);
}
