"""Policies by name, from modules and from files: the contract, and the errors that name what is wrong."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from doorstep.policies import find_policy, load_policy, make_policy

import doorstep

WriteModule = Callable[[str], Path]

ANSWERS = """
import numpy as np

SHAPE = (2, 2, 4)
seen = []

def policy(observations):
    seen.append(observations)
    actions = np.zeros(SHAPE, np.uint8)
    actions[..., 0], actions[..., 2] = len(seen), 2
    return actions

class OnlyDlpack:
    def __init__(self):
        self.array = np.full(SHAPE, 1, np.int16)
    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)
    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

class OnGpu:
    def __array__(self, dtype=None, copy=None):
        raise TypeError("cannot convert a tensor on cuda:0")

numbers = lambda observations: np.full(SHAPE, 1).tolist()
int64 = lambda observations: np.full(SHAPE, 1)
dlpack = lambda observations: OnlyDlpack()
gpu = lambda observations: OnGpu()
floats = lambda observations: np.full(SHAPE, 1.0)
truths = lambda observations: np.full(SHAPE, True)
flat = lambda observations: np.full((4, 4), 1)
nothing = lambda observations: None
ragged = lambda observations: [[1], [1, 2]]
huge = lambda observations: np.full(SHAPE, 2**31)
fails = lambda observations: observations["self_observation"]
not_a_function = 7
"""


@pytest.fixture
def sim() -> Iterator[doorstep.Simulator]:
    with doorstep.Simulator(2, seed=3) as one:
        yield one


@pytest.fixture
def write_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WriteModule]:
    """Writes `answers.py` into the current folder; what was imported is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])

    def write(code: str) -> Path:
        path = tmp_path / "answers.py"
        path.write_text(code)
        return path

    yield write
    for name in ("answers", "turns", "__doorstep_policy__"):
        sys.modules.pop(name, None)


@pytest.fixture
def answers(write_module: WriteModule) -> Path:
    return write_module(ANSWERS)


def test_a_policy_is_called_before_each_step_and_its_actions_are_set(sim: doorstep.Simulator, answers: Path) -> None:
    act = make_policy("answers:policy", sim)
    for step in range(1, 4):
        act()
        assert sim.actions.to_numpy().tolist() == np.full((2, 2, 4), (step, 0, 2, 0)).tolist()
        sim.step()
    assert len(sys.modules["answers"].seen) == 3


def test_observations_are_every_tensor_by_name_as_it_is_now(sim: doorstep.Simulator, answers: Path) -> None:
    act = make_policy("answers:policy", sim)
    sim.step()
    act()
    (observations,) = sys.modules["answers"].seen
    assert list(observations) == list(sim.tensors)
    assert len(observations) == len(sim.tensors)
    for name, tensor in sim.tensors.items():
        assert observations[name].dtype == tensor.dtype
        if name != "actions":
            assert np.array_equal(observations[name], tensor.to_numpy())
    with pytest.raises(KeyError, match=r"'lidars' is not a tensor of the simulator; did you mean 'lidar'\?"):
        observations["lidars"]


def test_observations_are_copies_that_a_policy_may_keep_and_change(sim: doorstep.Simulator, answers: Path) -> None:
    act = make_policy("answers:policy", sim)
    act()
    kept = sys.modules["answers"].seen[0]["self_observations"]
    before = kept.copy()
    sim.actions.to_numpy()[:] = (3, 0, 2, 0)
    sim.step()
    assert np.array_equal(kept, before)
    assert not np.array_equal(sim.self_observations.to_numpy(), before)
    shown = sim.self_observations.copy_to_host()
    kept[:] = -1
    assert np.array_equal(sim.self_observations.to_numpy(), shown)


@pytest.mark.parametrize("name", ["numbers", "int64", "dlpack"])
def test_actions_may_be_of_any_library_and_integer_type(sim: doorstep.Simulator, answers: Path, name: str) -> None:
    make_policy(f"answers:{name}", sim)()
    assert (sim.actions.to_numpy() == 1).all()


def test_pytorch_policies_work_on_the_same_numbers(sim: doorstep.Simulator, write_module: WriteModule) -> None:
    pytest.importorskip("torch")
    write_module("""
import torch

def act(observations):
    own = torch.from_numpy(observations["self_observations"])
    actions = torch.zeros((*own.shape[:2], 4), dtype=torch.int64)
    actions[..., 0] = (own[..., 3] < 1).long()  # y
    return actions
""")
    make_policy("answers:act", sim)()
    assert sim.actions.to_numpy()[..., 0].tolist() == [[1, 1], [1, 1]]


@pytest.mark.parametrize("relative", [True, False])
def test_a_policy_may_be_in_a_file_beside_what_it_imports(
    sim: doorstep.Simulator, write_module: WriteModule, tmp_path: Path, relative: bool
) -> None:
    write_module("SPEED = 1\n")
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    (scripts / "turns.py").write_text("LEFT = 3\n")
    (scripts / "train.py").write_text("""
from __future__ import annotations
import dataclasses, numpy, answers, turns

@dataclasses.dataclass
class Net:
    speed: int = answers.SPEED
    def __call__(self, observations):
        return numpy.full((2, 2, 4), (self.speed, 0, turns.LEFT, 0))

policy = Net()
if __name__ == "__main__":
    raise SystemExit("training")
""")
    path = Path("scripts", "train.py") if relative else scripts / "train.py"
    make_policy(f"{path}:policy", sim)()
    assert sim.actions.to_numpy()[1, 1].tolist() == [1, 0, 3, 0]


def test_a_file_does_not_take_the_place_of_a_module_of_its_name(write_module: WriteModule, tmp_path: Path) -> None:
    import random

    (tmp_path / "random.py").write_text("def policy(observations): return 7\n")
    assert load_policy("random.py:policy")({}) == 7
    assert sys.modules["random"] is random


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "wise",
            (
                "policy is 'wise'; it must be 'random', 'idle', 'scripted', 'trained', 'module:function' or "
                "'path/to/file.py:function'"
            ),
        ),
        ("randon", "it must be 'random', 'idle', .* (did you mean 'random'?)"),
        (":policy", "policy is ':policy'; it must be 'random', "),
        ("answers:", "policy is 'answers:'; it must be 'random', "),
        ("answer:policy", "policy is 'answer:policy'; there is no module 'answer' (run from "),
        ("answers.net:policy", "policy is 'answers.net:policy'; there is no module 'answers.net' (run from "),
        ("..answers:policy", "policy is '..answers:policy'; there is no module '..answers' (run from "),
        ("answer.py:policy", "policy is 'answer.py:policy'; there is no file 'answer.py' ("),
        ("answers.py:polcy", "policy is 'answers.py:polcy'; 'answers.py' has no 'polcy' (did you mean 'policy'?)"),
        ("answers:polcy", "policy is 'answers:polcy'; 'answers' has no 'polcy' (did you mean 'policy'?)"),
        (
            "answers:not_a_function",
            "'not_a_function' of 'answers' is of type int; it must be a function: observations -> act",
        ),
    ],
)
def test_a_policy_that_cannot_be_found_is_an_error_that_says_why(
    sim: doorstep.Simulator, answers: Path, text: str, says: str
) -> None:
    before = sys.path[:]
    with pytest.raises(doorstep.ArgumentError) as caught:
        make_policy(text, sim)
    for part in says.split(".*"):
        assert part in str(caught.value)
    assert caught.value.argument == "policy"
    assert sys.path in (before, [os.getcwd(), *before])


@pytest.mark.parametrize("text", ["answers:policy", "answers.py:policy"])
@pytest.mark.parametrize(
    ("code", "says"),
    [
        (
            "import numpy\n\nimport missing_module\n",
            "ModuleNotFoundError: No module named 'missing_module' (answers.py, line 3)",
        ),
        ("def policy(:\n", "SyntaxError: "),
        ("\n1 / 0\n", "ZeroDivisionError: division by zero (answers.py, line 2)"),
    ],
)
def test_a_module_that_cannot_be_imported_is_an_error_with_its_cause_and_its_line(
    write_module: WriteModule, text: str, code: str, says: str
) -> None:
    write_module(code)
    with pytest.raises(doorstep.ArgumentError) as caught:
        load_policy(text)
    assert str(caught.value).startswith(f"policy is '{text}'; importing '{text.split(':')[0]}' raised {says}")
    assert type(caught.value.__cause__).__name__ == says.split(":")[0]


@pytest.mark.parametrize("text", [None, 3, [], b"random", np.ones(2)], ids=repr)
def test_a_policy_is_named_by_a_text(text: Any) -> None:
    for find in (find_policy, load_policy):
        with pytest.raises(doorstep.ArgumentError, match=r"^policy is .*; it must be 'random', 'idle'"):
            find(text)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("floats", "policy 'answers:floats' returned float64 [2, 2, 4]; it must return integers [2, 2, 4]"),
        ("truths", "policy 'answers:truths' returned bool [2, 2, 4]; it must return integers [2, 2, 4]"),
        ("flat", "policy 'answers:flat' returned int64 [4, 4]; it must return integers [2, 2, 4]"),
        ("nothing", "policy 'answers:nothing' returned NoneType; it must return integers [2, 2, 4]"),
        ("ragged", "policy 'answers:ragged' returned list; it must return integers [2, 2, 4]"),
        (
            "gpu",
            "it must return integers [2, 2, 4] in the host's memory (TypeError: cannot convert a tensor on cuda:0)",
        ),
    ],
)
def test_actions_that_do_not_fit_are_an_error_and_change_nothing(
    sim: doorstep.Simulator, answers: Path, name: str, says: str
) -> None:
    sim.actions.to_numpy()[:] = 1
    act = make_policy(f"answers:{name}", sim)
    with pytest.raises(doorstep.ArgumentError) as caught:
        act()
    assert says in str(caught.value)
    assert caught.value.argument == "policy"
    assert (sim.actions.to_numpy() == 1).all()


def test_an_exception_of_a_policy_comes_out_as_it_is(sim: doorstep.Simulator, answers: Path) -> None:
    with pytest.raises(KeyError, match="self_observation"):
        make_policy("answers:fails", sim)()


def test_idle_agents_stand_still(sim: doorstep.Simulator) -> None:
    sim.actions.to_numpy()[:] = 1
    positions = sim.state.body_positions.copy_to_host()[:, :2]
    act: Any = make_policy("idle", sim)
    for _ in range(3):
        act()
        sim.step()
    assert sim.state.body_positions.to_numpy()[:, :2] == pytest.approx(positions)


def test_random_actions_are_legal_all_of_them_and_follow_from_the_seed() -> None:
    with doorstep.Simulator(500, seed=3) as sim, doorstep.Simulator(500, seed=3) as twin:
        act, act_too = make_policy("random", sim), make_policy("random", twin)
        for _ in range(2):
            before = sim.actions.copy_to_host()
            act()
            act_too()
            actions = sim.actions.to_numpy()
            assert (actions != before).any()
            assert (actions == twin.actions.to_numpy()).all()
        for component, choices in enumerate((4, 8, 5, 2)):
            assert set(actions[..., component].reshape(-1).tolist()) == set(range(choices))


def test_values_out_of_range_are_the_simulators_matter(sim: doorstep.Simulator, answers: Path) -> None:
    make_policy("answers:huge", sim)()
    sim.step()
    assert sim.health.clamped_actions > 0


def test_a_callable_is_a_policy_too(sim: doorstep.Simulator) -> None:
    def three(observations: Mapping[str, Any]) -> Any:
        return np.full(observations["actions"].shape, 3)

    make_policy(three, sim)()
    assert (sim.actions == 3).all()
    with pytest.raises(doorstep.ArgumentError, match="policy '<lambda>' returned NoneType; it must return integers"):
        make_policy(lambda _: None, sim)()
