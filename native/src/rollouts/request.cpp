#include "rollouts/request.h"

#include <new>

namespace doorstep {

RequestTable::~RequestTable() {
    for (uint32_t i = 0; i < num_chunks_; ++i) delete[] chunks_[i];
}

bool RequestTable::grow() {
    if (num_chunks_ == kChunks) return false;
    Request* chunk = new (std::nothrow) Request[kChunk]();
    if (!chunk) return false;
    for (uint32_t i = kChunk; i-- > 0;) {
        chunk[i].index = num_chunks_ * kChunk + i;
        chunk[i].generation = 1;
        chunk[i].next = free_;
        free_ = &chunk[i];
    }
    chunks_[num_chunks_++] = chunk;
    return true;
}

Request* RequestTable::take_free() {
    if (!free_ && !grow()) return nullptr;
    Request* request = free_;
    DS_ASSERT(!request->in_use);
    free_ = request->next;
    request->in_use = true;
    request->cancelled = false;
    request->streamed = 0;
    request->queue = nullptr;
    request->next = nullptr;
    ++in_use_;
    return request;
}

void RequestTable::give_back(Request* request) {
    DS_ASSERT(request->in_use && !request->queue);
    request->in_use = false;
    request->level = {};
    if (++request->generation == 0) request->generation = 1;
    request->next = free_;
    free_ = request;
    if (--in_use_ == 0) answered.tell();
}

Request* RequestTable::find(uint64_t id) {
    const uint32_t index = static_cast<uint32_t>(id);
    if (index / kChunk >= num_chunks_) return nullptr;
    Request* request = &chunks_[index / kChunk][index % kChunk];
    return request->in_use && request->id() == id ? request : nullptr;
}

}  // namespace doorstep
