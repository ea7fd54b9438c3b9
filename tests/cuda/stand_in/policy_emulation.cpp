#include "policy_emulation.h"

#include <string.h>

#include <memory>
#include <vector>

#include "policy/block_loop.h"

namespace doorstep {
namespace {

class EmulatedCrew {
public:
    static constexpr bool kCallsHost = false;
    template <class Value>
    struct PerThread {
        explicit PerThread(const EmulatedCrew&) : values(kActThreads) {}
        Value& operator[](Part part) { return values[static_cast<size_t>(part.first)]; }
        std::vector<Value> values;
    };

    EmulatedCrew(uint32_t index, uint32_t count, const std::vector<int>& threads, float* shared)
        : index_(index), count_(count), threads_(threads), shared_(shared) {}
    int64_t index() const { return index_; }
    int64_t count() const { return count_; }
    float* shared() const { return shared_; }
    template <class Stage>
    void each(const Stage& stage) const {
        for (int thread : threads_) stage(Part{thread, kActThreads});
    }
    void add(unsigned long long* sum, unsigned long long more) const { *sum += more; }

private:
    uint32_t index_, count_;
    const std::vector<int>& threads_;
    float* shared_;
};

}  // namespace

void emulate_act(const ActArguments& arguments, uint32_t grid, uint32_t shared_bytes, ThreadOrder order) {
    const std::vector<int> threads = threads_in(order, kActThreads);
    std::vector<FourFloats> shared(shared_bytes / sizeof(FourFloats));
    for (uint32_t index = 0; index < grid; index++) {
        memset(static_cast<void*>(shared.data()), 0xA5, shared_bytes);  // initial shared memory is undefined
        act_with_block(EmulatedCrew(index, grid, threads, shared[0].values), arguments);
    }
}

void emulate_prepare_rows(const PlayedRows& call) {
    for (int64_t row = call.num_rows - 1; row >= 0; row--) prepare_row(call, row);
}

}  // namespace doorstep
