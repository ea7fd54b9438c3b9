"""Every environment is a plain simulator in its framework's words, whatever is called in whatever order."""

import copy
import dataclasses
import pickle
import zlib
from collections import Counter

import numpy as np
import pytest
from tests.refuses import refuses

pytest.importorskip("gymnasium")

from tests.envs.every import ENVIRONMENTS, KINDS, Case, arrays_in, played
from tests.envs.histories import ALIKE, FAR, NEAR, PARTS, REORDERED, History, actions_of, some_worlds
from tests.envs.stand_ins import pufferlib_or_stand_in

import doorstep
import doorstep.envs
from doorstep.levels import Rewards

CALLS = 40
COPIES = (lambda env: pickle.loads(pickle.dumps(env)), copy.deepcopy)
KINDS_OF_OBSERVATIONS = {"flat": doorstep.OBSERVATIONS, "reordered": REORDERED, "by_name": "by_name"}


def double(step):
    """Rewards; returns of episodes are the simulator's."""
    return 2 * step.rewards


def drawn_cases(kind, draw, number):
    """Each value of an option as often as the others, in any order."""

    def values(options):
        return [options[index] for _ in range(number) for index in draw.permutation(len(options))][:number]

    rewards = values((None, Rewards(progress=0.5, idle=-0.25, goal=2), *[double] * kind.rewards_by_functions))
    tables = ([NEAR], [FAR, NEAR], [doorstep.levels.reference(), NEAR, FAR], None, [NEAR, FAR])
    levels = values(tables if kind.resets_unseeded else ([ALIKE], [ALIKE], None))
    rules = []
    for reward, table in zip(rewards, levels, strict=True):
        rules.append({"num_threads": 1, "episode_length": int(draw.integers(1, 8)), "reward": reward})
        if table is not None:
            rules[-1]["levels"] = table
            if kind.resets_unseeded and draw.random() < 0.5:
                rules[-1]["level_weights"] = (*range(2, len(table) + 1), 1)
        if kind.resets_unseeded:
            rules[-1].update(seed=int(draw.integers(2**32)), world_offset=int(draw.integers(3)) * 5)
    options = (kind.worlds, (1, 2, 3), kind.views, kind.forms, kind.observations, kind.autoresets)
    return [Case(*case) for case in zip(*map(values, options), rules, strict=True)]


class Walk:
    """Calls in random order of an environment and of the model."""

    def __init__(self, name, case, draw, seen):
        case = dataclasses.replace(case, observations=KINDS_OF_OBSERVATIONS[case.observations])
        self.case, self.draw, self.seen = case, draw, seen
        self.env = KINDS[name](name, case)
        self.names = [part for part in PARTS if case.agents > 1 or part != "partner_observations"]
        rules = {**case.rules, "num_agents": case.agents}
        if case.observations != "by_name":
            self.names, rules["observations"] = ["observations"], case.observations
        self.scale = 2 if rules.get("reward") is double else 1
        if self.scale == 2:
            rules["reward"] = None
        seeds_of = self.env.seeds_of if self.env.seeds_of(0) else None
        self.model = History(self.env.autoreset, case.worlds, seeds_of, **rules)
        self.kept = []
        self.actions = iter(actions_of(int(draw.integers(1000)), CALLS + 1, case.worlds, case.agents))

    def run(self):
        if self.env.needs_reset:
            refuses(r"reset\(\)", self.env.step, next(self.actions), error=doorstep.StateError)
        self.reset(None if self.env.resets_unseeded and self.draw.random() < 0.7 else 3)
        for _ in range(CALLS):
            self.keep_some()
            self.call()
            for array, values in self.kept:
                np.testing.assert_array_equal(array, values)
        self.env.raw = None
        self.env.close()
        for array, values in self.kept:
            np.testing.assert_array_equal(array, values)
        if self.env.simulators():
            with pytest.raises(doorstep.ClosedError):
                self.env.reset(seed=1)

    def call(self):
        way, ended = self.draw.random(), self.model.ended
        if ended.any() and not ended.all() and self.env.leaves_ended and way < 0.3:
            self.reset_some(~ended & some_worlds(self.draw, len(ended)))  # those that have ended are not forgotten
        if ended.any() and self.env.autoreset == "disabled":
            if way < 0.3:
                self.refused(doorstep.StateError, lambda: self.env.step(next(self.actions, self.model_actions)))
            if self.env.resets_some and way < 0.8:
                self.reset_some(ended.copy())
            else:
                self.reset(None)
        elif way < 0.04 and self.env.resets_unseeded:
            self.reset(None)
        elif way < 0.09:
            self.reset(int(self.draw.integers(2**32)))
        elif way < 0.17 and self.env.resets_some:
            self.reset_some(some_worlds(self.draw, self.case.worlds))
        elif way < 0.22 and self.env.is_copied:
            self.copy()
        elif way < 0.25:
            self.use_simulators()
        elif way < 0.28:
            self.refused(doorstep.ArgumentError, lambda: self.env.step(self.env.wrong(self.model_actions)))
            if self.env.resets_unseeded:
                self.refused(doorstep.ArgumentError, lambda: self.env.reset(seed=-1))
        else:
            self.step()

    def keep_some(self):
        """Of what was returned last, callers keep a part, and write into another."""
        raw, self.env.raw = self.env.raw, None
        for array in arrays_in(raw):
            way = self.draw.random()
            if way < 0.2:
                self.kept.append((array, array.copy()))
            elif any(np.shares_memory(array, other) for other, _ in self.kept):
                pass
            elif way < 0.5 and self.env.may_be_written and array.flags.writeable:
                array[...] = ~array if array.dtype == bool else 99
        if len(self.kept) > 12:
            del self.kept[: int(self.draw.integers(12))]

    @property
    def model_actions(self):
        return np.ones((self.case.worlds, self.case.agents, 4), np.int32)

    def reset(self, seed):
        if seed is None and not self.env.resets_unseeded:
            seed = 5
        if seed is None and hasattr(self, "begun"):
            expected = self.model.reset()
        elif seed is None:
            expected = self.model.worlds.observe()
        else:
            expected = self.model.reset(seed=seed)
        self.begun = True
        self.same(self.env.reset(seed), expected)
        if seed is not None and hasattr(self.env.env, "np_random_seed"):
            assert self.env.env.np_random_seed == seed

    def reset_some(self, worlds):
        if worlds.any():
            self.seen["resets of some"] += 1
            self.same(self.env.reset_some(worlds), self.model.reset(worlds))

    def copy(self):
        original = self.env
        self.env = original.copied(COPIES[self.draw.integers(2)])
        original.close()

    def use_simulators(self):
        """Who has the simulator sees what the environment returned, and may have all of it written anew."""
        simulators, expected = self.env.simulators(), self.model.worlds.observe()
        for name in self.names if simulators else ():
            np.testing.assert_array_equal(np.concatenate([one.tensors[name] for one in simulators]), expected[name])
        for simulator in simulators:
            simulator.refresh()
            simulator.restore(simulator.save())

    def refused(self, error, call):
        """Nothing is changed: the calls that follow are as the model says."""
        with pytest.raises(error) as caught:
            call()
        assert error is not doorstep.ArgumentError or caught.value.argument.startswith(("action", "seed"))

    def step(self):
        actions = next(self.actions)
        found, expected = self.env.step(actions), self.model.step(actions)
        self.same(found.observations, expected.observations)
        ended = expected.ended
        np.testing.assert_array_equal(found.ended, ended)
        for name in ("terminated", "truncated"):
            if getattr(found, name) is not None:
                np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), name)
            self.seen[name] += getattr(expected, name).sum()
        self.seen["different rewards"] += (expected.rewards != expected.rewards[:, :1]).sum()
        self.close_to(found.rewards, self.scale * expected.rewards, 1e-6)
        if found.returns is not None and ended.any():
            if self.env.name == "EscapeRoomPufferEnv":  # the mean of all that ended
                assert found.returns[0, 0] == pytest.approx(expected.returns[ended].mean(), rel=1e-4, abs=1e-6)
                assert found.lengths[0] == pytest.approx(expected.lengths[ended].mean())
            else:
                self.close_to(found.returns[ended], expected.returns[ended], 1e-5)
                np.testing.assert_array_equal(found.lengths[ended], expected.lengths[ended])
        if found.final is not None:
            last = expected.observations if expected.final is None else expected.final
            for name in self.names:
                shown = last[name].reshape(found.final[name].shape)
                if self.env.final_elsewhere is not None:
                    shown = np.where(ended[:, None, None], shown, self.env.final_elsewhere)
                np.testing.assert_array_equal(found.final[name], shown, name)

    def close_to(self, found, expected, tolerance):
        """Of each agent the same number, or the mean of a world's agents."""
        if self.case.view == "joint":
            expected = expected.mean(1, keepdims=True)
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=1e-7)

    def same(self, found, expected):
        assert sorted(found) == sorted(self.names)
        for name in self.names:
            np.testing.assert_array_equal(found[name], expected[name].reshape(found[name].shape), name)


@pytest.fixture
def _frameworks():
    with pufferlib_or_stand_in():
        yield


@pytest.mark.usefixtures("_frameworks")
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_any_calls_are_those_of_a_plain_simulator(name):
    draw, seen = np.random.default_rng(zlib.crc32(name.encode())), Counter()
    number = 6 + 3 * len(KINDS[name].autoresets) if KINDS[name].resets_unseeded else 3  # those of JAX are compiled
    for index, case in enumerate(drawn_cases(KINDS[name], draw, number)):
        print(index, case.view, case.form, case.observations, case.autoreset)
        Walk(name, case, draw, seen).run()
    ways = ["terminated", "truncated", "different rewards", *["resets of some"] * KINDS[name].resets_some]
    assert min(seen[way] for way in ways) > 2, seen


ON_GPUS = {"EscapeRoomSkrlEnv": "skrl", "EscapeRoomSkrlMultiAgentEnv": "skrl", "EscapeRoomRslRlEnv": "rsl_rl"}


@pytest.mark.parametrize("name", ON_GPUS)
def test_any_calls_are_the_same_with_the_functions_of_a_gpu_which_is_not_waited_for(name, monkeypatch):
    """These functions on the CPU. A GPU is not asked whether episodes have ended or numbers are outside."""
    pytest.importorskip(KINDS[name].module)
    from tests.envs.torch_checks import NoWaits, arrays_of_a_gpu

    monkeypatch.setattr(f"doorstep.envs.{ON_GPUS[name]}.torch_arrays", arrays_of_a_gpu)
    draw = np.random.default_rng(1)
    for case in drawn_cases(KINDS[name], draw, 4):
        Walk(name, dataclasses.replace(case, worlds=3, form="multi_discrete"), draw, Counter()).run()
    each = played(name)
    each.reset(seed=1)
    rows = each.tensor(np.ones((each.case.worlds, 2, 4), np.int64))
    given = dict.fromkeys(each.env.agents, rows[:2]) if "Multi" in name else rows
    with NoWaits():
        each.env.reset()
        for _ in range(6):
            each.env.step(given)


@pytest.mark.usefixtures("_frameworks")
@pytest.mark.parametrize("name", [one for one in ENVIRONMENTS if KINDS[one.values[0]].resets_unseeded])
def test_without_a_seed_one_is_drawn_told_and_reproduced(name):
    drawn = [played(name) for _ in range(3)]
    seeds = [each.env.np_random_seed for each in drawn]
    again = played(name, seed=seeds[0])
    first, *others, same = (each.reset()["observations"] for each in (*drawn, again))
    assert len(set(seeds)) == 3
    np.testing.assert_array_equal(same, first)
    assert not any(np.array_equal(other, first) for other in others)
    assert {simulator.seed for simulator in drawn[0].simulators()} == {seeds[0]}


@pytest.mark.usefixtures("_frameworks")
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_keywords_that_it_has_not_are_type_errors_with_what_was_meant(name):
    """As of every Python function; gymnasium and TorchRL rely on it."""
    hints = {**dict.fromkeys(("num_worlds", "n_envs"), "pass num_envs"), "auto_reset": "pass autoreset_mode"}
    if "Jax" in name:
        hints = {"num_worlds": "jax.vmap", "seed": "key of reset", "num_agent": "'num_agents'"}
    sizes = {"num_envs": 2} if name == "AsyncEscapeRooms" else {}
    if name in ("EscapeRoomPufferEnv", "EscapeRoomTorchRLEnv"):
        hints.pop("auto_reset")  # begins episodes in the same step; TorchRL's own keyword of every environment
    for wrong, hint in {**hints, "episode_lenght": "did you mean 'episode_length'", "frameskip": "it takes a"}.items():
        arguments = [{"num_envs": 2, wrong: 1}] if name == "EscapeRoomRLlibEnv" else []
        with pytest.raises(TypeError, match=rf"__init__\(\) got an unexpected keyword argument '{wrong}'") as caught:
            getattr(doorstep.envs, name)(*arguments, **({} if arguments else {**sizes, wrong: 1}))
        assert hint in str(caught.value)


@pytest.mark.parametrize("name", ["EscapeRoomEnv", "EscapeRoomParallelEnv", "EscapeRoomSkrlEnv", "EscapeRoomVectorEnv"])
def test_pictures_are_the_simulators_with_the_options_of_the_environment(name):
    pytest.importorskip(KINDS[name].module)
    for view in ("joint", "rows") if name == "EscapeRoomVectorEnv" else KINDS[name].views[-1:]:
        follows = view == "rows" and name != "EscapeRoomParallelEnv"
        for options in ({}, {"width": 64, "height": 48, "samples": 2}, {"camera": "top"}):
            each = played(name, Case(1, 2, view), render_mode="rgb_array", render_options=options, seed=4)
            each.reset()
            pictures = each.env.render()
            pictures = pictures if isinstance(pictures, tuple) else [pictures]
            assert len(pictures) == (2 if (name, view) == ("EscapeRoomVectorEnv", "rows") else 1)
            for agent, picture in enumerate(pictures):
                of_agent = {"camera": "follow", "agent": agent} if follows else {"camera": "overview"}
                wanted = {"samples": 1, **({} if "camera" in options else of_agent), **options}
                np.testing.assert_array_equal(picture, each.env.simulator.render(0, **wanted))
    silent = played(name)
    silent.reset()
    assert silent.env.render() is None
    for wrong in ({"width": 0}, {"widht": 64}, {"samples": 9}, {"camera": "side"}, {"agent": 2}, ["width"]):
        with pytest.raises(doorstep.ArgumentError):
            played(name, render_options=wrong)
