// Attachments of other libraries to a simulator, and memory for them.
#include "api/call.h"

using namespace doorstep;

ds_status ds_simulator_attach(ds_simulator simulator, const ds_attachment* attachment) {
    if (const ds_status status = check_struct(attachment, "attachment")) return status;
    if (!attachment->update) return fail_null("update");
    SimulatorCall call(simulator);
    if (const ds_status status = call.begin_operation()) return status;
    if (call->attachment) {
        return fail(DS_STATUS_INVALID_ARGUMENT, "simulator", "create another simulator",
                    "something is attached to this simulator already");
    }
    call->attachment.set(*attachment);
    const ds_status status = call->update();
    if (status) call->attachment.clear();
    return status;
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
