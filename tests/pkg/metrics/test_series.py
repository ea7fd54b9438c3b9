"""Stores, their series and their texts."""

from __future__ import annotations

import csv
import itertools
import json
import math
import re
import threading
from pathlib import Path

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


def parsed(text: str) -> dict[str, dict[str, float]]:
    """Samples by name and labels; families are contiguous, have one type, and no sample is there twice."""
    samples: dict[str, dict[str, float]] = {}
    types: dict[str, str] = {}
    current = ""
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("#"):
            head = _HEAD.fullmatch(line)
            assert head, line
            if head[1] == "TYPE":
                assert head[2] not in types, line
                types[head[2]] = head[3]
            current = head[2]
            continue
        sample = _SAMPLE.fullmatch(line)
        assert sample, line
        family = re.sub("_(sum|count)$", "", sample[1]) if types[current] == "summary" else sample[1]
        assert family == current, line
        assert (sample[2] or "") not in samples.setdefault(sample[1], {}), line
        samples[sample[1]][sample[2] or ""] = float(sample[3])
    assert set(types.values()) <= {"counter", "summary", "gauge"}
    return samples


def test_a_series_is_found_by_its_name_and_labels() -> None:
    store = MetricsStore()
    one = store.counter("n", "Things.", b=2, a="x")
    one.add()
    one.add(4)
    assert store.counter("n", a="x", b=2).value == 5
    assert store.counter("n", a="x").value == 0
    assert one.labels == {"a": "x", "b": "2"}
    assert one.description == "Things."
    assert [type(series) for series in store] == [Counter, Counter]
    assert repr(one) == "Counter('n', a='x', b='2')"


@pytest.mark.parametrize("value", ['quote"', "back\\slash", "line\nfeed", "comma,=", "ünïcode", ""])
def test_labels_keep_any_text(value: str) -> None:
    store = MetricsStore()
    store.counter("n", label=value).add()
    (series,) = store
    assert series.labels == {"label": value}
    assert list(parsed(store.to_prometheus())["doorstep_n_total"].values()) == [1]
    assert json.loads(store.to_json())["series"][0]["labels"] == {"label": value}


def test_quantiles_are_within_one_percent() -> None:
    values = np.exp(np.random.default_rng(0).normal(0, 5, 5000))
    sketch = MetricsStore().sketch("s")
    for value in values:
        sketch.add(value)
    fractions = np.linspace(0, 1, 101)
    exact = np.sort(values)[(fractions * (len(values) - 1)).astype(int)]
    np.testing.assert_allclose(sketch.quantiles(fractions), exact, rtol=0.01)
    assert sketch.quantile(0.5) == sketch.quantiles([0.5])[0]
    assert sketch.count == 5000
    assert math.isclose(sketch.mean, values.mean())
    assert (sketch.minimum, sketch.maximum) == (values.min(), values.max())


def test_quantiles_of_the_last_seconds_leave_out_what_is_older(monkeypatch: pytest.MonkeyPatch) -> None:
    sketch = MetricsStore().sketch("s")
    sketch._handle.record(1000, 0)  # at the start of this machine's clock, or of a process that has just begun
    for value in (1, 2, 3):
        sketch.add(value)
    assert sketch.quantile(1) == pytest.approx(1000, rel=0.01)
    assert sketch.quantiles([0, 0.5, 1], seconds=1) == pytest.approx([1, 2, 3], rel=0.01)
    assert sketch.quantile(0.5, seconds=60) == pytest.approx(2, rel=0.01)
    assert MetricsStore().sketch("s").quantile(0.5, seconds=60) == 0


def test_a_time_series_knows_when() -> None:
    series = MetricsStore().time_series("t")
    second = 1_000_000_000
    for time in range(100):
        series.add(time % 10, time * second)
    points = series.points()
    assert len(points) == 100  # spans of a seventh of a second are no longer than needed
    assert (points["start_ns"] <= np.arange(100) * second).all()
    assert (points["start_ns"] + points["length_ns"] > np.arange(100) * second).all()
    assert (points["sum"] == np.arange(100) % 10).all()
    series.add(5, 100_000 * second)
    assert len(series.points()) <= 512
    assert (series.count, series.sum, series.last) == (101, 455, 5)


def test_a_part_of_a_store_has_its_labels_and_is_in_the_whole() -> None:
    store = MetricsStore(trace=10)
    a, b = store.labelled(engine="a"), store.labelled(engine="b", run=7)
    a.counter("n", by="x").add(3)
    b.counter("n", by="x").add(4)
    store.counter("n", by="y").add(8)
    assert store.labelled(engine="a") is a
    assert [series.labels for series in a] == [{"by": "x", "engine": "a"}]
    assert (a.total("n").value, b.total("n", run=7).value) == (3, 4)
    assert (store.total("n", engine="a").value, store.total("n").value) == (3, 15)
    del store
    assert a.counter("n", by="x").value == 3
    for labels in ({}, {"engine": "x" * 300}, {"1": "x"}):
        with pytest.raises(doorstep.ArgumentError, match="label"):
            a.labelled(**labels)
    with pytest.raises(doorstep.ArgumentError, match="engine"):
        a.counter("n", engine="b")


def test_totals_leave_out_the_other_labels() -> None:
    store = MetricsStore()
    for replica in range(3):
        for reason in ("goal", "time"):
            store.counter("n", replica=replica, reason=reason).add(10 * replica + len(reason))
    assert store.total("n").value == 2 * 30 + 3 * 8
    assert store.total("n", reason="goal").value == 30 + 3 * 4
    assert store.total("n", reason="goal", replica=2).value == 24
    assert store.total("n", reason="none").value == 0
    with pytest.raises(doorstep.ArgumentError, match="'n'"):
        store.total("m")


def test_merging_adds_and_leaves_the_source() -> None:
    a, b = MetricsStore(), MetricsStore()
    for store, count in ((a, 3), (b, 5)):
        for i in range(count):
            store.sketch("s", by=count).add(i)
            store.sketch("s").add(i)
    a.merge(b)
    assert a.sketch("s").count == 8
    assert a.sketch("s", by=5).count == 5
    assert b.sketch("s").count == 5
    summed = MetricsStore()
    summed.merge(a, without=["by"])
    assert [series.count for series in summed] == [16]


def test_series_outlive_their_store() -> None:
    store = MetricsStore()
    series = store.sketch("s")
    before = doorstep.live_counts()["metrics"]
    del store
    assert doorstep.live_counts()["metrics"] == before - 1
    series.add(1)
    assert series.count == 1


def test_every_series_has_a_handle_of_its_own() -> None:
    store = MetricsStore()
    handles = {store.native_handle, *(store.counter(name).native_handle for name in "abc")}
    assert len(handles) == 4 or 0 not in handles


def test_threads_lose_nothing() -> None:
    store = MetricsStore()

    def record() -> None:
        for i in range(500):
            store.counter("n").add()
            store.sketch("s").add(i)

    threads = [threading.Thread(target=record) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (store.counter("n").value, store.sketch("s").count) == (2000, 2000)


def test_prometheus_has_every_series() -> None:
    store = MetricsStore()
    store.counter("a", 'A "sentence"\nwith \\.', x="1").add(7)
    store.counter("a", x="2")
    store.sketch("b").add(2)
    store.sketch("empty")
    store.time_series("c", x="1").add(3.5)
    store.time_series("nothing_yet")
    samples = parsed(store.to_prometheus())
    assert samples["doorstep_a_total"] == {'{x="1"}': 7, '{x="2"}': 0}
    assert samples["doorstep_b"] == {f'{{quantile="{q}"}}': 2 for q in (0.5, 0.9, 0.99)}
    assert (samples["doorstep_b_sum"][""], samples["doorstep_b_count"][""]) == (2, 1)
    assert samples["doorstep_c"] == {'{x="1"}': 3.5}
    assert samples["doorstep_empty_count"] == {"": 0}
    assert "doorstep_nothing_yet" not in samples


def test_json_has_every_number() -> None:
    store = MetricsStore()
    store.counter("a").add(2**53)
    store.sketch("b").add(2)
    store.time_series("c").add(3, 10**9)
    a, b, c = json.loads(store.to_json())["series"]
    assert (a["kind"], a["value"]) == ("counter", 2**53)
    assert (b["kind"], b["count"], b["sum"], b["quantiles"]["0.99"]) == ("sketch", 1, 2, 2)
    assert (c["kind"], c["last"], c["points"]["sum"], c["points"]["count"]) == ("time_series", 3, [3], [1])


def test_a_table_has_a_row_for_each_series(tmp_path: Path) -> None:
    store = MetricsStore()
    store.counter("a", x='comma, "quote"').add(7)
    store.sketch("b", y="2").add(2)
    store.time_series("c").add(-3.5)
    store.to_csv(tmp_path / "metrics.csv")
    with open(tmp_path / "metrics.csv", newline="", encoding="utf-8") as file:
        a, b, c = csv.DictReader(file)
    assert (a["name"], a["x"], a["y"], a["count"], a["sum"]) == ("a", 'comma, "quote"', "", "7", "")
    assert (b["x"], b["y"], b["mean"], b["quantile_0.99"], b["last"]) == ("", "2", "2.0", "2.0", "")
    assert (c["minimum"], c["last"], c["quantile_0.5"]) == ("-3.5", "-3.5", "")
    assert [row["type"] for row in (a, b, c)] == ["counter", "sketch", "time_series"]


def test_stores_that_share_series_are_not_merged() -> None:
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


def test_bad_arguments_change_nothing() -> None:
    store = MetricsStore()
    counter, sketch, series = store.counter("a"), store.sketch("b"), store.time_series("c")
    for call in (
        lambda: store.sketch("a"),
        lambda: store.counter("1a"),
        lambda: store.counter("a" * 64),
        lambda: store.counter("a", label="x" * 300),
        lambda: store.counter("a\0b"),
        lambda: counter.add(-1),
        lambda: counter.add(1.5),  # type: ignore[arg-type]
        lambda: sketch.add(-1),
        lambda: sketch.add(math.nan),
        lambda: sketch.quantile(1.1),
        lambda: sketch.quantile(0.5, seconds=0),
        lambda: sketch.quantile(0.5, seconds=60.1),
        lambda: sketch.quantile(0.5, seconds=math.nan),
        lambda: sketch.quantile(0.5, seconds="60"),  # type: ignore[arg-type]
        lambda: series.add(math.inf),
        lambda: store.merge(store),
        lambda: store.merge(None),  # type: ignore[arg-type]
        lambda: MetricsStore(trace=-1),
        lambda: MetricsConfig(trace=2**24 + 1),
        lambda: MetricsConfig(enabled=False, trace=1),
        lambda: MetricsConfig(enabled="yes"),  # type: ignore[arg-type]
    ):
        with pytest.raises(doorstep.ArgumentError):
            call()
    assert len(list(store)) == 3
    assert [counter.count, sketch.count, series.count] == [0, 0, 0]
    assert isinstance(sketch, Sketch)
    assert isinstance(series, TimeSeries)
