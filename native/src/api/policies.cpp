// Policies and their layers.
#include "api/call.h"
#include "policy/network.h"

namespace doorstep {
namespace {

// ---- Layers

// What the arrays and numbers of a kind must be.
struct KindRules {
    bool has_inputs, has_outputs;
    bool requires_weights, allows_weights, allows_biases, allows_hidden;
};

KindRules rules_of(int32_t kind) {
    if (is_activation(kind)) return {false, false, false, false, false, false};
    if (is_norm(kind)) return {true, false, false, true, kind == DS_LAYER_LAYER_NORM, false};
    if (kind == DS_LAYER_LINEAR || kind == DS_LAYER_CONV) return {true, true, true, true, true, false};
    if (is_recurrent(kind) || kind == DS_LAYER_ATTENTION) return {true, true, true, true, true, true};
    return {true, !keeps_size(kind), false, false, false, false};
}

ds_status check_width(const char* argument, int64_t width, bool exists) {
    if (exists) return check_range(argument, "split the layer", width, 1, DS_MAX_LAYER_WIDTH);
    return check_range(argument, "this kind of layer has none", width, 0, 0);
}

ds_status check_weights(const char* argument, const void* array, int64_t element_bytes, bool allowed, bool required) {
    if (required && !array) return fail_null(argument);
    if (!allowed && array) {
        return fail(DS_STATUS_INVALID_ARGUMENT, argument, "pass a null pointer", "this kind of layer has no %s",
                    argument);
    }
    if (reinterpret_cast<uintptr_t>(array) % static_cast<uintptr_t>(element_bytes) == 0) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, argument, "align the array to its elements",
                "%s is at address %p; it must be aligned to %ld bytes", argument, array, element_bytes);
}

bool allows_parameter(int32_t kind, float parameter) {
    if (is_norm(kind)) return parameter >= 0;
    if (kind == DS_LAYER_CELU || kind == DS_LAYER_SOFTPLUS) return parameter > 0;
    return parameter == 0 || kind == DS_LAYER_LEAKY_RELU || kind == DS_LAYER_ELU;
}

ds_status check_parameter(const ds_layer_config& config) {
    if (is_finite(config.parameter) && allows_parameter(config.kind, config.parameter)) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, "parameter",
                "pass a finite number: an epsilon of at least 0, an alpha of CELU or a beta of SOFTPLUS above 0, 0 for "
                "kinds that have none",
                "parameter is %g; a layer of kind %d cannot have it", static_cast<double>(config.parameter),
                config.kind);
}

// ---- Shapes

ds_status check_unused(const char* argument, int64_t value, bool used) {
    return used ? DS_STATUS_OK : check_range(argument, "this kind of layer has no such number", value, 0, 0);
}

// Of each of height and width: what the window and its padding must be.
ds_status check_window(const ds_layer_config& config) {
    const ds_layer_shape& shape = config.shape;
    const bool is_pool = config.kind != DS_LAYER_CONV;
    const int64_t most = DS_MAX_LAYER_WIDTH;
    const char* hint = "see ds_layer_shape";
    if (const ds_status status = check_ranges(
            {{"shape.channels", hint, shape.channels, 1, most},
             {"shape.height", hint, shape.height, 1, most},
             {"shape.width", hint, shape.width, 1, most},
             {"shape.kernel_height", hint, shape.kernel_height, 1, most},
             {"shape.kernel_width", hint, shape.kernel_width, 1, most},
             {"shape.stride_height", hint, shape.stride_height, 1, most},
             {"shape.stride_width", hint, shape.stride_width, 1, most},
             {"shape.pad_height", hint, shape.pad_height, 0, is_pool ? shape.kernel_height / 2 : most},
             {"shape.pad_width", hint, shape.pad_width, 0, is_pool ? shape.kernel_width / 2 : most},
             {"shape.kernel_height", hint, shape.kernel_height, 1, int64_t{shape.height} + 2 * shape.pad_height},
             {"shape.kernel_width", hint, shape.kernel_width, 1, int64_t{shape.width} + 2 * shape.pad_width},
             {"inputs of a window", hint, window_inputs(shape), 1, most}})) {
        return status;
    }
    const int64_t image = int64_t{shape.height} * shape.width;
    if (image > most || config.num_inputs != shape.channels * image) {
        return fail(DS_STATUS_INVALID_ARGUMENT, "num_inputs", "pass the product of channels, height and width",
                    "num_inputs is %ld; the shape has %d channels of %ld", config.num_inputs, shape.channels, image);
    }
    const Places sides = places_of(shape);
    const int64_t places = int64_t{sides.rows} * sides.columns, channels = config.num_outputs / places;
    if (config.num_outputs % places == 0 && (!is_pool || channels == shape.channels)) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, "num_outputs",
                "pass as many for each channel of the outputs; pools have the channels of the inputs",
                "num_outputs is %ld; the window has %ld places", config.num_outputs, places);
}

ds_status check_divides(const char* argument, int64_t parts, const char* what, int64_t whole) {
    if (parts >= 0 && whole % (parts ? parts : 1) == 0) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, argument, "pass a number of equal parts", "%s is %ld; it must divide the %s, %ld",
                argument, parts, what, whole);
}

ds_status check_tokens(const ds_layer_config& config) {
    const int64_t tokens = config.shape.num_tokens, heads = config.shape.num_attention_heads;
    if (const ds_status status = check_divides("shape.num_tokens", tokens, "inputs", config.num_inputs)) return status;
    if (const ds_status status = check_divides("shape.num_tokens", tokens, "outputs", config.num_outputs)) return status;
    if (config.kind != DS_LAYER_ATTENTION) return DS_STATUS_OK;
    if (const ds_status status = check_range("num_outputs", "attention has as many outputs as inputs",
                                             config.num_outputs, config.num_inputs, config.num_inputs)) {
        return status;
    }
    const int64_t width = token_inputs(config);
    if (const ds_status status = check_range("shape.num_attention_heads", "", heads, 1, width)) return status;
    return check_divides("shape.num_attention_heads", heads, "inputs of a token", width);
}

ds_status check_shape(const ds_layer_config& config) {
    const ds_layer_shape& shape = config.shape;
    const int32_t kind = config.kind;
    const bool has_tokens = kind == DS_LAYER_LINEAR || is_norm(kind) || kind == DS_LAYER_ATTENTION;
    const struct {
        const char* name;
        int32_t value;
        bool used;
    } numbers[] = {{"shape.num_tokens", shape.num_tokens, has_tokens},
                   {"shape.num_attention_heads", shape.num_attention_heads, kind == DS_LAYER_ATTENTION},
                   {"shape.channels", shape.channels, has_window(kind)},
                   {"shape.height", shape.height, has_window(kind)},
                   {"shape.width", shape.width, has_window(kind)},
                   {"shape.kernel_height", shape.kernel_height, has_window(kind)},
                   {"shape.kernel_width", shape.kernel_width, has_window(kind)},
                   {"shape.stride_height", shape.stride_height, has_window(kind)},
                   {"shape.stride_width", shape.stride_width, has_window(kind)},
                   {"shape.pad_height", shape.pad_height, has_window(kind)},
                   {"shape.pad_width", shape.pad_width, has_window(kind)},
                   {"shape.first", shape.first, kind == DS_LAYER_TAKE}};
    for (const auto& one : numbers)
        if (const ds_status status = check_unused(one.name, one.value, one.used)) return status;
    if (has_tokens) return check_tokens(config);
    if (has_window(kind)) return check_window(config);
    if (kind == DS_LAYER_TAKE) {
        if (const ds_status status = check_range("num_outputs", "take no more than there are", config.num_outputs, 1,
                                                 config.num_inputs)) {
            return status;
        }
        return check_range("shape.first", "", shape.first, 0, config.num_inputs - config.num_outputs);
    }
    if (kind == DS_LAYER_APPEND)
        return check_range("num_outputs", "", config.num_outputs, config.num_inputs + 1, DS_MAX_LAYER_WIDTH);
    return DS_STATUS_OK;
}

ds_status check_function(const ds_layer_config& config) {
    const bool is_function = config.kind == DS_LAYER_FUNCTION;
    if (is_function && !config.function) return fail_null("function");
    if (!is_function && (config.function || config.function_context)) {
        return fail(DS_STATUS_INVALID_ARGUMENT, config.function ? "function" : "function_context",
                    "pass null pointers", "a layer of kind %d calls no function", config.kind);
    }
    if (!is_function || config.device_kind == DS_DEVICE_CPU) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, "device_kind",
                "keep the whole policy on the CPU, or compose the layer of other kinds",
                "a layer of kind DS_LAYER_FUNCTION is on CUDA, which cannot call a function of the host");
}

ds_status check_layer(const ds_layer_config& config) {
    if (const ds_status status = check_ranges(
            {{"kind", "pass a ds_layer_kind", config.kind, DS_LAYER_LINEAR, DS_LAYER_GELU_TANH},
             {"weight_type", "pass a ds_weight_type", config.weight_type, DS_WEIGHT_FLOAT32, DS_WEIGHT_BFLOAT16}})) {
        return status;
    }
    if (const ds_status status = check_device(config.device_kind, config.device_index)) return status;
    const KindRules rules = rules_of(config.kind);
    if (const ds_status status = check_width("num_inputs", config.num_inputs, rules.has_inputs)) return status;
    if (const ds_status status = check_width("num_outputs", config.num_outputs, rules.has_outputs)) return status;
    if (const ds_status status = check_parameter(config)) return status;
    const struct {
        const char* name;
        const void* array;
        bool allowed, required;
    } arrays[] = {{"weights", config.weights, rules.allows_weights, rules.requires_weights},
                  {"biases", config.biases, rules.allows_biases, false},
                  {"hidden_weights", config.hidden_weights, rules.allows_hidden, rules.allows_hidden},
                  {"hidden_biases", config.hidden_biases, rules.allows_hidden, false}};
    const int64_t element_bytes = config.weight_type == DS_WEIGHT_BFLOAT16 ? 2 : 4;
    for (const auto& one : arrays) {
        if (const ds_status status = check_weights(one.name, one.array, element_bytes, one.allowed, one.required)) {
            return status;
        }
    }
    if (const ds_status status = check_shape(config)) return status;
    return check_function(config);
}

// ---- Composing a policy

struct LayerList {
    Ref<Layer> layers[DS_MAX_POLICY_LAYERS];
};

ds_status fail_width(uint64_t index, int64_t given, int64_t expected) {
    return fail(DS_STATUS_INVALID_ARGUMENT, "layers", "pass layers that follow each other",
                "layers[%lu] takes %ld inputs; the layers before it give %ld", index, given, expected);
}

ds_status fail_kept(uint64_t index, int64_t wanted, int64_t kept) {
    return fail(DS_STATUS_INVALID_ARGUMENT, "layers", "begin with a layer DS_LAYER_KEEP for each ADD or APPEND",
                "layers[%lu] gets %ld values that were kept; there are %ld", index, wanted, kept);
}

// The layers up to the heads. width: of their outputs; 0 while it may be any.
ds_status check_body(const Ref<Layer>* layers, uint64_t count, int64_t* width) {
    int64_t kept[DS_MAX_POLICY_LAYERS], num_kept = 0;
    *width = 0;
    for (uint64_t i = 0; i < count; ++i) {
        const ds_layer_config& layer = layers[i]->config();
        if (is_activation(layer.kind)) continue;
        if (*width && *width != layer.num_inputs) return fail_width(i, layer.num_inputs, *width);
        *width = keeps_size(layer.kind) ? layer.num_inputs : layer.num_outputs;
        if (layer.kind == DS_LAYER_KEEP) kept[num_kept++] = *width;
        if (layer.kind != DS_LAYER_ADD && layer.kind != DS_LAYER_APPEND) continue;
        const int64_t wanted = layer.kind == DS_LAYER_ADD ? *width : *width - layer.num_inputs;
        const int64_t found = num_kept ? kept[--num_kept] : 0;
        if (wanted != found) return fail_kept(i, wanted, found);
    }
    return num_kept ? fail_kept(count, 0, kept[num_kept - 1]) : DS_STATUS_OK;
}

ds_status check_heads(const Ref<Layer>* layers, uint64_t first, uint64_t count, int64_t width, int64_t* logits) {
    *logits = first == count ? width : 0;
    for (uint64_t i = first; i < count; ++i) {
        const ds_layer_config& layer = layers[i]->config();
        if (layer.kind != DS_LAYER_LINEAR) {
            return fail(DS_STATUS_INVALID_ARGUMENT, "layers", "heads are linear layers",
                        "layers[%lu] is a head of kind %d; it must be DS_LAYER_LINEAR", i, layer.kind);
        }
        if (width == 0) width = layer.num_inputs;
        if (width != layer.num_inputs) return fail_width(i, layer.num_inputs, width);
        *logits += layer.num_outputs;
    }
    return DS_STATUS_OK;
}

ds_status check_layers(const Ref<Layer>* layers, uint64_t count, uint64_t num_heads) {
    int64_t width, logits;
    if (const ds_status status = check_body(layers, count - num_heads, &width)) return status;
    if (const ds_status status = check_heads(layers, count - num_heads, count, width, &logits)) return status;
    const bool has_value = num_heads > 1 && logits == DS_NUM_LOGITS + 1 && layers[count - 1]->config().num_outputs == 1;
    if (logits == DS_NUM_LOGITS || has_value) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, "layers", "end with one logit per value of each component of an action",
                "the layers give %ld logits; they must give %d", logits, DS_NUM_LOGITS);
}

ds_status check_devices(const Ref<Layer>* layers, uint64_t count) {
    const ds_layer_config& first = layers[0]->config();
    for (uint64_t i = 1; i < count; ++i) {
        const ds_layer_config& layer = layers[i]->config();
        if (layer.device_kind == first.device_kind && layer.device_index == first.device_index) continue;
        return fail(DS_STATUS_INVALID_ARGUMENT, "layers", "keep all weights on one device",
                    "layers[%lu] is on another device than layers[0]", i);
    }
    return DS_STATUS_OK;
}

// layer: of the policy.
ds_status check_precision(int32_t precision, const ds_layer_config& layer) {
    if (const ds_status status = check_range("precision", "pass a ds_precision", precision, DS_PRECISION_FLOAT32,
                                             DS_PRECISION_BFLOAT16)) {
        return status;
    }
    if (precision == DS_PRECISION_FLOAT32 || layer.device_kind == DS_DEVICE_CUDA) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, "precision", "keep the weights on a GPU, or use the precision float32",
                "precision is bfloat16; it must be float32 on the CPU, where the weights are");
}

ds_status find_layers(const ds_layer* handles, uint64_t count, LayerList* found) {
    for (uint64_t i = 0; i < count; ++i) {
        found->layers[i] = layers.find(handles[i], "layers");
        if (!found->layers[i]) return last_status();
    }
    return DS_STATUS_OK;
}

// ---- Calls

ds_status check_stride(const char* argument, int64_t stride, int64_t smallest) {
    return check_range(argument, "pass the distance of two rows in floats", stride, smallest, INT64_MAX / 8);
}

ds_status check_rows(const ds_policy_call& call) {
    if (!call.rows) return DS_STATUS_OK;
    for (int64_t i = 0; i < call.num_rows; ++i) {
        if (call.rows[i] >= 0) continue;
        return fail(DS_STATUS_INVALID_ARGUMENT, "rows", "pass indices of rows", "rows[%ld] is %d; it must be 0 to %d",
                    i, call.rows[i], INT32_MAX);
    }
    return DS_STATUS_OK;
}

ds_status check_call(const Policy& policy, const ds_policy_call& call) {
    const bool on_cpu = policy.device_kind() == DS_DEVICE_CPU;
    if (const ds_status status = on_cpu ? check_cpu() : DS_STATUS_OK) return status;
    if (const ds_status status = check_range("num_rows", "", call.num_rows, 0, INT32_MAX)) return status;
    if (const ds_status status = check_stride("observation_stride", call.observation_stride, policy.num_inputs())) {
        return status;
    }
    if (const ds_status status = check_stride("state_stride", call.state_stride, policy.state_size())) return status;
    if (call.num_rows == 0) return DS_STATUS_OK;
    if (!call.observations) return fail_null("observations");
    if (policy.state_size() && !call.states) return fail_null("states");
    return on_cpu ? check_rows(call) : DS_STATUS_OK;
}

ds_status check_sampling_rows(const ds_policy_call& call) {
    for (int64_t i = 0; i < call.num_rows; ++i) {
        const int64_t row = call.rows ? call.rows[i] : i;
        if (const ds_status status = check_sampling(call.sampling[row])) {
            add_detail(" (row %ld)", row);
            return status;
        }
    }
    return DS_STATUS_OK;
}

}  // namespace
}  // namespace doorstep

using namespace doorstep;

// ---- Layers

ds_status ds_layer_create(const ds_layer_config* config, ds_layer* layer) {
    const Given<ds_layer_config> given(config, "config");
    if (given.status()) return given.status();
    if (!layer) return fail_null("layer");
    if (const ds_status status = check_layer(*given)) return status;
    const Ref<Layer> made = Layer::create(*given);
    if (!made) return last_status();
    if (const ds_status status = give(layers, made, "a layer", layer)) return status;
    made->take_over({given->owner, given->release_owner});
    return DS_STATUS_OK;
}

ds_status ds_layer_release(ds_layer layer) {
    return layers.release(layer, "layer");
}

ds_status ds_layer_get_config(ds_layer layer, ds_layer_config* config) {
    Results<ds_layer_config> results(config, "config");
    if (results.status()) return results.status();
    const Ref<Layer> found = layers.find(layer, "layer");
    if (!found) return last_status();
    *results.fields() = found->config();
    return results.give();
}

// ---- Policies

ds_status ds_policy_create(const ds_layer* layers, uint64_t count, uint64_t num_heads, int32_t precision,
                           ds_policy* policy) {
    if (!layers) return fail_null("layers");
    if (!policy) return fail_null("policy");
    if (count < 1 || count > DS_MAX_POLICY_LAYERS) {
        return fail(DS_STATUS_INVALID_ARGUMENT, "count", "", "count is %lu; it must be 1 to %d",
                    count, DS_MAX_POLICY_LAYERS);
    }
    if (num_heads > count) {
        return fail(DS_STATUS_INVALID_ARGUMENT, "num_heads", "heads are the last layers",
                    "num_heads is %lu; it must be 0 to %lu", num_heads, count);
    }
    LayerList found;
    if (const ds_status status = find_layers(layers, count, &found)) return status;
    if (const ds_status status = check_layers(found.layers, count, num_heads)) return status;
    if (const ds_status status = check_devices(found.layers, count)) return status;
    if (const ds_status status = check_precision(precision, found.layers[0]->config())) return status;
    const Ref<Policy> made =
        Policy::create(found.layers, static_cast<int64_t>(count), static_cast<int64_t>(num_heads), precision);
    return made ? give(policies, made, "a policy", policy) : last_status();
}

ds_status ds_policy_release(ds_policy policy) {
    return policies.release(policy, "policy");
}

ds_status ds_policy_get_info(ds_policy policy, ds_policy_info* info) {
    Results<ds_policy_info> results(info, "info");
    if (results.status()) return results.status();
    const Ref<Policy> found = policies.find(policy, "policy");
    if (!found) return last_status();
    results->num_layers = static_cast<int32_t>(found->num_layers());
    results->num_heads = static_cast<int32_t>(found->num_heads());
    results->vector_width = Policy::vector_width();
    results->num_inputs = found->num_inputs();
    results->state_size = found->state_size();
    results->nonfinite_rows = found->nonfinite_rows();
    results->device_kind = found->device_kind();
    results->device_index = found->device_index();
    results->has_value = found->has_value();
    results->precision = found->precision();
    return results.give();
}

ds_status ds_policy_get_layer(ds_policy policy, uint64_t index, ds_layer* layer) {
    if (!layer) return fail_null("layer");
    const Ref<Policy> found = policies.find(policy, "policy");
    if (!found) return last_status();
    if (index >= static_cast<uint64_t>(found->num_layers())) {
        return fail(DS_STATUS_INVALID_ARGUMENT, "index", "", "index is %lu; it must be 0 to %ld",
                    index, found->num_layers() - 1);
    }
    return give(layers, found->layer(static_cast<int64_t>(index)), "a layer", layer);
}

ds_status ds_policy_freeze(ds_policy policy, uint64_t stream, ds_policy* frozen) {
    if (!frozen) return fail_null("frozen");
    const Ref<Policy> found = policies.find(policy, "policy");
    if (!found) return last_status();
    const Ref<Policy> made = found->freeze(stream);
    return made ? give(policies, made, "a policy", frozen) : last_status();
}

ds_status ds_policy_forward(ds_policy policy, const ds_policy_call* call) {
    const Given<ds_policy_call> given(call, "call");
    if (given.status()) return given.status();
    const Ref<Policy> found = policies.find(policy, "policy");
    if (!found) return last_status();
    if (const ds_status status = check_call(*found, *given)) return status;
    if (given->num_rows == 0) return DS_STATUS_OK;
    if (!given->logits) return fail_null("logits");
    ds_policy_call forward = *given;
    forward.actions = nullptr;
    forward.log_probs = nullptr;
    return found->act_on_all(forward);
}

ds_status ds_policy_act(ds_policy policy, const ds_policy_call* call) {
    const Given<ds_policy_call> given(call, "call");
    if (given.status()) return given.status();
    const Ref<Policy> found = policies.find(policy, "policy");
    if (!found) return last_status();
    if (const ds_status status = check_call(*found, *given)) return status;
    if (given->num_rows == 0) return DS_STATUS_OK;
    if (!given->sampling) return fail_null("sampling");
    if (!given->keys) return fail_null("keys");
    if (!given->actions) return fail_null("actions");
    if (found->device_kind() == DS_DEVICE_CPU) {
        if (const ds_status status = check_sampling_rows(*given)) return status;
    }
    return found->act_on_all(*given);
}
