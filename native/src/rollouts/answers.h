// Outputs that answer requests which no replica has played.
#pragma once

#include "exec/simulator.h"
#include "rollouts/output_queue.h"
#include "rollouts/request_queue.h"

namespace doorstep {

// An output of a request, to be completed by a replica that plays it.
Output make_output(const Request& request, ds_output_kind kind, int64_t num_agents);
// How an episode has ended, or was interrupted. The result knows its length and number of agents.
void tell_summary(const EpisodeSummary& summary, ds_episode_output* result);

// Answers a list of requests of the queue that are over. PENDING: the rest finds no room and stays in the queue.
// OUT_OF_MEMORY: likewise.
ds_status answer_over(RequestQueue& requests, OutputQueue& outputs, Request* first);

// Answers all requests that wait in a queue, once limits are lifted. OUT_OF_MEMORY: likewise.
ds_status answer_all(RequestQueue& requests, OutputQueue& outputs, ds_episode_reason reason, int64_t cause);

}  // namespace doorstep
