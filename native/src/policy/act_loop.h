// The loop over the rows of a call: gathers a tile of them, evaluates the layers, and chooses actions.
#pragma once

#include "policy/attention.h"
#include "policy/choose.h"
#include "policy/windows.h"

namespace doorstep {

// Some rows of a call.
struct TileRows {
    const ActCall& call;
    int64_t first;  // position in the call
    int count;

    DS_METHOD int64_t operator[](int64_t i) const { return call.rows ? call.rows[first + i] : first + i; }
};

// One bit pattern of NaN on every device.
DS_INLINE float canonical(float value) { return value == value ? value : not_a_number<float>(); }

// ---- Between rows of the caller's arrays and the values of a tile

// Calls function(row, feature) for a thread's part of the values of some rows.
template <class Shape, class Function>
DS_METHOD void for_each_value(Part part, int num_rows, int64_t features, const Function& function) {
    constexpr int kRun = Shape::kRun;
    for (int i = part.first / kRun; i < num_rows; i += part.stride / kRun)
        for (int64_t k = part.first % kRun; k < features; k += kRun) function(i, k);
}

// Missing rows are zero.
template <class Shape>
DS_METHOD void gather(Part part, const TileRows& rows, const float* from, int64_t stride, int64_t features,
                      float* values) {
    for_each_value<Shape>(part, Shape::kRows, features, [&](int i, int64_t k) {
        values[k * Shape::kRows + i] = i < rows.count ? from[rows[i] * stride + k] : 0.f;
    });
}

template <class Shape>
DS_METHOD void scatter(Part part, const TileRows& rows, const float* values, int64_t features, float* to,
                       int64_t stride) {
    for_each_value<Shape>(part, rows.count, features, [&](int i, int64_t k) {
        to[rows[i] * stride + k] = canonical(values[k * Shape::kRows + i]);
    });
}

template <class Shape>
DS_METHOD void store_logits(Part part, const TileRows& rows, const float* logits) {
    for_each_value<Shape>(part, rows.count, DS_NUM_LOGITS, [&](int i, int64_t k) {
        rows.call.logits[(rows.first + i) * DS_NUM_LOGITS + k] = canonical(logits[k * Shape::kRows + i]);
    });
}

// ---- Layers

// state: place of the layer's state in a row's.
template <class Shape, class Crew>
DS_METHOD void apply_recurrent(const Crew& crew, const ds_layer_config& layer, const TileRows& rows, int64_t state,
                               const TileMemory& memory) {
    float* const states = rows.call.states + state;
    const int64_t size = state_size(layer), stride = rows.call.state_stride;
    crew.each([&](Part part) { gather<Shape>(part, rows, states, stride, size, memory.workspace); });
    layer.kind == DS_LAYER_LSTM ? apply_lstm<Shape>(crew, layer, memory) : apply_gru<Shape>(crew, layer, memory);
    crew.each([&](Part part) { scatter<Shape>(part, rows, memory.workspace, size, states, stride); });
}

// The rows are passed as the caller of the C API reads them; missing ones are not passed, and become zero.
template <class Shape>
DS_NOINLINE void apply_function(const ds_layer_config& layer, int num_rows, const TileMemory& memory) {
    float *const inputs = memory.workspace, *const outputs = inputs + layer.num_inputs * Shape::kRows;
    for (int i = 0; i < num_rows; i++)
        for (int64_t k = 0; k < layer.num_inputs; k++)
            inputs[i * layer.num_inputs + k] = memory.values[k * Shape::kRows + i];
    layer.function(layer.function_context, num_rows, inputs, outputs);
    for (int64_t k = 0; k < layer.num_outputs; k++)
        for (int i = 0; i < Shape::kRows; i++)
            memory.next[k * Shape::kRows + i] = i < num_rows ? outputs[i * layer.num_outputs + k] : 0.f;
}

// Changes memory.values, or writes memory.next and returns true.
template <class Shape, class Crew>
DS_METHOD bool apply_layer(const Crew& crew, const ds_layer_config& layer, const TileRows& rows, int64_t width,
                           int64_t* state, TileMemory& memory) {
    switch (layer.kind) {
        default: crew.each([&](Part part) { activate_part<Shape>(layer, part, width, memory.values); }); return false;
        case DS_LAYER_LAYER_NORM:
        case DS_LAYER_RMS_NORM:
            crew.each([&](Part part) { normalize_part<Shape>(layer, part, memory.values); });
            return false;
        case DS_LAYER_LINEAR: apply_linear<Shape>(crew, layer, memory.values, memory.next, memory.widened); return true;
        case DS_LAYER_LSTM:
        case DS_LAYER_GRU:
            apply_recurrent<Shape>(crew, layer, rows, *state, memory);
            *state += state_size(layer);
            return true;
        case DS_LAYER_CONV: apply_convolution<Shape>(crew, layer, memory); return true;
        case DS_LAYER_MAX_POOL:
        case DS_LAYER_AVG_POOL:
            crew.each([&](Part part) { pool_part<Shape>(layer, part, memory.values, memory.next); });
            return true;
        case DS_LAYER_ATTENTION: apply_attention<Shape>(crew, layer, memory); return true;
        case DS_LAYER_KEEP: keep<Shape>(crew, width, memory); return false;
        case DS_LAYER_ADD: add_kept<Shape>(crew, width, memory); return false;
        case DS_LAYER_TAKE: take<Shape>(crew, layer, memory); return true;
        case DS_LAYER_APPEND: append_kept<Shape>(crew, layer, memory); return true;
        case DS_LAYER_FUNCTION:
            if constexpr (Crew::kCallsHost) apply_function<Shape>(layer, rows.count, memory);
            return true;
    }
}

// From the observations to the logits, and the value behind them if the call asks for it, which memory.values then is.
template <class Shape, class Crew>
DS_METHOD void apply_layers(const Crew& crew, const Network& network, const TileRows& rows, TileMemory& memory) {
    DS_ASSERT(rows.count > 0 && rows.count <= Shape::kRows && network.num_heads <= network.num_layers);
    int64_t width = network.num_inputs, state = 0;
    const ds_layer_config* layer = network.layers;
    const ds_layer_config* const heads = layer + (network.num_layers - network.num_heads);
    for (; layer != heads; layer++) {
        if (!apply_layer<Shape>(crew, *layer, rows, width, &state, memory)) continue;
        width = layer->num_outputs;
        DS_ASSERT(width > 0 && width <= network.width);
        memory.swap();
    }
    DS_ASSERT(state == network.state_size && (network.num_heads > 0 || width == DS_NUM_LOGITS));
    if (network.num_heads == 0) return;
    float* outputs = memory.next;
    const bool skips_value = network.has_value && !rows.call.values;
    for (const ds_layer_config* const end = network.layers + network.num_layers - skips_value; layer != end; layer++) {
        apply_linear<Shape>(crew, *layer, memory.values, outputs, memory.widened);
        outputs += layer->num_outputs * Shape::kRows;
    }
    DS_ASSERT(outputs == memory.next + (DS_NUM_LOGITS + (network.has_value && !skips_value)) * Shape::kRows);
    memory.swap();
}

template <class Shape>
DS_METHOD void store_values(Part part, const TileRows& rows, bool has_value, const float* outputs) {
    for_each_value<Shape>(part, rows.count, 1, [&](int i, int64_t) {
        const float value = has_value ? outputs[DS_NUM_LOGITS * Shape::kRows + i] : not_a_number<float>();
        rows.call.values[rows[i]] = canonical(value);
    });
}

// ---- Actions

// stride: from a logit of a row to the next one. Returns the number of rows without a choice.
template <class Float>
DS_NOINLINE int64_t choose_and_store(Part part, const TileRows& rows, const float* values, int stride) {
    constexpr int kLanes = Float::kLanes;
    int64_t nonfinite = 0;
    for (int begin = part.first * kLanes; begin < rows.count; begin += part.stride * kLanes) {
        const int left = rows.count - begin, count = left < kLanes ? left : kLanes;
        const auto row_of = [&](int lane) { return rows[begin + lane]; };
        Float logits[DS_NUM_LOGITS];
        for (int k = 0; k < DS_NUM_LOGITS; k++) logits[k] = Float::load(values + k * stride + begin);
        float choices[kActionComponents][kLanes];
        float log_probs[kLanes];
        const uint32_t without = choose_actions(logits, load_sampling<Float>(rows.call, count, row_of), choices,
                                                rows.call.log_probs ? log_probs : nullptr);
        for (int lane = 0; lane < count; lane++) {
            int32_t* const action = rows.call.actions + row_of(lane) * kActionComponents;
            for (int k = 0; k < kActionComponents; k++) {
                action[k] = static_cast<int32_t>(choices[k][lane]);
                DS_ASSERT(action[k] >= 0 && action[k] < kActionSizes[k]);
            }
            if (rows.call.nonfinite) rows.call.nonfinite[row_of(lane)] = without >> lane & 1;
            if (rows.call.log_probs) rows.call.log_probs[row_of(lane)] = log_probs[lane];
        }
        nonfinite += count_bits(without & low_bits(count));
    }
    return nonfinite;
}

// ---- The loop

// scratch: row_floats() of the network per row; widened: what multiply() needs. finish(number of rows without a choice)
// is called by every thread.
template <class Shape, class Crew, class Finish>
DS_METHOD void act_on_tile(const Crew& crew, const Network& network, const TileRows& rows, float* scratch,
                           float* widened, const Finish& finish) {
    TileMemory memory;
    memory.values = scratch;
    memory.next = memory.values + network.width * Shape::kRows;
    memory.workspace = memory.next + network.width * Shape::kRows;
    memory.kept = memory.workspace + network.workspace * Shape::kRows;
    memory.widened = widened;
    const ActCall& call = rows.call;
    crew.each([&](Part part) {
        gather<Shape>(part, rows, call.observations, call.observation_stride, network.num_inputs, memory.values);
    });
    apply_layers<Shape>(crew, network, rows, memory);
    crew.each([&](Part part) {
        if (call.logits) store_logits<Shape>(part, rows, memory.values);
        if (call.values) store_values<Shape>(part, rows, network.has_value, memory.values);
        if (call.actions) finish(choose_and_store<typename Shape::Float>(part, rows, memory.values, Shape::kRows));
    });
}

template <class Shape>
DS_METHOD int64_t act_alone(const Network& network, const TileRows& rows, float* scratch) {
    int64_t nonfinite = 0;
    float* const widened = scratch + network.row_floats() * Shape::kRows;
    act_on_tile<Shape>(OneThread{}, network, rows, scratch, widened, [&](int64_t found) { nonfinite += found; });
    return nonfinite;
}

// vectors: of the tile, 1 to kMost.
template <class Float, int kMost>
DS_METHOD int64_t act_with_vectors(int vectors, const Network& network, const TileRows& rows, float* scratch) {
    if constexpr (kMost > 1)
        if (vectors < kMost) return act_with_vectors<Float, kMost - 1>(vectors, network, rows, scratch);
    return act_alone<TileShape<Float, kMost>>(network, rows, scratch);
}

template <class Float>
DS_METHOD int64_t act_on_rows(const Network& network, const ActCall& call, int64_t first, int64_t count,
                              float* scratch) {
    // More vectors of eight rows would not leave a register for the weight; see TileShape::kOutputs.
    constexpr int kLanes = Float::kLanes, kMostVectors = kLanes == 16 ? 4 : 2, kMost = kMostVectors * kLanes;
    int64_t nonfinite = 0;
    for (const int64_t end = first + count; first < end; first += kMost) {
        const TileRows rows = {call, first, static_cast<int>(end - first < kMost ? end - first : kMost)};
        const int vectors = (rows.count + kLanes - 1) / kLanes;
        DS_ASSERT(vectors >= 1 && vectors <= kMostVectors);
        nonfinite += act_with_vectors<Float, kMostVectors>(vectors, network, rows, scratch);
    }
    return nonfinite;
}

}  // namespace doorstep
