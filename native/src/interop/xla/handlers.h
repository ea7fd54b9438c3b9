// Batches as custom calls of XLA: the handlers that jax.ffi registers.
#pragma once

#include "interop/xla/xla_ffi.h"

namespace doorstep::xla {

// Both take one attribute, "rules", an array of int64, and return worlds, scratch memory and the outputs that the rules
// list. Tensors that are not outputs are placed in the scratch memory.
//
//     create(seed_and_offset u32[2])                                     -> worlds, scratch, outputs...
//     step(worlds, actions[, resets], outputs that outlive a step...)    -> worlds, scratch, outputs...
//
// worlds: u32[N, words of a block]; scratch: u8[bytes]. Worlds, and outputs that step() takes, are aliased with the
// arguments. Actions and resets are not written.
enum Rule {
    kRuleDeviceKind,
    kRuleNumAgents,
    kRuleEpisodeLength,
    kRuleAutoReset,
    kRuleActionCheck,
    kRuleHasResets,    // whether step() takes resets
    kRuleFirstOutput,  // the rest are ds_tensor_ids of outputs
};

// The handler of a name, or null: "create_cpu", "step_cpu", "create_cuda", "step_cuda", and "initialize_cuda" for the
// initialize stage of the latter two.
Handler* find_handler(const char* name);

}  // namespace doorstep::xla
