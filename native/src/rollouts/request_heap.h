// Requests by their keys, those with equal ones in the order of their submission. As long as they come in this order, as
// those without keys do, they are a sorted array, which is also a heap.
#pragma once

#include "rollouts/request.h"

namespace doorstep {

// place_in: the member that says where a request is in the heap.
template <int64_t Request::*place_in>
class RequestHeap {
public:
    RequestHeap() = default;
    ~RequestHeap();
    RequestHeap(const RequestHeap&) = delete;
    RequestHeap& operator=(const RequestHeap&) = delete;

    Request* first() const { return size_ > 0 ? entries_[begin_].request : nullptr; }
    int64_t size() const { return size_; }

    bool reserve(int64_t capacity);               // false if memory ran out
    void insert(Request* request, int64_t key);  // into reserved memory
    void remove(Request* request);

private:
    // With what is compared, so that comparing reads no requests.
    struct Entry {
        int64_t key;
        uint64_t sequence;
        Request* request;

        bool is_before(const Entry& other) const {
            return key != other.key ? key < other.key : sequence < other.sequence;
        }
    };

    void put(const Entry& entry, int64_t place) {
        DS_ASSERT(place >= 0 && place < capacity_ && entry.request->state != RequestState::kFree);
        entries_[place] = entry;
        entry.request->*place_in = place;
    }
    void move_to_front();
    void move_up(const Entry& entry, int64_t place);
    void move_down(const Entry& entry, int64_t place);

    Entry* entries_ = nullptr;
    int64_t begin_ = 0, size_ = 0, capacity_ = 0;
    bool is_sorted_ = true;  // the entries, which begin at begin_; else they are a heap, and begin_ is 0
};

}  // namespace doorstep
