"""PyTorch's settings of the caller's change nothing: default dtype and device, gradients, inference mode, autocast."""

import contextlib
import importlib.util

import numpy as np
import pytest

import doorstep

torch = pytest.importorskip("torch")

from tests.envs import every  # noqa: E402
from tests.pkg.training.runs import WITH_MEMORY, small  # noqa: E402

from doorstep.policy import Heads  # noqa: E402
from doorstep.rollouts import TrajectoryDataset, pad_trajectories  # noqa: E402
from doorstep.torch import generalized_advantages, make, multi_discrete_evaluate, multi_discrete_sample  # noqa: E402
from doorstep.training import Trainer, load_checkpoint, resume, train  # noqa: E402

FLOATS = {"dtype": torch.float32, "device": "cpu"}


@contextlib.contextmanager
def default_dtype():
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


SETTINGS = {
    "dtype": default_dtype,
    "device": lambda: torch.device("meta"),
    "no gradients": lambda: torch.set_grad_enabled(False),
    "inference": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
}


# ---- Subjects: what is made lies before the yield, what is done with it behind


def training(*changes, **options):
    def use(folder):
        trainer = Trainer(small(*changes), **options)
        yield
        losses = [trainer.update().losses for _ in range(2)]
        checkpoint = trainer.checkpoint()
        again = Trainer(checkpoint.config, **options)
        again.restore(checkpoint)
        begun = Trainer(checkpoint.config, **options)
        begun.begin_with(checkpoint)
        return [losses, checkpoint.tensors, again.update().losses, begun.update().losses]

    return use


def runs(folder):
    train(folder, config=small("num_updates=2"))
    yield
    trainer = resume(folder, num_updates=3)
    return [trainer.checkpoint().tensors, load_checkpoint(folder / "checkpoint.safetensors").tensors]


def stored_policy(folder):
    train(folder, config=small(*WITH_MEMORY, "num_updates=1"))
    policy = doorstep.load_policy(folder / "checkpoint.safetensors")
    yield
    return policy.forward(np.ones((2, 2, 94), np.float32), policy.initial_state(2, 2))


def module_policy(folder):
    with torch.random.fork_rng():
        torch.manual_seed(3)
        body, head = (torch.nn.Linear(*sizes, **FLOATS) for sizes in ((94, 8), (8, 19)))
    policy = doorstep.load_policy(torch.nn.Sequential(body, torch.nn.Tanh(), Heads([head])))
    yield
    return policy.forward(torch.ones(2, 2, 94, **FLOATS))


def environment(name):
    def use(folder):
        env = every.played(name, seed=3)
        actions = np.ones((env.case.worlds, env.case.agents, 4), np.int32)
        yield
        env.reset(5)
        shown = [np.array(array) for _ in range(3) for array in (env.step(actions), *every.arrays_in(env.raw))[1:]]
        env.close()
        return shown

    return use


def dataset(folder):
    requests = [doorstep.EpisodeRequest(seed=seed, max_steps=3 + seed) for seed in range(4)]
    data = TrajectoryDataset(doorstep.SimulatorConfig(4, num_threads=1), requests, shuffle_seed=7)
    yield
    data.set_epoch(2)
    return pad_trajectories(list(data))


def worlds(folder):
    rooms = make(4, seed=7)
    state = rooms.init()
    yield
    rooms.step(state, torch.ones(4, 2, 4, dtype=torch.int32, device="cpu"))
    return state.tensors


def tensors(folder):
    with doorstep.Simulator(4, num_threads=1) as sim:
        shown = {name: tensor.to_torch() for name, tensor in sim.tensors.items()}
        yield
        shown["actions"].fill_(1)
        sim.step()
        return {name: tensor.clone() for name, tensor in shown.items()}


def operators(folder):
    logits = torch.linspace(-1, 1, 3 * 19, **FLOATS).reshape(3, 19)
    generator = torch.Generator().manual_seed(3)
    yield
    actions, *drawn = multi_discrete_sample(logits, doorstep.ACTIONS, generator=generator)
    flags = torch.zeros(3, 19, dtype=torch.bool, device="cpu")
    advantages = generalized_advantages(logits, logits, logits, flags, flags, gamma=0.9, gae_lambda=0.9)
    return [actions, drawn, multi_discrete_evaluate(logits, actions, doorstep.ACTIONS), advantages]


PIXELS = ("simulator.cameras.width=40", "simulator.cameras.height=40", "simulator.num_worlds=2")
NATIVE, RETRIES = "experience.inference=native", ("experience.retries=0.4", "curriculum.type=learnability")
SUBJECTS = {
    "training, natively": training(NATIVE, "network.separate_critic=true", "critic_observations=physics"),
    "training, with memory": training(*WITH_MEMORY, "experience.time_limit=bootstrap", "levels=room_types", *RETRIES),
    "training, on pixels": training(*PIXELS),
    "training, with bfloat16": training("precision=bfloat16", reward_function=lambda step: 0.5 * step.rewards),
    "runs": runs,
    "policies of files": stored_policy,
    "policies of modules": module_policy,
    "trajectories": dataset,
    "batches": worlds,
    "simulators": tensors,
    "operators": operators,
    **{
        name: environment(name)
        for name, kind in every.KINDS.items()
        if importlib.util.find_spec(kind.module) is not None and kind.module in ("torch", "torchrl", "skrl", "rsl_rl")
    },
}


def leaves(found):
    """The numbers of nested results, as arrays and their dtypes."""
    if hasattr(found, "to_dict"):
        found = found.to_dict()
    if isinstance(found, dict):
        return [leaf for name in sorted(found) for leaf in (name, *leaves(found[name]))]
    if isinstance(found, (list, tuple)):
        return [leaf for part in found for leaf in leaves(part)]
    array = np.asarray(found.detach() if isinstance(found, torch.Tensor) else found)
    return [(str(array.dtype), array.shape, array.tobytes())]


def used(use):
    with pytest.raises(StopIteration) as stopped:
        next(use)
    return leaves(stopped.value.value)


@pytest.mark.parametrize("subject", SUBJECTS)
def test_what_is_made_and_used_under_any_setting_is_what_it_is_without(subject, tmp_path):
    uses = iter(SUBJECTS[subject](tmp_path / str(index)) for index in range(2 * len(SETTINGS) + 1))
    plain = next(uses)
    next(plain)
    expected = used(plain)
    for name, setting in SETTINGS.items():
        for outlives in (False, True):
            use = next(uses)
            with setting():
                next(use)
                found = None if outlives else used(use)
            assert (used(use) if outlives else found) == expected, (name, outlives)
