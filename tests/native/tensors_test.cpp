// Memory of tensors through the C API: bound and redirected to the caller's, copied, exported, described by structs of
// other sizes. What Python can do with it is tested from Python.
#include <algorithm>
#include <memory>

#include "exec/tensors.h"
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

ds_status bind(ds_simulator simulator, const ds_binding& binding) {
    ds_memory memory = 0;
    const ds_status status = ds_simulator_bind(simulator, &binding, 1, &memory);
    if (memory) CHECK_EQUAL(ds_memory_release(memory), DS_STATUS_OK);
    return status;
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

LAW(the_owner_of_memory_for_a_tensor_without_elements_is_let_go_at_once) {
    ds_simulator_config config = default_config(5);
    config.num_agents = 1;
    const OpenSimulator simulator(config);
    char place[4];
    int released = 0;
    CHECK_EQUAL(bind(simulator, {DS_TENSOR_partner_observations, place, 0, &released, Memory::count_release}), DS_STATUS_OK);
    CHECK_EQUAL(released, 1);
}

LAW(bindings_that_python_cannot_ask_for_are_refused_too) {
    const OpenSimulator simulator(default_config(5));
    const ds_tensor_info actions = tensor_of(simulator, DS_TENSOR_actions);
    Memory place(actions);
    int released = 0;
    const ds_binding good = place.for_tensor(DS_TENSOR_actions, &released);
    ds_memory memories[2];
    const std::pair<int64_t, const char*> tensors[] = {{int64_t{1} << 32, "tensor"}, {DS_TENSOR_actions, "actions"}};
    for (const auto& [tensor, argument] : tensors) {  // which there is not, and again
        const ds_binding bindings[] = {good, own_memory(tensor)};
        CHECK_EQUAL(ds_simulator_bind(simulator, bindings, 2, memories), DS_STATUS_INVALID_ARGUMENT);
        CHECK(last_error_names(argument));
    }
    CHECK_EQUAL(ds_simulator_bind(simulator, nullptr, 1, memories), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(ds_simulator_bind(simulator, &good, 1, nullptr), DS_STATUS_INVALID_ARGUMENT);
    CHECK(tensor_of(simulator, DS_TENSOR_actions).data == actions.data && released == 0);
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

// ---- DLPack

struct Source {
    const OpenSimulator simulator;
    ds_memory memory = 0;

    explicit Source(int64_t num_worlds) : simulator(num_worlds, 1) {
        CHECK_EQUAL(ds_simulator_get_memory(simulator, &memory), DS_STATUS_OK);
    }
    ~Source() { CHECK_EQUAL(ds_memory_release(memory), DS_STATUS_OK); }
};

LAW(an_export_keeps_its_memory_and_says_whether_it_may_be_written) {
    for (const ds_tensor_id id : {DS_TENSOR_actions, DS_TENSOR_rewards}) {
        auto source = std::make_unique<Source>(5);
        const ds_tensor_info info = tensor_of(source->simulator, id);
        void* managed;
        CHECK_EQUAL(ds_dlpack_export(source->memory, &info, 1, &managed), DS_STATUS_OK);
        source.reset();
        CHECK(live(DS_LIVE_MEMORY) == 1 && live(DS_LIVE_EXPORT) == 1);
        CHECK_EQUAL(static_cast<DLManagedTensorVersioned*>(managed)->flags, id == DS_TENSOR_rewards);
        CHECK_EQUAL(ds_dlpack_delete(managed, 1), DS_STATUS_OK);
    }
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
