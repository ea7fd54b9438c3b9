"""EscapeRoomVectorEnv and the Rooms that it is over, beside what all environments do (test_contract.py): gymnasium's
vector and wrappers, pixels, bad input."""

import numpy as np
import pytest
from tests.envs.histories import PARTS, actions_of, equal, same_where_set, some_worlds
from tests.refuses import refuses

import doorstep

gymnasium = pytest.importorskip("gymnasium")

from gymnasium.vector import AutoresetMode, SyncVectorEnv  # noqa: E402

from doorstep.envs import EscapeRoomEnv, EscapeRoomVectorEnv  # noqa: E402
from doorstep.envs._arrays import host_arrays  # noqa: E402

MODES = ("next_step", "same_step", "disabled")
WORLDS, LENGTH = 4, 5
RULES = {"num_agents": 2, "episode_length": LENGTH, "num_threads": 1}


@pytest.mark.parametrize("mode", MODES)
def test_it_is_gymnasiums_vector_of_single_environments(mode):
    """Sub-environment i of both is global world i of one seed. Actions are integers of any dtype."""
    made, worlds = AutoresetMode[mode.upper()], range(WORLDS)
    makers = [lambda world=world: EscapeRoomEnv(world_offset=world, **RULES) for world in worlds]
    singles = SyncVectorEnv(makers, autoreset_mode=made)
    env = EscapeRoomVectorEnv(WORLDS, autoreset_mode=made, **RULES)
    assert not {"observation_space", "action_space"} & set(vars(env))  # which fill more memory than the observations
    assert env.metadata["autoreset_mode"] is made
    assert env.single_action_space.nvec.tolist() == list(doorstep.ACTIONS) * 2
    assert EscapeRoomVectorEnv.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    assert (env.observation_space, env.action_space) == (singles.observation_space, singles.action_space)
    equal(env.reset(seed=9)[0], singles.reset(seed=[9] * WORLDS)[0])
    for step, actions in enumerate(actions_of(4, 25, WORLDS, 2).reshape(25, WORLDS, -1)):
        if step % 6 == 2:
            options = {"reset_mask": some_worlds(np.random.default_rng(step), WORLDS)}
            equal(env.reset(options=options)[0], singles.reset(options=options)[0])
        dtype = (np.int8, np.uint8, np.int32, np.int64, np.uint16)[step % 5]
        found, expected = env.step(actions.astype(dtype)), singles.step(actions)
        np.testing.assert_array_equal(found[1], expected[1])
        for index in (0, 2, 3):
            equal(found[index], expected[index])
        same_where_set(found[4], expected[4])
        ended = found[2] | found[3]
        if mode == "disabled" and ended.any():
            refuses(r"row \d has ended", env.step, actions, error=doorstep.StateError, argument="actions")
            equal(env.reset(options={"reset_mask": ended})[0], singles.reset(options={"reset_mask": ended})[0])
    env.close()
    assert env.closed


@pytest.mark.parametrize("view", ["joint", "rows"])
def test_pixels_are_the_cameras_tensors(view):
    cameras = doorstep.Cameras(width=8, height=6)
    env = EscapeRoomVectorEnv(4, agents=view, observations="pixels", cameras=cameras, **RULES)
    observations, _ = env.reset(seed=2)
    for _ in range(LENGTH + 2):
        assert observations in env.observation_space
        for name in ("rgb", "depth"):
            expected = np.array(env.simulator.tensors[name])
            equal(observations[name], expected.reshape(-1, *expected.shape[2:]) if view == "rows" else expected)
        observations = env.step(env.action_space.sample())[0]
    rgb = env.single_observation_space["rgb"]
    assert (rgb.low.min(), rgb.high.max()) == (0, 255)
    alone = EscapeRoomVectorEnv(2, observations="pixels", cameras=doorstep.Cameras(width=8, height=6, depth=False))
    assert alone.reset()[0].shape == (2, 2, 6, 8, 4)


@pytest.mark.parametrize("kind", [doorstep.OBSERVATIONS, "by_name"])
def test_without_copies_observations_are_the_simulators_memory(kind):
    env = EscapeRoomVectorEnv(WORLDS, observations=kind, copy=False, **RULES)
    names = PARTS if kind == "by_name" else ("observations",)
    first, step = env.reset()[0], env.step(np.ones(env.action_space.shape, int))
    for found in (first, step[0]):
        for name in names:
            array = found[name] if kind == "by_name" else found
            assert np.shares_memory(array, env.simulator.tensors[name].to_numpy())
    tensors = [tensor.to_numpy() for tensor in env.simulator.tensors.values()]
    assert not any(np.shares_memory(array, tensor) for array in step[1:4] for tensor in tensors)


def test_a_seed_keeps_the_simulator_and_its_tensors():
    env = EscapeRoomVectorEnv(WORLDS, levels=["reference", doorstep.levels.reference()], level_weights=(1, 0), **RULES)
    simulator, weights = env.simulator, env.simulator.level_weights
    for seed in (np.int64(1), 2**32 - 1):
        env.reset(seed=seed)
        assert (env.simulator, simulator.seed) == (simulator, seed)
    weights[:] = (0, 1)
    env.reset()
    assert (simulator.level_indices[:, 0] == 1).all()


def test_a_step_that_the_simulator_refuses_ends_no_episode():
    made = [EscapeRoomVectorEnv(4, **{**RULES, "action_check": "raise", "episode_length": 2}) for _ in range(2)]
    good = np.zeros((4, 8), int)
    for env in made:
        env.reset(seed=1)
        env.step(good)
        assert env.step(good)[3].all()
    for _ in range(2):
        refuses(None, made[0].step, np.full((4, 8), 100))
    for _ in range(4):
        for found, expected in zip(made[0].step(good)[:4], made[1].step(good)[:4], strict=True):
            np.testing.assert_array_equal(found, expected)


# ---- Bad input ----

PIXELS = {"observations": "pixels", "cameras": doorstep.Cameras()}
CONSTRUCTOR = [
    ({"num_envs": 0}, "num_envs is 0"),
    ({"num_envs": 7, "agents": "rows"}, "num_envs is 7; it must be a multiple of num_agents, which is 2"),
    ({"agents": "both"}, "agents is 'both'; it must be one of 'joint', 'rows'"),
    ({"observations": "pixels"}, "cameras is None; it must be a doorstep.Cameras"),
    ({**PIXELS, "autoreset_mode": "same_step"}, "autoreset_mode is 'same_step'; .*cameras draw no view"),
    ({"autoreset_mode": "NextStep"}, "autoreset_mode is 'NextStep'; it must be one of 'next_step'"),
    ({"render_mode": "human"}, "render_mode is 'human'"),
    ({"copy": 1}, "copy is 1"),
    ({"reward": "sparse"}, "reward is 'sparse'; it must be doorstep.levels.Rewards, a function"),
]


def test_the_constructor_names_the_bad_argument():
    for arguments, message in CONSTRUCTOR:
        refuses(message, EscapeRoomVectorEnv, argument=message.split(" is ")[0], **{"num_envs": 4, **arguments})
    with pytest.raises((doorstep.ArgumentError, doorstep.DeviceError)):
        EscapeRoomVectorEnv(2, device="cuda")
    refuses("PyTorch", host_arrays, "cuda:0", argument="device")


BAD_ACTIONS = [
    *(np.zeros(shape, int) for shape in ((4, 4), (5, 8), (4, 2, 4), 32)),
    *(np.zeros((4, 8), np.float32), np.zeros((4, 8), complex), np.full((4, 8), "a")),
    *([[0] * 8, [0] * 7, [0] * 8, [0] * 8], 0, None, {"agent": 0}),
]
SOME = np.array([True, False, False, False])
BAD_RESETS = [
    *(({"options": {"reset_mask": mask}}, "reset_mask") for mask in (np.ones(4, int), np.ones(3, bool), "all", 0)),
    *(({"options": {"reset_mask": mask}}, "reset_mask") for mask in ([True, [False, True], True, True], SOME & False)),
    ({"options": {"reset_mask": SOME}}, "reset_mask has some of the agents of world 0"),
    *(({"seed": seed}, "seed") for seed in (-1, 2**32, 1.5, "1", True, [1, 2, 3, 4])),
    ({"seed": 1, "options": {"reset_mask": ~(SOME & False)}}, "seed is 1; it must be None if only some worlds"),
    ({"options": {"reset_maks": SOME}}, "'reset_maks' is not an option of reset().*did you mean 'reset_mask'"),
    ({"options": [1]}, "options is .*; it must be a dictionary or None"),
]


def test_bad_actions_and_resets_are_refused_and_change_nothing():
    env, other = (EscapeRoomVectorEnv(4, agents=view, **RULES) for view in ("joint", "rows"))
    with pytest.raises(doorstep.StateError, match=r"no episode has begun .*reset\(\) without a mask first"):
        env.reset(options={"reset_mask": ~SOME})
    for each in (env, other):
        each.reset(seed=1)
        each.step(np.ones(each.action_space.shape, int))
    before, state = (env.simulator.hash(), other.simulator.hash()), other.np_random.bit_generator.state
    for actions in BAD_ACTIONS:
        refuses(None, env.step, actions, argument="actions")
    for arguments, message in BAD_RESETS:
        refuses(message, other.reset, **arguments)
    assert (env.simulator.hash(), other.simulator.hash()) == before
    assert other.np_random.bit_generator.state == state
