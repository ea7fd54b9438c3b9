// Queues of work on a device, and points in that work.
#pragma once

#include <stdint.h>
#include <time.h>

#include <algorithm>

#include "runtime/cuda/context.h"
#include "runtime/futex.h"

namespace doorstep {

// ---- Polling ----

// Polling, where the driver can only wait without limit: without pause at first, as a pause takes at least 50 us, then
// at growing intervals.

constexpr int64_t kSpinTime = 50'000;       // nanoseconds
constexpr int64_t kShortestPause = 10'000;  // between two polls, doubled up to
constexpr int64_t kLongestPause = 1'000'000;

// Polls until the result differs from `pending`, at least once and at most for timeout_ns; returns the last result.
template <class Answer, class Question>
Answer poll(Answer pending, int64_t timeout_ns, const Question& question) {
    const int64_t begin = monotonic_ns();
    int64_t pause = kShortestPause;
    while (true) {
        const Answer answer = question();
        const int64_t waited = monotonic_ns() - begin, left = timeout_ns - waited;
        if (answer != pending || left <= 0) return answer;
        if (waited < kSpinTime) continue;
        const timespec duration{0, static_cast<long>(std::min(pause, left))};
        nanosleep(&duration, nullptr);
        pause = std::min(2 * pause, kLongestPause);
    }
}

// How long a released object waits for the work that uses it before it is leaked: that work may itself wait for another
// API, without end.
constexpr int64_t kReleasePatience = 3'000'000'000;

// ---- Streams ----

class Event;

class Stream final : public Resource {
public:
    static constexpr ds_resource_kind kKind = DS_RESOURCE_STREAM;

    // A new stream, which does not wait for the legacy default stream. Null, with the thread's error set, on failure.
    static Ref<Stream> create(Ref<Context> context);

    // A stream of other code. raw: a CUstream of that context; 0 and 1 are the context's legacy default stream, 2 is
    // its per-thread default stream. Without an owner to release, a stream that create() made is found again.
    // INVALID_ARGUMENT (`argument`) if the stream belongs to another context.
    static Ref<Stream> borrow(Ref<Context> context, uint64_t raw, ForeignOwner owner = {},
                              const char* argument = "raw");
    ~Stream();

    CUstream handle() const { return reinterpret_cast<CUstream>(raw()); }

    // INVALID_ARGUMENT, "stream", if the context is that of another device. of: what has the context, for messages.
    ds_status check_device(const Context& context, const char* of) const;
    ds_status synchronize() const;
    // PENDING while work is unfinished.
    ds_status query() const;
    // Orders further work after the event.
    ds_status wait_event(const Event& event) const;
    // Orders further work after all work begun on another stream. Does nothing if one of them is being captured: then
    // the code that captures orders the work.
    ds_status follow(const Stream& earlier) const;
    // Whether work begun now is captured into a graph instead of executed.
    ds_status is_capturing(bool* capturing) const;

    // Copies between any two addresses that the driver can access.
    ds_status copy(uint64_t to, uint64_t from, uint64_t bytes) const;
    ds_status fill(uint64_t memory, uint8_t value, uint64_t bytes) const;
    ds_status copy_rows(const ds_row_copy& rows) const;

    // For destructors of objects that the work may use, in a CurrentContext.
    // True also if the driver cannot tell.
    bool may_be_capturing() const;
    // Waits for the work; false if that takes longer than kReleasePatience, or if the stream may be captured.
    bool finish() const;

private:
    explicit Stream(Ref<Context> context);
    Stream(Ref<Context> context, uint64_t raw, ForeignOwner owner);
};

// ---- Events ----

class Event final : public Resource {
public:
    static constexpr ds_resource_kind kKind = DS_RESOURCE_EVENT;

    // timing: whether elapsed() may be called. Null, with the thread's error set, on failure.
    static Ref<Event> create(Ref<Context> context, bool timing = false);
    static Ref<Event> borrow(Ref<Context> context, uint64_t raw, ForeignOwner owner = {});
    ~Event();

    CUevent handle() const { return reinterpret_cast<CUevent>(raw()); }

    // The event now marks the end of all work begun on the stream so far.
    ds_status record(const Stream& stream) const;
    // PENDING if the event has not been reached.
    ds_status query() const;
    ds_status synchronize() const;
    // At most timeout_ns (negative: without limit, 0: only queries). PENDING if it has not been reached by then.
    ds_status wait(int64_t timeout_ns) const;
    // Milliseconds from `start` to this one. PENDING if one has not been reached.
    ds_status elapsed(const Event& start, float* milliseconds) const;

private:
    Event(Ref<Context> context, bool timing);
    Event(Ref<Context> context, uint64_t raw, ForeignOwner owner);

    bool timing_;  // unknown for a borrowed event: the driver checks
};

}  // namespace doorstep
