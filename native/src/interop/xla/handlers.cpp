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

#include "doorstep.h"
#include "exec/batch.h"
#include "exec/tensors.h"
#include "interop/xla/xla_ffi.h"
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

// Sizes of one world, without level_weights, whose size is that of the argument, and without flat observations.
struct WorldSizes {
    int64_t words;                      // of its block
    int64_t elements[DS_TENSOR_COUNT];  // of its rows of the tensors
    int64_t bytes[DS_TENSOR_COUNT];     // likewise
};

struct AllWorldSizes {
    WorldSizes of[2 * kLevelKinds];  // by the number of the kind

    AllWorldSizes() {
        for (int agents = 1; agents <= DS_MAX_AGENTS; ++agents)
            for (const bool plays_levels : {false, true}) fill({agents, plays_levels});
    }

    void fill(WorldKind kind) {
        ds_batch batch = {};
        batch.struct_size = sizeof batch;
        batch.num_worlds = 1;
        batch.num_agents = kind.num_agents;
        batch.max_levels = kind.plays_levels;
        ds_batch_info info = {};
        info.struct_size = sizeof info;
        if (ds_batch_get_info(&batch, &info)) return;
        WorldSizes& sizes = of[number_of(kind)];
        sizes.words = info.world_bytes / 4;
        for (int tensor = 0; tensor < DS_TENSOR_COUNT; ++tensor) {
            ds_tensor_info row;
            describe_tensor(kTensorRows[tensor], {1, kind.num_agents, 0, 0}, &row);
            sizes.bytes[tensor] = tensor_bytes(row);
            sizes.elements[tensor] = tensor_bytes(row) / dtype_bytes(row.dtype);
        }
    }
};

const WorldSizes& sizes_of_world(WorldKind kind) {
    static const AllWorldSizes sizes;
    return sizes.of[number_of(kind)];
}

// XLA's type of each ds_dtype.
constexpr DataType xla_type(double) { return kF64; }
constexpr DataType xla_type(float) { return kF32; }
constexpr DataType xla_type(int32_t) { return kS32; }
constexpr DataType xla_type(uint32_t) { return kU32; }
constexpr DataType xla_type(uint8_t) { return kU8; }
constexpr DataType kDataTypes[] = {
#define DS_XLA_TYPE(name, number, type, dlpack_code) xla_type(type{}),
    DS_DTYPE_TABLE(DS_XLA_TYPE)
#undef DS_XLA_TYPE
};

int64_t count_elements(const Buffer& buffer) {
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
    const int64_t* rules = nullptr;
    int64_t num_rules = 0;
    const int32_t* actions = nullptr;
    const int32_t* resets = nullptr;
    const uint32_t* seed_and_offset = nullptr;

    bool takes(Input input) const { return (rules[kRuleInputs] & input) != 0; }

    // Of a world's row of a tensor.
    int64_t elements_of(const WorldSizes& sizes, int64_t tensor) const {
        const bool is_flat = kTensorRows[tensor].presence == Presence::FLAT;
        return is_flat ? batch.num_agents * layout_of(batch).size : sizes.elements[tensor];
    }
};

void take_reward(BatchCall* call) {
    uint32_t bits[kRewardTerms];
    for (int i = 0; i < kRewardTerms; ++i) bits[i] = static_cast<uint32_t>(call->rules[kRuleReward + i]);
    memcpy(&call->reward, bits, sizeof bits);
    call->batch.reward = &call->reward;
}

ds_status take_observations(BatchCall* call) {
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
    return take_observations(call);
}

// The number of worlds is the first dimension of the first result.
ds_status take_worlds(Buffers& results, const WorldSizes& sizes, BatchCall* call) {
    const Buffer* worlds = results.next();
    if (!worlds || worlds->dtype != kU32 || worlds->rank != 2 || worlds->dims[1] != sizes.words) {
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

ds_status take_outputs(Buffers& results, const WorldSizes& sizes, BatchCall* call) {
    for (int64_t i = kRuleFirstOutput; i < call->num_rules; ++i) {
        const int64_t tensor = call->rules[i];
        if (!is_output(call->batch, tensor)) return fail_call("rules", "out of range");
        const TensorRow& row = kTensorRows[tensor];
        const int64_t elements = call->batch.num_worlds * call->elements_of(sizes, tensor);
        const Buffer* buffer = results.take(row.name, kDataTypes[row.dtype], elements);
        if (!buffer) return last_status();
        if (elements) call->tensors[tensor] = buffer->data;  // without elements it has no address
    }
    return results.left() == 0 ? DS_STATUS_OK : fail_call("outputs", "more than the rules list");
}

// Tensors that are not outputs are placed in the scratch memory, before the part that the device needs. XLA aligns it
// less than that part needs. Flat observations that are not outputs are not written.
ds_status use_scratch(const Buffer& scratch, const WorldSizes& sizes, BatchCall* call) {
    constexpr int64_t kAlignment = 256;
    ds_batch& batch = call->batch;
    const int64_t gap = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(scratch.data) & (kAlignment - 1));
    int64_t left = count_elements(scratch) - gap;
    char* part = static_cast<char*>(scratch.data) + gap;
    for (int tensor = 0; tensor < DS_TENSOR_COUNT; ++tensor) {
        if (call->tensors[tensor] || kTensorRows[tensor].presence == Presence::FLAT) continue;
        if (!is_output(batch, tensor)) continue;
        const int64_t bytes = batch.num_worlds * sizes.bytes[tensor];
        const int64_t rounded = (bytes + kAlignment - 1) & ~(kAlignment - 1);
        call->tensors[tensor] = part;
        part += rounded;
        left -= rounded;
    }
    if (left < 0) return fail_call("scratch", "too small");
    if (batch.device_kind == DS_DEVICE_CUDA) {
        batch.scratch = part;
        batch.scratch_bytes = left;
    }
    return DS_STATUS_OK;
}

ds_status take_results(const CallFrame& frame, const WorldSizes& sizes, BatchCall* call) {
    Buffers results(frame.rets.rets, frame.rets.size);
    if (const ds_status status = take_worlds(results, sizes, call)) return status;
    const Buffer* scratch = results.next();
    if (!scratch || scratch->dtype != kU8) return fail_call("scratch", "missing");
    if (const ds_status status = take_outputs(results, sizes, call)) return status;
    return use_scratch(*scratch, sizes, call);
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

ds_status take_step_arguments(const CallFrame& frame, const WorldSizes& sizes, BatchCall* call) {
    Buffers arguments(frame.args.args, frame.args.size);
    const int64_t num_worlds = call->batch.num_worlds;
    const auto take = [&](int64_t tensor) {
        const TensorRow& row = kTensorRows[tensor];
        return arguments.take(row.name, kDataTypes[row.dtype], num_worlds * call->elements_of(sizes, tensor));
    };
    const Buffer* worlds = arguments.take("worlds", kU32, num_worlds * sizes.words);
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
        if (!kTensorRows[tensor].outlives_step) continue;
        const Buffer* kept = take(tensor);
        if (!kept) return last_status();
        if (call->elements_of(sizes, tensor) && kept->data != call->tensors[tensor]) {
            return fail_call(kTensorRows[tensor].name, "must be aliased with the result");
        }
    }
    return arguments.left() == 0 ? DS_STATUS_OK : fail_call("arguments", "more than the rules list");
}

// ---- Errors

bool answer_metadata(CallFrame* frame, Handler_Traits traits) {
    for (Extension_Base* extension = frame->extension_start; extension; extension = extension->next) {
        if (extension->type != kExtensionMetadata) continue;
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
    if (const ds_status status = take_results(frame, sizes_of_world(kind_of(call->batch)), call)) return status;
    Buffers arguments(frame.args.args, frame.args.size);
    const Buffer* words = arguments.take("seed_and_offset", kU32, 2);
    if (!words) return last_status();
    call->seed_and_offset = static_cast<const uint32_t*>(words->data);
    return take_levels(arguments, call);
}

ds_status read_step(const CallFrame& frame, int32_t device_kind, BatchCall* call) {
    if (const ds_status status = read_rules(frame, device_kind, call)) return status;
    const WorldSizes& sizes = sizes_of_world(kind_of(call->batch));
    if (const ds_status status = take_results(frame, sizes, call)) return status;
    return take_step_arguments(frame, sizes, call);
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
