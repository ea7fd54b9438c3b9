"""Series as texts for other programs: Prometheus' format, JSON, CSV."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterator, Sequence
from typing import Any

from doorstep._files import write_text
from doorstep.metrics.series import AnySeries, Counter, Sketch, labels_text

PREFIX = "doorstep_"  # of the names in Prometheus
QUANTILES = (0.5, 0.9, 0.99)


# ---- Prometheus: https://prometheus.io/docs/instrumenting/exposition_formats


def to_prometheus(series: Sequence[AnySeries]) -> str:
    by_name: dict[str, list[AnySeries]] = {}
    for one in series:
        by_name.setdefault(one.name, []).append(one)
    return "".join(line + "\n" for family in by_name.values() for line in _family(family))


def _family(series: list[AnySeries]) -> Iterator[str]:
    first = series[0]
    kind = "counter" if isinstance(first, Counter) else "summary" if isinstance(first, Sketch) else "gauge"
    name = PREFIX + first.name + ("_total" if isinstance(first, Counter) else "")
    if first.description:
        description = first.description.replace("\\", r"\\").replace("\n", r"\n")
        yield f"# HELP {name} {description}"
    yield f"# TYPE {name} {kind}"
    for one in series:
        if isinstance(one, Counter):
            yield _sample(name, one.labels, one.value)
        elif isinstance(one, Sketch):
            yield from _summary(name, one)
        elif one.count:
            yield _sample(name, one.labels, one.last)


def _summary(name: str, sketch: Sketch) -> Iterator[str]:
    if sketch.count:
        for fraction, value in zip(QUANTILES, sketch.quantiles(QUANTILES).tolist(), strict=True):
            yield _sample(name, {**sketch.labels, "quantile": str(fraction)}, value)
    yield _sample(f"{name}_sum", sketch.labels, sketch.sum)
    yield _sample(f"{name}_count", sketch.labels, sketch.count)


def _sample(name: str, labels: dict[str, str], value: float) -> str:
    return f"{name}{{{labels_text(labels)}}} {value!r}" if labels else f"{name} {value!r}"


# ---- JSON


def to_json(series: Sequence[AnySeries]) -> str:
    document = {"doorstep": "metrics", "version": 1, "series": [_as_dict(one) for one in series]}
    return json.dumps(document, indent=1) + "\n"


def _as_dict(series: AnySeries) -> dict[str, Any]:
    kind = series.kind.name.lower()
    known = {"name": series.name, "kind": kind, "labels": series.labels, "description": series.description}
    if isinstance(series, Counter):
        return {**known, "value": series.value}
    totals = {name: getattr(series, name) for name in ("count", "sum", "minimum", "maximum")}
    if isinstance(series, Sketch):
        quantiles = zip(map(str, QUANTILES), series.quantiles(QUANTILES).tolist(), strict=True)
        return {**known, **totals, "quantiles": dict(quantiles)}
    points = series.points()
    names = points.dtype.names or ()
    return {**known, **totals, "last": series.last, "points": {name: points[name].tolist() for name in names}}


# ---- CSV

_TOTALS = ("count", "sum", "mean", "minimum", "maximum", "last")


def write_csv(path: str | os.PathLike[str], series: Sequence[AnySeries]) -> None:
    labels = sorted({label for one in series for label in one.labels})
    text = io.StringIO(newline="")
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["name", "type", *labels, *_TOTALS, *(f"quantile_{fraction}" for fraction in QUANTILES)])
    for one in series:
        totals = [getattr(one, name, "") for name in _TOTALS]
        quantiles = one.quantiles(QUANTILES).tolist() if isinstance(one, Sketch) else [""] * len(QUANTILES)
        told = (one.labels.get(label, "") for label in labels)
        rows.writerow([one.name, one.kind.name.lower(), *told, *totals, *quantiles])
    write_text(path, text.getvalue())
