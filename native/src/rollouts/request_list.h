// Requests in the order of their submission. Allocates nothing.
#pragma once

#include "rollouts/request.h"

namespace doorstep {

class RequestList {
public:
    Request* first() const { return first_; }
    int64_t size() const { return size_; }

    // Behind those that were submitted earlier. Fast near both ends: requests come at the last, and are taken back to
    // the first.
    void insert(Request* request) { insert_behind(find_before(request->sequence), request); }

    void remove(Request* request) {
        DS_ASSERT(size_ > 0 && is_linked(request));
        (request->previous ? request->previous->next : first_) = request->next;
        (request->next ? request->next->previous : last_) = request->previous;
        request->next = request->previous = nullptr;
        --size_;
        DS_ASSERT((size_ == 0) == !first_ && !first_ == !last_);
    }

    // Removes the requests for which the function returns true; it may put them into another list.
    template <class Function>
    void remove_if(const Function& function) {
        for (Request* request = first_; request;) {
            Request* next = request->next;
            if (function.matches(request)) {
                remove(request);
                function.removed(request);
            }
            request = next;
        }
    }

private:
    // Its neighbours, or the ends of the list, refer to it.
    bool is_linked(const Request* request) const {
        return (request->previous ? request->previous->next : first_) == request &&
               (request->next ? request->next->previous : last_) == request;
    }

    // The last one that was submitted earlier, or null.
    Request* find_before(uint64_t sequence) const {
        if (!first_ || sequence < first_->sequence) return nullptr;
        Request* before = last_;
        if (sequence - first_->sequence > (last_->sequence - first_->sequence) / 2) {
            while (before->sequence > sequence) before = before->previous;
            return before;
        }
        before = first_;
        while (before->next && before->next->sequence < sequence) before = before->next;
        return before;
    }

    void insert_behind(Request* before, Request* request) {
        Request* after = before ? before->next : first_;
        DS_ASSERT(request->in_use && !request->next && !request->previous);
        DS_ASSERT((!before || before->sequence < request->sequence) && (!after || request->sequence < after->sequence));
        request->previous = before;
        request->next = after;
        (before ? before->next : first_) = request;
        (after ? after->previous : last_) = request;
        ++size_;
        DS_ASSERT(is_linked(request) && size_ > 0);
    }

    Request* first_ = nullptr;
    Request* last_ = nullptr;
    int64_t size_ = 0;
};

}  // namespace doorstep
