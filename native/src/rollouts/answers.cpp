#include "rollouts/answers.h"

#include "rollouts/interruptions.h"
#include "runtime/status.h"

namespace doorstep {
namespace {

constexpr int64_t kAtOnce = 256;  // outputs pushed with one lock

ds_status fail_outputs() {
    return fail(DS_STATUS_OUT_OF_MEMORY, "", "take outputs, or raise the memory limit",
                "no memory is left for results that wait");
}

// Outputs of a list of requests, as they are given to a queue.
struct Answers {
    Output outputs[kAtOnce];
    PlayedRequest requests[kAtOnce];
    Request* rest;

    // The first ones of a list.
    int64_t make(Request* first, int64_t num_agents) {
        int64_t count = 0;
        for (rest = first; rest && count < kAtOnce; rest = rest->next) {
            DS_ASSERT(rest->in_use && !rest->queue && !rest->answered);
            requests[count] = {rest, 0};
            Output& output = outputs[count++] = make_output(*rest, DS_OUTPUT_RESULT, num_agents);
            if (rest->interrupted) rest->interrupted->tell(&output.told);
        }
        return count;
    }
};

// Requests that were taken to be played.
ds_status answer_taken(RequestQueue& requests, OutputQueue& outputs, Request* first, ds_episode_reason reason,
                       int64_t cause) {
    Answers answers;
    while (first) {
        const int64_t count = answers.make(first, requests.rules().worlds.num_agents);
        for (int64_t i = 0; i < count; ++i) {
            answers.outputs[i].told.reason = reason;
            answers.outputs[i].told.cause = cause;
        }
        if (!outputs.reserve(count)) {
            for (Request* next; first; first = next) {
                next = first->next;
                requests.take_back(first);
            }
            return fail_outputs();
        }
        first = answers.rest;
        requests.record_answers(answers.requests, answers.outputs, count);
        outputs.push_reserved(answers.outputs, count);
        requests.finish(answers.requests, count);
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
    return output;
}

ds_status answer_over(RequestQueue& requests, OutputQueue& outputs, Request* first) {
    if (!first) return DS_STATUS_OK;
    Answers answers;
    while (first) {
        const int64_t count = answers.make(first, requests.rules().worlds.num_agents);
        for (int64_t i = 0; i < count; ++i) {
            answers.outputs[i].told.reason = answers.requests[i].request->reason;
            if (answers.outputs[i].told.reason == DS_EPISODE_FAILED) answers.outputs[i].told.cause = DS_CAUSE_MEMORY;
        }
        if (!outputs.reserve(count)) {
            requests.take_back_over(first);
            return fail_outputs();
        }
        requests.record_answers(answers.requests, answers.outputs, count);
        outputs.push_reserved(answers.outputs, count);
        Request* last = answers.requests[count - 1].request;
        last->next = nullptr;
        requests.finish_over(first);
        first = answers.rest;
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
