// Host reads and writes of worlds on a CUDA device, in runs copied through pinned memory.
#include <algorithm>

#include "exec/cuda/cuda_simulator.h"
#include "runtime/hash.h"
#include "runtime/marks.h"

namespace doorstep {
namespace {

// The first world of the mask (null: all) in [from, num_worlds), or num_worlds.
int64_t first_of(const uint8_t* mask, int64_t from, int64_t num_worlds) {
    return mask ? next_marked(mask, from, num_worlds) : from;
}

}  // namespace

// Transfers of worlds between the device and the host: runs of them, copied part by part through pinned memory.
class WorldStaging {
public:
    // Of the parts [first_part, end_part) of worlds on the device, through a buffer of this many bytes.
    WorldStaging(WorkOrder& order, const SavedParts& device, int first_part, int end_part, char* buffer,
                 int64_t buffer_bytes)
        : order_(order), device_(device), host_(device), first_part_(first_part), end_part_(end_part) {
        int64_t world_bytes = 0;
        for (int i = first_part_; i < end_part_; ++i) world_bytes += device_.parts[i].bytes;
        capacity_ = buffer_bytes / world_bytes;
        DS_ASSERT(capacity_ > 0);
        for (int i = first_part_; i < end_part_; ++i) {
            host_.parts[i].start = buffer;
            buffer += capacity_ * host_.parts[i].bytes;
        }
    }

    // Calls function(first, count), which returns a status, for runs that cover the mask's worlds (null: all), and begin
    // and end with some.
    // INVALID_ARGUMENT if the stream is being captured; operation: see WorkOrder::check_not_recorded().
    template <class Function>
    ds_status for_each_run(int64_t num_worlds, const uint8_t* mask, const char* operation, const Function& function) {
        if (const ds_status status = order_.check_not_recorded(operation)) return status;
        for (int64_t first = first_of(mask, 0, num_worlds), count; first < num_worlds;
             first = first_of(mask, first + count, num_worlds)) {
            count = std::min(num_worlds - first, capacity_);
            while (mask && !mask[first + count - 1]) --count;
            if (const ds_status status = function(first, count)) return status;
        }
        return DS_STATUS_OK;
    }

    // Copy a run after the work begun so far, and wait for it.
    ds_status read(int64_t first, int64_t count) { return copy(first, count, true); }
    ds_status write(int64_t first, int64_t count) { return copy(first, count, false); }

    // The run on the host: world 0 is the run's first.
    const SavedParts& host() const { return host_; }

private:
    ds_status copy(int64_t first, int64_t count, bool to_host) {
        DS_ASSERT(first >= 0 && count > 0 && count <= capacity_);
        const Ref<Stream> stream = order_.stream();
        for (int i = first_part_; i < end_part_; ++i) {
            const int64_t bytes = device_.parts[i].bytes;
            const uint64_t device = reinterpret_cast<uint64_t>(device_.parts[i].start + first * bytes);
            const uint64_t host = reinterpret_cast<uint64_t>(host_.parts[i].start);
            const ds_status status = to_host ? stream->copy(host, device, static_cast<uint64_t>(count * bytes))
                                             : stream->copy(device, host, static_cast<uint64_t>(count * bytes));
            if (status) return status;
        }
        return stream->synchronize();
    }

    WorkOrder& order_;
    SavedParts device_;
    SavedParts host_;
    int first_part_, end_part_;
    int64_t capacity_;  // worlds per run
};

namespace {

// Calls function(index in the list, index in the run) for every listed world of a run.
template <class Function>
void for_each_listed(const WorldList& worlds, int64_t first, int64_t count, const Function& function) {
    for (int64_t i = 0; i < worlds.size; ++i) {
        const int64_t place = worlds[i] - first;
        if (place >= 0 && place < count) function(i, place);
    }
}

}  // namespace

WorldStaging CudaSimulator::stage(int first_part, int end_part) {
    DS_ASSERT(0 <= first_part && first_part < end_part && end_part <= kSavedParts);
    return {*order_, saved_parts(simulation_, *model_), first_part, end_part, world_staging_, kStagingBytes};
}

// Reads the blocks of these worlds only, side by side, and waits once for as many as fit the staging memory.
ds_status CudaSimulator::visit_blocks(const uint8_t* mask, VisitBlock visit, void* context) {
    if (const ds_status status = order_->check_not_recorded("a read of the worlds")) return status;
    const int64_t world_bytes = static_cast<int64_t>(model_->world_bytes), most = kStagingBytes / world_bytes;
    for (int64_t begin = 0, end; begin < config_.num_worlds; begin = end) {
        if (const ds_status status = read_blocks(mask, begin, most, &end)) return status;
        const char* block = world_staging_;
        for (int64_t world = begin; world < end; ++world) {
            if (mask && !mask[world]) continue;
            visit(context, world, block);
            block += world_bytes;
        }
    }
    return DS_STATUS_OK;
}

// Reads the blocks of at most `most` worlds from `begin` on, a copy for each run of neighbours, and waits for them. The
// others of [begin, *end) are not of the mask.
ds_status CudaSimulator::read_blocks(const uint8_t* mask, int64_t begin, int64_t most, int64_t* end) {
    const Ref<Stream> stream = order_->stream();
    const uint64_t world_bytes = model_->world_bytes;
    const uint64_t device = reinterpret_cast<uint64_t>(simulation_.worlds);
    const int64_t num_worlds = config_.num_worlds;
    int64_t world = begin, read = 0;
    while (read < most && (world = first_of(mask, world, num_worlds)) < num_worlds) {
        const int64_t room = std::min(num_worlds, world + most - read);
        const int64_t stop = mask ? next_unmarked(mask, world, room) : room;
        const uint64_t to = reinterpret_cast<uint64_t>(world_staging_) + static_cast<uint64_t>(read) * world_bytes;
        const ds_status status = stream->copy(to, device + static_cast<uint64_t>(world) * world_bytes,
                                              static_cast<uint64_t>(stop - world) * world_bytes);
        if (status) return status;
        read += stop - world;
        world = stop;
    }
    *end = world;
    return read > 0 ? stream->synchronize() : DS_STATUS_OK;
}

ds_status CudaSimulator::hash(const uint8_t* mask, uint64_t* hashes, uint64_t* sum) {
    uint64_t total = 0;
    const ds_status status = visit_blocks(mask, [&](int64_t world, const char* block) {
        const uint64_t hash = hash_bytes(block, model_->world_bytes);
        if (hashes) hashes[world] = hash;
        total += hash;
    });
    if (!status) *sum = total;
    return status;
}

ds_status CudaSimulator::find_bad_action(bool* found, BadAction* bad) {
    WorldStaging staging = stage(kActionPart, kActionPart + 1);
    Simulation staged = simulation_;
    staged.tensors.actions = reinterpret_cast<int32_t*>(staging.host().parts[kActionPart].start);
    *found = false;
    const char* operation = "a check of the actions (see action_check)";
    return staging.for_each_run(config_.num_worlds, nullptr, operation, [&](int64_t first, int64_t count) {
        if (*found) return DS_STATUS_OK;
        if (const ds_status status = staging.read(first, count)) return status;
        *found = model_->find_bad_action(staged, 0, count, bad);
        if (*found) bad->world += first;
        return DS_STATUS_OK;
    });
}

ds_status CudaSimulator::save(const WorldList& worlds, char* saved) {
    WorldStaging staging = stage(0, kSavedParts);
    const int64_t bytes = staging.host().bytes();
    return staging.for_each_run(config_.num_worlds, worlds.mask, "a save", [&](int64_t first, int64_t count) {
        if (const ds_status status = staging.read(first, count)) return status;
        for_each_listed(worlds, first, count, [&](int64_t i, int64_t place) {
            staging.host().save(place, saved + i * bytes);
        });
        return DS_STATUS_OK;
    });
}

ds_status CudaSimulator::restore(const WorldList& worlds, const char* saved) {
    WorldStaging staging = stage(0, kSavedParts);
    const int64_t bytes = staging.host().bytes();
    return staging.for_each_run(config_.num_worlds, worlds.mask, "a restore", [&](int64_t first, int64_t count) {
        if (const ds_status status = staging.read(first, count)) return status;  // keeps the worlds that are not listed
        for_each_listed(worlds, first, count, [&](int64_t i, int64_t place) {
            staging.host().restore(place, saved + i * bytes);
        });
        return staging.write(first, count);
    });
}

}  // namespace doorstep
