#include "rollouts/request_heap.h"

#include <stdlib.h>

namespace doorstep {

RequestHeap::~RequestHeap() { free(entries_); }

bool RequestHeap::reserve(int64_t capacity) {
    if (capacity <= capacity_) return true;
    const int64_t grown = capacity_ * 2 > capacity ? capacity_ * 2 : capacity;
    void* memory = realloc(entries_, static_cast<size_t>(grown) * sizeof(Entry));
    if (!memory) return false;
    entries_ = static_cast<Entry*>(memory);
    capacity_ = grown;
    return true;
}

void RequestHeap::insert(Request* request) {
    DS_ASSERT(size_ < capacity_);
    move_up({request->key, request->sequence, request}, size_++);
}

void RequestHeap::remove(Request* request) {
    const int64_t place = request->place;
    DS_ASSERT(place >= 0 && place < size_ && entries_[place].request == request);
    const Entry last = entries_[--size_];
    if (last.request == request) return;
    if (place > 0 && last.is_before(entries_[(place - 1) / 2])) move_up(last, place);
    else move_down(last, place);
}

void RequestHeap::move_up(const Entry& entry, int64_t place) {
    const Entry moved = entry;
    while (place > 0) {
        const int64_t parent = (place - 1) / 2;
        if (!moved.is_before(entries_[parent])) break;
        put(entries_[parent], place);
        place = parent;
    }
    put(moved, place);
}

void RequestHeap::move_down(const Entry& entry, int64_t place) {
    const Entry moved = entry;
    for (;;) {
        int64_t child = 2 * place + 1;
        if (child >= size_) break;
        if (child + 1 < size_ && entries_[child + 1].is_before(entries_[child])) ++child;
        if (!entries_[child].is_before(moved)) break;
        put(entries_[child], place);
        place = child;
    }
    put(moved, place);
}

}  // namespace doorstep
