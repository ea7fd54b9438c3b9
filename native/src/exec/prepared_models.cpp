#include "exec/prepared_models.h"

#include <atomic>

#include "math/base.h"
#include "runtime/futex.h"
#include "runtime/machine.h"

namespace doorstep {
namespace {

constinit Mutex mutex;  // held while tables are made
constinit std::atomic<const WorldModel*> prepared[2][DS_MAX_AGENTS];

}  // namespace

const WorldModel& prepared_model(WorldKind kind) {
    DS_ASSERT(kind.num_agents >= 1 && kind.num_agents <= DS_MAX_AGENTS);
    std::atomic<const WorldModel*>& model = prepared[kind.plays_levels][kind.num_agents - 1];
    if (const WorldModel* found = model.load(std::memory_order_acquire)) return *found;
    MutexGuard guard(mutex);
    const WorldModel& found = find_world_model(kind, cpu_features().avx512);
    model.store(&found, std::memory_order_release);
    return found;
}

void lock_models() { mutex.lock(); }
void unlock_models() { mutex.unlock(); }
void reset_models() { mutex.reset(); }

}  // namespace doorstep
