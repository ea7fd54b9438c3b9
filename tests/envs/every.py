"""Every environment by name, spoken to in worlds and agents: for each framework a class translates its words."""

import copy
import dataclasses
import importlib.util
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from tests.envs.histories import Told

import doorstep
import doorstep.envs

STRIDES = (80, 10, 2, 1)  # of an action's components in its number, 0 to 319


@dataclasses.dataclass(frozen=True)
class Case:
    """What an environment is made with; `rules` are the simulator's."""

    worlds: int = 2
    agents: int = 2
    view: str = "joint"
    form: str = "multi_discrete"
    observations: Any = doorstep.OBSERVATIONS
    autoreset: str = "next_step"
    rules: Any = dataclasses.field(default_factory=dict)


class Played:
    """An environment of any framework. What its calls returned last, in the framework's words, is in `raw`."""

    module = "gymnasium"  # of the framework
    # What cases are drawn from
    worlds = (1, 3, 4)
    views = ("joint", "rows")
    forms = ("multi_discrete", "discrete", "tuple")
    observations = ("flat", "by_name", "reordered")
    autoresets = ("same_step",)
    # What it can do
    resets_some = False
    leaves_ended = False  # resets some beside others that have ended
    resets_unseeded = True
    rewards_by_functions = True
    is_copied = True
    may_be_written = True  # what it returned
    needs_reset = True  # before the first step
    final_elsewhere = 0  # in final observations where no episode has ended; None: what is observed

    def __init_subclass__(cls, **facts):
        for name, value in facts.items():
            setattr(cls, name, value)

    def __init__(self, name, case):
        self.name, self.case = name, case
        self.rows = case.worlds * (case.agents if case.view == "rows" else 1)
        self.rules = {"num_agents": case.agents, **case.rules}
        self.options = {"actions": case.form, "observations": case.observations}
        self.raw = None
        self.env = self.make(getattr(doorstep.envs, name))

    @property
    def autoreset(self):
        return self.case.autoreset

    @property
    def names(self):
        return [f"agent_{index}" for index in range(self.case.agents)]

    def make(self, kind):
        return kind(self.rows, agents=self.case.view, **self.options, **self.rules)

    def reset(self, seed=None):
        """Begins episodes in all worlds; observations by name, [N, A, numbers]."""
        self.raw = self.env.reset(seed=seed)
        observations, infos = self.raw
        assert not infos
        return self.seen(observations)

    def step(self, actions):
        """A step with actions [N, A, 4]."""
        raise NotImplementedError

    def close(self):
        self.env.close()

    def copied(self, way):
        other = copy.copy(self)
        other.raw, other.env = None, way(self.env)
        return other

    def simulators(self):
        return tuple(self.env.simulators) if hasattr(self.env, "simulators") else (self.env.simulator,)

    def seeds_of(self, seed):
        """Of worlds that have seeds of their own."""
        return

    def wrong(self, actions):
        """Actions that are refused: a component is missing, or no integer, or a number is outside."""
        if self.case.form == "multi_discrete":
            return actions[..., :3]
        return actions / 2 if self.case.form == "tuple" else actions + np.array([4, 0, 0, 0])

    # ---- Words of most frameworks ----

    def given(self, actions):
        """By row, as spaces of gymnasium have them."""
        if self.case.form == "discrete":
            actions = (actions @ np.array(STRIDES))[..., None]
        rows = actions.reshape(self.rows, -1)
        if self.case.form == "tuple":
            return tuple(rows.T)
        return rows[:, 0] if self.case.form == "discrete" and rows.shape[1] == 1 else rows

    def tensor(self, actions):
        """By row, numbers in a dimension of their own."""
        import torch

        numbers = (actions @ np.array(STRIDES))[..., None] if self.case.form == "discrete" else actions
        return torch.from_numpy(np.array(numbers).reshape(self.rows, -1))

    def seen(self, observations):
        parts = observations if isinstance(observations, Mapping) else {"observations": observations}
        return {name: self.by_agent(part) for name, part in parts.items()}

    def by_agent(self, array):
        return np.asarray(array).reshape(self.case.worlds, self.case.agents, -1)

    def by_world(self, flags):
        flags = np.asarray(flags)
        assert flags.dtype == bool
        rows = flags.reshape(self.case.worlds, -1)
        assert (rows == rows[:, :1]).all()
        return rows[:, 0]

    def numbers(self, values):
        return np.asarray(values).reshape(self.case.worlds, -1)

    def told(self, observations, rewards, ended, *flags, final=None, **sums):
        """Flags: terminated and truncated. Sums: returns and lengths."""
        rewards, ended = np.asarray(rewards), self.by_world(ended)
        assert rewards.dtype == np.float32
        more = {name: self.numbers(values) for name, values in sums.items()}
        if "lengths" in more:
            more["lengths"] = more["lengths"][:, 0]
        by_world = [None if flag is None else self.by_world(flag) for flag in flags]
        more["final"] = None if final is None else self.seen(final)
        return Told(self.seen(observations), self.numbers(rewards), ended, *by_world, **more)


class Vector(Played, autoresets=("next_step", "same_step", "disabled"), resets_some=True, leaves_ended=True):
    def make(self, kind):
        options = {**self.options, "agents": self.case.view, "autoreset_mode": self.case.autoreset, **self.rules}
        if self.name == "EscapeRoomRLlibEnv":
            return kind({**options, "num_envs": self.rows})
        return kind(self.rows, **options)

    def reset_some(self, worlds):
        self.raw = self.env.reset(options={"reset_mask": np.repeat(worlds, self.rows // len(worlds))})
        assert self.raw[1] == {}
        return self.seen(self.raw[0])

    def seen(self, observations):
        arrays = mapped(lambda one: one[0], [observations])
        assert arrays in self.env.observation_space
        return super().seen(arrays)

    def step(self, actions):
        self.raw = self.env.step(self.given(actions))
        observations, rewards, terminated, truncated, info = self.raw
        ended = terminated | truncated
        if not ended.any():
            assert info == {}
            return self.told(observations, rewards, ended, terminated, truncated)
        final = None
        if self.case.autoreset == "same_step":
            assert list(info) == ["final_obs", "_final_obs", "final_info", "_final_info"]
            assert (info["_final_obs"] == ended).all()
            assert (info["_final_info"] == ended).all()
            final, info = info["final_obs"], info["final_info"]
        sums = self.sums_of(info, ended)
        return self.told(observations, rewards, ended, terminated, truncated, final=final, **sums)

    def sums_of(self, info, ended):
        names = ("episode_returns", "episode_lengths")
        assert set(info) == {*names, *(f"_{name}" for name in names)}
        assert all((info[f"_{name}"] == ended).all() for name in names)
        return {"returns": info["episode_returns"], "lengths": info["episode_lengths"]}


class TorchVector(Vector, module="torch"):
    def given(self, actions):
        import torch

        rows = super().given(actions)
        return tuple(map(torch.tensor, rows)) if isinstance(rows, tuple) else torch.from_numpy(np.array(rows))


class RLlib(Vector, forms=("multi_discrete", "discrete"), autoresets=("next_step",)):
    pass


class Asynchronous(Vector, worlds=(3, 4), autoresets=("next_step",), resets_some=False, leaves_ended=False):
    def make(self, kind):
        groups = {"num_groups": 3 if self.case.worlds == 3 else 2}
        return kind(self.rows, agents=self.case.view, **groups, **self.options, **self.rules)

    def reset(self, seed=None):
        self.env.async_reset(seed=seed)
        told = self.received()
        assert not any(one[1].any() or one[2].any() or one[3].any() for one in told)
        return self.seen(mapped(np.concatenate, [one[0] for one in told]))

    def seen(self, observations):
        return Played.seen(self, observations)

    def step(self, actions):
        rows = actions.reshape(self.env.num_envs, 1, -1) if self.case.view == "rows" else actions
        for ids in reversed(np.arange(self.env.num_envs).reshape(self.env.num_groups, -1)):
            sent = self.given(rows[ids])
            self.env.send(sent, ids)
            for array in sent if isinstance(sent, tuple) else [sent]:
                array[...] = 0  # they were copied
        observations, rewards, terminated, truncated, infos = zip(*self.received(), strict=True)
        sums = {"returns": [], "lengths": []}
        for info, *flags in zip(infos, terminated, truncated, strict=True):
            ended = flags[0] | flags[1]
            own = {name: info[name] for name in info if name != "env_id"}
            assert ended.any() or not own
            told = self.sums_of(own, ended) if own else dict.fromkeys(sums, 0.0 * ended)
            for name, values in told.items():
                sums[name].append(values)
        of_rows = {name: np.concatenate(values) for name, values in sums.items()}
        rewards, terminated, truncated = map(np.concatenate, (rewards, terminated, truncated))
        flags = (terminated | truncated, terminated, truncated)
        return self.told(mapped(np.concatenate, observations), rewards, *flags, **of_rows)

    def given(self, actions):
        whole, self.rows = self.rows, self.env.batch_size
        try:
            return super().given(actions)
        finally:
            self.rows = whole

    def received(self):
        """Of all groups, in the order of their rows."""
        told = sorted((self.env.recv() for _ in range(self.env.num_groups)), key=lambda one: int(one[4]["env_id"][0]))
        self.raw = [(*one[:4], {name: one[4][name] for name in one[4].keys() - {"env_id"}}) for one in told]
        assert np.concatenate([one[4]["env_id"] for one in told]).tolist() == list(range(self.rows))
        return told


class Single(Played, worlds=(1,), views=("joint",), autoresets=("disabled",)):
    def make(self, kind):
        return kind(**self.options, **self.rules)

    def seen(self, observations):
        assert observations in self.env.observation_space
        return super().seen(observations)

    def step(self, actions):
        rows = self.given(actions)
        self.raw = self.env.step(tuple(part[0] for part in rows) if isinstance(rows, tuple) else rows[0])
        observations, reward, terminated, truncated, info = self.raw
        assert (type(reward), type(terminated), type(truncated)) == (float, bool, bool)
        ended = terminated or truncated
        assert set(info) == ({"episode_returns", "episode_lengths"} if ended else set())
        sums = {name.removeprefix("episode_"): [value] for name, value in info.items()}
        return self.told(observations, np.float32([reward]), [ended], [terminated], [truncated], **sums)


class Parallel(Played, module="pettingzoo", worlds=(1,), views=("rows",), autoresets=("disabled",)):
    """Dictionaries of actions are given in the other order of agents."""

    def make(self, kind):
        return kind(**self.options, **self.rules)

    def seen(self, observations):
        assert set(observations) == set(self.env.possible_agents) == {*self.names}
        assert all(observations[name] in self.env.observation_space(name) for name in self.names)
        return super().seen(stacked([observations[name] for name in self.names]))

    def reset(self, seed=None):
        self.raw = observations, infos = self.env.reset(seed=seed)
        assert self.env.agents == self.env.possible_agents
        assert infos == {agent: {} for agent in self.env.agents}
        return self.seen(observations)

    def step(self, actions):
        rows, agents = self.given(actions), self.names
        of_agents = list(zip(*rows, strict=True)) if isinstance(rows, tuple) else list(rows)
        self.raw = self.env.step(dict(reversed([*zip(agents, of_agents, strict=True)])))
        observations, *by_name, infos = self.raw
        rewards, terminated, truncated = ([one[agent] for agent in agents] for one in by_name)
        ended = np.array(terminated) | np.array(truncated)
        assert self.env.agents == ([] if ended.all() else agents)
        of_episode = {"episode_returns", "episode_lengths"} if ended.all() else set()
        assert all(set(infos[agent]) == of_episode for agent in agents)
        sums = {name.removeprefix("episode_"): [infos[agent][name] for agent in agents] for name in of_episode}
        return self.told(observations, np.float32(rewards), ended, terminated, truncated, **sums)


class StableBaselines(Played, module="stable_baselines3", forms=("multi_discrete", "discrete")):
    def reset(self, seed=None):
        if seed is not None:
            assert self.env.seed(seed) == [seed] * self.rows
        self.raw = self.env.reset()
        return self.seen(self.raw)

    def step(self, actions):
        """Every other step in two calls."""
        rows = self.given(actions).copy()
        self.in_halves = not getattr(self, "in_halves", False)
        if self.in_halves:
            self.env.step_async(rows)
            rows[...] = 0  # they were copied
            self.raw = self.env.step_wait()
        else:
            self.raw = self.env.step(rows)
        observations, rewards, dones, infos = self.raw
        assert [bool(info) for info in infos] == dones.tolist()
        if not dones.any():
            return self.told(observations, rewards, dones)
        first = next(info for info in infos if info)
        assert set(first) == {"terminal_observation", "TimeLimit.truncated", "episode"}
        assert all(0 <= info["episode"]["t"] < 1000 for info in infos if info)
        assert all(array.base is None for array in arrays_in(first["terminal_observation"]))  # else it keeps all rows
        zeros = mapped(lambda one: np.zeros_like(one[0]), [first["terminal_observation"]])
        final = stacked([info.get("terminal_observation", zeros) for info in infos])
        by_task = [bool(info) and not info["TimeLimit.truncated"] for info in infos]
        sums = [info.get("episode", {"r": 0, "l": 0}) for info in infos]
        returns, lengths = ([one[name] for one in sums] for name in ("r", "l"))
        infos[0]["mine"] = 1  # the caller's: it is gone in the next step
        del infos[1:]
        return self.told(observations, rewards, dones, by_task, final=final, returns=returns, lengths=lengths)


class TorchRL(Played, module="torchrl", views=("rows",), forms=("multi_discrete", "discrete")):
    autoresets = ("disabled",)
    resets_some, needs_reset = True, False  # to know what a step is given
    may_be_written = False  # TorchRL reads it again

    def make(self, kind):
        return kind(self.case.worlds, **self.options, **self.rules)

    def reset(self, seed=None):
        if seed is not None:
            self.env.set_seed(seed)
        return self.begun(self.env.reset())

    def reset_some(self, worlds):
        import torch

        mask = torch.from_numpy(worlds)[:, None]
        self.of_group = not getattr(self, "of_group", False)
        if self.of_group:
            self.latest["agents", "_reset"] = mask[:, None].repeat(1, self.case.agents, 1)
        else:
            self.latest["_reset"] = mask
        return self.begun(self.env.reset(self.latest))

    def begun(self, tensordict):
        self.latest, self.raw = tensordict, tensordict.clone(False)
        return self.seen(tensordict)

    def seen(self, tensordict):
        flags = ("done", "terminated", "truncated", "_reset", "action", "reward")
        parts = {name: part for name, part in tensordict["agents"].items() if name not in flags}
        return super().seen({"observations" if name == "observation" else name: parts[name] for name in parts})

    def step(self, actions):
        given = self.tensor(actions)
        given = given if given.is_floating_point() else given.long()
        numbers = () if self.case.form == "discrete" else (-1,)
        self.latest["agents", "action"] = given.reshape(self.case.worlds, self.case.agents, *numbers)
        stepped = self.env.step(self.latest)["next"]
        self.raw, self.latest = stepped.clone(False), self.env.step_mdp(self.env.fake_tensordict().set("next", stepped))
        names = ("done", "terminated", "truncated")
        assert all(stepped[name].shape == (self.case.worlds, 1) for name in names)
        assert all((stepped["agents", name] == stepped[name][:, None]).all() for name in names)
        return self.told(stepped, stepped["agents", "reward"], *(stepped["agents", name] for name in names))


class Skrl(Played, module="skrl"):
    @property
    def autoreset(self):
        """A single environment is reset by skrl's trainers."""
        return "disabled" if self.rows == 1 else "same_step"

    def seen(self, observations):
        from skrl.utils.spaces.torch import unflatten_tensorized_space

        assert observations.shape[0] == self.rows
        return super().seen(unflatten_tensorized_space(self.env.observation_space, observations))

    def step(self, actions):
        self.raw = self.env.step(self.tensor(actions))
        *told, infos = self.raw
        assert all(tuple(each.shape) == (self.rows, 1) for each in told[1:])
        return self.of(*told, infos)

    def of(self, observations, rewards, terminated, truncated, infos):
        sums = {"returns": infos["episode_returns"], "lengths": infos["episode_lengths"]}
        final, flags = infos["final_observations"], (terminated, truncated)
        return self.told(observations, rewards, terminated | truncated, *flags, final=final, **sums)


class SkrlAgents(Skrl, views=("rows",), observations=("flat", "reordered")):
    def make(self, kind):
        return kind(self.case.worlds, **self.options, **self.rules)

    @property
    def autoreset(self):
        return "disabled" if self.case.worlds == 1 else "same_step"

    def seen(self, observations):
        if not isinstance(observations, dict):
            return Played.seen(self, observations)
        state = self.env.state()
        rows = stacked([observations[agent] for agent in self.env.possible_agents], 1)
        for agent in self.env.possible_agents:
            np.testing.assert_array_equal(state[agent], rows.reshape(self.case.worlds, -1))
        return Played.seen(self, rows)

    def step(self, actions):
        names, given = self.names, self.tensor(actions).reshape(self.case.worlds, self.case.agents, -1)
        self.raw = self.env.step({names[index]: given[:, index] for index in reversed(range(len(names)))})
        observations, *by_name, infos = self.raw
        assert all(each[name].shape == (self.case.worlds, 1) for each in by_name for name in names)
        rewards, terminated, truncated = (stacked([each[name] for name in names], 1) for each in by_name)
        over = self.case.worlds == 1 and bool((terminated | truncated).any())
        assert self.env.agents == ([] if over else names)
        return self.of(observations, rewards, terminated, truncated, infos)


class RslRl(Played, module="rsl_rl", forms=("multi_discrete",), needs_reset=False):
    """Every other step with actions in floating point."""

    def make(self, kind):
        self.is_new, self.as_floats = True, False
        return kind(self.rows, agents=self.case.view, observations=self.case.observations, **self.rules)

    def reset(self, seed=None):
        """The first episodes begin when it is made."""
        if seed is None and self.is_new:
            self.raw = self.env.get_observations()
        else:
            self.raw, infos = self.env.reset(seed)
            assert infos == {}
        self.is_new = False
        return self.seen(self.raw)

    def seen(self, observations):
        groups = dict(observations.items())
        return super().seen(groups.get("policy", groups))

    def step(self, actions):
        self.as_floats = not self.as_floats
        given = self.tensor(actions)
        self.raw = self.env.step(given.float() if self.as_floats else given)
        observations, rewards, dones, extras = self.raw
        assert self.env.get_observations() is observations
        final, truncated = extras["final_observations"], extras["time_outs"]
        return self.told(observations, rewards, dones, None, truncated, final=final)


class Puffer(Played, module="numpy", views=("rows",), forms=("multi_discrete",), observations=("flat", "reordered")):
    """There is a stand-in of the module. Its buffers are the simulator's: every step overwrites them."""

    rewards_by_functions = False

    def make(self, kind):
        return kind(self.case.worlds, observations=self.case.observations, **self.rules)

    def reset(self, seed=None):
        observations, infos = self.env.reset(seed)
        assert observations is self.env.observations
        assert infos == []
        return self.seen(observations)

    def step(self, actions):
        observations, rewards, terminated, truncated, infos = self.env.step(actions.reshape(self.rows, -1))
        ended = terminated | truncated
        assert len(infos) == ended.any()
        sums = {"returns": infos[0]["episode_return"], "lengths": infos[0]["episode_length"]} if infos else {}
        sums = {name: np.full(self.case.worlds, mean) for name, mean in sums.items()}
        return self.told(observations, rewards, ended, terminated, truncated, **sums)


class Jax(
    Played, module="jax", worlds=(3,), resets_unseeded=False, is_copied=False, needs_reset=False, final_elsewhere=None
):
    """Worlds are made by `jax.vmap`, with keys of their own."""

    rewards_by_functions = False

    def make(self, kind):
        import jax

        rules = {name: value for name, value in self.rules.items() if name not in ("seed", "num_threads")}
        env = kind(**({"agents": self.case.view} if self.name == "EscapeRoomJaxEnv" else {}), **self.options, **rules)
        self.begin, self.go = jax.jit(jax.vmap(env.reset)), jax.jit(jax.vmap(env.step))
        return env

    def keys(self, seed):
        import jax

        return jax.random.split(jax.random.key(seed), self.case.worlds)

    def seeds_of(self, seed):
        import jax

        return [int(jax.random.bits(key, (), "uint32")) for key in self.keys(seed)]

    def reset(self, seed=None):
        assert seed is not None
        self.raw, self.state = self.begin(self.keys(seed))
        return self.seen(self.raw)

    def given(self, actions):
        worlds, agents = actions.shape[:2]
        rows, form = self.case.view == "rows", self.case.form
        if form == "discrete":
            numbers = actions @ np.array(STRIDES)
            return numbers if rows or agents > 1 else numbers[:, 0]
        if form == "tuple":
            return tuple(np.moveaxis(actions, -1, 0)) if rows else tuple(actions.reshape(worlds, -1).T)
        return actions if rows else actions.reshape(worlds, -1)

    def wrong(self, actions):
        return actions[..., :3] if self.case.form == "multi_discrete" else actions / 2

    def step(self, actions):
        self.raw = self.go(self.keys(0), self.state, self.given(actions))
        observations, self.state, rewards, terminated, truncated, info = self.raw
        assert (terminated == info["terminated"]).all()
        assert (truncated == info["truncated"]).all()
        sums = {"returns": info["episode_returns"], "lengths": info["episode_lengths"]}
        flags, final = (terminated | truncated, terminated, truncated), info["final_observation"]
        return self.told(observations, rewards, *flags, final=final, **sums)

    def close(self):
        pass

    def simulators(self):
        return ()


class JaxMarl(Jax, views=("rows",)):
    def seen(self, observations):
        return super().seen(stacked([observations[name] for name in self.names], 1))

    def given(self, actions):
        parts = super().given(actions)
        if isinstance(parts, tuple):
            return {name: tuple(part[:, index] for part in parts) for index, name in enumerate(self.names)}
        return {name: parts[:, index] for index, name in enumerate(self.names)}

    def step(self, actions):
        self.raw = self.go(self.keys(0), self.state, self.given(actions))
        observations, self.state, rewards, dones, info = self.raw
        ended, of_agents = (stacked([one[name] for name in self.names], 1) for one in (dones, rewards))
        assert (dones["__all__"] == ended.all(1)).all()
        sums = {"returns": info["episode_returns"], "lengths": info["episode_lengths"]}
        return self.told(observations, of_agents, ended, info["terminated"], info["truncated"], **sums)


KINDS = {
    "AsyncEscapeRooms": Asynchronous,
    "EscapeRoomEnv": Single,
    "EscapeRoomJaxEnv": Jax,
    "EscapeRoomJaxMARLEnv": JaxMarl,
    "EscapeRoomParallelEnv": Parallel,
    "EscapeRoomPufferEnv": Puffer,
    "EscapeRoomRLlibEnv": RLlib,
    "EscapeRoomRslRlEnv": RslRl,
    "EscapeRoomSkrlEnv": Skrl,
    "EscapeRoomSkrlMultiAgentEnv": SkrlAgents,
    "EscapeRoomTorchRLEnv": TorchRL,
    "EscapeRoomVecEnv": StableBaselines,
    "EscapeRoomVectorEnv": Vector,
    "TorchEscapeRoomVectorEnv": TorchVector,
}
MISSING = {name for name, kind in KINDS.items() if importlib.util.find_spec(kind.module) is None}
ENVIRONMENTS = [
    pytest.param(name, marks=[pytest.mark.skip(f"could not import {KINDS[name].module!r}")] if name in MISSING else [])
    for name in KINDS
]


def played(name, case=None, **rules):
    """By default two worlds of two agents, or as many as it has."""
    kind = KINDS[name]
    worlds = 2 if 1 < len(kind.worlds) != 2 else max(kind.worlds)
    case = case or Case(worlds, view=kind.views[-1])
    return kind(name, dataclasses.replace(case, rules={"episode_length": 4, "num_threads": 1, **rules}))


def mapped(function, observations):
    """A function of a list of arrays, or of those of each part of dictionaries."""
    if isinstance(observations[0], Mapping):
        return {name: mapped(function, [one[name] for one in observations]) for name in observations[0]}
    return function([np.asarray(one) for one in observations])


def stacked(rows, axis=0):
    return mapped(lambda arrays: np.stack(arrays, axis), rows)


def arrays_in(value):
    """All arrays of numpy, PyTorch and jax in nested containers, as arrays of numpy."""
    if hasattr(value, "numpy") and hasattr(value, "untyped_storage"):
        yield value.numpy()
    elif isinstance(value, np.ndarray) or hasattr(value, "addressable_shards"):  # jax's, which is not written
        yield np.asarray(value)
    elif hasattr(value, "values"):
        for part in value.values():
            yield from arrays_in(part)
    elif isinstance(value, tuple | list):
        for part in value:
            yield from arrays_in(part)
