// A layer of policies: the addresses of its weights, and what keeps them valid.
#pragma once

#include "doorstep/policies_and_rollouts.h"
#include "runtime/reference.h"

namespace doorstep {

class Layer final : public LiveObject<DS_LIVE_LAYER> {
public:
    // config: its fields have been checked; its owner is ignored. Null without memory, with the thread's error set.
    static Ref<Layer> create(const ds_layer_config& config);
    ~Layer();

    // The owner of the weights is released with this object.
    void take_over(ForeignOwner owner) {
        DS_ASSERT(!owner_.release);
        owner_ = owner;
    }

    // A layer with a copy of the weights as they are now, on the same device: on CUDA after the work begun on `stream`
    // (a CUstream), for which it waits. Null, with the thread's error set, on failure. A function of the caller's has no
    // weights to copy: it is shared.
    Ref<Layer> copy(uint64_t stream);

    // Without the owner.
    const ds_layer_config& config() const { return config_; }

private:
    explicit Layer(const ds_layer_config& config);

    ds_layer_config config_;
    ForeignOwner owner_;
};

}  // namespace doorstep
