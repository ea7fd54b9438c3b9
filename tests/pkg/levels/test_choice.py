"""What may be given as levels, and worlds that are made with them."""

import numpy as np
import pytest
from tests.refuses import assert_refused

import doorstep
from doorstep._native._generated import RoomType
from doorstep.levels import GeneratedLevel, curated, reference, save_levels
from doorstep.levels.choice import find_levels
from doorstep.recording import Recording, RecordingWriter

ONE, OTHER = (curated()[name] for name in ("one door", "one cube"))


def test_names_files_levels_and_several_of_them(tmp_path):
    path, unnamed = tmp_path / "mine.json", reference().replace(name="")
    save_levels(path, [ONE, unnamed])
    assert find_levels("reference") == {"reference": reference()}
    assert find_levels("curated") == curated()
    assert find_levels("one door") == find_levels(ONE) == find_levels([ONE]) == {"one door": ONE}
    assert find_levels(path) == find_levels(str(path)) == {"one door": ONE, "level 2": unnamed}
    assert find_levels({"a": ONE, "b": ONE}) == {"a": ONE, "b": ONE}
    several = find_levels(["reference", ONE, str(path), ONE])
    assert list(several) == ["reference", "one door", "one door (2)", "level 4", "one door (3)"]
    kinds = find_levels("room_types")
    assert set(kinds) == {member.name.lower() for member in RoomType} - {"any"}
    assert all(level == GeneratedLevel(room_types=(name,) * 3) for name, level in kinds.items())
    levels = [ONE.replace(name=name) for name in ("a", "a (2)", "a", "", "a")]
    assert list(find_levels(levels)) == ["a", "a (2)", "a (3)", "level 4", "a (4)"]
    assert len(find_levels([ONE] * 30_000)) == 30_000  # in linear time


def test_anything_else_is_refused():
    rows = [
        ("onedoor", "(did you mean 'one door'?)"),
        ("curatde", "levels is 'curatde'; it must be 'reference', 'room_types', 'curated', the name of a curated"),
        ([], "levels is []"),
        (None, "levels is None"),
        ([ONE, 3], "levels is 3"),
        ([[ONE]], "a sequence of these"),
    ]
    for use in (find_levels, lambda levels: doorstep.Simulator(1, levels=levels)):
        assert_refused(use, rows, argument="levels")
        mappings = [({}, "levels is {}"), ({"": ONE}, "texts as names"), ({"a": "curated"}, "levels is 'curated'")]
        assert_refused(use, [({"levels": mapping}, says) for mapping, says in mappings])
    rows = [
        ({"level_weights": (1,)}, "level_weights"),
        ({"levels": [ONE, OTHER], "level_weights": (1,)}, "level_weights"),
        ({"levels": [ONE, OTHER], "level_weights": (0, 0)}, "level_weights"),
        ({"levels": ONE, "num_agents": 5}, "levels"),
        ({"levels": [ONE, OTHER], "max_levels": 1}, "max_levels is 1; it must be 0, or at least ... `levels`, 2"),
    ]
    assert_refused(lambda **rules: doorstep.Simulator(3, **rules), rows)


def played(sim, steps=30):
    """The hashes of the worlds and their levels after these steps."""
    for action in np.random.default_rng(1).integers(0, (4, 8, 5, 2), (steps, *sim.actions.shape)):
        sim.actions = action
        sim.step()
    return sim.world_hashes().tolist(), sim.level_indices.copy_to_host().tolist()


def test_worlds_are_made_with_levels(tmp_path):
    levels, path = ["reference", ONE, OTHER], tmp_path / "run.rec"
    with doorstep.Simulator(64, seed=3, levels=levels, level_weights=(0.5, 0, 0.5), episode_length=9) as sim:
        assert (sim.config.max_levels, sim.levels) == (3, (reference(), ONE, OTHER))
        assert set(sim.level_indices.to_numpy()[:, 0]) == {0, 2}
        with RecordingWriter(path, sim):
            pass
        found = played(sim)
    with Recording(path) as recording:
        assert (recording.config.max_levels, recording.same_version_only) == (3, True)
        recording.replay()  # raises where a world differs
    with doorstep.Simulator(64, seed=3, max_levels=3, episode_length=9) as sim:
        sim.set_levels([reference(), ONE, OTHER], (0.5, 0, 0.5))
        sim.reset()
        assert played(sim) == found
        sim.set_levels([OTHER])  # the others of the table are still played where weights say so
        assert sim.levels == (OTHER, ONE, OTHER)


def test_the_references_levels_need_no_table_and_others_may_have_room_for_more():
    with doorstep.Simulator(4, levels="reference") as sim, doorstep.Simulator(4) as plain:
        assert sim.config == plain.config
    with doorstep.Simulator(2, levels=ONE, max_levels=5) as sim:
        assert (sim.config.max_levels, sim.level_indices.to_numpy().tolist()) == (5, [[0], [0]])
    with pytest.raises(doorstep.ArgumentError, match="levels"), doorstep.Simulator(2) as sim:
        sim.set_levels([ONE])
