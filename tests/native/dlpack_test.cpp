#include "runtime/dlpack.h"

#include <string.h>

#include "interop/python/python_api.h"
#include "simulators.h"

namespace {

using namespace doorstep;

struct Source {
    ds_simulator simulator = make_simulator(5, 1);
    ds_memory memory = 0;
    Source() { CHECK_EQUAL(ds_simulator_get_memory(simulator, &memory), DS_STATUS_OK); }
    // Only exports are left alive.
    void end() {
        close_simulator(simulator);
        CHECK_EQUAL(ds_memory_release(memory), DS_STATUS_OK);
    }
};

void an_export_describes_the_tensor_and_keeps_its_memory() {
    Source source;
    const ds_tensor_info info = tensor_of(source.simulator, DS_TENSOR_actions);
    void* managed;
    CHECK_EQUAL(ds_dlpack_export(source.memory, &info, 1, &managed), DS_STATUS_OK);
    source.end();
    CHECK_EQUAL(live(DS_LIVE_MEMORY), 1);
    CHECK_EQUAL(live(DS_LIVE_EXPORT), 1);
    DLManagedTensorVersioned* exported = static_cast<DLManagedTensorVersioned*>(managed);
    CHECK_EQUAL(exported->major, 1);
    CHECK_EQUAL(exported->flags, 0);
    const DLTensor& tensor = exported->tensor;
    CHECK(tensor.data == info.data);
    CHECK_EQUAL(tensor.device.device_type, 1);
    CHECK_EQUAL(tensor.ndim, 3);
    CHECK_EQUAL(tensor.dtype.code, 0);
    CHECK_EQUAL(tensor.dtype.bits, 32);
    const int64_t shape[] = {5, 2, 4}, strides[] = {8, 4, 1};
    CHECK_EQUAL(memcmp(tensor.shape, shape, sizeof shape), 0);
    CHECK_EQUAL(memcmp(tensor.strides, strides, sizeof strides), 0);
    CHECK_EQUAL(static_cast<int32_t*>(tensor.data)[2], 2);
    exported->deleter(exported);
    check_nothing_lives();
}

void read_only_tensors_are_flagged() {
    Source source;
    const ds_tensor_info info = tensor_of(source.simulator, DS_TENSOR_rewards);
    void* managed;
    CHECK_EQUAL(ds_dlpack_export(source.memory, &info, 1, &managed), DS_STATUS_OK);
    CHECK_EQUAL(static_cast<DLManagedTensorVersioned*>(managed)->flags, 1);
    CHECK_EQUAL(static_cast<DLManagedTensorVersioned*>(managed)->tensor.dtype.code, 2);
    CHECK_EQUAL(ds_dlpack_delete(managed, 1), DS_STATUS_OK);
    source.end();
    check_nothing_lives();
}

void every_state_field_can_be_exported() {
    Source source;
    for (int32_t field = 0; field < DS_STATE_COUNT; ++field) {
        ds_tensor_info info;
        info.struct_size = sizeof info;
        CHECK_EQUAL(ds_simulator_get_state(source.simulator, field, &info), DS_STATUS_OK);
        void* managed;
        CHECK_EQUAL(ds_dlpack_export(source.memory, &info, 0, &managed), DS_STATUS_OK);
        CHECK_EQUAL(ds_dlpack_delete(managed, 0), DS_STATUS_OK);
    }
    source.end();
    check_nothing_lives();
}

void descriptions_that_leave_the_memory_are_refused() {
    Source source;
    const ds_tensor_info good = tensor_of(source.simulator, DS_TENSOR_actions);
    struct {
        void (*spoil)(ds_tensor_info&);
    } const rows[] = {
        {[](ds_tensor_info& info) { info.shape[0] = int64_t{1} << 40; }},
        {[](ds_tensor_info& info) { info.shape[0] = INT64_MAX; }},
        {[](ds_tensor_info& info) { info.shape[0] = -1; }},
        {[](ds_tensor_info& info) { info.strides[1] = -16; }},
        {[](ds_tensor_info& info) { info.strides[1] = 3; }},
        {[](ds_tensor_info& info) { info.data = nullptr; }},
        {[](ds_tensor_info& info) { info.dtype = 9; }},
        {[](ds_tensor_info& info) { info.rank = DS_MAX_DIMENSIONS + 1; }},
        {[](ds_tensor_info& info) { info.access = 7; }},
    };
    for (const auto& row : rows) {
        ds_tensor_info info = good;
        row.spoil(info);
        void* managed;
        CHECK_EQUAL(ds_dlpack_export(source.memory, &info, 0, &managed), DS_STATUS_INVALID_ARGUMENT);
        CHECK(last_error_names("info"));
    }
    source.end();
    check_nothing_lives();
}

// A capsule of a fake Python: a name and a pointer.
struct FakeCapsule {
    const char* name;
    void* pointer;
};

const FakeCapsule& fake(PyObject* capsule) { return *reinterpret_cast<FakeCapsule*>(capsule); }

int fake_is_valid(PyObject* capsule, const char* name) { return !strcmp(fake(capsule).name, name); }

void* fake_get_pointer(PyObject* capsule, const char* name) {
    CHECK(fake_is_valid(capsule, name));
    return fake(capsule).pointer;
}

void without_python_there_are_no_fast_calls_and_no_capsules() {
    int callable;
    void* fast_calls;
    CHECK_EQUAL(ds_python_bind(nullptr, &fast_calls), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(ds_python_bind(&callable, nullptr), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(ds_python_bind(&callable, &fast_calls), DS_STATUS_LIBRARY);
    ds_error error;
    error.struct_size = sizeof error;
    CHECK_EQUAL(ds_last_error(&error), DS_STATUS_OK);
    CHECK(strstr(error.message, "Py_IncRef"));
    FakeCapsule capsule{"dltensor", nullptr};
    ds_capsule_destructor(&capsule);
}

void a_capsule_deletes_its_tensor_unless_it_was_consumed() {
    Python python{};
    python.Py_IsInitialized = [] { return 1; };
    python.PyCapsule_IsValid = fake_is_valid;
    python.PyCapsule_GetPointer = fake_get_pointer;
    use_python(python);
    const char* const names[] = {"dltensor", "dltensor_versioned"};
    const char* const used_names[] = {"used_dltensor", "used_dltensor_versioned"};
    Source source;
    const ds_tensor_info info = tensor_of(source.simulator, DS_TENSOR_dones);
    for (int32_t versioned = 0; versioned < 2; ++versioned) {
        void* managed;
        CHECK_EQUAL(ds_dlpack_export(source.memory, &info, versioned, &managed), DS_STATUS_OK);
        FakeCapsule used{used_names[versioned], managed}, unused{names[versioned], managed};
        ds_capsule_destructor(&used);
        CHECK_EQUAL(live(DS_LIVE_EXPORT), 1);
        ds_capsule_destructor(&unused);
        CHECK_EQUAL(live(DS_LIVE_EXPORT), 0);
    }
    source.end();
    check_nothing_lives();
}

}  // namespace

int main() {
    RUN(an_export_describes_the_tensor_and_keeps_its_memory);
    RUN(read_only_tensors_are_flagged);
    RUN(every_state_field_can_be_exported);
    RUN(descriptions_that_leave_the_memory_are_refused);
    RUN(without_python_there_are_no_fast_calls_and_no_capsules);
    RUN(a_capsule_deletes_its_tensor_unless_it_was_consumed);
}
