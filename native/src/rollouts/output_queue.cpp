#include "rollouts/output_queue.h"

#include <string.h>

#include <new>

#include "runtime/status.h"

namespace doorstep {

// ---- Memory ----

Ref<OutputMemory> OutputMemory::make(int64_t bytes) {
    char* memory = has_memory_for(bytes) ? new (std::nothrow) char[static_cast<size_t>(bytes)] : nullptr;
    if (!memory) return {};
    OutputMemory* made = new (std::nothrow) OutputMemory(memory, bytes);
    if (!made) delete[] memory;
    return Ref<OutputMemory>::adopt(made);
}

Ref<OutputMemory> OutputMemory::copy(const char* data, int64_t bytes) {
    Ref<OutputMemory> made = make(bytes);
    if (made) memcpy(made->data(), data, static_cast<size_t>(bytes));
    return made;
}

OutputMemory::~OutputMemory() { delete[] data(); }

ds_status OutputMemory::read(const void* start, int64_t bytes, void* host) {
    DS_ASSERT(contains(start, bytes));
    memcpy(host, start, static_cast<size_t>(bytes));
    return DS_STATUS_OK;
}

ds_status OutputMemory::write(void* start, int64_t bytes, const void* host) {
    DS_ASSERT(contains(start, bytes));
    memcpy(start, host, static_cast<size_t>(bytes));
    return DS_STATUS_OK;
}

ds_status OutputMemory::order(uint64_t) { return DS_STATUS_OK; }

// ---- Queue ----

OutputQueue::OutputQueue() { live_counts.rollouts.fetch_add(1, std::memory_order_relaxed); }

OutputQueue::~OutputQueue() {
    delete[] ring_;
    live_counts.rollouts.fetch_sub(1, std::memory_order_relaxed);
}

bool OutputQueue::grow(int64_t capacity) {
    if (capacity <= capacity_) return true;
    int64_t grown = capacity_ ? capacity_ : 64;
    while (grown < capacity) grown *= 2;
    if (!has_memory_for(grown * static_cast<int64_t>(sizeof(Output)))) return false;
    Output* ring = new (std::nothrow) Output[static_cast<size_t>(grown)]();
    if (!ring) return false;
    for (int64_t i = 0; i < size_; ++i) ring[i] = std::move(at(i));
    delete[] ring_;
    ring_ = ring;
    capacity_ = grown;
    first_ = 0;
    DS_ASSERT((capacity_ & (capacity_ - 1)) == 0 && size_ + reserved_ <= capacity_);
    return true;
}

bool OutputQueue::reserve(int64_t count) {
    MutexGuard guard(mutex_);
    if (!grow(size_ + reserved_ + count)) return false;
    reserved_ += count;
    return true;
}

void OutputQueue::push_reserved(Output* outputs, int64_t count) {
    if (count == 0) return;
    {
        MutexGuard guard(mutex_);
        DS_ASSERT(reserved_ >= count && size_ + reserved_ <= capacity_);
        reserved_ -= count;
        for (int64_t i = 0; i < count; ++i) {
            DS_ASSERT(outputs[i].told.id != 0 && !at(size_).data);
            at(size_++) = std::move(outputs[i]);
        }
    }
    changes_.tell();
}

bool OutputQueue::push(Output* outputs, int64_t count) {
    if (!reserve(count)) return false;
    push_reserved(outputs, count);
    return true;
}

ds_status OutputQueue::take(int64_t most, int64_t timeout_ns, Receive receive, void* context) {
    const TimeLimit limit(timeout_ns);
    for (;;) {
        const uint32_t before = changes_.now();
        {
            MutexGuard guard(mutex_);
            if (size_ == 0 && closed_) {
                return fail(DS_STATUS_CLOSED, "engine", "make a new engine",
                            "the engine has ended, and all outputs have been taken");
            }
            const int64_t count = size_ < most ? size_ : most;
            for (int64_t i = 0; i < count; ++i) {
                Output& output = at(0);
                if (const ds_status status = receive(context, output)) return status;
                DS_ASSERT(size_ > 0);
                output.data = {};
                first_ = (first_ + 1) & (capacity_ - 1);
                --size_;
            }
            if (count > 0) return DS_STATUS_OK;
        }
        const int64_t left = limit.left_ns();
        if (left == 0) return DS_STATUS_PENDING;
        changes_.wait(before, left);
    }
}

int64_t OutputQueue::size() {
    MutexGuard guard(mutex_);
    return size_;
}

void OutputQueue::close() {
    {
        MutexGuard guard(mutex_);
        closed_ = true;
    }
    changes_.tell();
}

}  // namespace doorstep
