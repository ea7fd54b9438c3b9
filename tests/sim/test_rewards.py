"""Rewards: 0.05 per metre of new progress, a quarter more with all other agents close, -0.005 otherwise. Beyond the
reference's: cubes that come nearer to buttons, and the exit; in levels and in place of theirs.

Those of whole episodes are in test_episodes.py.
"""

import numpy as np
import pytest
from tests.reference import constants as c
from tests.reference import rules
from tests.scenes import Scene, play, random_actions

import doorstep
from doorstep import EntityKind, Simulator
from doorstep.levels import Button, Cube, Door, GeneratedLevel, Level, Rewards, Room, Spawn, Wall, reference


def teleport(scene, *heights):
    """Places the agents at these y, side by side and far from all other bodies, and scores them in one idle step."""
    for agent, y in enumerate(heights):
        scene.place(agent, 100.0 + 5.0 * agent, y)
    scene.act().step()


BONUS, NONE = 0.0625, -0.005
# Where the agents have been, where they are now, and their rewards.
MOVES = [
    ((10.0, 10.5), (11.0, 10.5), (BONUS, NONE)),
    ((10.0, 12.99), (11.0, 2.0), (BONUS, NONE)),
    ((10.0, 13.01), (11.0, 2.0), (0.05, NONE)),
    ((10.0, 9.01), (11.0, 2.0), (BONUS, NONE)),
    ((10.0, 8.99), (11.0, 2.0), (0.05, NONE)),
    ((10.0, 16.0), (17.0, 16.5), (7 * BONUS, 0.5 * BONUS)),  # far apart before, close after: both have it
    ((10.0, 11.0, 20.0), (11.0, 12.0, 21.0), (0.05, 0.05, 0.05)),
    ((11.0, 12.0, 21.0), (20.5, 20.5, 22.0), (9.5 * BONUS, 8.5 * BONUS, BONUS)),
    ((10.0,), (11.0,), (0.05,)),
    ((79.0, 60.0), (85.0, 60.0), (0.05, NONE)),  # progress ends at 80
]


@pytest.mark.parametrize(("before", "after", "rewards"), MOVES)
def test_progress_is_rewarded_per_metre_and_more_if_all_others_have_got_as_far(before, after, rewards):
    scene = Scene(num_agents=len(before))
    teleport(scene, *before)
    teleport(scene, *after)
    assert scene.rewards[0, :, 0] == pytest.approx(rewards, rel=1e-4)
    reached = np.minimum(np.maximum(before, after), 80)
    assert scene.agent_max_y[0] == pytest.approx(reached)
    assert scene.self_observations[0, :, 5] == pytest.approx(reached / 40)
    for y in (5.0, 9.0, 1000.0):  # what was reached before is not rewarded again
        teleport(scene, *np.minimum(y, reached))
        assert (scene.rewards[0, :, 0] == np.float32(NONE)).all()
    assert scene.agent_max_y[0] == pytest.approx(reached)


def test_what_is_not_finite_is_no_progress():
    for value in (np.nan, np.inf, -np.inf):
        for agent in range(2):
            scene = Scene()
            teleport(scene, 10.0, 10.5)
            largest = scene.agent_max_y.copy()
            scene.body_positions[0, agent, 1] = value
            scene.act().step()
            assert scene.rewards[0, :, 0] == pytest.approx(c.SLACK_REWARD)
            np.testing.assert_array_equal(scene.agent_max_y, largest)
        scene = Scene()
        teleport(scene, 10.0, 10.5)
        scene.agent_max_y[0, 0] = value
        teleport(scene, 11.0, 11.0)
        assert scene.rewards[0, :, 0] == pytest.approx([c.SLACK_REWARD, 0.05 * 0.5])


# ---- Other terms

NOTHING = {"progress": 0.0, "idle": 0.0}
APPROACH = Rewards(**NOTHING, cube_approach=0.25)
EXIT = Rewards(**NOTHING, exit=3.0)
CROWDED = Level(
    walls=[Wall(0, 60, 40, 1)],
    doors=[Door(-9, 30), Door(0, 30, persistent=False)],
    buttons=[Button(-6, 8, 0), Button(-2, 9, 0), Button(2, 8, 0), Button(6, 9, 0), Button(-6, 20, 1), Button(6, 20, 1)],
    cubes=[Cube(x, y) for x in (-9.0, -3.0, 3.0, 9.0) for y in (5.0, 11.0)],
    spawns=[Spawn((4 * i - 14.4, 4 * i - 13.6), (0, 1)) for i in range(8)],
    rooms=[Room(0, 12, 0), Room(12, 33, 1)],
    rewards=APPROACH,
)
MANY_BUTTONS = CROWDED.replace(doors=[Door(-9, 30, persistent=False), Door(0, 30, persistent=False)])
FEW_CUBES = MANY_BUTTONS.replace(cubes=[Cube(-3, 5), Cube(4, 12)])


def metres_away(sim, counted):
    """float64 [N]: between cubes and the buttons of these doors, bool [N, D]."""
    state = sim.state
    cubes = np.where(state.body_kinds[:, :, None] == EntityKind.CUBE, state.body_positions[:, :, :2], np.nan)
    buttons, doors = state.button_positions[:, :, :2], state.button_doors[:]
    rows = zip(cubes, buttons, doors, np.abs(buttons).max(axis=2) < 1e6, counted, strict=True)
    return np.array([rules.metres_to_buttons(c, b[u], d[u], of_door) for c, b, d, u, of_door in rows])


@pytest.mark.parametrize("level", [None, CROWDED, MANY_BUTTONS, FEW_CUBES], ids=["reference", "two", "many", "few"])
def test_cubes_that_come_nearer_are_rewarded_as_the_reference_says(level):
    for num_agents in (1, 8):
        played = {"reward": APPROACH} if level is None else {"levels": level}
        sim = Simulator(8, seed=5, num_agents=num_agents, **played)
        cubes = slice(num_agents, None)
        speeds = np.random.default_rng(1).uniform(-6, 6, (8, sim.state.body_linear_velocities.shape[1], 2))
        moved = 0
        for step, actions in enumerate(random_actions(3, 8, 8, num_agents)):
            if step % 4 == 0:
                sim.state.body_linear_velocities[:, cubes, :2] = speeds[:, cubes] * (-1) ** (step // 4)
            sim.actions[:] = actions
            counted = sim.state.door_persistent[:] == 0
            before = metres_away(sim, counted)
            sim.step()
            metres = before - metres_away(sim, counted)
            expected = np.repeat(0.25 * metres[:, None], num_agents, axis=1)
            np.testing.assert_allclose(sim.rewards[:, :, 0], expected, atol=2e-5)
            moved += int((np.abs(metres) > 0.01).sum())
        assert moved > 10


def test_cubes_cost_on_the_way_back_what_they_earned_also_while_the_door_is_open():
    parts = {"doors": [Door(0, 30, persistent=False)], "buttons": [Button(0, 10, 0)], "cubes": [Cube(0, 6)]}
    spawns = [Spawn(-8, 0), Spawn(8, 0)]
    sim = Simulator(1, levels=Level(**parts, spawns=spawns, rooms=[Room(0, 30, 0)], rewards=APPROACH))
    earned, opened = 0.0, False
    for speed in (8,) * 12 + (-8,) * 14:
        sim.state.body_linear_velocities[0, 2] = (0, speed, 0)
        sim.step()
        earned += float(sim.rewards[0, 0, 0])
        opened |= bool(sim.state.door_open[0, 0])
    covered = 10 - (1.5 + 0.65)
    assert opened
    assert sim.state.body_positions[0, 2, 1] < covered - 0.5
    assert earned == pytest.approx(0.25 * (sim.state.body_positions[0, 2, 1] - 6.0), abs=1e-5)


def test_an_agent_is_rewarded_once_for_leaving_the_last_room():
    for num_agents, level, end in ((1, None, 40), (2, None, 40), (8, None, 40), (2, CROWDED.replace(rewards=EXIT), 33)):
        sim = Simulator(1, num_agents=num_agents, **{"reward": EXIT} if level is None else {"levels": level})
        seen = []
        for y in (end - 0.1, end + 0.1, end - 1, end + 5):
            for agent in range(num_agents):
                sim.state.body_positions[0, agent] = (100.0 + 5 * agent, 20.0 if agent else y, 0.0)
            sim.actions[:] = doorstep.NEUTRAL_ACTION
            sim.step()
            seen.append(sim.rewards[0, :, 0].tolist())
        others = [0.0] * (num_agents - 1)
        assert seen == [[0.0, *others], [3.0, *others], [0.0, *others], [0.0, *others]]


def test_rewards_replace_those_of_every_level_that_is_played():
    played = [reference(), GeneratedLevel(rewards=Rewards(progress=7.0)), CROWDED]
    given = Simulator(24, levels=played, reward=Rewards(progress=0.0, idle=-2.0))
    assert given.reward == Rewards(progress=0.0, idle=-2.0)
    given.actions[:] = doorstep.NEUTRAL_ACTION
    given.step()
    assert set(given.level_indices[:, 0].tolist()) == {0, 1, 2}
    assert set(given.rewards[:].ravel().tolist()) <= {0.0, -2.0}  # without and with progress
    assert (given.rewards[:].reshape(24, -1) == -2.0).any(axis=1).sum() > 20


def test_rewards_change_nothing_else_in_a_world_than_their_sums():
    plain, same, other = (Simulator(32, seed=3, reward=reward) for reward in (None, Rewards(), Rewards(idle=-1.0)))
    play(random_actions(4, 30, 32, 2), plain, same, other)
    assert plain.world_hashes().tolist() == same.world_hashes().tolist() != other.world_hashes().tolist()
    for name, tensor in plain.tensors.items():
        assert name in ("rewards", "episode_returns") or (tensor[:] == other.tensors[name][:]).all()
