"""An engine over HTTP: results are the engine's, whatever a client sends or omits to read."""

import base64
import contextlib
import json
import socket

import numpy as np
import pytest

pytest.importorskip("aiohttp")

from tests.pkg.metrics.test_series import parsed
from tests.pkg.rollouts.playing import is_soon, some_requests
from tests.pkg.serve.serving import PATIENCE, Waiting, answer_of, body_of, head_of, served
from tests.refuses import raising

import doorstep
from doorstep import EpisodeRequest, RolloutEngine, SimulatorConfig
from doorstep.serve import messages, serve, server

POLICIES = {"random": "random", "still": "idle", "failing": raising(ValueError, "a policy that fails")}
TOKEN = "0123456789abcdef"


@pytest.fixture
def engine():
    with RolloutEngine(SimulatorConfig(8, num_threads=1, max_levels=1)) as made:
        yield made


@pytest.fixture
def at(engine):
    with served(engine, POLICIES) as where:
        yield where


@pytest.fixture
def waiting():
    return Waiting()


def in_flight(at):
    return int(json.loads(at.call("GET", "/info")[2])["in_flight"])


# ---- What is answered


def assert_same(lines, results):
    """Every number that the engine's results have is in the answers' lines."""
    for line, own in zip(lines, results, strict=True):
        assert (line["reason"], line["length"]) == (own.reason, own.length)
        assert (line["tag"], int(line["state_hash"], 16)) == (own.request.tag, own.state_hash)
        for name in messages._ARRAYS:
            assert (name in line) == (getattr(own, name) is not None)
            if name in line:
                told = np.array(line[name], np.float32)  # of null: NaN
                np.testing.assert_array_equal(told, np.float32(getattr(own, name)), name)


def test_results_are_those_of_the_engine(engine):
    level = doorstep.levels.curated()["one door"]
    asked = some_requests(20, record=("observations",))
    documents = [
        {"seed": one.seed, "max_steps": one.max_steps, "policy": "random", "record": ["observations"]} for one in asked
    ]
    common = {"seed": 3, "max_steps": 5, "tag": 2**63}
    documents += [{**common, "level": level.to_dict(), "policy": ["still", "random"]}]
    expected = engine.run([*asked, EpisodeRequest(**common, level=level, policy=("idle", "random"))])
    with served(engine, POLICIES) as at:
        results = at.play(documents)
    assert [result["index"] for result in results] == list(range(21))
    assert_same(results, expected)


def network_with_all():
    """A policy with a memory and a value."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(2)
    heads = [torch.nn.Linear(8, size) for size in doorstep.ACTIONS]
    heads = doorstep.policy.Heads(heads, value=torch.nn.Linear(8, 1))
    return doorstep.load_policy(torch.nn.Sequential(torch.nn.Linear(94, 8), torch.nn.GRUCell(8, 8), heads))


def test_a_request_goes_on_from_a_state_and_records_everything(engine):
    network, record = network_with_all(), ("observations", "log_probs", "values", "states")
    with doorstep.Simulator(1, seed=9, max_levels=1, num_threads=1) as sim:
        for _ in range(5):
            sim.step()
        state = sim.save([0])
    common = {"max_steps": 6, "seed": 4, "record": record}
    with served(engine, {"all": network, "random": "random"}) as at:
        document = {**common, "policy": ["all", "random"]}
        lines = at.play([document, {"max_steps": 2}, {**document, "state": base64.b64encode(state).decode()}])
        assert is_soon(lambda: in_flight(at) == 0)
    assert [line["index"] for line in lines] == [0, 1, 2]
    common["policy"] = (network, "random")
    assert_same(lines[::2], engine.run([EpisodeRequest(**common), EpisodeRequest(state=state, **common)]))


def test_a_policy_that_raises_fails_its_episodes_alone(engine):
    with served(engine, POLICIES) as at:
        failed, played = at.play([{"policy": "failing", "max_steps": 2}, {"max_steps": 2}])
    assert (failed["reason"], failed["length"]) == ("failed", 0)
    assert "a policy that fails" in failed["error"]
    assert (played["reason"], played["error"]) == ("time", "")


def test_results_are_streamed_when_their_episodes_end(engine, waiting):
    with served(engine, {**POLICIES, "waiting": waiting}) as at:
        with at.begin([{"policy": "waiting", "max_steps": 1}]) as first, first.makefile("rb") as answer:
            assert waiting.acts.wait(PATIENCE)
            assert answer.readline().startswith(b"HTTP/1.1 200")  # the head comes before the result
            waiting.may_act.set()
            while (line := answer.readline()) and b'"index"' not in line:
                pass
        assert b'"reason": "time"' in line


def test_clients_name_the_policies_that_the_engine_has_now(engine):
    asked = [{"seed": 5, "max_steps": 20}, {"seed": 5, "max_steps": 20, "policy": "it"}]
    with served(engine, {"random": "random", "it": "idle"}) as at:
        before = at.play(asked)
        engine.policies["it"] = "random"
        after = at.play(asked)
        assert before[0]["state_hash"] == after[0]["state_hash"] == after[1]["state_hash"] != before[1]["state_hash"]
        del engine.policies["it"]
        status, error = at.refusal("POST", "/episodes", asked)
        assert (status, error["argument"]) == (400, "requests[1].policy")
        assert "'random'" in error["message"]
        engine.policies.clear()
        assert at.refusal("POST", "/episodes", asked[:1])[0] == 400


def test_metrics_and_info_are_those_of_the_engine(engine):
    with served(engine, POLICIES) as at:
        at.play([{"max_steps": 3}] * 5)
        status, headers, text = at.call("GET", "/metrics")
        number = engine.add_replica(num_worlds=2)
        info = json.loads(at.call("GET", "/info")[2])
        engine.remove_replica(0)
        assert {line["replica"] for line in at.play([{"max_steps": 2}] * 9)} == {number}
    assert (info["policies"], info["replicas"]) == (list(POLICIES), [0, number])
    assert doorstep.RolloutConfig.from_dict(info["config"]) == engine.config
    assert info["limits"] == {"in_flight": 4096, "body_bytes": 8 << 20}
    assert (status, headers["Content-Type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    samples = parsed(text.decode())
    assert sum(samples["doorstep_requests_submitted_total"].values()) == 5
    assert any('policy="random"' in labels for labels in samples["doorstep_policy_seconds"])


# ---- What is refused


LEVEL = doorstep.levels.curated()["one door"].to_dict()


def entry(**fields):
    return [{"seed": 1}, fields]


BAD_BODIES = [
    *((body, "text") for body in (b"", b"\xff\xfe", b"[" * 100_000, b'[{"seed": 1, "seed": 2}]')),
    (b'[{"seed": 1' + b"0" * 10_000 + b"}]", "text"),
    *((body, "requests") for body in ({}, [], [{}] * 4097)),
    ([[]], "requests[0]"),
    (b'[{"deadline": NaN}]', "requests[0].deadline"),
    (entry(n=2), "requests[1].n"),  # several futures
    (entry(state="AAAA", level=LEVEL), "requests[1].level"),
    (entry(record=["values"]), "record"),  # which no policy tells
    (entry(policy=["random"]), "policy"),  # of two agents
    (entry(sampling={"temperature": "hot"}), "requests[1].sampling.temperature"),
    (entry(sampling=[]), "requests[1].sampling.values"),
    (entry(level={"doorstep": "level", "version": 1, "walls": 3}), "requests[1].level.spawns"),
]
for name, values in {
    "sed": [1],
    "seed": [1.5],
    "max_steps": ["5"],
    "tag": [2**64],
    "state": ["no base64", [1, 2]],
    "record": [["stream"], {"actions": 1}],
    "policy": [None, "os:getcwd", "idle", [["random", "random"]]],  # idle: a policy, but not a name that is offered
}.items():
    BAD_BODIES += [(entry(**{name: value}), f"requests[1].{name}") for value in values]


def test_bodies_that_are_no_requests_are_refused_and_named(engine):
    with served(engine, POLICIES) as at:
        for body, argument in BAD_BODIES:
            status, error = at.refusal("POST", "/episodes", body)
            assert (status, error["type"], error["argument"]) == (400, "ArgumentError", argument), (body, error)
        assert in_flight(at) == 0
        assert len(at.play([{"max_steps": 1}])) == 1
    assert engine.metrics.total("requests_answered", reason="time").value == 1


def test_what_is_refused_is_not_repeated_whole(at):
    """Wherever it stands: as a value of any field of requests and levels, or as a name."""
    long = [{"n" * 1_000_000: 1}]
    bodies = [long, *([{name: long}] for name in messages._FIELDS)]
    for body in bodies + [[{"level": {**LEVEL, name: long}}] for name in LEVEL]:
        status, _, answer = at.call("POST", "/episodes", body)
        assert len(answer) < 3000
        assert status in (200, 400, 409)
    assert at.refusal("POST", "/episodes", b" " * (server.MOST_BYTES + 1))[0] == 413


def test_states_that_the_engine_cannot_go_on_from_are_refused(engine):
    with doorstep.Simulator(1, num_agents=3, num_threads=1) as sim:
        others = base64.b64encode(sim.save([0])).decode()
    with served(engine, POLICIES) as at:
        for state in ("AAAA", others):
            status, error = at.refusal("POST", "/episodes", [{"seed": 1}, {"state": state}])
            assert (status, error["type"]) == (409, "StateError"), error
        assert in_flight(at) == 0
    assert engine.metrics.total("requests_submitted").value == 0


def test_pages_of_other_sites_other_pages_and_methods_are_refused(at):
    for name, value, status in (
        ("Host", "rebound.example", 403),
        ("Origin", "http://other.example", 403),
        ("Content-Type", "text/plain", 415),
        ("Content-Encoding", "gzip", 415),
    ):
        assert at.refusal("POST", "/episodes", [{}], **{name: value})[0] == status, name
    assert at.call("GET", "/info", Host="[::1]:99", Origin="http://[::1]:99")[0] == 200
    for method, path, status in (("GET", "/", 404), ("OPTIONS", "*", 404), ("GET", "/episodes", 405)):
        assert at.refusal(method, path)[0] == status


def test_what_is_no_http_is_refused_and_fills_no_log(engine, capfd):
    with served(engine, POLICIES) as at:
        for sent in (
            b"nonsense\r\n\r\n",
            b"\x16\x03\x01\x02",  # the beginning of TLS
            head_of("Content-Length: x"),
            head_of("Content-Length: 4", "Content-Length: 5") + b"[{}]",
            head_of("Transfer-Encoding: chunked") + b"zz\r\n[{}]\r\n0\r\n\r\n",
            head_of("X: " + "a" * 100_000),
            b"GET /info HTTP/1.1\r\n\r\n",  # without Host
            b"G\x00T / HTTP/1.1\r\n\r\n",
            b"GET http://[ HTTP/1.1\r\nHost: localhost\r\n\r\n",
            head_of("X\x00: " + "a" * 8000),
        ):
            status, answer = at.send(sent)
            assert (status, json.loads(answer)["error"]["type"]) == (400, "RefusedError"), sent[:50]
            assert len(answer) < 2000
        assert at.play([{"max_steps": 1}])[0]["reason"] == "time"
    assert capfd.readouterr().err == ""


def test_callers_are_let_in_by_an_allowed_name_or_a_token_which_other_machines_need(engine):
    engine.policies.update(POLICIES)
    for host in ("0.0.0.0", "::", "localhost.example", "192.168.1.1"):
        with pytest.raises(doorstep.ArgumentError, match="--token-file"):
            serve(engine, host=host)
    with served(engine, POLICIES, host="0.0.0.0", token=TOKEN) as at:
        assert at.refusal("GET", "/metrics")[0] == at.refusal("GET", "/info", Authorization="Bearer é")[0] == 401
        assert at.call("GET", "/info", Authorization=f"Bearer {TOKEN}", Host="machine.example")[0] == 200
    page = {"Host": "proxy.example", "Origin": "https://proxy.example"}
    with served(engine, POLICIES, allow_hosts=["proxy.example"]) as at:
        assert at.play([{"max_steps": 1}], **page)[0]["reason"] == "time"
        assert "--allow-host" in at.refusal("GET", "/info", Host="evil.example")[1]["message"]


def test_bad_arguments_are_refused(engine):
    with pytest.raises(doorstep.ArgumentError, match=r"engine is .*it must be one with named policies"):
        serve(engine)
    engine.policies["random"] = "random"
    tokens = ("short", "0123456789abcdef\n", b"0123456789abcdef")
    wrong = {"host": ("", None), "port": (65536, "80"), "token": tokens, "engine": (None,)}
    for name, value in ((name, value) for name, values in wrong.items() for value in values):
        with pytest.raises(doorstep.ArgumentError, match=name):
            serve(**{"engine": engine, name: value})


# ---- Limits, clients that go, ends


def test_clients_that_end_their_side_get_their_answer(engine, waiting):
    with served(engine, {"random": "random", "waiting": waiting}) as at:
        for path in ("/info", "/metrics"):
            assert at.send(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())[0] == 200
        status, lines = at.send(*body_of({"max_steps": 3}, {"max_steps": 5}))
        assert (status, sorted(json.loads(line)["length"] for line in lines.splitlines())) == (200, [3, 5])
        with at.begin([{"policy": "waiting", "max_steps": 1}]) as slow, slow.makefile("rb") as answer:
            slow.shutdown(socket.SHUT_WR)
            assert waiting.acts.wait(PATIENCE)
            while answer.readline() != b" \r\n":  # the server asks whether it still reads
                pass
            waiting.may_act.set()
            assert b'"reason": "time"' in answer.read()
        for part in (b"", b"GET /in", head_of("Content-Length: 9") + b"["):  # no request: nothing to wait for
            with at.connect(part) as connection:
                connection.shutdown(socket.SHUT_WR)
                assert connection.recv(100) == b""


def test_what_does_not_come_is_not_awaited_for_ever(engine, monkeypatch):
    monkeypatch.setattr(server, "HEAD_SECONDS", 0.05)
    monkeypatch.setattr(server, "BODY_SECONDS", 0.05)
    info = b"GET /info HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with served(engine, POLICIES) as at:
        for begun in (b"", b"GET /info HTT", info + b"GET /in"):
            with at.connect(begun) as connection:
                while connection.recv(1 << 16):
                    pass
        with at.connect(head_of("Content-Length: 9") + b"[") as connection:
            assert connection.recv(100).startswith(b"HTTP/1.1 408")


def test_connections_that_send_nothing_keep_nobody_out(engine, monkeypatch, waiting):
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 3)
    with served(engine, {"waiting": waiting}) as at, contextlib.ExitStack() as stack:
        begun = [stack.enter_context(at.begin([{"max_steps": 1}])) for _ in range(2)]
        assert waiting.acts.wait(PATIENCE)
        assert is_soon(lambda: engine.metrics.total("requests_submitted").value == 2)
        for part in (b"", b"GET /info HTT", head_of("Content-Length: 9") + b"[") * 10:
            stack.enter_context(at.connect(part))
            assert in_flight(at) == 2
        begun.append(stack.enter_context(at.begin([{"max_steps": 1}])))
        assert is_soon(lambda: engine.metrics.total("requests_submitted").value == 3)
        status, headers, _ = at.call("POST", "/episodes", [{}])
        assert (status, headers["Retry-After"]) == (503, "1")
        waiting.may_act.set()
        for connection in begun:
            with connection.makefile("rb") as answer:
                assert any(b'"reason": "time"' in line for line in answer)


def test_too_many_episodes_at_once_are_to_be_tried_again(waiting):
    """Of a small engine, which measures nothing."""
    metrics = doorstep.metrics.MetricsConfig(enabled=False)
    config = doorstep.RolloutConfig(SimulatorConfig(1, num_threads=1), metrics=metrics, queue_capacity=3)
    with RolloutEngine(config) as engine, served(engine, {"waiting": waiting}) as at:
        assert at.refusal("GET", "/metrics")[0] == 404
        assert json.loads(at.call("GET", "/info")[2])["limits"]["in_flight"] == 3
        assert at.refusal("POST", "/episodes", [{}] * 4)[0] == 400  # never
        with at.begin([{"max_steps": 1}] * 2):
            assert waiting.acts.wait(PATIENCE)
            assert in_flight(at) == 2
            status, headers, _ = at.call("POST", "/episodes", [{}] * 2)
            assert (status, headers["Retry-After"]) == (429, "1")
            waiting.may_act.set()
            assert is_soon(lambda: in_flight(at) == 0)
        assert len(at.play([{"max_steps": 1}] * 3)) == 3


def test_a_client_that_disconnects_cancels_its_requests(engine, waiting):
    with served(engine, {"waiting": waiting}) as at:
        with at.begin([{"max_steps": 50}] * 20):
            assert waiting.acts.wait(PATIENCE)
        assert is_soon(lambda: in_flight(at) == 0)
        waiting.may_act.set()
        assert is_soon(lambda: engine.metrics.total("requests_answered", reason="cancelled").value == 20)
        assert at.play([{"max_steps": 1}])[0]["reason"] == "time"


def test_a_client_that_reads_nothing_is_left(engine, monkeypatch):
    monkeypatch.setattr(server, "WRITE_SECONDS", 0.05)
    with served(engine, POLICIES) as at, at.begin([{"record": "observations"}] * 60) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        assert is_soon(lambda: engine.metrics.total("requests_submitted").value == 60)
        assert is_soon(lambda: in_flight(at) == 0)


def test_an_engine_that_was_closed_is_unavailable():
    engine = RolloutEngine(SimulatorConfig(1, num_threads=1))
    engine.policies["random"] = "random"
    engine.close()
    with served(engine, None) as at:
        status, error = at.refusal("POST", "/episodes", [{}])
        assert (status, error["type"]) == (503, "ClosedError")
        assert at.call("GET", "/metrics")[0] == 200


def test_a_port_that_is_taken_is_an_error(engine):
    with served(engine, POLICIES) as at, pytest.raises(OSError, match=str(at.port)):
        serve(engine, port=at.port)


def test_clients_that_wait_with_their_body_are_answered(engine, capfd):
    body = b'[{"max_steps": 1}]'
    head = head_of(f"Content-Length: {len(body)}", "Connection: close").removesuffix(b"\r\n")
    with served(engine, POLICIES) as at:
        with at.connect(head + b"Expect: 100-continue\r\n\r\n") as connection:
            assert connection.recv(1 << 16).startswith(b"HTTP/1.1 100")
            connection.sendall(body)
            status, answer = answer_of(connection)
            assert (status, b'"reason": "time"' in answer) == (200, True)
        assert at.send(head + b"Expect: \xff\xfe\r\n\r\n", body)[0] == 417
    assert capfd.readouterr().err == ""
