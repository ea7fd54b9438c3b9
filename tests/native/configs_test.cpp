// Configurations with handles: every field of every table reaches the object and is read back; ranges; ownership.
#include <float.h>
#include <string.h>

#include <initializer_list>

#include "check.h"
#include "engines.h"

namespace {

template <class Struct>
ds_config create(const Struct& fields) {
    ds_config config = 0;
    CHECK_EQUAL(config_create(&fields, &config), DS_STATUS_OK);
    return config;
}

template <class Struct>
bool is_refused(const Struct& fields, const char* argument) {
    ds_config config = 77;
    return config_create(&fields, &config) == DS_STATUS_INVALID_ARGUMENT && config == 77 &&
           last_error_names(argument);
}

int64_t live() {
    int64_t count;
    CHECK_EQUAL(ds_live_count(DS_LIVE_CONFIG, &count), DS_STATUS_OK);
    return count;
}

// ---- Every integer of every table

// Its limits are accepted and read back; what is beyond is refused by its name.
template <class Struct, class Value>
void check_limits(Value Struct::* field, int64_t low, int64_t high, const char* name) {
    const Struct defaults = defaults_of<Struct>();
    for (const int64_t value : {low, high}) {
        Struct fields = defaults;
        fields.*field = static_cast<Value>(value);
        if constexpr (requires { fields.world_offset; }) {
            if (value + fields.num_worlds > DS_MAX_GLOBAL_WORLDS) continue;  // world_offset has a rule of its own
        }
        if constexpr (requires { fields.preempts; }) {
            if (fields.preempts) fields.type = DS_SCHEDULER_PRIORITY;  // schedulers without an order refuse it
        }
        const ds_config config = create(fields);
        Struct read = defaults;
        CHECK_EQUAL(config_get(config, &read), DS_STATUS_OK);
        CHECK_EQUAL(memcmp(&read, &fields, sizeof read), 0);
        CHECK_EQUAL(ds_config_release(config), DS_STATUS_OK);
    }
    for (const int64_t value : {low - 1, high + 1}) {
        Struct fields = defaults;
        fields.*field = static_cast<Value>(value);
        CHECK(is_refused(fields, name));
    }
}

#define DS_LIMITS(kind, name, value, low, high, ...) DS_LIMITS_##kind(name, low, high)
#define DS_LIMITS_INTEGER(name, low, high) check_limits(&Fields::name, low, high, #name);
#define DS_LIMITS_REQUIRED DS_LIMITS_INTEGER
#define DS_LIMITS_OPTIONAL(name, low, high) check_limits(&Fields::name, low - 1, high, #name);
#define DS_LIMITS_FLAG DS_LIMITS_INTEGER
#define DS_LIMITS_CHOICE DS_LIMITS_INTEGER
#define DS_LIMITS_TYPE DS_LIMITS_INTEGER
#define DS_LIMITS_NUMBER(name, low, high)
#define DS_LIMITS_POSITIVE(name, low, high)
#define DS_LIMITS_DEVICE(name, low, high)
#define DS_LIMITS_OBSERVATIONS(name, low, high)

void integers_have_the_limits_of_their_tables() {
    {
        using Fields = ds_simulator_config;
        DS_SIMULATOR_CONFIG_TABLE(DS_LIMITS)
    }
    {
        using Fields = ds_sampling_config;
        DS_SAMPLING_CONFIG_TABLE(DS_LIMITS)
    }
    {
        using Fields = ds_scheduler_config;
        DS_SCHEDULER_CONFIG_TABLE(DS_LIMITS)
    }
    {
        using Fields = ds_controller_config;
        DS_CONTROLLER_CONFIG_TABLE(DS_LIMITS)
    }
    {
        using Fields = ds_metrics_config;
        DS_METRICS_CONFIG_TABLE(DS_LIMITS)
    }
}

void numbers_have_limits() {
    auto sampling = defaults_of<ds_sampling_config>();
    for (const float wrong : {-1.f, __builtin_nanf(""), __builtin_inff()}) {
        auto fields = sampling;
        fields.temperature = wrong;
        CHECK(is_refused(fields, "temperature"));
    }
    for (const float wrong : {0.f, -1.f, 1.5f, __builtin_nanf("")}) {
        auto fields = sampling;
        fields.top_p = wrong;
        CHECK(is_refused(fields, "top_p"));
    }
    sampling.temperature = FLT_MAX;
    sampling.top_p = FLT_TRUE_MIN;
    CHECK_EQUAL(ds_config_release(create(sampling)), DS_STATUS_OK);
}

void rules_of_several_fields_are_checked() {
    auto simulator = defaults_of<ds_simulator_config>();
    simulator.num_worlds = 5;
    simulator.world_offset = DS_MAX_GLOBAL_WORLDS - 4;
    CHECK(is_refused(simulator, "world_offset"));
    simulator.world_offset = 0;
    simulator.device_index = 1;
    CHECK(is_refused(simulator, "device_index"));
    simulator.device_kind = DS_DEVICE_CUDA;
    simulator.device_index = DS_DEVICE_INDEX_CURRENT;
    CHECK_EQUAL(ds_config_release(create(simulator)), DS_STATUS_OK);
    simulator.stream = 1;
    CHECK(is_refused(simulator, "stream"));
}

// ---- Compositions

struct Parts {
    ds_config simulator = create(defaults_of<ds_simulator_config>());
    ds_config scheduler = create(defaults_of<ds_scheduler_config>());
    ds_config controller = 0;
    ds_config metrics = create(defaults_of<ds_metrics_config>());

    explicit Parts(int32_t type = DS_CONTROLLER_PULL) {
        auto fields = defaults_of<ds_controller_config>();
        fields.type = type;
        controller = create(fields);
    }
    ds_rollout_config rollout() const {
        auto fields = defaults_of<ds_rollout_config>();
        fields.simulator = simulator;
        fields.scheduler = scheduler;
        fields.controller = controller;
        fields.metrics = metrics;
        return fields;
    }
    void release() const {
        for (const ds_config part : {simulator, scheduler, controller, metrics}) {
            CHECK_EQUAL(ds_config_release(part), DS_STATUS_OK);
        }
    }
};

void end(ds_engine engine) {
    CHECK_EQUAL(ds_engine_close(engine), DS_STATUS_OK);
    CHECK_EQUAL(ds_engine_join(engine, -1), DS_STATUS_OK);
    CHECK_EQUAL(ds_engine_release(engine), DS_STATUS_OK);
}

void parts_live_while_something_is_composed_of_them() {
    const int64_t before = live();
    const Parts parts;
    const ds_config rollout = create(parts.rollout());
    parts.release();
    CHECK_EQUAL(live(), before + 5);
    ds_config scheduler;
    CHECK_EQUAL(ds_config_get_part(rollout, DS_CONFIG_SCHEDULER, &scheduler), DS_STATUS_OK);
    ds_engine engine;
    CHECK_EQUAL(ds_engine_create(rollout, nullptr, 0, &engine), DS_STATUS_OK);
    CHECK_EQUAL(ds_config_release(rollout), DS_STATUS_OK);
    CHECK_EQUAL(live(), before + 5);
    ds_config of_engine;
    CHECK_EQUAL(ds_engine_get_config(engine, &of_engine), DS_STATUS_OK);
    ds_rollout_config read;
    read.struct_size = sizeof read;
    CHECK_EQUAL(config_get(of_engine, &read), DS_STATUS_OK);
    CHECK_EQUAL(read.simulator, 0);
    CHECK_EQUAL(ds_config_release(of_engine), DS_STATUS_OK);
    end(engine);
    CHECK_EQUAL(live(), before + 1);  // the scheduler, which has a handle
    CHECK_EQUAL(ds_config_release(scheduler), DS_STATUS_OK);
    CHECK_EQUAL(ds_config_release(scheduler), DS_STATUS_CLOSED);
    CHECK_EQUAL(live(), before);
}

void a_part_that_is_not_given_is_the_default_one() {
    const int64_t before = live();
    const ds_config rollout = create(defaults_of<ds_rollout_config>());
    CHECK_EQUAL(live(), before + 5);
    ds_config part;
    CHECK_EQUAL(ds_config_get_part(rollout, DS_CONFIG_SCHEDULER, &part), DS_STATUS_OK);
    ds_scheduler_config read;
    read.struct_size = sizeof read;
    CHECK_EQUAL(config_get(part, &read), DS_STATUS_OK);
    const ds_scheduler_config expected = defaults_of<ds_scheduler_config>();
    CHECK_EQUAL(memcmp(&read, &expected, sizeof read), 0);
    CHECK_EQUAL(ds_config_release(part), DS_STATUS_OK);
    ds_engine engine;
    CHECK_EQUAL(ds_engine_create(rollout, nullptr, 0, &engine), DS_STATUS_OK);
    CHECK_EQUAL(ds_config_release(rollout), DS_STATUS_OK);
    end(engine);
    CHECK_EQUAL(live(), before);
}

void engines_record_in_the_store_that_they_are_given_or_their_own() {
    const Parts parts;
    const ds_config rollout = create(parts.rollout());
    ds_metrics given, of_engine;
    CHECK_EQUAL(ds_metrics_create(0, &given), DS_STATUS_OK);
    for (const ds_metrics metrics : {given, ds_metrics{0}}) {
        ds_engine engine;
        CHECK_EQUAL(ds_engine_create(rollout, nullptr, metrics, &engine), DS_STATUS_OK);
        CHECK_EQUAL(ds_engine_get_metrics(engine, &of_engine), DS_STATUS_OK);
        uint64_t of_given, of_own;
        CHECK_EQUAL(ds_metrics_num_series(given, &of_given), DS_STATUS_OK);
        CHECK_EQUAL(ds_metrics_num_series(of_engine, &of_own), DS_STATUS_OK);
        CHECK(of_given > 0 && of_own == of_given);
        CHECK_EQUAL(ds_metrics_release(of_engine), DS_STATUS_OK);
        end(engine);
    }
    CHECK_EQUAL(ds_config_release(rollout), DS_STATUS_OK);
    auto off = defaults_of<ds_metrics_config>();
    off.enabled = 0;
    const ConfigHandle silent(off);
    auto fields = parts.rollout();
    fields.metrics = silent;
    ds_engine engine;
    CHECK_EQUAL(ds_engine_create(ConfigHandle(fields), nullptr, 0, &engine), DS_STATUS_OK);
    CHECK_EQUAL(ds_engine_get_metrics(engine, &of_engine), DS_STATUS_OK);
    CHECK_EQUAL(of_engine, 0);
    end(engine);
    CHECK_EQUAL(ds_metrics_release(given), DS_STATUS_OK);
    CHECK_EQUAL(ds_engine_create(ConfigHandle(fields), nullptr, given, &engine), DS_STATUS_CLOSED);
    parts.release();
}

void parts_are_checked() {
    const int64_t before = live();
    const Parts parts;
    auto fields = parts.rollout();
    fields.scheduler = parts.controller;
    CHECK(is_refused(fields, "scheduler"));
    ds_config config;
    fields.scheduler = 1;
    CHECK_EQUAL(config_create(&fields, &config), DS_STATUS_CLOSED);
    fields = parts.rollout();
    fields.num_devices = DS_MAX_REPLICAS + 1;
    CHECK(is_refused(fields, "num_devices"));
    fields.num_devices = 2;
    fields.devices[1].kind = 9;
    CHECK(is_refused(fields, "device_kind"));
    CHECK_EQUAL(ds_config_get_part(parts.scheduler, DS_CONFIG_SIMULATOR, &config), DS_STATUS_INVALID_ARGUMENT);
    ds_engine engine;
    CHECK_EQUAL(ds_engine_create(parts.simulator, nullptr, 0, &engine), DS_STATUS_INVALID_ARGUMENT);
    parts.release();
    CHECK_EQUAL(live(), before);
}

void a_replicas_queue_is_not_deeper_than_the_engines() {
    const Parts parts(DS_CONTROLLER_ROUND_ROBIN);  // of depth 4096
    auto fields = parts.rollout();
    fields.queue_capacity = 4095;
    CHECK(is_refused(fields, "controller"));
    fields.queue_capacity = 4096;
    CHECK_EQUAL(ds_config_release(create(fields)), DS_STATUS_OK);
    parts.release();
}

void kinds_and_structs_are_checked() {
    ds_scheduler_config fields = defaults_of<ds_scheduler_config>();
    ds_sampling_config others = defaults_of<ds_sampling_config>();
    ds_config config;
    fields.struct_size = 8;
    CHECK(is_refused(fields, "fields"));
    CHECK_EQUAL(ds_scheduler_config_create(nullptr, &config), DS_STATUS_INVALID_ARGUMENT);
    int32_t kind;
    CHECK_EQUAL(ds_config_get_kind(1, &kind), DS_STATUS_CLOSED);
    CHECK_EQUAL(config_get(1, &others), DS_STATUS_CLOSED);
    const ConfigHandle scheduler(defaults_of<ds_scheduler_config>());
    CHECK_EQUAL(ds_config_get_kind(scheduler, &kind), DS_STATUS_OK);
    CHECK_EQUAL(kind, DS_CONFIG_SCHEDULER);
    CHECK_EQUAL(config_get(scheduler, &others), DS_STATUS_INVALID_ARGUMENT);
    CHECK(last_error_names("config"));
}

}  // namespace

int main() {
    RUN(integers_have_the_limits_of_their_tables);
    RUN(numbers_have_limits);
    RUN(rules_of_several_fields_are_checked);
    RUN(parts_live_while_something_is_composed_of_them);
    RUN(a_part_that_is_not_given_is_the_default_one);
    RUN(engines_record_in_the_store_that_they_are_given_or_their_own);
    RUN(parts_are_checked);
    RUN(a_replicas_queue_is_not_deeper_than_the_engines);
    RUN(kinds_and_structs_are_checked);
    CHECK_EQUAL(live(), 0);
    return 0;
}
