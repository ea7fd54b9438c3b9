"""What requests record of acting: log-probabilities, values, recurrent states and versions of policies. References are
computed in double precision."""

from __future__ import annotations

import copy
import math
import threading
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.pkg.rollouts.playing import NUM_INPUTS, results_of, some_requests, walk

import doorstep
from doorstep import EpisodeRequest, EpisodeResult, RolloutConfig, RolloutEngine, SimulatorConfig
from doorstep.errors import ArgumentError
from doorstep.policy import SamplingParams
from doorstep.rollouts import native_policies
from doorstep.rollouts.request import Recorded
from doorstep.rollouts.result import EpisodeStep

torch = pytest.importorskip("torch")

from tests.pkg.policy.networks import mlp  # noqa: E402 (it needs torch)

from doorstep.policy import Heads  # noqa: E402

nn = torch.nn

ALL: tuple[Recorded, ...] = ("observations", "log_probs", "values", "states")
EXACT = 3e-5  # of numbers up to 10, of networks in single precision


def _network(seed: int = 0, memory: Any = None) -> Any:
    torch.manual_seed(seed)
    width = 16 if memory is None else memory.hidden_size
    heads = Heads([nn.Linear(width, size) for size in doorstep.ACTIONS], value=nn.Linear(width, 1))
    net = nn.Sequential(nn.Linear(NUM_INPUTS, 16), nn.Tanh(), *([] if memory is None else [memory]), heads)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.mul_(3)  # so that actions differ in their likelihood
    return net


def _double(array: NDArray[Any]) -> Any:
    return torch.from_numpy(array).double()


class _Reference:
    """What a network computes of recorded steps: logits, values and the states after them."""

    def __init__(self, net: Any, observations: NDArray[np.float32], states: NDArray[np.float32]) -> None:
        with torch.no_grad():
            body, memory, heads = copy.deepcopy(net).double(), None, net[-1]
            if len(net) == 4:
                memory = body[2]
            features = body[:2](_double(observations))
            self.states = _double(states)
            if isinstance(memory, nn.LSTMCell):
                hidden, cell = self.states.chunk(2, -1)
                self.states = torch.cat(memory(features, (hidden, cell)), -1)
                features = self.states.chunk(2, -1)[0]
            elif memory is not None:
                features = self.states = memory(features, self.states)
            heads = body[-1]
            self.logits, self.values = heads(features).numpy(), heads.value(features)[..., 0].numpy()
            self.states = self.states.numpy()

    def log_probs(self, actions: NDArray[np.int32], sampling: SamplingParams) -> NDArray[np.float64]:
        """[T] of actions [T, 4]."""
        if sampling.greedy:
            return np.zeros(len(actions))
        total, first = np.zeros(len(actions)), 0
        for component, size in enumerate(doorstep.ACTIONS):
            scaled = self.logits[:, first : first + size] / sampling.temperature
            likely = np.exp(scaled - scaled.max(1, keepdims=True))
            likely /= likely.sum(1, keepdims=True)
            order = np.argsort(-likely, axis=1)
            before = np.cumsum(np.take_along_axis(likely, order, 1), 1) - np.take_along_axis(likely, order, 1)
            dropped = np.take_along_axis(before, np.argsort(order, axis=1), 1) >= sampling.top_p
            likely[dropped] = 0
            likely /= likely.sum(1, keepdims=True)
            total += np.log(likely[np.arange(len(actions)), actions[:, component]])
            first += size
        return total


def _expect_reference(result: EpisodeResult, net: Any, sampling: SamplingParams, agent: int) -> None:
    assert result.observations is not None
    assert result.states is not None
    assert result.last_states is not None
    assert result.log_probs is not None
    assert result.values is not None
    assert result.actions is not None
    states = result.states[:, agent]
    reference = _Reference(net, result.observations[:, agent], states)
    expected = reference.log_probs(result.actions[:, agent], sampling)
    np.testing.assert_allclose(result.log_probs[:, agent], expected, atol=EXACT)
    np.testing.assert_allclose(result.values[:, agent], reference.values, atol=EXACT)
    assert (states[:1] == 0).all()
    following = np.concatenate([states[1:], result.last_states[None, agent]])
    np.testing.assert_allclose(following, reference.states, atol=EXACT)


@pytest.mark.parametrize(
    "sampling",
    [
        SamplingParams(),
        SamplingParams(temperature=0.5, top_p=0.7),
        SamplingParams(top_p=0.9),
        SamplingParams(greedy=True),
    ],
)
@pytest.mark.parametrize("memory", [None, "LSTMCell", "GRUCell"])
def test_log_probs_values_and_states_are_those_of_the_network(sampling: SamplingParams, memory: str | None) -> None:
    net = _network(1, None if memory is None else getattr(nn, memory)(16, 8))
    requests = some_requests(12, policy=net, sampling=sampling, record=ALL)
    with RolloutEngine(SimulatorConfig(5, num_threads=2)) as engine:
        for result in results_of(engine, requests):
            assert result.log_probs.shape == result.values.shape == result.versions.shape == (result.length, 2)
            assert result.states.shape == (result.length, 2, {None: 0, "LSTMCell": 16, "GRUCell": 8}[memory])
            assert (result.versions == 0).all()
            for agent in range(2):
                _expect_reference(result, net, sampling, agent)


def test_recording_changes_no_action() -> None:
    net = _network(2, nn.LSTMCell(16, 8))
    with RolloutEngine(SimulatorConfig(5)) as engine:
        recorded = results_of(engine, some_requests(8, policy=net, record=ALL))
        plain = results_of(engine, some_requests(8, policy=net, record="actions"))
    for one, other in zip(recorded, plain, strict=True):
        assert (one.actions == other.actions).all()
        assert (one.state_hash, one.length) == (other.state_hash, other.length)
        assert other.log_probs is other.versions is other.values is other.states is other.last_states is None


def test_agents_are_recorded_as_their_policies_allow() -> None:
    net = _network(3)
    known = {"random": -math.log(4 * 8 * 5 * 2), "idle": 0.0, walk: math.nan}
    with RolloutEngine(SimulatorConfig(3)) as engine:
        for partner, log_prob in known.items():
            requests = some_requests(5, policy=(partner, net), record=ALL)
            for result in results_of(engine, requests):
                expected = np.full(result.length, log_prob, np.float32)
                np.testing.assert_array_equal(result.log_probs[:, 0], expected)
                assert np.isnan(result.values[:, 0]).all()
                _expect_reference(result, net, SamplingParams(), 1)


def test_shorter_states_end_with_zeros() -> None:
    nets = _network(4, nn.LSTMCell(16, 8)), _network(5, nn.GRUCell(16, 5))
    with RolloutEngine(SimulatorConfig(3)) as engine:
        results = results_of(engine, some_requests(5, policy=nets, record=ALL))
    for result in results:
        assert result.states.shape == (result.length, 2, 16)
        assert (result.states[:, 1, 5:] == 0).all()
        assert (result.last_states[1, 5:] == 0).all()
        _expect_reference(result, nets[0], SamplingParams(), 0)
        reference = _Reference(nets[1], result.observations[:, 1], result.states[:, 1, :5])
        following = np.concatenate([result.states[1:, 1], result.last_states[None, 1]])[:, :5]
        np.testing.assert_allclose(following, reference.states, atol=EXACT)


@pytest.mark.parametrize("record", ["log_probs", "values", "states"])
def test_each_is_recorded_alone_with_the_actions(record: str) -> None:
    net = _network(6, nn.GRUCell(16, 5))
    with RolloutEngine(SimulatorConfig(2)) as engine:
        (all_of_it,) = results_of(engine, [EpisodeRequest(policy=net, max_steps=9, record=ALL)])
        (result,) = results_of(engine, [EpisodeRequest(policy=net, max_steps=9, record=record)])  # type: ignore[arg-type]
    also = {"log_probs": ["versions"], "values": [], "states": ["last_states"]}[record]
    recorded = ["actions", record, *also]
    for name in ("actions", "observations", "rewards", "log_probs", "versions", "values", "states", "last_states"):
        found = getattr(result, name)
        assert (found is not None) == (name in recorded), name
        if name in recorded:
            np.testing.assert_array_equal(found, getattr(all_of_it, name))


def test_streamed_steps_have_what_the_result_has() -> None:
    net = _network(7, nn.LSTMCell(16, 8))
    request = EpisodeRequest(policy=net, max_steps=9, record=(*ALL, "stream"))
    with RolloutEngine(SimulatorConfig(2)) as engine:
        engine.submit(request)
        outputs: list[Any] = []
        while engine.outstanding:
            outputs += engine.get_outputs()
    *steps, result = outputs
    assert len(steps) == 9
    for index, step in enumerate(steps):
        assert isinstance(step, EpisodeStep)
        for name in ("log_probs", "versions", "values", "states", "observations", "rewards", "actions"):
            np.testing.assert_array_equal(getattr(step, name), getattr(result, name)[index])


def test_a_cancelled_episode_ends_with_the_state_after_its_last_step() -> None:
    net, seen, submitted = _network(8, nn.GRUCell(16, 5)), [], threading.Event()

    def cancels(observations: NDArray[np.float32]) -> NDArray[np.int32]:
        assert submitted.wait(30)
        seen.append(len(observations))
        if len(seen) == 6:
            engine.cancel(request_id)
        return np.zeros((len(observations), 4), np.int32)

    with RolloutEngine(SimulatorConfig(1)) as engine:
        request_id = engine.submit(EpisodeRequest(policy=(cancels, net), record=ALL))
        submitted.set()
        (result,) = engine
    assert result.reason == "cancelled"
    assert 5 <= result.length <= 6
    _expect_reference(result, net, SamplingParams(), 1)


# ---- Versions


def _update(net: Any) -> None:
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(0.25)


@pytest.mark.parametrize("given", ["module", "policy"])
def test_versions_rise_exactly_at_updates(given: str) -> None:
    net = _network(9)
    policy = net if given == "module" else doorstep.load_policy(net)
    with RolloutEngine(SimulatorConfig(4)) as engine:
        for update in range(3):
            for _ in range(2):  # the second time no weight has changed
                for result in results_of(engine, some_requests(6, policy=policy, record=ALL)):
                    assert result.versions.dtype == np.int32
                    assert (result.versions == update).all()
                    _expect_reference(result, net, SamplingParams(), 0)
            _update(net)


def test_a_version_rises_in_the_step_that_has_the_new_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_policies, "RENEWAL_SECONDS", 0.0)
    net = _network(10)
    steps: list[int] = []
    ended = threading.Event()
    before = copy.deepcopy(net)

    def learns(observations: NDArray[np.float32]) -> NDArray[np.int32]:
        if len(steps) == 5:
            _update(net)
        steps.append(len(observations))
        if len(steps) == 12:
            ended.set()
        return np.zeros((len(observations), 4), np.int32)

    with RolloutEngine(SimulatorConfig(1)) as engine:
        engine.submit(EpisodeRequest(policy=(learns, net), max_steps=12, record=ALL))
        assert ended.wait(30)  # who waits for results renews weights, too
        (result,) = list[Any](engine)
    assert result.versions[:, 0].tolist() == [0] * 12
    assert result.versions[:, 1].tolist() == [0] * 6 + [1] * 6
    for steps_of_one, weights in ((slice(0, 6), before), (slice(6, 12), net)):
        reference = _Reference(weights, result.observations[steps_of_one, 1], result.states[steps_of_one, 1])
        expected = reference.log_probs(result.actions[steps_of_one, 1], SamplingParams())
        np.testing.assert_allclose(result.log_probs[steps_of_one, 1], expected, atol=EXACT)


def test_two_policies_have_versions_of_their_own() -> None:
    nets = _network(11), _network(12)
    with RolloutEngine(SimulatorConfig(4)) as engine:
        (first,) = results_of(engine, [EpisodeRequest(policy=nets, max_steps=3, record="log_probs")])
        _update(nets[1])
        (second,) = results_of(engine, [EpisodeRequest(policy=nets, max_steps=3, record="log_probs")])
    assert first.versions.tolist() == [[0, 1]] * 3
    assert second.versions.tolist() == [[0, 2]] * 3


# ---- Refusals


def _network_with_a_deeper_value() -> Any:
    heads = Heads([nn.Linear(8, size) for size in doorstep.ACTIONS], value=nn.Sequential(nn.Linear(8, 1)))
    return nn.Sequential(nn.Linear(NUM_INPUTS, 8), heads)


@pytest.mark.parametrize(
    ("policy", "record"),
    [
        ("random", "values"),
        (walk, ("log_probs", "actions")),
        ((walk, "idle"), "values"),
        ((walk, walk), "log_probs"),
        (mlp(8), "values"),
        (_network_with_a_deeper_value(), "values"),
    ],
)
def test_what_no_policy_gives_is_refused(policy: Any, record: Any) -> None:
    with RolloutEngine(SimulatorConfig(2)) as engine:
        with pytest.raises(ArgumentError, match="it must be without") as refusal:
            engine.submit([EpisodeRequest(), EpisodeRequest(policy=policy, record=record)])
        assert refusal.value.argument == "record"
        with pytest.raises(ArgumentError, match="it must be without"):
            engine.submit_batch(range(3), policy=policy, record=record)
        assert engine.outstanding == 0


def test_several_replicas_record_alike() -> None:
    net = _network(13, nn.LSTMCell(16, 8))
    with RolloutEngine(RolloutConfig(SimulatorConfig(3), devices=("cpu", "cpu"))) as engine:
        for result in results_of(engine, some_requests(20, policy=net, record=ALL)):
            _expect_reference(result, net, SamplingParams(), 1)
