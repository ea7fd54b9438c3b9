// Queues of requests and outputs by themselves: orders, capacities, ends, and many threads at once.
#include <math.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "check.h"
#include "draws.h"
#include "rollouts/answers.h"
#include "rollouts/interruptions.h"

using namespace doorstep;

namespace {

constexpr int64_t kMillisecond = 1'000'000;
constexpr OutputLimits kManyOutputs = {1 << 20, 1 << 20};

QueueRules rules(int32_t scheduler, int64_t capacity, bool requests_choose) {
    QueueRules rules = {};
    rules.scheduler.type = scheduler;
    rules.scheduler.begin_fraction = 1;
    rules.worlds = {2, false};
    rules.num_policies = 8;
    rules.capacity = capacity;
    rules.requests_choose = requests_choose;
    return rules;
}

struct Queue {
    Ref<RequestQueue> queue;

    explicit Queue(int32_t scheduler, int64_t capacity = 1 << 20, bool requests_choose = false)
        : queue(Ref<RequestQueue>::adopt(new RequestQueue(rules(scheduler, capacity, requests_choose),
                                                          Ref<RequestTable>::adopt(new RequestTable)))) {}
    // A branch.
    Queue(const Queue& source, int64_t capacity)
        : queue(Ref<RequestQueue>::adopt(new RequestQueue(source.queue, capacity))) {
        queue->open_branch();
    }
    RequestQueue* operator->() const { return queue.get(); }
    void answer(const PlayedRequest& played) const {
        queue->begin_answers(&played, 1);
        queue->finish(&played, 1);
    }
    void answer_over(Request* first) const {
        for (Request* over = first; over; over = over->next) {
            const PlayedRequest played = {over, 0};
            queue->begin_answers(&played, 1);
        }
        queue->finish_over(first);
    }
    RequestQueue& operator*() const { return *queue; }

    uint64_t submit(const ds_episode_request& request) const {
        uint64_t id, accepted;
        CHECK_EQUAL(queue->submit(&request, nullptr, 1, 0, &id, &accepted), DS_STATUS_OK);
        CHECK_EQUAL(accepted, 1);
        return id;
    }
    // The tags of requests in the order in which they are taken; they end.
    std::vector<uint64_t> take_all(int64_t at_once = 3) const {
        std::vector<uint64_t> tags;
        for (;;) {
            Request *to_play, *over;
            if (queue->take(at_once, monotonic_ns(), &to_play, &over) == 0) return tags;
            CHECK(!over);
            while (to_play) {
                Request* next = to_play->next;
                tags.push_back(to_play->asked.tag);
                const PlayedRequest played = {to_play, to_play->asked.max_steps};
                answer(played);
                to_play = next;
            }
        }
    }
    QueueCounts info() const { return queue->counts(); }
    void wait(int64_t timeout_ns) const {
        const uint32_t before = queue->arrivals().now();
        if (!queue->has_some()) queue->arrivals().wait(before, timeout_ns);
    }
    // The requests that are over, with their reasons; they end.
    std::vector<std::pair<uint64_t, int>> take_over(int64_t* num_to_play = nullptr) const {
        Request *to_play, *over;
        const int64_t count = queue->take(num_to_play ? 1 : 0, monotonic_ns(), &to_play, &over);
        if (num_to_play) *num_to_play = count;
        std::vector<std::pair<uint64_t, int>> ended;
        for (Request* request = over; request; request = request->next) {
            ended.push_back({request->asked.tag, request->reason});
        }
        answer_over(over);
        return ended;
    }
};

Request* take_one(const Queue& queue) {
    Request *to_play, *over;
    CHECK_EQUAL(queue->take(1, monotonic_ns(), &to_play, &over), 1);
    CHECK(!over);
    return to_play;
}

ds_episode_request request(uint64_t tag) {
    ds_episode_request made = {};
    made.tag = tag;
    made.max_steps = 10;
    return made;
}

// ---- Orders

// What a scheduler compares; smaller is earlier.
double key_of(int32_t scheduler, const ds_episode_request& asked) {
    switch (scheduler) {
    case DS_SCHEDULER_PRIORITY: return -static_cast<double>(asked.priority);
    case DS_SCHEDULER_EARLIEST_DEADLINE: return asked.deadline_ns ? static_cast<double>(asked.deadline_ns) : INFINITY;
    case DS_SCHEDULER_LEAST_REMAINING_STEPS: return asked.max_steps ? static_cast<double>(asked.max_steps) : INFINITY;
    case DS_SCHEDULER_CALLER: return asked.key;
    default: return 0;
    }
}

void every_scheduler_has_its_order() {
    Draws draw(1);
    constexpr double kKeys[] = {-INFINITY, -1e300, -2, -1e-300, -0., 0, 5e-324, 1e-300, 1, 2, 1e300, INFINITY};
    for (int32_t scheduler = DS_SCHEDULER_FIXED_CHUNK; scheduler <= DS_SCHEDULER_CALLER; ++scheduler) {
        if (scheduler == DS_SCHEDULER_FAIR_SHARE) continue;  // which has no keys
        const Queue queue(scheduler);
        std::vector<ds_episode_request> asked;
        std::vector<uint64_t> expected;
        const int64_t later = monotonic_ns() + 1000'000 * kMillisecond;
        for (uint64_t tag = 0; tag < 1000; ++tag) {
            ds_episode_request one = request(tag);
            one.priority = draw.integer(0, 20) - 10;
            one.deadline_ns = draw.integer(0, 5) ? later + draw.integer(0, 20) : 0;
            one.max_steps = draw.integer(0, 20);
            one.key = kKeys[draw.integer(0, std::size(kKeys))];
            asked.push_back(one);
            expected.push_back(tag);
            queue.submit(one);
        }
        std::stable_sort(expected.begin(), expected.end(), [&](uint64_t a, uint64_t b) {
            return key_of(scheduler, asked[a]) < key_of(scheduler, asked[b]);
        });
        CHECK(queue.take_all() == expected);
        CHECK_EQUAL(queue.info().unanswered, 0);
    }
}

// Requests that come, go and are taken back, against a sorted list.
void orders_hold_while_requests_come_and_go() {
    Draws draw(2);
    for (const int32_t scheduler : {DS_SCHEDULER_FIXED_CHUNK, DS_SCHEDULER_PRIORITY}) {
        const Queue queue(scheduler);
        struct Waiting {
            double key;
            uint64_t sequence, id;
            bool operator<(const Waiting& other) const {
                return key != other.key ? key < other.key : sequence < other.sequence;
            }
        };
        std::set<Waiting> model;
        std::vector<std::pair<Waiting, Request*>> playing;
        uint64_t sequence = 0;
        for (int i = 0; i < 20'000; ++i) {
            switch (draw.integer(0, 5)) {
            case 0:
            case 1: {
                ds_episode_request one = request(sequence);
                one.priority = draw.integer(0, 5);
                model.insert({key_of(scheduler, one), sequence++, queue.submit(one)});
                break;
            }
            case 2: {
                if (model.empty()) break;
                Request* taken = take_one(queue);
                CHECK_EQUAL(taken->id, model.begin()->id);
                playing.push_back({*model.begin(), taken});
                model.erase(model.begin());
                break;
            }
            case 3: {
                if (playing.empty()) break;
                const size_t index = static_cast<size_t>(draw.integer(0, static_cast<int>(playing.size())));
                const auto [waiting, taken] = playing[index];
                playing.erase(playing.begin() + static_cast<int64_t>(index));
                if (draw.integer(0, 2)) {
                    queue->take_back(taken);
                    model.insert(waiting);
                } else {
                    const PlayedRequest played = {taken, 1};
                    queue.answer(played);
                }
                break;
            }
            default: {
                if (model.empty() || draw.integer(0, 4)) break;
                const auto cancelled = std::next(model.begin(), draw.integer(0, static_cast<int>(model.size())));
                CHECK(queue->cancel(cancelled->id));
                model.erase(cancelled);
                CHECK_EQUAL(queue.take_over().size(), 1);
            }
            }
            CHECK_EQUAL(queue.info().waiting, model.size());
            CHECK_EQUAL(queue.info().unanswered, model.size() + playing.size());
        }
        for (const auto& [waiting, taken] : playing) queue->take_back(taken);
    }
}

void shares_are_fair_by_steps() {
    const Queue queue(DS_SCHEDULER_FAIR_SHARE);
    for (uint64_t i = 0; i < 300; ++i) {
        ds_episode_request one = request(i);
        one.policies[0] = i < 200 ? 1 : 2;  // twice as many, earlier
        one.max_steps = i < 200 ? 10 : 30;
        queue.submit(one);
    }
    int64_t steps[3] = {};
    for (int i = 0; i < 120; ++i) {
        Request* taken = take_one(queue);
        steps[taken->asked.policies[0]] += taken->asked.max_steps;
        CHECK(i == 0 || std::abs(steps[1] - steps[2]) <= 30);
        const PlayedRequest played = {taken, taken->asked.max_steps};
        queue.answer(played);
    }
    // A policy that comes now gets no more than its share from now on
    for (uint64_t i = 0; i < 100; ++i) {
        ds_episode_request one = request(i);
        one.policies[0] = 3;
        queue.submit(one);
    }
    int64_t of_new = 0;
    for (int i = 0; i < 50; ++i) of_new += take_one(queue)->asked.policies[0] == 3;
    CHECK(of_new >= 15 && of_new <= 25);
}

void a_request_is_taken_before_one_that_is_later() {
    const Queue queue(DS_SCHEDULER_PRIORITY);
    ds_episode_request low = request(1), high = request(2);
    high.priority = 1;
    queue.submit(low);
    Request* const played = take_one(queue);
    CHECK(!queue->take_before(*played));
    queue.submit(low);
    CHECK(!queue->take_before(*played));  // which came later
    queue.submit(high);
    Request* const earlier = queue->take_before(*played);
    CHECK_EQUAL(earlier->asked.tag, 2);
    CHECK(!queue->take_before(*earlier));
    queue->take_back(played);
    CHECK_EQUAL(queue.info().waiting, 2);
    CHECK(take_one(queue) == played);  // which came first
    for (const PlayedRequest& ended : {PlayedRequest{played, 10}, PlayedRequest{earlier, 10}}) {
        queue->begin_answers(&ended, 1);
        queue->finish(&ended, 1);
    }
}

// However it is taken; one that was interrupted goes on with the policy with which it began.
void requests_that_wait_get_the_policy_in_place_of_theirs() {
    const Queue queue(DS_SCHEDULER_PRIORITY);
    ds_episode_request low = request(1), high = request(2);
    low.policies[0] = high.policies[0] = high.policies[1] = 3;
    high.priority = 1;
    queue.submit(low);
    Request* const played = take_one(queue);
    queue.submit(high);
    queue->replace_policy(3, 5);
    Request* const earlier = queue->take_before(*played);
    CHECK(earlier->asked.policies[0] == 5 && earlier->asked.policies[1] == 5);
    played->interrupted = std::make_unique<InterruptedEpisode>();
    queue->take_back(played);
    CHECK(take_one(queue) == played);
    CHECK_EQUAL(played->asked.policies[0], 3);
    for (const PlayedRequest& ended : {PlayedRequest{played, 10}, PlayedRequest{earlier, 10}}) queue.answer(ended);
}

// What a policy's requests were counted for is corrected when they end, and cancelled ones count nothing.
void shares_count_what_was_played() {
    const Queue queue(DS_SCHEDULER_FAIR_SHARE);
    ds_episode_request one = request(0);
    one.policies[0] = 1;
    one.max_steps = 100;
    ds_episode_request other = one;
    other.policies[0] = 2;
    for (int i = 0; i < 10; ++i) queue.submit(one);
    std::vector<uint64_t> ids;
    for (int i = 0; i < 10; ++i) ids.push_back(queue.submit(other));
    for (int i = 0; i < 8; ++i) queue->cancel(ids[static_cast<size_t>(i) + 2]);
    queue.take_over();
    const PlayedRequest played = {take_one(queue), 1};  // of policy 1: 1 step instead of 100
    CHECK_EQUAL(played.request->asked.policies[0], 1);
    queue.answer(played);
    CHECK_EQUAL(take_one(queue)->asked.policies[0], 2);
    CHECK_EQUAL(take_one(queue)->asked.policies[0], 1);
    CHECK_EQUAL(take_one(queue)->asked.policies[0], 2);
}

// ---- Capacity

void submission_ends_at_the_capacity() {
    const Queue queue(DS_SCHEDULER_FIXED_CHUNK, 3);
    const ds_episode_request requests[5] = {request(0), request(1), request(2), request(3), request(4)};
    uint64_t ids[5], accepted;
    CHECK_EQUAL(queue->submit(requests, nullptr, 5, 0, ids, &accepted), DS_STATUS_PENDING);
    CHECK_EQUAL(accepted, 3);
    const int64_t start = monotonic_ns();
    CHECK_EQUAL(queue->submit(requests, nullptr, 1, 20 * kMillisecond, ids + 3, &accepted), DS_STATUS_PENDING);
    CHECK_EQUAL(accepted, 0);
    CHECK(monotonic_ns() - start >= 20 * kMillisecond);
    CHECK(queue->cancel(ids[1]));  // makes room at once
    CHECK_EQUAL(queue->submit(requests + 3, nullptr, 2, 0, ids + 3, &accepted), DS_STATUS_PENDING);
    CHECK_EQUAL(accepted, 1);
    CHECK_EQUAL(queue.take_over().size(), 1);
    CHECK((queue.take_all() == std::vector<uint64_t>{0, 2, 3}));
}

void submission_waits_for_room() {
    const Queue queue(DS_SCHEDULER_PRIORITY, 7);
    constexpr uint64_t kCount = 1000;
    std::thread submitter([&] {
        std::vector<ds_episode_request> requests;
        for (uint64_t i = 0; i < kCount; ++i) requests.push_back(request(i));
        std::vector<uint64_t> ids(kCount);
        uint64_t accepted;
        CHECK_EQUAL(queue->submit(requests.data(), nullptr, kCount, -1, ids.data(), &accepted), DS_STATUS_OK);
        CHECK_EQUAL(accepted, kCount);
    });
    uint64_t next = 0;
    while (next < kCount) {
        queue.wait(10 * kMillisecond);
        CHECK(queue.info().waiting <= 7);
        for (const uint64_t tag : queue.take_all()) CHECK_EQUAL(tag, next++);
    }
    submitter.join();
}

void closing_wakes_those_who_wait() {
    const Queue queue(DS_SCHEDULER_FIXED_CHUNK, 1);
    queue.submit(request(0));
    std::thread submitter([&] {
        const ds_episode_request one = request(1);
        uint64_t id, accepted;
        CHECK_EQUAL(queue->submit(&one, nullptr, 1, -1, &id, &accepted), DS_STATUS_CLOSED);
    });
    usleep(10'000);
    queue->close();
    submitter.join();
    CHECK_EQUAL(queue.take_all().size(), 1);
}

// ---- Ends

void cancelled_requests_are_over() {
    const Queue queue(DS_SCHEDULER_LEAST_REMAINING_STEPS);
    const uint64_t first = queue.submit(request(0)), second = queue.submit(request(1));
    CHECK(!queue->cancel(12345));
    CHECK(!queue->cancel(request_id::next(first)));
    CHECK(queue->cancel(second) && queue->cancel(second));
    const auto ended = queue.take_over();
    CHECK(ended.size() == 1 && ended[0].first == 1 && ended[0].second == DS_EPISODE_CANCELLED);
    CHECK(!queue->cancel(second));

    Request* taken = take_one(queue);
    const uint32_t before = queue->table().cancellations();
    CHECK(queue->cancel(first));
    CHECK(queue->table().cancellations() != before);
    queue->take_back(taken);  // cancelled: it does not wait again
    CHECK_EQUAL(queue.info().waiting, 0);
    CHECK_EQUAL(queue.take_over().size(), 1);
    const uint64_t third = queue.submit(request(2));  // in the same memory
    CHECK_EQUAL(third, request_id::next(first));
    CHECK(!queue->cancel(first));
    CHECK_EQUAL(queue.take_all().size(), 1);
}

// Not in another table, nor in its own once the request has ended.
void ids_are_different_in_tables_and_in_time() {
    const Queue one(DS_SCHEDULER_FIXED_CHUNK), other(DS_SCHEDULER_FIXED_CHUNK);
    const uint64_t first = one.submit(request(0)), second = other.submit(request(0));
    CHECK(first != second && !other->cancel(first) && !one->cancel(second));
    CHECK_EQUAL(request_id::table_of(first), one->table().number);
    CHECK_EQUAL(request_id::table_of(second), other->table().number);
    CHECK_EQUAL(one.take_all().size(), 1);
    CHECK_EQUAL(other.take_all().size(), 1);
    for (const uint32_t index : {0u, (1u << request_id::kIndexBits) - 1}) {
        for (const uint32_t table : {1u, (1u << request_id::kTableBits) - 1}) {
            const uint64_t id = request_id::make(table, index);
            const uint64_t last = id | (((uint64_t{1} << request_id::kUseBits) - 1) << request_id::kIndexBits);
            CHECK(id != request_id::next(id));
            CHECK_EQUAL(request_id::next(last), id);
            for (const uint64_t each : {id, request_id::next(id), last}) {
                CHECK_EQUAL(request_id::table_of(each), table);
                CHECK_EQUAL(request_id::index_of(each), index);
            }
        }
    }
}

void expired_requests_are_never_played() {
    for (const int32_t scheduler : {DS_SCHEDULER_FIXED_CHUNK, DS_SCHEDULER_EARLIEST_DEADLINE}) {
        const Queue queue(scheduler);
        const int64_t now = monotonic_ns();
        for (uint64_t tag = 0; tag < 100; ++tag) {
            ds_episode_request one = request(tag);
            one.deadline_ns = tag % 2 ? now + 1 : now + 1'000'000 * kMillisecond;
            queue.submit(one);
        }
        Request *to_play, *over;
        CHECK_EQUAL(queue->take(1000, monotonic_ns(), &to_play, &over), 50);
        int64_t num_over = 0;
        for (Request* request = over; request; request = request->next, ++num_over) {
            CHECK(request->asked.tag % 2 == 1 && request->reason == DS_EPISODE_EXPIRED);
        }
        CHECK_EQUAL(num_over, 50);
        queue.answer_over(over);
        for (Request* request = to_play; request; request = request->next) CHECK(request->asked.tag % 2 == 0);
    }
}

// A search of all that wait takes as long as their submission, and replicas take requests hundreds of times a second.
void deadlines_cost_nothing_while_they_are_not_reached() {
    const int32_t count = 200'000, looks = 1000;
    std::vector<ds_episode_request> many(count, request(0));
    const int64_t first = monotonic_ns() + 3'600'000 * kMillisecond;
    for (int32_t i = 0; i < count; ++i) many[static_cast<size_t>(i * 7919 % count)].deadline_ns = first + i * kMillisecond;
    for (int32_t scheduler : {DS_SCHEDULER_FIXED_CHUNK, DS_SCHEDULER_PRIORITY}) {
        const Queue queue(scheduler);
        std::vector<uint64_t> ids(count);
        uint64_t accepted;
        const int64_t start = monotonic_ns();
        CHECK_EQUAL(queue->submit(many.data(), nullptr, count, 0, ids.data(), &accepted), DS_STATUS_OK);
        const int64_t submitted = monotonic_ns();
        for (int64_t look = 1; look <= looks; ++look) {
            Request *to_play, *over;
            CHECK_EQUAL(queue->take(0, first + (10 * look - 1) * kMillisecond, &to_play, &over), 0);
            int32_t expired = 0;
            for (Request* one = over; one; one = one->next) ++expired;
            CHECK_EQUAL(expired, 10);
            queue.answer_over(over);
        }
        CHECK(monotonic_ns() - submitted < 2 * (submitted - start));
        CHECK_EQUAL(queue.info().waiting, count - 10 * looks);
    }
}

void a_request_that_is_answered_cannot_be_cancelled() {
    const Queue queue(DS_SCHEDULER_FIXED_CHUNK);
    OutputQueue outputs(kManyOutputs);
    const uint64_t id = queue.submit(request(0));
    const PlayedRequest played = {take_one(queue), 10};
    queue->begin_answers(&played, 1);
    CHECK(!queue->cancel(id));
    Output output = make_output(*played.request, DS_OUTPUT_RESULT, 2);
    CHECK(outputs.reserve(output) == Room::kSome);
    outputs.push_reserved(&output, 1);
    CHECK(!queue->cancel(id));  // the result may have been taken
    queue->finish(&played, 1);
    CHECK(!queue->cancel(id));
    CHECK(queue->cancel(queue.submit(request(1))));  // in the same place
}

void expired_requests_are_over_without_being_first() {
    const Queue queue(DS_SCHEDULER_FIXED_CHUNK);
    queue.submit(request(0));
    ds_episode_request one = request(1);
    one.deadline_ns = monotonic_ns() + 2 * kMillisecond;
    queue.submit(one);
    CHECK_EQUAL(queue.take_over().size(), 0);
    usleep(10'000);  // requests are searched every 5 ms
    const auto ended = queue.take_over();
    CHECK(ended.size() == 1 && ended[0].first == 1 && ended[0].second == DS_EPISODE_EXPIRED);
    CHECK_EQUAL(queue.info().waiting, 1);
}

void taken_back_requests_keep_their_places() {
    const Queue queue(DS_SCHEDULER_FIXED_CHUNK, 4);
    for (uint64_t tag = 0; tag < 4; ++tag) queue.submit(request(tag));
    Request* first = take_one(queue);
    Request* second = take_one(queue);
    queue.submit(request(4));
    queue.submit(request(5));
    queue->take_back(second);  // whatever the capacity
    queue->take_back(first);
    CHECK_EQUAL(queue.info().waiting, 6);
    CHECK((queue.take_all() == std::vector<uint64_t>{0, 1, 2, 3, 4, 5}));
}

void draining_waits_for_all_results() {
    const Queue queue(DS_SCHEDULER_FIXED_CHUNK);
    CHECK_EQUAL(queue->drain(0), DS_STATUS_OK);
    queue.submit(request(0));
    CHECK_EQUAL(queue->drain(0), DS_STATUS_PENDING);
    CHECK_EQUAL(queue->drain(5 * kMillisecond), DS_STATUS_PENDING);
    std::thread player([&] {
        Request* taken = take_one(queue);
        usleep(10'000);
        const PlayedRequest played = {taken, 1};
        queue.answer(played);
    });
    CHECK_EQUAL(queue->drain(-1), DS_STATUS_OK);
    player.join();
}

// ---- Branches

void requests_go_to_branches_in_turn() {
    const Queue source(DS_SCHEDULER_FIXED_CHUNK);
    const Queue branches[3] = {{source, 2}, {source, 4}, {source, 100}};
    for (uint64_t tag = 0; tag < 12; ++tag) source.submit(request(tag));
    CHECK_EQUAL(source.info().waiting, 12);
    CHECK_EQUAL(branches[0].info().waiting, 2);
    CHECK((branches[1].take_all() == std::vector<uint64_t>{1, 4, 6, 8}));
    CHECK((branches[2].take_all() == std::vector<uint64_t>{2, 5, 7, 9, 10, 11}));
    CHECK((branches[0].take_all() == std::vector<uint64_t>{0, 3}));
}

// The scheduler's first one finds room first, and order is kept in a branch.
void branches_are_filled_as_they_are_emptied() {
    const Queue source(DS_SCHEDULER_PRIORITY);
    const Queue branch(source, 2);
    for (uint64_t tag = 0; tag < 9; ++tag) {
        ds_episode_request one = request(tag);
        one.priority = static_cast<int64_t>(tag % 3);
        source.submit(one);
    }
    // The first two went on at once; the others wait in the source, those of the highest priority first
    CHECK((branch.take_all(9) == std::vector<uint64_t>{1, 0, 2, 5, 8, 4, 7, 3, 6}));
    CHECK_EQUAL(source.info().unanswered, 0);
}

void requests_choose_their_branches() {
    const Queue source(DS_SCHEDULER_FIXED_CHUNK, 1 << 20, true);
    const Queue branches[2] = {{source, 3}, {source, 3}};
    for (uint64_t tag = 0; tag < 8; ++tag) {
        ds_episode_request one = request(tag);
        one.replica = tag < 4 ? 1 : tag == 4 ? 0 : -1;
        source.submit(one);
    }
    CHECK_EQUAL(branches[0].info().waiting, 0);  // the others wait behind one that finds no room
    CHECK_EQUAL(branches[1].info().waiting, 3);
    CHECK((branches[1].take_all() == std::vector<uint64_t>{0, 1, 2, 3, 6}));
    branches[0]->close();
    CHECK((branches[1].take_all() == std::vector<uint64_t>{4, 5, 7}));
}

void closed_branches_give_back() {
    const Queue source(DS_SCHEDULER_FIXED_CHUNK);
    const Queue branches[2] = {{source, 4}, {source, 4}};
    std::vector<uint64_t> ids;
    for (uint64_t tag = 0; tag < 10; ++tag) ids.push_back(source.submit(request(tag)));
    Request* playing = take_one(branches[0]);
    CHECK_EQUAL(branches[0].info().waiting, 4);
    branches[0]->close();
    CHECK_EQUAL(branches[0].info().waiting, 0);
    branches[0]->take_back(playing);  // it waits in the source too
    CHECK_EQUAL(source.info().waiting, 10);
    CHECK(source->cancel(ids[9]) && source->cancel(ids[1]));  // in the source, and in the branch
    CHECK_EQUAL(branches[1].take_over().size(), 2);
    branches[1]->close();
    CHECK((source.take_all() == std::vector<uint64_t>{0, 2, 3, 4, 5, 6, 7, 8}));
}

void submission_waits_for_room_in_branches() {
    const Queue source(DS_SCHEDULER_FIXED_CHUNK, 1);
    const Queue branch(source, 1);
    std::thread submitter([&] {
        for (uint64_t tag = 0; tag < 100; ++tag) {
            const ds_episode_request one = request(tag);
            uint64_t id, accepted;
            CHECK_EQUAL(source->submit(&one, nullptr, 1, -1, &id, &accepted), DS_STATUS_OK);
        }
    });
    uint64_t next = 0;
    while (next < 100) {
        branch.wait(kMillisecond);
        CHECK(source.info().waiting <= 2);
        for (const uint64_t tag : branch.take_all()) CHECK_EQUAL(tag, next++);
    }
    submitter.join();
}

// ---- Outputs

struct Received {
    std::vector<uint64_t> ids;
    size_t most = SIZE_MAX;
};

ds_status receive(void* context, const Output& output) {
    Received& received = *static_cast<Received*>(context);
    if (received.ids.size() == received.most) return DS_STATUS_OUT_OF_MEMORY;
    received.ids.push_back(output.told.id);
    return DS_STATUS_OK;
}

void outputs_come_in_order() {
    OutputQueue queue(kManyOutputs);
    Received received;
    CHECK_EQUAL(queue.take(0, 10, 0, receive, &received), DS_STATUS_PENDING);
    uint64_t next = 0;
    Draws draw(3);
    while (next < 10'000) {
        Output outputs[100];
        const int64_t count = draw.integer(0, 100);
        for (int64_t i = 0; i < count; ++i) {
            outputs[i] = {};
            outputs[i].told.id = ++next;
            CHECK(queue.reserve(outputs[i]) == Room::kSome);
        }
        queue.push_reserved(outputs, count);
        if (queue.size(0) > 0) CHECK_EQUAL(queue.take(0, draw.integer(1, 90), 0, receive, &received), DS_STATUS_OK);
    }
    received.most = received.ids.size() + 1;
    CHECK_EQUAL(queue.take(0, 1000, 0, receive, &received), DS_STATUS_OUT_OF_MEMORY);  // one that fails stays
    received.most = SIZE_MAX;
    queue.close();
    while (queue.size(0) > 0) CHECK_EQUAL(queue.take(0, 1000, -1, receive, &received), DS_STATUS_OK);
    CHECK_EQUAL(queue.take(0, 1, -1, receive, &received), DS_STATUS_CLOSED);
    CHECK_EQUAL(received.ids.size(), next);
    for (uint64_t i = 0; i < next; ++i) CHECK_EQUAL(received.ids[i], i + 1);
}

Output output_of(int32_t reader, uint64_t data_bytes) {
    Output output = {};
    output.reader = reader;
    output.told.id = 1;
    output.told.data_bytes = data_bytes;
    return output;
}

bool push(OutputQueue& queue, int32_t reader, int64_t bytes) {
    Output output = output_of(reader, static_cast<uint64_t>(bytes));
    if (queue.reserve(output) != Room::kSome) return false;
    queue.push_reserved(&output, 1);
    return true;
}

void take_some(OutputQueue& queue, int32_t reader, int64_t most) {
    Received received;
    CHECK_EQUAL(queue.take(reader, most, 0, receive, &received), DS_STATUS_OK);
    CHECK_EQUAL(received.ids.size(), static_cast<size_t>(most));
}

void each_reader_has_limits_of_its_own() {
    const struct {
        OutputLimits limits;
        int64_t bytes, room;  // outputs of so many bytes, for which there is room
    } cases[] = {
        {{3, 1000}, 0, 3}, {{3, 1000}, 100, 3}, {{30, 1000}, 100, 10}, {{30, 1000}, 300, 3}, {{30, 1000}, 600, 1},
        {{30, 1000}, 1001, 1},  // one that is too large waits alone
    };
    for (const auto& one : cases) {
        OutputQueue queue(one.limits);
        for (int32_t reader = 0; reader < DS_NUM_READERS; ++reader) {
            for (int64_t i = 0; i < one.room; ++i) CHECK(push(queue, reader, one.bytes));
            CHECK(!queue.is_full(reader));  // nothing waits for room
            CHECK(!push(queue, reader, one.bytes));
            CHECK(queue.is_full(reader));
        }
        take_some(queue, 1, 1);
        CHECK(!queue.is_full(1) && queue.is_full(0));
        CHECK(push(queue, 1, one.bytes) && !push(queue, 1, one.bytes) && !push(queue, 0, one.bytes));
        queue.lift_limits();
        CHECK(!queue.is_full(0));
        for (int64_t i = 0; i < 2 * one.room; ++i) CHECK(push(queue, 0, one.bytes));
        CHECK_EQUAL(queue.size(0), 3 * one.room);
    }
}

// Also if their outputs are not pushed yet.
void reserved_room_counts() {
    OutputQueue queue({2, 1000});
    Output outputs[2] = {output_of(0, 400), output_of(0, 400)};
    for (Output& output : outputs) CHECK(queue.reserve(output) == Room::kSome);
    CHECK(!push(queue, 0, 0));
    queue.push_reserved(outputs, 2);
    CHECK(!push(queue, 0, 0));
    take_some(queue, 0, 2);
    CHECK(push(queue, 0, 1000));
}

// Two writers and a reader, who wait for each other: each output is read once, and the limit holds.
void writers_wait_for_room() {
    constexpr int64_t kEach = 5000;
    OutputQueue queue({7, 100});
    std::vector<std::thread> writers;
    for (int w = 0; w < 2; ++w) {
        writers.emplace_back([&] {
            for (int64_t i = 0; i < kEach;) {
                const uint32_t before = queue.room().now();
                if (push(queue, 0, 20)) ++i;
                else queue.room().wait(before, -1);
            }
        });
    }
    Received received;
    while (received.ids.size() < 2 * kEach) {
        CHECK(queue.size(0) <= 5);
        CHECK_EQUAL(queue.take(0, 3, -1, receive, &received), DS_STATUS_OK);
    }
    for (std::thread& writer : writers) writer.join();
    CHECK_EQUAL(queue.size(0), 0);
}

// Requests that are over find no room for their results: they stay where they are.
void requests_that_are_over_wait_for_room() {
    const Queue queue(DS_SCHEDULER_FIXED_CHUNK);
    OutputQueue outputs({3, 1});
    for (uint64_t tag = 0; tag < 8; ++tag) queue->cancel(queue.submit(request(tag)));
    std::vector<int> answers(8);
    struct Counted {
        static ds_status count(void* context, const Output& output) {
            ++(*static_cast<std::vector<int>*>(context))[output.told.tag];
            return DS_STATUS_OK;
        }
    };
    for (const ds_status expected : {DS_STATUS_PENDING, DS_STATUS_PENDING, DS_STATUS_OK}) {
        Request *to_play, *over;
        queue->take(1, monotonic_ns(), &to_play, &over);
        CHECK_EQUAL(answer_over(*queue, outputs, over), expected);
        CHECK_EQUAL(outputs.take(0, 10, 0, Counted::count, &answers), DS_STATUS_OK);
    }
    for (const int count : answers) CHECK_EQUAL(count, 1);
    CHECK_EQUAL(queue->drain(0), DS_STATUS_OK);
}

// ---- Threads

// Producers, players who give back and finish, and one who cancels: every request is answered once.
void every_request_is_answered_once() {
    constexpr int kProducers = 3, kPlayers = 3;
    constexpr uint64_t kEach = 4000;
    const Queue source(DS_SCHEDULER_PRIORITY, 64);
    const Queue targets[2] = {{source, 16}, {source, 16}};
    OutputQueue outputs(kManyOutputs);
    std::atomic<uint64_t> latest{0};
    std::atomic<bool> stop{false};

    std::vector<std::thread> producers, others;
    for (int p = 0; p < kProducers; ++p) {
        producers.emplace_back([&, p] {
            Draws draw(100 + p);
            for (uint64_t i = 0; i < kEach;) {
                ds_episode_request some[5];
                uint64_t ids[5], accepted;
                const uint64_t count = std::min<uint64_t>(static_cast<uint64_t>(draw.integer(1, 5)), kEach - i);
                for (uint64_t k = 0; k < count; ++k) {
                    some[k] = request(static_cast<uint64_t>(p) * kEach + i + k);
                    some[k].policies[0] = draw.integer(0, 8);
                    some[k].priority = draw.integer(0, 3);
                    if (draw.integer(0, 10) == 0) some[k].deadline_ns = monotonic_ns() + draw.integer(1, 1000'000);
                }
                const ds_status status = source->submit(some, nullptr, count, kMillisecond, ids, &accepted);
                CHECK(status == DS_STATUS_OK || status == DS_STATUS_PENDING);
                if (accepted > 0) latest = ids[accepted - 1];
                i += accepted;
            }
        });
    }
    others.emplace_back([&] {
        while (!stop) {
            source->cancel(latest);
            usleep(50);
        }
    });
    for (int p = 0; p < kPlayers; ++p) {
        others.emplace_back([&, p] {
            Draws draw(200 + p);
            const Queue& queue = targets[p % 2];
            while (!stop) {
                Request *to_play, *over;
                if (queue->take(draw.integer(1, 6), monotonic_ns(), &to_play, &over) == 0 && !over) {
                    queue.wait(kMillisecond);
                }
                CHECK_EQUAL(answer_over(*queue, outputs, over), DS_STATUS_OK);
                while (to_play) {
                    Request* next = to_play->next;
                    if (draw.integer(0, 4) == 0) {
                        queue->take_back(to_play);
                    } else {
                        Output output = make_output(*to_play, DS_OUTPUT_RESULT, 2);
                        CHECK(outputs.reserve(output) == Room::kSome);
                        outputs.push_reserved(&output, 1);
                        const PlayedRequest played = {to_play, 3};
                        queue.answer(played);
                    }
                    to_play = next;
                }
            }
        });
    }
    for (std::thread& producer : producers) producer.join();
    CHECK_EQUAL(source->drain(20'000 * kMillisecond), DS_STATUS_OK);
    stop = true;
    for (std::thread& other : others) other.join();

    std::vector<int> answers(kProducers * kEach);
    struct Counted {
        static ds_status count(void* context, const Output& output) {
            ++(*static_cast<std::vector<int>*>(context))[output.told.tag];
            return DS_STATUS_OK;
        }
    };
    while (outputs.size(0) > 0) CHECK_EQUAL(outputs.take(0, 1000, 0, Counted::count, &answers), DS_STATUS_OK);
    for (const int count : answers) CHECK_EQUAL(count, 1);
}

// Whatever waits when the queues close is answered by answer_all().
void nothing_is_lost_when_queues_close() {
    Draws draw(5);
    for (int round = 0; round < 50; ++round) {
        const Queue source(DS_SCHEDULER_FIXED_CHUNK), target(source, 10);
        std::atomic<bool> stop{false};
        OutputQueue outputs(kManyOutputs);
        std::atomic<uint64_t> accepted_in_all{0};
        std::thread producer([&] {
            for (;;) {
                const ds_episode_request some[3] = {request(1), request(2), request(3)};
                uint64_t ids[3], accepted;
                const ds_status status = source->submit(some, nullptr, 3, -1, ids, &accepted);
                accepted_in_all += accepted;
                if (status == DS_STATUS_CLOSED) return;
            }
        });
        std::thread player([&] {
            for (;;) {
                Request *to_play, *over;
                target->take(2, monotonic_ns(), &to_play, &over);
                CHECK(!over);
                while (to_play) {
                    Request* next = to_play->next;
                    target->take_back(to_play);
                    to_play = next;
                }
                if (stop) return;
            }
        });
        usleep(static_cast<useconds_t>(draw.integer(0, 2000)));
        target->close();
        source->close();
        stop = true;
        producer.join();
        player.join();
        CHECK_EQUAL(answer_all(*source, outputs, DS_EPISODE_FAILED, 7), DS_STATUS_OK);
        CHECK_EQUAL(outputs.size(0), accepted_in_all.load());
        CHECK_EQUAL(source->drain(0), DS_STATUS_OK);
    }
}

}  // namespace

int main() {
    RUN(every_scheduler_has_its_order);
    RUN(orders_hold_while_requests_come_and_go);
    RUN(shares_are_fair_by_steps);
    RUN(a_request_is_taken_before_one_that_is_later);
    RUN(requests_that_wait_get_the_policy_in_place_of_theirs);
    RUN(shares_count_what_was_played);
    RUN(submission_ends_at_the_capacity);
    RUN(submission_waits_for_room);
    RUN(closing_wakes_those_who_wait);
    RUN(cancelled_requests_are_over);
    RUN(ids_are_different_in_tables_and_in_time);
    RUN(expired_requests_are_never_played);
    RUN(expired_requests_are_over_without_being_first);
    RUN(deadlines_cost_nothing_while_they_are_not_reached);
    RUN(a_request_that_is_answered_cannot_be_cancelled);
    RUN(taken_back_requests_keep_their_places);
    RUN(draining_waits_for_all_results);
    RUN(requests_go_to_branches_in_turn);
    RUN(branches_are_filled_as_they_are_emptied);
    RUN(requests_choose_their_branches);
    RUN(closed_branches_give_back);
    RUN(submission_waits_for_room_in_branches);
    RUN(outputs_come_in_order);
    RUN(each_reader_has_limits_of_its_own);
    RUN(reserved_room_counts);
    RUN(writers_wait_for_room);
    RUN(requests_that_are_over_wait_for_room);
    RUN(every_request_is_answered_once);
    RUN(nothing_is_lost_when_queues_close);
    CHECK_EQUAL(live_counts.objects[DS_LIVE_ROLLOUT].load(), 0);
    return 0;
}
