"""Stores, their series and their texts."""

import csv
import itertools
import json
import math
import re
import time

import numpy as np
import pytest

import doorstep
from doorstep.metrics import MetricsConfig, MetricsStore
from doorstep.metrics.series import Counter, Sketch, TimeSeries

# The grammar of https://prometheus.io/docs/instrumenting/exposition_formats
_NAME = "[a-zA-Z_:][a-zA-Z0-9_:]*"
_LABELS = r'\{(?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"(?:,(?!\})|(?=\})))*\}'
_SAMPLE = re.compile(rf"({_NAME})({_LABELS})? (\S+)")
_HEAD = re.compile(rf"# (HELP|TYPE) ({_NAME}) (.*)")


def parsed(text):
    """Samples by name and labels; families are contiguous, have one type, and no sample is there twice."""
    samples, types, family = {}, {}, ""
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("#"):
            kind, family, said = _HEAD.fullmatch(line).groups()
            if kind == "TYPE":
                assert family not in types, line
                types[family] = said
            continue
        name, labels, value = _SAMPLE.fullmatch(line).groups()
        assert name in ([family, f"{family}_sum", f"{family}_count"] if types[family] == "summary" else [family]), line
        assert (labels or "") not in samples.setdefault(name, {}), line
        samples[name][labels or ""] = float(value)
    assert set(types.values()) <= {"counter", "summary", "gauge"}
    return samples


def test_a_series_is_found_by_its_name_and_labels():
    store = MetricsStore()
    one = store.counter("n", "Things.", b=2, a="x")
    one.add()
    one.add(4)
    assert (store.counter("n", a="x", b=2).value, store.counter("n", a="x").value) == (5, 0)
    assert (one.labels, one.description) == ({"a": "x", "b": "2"}, "Things.")
    assert ([type(series) for series in store], repr(one)) == ([Counter, Counter], "Counter('n', a='x', b='2')")


def test_labels_keep_any_text():
    for value in ('quote"', "back\\slash", "line\nfeed", "comma,=", "ünïcode", ""):
        store = MetricsStore()
        store.counter("n", label=value).add()
        (series,) = store
        assert series.labels == {"label": value}
        assert list(parsed(store.to_prometheus())["doorstep_n_total"].values()) == [1]
        assert json.loads(store.to_json())["series"][0]["labels"] == {"label": value}


def test_quantiles_are_within_one_percent():
    """Also those of a sum of parts, and of values of all sizes, at powers of two and a hair beside them, and zeros."""
    fractions, draw = np.linspace(0, 1, 101), np.random.default_rng(0)
    hard_values = {
        "all sizes": np.exp2(draw.uniform(-40, 40, 2000)),
        "powers of two": np.exp2(draw.integers(-40, 41, 2000)) * (1 + 1e-12 * draw.integers(-1, 2, 2000)),
        "mostly zeros": np.where(draw.random(2000) < 0.9, 0, draw.random(2000)),
        "two far apart": draw.choice([1e-9, 1e11], 2000),
        "one": np.array([7.0]),
    }
    for name, values in hard_values.items():
        store, parts, merged = MetricsStore(), [MetricsStore() for _ in range(3)], MetricsStore()
        for index, value in enumerate(values.tolist()):
            store.sketch("s").add(value)
            parts[index * index % 7 % 3].sketch("s").add(value)
        for part in parts:
            merged.merge(part)
        sketch, exact = store.sketch("s"), np.sort(values)[(fractions * (len(values) - 1)).astype(int)]
        exact[exact < 2.0**-40] = 0  # a hair below the first bin
        np.testing.assert_allclose(sketch.quantiles(fractions), exact, rtol=0.01, err_msg=name)
        assert (merged.sketch("s").quantiles(fractions) == sketch.quantiles(fractions)).all()
        assert sketch.quantile(0.5) == sketch.quantiles([0.5])[0]
        assert sketch.count == merged.sketch("s").count == len(values)
        assert math.isclose(sketch.mean, values.mean())
        assert (sketch.minimum, sketch.maximum) == (values.min(), values.max())
    outside = MetricsStore().sketch("s")  # of the range: counted at its ends
    for value in (0, 1e-13, 1, 1e30):
        outside.add(value)
    assert outside.quantiles([0.4, 1]) == pytest.approx([0, 2.0**40], rel=0.01)
    assert (outside.minimum, outside.maximum) == (0, 1e30)


def test_quantiles_of_the_last_seconds_leave_out_what_is_older():
    sketch = MetricsStore().sketch("s")
    sketch._record(1000, 0)  # at the start of this machine's clock, or of a process that has just begun
    sketch._record(50, max(time.monotonic_ns() - 30 * 10**9, 0))
    for value in (1, 2, 3):
        sketch.add(value)
    assert sketch.quantile(1) == pytest.approx(1000, rel=0.01)
    assert sketch.quantiles([0, 0.5, 1], seconds=1) == pytest.approx([1, 2, 3], rel=0.01)
    assert sketch.quantiles([0, 1], seconds=15) == pytest.approx([1, 3], rel=0.01)
    assert sketch.quantiles([0, 1], seconds=60) == pytest.approx([1, 50], rel=0.01)
    assert MetricsStore().sketch("s").quantile(0.5, seconds=60) == 0


def test_the_spans_of_a_time_series_are_the_finest_of_which_there_are_few_enough():
    """Also those of a sum of parts."""
    draw = np.random.default_rng(5)
    for _ in range(40):
        whole, parts, merged = MetricsStore(), [MetricsStore() for _ in range(3)], MetricsStore()
        start, longest = 2 ** draw.integers(0, 50), 2.0 ** draw.integers(10, 45)
        times = start + (longest * draw.random(draw.integers(1, 300))).astype(np.int64)
        values = draw.integers(-100, 100, len(times)).astype(float)  # whose sums do not depend on the order
        for value, at in zip(values.tolist(), times.tolist(), strict=True):
            whole.time_series("t").add(value, at)
            parts[draw.integers(3)].time_series("t").add(value, at)
        for part in parts:
            merged.merge(part)
        log2 = 26
        while (times.max() >> log2) - (times.min() >> log2) >= 512:
            log2 += 1
        points, (spans, of_value) = whole.time_series("t").points(), np.unique(times >> log2, return_inverse=True)
        assert (points["start_ns"] == spans << log2).all()
        assert (points["length_ns"] == 1 << log2).all()
        for name, of in (("count", len), ("sum", sum), ("minimum", min), ("maximum", max)):
            assert points[name].tolist() == [of(values[of_value == span]) for span in range(len(spans))], name
        assert (points == merged.time_series("t").points()).all()
        for one in (whole.time_series("t"), merged.time_series("t")):
            assert (one.count, one.sum) == (len(values), values.sum())
            assert one.last in values[times == times.max()]


def test_a_part_of_a_store_has_its_labels_and_is_in_the_whole():
    store = MetricsStore(trace=10)
    a, b = store.labelled(engine="a"), store.labelled(engine="b", run=7)
    a.counter("n", by="x").add(3)
    b.counter("n", by="x").add(4)
    store.counter("n", by="y").add(8)
    assert store.labelled(engine="a") is a
    assert [series.labels for series in a] == [{"by": "x", "engine": "a"}]
    assert (a.total("n").value, b.total("n", run=7).value) == (3, 4)
    assert (store.total("n", engine="a").value, store.total("n").value) == (3, 15)
    assert store.total("n", engine="none").value == 0
    with pytest.raises(doorstep.ArgumentError, match="'m'"):
        store.total("m")
    series = store.counter("n", by="y")
    del store
    assert (series.value, a.counter("n", by="x").value) == (8, 3)
    for labels in ({}, {"reason": "x"}, {"1": "x"}):
        with pytest.raises(doorstep.ArgumentError, match="label"):
            a.labelled(**labels)
    with pytest.raises(doorstep.ArgumentError, match="engine"):
        a.counter("n", engine="b")


def test_merging_adds_and_leaves_the_source():
    a, b, whole, summed = (MetricsStore() for _ in range(4))
    for store, count in ((a, 3), (b, 5)):
        for i in range(count):
            store.sketch("s", by=count).add(i)
            store.sketch("s").add(i)
            store.counter("n").add(i)
        whole.merge(store)
    assert (whole.sketch("s").count, whole.sketch("s", by=5).count, whole.counter("n").value) == (8, 5, 13)
    summed.merge(whole, without=["by"])
    assert {one.name: one.count for one in summed} == {"s": 16, "n": 13}
    assert (a.sketch("s").count, b.sketch("s").count) == (3, 5)


def filled():
    store = MetricsStore()
    store.counter("a", 'A "sentence"\nwith \\.', x='comma, "quote"').add(7)
    store.counter("a", x="2").add(2**53)
    store.sketch("b", y="2").add(2)
    store.sketch("empty")
    for value in (7.5, -3.5):
        store.time_series("c").add(value, 10**9)
    store.time_series("nothing_yet")
    return store


def test_prometheus_json_and_tables_have_every_series_and_number(tmp_path):
    samples = parsed(filled().to_prometheus())
    assert samples["doorstep_a_total"] == {'{x="comma, \\"quote\\""}': 7, '{x="2"}': 2**53}
    assert samples["doorstep_b"] == {f'{{quantile="{q}",y="2"}}': 2 for q in (0.5, 0.9, 0.99)}
    assert (samples["doorstep_b_sum"], samples["doorstep_b_count"]) == ({'{y="2"}': 2}, {'{y="2"}': 1})
    assert (samples["doorstep_c"], samples["doorstep_empty_count"]) == ({"": -3.5}, {"": 0})
    assert "doorstep_nothing_yet" not in samples
    _, a, b, _, c, _ = json.loads(filled().to_json())["series"]
    assert (a["kind"], a["value"]) == ("counter", 2**53)
    assert (b["kind"], b["count"], b["sum"], b["quantiles"]["0.99"]) == ("sketch", 1, 2, 2)
    assert (c["kind"], c["last"], c["points"]["sum"], c["points"]["count"]) == ("time_series", -3.5, [4], [2])
    filled().to_csv(tmp_path / "metrics.csv")
    with open(tmp_path / "metrics.csv", newline="", encoding="utf-8") as file:
        a, _, b, _, c, _ = csv.DictReader(file)
    assert (a["name"], a["x"], a["y"], a["count"], a["sum"]) == ("a", 'comma, "quote"', "", "7", "")
    assert (b["x"], b["y"], b["mean"], b["quantile_0.99"], b["last"]) == ("", "2", "2.0", "2.0", "")
    assert (c["minimum"], c["last"], c["quantile_0.5"]) == ("-3.5", "-3.5", "")
    assert [row["type"] for row in (a, b, c)] == ["counter", "sketch", "time_series"]


def test_stores_that_share_series_are_not_merged():
    """Their series would be added to themselves."""
    store = MetricsStore()
    part, sibling = store.labelled(engine="a"), store.labelled(engine="b")
    nested = part.labelled(task="c")
    for number, one in enumerate((store, part, sibling, nested)):
        one.counter("played").add(number + 1)
    before = store.to_json()
    for one, other in itertools.permutations((store, part, sibling, nested), 2):
        with pytest.raises(doorstep.ArgumentError, match="the same store"):
            one.merge(other, without=("engine", "task"))
    assert store.to_json() == before


def test_bad_arguments_change_nothing():
    store = MetricsStore()
    counter, sketch, series = store.counter("a"), store.sketch("b"), store.time_series("c")
    assert (type(counter), type(sketch), type(series)) == (Counter, Sketch, TimeSeries)
    for call in (
        lambda: store.sketch("a"),
        lambda: store.counter("1a"),
        lambda: store.counter("a", **{"a-b": 1}),
        lambda: store.counter("a\0b"),
        lambda: store.series_of_policy("\ud800"),
        lambda: counter.add(-1),
        lambda: sketch.add(math.nan),
        lambda: sketch.quantile(1.1),
        lambda: sketch.quantile(0.5, seconds=60.1),
        lambda: series.add(math.inf),
        lambda: store.merge(store),
        lambda: MetricsConfig(trace=2**24 + 1),
        lambda: MetricsConfig(enabled=False, trace=1),
    ):
        with pytest.raises(doorstep.ArgumentError):
            call()
    assert [one.count for one in store] == [0, 0, 0]
