"""The parts of the viewer that need no browser: clock, keys, layout, plays."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import doorstep
from doorstep.view.history import LONGEST, History, Moment
from doorstep.view.keyboard import Key, Keyboard
from doorstep.view.layout import Layout
from doorstep.view.pace import Pace
from doorstep.view.play import LivePlay, Replay
from doorstep.view.policies import idle, random
from doorstep.view.requests import Requests


def test_as_many_steps_are_due_as_time_has_passed() -> None:
    pace = Pace(20)
    taken = [pace.take(now) for now in np.arange(0, 2, 0.001)]
    assert sum(taken) == 40
    assert max(taken) == 1
    assert pace.wait(1.99) == pytest.approx(0.01, abs=1e-9)


def test_fast_clocks_owe_several_steps_and_late_ones_do_not_catch_up() -> None:
    pace = Pace(1000)
    assert pace.take(0.0) == 1
    assert pace.take(0.0105) == 10
    assert pace.take(60.0) == 1


def test_a_slow_clock_does_not_tick_before_its_time() -> None:
    pace = Pace(0.5)
    assert [pace.take(now) for now in (0.0, 1.0, 1.9, 2.0, 3.9, 4.0)] == [1, 0, 0, 1, 0, 1]


def test_at_rate_0_nothing_is_ever_due() -> None:
    pace = Pace(0)
    assert pace.take(5.0) == 0
    assert pace.wait(5.0) is None


@pytest.mark.parametrize(
    ("keys", "action"),
    [
        ("", (0, 0, 2, 0)),
        ("W", (1, 0, 2, 0)),
        ("WD", (1, 1, 2, 0)),
        ("D", (1, 2, 2, 0)),
        ("SD", (1, 3, 2, 0)),
        ("S", (1, 4, 2, 0)),
        ("SA", (1, 5, 2, 0)),
        ("A", (1, 6, 2, 0)),
        ("WA", (1, 7, 2, 0)),
        ("WS", (0, 0, 2, 0)),
        ("WASD", (0, 0, 2, 0)),
        ("FW", (3, 0, 2, 0)),
        ("F", (0, 0, 2, 0)),
        ("Q", (0, 0, 3, 0)),
        ("E", (0, 0, 1, 0)),
        ("FQ", (0, 0, 4, 0)),
        ("FE", (0, 0, 0, 0)),
        ("QE", (0, 0, 2, 0)),
        ("G", (0, 0, 2, 1)),
        ("WQG", (1, 0, 3, 1)),
    ],
)
def test_keys_mean_the_actions_of_the_reference(keys: list[Key], action: tuple[int, ...]) -> None:
    keyboard = Keyboard()
    for key in keys:
        keyboard.press(0, key)
    assert keyboard.act() == action


def test_a_key_counts_while_it_is_held_and_at_least_once() -> None:
    keyboard = Keyboard()
    keyboard.press(0, "W")
    assert [keyboard.act()[0] for _ in range(3)] == [1, 1, 1]
    keyboard.release(0, "W")
    assert keyboard.act()[0] == 0
    keyboard.press(0, "W")
    keyboard.release(0, "W")  # between two steps
    assert [keyboard.act()[0] for _ in range(2)] == [1, 0]


def test_each_stroke_of_g_grabs_in_one_step() -> None:
    keyboard = Keyboard()
    keyboard.press(0, "G")
    keyboard.press(0, "G")
    assert [keyboard.act()[3] for _ in range(3)] == [1, 1, 0]


def test_keys_of_somebody_who_has_gone_are_let_go() -> None:
    keyboard = Keyboard()
    keyboard.press(1, "W")
    keyboard.press(2, "D")
    keyboard.act()
    keyboard.forget(1)
    assert keyboard.act() == (1, 2, 2, 0)
    keyboard.clear()
    assert keyboard.act() == (0, 0, 2, 0)


def test_worlds_do_not_overlap_and_the_first_stands_where_it_says() -> None:
    with doorstep.Simulator(64) as sim:
        layout = Layout.of(sim, 64)
    assert layout.low == pytest.approx((-11, -1))
    assert layout.high == pytest.approx((11, 40))
    assert layout.offsets[0] == pytest.approx((0, 0, 0))
    size = layout.high - layout.low
    apart = np.abs(layout.offsets[:, None, :2] - layout.offsets[None, :, :2])
    assert ((apart >= size).any(axis=-1) | np.eye(64, dtype=bool)).all()


@pytest.mark.parametrize(
    ("cells", "columns", "rows"), [(1, 1, 1), (2, 2, 1), (3, 2, 2), (9, 3, 3), (16, 4, 4), (60, 8, 8), (64, 8, 8)]
)
def test_worlds_stand_in_a_square(cells: int, columns: int, rows: int) -> None:
    with doorstep.Simulator(1) as sim:
        offsets = Layout.of(sim, cells).offsets
    assert len(np.unique(offsets[:, 0])) == columns
    assert len(np.unique(offsets[:, 1])) == rows
    assert (np.diff(offsets[:columns, 0]) > 0).all()  # the first row from left to right
    assert len(np.unique(offsets, axis=0)) == cells


def test_requests_are_served_in_order_by_whoever_waits() -> None:
    requests = Requests()
    served: list[Any] = []

    def post() -> None:
        for number in range(100):
            requests.post(served.append, number)

    threading.Thread(target=post).start()
    while len(served) < 100:
        requests.wait(20)
        requests.serve()
    assert served == list(range(100))
    assert requests.serve() is False


def test_a_request_that_met_a_collision_is_made_again_before_the_next() -> None:
    requests = Requests()
    collisions = [RuntimeError("deque mutated during iteration")] * 2
    served: list[str] = []

    def send() -> None:
        if collisions:
            raise collisions.pop()
        served.append("sent")

    requests.post(send)
    requests.post(served.append, "next")
    assert requests.serve() is True
    assert served == ["sent", "next"]


def test_returns_begin_anew_with_each_episode() -> None:
    history = History()
    assert [curve.tolist() for curve in history.curves()] == [[0], [0], [0]]
    for done in (False, True, False):
        history.add(0.5, done)
    steps, rewards, totals = history.curves()
    assert steps.tolist() == [-2, -1, 0]
    assert rewards.tolist() == [0.5, 0.5, 0.5]
    assert totals.tolist() == [0.5, 1.0, 0.5]
    assert history.last == Moment(0.5, 0.5)
    for _ in range(1000):
        history.add(0.5, done=False)
    steps, rewards, totals = history.curves()
    assert steps.tolist() == list(range(1 - LONGEST, 1))
    assert rewards.tolist() == [0.5] * LONGEST
    assert totals.tolist() == [0.5 * (1002 - LONGEST + step) for step in range(LONGEST)]
    history.clear()
    assert history.last is None


def test_the_player_moves_one_agent_and_the_policy_the_others() -> None:
    with doorstep.Simulator(2, seed=3) as sim:
        play = LivePlay(sim, idle(sim))
        play.player = (1, 0, lambda: (3, 2, 4, 0))
        play.step()
        expected = np.tile((0, 0, 2, 0), (2, 2, 1))
        expected[1, 0] = (3, 2, 4, 0)
        assert sim.actions.copy_to_host().tolist() == expected.tolist()
        assert play.position == 1


def test_random_actions_are_legal_all_of_them_and_follow_from_the_seed() -> None:
    with doorstep.Simulator(500, seed=3) as sim, doorstep.Simulator(500, seed=3) as twin:
        actions = random(sim)()
        assert actions.dtype == np.int32
        for component, choices in enumerate((4, 8, 5, 2)):
            assert set(actions[..., component].reshape(-1).tolist()) == set(range(choices))
        assert (random(twin)() == actions).all()


@pytest.fixture
def actions() -> Any:
    return np.random.default_rng(1).integers(0, (4, 8, 5, 2), (330, 5, 2, 4), np.int32)


def test_a_jump_leads_to_what_stepping_leads_to(actions: Any) -> None:
    hashes, rewards = [], []
    with doorstep.Simulator(5, seed=9) as sim:
        hashes.append(sim.hash())
        for step in actions:
            sim.actions = step
            sim.step()
            hashes.append(sim.hash())
            rewards.append(sim.rewards.copy_to_host())
    with doorstep.Simulator(5, seed=9) as sim:
        replay = Replay(sim, actions)
        assert replay.length == 330
        for goal in (300, 20, 21, 19, 0, 199, 200, 201, 330, 330, 60, 40, 41):
            replay.seek(goal)
            assert replay.position == goal
            assert sim.hash() == hashes[goal]
            if goal:
                assert (sim.rewards.copy_to_host() == rewards[goal - 1]).all()
        replay.seek(-5)
        assert (replay.position, sim.hash()) == (0, hashes[0])
        replay.seek(10**9)
        assert (replay.position, sim.hash()) == (330, hashes[330])
        replay.step()
        assert (replay.position, sim.hash()) == (330, hashes[330])
