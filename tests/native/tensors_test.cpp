// Memory of tensors through the C API: bound and redirected to the caller's, copied, exported, described by structs of
// other sizes. What Python can do with it is tested from Python.
#include <algorithm>
#include <memory>

#include "exec/tensors.h"
#include "interop/python/python_api.h"
#include "runtime/dlpack.h"
#include "simulators.h"

namespace {

using namespace doorstep;

// The caller's memory for one tensor, between guard bytes.
class Memory {
public:
    explicit Memory(const ds_tensor_info& info) {
        for (int axis = 0; axis < info.rank; ++axis) elements_ *= info.shape[axis];
        bytes_ = elements_ * dtype_bytes(info.dtype);
        storage_.assign(static_cast<size_t>(bytes_) + 2 * kGuard, kUntouched);
    }
    ~Memory() {
        for (size_t i = 0; i < kGuard; ++i) {
            CHECK_EQUAL(storage_[i], kUntouched);
            CHECK_EQUAL(storage_[storage_.size() - 1 - i], kUntouched);
        }
    }

    // Aligned to an element only.
    char* data() { return storage_.data() + kGuard; }
    uint64_t bytes() const { return static_cast<uint64_t>(bytes_); }
    // released: the number of releases of the owner is added to it; null: they are not counted.
    ds_binding for_tensor(int64_t tensor, int* released = nullptr) {
        return {tensor, data(), bytes(), released, released ? count_release : nullptr};
    }
    static void count_release(void* owner) { ++*static_cast<int*>(owner); }

    static constexpr char kUntouched = 0x5a;

private:
    static constexpr size_t kGuard = 68;

    int64_t elements_ = 1, bytes_ = 0;
    std::vector<char> storage_;
};

// With all tensors that there are.
ds_simulator_config full(int64_t num_worlds, int64_t num_threads) {
    ds_simulator_config config = default_config(num_worlds);
    config.num_threads = num_threads;
    config.max_levels = 3;
    config.episode_length = 13;
    return config;
}

ds_binding own_memory(int64_t tensor) { return {tensor, nullptr, 0, nullptr, nullptr}; }

// Binds one tensor. memory: receives the reference, or null.
ds_status bind(ds_simulator simulator, const ds_binding& binding, ds_memory* memory = nullptr) {
    ds_memory unwanted = 0;
    const ds_status status = ds_simulator_bind(simulator, &binding, 1, memory ? memory : &unwanted);
    if (unwanted) CHECK_EQUAL(ds_memory_release(unwanted), DS_STATUS_OK);
    return status;
}

LAW(all_tensors_bound_to_memory_between_guards_have_the_bits_of_any_other) {
    std::vector<std::unique_ptr<Memory>> places;  // outlive the simulator
    const OpenSimulator plain(full(200, 1)), simulator(full(200, 3));
    std::vector<ds_binding> bindings;
    for (int tensor = 0; tensor < DS_TENSOR_COUNT; ++tensor) {
        places.push_back(std::make_unique<Memory>(tensor_of(simulator, static_cast<ds_tensor_id>(tensor))));
        bindings.push_back(places.back()->for_tensor(tensor));
    }
    ds_memory memories[DS_TENSOR_COUNT];
    CHECK_EQUAL(ds_simulator_bind(simulator, bindings.data(), bindings.size(), memories), DS_STATUS_OK);
    for (const ds_memory memory : memories) CHECK_EQUAL(ds_memory_release(memory), DS_STATUS_OK);
    for (int step = 0; step < 30; ++step) {
        for (const ds_simulator one : {ds_simulator{plain}, ds_simulator{simulator}}) {
            const int64_t worlds[] = {7, 199, 0};
            step_once(one, step);
            if (step % 20 == 19) CHECK_EQUAL(ds_simulator_reset(one, worlds, 3), DS_STATUS_OK);
        }
        for (int tensor = 0; tensor < DS_TENSOR_COUNT; ++tensor) {
            Memory& place = *places[static_cast<size_t>(tensor)];
            CHECK(memcmp(place.data(), tensor_of(plain, static_cast<ds_tensor_id>(tensor)).data, place.bytes()) == 0);
        }
    }
    const std::vector<char> saved = save_of(plain);
    CHECK(saved == save_of(simulator));
    step_once(simulator, 1);
    CHECK_EQUAL(ds_simulator_restore(simulator, saved.data(), saved.size(), nullptr, 0), DS_STATUS_OK);
    CHECK(saved == save_of(simulator));
}

LAW(an_owner_is_let_go_once_nobody_needs_the_memory) {
    const OpenSimulator simulator(full(5, 1));
    const ds_tensor_info info = tensor_of(simulator, DS_TENSOR_actions);
    Memory first(info), second(info);
    int first_released = 0, second_released = 0, no_memory_released = 0;
    ds_memory reference;
    CHECK_EQUAL(bind(simulator, first.for_tensor(DS_TENSOR_actions, &first_released), &reference), DS_STATUS_OK);

    ds_tensor_info bound = tensor_of(simulator, DS_TENSOR_actions);
    void* managed;
    CHECK_EQUAL(ds_dlpack_export(reference, &bound, 1, &managed), DS_STATUS_OK);
    std::vector<int32_t> actions(5 * 2 * 4, 1);
    CHECK_EQUAL(ds_memory_write(reference, &bound, actions.data(), 160), DS_STATUS_OK);
    CHECK(memcmp(first.data(), actions.data(), 160) == 0);
    CHECK_EQUAL(ds_memory_release(reference), DS_STATUS_OK);
    CHECK_EQUAL(ds_memory_release(reference), DS_STATUS_CLOSED);

    CHECK_EQUAL(bind(simulator, second.for_tensor(DS_TENSOR_actions, &second_released)), DS_STATUS_OK);
    CHECK(memcmp(second.data(), actions.data(), 160) == 0);
    CHECK_EQUAL(first_released, 0);
    CHECK_EQUAL(ds_dlpack_delete(managed, 1), DS_STATUS_OK);
    CHECK_EQUAL(first_released, 1);

    const ds_binding nothing = {DS_TENSOR_resets, nullptr, 0, &no_memory_released, Memory::count_release};
    CHECK_EQUAL(bind(simulator, nothing), DS_STATUS_OK);
    CHECK_EQUAL(no_memory_released, 1);

    CHECK_EQUAL(second_released, 0);
    close_simulator(simulator);
    CHECK_EQUAL(first_released, 1);
    CHECK_EQUAL(second_released, 1);
}

// A release function may call doorstep: no lock is held then.
void step_at_release(void* owner) { CHECK_EQUAL(ds_simulator_step(*static_cast<ds_simulator*>(owner)), DS_STATUS_OK); }

LAW(releasing_an_owner_may_call_the_simulator) {
    const OpenSimulator closing(full(5, 1));
    ds_simulator simulator = closing;
    Memory place(tensor_of(simulator, DS_TENSOR_actions));
    ds_binding binding = place.for_tensor(DS_TENSOR_actions);
    binding.owner = &simulator, binding.release_owner = step_at_release;
    CHECK_EQUAL(bind(simulator, binding), DS_STATUS_OK);
    CHECK_EQUAL(bind(simulator, {DS_TENSOR_actions, nullptr, 0, &simulator, step_at_release}), DS_STATUS_OK);
    CHECK_EQUAL(info_of(simulator).step_count, 2);
}

LAW(a_refused_binding_has_changed_nothing_and_a_tensor_that_is_absent_or_empty_needs_no_memory) {
    ds_simulator_config config = default_config(5);
    config.num_agents = 1;
    const OpenSimulator simulator(config);
    const ds_tensor_info actions = tensor_of(simulator, DS_TENSOR_actions);
    Memory place(actions);
    int released = 0;
    const ds_binding good = place.for_tensor(DS_TENSOR_actions, &released);
    const struct {
        ds_binding binding;
        const char* argument;
        const char* message;
    } cases[] = {
        {own_memory(int64_t{1} << 32), "tensor", "it must be 0 to"},
        {own_memory(DS_TENSOR_actions), "actions", "occurs twice"},
        {{DS_TENSOR_rewards, place.data() + 4, 20, nullptr, nullptr}, "rewards", "overlaps that of actions"},
        {{DS_TENSOR_level_weights, place.data(), 4, nullptr, nullptr}, "tensor", "level_weights"},
    };
    ds_memory memories[2];
    for (const auto& one : cases) {
        const ds_binding bindings[] = {good, one.binding};
        CHECK_EQUAL(ds_simulator_bind(simulator, bindings, 2, memories), DS_STATUS_INVALID_ARGUMENT);
        CHECK(last_error_names(one.argument) && last_message_has(one.message));
        CHECK(tensor_of(simulator, DS_TENSOR_actions).data == actions.data);
        CHECK_EQUAL(live(DS_LIVE_MEMORY), 1);
    }
    CHECK_EQUAL(ds_simulator_bind(simulator, nullptr, 1, memories), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(ds_simulator_bind(simulator, &good, 1, nullptr), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(released, 0);
    alignas(4) char beside[20 + 80 + 20];  // memory that begins where other memory ends is memory of its own
    const ds_binding neighbours[] = {{DS_TENSOR_rewards, beside, 20, nullptr, nullptr},
                                     {DS_TENSOR_actions, beside + 20, 80, nullptr, nullptr},
                                     {DS_TENSOR_dones, beside + 100, 20, nullptr, nullptr}};
    for (const int which : {1, 0, 2}) CHECK_EQUAL(bind(simulator, neighbours[which]), DS_STATUS_OK);
    for (const int64_t tensor : {DS_TENSOR_actions, DS_TENSOR_rewards, DS_TENSOR_dones})
        CHECK_EQUAL(bind(simulator, own_memory(tensor)), DS_STATUS_OK);
    const ds_tensor_info before = tensor_of(simulator, DS_TENSOR_partner_observations);
    const ds_binding empty = {DS_TENSOR_partner_observations, place.data(), 0, &released, Memory::count_release};
    CHECK_EQUAL(bind(simulator, empty), DS_STATUS_OK);
    CHECK_EQUAL(released, 1);
    CHECK(tensor_of(simulator, DS_TENSOR_partner_observations).data == before.data);
    CHECK_EQUAL(ds_simulator_step(simulator), DS_STATUS_OK);
    close_simulator(simulator);
    CHECK_EQUAL(ds_simulator_bind(simulator, &good, 1, memories), DS_STATUS_CLOSED);
    CHECK_EQUAL(released, 1);
}

// ---- Redirected

constexpr ds_tensor_id kRedirected[] = {DS_TENSOR_steps_remaining,         DS_TENSOR_self_observations,
                                        DS_TENSOR_partner_observations,    DS_TENSOR_room_entity_observations,
                                        DS_TENSOR_door_observations,       DS_TENSOR_lidar,
                                        DS_TENSOR_observations};

LAW(what_writes_all_worlds_writes_redirected_tensors_whole_and_what_was_written_before_stays) {
    const auto refresh = [](ds_simulator one, int) { CHECK_EQUAL(ds_simulator_refresh(one), DS_STATUS_OK); };
    const auto reset = [](ds_simulator one, int) { CHECK_EQUAL(ds_simulator_reset(one, nullptr, 0), DS_STATUS_OK); };
    void (*const writers[])(ds_simulator, int) = {step_once, refresh, reset};
    const OpenSimulator plain(full(70, 1)), simulator(full(70, 2));
    for (int turn = 0; turn < 24; ++turn) {
        for (const ds_tensor_id tensor : kRedirected) {
            const ds_tensor_info own = tensor_of(simulator, tensor);
            Memory first(own), second(own);
            int released = 0;
            ds_binding binding = first.for_tensor(tensor, &released);
            CHECK_EQUAL(ds_simulator_redirect(simulator, &binding), DS_STATUS_OK);
            CHECK_EQUAL(first.data()[0], Memory::kUntouched);  // nothing was copied
            const auto write = writers[turn % 10 == 9 ? 1 + turn / 10 : 0];
            write(plain, turn);
            write(simulator, turn);
            const ds_tensor_info expected = tensor_of(plain, tensor);
            CHECK(memcmp(first.data(), expected.data, first.bytes()) == 0);
            const std::vector<char> written(first.data(), first.data() + first.bytes());
            binding = second.for_tensor(tensor);
            CHECK_EQUAL(ds_simulator_redirect(simulator, &binding), DS_STATUS_OK);
            CHECK_EQUAL(released, 1);
            write(plain, turn + 1);
            write(simulator, turn + 1);
            CHECK(memcmp(first.data(), written.data(), first.bytes()) == 0);
            CHECK(memcmp(second.data(), expected.data, second.bytes()) == 0);
            const ds_binding home = own_memory(tensor);
            CHECK_EQUAL(ds_simulator_redirect(simulator, &home), DS_STATUS_OK);
            CHECK(tensor_of(simulator, tensor).data == own.data);
        }
        CHECK(hash_of(plain) == hash_of(simulator));
    }
}

LAW(only_what_every_step_writes_anew_is_redirected) {
    const OpenSimulator simulator(full(5, 1));
    for (int tensor = 0; tensor < DS_TENSOR_COUNT; ++tensor) {
        const ds_tensor_id id = static_cast<ds_tensor_id>(tensor);
        const ds_tensor_info info = tensor_of(simulator, id);
        Memory place(info);
        const bool expected = std::find(std::begin(kRedirected), std::end(kRedirected), id) != std::end(kRedirected);
        const ds_binding binding = place.for_tensor(tensor), home = own_memory(id);
        CHECK_EQUAL(ds_simulator_redirect(simulator, &binding), expected ? DS_STATUS_OK : DS_STATUS_INVALID_ARGUMENT);
        CHECK((tensor_of(simulator, id).data == info.data) == !expected);
        if (!expected) CHECK(last_error_names(kTensorRows[tensor].name));
        if (expected) CHECK_EQUAL(ds_simulator_redirect(simulator, &home), DS_STATUS_OK);
    }
    Memory lidar(tensor_of(simulator, DS_TENSOR_lidar)), rewards(tensor_of(simulator, DS_TENSOR_rewards));
    const auto refuses = [&](ds_binding binding, const char* message) {
        return ds_simulator_redirect(simulator, &binding) == DS_STATUS_INVALID_ARGUMENT && last_message_has(message);
    };
    const uint64_t bytes = lidar.bytes();
    CHECK(refuses(own_memory(-1), "it must be 0 to"));
    CHECK(refuses({DS_TENSOR_lidar, lidar.data(), bytes - 4, nullptr, nullptr}, "it must be 2400"));
    CHECK(refuses({DS_TENSOR_lidar, lidar.data() + 2, bytes, nullptr, nullptr}, "multiple of 4"));
    CHECK_EQUAL(bind(simulator, rewards.for_tensor(DS_TENSOR_rewards)), DS_STATUS_OK);
    CHECK(refuses({DS_TENSOR_lidar, rewards.data(), bytes, nullptr, nullptr}, "overlaps that of rewards"));
    close_simulator(simulator);
}

// ---- Copies

struct Source {
    const OpenSimulator simulator;
    ds_memory memory = 0;

    explicit Source(int64_t num_worlds) : simulator(num_worlds, 1) {
        CHECK_EQUAL(ds_simulator_get_memory(simulator, &memory), DS_STATUS_OK);
    }
    ~Source() { CHECK_EQUAL(ds_memory_release(memory), DS_STATUS_OK); }
};

// More worlds than fit one staging buffer.
LAW(a_strided_field_is_read_and_written_element_by_element) {
    constexpr int64_t kWorlds = 9000;
    Source source(kWorlds);
    auto info = sized<ds_tensor_info>();
    CHECK_EQUAL(ds_simulator_get_state(source.simulator, DS_STATE_static_sizes, &info), DS_STATUS_OK);
    const uint64_t before = hash_of(source.simulator);
    const int64_t items = info.shape[1];
    std::vector<float> copy(static_cast<size_t>(kWorlds * items * 3));
    const uint64_t bytes = copy.size() * sizeof(float);
    const auto check_elements = [&] {
        for (int64_t i = 0; i < kWorlds * items * 3; ++i) {
            const int64_t world = i / 3 / items, item = i / 3 % items, k = i % 3;
            const char* place = static_cast<const char*>(info.data) + world * info.strides[0] + item * info.strides[1] +
                                k * info.strides[2];
            CHECK(copy[static_cast<size_t>(i)] == *reinterpret_cast<const float*>(place));
        }
    };
    CHECK_EQUAL(ds_memory_read(source.memory, &info, copy.data(), bytes), DS_STATUS_OK);
    check_elements();
    CHECK_EQUAL(ds_memory_write(source.memory, &info, copy.data(), bytes), DS_STATUS_OK);
    CHECK(hash_of(source.simulator) == before);  // what lies between the elements is kept
    for (size_t i = 0; i < copy.size(); ++i) copy[i] = static_cast<float>(i);
    CHECK_EQUAL(ds_memory_write(source.memory, &info, copy.data(), bytes), DS_STATUS_OK);
    check_elements();
}

// ---- DLPack

LAW(an_export_describes_the_tensor_and_keeps_its_memory) {
    auto source = std::make_unique<Source>(5);
    const ds_tensor_info actions = tensor_of(source->simulator, DS_TENSOR_actions);
    const ds_tensor_info rewards = tensor_of(source->simulator, DS_TENSOR_rewards);
    void *managed, *read_only;
    CHECK_EQUAL(ds_dlpack_export(source->memory, &actions, 1, &managed), DS_STATUS_OK);
    CHECK_EQUAL(ds_dlpack_export(source->memory, &rewards, 1, &read_only), DS_STATUS_OK);
    source.reset();  // only exports are left alive
    CHECK_EQUAL(live(DS_LIVE_MEMORY), 1);
    CHECK_EQUAL(live(DS_LIVE_EXPORT), 2);
    DLManagedTensorVersioned* exported = static_cast<DLManagedTensorVersioned*>(managed);
    CHECK_EQUAL(exported->major, 1);
    CHECK_EQUAL(exported->flags, 0);
    const DLTensor& tensor = exported->tensor;
    CHECK(tensor.data == actions.data);
    CHECK(tensor.device.device_type == 1 && tensor.ndim == 3 && tensor.dtype.code == 0 && tensor.dtype.bits == 32);
    const int64_t shape[] = {5, 2, 4}, strides[] = {8, 4, 1};
    CHECK_EQUAL(memcmp(tensor.shape, shape, sizeof shape), 0);
    CHECK_EQUAL(memcmp(tensor.strides, strides, sizeof strides), 0);
    CHECK_EQUAL(static_cast<int32_t*>(tensor.data)[2], 2);
    exported->deleter(exported);
    CHECK_EQUAL(static_cast<DLManagedTensorVersioned*>(read_only)->flags, 1);
    CHECK_EQUAL(static_cast<DLManagedTensorVersioned*>(read_only)->tensor.dtype.code, 2);
    CHECK_EQUAL(ds_dlpack_delete(read_only, 1), DS_STATUS_OK);
}

LAW(descriptions_that_leave_the_memory_are_refused) {
    Source source(5);
    const ds_tensor_info good = tensor_of(source.simulator, DS_TENSOR_actions);
#define WITH(...) [](ds_tensor_info& info) { __VA_ARGS__; }
    void (*const spoilers[])(ds_tensor_info&) = {
        WITH(info.shape[0] = int64_t{1} << 40), WITH(info.shape[0] = INT64_MAX), WITH(info.shape[0] = -1),
        WITH(info.shape[0] = info.shape[1] = int64_t{1} << 40, info.strides[0] = info.strides[1] = 0),
        WITH(info.strides[1] = -16), WITH(info.strides[1] = 3), WITH(info.data = nullptr), WITH(info.dtype = 9),
        WITH(info.rank = DS_MAX_DIMENSIONS + 1), WITH(info.access = 7)};
#undef WITH
    for (const auto spoil : spoilers) {
        ds_tensor_info info = good;
        spoil(info);
        void* managed;
        CHECK_EQUAL(ds_dlpack_export(source.memory, &info, 0, &managed), DS_STATUS_INVALID_ARGUMENT);
        CHECK(last_error_names("info"));
    }
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

LAW(a_capsule_deletes_its_tensor_unless_it_was_consumed_or_there_is_no_python) {
    int callable;
    void* fast_calls;
    CHECK_EQUAL(ds_python_bind(nullptr, &fast_calls), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(ds_python_bind(&callable, nullptr), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(ds_python_bind(&callable, &fast_calls), DS_STATUS_LIBRARY);
    CHECK(last_message_has("Py_IncRef"));
    FakeCapsule capsule{"dltensor", nullptr};
    ds_capsule_destructor(&capsule);

    Python python{};
    python.Py_IsInitialized = [] { return 1; };
    python.PyCapsule_IsValid = fake_is_valid;
    python.PyCapsule_GetPointer = fake_get_pointer;
    use_python(python);
    const char* const names[][2] = {{"dltensor", "used_dltensor"}, {"dltensor_versioned", "used_dltensor_versioned"}};
    Source source(5);
    const ds_tensor_info info = tensor_of(source.simulator, DS_TENSOR_dones);
    for (int32_t versioned = 0; versioned < 2; ++versioned) {
        void* managed;
        CHECK_EQUAL(ds_dlpack_export(source.memory, &info, versioned, &managed), DS_STATUS_OK);
        FakeCapsule used{names[versioned][1], managed}, unused{names[versioned][0], managed};
        ds_capsule_destructor(&used);
        CHECK_EQUAL(live(DS_LIVE_EXPORT), 1);
        ds_capsule_destructor(&unused);
        CHECK_EQUAL(live(DS_LIVE_EXPORT), 0);
    }
}

// ---- Structs grow at their end: what programs that were compiled against an earlier header see

// The first fields of ds_simulator_info, and what lies behind them in the program.
struct OlderInfo {
    uint32_t struct_size;
    int32_t device_kind;
    int64_t device_index;
    int64_t num_worlds;
    int64_t num_agents;
};

LAW(structs_of_the_caller_may_be_shorter_and_no_others) {
    ds_simulator_config config = default_config(3);
    config.max_levels = -1;  // and stream: beyond the caller's struct
    config.stream = 1;
    config.struct_size = offsetof(ds_simulator_config, max_levels);
    const OpenSimulator simulator(config), plain(3, 1);
    CHECK(hash_of(simulator) == hash_of(plain));
    struct {
        OlderInfo info;
        uint64_t behind;
    } program = {{sizeof(OlderInfo), -1, -1, -1, -1}, 0xA5A5A5A5};
    CHECK_EQUAL(ds_simulator_get_info(simulator, reinterpret_cast<ds_simulator_info*>(&program.info)), DS_STATUS_OK);
    CHECK(program.info.struct_size == sizeof(OlderInfo) && program.info.device_kind == DS_DEVICE_CPU);
    CHECK(program.info.num_worlds == 3 && program.info.num_agents == 2 && program.behind == 0xA5A5A5A5);
    for (const uint32_t size : {0u, 8u, 12u, 20u, uint32_t{sizeof(ds_simulator_config)} + 8}) {
        ds_simulator refused;
        config = default_config(1);
        config.struct_size = size;
        CHECK_EQUAL(ds_simulator_create(&config, &refused), DS_STATUS_INVALID_ARGUMENT);
        CHECK_EQUAL(ds_simulator_config_default(&config), DS_STATUS_INVALID_ARGUMENT);
    }
}

LAW(calls_without_their_latest_fields_work) {
    const float rewards[2] = {1, 2}, values[2] = {0, 0};
    const uint8_t never[2] = {0, 0};
    float advantages[2], targets[2];
    ds_advantages call = {};
    call.struct_size = offsetof(ds_advantages, rho_clip);  // all but the numbers that V-trace needs
    call.num_steps = 2, call.num_columns = 1, call.dtype = DS_DTYPE_FLOAT32;
    call.rewards = rewards, call.values = call.next_values = values, call.terminations = call.truncations = never;
    call.advantages = advantages, call.targets = targets, call.gamma = call.gae_lambda = 0.5;
    CHECK_EQUAL(ds_generalized_advantages(&call), DS_STATUS_OK);
    CHECK(advantages[1] == 2.f && advantages[0] == 1.5f);
}

}  // namespace
