#include "policy/policy.h"

#include <stdlib.h>

#include <algorithm>
#include <new>

#include "runtime/cuda/resource.h"
#include "runtime/machine.h"

namespace doorstep {
namespace {

// The last rows, if eight lanes hold them, take less time in those than in sixteen.
int64_t rows_in_wide_tiles(int64_t count) {
    const int64_t last = count % 16;
    return last > 8 ? count : count - last;
}

}  // namespace

Ref<Policy> Policy::create(const Ref<Layer>* layers, int64_t count, int64_t num_heads, int32_t precision) {
    DS_ASSERT(count >= 1 && num_heads >= 0 && num_heads <= count);
    std::unique_ptr<Ref<Layer>[]> own(new (std::nothrow) Ref<Layer>[static_cast<size_t>(count)]);
    std::unique_ptr<ds_layer_config[]> configs(new (std::nothrow) ds_layer_config[static_cast<size_t>(count)]);
    const Ref<Policy> made = own && configs ? Ref<Policy>::adopt(new (std::nothrow) Policy) : Ref<Policy>();
    if (!made) {
        fail_no_memory();
        return {};
    }
    for (int64_t i = 0; i < count; ++i) {
        DS_ASSERT(layers[i] && layers[i]->config().device_kind == layers[0]->config().device_kind);
        DS_ASSERT(layers[i]->config().device_index == layers[0]->config().device_index);
        own[i] = layers[i];
        configs[i] = layers[i]->config();
    }
    made->layers_ = std::move(own);
    made->configs_ = std::move(configs);
    made->network_.layers = made->configs_.get();
    made->network_.num_layers = count;
    made->network_.num_heads = num_heads;
    made->network_.precision = precision;
    made->describe();
    const ds_layer_config& first = made->configs_[0];
    DS_ASSERT(precision == DS_PRECISION_FLOAT32 || first.device_kind == DS_DEVICE_CUDA);
    if (first.device_kind == DS_DEVICE_CPU) return made;
    made->device_ = DevicePolicy::create(first.device_index, made->network_);
    return made->device_ ? made : Ref<Policy>();
}

Policy::~Policy() {
    for (const std::atomic<void*>& spare : spares_) free(spare.load(std::memory_order_relaxed));
}

// What follows from the layers.
void Policy::describe() {
    int64_t kept = 0, sizes[DS_MAX_POLICY_LAYERS], num_kept = 0, outputs = 0;
    for (int64_t i = num_layers() - num_heads(); i < num_layers(); ++i) outputs += configs_[i].num_outputs;
    DS_ASSERT(num_heads() == 0 || outputs == DS_NUM_LOGITS || outputs == DS_NUM_LOGITS + 1);
    network_.has_value = outputs > DS_NUM_LOGITS;
    network_.width = DS_NUM_LOGITS + network_.has_value;
    for (const ds_layer_config *layer = network_.layers, *end = layer + network_.num_layers; layer != end; ++layer) {
        if (is_activation(layer->kind)) continue;
        if (network_.num_inputs == 0) network_.num_inputs = layer->num_inputs;
        network_.width = std::max({network_.width, layer->num_inputs, layer->num_outputs});
        network_.state_size += doorstep::state_size(*layer);
        network_.workspace = std::max(network_.workspace, doorstep::workspace(*layer));
        if (layer->weight_type == DS_WEIGHT_BFLOAT16)
            network_.widened = std::max(network_.widened, product_inputs(*layer) * kBlockOutputs);
        if (layer->kind == DS_LAYER_KEEP) kept += sizes[num_kept++] = layer->num_inputs;
        if (layer->kind == DS_LAYER_ADD || layer->kind == DS_LAYER_APPEND) {
            DS_ASSERT(num_kept > 0);
            kept -= sizes[--num_kept];
        }
        network_.kept = std::max(network_.kept, kept);
    }
    DS_ASSERT(network_.num_inputs > 0 && network_.width >= DS_NUM_LOGITS);
    network_.widened = (network_.widened + kTileRows - 1) / kTileRows * kTileRows;
}

int Policy::vector_width() { return cpu_features().avx512 ? 16 : 8; }

uint32_t Policy::act(const ActCall& call, int64_t first, int64_t count, void* scratch) const {
    DS_ASSERT(!device_);
    DS_ASSERT(reinterpret_cast<uintptr_t>(scratch) % kScratchAlignment == 0);
    DS_ASSERT(call.observation_stride >= num_inputs() && (call.state_stride >= state_size() || !state_size()));
    DS_ASSERT(first >= 0 && count >= 0 && call.observations && (call.states || !state_size()));
    DS_ASSERT(!call.actions || (call.sampling && call.keys));
    float* const floats = static_cast<float*>(scratch);
    const int64_t wide = cpu_features().avx512 ? rows_in_wide_tiles(count) : 0;
    int64_t nonfinite = 0;
    DS_ASSERT(wide >= 0 && wide <= count);
    if (wide > 0) nonfinite += act_with_avx512(network_, call, first, wide, floats);
    if (wide < count) nonfinite += act_with_avx2(network_, call, first + wide, count - wide, floats);
    if (nonfinite == 0) return kPolicyTroubleNone;
    DS_ASSERT(nonfinite > 0 && nonfinite <= count);
    nonfinite_rows_.fetch_add(nonfinite, std::memory_order_relaxed);
    return kPolicyTroubleNonfinite;
}

ds_status Policy::act_on_all(const ActCall& call) const {
    if (device_) return device_->act(call);
    void* const scratch = take_scratch();
    if (!scratch) return fail_no_memory();
    act(call, 0, call.num_rows, scratch);
    keep_scratch(scratch);
    return DS_STATUS_OK;
}

void* Policy::take_scratch() const {
    for (std::atomic<void*>& spare : spares_)
        if (void* const scratch = spare.exchange(nullptr, std::memory_order_acquire)) return scratch;
    void* scratch;
    return posix_memalign(&scratch, kScratchAlignment, static_cast<size_t>(scratch_bytes())) == 0 ? scratch : nullptr;
}

void Policy::keep_scratch(void* scratch) const {
    DS_ASSERT(scratch && !device_);
    for (std::atomic<void*>& spare : spares_) {
        void* none = nullptr;
        if (spare.compare_exchange_strong(none, scratch, std::memory_order_release)) return;
    }
    free(scratch);
}

Ref<Policy> Policy::freeze(uint64_t stream) const {
    const std::unique_ptr<Ref<Layer>[]> copies(new (std::nothrow) Ref<Layer>[static_cast<size_t>(num_layers())]);
    if (!copies) {
        fail_no_memory();
        return {};
    }
    for (int64_t i = 0; i < num_layers(); ++i) {
        copies[i] = layers_[i]->copy(stream);
        if (!copies[i]) return {};
    }
    return create(copies.get(), num_layers(), num_heads(), precision());
}

// ---- Calls of several policies

namespace {

struct Job {
    const PolicyCall *calls, *end;
    char* scratch;
    int64_t scratch_bytes;
    std::atomic<uint32_t> trouble{kPolicyTroubleNone};

    const PolicyCall* call_with(int64_t tile) const {
        const auto is_before = [](int64_t at, const PolicyCall& call) { return at < call.first_tile; };
        const PolicyCall* const found = std::upper_bound(calls, end, tile, is_before) - 1;
        DS_ASSERT(found >= calls && found->first_tile <= tile);
        return found;
    }
};

int64_t tiles_of(int64_t rows) { return (rows + kTileRows - 1) / kTileRows; }

void act_on_tiles(Job& job, int64_t first, int64_t count, int32_t worker) {
    char* const scratch = job.scratch + worker * job.scratch_bytes;
    const int64_t end = first + count;
    uint32_t trouble = kPolicyTroubleNone;
    for (const PolicyCall* at = job.call_with(first); first < end; ++at) {
        DS_ASSERT(at < job.end && first >= at->first_tile);
        const int64_t row = (first - at->first_tile) * kTileRows;
        const int64_t rows = std::min(at->call.num_rows - row, (end - first) * kTileRows);
        DS_ASSERT(rows > 0 && row + rows <= at->call.num_rows);
        trouble |= at->policy->act(at->call, row, rows, scratch);
        first += tiles_of(rows);
    }
    if (trouble) job.trouble.fetch_or(trouble, std::memory_order_relaxed);
}

}  // namespace

uint32_t act_together(Simulator& simulator, PolicyCall* calls, int64_t count, char* scratch, int64_t scratch_bytes) {
    DS_ASSERT(scratch_bytes % kScratchAlignment == 0);
    int64_t tiles = 0;
    for (int64_t i = 0; i < count; ++i) {
        DS_ASSERT(calls[i].call.num_rows > 0 && calls[i].policy->scratch_bytes() <= scratch_bytes);
        calls[i].first_tile = tiles;
        tiles += tiles_of(calls[i].call.num_rows);
    }
    Job job = {calls, calls + count, scratch, scratch_bytes};
    simulator.run_on_host(
        tiles, 1,
        [](void* context, int64_t first, int64_t number, int32_t worker) {
            act_on_tiles(*static_cast<Job*>(context), first, number, worker);
        },
        &job);
    return job.trouble.load(std::memory_order_relaxed);
}

}  // namespace doorstep
