// doorstep's ray caster on the CPU and on CUDA. Both draw the same bits.
#include <stdio.h>

#include <algorithm>
#include <new>

#include "render/api/core.h"
#include "render/raycast/block_views.h"
#include "render/raycast/constants.h"

namespace doorstep {
namespace {

// ---- On the CPU

template <class Limits>
class CpuRaycaster final : public BatchRenderer {
public:
    static ds_status create(const CameraSetup& setup, BatchRenderer** renderer);
    ~CpuRaycaster() override {
        delete[] memory_;
        ::operator delete(constants_memory_, kAlignment);
    }

    ds_status draw(const Views& views, const ds_turn& turn) override;
    const char* device_name() const override { return "CPU"; }

private:
    static constexpr std::align_val_t kAlignment{64};

    explicit CpuRaycaster(const CameraRig& rig) : constants_(rig) {}
    bool take_memory(int64_t num_threads);

    RaycastConstants constants_;
    void* constants_memory_ = nullptr;
    DrawingMemory<Limits>* memory_ = nullptr;  // one per thread
};

template <class Limits>
bool CpuRaycaster<Limits>::take_memory(int64_t num_threads) {
    constants_memory_ = ::operator new(static_cast<size_t>(constants_.bytes()), kAlignment, std::nothrow);
    if (constants_memory_) constants_.write(constants_memory_);
    memory_ = new (std::nothrow) DrawingMemory<Limits>[static_cast<size_t>(num_threads)];
    return constants_memory_ && memory_;
}

template <class Limits>
ds_status CpuRaycaster<Limits>::create(const CameraSetup& setup, BatchRenderer** renderer) {
    CpuRaycaster* made = new (std::nothrow) CpuRaycaster(setup.views.rig);
    if (made && made->take_memory(setup.info.num_threads)) {
        *renderer = made;
        return DS_STATUS_OK;
    }
    delete made;
    return fail(DS_STATUS_OUT_OF_MEMORY, "cameras", "close other simulators, or raise the memory limit",
                "no memory is left for %ld threads to draw with", setup.info.num_threads);
}

template <class Limits>
ds_status CpuRaycaster<Limits>::draw(const Views& views, const ds_turn& turn) {
    struct Drawing {
        ViewsCall call;
        DrawingMemory<Limits>* memory;
    } drawing = {constants_.call(views, constants_memory_), memory_};
    const ds_task task = [](void* context, int64_t first, int64_t count, int32_t worker) {
        const Drawing& given = *static_cast<const Drawing*>(context);
        draw_views_on_cpu(given.call, first, count, given.memory[worker]);
    };
    turn.run(turn.pool, views.num_worlds, task, &drawing);
    return DS_STATUS_OK;
}

// ---- On CUDA

// Maximum blocks of a launch; blocks loop over further views.
constexpr int64_t kMostBlocks = 1 << 24;

class CudaRaycaster final : public BatchRenderer {
public:
    static ds_status create(const CameraSetup& setup, BatchRenderer** renderer);
    ~CudaRaycaster() override;

    ds_status draw(const Views& views, const ds_turn& turn) override;
    const char* device_name() const override { return device_.name; }

private:
    explicit CudaRaycaster(const Views& views)
        : constants_(views.rig), view_kernel_(find_view_kernel(views.fields)) {}
    ds_status prepare(const CameraSetup& setup);
    ds_status load_kernel();
    ds_status copy_constants(ds_simulator simulator);
    ds_status follow(uint64_t stream);

    RaycastConstants constants_;
    ViewKernel view_kernel_;
    ds_cuda_device_info device_ = {};
    ds_resource context_ = 0, kernel_ = 0;
    ds_memory memory_ = 0;
    const void* constants_address_ = nullptr;
    uint64_t raw_stream_ = 0;  // the CUstream of stream_, if there is one
    ds_resource stream_ = 0;
};

CudaRaycaster::~CudaRaycaster() {
    if (stream_) core().resource_release(stream_);
    if (kernel_) core().resource_release(kernel_);
    if (context_) core().resource_release(context_);
    if (memory_) core().memory_release(memory_);
}

ds_status CudaRaycaster::load_kernel() {
    ds_resource module;
    if (const ds_status status = core().module_load_builtin(context_, "views", &module)) return status;
    const ds_status status = core().kernel_get(module, view_kernel_.name, &kernel_);
    core().resource_release(module);  // the kernel keeps it alive
    return status;
}

ds_status CudaRaycaster::copy_constants(ds_simulator simulator) {
    const uint64_t bytes = static_cast<uint64_t>(constants_.bytes());
    void* address;
    if (const ds_status status = core().simulator_allocate(simulator, bytes, &memory_, &address)) return status;
    constants_address_ = address;
    constexpr std::align_val_t kAlignment{64};
    void* host = ::operator new(bytes, kAlignment, std::nothrow);
    if (!host) {
        return fail(DS_STATUS_OUT_OF_MEMORY, "cameras", "close other simulators, or raise the memory limit",
                    "no memory is left for the ray caster's tables");
    }
    constants_.write(host);
    ds_tensor_info info = {};
    info.struct_size = sizeof info;
    info.dtype = DS_DTYPE_UINT8;
    info.access = DS_ACCESS_READ_WRITE;
    info.rank = 1;
    info.shape[0] = constants_.bytes();
    info.strides[0] = 1;
    info.data = address;
    const ds_status status = core().memory_write(memory_, &info, host, bytes);
    ::operator delete(host, kAlignment);
    return status;
}

ds_status CudaRaycaster::prepare(const CameraSetup& setup) {
    device_.struct_size = sizeof device_;
    if (const ds_status status = core().cuda_get_device(setup.info.device_index, &device_)) return status;
    if (const ds_status status = core().context_create(setup.info.device_index, &context_)) return status;
    if (const ds_status status = load_kernel()) return status;
    return copy_constants(setup.simulator);
}

ds_status CudaRaycaster::create(const CameraSetup& setup, BatchRenderer** renderer) {
    CudaRaycaster* made = new (std::nothrow) CudaRaycaster(setup.views);
    if (!made) {
        return fail(DS_STATUS_OUT_OF_MEMORY, "cameras", "close other simulators, or raise the memory limit",
                    "no memory is left for the ray caster's own records");
    }
    if (const ds_status status = made->prepare(setup)) {
        delete made;
        return status;
    }
    *renderer = made;
    return DS_STATUS_OK;
}

// The simulator's stream may change between turns, but rarely does.
ds_status CudaRaycaster::follow(uint64_t stream) {
    if (stream_ && stream == raw_stream_) return DS_STATUS_OK;
    ds_resource borrowed;
    if (const ds_status status = core().stream_borrow(context_, stream, nullptr, nullptr, &borrowed)) return status;
    if (stream_) core().resource_release(stream_);
    stream_ = borrowed;
    raw_stream_ = stream;
    return DS_STATUS_OK;
}

ds_status CudaRaycaster::draw(const Views& views, const ds_turn& turn) {
    if (const ds_status status = follow(turn.stream)) return status;
    const int64_t count = views.num_worlds * views.fields.num_agents;
    const uint32_t grid[3] = {static_cast<uint32_t>(std::min(count, kMostBlocks)), 1, 1};
    const uint32_t block[3] = {kViewThreads, 1, 1};
    ViewsCall call = constants_.call(views, constants_address_);
    void* arguments[] = {&call};
    return core().kernel_launch(kernel_, stream_, grid, block, view_kernel_.block_bytes, arguments);
}

}  // namespace

ds_status create_raycast_renderer(const CameraSetup& setup, BatchRenderer** renderer) {
    if (setup.info.device_kind != DS_DEVICE_CPU) return CudaRaycaster::create(setup, renderer);
    return with_limits(setup.views.fields,
                       [&](auto limits) { return CpuRaycaster<decltype(limits)>::create(setup, renderer); });
}

ds_status describe_raycast_renderer(ds_renderer_info* info) {
    snprintf(info->description, sizeof info->description, "doorstep's ray caster, on the CPU and on CUDA");
    return DS_STATUS_OK;
}

}  // namespace doorstep
