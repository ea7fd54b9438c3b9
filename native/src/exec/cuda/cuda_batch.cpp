#include "exec/batch.h"

#include <algorithm>
#include <new>

#include "exec/cuda/kernel_module.h"
#include "math/float_environment.h"
#include "runtime/cuda/device_memory.h"
#include "runtime/status.h"

namespace doorstep {
namespace {

// The module is the number of a kind of world.
struct BatchKernels final : Prepared<BatchKernels> {
    Ref<KernelModule> kernels;
    Ref<DeviceMemory> flights;
};

constinit PreparedList<BatchKernels> prepared_batches;

// The scratch memory starts with words for trouble, used if the caller passes none.
constexpr int64_t kTroubleBytes = 256;

ds_status fail_unprepared(const ds_batch& batch) {
    return fail(DS_STATUS_INVALID_ARGUMENT, "batch", "call ds_batch_prepare() before a capture",
                "batches of %ld agents with %s on device %ld have not been prepared",
                batch.num_agents, batch.max_levels > 0 ? "levels" : "the reference's levels", batch.device_index);
}

ds_status find_prepared(const ds_batch& batch, Ref<BatchKernels>* found) {
    const auto fail_missing = [&] { return fail_unprepared(batch); };
    return prepared_batches.find(batch.device_index, number_of(kind_of(batch)), fail_missing, found);
}

// ---- Preparation

ds_status upload_flights(BatchKernels& made) {
    const Ref<Stream> stream = Stream::create(made.context);
    if (!stream) return last_status();
    made.flights = DeviceMemory::create_on(stream, sizeof(FlightTable));
    if (!made.flights) return last_status();
    FlightTable table;
    {
        const DefaultFloatEnvironment environment;
        make_flight_table(table);
    }
    const uint64_t from = reinterpret_cast<uint64_t>(&table);
    if (const ds_status status = stream->copy(made.flights->address(), from, sizeof table)) return status;
    return stream->synchronize();
}

Ref<BatchKernels> load_kernels(const ds_batch& batch) {
    const Ref<BatchKernels> made = check_allocated(new (std::nothrow) BatchKernels);
    if (!made) return {};
    made->context = Context::of_device(batch.device_index);
    if (!made->context) return {};
    made->module = number_of(kind_of(batch));
    made->kernels = KernelModule::find(made->context, kind_of(batch));
    if (!made->kernels || upload_flights(*made)) return {};
    return made;
}

// ---- Launch

ds_status divide_into_tiles(const ds_batch& batch, const KernelModule& kernels, TileDivision* division) {
    const int64_t smallest = kTroubleBytes + workspace_bytes(kernels.shape(), 1);
    if (batch.scratch_bytes < smallest) {
        return fail(DS_STATUS_INVALID_ARGUMENT, "scratch_bytes", "ds_batch_get_info() gives the recommended size",
                    "scratch_bytes is %ld; it must be at least %ld", batch.scratch_bytes, smallest);
    }
    *division = divide_into_tiles(kernels.shape(), batch.num_worlds, kernels.resident_blocks(),
                                  batch.scratch_bytes - kTroubleBytes);
    return DS_STATUS_OK;
}

ds_status launch(const ds_batch& batch, KernelId id, KernelArguments arguments) {
    Ref<BatchKernels> prepared;
    if (const ds_status status = find_prepared(batch, &prepared)) return status;
    const KernelModule& kernels = *prepared->kernels;
    TileDivision division;
    if (const ds_status status = divide_into_tiles(batch, kernels, &division)) return status;
    arguments.simulation = simulation_of(batch);
    arguments.flights = reinterpret_cast<const FlightTable*>(prepared->flights->address());
    arguments.workspace = static_cast<char*>(batch.scratch) + kTroubleBytes;
    arguments.trouble = batch.trouble ? batch.trouble : static_cast<uint32_t*>(batch.scratch);
    arguments.num_worlds = batch.num_worlds;
    arguments.tile_worlds = division.tile_worlds;
    const KernelShape& shape = kernels.shape();
    const uint32_t grid = static_cast<uint32_t>(division.blocks);
    const LaunchShape launched = {{grid, 1, 1}, {static_cast<uint32_t>(shape.threads), 1, 1}, shape.shared_bytes};
    void* parameters[] = {&arguments};
    return kernels.kernel(id).launch_on(reinterpret_cast<CUstream>(batch.stream), launched, parameters);
}

}  // namespace

ds_status prepare_on_cuda(const ds_batch& batch) {
    return prepared_batches.prepare(batch.device_index, number_of(kind_of(batch)), [&] { return load_kernels(batch); });
}

ds_status release_on_cuda(const ds_batch& batch) {
    return prepared_batches.release(batch.device_index, number_of(kind_of(batch)),
                                    [&] { return fail_unprepared(batch); });
}

ds_status size_scratch_on_cuda(const ds_batch& batch, ds_batch_info* info) {
    if (in_forked_process()) return fail_driver(kCalledInForkedProcess, "");
    const Ref<Context> context = Context::of_device(batch.device_index);
    if (!context) return last_status();
    const Ref<KernelModule> kernels = KernelModule::find(context, kind_of(batch));
    if (!kernels) return last_status();
    const KernelShape& shape = kernels->shape();
    const TileDivision division =
        divide_into_tiles(shape, batch.num_worlds, kernels->resident_blocks(), INT64_MAX);
    info->scratch_bytes = kTroubleBytes + division.blocks * workspace_bytes(shape, division.tile_worlds);
    info->smallest_scratch_bytes = kTroubleBytes + workspace_bytes(shape, 1);
    return DS_STATUS_OK;
}

ds_status create_on_cuda(const ds_batch& batch, uint32_t seed, uint64_t world_offset, const uint32_t* seed_and_offset) {
    KernelArguments arguments{};
    arguments.seed = seed;
    arguments.world_offset = world_offset;
    arguments.seed_and_offset = seed_and_offset;
    return launch(batch, kKernel_create, arguments);
}

ds_status step_on_cuda(const ds_batch& batch) { return launch(batch, kKernel_step, {}); }

ds_status copy_on_cuda(const ds_batch& batch, void* to, const void* from, int64_t bytes) {
    Ref<BatchKernels> prepared;
    if (const ds_status status = find_prepared(batch, &prepared)) return status;
    return prepared->context->call("cuMemcpyAsync", "actions", [&](const Driver& driver) {
        return driver.cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(to), reinterpret_cast<CUdeviceptr>(from),
                                    static_cast<size_t>(bytes), reinterpret_cast<CUstream>(batch.stream));
    });
}

ds_status clear_on_cuda(const ds_batch& batch, void* memory, int64_t bytes) {
    Ref<BatchKernels> prepared;
    if (const ds_status status = find_prepared(batch, &prepared)) return status;
    return prepared->context->call("cuMemsetD8Async", "tensors", [&](const Driver& driver) {
        return driver.cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(memory), 0, static_cast<size_t>(bytes),
                                      reinterpret_cast<CUstream>(batch.stream));
    });
}

}  // namespace doorstep
