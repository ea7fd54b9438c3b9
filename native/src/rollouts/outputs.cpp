#include "rollouts/outputs.h"

#include <algorithm>
#include <new>

#include "runtime/status.h"

namespace doorstep {

// ---- Outputs that come ----

void OutputQueue::push(Request* request, int32_t outputs) {
    const int32_t made = request->num_outputs();
    DS_ASSERT(outputs > 0 && outputs <= made && request->outputs.get() == this);
    if (is_abandoned_) {
        request->delivered = made;
        return receive(request, outputs);
    }
    count({request, made - outputs, made}, 1);
    if (!request->is_listed) {
        request->is_listed = true;
        request->next = nullptr;
        (last_ ? last_->next : first_) = request;
        last_ = request;
    }
    if (has(wanted_)) wake_readers();
}

void OutputQueue::wake_readers() {
    wanted_ = INT64_MAX;
    arrivals_.tell();
}

// The request ends with the last ones.
void OutputQueue::receive(Request* request, int32_t outputs) {
    request->received += outputs;
    DS_ASSERT(request->received <= request->delivered && request->delivered <= request->num_outputs());
    if (request->is_received()) table_->free(request);
}

void OutputQueue::count(const Part& part, int64_t sign) {
    const Request& request = *part.request;
    unread_ += sign * (part.end - part.begin);
    const bool has_result = request.results_made > 0 && part.end == request.num_outputs();
    if (has_result && request.trajectory.memory) unread_bytes_ += sign * request.trajectory.memory->bytes();
    DS_ASSERT(unread_ >= 0 && unread_bytes_ >= 0);
}

// ---- Deliveries ----

ds_status OutputQueue::take(int64_t least, int64_t most, int64_t timeout_ns, ds_delivery* delivery,
                            const Receiver& receiver) {
    const TimeLimit limit(timeout_ns);
    for (;;) {
        const uint32_t before = arrivals_.now();
        const int64_t left = limit.left_ns();
        ds_status status = DS_STATUS_OK;
        bool was_full, is_full_now;
        {
            MutexGuard guard(table_->mutex);
            settle_with_lock(delivery);
            note_reader();
            if (awaited_ == 0 && is_empty()) {
                if (!table_->has_ended) return DS_STATUS_OK;
                return fail(DS_STATUS_CLOSED, "engine", "make a new engine",
                            "the engine has ended, and all outputs have been taken");
            }
            was_full = is_full();
            if (has(least) || left == 0) status = take_some(most, delivery, receiver);
            else wanted_ = std::min(wanted_, least);
            is_full_now = is_full();
        }
        if (was_full && !is_full_now) table_->arrivals.tell();
        if (*receiver.count > 0 || status) return status;
        if (left == 0) return DS_STATUS_PENDING;
        arrivals_.wait(before, left);
    }
}

ds_status OutputQueue::take_some(int64_t most, ds_delivery* delivery, const Receiver& receiver) {
    if (is_empty()) return DS_STATUS_OK;
    std::unique_ptr<Delivery> made(new (std::nothrow) Delivery{++table_->num_deliveries, 0, {}, {}});
    if (made) made->parts.reset(new (std::nothrow) Part[static_cast<size_t>(std::min(most, unread_))]);
    if (!made || !made->parts) {
        return fail(DS_STATUS_OUT_OF_MEMORY, "most", "take fewer outputs at a time, or raise the memory limit",
                    "no memory is left for outputs that are taken");
    }
    ds_status status = DS_STATUS_OK;
    int64_t taken = 0;
    while (taken < most && !is_empty() && !status) {
        const Part part = made->parts[made->num_parts++] = next_part(most - taken);
        count(part, -1);
        for (int32_t place = part.begin; place < part.end; ++place) {
            ds_episode_output* const output = &receiver.outputs[taken];
            part.request->write_output(place, output);
            awaited_ -= output->kind == DS_OUTPUT_RESULT;
            if (!status && output->data_start) status = receiver.give(part.request->trajectory.memory, &output->data);
            taken += !status;
        }
    }
    *receiver.count = static_cast<uint64_t>(taken);
    *delivery = {made->number, 0};
    made->next = std::move(taken_);
    taken_ = std::move(made);
    if (taken == 0) settle_with_lock(delivery);  // all wait again
    return taken > 0 ? DS_STATUS_OK : status;
}

// The next outputs of one request, at most so many: first those that were taken and not received.
OutputQueue::Part OutputQueue::next_part(int64_t most) {
    const auto cut = [most](int32_t begin, int32_t end) {
        return begin + static_cast<int32_t>(std::min<int64_t>(end - begin, most));
    };
    if (returned_) {
        Part& part = returned_->parts[returned_->num_parts - 1];  // they are in reverse order
        const Part found = {part.request, part.begin, cut(part.begin, part.end)};
        part.begin = found.end;
        if (part.begin == part.end && --returned_->num_parts == 0) returned_ = std::move(returned_->next);
        return found;
    }
    Request* const request = first_;
    const Part found = {request, request->delivered, cut(request->delivered, request->num_outputs())};
    DS_ASSERT(request->is_listed && found.begin < found.end);
    request->delivered = found.end;
    if (request->num_unread() == 0) {
        first_ = request->next;
        if (!first_) last_ = nullptr;
        request->is_listed = false;
    }
    return found;
}

int64_t OutputQueue::settle(ds_delivery* delivery) {
    MutexGuard guard(table_->mutex);
    settle_with_lock(delivery);
    return awaited_;
}

void OutputQueue::settle_with_lock(ds_delivery* delivery) {
    const ds_delivery settled = *delivery;
    *delivery = {};
    std::unique_ptr<Delivery>* link = &taken_;
    while (*link && (*link)->number != settled.number) link = &(*link)->next;
    if (settled.number == 0 || !*link) return;
    std::unique_ptr<Delivery> found = std::move(*link);
    *link = std::move(found->next);
    put_back(std::move(found), static_cast<int64_t>(std::min<uint64_t>(settled.received, INT64_MAX)));
}

// The first outputs have been received; the others are the next that can be taken.
void OutputQueue::put_back(std::unique_ptr<Delivery> delivery, int64_t received) {
    int64_t left = 0;
    for (int64_t i = 0; i < delivery->num_parts; ++i) {
        Part part = delivery->parts[i];
        const int32_t some = static_cast<int32_t>(std::min<int64_t>(part.end - part.begin, received));
        received -= some;
        part.begin += some;
        if (part.begin < part.end) {
            awaited_ += part.end - std::max(part.begin, std::min(part.end, part.request->steps_made));
            count(part, 1);
            delivery->parts[left++] = part;
        }
        if (some > 0) receive(part.request, some);
    }
    if (left == 0) return;
    std::reverse(delivery->parts.get(), delivery->parts.get() + left);
    delivery->num_parts = left;
    delivery->next = std::move(returned_);
    returned_ = std::move(delivery);
    wake_readers();
}

void OutputQueue::note_reader() {
    if (has_reader_ && !pthread_equal(reader_, pthread_self())) has_readers_ = true;
    reader_ = pthread_self();
    has_reader_ = true;
    stuck_since_ns_ = 0;
}

bool OutputQueue::is_stuck(int64_t now_ns) {
    if (!is_full()) return false;
    if (stuck_since_ns_ == 0) stuck_since_ns_ = now_ns;
    const bool is_read_here_alone = !has_readers_ && (!has_reader_ || pthread_equal(reader_, pthread_self()));
    return is_read_here_alone && now_ns - stuck_since_ns_ >= kPatienceNs;
}

void OutputQueue::abandon() {
    MutexGuard guard(table_->mutex);
    is_abandoned_ = true;
    while (!is_empty()) {
        const Part part = next_part(INT64_MAX);
        receive(part.request, part.end - part.begin);
    }
    while (taken_) {
        const std::unique_ptr<Delivery> delivery = std::move(taken_);
        taken_ = std::move(delivery->next);
        for (int64_t i = 0; i < delivery->num_parts; ++i) {
            receive(delivery->parts[i].request, delivery->parts[i].end - delivery->parts[i].begin);
        }
    }
    unread_ = unread_bytes_ = 0;
    table_->arrivals.tell();  // it is full no longer
}

}  // namespace doorstep
