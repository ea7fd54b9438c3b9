#include "rollouts/request.h"

#include <atomic>
#include <new>

#include "rollouts/interruptions.h"
#include "runtime/memory.h"

namespace doorstep {

namespace {

uint32_t next_table_number() {
    static std::atomic<uint32_t> made{0};
    return 1 + made.fetch_add(1, std::memory_order_relaxed) % ((1u << request_id::kTableBits) - 1);
}

}  // namespace

Request::Request() = default;
Request::~Request() = default;

EpisodeStart Request::start() const {
    if (interrupted) return {nullptr, interrupted->world.get(), 0, 0};
    if (parts.state) return {nullptr, parts.state->block(), 0, 0};
    return {parts.level ? &parts.level->level : nullptr, nullptr, static_cast<uint32_t>(asked.seed),
            static_cast<int32_t>(asked.max_steps)};
}

RequestTable::RequestTable() : number(next_table_number()) {}

RequestTable::~RequestTable() {
    for (uint32_t i = 0; i < num_chunks_; ++i) delete[] chunks_[i];
}

bool RequestTable::grow() {
    DS_ASSERT(!free_);
    if (num_chunks_ == kChunks || !has_memory_for(kChunk * static_cast<int64_t>(sizeof(Request)))) return false;
    Request* chunk = new (std::nothrow) Request[kChunk];
    if (!chunk) return false;
    for (uint32_t i = kChunk; i-- > 0;) {
        chunk[i].id = request_id::make(number, num_chunks_ * kChunk + i);
        chunk[i].next = free_;
        free_ = &chunk[i];
    }
    chunks_[num_chunks_++] = chunk;
    return true;
}

Request* RequestTable::take_free() {
    if (!free_ && !grow()) return nullptr;
    Request* request = free_;
    DS_ASSERT(!request->in_use && !request->interrupted && !request->queue);
    free_ = request->next;
    request->in_use = true;
    request->cancelled = request->answered = false;
    request->streamed = 0;
    request->queue = nullptr;
    request->next = nullptr;
    ++in_use_;
    DS_ASSERT(in_use_ <= int64_t{num_chunks_} * kChunk && find(request->id) == request);
    return request;
}

void RequestTable::give_back(Request* request) {
    DS_ASSERT(request->in_use && !request->queue && in_use_ > 0 && find(request->id) == request);
    request->in_use = false;
    request->parts = {};
    request->interrupted = {};
    request->id = request_id::next(request->id);
    DS_ASSERT(request_id::table_of(request->id) == number);
    request->next = free_;
    free_ = request;
    if (--in_use_ == 0) answered.tell();
}

Request* RequestTable::find(uint64_t id) {
    const uint32_t index = request_id::index_of(id);
    if (index / kChunk >= num_chunks_) return nullptr;
    Request* request = &chunks_[index / kChunk][index % kChunk];
    return request->in_use && request->id == id ? request : nullptr;
}

}  // namespace doorstep
