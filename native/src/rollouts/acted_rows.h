// What is known of rows when they act, beside their actions, and may be recorded with the step.
#pragma once

#include <algorithm>
#include <utility>

#include "doorstep.h"
#include "math/base.h"
#include "runtime/array.h"

namespace doorstep {

constexpr int32_t kActingRecords = DS_RECORD_LOG_PROBS | DS_RECORD_VALUES | DS_RECORD_STATES;

// By row, of all worlds, from its latest act on.
struct ActedRows {
    Array<float> log_probs, values;
    Array<int32_t> versions;  // of the policies
    Pages states;             // of state_stride floats: before the row acted; shorter ones end with zeros
    int64_t state_stride = 0;

    bool take_memory(int64_t num_rows) {
        return log_probs.take(num_rows) && values.take(num_rows) && versions.take(num_rows);
    }

    // Room for states of this size. False if memory ran out.
    bool take_states(int64_t size) {
        if (size <= state_stride) return true;
        Pages grown = map_pages(log_probs.size() * size * 4, "num_worlds");
        if (!grown) return false;
        float* const to = reinterpret_cast<float*>(grown.data());
        for (int64_t row = 0; row < log_probs.size(); ++row) std::copy_n(state_of(row), state_stride, to + row * size);
        states = std::move(grown);
        state_stride = size;
        return true;
    }

    float* state_of(int64_t row) const { return reinterpret_cast<float*>(states.data()) + row * state_stride; }

    void set_state(int64_t row, const float* state, int64_t size) {
        DS_ASSERT(row >= 0 && row < log_probs.size());
        size = std::min(size, state_stride);
        std::copy_n(state, size, state_of(row));
        std::fill_n(state_of(row) + size, state_stride - size, 0.f);
    }
};

}  // namespace doorstep
