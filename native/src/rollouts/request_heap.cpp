#include "rollouts/request_heap.h"

#include <stdlib.h>

#include <algorithm>

#include "runtime/memory.h"

namespace doorstep {

template <int64_t Request::*place_in>
RequestHeap<place_in>::~RequestHeap() { free(entries_); }

template <int64_t Request::*place_in>
bool RequestHeap<place_in>::reserve(int64_t capacity) {
    if (2 * capacity <= capacity_) return true;  // so that move_to_front() is rare
    const int64_t grown = std::max(2 * capacity_, 4 * capacity);
    if (!has_memory_for(grown * static_cast<int64_t>(sizeof(Entry)))) return false;
    void* memory = realloc(entries_, static_cast<size_t>(grown) * sizeof(Entry));
    if (!memory) return false;
    entries_ = static_cast<Entry*>(memory);
    capacity_ = grown;
    return true;
}

template <int64_t Request::*place_in>
void RequestHeap<place_in>::insert(Request* request, int64_t key) {
    DS_ASSERT(size_ < capacity_ && request->state != RequestState::kFree);
    const Entry entry = {key, request->sequence, request};
    is_sorted_ = size_ == 0 || (is_sorted_ && !entry.is_before(entries_[begin_ + size_ - 1]));
    if (size_ == 0) begin_ = 0;
    if (!is_sorted_ || begin_ + size_ == capacity_) move_to_front();
    if (is_sorted_) put(entry, begin_ + size_++);
    else move_up(entry, size_++);
}

template <int64_t Request::*place_in>
void RequestHeap<place_in>::remove(Request* request) {
    const int64_t place = request->*place_in;
    DS_ASSERT(place >= begin_ && place < begin_ + size_ && entries_[place].request == request);
    if (is_sorted_ && (place == begin_ || place == begin_ + size_ - 1)) {
        begin_ += place == begin_;
        --size_;
        return;
    }
    if (is_sorted_) {
        is_sorted_ = false;
        move_to_front();
        return remove(request);
    }
    const Entry last = entries_[--size_];
    if (last.request == request) return;
    if (place > 0 && last.is_before(entries_[(place - 1) / 2])) move_up(last, place);
    else move_down(last, place);
}

template <int64_t Request::*place_in>
void RequestHeap<place_in>::move_to_front() {
    for (int64_t place = 0; begin_ > 0 && place < size_; ++place) put(entries_[begin_ + place], place);
    begin_ = 0;
}

template <int64_t Request::*place_in>
void RequestHeap<place_in>::move_up(const Entry& entry, int64_t place) {
    const Entry moved = entry;
    while (place > 0) {
        const int64_t parent = (place - 1) / 2;
        if (!moved.is_before(entries_[parent])) break;
        put(entries_[parent], place);
        place = parent;
    }
    put(moved, place);
    DS_ASSERT(place == 0 || !moved.is_before(entries_[(place - 1) / 2]));
}

template <int64_t Request::*place_in>
void RequestHeap<place_in>::move_down(const Entry& entry, int64_t place) {
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

template class RequestHeap<&Request::place>;
template class RequestHeap<&Request::deadline_place>;

}  // namespace doorstep
