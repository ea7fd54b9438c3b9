#include "rollouts/request.h"

#include <string.h>

#include <atomic>
#include <new>

#include "rollouts/outputs.h"

namespace doorstep {

// ---- Memory of outputs ----

Ref<OutputMemory> OutputMemory::make(int64_t bytes) {
    char* memory = has_memory_for(bytes) ? new (std::nothrow) char[static_cast<size_t>(bytes)] : nullptr;
    if (!memory) return {};
    OutputMemory* made = new (std::nothrow) OutputMemory(memory, bytes);
    if (!made) delete[] memory;
    return Ref<OutputMemory>::adopt(made);
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

// ---- Requests ----

ds_episode_output Request::new_output(ds_output_kind kind) const {
    ds_episode_output made = {};
    made.id = parent ? parent->id : id;
    made.tag = asked.tag;
    made.continuation = continuation;
    made.submitted_ns = submitted_ns;
    made.kind = kind;
    made.reason = -1;
    made.num_agents = num_agents;
    made.record = asked.record;
    made.replica = made.world = -1;
    return made;
}

ds_episode_output Request::output(int32_t place) const {
    DS_ASSERT(place >= 0 && place < num_outputs());
    const bool is_step = place < steps_made;
    ds_episode_output made = is_step ? new_output(DS_OUTPUT_STEP) : result;
    if (is_step) made.length = place + 1;
    else made.continuation += place - steps_made;
    const bool has_data = trajectory.memory && made.length > 0;
    made.data_start = has_data ? trajectory.memory->data() : nullptr;
    made.data_bytes = has_data ? static_cast<uint64_t>(trajectory.memory->bytes()) : 0;
    made.capacity = trajectory.capacity;
    made.state_size = trajectory.state_size;
    return made;
}

// ---- Their table ----

namespace {

uint32_t next_table_number() {
    static std::atomic<uint32_t> made{0};
    return 1 + made.fetch_add(1, std::memory_order_relaxed) % ((1u << request_id::kTableBits) - 1);
}

}  // namespace

RequestTable::RequestTable() : number(next_table_number()), forks_(num_forks()) {}

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

Request* RequestTable::allocate() {
    if (!free_ && !grow()) return nullptr;
    Request* request = free_;
    DS_ASSERT(request->state == RequestState::kFree && !request->is_listed && !request->parent);
    free_ = request->next;
    request->state = RequestState::kWaiting;
    request->cancelled = false;
    request->holders = 1;
    request->num_playing = request->begun = 0;
    request->steps_made = request->results_made = request->delivered = request->received = 0;
    request->next = nullptr;
    request->continuation = 0;
    return request;
}

void RequestTable::free(Request* request) {
    DS_ASSERT(!request->is_listed && request->state >= RequestState::kBegun);
    Request* const parent = request->parent;
    request->parent = nullptr;
    request->trajectory = {};
    release(request);
    if (parent) release(parent);
}

void RequestTable::release(Request* request) {
    DS_ASSERT(request->holders > 0 && find(request->id) == request);
    if (--request->holders > 0) return;
    request->state = RequestState::kFree;
    request->parts = {};
    request->outputs = {};
    request->id = request_id::next(request->id);
    DS_ASSERT(request_id::table_of(request->id) == number);
    request->next = free_;
    free_ = request;
}

Request* RequestTable::find(uint64_t id) {
    const uint32_t index = request_id::index_of(id);
    if (index / kChunk >= num_chunks_) return nullptr;
    Request* request = &chunks_[index / kChunk][index % kChunk];
    return request->state != RequestState::kFree && request->id == id ? request : nullptr;
}

}  // namespace doorstep
