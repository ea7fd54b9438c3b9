"""What may be given as levels, and worlds that are made with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import doorstep
from doorstep.levels import GeneratedLevel, curated, reference, save_levels
from doorstep.levels.choice import find_levels
from doorstep.recording import Recording, RecordingWriter

ONE, OTHER = (curated()[name] for name in ("one door", "one cube"))


def test_names_files_levels_and_several_of_them(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    unnamed = reference().replace(name="")
    save_levels(path, [ONE, unnamed])
    assert find_levels("reference") == {"reference": reference()}
    assert find_levels("curated") == curated()
    assert find_levels("one door") == {"one door": ONE}
    assert find_levels(ONE) == find_levels([ONE]) == {"one door": ONE}
    assert find_levels(path) == find_levels(str(path)) == {"one door": ONE, "level 2": unnamed}
    assert find_levels({"a": ONE, "b": ONE}) == {"a": ONE, "b": ONE}
    several = find_levels(["reference", ONE, str(path), ONE])
    assert list(several) == ["reference", "one door", "one door (2)", "level 4", "one door (3)"]
    kinds = find_levels("room_types")
    assert len(kinds) > 2
    assert {name: level.room_types for name, level in kinds.items() if isinstance(level, GeneratedLevel)} == {
        name: (name,) * 3 for name in kinds
    }


def test_names_become_different() -> None:
    levels = [ONE.replace(name=name) for name in ("a", "a (2)", "a", "", "a")]
    assert list(find_levels(levels)) == ["a", "a (2)", "a (3)", "level 4", "a (4)"]
    assert len(find_levels([ONE] * 100_000)) == 100_000  # in linear time


@pytest.mark.parametrize(
    ("levels", "says"),
    [
        ("onedoor", "(did you mean 'one door'?)"),
        ("curatde", "levels is 'curatde'; it must be 'reference', 'room_types', 'curated', the name of a curated"),
        ([], "levels is []"),
        ({}, "levels is {}"),
        (None, "levels is None"),
        (3, "levels is 3"),
        ([ONE, 3], "levels is 3"),
        ([[ONE]], "a sequence of these"),
        ({"": ONE}, "a mapping with texts as names"),
        ({"a": "curated"}, "levels is 'curated'"),
    ],
)
def test_anything_else_is_refused(levels: Any, says: str) -> None:
    for use in (find_levels, lambda levels: doorstep.Simulator(1, levels=levels)):
        with pytest.raises(doorstep.ArgumentError) as caught:
            use(levels)
        assert says in str(caught.value)
        assert caught.value.argument == "levels"


def observed(sim: doorstep.Simulator, steps: int = 30) -> list[bytes]:
    actions = np.random.default_rng(1).integers(0, (4, 8, 5, 2), (steps, *sim.actions.shape))
    found = []
    for action in actions:
        sim.actions = action
        sim.step()
        names = ("lidar", "rewards", "level_indices")
        found.append(b"".join(np.asarray(sim.tensors[name]).tobytes() for name in names))
    return found


def test_worlds_are_made_with_levels() -> None:
    levels: list[Any] = ["reference", ONE, OTHER]
    with doorstep.Simulator(64, seed=3, levels=levels, level_weights=(0.5, 0, 0.5), episode_length=9) as sim:
        assert sim.config.max_levels == 3
        assert set(sim.level_indices.to_numpy()[:, 0]) == {0, 2}
        found = observed(sim)
    with doorstep.Simulator(64, seed=3, max_levels=3, episode_length=9) as sim:
        sim.set_levels([reference(), ONE, OTHER], (0.5, 0, 0.5))
        sim.reset()
        assert observed(sim) == found


def test_the_references_levels_need_no_table() -> None:
    with doorstep.Simulator(4, levels="reference") as sim, doorstep.Simulator(4) as plain:
        assert sim.config == plain.config


def test_room_for_more() -> None:
    with doorstep.Simulator(2, levels=ONE, max_levels=5) as sim:
        assert sim.config.max_levels == 5
        assert sim.level_indices.to_numpy().tolist() == [[0], [0]]
    with pytest.raises(doorstep.ArgumentError, match=r"max_levels is 1; it must be 0, or at least .* `levels`, 2"):
        doorstep.Simulator(2, levels=[ONE, OTHER], max_levels=1)


@pytest.mark.parametrize(
    ("rules", "argument"),
    [
        ({"level_weights": (1,)}, "level_weights"),
        ({"levels": [ONE, OTHER], "level_weights": (1,)}, "level_weights"),
        ({"levels": [ONE, OTHER], "level_weights": (0, 0)}, "level_weights"),
        ({"levels": ONE, "num_agents": 5}, "levels"),
    ],
)
def test_what_does_not_fit_is_refused(rules: dict[str, Any], argument: str) -> None:
    with pytest.raises(doorstep.ArgumentError) as caught:
        doorstep.Simulator(3, **rules)
    assert caught.value.argument == argument


def test_a_recording_has_the_levels(tmp_path: Path) -> None:
    path = tmp_path / "run.rec"
    with doorstep.Simulator(4, seed=1, levels=[ONE, OTHER]) as sim, RecordingWriter(path, sim) as writer:
        for _ in range(12):
            writer.step()
    with Recording(path) as recording:
        recording.replay()  # raises where a world differs
        assert (recording.num_steps, recording.config.max_levels) == (12, 2)
