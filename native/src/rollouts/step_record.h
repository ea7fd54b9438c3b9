// What is recorded of an episode while it is played: a row per step, see ds_episode_output.
#pragma once

#include <stdint.h>
#include <stdlib.h>

#include "runtime/memory.h"

namespace doorstep {

class StepRecord {
public:
    StepRecord() = default;
    ~StepRecord() { free(data_); }
    StepRecord(const StepRecord&) = delete;
    StepRecord& operator=(const StepRecord&) = delete;

    const char* data() const { return data_; }
    int64_t bytes() const { return bytes_; }
    // The last `bytes` of it.
    char* end(int64_t bytes) const { return data_ + bytes_ - bytes; }
    // Memory is kept for the next episode.
    void clear() { bytes_ = 0; }

    // A new row of this many bytes; null if memory ran out.
    char* add_row(int64_t bytes) {
        if (bytes_ + bytes > capacity_) {
            const int64_t grown = 2 * capacity_ > bytes_ + bytes ? 2 * capacity_ : bytes_ + bytes;
            void* memory = has_memory_for(grown) ? realloc(data_, static_cast<size_t>(grown)) : nullptr;
            if (!memory) return nullptr;
            data_ = static_cast<char*>(memory);
            capacity_ = grown;
        }
        bytes_ += bytes;
        return end(bytes);
    }

private:
    char* data_ = nullptr;
    int64_t bytes_ = 0, capacity_ = 0;
};

}  // namespace doorstep
