// Batches as custom calls of XLA: the handlers that jax.ffi registers. Both kinds take one attribute, "rules", an array
// of int64, and return worlds, scratch memory and the outputs that the rules list. Tensors that are not outputs are
// placed in the scratch memory.
//
//     create(seed_and_offset u32[2][, level_weights, table])          -> worlds, scratch, outputs...
//     step(worlds, actions[, resets][, level_weights, table], kept outputs...) -> worlds, scratch, outputs...
//
// worlds: u32[N, words of a block]; scratch: u8[bytes]; level_weights: f32[N, L]; table: u32[L, words of a ds_level].
// Worlds, and outputs that step() takes, are aliased with the arguments. The other arguments are not written. Kept
// outputs are those that outlive a step.
#include <stdio.h>
#include <string.h>

#include "doorstep/python.h"
#include "interop/xla/xla_ffi.h"
#include "math/base.h"
#include "runtime/status.h"

namespace doorstep::xla {
namespace {

constexpr int kRewardTerms = sizeof(ds_level_rewards) / sizeof(float);

enum Rule {
    kRuleDeviceKind,
    kRuleNumAgents,
    kRuleEpisodeLength,
    kRuleAutoReset,
    kRuleActionCheck,
    kRuleInputs,       // what a call takes: kInputResets, kInputLevels, kInputReward
    kRuleReward,       // bits of the numbers of ds_level_rewards; not used without kInputReward
    kRuleNumParts = kRuleReward + kRewardTerms,        // of observations
    kRuleParts,                                        // ds_observation_parts
    kRuleScales = kRuleParts + DS_OBSERVATION_PART_COUNT,  // bits of their scales
    kRuleFirstOutput = kRuleScales + DS_OBSERVATION_PART_COUNT,  // the rest are ds_tensor_ids of outputs
};

enum Input : int64_t { kInputResets = 1, kInputLevels = 2, kInputReward = 4 };

// ---- Inputs

// XLA's type of each ds_dtype.
constexpr DataType xla_type(double) { return kF64; }
constexpr DataType xla_type(float) { return kF32; }
constexpr DataType xla_type(int32_t) { return kS32; }
constexpr DataType xla_type(uint32_t) { return kU32; }
constexpr DataType xla_type(uint8_t) { return kU8; }
constexpr struct {
    DataType type;
    int64_t bytes;
} kDataTypes[] = {
#define DS_XLA_TYPE(name, number, type, dlpack_code) {xla_type(type{}), sizeof(type)},
    DS_DTYPE_TABLE(DS_XLA_TYPE)
#undef DS_XLA_TYPE
};

enum class Presence { ALWAYS, FLAT, LEVELS };
enum class Lifetime { STEP, EPISODE };

struct TensorRow {
    const char* name;
    ds_dtype dtype;
    const char* shape;  // "N,A,4"
    Presence presence;
    Lifetime lifetime;
};

constexpr TensorRow kTensorRows[DS_TENSOR_COUNT] = {
#define DS_ROW(name, dtype, shape, access, presence, lifetime, saving, sentence) \
    {#name, DS_DTYPE_##dtype, shape, Presence::presence, Lifetime::lifetime},
    DS_TENSOR_TABLE(DS_ROW)
#undef DS_ROW
};

// Elements of a world's row: the product of "A", "A-1", "F" and numbers. The row of level_weights is not asked for.
constexpr int64_t row_elements(const char* shape, int64_t num_agents, int64_t flat_size) {
    int64_t elements = 1;
    for (const char* at = shape; *at; ++at) {
        if (*at == 'A') elements *= at[1] == '-' ? num_agents - 1 : num_agents;
        if (*at == 'F') elements *= flat_size;
        if (*at < '0' || *at > '9' || at[-1] == '-') continue;
        int64_t number = *at - '0';
        while (at[1] >= '0' && at[1] <= '9') number = 10 * number + *++at - '0';
        elements *= number;
    }
    return elements;
}
static_assert(row_elements("N,A,30,2", 3, 0) == 180 && row_elements("N,A,A-1,3", 3, 0) == 18);
static_assert(row_elements("N,A,F", 2, 94) == 188 && row_elements("N,1", 4, 0) == 1);

int64_t count_elements(const Buffer& buffer) {
    DS_ASSERT(buffer.rank >= 0);
    int64_t elements = 1;
    for (int64_t axis = 0; axis < buffer.rank; ++axis) elements *= buffer.dims[axis];
    return elements;
}

ds_status fail_call(const char* argument, const char* what) {
    return fail(DS_STATUS_INVALID_ARGUMENT, argument, "call it through doorstep.jax", "%s: %s", argument, what);
}

// Iterates over the arguments or results of a call.
class Buffers {
public:
    Buffers(void* const* buffers, int64_t size) : buffers_(buffers), left_(size) {}

    // Null, with the error set, unless the next one has this type and number of elements.
    const Buffer* take(const char* name, DataType dtype, int64_t elements) {
        DS_ASSERT(name && elements >= 0);
        const Buffer* buffer = next();
        if (!buffer) {
            fail_call(name, "missing");
            return nullptr;
        }
        if (buffer->dtype != dtype || count_elements(*buffer) != elements) {
            fail_call(name, "wrong element type or shape");
            return nullptr;
        }
        return buffer;
    }
    const Buffer* next() { return left_-- > 0 ? static_cast<const Buffer*>(*buffers_++) : nullptr; }
    int64_t left() const { return left_; }

private:
    void* const* buffers_;
    int64_t left_;
};

// ---- A call as a batch

struct BatchCall {
    ds_batch batch = {};
    ds_level_rewards reward = {};
    ds_observations observations = {};
    void* tensors[DS_TENSOR_COUNT] = {};
    ds_batch_info info = {};  // of a batch of one world on the CPU
    const int64_t* rules = nullptr;
    int64_t num_rules = 0;
    const int32_t* actions = nullptr;
    const int32_t* resets = nullptr;
    const uint32_t* seed_and_offset = nullptr;

    bool takes(Input input) const { return (rules[kRuleInputs] & input) != 0; }

    int64_t words_of_world() const { return info.world_bytes / static_cast<int64_t>(sizeof(uint32_t)); }
    int64_t elements_of(int64_t tensor) const {
        DS_ASSERT(tensor >= 0 && tensor < DS_TENSOR_COUNT && tensor != DS_TENSOR_level_weights);
        return batch.num_worlds * row_elements(kTensorRows[tensor].shape, batch.num_agents, info.flat_observation_size);
    }
    int64_t bytes_of(int64_t tensor) const { return elements_of(tensor) * kDataTypes[kTensorRows[tensor].dtype].bytes; }
};

void take_reward(BatchCall* call) {
    DS_ASSERT(call->takes(kInputReward) && call->num_rules >= kRuleFirstOutput);
    uint32_t bits[kRewardTerms];
    for (int i = 0; i < kRewardTerms; ++i) bits[i] = static_cast<uint32_t>(call->rules[kRuleReward + i]);
    memcpy(&call->reward, bits, sizeof bits);
    call->batch.reward = &call->reward;
}

ds_status take_observations(BatchCall* call) {
    DS_ASSERT(call->num_rules >= kRuleFirstOutput);
    const int64_t* rules = call->rules;
    const int64_t count = rules[kRuleNumParts];
    if (count < 0 || count > DS_OBSERVATION_PART_COUNT) return fail_call("rules", "out of range");
    ds_observations& observations = call->observations;
    observations.num_parts = static_cast<int32_t>(count);
    for (int64_t i = 0; i < count; ++i) {
        const uint32_t bits = static_cast<uint32_t>(rules[kRuleScales + i]);
        observations.parts[i] = static_cast<int32_t>(rules[kRuleParts + i]);
        memcpy(&observations.scales[i], &bits, sizeof bits);
    }
    call->batch.observations = &observations;
    return DS_STATUS_OK;
}

ds_status describe_world(BatchCall* call) {
    DS_ASSERT(call->batch.num_agents >= 1 && call->batch.num_agents <= DS_MAX_AGENTS && call->batch.observations);
    ds_batch one = call->batch;
    one.device_kind = DS_DEVICE_CPU;
    one.num_worlds = 1;
    call->info.struct_size = sizeof call->info;
    return ds_batch_get_info(&one, &call->info);
}

ds_status read_rules(const CallFrame& frame, int32_t device_kind, BatchCall* call) {
    if (frame.attrs.size != 1 || frame.attrs.types[0] != kAttrArray) return fail_call("rules", "missing");
    const Array& array = *static_cast<const Array*>(frame.attrs.attrs[0]);
    if (array.dtype != kS64 || array.size < kRuleFirstOutput) return fail_call("rules", "wrong element type or shape");
    const int64_t* rules = static_cast<const int64_t*>(array.data);
    if (rules[kRuleDeviceKind] != device_kind) {
        return fail(DS_STATUS_DEVICE, "device",
                    device_kind == DS_DEVICE_CPU
                        ? "create the simulator with device=\"cpu\", or run this on a GPU"
                        : "create the simulator with device=\"cuda\", or run this within jax.default_device("
                          "jax.devices(\"cpu\")[0])",
                    "the simulator's device kind differs from this computation's");
    }
    if (rules[kRuleNumAgents] < 1 || rules[kRuleNumAgents] > DS_MAX_AGENTS) return fail_call("rules", "out of range");
    call->rules = rules;
    call->num_rules = static_cast<int64_t>(array.size);
    ds_batch& batch = call->batch;
    batch.struct_size = sizeof batch;
    batch.device_kind = device_kind;
    batch.num_agents = rules[kRuleNumAgents];
    batch.episode_length = rules[kRuleEpisodeLength];
    batch.auto_reset = static_cast<int32_t>(rules[kRuleAutoReset]);
    batch.action_check = static_cast<int32_t>(rules[kRuleActionCheck]);
    batch.max_levels = call->takes(kInputLevels);  // for the kind of the worlds; the arguments tell how many
    batch.tensors = call->tensors;
    if (call->takes(kInputReward)) take_reward(call);
    if (const ds_status status = take_observations(call)) return status;
    return describe_world(call);
}

// The number of worlds is the first dimension of the first result.
ds_status take_worlds(Buffers& results, BatchCall* call) {
    DS_ASSERT(call->info.world_bytes > 0 && call->info.world_bytes % sizeof(uint32_t) == 0);
    const Buffer* worlds = results.next();
    if (!worlds || worlds->dtype != kU32 || worlds->rank != 2 || worlds->dims[1] != call->words_of_world()) {
        return fail_call("worlds", "wrong element type or shape");
    }
    call->batch.worlds = worlds->data;
    call->batch.num_worlds = worlds->dims[0];
    return DS_STATUS_OK;
}

bool is_output(const ds_batch& batch, int64_t tensor) {
    if (tensor < 0 || tensor >= DS_TENSOR_COUNT || tensor == DS_TENSOR_level_weights) return false;
    return batch.max_levels > 0 || kTensorRows[tensor].presence != Presence::LEVELS;
}

ds_status take_outputs(Buffers& results, BatchCall* call) {
    for (int64_t i = kRuleFirstOutput; i < call->num_rules; ++i) {
        const int64_t tensor = call->rules[i];
        if (!is_output(call->batch, tensor)) return fail_call("rules", "out of range");
        const TensorRow& row = kTensorRows[tensor];
        const int64_t elements = call->elements_of(tensor);
        const Buffer* buffer = results.take(row.name, kDataTypes[row.dtype].type, elements);
        if (!buffer) return last_status();
        if (elements) call->tensors[tensor] = buffer->data;  // without elements it has no address
    }
    return results.left() == 0 ? DS_STATUS_OK : fail_call("outputs", "more than the rules list");
}

// Tensors that are not outputs are placed in the scratch memory, before the part that the device needs. XLA aligns it
// less than that part needs. Flat observations that are not outputs are not written.
ds_status use_scratch(const Buffer& scratch, BatchCall* call) {
    constexpr int64_t kAlignment = 256;
    ds_batch& batch = call->batch;
    DS_ASSERT(scratch.dtype == kU8 && batch.num_worlds >= 0);
    const int64_t gap = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(scratch.data) & (kAlignment - 1));
    int64_t left = count_elements(scratch) - gap;
    char* part = static_cast<char*>(scratch.data) + gap;
    for (int tensor = 0; tensor < DS_TENSOR_COUNT; ++tensor) {
        if (call->tensors[tensor] || kTensorRows[tensor].presence == Presence::FLAT) continue;
        if (!is_output(batch, tensor)) continue;
        const int64_t bytes = call->bytes_of(tensor);
        const int64_t rounded = (bytes + kAlignment - 1) & ~(kAlignment - 1);
        call->tensors[tensor] = part;
        part += rounded;
        left -= rounded;
    }
    DS_ASSERT(gap >= 0 && gap < kAlignment && reinterpret_cast<uintptr_t>(part) % kAlignment == 0);
    if (left < 0) return fail_call("scratch", "too small");
    if (batch.device_kind == DS_DEVICE_CUDA) {
        batch.scratch = part;
        batch.scratch_bytes = left;
    }
    return DS_STATUS_OK;
}

ds_status take_results(const CallFrame& frame, BatchCall* call) {
    Buffers results(frame.rets.rets, frame.rets.size);
    if (const ds_status status = take_worlds(results, call)) return status;
    const Buffer* scratch = results.next();
    if (!scratch || scratch->dtype != kU8) return fail_call("scratch", "missing");
    if (const ds_status status = take_outputs(results, call)) return status;
    return use_scratch(*scratch, call);
}

// Their number is that of the weights of a world.
ds_status take_levels(Buffers& arguments, BatchCall* call) {
    if (!call->takes(kInputLevels)) return DS_STATUS_OK;
    ds_batch& batch = call->batch;
    const Buffer* weights = arguments.next();
    if (!weights) return fail_call("level_weights", "missing");
    if (weights->dtype != kF32 || weights->rank != 2 || weights->dims[0] != batch.num_worlds || weights->dims[1] < 1 ||
        weights->dims[1] > DS_MAX_LEVELS) {
        return fail_call("level_weights", "wrong element type or shape");
    }
    batch.max_levels = weights->dims[1];
    call->tensors[DS_TENSOR_level_weights] = weights->data;
    const int64_t words = static_cast<int64_t>(sizeof(ds_level) / sizeof(uint32_t));
    const Buffer* table = arguments.take("levels", kU32, batch.max_levels * words);
    if (!table) return last_status();
    batch.levels = static_cast<const ds_level*>(table->data);
    return DS_STATUS_OK;
}

ds_status take_step_arguments(const CallFrame& frame, BatchCall* call) {
    Buffers arguments(frame.args.args, frame.args.size);
    const auto take = [&](int64_t tensor) {
        const TensorRow& row = kTensorRows[tensor];
        DS_ASSERT(row.dtype >= 0 && row.dtype < DS_DTYPE_COUNT);
        return arguments.take(row.name, kDataTypes[row.dtype].type, call->elements_of(tensor));
    };
    const Buffer* worlds = arguments.take("worlds", kU32, call->batch.num_worlds * call->words_of_world());
    if (!worlds) return last_status();
    if (worlds->data != call->batch.worlds) return fail_call("worlds", "must be aliased with the result");
    const Buffer* actions = take(DS_TENSOR_actions);
    if (!actions) return last_status();
    call->actions = static_cast<const int32_t*>(actions->data);
    if (call->takes(kInputResets)) {
        const Buffer* resets = take(DS_TENSOR_resets);
        if (!resets) return last_status();
        call->resets = static_cast<const int32_t*>(resets->data);
    }
    if (const ds_status status = take_levels(arguments, call)) return status;
    for (int64_t i = kRuleFirstOutput; i < call->num_rules; ++i) {
        const int64_t tensor = call->rules[i];
        if (kTensorRows[tensor].lifetime == Lifetime::STEP) continue;
        const Buffer* kept = take(tensor);
        if (!kept) return last_status();
        if (call->elements_of(tensor) && kept->data != call->tensors[tensor]) {
            return fail_call(kTensorRows[tensor].name, "must be aliased with the result");
        }
    }
    return arguments.left() == 0 ? DS_STATUS_OK : fail_call("arguments", "more than the rules list");
}

// ---- Errors

bool answer_metadata(CallFrame* frame, Handler_Traits traits) {
    for (Extension_Base* extension = frame->extension_start; extension; extension = extension->next) {
        if (extension->type != kExtensionMetadata) continue;
        DS_ASSERT(reinterpret_cast<Metadata_Extension*>(extension)->metadata);
        Metadata& metadata = *reinterpret_cast<Metadata_Extension*>(extension)->metadata;
        metadata.api_version.major_version = 0;
        metadata.api_version.minor_version = 1;
        metadata.traits = traits;
        return true;
    }
    return false;
}

Error_Code error_code(ds_status status) {
    switch (status) {
        case DS_STATUS_INVALID_ARGUMENT: return kErrorInvalidArgument;
        case DS_STATUS_INVALID_STATE: return kErrorFailedPrecondition;
        case DS_STATUS_OUT_OF_MEMORY: return kErrorResourceExhausted;
        default: return kErrorInternal;
    }
}

// Null if the status is OK.
Error* answer(const CallFrame& frame, ds_status status) {
    if (!status) return nullptr;
    DS_ASSERT(frame.api);
    ds_error error = {};
    error.struct_size = sizeof error;
    ds_last_error(&error);
    char message[1024];
    snprintf(message, sizeof message, "doorstep: %s (%s)", error.message, error.hint);
    Error_Create_Args args = {DS_XLA_STRUCT_SIZE(Error_Create_Args, errc), nullptr, message, error_code(status)};
    return frame.api->Error_Create(&args);
}

// ---- The handlers

ds_status read_create(const CallFrame& frame, int32_t device_kind, BatchCall* call) {
    if (const ds_status status = read_rules(frame, device_kind, call)) return status;
    if (const ds_status status = take_results(frame, call)) return status;
    Buffers arguments(frame.args.args, frame.args.size);
    const Buffer* words = arguments.take("seed_and_offset", kU32, 2);
    if (!words) return last_status();
    call->seed_and_offset = static_cast<const uint32_t*>(words->data);
    return take_levels(arguments, call);
}

ds_status read_step(const CallFrame& frame, int32_t device_kind, BatchCall* call) {
    if (const ds_status status = read_rules(frame, device_kind, call)) return status;
    if (const ds_status status = take_results(frame, call)) return status;
    return take_step_arguments(frame, call);
}

ds_status create(const BatchCall& call) { return ds_batch_create_from(&call.batch, call.seed_and_offset); }

ds_status step(const BatchCall& call) { return ds_batch_step_from(&call.batch, call.actions, call.resets); }

using Read = ds_status(const CallFrame&, int32_t device_kind, BatchCall*);
using Run = ds_status(const BatchCall&);

template <Read read, Run run>
Error* handle_on_cpu(CallFrame* frame) {
    if (answer_metadata(frame, 0)) return nullptr;
    BatchCall call;
    if (const ds_status status = read(*frame, DS_DEVICE_CPU, &call)) return answer(*frame, status);
    return answer(*frame, run(call));
}

Error* find_device(const CallFrame& frame, ds_batch* batch) {
    DeviceOrdinal_Get_Args args = {DS_XLA_STRUCT_SIZE(DeviceOrdinal_Get_Args, device_ordinal), nullptr, frame.ctx, 0};
    Error* error = frame.api->DeviceOrdinal_Get(&args);
    batch->device_index = args.device_ordinal;
    return error;
}

Error* find_stream(const CallFrame& frame, ds_batch* batch) {
    Stream_Get_Args args = {DS_XLA_STRUCT_SIZE(Stream_Get_Args, stream), nullptr, frame.ctx, nullptr};
    Error* error = frame.api->Stream_Get(&args);
    batch->stream = reinterpret_cast<uint64_t>(args.stream);
    return error;
}

template <Read read, Run run>
Error* handle_on_cuda(CallFrame* frame) {
    if (answer_metadata(frame, kCommandBufferCompatible)) return nullptr;
    BatchCall call;
    if (const ds_status status = read(*frame, DS_DEVICE_CUDA, &call)) return answer(*frame, status);
    if (Error* error = find_device(*frame, &call.batch)) return error;
    if (Error* error = find_stream(*frame, &call.batch)) return error;
    return answer(*frame, run(call));
}

// XLA's executables may exist until the process ends, and so do the kernels loaded for them.
Error* initialize_on_cuda(CallFrame* frame) {
    if (answer_metadata(frame, kCommandBufferCompatible)) return nullptr;
    BatchCall call;
    if (const ds_status status = read_rules(*frame, DS_DEVICE_CUDA, &call)) return answer(*frame, status);
    if (Error* error = find_device(*frame, &call.batch)) return error;
    return answer(*frame, ds_batch_prepare(&call.batch));
}

constexpr struct {
    const char* name;
    Handler* handler;
} kHandlers[] = {
    {"create_cpu", handle_on_cpu<read_create, create>},
    {"step_cpu", handle_on_cpu<read_step, step>},
    {"create_cuda", handle_on_cuda<read_create, create>},
    {"step_cuda", handle_on_cuda<read_step, step>},
    {"initialize_cuda", initialize_on_cuda},
};

}  // namespace
}  // namespace doorstep::xla

using namespace doorstep;

ds_status ds_xla_handler(const char* name, void** handler) {
    for (const auto& row : xla::kHandlers) {
        if (!name || !handler || strcmp(row.name, name) != 0) continue;
        *handler = reinterpret_cast<void*>(row.handler);
        return DS_STATUS_OK;
    }
    return fail(DS_STATUS_INVALID_ARGUMENT, "name", "see ds_xla_handler in doorstep/python.h", "no handler is named %.100s",
                name ? name : "null");
}
