// What an engine is composed of. Each part lives while the engine, or anything else that uses it, does.
#pragma once

#include "metrics/store.h"
#include "rollouts/output_queue.h"
#include "rollouts/request_queue.h"
#include "runtime/config.h"

namespace doorstep {

class Engine : public RefCounted {
public:
    // config: of an engine.
    Engine(Ref<Config> config, Ref<RequestQueue> waiting, Ref<OutputQueue> outputs, Ref<MetricsStore> metrics)
        : config(std::move(config)),
          waiting(std::move(waiting)),
          outputs(std::move(outputs)),
          metrics(std::move(metrics)) {
        live_counts.rollouts.fetch_add(1, std::memory_order_relaxed);
    }
    ~Engine() { live_counts.rollouts.fetch_sub(1, std::memory_order_relaxed); }

    const Ref<Config> config;
    const Ref<RequestQueue> waiting;
    const Ref<OutputQueue> outputs;
    const Ref<MetricsStore> metrics;  // null: it measures nothing
};

}  // namespace doorstep
