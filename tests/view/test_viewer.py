"""The viewer with a page that only counts calls: rates, commands, errors, and nothing is sent without a change."""

import functools
from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("viser", reason="the viewer needs viser")


import doorstep
from doorstep.policy import load_policy
from doorstep.policy.playing import Player
from doorstep.recording import Recording, RecordingWriter
from doorstep.viewer.keyboard import Keyboard
from doorstep.viewer.page import place_behind
from doorstep.viewer.play import LivePlay, RecordedPlay
from doorstep.viewer.viewer import Viewer
from doorstep.viewer.world_arrays import Layout


class FakePage:
    """Notes what the viewer shows, with the arguments of the last call of each; some calls fail."""

    def __init__(self, **failures):
        self.watched = True
        self.calls, self.shown, self.failures = [], {}, failures
        self.stage = self.controls = self

    def __getattr__(self, name):
        return functools.partial(self._note, name)

    def _note(self, name, *arguments):
        self.calls.append(name)
        self.shown[name] = arguments
        if self.failures.get(name):
            raise self.failures[name].pop()

    def at_once(self):
        return nullcontext()

    def count(self, name):
        return self.calls.count(name)


def live(sim, policy="idle"):
    return LivePlay(sim, Player(load_policy(policy), sim).act)


def viewer_of(sim, play, page, rate=20, keep_running=False, cells=None):
    return Viewer(sim, play, page, Layout.of(sim, cells or sim.num_worlds), Keyboard(), rate, keep_running)


def let_pass(viewer, seconds):
    """Calls the viewer when it wants to be called, on a clock of its own."""
    time, stop = 100.0, 100.0 + seconds
    while time < stop:
        wait = viewer.tick(time)
        assert wait >= 0
        time += max(wait, 1e-4)


def test_worlds_are_stepped_and_shown_at_the_rate_but_shown_at_most_25_times_a_second(sim):
    for rate, steps, pictures in ((20, 40, 40), (30, 60, 50), (5, 10, 10), (200, 400, 50)):
        page, play = FakePage(), live(sim, "random")
        let_pass(viewer_of(sim, play, page, rate), 2.0)
        taken = [play.position, page.count("show"), page.count("show_numbers")]
        assert (np.abs(np.subtract(taken, (steps, pictures, 6))) <= (2, 4, 1)).all(), taken


def test_a_paused_viewer_waits_for_requests_and_shows_nothing_new(sim):
    page, play = FakePage(), live(sim)
    viewer = viewer_of(sim, play, page)
    viewer.requests.post(viewer.toggle_pause)
    viewer.tick(1.0)
    assert (page.count("show"), *map(viewer.tick, (50.0, 60.0)), page.count("show")) == (1, None, None, 1)
    viewer.requests.post(viewer.step_once)
    viewer.tick(70.0)
    assert (play.position, page.count("show")) == (1, 2)


def test_without_a_browser_nothing_is_stepped_unless_it_keeps_running(sim):
    page, play = FakePage(), live(sim)
    page.watched = False
    assert viewer_of(sim, play, page).tick(1.0) is None
    assert (play.position, page.calls) == (0, [])
    running = viewer_of(sim, play, page, keep_running=True)
    let_pass(running, 1.0)
    assert (play.position, page.calls) == (pytest.approx(20, abs=1), [])
    page.watched = True
    running.tick(200.0)
    assert page.count("show") == 1


CHOICES = {"choose_world": range(-1, 6), "choose_agent": (0, 1), "choose_player": (None, 0, 1), "follow": (False, True)}
COMMANDS = st.one_of(
    st.sampled_from([("toggle_pause",), ("step_once",), ("reset_world",), ("press_reset_key",), ("tick",)]),
    *(st.tuples(st.just(name), st.sampled_from(values)) for name, values in CHOICES.items()),
)


@settings(max_examples=25, deadline=None)
@given(st.lists(COMMANDS, min_size=1, max_size=15))
def test_any_commands_lead_to_the_state_that_they_say(commands):
    with doorstep.Simulator(4, seed=5) as sim:
        page, play = FakePage(), live(sim)
        viewer = viewer_of(sim, play, page, cells=2)
        paused, world, agent, player, following, steps, now = False, 0, 0, None, False, 0, 100.0
        episodes, remembered = sim.state.episode_index.copy_to_host(), 0
        for name, *arguments in [*commands, ("tick",)]:
            taken = steps
            if name == "tick":
                now += 1.0
                viewer.tick(now)
                steps += not paused
            else:
                viewer.requests.post(getattr(viewer, name), *arguments)
                viewer._serve()
            is_reset = name == "reset_world" or (name == "press_reset_key" and player is not None)
            episodes[world] += is_reset
            if name in ("toggle_pause", "step_once"):
                paused = name == "step_once" or not paused
                steps += name == "step_once"
            world = min(max(arguments[0], 0), 3) if name == "choose_world" else world
            agent = arguments[0] if name == "choose_agent" else agent
            player = arguments[0] if name == "choose_player" else player
            following = arguments[0] if name == "follow" else following
            if name in ("choose_world", "choose_player") and player is not None:
                agent, following = player, True
            remembered = 0 if is_reset or name in ("choose_world", "choose_agent") else remembered + steps - taken
            assert sum(map(len, viewer._history.returns())) == len(viewer._trails._positions) == remembered
            assert (viewer.paused, viewer.world, viewer.agent, viewer._following) == (paused, world, agent, following)
            assert (play.position, sim.state.episode_index.to_numpy().tolist()) == (steps, episodes.tolist())
            assert (None if play.player is None else play.player[:2]) == (None if player is None else (world, player))
        shown, current, names, _ = page.shown["show"]
        assert (list(shown), current) == ([world // 2 * 2, world // 2 * 2 + 1], world)
        assert names == [str(one) for one in shown]
        if following:
            place = place_behind(sim, world, agent, viewer._layout.offsets[world % 2], turning=player is not None)
            assert np.array_equal(page.shown["look"][0], place)
        assert (page.shown["show_numbers"][:2], page.shown["show_paused"]) == ((world, agent), (paused,))
        assert page.shown["show_position"] == (steps,)
        says = f"step {steps}, {'paused' if paused else 'running'}; worlds {shown.start}-{shown.stop - 1} of 4 on cpu"
        assert page.shown["show_status"] == (says, "", "")


def test_the_status_says_what_was_clamped_how_many_succeeded_and_which_worlds_are_shown(sim):
    for cells, world, worlds in ((4, 0, "4 worlds"), (3, 0, "worlds 0-2 of 4"), (3, 3, "worlds 1-3 of 4")):
        page = FakePage()
        viewer = viewer_of(sim, live(sim), page, rate=0, cells=cells)
        viewer.requests.post(viewer.choose_world, world)
        viewer.requests.post(viewer.toggle_pause)
        viewer.tick(1.0)
        assert page.shown["show_status"][0].startswith(f"step 0, paused; {worlds} on cpu")
    sim.actions = np.full((4, 2, 4), 9)
    sim.step()
    sim.state.body_positions.to_numpy()[1, :2, 1] = 45.0
    viewer.requests.post(viewer.step_once)
    viewer.tick(2.0)
    says = "step 1, paused; worlds 1-3 of 4 on cpu; 32 action values out of range, clamped"
    assert page.shown["show_status"] == (says, "1 of 1 episodes succeeded", "")
    assert page.shown["show"][2] == ["1 \u2714", "2", "3"]
    with doorstep.Simulator(1, levels="one door", world_offset=7) as one:
        viewer_of(one, live(one), page).tick(1.0)
        assert page.shown["show"][2] == ["7 one door"]
        assert "; 1 world on cpu" in page.shown["show_status"][0]


def test_rewards_are_those_of_the_chosen_agent_and_episodes_that_end_are_counted():
    with doorstep.Simulator(2, num_agents=2, episode_length=4) as sim:
        page, play = FakePage(), live(sim)
        viewer, rewards = viewer_of(sim, play, page), []
        viewer.choose_agent(1)
        play.player = (0, 1, lambda: (3, 0, 2, 0))
        for _ in range(3):
            viewer.step_once()
            rewards.append(float(sim.rewards.to_numpy()[0, 1, 0]))
            assert viewer._history.last.reward == rewards[-1] != float(sim.rewards.to_numpy()[0, 0, 0])
        assert viewer._history.last.total == pytest.approx(sum(rewards))
        viewer.step_once()
        assert len(viewer._trails._positions) == 1  # of the next episode
        viewer.tick(1.0)
        assert page.shown["show_status"][1] == "0 of 2 episodes succeeded"
        assert page.shown["show"][2] == ["0 \u2718", "1 \u2718"]


# ---- Errors


def test_an_exception_of_a_policy_is_shown_once_and_its_traceback_printed(sim, tmp_path, capfd):
    path = tmp_path / "train.py"
    path.write_text("def policy(observations):\n    return observations / None\n")
    play = live(sim, f"{path}:policy")
    viewer = viewer_of(sim, play, FakePage())
    viewer.tick(1.0)
    assert (viewer.paused, viewer.error[:30]) == (True, "TypeError: unsupported operand")
    assert f'File "{path}", line 2, in policy' in capfd.readouterr().err
    viewer.step_once()  # the same error again
    assert (play.position, capfd.readouterr().err) == (0, "")
    path.write_text("def policy(observations):\n    return 0\n")
    viewer = viewer_of(sim, live(sim, f"{path}:policy"), FakePage())
    viewer.tick(1.0)
    assert "returned int64 []; it must return integers [4, 2, 4]" in viewer.error


def test_a_failing_step_or_request_pauses_and_the_next_requests_are_served(sim):
    play = live(sim)
    viewer, served = viewer_of(sim, play, FakePage()), []

    def fail():
        raise doorstep.SimulationError("nothing works")

    viewer.requests.post(fail)
    viewer.requests.post(served.append, 1)
    viewer.tick(1.0)
    assert (viewer.error, viewer.paused) == ("SimulationError: nothing works", True)
    viewer.tick(1.1)
    assert served == [1]
    viewer.step_once()  # what works again is no error any more
    assert (viewer.error, play.position) == ("", 1)
    sim.close()
    viewer.paused = False
    viewer._step(5)
    assert (viewer.paused, play.position, viewer.error[:13]) == (True, 1, "ClosedError: ")


def test_what_collides_with_the_servers_thread_is_sent_again_and_what_fails_only_after_a_change(sim, capfd):
    # asyncio's Event, set while its loop begins to wait
    page = FakePage(show=[RuntimeError("deque mutated during iteration")])
    viewer = viewer_of(sim, live(sim), page, rate=0)
    viewer.tick(1.0)
    assert (page.count("show"), page.count("show_numbers")) == (1, 0)
    viewer.tick(2.0)
    assert (page.count("show"), page.count("show_numbers"), viewer.error, viewer.paused) == (2, 1, "", False)
    page = FakePage(show_numbers=[ValueError("no numbers")] * 99)
    viewer = viewer_of(sim, live(sim), page)
    assert [viewer.tick(float(moment)) for moment in range(10)][-1] is None
    assert (page.count("show_numbers"), viewer.error, viewer.paused) == (2, "ValueError: no numbers", True)
    assert capfd.readouterr().err.count("ValueError: no numbers") == 1


def test_a_recording_ignores_players_and_resets_and_stops_at_its_end(tmp_path):
    with doorstep.Simulator(4) as sim, RecordingWriter(tmp_path / "run.rec", sim) as writer:
        for _ in range(5):
            writer.step()
    with Recording(tmp_path / "run.rec") as recording, doorstep.Simulator(4) as sim:
        page, recorded = FakePage(), RecordedPlay(sim, recording)
        viewer, before = viewer_of(sim, recorded, page), sim.hash()
        for command, *arguments in (("reset_world",), ("choose_player", 0), ("press_reset_key",)):
            getattr(viewer, command)(*arguments)
        assert sim.hash() == before
        viewer._outcomes.episodes = 3
        viewer.seek(3)
        assert (viewer._outcomes.episodes, viewer.paused, recorded.position) == (0, True, 3)
        viewer.toggle_pause()
        for moment in range(1, 9):
            viewer.tick(float(moment))
        assert (viewer.paused, recorded.position) == (True, 5)
        assert page.shown["show_status"][0].startswith("step 5 of 5, paused")
