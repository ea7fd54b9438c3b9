"""An engine over HTTP: results are the engine's, whatever a client sends or omits to read."""

from __future__ import annotations

import base64
import contextlib
import json
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("aiohttp")

from tests.pkg.metrics.test_series import parsed
from tests.pkg.rollouts.playing import some_requests
from tests.pkg.serve.serving import PATIENCE, Served, Waiting, failing, head_of, served

import doorstep
from doorstep import RolloutEngine, SimulatorConfig
from doorstep.serve import messages, serve, server

POLICIES = {"random": "random", "still": "idle", "failing": failing}
TOKEN = "0123456789abcdef"


@pytest.fixture
def engine() -> Iterator[RolloutEngine]:
    with RolloutEngine(SimulatorConfig(8, num_threads=1, max_levels=1)) as made:
        yield made


def wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


def in_flight(at: Served) -> int:
    return int(json.loads(at.call("GET", "/info")[2])["in_flight"])


# ---- What is answered


def test_results_are_those_of_the_engine(engine: RolloutEngine) -> None:
    level = doorstep.levels.curated()["one door"]
    documents = [
        {"seed": 7 * i, "max_steps": 1 + i * 11 % 40, "policy": "random", "record": ["observations"]} for i in range(20)
    ]
    documents += [{"seed": 3, "level": level.to_dict(), "policy": ["still", "random"], "max_steps": 5, "tag": 2**63}]
    expected = engine.run([
        *some_requests(20, record=("observations",)),
        doorstep.EpisodeRequest(seed=3, level=level, policy=("idle", "random"), max_steps=5, tag=2**63),
    ])
    with served(engine, POLICIES) as at:
        results = at.play(documents)
    for index, (result, own) in enumerate(zip(results, expected, strict=True)):
        assert (result["index"], result["reason"], result["length"]) == (index, own.reason, own.length)
        assert (result["tag"], int(result["state_hash"], 16)) == (own.request.tag, own.state_hash)
        for name in ("returns", "max_y", "actions", "observations", "rewards", "last_observations"):
            if getattr(own, name) is not None:
                np.testing.assert_array_equal(np.float32(result[name]), getattr(own, name), name)
        assert ("actions" in result) == (own.actions is not None)


def network_with_all() -> Any:
    """A policy with a memory and a value."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(2)
    heads = [torch.nn.Linear(8, size) for size in doorstep.ACTIONS]
    return doorstep.load_policy(
        torch.nn.Sequential(
            torch.nn.Linear(94, 8),
            torch.nn.GRUCell(8, 8),
            doorstep.policy.Heads(heads, value=torch.nn.Linear(8, 1)),
        )
    )


def test_a_request_plays_several_episodes_from_a_state_and_records_everything(engine: RolloutEngine) -> None:
    network, record = network_with_all(), ("observations", "log_probs", "values", "states")
    with doorstep.Simulator(1, seed=9, max_levels=1, num_threads=1) as sim:
        for _ in range(5):
            sim.step()
        state = sim.save([0])
    common: dict[str, Any] = {"n": 3, "max_steps": 6, "seed": 4, "record": record}
    with served(engine, {"all": network, "random": "random"}) as at:
        document = {**common, "policy": ["all", "random"]}
        lines = at.play([document, {"max_steps": 2}, {**document, "state": base64.b64encode(state).decode()}])
    assert [line["index"] for line in lines] == [0, 0, 0, 1, 2, 2, 2]
    policy = (network, "random")
    expected = engine.run([
        doorstep.EpisodeRequest(policy=policy, **common),
        doorstep.EpisodeRequest(policy=policy, state=state, **common),
    ])
    several = [line for line in lines if line["index"] != 1]
    several.sort(key=lambda line: (line["index"], line["continuation"]))
    for line, own in zip(several, expected, strict=True):
        assert (line["continuation"], int(line["state_hash"], 16)) == (own.continuation, own.state_hash)
        for name in ("actions", "rewards", "log_probs", "versions", "values", "states", "last_states"):
            told = np.array(line[name], np.float32)  # of null: NaN
            np.testing.assert_array_equal(told, np.float32(getattr(own, name)), name)


def test_replicas_come_and_go_while_the_engine_is_served(engine: RolloutEngine) -> None:
    with served(engine, POLICIES) as at:
        before = at.play([{"seed": 5, "max_steps": 20}] * 20)
        number = engine.add_replica(num_worlds=2)
        assert json.loads(at.call("GET", "/info")[2])["replicas"] == [0, number]
        engine.remove_replica(0)
        after = at.play([{"seed": 5, "max_steps": 20}] * 20)
        assert json.loads(at.call("GET", "/info")[2])["replicas"] == [number]
    assert {line["state_hash"] for line in before} == {line["state_hash"] for line in after}
    assert {line["replica"] for line in after} == {number}


def test_a_policy_that_raises_fails_its_episodes_alone(engine: RolloutEngine) -> None:
    with served(engine, POLICIES) as at:
        failed, played = at.play([{"policy": "failing", "max_steps": 2}, {"max_steps": 2}])
    assert (failed["reason"], failed["length"]) == ("failed", 0)
    assert "a policy that fails" in failed["error"]
    assert (played["reason"], played["error"]) == ("time", "")


def test_results_are_streamed_when_their_episodes_end(engine: RolloutEngine) -> None:
    waiting = Waiting()
    with served(engine, {**POLICIES, "waiting": waiting}) as at:
        with at.begin([{"policy": "waiting", "max_steps": 1}]) as first, first.makefile("rb") as answer:
            assert waiting.acts.wait(PATIENCE)
            assert answer.readline().startswith(b"HTTP/1.1 200")  # the head comes before the result
            waiting.may_act.set()
            while (line := answer.readline()) and b'"index"' not in line:
                pass
        assert b'"reason": "time"' in line


def test_clients_name_the_policies_that_the_engine_has_now(engine: RolloutEngine) -> None:
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


def test_metrics_are_those_of_the_engine(engine: RolloutEngine) -> None:
    with served(engine, POLICIES) as at:
        at.play([{"max_steps": 3}] * 5)
        status, headers, text = at.call("GET", "/metrics")
    assert (status, headers["Content-Type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    samples = parsed(text.decode())
    assert sum(samples["doorstep_requests_submitted_total"].values()) == 5
    assert any('policy="random"' in labels for labels in samples["doorstep_policy_seconds"])


def test_info_tells_config_policies_and_limits(engine: RolloutEngine) -> None:
    with served(engine, POLICIES) as at:
        info = json.loads(at.call("GET", "/info")[2])
    assert (info["policies"], info["replicas"]) == (list(POLICIES), [0])
    assert doorstep.RolloutConfig.from_dict(info["config"]) == engine.config
    assert info["limits"] == {"in_flight": 4096, "body_bytes": 8 << 20}


def test_an_engine_that_measures_nothing_has_no_metrics() -> None:
    metrics = doorstep.metrics.MetricsConfig(enabled=False)
    config = doorstep.RolloutConfig(SimulatorConfig(1, num_threads=1), metrics=metrics)
    with RolloutEngine(config) as engine, served(engine, POLICIES) as at:
        assert at.refusal("GET", "/metrics")[0] == 404


# ---- What is refused


def entry(**fields: Any) -> Any:
    return [{"seed": 1}, fields]


BAD_BODIES: list[tuple[Any, str]] = [
    (b"", "text"),
    (b"{", "text"),
    (b"\xff\xfe", "text"),
    (b"[" * 100_000, "text"),
    (b'[{"seed": 1, "seed": 2}]', "text"),
    (b'[{"seed": 1' + b"0" * 10_000 + b"}]", "text"),
    ({}, "requests"),
    ([], "requests"),
    ("random", "requests"),
    ([{}] * 4097, "requests"),
    ([[]], "requests[0]"),
    ([None], "requests[0]"),
    (entry(sed=1), "requests[1].sed"),
    (entry(seed=1.5), "requests[1].seed"),
    (entry(seed=True), "requests[1].seed"),
    (entry(seed=-1), "requests[1].seed"),
    (entry(max_steps="5"), "requests[1].max_steps"),
    (entry(max_steps=0), "requests[1].max_steps"),
    (b'[{"deadline": NaN}]', "requests[0].deadline"),
    (entry(deadline=-1), "requests[1].deadline"),
    (entry(tag=2**64), "requests[1].tag"),
    (entry(n=0), "requests[1].n"),
    (entry(n=4097), "requests"),  # more episodes than may be in flight
    (entry(state="no base64"), "requests[1].state"),
    (entry(state=5), "requests[1].state"),
    (entry(state=[1, 2]), "requests[1].state"),
    (entry(state="AAAA", level=doorstep.levels.curated()["one door"].to_dict()), "requests[1].level"),
    (entry(record=["values"]), "record"),  # which no policy tells
    (entry(record=["stream"]), "requests[1].record"),
    (entry(record={"actions": 1}), "requests[1].record"),
    (entry(record=[["actions"]]), "requests[1].record"),
    (entry(policy=None), "requests[1].policy"),
    (entry(policy="os:getcwd"), "requests[1].policy"),
    (entry(policy="idle"), "requests[1].policy"),  # a policy, but not a name that is offered
    (entry(policy=[["random", "random"]]), "requests[1].policy"),
    (entry(policy=["random"]), "policy"),  # of two agents
    (entry(sampling={"temperature": "hot"}), "requests[1].sampling.temperature"),
    (entry(sampling=[]), "requests[1].sampling.values"),
    (entry(level="curated"), "requests[1].level.doorstep"),
    (entry(level={"doorstep": "level", "version": 1, "walls": 3}), "requests[1].level.spawns"),
]


def test_bodies_that_are_no_requests_are_refused_and_named(engine: RolloutEngine) -> None:
    with served(engine, POLICIES) as at:
        for body, argument in BAD_BODIES:
            status, error = at.refusal("POST", "/episodes", body)
            assert (status, error["type"], error["argument"]) == (400, "ArgumentError", argument), (body, error)
        assert in_flight(at) == 0
        assert len(at.play([{"max_steps": 1}])) == 1
    assert engine.metrics is not None
    assert engine.metrics.total("requests_answered", reason="time").value == 1


LONG = "n" * 1_000_000
LEVEL = doorstep.levels.curated()["one door"].to_dict()


@pytest.mark.parametrize("value", [LONG, [LONG], {LONG: 1}, [{LONG: 1}], 10**4000, -(10**400)], ids=type)
def test_what_is_refused_is_not_repeated_whole(engine: RolloutEngine, value: Any) -> None:
    """Wherever it stands: as a value of any field of requests, levels and sampling, or as a name."""
    bodies = [value, [value]]
    bodies += [[{name: value}] for name in messages._FIELDS]
    bodies += [[{"level": {**LEVEL, name: value}}] for name in LEVEL]
    bodies += [[{"sampling": {name: value}}] for name in ("temperature", LONG)]
    with served(engine, POLICIES) as at:
        for body in bodies:
            status, _, answer = at.call("POST", "/episodes", body)
            assert len(answer) < 3000
            assert status in (200, 400, 409)


def test_states_that_the_engine_cannot_go_on_from_are_refused(engine: RolloutEngine) -> None:
    with doorstep.Simulator(1, num_agents=3, num_threads=1) as sim:
        others = base64.b64encode(sim.save([0])).decode()
    with served(engine, POLICIES) as at:
        for state in ("AAAA", others):
            status, error = at.refusal("POST", "/episodes", [{"seed": 1}, {"state": state}])
            assert (status, error["type"]) == (409, "StateError"), error
        assert in_flight(at) == engine.outstanding == 0


def test_huge_bodies_are_refused_before_they_are_read(engine: RolloutEngine) -> None:
    with served(engine, POLICIES) as at:
        assert at.refusal("POST", "/episodes", b" " * (server.MOST_BYTES + 1))[0] == 413
        assert at.play([{"max_steps": 1}])[0]["reason"] == "time"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "rebound.example"}, 403),
        ({"Host": "127.0.0.1.rebound.example:80"}, 403),
        ({"Host": "[::1"}, 403),
        ({"Host": ""}, 403),
        ({"Origin": "http://other.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://["}, 403),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ({"Content-Encoding": "gzip"}, 415),
    ],
)
def test_pages_of_other_sites_are_refused(engine: RolloutEngine, headers: dict[str, str], status: int) -> None:
    with served(engine, POLICIES) as at:
        assert at.refusal("POST", "/episodes", [{}], **headers)[0] == status
        assert at.call("GET", "/info", Host="localhost")[0] == 200
        assert at.call("GET", "/info", Host="[::1]:99", Origin="http://[::1]:99")[0] == 200


@pytest.mark.parametrize(
    "sent",
    [
        b"nonsense\r\n\r\n",
        b"\x16\x03\x01\x02",  # the beginning of TLS
        head_of("Content-Length: x"),
        head_of("Content-Length: 4", "Content-Length: 5") + b"[{}]",
        head_of("Transfer-Encoding: chunked") + b"zz\r\n[{}]\r\n0\r\n\r\n",
        head_of("X: " + "a" * 100_000),
        b"GET /info HTTP/1.1\r\n\r\n",  # without Host
        b"GET /info HTTP/9.9\r\nHost: localhost\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"G\x00T / HTTP/1.1\r\n\r\n",
        b"GET http://[ HTTP/1.1\r\nHost: localhost\r\n\r\n",
        head_of("X\x00: " + "a" * 8000),
    ],
)
def test_what_is_no_http_is_refused_and_fills_no_log(
    engine: RolloutEngine, sent: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    with served(engine, POLICIES) as at:
        status, answer = at.send(sent)
        assert (status, json.loads(answer)["error"]["type"]) == (400, "RefusedError")
        assert len(answer) < 2000
        assert at.play([{"max_steps": 1}])[0]["reason"] == "time"
    assert capfd.readouterr().err == ""


def test_other_pages_and_methods_are_errors_in_json(engine: RolloutEngine) -> None:
    with served(engine, POLICIES) as at:
        assert at.refusal("GET", "/")[0] == 404
        assert at.refusal("GET", "/episodes")[0] == 405
        assert at.refusal("POST", "/metrics", [])[0] == 405
        assert at.refusal("OPTIONS", "*")[0] == 404
        assert at.refusal("GET", "/" + "x" * 8000)[0] == 404


def test_a_token_is_needed_where_there_is_one(engine: RolloutEngine) -> None:
    with served(engine, POLICIES, token=TOKEN) as at:
        assert at.refusal("GET", "/metrics")[0] == 401
        for wrong in ("", TOKEN, f"Bearer {TOKEN}x", f"Basic {TOKEN}", "Bearer é"):
            assert at.refusal("GET", "/info", Authorization=wrong)[0] == 401
        assert at.call("GET", "/info", Authorization=f"Bearer {TOKEN}")[0] == 200


def test_other_machines_need_a_token(engine: RolloutEngine) -> None:
    engine.policies.update(POLICIES)
    for host in ("0.0.0.0", "::", "localhost.example", "192.168.1.1"):
        with pytest.raises(doorstep.ArgumentError, match="--token-file"):
            serve(engine, host=host)
    with served(engine, POLICIES, host="0.0.0.0", token=TOKEN) as at:
        assert at.call("GET", "/info", Authorization=f"Bearer {TOKEN}", Host="machine.example")[0] == 200
        assert at.refusal("GET", "/info", Host="machine.example")[0] == 401


def test_bad_arguments_are_refused(engine: RolloutEngine) -> None:
    bad: list[dict[str, Any]] = [
        {"host": ""},
        {"host": None},
        {"port": -1},
        {"port": 65536},
        {"port": "80"},
        {"token": "short"},
        {"token": "0123456789abcdef\n"},
        {"token": b"0123456789abcdef"},
        {"engine": None},
    ]
    with pytest.raises(doorstep.ArgumentError, match=r"engine is .*it must be one with named policies"):
        serve(engine)
    engine.policies["random"] = "random"
    for change in bad:
        arguments = {"engine": engine, **change}
        with pytest.raises(doorstep.ArgumentError, match=next(iter(change))):
            serve(arguments.pop("engine"), **arguments)


@pytest.mark.parametrize("token", [None, TOKEN])
def test_a_proxy_that_has_the_token_or_an_allowed_name_may_call(engine: RolloutEngine, token: str | None) -> None:
    page = {"Host": "proxy.example", "Origin": "https://proxy.example"}
    given = {"Authorization": f"Bearer {token}"} if token else {}
    with served(engine, POLICIES, token=token, allow_hosts=() if token else ["proxy.example"]) as at:
        assert at.call("GET", "/info", **page, **given)[0] == 200
        assert at.play([{"max_steps": 1}], **page, **given)[0]["reason"] == "time"
        status, error = at.refusal("GET", "/info", Host="evil.example", Origin="http://evil.example")
        assert status == (401 if token else 403)
        assert token or "--allow-host" in error["message"]


# ---- Limits, clients that go, ends


def body_of(*requests: Any) -> tuple[bytes, bytes]:
    body = json.dumps(requests).encode()
    return head_of(f"Content-Length: {len(body)}"), body


def test_clients_that_end_their_side_get_their_answer(engine: RolloutEngine) -> None:
    waiting = Waiting()
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
            with socket.create_connection(("127.0.0.1", at.port), PATIENCE) as connection:
                connection.sendall(part)
                connection.shutdown(socket.SHUT_WR)
                assert connection.recv(100) == b""


@pytest.mark.parametrize("begun", [b"", b"GET /info HTT", b"GET /info HTTP/1.1\r\nHost: localhost\r\n\r\nGET /in"])
def test_a_head_that_does_not_come_is_not_awaited_for_ever(
    engine: RolloutEngine, monkeypatch: pytest.MonkeyPatch, begun: bytes
) -> None:
    monkeypatch.setattr(server, "HEAD_SECONDS", 0.05)
    with served(engine, POLICIES) as at, socket.create_connection(("127.0.0.1", at.port), PATIENCE) as connection:
        connection.sendall(begun)
        while connection.recv(1 << 16):
            pass


def test_connections_that_send_nothing_keep_nobody_out(engine: RolloutEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 3)
    waiting = Waiting()
    with served(engine, {"waiting": waiting}) as at, contextlib.ExitStack() as stack:
        begun = [stack.enter_context(at.begin([{"max_steps": 1}])) for _ in range(2)]
        assert waiting.acts.wait(PATIENCE)
        wait_until(lambda: engine.outstanding == 2)
        for part in (b"", b"GET /info HTT", head_of("Content-Length: 9") + b"[") * 10:
            idle = stack.enter_context(socket.create_connection(("127.0.0.1", at.port), PATIENCE))
            idle.sendall(part)
            assert in_flight(at) == 2
        begun.append(stack.enter_context(at.begin([{"max_steps": 1}])))
        wait_until(lambda: engine.outstanding == 3)
        status, headers, _ = at.call("POST", "/episodes", [{}])
        assert (status, headers["Retry-After"]) == (503, "1")
        waiting.may_act.set()
        for connection in begun:
            with connection.makefile("rb") as answer:
                assert any(b'"reason": "time"' in line for line in answer)


def test_too_many_episodes_at_once_are_to_be_tried_again(
    engine: RolloutEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "MOST_EPISODES", 3)
    waiting = Waiting()
    with served(engine, {"waiting": waiting}) as at:
        with at.begin([{"max_steps": 1}] * 2):
            assert waiting.acts.wait(PATIENCE)
            status, headers, _ = at.call("POST", "/episodes", [{}, {}])
            assert (status, headers["Retry-After"]) == (429, "1")
            waiting.may_act.set()
            wait_until(lambda: in_flight(at) == 0)
        assert len(at.play([{"max_steps": 1}] * 3)) == 3


def test_a_client_that_disconnects_cancels_its_requests(engine: RolloutEngine) -> None:
    waiting = Waiting()
    with served(engine, {"waiting": waiting}) as at:
        with at.begin([{"max_steps": 50}] * 20):
            assert waiting.acts.wait(PATIENCE)
        wait_until(lambda: in_flight(at) == 0 == engine.outstanding)
        waiting.may_act.set()
        assert engine.drain(PATIENCE)
        assert engine.metrics is not None
        assert engine.metrics.total("requests_answered", reason="cancelled").value == 20
        assert at.play([{"max_steps": 1}])[0]["reason"] == "time"


def test_a_client_that_reads_nothing_is_left(engine: RolloutEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "WRITE_SECONDS", 0.05)
    with served(engine, POLICIES) as at:
        with at.begin([{"record": "observations"}] * 60) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            wait_until(lambda: in_flight(at) == 0)
        assert engine.drain(PATIENCE)


def test_a_body_that_does_not_come_is_not_awaited_for_ever(
    engine: RolloutEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "BODY_SECONDS", 0.05)
    with served(engine, POLICIES) as at, socket.create_connection(("127.0.0.1", at.port), PATIENCE) as connection:
        connection.sendall(head_of("Content-Length: 9") + b"[")
        assert connection.recv(100).startswith(b"HTTP/1.1 408")


def test_the_end_of_the_server_is_the_last_line_of_a_stream(engine: RolloutEngine) -> None:
    waiting = Waiting()
    with served(engine, {"waiting": waiting}) as at:
        connection = at.begin([{"max_steps": 1}])
        assert waiting.acts.wait(PATIENCE)
    with connection, connection.makefile("rb") as answer:
        assert b'{"error": {"type": "ClosedError"' in answer.read()
    waiting.may_act.set()
    assert engine.drain(PATIENCE)


def test_an_engine_that_was_closed_is_unavailable() -> None:
    engine = RolloutEngine(SimulatorConfig(1, num_threads=1))
    engine.policies["random"] = "random"
    engine.close()
    with served(engine, None) as at:
        status, error = at.refusal("POST", "/episodes", [{}])
        assert (status, error["type"]) == (503, "ClosedError")
        assert at.call("GET", "/metrics")[0] == 200


def test_a_port_that_is_taken_is_an_error(engine: RolloutEngine) -> None:
    with served(engine, POLICIES) as at, pytest.raises(OSError, match=str(at.port)):
        serve(engine, port=at.port)


@pytest.mark.parametrize(
    ("expected", "statuses"), [(b"100-continue", [b"100", b"200"]), (b"\xff\xfe", [b"417"]), (b"a raise", [b"417"])]
)
def test_clients_that_wait_with_their_body_are_answered(
    engine: RolloutEngine, expected: bytes, statuses: list[bytes], capfd: pytest.CaptureFixture[str]
) -> None:
    body = b'[{"max_steps": 1}]'
    head = head_of(f"Content-Length: {len(body)}", "Connection: close")
    with served(engine, POLICIES) as at:
        with socket.create_connection(("127.0.0.1", at.port), PATIENCE) as connection:
            connection.sendall(head.removesuffix(b"\r\n") + b"Expect: " + expected + b"\r\n\r\n")
            answers = [connection.recv(1 << 16)]
            if len(statuses) > 1:
                connection.sendall(body)
            while piece := connection.recv(1 << 16):
                answers.append(piece)
        begun = [line.split()[1] for line in b"".join(answers).splitlines() if line.startswith(b"HTTP/1.1 ")]
        assert begun == statuses
    assert capfd.readouterr().err == ""
