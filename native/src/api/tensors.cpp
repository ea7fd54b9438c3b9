// Descriptions of tensors and state, references to the memory behind them, and copies to and from the host.
#include "api/call.h"

namespace doorstep {
namespace {

ds_status check_field(int32_t field) {
    return check_range("field", "pass a ds_state_id", field, 0, DS_STATE_COUNT - 1);
}

// The first steps of a copy: finds the memory and checks the tensor and the size of the host array.
ds_status begin_copy(ds_memory handle, const ds_tensor_info* info, const void* host, uint64_t bytes,
                     Ref<Memory>* memory) {
    if (const ds_status status = check_struct(info, "info")) return status;
    *memory = memories.find(handle, "memory");
    if (!*memory) return last_status();
    if (const ds_status status = check_description(**memory, *info)) return status;
    const uint64_t expected = static_cast<uint64_t>(tensor_bytes(*info));
    if (!host && expected > 0) return fail_null("host");
    if (bytes == expected) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, "bytes", "pass the number of bytes of all elements",
                "bytes is %lu; it must be %lu", bytes, expected);
}

}  // namespace
}  // namespace doorstep

using namespace doorstep;

// ---- Descriptions ----

ds_status ds_simulator_get_tensor(ds_simulator simulator, int32_t tensor, ds_tensor_info* info) {
    Results<ds_tensor_info> results(info, "info");
    if (results.status()) return results.status();
    const SimulatorCall call(simulator);
    if (call.status()) return call.status();
    if (const ds_status status = check_tensor(*call, tensor)) return status;
    call->describe_tensor(tensor, results.fields());
    return results.give();
}

ds_status ds_simulator_get_state(ds_simulator simulator, int32_t field, ds_tensor_info* info) {
    Results<ds_tensor_info> results(info, "info");
    if (results.status()) return results.status();
    if (const ds_status status = check_field(field)) return status;
    const SimulatorCall call(simulator);
    if (call.status()) return call.status();
    call->look_for_edits();
    call->describe_state(field, results.fields());
    return results.give();
}

ds_status ds_simulator_view_state(ds_simulator simulator, int32_t field, ds_tensor_info* info) {
    Results<ds_tensor_info> results(info, "info");
    if (results.status()) return results.status();
    if (const ds_status status = check_field(field)) return status;
    const Ref<Simulator> found = simulators.find(simulator, "simulator");
    if (!found) return last_status();
    found->describe_state(field, results.fields());
    results->access = DS_ACCESS_READ;
    return results.give();
}

// ---- Memory ----

ds_status ds_simulator_get_memory(ds_simulator simulator, ds_memory* memory) {
    if (!memory) return fail_null("memory");
    const Ref<Simulator> found = simulators.find(simulator, "simulator");
    return found ? give_memory(found->memory(), memory) : last_status();
}

ds_status ds_memory_share(ds_memory memory, ds_memory* shared) {
    if (!shared) return fail_null("shared");
    const Ref<Memory> found = memories.find(memory, "memory");
    return found ? give_memory(found, shared) : last_status();
}

ds_status ds_memory_release(ds_memory memory) {
    return memories.release(memory, "memory");
}

ds_status ds_memory_read(ds_memory memory, const ds_tensor_info* info, void* host, uint64_t bytes) {
    Ref<Memory> found;
    if (const ds_status status = begin_copy(memory, info, host, bytes, &found)) return status;
    return read_tensor(*found, *info, host);
}

ds_status ds_memory_write(ds_memory memory, const ds_tensor_info* info, const void* host, uint64_t bytes) {
    Ref<Memory> found;
    if (const ds_status status = begin_copy(memory, info, host, bytes, &found)) return status;
    if (info->access != DS_ACCESS_READ_WRITE) {
        return fail(DS_STATUS_INVALID_ARGUMENT, "info", "write tensors and fields whose access is READ_WRITE",
                    "the tensor is read-only");
    }
    return write_tensor(*found, *info, host);
}

ds_status ds_memory_order(ds_memory memory, uint64_t stream) {
    const Ref<Memory> found = memories.find(memory, "memory");
    return found ? found->order(stream) : last_status();
}
