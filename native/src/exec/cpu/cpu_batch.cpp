#include "exec/batch.h"

#include <atomic>
#include <new>

#include "exec/cpu/threads.h"
#include "exec/simulator.h"
#include "math/float_environment.h"
#include "runtime/futex.h"
#include "runtime/reference.h"
#include "runtime/status.h"

namespace doorstep {
namespace {

constinit TurnLock turn;               // held while the threads work on a batch
constinit ThreadPool* pool = nullptr;  // guarded by turn; never destroyed: the process may end while its threads sleep
constinit bool pool_runs = false;      // likewise

ds_status fail_pool() {
    return fail(DS_STATUS_OUT_OF_MEMORY, "",
                "use smaller batches, or raise the limits of memory and processes (ulimit -u)",
                "the operating system refuses the threads for batches of more than %d worlds", kTileWorlds);
}

ThreadPool* make_pool() {
    ThreadPool* made = new (std::nothrow) ThreadPool;
    if (made && made->initialize(default_thread_count(), DS_MAX_WORLDS)) return made;
    delete made;
    return nullptr;
}

bool start_pool() {
    if (!pool) pool = make_pool();
    if (pool_runs || !pool) return pool_runs;
    pool_runs = pool->start();
    // The process owns them; they count as no live object
    if (pool_runs) live_counts.threads.fetch_sub(pool->size() - 1, std::memory_order_relaxed);
    return pool_runs;
}

// Calls work(first, count) on runs that cover a batch's worlds, in the floating-point environment of the simulation.
template <class Work>
ds_status run(int64_t num_worlds, const Work& work) {
    DS_ASSERT(num_worlds > 0 && num_worlds <= DS_MAX_WORLDS);
    if (num_worlds <= kTileWorlds) {
        run_with_stack([&] { work(int64_t{0}, num_worlds); });
        return DS_STATUS_OK;
    }
    turn.lock();
    const bool runs = start_pool();
    if (runs) pool->run(num_worlds, [&](int64_t first, int64_t count, int) { work(first, count); });
    turn.unlock();
    return runs ? DS_STATUS_OK : fail_pool();
}

void add_trouble(const ds_batch& batch, uint32_t met) {
    for (int kind = 0; batch.trouble && kind < DS_TROUBLE_KINDS; ++kind)
        if (met >> kind & 1u) batch.trouble[kind] = 1;
}

ds_status check_blocks(const ds_batch& batch, const WorldModel& model) {
    std::atomic<int64_t> smallest{batch.num_worlds};
    const char* blocks = static_cast<const char*>(batch.worlds);
    const int32_t episode_length = static_cast<int32_t>(batch.episode_length);
    const ds_status status = run(batch.num_worlds, [&](int64_t first, int64_t count) {
        const int64_t bad = first + model.count_valid(blocks + first * static_cast<int64_t>(model.world_bytes), count,
                                                      model.num_agents, episode_length);
        int64_t known = smallest.load(std::memory_order_relaxed);
        while (bad < first + count && bad < known && !smallest.compare_exchange_weak(known, bad)) {
        }
    });
    const int64_t bad = smallest.load(std::memory_order_relaxed);
    DS_ASSERT(bad >= 0 && bad <= batch.num_worlds);
    if (status || bad == batch.num_worlds) return status;
    return fail(DS_STATUS_INVALID_STATE, "worlds",
                "start from worlds that were created with the same number of agents, with levels as here, and at most this "
                "episode length, and do not modify them",
                "worlds[%ld] of %ld is not a valid world", bad, batch.num_worlds);
}

}  // namespace

ds_status create_on_cpu(const ds_batch& batch, uint32_t seed, uint64_t world_offset) {
    const DefaultFloatEnvironment environment;
    const WorldModel& model = prepared_model(kind_of(batch));
    const Simulation simulation = simulation_of(batch);
    return run(batch.num_worlds, [&](int64_t first, int64_t count) {
        model.create(simulation, first, count, seed, world_offset);
    });
}

ds_status step_on_cpu(const ds_batch& batch) {
    const DefaultFloatEnvironment environment;
    const WorldModel& model = prepared_model(kind_of(batch));
    if (const ds_status status = check_blocks(batch, model)) return status;
    const Simulation simulation = simulation_of(batch);
    std::atomic<uint32_t> trouble{kTroubleNone};
    const ds_status status = run(batch.num_worlds, [&](int64_t first, int64_t count) {
        const uint32_t met = model.step(simulation, first, count, nullptr);
        if (met) trouble.fetch_or(met, std::memory_order_relaxed);
    });
    if (!status) add_trouble(batch, trouble.load(std::memory_order_relaxed));
    return status;
}

void lock_batch_threads() { turn.lock(); }

void unlock_batch_threads() { turn.unlock(); }

void forget_batch_threads() {
    if (pool) pool->forget_threads();
    pool_runs = false;
    turn.reset();
}

}  // namespace doorstep
