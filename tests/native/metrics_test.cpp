// Metrics: recent values and spans of time by their definition, many threads, bounded memory and counts, traces, and
// stores that are shared or full. All else is tested from Python.
#include <malloc.h>
#include <math.h>
#include <string.h>

#include <algorithm>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "api/call.h"
#include "check.h"
#include "draws.h"
#include "engines.h"
#include "metrics/sketch.h"
#include "metrics/store.h"
#include "metrics/time_series.h"
#include "metrics/trace.h"

using namespace doorstep;

namespace {

constexpr int64_t kSecond = 1'000'000'000;

Ref<MetricsStore> make_store(int64_t trace_capacity = 0) {
    return Ref<MetricsStore>::adopt(new MetricsStore(trace_capacity));
}

template <class Kind>
Kind* open(MetricsStore& store, ds_metric metric, const void* writer, int32_t detail = 0) {
    Kind* series;
    CHECK_EQUAL(store.open({metric, 0, -1, detail, 0}, writer, &series), DS_STATUS_OK);
    return series;
}

ds_series_info info_of(const Series& series) {
    ds_series_info info = {};
    series.read(&info);
    return info;
}

template <class Row>
std::vector<Row> rows_of(const Series& series) {
    std::vector<Row> rows(info_of(series).most_rows);
    rows.resize(static_cast<size_t>(series.read_rows(rows.data())));
    return rows;
}

int64_t total_of(MetricsStore& store, ds_metric metric) {
    int64_t sum = 0;
    for (int64_t i = 0; i < store.num_series(); ++i) {
        if (store.series(i).key.metric == metric) sum += info_of(store.series(i)).count;
    }
    return sum;
}

// ---- Sketches and time series by their definitions

double uniform(Draws& draw) { return static_cast<double>(draw.below(1u << 30)) / (1 << 30); }

// As doorstep.h says it.
double edge_of(int32_t bin) { return exp2(bin / 38 - 40) * (3 - sqrt(4 - 3.0 * (bin % 38) / 38)); }
double value_of(int32_t bin) {
    if (bin == 0) return 0;
    return 2 / (1 / edge_of(bin - 1) + 1 / edge_of(bin));
}

struct TimedValue {
    int64_t time_ns;
    double value;
};

// Values of ten minutes, with pauses, some of which come late.
void sketches_count_the_values_of_each_recent_span() {
    Draws draw(5);
    std::vector<TimedValue> values;
    const Ref<MetricsStore> store = make_store();
    Sketch& sketch = *open<Sketch>(*store, DS_METRIC_STEP_SECONDS, &draw);
    for (int64_t now = 0; now < 600 * kSecond; now += draw.integer(1, 100) == 1 ? 70 * kSecond : kSecond / 10) {
        const int64_t time = std::max<int64_t>(now - draw.integer(0, 2) * kSecond, 0);
        values.push_back({time, draw.below(9) ? exp2(80 * uniform(draw) - 40) : 0});
        sketch.add(values.back().value, time);
        if (draw.below(20)) continue;
        const int64_t oldest = (now >> 33) - 7;
        std::map<int32_t, std::vector<double>> expected, found;  // by the span, in ascending order
        for (const auto& [at, value] : values) {
            expected[-1].push_back(value);
            if (at >> 33 >= oldest) expected[static_cast<int32_t>(at >> 33)].push_back(value);
        }
        for (const ds_sketch_count& row : rows_of<ds_sketch_count>(sketch)) {
            if (row.span >= 0 && row.span < oldest) continue;
            found[row.span].insert(found[row.span].end(), static_cast<size_t>(row.number), value_of(row.bin));
        }
        CHECK_EQUAL(found.size(), expected.size());
        for (auto& [span, exact] : expected) {
            std::sort(exact.begin(), exact.end());
            CHECK_EQUAL(found[span].size(), exact.size());
            for (size_t i = 0; i < exact.size(); ++i) CHECK_NEAR(found[span][i], exact[i], 0.01 * exact[i]);
        }
    }
    CHECK_EQUAL(info_of(sketch).count, values.size());
}

void time_series_have_the_finest_spans_of_which_there_are_few_enough() {
    Draws draw(7);
    for (int round = 0; round < 200; ++round) {
        const Ref<MetricsStore> store = make_store();
        TimeSeries& series = *open<TimeSeries>(*store, DS_METRIC_ACTIVE_WORLDS, &draw);
        const int64_t start = int64_t{1} << draw.integer(0, 50), longest = int64_t{1} << draw.integer(20, 40);
        int64_t time = start;
        std::vector<TimedValue> values;
        for (int64_t i = draw.integer(1, 200); i > 0; --i, time += static_cast<int64_t>(uniform(draw) * longest)) {
            values.push_back({time, static_cast<double>(draw.integer(-100, 100))});
            series.add(values.back().value, time);
        }
        int log2 = 26;
        while ((values.back().time_ns >> log2) - (start >> log2) >= 512) ++log2;
        std::map<int64_t, std::vector<double>> expected;
        for (const auto& [at, value] : values) expected[at >> log2].push_back(value);
        const auto points = rows_of<ds_series_point>(series);
        CHECK_EQUAL(points.size(), expected.size());
        auto point = points.begin();
        for (auto& [span, of_span] : expected) {
            std::sort(of_span.begin(), of_span.end());
            CHECK_EQUAL(point->start_ns, span << log2);
            CHECK_EQUAL(point->length_ns, int64_t{1} << log2);
            CHECK_EQUAL(point->count, of_span.size());
            CHECK(point->minimum == of_span.front() && point->maximum == of_span.back());
            double sum = 0;
            for (const double value : of_span) sum += value;
            CHECK((point++)->sum == sum);
        }
        CHECK(info_of(series).last == values.back().value);
    }
}

// ---- Many threads

void writers_lose_nothing_while_others_read() {
    constexpr int kThreads = 6, kRounds = 20, kValues = 2000, kAll = kThreads * kRounds * kValues;
    static constexpr ds_metric kMetrics[] = {DS_METRIC_STEPS, DS_METRIC_STEP_SECONDS, DS_METRIC_ACTIVE_WORLDS};
    const Ref<MetricsStore> store = make_store();
    std::atomic<bool> done{false};
    std::thread reader([&] {
        int64_t before = 0;
        while (!done) {
            const int64_t now = total_of(*store, DS_METRIC_STEPS);
            CHECK(now >= before);
            before = now;
            int64_t counted = 0;
            for (int64_t i = 0; i < store->num_series(); ++i) {
                if (store->series(i).key.metric == DS_METRIC_STEPS) continue;
                if (store->series(i).key.metric == DS_METRIC_STEP_SECONDS) rows_of<ds_sketch_count>(store->series(i));
                else for (const auto& point : rows_of<ds_series_point>(store->series(i))) counted += point.count;
            }
            CHECK(counted <= kAll);
        }
    });
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
        threads.emplace_back([&store, thread] {
            for (int64_t round = 0; round < kRounds; ++round) {
                Counter* count = open<Counter>(*store, kMetrics[0], &thread);
                Sketch* sketch = open<Sketch>(*store, kMetrics[1], &thread);
                TimeSeries* series = open<TimeSeries>(*store, kMetrics[2], &thread);
                for (int64_t i = 0; i < kValues; ++i) {
                    count->add(1);
                    sketch->add(thread + 1, (i + round) << 30);  // of other spans
                    series->add(1, (i + round) << 30);           // of another layout now and then
                }
                store->close(&thread);
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    done = true;
    reader.join();
    for (const ds_metric metric : kMetrics) CHECK_EQUAL(total_of(*store, metric), kAll);
    CHECK(store->num_series() <= kThreads * 3);
}

void counts_stay_at_the_largest_number() {
    const Ref<MetricsStore> store = make_store();
    Counter& counter = *open<Counter>(*store, DS_METRIC_STEPS, &store);
    for (const int64_t more : {INT64_MAX - 2, int64_t{1}, INT64_MAX}) counter.add(more);
    CHECK_EQUAL(info_of(counter).count, INT64_MAX);
    counter.add(INT64_MAX);
    CHECK_EQUAL(info_of(counter).count, INT64_MAX);
}

// ---- Memory

// mallinfo2() needs a newer C library than the wheel does.
int allocated_bytes() {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    return mallinfo().uordblks;
#pragma GCC diagnostic pop
}

void memory_does_not_grow_with_values_and_writers() {
    static_assert(sizeof(Sketch) < 1000 && sizeof(TimeSeries) < 17000);
    const Ref<MetricsStore> store = make_store(100);
    const auto record = [&](int64_t base) {
        Sketch* sketch = open<Sketch>(*store, DS_METRIC_STEP_SECONDS, &base);
        TimeSeries* series = open<TimeSeries>(*store, DS_METRIC_ACTIVE_WORLDS, &base);
        TraceTrack* track = open<TraceTrack>(*store, DS_METRIC_TRACE, &base);
        for (int64_t i = 0; i < 1000; ++i) {
            sketch->add(static_cast<double>(base * i), (base + i) * kSecond);
            series->add(1, (base + i) * kSecond);
            track->record_span(DS_TRACE_STEP, i, i + 1, 1);
        }
        store->close(&base);
    };
    record(1);
    const int before = allocated_bytes();
    for (int64_t round = 0; round < 300; ++round) record(round * 1000);
    CHECK_EQUAL(allocated_bytes(), before);
}

// ---- Traces

void readers_see_whole_events_only() {
    const Ref<MetricsStore> store = make_store(64);
    TraceTrack& track = *open<TraceTrack>(*store, DS_METRIC_TRACE, &store);
    std::atomic<bool> done{false};
    std::thread writer([&] {
        for (int64_t i = 0; i < 300000; ++i) track.record_span(DS_TRACE_STEP, i, 2 * i, i, static_cast<int32_t>(i));
        done = true;
    });
    while (!done) {
        const auto events = rows_of<ds_trace_event>(track);
        for (size_t i = 0; i < events.size(); ++i) {
            const int64_t at = events[0].start_ns + static_cast<int64_t>(i);
            const ds_trace_event expected = {at, at, 0, at, DS_TRACE_STEP, static_cast<int32_t>(at), 0, -1};
            CHECK(memcmp(&events[i], &expected, sizeof expected) == 0);
        }
    }
    writer.join();
    CHECK_EQUAL(rows_of<ds_trace_event>(track).size(), 64);
}

// ---- Engines, through the C API

struct StoreHandle {
    ds_metrics handle;

    StoreHandle() { CHECK_EQUAL(ds_metrics_create(1000, &handle), DS_STATUS_OK); }
    StoreHandle(const StoreHandle&) = delete;
    StoreHandle& operator=(const StoreHandle&) = delete;
    ~StoreHandle() { CHECK_EQUAL(ds_metrics_release(handle), DS_STATUS_OK); }
    Ref<MetricsStore> get() const { return metrics_stores.find(handle, "metrics"); }
};

void engines_one_after_another_go_on_with_the_series() {
    const StoreHandle metrics;
    const EngineOptions options = {.num_worlds = 4, .metrics = metrics.handle};
    uint64_t count = 0, before = 0;
    for (int64_t round = 1; round <= 3; ++round) {
        PlayingEngine(options).play(std::vector<ds_episode_request>(10));
        CHECK_EQUAL(ds_metrics_num_series(metrics.handle, &count), DS_STATUS_OK);
        CHECK(round == 1 || count == before);
        before = count;
        CHECK_EQUAL(total_of(*metrics.get(), DS_METRIC_REQUESTS_ANSWERED), 10 * round);
    }
    const PlayingEngine first(options), second(options);
    CHECK(metrics.get()->num_series() > static_cast<int64_t>(before));  // of both at once
    ds_series_info info = sized<ds_series_info>();
    char rows[1];
    CHECK_EQUAL(ds_metrics_get_series(metrics.handle, 0, &info), DS_STATUS_OK);
    CHECK(info.metric == DS_METRIC_LATENCY_SECONDS && info.kind == DS_SERIES_SKETCH);
    CHECK(info.replica == -1 && info.detail == DS_EPISODE_CANCELLED);
    CHECK_EQUAL(ds_metrics_get_series(metrics.handle, 10000, &info), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(ds_metrics_get_rows(metrics.handle, 0, info.most_rows - 1, rows, &count), DS_STATUS_INVALID_ARGUMENT);
}

// A policy whose series finds no room is played all the same, and counted once.
void a_full_store_drops_series_and_ends_no_replica() {
    const StoreHandle metrics;
    const PlayingEngine engine({.num_worlds = 16, .num_threads = 2, .metrics = metrics.handle});
    const Ref<MetricsStore> store = metrics.get();
    Counter* counter;
    for (int32_t i = 0; !store->open({DS_METRIC_STEPS, 0, -1, i, 0}, &counter, &counter); ++i) {}
    for (const int32_t series : {3, 3, 4}) {
        const int64_t answered = total_of(*store, DS_METRIC_REQUESTS_ANSWERED);
        CHECK_EQUAL(ds_engine_set_policy(engine.handle, 0, DS_POLICY_RANDOM, 0, 0, 0, series), DS_STATUS_OK);
        engine.play(std::vector<ds_episode_request>(40));
        CHECK_EQUAL(total_of(*store, DS_METRIC_REQUESTS_ANSWERED), answered + 40);
        CHECK_EQUAL(total_of(*store, DS_METRIC_DROPPED_SERIES), series == 3 ? 1 : 2);
    }
    for (const int32_t series : {-1, int32_t{DS_MAX_POLICY_SERIES}}) {
        const ds_status status = ds_engine_set_policy(engine.handle, 0, DS_POLICY_RANDOM, 0, 0, 0, series);
        CHECK_EQUAL(status, DS_STATUS_INVALID_ARGUMENT);
    }
}

}  // namespace

int main() {
    RUN(sketches_count_the_values_of_each_recent_span);
    RUN(time_series_have_the_finest_spans_of_which_there_are_few_enough);
    RUN(writers_lose_nothing_while_others_read);
    RUN(counts_stay_at_the_largest_number);
    RUN(memory_does_not_grow_with_values_and_writers);
    RUN(readers_see_whole_events_only);
    RUN(engines_one_after_another_go_on_with_the_series);
    RUN(a_full_store_drops_series_and_ends_no_replica);
    return 0;
}
