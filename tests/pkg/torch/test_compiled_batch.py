"""Programs that inductor has compiled step worlds as uncompiled ones do, bit for bit, and train as they do."""

import re
from pathlib import Path

import pytest
from tests.scenes import random_actions

import doorstep

torch = pytest.importorskip("torch")

from tests.pkg.torch.test_batch import assert_equal_states  # noqa: E402
from tests.pkg.training.runs import small  # noqa: E402

import doorstep.torch  # noqa: E402
from doorstep.torch import make, multi_discrete_sample  # noqa: E402
from doorstep.training import Trainer  # noqa: E402

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("inductor"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]

PAGE = Path(__file__).resolve().parents[3] / "docs" / "how_to" / "torch.md"
STEPS, WORLDS = 3, 3


def rooms_of(num_agents=2):
    return make(WORLDS, num_agents=num_agents, episode_length=2)  # episodes end within a rollout


def inputs(num_agents=2, seed=1):
    """Actions and resets of a rollout, no two steps with the same."""
    resets = torch.zeros(STEPS, WORLDS, 1, dtype=torch.int32)
    resets[0, 2] = resets[1, 1] = resets[2, 0] = 1
    return torch.from_numpy(random_actions(seed, STEPS, WORLDS, num_agents)), resets


def assert_compiled_is_plain(run, rooms, *arguments, **options):
    """Also when one program steps another state, and goes on with it."""
    compiled = torch.compile(run, fullgraph=True, **options)
    for seed in (8, 9):
        expected, state = rooms.init(seed), rooms.init(seed)
        for _ in range(2):
            assert torch.equal(compiled(rooms, state, *arguments), run(rooms, expected, *arguments))
            assert_equal_states(state, expected)


# ---- Ways to give a step its inputs


def assigned(rooms, state, actions, resets):
    state.actions[:] = actions
    rooms.step(state)


def copied(rooms, state, actions, resets):
    state.resets.copy_(resets)
    state.actions.copy_(actions)
    rooms.step(state)


def the_states_own(rooms, state, actions, resets):
    state.actions.copy_(actions)
    rooms.step(state, state.actions.view(-1).view(actions.shape))


WAYS = {
    "slice": lambda rooms, state, actions, resets: rooms.step(state, actions),
    "assigned": assigned,
    "copied": copied,
    "resets": lambda rooms, state, actions, resets: rooms.step(state, actions, resets),
    "bool resets": lambda rooms, state, actions, resets: rooms.step(state, actions + 0, resets.bool()),
    "the state's own": the_states_own,
    "not contiguous": lambda rooms, state, actions, resets: rooms.step(
        state, actions.transpose(0, 1).contiguous().transpose(0, 1), resets.expand(2, WORLDS, 1)[1]
    ),
    "broadcast": lambda rooms, state, actions, resets: rooms.step(state, actions[:1].expand(actions.shape)),
    "what is there": lambda rooms, state, actions, resets: rooms.step(state),
}


def roll_out(rooms, state, actions, resets, step):
    shown = []
    for step_actions, step_resets in zip(actions, resets, strict=True):
        step(rooms, state, step_actions, step_resets)
        shown.append(state.lidar.clone())
    return torch.stack(shown)


@pytest.mark.parametrize("way", WAYS)
def test_rollouts_are_the_same_whichever_way_inputs_are_given(way):
    assert_compiled_is_plain(roll_out, rooms_of(), *inputs(), WAYS[way])


@pytest.mark.parametrize(
    ("num_agents", "options"), [(2, {"backend": "aot_eager"}), (1, {}), (5, {}), (2, {"dynamic": True})], ids=str
)
def test_rollouts_are_the_same_with_other_backends_agents_and_shapes(num_agents, options):
    assert_compiled_is_plain(roll_out, rooms_of(num_agents), *inputs(num_agents), WAYS["resets"], **options)


# ---- Other programs


def test_what_was_computed_before_a_step_stays_as_it_was():
    """Also where the step reads it too."""

    def run(rooms, state, actions):
        left = state.steps_remaining + 1
        for step_actions in actions:
            rooms.step(state, step_actions + left.clamp(0, 1))
            left = left + state.steps_remaining
        return left

    assert_compiled_is_plain(run, rooms_of(), inputs()[0].clamp(max=0))


def test_a_program_may_make_its_worlds_and_put_them_back():
    rooms, (actions, resets) = rooms_of(), inputs()
    saved, ended = rooms.init(5).worlds, torch.rand(rooms.init(5).final_lidar.shape)

    def run(actions, resets):
        state = rooms.init(seed=4)
        shown = [roll_out(rooms, state, actions, resets, WAYS["slice"])]
        state.worlds.copy_(saved)
        state.final_lidar.copy_(ended)
        shown += [rooms.step(state, step_actions).lidar for step_actions in actions]  # not cloned: of the last step
        return state, *shown

    (state, *found), (expected, *wanted) = (each(actions, resets) for each in (torch.compile(run, fullgraph=True), run))
    assert all(torch.equal(one, other) for one, other in zip(found, wanted, strict=True))
    assert torch.equal(found[1], state.lidar)
    assert_equal_states(state, expected)


def test_the_example_of_the_page_is_true():
    (example,) = re.findall(r"```python\n(@torch\.compile.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    decorator, definition = example.split("\n", 1)
    assert decorator.startswith("@torch.compile(")
    rooms, (actions, _) = rooms_of(), inputs()
    found, expected = rooms.init(8), rooms.init(8)
    rewards = []
    for text, state in ((example, found), (definition, expected)):
        scope = {"torch": torch, "rooms": rooms}
        exec(text, scope)
        rewards.append(scope["roll_out"](state, actions))
    assert torch.equal(*rewards)
    assert_equal_states(found, expected)


def test_a_compiled_network_trains_as_the_plain_one():
    plain, compiled = (Trainer(small(f"compile={flag}")) for flag in ("false", "true"))
    for _ in range(2):
        expected, found = plain.update(), compiled.update()
    for name in ("value_loss", "entropy"):
        assert found.losses[name] == pytest.approx(expected.losses[name], rel=1e-3)


def test_operators_in_compiled_programs_have_no_breaks_and_the_same_results():
    """With PyTorch's own operations in between, gradients, and random numbers of its generator."""
    sizes, flags = [4, 3, 2], torch.rand(2, 6, 5) < 0.2
    logits, numbers = torch.randn(7, 9, requires_grad=True), torch.randn(3, 6, 5)

    def update(logits, numbers, flags):
        actions, log_probabilities, entropies = multi_discrete_sample(logits * 2, sizes)
        again, _ = doorstep.torch.multi_discrete_evaluate(logits.sin() * 3, actions, sizes)
        advantages, targets = doorstep.torch.generalized_advantages(numbers[0] + 1, *numbers[1:], *flags)
        return (log_probabilities * again).sum() + entropies.sum() + advantages.sum(), actions, targets

    told = []
    for run in (update, torch.compile(update, fullgraph=True)):
        torch.manual_seed(1)
        loss, actions, targets = run(logits, numbers, flags)
        told.append((actions, loss, targets, *torch.autograd.grad(loss, logits)))
    for one, other in zip(*told, strict=True):
        torch.testing.assert_close(one, other)
