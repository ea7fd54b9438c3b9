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

int64_t live() { return ::live(DS_LIVE_CONFIG); }

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

#define DS_CHECK_LIMITS(name, table)      \
    {                                     \
        using Fields = ds_##name##_config; \
        table(DS_LIMITS)                  \
    }

void integers_have_the_limits_of_their_tables() {
    DS_CHECK_LIMITS(simulator, DS_SIMULATOR_CONFIG_TABLE)
    DS_CHECK_LIMITS(sampling, DS_SAMPLING_CONFIG_TABLE)
    DS_CHECK_LIMITS(scheduler, DS_SCHEDULER_CONFIG_TABLE)
    DS_CHECK_LIMITS(controller, DS_CONTROLLER_CONFIG_TABLE)
    DS_CHECK_LIMITS(metrics, DS_METRICS_CONFIG_TABLE)
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
    ds_config controller = create(defaults_of<ds_controller_config>());
    ds_config metrics = create(defaults_of<ds_metrics_config>());

    ds_rollout_config rollout() const {
        auto fields = defaults_of<ds_rollout_config>();
        fields.simulator = simulator;
        fields.scheduler = scheduler;
        fields.controller = controller;
        fields.metrics = metrics;
        return fields;
    }
    void release() const {
        for (const ds_config part : {simulator, scheduler, controller, metrics})
            CHECK_EQUAL(ds_config_release(part), DS_STATUS_OK);
    }
};

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
    CHECK_EQUAL(ds_engine_close(engine), DS_STATUS_OK);
    CHECK_EQUAL(ds_engine_join(engine, -1), DS_STATUS_OK);
    CHECK_EQUAL(ds_engine_release(engine), DS_STATUS_OK);
    CHECK_EQUAL(live(), before + 1);  // the scheduler, which has a handle
    CHECK_EQUAL(ds_config_release(scheduler), DS_STATUS_OK);
    CHECK_EQUAL(ds_config_release(scheduler), DS_STATUS_CLOSED);
    CHECK_EQUAL(live(), before);
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
    RUN(rules_of_several_fields_are_checked);
    RUN(parts_live_while_something_is_composed_of_them);
    RUN(parts_are_checked);
    RUN(kinds_and_structs_are_checked);
    CHECK_EQUAL(live(), 0);
    return 0;
}
