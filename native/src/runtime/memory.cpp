#include "runtime/memory.h"

#include "runtime/live_count.h"

namespace doorstep {

Memory::Memory(char* data, int64_t bytes, int32_t device_kind, int32_t device_index)
    : data_(data), bytes_(bytes), device_kind_(device_kind), device_index_(device_index) {
    live_counts.memories.fetch_add(1, std::memory_order_relaxed);
}

Memory::~Memory() {
    if (owner_.release) owner_.release(owner_.owner);
    if (count_) count_->bytes.fetch_sub(bytes_, std::memory_order_relaxed);
    live_counts.memories.fetch_sub(1, std::memory_order_relaxed);
}

void Memory::count_in(Ref<ByteCount> count) {
    count_ = std::move(count);
    count_->bytes.fetch_add(bytes_, std::memory_order_relaxed);
}

bool Memory::contains(const void* start, int64_t bytes) const {
    const uintptr_t first = reinterpret_cast<uintptr_t>(start), base = reinterpret_cast<uintptr_t>(data_);
    if (bytes < 0 || first < base || first - base > static_cast<uintptr_t>(bytes_)) return false;
    return bytes <= bytes_ - static_cast<int64_t>(first - base);
}

bool Memory::overlaps(const void* start, int64_t bytes) const {
    const uintptr_t first = reinterpret_cast<uintptr_t>(start), base = reinterpret_cast<uintptr_t>(data_);
    return bytes > 0 && bytes_ > 0 && first < base + static_cast<uintptr_t>(bytes_) &&
           base < first + static_cast<uintptr_t>(bytes);
}

}  // namespace doorstep
