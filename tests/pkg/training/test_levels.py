"""The levels of a run: where they come from, and which episodes in them succeed."""

from __future__ import annotations

from pathlib import Path

import pytest

import doorstep

torch = pytest.importorskip("torch")

from tests.pkg.training.runs import small  # noqa: E402

from doorstep.evaluation.arenas import Arena  # noqa: E402
from doorstep.levels import GeneratedLevel, Level, Spawn, Wall, curated, save_levels  # noqa: E402
from doorstep.levels.files import AnyLevel  # noqa: E402
from doorstep.policy import load_policy  # noqa: E402
from doorstep.training import Trainer, resume, train  # noqa: E402
from doorstep.training.levels import TrainingLevels, arenas_of  # noqa: E402
from doorstep.training.run import CHECKPOINT  # noqa: E402

ONE_DOOR = curated()["one door"]


def test_the_references_levels_need_no_table() -> None:
    assert arenas_of(small()) == [Arena("reference", None)]
    assert Trainer(small()).worlds.sim.config.max_levels == 0


@pytest.mark.parametrize(("name", "count"), [("curated", 20), ("room_types", 4)])
def test_levels_have_names(name: str, count: int) -> None:
    arenas = arenas_of(small(f"levels={name}"))
    assert len({arena.name for arena in arenas}) == count
    assert Trainer(small(f"levels={name}")).worlds.sim.config.max_levels == count


def test_levels_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "two.json"
    save_levels(path, [ONE_DOOR, GeneratedLevel()])
    assert [arena.name for arena in arenas_of(small(f"levels={path}"))] == ["one door", "level 2"]


def test_a_file_that_does_not_exist_is_named() -> None:
    with pytest.raises(doorstep.ArgumentError, match=r"levels is .none\.json.; it must be .* a file that can be read"):
        Trainer(small("levels=none.json"))


def test_levels_for_fewer_agents_are_refused() -> None:
    with pytest.raises(doorstep.ArgumentError, match="has 2 spawns; it must have at least 3"):
        Trainer(small("levels=curated", "simulator.num_agents=3"))


def test_a_level_in_which_nothing_counts_as_success_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "open.json"
    spawns = [Spawn(x=-3, y=2), Spawn(x=3, y=2)]
    save_levels(path, [Level(walls=[Wall(x=0, y=9, size_x=9, size_y=1)], spawns=spawns, name="open")])
    with pytest.raises(doorstep.ArgumentError, match="level 'open' has neither a goal nor a room with a door"):
        Trainer(small(f"levels={path}"))


def test_success_is_the_goal_or_all_agents_beyond_the_last_door() -> None:
    without_goal = ONE_DOOR.replace(goal=None)
    (end,) = (room.end for room in without_goal.rooms if room.door is not None)
    names = ("goal", "doors", "generated")
    played: tuple[AnyLevel, ...] = (ONE_DOOR, without_goal, GeneratedLevel())
    levels = TrainingLevels([Arena(*pair) for pair in zip(names, played, strict=True)], torch.device("cpu"))
    rows = [  # level, ended, terminated, largest y of both agents, succeeded
        (0, True, True, (1.0, 1.0), True),
        (0, True, False, (99.0, 99.0), False),
        (0, False, False, (99.0, 99.0), False),
        (1, True, False, (end + 0.1, end + 0.1), True),
        (1, True, False, (end + 0.1, end - 0.1), False),
        (1, False, False, (end + 9, end + 9), False),
        (2, True, False, (40.1, 40.1), True),
        (2, True, False, (39.9, 40.1), False),
        (2, True, False, (70.0, 40.2), True),
    ]
    level, ended, terminated, largest_y, succeeded = (list(column) for column in zip(*rows, strict=True))
    returns = torch.arange(18.0).reshape(9, 2)
    found = levels.outcomes(
        torch.tensor(level), torch.tensor(ended), torch.tensor(terminated), torch.tensor(largest_y), returns
    )
    for index in range(3):
        of_level = [row for row, one in enumerate(level) if one == index]
        assert found.episodes[index] == sum(ended[row] for row in of_level)
        assert found.successes[index] == sum(succeeded[row] for row in of_level)
        assert found.returns[index] == sum(2 * row + 0.5 for row in of_level if ended[row])


def test_digests_tell_levels_apart() -> None:
    def digest(*levels: Level) -> bytes:
        arenas = [Arena(str(number), level) for number, level in enumerate(levels)]
        return bytes(TrainingLevels(arenas, torch.device("cpu")).digest.tolist())

    other = curated()["two buttons"]
    assert digest(ONE_DOOR, other) == digest(ONE_DOOR, other)
    assert len({digest(ONE_DOOR, other), digest(other, ONE_DOOR), digest(ONE_DOOR)}) == 3


def test_what_was_trained_plays_levels_and_the_references(tmp_path: Path) -> None:
    """Levels leave the observations as they are, so one network plays all of them."""
    train(tmp_path, config=small("levels=curated", "num_updates=1"))
    policy = load_policy(tmp_path / CHECKPOINT)
    for levels, count in (("curated", 20), ("reference", 1)):
        evaluation = doorstep.evaluate({"trained": policy}, levels=levels, episodes=1, episode_length=10, num_threads=1)
        assert [score.episodes for score in evaluation.scores] == [1] * count


def test_a_policy_for_another_number_of_agents_is_refused(tmp_path: Path) -> None:
    train(tmp_path, config=small("levels=room_types", "simulator.num_agents=3", "num_updates=1"))
    policy = load_policy(tmp_path / CHECKPOINT)
    with pytest.raises(doorstep.ArgumentError, match=r"reads 97 numbers; agents observe 94"):
        doorstep.evaluate({"trained": policy}, levels="curated", episodes=1)


def test_a_run_without_levels_is_not_resumed_with_some(tmp_path: Path) -> None:
    train(tmp_path, config=small("num_updates=1"))
    with pytest.raises(doorstep.StateError, match="does not fit: levels"):
        resume(tmp_path, levels="curated", num_updates=2)
