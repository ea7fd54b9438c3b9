"""Worlds of replays over time: what happened in them, and when they stop."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import doorstep
from doorstep.recording.replay_page import ReplayPage
from doorstep.recording.world_moments import Event, WorldMoments

OUT = [(-3.0, 41.5, 0.0), (3.0, 41.5, 0.0), (0.0, 41.5, 0.0)]  # beyond the last door, metres


def worlds_of(
    sim: doorstep.Simulator, steps: int, edit: Callable[[int], None] = lambda _: None, *, until_out: bool = False
) -> list[WorldMoments]:
    """The worlds of a page after idle steps; edit(step) comes before each."""
    page = ReplayPage(sim, range(sim.num_worlds), "", until_out)
    for step in range(1, steps + 1):
        edit(step)
        sim.step()
        page.record()
    return page._worlds


def test_doors_that_open_are_events() -> None:
    opened = []
    with doorstep.Simulator(1, num_threads=1, levels="two rooms") as sim:

        def press(step: int) -> None:
            opened.append(sim.state.door_open.copy_to_host()[0, :2] != 0)
            if step in (3, 6):
                button = sim.state.button_positions.to_numpy()[0, step // 3 - 1, :2]
                sim.state.body_positions.to_numpy()[0, 0, :2] = button

        (world,) = worlds_of(sim, 9, press)
    first, second = np.argmax(opened, axis=0).tolist()  # state k is that after k steps
    assert 0 < first < second
    assert world.events == [Event(first, first, "door 1 opened"), Event(second, second, "door 2 opened")]


@pytest.mark.parametrize(("num_agents", "text"), [(1, "agent out"), (2, "both agents out"), (3, "all 3 agents out")])
def test_agents_that_are_all_out_are_one_event(num_agents: int, text: str) -> None:
    with doorstep.Simulator(1, num_threads=1, num_agents=num_agents) as sim:

        def leave(step: int) -> None:
            if step == 4:
                sim.state.body_positions.to_numpy()[0, :num_agents] = OUT[:num_agents]

        (world,) = worlds_of(sim, 7, leave)
    assert world.events == [Event(4, 4, text)]
    assert [moment.is_out for moment in world.moments] == [False] * 4 + [True] * 4


def test_the_end_of_an_episode_is_an_event_with_the_mean_return() -> None:
    with doorstep.Simulator(2, num_threads=1, episode_length=5) as sim:
        rewards = []

        def walk(_: int) -> None:
            sim.actions.to_numpy()[:] = (3, 0, 2, 0)
            rewards.append(sim.rewards.copy_to_host()[:, :, 0].mean(axis=1))

        worlds = worlds_of(sim, 7, walk)
    returns = np.sum(rewards[1:6], axis=0)  # the list begins with those before the first step
    assert (returns > 0).all()
    for world, total in zip(worlds, returns.tolist(), strict=True):
        assert world.events == [Event(4, 5, f"episode ended, return {total:.1f}")]
        last = world.moments[4]
        assert (last.returns + last.final_rewards).mean() == pytest.approx(total, abs=1e-5)
        assert world.moments[5].returns.tolist() == [0, 0]


def in_goal(sim: doorstep.Simulator, world: int) -> None:
    goal = sim.levels[0].goal
    assert goal is not None
    places = sim.state.body_positions.to_numpy()[world, :2]
    places[:, 1] = (goal.min_y + goal.max_y) / 2
    places[:, 0] = (goal.min_x + goal.max_x) / 2 + np.array((-1.5, 1.5))


def test_a_goal_that_ends_the_episode_is_one_event() -> None:
    with doorstep.Simulator(1, num_threads=1, levels="one door") as sim:
        (world,) = worlds_of(sim, 5, lambda step: in_goal(sim, 0) if step == 3 else None)
    (event,) = world.events
    assert (event.moment, event.step) == (2, 3)
    last = world.moments[2]
    assert event.text == f"goal reached, return {(last.returns + last.final_rewards).mean():.1f}"
    assert last.is_out
    assert not world.moments[3].is_out


def test_a_goal_is_an_event_where_episodes_go_on() -> None:
    with doorstep.Simulator(1, num_threads=1, levels="one door", auto_reset=False) as sim:
        (world,) = worlds_of(sim, 5, lambda step: in_goal(sim, 0) if step == 3 else None)
    assert [(event.moment, event.text) for event in world.events] == [(3, "goal reached")]


def test_until_its_agents_are_out_each_world_stops_at_its_own_moment() -> None:
    with doorstep.Simulator(3, num_threads=1, episode_length=9) as sim:

        def leave(step: int) -> None:
            if step in (3, 6):
                sim.state.body_positions.to_numpy()[step // 3 - 1, :2] = OUT[:2]

        worlds = worlds_of(sim, 12, leave, until_out=True)
    assert [len(world.moments) - 1 for world in worlds] == [3, 6, 8]
    assert [world.events[-1].text.partition(",")[0] for world in worlds] == ["both agents out"] * 2 + ["episode ended"]
