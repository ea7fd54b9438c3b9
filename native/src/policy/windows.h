// Layers whose window moves over an image, [channels, height, width] in the features of a row, and what is kept of the
// features for later layers.
#pragma once

#include "policy/layers.h"

namespace doorstep {

// The part of a window that is inside of the image, at one of its places.
struct PlacedWindow {
    int top, left;                                     // of the window; below 0 in the padding
    int first_row, end_row, first_column, end_column;  // of the window's rows and columns

    DS_METHOD PlacedWindow(const ds_layer_shape& shape, const Places& places, int place)
        : top(place / places.columns * shape.stride_height - shape.pad_height),
          left(place % places.columns * shape.stride_width - shape.pad_width),
          first_row(top < 0 ? -top : 0),
          end_row(shape.height - top < shape.kernel_height ? shape.height - top : shape.kernel_height),
          first_column(left < 0 ? -left : 0),
          end_column(shape.width - left < shape.kernel_width ? shape.width - left : shape.kernel_width) {}

    DS_METHOD bool contains(int row, int column) const {
        return row >= first_row && row < end_row && column >= first_column && column < end_column;
    }
    DS_METHOD int64_t feature(const ds_layer_shape& shape, int channel, int row, int column) const {
        return (channel * shape.height + top + row) * shape.width + left + column;
    }
};

// ---- Convolutions: a product at each place

// What the window covers, in the order of a row of the weights.
template <class Shape>
DS_METHOD void gather_window(const ds_layer_shape& shape, const PlacedWindow& window, Part part, const float* image,
                             float* covered) {
    using Float = typename Shape::Float;
    constexpr int kVectors = Shape::kRows / Shape::kLanes;
    const int area = shape.kernel_height * shape.kernel_width;
    for (int at = part.first; at < shape.channels * area * kVectors; at += part.stride) {
        const int i = at / kVectors, offset = at % kVectors * Shape::kLanes;
        const int channel = i / area, row = i % area / shape.kernel_width, column = i % shape.kernel_width;
        Float value = 0.f;
        if (window.contains(row, column))
            value = Float::load(image + window.feature(shape, channel, row, column) * Shape::kRows + offset);
        value.store(covered + int64_t{i} * Shape::kRows + offset);
    }
}

template <class Shape, class Crew>
DS_NOINLINE void apply_convolution(const Crew& crew, const ds_layer_config& layer, const TileMemory& memory) {
    const Places places = places_of(layer.shape);
    const Matrix matrix = {layer.weights, layer.biases, window_inputs(layer.shape),
                           static_cast<int>(layer.num_outputs) / places.count()};
    for (int place = 0; place < places.count(); place++) {
        const PlacedWindow window(layer.shape, places, place);
        crew.each(
            [&](Part part) { gather_window<Shape>(layer.shape, window, part, memory.values, memory.workspace); });
        float* const outputs = memory.next + int64_t{place} * Shape::kRows;
        Product product = product_of(layer, matrix, memory.workspace, outputs, Begin::kBiases, memory.widened);
        product.step = places.count();
        multiply<Shape>(crew, product);
    }
}

// ---- Pools

// One output: of a channel at a place. image: of the channel, and of a vector of rows.
template <class Shape>
DS_METHOD typename Shape::Float pooled(const ds_layer_config& layer, const PlacedWindow& window, const float* image) {
    using Float = typename Shape::Float;
    const bool largest = layer.kind == DS_LAYER_MAX_POOL;
    Float result = largest ? -infinity<float>() : 0.f;
    for (int row = window.first_row; row < window.end_row; row++)
        for (int column = window.first_column; column < window.end_column; column++) {
            const Float value = Float::load(image + window.feature(layer.shape, 0, row, column) * Shape::kRows);
            const Float more = select(equal(result, result), maximum(result, value), result);  // NaN stays
            result = largest ? more : result + value;
        }
    const float area = static_cast<float>(layer.shape.kernel_height * layer.shape.kernel_width);
    return largest ? result : result / Float(area);
}

template <class Shape>
DS_NOINLINE void pool_part(const ds_layer_config& layer, Part part, const float* values, float* outputs) {
    constexpr int kVectors = Shape::kRows / Shape::kLanes;
    const Places places = places_of(layer.shape);
    const int64_t image = int64_t{layer.shape.height} * layer.shape.width * Shape::kRows;
    for (int at = part.first; at < static_cast<int>(layer.num_outputs) * kVectors; at += part.stride) {
        const int output = at / kVectors, offset = at % kVectors * Shape::kLanes;
        const PlacedWindow window(layer.shape, places, output % places.count());
        pooled<Shape>(layer, window, values + output / places.count() * image + offset)
            .store(outputs + int64_t{output} * Shape::kRows + offset);
    }
}

// ---- What is kept: a stack, whose end memory.kept is

template <class Shape, class Crew>
DS_METHOD void copy_features(const Crew& crew, const float* from, float* to, int64_t features) {
    using Float = typename Shape::Float;
    crew.each([&](Part part) {
        for_each_vector<Shape>(part, features, [&](int64_t at) { Float::load(from + at).store(to + at); });
    });
}

template <class Shape, class Crew>
DS_METHOD void keep(const Crew& crew, int64_t width, TileMemory& memory) {
    copy_features<Shape>(crew, memory.values, memory.kept, width);
    memory.kept += width * Shape::kRows;
}

template <class Shape, class Crew>
DS_METHOD void add_kept(const Crew& crew, int64_t width, TileMemory& memory) {
    using Float = typename Shape::Float;
    memory.kept -= width * Shape::kRows;
    crew.each([&](Part part) {
        for_each_vector<Shape>(part, width, [&](int64_t at) {
            (Float::load(memory.kept + at) + Float::load(memory.values + at)).store(memory.values + at);
        });
    });
}

template <class Shape, class Crew>
DS_METHOD void take(const Crew& crew, const ds_layer_config& layer, const TileMemory& memory) {
    copy_features<Shape>(crew, memory.values + layer.shape.first * Shape::kRows, memory.next, layer.num_outputs);
}

template <class Shape, class Crew>
DS_METHOD void append_kept(const Crew& crew, const ds_layer_config& layer, TileMemory& memory) {
    const int64_t own = layer.num_inputs, more = layer.num_outputs - own;
    memory.kept -= more * Shape::kRows;
    copy_features<Shape>(crew, memory.values, memory.next, own);
    copy_features<Shape>(crew, memory.kept, memory.next + own * Shape::kRows, more);
}

}  // namespace doorstep
