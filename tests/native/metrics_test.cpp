// Metrics: sketches against exact quantiles, sums of parts against the whole, many threads, bounded memory, traces, and
// an engine that is watched while it plays.
#include <malloc.h>
#include <math.h>
#include <string.h>

#include <algorithm>
#include <functional>
#include <map>
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
#include "processes.h"
#include "runtime/futex.h"

using namespace doorstep;

namespace {

constexpr int64_t kMillisecond = 1'000'000;

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

// Values that are hard for bins: of all sizes, at powers of two and a hair beside them, far apart, equal.
std::map<std::string, std::vector<double>> hard_values() {
    Draws draw(3);
    std::map<std::string, std::vector<double>> values;
    for (int i = 0; i < 20000; ++i) {
        values["uniform"].push_back(uniform(draw));
        values["all sizes"].push_back(exp2(-40 + 80 * uniform(draw)));
        values["powers of two"].push_back(exp2(draw.integer(-40, 41)) * (1 + 1e-12 * draw.integer(-1, 2)));
        values["mostly zeros"].push_back(draw.below(10) ? 0.0 : 1e-3 * uniform(draw));
        values["two far apart"].push_back(draw.below(2) ? 1e-9 : 1e11);
        values["equal"].push_back(0.017);
        values["heavy tail"].push_back(pow(1 - uniform(draw), -1.2));
        values["descending"].push_back(20000.0 - i);
    }
    values["one"] = {7};
    return values;
}

void quantiles_are_within_one_percent() {
    for (auto& [name, values] : hard_values()) {
        Sketch sketch;
        for (const double value : values) sketch.add(value, 0);
        std::sort(values.begin(), values.end());
        CHECK_EQUAL(sketch.count(), values.size());
        for (int i = 0; i <= 1000; ++i) {
            const double fraction = i / 1000.0;
            const size_t place = static_cast<size_t>(fraction * static_cast<double>(values.size() - 1));
            // Powers of two times 1 - 1e-12 may be a hair below the first bin
            const double exact = values[place] < exp2(-40) ? 0 : values[place];
            CHECK_NEAR(sketch.quantile(fraction), exact, Sketch::kRelativeError * exact);
        }
    }
}

void values_outside_the_range_count_at_its_ends() {
    Sketch sketch;
    for (const double value : {0.0, 1e-13, 1.0, 1e30}) sketch.add(value, 0);
    CHECK_EQUAL(sketch.count(), 4);
    CHECK(sketch.quantile(0.4) == 0);
    CHECK_NEAR(sketch.quantile(0.7), 1, 0.01);
    CHECK_NEAR(sketch.quantile(1), exp2(40), 0.01 * exp2(40));
    ds_series_totals totals = {};
    sketch.read(&totals);
    CHECK(totals.maximum == 1e30 && totals.minimum == 0);
    CHECK(Sketch().quantile(0.5) == 0);
}

void merged_sketches_are_the_sketch_of_all_values() {
    for (const auto& [name, values] : hard_values()) {
        Sketch all, parts[3], merged;
        for (size_t i = 0; i < values.size(); ++i) {
            all.add(values[i], 0);
            parts[i * i % 7 % 3].add(values[i], 0);
        }
        for (const Sketch& part : parts) merged.merge(part);
        CHECK_EQUAL(merged.count(), all.count());
        for (int i = 0; i <= 1000; ++i) CHECK(merged.quantile(i / 1000.0) == all.quantile(i / 1000.0));
    }
}

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

// By definition: the finest spans of which there are few enough.
std::vector<ds_series_point> expected_points(const std::vector<TimedValue>& values) {
    int64_t low = INT64_MAX, high = 0;
    for (const TimedValue& value : values) low = std::min(low, value.time_ns), high = std::max(high, value.time_ns);
    int32_t log2 = TimeSeries::kFirstLog2;
    while ((high >> log2) - (low >> log2) >= TimeSeries::kSpans) ++log2;
    std::map<int64_t, ds_series_point> spans;
    for (const auto& [time_ns, value] : values) {
        ds_series_point& span = spans[time_ns >> log2];
        const bool first = span.count++ == 0;
        span.start_ns = time_ns >> log2 << log2;
        span.length_ns = int64_t{1} << log2;
        span.sum += value;
        span.minimum = first ? value : std::min(span.minimum, value);
        span.maximum = first ? value : std::max(span.maximum, value);
    }
    std::vector<ds_series_point> points;
    for (const auto& [index, span] : spans) points.push_back(span);
    return points;
}

bool are_equal(const std::vector<ds_series_point>& a, const std::vector<ds_series_point>& b) {
    return a.size() == b.size() && memcmp(a.data(), b.data(), a.size() * sizeof a[0]) == 0;
}

void spans_are_the_finest_of_which_there_are_few_enough() {
    Draws draw(5);
    for (int round = 0; round < 200; ++round) {
        const int64_t start = int64_t{draw.integer(0, 1 << 30)} << draw.integer(0, 20);
        const int longest = draw.integer(10, 45);
        std::vector<TimedValue> values;
        TimeSeries all(nullptr), parts[3] = {TimeSeries(nullptr), TimeSeries(nullptr), TimeSeries(nullptr)}, merged(nullptr);
        for (int i = draw.integer(1, 3000); i > 0; --i) {
            // Integers: their sums do not depend on the order
            const TimedValue value = {start + static_cast<int64_t>(uniform(draw) * exp2(longest)),
                                      static_cast<double>(draw.integer(-100, 100))};
            values.push_back(value);
            all.add(value.value, value.time_ns);
            parts[draw.below(3)].add(value.value, value.time_ns);
        }
        const std::vector<ds_series_point> expected = expected_points(values);
        CHECK(are_equal(points_of(all), expected));
        for (const TimeSeries& part : parts) merged.merge(part);
        CHECK(are_equal(points_of(merged), expected));
        ds_series_totals totals = {}, of_merged = {};
        all.read(&totals);
        merged.read(&of_merged);
        CHECK_EQUAL(totals.count, values.size());
        CHECK_EQUAL(of_merged.last_ns, totals.last_ns);
    }
}

// ---- Many threads

void run_in_threads(int count, const std::function<void(int)>& work) {
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i) threads.emplace_back(work, i);
    for (std::thread& thread : threads) thread.join();
}

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
            for (const ds_series_point& point : points_of(static_cast<const TimeSeries&>(*series->sum()))) {
                counted += point.count;
            }
            CHECK(counted <= kThreads * kRounds * kValues);
        }
    });
    run_in_threads(kThreads, [&](int thread) {
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

void series_are_opened_once_by_many_threads() {
    const Ref<MetricsStore> store = make_store();
    run_in_threads(6, [&](int) {
        for (int i = 0; i < 200; ++i) {
            char name[8];
            snprintf(name, sizeof name, "s%d", i);
            open(*store, DS_SERIES_COUNTER, name)->record(1, 0);
        }
    });
    CHECK_EQUAL(store->num_series(), 200);
    for (int64_t i = 0; i < 200; ++i) CHECK_EQUAL(count_of(*store->series(i)), 6);
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
    for (const char* good : {"", "a=\"\"", "a=\"x\",b=\"y\"", "a=\"q\\\"\\\\\\n\"", "a_1=\"\xc3\xa4,=\"", "A=\"x\",a=\"x\""}) {
        CHECK_EQUAL(check_labels(good), DS_STATUS_OK);
    }
    for (const char* bad : {"a", "a=", "a=x", "a=\"x", "a=\"x\",", ",", "b=\"x\",a=\"y\"", "a=\"x\",a=\"y\"", "1=\"x\"",
                            "a=\"x\"b=\"y\"", "a=\"\\x\"", "a=\"\n\"", "a=\"\\", "=\"x\"", "a =\"x\""}) {
        CHECK_EQUAL(check_labels(bad), DS_STATUS_INVALID_ARGUMENT);
    }
    const std::string longest = "a=\"" + std::string(251, 'x') + "\"";
    CHECK_EQUAL(check_labels(longest.c_str()), DS_STATUS_OK);
    CHECK_EQUAL(check_labels((longest + " ").c_str()), DS_STATUS_INVALID_ARGUMENT);
    for (const char* bad : {"", "1a", "a b", "a-b"}) CHECK_EQUAL(check_series_name(bad), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(check_series_name(std::string(63, 'a').c_str()), DS_STATUS_OK);
    CHECK_EQUAL(check_series_name(std::string(64, 'a').c_str()), DS_STATUS_INVALID_ARGUMENT);
}

void labels_of_two_are_merged_in_order() {
    const auto merged = [](const std::string& a, const std::string& b) {
        char both[sizeof ds_series_info::labels];
        return merge_labels(a.c_str(), b.c_str(), both) ? std::string("refused") : std::string(both);
    };
    CHECK(merged("", "").empty());
    CHECK(merged("a=\"1\"", "") == "a=\"1\"");
    CHECK(merged("", "a=\"1\"") == "a=\"1\"");
    CHECK(merged("b=\"2\",c=\"\"", "a=\",\",bb=\"\\\"\",d=\"4\"") == "a=\",\",b=\"2\",bb=\"\\\"\",c=\"\",d=\"4\"");
    CHECK(merged("a=\"1\",b=\"2\"", "b=\"2\"") == "refused");
    const std::string longest = "b=\"" + std::string(244, 'x') + "\"";
    CHECK_EQUAL(merged("a=\"1\"", longest).size(), 254);
    CHECK(merged("a=\"123\"", longest) == "refused");
}

void labels_are_left_out_by_name() {
    const char* labels = "a=\"b,c=\\\"\",b=\"2\",bb=\"3\"";
    const auto without = [&](const char* names) {
        char left[256];
        copy_labels_without(labels, names, left);
        return std::string(left);
    };
    CHECK(without("") == labels);
    CHECK(without("b") == "a=\"b,c=\\\"\",bb=\"3\"");
    CHECK(without("a") == "b=\"2\",bb=\"3\"");
    CHECK(without("bb,c,a") == "b=\"2\"");
    CHECK(without("a,b,bb").empty());
}

// ---- Stores

void stores_merge_by_name_and_labels() {
    const Ref<MetricsStore> a = make_store(), b = make_store();
    open(*a, DS_SERIES_COUNTER, "n", "replica=\"0\"")->record(1, 0);
    open(*a, DS_SERIES_COUNTER, "n", "replica=\"1\"")->record(2, 0);
    open(*b, DS_SERIES_COUNTER, "n", "replica=\"1\"")->record(4, 0);
    open(*b, DS_SERIES_SKETCH, "s")->record(8, 0);
    CHECK_EQUAL(a->merge(*b, ""), DS_STATUS_OK);
    CHECK_EQUAL(a->num_series(), 3);
    CHECK_EQUAL(count_of(*open(*a, DS_SERIES_COUNTER, "n", "replica=\"0\"")), 1);
    CHECK_EQUAL(count_of(*open(*a, DS_SERIES_COUNTER, "n", "replica=\"1\"")), 6);
    const Ref<MetricsStore> total = make_store();
    CHECK_EQUAL(total->merge(*a, "replica"), DS_STATUS_OK);
    CHECK_EQUAL(total->num_series(), 2);
    CHECK_EQUAL(count_of(*open(*total, DS_SERIES_COUNTER, "n")), 7);
    CHECK_EQUAL(count_of(*open(*b, DS_SERIES_COUNTER, "n", "replica=\"1\"")), 4);

    Ref<Series> series;
    CHECK_EQUAL(a->open(DS_SERIES_SKETCH, "n", "replica=\"0\"", "", &series), DS_STATUS_INVALID_ARGUMENT);
    CHECK(!series);
    open(*total, DS_SERIES_COUNTER, "s2");
    open(*b, DS_SERIES_SKETCH, "s2");
    CHECK_EQUAL(total->merge(*b, ""), DS_STATUS_INVALID_ARGUMENT);
}

void parts_of_a_store_record_in_it() {
    const Ref<MetricsStore> whole = make_store(10);
    const Ref<MetricsStore> a = Ref<MetricsStore>::adopt(new MetricsStore(whole, "engine=\"a\""));
    const Ref<MetricsStore> b = Ref<MetricsStore>::adopt(new MetricsStore(whole, "engine=\"b\""));
    open(*a, DS_SERIES_COUNTER, "n", "by=\"x\"")->record(1, 0);
    open(*a, DS_SERIES_COUNTER, "n", "by=\"x\"")->record(2, 0);
    open(*b, DS_SERIES_COUNTER, "n", "by=\"x\"")->record(4, 0);
    CHECK_EQUAL(whole->num_series(), 2);
    CHECK_EQUAL(a->num_series(), 1);
    CHECK_EQUAL(count_of(*open(*whole, DS_SERIES_COUNTER, "n", "by=\"x\",engine=\"a\"")), 3);
    CHECK_EQUAL(count_of(*b->series(0)), 4);
    Ref<Series> series;
    CHECK_EQUAL(a->open(DS_SERIES_COUNTER, "n", "engine=\"x\"", "", &series), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(a->open(DS_SERIES_COUNTER, "n", "b", "", &series), DS_STATUS_INVALID_ARGUMENT);
    Ref<TraceTrack> track;
    CHECK_EQUAL(b->open_track(7, &track), DS_STATUS_OK);
    track->record_span(DS_TRACE_STEP, 1, 2, 3);
    ds_trace_event event[10];
    CHECK_EQUAL(whole->read_trace(10, event), 1);
    CHECK_EQUAL(a->read_trace(10, event), 1);
}

void a_part_of_a_part_has_the_labels_of_both() {
    const Ref<MetricsStore> whole = make_store(0);
    const Ref<MetricsStore> part = Ref<MetricsStore>::adopt(new MetricsStore(whole, "engine=\"a\""));
    const Ref<MetricsStore> nested = Ref<MetricsStore>::adopt(new MetricsStore(part, "task=\"c\""));
    open(*part, DS_SERIES_COUNTER, "n")->record(1, 0);
    open(*nested, DS_SERIES_COUNTER, "n")->record(2, 0);
    open(*nested, DS_SERIES_COUNTER, "n")->record(4, 0);
    CHECK_EQUAL(whole->num_series(), 2);
    CHECK_EQUAL(part->num_series(), 2);
    CHECK_EQUAL(nested->num_series(), 1);
    CHECK_EQUAL(count_of(*open(*whole, DS_SERIES_COUNTER, "n", "engine=\"a\",task=\"c\"")), 6);
}

// ---- Traces

ds_trace_event numbered(int64_t i) { return {i, i, static_cast<uint64_t>(i), i, DS_TRACE_STEP, static_cast<int32_t>(i), 0, 7}; }

void traces_keep_the_latest_events() {
    const Ref<MetricsStore> store = make_store(10);
    Ref<TraceTrack> track;
    CHECK_EQUAL(store->open_track(7, &track), DS_STATUS_OK);
    ds_trace_event events[10];
    for (int64_t i = 0; i < 25; ++i) {
        CHECK_EQUAL(store->read_trace(10, events), std::min<int64_t>(i, 10));
        track->record_span(DS_TRACE_STEP, i, 2 * i, i, static_cast<int32_t>(i));
    }
    CHECK_EQUAL(store->read_trace(0, nullptr), 10);
    CHECK_EQUAL(store->read_trace(9, events), 0);
    CHECK_EQUAL(store->read_trace(10, events), 10);
    for (int64_t i = 0; i < 10; ++i) {
        ds_trace_event expected = numbered(15 + i);
        expected.request = 0;
        CHECK(memcmp(&events[i], &expected, sizeof expected) == 0);
    }
    CHECK_EQUAL(make_store(0)->open_track(0, &track), DS_STATUS_OK);
    CHECK(!track);
}

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
            ds_trace_event expected = numbered(events[0].start_ns + i);
            expected.request = 0;
            CHECK(memcmp(&events[i], &expected, sizeof expected) == 0);
        }
    }
    writer.join();
    CHECK_EQUAL(track->read(events), 64);
}

// ---- The C API

int64_t live_stores() {
    int64_t count;
    CHECK_EQUAL(ds_live_count(DS_LIVE_METRICS, &count), DS_STATUS_OK);
    return count;
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

void handles_share_ownership() {
    ds_metrics metrics;
    ds_series series;
    CHECK_EQUAL(ds_metrics_create(-1, &metrics), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(ds_metrics_create(0, &metrics), DS_STATUS_OK);
    CHECK_EQUAL(live_stores(), 1);
    CHECK_EQUAL(ds_metrics_open_series(metrics, DS_SERIES_SKETCH, "s", "a=\"1\"", "A sentence.", &series), DS_STATUS_OK);
    CHECK_EQUAL(ds_metrics_merge(metrics, metrics, ""), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(ds_metrics_get_series(metrics, 1, &series), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(ds_metrics_release(metrics), DS_STATUS_OK);
    CHECK_EQUAL(ds_metrics_release(metrics), DS_STATUS_CLOSED);
    CHECK_EQUAL(live_stores(), 0);

    for (const double bad : {-1.0, static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
        CHECK_EQUAL(ds_series_record(series, bad, 0), DS_STATUS_INVALID_ARGUMENT);
    }
    CHECK_EQUAL(ds_series_record(series, 2.5, 0), DS_STATUS_OK);
    ds_series_info info = {};
    CHECK_EQUAL(ds_series_get_info(series, &info), DS_STATUS_INVALID_ARGUMENT);
    info.struct_size = sizeof info;
    CHECK_EQUAL(ds_series_get_info(series, &info), DS_STATUS_OK);
    CHECK(strcmp(info.name, "s") == 0 && strcmp(info.labels, "a=\"1\"") == 0 && strcmp(info.description, "A sentence.") == 0);
    const double fractions[] = {0, 1};
    double values[2];
    CHECK_EQUAL(ds_series_get_quantiles(series, 0, fractions, 2, values), DS_STATUS_OK);
    CHECK(values[0] == 2.5 && values[1] == 2.5);
    CHECK_EQUAL(ds_series_record(series, 3, monotonic_ns()), DS_STATUS_OK);
    CHECK_EQUAL(ds_series_get_quantiles(series, 1, fractions, 2, values), DS_STATUS_OK);
    CHECK(values[0] > 2.5 && values[1] > 2.5);
    for (const int64_t bad : {int64_t{-1}, int64_t{60'000'000'001}}) {
        CHECK_EQUAL(ds_series_get_quantiles(series, bad, fractions, 2, values), DS_STATUS_INVALID_ARGUMENT);
    }
    const double beyond = 1.5;
    CHECK_EQUAL(ds_series_get_quantiles(series, 0, &beyond, 1, values), DS_STATUS_INVALID_ARGUMENT);
    ds_series_point point;
    uint64_t count;
    CHECK_EQUAL(ds_series_get_points(series, 1, &point, &count), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(ds_series_release(series), DS_STATUS_OK);
    CHECK_EQUAL(ds_series_record(series, 1, 0), DS_STATUS_CLOSED);
}

// ---- An engine, watched while it plays

ds_metrics made_metrics() {
    ds_metrics metrics;
    CHECK_EQUAL(ds_metrics_create(1000, &metrics), DS_STATUS_OK);
    return metrics;
}

struct Played {
    ds_metrics metrics = made_metrics();
    PlayingEngine engine{{.num_worlds = 16, .num_threads = 2, .scheduler = DS_SCHEDULER_DYNAMIC_CHUNK,
                          .num_policies = 1, .metrics = metrics}};

    ~Played() { CHECK_EQUAL(ds_metrics_release(metrics), DS_STATUS_OK); }

    void submit(uint64_t count, int64_t deadline_ns = 0) const {
        for (uint64_t i = 0; i < count; ++i) {
            ds_episode_request request = {};
            request.seed = static_cast<int64_t>(i);
            request.max_steps = 1 + static_cast<int64_t>(i % 7);
            request.deadline_ns = deadline_ns;
            request.record = i % 3 ? 0 : DS_RECORD_TRACE;
            uint64_t id, accepted;
            CHECK_EQUAL(ds_engine_submit(engine.handle, &request, 1, -1, &id, &accepted), DS_STATUS_OK);
            int32_t found;
            if (i % 5 == 0) CHECK_EQUAL(ds_engine_cancel(engine.handle, id, &found), DS_STATUS_OK);
        }
    }
};

void every_request_is_accounted_for_while_readers_poll() {
    {
        const Played played;
        std::atomic<bool> done{false};
        std::thread reader([&] {
            std::vector<ds_trace_event> events(2000);
            while (!done) {
                // Read first, so that what is answered meanwhile was submitted before it is counted
                const int64_t answered = total_of(played.metrics, "requests_answered");
                CHECK(answered <= total_of(played.metrics, "requests_submitted"));
                uint64_t count;
                CHECK_EQUAL(ds_metrics_get_trace(played.metrics, events.size(), events.data(), &count), DS_STATUS_OK);
            }
        });
        run_in_threads(2, [&](int) {
            played.submit(300);
            played.submit(100, monotonic_ns() + kMillisecond);
        });
        played.engine.drain();
        CHECK_EQUAL(total_of(played.metrics, "requests_submitted"), 800);
        CHECK_EQUAL(total_of(played.metrics, "requests_answered"), 800);
        done = true;
        reader.join();
        played.submit(10);
        played.engine.end();
        CHECK_EQUAL(total_of(played.metrics, "requests_answered"), 810);
    }
    CHECK_EQUAL(live_stores(), 0);
}

// A policy whose series finds no room is played all the same, and counted once, whatever it is called later.
void a_full_store_drops_series_and_ends_no_replica() {
    const Played played;
    char name[16];
    for (int64_t i = 0;; ++i) {
        ds_series series;
        snprintf(name, sizeof name, "n%lld", static_cast<long long>(i));
        if (ds_metrics_open_series(played.metrics, DS_SERIES_COUNTER, name, "", "", &series)) break;
        CHECK_EQUAL(ds_series_release(series), DS_STATUS_OK);
    }
    CHECK_EQUAL(total_of(played.metrics, "dropped_series"), 0);
    for (const int64_t dropped : {1, 2}) {
        const char* labels = dropped == 1 ? "policy=\"a\"" : "policy=\"b\"";
        CHECK_EQUAL(ds_engine_label_policy(played.engine.handle, 0, labels), DS_STATUS_OK);
        played.submit(40);
        played.engine.drain();
        CHECK_EQUAL(total_of(played.metrics, "requests_answered"), 40 * dropped);
        CHECK_EQUAL(total_of(played.metrics, "dropped_series"), dropped);
    }
    CHECK_EQUAL(ds_engine_label_policy(played.engine.handle, 0, "policy"), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(ds_engine_label_policy(played.engine.handle, 1, ""), DS_STATUS_INVALID_ARGUMENT);
}

// The store outlives its handle while the engine uses it, and a child of a fork can go on with both.
void children_of_forks_read_and_record() {
    const Played played;
    std::atomic<bool> done{false};
    std::thread reader([&] {
        while (!done) total_of(played.metrics, "requests_answered");
    });
    for (int round = 0; round < 10; ++round) {
        played.submit(20);
        const int status = run_in_child([&] {
            ds_series series;
            CHECK_EQUAL(ds_metrics_get_series(played.metrics, 0, &series), DS_STATUS_OK);
            const int64_t before = total_of(played.metrics, "requests_submitted");
            CHECK_EQUAL(ds_series_record(series, 3, 0), DS_STATUS_OK);
            if (total_of(played.metrics, "requests_submitted") != before + 3) return 1;
            return ds_metrics_release(played.metrics) == DS_STATUS_OK ? 0 : 2;
        });
        CHECK_EQUAL(status, 0);
    }
    done = true;
    reader.join();
}

}  // namespace

// A store that is full has some 16,000 series, each of which is in a list of all.
void series_end_in_a_time_that_does_not_grow_with_their_number() {
    constexpr int kCount = 100'000;
    int64_t start = monotonic_ns();
    std::vector<std::unique_ptr<ForkMutex>> all(kCount);
    for (auto& one : all) one = std::make_unique<ForkMutex>();
    const int64_t made_ns = monotonic_ns() - start;
    start = monotonic_ns();
    for (auto& one : all) one = nullptr;
    CHECK(monotonic_ns() - start < 20 * made_ns);
}

int main() {
    RUN(quantiles_are_within_one_percent);
    RUN(values_outside_the_range_count_at_its_ends);
    RUN(merged_sketches_are_the_sketch_of_all_values);
    RUN(recent_quantiles_are_of_the_last_values);
    RUN(spans_are_the_finest_of_which_there_are_few_enough);
    RUN(writers_lose_nothing_while_others_read);
    RUN(counts_stay_at_the_largest_number);
    RUN(series_are_opened_once_by_many_threads);
    RUN(memory_does_not_grow_with_values_and_writers);
    RUN(labels_are_checked);
    RUN(labels_of_two_are_merged_in_order);
    RUN(labels_are_left_out_by_name);
    RUN(stores_merge_by_name_and_labels);
    RUN(parts_of_a_store_record_in_it);
    RUN(a_part_of_a_part_has_the_labels_of_both);
    RUN(traces_keep_the_latest_events);
    RUN(readers_see_whole_events_only);
    RUN(series_end_in_a_time_that_does_not_grow_with_their_number);
    RUN(handles_share_ownership);
    RUN(every_request_is_accounted_for_while_readers_poll);
    RUN(a_full_store_drops_series_and_ends_no_replica);
    if (kCanStartThreadsInChild) RUN(children_of_forks_read_and_record);
    return 0;
}
