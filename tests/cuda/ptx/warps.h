// Interprets a PTX kernel as a GPU executes it: the lanes of a warp run together where their paths are the same.
#pragma once

#include "machine.h"

namespace ptx {

// Is told what the warps of a block execute.
class WarpWatcher {
public:
    virtual ~WarpWatcher() = default;
    virtual void begin_block(const char* shared, uint32_t shared_bytes, uint32_t threads) = 0;
    // Before lanes of a warp, a bit of the mask each, execute an instruction. lane: the warp's 32 threads.
    virtual void execute(uint32_t warp, Thread* lane, uint32_t mask, const Instruction& instruction) = 0;
    // Every thread waits at a barrier or has ended.
    virtual void end_interval() = 0;
};

// Of a warp's lanes, those in the deepest call run first, and of these those at the lowest instruction: paths that
// part meet again where the shorter ends. threads: a multiple of kWarp.
void launch_in_warps(const Program& program, const Function& kernel, const Launch& how, WarpWatcher& watcher);

}  // namespace ptx
