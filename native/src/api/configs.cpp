// Configurations with handles.
#include "api/call.h"

#include <string.h>

#include <new>

#include "sim/observation_layout.h"

namespace doorstep {
namespace {

// ---- Defaults

#define DS_DEFAULT(kind, name, value, ...) DS_DEFAULT_##kind(name, value)
#define DS_DEFAULT_INTEGER(name, value) fields->name = value;
#define DS_DEFAULT_REQUIRED DS_DEFAULT_INTEGER
#define DS_DEFAULT_OPTIONAL DS_DEFAULT_INTEGER
#define DS_DEFAULT_NUMBER DS_DEFAULT_INTEGER
#define DS_DEFAULT_POSITIVE DS_DEFAULT_INTEGER
#define DS_DEFAULT_FLAG DS_DEFAULT_INTEGER
#define DS_DEFAULT_CHOICE DS_DEFAULT_INTEGER
#define DS_DEFAULT_TYPE DS_DEFAULT_INTEGER
#define DS_DEFAULT_DEVICE(name, value) fields->name##_kind = value;
#define DS_DEFAULT_DEVICES(name, value) fields->num_##name = value;
#define DS_DEFAULT_OBSERVATIONS(name, value) fields->name = first_parts(value);
#define DS_DEFAULT_PART DS_DEFAULT_INTEGER

using doorstep::check_fields;
using doorstep::set_defaults;

template <class Struct>
void clear(Struct* fields) {
    *fields = {};
    fields->struct_size = sizeof *fields;
}

void set_defaults(ds_sampling_config* fields) {
    clear(fields);
    DS_SAMPLING_CONFIG_TABLE(DS_DEFAULT)
}

void set_defaults(ds_scheduler_config* fields) {
    clear(fields);
    DS_SCHEDULER_CONFIG_TABLE(DS_DEFAULT)
}

void set_defaults(ds_controller_config* fields) {
    clear(fields);
    DS_CONTROLLER_CONFIG_TABLE(DS_DEFAULT)
}

void set_defaults(ds_metrics_config* fields) {
    clear(fields);
    DS_METRICS_CONFIG_TABLE(DS_DEFAULT)
}

void set_defaults(ds_rollout_config* fields) {
    clear(fields);
    DS_ROLLOUT_CONFIG_TABLE(DS_DEFAULT)
}

// ---- Checks

ds_status check_number(const char* name, const char* remedy, double value, double low, double high) {
    if (value >= low && value <= high) return DS_STATUS_OK;
    if (high >= DS_NO_LIMIT) {
        return fail(DS_STATUS_INVALID_ARGUMENT, name, remedy, "%s is %g; it must be a number, at least %g", name, value,
                    low);
    }
    return fail(DS_STATUS_INVALID_ARGUMENT, name, remedy, "%s is %g; it must be %g to %g", name, value, low, high);
}

ds_status check_positive(const char* name, const char* remedy, double value, double high) {
    if (value > 0 && value <= high) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, name, remedy, "%s is %g; it must be above 0, at most %g", name, value, high);
}

// Unlike a simulator, a configuration may leave open which GPU it is.
ds_status check_device_or_current(int32_t kind, int64_t index) {
    const bool is_open = kind == DS_DEVICE_CUDA && index == DS_DEVICE_INDEX_CURRENT;
    return is_open ? DS_STATUS_OK : check_device(kind, index, DS_DEVICE_AUTO);
}

ds_status check_devices(const ds_device* devices, int32_t count, const char* remedy) {
    if (const ds_status status = check_range("num_devices", remedy, count, 0, DS_MAX_REPLICAS)) return status;
    for (int32_t i = 0; i < count; ++i) {
        if (const ds_status status = check_device_or_current(devices[i].kind, devices[i].index)) return status;
    }
    return DS_STATUS_OK;
}

#define DS_CHECK(kind, name, value, low, high, of, unit, sentence, remedy) \
    if (const ds_status status = DS_CHECK_##kind(name, low, high, remedy)) return status;
#define DS_CHECK_INTEGER(name, low, high, remedy) check_range(#name, remedy, fields.name, low, high)
#define DS_CHECK_REQUIRED DS_CHECK_INTEGER
#define DS_CHECK_OPTIONAL(name, low, high, remedy) check_range(#name, remedy, fields.name, low - 1, high)
#define DS_CHECK_NUMBER(name, low, high, remedy) check_number(#name, remedy, fields.name, low, high)
#define DS_CHECK_POSITIVE(name, low, high, remedy) check_positive(#name, remedy, fields.name, high)
#define DS_CHECK_FLAG DS_CHECK_INTEGER
#define DS_CHECK_CHOICE DS_CHECK_INTEGER
#define DS_CHECK_TYPE DS_CHECK_INTEGER
#define DS_CHECK_DEVICE(name, low, high, remedy) check_device_or_current(fields.name##_kind, fields.name##_index)
#define DS_CHECK_DEVICES(name, low, high, remedy) check_devices(fields.name, fields.num_##name, remedy)
#define DS_CHECK_OBSERVATIONS(name, low, high, remedy) check_observations(fields.name, fields.num_agents, remedy)
#define DS_CHECK_PART(name, low, high, remedy) DS_STATUS_OK  // find_parts() checks it

ds_status check_fields(const ds_sampling_config& fields) {
    DS_SAMPLING_CONFIG_TABLE(DS_CHECK)
    return DS_STATUS_OK;
}

ds_status check_fields(const ds_scheduler_config& fields) {
    DS_SCHEDULER_CONFIG_TABLE(DS_CHECK)
    return DS_STATUS_OK;
}

ds_status check_fields(const ds_controller_config& fields) {
    DS_CONTROLLER_CONFIG_TABLE(DS_CHECK)
    return DS_STATUS_OK;
}

ds_status check_fields(const ds_metrics_config& fields) {
    DS_METRICS_CONFIG_TABLE(DS_CHECK)
    if (fields.enabled || fields.trace == 0) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, "trace", "", "trace is %ld; it must be 0 where enabled is 0", fields.trace);
}

ds_status check_fields(const ds_rollout_config& fields) {
    DS_ROLLOUT_CONFIG_TABLE(DS_CHECK)
    return DS_STATUS_OK;
}

// ---- Parts

template <class Struct>
ds_status find_parts(Struct&, Config::Parts&) {
    return DS_STATUS_OK;
}

ds_status find_parts(ds_simulator_config& fields, Config::Parts&) {
    if (fields.stream == DS_STREAM_OWN) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, "stream", "pass DS_STREAM_OWN",
                "a stream is given, which can be used by one simulator only, and no part of a configuration");
}

template <class Struct>
Ref<Config> default_config(ds_config_kind kind) {
    Config::Fields fields = {};
    set_defaults(new (&fields) Struct);
    Config::Parts parts;
    Ref<Config> made = Ref<Config>::adopt(new (std::nothrow) Config(kind, fields, parts));
    if (!made) fail_memory("a configuration");
    return made;
}

// Handles of the caller's end; references take their place.
ds_status find_parts(ds_rollout_config& fields, Config::Parts& parts) {
#define DS_FIND(kind, name, value, low, ...) DS_FIND_##kind(name, low)
#define DS_FIND_PART(name, low)                                                                                       \
    parts[low] = fields.name ? find_config(fields.name, low, #name) : default_config<ds_##name##_config>(low);        \
    if (!parts[low]) return last_status();                                                                            \
    fields.name = 0;
#define DS_FIND_INTEGER(name, low)
#define DS_FIND_DEVICES(name, low)
    DS_ROLLOUT_CONFIG_TABLE(DS_FIND)
    return DS_STATUS_OK;
}

// ---- Every kind

template <class Struct>
ds_status fill_defaults(Struct* fields) {
    Results<Struct> results(fields, "fields");
    if (results.status()) return results.status();
    set_defaults(results.fields());
    return results.give();
}

template <class Struct>
ds_status create(ds_config_kind kind, const Struct* fields, ds_config* config) {
    if (!config) return fail_null("config");
    Struct defaults;
    set_defaults(&defaults);
    const Given<Struct> given(fields, "fields", defaults);
    if (given.status()) return given.status();
    if (const ds_status status = check_fields(*given)) return status;
    Config::Fields copy = {};
    Struct& copied = *new (&copy) Struct(*given);
    Config::Parts parts;
    if (const ds_status status = find_parts(copied, parts)) return status;
    return give(configs, Ref<Config>::adopt(new (std::nothrow) Config(kind, copy, parts)), "a configuration", config);
}

template <class Struct>
ds_status read(ds_config_kind kind, ds_config config, Struct* fields) {
    const Ref<Config> found = find_config(config, kind, "config");
    if (!found) return last_status();
    Results<Struct> results(fields, "fields");
    if (results.status()) return results.status();
    memcpy(results.fields(), found->fields(), sizeof(Struct));
    return results.give();
}

// By ds_config_kind.
constexpr const char* kKindNames[] = {
    "a simulator's configuration",  "a sampling configuration", "a scheduler's configuration",
    "a controller's configuration", "a metrics configuration",  "an engine's configuration"};

ds_status check_kind(int32_t kind) {
    return check_range("kind", "pass a ds_config_kind", kind, DS_CONFIG_SIMULATOR, DS_CONFIG_ROLLOUT);
}

}  // namespace

void set_defaults(ds_simulator_config* fields) {
    clear(fields);
    DS_SIMULATOR_CONFIG_TABLE(DS_DEFAULT)
    fields->stream = DS_STREAM_OWN;
}

ds_status check_fields(const ds_simulator_config& fields) {
    DS_SIMULATOR_CONFIG_TABLE(DS_CHECK)
    return check_world_offset(fields.world_offset, fields.num_worlds);
}

Ref<Config> find_config(ds_config handle, ds_config_kind kind, const char* argument) {
    Ref<Config> found = configs.find(handle, argument);
    if (found && found->kind() != kind) {
        fail_handle_kind(argument, kKindNames[found->kind()], kKindNames[kind]);
        return {};
    }
    return found;
}

}  // namespace doorstep

using namespace doorstep;

#define DS_CONFIG_FUNCTIONS(name, kind)                                                                               \
    ds_status ds_##name##_config_default(ds_##name##_config* fields) { return fill_defaults(fields); }                \
    ds_status ds_##name##_config_create(const ds_##name##_config* fields, ds_config* config) {                        \
        return create(kind, fields, config);                                                                          \
    }                                                                                                                 \
    ds_status ds_##name##_config_get(ds_config config, ds_##name##_config* fields) { return read(kind, config, fields); }
DS_CONFIG_FUNCTIONS(simulator, DS_CONFIG_SIMULATOR)
DS_CONFIG_FUNCTIONS(sampling, DS_CONFIG_SAMPLING)
DS_CONFIG_FUNCTIONS(scheduler, DS_CONFIG_SCHEDULER)
DS_CONFIG_FUNCTIONS(controller, DS_CONFIG_CONTROLLER)
DS_CONFIG_FUNCTIONS(metrics, DS_CONFIG_METRICS)
DS_CONFIG_FUNCTIONS(rollout, DS_CONFIG_ROLLOUT)
#undef DS_CONFIG_FUNCTIONS

ds_status ds_config_release(ds_config config) {
    return configs.release(config, "config");
}

ds_status ds_config_get_kind(ds_config config, int32_t* kind) {
    if (!kind) return fail_null("kind");
    const Ref<Config> found = configs.find(config, "config");
    if (!found) return last_status();
    *kind = found->kind();
    return DS_STATUS_OK;
}

ds_status ds_config_get_part(ds_config config, int32_t kind, ds_config* part) {
    if (const ds_status status = check_kind(kind)) return status;
    if (!part) return fail_null("part");
    const Ref<Config> found = configs.find(config, "config");
    if (!found) return last_status();
    const Ref<Config> wanted = found->part(static_cast<ds_config_kind>(kind));
    if (wanted) return give(configs, wanted, "a configuration", part);
    return fail(DS_STATUS_INVALID_ARGUMENT, "kind", "", "%s is not composed of %s",
                kKindNames[found->kind()], kKindNames[kind]);
}
