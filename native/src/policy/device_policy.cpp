#include "policy/device_policy.h"

#include <algorithm>
#include <new>

#include "exec/arena.h"
#include "exec/cuda/images.h"
#include "exec/cuda/kernel_module.h"
#include "runtime/status.h"

namespace doorstep {
namespace {

// Of all blocks together; wide networks that do not fit shared memory get fewer blocks instead of more.
constexpr int64_t kMostScratchBytes = int64_t{128} << 20;

// The oldest compute capability whose tensor cores multiply bfloat16 (80 is 8.0).
constexpr int kOldestWithBf16 = 80;

ds_status fail_precision(int compute_capability) {
    return fail(DS_STATUS_INVALID_ARGUMENT, "precision", "use a newer GPU, or the precision float32",
                "precision is bfloat16; it must be float32 on a GPU of compute capability %d.%d: "
                "bfloat16 needs %d.%d or newer",
                compute_capability / 10, compute_capability % 10, kOldestWithBf16 / 10, kOldestWithBf16 % 10);
}

}  // namespace

Ref<DevicePolicy> DevicePolicy::create(int64_t device_index, const Network& network) {
    const Ref<DevicePolicy> made = check_allocated(new (std::nothrow) DevicePolicy);
    return made && !made->prepare(device_index, network) ? made : Ref<DevicePolicy>();
}

Ref<DevicePolicy> DevicePolicy::clone(const Network& network) const {
    const Ref<DevicePolicy> made = check_allocated(new (std::nothrow) DevicePolicy);
    if (!made) return {};
    made->pinned_ = pinned_;
    const int64_t device_index = order_->context()->device_index();
    return made->prepare(device_index, network) ? Ref<DevicePolicy>() : made;
}

ds_status DevicePolicy::prepare(int64_t device_index, const Network& network) {
    if (const ds_status status = load(device_index, network.precision)) return status;
    if (const ds_status status = take_memory(network)) return status;
    return upload(network);
}

ds_status DevicePolicy::load(int64_t device_index, int32_t precision) {
    if (in_forked_process()) return fail_driver(kCalledInForkedProcess, "");
    const Ref<Context> context = Context::of_device(device_index);
    if (!context) return last_status();
    const bool rounds = precision == DS_PRECISION_BFLOAT16;
    if (rounds && context->compute_capability() < kOldestWithBf16) return fail_precision(context->compute_capability());
    order_ = WorkOrder::create(context, DS_STREAM_OWN);
    if (!order_) return last_status();
    const Ref<Module> module = load_module(context, rounds ? kBf16PoliciesModule : kPoliciesModule);
    if (!module) return last_status();
    kernel_ = Kernel::get(module, rounds ? kActBf16Kernel : kActKernel);
    return kernel_ ? DS_STATUS_OK : last_status();
}

ds_status DevicePolicy::take_memory(const Network& network) {
    const Context& context = *order_->context();
    int multiprocessors, most_shared, blocks;
    if (const ds_status status = context.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &multiprocessors)) {
        return status;
    }
    if (const ds_status status =
            context.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &most_shared)) {
        return status;
    }
    const int64_t scratch = act_scratch_floats(network) * 4, staged = int64_t{kStagedFloats} * 4;
    DS_ASSERT(scratch > 0 && !memory_);
    const bool fits = staged + scratch <= most_shared;
    shape_ = {{1, 1, 1}, {kActThreads, 1, 1}, static_cast<uint32_t>(fits ? staged + scratch : staged)};
    if (const ds_status status = kernel_->allow_shared_bytes(shape_.shared_bytes)) return status;
    if (const ds_status status = kernel_->prefer_shared_memory()) return status;
    if (const ds_status status = kernel_->resident_blocks(kActThreads, shape_.shared_bytes, &blocks)) return status;
    most_blocks_ = std::max<int64_t>(int64_t{blocks} * multiprocessors, 1);
    if (!fits) most_blocks_ = std::clamp<int64_t>(kMostScratchBytes / scratch, 1, most_blocks_);

    DS_ASSERT(most_blocks_ >= 1);
    Parts parts;
    const int64_t layers = parts.place(network.num_layers * static_cast<int64_t>(sizeof(ds_layer_config)));
    const int64_t floats = parts.place(fits ? 0 : most_blocks_ * scratch);
    memory_ = DeviceMemory::create_on(order_->stream(), static_cast<uint64_t>(parts.bytes));
    if (!memory_) return last_status();
    char* const base = reinterpret_cast<char*>(memory_->address());
    arguments_.network = network;
    arguments_.network.layers = reinterpret_cast<ds_layer_config*>(base + layers);
    arguments_.scratch = fits ? nullptr : reinterpret_cast<float*>(base + floats);
    arguments_.scratch_floats = scratch / 4;

    if (!pinned_) {
        pinned_ = PinnedMemory::create(order_->context(), sizeof *nonfinite_rows_);
        if (!pinned_) return last_status();
        *static_cast<unsigned long long*>(pinned_->data()) = 0;
    }
    nonfinite_rows_ = static_cast<unsigned long long*>(pinned_->data());
    arguments_.nonfinite_rows = reinterpret_cast<unsigned long long*>(pinned_->address());
    return DS_STATUS_OK;
}

ds_status DevicePolicy::upload(const Network& network) {
    return order_->copy(reinterpret_cast<uint64_t>(arguments_.network.layers),
                        reinterpret_cast<uint64_t>(network.layers),
                        network.num_layers * static_cast<int64_t>(sizeof(ds_layer_config)), "a copy of the layers");
}

DevicePolicy::~DevicePolicy() {
    if (!order_) return;
    const bool finished = order_->finish();
    order_->leave_users_stream();
    if (finished) {
        if (memory_) memory_->set_stream(order_->stream());
    } else {
        abandon();
    }
}

void DevicePolicy::abandon() {
    if (memory_) memory_->abandon();
    if (pinned_) pinned_->abandon();
}

ds_status DevicePolicy::act(const ActCall& call) {
    if (in_forked_process()) return fail_driver(kCalledInForkedProcess, "");
    MutexGuard guard(mutex_);
    if (const ds_status status = order_->set_stream(call.stream)) return status;
    Ref<Stream> stream;
    if (const ds_status status = order_->begin(&stream)) return status;
    return launch(*stream, call, nullptr);
}

ds_status DevicePolicy::launch(const Stream& stream, const ActCall& call, const RowRange* range) {
    DS_ASSERT(kernel_ && memory_ && call.num_rows > 0 && (call.observations || range));
    arguments_.call = call;
    arguments_.range = range;
    const int64_t tiles = (call.num_rows + kActRows - 1) / kActRows;
    shape_.grid[0] = static_cast<uint32_t>(std::min(tiles, most_blocks_));
    void* parameters[] = {&arguments_};
    return kernel_->launch(stream, shape_, parameters);
}

}  // namespace doorstep
