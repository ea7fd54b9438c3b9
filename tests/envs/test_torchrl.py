"""EscapeRoomTorchRLEnv: TorchRL's checks, and rollouts against plain simulators."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from tests.envs.histories import PARTS, History, actions_of, some_worlds

import doorstep

torch: Any = pytest.importorskip("torch")
pytest.importorskip("torchrl")

from tests.envs.torch_checks import NoWaits, assert_kept, returns_printed_by  # noqa: E402
from torchrl.envs.utils import check_env_specs  # noqa: E402

from doorstep.envs import EscapeRoomParallelEnv, EscapeRoomTorchRLEnv  # noqa: E402

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of one of its modules, for another
    from torchrl.collectors import Collector

from torchrl.envs import GymWrapper  # noqa: E402

WORLDS, LENGTH = 4, 6
DONES = ("done", "terminated", "truncated")
NAMES = {doorstep.OBSERVATIONS: {"observation": "observations"}, "by_name": {name: name for name in PARTS}}


def make(**arguments: Any) -> Any:
    return EscapeRoomTorchRLEnv(WORLDS, **{"episode_length": LENGTH, "num_threads": 1, "seed": 5, **arguments})


def assert_tells(tensordict: Any, observations: Any, kind: Any) -> None:
    """The group has these observations."""
    for key, name in NAMES[kind].items():
        np.testing.assert_array_equal(tensordict["agents", key].numpy(), observations[name])


def assert_ended(tensordict: Any, ended: Any) -> None:
    """The flags of worlds and agents say that the time ended these episodes; the task never does."""
    for name, expected in zip(DONES, (ended, np.zeros(WORLDS, bool), ended), strict=True):
        assert tensordict[name].dtype == torch.bool
        np.testing.assert_array_equal(tensordict[name].numpy(), expected[:, None])
        of_agents = tensordict["agents", name].numpy()
        assert of_agents.shape == (WORLDS, 2, 1)
        assert (of_agents == expected[:, None, None]).all()


@pytest.mark.parametrize("num_agents", [1, 2, 3])
@pytest.mark.parametrize("kind", [doorstep.OBSERVATIONS, "by_name"])
def test_it_passes_torchrls_check(kind: str, num_agents: int) -> None:
    env = make(observations=kind, num_agents=num_agents)
    check_env_specs(env, break_when_any_done="both", seed=0)
    env.close()


@pytest.mark.parametrize("arguments", [{"num_agents": 1}, {"num_agents": 3}, {"levels": "curated"}], ids=str)
@pytest.mark.parametrize("kind", [doorstep.OBSERVATIONS, "by_name"], ids=["flat", "by_name"])
def test_bounds_of_observations_are_finite_and_those_of_gymnasium(kind: Any, arguments: dict[str, Any]) -> None:
    env = make(observations=kind, **arguments)
    space = EscapeRoomParallelEnv(observations=kind, episode_length=LENGTH, **arguments).observation_space("agent_0")
    for key in NAMES[kind].keys() & env.observation_spec["agents"].keys():
        expected, spec = space[key] if kind == "by_name" else space, env.observation_spec["agents", key]
        for side in ("low", "high"):
            bound = getattr(spec.space, side)
            assert bool(torch.isfinite(bound).all())
            np.testing.assert_array_equal(bound, np.broadcast_to(getattr(expected, side), spec.shape))
    env.close()


@pytest.mark.parametrize("outputs", [("depth",), ("rgb", "depth")])
def test_pixels_are_the_cameras_views(outputs: tuple[str, ...]) -> None:
    cameras = doorstep.Cameras(width=8, height=6, rgb="rgb" in outputs, depth="depth" in outputs)
    env = make(observations="pixels", cameras=cameras)
    check_env_specs(env, seed=0)
    tensordict = env.reset()
    for name in outputs:
        np.testing.assert_array_equal(tensordict["agents", name].numpy(), env.simulator.tensors[name].to_numpy())
    env.close()


@pytest.mark.parametrize("kind", [doorstep.OBSERVATIONS, "by_name"])
def test_rollouts_are_what_happened(kind: str) -> None:
    """Over the ends of episodes: the last observation is in "next", the first one of the next episode at the root."""
    env, history = make(observations=kind), History("disabled", WORLDS, episode_length=LENGTH, seed=5)
    actions = actions_of(3, 20, WORLDS, 2)
    given = iter(torch.from_numpy(actions).long())

    def policy(tensordict: Any) -> Any:
        return tensordict.set(("agents", "action"), next(given))

    rollout = env.rollout(20, policy, break_when_any_done=False)
    observations = history.worlds.observe()
    assert rollout.batch_size == (WORLDS, 20)
    ends = 0
    for step in range(20):
        assert_tells(rollout[:, step], observations, kind)
        assert_ended(rollout[:, step], np.zeros(WORLDS, bool))
        told = history.step(actions[step])
        after = rollout["next"][:, step]
        assert_tells(after, told.observations, kind)
        assert_ended(after, told.ended)
        np.testing.assert_array_equal(after["agents", "reward"][..., 0].numpy(), told.rewards)
        ends += int(told.ended.any())
        observations = history.reset(told.ended.copy()) if told.ended.any() else told.observations
    assert ends == 3
    env.close()


def test_some_worlds_are_reset() -> None:
    env, history = make(), History("disabled", WORLDS, episode_length=LENGTH, seed=5)
    generator = np.random.default_rng(0)
    tensordict = env.reset()
    lengths = set()
    for step, actions in enumerate(actions_of(8, 40, WORLDS, 2)):
        if step % 4 == 1:
            mask = some_worlds(generator, WORLDS)
            key, shape = ("_reset", (-1, 1)) if step % 8 == 1 else (("agents", "_reset"), (-1, 1, 1))
            chosen = torch.from_numpy(mask).reshape(shape)
            tensordict[key] = chosen.clone() if key == "_reset" else chosen.repeat(1, 2, 1)
            tensordict = env.reset(tensordict)
            assert_tells(tensordict, history.reset(mask), doorstep.OBSERVATIONS)
        tensordict["agents", "action"] = torch.from_numpy(actions).long()
        stepped, tensordict = env.step_and_maybe_reset(tensordict)
        told = history.step(actions)
        assert_tells(stepped["next"], told.observations, doorstep.OBSERVATIONS)
        assert_ended(stepped["next"], told.ended)
        lengths.update(told.lengths[told.ended].tolist())
        if told.ended.any():
            assert_tells(tensordict, history.reset(told.ended.copy()), doorstep.OBSERVATIONS)
            assert_ended(tensordict, np.zeros(WORLDS, bool))
    assert lengths == {LENGTH}
    env.close()


def test_worlds_whose_episode_has_ended_may_be_left_out() -> None:
    """With "_step", as rollouts do that go on until all episodes have ended."""
    env = make()
    tensordict = env.rollout(2, break_when_any_done=False)[:, -1]["next"]
    late = torch.tensor([True, False, False, True])
    tensordict = env.reset(tensordict.set("_reset", late[:, None].clone()))
    for step in range(LENGTH):
        going = late if step >= LENGTH - 2 else torch.ones(WORLDS, dtype=torch.bool)
        stepped = env.step(env.rand_action(tensordict).set("_step", going.clone()))["next"]
        assert stepped["done"][~late].all() == (step >= LENGTH - 3)
        assert stepped["done"][late].all() == (step == LENGTH - 1)
        tensordict = env.step_mdp(env.fake_tensordict().set("next", stepped))
    env.close()


def test_collectors_count_what_they_step() -> None:
    env = make()
    collector = Collector(env, env.rand_action, frames_per_batch=WORLDS * 10, total_frames=WORLDS * 30)
    batches = [batch.clone() for batch in collector]
    assert [batch.batch_size for batch in batches] == [(WORLDS, 10)] * 3
    steps = torch.cat([batch["next", "done"][..., 0] for batch in batches], 1)
    assert steps.nonzero()[:, 1].unique().tolist() == list(range(LENGTH - 1, 30, LENGTH))
    collector.shutdown()


def test_seeds_choose_the_levels() -> None:
    env, other = make(), make(seed=9)
    first = env.reset()["agents", "observation"]
    env.set_seed(9)
    again = env.reset()["agents", "observation"]
    assert torch.equal(again, other.reset()["agents", "observation"])
    assert not torch.equal(again, first)
    assert env.simulator.seed == 9
    for value in (-1, 2**32, "4"):
        with pytest.raises(doorstep.ArgumentError, match="seed is"):
            env.set_seed(value)
    env.close()
    other.close()


def test_what_is_returned_belongs_to_the_caller() -> None:
    env = make()
    state = [env.reset()]

    def step() -> Any:
        stepped, state[0] = env.step_and_maybe_reset(env.rand_action(state[0]))
        return stepped

    assert_kept(step, 3 * LENGTH)
    tensordict = env.reset()
    tensordict["agents", "done"][0, 0] = True
    assert tensordict["agents", "done"].sum() == 1
    assert not tensordict["done"].any()
    env.close()


def test_a_step_does_not_wait_for_a_gpu() -> None:
    env = make()
    tensordict = env.rand_action(env.reset())
    with pytest.raises(AssertionError, match="waits"), NoWaits():
        env._step(tensordict)  # on the CPU it asks whether episodes have ended
    env._asks = False
    for _ in range(LENGTH):
        with NoWaits():
            env._step(tensordict)
    env.close()


def refused(env: Any, error: Any, match: str, call: Any) -> None:
    before = env.simulator.hash()
    with pytest.raises(error, match=match):
        call()
    assert env.simulator.hash() == before


def test_bad_calls_are_refused_and_change_nothing() -> None:
    env = make()
    blank = env.fake_tensordict().exclude("next")
    refused(env, doorstep.StateError, r"call reset\(\) first", lambda: env.step(blank.clone()))
    mask = torch.ones(WORLDS, 1, dtype=torch.bool)
    mask[0] = False
    refused(env, doorstep.StateError, "no episode has begun", lambda: env.reset(blank.clone().set("_reset", mask)))
    tensordict = env.reset()
    wrong = torch.zeros(WORLDS, 2, 3, dtype=torch.int64)
    refused(env, doorstep.ArgumentError, r"of the shape \[4, 2, 4\]", lambda: env._step({("agents", "action"): wrong}))
    partly = env.rand_action(tensordict.clone()).set("_step", mask[:, 0])
    refused(env, doorstep.StateError, "leaves out world 0, whose episode goes on", lambda: env.step(partly))
    for _ in range(LENGTH):
        tensordict = env.step_mdp(env.step(env.rand_action(tensordict)))
    refused(env, doorstep.StateError, "the episode of world 0 has ended", lambda: env.step(env.rand_action(tensordict)))
    refused(env, doorstep.ArgumentError, "device is 'meta'; it must be 'cpu'", lambda: env.to("meta"))
    assert env.to("cpu") is env
    env.close()
    with pytest.raises(doorstep.ClosedError):
        env.reset()


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        ({"num_envs": 0}, "num_envs"),
        ({"num_envs": 2.0}, "num_envs"),
        ({"num_agents": 9}, "num_agents"),
        ({"observations": "all"}, "observations"),
        ({"observations": "pixels"}, "cameras"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, Any], argument: str) -> None:
    with pytest.raises(doorstep.ArgumentError) as caught:
        EscapeRoomTorchRLEnv(**arguments)
    assert caught.value.argument == argument


@pytest.mark.slow
def test_ppo_learns() -> None:
    returns = returns_printed_by("torchrl_rollout.py")
    assert returns[-1] > returns[0] + 0.2


def test_torchrl_wraps_vector_environments_of_gymnasium() -> None:
    env = doorstep.envs.EscapeRoomVectorEnv(WORLDS, agents="rows", autoreset_mode="same_step", episode_length=LENGTH)
    wrapped = GymWrapper(env)
    truncated = wrapped.rollout(LENGTH + 2, break_when_any_done=False)["next", "truncated"]
    assert truncated[:, LENGTH - 1].all()
    assert truncated.sum() == WORLDS
    wrapped.close()
    env.__dict__.clear()  # TorchRL keeps the last environment that it wrapped
