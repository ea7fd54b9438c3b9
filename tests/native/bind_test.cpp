// Tensors bound to the caller's memory, and tensors set from it, through the C API.
#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "exec/tensors.h"
#include "simulators.h"

namespace {

// The caller's memory for one tensor, between guard bytes.
class Memory {
public:
    explicit Memory(const ds_tensor_info& info) {
        for (int axis = 0; axis < info.rank; ++axis) elements_ *= info.shape[axis];
        bytes_ = elements_ * doorstep::dtype_bytes(info.dtype);
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

private:
    static constexpr size_t kGuard = 68;
    static constexpr char kUntouched = 0x5a;

    int64_t elements_ = 1, bytes_ = 0;
    std::vector<char> storage_;
};

// With all tensors that there are.
ds_simulator make_full_simulator(int64_t num_worlds, int64_t num_threads) {
    ds_simulator_config config = default_config(num_worlds);
    config.num_threads = num_threads;
    config.max_levels = 3;
    config.episode_length = 13;
    return make_simulator(config);
}

ds_binding binding_of(ds_tensor_id tensor, Memory& memory) {
    return {tensor, memory.data(), memory.bytes(), nullptr, nullptr};
}

// Binds one tensor. memory: receives the reference, or null.
ds_status bind(ds_simulator simulator, const ds_binding& binding, ds_memory* memory = nullptr) {
    ds_memory unwanted = 0;
    const ds_status status = ds_simulator_bind(simulator, &binding, 1, memory ? memory : &unwanted);
    if (unwanted) CHECK_EQUAL(ds_memory_release(unwanted), DS_STATUS_OK);
    return status;
}

// A simulator with all tensors bound to the caller's memory.
struct BoundSimulator {
    BoundSimulator(int64_t num_worlds, int64_t num_threads) : simulator(make_full_simulator(num_worlds, num_threads)) {
        std::vector<ds_binding> bindings;
        for (int tensor = 0; tensor < DS_TENSOR_COUNT; ++tensor) {
            const ds_tensor_id id = static_cast<ds_tensor_id>(tensor);
            places.push_back(std::make_unique<Memory>(tensor_of(simulator, id)));
            bindings.push_back(binding_of(id, *places.back()));
        }
        ds_memory memories[DS_TENSOR_COUNT];
        CHECK_EQUAL(ds_simulator_bind(simulator, bindings.data(), bindings.size(), memories), DS_STATUS_OK);
        for (const ds_memory memory : memories) CHECK_EQUAL(ds_memory_release(memory), DS_STATUS_OK);
    }
    ~BoundSimulator() { close_simulator(simulator); }

    std::vector<std::unique_ptr<Memory>> places;
    ds_simulator simulator;
};

void check_same_tensors(ds_simulator plain, BoundSimulator& bound) {
    for (int tensor = 0; tensor < DS_TENSOR_COUNT; ++tensor) {
        const ds_tensor_id id = static_cast<ds_tensor_id>(tensor);
        const ds_tensor_info info = tensor_of(bound.simulator, id);
        Memory& place = *bound.places[static_cast<size_t>(tensor)];
        CHECK(info.data == place.data());
        CHECK(memcmp(place.data(), tensor_of(plain, id).data, place.bytes()) == 0);
    }
    CHECK(hash_of(plain) == hash_of(bound.simulator));
}

void bound_tensors_have_the_bits_of_any_other() {
    for (const int64_t threads : {1, 3}) {
        const ds_simulator plain = make_full_simulator(300, 1);
        BoundSimulator bound(300, threads);
        check_same_tensors(plain, bound);
        for (int step = 0; step < 60; ++step) {
            step_once(plain, step);
            step_once(bound.simulator, step);
            if (step % 20 == 19) {
                const int64_t worlds[] = {7, 299, 0};
                CHECK_EQUAL(ds_simulator_reset(plain, worlds, 3), DS_STATUS_OK);
                CHECK_EQUAL(ds_simulator_reset(bound.simulator, worlds, 3), DS_STATUS_OK);
            }
            check_same_tensors(plain, bound);
        }
        CHECK(save_of(plain) == save_of(bound.simulator));
        close_simulator(plain);
    }
    check_nothing_lives();
}

void a_save_goes_in_and_out_of_bound_memory() {
    const ds_simulator plain = make_full_simulator(40, 1);
    BoundSimulator bound(40, 1);
    for (int step = 0; step < 20; ++step) step_once(plain, step);
    const std::vector<char> saved = save_of(plain);
    CHECK_EQUAL(ds_simulator_restore(bound.simulator, saved.data(), saved.size(), nullptr, 0), DS_STATUS_OK);
    CHECK(save_of(bound.simulator) == saved);
    const std::vector<char> again = save_of(bound.simulator);
    CHECK_EQUAL(ds_simulator_restore(plain, again.data(), again.size(), nullptr, 0), DS_STATUS_OK);
    for (int step = 0; step < 20; ++step) {
        step_once(plain, step);
        step_once(bound.simulator, step);
    }
    check_same_tensors(plain, bound);
    close_simulator(plain);
}

void an_asynchronous_step_writes_to_bound_memory() {
    const ds_simulator plain = make_full_simulator(200, 1);
    BoundSimulator bound(200, 2);
    for (int step = 0; step < 20; ++step) {
        step_once(plain, step);
        write_actions(bound.simulator, step);
        ds_event event;
        CHECK_EQUAL(ds_simulator_step_async(bound.simulator, &event), DS_STATUS_OK);
        CHECK_EQUAL(ds_event_wait(event, -1), DS_STATUS_OK);
        CHECK_EQUAL(ds_event_close(event), DS_STATUS_OK);
    }
    check_same_tensors(plain, bound);
    close_simulator(plain);
}

void elements_move_with_their_tensor() {
    const ds_simulator simulator = make_full_simulator(5, 1);
    step_once(simulator, 3);
    const ds_tensor_info own = tensor_of(simulator, DS_TENSOR_actions);
    int32_t* const at_home = static_cast<int32_t*>(own.data);
    const std::vector<int32_t> before(at_home, at_home + 5 * 2 * 4);
    Memory first(own), second(own);
    CHECK_EQUAL(bind(simulator, binding_of(DS_TENSOR_actions, first)), DS_STATUS_OK);
    CHECK(memcmp(first.data(), before.data(), first.bytes()) == 0);
    first.data()[0] ^= 1;
    CHECK_EQUAL(bind(simulator, binding_of(DS_TENSOR_actions, second)), DS_STATUS_OK);
    CHECK(memcmp(second.data(), first.data(), second.bytes()) == 0);
    CHECK_EQUAL(bind(simulator, binding_of(DS_TENSOR_actions, second)), DS_STATUS_OK);
    second.data()[4] ^= 1;
    CHECK_EQUAL(bind(simulator, {DS_TENSOR_actions, nullptr, 0, nullptr, nullptr}), DS_STATUS_OK);
    CHECK(tensor_of(simulator, DS_TENSOR_actions).data == at_home);
    CHECK(memcmp(second.data(), at_home, second.bytes()) == 0);
    close_simulator(simulator);
}

void count_release(void* owner) { ++*static_cast<int*>(owner); }

void an_owner_is_let_go_once_nobody_needs_the_memory() {
    const ds_simulator simulator = make_full_simulator(5, 1);
    const ds_tensor_info info = tensor_of(simulator, DS_TENSOR_actions);
    Memory first(info), second(info);
    int first_released = 0, second_released = 0, no_memory_released = 0;
    ds_memory reference;
    ds_binding binding = binding_of(DS_TENSOR_actions, first);
    binding.owner = &first_released, binding.release_owner = count_release;
    CHECK_EQUAL(bind(simulator, binding, &reference), DS_STATUS_OK);

    ds_tensor_info bound = tensor_of(simulator, DS_TENSOR_actions);
    void* managed;
    CHECK_EQUAL(ds_dlpack_export(reference, &bound, 1, &managed), DS_STATUS_OK);
    std::vector<int32_t> actions(5 * 2 * 4, 1);
    CHECK_EQUAL(ds_memory_write(reference, &bound, actions.data(), 160), DS_STATUS_OK);
    CHECK(memcmp(first.data(), actions.data(), 160) == 0);
    CHECK_EQUAL(ds_memory_release(reference), DS_STATUS_OK);

    binding = binding_of(DS_TENSOR_actions, second);
    binding.owner = &second_released, binding.release_owner = count_release;
    CHECK_EQUAL(bind(simulator, binding), DS_STATUS_OK);
    CHECK_EQUAL(first_released, 0);
    CHECK_EQUAL(ds_dlpack_delete(managed, 1), DS_STATUS_OK);
    CHECK_EQUAL(first_released, 1);

    const ds_binding nothing = {DS_TENSOR_resets, nullptr, 0, &no_memory_released, count_release};
    CHECK_EQUAL(bind(simulator, nothing), DS_STATUS_OK);
    CHECK_EQUAL(no_memory_released, 1);

    CHECK_EQUAL(second_released, 0);
    close_simulator(simulator);
    CHECK_EQUAL(first_released, 1);
    CHECK_EQUAL(second_released, 1);
    check_nothing_lives();
}

// A release function may call doorstep: no lock is held then.
void step_at_release(void* owner) { CHECK_EQUAL(ds_simulator_step(*static_cast<ds_simulator*>(owner)), DS_STATUS_OK); }

void releasing_an_owner_may_call_the_simulator() {
    ds_simulator simulator = make_full_simulator(5, 1);
    Memory place(tensor_of(simulator, DS_TENSOR_actions));
    ds_binding binding = binding_of(DS_TENSOR_actions, place);
    binding.owner = &simulator, binding.release_owner = step_at_release;
    CHECK_EQUAL(bind(simulator, binding), DS_STATUS_OK);
    CHECK_EQUAL(bind(simulator, {DS_TENSOR_actions, nullptr, 0, &simulator, step_at_release}), DS_STATUS_OK);
    ds_simulator_info info;
    info.struct_size = sizeof info;
    CHECK_EQUAL(ds_simulator_get_info(simulator, &info), DS_STATUS_OK);
    CHECK_EQUAL(info.step_count, 2);
    close_simulator(simulator);
}

void a_refused_call_has_changed_nothing() {
    const ds_simulator simulator = make_full_simulator(5, 1);
    const ds_tensor_info actions = tensor_of(simulator, DS_TENSOR_actions);
    Memory place(actions), other(actions), lidar(tensor_of(simulator, DS_TENSOR_lidar));
    int released = 0;
    const ds_binding good = {DS_TENSOR_actions, place.data(), place.bytes(), &released, count_release};
    const uint64_t bytes = place.bytes();
    char* const inside = lidar.data();
    const struct {
        ds_binding binding;
        const char* argument;
        const char* message;
    } cases[] = {
        {{DS_TENSOR_COUNT, nullptr, 0, nullptr, nullptr}, "tensor", "it must be 0 to"},
        {{-1, nullptr, 0, nullptr, nullptr}, "tensor", "it must be 0 to"},
        {{int64_t{1} << 32, nullptr, 0, nullptr, nullptr}, "tensor", "it must be 0 to"},
        {{DS_TENSOR_actions, nullptr, 0, nullptr, nullptr}, "actions", "occurs twice"},
        {{DS_TENSOR_lidar, inside, lidar.bytes() - 4, nullptr, nullptr}, "lidar", "it must be 2400"},
        {{DS_TENSOR_lidar, inside + 2, lidar.bytes(), nullptr, nullptr}, "lidar", "multiple of 4"},
        {{DS_TENSOR_rewards, place.data() + 4, 40, nullptr, nullptr}, "rewards", "overlaps that of actions"},
        {{DS_TENSOR_rewards, actions.data, 40, nullptr, nullptr}, "rewards", "overlaps that of the simulator itself"},
    };
    ds_memory memories[DS_TENSOR_COUNT + 1];
    for (const auto& one : cases) {
        const ds_binding bindings[] = {good, one.binding};
        CHECK_EQUAL(ds_simulator_bind(simulator, bindings, 2, memories), DS_STATUS_INVALID_ARGUMENT);
        CHECK(last_error_names(one.argument));
        CHECK(last_message_has(one.message));
        CHECK(tensor_of(simulator, DS_TENSOR_actions).data == actions.data);
        CHECK_EQUAL(live(DS_LIVE_MEMORY), 1);
    }
    CHECK_EQUAL(ds_simulator_bind(simulator, nullptr, 1, memories), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(ds_simulator_bind(simulator, &good, 1, nullptr), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(ds_simulator_bind(simulator, &good, DS_TENSOR_COUNT + 1, memories), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(released, 0);

    CHECK_EQUAL(bind(simulator, good), DS_STATUS_OK);
    const ds_binding swapped[] = {{DS_TENSOR_rewards, place.data(), 40, nullptr, nullptr},
                                  {DS_TENSOR_actions, other.data(), bytes, nullptr, nullptr}};
    CHECK_EQUAL(ds_simulator_bind(simulator, swapped, 2, memories), DS_STATUS_INVALID_ARGUMENT);
    CHECK(last_message_has("overlaps that of actions"));
    CHECK(tensor_of(simulator, DS_TENSOR_actions).data == place.data());
    close_simulator(simulator);
    CHECK_EQUAL(ds_simulator_bind(simulator, &good, 1, memories), DS_STATUS_CLOSED);
    CHECK_EQUAL(released, 1);
    check_nothing_lives();
}

void a_tensor_that_is_absent_or_empty_needs_no_memory() {
    ds_simulator_config config = default_config(3);
    config.num_agents = 1;
    const ds_simulator simulator = make_simulator(config);
    char place[4];
    int released = 0;
    const ds_binding absent = {DS_TENSOR_observations, place, 4, nullptr, nullptr};
    CHECK_EQUAL(bind(simulator, absent), DS_STATUS_INVALID_ARGUMENT);
    CHECK(last_message_has("observations"));
    const ds_tensor_info before = tensor_of(simulator, DS_TENSOR_partner_observations);
    const ds_binding empty = {DS_TENSOR_partner_observations, place, 0, &released, count_release};
    CHECK_EQUAL(bind(simulator, empty), DS_STATUS_OK);
    CHECK_EQUAL(released, 1);
    CHECK(tensor_of(simulator, DS_TENSOR_partner_observations).data == before.data);
    CHECK_EQUAL(ds_simulator_step(simulator), DS_STATUS_OK);
    close_simulator(simulator);
    check_nothing_lives();
}

void actions_out_of_range_are_found_in_bound_memory() {
    ds_simulator_config config = default_config(5);
    config.action_check = DS_ACTION_CHECK_RAISE;
    const ds_simulator simulator = make_simulator(config);
    Memory place(tensor_of(simulator, DS_TENSOR_actions));
    CHECK_EQUAL(bind(simulator, binding_of(DS_TENSOR_actions, place)), DS_STATUS_OK);
    CHECK_EQUAL(ds_simulator_step(simulator), DS_STATUS_OK);
    reinterpret_cast<int32_t*>(place.data())[(3 * 2 + 1) * 4 + 2] = 5;
    CHECK_EQUAL(ds_simulator_step(simulator), DS_STATUS_INVALID_ARGUMENT);
    CHECK(last_message_has("actions[3, 1, 2] is 5"));
    close_simulator(simulator);
}

ds_status redirect(ds_simulator simulator, ds_tensor_id tensor, Memory& memory, int* released = nullptr) {
    ds_binding binding = binding_of(tensor, memory);
    if (released) binding.owner = released, binding.release_owner = count_release;
    return ds_simulator_redirect(simulator, &binding);
}

constexpr ds_tensor_id kRedirected[] = {DS_TENSOR_steps_remaining,         DS_TENSOR_self_observations,
                                        DS_TENSOR_partner_observations,    DS_TENSOR_room_entity_observations,
                                        DS_TENSOR_door_observations,       DS_TENSOR_lidar,
                                        DS_TENSOR_observations};

void what_writes_all_worlds_writes_redirected_tensors_whole() {
    const auto refresh = [](ds_simulator simulator, int) { CHECK_EQUAL(ds_simulator_refresh(simulator), DS_STATUS_OK); };
    const auto reset = [](ds_simulator simulator, int) {
        CHECK_EQUAL(ds_simulator_reset(simulator, nullptr, 0), DS_STATUS_OK);
    };
    void (*const writers[])(ds_simulator, int) = {step_once, refresh, reset};
    const ds_simulator plain = make_full_simulator(70, 1), simulator = make_full_simulator(70, 2);
    for (int turn = 0; turn < 45; ++turn) {
        std::vector<std::unique_ptr<Memory>> places;
        for (const ds_tensor_id tensor : kRedirected) {
            places.push_back(std::make_unique<Memory>(tensor_of(simulator, tensor)));
            CHECK_EQUAL(redirect(simulator, tensor, *places.back()), DS_STATUS_OK);
            CHECK_EQUAL(places.back()->data()[0], 0x5a);  // nothing was copied
        }
        const auto write = writers[turn % 20 == 19 ? 1 + turn / 20 : 0];
        write(plain, turn);
        write(simulator, turn);
        for (size_t i = 0; i < places.size(); ++i) {
            const ds_tensor_info info = tensor_of(simulator, kRedirected[i]);
            CHECK(info.data == places[i]->data());
            CHECK(memcmp(info.data, tensor_of(plain, kRedirected[i]).data, places[i]->bytes()) == 0);
        }
        CHECK(hash_of(plain) == hash_of(simulator));
        for (const ds_tensor_id tensor : kRedirected) {
            const ds_binding home = {tensor, nullptr, 0, nullptr, nullptr};
            CHECK_EQUAL(ds_simulator_redirect(simulator, &home), DS_STATUS_OK);
        }
    }
    close_simulator(plain);
    close_simulator(simulator);
    check_nothing_lives();
}

void a_redirected_tensor_leaves_what_it_wrote_before() {
    const ds_simulator simulator = make_full_simulator(5, 1);
    const ds_tensor_info own = tensor_of(simulator, DS_TENSOR_lidar);
    Memory first(own), second(own);
    int first_released = 0, second_released = 0;
    CHECK_EQUAL(redirect(simulator, DS_TENSOR_lidar, first, &first_released), DS_STATUS_OK);
    step_once(simulator, 1);
    const std::vector<char> written(first.data(), first.data() + first.bytes());
    CHECK_EQUAL(redirect(simulator, DS_TENSOR_lidar, second, &second_released), DS_STATUS_OK);
    CHECK_EQUAL(first_released, 1);
    step_once(simulator, 2);
    CHECK(memcmp(first.data(), written.data(), first.bytes()) == 0);
    CHECK_EQUAL(second_released, 0);
    const ds_binding home = {DS_TENSOR_lidar, nullptr, 0, nullptr, nullptr};
    CHECK_EQUAL(ds_simulator_redirect(simulator, &home), DS_STATUS_OK);
    CHECK_EQUAL(second_released, 1);
    CHECK(tensor_of(simulator, DS_TENSOR_lidar).data == own.data);
    close_simulator(simulator);
    check_nothing_lives();
}

void only_what_every_step_writes_anew_is_redirected() {
    const ds_simulator simulator = make_full_simulator(5, 1);
    int released = 0;
    for (int tensor = 0; tensor < DS_TENSOR_COUNT; ++tensor) {
        const ds_tensor_id id = static_cast<ds_tensor_id>(tensor);
        const ds_tensor_info info = tensor_of(simulator, id);
        Memory place(info);
        const bool expected = std::find(std::begin(kRedirected), std::end(kRedirected), id) != std::end(kRedirected);
        CHECK_EQUAL(redirect(simulator, id, place, &released), expected ? DS_STATUS_OK : DS_STATUS_INVALID_ARGUMENT);
        CHECK_EQUAL(released, 0);
        CHECK((tensor_of(simulator, id).data == info.data) == !expected);
        if (!expected) CHECK(last_error_names(doorstep::kTensorRows[tensor].name));
        const ds_binding home = {id, nullptr, 0, nullptr, nullptr};
        if (expected) CHECK_EQUAL(ds_simulator_redirect(simulator, &home), DS_STATUS_OK);
        CHECK_EQUAL(released, expected ? 1 : 0);
        released = 0;
    }
    Memory lidar(tensor_of(simulator, DS_TENSOR_lidar)), rewards(tensor_of(simulator, DS_TENSOR_rewards));
    const auto refuses = [&](ds_binding binding, const char* message) {
        return ds_simulator_redirect(simulator, &binding) == DS_STATUS_INVALID_ARGUMENT && last_message_has(message);
    };
    const uint64_t bytes = lidar.bytes();
    CHECK(refuses({-1, nullptr, 0, nullptr, nullptr}, "it must be 0 to"));
    CHECK(refuses({int64_t{1} << 32, nullptr, 0, nullptr, nullptr}, "it must be 0 to"));
    CHECK(refuses({DS_TENSOR_lidar, lidar.data(), bytes - 4, nullptr, nullptr}, "it must be 2400"));
    CHECK(refuses({DS_TENSOR_lidar, lidar.data() + 2, bytes, nullptr, nullptr}, "multiple of 4"));
    CHECK_EQUAL(bind(simulator, binding_of(DS_TENSOR_rewards, rewards)), DS_STATUS_OK);
    CHECK(refuses({DS_TENSOR_lidar, rewards.data(), bytes, nullptr, nullptr}, "overlaps that of rewards"));
    CHECK_EQUAL(ds_simulator_redirect(simulator, nullptr), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(ds_simulator_step(simulator), DS_STATUS_OK);
    close_simulator(simulator);
    CHECK_EQUAL(redirect(simulator, DS_TENSOR_lidar, lidar), DS_STATUS_CLOSED);
    check_nothing_lives();
}

void a_tensor_is_set_wherever_it_lies() {
    const ds_simulator simulator = make_full_simulator(5, 1);
    Memory place(tensor_of(simulator, DS_TENSOR_actions));
    std::vector<int32_t> actions(5 * 2 * 4);
    for (size_t i = 0; i < actions.size(); ++i) actions[i] = static_cast<int32_t>(i);
    const uint64_t bytes = actions.size() * sizeof(int32_t);
    for (const bool bound : {false, true}) {
        if (bound) CHECK_EQUAL(bind(simulator, binding_of(DS_TENSOR_actions, place)), DS_STATUS_OK);
        std::reverse(actions.begin(), actions.end());
        const ds_status status =
            ds_simulator_set_tensor(simulator, DS_TENSOR_actions, actions.data(), bytes, DS_DEVICE_CPU);
        CHECK_EQUAL(status, DS_STATUS_OK);
        const void* now = tensor_of(simulator, DS_TENSOR_actions).data;
        CHECK(memcmp(now, actions.data(), bytes) == 0);
        CHECK_EQUAL(ds_simulator_set_tensor(simulator, DS_TENSOR_actions, now, bytes, DS_DEVICE_CPU), DS_STATUS_OK);
        CHECK(memcmp(now, actions.data(), bytes) == 0);
    }
    close_simulator(simulator);
}

void a_tensor_is_not_set_from_what_does_not_fit() {
    const ds_simulator simulator = make_full_simulator(5, 1);
    const std::vector<int32_t> actions(5 * 2 * 4, 1);
    const ds_tensor_info info = tensor_of(simulator, DS_TENSOR_actions);
    const auto set = [&](int32_t tensor, const void* data, uint64_t bytes, int32_t device) {
        return ds_simulator_set_tensor(simulator, tensor, data, bytes, device);
    };
    CHECK_EQUAL(set(DS_TENSOR_rewards, actions.data(), 40, DS_DEVICE_CPU), DS_STATUS_INVALID_ARGUMENT);
    CHECK(last_error_names("rewards"));
    CHECK_EQUAL(set(DS_TENSOR_COUNT, actions.data(), 160, DS_DEVICE_CPU), DS_STATUS_INVALID_ARGUMENT);
    CHECK(last_error_names("tensor"));
    CHECK_EQUAL(set(DS_TENSOR_actions, actions.data(), 156, DS_DEVICE_CPU), DS_STATUS_INVALID_ARGUMENT);
    CHECK(last_error_names("bytes"));
    CHECK_EQUAL(set(DS_TENSOR_actions, nullptr, 160, DS_DEVICE_CPU), DS_STATUS_INVALID_ARGUMENT);
    CHECK(last_error_names("data"));
    CHECK_EQUAL(set(DS_TENSOR_actions, actions.data(), 160, DS_DEVICE_CUDA), DS_STATUS_INVALID_ARGUMENT);
    CHECK(last_error_names("device_kind"));
    CHECK_EQUAL(static_cast<int32_t*>(info.data)[0], 0);
    close_simulator(simulator);
    CHECK_EQUAL(set(DS_TENSOR_actions, actions.data(), 160, DS_DEVICE_CPU), DS_STATUS_CLOSED);
}

// Every call that would use the memory is refused, until the tensor is bound to other memory, whose elements stay.
void memory_that_moved_is_not_used() {
    BoundSimulator bound(8, 1);
    const ds_simulator simulator = bound.simulator;
    const std::vector<char> saved = save_of(simulator);
    for (int tensor = 0; tensor < DS_TENSOR_COUNT; ++tensor) {
        const ds_tensor_id id = static_cast<ds_tensor_id>(tensor);
        ds_tensor_info info = tensor_of(simulator, id);
        Memory place(info);
        uint64_t words[2] = {1, 2};
        ds_memory memory;
        CHECK_EQUAL(bind(simulator, binding_of(id, place), &memory), DS_STATUS_OK);
        CHECK_EQUAL(ds_simulator_watch(simulator, tensor, tensor % 2 ? &words[0] : nullptr, &words[1]), DS_STATUS_OK);
        CHECK_EQUAL(ds_simulator_step(simulator), DS_STATUS_OK);
        CHECK_EQUAL(ds_memory_check(memory), DS_STATUS_OK);
        info = tensor_of(simulator, id);
        ++words[(tensor + 1) % 2];
        const std::vector<char> before(place.data(), place.data() + place.bytes());
        std::vector<char> room(std::max(place.bytes(), saved.size()));
        ds_event event;
        void* managed;
        const ds_status refused[] = {
            ds_simulator_step(simulator),
            ds_simulator_step_async(simulator, &event),
            ds_simulator_reset(simulator, nullptr, 0),
            ds_simulator_refresh(simulator),
            ds_simulator_save(simulator, nullptr, 8, room.data(), saved.size()),
            ds_simulator_restore(simulator, saved.data(), saved.size(), nullptr, 0),
            ds_simulator_set_tensor(simulator, DS_TENSOR_resets, room.data(), 8 * sizeof(int32_t), DS_DEVICE_CPU),
            ds_memory_check(memory),
            ds_memory_read(memory, &info, room.data(), place.bytes()),
            ds_dlpack_export(memory, &info, 1, &managed),
        };
        for (const ds_status status : refused) CHECK_EQUAL(status, DS_STATUS_INVALID_STATE);
        CHECK(last_error_names(doorstep::kTensorRows[tensor].name));
        CHECK(std::equal(before.begin(), before.end(), place.data()));
        Memory& home = *bound.places[static_cast<size_t>(tensor)];
        std::fill_n(home.data(), home.bytes(), char{0});
        CHECK_EQUAL(bind(simulator, binding_of(id, home)), DS_STATUS_OK);
        CHECK(std::all_of(home.data(), home.data() + home.bytes(), [](char byte) { return byte == 0; }));
        CHECK_EQUAL(ds_memory_release(memory), DS_STATUS_OK);
        CHECK_EQUAL(ds_simulator_step(simulator), DS_STATUS_OK);
        CHECK_EQUAL(bind(simulator, {id, nullptr, home.bytes(), nullptr, nullptr}), DS_STATUS_OK);
        const uint64_t word = 0;
        CHECK_EQUAL(ds_simulator_watch(simulator, tensor, &word, nullptr), DS_STATUS_INVALID_ARGUMENT);
        CHECK_EQUAL(bind(simulator, binding_of(id, home)), DS_STATUS_OK);
    }
}

}  // namespace

int main() {
    RUN(bound_tensors_have_the_bits_of_any_other);
    RUN(a_save_goes_in_and_out_of_bound_memory);
    RUN(an_asynchronous_step_writes_to_bound_memory);
    RUN(elements_move_with_their_tensor);
    RUN(an_owner_is_let_go_once_nobody_needs_the_memory);
    RUN(releasing_an_owner_may_call_the_simulator);
    RUN(a_refused_call_has_changed_nothing);
    RUN(a_tensor_that_is_absent_or_empty_needs_no_memory);
    RUN(actions_out_of_range_are_found_in_bound_memory);
    RUN(what_writes_all_worlds_writes_redirected_tensors_whole);
    RUN(a_redirected_tensor_leaves_what_it_wrote_before);
    RUN(only_what_every_step_writes_anew_is_redirected);
    RUN(a_tensor_is_set_wherever_it_lies);
    RUN(a_tensor_is_not_set_from_what_does_not_fit);
    RUN(memory_that_moved_is_not_used);
}
