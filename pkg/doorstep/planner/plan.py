"""Who does what in one world: one distribution of duties to its agents."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import final

from doorstep.planner.clearing import Clearing
from doorstep.planner.cube_moves import STAND_TOLERANCE, CubeMove, moves_onto, moves_towards, next_leg, scene_after
from doorstep.planner.duties import Duty, Go, Haul, Stand, Wait
from doorstep.planner.geometry import Point
from doorstep.planner.goal import GoalArea
from doorstep.planner.scene import Body, Scene

_SAME_GOAL = 6.0  # metres that a goal may move before the way there is looked for again
_MOST_MOVES = 16  # ways in one move that are looked for, of agents and cubes onto buttons
_MOST_DETOURS = 3  # ways in two moves
_MOST_LEGS = 2  # ways in more moves
_FROM_CUBES, _FROM_BUTTONS, _FROM_DOORS, _FROM_AGENTS = 4.0, 3.0, 5.0, 2.7  # metres that who waits keeps away
_EXACT = 4  # buttons up to which the best of all ways to share them out is found


@final
class Plan:
    """Who does what from now on, in one world.

    The order of the steps decides what matters most: agents that hold a cube finish; those that keep a door open stay;
    then the next door on the way is opened, whose buttons may need other doors first; who can leave leaves; the rest
    follows. A step gives duties to agents that have none yet.

    Args:
        scene: the world now.
        old: the duties of the agents until now; those that still make sense are continued.
        refused: names of moves of cubes that are not tried again; moves are added that are to be tried only once.
        goal: where agents are to go; None: to the largest y.
    """

    def __init__(
        self, scene: Scene, old: Sequence[Duty], refused: set[tuple[object, ...]], goal: GoalArea | None
    ) -> None:
        self.scene, self.level = scene, scene.level
        self.old, self.refused, self.goal = old, refused, goal
        self.new: dict[int, Duty] = {}
        self.immovable: set[tuple[int, int]] = set()
        self.places = [
            -1 if body is None else self.level.room_near(body.x, body.y, scene.is_open) for body in scene.agents
        ]
        self.spots = self._shared_spots()
        self._continue_hauls()
        self._hold_doors()
        self.is_open = [self._stays_open(door) for door in range(len(self.level.doors))]
        self._open_next_door()
        self._leave()
        self._gather()

    @property
    def duties(self) -> list[Duty]:
        """One for each agent."""
        return [self.new.get(agent) or Wait() for agent in range(len(self.scene.agents))]

    @property
    def _free(self) -> list[int]:
        return [agent for agent, place in enumerate(self.places) if place >= 0 and agent not in self.new]

    def _continue_hauls(self) -> None:
        for agent, duty in enumerate(self.old):
            if isinstance(duty, Haul) and not duty.over and duty.holding and self.scene.agents[agent]:
                self.new[agent] = duty

    # ---- Ways ----

    def _goal_places(self, agent: int) -> tuple[set[int], Point]:
        """The places that an agent wants to get to, and a point there."""
        level, body = self.level, self.scene.agents[agent]
        assert body is not None
        if self.goal is not None:
            return {level.place_near(*self.spots[agent])}, self.spots[agent]
        return level.highest_from(self.places[agent], body.x)

    def _shared_spots(self) -> dict[int, Point]:
        """A point in the goal for each agent: the one that it is on its way to, or the nearest."""
        if self.goal is None:
            return {}
        agents = [agent for agent, place in enumerate(self.places) if place >= 0]
        spots = self.goal.spots(len(agents))

        def distance(agent: int, spot: int) -> float:
            duty, body = self.old[agent], self.scene.agents[agent]
            assert body is not None
            is_chosen = isinstance(duty, Go) and not duty.over and duty.goal == spots[spot]
            return 0.0 if is_chosen else math.dist(body.at, spots[spot])

        return {agent: spots[spot] for agent, spot in _shared_out(agents, range(len(spots)), distance)}

    def _closed_doors(self, agent: int, is_open: Sequence[int], shut: Collection[int] = ()) -> list[int] | None:
        places, _ = self._goal_places(agent)
        return self.level.closed_doors_between(self.places[agent], places, is_open, shut)

    def _route(self, agent: int) -> list[int]:
        """The closed doors on the way of an agent to its goal, if possible without those that nothing keeps open for
        it while it goes through."""
        is_open = [flag and agent not in self._holders(door) for door, flag in enumerate(self.is_open)]
        shut = [door for door, flag in enumerate(is_open) if not flag and not self._can_be_held(door, agent)]
        return self._closed_doors(agent, is_open, shut) or self._closed_doors(agent, is_open) or []

    def _holders(self, door: int) -> list[int]:
        """The agents that stand on buttons of a door that would close."""
        if self.scene.lasting[door]:
            return []
        buttons = self.level.buttons_of[door]
        return [agent for agent, duty in self.new.items() if isinstance(duty, Stand) and duty.button in buttons]

    def _can_be_held(self, door: int, agent: int) -> bool:
        """Whether a door lasts, or others than an agent, or cubes, can be on its buttons."""
        level = self.level
        free = [level.buttons[button] for button in level.buttons_of[door] if not self._is_covered(button)]
        if self.scene.lasting[door] or not free:
            return True
        others = [place for other, place in enumerate(self.places) if other != agent and place >= 0]
        within = {place for start in others for place in level.reachable(start, self.is_open)}
        if len(free) <= len(others) and all(level.place_near(*button) in within for button in free):
            return True
        cubes = len(self._spare_cubes(door))
        return cubes > 0 and len(free) <= len(others) + cubes

    def _is_covered(self, button: int) -> bool:
        """Whether a cube is on a button."""
        return any(self.scene.covers(cube, button) for cube in range(len(self.scene.cubes)))

    # ---- Doors that close ----

    def _hold_doors(self) -> None:
        """Agents on the buttons of doors that would close stay there until all others are through."""
        for door, is_open in enumerate(self.scene.is_open):
            if not is_open or self.scene.lasting[door]:
                continue
            holders = [
                agent
                for agent in self._free
                if isinstance(duty := self.old[agent], Stand)
                and duty.button in self.level.buttons_of[door]
                and not self._is_covered(duty.button)
            ]
            closed = [flag and index != door for index, flag in enumerate(self.scene.is_open)]
            others = [agent for agent, place in enumerate(self.places) if place >= 0 and agent not in holders]
            if any(
                self.places[agent] == self.level.num_rooms + door or door in (self._closed_doors(agent, closed) or [])
                for agent in others
            ):
                self.new.update({agent: self.old[agent] for agent in holders})

    def _stays_open(self, door: int) -> bool:
        """Whether a door is open, and not by chance: something that stays is on each of its buttons, or it lasts."""
        stood_on = {duty.button for duty in self.new.values() if isinstance(duty, Stand)}
        return bool(self.scene.is_open[door]) and (
            self.scene.lasting[door]
            or all(button in stood_on or self._is_covered(button) for button in self.level.buttons_of[door])
        )

    # ---- Opening doors ----

    def _open_next_door(self) -> None:
        # Without a goal that all must get to, those that hold a door for the others may stay behind.
        everyone = self.goal is not None and self.goal.for_all
        agents = self._free if not everyone else [agent for agent, place in enumerate(self.places) if place >= 0]
        routes = [self._route(agent) for agent in agents]
        doors = sorted({(-len(route), route[0]) for route in routes if route})
        for _, door in doors[:1]:
            self._open(door, set())

    def _open(self, door: int, tried: set[int]) -> None:
        """Gives duties to open a door; first the doors before its buttons."""
        tried.add(door)
        needed = [
            button
            for button in self.level.buttons_of[door]
            if not self._is_covered(button) and not self._is_on_its_way(button)
        ]
        for button in needed:
            for before in self._doors_before(button, tried):
                if before not in tried:
                    self._open(before, tried)
                    return
        # Agents are enough for doors that stay open; the others close behind the agent that leaves its button.
        hauls = len(needed) - len(self._free) if self.scene.lasting[door] else len(needed)
        self._haul_onto(needed, door, hauls)
        if self._needs_a_cube(door, needed) and self._open_before_cubes(door, tried):
            return
        stood_on = [duty.button for duty in self.new.values() if isinstance(duty, Stand)]
        self._stand_on([button for button in needed if button not in stood_on and not self._is_on_its_way(button)])

    def _needs_a_cube(self, door: int, buttons: Sequence[int]) -> bool:
        """Whether an agent on a button of a door could not get to the goal itself."""
        if self.scene.lasting[door] or self.goal is None or not self.goal.for_all:
            return False
        if all(self._is_on_its_way(button) for button in buttons):
            return False
        return all(
            self.level.closed_doors_between(place, self._goal_places(agent)[0], self.scene.is_open, (door,)) is None
            for agent, place in enumerate(self.places)
            if place >= 0 and self.level.num_rooms + door != place
        )

    def _open_before_cubes(self, door: int, tried: set[int]) -> bool:
        """Opens a door before a cube, if there is one; whether that was so."""
        agents = [place for place in self.places if place >= 0]
        for cube, body in enumerate(self.scene.cubes):
            if body is None or any(self.scene.covers(cube, button) for button in self._needed_for_good(door)):
                continue
            goals = {self.level.place_near(*body.at)}
            ways = [self.level.closed_doors_between(place, goals, self.is_open, tried) for place in agents]
            found = [way for way in ways if way]
            if len(found) == len(agents):
                self._open(min(found, key=len)[0], tried)
                return True
        return False

    def _is_on_its_way(self, button: int) -> bool:
        return any(isinstance(duty, Haul) and duty.button == button for duty in self.new.values())

    def _doors_before(self, button: int, shut: Collection[int]) -> list[int]:
        place = self.level.place_near(*self.level.buttons[button])
        ways = [
            self.level.closed_doors_between(self.places[agent], {place}, self.is_open, shut) for agent in self._free
        ]
        found = [way for way in ways if way is not None]
        return min(found, key=len)[:1] if found else []

    def _stand_on(self, buttons: Sequence[int]) -> None:
        for agent, button in _shared_out(self._free, buttons, self._distance_to):
            duty = self.old[agent]
            goes_on = isinstance(duty, Stand) and duty.button == button and not duty.over
            self.new[agent] = duty if goes_on else Stand(button)
            self._clear_the_way(agent, self.level.buttons[button], 1.2)

    def _distance_to(self, agent: int, button: int) -> float:
        body = self.scene.agents[agent]
        assert body is not None
        place = self.level.place_near(*self.level.buttons[button])
        within = place in self.level.reachable(self.places[agent], self.scene.is_open)
        return math.dist(body.at, self.level.buttons[button]) + (0.0 if within else 1000.0)

    # ---- Cubes ----

    def _haul_onto(self, buttons: Sequence[int], door: int, most: int) -> None:
        """Gives agents cubes to put on buttons, at most some: in one move if that is possible, else in two."""
        options = sorted(
            (self._rough_cost(agent, cube, button), agent, cube, button)
            for agent, cube, button in itertools.product(self._free, self._spare_cubes(door), buttons)
        )
        taken: set[int] = set()
        makers = (
            (self._continued, options),
            (self._one_move, options[:_MOST_MOVES]),
            (self._first_of_two, options[:_MOST_DETOURS]),
            (self._first_of_many, options[:_MOST_LEGS]),
        )
        for make, some in makers:
            for _, agent, cube, button in some:
                if len(taken) < most and agent not in self.new and cube not in taken:
                    duty = None if self._is_on_its_way(button) else make(agent, cube, button)
                    if duty:
                        self.new[agent] = duty
                        taken.add(cube)

    def _rough_cost(self, agent: int, cube: int, button: int) -> float:
        body, moved = self.scene.agents[agent], self.scene.cubes[cube]
        assert body is not None
        assert moved is not None
        return math.dist(body.at, moved.at) + 2 * math.dist(moved.at, self.level.buttons[button])

    def _spare_cubes(self, door: int) -> list[int]:
        """Cubes that are within reach and not on a button that they are needed on."""
        needed = self._needed_for_good(door)
        hauled = {duty.move.cube for duty in self.new.values() if isinstance(duty, Haul)}
        within: set[int] = set()
        for agent in self._free:
            within |= self.level.reachable(self.places[agent], self.scene.is_open)
        return [
            cube
            for cube, body in enumerate(self.scene.cubes)
            if body is not None
            and cube not in hauled
            and self.level.place_near(*body.at) in within
            and not any(self.scene.covers(cube, button) for button in needed)
        ]

    def _needed_for_good(self, door: int) -> list[int]:
        """The buttons of a door and of all doors that would close."""
        return [
            button
            for of, buttons in enumerate(self.level.buttons_of)
            if of == door or not self.scene.lasting[of]
            for button in buttons
        ]

    def _continued(self, agent: int, cube: int, button: int) -> Haul | None:
        duty = self.old[agent]
        if isinstance(duty, Haul) and not duty.over and duty.move.cube == cube and duty.button == button:
            return duty
        return None

    def _one_move(self, agent: int, cube: int, button: int) -> Haul | None:
        body = self.scene.agents[agent]
        assert body is not None
        if (cube, button) in self.immovable:
            return None
        moves = list(moves_onto(self.scene, cube, button, body, self.refused))
        if not moves:
            self.immovable.add((cube, button))  # for every agent: only the cost of a move depends on it
        for move in moves:
            if self.scene.has_path(body.at, move.stand, tolerance=STAND_TOLERANCE) and self._gets_back(body, move):
                return Haul(move, button)
        return None

    def _gets_back(self, agent: Body, move: CubeMove) -> bool:
        """Whether the agent is not shut in by the cube that it has moved."""
        after, end = scene_after(self.scene, move)
        return after.has_path(end, agent.at)

    def _first_of_two(self, agent: int, cube: int, button: int) -> Haul | None:
        body = self.scene.agents[agent]
        assert body is not None
        move = moves_towards(self.scene, cube, button, body, self.refused)
        within = move and self.scene.has_path(body.at, move.stand, tolerance=STAND_TOLERANCE)
        return Haul(move, button) if move and within else None

    def _first_of_many(self, agent: int, cube: int, button: int) -> Haul | None:
        body = self.scene.agents[agent]
        assert body is not None
        move = next_leg(self.scene, cube, button, body, self.refused)
        return move and Haul(move, button)

    # ---- Leaving ----

    def _leave(self) -> None:
        for agent in self._free:
            if self._closed_doors(agent, self.is_open) == []:
                _, point = self._goal_places(agent)
                old = self.old[agent]
                tolerance = _SAME_GOAL if self.goal is None else 0.0
                goes_on = isinstance(old, Go) and not old.over and math.dist(old.goal, point) <= tolerance
                self.new[agent] = old if goes_on else Go(point, onwards=self.goal is None)
                self._clear_the_way(agent, point, 1.0)

    def _gather(self) -> None:
        """Agents that have nothing to do follow to where the others work, and keep out of their way."""
        for agent in self._free:
            doors = self._closed_doors(agent, self.is_open)
            place = self._place_before(doors[0]) if doors else -1
            if place >= 0 and place != self.places[agent]:
                point = self._quiet_point(agent, place)
                body = self.scene.agents[agent]
                if point and body and self.scene.has_path(body.at, point):
                    self.new[agent] = Go(point, onwards=False)
            elif isinstance(self.old[agent], Go):
                self.new[agent] = self.old[agent]

    def _place_before(self, door: int) -> int:
        """Where the first button of a door is."""
        x, y = self.level.buttons[self.level.buttons_of[door][0]]
        return self.level.place_near(x, y)

    def _quiet_point(self, agent: int, place: int) -> Point | None:
        body = self.scene.agents[agent]
        assert body is not None
        if place not in self.level.reachable(self.places[agent], self.scene.is_open):
            return None
        goals = [duty.goal for duty in self.new.values() if isinstance(duty, Go)]
        busy = [
            *((cube.at, _FROM_CUBES) for cube in self.scene.cubes if cube),
            *((point, _FROM_BUTTONS) for point in self.level.buttons),
            *(((box.x, box.y), _FROM_DOORS) for box in self.level.door_rectangles if box),
            *((goal, _FROM_AGENTS) for goal in goals),
        ]
        points = self.level.quiet_points(place, busy)
        if not len(points):
            return None
        x, y = points[((points - body.at) ** 2).sum(axis=1).argmin()].tolist()
        return x, y

    def _clear_the_way(self, agent: int, goal: Point, tolerance: float) -> None:
        """If cubes block the way of an agent, it gets the duty to move one; if it cannot, it waits."""
        body = self.scene.agents[agent]
        assert body is not None
        if self.scene.has_path(body.at, goal, tolerance=tolerance):
            return
        old = self.old[agent]
        self.new[agent] = Wait()
        if any(isinstance(duty, Haul) and duty.button is None for duty in self.new.values()):
            return  # one at a time: what is in the way then may be another cube
        if isinstance(old, Haul) and not old.over and old.button is None:
            self.new[agent] = old
            return
        path = self.scene.find_path(body.at, goal, tolerance=tolerance, through_cubes=True)
        clearing = Clearing(self.scene, body, goal, tolerance, self.refused)
        cubes = clearing.cubes_near(path)
        move = clearing.move_that_clears(cubes) or clearing.any_move(cubes)
        if move:
            self.new[agent] = Haul(move, None)


def _shared_out(
    agents: Sequence[int], buttons: Sequence[int], cost: Callable[[int, int], float]
) -> Iterable[tuple[int, int]]:
    """Pairs of agents and buttons with the least sum of costs, or nearly so where there are many."""
    price = {(agent, button): cost(agent, button) for agent in agents for button in buttons}
    count = min(len(agents), len(buttons))
    if max(len(agents), len(buttons)) <= _EXACT:
        few, many = (agents, buttons) if len(agents) <= len(buttons) else (buttons, agents)
        pairings = (list(zip(few, chosen, strict=True)) for chosen in itertools.permutations(many, count))
        ordered = ([pair if few is agents else pair[::-1] for pair in pairing] for pairing in pairings)
        return min(ordered, key=lambda pairing: sum(price[pair] for pair in pairing))
    found: list[tuple[int, int]] = []
    for pair in sorted(price, key=lambda pair: (price[pair], pair)):
        if all(pair[0] != agent and pair[1] != button for agent, button in found):
            found.append(pair)
    return found
