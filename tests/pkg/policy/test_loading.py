"""`load_policy()`: everything that can choose actions becomes a policy, and errors name what is wrong."""

import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.refuses import refuses

import doorstep
from doorstep import load_policy
from doorstep.policy import SamplingParams

ANSWERS = """
def policy(observations):
    return 7

not_a_function = 7

def of_other(observations): ...
of_other.observes = "smells"
"""
NAMES = "'random', 'idle', 'scripted', 'trained', 'general'"
FORMS = "'module:function', 'path/to/file.py:function', the folder of a run, a checkpoint or a policy file"


@pytest.fixture
def write_module(tmp_path, monkeypatch):
    """Writes `answers.py` into the current folder; what was imported is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    before = set(sys.modules)
    yield (tmp_path / "answers.py").write_text
    for name in set(sys.modules) - before:
        if name.startswith(("answers", "turns", "model", "__doorstep_policy")):
            sys.modules.pop(name)


# ---- What it takes


def test_random_actions_are_legal_all_of_them_and_follow_from_the_seed():
    observations = np.zeros((500, 2, 94), np.float32)
    one, same, other = (load_policy("random", sampling=SamplingParams(seed=seed)) for seed in (3, 3, 4))
    first, second = one(observations), one(observations)
    assert (first == same(observations)).all()
    assert (second == same(observations)).all()
    assert (first != second).any()
    assert (first != other(observations)).any()
    for component, choices in enumerate(doorstep.ACTIONS):
        assert set(first[..., component].reshape(-1).tolist()) == set(range(choices))


def test_policies_and_callables_come_back_as_they_are_or_with_another_sampling():
    trained = load_policy("trained")
    assert load_policy(trained) is trained
    assert load_policy(len) is len
    greedy = load_policy(trained, sampling=SamplingParams(greedy=True))
    observations = np.random.default_rng(0).normal(size=(9, 94)).astype(np.float32)
    assert (greedy.sampling.greedy, trained.sampling.greedy) == (True, False)
    assert (greedy.forward(observations) == trained.forward(observations)).all()
    assert load_policy("trained", sampling=SamplingParams(greedy=True)).sampling == greedy.sampling
    refuses(r"sampling is 0\.5", load_policy, "trained", sampling=0.5)


def test_the_cpu_evaluates_in_single_precision_only():
    policy = load_policy("trained", precision="float32")
    assert policy.precision == "float32"
    for given in ("trained", policy):
        with pytest.raises(doorstep.ArgumentError, match=r"precision is bfloat16; it must be float32 on") as found:
            load_policy(given, precision="bfloat16")
        assert found.value.argument == "precision"
        assert "keep the weights on a GPU" in str(found.value.hint)
    refuses(r"precision is 'half'; it must be one of 'float32', 'bfloat16'", load_policy, "trained", precision="half")
    for name in ("random", "scripted"):
        refuses(r"precision is 'bfloat16'; it must be 'float32' of what", load_policy, name, precision="bfloat16")


def test_what_comes_with_doorstep_needs_no_pytorch(run_new_python):
    code = """
import sys
sys.modules["torch"] = None
import doorstep
with doorstep.Simulator(2) as sim:
    print(doorstep.load_policy("trained").act(sim.observations).shape)
"""
    assert run_new_python(code) == "(2, 2, 4)\n"


# ---- Modules and files


def test_a_member_of_a_module_may_be_anything_that_is_loaded(write_module):
    pytest.importorskip("torch")
    write_module("import torch\nnet = torch.nn.Linear(94, 19)\nname = 'idle'\n")
    policy = load_policy("answers:net", sampling=SamplingParams(greedy=True))
    assert isinstance(policy, doorstep.Policy)
    assert policy.sampling.greedy
    assert (load_policy("answers:name")(np.zeros((5, 94))) == doorstep.NEUTRAL_ACTION).all()


def test_a_policy_may_be_in_a_file_next_to_what_it_imports(write_module, tmp_path):
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
    for path in (Path("scripts", "train.py"), scripts / "train.py"):
        assert load_policy(f"{path}:policy")(None)[1, 1].tolist() == [1, 0, 3, 0]


@pytest.mark.usefixtures("write_module")
def test_files_do_not_take_the_places_of_modules_and_import_those_of_their_own_folders(tmp_path):
    import random

    (tmp_path / "random.py").write_text("def policy(observations): return 7\n")
    assert load_policy("random.py:policy")({}) == 7
    assert sys.modules["random"] is random
    for folder in ("one", "other"):
        (tmp_path / folder / "model_parts").mkdir(parents=True)
        (tmp_path / folder / "model_parts" / "name.py").write_text(f"NAME = {folder!r}\n")
        (tmp_path / folder / "model.py").write_text("from model_parts.name import NAME\n")
        (tmp_path / folder / "policy.py").write_text("import model\ndef f(observations): return model.NAME\n")
    one, other = load_policy("one/policy.py:f"), load_policy("other/policy.py:f")
    assert (one(None), other(None)) == ("one", "other")
    assert load_policy("one/policy.py:f")(None) == "one"
    assert sys.modules[one.__module__].f is not other
    assert sys.modules[other.__module__].f is other


# ---- What is refused

NOT_FOUND = {
    "wise": f"policy is 'wise'; it must be {NAMES}, {FORMS}",
    "randon": "(did you mean 'random'?)",
    "sb3.zip": "(load it with Stable-Baselines3, as in `model = PPO.load(path)`, and give `model.policy`)",
    "mine.pt": "policy file (load it with PyTorch, and give the module with its weights)",
    ":policy": "policy is ':policy'; it must be 'random', ",
    "answers:": "policy is 'answers:'; it must be 'random', ",
    "answer:policy": "policy is 'answer:policy'; there is no module 'answer' (run from ",
    "answers.net:policy": "policy is 'answers.net:policy'; there is no module 'answers.net' (run from ",
    "..answers:policy": "policy is '..answers:policy'; there is no module '..answers' (run from ",
    "answer.py:policy": "policy is 'answer.py:policy'; there is no file 'answer.py' (",
    "answers.py:polcy": "policy is 'answers.py:polcy'; 'answers.py' has no 'polcy' (did you mean 'policy'?)",
    "answers:polcy": "policy is 'answers:polcy'; 'answers' has no 'polcy' (did you mean 'policy'?)",
    "answers:not_a_function": "a function: observations -> actions, but 'not_a_function' of 'answers' is of type int",
    "answers:of_other": "policy.observes is 'smells'; it must be 'flat', 'tensors', 'simulator'",
}


def test_a_policy_that_cannot_be_found_is_an_error_that_says_why(write_module):
    write_module(ANSWERS)
    for text, says in NOT_FOUND.items():
        before = sys.path[:]
        refuses(re.escape(says), load_policy, text, argument="policy")
        assert sorted(sys.path) in (sorted(before), sorted([os.getcwd(), *before]))
    for policy in (None, 3, [], b"random", np.ones(2)):
        refuses(r"^policy is .*; it must be 'random', 'idle'", load_policy, policy)


def test_a_module_that_cannot_be_imported_is_an_error_with_its_cause_and_its_line(write_module):
    for code, says in (
        ("import numpy\n\nimport missing\n", "ModuleNotFoundError: No module named 'missing' (answers.py, line 3)"),
        ("def policy(:\n", "SyntaxError: "),
        ("\n1 / 0\n", "ZeroDivisionError: division by zero (answers.py, line 2)"),
    ):
        write_module(code)
        for text in ("answers:policy", "answers.py:policy"):
            with pytest.raises(doorstep.ArgumentError) as caught:
                load_policy(text)
            assert str(caught.value).startswith(f"policy is '{text}'; importing '{text.split(':')[0]}' raised {says}")
            assert type(caught.value.__cause__).__name__ == says.split(":")[0]


def test_files_that_hold_no_policy_are_refused(tmp_path):
    (tmp_path / "empty.safetensors").touch()
    with pytest.raises(doorstep.StateError, match=r"empty\.safetensors is no policy of doorstep, or damaged"):
        load_policy(tmp_path / "empty.safetensors")
    refuses(r"checkpoint\.safetensors", load_policy, tmp_path, error=FileNotFoundError)
    refuses(None, load_policy, "missing.safetensors", error=FileNotFoundError)
