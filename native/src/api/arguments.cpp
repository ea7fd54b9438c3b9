#include "api/arguments.h"

#include "runtime/machine.h"
#include "sim/observation_layout.h"

namespace doorstep {
namespace {

ds_status fail_description(const char* what) {
    return fail(DS_STATUS_INVALID_ARGUMENT, "info", "pass a struct filled by ds_simulator_get_tensor or _get_state",
                "the tensor description has %s", what);
}

// A stride of zero allows more elements than the memory can contain.
bool is_countable(const ds_tensor_info& info) {
    int64_t elements = 4;
    for (int axis = 0; axis < info.rank; ++axis) {
        if (__builtin_mul_overflow(elements, info.shape[axis], &elements)) return false;
    }
    return true;
}

// No tensor of a simulator has wider elements.
bool is_dtype_of_tensors(int32_t dtype) { return dtype >= 0 && dtype < DS_DTYPE_COUNT && dtype_bytes(dtype) <= 4; }

}  // namespace

ds_status check_cpu() {
    if (cpu_features().sufficient()) return DS_STATUS_OK;
    return fail(DS_STATUS_DEVICE, "", "use a CPU of 2013 (Intel Haswell), 2017 (AMD Zen) or later, and an operating "
                "system or virtual machine that exposes its features",
                "this CPU lacks features that doorstep needs (all of these must be 1): %s", cpu_features_text());
}

ds_status check_flag(const char* argument, int64_t value) { return check_range(argument, "pass 0 or 1", value, 0, 1); }

ds_status check_bytes(uint64_t bytes) {
    if (bytes) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, "bytes", "request at least one byte", "bytes is 0");
}

// ---- The rules of worlds

// The integers of DS_SIMULATOR_CONFIG_TABLE by name.
namespace of_simulators {
struct Rule {
    const char* name;
    int64_t low, high;
    const char* remedy;

    ds_status check(int64_t value) const { return check_range(name, remedy, value, low, high); }
};
#define DS_RULE(kind, name, value, low, high, of, unit, sentence, remedy) DS_RULE_##kind(name, low, high, remedy)
#define DS_RULE_INTEGER(name, low, high, remedy) [[maybe_unused]] constexpr Rule name = {#name, low, high, remedy};
#define DS_RULE_REQUIRED DS_RULE_INTEGER
#define DS_RULE_OPTIONAL(name, low, high, remedy)
#define DS_RULE_FLAG(name, low, high, remedy)
#define DS_RULE_CHOICE(name, low, high, remedy)
#define DS_RULE_DEVICE(name, low, high, remedy)
#define DS_RULE_OBSERVATIONS(name, low, high, remedy)
DS_SIMULATOR_CONFIG_TABLE(DS_RULE)
}  // namespace of_simulators

ds_status check_num_worlds(int64_t num_worlds) { return of_simulators::num_worlds.check(num_worlds); }

ds_status check_num_agents(int64_t num_agents) { return of_simulators::num_agents.check(num_agents); }

ds_status check_episode_length(int64_t episode_length) { return of_simulators::episode_length.check(episode_length); }

ds_status check_seed(int64_t seed) { return of_simulators::seed.check(seed); }

ds_status check_world_offset(int64_t world_offset, int64_t num_worlds) {
    return check_range("world_offset", "world_offset + num_worlds is at most 2**32", world_offset, 0,
                       DS_MAX_GLOBAL_WORLDS - num_worlds);
}

ds_status check_observations(const ds_observations& observations, int64_t num_agents, const char* remedy) {
    if (const ds_status status = check_range("observations.num_parts", remedy, observations.num_parts, 0,
                                             DS_OBSERVATION_PART_COUNT)) {
        return status;
    }
    constexpr double kLargest = DS_MAX_OBSERVATION_SCALE;
    for (int i = 0; i < observations.num_parts; ++i) {
        const int32_t part = observations.parts[i];
        const double scale = static_cast<double>(observations.scales[i]);
        const int64_t last = DS_OBSERVATION_PART_COUNT - 1;
        if (const ds_status status = check_range("observations.parts", remedy, part, 0, last)) return status;
        if (!(scale > 0 && scale <= kLargest)) {
            return fail(DS_STATUS_INVALID_ARGUMENT, "observations.scales", remedy,
                        "observations.scales[%d] is %g; it must be above 0, at most %g", i, scale, kLargest);
        }
        for (int earlier = 0; earlier < i; ++earlier) {
            if (observations.parts[earlier] != part) continue;
            return fail(DS_STATUS_INVALID_ARGUMENT, "observations.parts", remedy,
                        "observations.parts has %d twice; it must have each part at most once", part);
        }
    }
    if (observations.num_parts == 0 || flat_size(observations, static_cast<int>(num_agents)) > 0) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, "observations.parts", "add another part",
                "observations.parts is partner_observations alone, which have no values with one agent");
}

ds_status check_device(int32_t kind, int64_t index, ds_device_kind last_kind) {
    const char* hint = last_kind == DS_DEVICE_AUTO ? "pass a ds_device_kind" : "pass DS_DEVICE_CPU or DS_DEVICE_CUDA";
    if (const ds_status status = check_range("device_kind", hint, kind, DS_DEVICE_CPU, last_kind)) return status;
    return check_range("device_index", "the CPU is one device", index, 0, kind == DS_DEVICE_CPU ? 0 : INT32_MAX);
}

ds_status check_sampling(const ds_sampling& sampling) {
    const double temperature = static_cast<double>(sampling.temperature), top_p = static_cast<double>(sampling.top_p);
    if (!(temperature >= 0 && temperature <= DS_NO_LIMIT)) {
        return fail(DS_STATUS_INVALID_ARGUMENT, "sampling", "0 chooses the most likely actions",
                    "sampling.temperature is %g; it must be a number, at least 0", temperature);
    }
    if (temperature == 0 || (top_p > 0 && top_p <= 1)) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, "sampling", "1 draws from all values",
                "sampling.top_p is %g; it must be more than 0, at most 1", top_p);
}

// ---- Tensors

ds_status check_tensor(const Simulator& simulator, int64_t tensor) {
    if (const ds_status status = check_range("tensor", "pass a ds_tensor_id", tensor, 0, DS_TENSOR_COUNT - 1)) {
        return status;
    }
    if (simulator.has_tensor(static_cast<int>(tensor))) return DS_STATUS_OK;
    const bool flat = kTensorRows[tensor].presence == Presence::FLAT;
    return fail(DS_STATUS_INVALID_ARGUMENT, "tensor",
                flat ? "create the simulator with observations" : "create the simulator with max_levels",
                "this simulator has no tensor %s", kTensorRows[tensor].name);
}

ds_status check_description(const Memory& memory, const ds_tensor_info& info) {
    if (!is_dtype_of_tensors(info.dtype)) return fail_description("an unknown dtype");
    if (info.access != DS_ACCESS_READ && info.access != DS_ACCESS_READ_WRITE) {
        return fail_description("an unknown access");
    }
    if (info.rank < 0 || info.rank > DS_MAX_DIMENSIONS) return fail_description("a rank outside 0 to 5");
    const int64_t bytes = tensor_extent(info);
    if (bytes < 0 || !is_countable(info)) return fail_description("an impossible shape or strides");
    if (!memory.contains(info.data, bytes)) return fail_description("elements outside the memory");
    return memory.check();
}

}  // namespace doorstep
