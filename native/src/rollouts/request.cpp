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

void Request::begin_output(ds_output_kind kind, ds_episode_output* output) const {
    *output = {};
    output->id = parent ? parent->id : id;
    output->tag = asked.tag;
    output->continuation = continuation;
    output->submitted_ns = submitted_ns;
    output->kind = kind;
    output->reason = -1;
    output->num_agents = num_agents;
    output->record = asked.record;
    output->replica = output->world = -1;
}

void Request::write_output(int32_t place, ds_episode_output* output) const {
    DS_ASSERT(place >= 0 && place < num_outputs());
    if (place < steps_made) {
        begin_output(DS_OUTPUT_STEP, output);
        output->length = place + 1;
    } else {
        *output = result;
        output->continuation += place - steps_made;
    }
    const bool has_data = trajectory.memory && output->length > 0;
    output->data_start = has_data ? trajectory.memory->data() : nullptr;
    output->data_bytes = has_data ? static_cast<uint64_t>(trajectory.memory->bytes()) : 0;
    output->capacity = trajectory.capacity;
    output->state_size = trajectory.state_size;
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
    for (uint32_t i = 0; i < num_made_; ++i) at(i)->~Request();
}

// Null if memory ran out.
Request* RequestTable::make() {
    const uint32_t chunk = num_made_ / kChunk;
    if (chunk == kChunks) return nullptr;
    if (!chunks_[chunk]) chunks_[chunk] = map_pages(kChunk * static_cast<int64_t>(sizeof(Request)), "requests");
    if (!chunks_[chunk]) return nullptr;
    Request* const made = new (at(num_made_)) Request;
    made->id = request_id::make(number, num_made_++);
    return made;
}

Request* RequestTable::allocate() {
    Request* const request = free_ ? free_ : make();
    if (!request) return nullptr;
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
    if (index >= num_made_) return nullptr;
    Request* const request = at(index);
    return request->state != RequestState::kFree && request->id == id ? request : nullptr;
}

}  // namespace doorstep
