"""Programs that inductor has compiled step worlds as uncompiled ones do, bit for bit."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.scenes import random_actions

import doorstep

torch = pytest.importorskip("torch")

from doorstep.torch import make, multi_discrete_sample  # noqa: E402
from doorstep.torch.batch import BatchState  # noqa: E402

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("inductor"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]

Step = Callable[[Any, Any, Any, Any], None]

PAGE = Path(__file__).resolve().parents[3] / "docs" / "how_to" / "torch.md"
STEPS, WORLDS = 3, 3


def rooms_of(num_agents: int = 2) -> Any:
    """Worlds whose episodes end within a rollout."""
    return make(WORLDS, num_agents=num_agents, episode_length=2)


def inputs(num_agents: int = 2, seed: int = 1) -> tuple[Any, Any]:
    """Actions and resets of a rollout, no two steps with the same."""
    resets = torch.zeros(STEPS, WORLDS, 1, dtype=torch.int32)
    resets[0, 2] = resets[1, 1] = resets[2, 0] = 1
    return torch.from_numpy(random_actions(seed, STEPS, WORLDS, num_agents)), resets


def assert_same(state: BatchState, expected: BatchState) -> None:
    assert torch.equal(state.worlds, expected.worlds)
    for name, tensor in expected.tensors.items():
        assert torch.equal(state.tensors[name], tensor), name


def copy_of(state: BatchState) -> BatchState:
    tensors = {name: tensor.clone() for name, tensor in state.tensors.items()}
    return BatchState(state.worlds.clone(), tensors, state.scratch.clone())


# ---- Ways to give a step its inputs


def copied(rooms: Any, state: Any, actions: Any, resets: Any) -> None:
    state.actions.copy_(actions)
    rooms.step(state)


def assigned(rooms: Any, state: Any, actions: Any, resets: Any) -> None:
    state.actions[:] = actions
    rooms.step(state)


def resets_copied(rooms: Any, state: Any, actions: Any, resets: Any) -> None:
    state.resets.copy_(resets)
    rooms.step(state, actions)


def the_states_own(rooms: Any, state: Any, actions: Any, resets: Any) -> None:
    state.actions.copy_(actions)
    rooms.step(state, state.actions.view(-1).view(actions.shape))


def not_contiguous(rooms: Any, state: Any, actions: Any, resets: Any) -> None:
    rooms.step(state, actions.transpose(0, 1).contiguous().transpose(0, 1), resets.expand(2, WORLDS, 1)[1])


WAYS: dict[str, Step] = {
    "slice": lambda rooms, state, actions, resets: rooms.step(state, actions),
    "clone": lambda rooms, state, actions, resets: rooms.step(state, actions.clone()),
    "copied": copied,
    "assigned": assigned,
    "resets": lambda rooms, state, actions, resets: rooms.step(state, actions, resets),
    "bool resets": lambda rooms, state, actions, resets: rooms.step(state, actions, resets.bool()),
    "resets copied": resets_copied,
    "computed": lambda rooms, state, actions, resets: rooms.step(state, actions + 0),
    "the state's own": the_states_own,
    "not contiguous": not_contiguous,
    "broadcast": lambda rooms, state, actions, resets: rooms.step(state, actions[:1].expand(actions.shape)),
    "what is there": lambda rooms, state, actions, resets: rooms.step(state),
}


def roll_out(rooms: Any, state: Any, actions: Any, resets: Any, step: Step) -> Any:
    shown = []
    for step_actions, step_resets in zip(actions, resets, strict=True):
        step(rooms, state, step_actions, step_resets)
        shown.append(state.lidar.clone())
    return torch.stack(shown)


@pytest.mark.parametrize("way", WAYS)
def test_rollouts_are_the_same_whichever_way_inputs_are_given(way: str) -> None:
    rooms, compiled = rooms_of(), torch.compile(roll_out, fullgraph=True)
    expected, state = rooms.init(8), rooms.init(8)
    for seed in (1, 2):
        arguments = (*inputs(seed=seed), WAYS[way])
        assert torch.equal(compiled(rooms, state, *arguments), roll_out(rooms, expected, *arguments))
        assert_same(state, expected)


def test_rollouts_are_the_same_without_inductor() -> None:
    rooms, compiled = rooms_of(), torch.compile(roll_out, fullgraph=True, backend="aot_eager")
    expected, state = rooms.init(8), rooms.init(8)
    arguments = (*inputs(), WAYS["resets"])
    assert torch.equal(compiled(rooms, state, *arguments), roll_out(rooms, expected, *arguments))
    assert_same(state, expected)


@pytest.mark.parametrize("num_agents", [1, 5])
def test_rollouts_are_the_same_for_any_number_of_agents(num_agents: int) -> None:
    rooms = rooms_of(num_agents)
    expected, state = rooms.init(8), rooms.init(8)
    arguments = (*inputs(num_agents), WAYS["resets"])
    compiled = torch.compile(roll_out, fullgraph=True)
    assert torch.equal(compiled(rooms, state, *arguments), roll_out(rooms, expected, *arguments))
    assert_same(state, expected)


# ---- Other programs


def test_shapes_may_be_dynamic() -> None:
    rooms, compiled = rooms_of(), torch.compile(roll_out, fullgraph=True, dynamic=True)
    expected, state = rooms.init(8), rooms.init(8)
    arguments = (*inputs(), WAYS["resets"])
    assert torch.equal(compiled(rooms, state, *arguments), roll_out(rooms, expected, *arguments))
    assert_same(state, expected)


def test_a_program_may_make_its_worlds() -> None:
    rooms, (actions, resets) = rooms_of(), inputs()

    def run(actions: Any, resets: Any) -> tuple[Any, BatchState]:
        state = rooms.init(seed=4)
        return roll_out(rooms, state, actions, resets, WAYS["slice"]), state

    found, expected = torch.compile(run, fullgraph=True)(actions, resets), run(actions, resets)
    assert torch.equal(found[0], expected[0])
    assert_same(found[1], expected[1])


def test_one_program_steps_many_states() -> None:
    rooms, compiled = rooms_of(), torch.compile(roll_out, fullgraph=True)
    arguments = (*inputs(), WAYS["slice"])
    state = rooms.init(8)
    for _ in range(2):
        expected, moved = copy_of(state), copy_of(state)
        found = compiled(rooms, moved, *arguments)
        assert torch.equal(found, roll_out(rooms, expected, *arguments))
        assert_same(moved, expected)
        state = moved


def test_worlds_may_be_put_back() -> None:
    rooms, (actions, _) = rooms_of(), inputs()
    rooms.step(start := rooms.init(8), actions[0])
    saved = torch.stack([start.worlds, *(rooms.init(seed).worlds for seed in (5, 6))])
    ended = torch.rand(3, *start.final_lidar.shape)

    def run(state: Any, actions: Any, saved: Any, ended: Any) -> Any:
        shown = []
        for worlds, lidar in zip(saved, ended, strict=True):
            state.worlds.copy_(worlds)
            state.final_lidar.copy_(lidar)
            rooms.step(state, actions)
            shown.append(state.lidar.clone())
        return torch.stack(shown)

    state, expected = copy_of(start), copy_of(start)
    arguments = (actions[0], saved, ended)
    assert torch.equal(torch.compile(run, fullgraph=True)(state, *arguments), run(expected, *arguments))
    assert_same(state, expected)


def test_a_policy_may_act() -> None:
    rooms = rooms_of()
    torch.manual_seed(2)
    policy = torch.nn.Linear(rooms.init(0).observations.shape[-1], 19)

    def run(state: Any) -> tuple[Any, Any]:
        log_probabilities = []
        for _ in range(STEPS):
            logits = policy(state.observations.view(2 * WORLDS, -1).clone())
            actions, log_probability, _ = multi_discrete_sample(logits, doorstep.ACTIONS)
            rooms.step(state, actions.view(WORLDS, 2, 4))
            log_probabilities.append(log_probability)
        return torch.stack(log_probabilities), state.rewards.clone()

    compiled_state, state = rooms.init(3), rooms.init(3)
    torch.manual_seed(9)
    found, _ = torch.compile(run, fullgraph=True)(compiled_state)
    torch.manual_seed(9)
    expected, _ = run(state)
    assert_same(compiled_state, state)
    torch.testing.assert_close(found, expected)
    (found_gradient,), (gradient,) = (torch.autograd.grad(each.sum(), policy.bias) for each in (found, expected))
    torch.testing.assert_close(found_gradient, gradient)


def test_what_is_not_cloned_shows_the_latest_step() -> None:
    rooms, (actions, _) = rooms_of(), inputs()

    def run(state: Any, actions: Any) -> tuple[Any, Any]:
        shown = [rooms.step(state, step_actions).lidar for step_actions in actions]
        return torch.stack(shown), shown[0]

    state, expected = rooms.init(8), rooms.init(8)
    found, wanted = torch.compile(run, fullgraph=True)(state, actions), run(expected, actions)
    assert all(torch.equal(one, other) for one, other in zip(found, wanted, strict=True))
    assert torch.equal(found[0][0], state.lidar)


def test_worlds_that_are_none_are_refused() -> None:
    rooms, arguments = rooms_of(), (*inputs(), WAYS["slice"])
    state = rooms.init(8)
    state.worlds.fill_(-1)
    with pytest.raises(doorstep.StateError, match="worlds"):
        torch.compile(roll_out, fullgraph=True)(rooms, state, *arguments)
    assert state.worlds.eq(-1).all()


def test_the_example_of_the_page_is_true() -> None:
    (example,) = re.findall(r"```python\n(@torch\.compile.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    decorator, definition = example.split("\n", 1)
    assert decorator.startswith("@torch.compile(")
    rooms, (actions, _) = rooms_of(), inputs()
    found, expected = rooms.init(8), rooms.init(8)
    rewards = []
    for text, state in ((example, found), (definition, expected)):
        scope: dict[str, Any] = {"torch": torch, "rooms": rooms}
        exec(text, scope)
        rewards.append(scope["roll_out"](state, actions))
    assert torch.equal(*rewards)
    assert_same(found, expected)
