"""EscapeRoomVectorEnv: episodes in each autoreset mode, views of agents, what callers keep, seeds, bad input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.envs.histories import PARTS, Array, History, actions_of, equal, some_worlds

import doorstep

gymnasium: Any = pytest.importorskip("gymnasium")

from gymnasium.vector import AutoresetMode, SyncVectorEnv  # noqa: E402

from doorstep.envs import EscapeRoomEnv, EscapeRoomVectorEnv  # noqa: E402

MODES = ("next_step", "same_step", "disabled")
VIEWS = ("joint", "rows")
WORLDS, AGENTS, LENGTH = 5, 3, 7

Make = Callable[..., Any]


def make(num_worlds: int = WORLDS, **arguments: Any) -> Any:
    """An environment of so many worlds, whichever view it has of them."""
    arguments = {"num_agents": AGENTS, "episode_length": LENGTH, "num_threads": 1, "seed": 0, **arguments}
    agents = arguments["num_agents"] if arguments.get("agents") == "rows" else 1
    return EscapeRoomVectorEnv(num_worlds * agents, **arguments)


def by_row(values: Array, view: str) -> Array:
    """[N, A, ...] as rows."""
    return values.reshape(-1, *values.shape[2:]) if view == "rows" else values


def reward_by_row(values: Array, view: str) -> Array:
    return values.reshape(-1) if view == "rows" else values.mean(1)


def flags_by_row(values: Array, view: str, num_agents: int = AGENTS) -> Array:
    return np.repeat(values, num_agents) if view == "rows" else values


def observed(told: dict[str, Array], kind: str, view: str) -> Any:
    """What an environment shows of a plain simulator's observations."""
    if kind != "by_name":
        return by_row(told["observations"], view)
    return {name: by_row(told[name], view) for name in PARTS}


# ---- Episodes ----


@pytest.mark.parametrize("kind", [doorstep.OBSERVATIONS, "by_name"])
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("mode", MODES)
def test_every_history_is_that_of_a_plain_simulator(mode: str, view: str, kind: str) -> None:
    """Steps, resets of some worlds, of all and with a seed, in random order: episodes of worlds end at other times."""
    env = make(agents=view, observations=kind, autoreset_mode=mode, seed=11)
    generator = np.random.default_rng(5)
    actions = actions_of(3, 90, WORLDS, AGENTS)
    history = History(mode, WORLDS, seed=11, num_agents=AGENTS, episode_length=LENGTH)
    equal(env.reset()[0], observed(history.worlds.observe(), kind, view))
    times_ended = set()
    for step in range(90):
        if mode == "disabled" and history.ended.any():
            mask = history.ended.copy()
            found, _ = env.reset(options={"reset_mask": flags_by_row(mask, view)})
            equal(found, observed(history.reset(mask), kind, view))
        if step % 8 == 3:
            worlds = some_worlds(generator, WORLDS)
            found, info = env.reset(options={"reset_mask": flags_by_row(worlds, view)})
            equal(found, observed(history.reset(worlds), kind, view))
            assert info == {}
        if step == 40:
            equal(env.reset()[0], observed(history.reset(), kind, view))
        if step == 60:
            history = History(mode, WORLDS, seed=77, num_agents=AGENTS, episode_length=LENGTH)
            equal(env.reset(seed=77)[0], observed(history.worlds.observe(), kind, view))
        found, rewards, terminations, truncations, info = env.step(actions[step].reshape(env.action_space.shape))
        told = history.step(actions[step])
        equal(found, observed(told.observations, kind, view))
        assert rewards.dtype == np.float32
        np.testing.assert_allclose(rewards, reward_by_row(told.rewards, view), rtol=1e-6, atol=1e-9)
        ended = flags_by_row(told.ended, view)
        equal(truncations, ended)
        equal(terminations, np.zeros_like(ended))
        _check_info(info, history, told, mode, view, kind)
        times_ended |= {(world, step) for world in np.flatnonzero(told.ended)}
    assert len({step for _, step in times_ended}) > len(times_ended) / WORLDS + 3, "the episodes end at the same time"
    env.close()


def _check_info(info: dict[str, Any], history: History, told: Any, mode: str, view: str, kind: str) -> None:
    ended = flags_by_row(told.ended, view)
    if not ended.any():
        assert info == {}
        return
    if mode == "same_step":
        assert set(info) == {"final_obs", "_final_obs", "final_info", "_final_info"}
        equal(info["_final_obs"], ended)
        equal(info["_final_info"], ended)
        assert history.final is not None
        _check_final_observation(info["final_obs"], observed(history.final, kind, view), ended)
        info = info["final_info"]
    assert set(info) == {"episode_returns", "_episode_returns", "episode_lengths", "_episode_lengths"}
    equal(info["_episode_returns"], ended)
    equal(info["_episode_lengths"], ended)
    assert (info["episode_returns"].dtype, info["episode_lengths"].dtype) == (np.float32, np.int32)
    np.testing.assert_allclose(info["episode_returns"][ended], reward_by_row(told.returns, view)[ended], rtol=1e-5)
    np.testing.assert_array_equal(info["episode_lengths"][ended], flags_by_row(told.lengths, view)[ended])


def _check_final_observation(found: Any, expected: Any, ended: Array) -> None:
    if isinstance(expected, dict):
        for name in expected:
            _check_final_observation(found[name], expected[name], ended)
    else:
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found[ended], expected[ended])
        assert not found[~ended].any()


@pytest.mark.parametrize("mode", MODES)
def test_it_is_gymnasiums_vector_of_single_environments(mode: str) -> None:
    """Sub-environment i of both is global world i of one seed."""
    rules: dict[str, Any] = {"num_agents": 2, "episode_length": LENGTH, "num_threads": 1}
    made = AutoresetMode[mode.upper()]
    singles = SyncVectorEnv(
        [lambda world=world: EscapeRoomEnv(world_offset=world, **rules) for world in range(WORLDS)], autoreset_mode=made
    )
    env = EscapeRoomVectorEnv(WORLDS, autoreset_mode=made, **rules)
    assert (env.observation_space, env.action_space) == (singles.observation_space, singles.action_space)
    equal(env.reset(seed=9)[0], singles.reset(seed=[9] * WORLDS)[0])
    for step, actions in enumerate(actions_of(4, 40, WORLDS, 2).reshape(40, WORLDS, -1)):
        if step % 6 == 2:
            mask = some_worlds(np.random.default_rng(step), WORLDS)
            equal(env.reset(options={"reset_mask": mask})[0], singles.reset(options={"reset_mask": mask})[0])
        found, expected = env.step(actions), singles.step(actions)
        equal(found[0], expected[0])
        np.testing.assert_array_equal(found[1], expected[1])
        equal(found[2], expected[2])
        equal(found[3], expected[3])
        _compare_info(found[4], expected[4])
        ended = found[2] | found[3]
        if mode == "disabled" and ended.any():
            equal(env.reset(options={"reset_mask": ended})[0], singles.reset(options={"reset_mask": ended})[0])
    env.close()
    singles.close()


def _compare_info(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert set(found) == set(expected)
    for name, value in found.items():
        if isinstance(value, dict):
            _compare_info(value, expected[name])
            continue
        where = expected["_" + name.removeprefix("_")]
        for row in np.flatnonzero(where):
            np.testing.assert_array_equal(value[row], expected[name][row])


def test_episode_lengths_restart_after_the_step_that_begins_an_episode() -> None:
    """With next_step an episode of L steps takes L + 1 calls."""
    env = make(autoreset_mode="next_step")
    env.reset()
    idle = np.zeros(env.action_space.shape, int)
    ends = [step for step in range(30) if env.step(idle)[3].all()]
    assert ends == [LENGTH - 1 + k * (LENGTH + 1) for k in range(3)]
    env.close()


def test_a_step_that_begins_an_episode_ignores_its_actions() -> None:
    first, second = make(seed=3), make(seed=3)
    first.reset()
    second.reset()
    for step, actions in enumerate(actions_of(1, 25, WORLDS, AGENTS).reshape(25, WORLDS, -1)):
        other = np.zeros_like(actions) if step % (LENGTH + 1) == LENGTH else actions
        equal(first.step(actions)[0], second.step(other)[0])
    first.close()
    second.close()


# ---- Views ----


@pytest.mark.parametrize("num_agents", [1, 2, 5])
def test_rows_are_the_agents_of_joint_worlds(num_agents: int) -> None:
    joint, rows = (make(agents=view, num_agents=num_agents, seed=8) for view in VIEWS)
    assert rows.num_envs == WORLDS * num_agents
    assert rows.single_observation_space.shape == joint.single_observation_space.shape[-1:]
    assert rows.single_action_space.nvec.tolist() == list(doorstep.ACTIONS)
    assert joint.single_action_space.nvec.tolist() == list(doorstep.ACTIONS) * num_agents
    equal(rows.reset()[0], joint.reset()[0].reshape(rows.num_envs, -1))
    for actions in actions_of(2, 20, WORLDS, num_agents):
        by_world = joint.step(actions.reshape(WORLDS, -1))
        by_agent = rows.step(actions.reshape(-1, 4))
        equal(by_agent[0], by_world[0].reshape(rows.num_envs, -1))
        np.testing.assert_allclose(by_agent[1].reshape(WORLDS, -1).mean(1), by_world[1], rtol=1e-6, atol=1e-7)
        equal(by_agent[3], np.repeat(by_world[3], num_agents))
    joint.close()
    rows.close()


def test_spaces_of_all_rows_are_made_when_they_are_read() -> None:
    """They fill more memory than the observations."""
    env = make()
    assert not {"observation_space", "action_space"} & set(vars(env))
    assert env.observation_space is env.observation_space
    assert gymnasium.wrappers.vector.RecordEpisodeStatistics(env).action_space is env.action_space
    env.close()


def test_a_lone_agent_has_no_partners() -> None:
    env = make(observations="by_name", num_agents=1)
    assert "partner_observations" not in env.single_observation_space.spaces
    assert "partner_observations" not in env.reset()[0]
    env.close()


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("kind", [doorstep.OBSERVATIONS, "by_name"])
@pytest.mark.parametrize("num_agents", [1, 2])
def test_spaces_contain_what_it_returns(view: str, kind: str, num_agents: int) -> None:
    env = make(agents=view, observations=kind, num_agents=num_agents, autoreset_mode="same_step")
    env.action_space.seed(1)
    observations, _ = env.reset()
    for _ in range(LENGTH + 2):
        assert observations in env.observation_space
        for row in gymnasium.vector.utils.iterate(env.observation_space, observations):
            assert row in env.single_observation_space
        observations, rewards, terminations, truncations, _ = env.step(env.action_space.sample())
        assert {array.shape for array in (rewards, terminations, truncations)} == {(env.num_envs,)}
    assert env.observation_space == gymnasium.vector.utils.batch_space(env.single_observation_space, env.num_envs)
    env.close()


@pytest.mark.parametrize("view", VIEWS)
def test_pixels_are_the_cameras_tensors(view: str) -> None:
    cameras = doorstep.Cameras(width=8, height=6)
    env = make(2, agents=view, observations="pixels", cameras=cameras)
    observations, _ = env.reset(seed=2)
    for _ in range(LENGTH + 2):
        assert observations in env.observation_space
        for name in ("rgb", "depth"):
            equal(observations[name], by_row(np.array(env.simulator.tensors[name]), view))
        observations = env.step(env.action_space.sample())[0]
    assert (env.single_observation_space["rgb"].low.min(), env.single_observation_space["rgb"].high.max()) == (0, 255)
    env.close()


def test_one_kind_of_pixels_is_no_dictionary() -> None:
    env = make(2, observations="pixels", cameras=doorstep.Cameras(width=8, height=6, depth=False))
    assert env.reset()[0].shape == (2, AGENTS, 6, 8, 4)
    env.close()


# ---- What callers keep ----


def _arrays_in(value: Any) -> list[Array]:
    if isinstance(value, dict):
        return [array for part in value.values() for array in _arrays_in(part)]
    return [value]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("view", VIEWS)
def test_what_is_returned_belongs_to_the_caller(mode: str, view: str) -> None:
    """It is not overwritten by later calls, nor do changes to it matter to them."""
    changed, kept = (make(agents=view, autoreset_mode=mode) for _ in range(2))
    returned: list[Array] = []
    copies: list[Array] = []
    for step, actions in enumerate(actions_of(6, 20, WORLDS, AGENTS).reshape(20, *kept.action_space.shape)):
        if step % LENGTH == 0 and (mode == "disabled" or step == 0):
            outcomes = [(env.reset()[0],) for env in (changed, kept)]
        else:
            outcomes = [env.step(actions) for env in (changed, kept)]
        found, expected = ([array for part in outcome for array in _arrays_in(part)] for outcome in outcomes)
        for array, unchanged in zip(found, expected, strict=True):
            equal(array, unchanged)
            returned.append(unchanged)
            copies.append(unchanged.copy())
        for array in {id(array): array for array in found}.values():
            array[...] = ~array if array.dtype == bool else 99
    for array, copy in zip(returned, copies, strict=True):
        equal(array, copy)
    changed.close()
    kept.close()


@pytest.mark.parametrize("kind", [doorstep.OBSERVATIONS, "by_name"])
def test_without_copies_observations_are_the_simulators_memory(kind: str) -> None:
    env = make(observations=kind, copy=False)
    names = ("observations",) if kind != "by_name" else PARTS
    first, _ = env.reset()
    step = env.step(np.ones(env.action_space.shape, int))
    for found in (first, step[0]):
        for array, name in zip(_arrays_in(found), names, strict=True):
            assert np.shares_memory(array, env.simulator.tensors[name].to_numpy())
    tensors = [tensor.to_numpy() for tensor in env.simulator.tensors.values()]
    assert not any(np.shares_memory(array, tensor) for array in step[1:4] for tensor in tensors)
    env.close()


# ---- Seeds ----


def test_a_seed_gives_the_levels_of_a_simulator_with_that_seed() -> None:
    env = make(seed=5)
    for seed in (5, 6, np.int64(7), 2**32 - 1):
        sim = doorstep.Simulator(WORLDS, seed=int(seed), num_agents=AGENTS)
        np.testing.assert_array_equal(env.reset(seed=seed)[0], np.asarray(sim.observations))
        assert env.simulator.seed == seed
    env.close()


def test_levels_after_a_reset_without_a_seed_are_others_but_always_the_same() -> None:
    env = make()
    first = [env.reset(seed=4)[0], env.reset()[0], env.reset()[0]]
    again = [env.reset(seed=4)[0], env.reset()[0], env.reset()[0]]
    for one, other in zip(first, again, strict=True):
        equal(one, other)
    assert not np.array_equal(first[0], first[1])
    assert not np.array_equal(first[1], first[2])
    env.close()


def test_the_first_reset_begins_with_the_first_levels_of_the_constructors_seed() -> None:
    env, other = make(seed=31), make(seed=1)
    equal(env.reset()[0], other.reset(seed=31)[0])
    env.close()
    other.close()


def test_a_seed_keeps_the_simulator_and_its_tensors() -> None:
    env = make(levels=["reference", doorstep.levels.reference()], level_weights=(1, 0))
    simulator, weights = env.simulator, env.simulator.level_weights
    env.reset(seed=1)
    weights[:] = (0, 1)
    env.reset()
    assert env.simulator is simulator
    assert simulator.seed == 1
    assert (simulator.level_indices[:, 0] == 1).all()
    env.close()


# ---- Pictures, closing, description ----


@pytest.mark.parametrize("view", VIEWS)
def test_pictures_are_the_simulators(view: str) -> None:
    env = make(2, agents=view, num_agents=2, render_mode="rgb_array")
    env.reset(seed=3)
    pictures = env.render()
    assert isinstance(pictures, tuple)
    assert {(picture.shape, picture.dtype) for picture in pictures} == {((480, 640, 3), np.dtype(np.uint8))}
    sim = env.simulator
    if view == "joint":
        expected = [sim.render(world, "overview", samples=1) for world in range(2)]
    else:
        expected = [sim.render(world, "follow", agent=agent, samples=1) for world in range(2) for agent in range(2)]
    for picture, wanted in zip(pictures, expected, strict=True):
        equal(picture, wanted)
    env.close()


def test_without_a_render_mode_there_are_no_pictures() -> None:
    env = make()
    env.reset()
    assert env.render() is None
    env.close()


def test_a_closed_environment_says_so() -> None:
    env = make()
    env.reset()
    env.close()
    env.close()
    assert env.closed
    for call in (env.reset, lambda: env.reset(seed=1), lambda: env.step(np.zeros((WORLDS, 4 * AGENTS), int))):
        with pytest.raises(doorstep.ClosedError):
            call()


@pytest.mark.parametrize("mode", MODES)
def test_metadata_is_that_of_the_environment(mode: str) -> None:
    env = make(autoreset_mode=mode)
    assert env.metadata["autoreset_mode"] is AutoresetMode[mode.upper()]
    assert EscapeRoomVectorEnv.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    env.close()


# ---- Bad input ----

CONSTRUCTOR = [
    ({"num_envs": 0}, "num_envs"),
    ({"num_envs": 1.0}, "num_envs"),
    ({"num_envs": 7, "agents": "rows", "num_agents": 2}, "num_envs"),
    ({"agents": "both"}, "agents"),
    ({"agents": None}, "agents"),
    ({"observations": "image"}, "observations"),
    ({"observations": "pixels"}, "cameras"),
    ({"observations": "pixels", "cameras": doorstep.Cameras(), "autoreset_mode": "same_step"}, "autoreset_mode"),
    ({"autoreset_mode": "NextStep"}, "autoreset_mode"),
    ({"autoreset_mode": 1}, "autoreset_mode"),
    ({"render_mode": "human"}, "render_mode"),
    ({"copy": 1}, "copy"),
    ({"episode_length": 0}, "episode_length"),
    ({"seed": -1}, "seed"),
]


@pytest.mark.parametrize(("arguments", "named"), CONSTRUCTOR, ids=[str(row[0])[:50] for row in CONSTRUCTOR])
def test_the_constructor_names_the_bad_argument(arguments: dict[str, Any], named: str) -> None:
    with pytest.raises(doorstep.ArgumentError) as caught:
        EscapeRoomVectorEnv(**{"num_envs": 4, **arguments})
    assert caught.value.argument == named


def test_a_gpu_is_refused_before_one_is_looked_for_in_vain() -> None:
    with pytest.raises((doorstep.ArgumentError, doorstep.DeviceError)):
        EscapeRoomVectorEnv(2, device="cuda")


BAD_ACTIONS: list[Any] = [
    np.zeros((4, 4), int),
    np.zeros((5, 8), int),
    np.zeros((4, 2, 4), int),
    np.zeros(32, int),
    np.zeros((4, 8), np.float32),
    np.zeros((4, 8), complex),
    np.full((4, 8), "a"),
    [[0] * 8, [0] * 7, [0] * 8, [0] * 8],
    0,
    None,
    {"agent": 0},
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("actions", BAD_ACTIONS, ids=lambda value: str(value)[:20].replace("\n", ""))
def test_bad_actions_are_refused_and_change_nothing(mode: str, actions: Any) -> None:
    env, other = (EscapeRoomVectorEnv(4, autoreset_mode=mode, episode_length=3) for _ in range(2))
    good = np.ones((4, 8), int)
    for made in (env, other):
        made.reset(seed=1)
        made.step(good)
        made.step(good)
    before = env.simulator.hash()
    with pytest.raises(doorstep.ArgumentError) as caught:
        env.step(actions)
    assert caught.value.argument == "actions"
    assert env.simulator.hash() == before
    steps = 1 if mode == "disabled" else 5
    for _ in range(steps):
        for found, expected in zip(env.step(good)[:4], other.step(good)[:4], strict=True):
            equal(found, expected)
    env.close()
    other.close()


BAD_MASKS: list[Any] = [
    np.zeros(4, bool),
    np.ones(4, int),
    np.ones(3, bool),
    np.ones((4, 1), bool),
    [True, [False, True], True, True],
    "all",
    0,
    np.array([True, False, False, False]),  # one of the two agents of world 0
]


@pytest.mark.parametrize("mask", BAD_MASKS, ids=lambda value: str(value)[:30])
def test_bad_masks_are_refused_and_change_nothing(mask: Any) -> None:
    env = EscapeRoomVectorEnv(4, agents="rows")
    env.reset(seed=1)
    env.step(np.ones((4, 4), int))
    before = env.simulator.hash()
    with pytest.raises(doorstep.ArgumentError) as caught:
        env.reset(options={"reset_mask": mask})
    assert caught.value.argument == "reset_mask"
    assert env.simulator.hash() == before
    env.close()


@pytest.mark.parametrize("seed", [-1, 2**32, 1.5, "1", True, [1, 2, 3, 4]])
def test_bad_seeds_are_refused_and_change_nothing(seed: Any) -> None:
    env = EscapeRoomVectorEnv(4)
    env.reset(seed=1)
    simulator, before, random = env.simulator, env.simulator.hash(), env.np_random.bit_generator.state
    with pytest.raises(doorstep.ArgumentError) as caught:
        env.reset(seed=seed)
    assert caught.value.argument == "seed"
    assert env.simulator is simulator
    assert env.simulator.hash() == before
    assert env.np_random.bit_generator.state == random
    env.close()


@pytest.mark.parametrize(
    ("options", "argument"),
    [({"mask": 1}, "options"), ({"reset_maks": np.ones(4, bool)}, "options"), ([1], "options")],
)
def test_unknown_options_are_refused(options: Any, argument: str) -> None:
    env = EscapeRoomVectorEnv(4)
    with pytest.raises(doorstep.ArgumentError) as caught:
        env.reset(options=options)
    assert caught.value.argument == argument
    env.close()


def test_a_seed_is_of_all_worlds_not_of_some() -> None:
    env = EscapeRoomVectorEnv(4)
    env.reset()
    with pytest.raises(doorstep.ArgumentError) as caught:
        env.reset(seed=1, options={"reset_mask": np.ones(4, bool)})
    assert caught.value.argument == "seed"
    env.close()


def test_there_is_no_step_and_no_mask_before_the_first_reset() -> None:
    env = EscapeRoomVectorEnv(4)
    with pytest.raises(doorstep.StateError, match="reset"):
        env.step(np.ones((4, 8), int))
    with pytest.raises(doorstep.StateError, match="reset"):
        env.reset(options={"reset_mask": np.ones(4, bool)})
    env.reset()
    env.step(np.ones((4, 8), int))
    env.close()


def test_disabled_steps_no_world_while_an_episode_has_ended() -> None:
    env = make(autoreset_mode="disabled", agents="rows")
    env.reset()
    actions = np.ones(env.action_space.shape, int)
    env.step(actions)
    mask = np.zeros(env.num_envs, bool)
    mask[AGENTS : 2 * AGENTS] = True
    env.reset(options={"reset_mask": mask})  # world 1 is a step behind
    for _ in range(LENGTH - 1):
        ended = env.step(actions)[3]
    assert ended.tolist() == (~mask).tolist()
    before = env.simulator.hash()
    with pytest.raises(doorstep.StateError, match="row 0 has ended") as caught:
        env.step(actions)
    assert env.simulator.hash() == before
    assert "reset_mask" in caught.value.hint
    env.reset(options={"reset_mask": ended})
    assert env.step(actions)[3].tolist() == mask.tolist()
    env.close()


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, np.uint16])
def test_actions_are_integers_of_any_dtype(dtype: Any) -> None:
    env, other = make(seed=2), make(seed=2)
    env.reset()
    other.reset()
    for actions in actions_of(9, 3, WORLDS, AGENTS).reshape(3, WORLDS, -1):
        equal(env.step(actions.astype(dtype))[0], other.step(actions.tolist())[0])
    env.close()
    other.close()


def test_an_action_out_of_range_is_refused_with_that_rule() -> None:
    env, other = (EscapeRoomVectorEnv(2, action_check="raise", episode_length=2) for _ in range(2))
    good = np.ones((2, 8), int)
    for made in (env, other):
        made.reset(seed=1)
        made.step(good)
        made.step(good)
    with pytest.raises(doorstep.ArgumentError):
        env.step(np.full((2, 8), 9))
    for _ in range(4):
        equal(env.step(good)[0], other.step(good)[0])
    env.close()
    other.close()
