// Configurations that handles stand for: checked copies of structs of the C API, shared and never changed.
#pragma once

#include "doorstep/policies_and_rollouts.h"
#include "runtime/reference.h"

namespace doorstep {

class Config : public LiveObject<DS_LIVE_CONFIG> {
public:
    union Fields {
        ds_simulator_config simulator;
        ds_sampling_config sampling;
        ds_scheduler_config scheduler;
        ds_controller_config controller;
        ds_metrics_config metrics;
        ds_rollout_config rollout;
    };
    // By their kinds; null: it has no such part.
    using Parts = Ref<Config>[DS_CONFIG_ROLLOUT];

    Config(ds_config_kind kind, const Fields& fields, Parts& parts) : kind_(kind), fields_(fields) {
        for (int part = 0; part < DS_CONFIG_ROLLOUT; ++part) parts_[part] = std::move(parts[part]);
    }

    ds_config_kind kind() const { return kind_; }
    const void* fields() const { return &fields_; }
    Ref<Config> part(ds_config_kind kind) const { return kind < DS_CONFIG_ROLLOUT ? parts_[kind] : Ref<Config>(); }

    const ds_simulator_config& simulator() const {
        DS_ASSERT(kind_ == DS_CONFIG_SIMULATOR);
        return fields_.simulator;
    }
    const ds_scheduler_config& scheduler() const {
        DS_ASSERT(kind_ == DS_CONFIG_SCHEDULER);
        return fields_.scheduler;
    }
    const ds_controller_config& controller() const {
        DS_ASSERT(kind_ == DS_CONFIG_CONTROLLER);
        return fields_.controller;
    }
    const ds_metrics_config& metrics() const {
        DS_ASSERT(kind_ == DS_CONFIG_METRICS);
        return fields_.metrics;
    }
    const ds_rollout_config& rollout() const {
        DS_ASSERT(kind_ == DS_CONFIG_ROLLOUT);
        return fields_.rollout;
    }

private:
    const ds_config_kind kind_;
    const Fields fields_;
    Parts parts_;
};

}  // namespace doorstep
