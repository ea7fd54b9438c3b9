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

OutputQueue::OutputQueue(const OutputLimits& limits) : limits_(limits) {
    live_counts.rollouts.fetch_add(1, std::memory_order_relaxed);
}

OutputQueue::~OutputQueue() { live_counts.rollouts.fetch_sub(1, std::memory_order_relaxed); }

bool OutputQueue::Box::grow(int64_t most) {
    if (most <= capacity) return true;
    int64_t grown = capacity ? capacity : 64;
    while (grown < most) grown *= 2;
    if (!has_memory_for(grown * static_cast<int64_t>(sizeof(Output)))) return false;
    Output* larger = new (std::nothrow) Output[static_cast<size_t>(grown)]();
    if (!larger) return false;
    for (int64_t i = 0; i < size; ++i) larger[i] = std::move(at(i));
    delete[] ring;
    ring = larger;
    capacity = grown;
    first = 0;
    DS_ASSERT((capacity & (capacity - 1)) == 0 && size + reserved <= capacity);
    return true;
}

bool OutputQueue::has_room(const Box& box, int64_t bytes) const {
    const int64_t outputs = box.size + box.reserved;
    return !is_limited_ || outputs == 0 || (outputs < limits_.outputs && box.bytes + bytes <= limits_.bytes);
}

Room OutputQueue::reserve(const Output& output) {
    MutexGuard guard(mutex_);
    Box& box = boxes_[output.reader];
    const int64_t bytes = static_cast<int64_t>(output.told.data_bytes);
    box.is_full = !has_room(box, bytes);
    if (box.is_full) return Room::kNone;
    if (!box.grow(box.size + box.reserved + 1)) return Room::kNoMemory;
    ++box.reserved;
    box.bytes += bytes;
    return Room::kSome;
}

void OutputQueue::push_reserved(Output* outputs, int64_t count) {
    bool got_some[DS_NUM_READERS] = {};
    {
        MutexGuard guard(mutex_);
        for (int64_t i = 0; i < count; ++i) {
            Box& box = boxes_[outputs[i].reader];
            DS_ASSERT(box.reserved > 0 && box.size + box.reserved <= box.capacity);
            DS_ASSERT(outputs[i].told.id != 0 && !box.at(box.size).data);
            --box.reserved;
            got_some[outputs[i].reader] = true;
            box.at(box.size++) = std::move(outputs[i]);
        }
    }
    for (int32_t reader = 0; reader < DS_NUM_READERS; ++reader) {
        if (got_some[reader]) boxes_[reader].arrivals.tell();
    }
}

ds_status OutputQueue::take(int32_t reader, int64_t most, int64_t timeout_ns, Receive receive, void* context) {
    const TimeLimit limit(timeout_ns);
    Box& box = boxes_[reader];
    for (;;) {
        const uint32_t before = box.arrivals.now();
        int64_t taken = 0;
        ds_status status = DS_STATUS_OK;
        {
            MutexGuard guard(mutex_);
            if (box.size == 0 && closed_) {
                return fail(DS_STATUS_CLOSED, "engine", "make a new engine",
                            "the engine has ended, and all outputs have been taken");
            }
            for (; taken < most && box.size > 0; ++taken) {
                Output& output = box.at(0);
                status = receive(context, output);
                if (status) break;
                output.data = {};
                box.bytes -= static_cast<int64_t>(output.told.data_bytes);
                DS_ASSERT(box.bytes >= 0);
                box.first = (box.first + 1) & (box.capacity - 1);
                --box.size;
            }
            if (taken > 0) box.is_full = false;
        }
        if (taken > 0) room_.tell();
        if (taken > 0 || status) return status;
        const int64_t left = limit.left_ns();
        if (left == 0) return DS_STATUS_PENDING;
        box.arrivals.wait(before, left);
    }
}

int64_t OutputQueue::size(int32_t reader) {
    MutexGuard guard(mutex_);
    return boxes_[reader].size;
}

bool OutputQueue::is_full(int32_t reader) {
    MutexGuard guard(mutex_);
    return is_limited_ && boxes_[reader].is_full;
}

void OutputQueue::lift_limits() {
    is_limited_ = false;
    room_.tell();
}

void OutputQueue::close() {
    {
        MutexGuard guard(mutex_);
        closed_ = true;
    }
    for (Box& box : boxes_) box.arrivals.tell();
}

}  // namespace doorstep
