#include "exec/cuda/world_staging.h"

#include <algorithm>

namespace doorstep {

WorldStaging::WorldStaging(WorkOrder& order, const SavedParts& device, int first_part, int end_part, char* buffer)
    : order_(order), device_(device), host_(device), first_part_(first_part), end_part_(end_part) {
    int64_t world_bytes = 0;
    for (int i = first_part_; i < end_part_; ++i) world_bytes += device_.parts[i].bytes;
    capacity_ = kBytes / world_bytes;
    for (int i = first_part_; i < end_part_; ++i) {
        host_.parts[i].start = buffer;
        buffer += capacity_ * host_.parts[i].bytes;
    }
}

bool WorldStaging::has_any(const uint8_t* mask, int64_t first, int64_t count) {
    return !mask || std::any_of(mask + first, mask + first + count, [](uint8_t byte) { return byte != 0; });
}

ds_status WorldStaging::copy(int64_t first, int64_t count, bool to_host) {
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

}  // namespace doorstep
