// Pages of the host's memory, straight from the operating system.
#pragma once

#include <stdint.h>

#include <utility>

namespace doorstep {

// How much memory can be had right now, and what stands in the way of more.
struct AvailableMemory {
    int64_t bytes;
    const char* limit;  // for messages: "the memory limit of this control group"
};

// root: where /proc and /sys are looked for, for tests.
AvailableMemory available_memory(const char* root = "");

// Zeroed, page-aligned memory; returned to the operating system at the end.
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

// None, with the thread's error set, if `bytes` cannot be had: the amount is compared with what is available first,
// because Linux grants what it does not have and later kills the process.
Pages map_pages(int64_t bytes, const char* argument);

}  // namespace doorstep
