"""The levels of a run: where they come from, and which episodes in them succeed."""

import pytest
from tests.refuses import refuses

import doorstep

torch = pytest.importorskip("torch")

from tests.pkg.training.runs import small  # noqa: E402

from doorstep.evaluation.arenas import Arena  # noqa: E402
from doorstep.levels import GeneratedLevel, Level, Spawn, Wall, curated, save_levels  # noqa: E402
from doorstep.policy import load_policy  # noqa: E402
from doorstep.training import Trainer, resume, train  # noqa: E402
from doorstep.training.levels import TrainingLevels, arenas_of  # noqa: E402
from doorstep.training.run import CHECKPOINT  # noqa: E402

ONE_DOOR = curated()["one door"]


def test_levels_have_names_or_files_and_the_references_need_no_table(tmp_path):
    assert arenas_of(small()) == [Arena("reference", None)]
    save_levels(tmp_path / "two.json", [ONE_DOOR, GeneratedLevel()])
    names = {"curated": list(curated()), f"{tmp_path}/two.json": ["one door", "level 2"], "reference": ["reference"]}
    names["room_types"] = ["single_button", "double_button", "cube_blocking", "cube_buttons"]
    for levels, expected in names.items():
        assert [arena.name for arena in arenas_of(small(f"levels={levels}"))] == expected
        count = 0 if levels == "reference" else len(expected)
        trainer = Trainer(small(f"levels={levels}"))
        assert trainer.worlds.sim.config.max_levels == count
        assert any(name.startswith("levels.") for name in trainer.checkpoint().tensors) == bool(count)
    record = Trainer(small()).update()
    assert (record.success, record.levels) == (None, {})


def test_levels_that_cannot_be_trained_on_are_refused(tmp_path):
    spawns = [Spawn(x=-3, y=2), Spawn(x=3, y=2)]
    save_levels(tmp_path / "a.json", [Level(walls=[Wall(x=0, y=9, size_x=9, size_y=1)], spawns=spawns, name="open")])
    for changes, message in (
        (("levels=none.json",), r"levels is .none\.json.; it must be .* a file that can be read"),
        (("levels=curated", "simulator.num_agents=3"), "has 2 spawns; it must have at least 3"),
        ((f"levels={tmp_path}/a.json",), "level 'open' has neither a goal nor a room with a door"),
    ):
        refuses(message, lambda changes=changes: Trainer(small(*changes)))


def test_success_is_the_goal_or_all_agents_beyond_the_last_door():
    without_goal = ONE_DOOR.replace(goal=None)
    (end,) = (room.end for room in without_goal.rooms if room.door is not None)
    arenas = [Arena("goal", ONE_DOOR), Arena("doors", without_goal), Arena("generated", GeneratedLevel())]
    levels = TrainingLevels(arenas, torch.device("cpu"))
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
    given = [torch.tensor(column) for column in (level, ended, terminated, largest_y)]
    found = levels.outcomes(*given, torch.arange(18.0).reshape(9, 2))
    last_room = torch.tensor([2, 2, 0]), torch.tensor([[26.0, 27.0], [26.0, 26.0], [99.0, 0.0]])
    assert levels.in_last_room(*last_room).tolist() == [True, False, True]
    for index in range(3):
        of_level = [row for row, one in enumerate(level) if one == index]
        assert found.episodes[index] == sum(ended[row] for row in of_level)
        assert found.successes[index] == sum(succeeded[row] for row in of_level)
        assert found.returns[index] == sum(2 * row + 0.5 for row in of_level if ended[row])


def test_what_was_trained_plays_other_levels_with_as_many_agents_and_a_run_keeps_its_own(tmp_path):
    """Levels leave the observations as they are, so one network plays all of them."""
    train(tmp_path / "2", config=small("levels=curated", "num_updates=1"))
    for levels, count in (("curated", 20), ("reference", 1)):
        policies = {"trained": tmp_path / "2" / CHECKPOINT}
        evaluation = doorstep.evaluate(policies, levels=levels, episodes=1, episode_length=10, num_threads=1)
        assert [score.episodes for score in evaluation.scores] == [1] * count
    train(tmp_path / "3", config=small("levels=room_types", "simulator.num_agents=3", "num_updates=1"))
    with pytest.raises(doorstep.ArgumentError, match=r"reads 97 numbers; agents observe 94"):
        doorstep.evaluate({"trained": load_policy(tmp_path / "3")}, levels="curated", episodes=1)
    one, two = list(curated().values())[:2]
    save_levels(tmp_path / "levels.json", [one, two])
    train(tmp_path / "run", config=small(f"levels={tmp_path / 'levels.json'}", "num_updates=1"))
    (tmp_path / "levels.json").unlink()
    assert resume(tmp_path / "run", num_updates=2).config.levels == (one, two)
    train(tmp_path / "none", config=small("num_updates=1"))
    changed, other = "the levels have changed since it was written", "does not fit: levels"
    for run, levels, message in (("run", [two, one], changed), ("run", one, other), ("none", "curated", other)):
        refuses(message, resume, tmp_path / run, error=doorstep.StateError, levels=levels, num_updates=3)
