#include "rollouts/answers.h"

#include <string.h>

#include "rollouts/interruptions.h"
#include "runtime/status.h"

namespace doorstep {
namespace {

constexpr int64_t kAtOnce = 256;  // outputs pushed with one lock

// Outputs of the first requests of a list for which there is room.
class Answers {
public:
    Answers(RequestQueue& requests, OutputQueue& outputs) : requests_(requests), outputs_(outputs) {}

    // Returns the first request that is not among them.
    Request* prepare(Request* first) {
        Room room = Room::kSome;
        for (count = 0; first && count < kAtOnce; ++count, first = first->next) {
            DS_ASSERT(first->in_use && !first->queue && !first->answered);
            played[count] = {first, 0};
            told[count] = make_output(*first, DS_OUTPUT_RESULT, requests_.rules().worlds.num_agents);
            if (first->interrupted) first->interrupted->tell(&told[count].told);
            room = outputs_.reserve(told[count]);
            if (room != Room::kSome) break;
        }
        refusal = room == Room::kNoMemory ? fail_outputs() : room == Room::kNone ? DS_STATUS_PENDING : DS_STATUS_OK;
        return first;
    }
    void push() {
        requests_.record_answers(played, told, count);
        outputs_.push_reserved(told, count);
    }

    Output told[kAtOnce];
    PlayedRequest played[kAtOnce];
    int64_t count;
    ds_status refusal;  // of the first that found no room

private:
    static ds_status fail_outputs() {
        return fail(DS_STATUS_OUT_OF_MEMORY, "", "take outputs, or raise the memory limit",
                    "no memory is left for results that wait");
    }

    RequestQueue& requests_;
    OutputQueue& outputs_;
};

// Requests that were taken to be played.
ds_status answer_taken(RequestQueue& requests, OutputQueue& outputs, Request* first, ds_episode_reason reason,
                       int64_t cause) {
    Answers answers(requests, outputs);
    while (first) {
        first = answers.prepare(first);
        for (int64_t i = 0; i < answers.count; ++i) {
            answers.told[i].told.reason = reason;
            answers.told[i].told.cause = cause;
        }
        answers.push();
        requests.finish(answers.played, answers.count);
        if (answers.count > 0) continue;
        for (Request* next; first; first = next) {
            next = first->next;
            requests.take_back(first);
        }
        return answers.refusal;
    }
    return DS_STATUS_OK;
}

}  // namespace

Output make_output(const Request& request, ds_output_kind kind, int64_t num_agents) {
    DS_ASSERT(request.in_use && num_agents > 0);
    Output output = {};
    output.told.id = request.id;
    output.told.tag = request.asked.tag;
    output.told.continuation = request.asked.continuation;
    output.told.submitted_ns = request.submitted_ns;
    output.told.ended_ns = monotonic_ns();
    output.told.kind = kind;
    output.told.reason = -1;
    output.told.num_agents = static_cast<int32_t>(num_agents);
    output.told.record = request.asked.record;
    output.told.replica = -1;
    output.told.world = -1;
    output.reader = request.asked.reader;
    return output;
}

void tell_summary(const EpisodeSummary& summary, ds_episode_output* result) {
    result->state_hash = result->length > 0 ? summary.hash : 0;
    const size_t bytes = static_cast<size_t>(result->num_agents) * sizeof(float);
    memcpy(result->returns, summary.progress.returns, bytes);
    memcpy(result->max_y, summary.progress.max_y, bytes);
}

ds_status answer_over(RequestQueue& requests, OutputQueue& outputs, Request* first) {
    if (!first) return DS_STATUS_OK;
    Answers answers(requests, outputs);
    while (first) {
        Request* rest = answers.prepare(first);
        if (answers.count == 0) {
            requests.take_back_over(first);
            return answers.refusal;
        }
        for (int64_t i = 0; i < answers.count; ++i) {
            answers.told[i].told.reason = answers.played[i].request->reason;
            if (answers.told[i].told.reason == DS_EPISODE_FAILED) answers.told[i].told.cause = DS_CAUSE_MEMORY;
        }
        answers.push();
        answers.played[answers.count - 1].request->next = nullptr;
        requests.finish_over(first);
        first = rest;
    }
    return DS_STATUS_OK;
}

ds_status answer_all(RequestQueue& requests, OutputQueue& outputs, ds_episode_reason reason, int64_t cause) {
    for (;;) {
        Request *waiting, *over;
        requests.take(kAtOnce, monotonic_ns(), &waiting, &over);
        if (!waiting && !over) return DS_STATUS_OK;
        const ds_status of_over = answer_over(requests, outputs, over);
        const ds_status of_waiting = answer_taken(requests, outputs, waiting, reason, cause);
        if (of_over) return of_over;
        if (of_waiting) return of_waiting;
    }
}

}  // namespace doorstep
