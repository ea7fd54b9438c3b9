#include "exec/cpu/cpu_simulator.h"

#include <string.h>

#include <algorithm>
#include <new>

#include "math/float_environment.h"
#include "runtime/hash.h"
#include "runtime/marks.h"
#include "runtime/status.h"

namespace doorstep {
namespace {

// The CPU has no streams.
ds_status check_cpu_stream(uint64_t stream) {
    if (stream == DS_STREAM_OWN) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, "stream", "leave stream out on the CPU",
                "stream is 0x%lx; the CPU has no streams", stream);
}

Ref<Memory> check_allocated(CpuMemory* memory, const char* argument) {
    if (!memory) {
        fail(DS_STATUS_OUT_OF_MEMORY, argument, "close other simulators, or raise the memory limit",
             "no memory is left for a record of %zu bytes", sizeof(CpuMemory));
    }
    return Ref<Memory>::adopt(memory);
}

// Calls function(first, count) for every run of worlds in [first, first + count) whose mask bytes are set.
template <class Function>
void for_each_run(const uint8_t* mask, int64_t first, int64_t count, const Function& function) {
    const int64_t end = first + count;
    if (!mask) return function(first, count);
    for (int64_t start = next_marked(mask, first, end), stop; start < end; start = next_marked(mask, stop, end)) {
        stop = next_unmarked(mask, start, end);
        function(start, stop - start);
    }
}

// Calls function(first, count) for the marked worlds of every tile of [first, first + count), and what is between them:
// an unmarked world takes a few nanoseconds.
template <class Function>
void for_each_marked_tile(const uint8_t* mask, int64_t first, int64_t count, const Function& function) {
    if (!mask) return function(first, count);
    for (int64_t start = first; start < first + count; start += kTileWorlds) {
        const int64_t end = std::min(start + kTileWorlds, first + count), first_marked = next_marked(mask, start, end);
        if (first_marked == end) continue;
        int64_t last_marked = end - 1;
        while (!mask[last_marked]) --last_marked;
        function(first_marked, last_marked + 1 - first_marked);
    }
}

ds_status fail_threads(int count) {
    return fail(DS_STATUS_OUT_OF_MEMORY, "num_threads",
                "use fewer threads, or raise the limit of processes (ulimit -u)",
                "the operating system refuses to start %d threads", count);
}

}  // namespace

// ---- Memory ----

Ref<Memory> CpuMemory::take(int64_t bytes, const Ref<WorkProgress>& progress, const char* argument) {
    Pages pages = map_pages(bytes, argument);
    if (!pages) return {};
    return check_allocated(new (std::nothrow) CpuMemory(std::move(pages), progress), argument);
}

Ref<Memory> CpuMemory::borrow(char* data, int64_t bytes, const Ref<WorkProgress>& progress) {
    return check_allocated(new (std::nothrow) CpuMemory(data, bytes, progress), "bindings");
}

CpuMemory::CpuMemory(Pages pages, const Ref<WorkProgress>& progress)
    : Memory(pages.data(), pages.bytes(), DS_DEVICE_CPU, 0), pages_(std::move(pages)), progress_(progress) {}

CpuMemory::CpuMemory(char* data, int64_t bytes, const Ref<WorkProgress>& progress)
    : Memory(data, bytes, DS_DEVICE_CPU, 0), progress_(progress) {}

ds_status CpuMemory::read(const void* start, int64_t bytes, void* host) {
    DS_ASSERT(contains(start, bytes));
    progress_->wait(progress_->latest(), -1);
    memcpy(host, start, static_cast<size_t>(bytes));
    return DS_STATUS_OK;
}

ds_status CpuMemory::write(void* start, int64_t bytes, const void* host) {
    DS_ASSERT(contains(start, bytes));
    progress_->wait(progress_->latest(), -1);
    memcpy(start, host, static_cast<size_t>(bytes));
    return DS_STATUS_OK;
}

ds_status CpuMemory::order(uint64_t stream) { return check_cpu_stream(stream); }

// ---- Creation ----

ds_status CpuSimulator::create(const ds_simulator_config& config, Ref<Simulator>* simulator) {
    if (const ds_status status = check_cpu_stream(config.stream)) return status;
    const DefaultFloatEnvironment environment;  // the model computes tables when it is first used
    const Ref<CpuSimulator> made = Ref<CpuSimulator>::adopt(new (std::nothrow) CpuSimulator(config));
    if (!made || !made->has_records() || !made->progress_) return fail_records();
    CpuSimulator& self = *made;
    if (!self.pool_.initialize(self.config_.num_threads, config.num_worlds)) return fail_records();
    if (!self.take_own_memory()) return DS_STATUS_OUT_OF_MEMORY;
    if (const ds_status status = self.prepare()) return status;
    if (const ds_status status = self.set_first_levels()) return status;
    self.pool_.run(config.num_worlds, [&self](int64_t first, int64_t count, int) {
        self.model_->create(self.simulation_, first, count, static_cast<uint32_t>(self.config_.seed),
                            static_cast<uint64_t>(self.config_.world_offset));
    });
    *simulator = made;
    return DS_STATUS_OK;
}

CpuSimulator::CpuSimulator(const ds_simulator_config& config)
    : Simulator(config, DS_DEVICE_CPU), progress_(Ref<WorkProgress>::adopt(new (std::nothrow) WorkProgress)) {
    if (config_.num_threads == 0) config_.num_threads = default_thread_count();
}

bool CpuSimulator::take_own_memory() {
    const int64_t mask_offset = layout_.place(config_.num_worlds);
    const int64_t ticks_offset = layout_.place(pool_.capacity() * kTickStride * static_cast<int64_t>(sizeof(uint64_t)));
    Ref<Memory> taken = CpuMemory::take(layout_.bytes, progress_, "num_worlds");
    if (!taken) return false;
    char* base = taken->data();
    take_over(std::move(taken));
    mask_ = reinterpret_cast<uint8_t*>(base + mask_offset);
    ticks_ = reinterpret_cast<uint64_t*>(base + ticks_offset);
    for (int field = 0; field < DS_STATE_COUNT; ++field) {
        if (layout_.constants[field] < 0) continue;
        memcpy(base + layout_.constants[field], model_->state_fields[field].constant,
               static_cast<size_t>(constant_bytes(*model_, field)));
    }
    return true;
}

// ---- Description ----

int64_t CpuSimulator::own_bytes() const {
    return memory()->bytes() + pool_.allocated_bytes() +
           static_cast<int64_t>(sizeof(CpuSimulator) + sizeof(CpuMemory) + sizeof(WorkProgress));
}

char* CpuSimulator::block(int64_t world) const {
    DS_ASSERT(world >= 0 && world < config_.num_worlds);
    return static_cast<char*>(simulation_.worlds) + world * static_cast<int64_t>(model_->world_bytes);
}

// ---- Life ----

ds_status CpuSimulator::prepare() {
    return pool_.start() ? DS_STATUS_OK : fail_threads(pool_.size() - 1);
}

bool CpuSimulator::close() {
    background_.stop();
    pool_.stop();
    return true;
}

void CpuSimulator::enter_forked_child() {
    background_.forget_thread();
    pool_.forget_threads();
}

ds_status CpuSimulator::find_end(Ref<StepEvent>* event) {
    *event = Ref<StepEvent>::adopt(new (std::nothrow) CpuStepEvent(progress_, progress_->latest()));
    if (*event) return DS_STATUS_OK;
    return fail(DS_STATUS_OUT_OF_MEMORY, "", "close events that are no longer needed",
                "no memory is left for an event");
}

// ---- Stepping ----

// find_runs(first, count, step_run) calls step_run(first, count) for the runs of worlds that step.
template <class FindRuns>
ds_status CpuSimulator::step_runs(const FindRuns& find_runs) {
    std::atomic<uint32_t> trouble{0};
    pool_.run(config_.num_worlds, [&](int64_t first, int64_t count, int worker) {
        uint32_t met = 0;
        find_runs(first, count, [&](int64_t start, int64_t length) {
            met |= model_->step(simulation_, start, length, profiling_ ? ticks_of(worker) : nullptr);
        });
        if (met) trouble.fetch_or(met, std::memory_order_relaxed);
    });
    trouble_ |= trouble.load(std::memory_order_relaxed);
    step_count_.fetch_add(1, std::memory_order_relaxed);
    return DS_STATUS_OK;
}

ds_status CpuSimulator::step() {
    return step_runs([](int64_t first, int64_t count, const auto& step_run) { step_run(first, count); });
}

ds_status CpuSimulator::step_some(const uint8_t* mask) {
    return step_runs([mask](int64_t first, int64_t count, const auto& step_run) {
        for (int64_t world = first; world < first + count;) {
            const int64_t start = world;
            while (world < first + count && mask[world]) ++world;
            if (world > start) step_run(start, world - start);
            else ++world;
        }
    });
}

ds_status CpuSimulator::make_event(Ref<StepEvent>* event) {
    if (!background_.start()) {
        return fail(DS_STATUS_OUT_OF_MEMORY, "", "step synchronously, or raise the limit of processes (ulimit -u)",
                    "the operating system refuses to start the thread for asynchronous steps");
    }
    return find_end(event);
}

ds_status CpuSimulator::step_async(StepEvent&) {
    background_.post(
        [](void* context) {
            CpuSimulator* self = static_cast<CpuSimulator*>(context);
            self->step();
            if (self->update()) self->attachment.keep_failure();
            self->end_work();
            self->turn.unlock();
        },
        this);
    return DS_STATUS_OK;
}

ds_status CpuSimulator::find_bad_action(bool* found, BadAction* bad) {
    *found = model_->find_bad_action(simulation_, 0, config_.num_worlds, bad);
    return DS_STATUS_OK;
}

ds_status CpuSimulator::begin(const uint8_t* mask, const EpisodeStart* starts) {
    std::atomic<uint32_t> trouble{kTroubleNone};
    pool_.run(config_.num_worlds, [&](int64_t first, int64_t count, int) {
        for_each_marked_tile(mask, first, count, [&](int64_t start, int64_t length) {
            trouble.fetch_or(model_->reset(simulation_, start, length, mask, starts), std::memory_order_relaxed);
        });
    });
    trouble_ |= trouble.load(std::memory_order_relaxed);
    return DS_STATUS_OK;
}

ds_status CpuSimulator::refresh(const uint8_t* mask) {
    std::atomic<uint32_t> trouble{kTroubleNone};
    pool_.run(config_.num_worlds, [&](int64_t first, int64_t count, int) {
        for_each_run(mask, first, count, [&](int64_t start, int64_t length) {
            trouble.fetch_or(model_->refresh(simulation_, start, length), std::memory_order_relaxed);
        });
    });
    trouble_ |= trouble.load(std::memory_order_relaxed);
    return DS_STATUS_OK;
}

ds_status CpuSimulator::set_stream(uint64_t stream) { return check_cpu_stream(stream); }

// ---- Attachment ----

ds_status CpuSimulator::update_attachment() {
    if (!pool_.start_all()) return fail_threads(pool_.capacity() - 1);
    const ds_run run = [](void* pool, int64_t count, ds_task task, void* context) {
        static_cast<ThreadPool*>(pool)->run(count, 1, task, context);
    };
    return attachment.update({sizeof(ds_turn), DS_DEVICE_CPU, 0, 0, pool_.size(), &pool_, run});
}

ds_status CpuSimulator::take_memory(int64_t bytes, Ref<Memory>* memory) {
    *memory = CpuMemory::take(bytes, progress_, "bytes");
    return *memory ? DS_STATUS_OK : DS_STATUS_OUT_OF_MEMORY;
}

// ---- The caller's memory ----

ds_status CpuSimulator::borrow(char* data, int64_t bytes, Ref<Memory>* memory) {
    *memory = CpuMemory::borrow(data, bytes, progress_);
    return *memory ? DS_STATUS_OK : DS_STATUS_OUT_OF_MEMORY;
}

ds_status CpuSimulator::copy(void* to, const void* from, int64_t bytes) {
    memmove(to, from, static_cast<size_t>(bytes));
    return DS_STATUS_OK;
}

// ---- Worlds ----

ds_status CpuSimulator::save(const WorldList& worlds, char* saved) {
    const SavedParts parts = saved_parts(simulation_, *model_);
    const int64_t bytes = parts.bytes();
    for (int64_t i = 0; i < worlds.size; ++i) parts.save(worlds[i], saved + i * bytes);
    return DS_STATUS_OK;
}

ds_status CpuSimulator::restore(const WorldList& worlds, const char* saved) {
    const SavedParts parts = saved_parts(simulation_, *model_);
    const int64_t bytes = parts.bytes();
    for (int64_t i = 0; i < worlds.size; ++i) parts.restore(worlds[i], saved + i * bytes);
    return DS_STATUS_OK;
}

ds_status CpuSimulator::hash(const uint8_t* mask, uint64_t* hashes, uint64_t* sum) {
    std::atomic<uint64_t> total{0};
    pool_.run(config_.num_worlds, [&](int64_t first, int64_t count, int) {
        uint64_t part = 0;
        for (int64_t world = first; world < first + count; ++world) {
            if (mask && !mask[world]) continue;
            const uint64_t hash = hash_bytes(block(world), model_->world_bytes);
            if (hashes) hashes[world] = hash;
            part += hash;
        }
        total.fetch_add(part, std::memory_order_relaxed);
    });
    *sum = total.load(std::memory_order_relaxed);
    return DS_STATUS_OK;
}

ds_status CpuSimulator::take_trouble(uint32_t* trouble) {
    *trouble = std::exchange(trouble_, kTroubleNone);
    return DS_STATUS_OK;
}

ds_status CpuSimulator::visit_blocks(const uint8_t* mask, VisitBlock visit, void* context) {
    const int64_t num_worlds = config_.num_worlds;
    if (mask) for_each_marked(mask, num_worlds, [&](int64_t world) { visit(context, world, block(world)); });
    else for (int64_t world = 0; world < num_worlds; ++world) visit(context, world, block(world));
    return DS_STATUS_OK;
}

// ---- Profile ----

ds_status CpuSimulator::set_profiling(bool enabled) {
    if (enabled) memset(ticks_, 0, static_cast<size_t>(pool_.capacity() * kTickStride) * sizeof(uint64_t));
    profiling_ = enabled;
    return DS_STATUS_OK;
}

ds_status CpuSimulator::read_profile(uint64_t* ticks) {
    for (int stage = 0; stage < kNumStages; ++stage) {
        ticks[stage] = 0;
        for (int worker = 0; worker < pool_.capacity(); ++worker) ticks[stage] += ticks_of(worker)[stage];
    }
    return DS_STATUS_OK;
}

}  // namespace doorstep
