// Pages of host memory, mapped from the operating system.
#pragma once

#include <stdint.h>

#include <utility>

namespace doorstep {

// How much memory is available now, and the limit that applies.
struct AvailableMemory {
    int64_t bytes;
    const char* limit;  // for messages: "the memory limit of this control group"
};

// root: folder that contains proc and sys; tests pass another.
AvailableMemory available_memory(const char* root = "");

// Zeroed, page-aligned memory; the destructor unmaps it.
class Pages {
public:
    Pages() = default;
    Pages(Pages&& other) noexcept : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
    Pages& operator=(Pages&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    ~Pages();

    char* data() const { return data_; }
    int64_t bytes() const { return bytes_; }
    explicit operator bool() const { return data_ != nullptr; }

private:
    friend Pages map_pages(int64_t bytes, const char* argument);
    Pages(char* data, int64_t bytes) : data_(data), bytes_(bytes) {}

    char* data_ = nullptr;
    int64_t bytes_ = 0;
};

    // Empty, with the thread's error set, if `bytes` cannot be allocated. The amount is compared with the available
    // memory first, because Linux overcommits and later kills the process.
Pages map_pages(int64_t bytes, const char* argument);

}  // namespace doorstep
