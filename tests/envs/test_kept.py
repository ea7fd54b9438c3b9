"""What any environment returned is never overwritten, whatever is done with it and with its simulator afterwards."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.envs.histories import Array, actions_of, equal

import doorstep
import doorstep.envs

WORLDS, AGENTS, LENGTH, CALLS = 3, 2, 4, 60
ROWS = WORLDS * AGENTS
RULES: dict[str, Any] = {"episode_length": LENGTH, "num_threads": 1, "num_agents": AGENTS}


class Played(NamedTuple):
    """An environment of any framework. Calls return whatever holds what callers get."""

    reset: Callable[[], Any]
    reseed: Callable[[int], Any] | None
    reset_some: Callable[[Array], Any] | None  # of a mask of the worlds
    step: Callable[[Array], Any]  # of actions [N, A, 4]
    simulators: Callable[[], tuple[doorstep.Simulator, ...]]
    close: Callable[[], object]


def gymnasium_vector(name: str, **arguments: Any) -> Played:
    pytest.importorskip("gymnasium")
    as_rows = arguments.get("agents") == "rows"
    env = getattr(doorstep.envs, name)(ROWS if as_rows else WORLDS, **RULES, **arguments)
    ended = np.zeros(env.num_envs, bool)

    def reset_some(mask: Array) -> Any:
        rows = np.repeat(mask, AGENTS) if as_rows else mask
        ended[rows] = False
        return env.reset(options={"reset_mask": rows})

    def step(actions: Array) -> Any:
        before = reset_some(ended.reshape(WORLDS, -1)[:, 0].copy()) if ended.any() else None
        outcome = env.step(actions.reshape(env.num_envs, -1))
        if arguments.get("autoreset_mode") == "disabled":
            ended[:] = np.asarray(outcome[2]) | np.asarray(outcome[3])
        return before, outcome

    def reset(seed: int | None = None) -> Any:
        ended[:] = False
        return env.reset(seed=seed)

    return Played(reset, reset, reset_some, step, lambda: (env.simulator,), env.close)


def single(**arguments: Any) -> Played:
    pytest.importorskip("gymnasium")
    env = doorstep.envs.EscapeRoomEnv(**RULES, **arguments)
    ended = False

    def reset(seed: int | None = None) -> Any:
        nonlocal ended
        ended = False
        return env.reset(seed=seed)

    def step(actions: Array) -> Any:
        nonlocal ended
        before = reset() if ended else None
        outcome = env.step(actions[0].reshape(-1))
        ended = outcome[2] or outcome[3]
        return before, outcome

    return Played(reset, reset, None, step, lambda: (env.simulator,), env.close)


def asynchronous(**arguments: Any) -> Played:
    """A call receives a group and sends it again, so that steps run meanwhile."""
    pytest.importorskip("gymnasium")
    env = doorstep.envs.AsyncEscapeRooms(WORLDS, num_groups=3, **RULES, **arguments)

    def reset(seed: int | None = None) -> Any:
        env.async_reset(seed=seed)
        return step(np.zeros((WORLDS, AGENTS, 4), int))

    def step(actions: Array) -> Any:
        received = env.recv()
        ids = received[4]["env_id"]
        env.send(actions[ids].reshape(1, -1), ids)
        return received

    return Played(reset, reset, None, step, lambda: env.simulators, env.close)


def stable_baselines(**arguments: Any) -> Played:
    pytest.importorskip("stable_baselines3")
    env = doorstep.envs.EscapeRoomVecEnv(ROWS, **RULES, **arguments)

    def reseed(seed: int) -> Any:
        env.seed(seed)
        return env.reset()

    def step(actions: Array) -> Any:
        env.step_async(actions.reshape(ROWS, 4))
        return env.step_wait()

    return Played(env.reset, reseed, None, step, lambda: (env.simulator,), env.close)


def pettingzoo(**arguments: Any) -> Played:
    pytest.importorskip("pettingzoo")
    env = doorstep.envs.EscapeRoomParallelEnv(**RULES, **arguments)

    def step(actions: Array) -> Any:
        before = None if env.agents else env.reset()
        return before, env.step(dict(zip(env.agents, actions[0], strict=True)))

    return Played(env.reset, lambda seed: env.reset(seed=seed), None, step, lambda: (env.simulator,), env.close)


def rsl_rl(**arguments: Any) -> Played:
    torch: Any = pytest.importorskip("torch")
    pytest.importorskip("rsl_rl")
    env = doorstep.envs.EscapeRoomRslRlEnv(ROWS, **RULES, **arguments)

    def step(actions: Array) -> Any:
        return env.step(torch.from_numpy(actions.reshape(ROWS, 4)))

    return Played(env.reset, env.reset, None, step, lambda: (env.simulator,), lambda: None)


def skrl(**arguments: Any) -> Played:
    torch: Any = pytest.importorskip("torch")
    pytest.importorskip("skrl")
    env = doorstep.envs.EscapeRoomSkrlEnv(ROWS, **RULES, **arguments)

    def step(actions: Array) -> Any:
        return env.step(torch.from_numpy(actions.reshape(ROWS, 4)))

    return Played(env.reset, lambda seed: env.reset(seed=seed), None, step, lambda: (env.simulator,), env.close)


def torchrl(**arguments: Any) -> Played:
    torch: Any = pytest.importorskip("torch")
    pytest.importorskip("torchrl")
    env = doorstep.envs.EscapeRoomTorchRLEnv(WORLDS, **RULES, **arguments)
    latest: Any = None

    def reset() -> Any:
        nonlocal latest
        latest = env.reset()
        return latest.clone(False)

    def reseed(seed: int) -> Any:
        env.set_seed(seed)
        return reset()

    def reset_some(mask: Array) -> Any:
        nonlocal latest
        latest["_reset"] = torch.from_numpy(mask[:, None])
        latest = env.reset(latest)
        return latest.clone(False)

    def step(actions: Array) -> Any:
        nonlocal latest
        latest["agents", "action"] = torch.from_numpy(actions).long()
        stepped, latest = env.step_and_maybe_reset(latest)
        return stepped.clone(False), latest.clone(False)

    return Played(reset, reseed, reset_some, step, lambda: (env.simulator,), env.close)


ENVIRONMENTS: dict[str, Callable[[], Played]] = {
    **{
        f"{name}, {view}, {kind}, {mode}": functools.partial(
            gymnasium_vector, name, agents=view, observations=kind, autoreset_mode=mode
        )
        for name in ("EscapeRoomVectorEnv", "TorchEscapeRoomVectorEnv")
        for view, kind in (("joint", doorstep.OBSERVATIONS), ("rows", "by_name"))
        for mode in ("next_step", "same_step", "disabled")
    },
    **{
        f"{make.__name__}, {kind}": functools.partial(make, observations=kind)
        for make in (single, asynchronous, stable_baselines, pettingzoo, rsl_rl, skrl, torchrl)
        for kind in (doorstep.OBSERVATIONS, "by_name")
    },
}


def arrays_in(value: Any) -> Iterator[Array]:
    """All arrays of numpy and PyTorch in nested containers, as arrays of numpy."""
    if hasattr(value, "numpy") and hasattr(value, "untyped_storage"):
        yield value.numpy()
    elif isinstance(value, np.ndarray):
        yield value
    elif hasattr(value, "values"):
        for part in value.values():
            yield from arrays_in(part)
    elif isinstance(value, tuple | list):
        for part in value:
            yield from arrays_in(part)


def use(simulator: doorstep.Simulator, choice: random.Random) -> None:
    """Something that writes the observations."""
    way = choice.randrange(5)
    if way == 0:
        simulator.step()
    elif way == 1:
        simulator.refresh()
    elif way == 2:
        simulator.reset([0])
    elif way == 3:
        simulator.restore(simulator.save())
    else:
        simulator.step_async().wait()


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_what_is_kept_is_never_overwritten(name: str, seed: int) -> None:
    """With calls in random order; what is not kept is dropped, so that its memory is used again."""
    choice = random.Random(f"{name} {seed}")
    env = ENVIRONMENTS[name]()
    kept: list[tuple[Array, Array]] = []
    told = env.reset()
    for call, actions in enumerate(actions_of(seed, CALLS, WORLDS, AGENTS)):
        new = [(array, array.copy()) for array in arrays_in(told)]
        kept += [pair for pair in new if choice.random() < 0.3]
        kept = [pair for pair in kept if choice.random() < 0.95] + new  # those last told are held for one call more
        way = choice.random()
        if way < 0.04:
            told = env.reset()
        elif way < 0.07 and env.reseed is not None:
            told = env.reseed(call)
        elif way < 0.12 and env.reset_some is not None:
            told = env.reset_some(np.arange(WORLDS) == choice.randrange(WORLDS))
        elif way < 0.16 and call > CALLS // 3:
            for simulator in env.simulators():
                use(simulator, choice)
        else:
            told = env.step(actions)
        for array, values in kept:
            np.testing.assert_array_equal(array, values)
        kept = kept[: len(kept) - len(new)]
    env.close()


# ---- Whom else the simulator shows them to ----


@pytest.fixture(params=[doorstep.OBSERVATIONS, "by_name"])
def kind(request: pytest.FixtureRequest) -> Any:
    kind: Any = request.param
    return kind


def vector(kind: Any, **arguments: Any) -> Any:
    pytest.importorskip("gymnasium")
    return doorstep.envs.EscapeRoomVectorEnv(WORLDS, observations=kind, **{**RULES, "seed": 2, **arguments})


def shown(simulator: doorstep.Simulator, observations: Any) -> Any:
    """The simulator's tensors in place of the observations."""
    if isinstance(observations, dict):
        return {name: simulator.tensors[name].copy_to_host() for name in observations}
    return simulator.observations.copy_to_host()


def overwrite(observations: Any) -> None:
    for array in arrays_in(observations):
        array[...] = 99


@pytest.mark.parametrize("steps", [0, 1, 2, LENGTH, LENGTH + 1])
def test_the_simulator_has_the_latest_observations_unchanged(kind: Any, steps: int) -> None:
    env = vector(kind)
    observations, _ = env.reset()
    actions = actions_of(1, steps + 3, WORLDS, AGENTS).reshape(steps + 3, WORLDS, -1)
    for step in range(steps):
        observations = env.step(actions[step])[0]
    is_dict = kind == "by_name"
    expected = {name: array.copy() for name, array in observations.items()} if is_dict else observations.copy()
    overwrite(observations)
    equal(shown(env.simulator, observations), expected)
    tensors = {name: tensor.to_numpy() for name, tensor in env.simulator.tensors.items()}
    for step in range(steps, steps + 3):
        observations = env.step(actions[step])[0]
        equal(shown(env.simulator, observations), observations)
    for name, array in tensors.items():
        np.testing.assert_array_equal(array, env.simulator.tensors[name].to_numpy())
    env.close()


def test_worlds_that_are_not_reset_show_what_they_did_whatever_callers_wrote(kind: Any) -> None:
    env, other = vector(kind, autoreset_mode="disabled"), vector(kind, autoreset_mode="disabled")
    mask = np.arange(WORLDS) == 1
    for each in (env, other):
        each.reset()
    for actions in actions_of(4, LENGTH - 1, WORLDS, AGENTS).reshape(LENGTH - 1, WORLDS, -1):
        overwrite(env.step(actions)[0])
        other.step(actions)
    _ = other.simulator  # copies from now on
    equal(env.reset(options={"reset_mask": mask})[0], other.reset(options={"reset_mask": mask})[0])
    env.close()
    other.close()


def test_asking_for_the_simulator_changes_no_world(kind: Any) -> None:
    env, other = vector(kind), vector(kind)
    env.reset()
    other.reset()
    for step, actions in enumerate(actions_of(5, 40, WORLDS, AGENTS).reshape(40, WORLDS, -1)):
        for one, expected in zip(env.step(actions)[:4], other.step(actions)[:4], strict=True):
            equal(one, expected)
        if step == 17:
            before = env.simulator.health
    assert env.simulator.hash() == other.simulator.hash()
    assert env.simulator.health == before
    env.close()
    other.close()


def test_the_simulator_can_be_asked_for_while_a_step_runs() -> None:
    pytest.importorskip("gymnasium")
    env, other = (doorstep.envs.AsyncEscapeRooms(2, num_groups=1, **{**RULES, "seed": 4}) for _ in range(2))
    for each in (env, other):
        each.async_reset()
    ids = env.recv()[4]["env_id"]
    other.recv()
    for step, actions in enumerate(actions_of(5, 9, 2, AGENTS).reshape(9, 2, -1)):
        env.send(actions, ids)
        other.send(actions, ids)
        if step == 3:
            _ = env.simulators
        equal(env.recv()[0], other.recv()[0])
    env.close()
    other.close()


def test_the_simulator_of_a_closed_environment_is_closed(kind: Any) -> None:
    env = vector(kind)
    env.reset()
    kept = env.step(np.zeros((WORLDS, AGENTS * 4), int))[0]
    values = [array.copy() for array in arrays_in(kept)]
    env.close()
    assert env.simulator.closed
    for array, expected in zip(arrays_in(kept), values, strict=True):
        np.testing.assert_array_equal(array, expected)


def test_a_simulator_that_fails_when_it_is_asked_for_can_be_asked_again(kind: Any, monkeypatch: Any) -> None:
    env = vector(kind)
    env.reset()
    observations = env.step(np.ones((WORLDS, AGENTS * 4), int))[0]
    with monkeypatch.context() as patched:
        patched.setattr(doorstep.Simulator, "refresh", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            _ = env.simulator
    equal(shown(env.simulator, observations), observations)
    env.close()


def test_asking_for_the_simulator_between_two_steps_of_this_is_the_same(kind: Any, monkeypatch: Any) -> None:
    """As a signal handler may, or another thread."""
    from doorstep.envs._ring import Output

    env, other = vector(kind), vector(kind)
    env.reset()
    other.reset()
    renew = Output.renew

    def renew_while_asked(output: Output) -> None:
        monkeypatch.setattr(Output, "renew", renew)
        _ = env.simulator
        renew(output)

    for step, actions in enumerate(actions_of(6, 6, WORLDS, AGENTS).reshape(6, WORLDS, -1)):
        if step == 3:
            monkeypatch.setattr(Output, "renew", renew_while_asked)
        observations = env.step(actions)[0]
        equal(observations, other.step(actions)[0])
        if step > 3:
            equal(shown(env.simulator, observations), observations)
    env.close()
    other.close()
