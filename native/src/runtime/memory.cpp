#include "runtime/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "runtime/machine.h"
#include "runtime/reference.h"
#include "runtime/status.h"

namespace doorstep {

// ---- Pages ----

namespace {

constexpr const char* kHint = "use fewer worlds, close other simulators, or raise the memory limit";

constexpr int64_t kAskAgain = 1 << 20;  // bytes; asking takes some 50 microseconds

void limit_to(AvailableMemory* available, int64_t bytes, const char* limit) {
    if (bytes >= 0 && bytes < available->bytes) *available = {bytes, limit};
}

// -1 if unknown.
int64_t free_memory_of_machine(const char* root) {
    char path[1024], text[8192];
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    if (!read_text_file(path, text, sizeof text)) return -1;
    const char* row = strstr(text, "MemAvailable:");
    return row ? strtoll(row + strlen("MemAvailable:"), nullptr, 10) * 1024 : -1;
}

// -1 if there is no limit.
int64_t free_address_space(const char* root) {
    rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return -1;
    char path[1024], text[128];
    snprintf(path, sizeof path, "%s/proc/self/statm", root);
    if (!read_text_file(path, text, sizeof text)) return -1;
    const int64_t used = strtoll(text, nullptr, 10) * sysconf(_SC_PAGESIZE);
    const int64_t allowed = static_cast<int64_t>(limit.rlim_cur);
    return allowed > used ? allowed - used : 0;
}

// Pages whose addresses need one entry of a processor's translation buffer. The kernel uses them where a mapping
// contains a whole aligned one.
constexpr int64_t kHugePage = 2 << 20;

// Whole pages that begin at a multiple of `alignment`, or null.
char* map_aligned(int64_t bytes, int64_t alignment) {
    const int64_t page = sysconf(_SC_PAGESIZE), spare = alignment - page;
    constexpr int kProtection = PROT_READ | PROT_WRITE, kFlags = MAP_PRIVATE | MAP_ANONYMOUS;
    void* mapped = mmap(nullptr, static_cast<size_t>(bytes + spare), kProtection, kFlags, -1, 0);
    if (mapped == MAP_FAILED) return nullptr;
    char* const start = static_cast<char*>(mapped);
    const int64_t offset = static_cast<int64_t>(reinterpret_cast<uintptr_t>(start)) & (alignment - 1);
    const int64_t before = offset ? alignment - offset : 0;
    if (before > 0) munmap(start, static_cast<size_t>(before));
    if (spare > before) munmap(start + before + bytes, static_cast<size_t>(spare - before));
    return start + before;
}

}  // namespace

AvailableMemory available_memory(const char* root) {
    AvailableMemory available{INT64_MAX, "no limit"};
    limit_to(&available, free_memory_of_machine(root), "the free memory of this machine");
    limit_to(&available, read_cgroup_limits(root).memory_available, "the memory limit of this control group");
    limit_to(&available, free_address_space(root), "the address space limit of this process (RLIMIT_AS)");
    return available;
}

bool has_memory_for(int64_t bytes) {
    static constinit std::atomic<int64_t> unasked{0};
    if (unasked.fetch_add(bytes, std::memory_order_relaxed) + bytes < kAskAgain) return true;
    unasked.store(0, std::memory_order_relaxed);
    return bytes <= available_memory().bytes;
}

Pages map_pages(int64_t bytes, const char* argument) {
    const int64_t page = sysconf(_SC_PAGESIZE);
    const int64_t rounded = (bytes + page - 1) / page * page;
    const AvailableMemory available = available_memory();
    if (rounded > available.bytes) {
        fail(DS_STATUS_OUT_OF_MEMORY, argument, kHint, "%ld bytes are needed and %ld bytes are available (%s)",
             rounded, available.bytes, available.limit);
        return {};
    }
    char* data = map_aligned(rounded, rounded < kHugePage ? page : kHugePage);
    if (!data) {
        fail(DS_STATUS_OUT_OF_MEMORY, argument, kHint,
             "%ld bytes are needed and the operating system refuses them (%ld bytes seemed available)",
             rounded, available.bytes);
        return {};
    }
    madvise(data, static_cast<size_t>(rounded), MADV_HUGEPAGE);  // without them it only takes longer
    return Pages(data, rounded);
}

Pages::~Pages() {
    if (data_) munmap(data_, static_cast<size_t>(bytes_));
}

// ---- Memory of tensors ----

Memory::Memory(char* data, int64_t bytes, int32_t device_kind, int32_t device_index)
    : data_(data), bytes_(bytes), device_kind_(device_kind), device_index_(device_index) {
    live_counts.memories.fetch_add(1, std::memory_order_relaxed);
}

Memory::~Memory() {
    if (owner_.release) owner_.release(owner_.owner);
    if (count_) count_->bytes.fetch_sub(bytes_, std::memory_order_relaxed);
    live_counts.memories.fetch_sub(1, std::memory_order_relaxed);
}

void Memory::watch(const char* tensor, const uint64_t* first, const uint64_t* second) {
    tensor_ = tensor;
    watched_[0] = {first, first ? *first : 0};
    watched_[1] = {second, second ? *second : 0};
}

ds_status Memory::check() const {
    if (!has_moved()) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_STATE, tensor_,
                "bind it again; share_memory_(), which sending to a process calls, resize_(), set_() and setting .data "
                "give a tensor of PyTorch other memory",
                "%s is bound to memory that its owner has moved", tensor_);
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
