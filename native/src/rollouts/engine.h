// An engine: replicas in threads of their own, the requests that wait for them, and the outputs that wait for callers.
//
//   submit() --> request queue --> world of a replica --> output queue --> take()
//                                      |          ^
//                                   row desk --> caller
//
// A request is memory of the table that all queues share, and has its result in itself. It ends when its reader has received
// that; until then whatever holds it can give it back.
//
// Lifetimes. A thread refers to the engine, so that the engine lives until its last thread has ended, also when
// its handle has been released. Engine -> replicas -> queues, table, policies, desk; nothing below refers to the engine or to a
// replica. Rows that a caller has, and data of outputs, have memory of their own, which outlives all of it.
//
// Callers. A pass steps the worlds whose actions are all there, begins episodes, and lets the others act. Rows of a caller's
// policy are asked for together, one time at a time. On the CPU their worlds sit out until they are returned.
//
// The end. close() sets a flag in each replica and wakes it: no lock, no wait. A replica gives its requests back, whatever
// ended it; others play them, and those of its lane. The last one closes the queue, answers what waits, and then closes the
// desk, at which all waiting callers notice.
//
// Replicas. They are added at any time, and each is at its number for ever. A thread whose replica fails makes another one,
// on another simulator, at the same number and lane.
//
// Locks, in the order in which they are taken: the one that adds replicas; the turn of a replica's simulator, held by its
// thread except between two passes and while it sleeps; then one of: the engine's mutex (which replica is at a number), the
// table's (requests, outputs, recorder), the policy table's, the desk's; then a handle registry's. No thread holds two of
// those in the middle. No thread waits for anything
// but a turn with one of them held. A fork takes all of them in this order.
#pragma once

#include <pthread.h>

#include "metrics/store.h"
#include "rollouts/config.h"
#include "rollouts/replica.h"
#include "runtime/status.h"

namespace doorstep {

// Of the configuration of an engine.
QueueRules rules_of(const Config& config);

using MakeSimulator = ds_status (*)(const ds_simulator_config& config, Ref<Simulator>* simulator);

class Engine : public LiveObject<DS_LIVE_ROLLOUT> {
public:
    // Starts the threads of the replicas of its configuration. rewards: null: those of the levels. metrics: null: nothing
    // is measured. OUT_OF_MEMORY, also if a thread is refused, and the failures of make.
    static ds_status create(const Ref<Config>& config, MakeSimulator make, const ds_level_rewards* rewards,
                            const Ref<MetricsStore>& metrics, Ref<Engine>* engine);

    const Ref<Config>& config() const { return config_; }
    const Ref<MetricsStore>& metrics() const { return metrics_; }
    RequestQueue& requests() const { return *requests_; }
    RequestTable& table() const { return requests_->table(); }
    PolicyTable& policies() const { return *policies_; }
    RowDesk& desk() const { return *desk_; }
    int64_t num_inputs() const { return num_inputs_; }
    int64_t num_replicas() const { return num_replicas_; }

    // As the functions of the C API.
    void read(ds_engine_info* info) const;
    ds_status read_replica(int64_t number, ds_replica_info* info) const;
    ds_status add_replica(const ds_simulator_config& config, int64_t* number);
    void end_replica(int64_t number);
    void close();
    ds_status join(int64_t timeout_ns);
    // Its threads end by themselves.
    void abandon();

private:
    struct Player {
        Engine* engine;  // to which its thread refers
        int32_t number;
        ds_simulator_config config;   // of its simulators
        Ref<Replica> replica;         // with the engine's mutex
        Failure failure{};            // the latest one; likewise
        pthread_t thread{};
        std::atomic<bool> is_joined{true};  // or abandoned, or was not started
        std::atomic<bool> is_ending{false}, has_failed{false}, has_ended{false};
        std::atomic<int32_t> restarts{0};
    };

    Engine(const Ref<Config>& config, MakeSimulator make, const ds_level_rewards* rewards,
           const Ref<MetricsStore>& metrics);
    ds_status take_memory();
    bool begin_adding();
    ds_status add_player(const ds_simulator_config& config);
    ds_status make_replica(Player& player, Ref<Replica>* replica) const;
    ds_status start(Player& player);
    Player& player(int64_t number) const {
        DS_ASSERT(number >= 0 && number < num_replicas_);
        return *players_[number];
    }
    Ref<Replica> replica_of(const Player& player) const;

    static void* enter(void* player);
    void play(Player& player);
    bool restart(Player& player);
    bool install(Player& player, Ref<Replica> replica);
    void note_failure(Player& player);
    void leave(Player& player);
    void end_if_last(ds_failure_cause cause);
    void answer_the_rest(ds_failure_cause cause);

    const Ref<Config> config_;
    const MakeSimulator make_;
    const bool has_rewards_;
    const ds_level_rewards rewards_;
    const Ref<MetricsStore> metrics_;
    mutable ForkMutex mutex_;
    Mutex adding_;
    Ref<RequestQueue> requests_;
    Ref<PolicyTable> policies_;
    Ref<RowDesk> desk_;
    int64_t num_inputs_ = 0;
    std::unique_ptr<Player> players_[DS_MAX_REPLICAS];
    std::atomic<int64_t> num_replicas_{0};  // players

    std::atomic<bool> closed_{false}, abandoned_{false};
    std::atomic<int64_t> num_playing_{0};  // and calls that add players
    std::atomic<bool> has_ended_{false};
    Signal end_;
};

}  // namespace doorstep
