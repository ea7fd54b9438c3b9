// An engine: replicas in threads of their own, the requests that wait for them, and the outputs that wait for callers.
//
//   submit() --> waiting queue --> (branch of a replica) --> world of a replica --> output queue --> take()
//                                                             |          ^
//                                                        row desk --> caller
//
// A request is memory of the table that all queues share. It is in one place at a time: a queue, a world, or a list of
// those that are over. It ends when its result is in the output queue, and until then whatever holds it can give it back.
//
// Lifetimes. A thread refers to the engine, so that the engine lives until its last thread has ended, also when
// its handle has been released. Engine -> replicas -> queues, table, policies, desk; nothing below refers to the engine or to a
// replica. Rows that a caller has, and data of outputs, have memory of their own, which outlives all of it.
//
// Callers. A pass steps the worlds whose actions are all there, begins episodes, and lets the others act. Rows of a caller's
// policy are asked for together, one time at a time. On the CPU their worlds sit out until they are returned.
//
// The end. close() sets a flag in each replica and wakes it: no lock, no wait. A replica gives its requests back, whatever
// ended it; where others play on, its branch closes and they get what was there. The last one closes the queue, answers
// what waits, and then closes outputs and desk, at which all waiting callers notice.
//
// Locks, in the order in which they are taken: the turn of a replica's simulator, held by its thread except between two
// passes and while it sleeps; then one of: the table's mutex (requests, queues, recorder), the output queue's, the policy
// table's, the desk's; then a handle registry's. No thread holds two of those in the middle. No thread waits for anything
// but a turn with one of them held. A fork takes all of them in this order.
#pragma once

#include <pthread.h>

#include "metrics/store.h"
#include "rollouts/replica.h"
#include "runtime/config.h"
#include "runtime/status.h"

namespace doorstep {

// Of the configuration of an engine.
QueueRules rules_of(const Config& config);

class Engine : public RefCounted {
public:
    // Starts a thread for each of the simulators, which no other object uses. metrics: null: nothing is measured.
    // OUT_OF_MEMORY, also if a thread is refused.
    static ds_status create(const Ref<Config>& config, const Ref<MetricsStore>& metrics,
                            const Ref<Simulator>* simulators, int64_t num_replicas, Ref<Engine>* engine);
    ~Engine();

    const Ref<Config>& config() const { return config_; }
    const Ref<MetricsStore>& metrics() const { return metrics_; }
    RequestQueue& requests() const { return *requests_; }
    OutputQueue& outputs() const { return *outputs_; }
    PolicyTable& policies() const { return *policies_; }
    RowDesk& desk() const { return *desk_; }
    int64_t num_inputs() const { return num_inputs_; }
    int64_t num_replicas() const { return num_replicas_; }
    Replica& replica(int64_t number) const {
        DS_ASSERT(number >= 0 && number < num_replicas_);
        return *players_[static_cast<size_t>(number)].replica;
    }
    // It was forked with its process: it has no threads here.
    bool is_copy() const { return forks_ != num_forks(); }

    // As the functions of the C API.
    void read(ds_engine_info* info) const;
    ds_status read_replica(int64_t number, ds_replica_info* info) const;
    void close();
    ds_status join(int64_t timeout_ns);
    // Its threads end by themselves.
    void abandon();

private:
    struct Player {
        Engine* engine = nullptr;  // to which its thread refers
        Ref<Replica> replica;
        pthread_t thread{};
        std::atomic<bool> is_joined{true};  // or abandoned, or was not started
        std::atomic<bool> has_ended{false};
        Failure failure{};  // before it has ended
    };

    Engine(const Ref<Config>& config, const Ref<MetricsStore>& metrics);
    ds_status take_memory(int64_t num_replicas);
    ds_status make_replica(const Ref<Simulator>& simulator);
    ds_status start();

    static void* enter(void* player);
    void play(Player& player);
    void leave(Player& player);
    void answer_the_rest(ds_failure_cause cause);

    const Ref<Config> config_;
    const Ref<MetricsStore> metrics_;
    const uint32_t forks_;
    Ref<RequestQueue> requests_;
    Ref<OutputQueue> outputs_;
    Ref<PolicyTable> policies_;
    Ref<RowDesk> desk_;
    int64_t num_inputs_ = 0;
    std::unique_ptr<Player[]> players_;
    int64_t num_replicas_ = 0;

    std::atomic<bool> closed_{false};
    std::atomic<int64_t> num_playing_{0};
    std::atomic<bool> has_ended_{false};
    Signal end_;
};

}  // namespace doorstep
