"""What requests record of acting: log-probabilities, values, recurrent states and versions of policies. References are
computed in double precision."""

import copy
import math
import threading

import numpy as np
import pytest
from tests.pkg.rollouts.playing import NUM_INPUTS, all_outputs, results_of, some_requests, walk
from tests.refuses import assert_refused

import doorstep
from doorstep import EpisodeRequest, RolloutConfig, RolloutEngine, SimulatorConfig
from doorstep.policy import SamplingParams
from doorstep.rollouts import EpisodeColumns, delivery
from doorstep.rollouts.results import EpisodeStep

torch = pytest.importorskip("torch")

from tests.pkg.policy.networks import mlp  # noqa: E402 (it needs torch)

from doorstep.policy import Heads  # noqa: E402

nn = torch.nn

ALL = ("observations", "log_probs", "values", "states")
EXACT = 3e-5  # of numbers up to 10, of networks in single precision


def _network(seed=0, memory=None):
    torch.manual_seed(seed)
    width = 16 if memory is None else memory.hidden_size
    heads = Heads([nn.Linear(width, size) for size in doorstep.ACTIONS], value=nn.Linear(width, 1))
    net = nn.Sequential(nn.Linear(NUM_INPUTS, 16), nn.Tanh(), *([] if memory is None else [memory]), heads)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.mul_(3)  # so that actions differ in their likelihood
    return net


def _state_size(net):
    return net[2].hidden_size * (1 + isinstance(net[2], nn.LSTMCell)) if len(net) == 4 else 0


class _Reference:
    """What a network computes of recorded steps: logits, values and the states after them."""

    def __init__(self, net, observations, states):
        with torch.no_grad():
            body = copy.deepcopy(net).double()
            memory = body[2] if len(net) == 4 else None
            features = body[:2](torch.from_numpy(observations).double())
            self.states = torch.from_numpy(states[:, : _state_size(net)]).double()
            if isinstance(memory, nn.LSTMCell):
                hidden, cell = self.states.chunk(2, -1)
                self.states = torch.cat(memory(features, (hidden, cell)), -1)
                features = self.states.chunk(2, -1)[0]
            elif memory is not None:
                features = self.states = memory(features, self.states)
            heads = body[-1]
            self.logits, self.values = heads(features).numpy(), heads.value(features)[..., 0].numpy()
            self.states = self.states.numpy()

    def log_probs(self, actions, sampling):
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


def _following(result, agent):
    """The states after each step."""
    return np.concatenate([result.states[1:, agent], result.last_states[None, agent]])


def _expect_reference(result, net, sampling, agent):
    """Shorter states end with zeros."""
    states, following = result.states[:, agent], _following(result, agent)
    reference = _Reference(net, result.observations[:, agent], states)
    expected = reference.log_probs(result.actions[:, agent], sampling)
    np.testing.assert_allclose(result.log_probs[:, agent], expected, atol=EXACT)
    np.testing.assert_allclose(result.values[:, agent], reference.values, atol=EXACT)
    assert (states[:1] == 0).all()
    size = reference.states.shape[1]
    np.testing.assert_allclose(following[:, :size], reference.states, atol=EXACT)
    assert (states[:, size:] == 0).all()
    assert (following[:, size:] == 0).all()


@pytest.mark.parametrize("is_recurrent", [False, True])
def test_log_probs_values_and_states_are_those_of_the_network(is_recurrent):
    """Of each agent's, in several replicas; and what is not recorded is the same without."""
    memories = (nn.LSTMCell(16, 8), nn.GRUCell(16, 5)) if is_recurrent else (None, None)
    nets = _network(1, memories[0]), _network(5, memories[1])
    with RolloutEngine(RolloutConfig(SimulatorConfig(5, num_threads=2), devices=("cpu", "cpu"))) as engine:
        for fields in ({}, {"temperature": 0.5, "top_p": 0.7}, {"top_p": 0.9}, {"greedy": True}):
            sampling = SamplingParams(**fields)
            recorded = results_of(engine, some_requests(12, policy=nets, sampling=sampling, record=ALL))
            plain = results_of(engine, some_requests(12, policy=nets, sampling=sampling, record="actions"))
            for result, other in zip(recorded, plain, strict=True):
                assert result.log_probs.shape == result.values.shape == result.versions.shape == (result.length, 2)
                assert result.states.shape == (result.length, 2, 16 * is_recurrent)
                assert (result.versions == [0, 1]).all()
                for agent, net in enumerate(nets):
                    _expect_reference(result, net, sampling, agent)
                assert (result.actions == other.actions).all()
                assert result.state_hash == other.state_hash
                assert other.log_probs is other.versions is other.values is other.states is other.last_states is None


def test_agents_are_recorded_as_their_policies_allow():
    net = _network(3)
    known = {"random": -math.log(4 * 8 * 5 * 2), "idle": 0.0, walk: math.nan}
    with RolloutEngine(SimulatorConfig(3)) as engine:
        for partner, log_prob in known.items():
            for result in results_of(engine, some_requests(5, policy=(partner, net), record=ALL)):
                np.testing.assert_array_equal(result.log_probs[:, 0], np.full(result.length, log_prob, np.float32))
                assert np.isnan(result.values[:, 0]).all()
                _expect_reference(result, net, SamplingParams(), 1)


def test_each_is_recorded_alone_and_streamed_as_the_result_has_it():
    net = _network(6, nn.GRUCell(16, 5))
    names = ("actions", "observations", "rewards", "log_probs", "versions", "values", "states")
    also = {"log_probs": ["versions"], "states": ["last_states"], "observations": ["rewards", "last_observations"]}
    with RolloutEngine(SimulatorConfig(2)) as engine:
        (whole,) = results_of(engine, [EpisodeRequest(policy=net, max_steps=9, record=ALL)])
        np.testing.assert_allclose(whole.rewards.sum(axis=0), whole.returns, atol=1e-5)
        for record in ((), ALL, *((name,) for name in ("actions", *ALL))):
            recorded = ["actions"] * bool(record) + sum((also.get(name, []) for name in record), list(record))
            for stream in ((), ("stream",)):
                request = EpisodeRequest(policy=net, max_steps=9, record=(*record, *stream), tag=4)
                request_id = engine.submit(request)
                *steps, result = all_outputs(engine)
                for name in (*names, "last_states", "last_observations"):
                    found = getattr(result, name)
                    assert (found is not None) == (name in recorded or (name == "actions" and bool(stream))), name
                    assert found is None or found.flags.c_contiguous
                    assert found is None or np.array_equal(found, getattr(whole, name))
                assert [step.step for step in steps] == list(range(1, 10)) * bool(stream)
                for index, step in enumerate(steps):
                    assert isinstance(step, EpisodeStep)
                    assert (step.id, step.request) == (request_id, request)
                    for name in names:
                        found = getattr(step, name)
                        assert (found is not None) == (name in ("actions", *recorded)), name
                        assert found is None or np.array_equal(found, getattr(whole, name)[index])


def test_a_cancelled_episode_ends_with_the_state_after_its_last_step():
    net, seen, submitted = _network(8, nn.GRUCell(16, 5)), [], threading.Event()

    def cancels(observations):
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


def _update(net):
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(0.25)


def test_versions_rise_exactly_at_updates():
    for given in (lambda net: net, doorstep.load_policy):
        nets = _network(9), _network(12)
        policies = tuple(map(given, nets))
        with RolloutEngine(RolloutConfig(SimulatorConfig(4), devices=("cpu", "cpu"))) as engine:
            for update in range(3):
                for _ in range(2):  # the second time no weight has changed
                    for result in results_of(engine, some_requests(6, policy=policies, record=ALL)):
                        assert result.versions.dtype == np.int32
                        assert (result.versions == [0, 1 + update]).all()  # in the order in which they are seen
                        for agent in range(2):
                            _expect_reference(result, nets[agent], SamplingParams(), agent)
                _update(nets[1])


def test_a_version_rises_in_the_step_that_has_the_new_weights(monkeypatch):
    monkeypatch.setattr(delivery, "_RENEWAL_SECONDS", 0.0)
    net = _network(10, nn.GRUCell(16, 8))  # which goes on with its memory
    steps = []
    ended = threading.Event()
    before = copy.deepcopy(net)

    def learns(observations):
        if len(steps) == 5:
            _update(net)
        steps.append(len(observations))
        if len(steps) == 12:
            ended.set()
        return np.zeros((len(observations), 4), np.int32)

    with RolloutEngine(SimulatorConfig(1)) as engine:
        engine.submit(EpisodeRequest(policy=(learns, net), max_steps=12, record=ALL))
        assert ended.wait(30)  # who waits for results renews weights, too
        (result,) = list(engine)
    assert result.versions[:, 0].tolist() == [0] * 12
    assert result.versions[:, 1].tolist() == [0] * 6 + [1] * 6
    following = _following(result, 1)
    for steps_of_one, weights in ((slice(0, 6), before), (slice(6, 12), net)):
        reference = _Reference(weights, result.observations[steps_of_one, 1], result.states[steps_of_one, 1])
        expected = reference.log_probs(result.actions[steps_of_one, 1], SamplingParams())
        np.testing.assert_allclose(result.log_probs[steps_of_one, 1], expected, atol=EXACT)
        np.testing.assert_allclose(following[steps_of_one], reference.states, atol=EXACT)


# ---- Refusals


def test_what_no_policy_gives_is_refused():
    heads = Heads([nn.Linear(8, size) for size in doorstep.ACTIONS], value=nn.Sequential(nn.Linear(8, 1)))
    deeper = nn.Sequential(nn.Linear(NUM_INPUTS, 8), heads)
    with RolloutEngine(SimulatorConfig(2)) as engine:
        for policy, record in (
            ("random", "values"),
            (walk, ("log_probs", "actions")),
            ((walk, "idle"), "values"),
            ((walk, walk), "log_probs"),
            (mlp(8), "values"),
            (deeper, "values"),
        ):
            fields, says = {"policy": policy, "record": record}, "record ... it must be without"
            assert_refused(lambda **given: engine.submit([EpisodeRequest(), EpisodeRequest(**given)]), [(fields, says)])
            assert_refused(lambda **given: engine.submit(EpisodeColumns(range(3), **given)), [(fields, says)])
        assert engine.outstanding == 0
