// A simulator's worlds on a CUDA device. A step is one kernel launch in the order of the work; it waits for nothing and
// allocates nothing. Data for the host (saves, hashes, health, actions) is copied in chunks, after the work.
#pragma once

#include "exec/cuda/kernel_module.h"
#include "exec/cuda/work_order.h"
#include "exec/simulator.h"
#include "runtime/cuda/device_memory.h"
#include "runtime/array.h"
#include "runtime/memory.h"

namespace doorstep {

// Memory of a simulator on a CUDA device: its own, or the caller's.
class CudaMemory final : public Memory {
public:
    // Zeroed. Null, with the thread's error set, if `bytes` cannot be allocated.
    static Ref<Memory> take(const Ref<WorkOrder>& order, int64_t bytes);
    // Null, with the thread's error set, if the memory is not on the device.
    static Ref<Memory> borrow(const Ref<WorkOrder>& order, char* data, int64_t bytes);
    // Own memory is freed in the order of the work, without waiting for it. The caller's is released after the work.
    ~CudaMemory() override;

    ds_status read(const void* start, int64_t bytes, void* host) override;
    ds_status write(void* start, int64_t bytes, const void* host) override;
    ds_status order(uint64_t stream) override { return order_->order(stream); }

private:
    CudaMemory(const Ref<WorkOrder>& order, const Ref<DeviceMemory>& device, char* data, int64_t bytes,
               bool is_callers);

    Ref<WorkOrder> order_;
    Ref<DeviceMemory> device_;
    bool is_callers_;
};

class WorldStaging;

class CudaSimulator final : public Simulator {
public:
    // False without the configuration's device, a driver, or kernels for it.
    static bool is_possible(const ds_simulator_config& config);

    // Generates the first levels.
    static ds_status create(const ds_simulator_config& config, Ref<Simulator>* simulator);
    ~CudaSimulator() override;

    uint8_t* mask() const override { return reinterpret_cast<uint8_t*>(mask_.data()); }
    ds_status find_end(Ref<StepEvent>* event) override;
    uint64_t stream() const override { return order_->stream()->raw(); }

    ds_status prepare() override;
    bool close() override;
    void enter_forked_child() override {}

    ds_status step() override;
    ds_status make_event(Ref<StepEvent>* event) override;
    ds_status step_async(StepEvent& event) override;
    ds_status find_bad_action(bool* found, BadAction* bad) override;
    ds_status reset(const uint8_t* mask) override;
    ds_status begin(const uint8_t* mask, const EpisodeStart* starts) override;
    ds_status refresh(const uint8_t* mask) override;
    ds_status set_stream(uint64_t stream) override { return order_->set_stream(stream); }
    ds_status borrow(char* data, int64_t bytes, Ref<Memory>* memory) override;
    ds_status copy(void* to, const void* from, int64_t bytes) override;
    ds_status copy_now(void* to, const void* from, int64_t bytes) override;

    ds_status save(const WorldList& worlds, char* saved) override;
    ds_status restore(const WorldList& worlds, const char* saved) override;
    ds_status hash(const uint8_t* mask, uint64_t* hashes, uint64_t* sum) override;

    void run_on_host(int64_t count, int64_t, ds_task task, void* context) override { task(context, 0, count, 0); }
    int num_workers() const override { return 1; }

    ds_status take_trouble(uint32_t* trouble) override;

    ds_status set_profiling(bool enabled) override;
    ds_status read_profile(uint64_t* ticks) override;

private:
    explicit CudaSimulator(const ds_simulator_config& config) : Simulator(config, DS_DEVICE_CUDA) {}

    // The steps of creation.
    ds_status find_device();
    ds_status take_own_memory();
    ds_status take_scratch();
    ds_status take_pinned();
    ds_status upload_constants();
    ds_status generate_levels();

    int64_t own_bytes() const override;
    ds_status take_memory(int64_t bytes, Ref<Memory>* memory) override;
    ds_status update_attachment() override;

    // operation: the operation that cannot be captured, for the message.
    ds_status make_event(const char* operation, Ref<StepEvent>* event);
    ds_status launch(KernelId id, const uint8_t* device_mask = nullptr, const EpisodeStart* device_starts = nullptr);
    ds_status launch_masked(KernelId id, const uint8_t* mask);
    ds_status upload_mask(const uint8_t* mask);
    ds_status upload_starts(const uint8_t* mask, const EpisodeStart* starts);
    ds_status list_given(const uint8_t* mask, const EpisodeStart* starts);
    ds_status upload_given();
    ds_status read_blocks(const uint8_t* mask, int64_t begin, int64_t most, int64_t* end);
    WorldStaging stage(int first_part, int end_part);
    using Simulator::visit_blocks;
    ds_status visit_blocks(const uint8_t* mask, VisitBlock visit, void* context) override;

    static constexpr int64_t kStagingBytes = int64_t{4} << 20;

    Ref<WorkOrder> order_;
    Ref<KernelModule> kernels_;
    LaunchShape shape_{};
    KernelArguments arguments_{};

    Pages mask_;
    Ref<DeviceMemory> scratch_;  // the kernels' workspace, flight table, mask and starts
    uint8_t* device_mask_ = nullptr;
    EpisodeStart* device_starts_ = nullptr;
    // A level or a saved world that begins an episode.
    struct Given {
        const void* from;  // on the host
        int64_t world;
    };
    Ref<DeviceMemory> given_;  // room for one per world, of begin(); null before the first
    Array<Given> given_list_;  // of the latest begin()
    int64_t num_given_ = 0;
    std::atomic<uint64_t> given_bytes_{0};  // read without the turn
    Ref<PinnedMemory> pinned_;   // contains the following
    uint32_t* trouble_ = nullptr;
    uint8_t* mask_staging_ = nullptr;
    EpisodeStart* starts_staging_ = nullptr;
    char* world_staging_ = nullptr;  // kStagingBytes
    Ref<Event> mask_uploaded_;   // after it mask_staging_ and starts_staging_ may be written
};

}  // namespace doorstep
