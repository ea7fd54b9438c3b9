"""`load_policy()`: everything that can choose actions becomes a policy, and errors name what is wrong."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import doorstep
from doorstep import load_policy
from doorstep.planner import ScriptedPolicy
from doorstep.policy import SamplingParams

WriteModule = Callable[[str], Path]

ANSWERS = """
calls = []

def policy(observations):
    calls.append(observations)
    return 7

not_a_function = 7
name = "idle"

def of_other(observations): ...
of_other.observes = "smells"
"""


@pytest.fixture
def write_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WriteModule]:
    """Writes `answers.py` into the current folder; what was imported is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])

    def write(code: str) -> Path:
        path = tmp_path / "answers.py"
        path.write_text(code)
        return path

    before = set(sys.modules)
    yield write
    for name in set(sys.modules) - before:
        if name.startswith(("answers", "turns", "model", "__doorstep_policy")):
            sys.modules.pop(name)


@pytest.fixture
def answers(write_module: WriteModule) -> Path:
    return write_module(ANSWERS)


# ---- What it takes


def test_names_are_policies() -> None:
    observations = np.zeros((3, 2, 94), np.float32)
    assert (load_policy("idle")(observations) == doorstep.NEUTRAL_ACTION).all()
    assert load_policy("trained")(observations).shape == (3, 2, 4)
    assert isinstance(load_policy("scripted"), ScriptedPolicy)


def test_random_actions_are_legal_all_of_them_and_follow_from_the_seed() -> None:
    observations = np.zeros((500, 2, 94), np.float32)
    one, same, other = (load_policy("random", sampling=SamplingParams(seed=seed)) for seed in (3, 3, 4))
    first, second = one(observations), one(observations)
    assert (first == same(observations)).all()
    assert (second == same(observations)).all()
    assert (first != second).any()
    assert (first != other(observations)).any()
    for component, choices in enumerate(doorstep.ACTIONS):
        assert set(first[..., component].reshape(-1).tolist()) == set(range(choices))


def test_policies_and_callables_come_back_as_they_are() -> None:
    trained = load_policy("trained")
    assert load_policy(trained) is trained
    assert load_policy(len) is len


def test_a_sampling_makes_another_policy_of_the_same_weights() -> None:
    trained = load_policy("trained")
    greedy = load_policy(trained, sampling=SamplingParams(greedy=True))
    observations = np.random.default_rng(0).normal(size=(9, 94)).astype(np.float32)
    assert greedy.sampling.greedy
    assert not trained.sampling.greedy
    assert (greedy.forward(observations) == trained.forward(observations)).all()
    assert load_policy("trained", sampling=SamplingParams(greedy=True)).sampling == greedy.sampling
    with pytest.raises(doorstep.ArgumentError, match=r"sampling is 0\.5"):
        load_policy("trained", sampling=0.5)  # type: ignore[arg-type]


def test_the_cpu_evaluates_in_single_precision_only() -> None:
    policy = load_policy("trained")
    assert policy.precision == "float32"
    assert load_policy(policy, precision="float32") is policy
    for given in ("trained", policy):
        with pytest.raises(doorstep.ArgumentError, match=r"precision is bfloat16; it must be float32 on") as found:
            load_policy(given, precision="bfloat16")
        assert found.value.argument == "precision"
        assert "keep the weights on a GPU" in str(found.value.hint)
    with pytest.raises(doorstep.ArgumentError, match=r"precision is 'half'; it must be one of 'float32', 'bfloat16'"):
        load_policy("trained", precision="half")
    assert load_policy(len, precision="float32") is len
    for name in ("random", "scripted"):
        with pytest.raises(doorstep.ArgumentError, match=r"precision is 'bfloat16'; it must be 'float32' of what"):
            load_policy(name, precision="bfloat16")


def test_a_member_of_a_module_may_be_anything_that_is_loaded(write_module: WriteModule) -> None:
    torch = pytest.importorskip("torch")
    write_module("import torch\nnet = torch.nn.Linear(94, 19)\nname = 'idle'\n")
    policy = load_policy("answers:net", sampling=SamplingParams(greedy=True))
    assert isinstance(policy, doorstep.Policy)
    assert policy.sampling.greedy
    assert (load_policy("answers:name")(np.zeros((5, 94))) == doorstep.NEUTRAL_ACTION).all()
    assert isinstance(load_policy([torch.nn.Linear(94, 8), torch.nn.Linear(8, 19)]), doorstep.Policy)


# ---- Modules and files


@pytest.mark.parametrize("relative", [True, False])
def test_a_policy_may_be_in_a_file_next_to_what_it_imports(
    write_module: WriteModule, tmp_path: Path, relative: bool
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
    assert load_policy(f"{path}:policy")(None)[1, 1].tolist() == [1, 0, 3, 0]


def test_a_file_does_not_take_the_place_of_a_module_of_its_name(write_module: WriteModule, tmp_path: Path) -> None:
    import random

    (tmp_path / "random.py").write_text("def policy(observations): return 7\n")
    assert load_policy("random.py:policy")({}) == 7
    assert sys.modules["random"] is random


def test_files_in_several_folders_import_their_own_modules(write_module: WriteModule, tmp_path: Path) -> None:
    for folder in ("one", "other"):
        (tmp_path / folder / "model_parts").mkdir(parents=True)
        (tmp_path / folder / "model_parts" / "name.py").write_text(f"NAME = {folder!r}\n")
        (tmp_path / folder / "model.py").write_text("from model_parts.name import NAME\n")
        (tmp_path / folder / "policy.py").write_text(
            "import model\ndef f(observations): return model.NAME\nclass Of: pass\n"
        )
    one, other = load_policy("one/policy.py:f"), load_policy("other/policy.py:f")
    assert (one(None), other(None)) == ("one", "other")
    assert load_policy("one/policy.py:f")(None) == "one"
    assert sys.modules[one.__module__].f is not other
    assert sys.modules[other.__module__].f is other


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "wise",
            (
                "policy is 'wise'; it must be 'random', 'idle', 'scripted', 'trained', 'general', 'module:function', "
                "'path/to/file.py:function', the folder of a run, a checkpoint or a policy file"
            ),
        ),
        ("randon", "it must be 'random', 'idle', .* (did you mean 'random'?)"),
        ("sb3.zip", "(load it with Stable-Baselines3, as in `model = PPO.load(path)`, and give `model.policy`)"),
        ("mine.pt", "policy file (load it with PyTorch, and give the module with its weights)"),
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
            "it must be a function: observations -> actions, but 'not_a_function' of 'answers' is of type int",
        ),
        ("answers:of_other", "policy.observes is 'smells'; it must be 'flat', 'tensors', 'simulator'"),
    ],
)
def test_a_policy_that_cannot_be_found_is_an_error_that_says_why(
    answers: Path, text: str, says: str
) -> None:
    before = sys.path[:]
    with pytest.raises(doorstep.ArgumentError) as caught:
        load_policy(text)
    for part in says.split(".*"):
        assert part in str(caught.value)
    assert caught.value.argument == "policy"
    assert sorted(sys.path) in (sorted(before), sorted([os.getcwd(), *before]))


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


@pytest.mark.parametrize("policy", [None, 3, [], b"random", np.ones(2)], ids=repr)
def test_what_is_no_policy_is_refused(policy: Any) -> None:
    with pytest.raises(doorstep.ArgumentError, match=r"^policy is .*; it must be 'random', 'idle'"):
        load_policy(policy)


# ---- Files


def test_files_that_hold_no_policy_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.safetensors").touch()
    with pytest.raises(doorstep.StateError, match=r"empty\.safetensors is no policy of doorstep, or damaged"):
        load_policy(tmp_path / "empty.safetensors")
    with pytest.raises(FileNotFoundError, match=r"checkpoint\.safetensors"):
        load_policy(tmp_path)
    with pytest.raises(FileNotFoundError):
        load_policy("missing.safetensors")
