"""EscapeRoomTorchRLEnv, beside what all environments do (test_contract.py): TorchRL's checks and rollouts."""

import numpy as np
import pytest
from tests.envs.histories import PARTS, assert_example_learns
from tests.refuses import refuses

import doorstep

torch = pytest.importorskip("torch")
pytest.importorskip("torchrl")

from tests.envs.torch_checks import NoWaits  # noqa: E402
from torchrl.envs.utils import check_env_specs  # noqa: E402

from doorstep.envs import EscapeRoomParallelEnv, EscapeRoomTorchRLEnv  # noqa: E402

WORLDS, LENGTH = 4, 6
NAMES = {doorstep.OBSERVATIONS: {"observation": "observations"}, "by_name": {name: name for name in PARTS}}


def make(**arguments):
    return EscapeRoomTorchRLEnv(WORLDS, **{"episode_length": LENGTH, "num_threads": 1, "seed": 5, **arguments})


@pytest.mark.parametrize("kind", NAMES, ids=["flat", "by_name"])
def test_it_passes_torchrls_check_and_its_bounds_are_those_of_gymnasium(kind):
    for arguments in ({"num_agents": 1}, {"num_agents": 3}, {"levels": "curated"}):
        env = make(observations=kind, **arguments)
        check_env_specs(env, break_when_any_done="both", seed=0)
        single = EscapeRoomParallelEnv(observations=kind, episode_length=LENGTH, **arguments)
        space = single.observation_space("agent_0")
        for key in NAMES[kind].keys() & env.observation_spec["agents"].keys():
            expected, spec = space[key] if kind == "by_name" else space, env.observation_spec["agents", key]
            for side in ("low", "high"):
                bound = getattr(spec.space, side)
                assert bool(torch.isfinite(bound).all())
                np.testing.assert_array_equal(bound, np.broadcast_to(getattr(expected, side), spec.shape))


def test_pixels_are_the_cameras_views():
    for outputs in (("depth",), ("rgb", "depth")):
        cameras = doorstep.Cameras(width=8, height=6, rgb="rgb" in outputs, depth="depth" in outputs)
        env = make(observations="pixels", cameras=cameras)
        check_env_specs(env, seed=0)
        tensordict = env.reset()
        for name in outputs:
            np.testing.assert_array_equal(tensordict["agents", name].numpy(), env.simulator.tensors[name].to_numpy())


def test_worlds_whose_episode_has_ended_may_be_left_out():
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
    first = torch.tensor([True, False, False, False])[:, None]
    tensordict = env.reset(tensordict.set("_reset", first.clone()))
    assert (tensordict["done"] == ~first).all()
    refused(env, doorstep.StateError, "the episode of world 1 has ended", lambda: env.step(env.rand_action(tensordict)))


def test_flags_of_agents_are_not_those_of_worlds():
    env = make()
    tensordict = env.reset()
    tensordict["agents", "done"][0, 0] = True
    assert tensordict["agents", "done"].sum() == 1
    assert not tensordict["done"].any()


def test_a_step_does_not_wait_for_a_gpu():
    env = make()
    tensordict = env.rand_action(env.reset())
    with pytest.raises(AssertionError, match="waits"), NoWaits():
        env._step(tensordict)  # on the CPU it asks whether episodes have ended
    env._asks = False
    for _ in range(LENGTH):
        with NoWaits():
            env._step(tensordict)


def refused(env, error, match, call):
    before = env.simulator.hash()
    refuses(match, call, error=error)
    assert env.simulator.hash() == before


def test_bad_calls_are_refused_and_change_nothing():
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
    refused(env, doorstep.ArgumentError, "seed is '4'", lambda: env.set_seed("4"))
    assert env.to("cpu") is env
    refuses(r"num_envs is 2\.0", EscapeRoomTorchRLEnv, 2.0)


@pytest.mark.nightly
def test_ppo_learns():
    assert_example_learns("torchrl_rollout.py", warns=True)
