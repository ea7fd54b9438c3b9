// Metrics: quantiles of the last seconds by their definition, many threads, bounded memory and counts, labels, and
// stores that are full. All else is tested from Python.
#include <malloc.h>
#include <math.h>
#include <string.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "draws.h"
#include "engines.h"
#include "metrics/series.h"
#include "metrics/sketch.h"
#include "metrics/store.h"
#include "metrics/time_series.h"

using namespace doorstep;

namespace {

Ref<MetricsStore> make_store(int64_t trace_capacity = 0) {
    return Ref<MetricsStore>::adopt(new MetricsStore(trace_capacity));
}

Ref<Series> open(MetricsStore& store, ds_series_kind kind, const char* name, const char* labels = "") {
    Ref<Series> series;
    CHECK_EQUAL(store.open(kind, name, labels, "", &series), DS_STATUS_OK);
    return series;
}

int64_t count_of(Series& series) {
    ds_series_totals totals = {};
    series.sum()->read(&totals);
    return totals.count;
}

// ---- Sketches

double uniform(Draws& draw) { return static_cast<double>(draw.below(1u << 30)) / (1 << 30); }

struct TimedValue {
    int64_t time_ns;
    double value;
};

// By definition: of the values in the spans that end after that time.
double exact_recent_quantile(const std::vector<TimedValue>& values, double fraction, int64_t since_ns) {
    std::vector<double> recent;
    for (const auto& [time_ns, value] : values) {
        if (((time_ns >> Sketch::kSpanLog2) + 1) << Sketch::kSpanLog2 > since_ns) recent.push_back(value);
    }
    if (recent.empty()) return 0;
    std::sort(recent.begin(), recent.end());
    return recent[static_cast<size_t>(fraction * static_cast<double>(recent.size() - 1))];
}

// Values of ten minutes, with pauses, some of which come late, of a sketch and of the sum of its parts.
void recent_quantiles_are_of_the_last_values() {
    constexpr int64_t kSecond = 1'000'000'000;
    Draws draw(5);
    std::vector<TimedValue> values;
    Sketch all, parts[3];
    for (int64_t now = 0; now < 600 * kSecond; now += draw.integer(1, 100) == 1 ? 70 * kSecond : kSecond / 10) {
        const TimedValue value = {std::max<int64_t>(now - draw.integer(0, 2) * kSecond, 0), exp2(10 * uniform(draw))};
        values.push_back(value);
        all.add(value.value, value.time_ns);
        parts[draw.below(3)].add(value.value, value.time_ns);
        if (draw.below(20)) continue;
        Sketch merged;
        for (const Sketch& part : parts) merged.merge(part);
        for (const int64_t seconds : {1, 10, 60}) {
            const int64_t since = std::max<int64_t>(now - seconds * kSecond, 0);
            for (const double fraction : {0.0, 0.5, 0.99}) {
                const double exact = exact_recent_quantile(values, fraction, since);
                CHECK_NEAR(all.recent_quantile(fraction, since), exact, Sketch::kRelativeError * exact);
                CHECK(merged.recent_quantile(fraction, since) == all.recent_quantile(fraction, since));
            }
        }
    }
    CHECK_EQUAL(all.count(), values.size());
    CHECK(all.recent_quantile(0.5, 1000 * kSecond) == 0);
}

// ---- Time series

std::vector<ds_series_point> points_of(const TimeSeries& series) {
    std::vector<ds_series_point> points(TimeSeries::kSpans + 1);
    points.resize(static_cast<size_t>(series.read_points(points.data(), TimeSeries::kSpans + 1)));
    return points;
}

// ---- Many threads

void writers_lose_nothing_while_others_read() {
    constexpr int kThreads = 6, kRounds = 20, kValues = 2000;
    const Ref<MetricsStore> store = make_store();
    const Ref<Series> counter = open(*store, DS_SERIES_COUNTER, "counter");
    const Ref<Series> sketch = open(*store, DS_SERIES_SKETCH, "sketch");
    const Ref<Series> series = open(*store, DS_SERIES_TIME_SERIES, "series");
    std::atomic<bool> done{false};
    std::thread reader([&] {
        int64_t before = 0;
        while (!done) {
            const int64_t now = count_of(*counter);
            CHECK(now >= before);
            before = now;
            CHECK(count_of(*sketch) <= kThreads * kRounds * kValues);
            int64_t counted = 0;
            for (const ds_series_point& point : points_of(static_cast<const TimeSeries&>(*series->sum())))
                counted += point.count;
            CHECK(counted <= kThreads * kRounds * kValues);
        }
    });
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
        threads.emplace_back([&, thread] {
            for (int round = 0; round < kRounds; ++round) {
                Writer<Counter> count;
                Writer<Sketch> quantiles;
                Writer<TimeSeries> values;
                CHECK_EQUAL(count.open(counter), DS_STATUS_OK);
                CHECK_EQUAL(quantiles.open(sketch), DS_STATUS_OK);
                CHECK_EQUAL(values.open(series), DS_STATUS_OK);
                for (int64_t i = 0; i < kValues; ++i) {
                    count->add(1);
                    quantiles->add(thread + 1, (i + thread) << 30);  // of other spans
                    values->add(1, (i + thread) << 30);  // of another layout now and then
                }
                counter->record(1, 0);
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    done = true;
    reader.join();
    CHECK_EQUAL(count_of(*counter), kThreads * kRounds * (kValues + 1));
    CHECK_EQUAL(count_of(*sketch), kThreads * kRounds * kValues);
    CHECK_EQUAL(count_of(*series), kThreads * kRounds * kValues);
    const std::unique_ptr<Samples> sum = sketch->sum();
    CHECK_NEAR(static_cast<const Sketch&>(*sum).quantile(0.5), 3, 0.03);
}

void counts_stay_at_the_largest_number() {
    const Ref<MetricsStore> store = make_store();
    const Ref<Series> series = open(*store, DS_SERIES_COUNTER, "n");
    Writer<Counter> writer;
    CHECK_EQUAL(writer.open(series), DS_STATUS_OK);
    writer->add(INT64_MAX - 2);
    series->record(1, 0);
    CHECK_EQUAL(count_of(*series), INT64_MAX - 1);
    series->record(9007199254740992.0, 0);
    CHECK_EQUAL(count_of(*series), INT64_MAX);
    writer->add(INT64_MAX);
    CHECK_EQUAL(writer->value(), INT64_MAX);
    Sketch all, same;
    all.add(3, 0);
    for (int doubled = 0; doubled < 70; ++doubled) {
        same.merge(all);
        all.merge(same);
    }
    CHECK_EQUAL(all.count(), INT64_MAX);
    CHECK_NEAR(all.quantile(0.5), 3, 0.03);
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
    static_assert(sizeof(Sketch) < 25000 && sizeof(TimeSeries) < 17000);
    const Ref<MetricsStore> store = make_store(100);
    const Ref<Series> sketch = open(*store, DS_SERIES_SKETCH, "sketch");
    const Ref<Series> series = open(*store, DS_SERIES_TIME_SERIES, "series");
    Ref<TraceTrack> track;
    CHECK_EQUAL(store->open_track(0, &track), DS_STATUS_OK);
    const auto record = [&](int64_t base) {
        Writer<Sketch> quantiles;
        Writer<TimeSeries> values;
        CHECK_EQUAL(quantiles.open(sketch), DS_STATUS_OK);
        CHECK_EQUAL(values.open(series), DS_STATUS_OK);
        for (int64_t i = 0; i < 1000; ++i) {
            quantiles->add(static_cast<double>(base * i), (base + i) * 1'000'000'000);
            values->add(1, (base + i) * 1'000'000'000);
            track->record_span(DS_TRACE_STEP, i, i + 1, 1);
        }
    };
    record(1);
    const int before = allocated_bytes();
    for (int64_t round = 0; round < 300; ++round) record(round * 1000);
    CHECK_EQUAL(allocated_bytes(), before);
}

// ---- Names and labels

void labels_are_checked() {
    const std::string longest = "a=\"" + std::string(251, 'x') + "\"", beyond = longest + " ";
    for (const char* good : {"", "a=\"x\",b=\"y\"", "a=\"q\\\"\\\\\\n\"", "A=\"x\",a=\"x\"", longest.c_str()})
        CHECK_EQUAL(check_labels(good), DS_STATUS_OK);
    for (const char* bad : {"a", "a=", "a=x", "a=\"x", "a=\"x\",", ",", "b=\"x\",a=\"y\"", "a=\"x\",a=\"y\"", "1=\"x\"",
                            "a=\"x\"b=\"y\"", "a=\"\\x\"", "a=\"\n\"", "a=\"\\", "=\"x\"", beyond.c_str()})
        CHECK_EQUAL(check_labels(bad), DS_STATUS_INVALID_ARGUMENT);
    for (const char* bad : {"", "1a", "a b", "a-b"}) CHECK_EQUAL(check_series_name(bad), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(check_series_name(std::string(63, 'a').c_str()), DS_STATUS_OK);
    CHECK_EQUAL(check_series_name(std::string(64, 'a').c_str()), DS_STATUS_INVALID_ARGUMENT);
}

// ---- Traces

void readers_see_whole_events_only() {
    const Ref<TraceTrack> track = TraceTrack::create(64, 0, 7);
    std::atomic<bool> done{false};
    std::thread writer([&] {
        for (int64_t i = 0; i < 300000; ++i) track->record_span(DS_TRACE_STEP, i, 2 * i, i, static_cast<int32_t>(i));
        done = true;
    });
    ds_trace_event events[64];
    while (!done) {
        const int64_t count = track->read(events);
        for (int64_t i = 0; i < count; ++i) {
            const int64_t at = events[0].start_ns + i;
            const ds_trace_event expected = {at, at, 0, at, DS_TRACE_STEP, static_cast<int32_t>(at), 0, 7};
            CHECK(memcmp(&events[i], &expected, sizeof expected) == 0);
        }
    }
    writer.join();
    CHECK_EQUAL(track->read(events), 64);
}

// ---- The C API

void a_series_outlives_its_store() {
    ds_metrics metrics;
    ds_series series;
    CHECK_EQUAL(ds_metrics_create(0, &metrics), DS_STATUS_OK);
    CHECK_EQUAL(ds_metrics_open_series(metrics, DS_SERIES_COUNTER, "n", "", "", &series), DS_STATUS_OK);
    CHECK_EQUAL(ds_metrics_release(metrics), DS_STATUS_OK);
    CHECK_EQUAL(live(DS_LIVE_METRICS), 0);
    CHECK_EQUAL(ds_series_record(series, 1, 0), DS_STATUS_OK);
    CHECK_EQUAL(ds_series_release(series), DS_STATUS_OK);
    CHECK_EQUAL(ds_series_record(series, 1, 0), DS_STATUS_CLOSED);
}

int64_t total_of(ds_metrics metrics, const char* name) {
    ds_metrics summed;
    ds_series series;
    CHECK_EQUAL(ds_metrics_create(0, &summed), DS_STATUS_OK);
    CHECK_EQUAL(ds_metrics_merge(summed, metrics, "replica,scheduler,reason,cause"), DS_STATUS_OK);
    CHECK_EQUAL(ds_metrics_open_series(summed, DS_SERIES_COUNTER, name, "", "", &series), DS_STATUS_OK);
    ds_series_totals totals = {};
    totals.struct_size = sizeof totals;
    CHECK_EQUAL(ds_series_get_totals(series, &totals), DS_STATUS_OK);
    CHECK_EQUAL(ds_series_release(series), DS_STATUS_OK);
    CHECK_EQUAL(ds_metrics_release(summed), DS_STATUS_OK);
    return totals.count;
}

// A policy whose series finds no room is played all the same, and counted once, whatever it is called later.
void a_full_store_drops_series_and_ends_no_replica() {
    ds_metrics metrics;
    CHECK_EQUAL(ds_metrics_create(1000, &metrics), DS_STATUS_OK);
    const PlayingEngine engine({.num_worlds = 16, .num_threads = 2, .num_policies = 1, .metrics = metrics});
    char name[16];
    for (int64_t i = 0;; ++i) {
        ds_series series;
        snprintf(name, sizeof name, "n%lld", static_cast<long long>(i));
        if (ds_metrics_open_series(metrics, DS_SERIES_COUNTER, name, "", "", &series)) break;
        CHECK_EQUAL(ds_series_release(series), DS_STATUS_OK);
    }
    CHECK_EQUAL(total_of(metrics, "dropped_series"), 0);
    for (const int64_t dropped : {1, 2}) {
        const char* labels = dropped == 1 ? "policy=\"a\"" : "policy=\"b\"";
        CHECK_EQUAL(ds_engine_label_policy(engine.handle, 0, labels), DS_STATUS_OK);
        engine.play(std::vector<ds_episode_request>(40));
        CHECK_EQUAL(total_of(metrics, "requests_answered"), 40 * dropped);
        CHECK_EQUAL(total_of(metrics, "dropped_series"), dropped);
    }
    CHECK_EQUAL(ds_engine_label_policy(engine.handle, 0, "policy"), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(ds_engine_label_policy(engine.handle, 1, ""), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(ds_metrics_release(metrics), DS_STATUS_OK);
}

}  // namespace

int main() {
    RUN(recent_quantiles_are_of_the_last_values);
    RUN(writers_lose_nothing_while_others_read);
    RUN(counts_stay_at_the_largest_number);
    RUN(memory_does_not_grow_with_values_and_writers);
    RUN(labels_are_checked);
    RUN(readers_see_whole_events_only);
    RUN(a_series_outlives_its_store);
    RUN(a_full_store_drops_series_and_ends_no_replica);
    return 0;
}
