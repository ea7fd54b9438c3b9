#include "exec/cuda/cuda_simulator.h"

#include <string.h>

#include <algorithm>
#include <functional>
#include <new>
#include <utility>

#include "math/float_environment.h"
#include "runtime/cuda/stream.h"
#include "runtime/status.h"

namespace doorstep {
namespace {

class CudaStepEvent final : public StepEvent {
public:
    explicit CudaStepEvent(const Ref<Event>& event) : event_(event) {}

    ds_status record(const Stream& stream) { return event_->record(stream); }
    ds_status wait(int64_t timeout_ns) override { return event_->wait(timeout_ns); }

private:
    Ref<Event> event_;
};

constexpr const char* kBinding = "the binding of tensors";  // for WorkOrder::check_not_recorded()

ds_status fail_profile() {
    return fail(DS_STATUS_DEVICE, "device", "profile a simulator on the CPU, or use NVIDIA's profilers",
                "the stages of a step are timed on the CPU only");
}

}  // namespace

// ---- Memory ----

Ref<Memory> CudaMemory::take(const Ref<WorkOrder>& order, int64_t bytes) {
    const Ref<Stream> stream = order->stream();
    const Ref<DeviceMemory> device = DeviceMemory::create_on(stream, static_cast<uint64_t>(bytes));
    if (!device || stream->fill(device->address(), 0, device->bytes())) return {};
    char* data = reinterpret_cast<char*>(device->address());
    return check_allocated(new (std::nothrow) CudaMemory(order, device, data, bytes, false));
}

Ref<Memory> CudaMemory::borrow(const Ref<WorkOrder>& order, char* data, int64_t bytes) {
    const Ref<DeviceMemory> device = DeviceMemory::borrow(order->context(), reinterpret_cast<uint64_t>(data),
                                                          static_cast<uint64_t>(bytes), {});
    if (!device) return {};
    return check_allocated(new (std::nothrow) CudaMemory(order, device, data, bytes, true));
}

CudaMemory::CudaMemory(const Ref<WorkOrder>& order, const Ref<DeviceMemory>& device, char* data, int64_t bytes,
                       bool is_callers)
    : Memory(data, bytes, DS_DEVICE_CUDA, device->device_index()),
      order_(order),
      device_(device),
      is_callers_(is_callers) {}

CudaMemory::~CudaMemory() {
    if (is_callers_) {
        if (order_->finish_for_caller()) return;
        device_->abandon();
        abandon_owner();
        return;
    }
    Ref<Stream> stream;
    if (order_->settle(&stream)) {
        device_->set_stream(std::move(stream));
    } else {
        device_->abandon();
    }
}

ds_status CudaMemory::read(const void* start, int64_t bytes, void* host) {
    return order_->copy(reinterpret_cast<uint64_t>(host), reinterpret_cast<uint64_t>(start), bytes,
                        "a copy to the host");
}

ds_status CudaMemory::write(void* start, int64_t bytes, const void* host) {
    return order_->copy(reinterpret_cast<uint64_t>(start), reinterpret_cast<uint64_t>(host), bytes,
                        "a copy from the host");
}

// ---- Creation ----

bool CudaSimulator::is_possible(const ds_simulator_config& config) {
    const Ref<Context> context = Context::of_device(config.device_index);
    return context && KernelModule::find(context, kind_of(config));
}

ds_status CudaSimulator::create(const ds_simulator_config& config, Ref<Simulator>* simulator) {
    const Ref<CudaSimulator> made = check_allocated(new (std::nothrow) CudaSimulator(config));
    if (!made) return DS_STATUS_OUT_OF_MEMORY;
    if (!made->has_records()) return fail_records();
    if (const ds_status status = made->find_device()) return status;
    if (const ds_status status = made->take_own_memory()) return status;
    if (const ds_status status = made->take_scratch()) return status;
    if (const ds_status status = made->take_pinned()) return status;
    if (const ds_status status = made->upload_constants()) return status;
    if (const ds_status status = made->set_first_levels()) return status;
    if (const ds_status status = made->generate_levels()) return status;
    *simulator = made;
    return DS_STATUS_OK;
}

ds_status CudaSimulator::find_device() {
    const Ref<Context> context = Context::of_device(config_.device_index);
    if (!context) return last_status();
    order_ = WorkOrder::create(context, config_.stream);
    if (!order_) return last_status();
    if (const ds_status status = order_->check_not_recorded("the creation of a simulator")) return status;
    kernels_ = KernelModule::find(context, kind_of(config_));
    if (!kernels_) return last_status();
    const KernelShape& shape = kernels_->shape();
    const TileDivision division =
        divide_into_tiles(shape, config_.num_worlds, kernels_->resident_blocks(), INT64_MAX);
    arguments_.tile_worlds = division.tile_worlds;
    const uint32_t grid = static_cast<uint32_t>(division.blocks);
    shape_ = {{grid, 1, 1}, {static_cast<uint32_t>(shape.threads), 1, 1}, shape.shared_bytes};
    return DS_STATUS_OK;
}

ds_status CudaSimulator::take_own_memory() {
    Ref<Memory> taken = CudaMemory::take(order_, layout_.bytes);
    if (!taken) return last_status();
    take_over(std::move(taken));
    mask_ = map_pages(config_.num_worlds, "num_worlds");
    return mask_ ? DS_STATUS_OK : last_status();
}

ds_status CudaSimulator::take_scratch() {
    Parts parts;
    const int64_t workspace =
        parts.place(shape_.grid[0] * workspace_bytes(kernels_->shape(), arguments_.tile_worlds));
    const int64_t flights = parts.place(sizeof(FlightTable));
    const int64_t mask = parts.place(config_.num_worlds);
    const int64_t starts = parts.place(config_.num_worlds * static_cast<int64_t>(sizeof(EpisodeStart)));
    scratch_ = DeviceMemory::create_on(order_->stream(), static_cast<uint64_t>(parts.bytes));
    if (!scratch_) return last_status();
    char* base = reinterpret_cast<char*>(scratch_->address());
    arguments_.workspace = base + workspace;
    arguments_.flights = reinterpret_cast<FlightTable*>(base + flights);
    device_mask_ = reinterpret_cast<uint8_t*>(base + mask);
    device_starts_ = reinterpret_cast<EpisodeStart*>(base + starts);
    return DS_STATUS_OK;
}

ds_status CudaSimulator::take_pinned() {
    Parts parts;
    const int64_t trouble = parts.place(kTroubleKinds * static_cast<int64_t>(sizeof(uint32_t)));
    const int64_t mask = parts.place(config_.num_worlds);
    const int64_t starts = parts.place(config_.num_worlds * static_cast<int64_t>(sizeof(EpisodeStart)));
    const int64_t worlds = parts.place(kStagingBytes);
    pinned_ = PinnedMemory::create(order_->context(), static_cast<uint64_t>(parts.bytes));
    if (!pinned_) return last_status();
    char* base = static_cast<char*>(pinned_->data());
    trouble_ = reinterpret_cast<uint32_t*>(base + trouble);
    std::fill_n(trouble_, kTroubleKinds, 0u);
    arguments_.trouble = reinterpret_cast<uint32_t*>(pinned_->address() + static_cast<uint64_t>(trouble));
    mask_staging_ = reinterpret_cast<uint8_t*>(base + mask);
    starts_staging_ = reinterpret_cast<EpisodeStart*>(base + starts);
    world_staging_ = base + worlds;
    mask_uploaded_ = Event::create(order_->context());
    return mask_uploaded_ ? DS_STATUS_OK : last_status();
}

ds_status CudaSimulator::upload_constants() {
    const auto upload = [&](const void* to, const void* from, int64_t bytes) {
        return order_->copy(reinterpret_cast<uint64_t>(to), reinterpret_cast<uint64_t>(from), bytes, "a copy");
    };
    for (int field = 0; field < DS_STATE_COUNT; ++field) {
        if (layout_.constants[field] < 0) continue;
        const ds_status status = upload(memory()->data() + layout_.constants[field],
                                        model_->state_fields[field].constant, constant_bytes(*model_, field));
        if (status) return status;
    }
    FlightTable flights;
    {
        const DefaultFloatEnvironment environment;
        make_flight_table(flights);
    }
    return upload(arguments_.flights, &flights, sizeof flights);
}

ds_status CudaSimulator::generate_levels() {
    arguments_.num_worlds = config_.num_worlds;
    arguments_.world_offset = static_cast<uint64_t>(config_.world_offset);
    arguments_.seed = static_cast<uint32_t>(config_.seed);
    if (const ds_status status = launch(kKernel_create)) return status;
    return order_->stream()->synchronize();
}

// Steps may still write to the pinned memory, and graphs may use the scratch memory.
CudaSimulator::~CudaSimulator() {
    if (!order_) return;
    const bool finished = order_->finish();
    order_->leave_users_stream();
    if (finished) {
        // The stream that it was created on may no longer exist
        if (scratch_) scratch_->set_stream(order_->stream());
        if (given_) given_->set_stream(order_->stream());
    } else {
        if (scratch_) scratch_->abandon();
        if (given_) given_->abandon();
        if (pinned_) pinned_->abandon();
    }
}

int64_t CudaSimulator::own_bytes() const {
    const uint64_t given = given_bytes_.load(std::memory_order_relaxed);
    return memory()->bytes() + static_cast<int64_t>(scratch_->bytes() + pinned_->bytes() + given) + mask_.bytes() +
           static_cast<int64_t>(sizeof(CudaSimulator) + sizeof(CudaMemory) + sizeof(WorkOrder));
}

// ---- Waiting ----

// In a forked process the parent's work can neither end nor be awaited; driver objects handle that themselves.
bool CudaSimulator::close() { return in_forked_process() || order_->finish(); }

ds_status CudaSimulator::prepare() {
    return in_forked_process() ? fail_driver(kCalledInForkedProcess, "") : DS_STATUS_OK;
}

ds_status CudaSimulator::find_end(Ref<StepEvent>* event) {
    if (const ds_status status = prepare()) return status;
    if (const ds_status status = make_event("waiting for the simulator", event)) return status;
    return static_cast<CudaStepEvent&>(**event).record(*order_->stream());
}

ds_status CudaSimulator::make_event(Ref<StepEvent>* event) { return make_event("an asynchronous step", event); }

ds_status CudaSimulator::make_event(const char* operation, Ref<StepEvent>* event) {
    if (const ds_status status = order_->check_not_recorded(operation)) return status;
    const Ref<Event> made = Event::create(order_->context());
    if (!made) return last_status();
    *event = check_allocated(new (std::nothrow) CudaStepEvent(made));
    return *event ? DS_STATUS_OK : last_status();
}

// ---- Kernels ----

ds_status CudaSimulator::launch(KernelId id, const uint8_t* device_mask, const EpisodeStart* device_starts) {
    arguments_.simulation = simulation_;
    arguments_.mask = device_mask;
    arguments_.starts = device_starts;
    void* parameters[] = {&arguments_};
    Ref<Stream> stream;
    if (const ds_status status = order_->begin(&stream)) return status;
    return kernels_->kernel(id).launch(*stream, shape_, parameters);
}

ds_status CudaSimulator::launch_masked(KernelId id, const uint8_t* mask) {
    if (!mask) return launch(id);
    if (const ds_status status = upload_mask(mask)) return status;
    return launch(id, device_mask_);
}

ds_status CudaSimulator::upload_mask(const uint8_t* mask) {
    if (const ds_status status = order_->check_not_recorded("a list of worlds")) return status;
    if (const ds_status status = mask_uploaded_->synchronize()) return status;
    const size_t bytes = static_cast<size_t>(config_.num_worlds);
    DS_ASSERT(mask != mask_staging_);
    memcpy(mask_staging_, mask, bytes);
    const Ref<Stream> stream = order_->stream();
    const ds_status status = stream->copy(reinterpret_cast<uint64_t>(device_mask_),
                                          reinterpret_cast<uint64_t>(mask_staging_), bytes);
    return status ? status : mask_uploaded_->record(*stream);
}

ds_status CudaSimulator::step() {
    if (const ds_status status = launch(kKernel_step)) return status;
    step_count_.fetch_add(1, std::memory_order_relaxed);
    return DS_STATUS_OK;
}

ds_status CudaSimulator::step_async(StepEvent& event) {
    if (const ds_status status = step()) return status;
    if (const ds_status status = update()) return status;
    if (const ds_status status = static_cast<CudaStepEvent&>(event).record(*order_->stream())) return status;
    turn.unlock();
    return DS_STATUS_OK;
}

ds_status CudaSimulator::reset(const uint8_t* mask) { return launch_masked(kKernel_reset, mask); }

ds_status CudaSimulator::begin(const uint8_t* mask, const EpisodeStart* starts) {
    DS_ASSERT(mask && starts);
    if (const ds_status status = upload_starts(mask, starts)) return status;
    if (const ds_status status = upload_mask(mask)) return status;
    return launch(kKernel_reset, device_mask_, device_starts_);
}

// Before the mask, whose event tells when the staging memory may be written again.
ds_status CudaSimulator::upload_starts(const uint8_t* mask, const EpisodeStart* starts) {
    if (const ds_status status = order_->check_not_recorded("the begin of given episodes")) return status;
    if (const ds_status status = mask_uploaded_->synchronize()) return status;
    if (const ds_status status = list_given(mask, starts)) return status;
    if (const ds_status status = upload_given()) return status;
    const size_t bytes = static_cast<size_t>(config_.num_worlds) * sizeof(EpisodeStart);
    return order_->stream()->copy(reinterpret_cast<uint64_t>(device_starts_),
                                  reinterpret_cast<uint64_t>(starts_staging_), bytes);
}

// Stages the starts, and lists what they refer to, worlds with the same level side by side.
ds_status CudaSimulator::list_given(const uint8_t* mask, const EpisodeStart* starts) {
    num_given_ = 0;
    for (int64_t world = 0; world < config_.num_worlds; ++world) {
        if (!mask[world]) continue;
        const EpisodeStart& start = starts_staging_[world] = starts[world];
        const void* const given = start.saved ? start.saved : start.level;
        if (!given) continue;
        if (given_list_.size() == 0 && !given_list_.take(config_.num_worlds)) return fail_no_memory();
        given_list_[num_given_++] = {given, world};
    }
    std::sort(given_list_.begin(), given_list_.begin() + num_given_, [](const Given& one, const Given& other) {
        return std::less<const void*>()(one.from, other.from);
    });
    return DS_STATUS_OK;
}

// Copies each level or saved world of the list once, next to each other, and gives the starts their addresses on the
// device. Waits only where they do not fit the staging memory together.
ds_status CudaSimulator::upload_given() {
    if (num_given_ == 0) return DS_STATUS_OK;
    const Ref<Stream> stream = order_->stream();
    const uint64_t room = std::max(sizeof(ds_level), model_->world_bytes), most = kStagingBytes / room;
    if (!given_) given_ = DeviceMemory::create_on(stream, static_cast<uint64_t>(config_.num_worlds) * room);
    if (!given_) return last_status();
    given_bytes_.store(given_->bytes(), std::memory_order_relaxed);
    uint64_t copied = 0, staged = 0;
    const auto copy = [&] {
        const uint64_t to = given_->address() + copied * room;
        copied += staged;
        return stream->copy(to, reinterpret_cast<uint64_t>(world_staging_), std::exchange(staged, 0) * room);
    };
    for (int64_t i = 0; i < num_given_; ++i) {
        EpisodeStart& start = starts_staging_[given_list_[i].world];
        if (i == 0 || given_list_[i].from != given_list_[i - 1].from) {
            if (staged == most) {
                if (const ds_status status = copy()) return status;
                if (const ds_status status = stream->synchronize()) return status;
            }
            const size_t bytes = start.saved ? model_->world_bytes : sizeof(ds_level);
            memcpy(world_staging_ + staged * room, given_list_[i].from, bytes);
            ++staged;
        }
        const uint64_t place = given_->address() + (copied + staged - 1) * room;
        if (start.saved) start.saved = reinterpret_cast<const void*>(place);
        else start.level = reinterpret_cast<const ds_level*>(place);
    }
    return copy();
}

ds_status CudaSimulator::refresh(const uint8_t* mask) { return launch_masked(kKernel_refresh, mask); }

// ---- Attachment ----

ds_status CudaSimulator::update_attachment() {
    Ref<Stream> stream;
    if (const ds_status status = order_->begin(&stream)) return status;
    return attachment.update({sizeof(ds_turn), DS_DEVICE_CUDA, config_.device_index, stream->raw(), 0, nullptr, nullptr});
}

ds_status CudaSimulator::take_memory(int64_t bytes, Ref<Memory>* memory) {
    if (const ds_status status = order_->check_not_recorded("the allocation of memory")) return status;
    *memory = CudaMemory::take(order_, bytes);
    return *memory ? DS_STATUS_OK : last_status();
}

// ---- The caller's memory ----

ds_status CudaSimulator::borrow(char* data, int64_t bytes, Ref<Memory>* memory) {
    if (const ds_status status = order_->check_not_recorded(kBinding)) return status;
    *memory = CudaMemory::borrow(order_, data, bytes);
    return *memory ? DS_STATUS_OK : last_status();
}

ds_status CudaSimulator::copy(void* to, const void* from, int64_t bytes) {
    Ref<Stream> stream;
    if (const ds_status status = order_->begin(&stream)) return status;
    return stream->copy(reinterpret_cast<uint64_t>(to), reinterpret_cast<uint64_t>(from), static_cast<uint64_t>(bytes));
}

ds_status CudaSimulator::copy_now(void* to, const void* from, int64_t bytes) {
    return order_->copy(reinterpret_cast<uint64_t>(to), reinterpret_cast<uint64_t>(from), bytes, kBinding);
}

// ---- Trouble ----

// Reads the current words: a later call reports the trouble of steps that are still running.
ds_status CudaSimulator::take_trouble(uint32_t* trouble) {
    *trouble = kTroubleNone;
    const auto word = [&](int kind) { return __atomic_load_n(&trouble_[kind], __ATOMIC_RELAXED); };
    bool met = false;
    for (int kind = 0; kind < kTroubleKinds; ++kind) met = met || word(kind);
    if (!met) return DS_STATUS_OK;
    if (const ds_status status = order_->check_not_recorded("the report of trouble")) return status;
    if (const ds_status status = order_->stream()->synchronize()) return status;
    for (int kind = 0; kind < kTroubleKinds; ++kind) {
        if (word(kind)) *trouble |= 1u << kind;
        trouble_[kind] = 0;
    }
    return DS_STATUS_OK;
}

ds_status CudaSimulator::set_profiling(bool enabled) { return enabled ? fail_profile() : DS_STATUS_OK; }

ds_status CudaSimulator::read_profile(uint64_t*) { return fail_profile(); }

}  // namespace doorstep
