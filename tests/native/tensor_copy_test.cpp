// Copies between tensors and the host, for any device.
#include <vector>

#include "simulators.h"

namespace {

class HeldMemory {
public:
    explicit HeldMemory(ds_simulator simulator) {
        CHECK_EQUAL(ds_simulator_get_memory(simulator, &handle_), DS_STATUS_OK);
    }
    ~HeldMemory() { CHECK_EQUAL(ds_memory_release(handle_), DS_STATUS_OK); }
    operator ds_memory() const { return handle_; }

private:
    ds_memory handle_;
};

ds_tensor_info state_of(ds_simulator simulator, ds_state_id field) {
    ds_tensor_info info;
    info.struct_size = sizeof info;
    CHECK_EQUAL(ds_simulator_get_state(simulator, field, &info), DS_STATUS_OK);
    return info;
}

// An element of a field of floats with coordinates.
float& element(const ds_tensor_info& info, int64_t world, int64_t item, int64_t coordinate) {
    return *reinterpret_cast<float*>(static_cast<char*>(info.data) + world * info.strides[0] + item * info.strides[1] +
                                     coordinate * info.strides[2]);
}

void a_tensor_is_read_as_it_lies() {
    const ds_simulator simulator = make_simulator(70, 1);
    step_once(simulator, 0);
    const HeldMemory memory(simulator);
    const ds_tensor_info info = tensor_of(simulator, DS_TENSOR_lidar);
    std::vector<float> copy(70 * 2 * 30 * 2);
    CHECK_EQUAL(ds_memory_read(memory, &info, copy.data(), copy.size() * sizeof(float)), DS_STATUS_OK);
    CHECK_EQUAL(memcmp(copy.data(), info.data, copy.size() * sizeof(float)), 0);
    close_simulator(simulator);
}

// More worlds than fit one staging buffer.
void a_strided_field_is_read_and_written_element_by_element() {
    constexpr int64_t kWorlds = 9000;
    const ds_simulator simulator = make_simulator(kWorlds, 1);
    const HeldMemory memory(simulator);
    const ds_tensor_info info = state_of(simulator, DS_STATE_static_sizes);
    const int64_t items = info.shape[1];
    const auto place = [&](int64_t world, int64_t item, int64_t coordinate) {
        return static_cast<size_t>((world * items + item) * 3 + coordinate);
    };
    std::vector<float> copy(static_cast<size_t>(kWorlds * items * 3));
    const uint64_t bytes = copy.size() * sizeof(float);
    CHECK_EQUAL(ds_memory_read(memory, &info, copy.data(), bytes), DS_STATUS_OK);
    for (int64_t world = 0; world < kWorlds; ++world) {
        for (int64_t item = 0; item < items; ++item) {
            for (int64_t k = 0; k < 3; ++k) {
                CHECK(copy[place(world, item, k)] == element(info, world, item, k));
                copy[place(world, item, k)] = static_cast<float>(world * 100 + item * 3 + k);
            }
        }
    }
    CHECK_EQUAL(ds_memory_write(memory, &info, copy.data(), bytes), DS_STATUS_OK);
    for (const int64_t world : {int64_t{0}, int64_t{3000}, kWorlds - 1}) {
        for (int64_t k = 0; k < 3; ++k) {
            CHECK(element(info, world, items - 1, k) == static_cast<float>(world * 100 + (items - 1) * 3 + k));
        }
    }
    close_simulator(simulator);
}

void a_write_keeps_what_lies_between_the_elements() {
    const ds_simulator simulator = make_simulator(40, 1);
    const HeldMemory memory(simulator);
    const ds_tensor_info info = state_of(simulator, DS_STATE_body_positions);
    const uint64_t before = hash_of(simulator);
    std::vector<float> copy(static_cast<size_t>(40 * info.shape[1] * 3));
    const uint64_t bytes = copy.size() * sizeof(float);
    CHECK_EQUAL(ds_memory_read(memory, &info, copy.data(), bytes), DS_STATUS_OK);
    CHECK_EQUAL(ds_memory_write(memory, &info, copy.data(), bytes), DS_STATUS_OK);
    CHECK(hash_of(simulator) == before);
    close_simulator(simulator);
}

void a_field_that_is_the_same_in_every_world_is_read_for_each() {
    const ds_simulator simulator = make_simulator(5, 1);
    const HeldMemory memory(simulator);
    const ds_tensor_info info = state_of(simulator, DS_STATE_body_sizes);
    std::vector<float> copy(static_cast<size_t>(5 * info.shape[1] * 3));
    CHECK_EQUAL(ds_memory_read(memory, &info, copy.data(), copy.size() * sizeof(float)), DS_STATUS_OK);
    const size_t row = copy.size() / 5;
    CHECK(copy[0] > 0);
    for (size_t i = 0; i < copy.size(); ++i) CHECK(copy[i] == copy[i % row]);
    close_simulator(simulator);
}

void a_read_waits_for_the_step_that_was_begun() {
    const ds_simulator simulator = make_simulator(2000, 1);
    const HeldMemory memory(simulator);
    const ds_tensor_info info = tensor_of(simulator, DS_TENSOR_steps_remaining);
    ds_event event;
    CHECK_EQUAL(ds_simulator_step_async(simulator, &event), DS_STATUS_OK);
    std::vector<int32_t> copy(2000 * 2);
    CHECK_EQUAL(ds_memory_read(memory, &info, copy.data(), copy.size() * sizeof(int32_t)), DS_STATUS_OK);
    for (const int32_t remaining : copy) CHECK_EQUAL(remaining, 199);
    CHECK_EQUAL(ds_event_wait(event, 0), DS_STATUS_OK);
    CHECK_EQUAL(ds_event_close(event), DS_STATUS_OK);
    close_simulator(simulator);
}

void memory_is_read_after_its_simulator_was_closed() {
    const ds_simulator simulator = make_simulator(3, 1);
    const HeldMemory memory(simulator);
    const ds_tensor_info info = tensor_of(simulator, DS_TENSOR_steps_remaining);
    close_simulator(simulator);
    int32_t copy[6];
    CHECK_EQUAL(ds_memory_read(memory, &info, copy, sizeof copy), DS_STATUS_OK);
    CHECK_EQUAL(copy[5], 200);
}

void what_does_not_fit_is_refused_and_nothing_changes() {
    const ds_simulator simulator = make_simulator(3, 1);
    const HeldMemory memory(simulator);
    ds_tensor_info actions = tensor_of(simulator, DS_TENSOR_actions);
    const ds_tensor_info rewards = tensor_of(simulator, DS_TENSOR_rewards);
    int32_t host[3 * 2 * 4 + 1] = {};
    memset(host, 0x11, sizeof host);
    CHECK_EQUAL(ds_memory_write(memory, &actions, host, sizeof host), DS_STATUS_INVALID_ARGUMENT);
    CHECK(last_error_names("bytes"));
    CHECK_EQUAL(ds_memory_write(memory, &rewards, host, 3 * 2 * 4), DS_STATUS_INVALID_ARGUMENT);
    CHECK(last_message_has("read-only"));
    CHECK_EQUAL(ds_memory_read(memory, &actions, nullptr, 96), DS_STATUS_INVALID_ARGUMENT);
    CHECK(last_error_names("host"));
    CHECK_EQUAL(static_cast<int32_t*>(actions.data)[0], 0);
    actions.shape[0] = int64_t{1} << 40;
    actions.strides[0] = 0;
    actions.shape[1] = int64_t{1} << 40;
    actions.strides[1] = 0;
    CHECK_EQUAL(ds_memory_read(memory, &actions, host, 96), DS_STATUS_INVALID_ARGUMENT);
    CHECK(last_error_names("info"));
    CHECK_EQUAL(ds_memory_read(0, &rewards, host, 24), DS_STATUS_CLOSED);
    close_simulator(simulator);
}

void the_cpu_has_no_streams() {
    ds_simulator_config config = default_config(2);
    config.stream = 0;
    ds_simulator refused;
    CHECK_EQUAL(ds_simulator_create(&config, &refused), DS_STATUS_INVALID_ARGUMENT);
    CHECK(last_error_names("stream"));
    const ds_simulator simulator = make_simulator(2, 1);
    const HeldMemory memory(simulator);
    for (const uint64_t stream : {uint64_t{0}, uint64_t{1}, uint64_t{0x1234}}) {
        CHECK_EQUAL(ds_simulator_set_stream(simulator, stream), DS_STATUS_INVALID_ARGUMENT);
        CHECK_EQUAL(ds_memory_order(memory, stream), DS_STATUS_INVALID_ARGUMENT);
    }
    CHECK_EQUAL(ds_simulator_set_stream(simulator, DS_STREAM_OWN), DS_STATUS_OK);
    CHECK_EQUAL(ds_memory_order(memory, DS_STREAM_OWN), DS_STATUS_OK);
    close_simulator(simulator);
}

}  // namespace

int main() {
    RUN(a_tensor_is_read_as_it_lies);
    RUN(a_strided_field_is_read_and_written_element_by_element);
    RUN(a_write_keeps_what_lies_between_the_elements);
    RUN(a_field_that_is_the_same_in_every_world_is_read_for_each);
    RUN(a_read_waits_for_the_step_that_was_begun);
    RUN(memory_is_read_after_its_simulator_was_closed);
    RUN(what_does_not_fit_is_refused_and_nothing_changes);
    RUN(the_cpu_has_no_streams);
    check_nothing_lives();
}
