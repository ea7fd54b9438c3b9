#include "tile_costs.h"

#include <algorithm>

namespace gpu_model {
namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Thread;

// Arguments and results of calls are registers of the machine, kernel parameters operands in its constant bank.
bool is_register(const Operand& operand) {
    return operand.kind == Operand::kArgument || operand.kind == Operand::kReturned ||
           operand.kind == Operand::kParameter;
}

bool accesses_memory(const Instruction& instruction) {
    switch (instruction.kind) {
        case Instruction::kLoad:
        case Instruction::kAtomic: return !is_register(instruction.from[0]);
        case Instruction::kStore: return !is_register(instruction.to[0]);
        default: return false;
    }
}

const Operand& address_operand(const Instruction& instruction) {
    return instruction.kind == Instruction::kStore ? instruction.to[0] : instruction.from[0];
}

// The registers that an instruction reads and writes, by their place among the warp's.
struct Places {
    size_t sources[11], results[4];
    int source_count = 0, result_count = 0;

    Places(const Instruction& instruction, size_t first) {
        if (instruction.predicate >= 0) sources[source_count++] = first + static_cast<size_t>(instruction.predicate);
        for (int i = 0; i < instruction.from_count; ++i) add_source(instruction.from[i], first);
        for (int i = 0; i < instruction.to_count; ++i) {
            const Operand& operand = instruction.to[i];
            if (instruction.kind == Instruction::kStore) add_source(operand, first);
            else if (operand.kind == Operand::kRegister) results[result_count++] = first + operand.slot;
        }
    }

private:
    void add_source(const Operand& operand, size_t first) {
        if (operand.kind == Operand::kRegister) sources[source_count++] = first + operand.slot;
    }
};

}  // namespace

void Cost::add(const Cost& other) {
    slots += other.slots;
    lane_slots += other.lane_slots;
    wavefronts += other.wavefronts;
    l2_bytes += other.l2_bytes;
    for (int order = 0; order < kOrders; ++order) cycles[order] += other.cycles[order];
}

void TileCosts::begin_block(const char* shared, uint32_t shared_bytes, uint32_t threads) {
    shared_ = shared;
    shared_bytes_ = shared_bytes;
    cache_.clear();
    warps_.clear();
    warps_.resize(threads / ptx::kWarp);
    std::fill(begun_, begun_ + kOrders, uint64_t{0});
    cost_ = {};
    tiles.emplace_back();
}

void TileCosts::execute(uint32_t warp, Thread* lane, uint32_t mask, const Instruction& instruction) {
    Warp& state = warps_[warp];
    if (instruction.is_target || mask != state.mask) state.orders[kFree].end_block();
    state.mask = mask;
    const bool memory = accesses_memory(instruction);
    const bool moves = !memory && (instruction.kind == Instruction::kLoad || instruction.kind == Instruction::kStore);
    const uint32_t slots = moves ? 0 : instruction.weight;
    const uint32_t latency = memory ? access_memory(warp, lane, mask, instruction) : moves ? 0 : instruction.latency;
    cost_.slots += slots;
    cost_.lane_slots += slots * static_cast<uint32_t>(__builtin_popcount(mask));
    const Places places(instruction, lane[__builtin_ctz(mask)].frames.back().registers);
    for (WarpOrder& order : state.orders)
        order.issue({slots, latency, places.sources, places.source_count, places.results, places.result_count,
                     instruction.changes_path()});
}

// Returns the latency.
uint32_t TileCosts::access_memory(uint32_t warp, Thread* lane, uint32_t mask, const Instruction& instruction) {
    const int elements = instruction.kind == Instruction::kStore ? instruction.from_count : instruction.to_count;
    WarpAccess access{0, instruction.bytes * static_cast<uint32_t>(elements), {}};
    for (uint32_t left = mask; left; left &= left - 1) {
        const int k = __builtin_ctz(left);
        if (!lane[k].takes(instruction)) continue;
        access.mask |= 1u << k;
        access.address[k] = ptx::address_of(lane[k], address_operand(instruction));
    }
    if (!access.mask) return instruction.latency;
    const bool loads = instruction.kind != Instruction::kStore;
    Thread& first = lane[__builtin_ctz(access.mask)];
    const uint64_t address = access.address[first.index % ptx::kWarp];
    if (address - reinterpret_cast<uint64_t>(shared_) < shared_bytes_) {
        const uint32_t wavefronts = shared_wavefronts(access);
        cost_.wavefronts += wavefronts;
        return kSharedLatency + wavefronts - 1;
    }
    const auto local_of = [](const Thread& thread) { return reinterpret_cast<uint64_t>(thread.local.data()); };
    if (address - local_of(first) < first.local.size() * sizeof(uint64_t)) {
        for (uint32_t left = access.mask; left; left &= left - 1) {
            const int k = __builtin_ctz(left);
            access.address[k] -= local_of(lane[k]);
        }
        return access_local(warp, access, loads);
    }
    return access_device(access, loads);
}

// Local memory has the same word of all lanes of a warp in one line.
uint32_t TileCosts::access_local(uint32_t warp, WarpAccess access, bool loads) {
    constexpr uint64_t kLocalLines = uint64_t{1} << 63;
    const std::vector<uint64_t> words = units_of(access, 4);
    bool hit = true;
    for (const uint64_t word : words) hit &= cache_.touch(kLocalLines | uint64_t{warp} << 32 | word) || !loads;
    const uint32_t wavefronts = static_cast<uint32_t>(words.size());
    cost_.wavefronts += wavefronts;
    return (hit ? kL1Latency : kL2Latency) + wavefronts - 1;
}

uint32_t TileCosts::access_device(const WarpAccess& access, bool loads) {
    const std::vector<uint64_t> lines = units_of(access, kLineBytes), sectors = units_of(access, kSectorBytes);
    bool hit = true;
    for (const uint64_t line : lines) {
        const bool found = loads && cache_.touch(line);
        hit &= found;
        if (found) continue;
        for (const uint64_t sector : sectors)
            if (sector / (kLineBytes / kSectorBytes) == line) cost_.l2_bytes += kSectorBytes;
    }
    const uint32_t wavefronts = static_cast<uint32_t>(lines.size());
    cost_.wavefronts += wavefronts;
    return (hit ? kL1Latency : kL2Latency) + wavefronts - 1;
}

void TileCosts::end_interval() {
    for (int order = 0; order < kOrders; ++order) {
        uint64_t end = begun_[order];
        for (Warp& warp : warps_) {
            warp.orders[order].end_block();
            end = std::max(end, warp.orders[order].now());
        }
        for (Warp& warp : warps_) warp.orders[order].wait_until(end);
        cost_.cycles[order] = static_cast<double>(end - begun_[order]);
        begun_[order] = end;
    }
    tiles.back().push_back(cost_);
    cost_ = {};
}

}  // namespace gpu_model
