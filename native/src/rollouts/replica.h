// A simulator whose worlds play requests: a world that ends an episode begins the next one before the next step.
//
// A pass: the worlds that are ready step, and what ends is answered; episodes begin in free worlds; those that are to
// act do, or their callers are asked.
//
//     RequestQueue --> Episodes --> Actors (and CallerRows) --> TrajectoryRecorder --> RequestQueue --> OutputQueue
#pragma once

#include "rollouts/actors.h"
#include "rollouts/request_queue.h"

namespace doorstep {

// What a replica shares with the engine and its other replicas.
struct ReplicaParts {
    Ref<RequestQueue> requests;
    Ref<PolicyTable> policies;
    Ref<RowDesk> desk;
};

class Replica : public LiveObject<DS_LIVE_ROLLOUT> {
public:
    // OUT_OF_MEMORY. The simulator has flat observations and no automatic reset, and no other object uses it.
    static ds_status create(const Ref<Simulator>& simulator, const ReplicaParts& parts, int32_t number,
                            Ref<Replica>* replica);
    ~Replica();

    int64_t num_inputs() const { return tensors_.num_inputs; }

    // Plays requests on the calling thread and the simulator's, until it is closed or fails. Holds the simulator's turn
    // but for short times between two passes and while it sleeps. Its episodes wait in the queue again in the end.
    ds_status play();
    // play() returns soon. Takes no lock.
    void close();
    // Frees what is large, once play() has returned or was never called.
    void end();
    void read(ds_replica_info* info) const;

private:
    Replica(const Ref<Simulator>& simulator, const ReplicaParts& parts, int32_t number,
            std::unique_ptr<ReplicaRecorder> recorder);
    ds_status take_memory();

    // ---- A pass
    ds_status play_on();
    ds_status step();
    ds_status begin();
    void await_requests();
    void await_answers();

    // ---- Step
    void record_steps();
    ds_status step_worlds();
    void record_first_steps();
    void mark_ends();
    void mark_nonfinite();
    void finish_records();

    // ---- Begin
    void mark_over(int64_t now_ns);
    int64_t most_to_begin() const;
    ds_status start(Request* first);
    void place(Request* request, int64_t now_ns);
    int32_t steps_to_show(const Request& request) const;
    int64_t expected_steps(const Request& request) const;

    // ---- Ends
    ds_status end_marked();
    ds_status record_ends();
    void write_result(int64_t world, int64_t now_ns);
    void free(int64_t world);
    void give_back_all();

    Ref<Simulator> simulator_;  // null: it has ended
    const Ref<RequestQueue> requests_;
    const Ref<PolicyTable> given_;
    const int32_t number_;
    const std::unique_ptr<ReplicaRecorder> recorder_;  // null: nothing is recorded

    Pause pause_;
    HostTensors tensors_{};
    ActedRows acted_;
    Episodes episodes_;
    CallerRows callers_;
    std::unique_ptr<Actors> actors_;
    TrajectoryRecorder trajectories_;
    Array<EpisodeStart> starts_;       // by world
    Array<EpisodeSummary> summaries_;  // by world
    Array<Request*> answered_;         // of a pass

    uint32_t cancellations_ = 0;            // of the table, when they were last looked at
    int64_t next_deadline_ns_ = INT64_MAX;  // no episode that is played has an earlier one
    double step_ns_ = 0, begin_ns_ = 0;     // smoothed: of a step, of the begin of one episode
    std::atomic<int64_t> steps_{0}, world_steps_{0}, begun_{0};
};

}  // namespace doorstep
