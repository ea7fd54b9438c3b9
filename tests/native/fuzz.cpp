// Targets of libFuzzer: DS_FUZZ names the one that a program has. A target reads an input, uses what was accepted, and
// releases everything. The sanitizers, the assertions of the library and the checks here find what is wrong.
// Build and run: make fuzz-native.
#include <string.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "api/save.h"
#include "engines.h"
#include "policy/network.h"

using namespace doorstep;

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned int seed);

namespace {

using Bytes = std::vector<uint8_t>;

// A failure has a status of its own, a message, and never the status of a fault of the library.
bool succeeded(ds_status status) {
    CHECK(status >= DS_STATUS_OK && status != DS_STATUS_INTERNAL);
    if (status == DS_STATUS_OK || status == DS_STATUS_PENDING) return status == DS_STATUS_OK;
    ds_error error;
    error.struct_size = sizeof error;
    CHECK_EQUAL(ds_last_error(&error), DS_STATUS_OK);
    CHECK_EQUAL(error.status, status);
    CHECK(error.message[0]);
    return false;
}

ds_simulator make_small(int64_t num_worlds, int64_t max_levels) {
    ds_simulator_config config = default_config(num_worlds);
    config.num_threads = 1;
    config.max_levels = max_levels;
    config.episode_length = 8;
    return make_simulator(config);
}

void play(ds_simulator simulator, int num_steps) {
    for (int step = 0; step < num_steps; ++step) step_once(simulator, step);
    CHECK_EQUAL(ds_simulator_reset(simulator, nullptr, 0), DS_STATUS_OK);
}

// Changes 4 to 64 bytes somewhere, and no sizes.
void change_words(uint8_t* data, size_t size, unsigned int seed) {
    const size_t window = std::min<size_t>(size, size_t{4} << seed % 5), at = seed / 5 % (size - window + 1) & ~size_t{3};
    LLVMFuzzerMutate(data + at, window, window);
}

template <class Byte>
size_t begin_with(const std::vector<Byte>& right, uint8_t* data, size_t most) {
    const size_t size = std::min(right.size(), most);
    memcpy(data, right.data(), size);
    return size;
}

// ---- Saves, with right checksums

struct saves {
    static const saves& get() {
        static const saves all;
        return all;
    }
    ds_simulator simulators[2] = {make_small(2, 0), make_small(2, 1)};
    std::vector<char> right[2] = {save_of(simulators[0], {0}), save_of(simulators[1], {1})};

    void run(const uint8_t* data, size_t size) const {
        for (const ds_simulator simulator : simulators) {
            const uint64_t before = hash_of(simulator);
            if (succeeded(ds_simulator_restore(simulator, data, size, nullptr, 0))) {
                play(simulator, 3);
            } else {
                CHECK_EQUAL(hash_of(simulator), before);
            }
            go_on(simulator, data, size);
        }
    }
    static void go_on(ds_simulator simulator, const uint8_t* data, size_t size) {
        ds_saved_state state;
        if (!succeeded(ds_saved_state_create(data, size, &state))) return;
        ds_episode_start start{};
        start.world = 1;
        start.state = state;
        if (succeeded(ds_simulator_begin(simulator, &start, 1))) play(simulator, 3);
        CHECK_EQUAL(ds_saved_state_release(state), DS_STATUS_OK);
    }
    static size_t change(uint8_t* data, size_t size, size_t most, unsigned int seed) {
        if (size < sizeof(SaveHeader) || seed % 97 == 0) size = begin_with(get().right[seed % 2], data, most);
        change_words(data, size, seed / 97);
        SaveHeader header;
        if (size < sizeof header) return size;
        memcpy(&header, data, sizeof header);
        const uint64_t worlds = size - sizeof header;
        if (!header.count || worlds % header.count || header.saved_world_bytes != worlds / header.count) return size;
        header.checksum = save_checksum(header, reinterpret_cast<const char*>(data) + sizeof header);
        memcpy(data, &header, sizeof header);
        return size;
    }
};

// ---- Levels, as structs

struct levels {
    static const levels& get() {
        static const levels all;
        return all;
    }
    ds_simulator simulator = make_small(2, 2);

    static ds_level right(unsigned int seed) {
        ds_level level;
        level.struct_size = sizeof level;
        CHECK_EQUAL(ds_level_default(&level), DS_STATUS_OK);
        if (seed % 2) return level;
        level.source = DS_LEVEL_SOURCE_FIXED;
        level.num_walls = level.num_doors = level.num_buttons = level.num_rooms = 1;
        level.num_cubes = level.num_agents = 2;
        level.walls[0] = {-5.f, 0.f, 0.f, 1.f, 12.f, 2.f};
        level.doors[0] = {{0.f, 6.f, 0.f, 3.f, 0.4f, 1.75f}, 0};
        level.buttons[0] = {0.f, 3.f, 0};
        level.cubes[0] = {1.f, 2.f, 0.5f};
        level.cubes[1] = {-1.f, 2.f, 0.f};
        level.agents[0] = {{-1.f, 1.f}, {0.f, 1.f}, {0.f, 0.f}};
        level.agents[1] = {{2.f, 2.f}, {0.f, 1.f}, {-1.f, 1.f}};
        level.rooms[0] = {0.f, 10.f, 0};
        return level;
    }
    void run(const uint8_t* data, size_t size) const {
        ds_level table[2];
        for (ds_level& level : table) {
            memset(&level, 0, sizeof level);
            memcpy(&level, data, std::min(size, sizeof level));
            level.struct_size = sizeof level;
        }
        const float weights[] = {1.f, 0.5f};
        if (!succeeded(ds_simulator_set_levels(simulator, table, 2, weights))) return;
        ds_episode_start start{};
        start.seed = static_cast<int64_t>(size);
        start.level = &table[1];
        CHECK_EQUAL(ds_simulator_begin(simulator, &start, 1), DS_STATUS_OK);
        play(simulator, 2);
        play(simulator, 2);
        CHECK_EQUAL(ds_simulator_set_rewards(simulator, &table[0].rewards), DS_STATUS_OK);
        play(simulator, 1);
        CHECK_EQUAL(ds_simulator_set_rewards(simulator, nullptr), DS_STATUS_OK);
        ds_health health;
        health.struct_size = sizeof health;
        CHECK_EQUAL(ds_simulator_get_health(simulator, &health), DS_STATUS_OK);
        CHECK_EQUAL(health.nonfinite_values, 0);
    }
    static size_t change(uint8_t* data, size_t size, size_t most, unsigned int seed) {
        if (size != sizeof(ds_level) || seed % 97 == 0) {
            const ds_level level = right(seed);
            size = begin_with(Bytes(reinterpret_cast<const uint8_t*>(&level), reinterpret_cast<const uint8_t*>(&level + 1)),
                              data, most);
        }
        change_words(data, size, seed / 97);
        return size;
    }
};

// ---- What an input of layers and calls consists of

class Reader {
public:
    Reader(const uint8_t* data, size_t size) : next_(data), end_(data + size) {}

    uint8_t byte() { return next_ < end_ ? *next_++ : 0; }
    int below(int count) { return byte() % count; }
    float real() {
        constexpr float kReals[] = {0.f, 1.f, 0.5f, -1.f, 1e-5f, 3e38f, __builtin_inff(), -__builtin_inff()};
        const int drawn = byte();
        return drawn == 255 ? __builtin_nanf("") : kReals[drawn % 8];
    }

private:
    const uint8_t *next_, *end_;
};

// ---- Policies: layers with arrays of exactly their sizes, and calls

struct policies {
    static policies get() { return {}; }

    static constexpr int kRows = 9;
    std::vector<std::unique_ptr<float[]>> arrays;
    std::vector<ds_layer> made;

    const void* array(Reader& reader, int64_t count) {
        if (count < 1 || reader.below(16) == 0) return nullptr;
        arrays.emplace_back(new float[static_cast<size_t>(count)]);
        for (int64_t i = 0; i < count; ++i) arrays.back()[static_cast<size_t>(i)] = static_cast<float>(i % 7) - 3.f;
        arrays.back()[static_cast<size_t>(reader.byte() % count)] = reader.real();
        return arrays.back().get();
    }
    void make_layer(Reader& reader, int64_t num_inputs) {
        ds_layer_config config{};
        config.struct_size = sizeof config;
        config.kind = reader.below(31);
        const bool has_widths = config.kind < DS_LAYER_RELU;
        config.num_inputs = has_widths ? (reader.below(8) ? num_inputs : reader.below(64)) : 0;
        config.num_outputs = has_widths ? (reader.below(3) ? reader.below(64) : DS_NUM_LOGITS) : 0;
        config.weight_type = reader.below(8) == 0;  // arrays of 16 bits are half as large
        config.parameter = reader.real();
        int32_t* const shape = &config.shape.num_tokens;
        const int num_given = reader.below(sizeof config.shape / sizeof *shape + 1);
        for (int i = 0; i < num_given; ++i) shape[i] = reader.below(8);
        // Those of a window divide, and tokens divide the widths.
        const bool is_window = config.kind == DS_LAYER_CONV;
        if (is_window && (!config.shape.stride_height || !config.shape.stride_width)) return;
        if (is_window && places_of(config.shape).count() < 1) return;
        const ArrayCounts counts = array_counts(config);
        config.weights = array(reader, counts.weights);
        config.biases = array(reader, counts.biases);
        config.hidden_weights = array(reader, counts.hidden_weights);
        config.hidden_biases = array(reader, counts.hidden_biases);
        ds_layer layer;
        if (succeeded(ds_layer_create(&config, &layer))) made.push_back(layer);
    }
    void run(const uint8_t* data, size_t size) {
        Reader reader(data, size);
        int64_t width = 1 + reader.below(63);
        for (int i = reader.below(8); i >= 0; --i) {
            make_layer(reader, width);
            if (made.empty()) continue;
            ds_layer_config config;
            config.struct_size = sizeof config;
            CHECK_EQUAL(ds_layer_get_config(made.back(), &config), DS_STATUS_OK);
            if (config.num_outputs) width = config.num_outputs;
        }
        ds_policy policy;
        const uint64_t num_heads = static_cast<uint64_t>(reader.below(4));
        if (succeeded(ds_policy_create(made.data(), made.size(), num_heads, DS_PRECISION_FLOAT32, &policy)))
            call(reader, policy);
        for (const ds_layer layer : made) CHECK_EQUAL(ds_layer_release(layer), DS_STATUS_OK);
    }
    static void call(Reader& reader, ds_policy policy) {
        ds_policy frozen;
        CHECK_EQUAL(ds_policy_freeze(policy, 0, &frozen), DS_STATUS_OK);
        CHECK_EQUAL(ds_policy_release(policy), DS_STATUS_OK);
        ds_policy_info info;
        info.struct_size = sizeof info;
        CHECK_EQUAL(ds_policy_get_info(frozen, &info), DS_STATUS_OK);
        const int num_rows = 1 + reader.below(kRows);
        std::vector<float> observations(static_cast<size_t>(num_rows * info.num_inputs), reader.real());
        std::vector<float> states(static_cast<size_t>(num_rows * info.state_size)), logits(num_rows * DS_NUM_LOGITS);
        std::vector<ds_sampling> sampling(num_rows, {reader.below(2) ? 1.f : 0.f, reader.below(2) ? 1.f : 0.5f});
        std::vector<ds_sampling_key> keys(num_rows);
        std::vector<int32_t> actions(static_cast<size_t>(num_rows) * DS_ACTION_COMPONENT_COUNT);
        ds_policy_call call{};
        call.struct_size = sizeof call;
        call.num_rows = num_rows;
        call.observations = observations.data();
        call.observation_stride = info.num_inputs;
        call.states = info.state_size ? states.data() : nullptr;
        call.state_stride = info.state_size;
        call.sampling = sampling.data();
        call.keys = keys.data();
        call.actions = actions.data();
        call.logits = logits.data();
        CHECK_EQUAL(ds_policy_act(frozen, &call), DS_STATUS_OK);
        CHECK_EQUAL(ds_policy_release(frozen), DS_STATUS_OK);
    }
    static size_t change(uint8_t* data, size_t size, size_t most, unsigned int) {
        return LLVMFuzzerMutate(data, size, most);
    }
};

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    static const bool checked = ds_check_version(DS_ABI_VERSION, DS_VERSION_STRING) == DS_STATUS_OK;
    CHECK(checked);
    DS_FUZZ::get().run(data, size);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned int seed) {
    return DS_FUZZ::change(data, size, most, seed);
}
