// A semaphore of another API of the process, such as Vulkan: it orders that API's work and the work of streams.
#pragma once

#include "runtime/cuda/event.h"
#include "runtime/futex.h"

namespace doorstep {

class Semaphore final : public Resource {
public:
    static constexpr ds_resource_kind kKind = DS_RESOURCE_SEMAPHORE;

    // Imports the semaphore of a file descriptor (VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT), which stays the
    // caller's. Null, with the thread's error set, on failure; DEVICE if the device does not support timeline
    // semaphores.
    static Ref<Semaphore> import(Ref<Context> context, int descriptor, bool timeline);
    // Leaked if work that uses it has not ended after kReleasePatience, or may be launched again.
    ~Semaphore();

    CUexternalSemaphore handle() const { return reinterpret_cast<CUexternalSemaphore>(raw()); }
    bool is_timeline() const { return timeline_; }

    // In the order of the stream. value: the value that a timeline is set to or must reach; 0 for a binary semaphore.
    // An error of cuEventRecord is returned after the work was begun.
    ds_status signal(const Stream& stream, uint64_t value);
    ds_status wait(const Stream& stream, uint64_t value);

private:
    // The latest work that uses it on one stream, by the event after it.
    struct Use {
        Ref<Event> event;
        uint64_t stream;
        Use* next;
    };

    Semaphore(Ref<Context> context, bool timeline) : Resource(kKind, std::move(context)), timeline_(timeline) {}
    template <class Call>
    ds_status begin(const Stream& stream, const char* function, const Call& call);
    ds_status find_use(const Stream& stream, Use** use);
    bool is_at_rest() const;

    const bool timeline_;
    Mutex mutex_;  // guards the following
    Use* uses_ = nullptr;
    bool unknown_uses_ = false;  // in graphs, or without an event after it
};

}  // namespace doorstep
