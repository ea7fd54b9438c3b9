"""JSON and YAML that people write: what means the same to every reader is read, all else is refused at once."""

import json
import math

import pytest
from tests.refuses import assert_refused

import doorstep
from doorstep import _documents as documents
from doorstep import levels
from doorstep.evaluation import Evaluation

pytest.importorskip("yaml")

LAUGHS = "\n".join(["l0: &l0 [ha]", *(f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 9)}]" for i in range(1, 10))])
DEEP = "[" * 100_000
HUGE = "1" * 5000
# The text, and what the message says after "text is not JSON: " or "text is not YAML: "
NO_JSON = [
    ("", "Expecting value"),
    (b"\x89PNG\r\n", r"it is no text in UTF-8, but begins with b'\x89PNG\r\n'"),
    (3, "the JSON object must be str"),
    (DEEP, "nested too deeply"),
    (HUGE, "4300 digits"),
    ('{"a": 1, "b": {"x": 1, "y": 2, "x": 1}}', "'x' occurs twice in one object"),
]
NO_YAML = [
    ("a: [", "expected the node content"),
    (b"\x89PNG\r\n", r"it is no text in UTF-8, but begins with b'\x89PNG\r\n'"),
    (3, "has no attribute"),
    (DEEP, "nested too deeply"),
    (HUGE, "4300 digits"),
    (LAUGHS, "there is an alias; write the value out"),
    ("a: !!int 010", "there is a tag"),
    ("a: 1\nb:\n  x: 1\n  y: 2\n  x: 1\n", "'x' occurs twice in one mapping"),
    ("1: a\n1: b", "1 occurs twice"),
    ("{[1]: 2}", "unhashable key"),
]


def test_what_is_not_understood_everywhere_is_refused_by_all_readers_alike(tmp_path):
    assert_refused(documents.from_json, [(text, f"text is not JSON: ... {says}") for text, says in NO_JSON])
    assert_refused(documents.from_yaml, [(text, f"text is not YAML: ... {says}") for text, says in NO_YAML])
    for read in (doorstep.SimulatorConfig.from_json, levels.Level.from_json, Evaluation.from_json):
        assert_refused(read, [(text, f"text is not JSON: ... {says}") for text, says in NO_JSON[-2:]])
    path = tmp_path / "a.json"
    for text, says in NO_JSON:
        if text != 3:
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
            for load in (doorstep.SimulatorConfig.load, levels.Level.load, levels.load_levels):
                assert_refused(load, [(path, f"{path}: text is not JSON: ... {says}")], argument="text")


def test_yaml_means_what_it_says():
    rows = [
        *(("12", 12), ("-3", -3), ("+0", 0), ("1.5", 1.5), ("1e-4", 1e-4), ("-.5E+2", -50.0), ("3.", 3.0)),
        *((".inf", math.inf), ("true", True), ("False", False), ("null", None), ("~", None), ("", None)),
        ("[1, {a: x}]", [1, {"a": "x"}]),
        # Numbers, truth values and dates of YAML 1.1 alone
        *((text, text) for text in ("010", "-007", "0o10", "0x1F", "0b11", "1_000", "1:30", "00.5", "1.2.3", "+")),
        *((text, text) for text in ("yes", "No", "on", "OFF", "y", "2020-01-01", "=", "<<")),
    ]
    for text, value in rows:
        found = documents.from_yaml(f"a: {text}")["a"]
        assert (found, type(found)) == (value, type(value)), text


def test_everything_comes_back_and_other_readers_find_the_same_texts():
    yaml, once = pytest.importorskip("yaml"), [1, 2.5, "x"]
    texts = ["", " a", "010", "1:30", "yes", "1e5", "1e-5", ".5", "12", "~", "0x1f", "<<", "true", "\u00fc", "a\nb"]
    values = {"a": once, "b": once, "texts": texts, "numbers": [1e-05, 1e300, -0.0, 7], "d": {"x": None, "y": True}}
    assert documents.from_yaml(documents.to_yaml(values)) == documents.from_json(documents.to_json(values)) == values
    texts = ["010", "1:30", "yes", "1e5", "2020-01-01", "0b1"]
    assert yaml.safe_load(documents.to_yaml({"a": texts})) == {"a": texts}


def test_parts_beyond_the_capacity_are_counted_before_any_is_made(monkeypatch):
    made = []
    monkeypatch.setattr(levels.Wall, "__post_init__", made.append)
    text = json.dumps({"doorstep": "level", "version": 1, "walls": [{}] * 1000, "spawns": [{"x": 0, "y": 0}]})
    with pytest.raises(doorstep.ArgumentError, match=r"^walls is .* 0 to 32 walls \(there are 1000\)"):
        levels.Level.from_json(text)
    assert not made
