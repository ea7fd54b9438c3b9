"""Who does what in one world: one distribution of duties to its agents."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import final

from doorstep.planner.cube_moves import CubeMove, moves_aside, moves_onto, moves_towards, name_of
from doorstep.planner.duties import Duty, Go, Haul, Stand, Wait
from doorstep.planner.geometry import Bounds, Point
from doorstep.planner.scene import Body, Scene

_BESIDE = 4.0  # metres from a path to the centre of a cube
_SAME_GOAL = 6.0  # metres that a goal may move before the way there is looked for again
_STAND_TOLERANCE = 1.2  # metres from where a cube is to be grabbed, at which the way to it may end
_ASKEW = 0.2  # radians that a cube may be turned by where it gets to; it then takes more room
_MOST_MOVES = 16  # ways in one move that are looked for, of agents and cubes onto buttons
_MOST_DETOURS = 3  # ways in two moves
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
        self, scene: Scene, old: Sequence[Duty], refused: set[tuple[object, ...]], goal: Bounds | None
    ) -> None:
        self.scene, self.level = scene, scene.level
        self.old, self.refused, self.goal = old, refused, goal
        self.new: dict[int, Duty] = {}
        self.immovable: set[tuple[int, int]] = set()
        self.places = [-1 if body is None else self.level.place_near(body.x, body.y) for body in scene.agents]
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
            point = self.goal.nearest(*body.at)
            return {level.place_near(*point)}, point
        return level.highest_from(self.places[agent], body.x)

    def _closed_doors(self, agent: int, is_open: Sequence[int]) -> list[int] | None:
        places, _ = self._goal_places(agent)
        return self.level.closed_doors_between(self.places[agent], places, is_open)

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
            if any(door in (self._closed_doors(agent, closed) or []) for agent in others):
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
        routes = {agent: self._closed_doors(agent, self.is_open) or [] for agent in self._free}
        doors = sorted({(-len(route), route[0]) for route in routes.values() if route})
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
            for before in self._doors_before(button):
                if before not in tried:
                    self._open(before, tried)
                    return
        # Agents are enough for doors that stay open; the others close behind the agent that leaves its button.
        hauls = len(needed) - len(self._free) if self.scene.lasting[door] else len(needed)
        self._haul_onto(needed, door, hauls)
        self._stand_on([button for button in needed if not self._is_on_its_way(button)])

    def _is_on_its_way(self, button: int) -> bool:
        return any(isinstance(duty, Haul) and duty.button == button for duty in self.new.values())

    def _doors_before(self, button: int) -> list[int]:
        place = self.level.place_near(*self.level.buttons[button])
        ways = [self.level.closed_doors_between(self.places[agent], {place}, self.is_open) for agent in self._free]
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
        needed = [
            button
            for of, buttons in enumerate(self.level.buttons_of)
            if of == door or not self.scene.lasting[of]
            for button in buttons
        ]
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
            if self.scene.has_path(body.at, move.stand, tolerance=_STAND_TOLERANCE) and self._gets_back(body, move):
                return Haul(move, button)
        return None

    def _gets_back(self, agent: Body, move: CubeMove) -> bool:
        """Whether the agent is not shut in by the cube that it has moved."""
        after, end = self._after(move)
        return after.has_path(end, agent.at)

    def _after(self, move: CubeMove) -> tuple[Scene, Point]:
        """The scene after a move of a cube, and where its agent is then."""
        body = self.scene.cubes[move.cube]
        assert body is not None
        end = move.stand[0] + move.target[0] - body.x, move.stand[1] + move.target[1] - body.y
        return self.scene.with_cube(move.cube, move.target, _ASKEW), end

    def _first_of_two(self, agent: int, cube: int, button: int) -> Haul | None:
        body = self.scene.agents[agent]
        assert body is not None
        move = moves_towards(self.scene, cube, button, body, self.refused)
        within = move and self.scene.has_path(body.at, move.stand, tolerance=_STAND_TOLERANCE)
        return Haul(move, button) if move and within else None

    # ---- Leaving ----

    def _leave(self) -> None:
        for agent in self._free:
            if self._closed_doors(agent, self.is_open) == []:
                _, point = self._goal_places(agent)
                old = self.old[agent]
                goes_on = isinstance(old, Go) and not old.over and math.dist(old.goal, point) < _SAME_GOAL
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
        cubes = self._cubes_near(path)
        blocking = self._blocking(body, cubes, goal, tolerance)
        others = cubes if len(blocking) == 1 else []  # moving one of these may make room as well
        move = self._move_aside(dict.fromkeys([*blocking, *others]), blocking, body, goal, tolerance)
        if move:
            self.new[agent] = Haul(move, None)
        else:
            self._shuffle(agent, body, cubes)

    def _blocking(self, agent: Body, cubes: Sequence[int], goal: Point, tolerance: float) -> tuple[int, ...]:
        """The smallest set of cubes without which there is a way; all of them if two are not enough."""
        for count in (1, 2):
            for some in itertools.combinations(cubes, count):
                if self.scene.has_path(agent.at, goal, without=some, tolerance=tolerance):
                    return some
        return tuple(cubes)

    def _shuffle(self, agent: int, body: Body, cubes: Sequence[int]) -> None:
        """Moves any cube where no single move clears the way; no move twice."""
        for cube in cubes:
            for move in moves_aside(self.scene, cube, body, self.refused):
                if self.scene.has_path(body.at, move.stand, tolerance=_STAND_TOLERANCE):
                    self.refused.add(name_of(move))
                    self.new[agent] = Haul(move, None)
                    return

    def _cubes_near(self, path: Sequence[Point]) -> list[int]:
        """The cubes that a path leads through, then those beside it."""
        on_it = self.scene.cubes_on(path)
        beside = [
            (min(math.dist(body.at, point) for point in path), cube)
            for cube, body in enumerate(self.scene.cubes)
            if body and path and cube not in on_it
        ]
        return [*on_it, *(cube for distance, cube in sorted(beside) if distance < _BESIDE)]

    def _move_aside(
        self, cubes: Iterable[int], blocking: Sequence[int], agent: Body, goal: Point, tolerance: float
    ) -> CubeMove | None:
        """A move of one of the cubes after which only the rest of those that block the way are in it."""
        for cube in cubes:
            rest = tuple(other for other in blocking if other != cube) if cube in blocking else ()
            for move in moves_aside(self.scene, cube, agent, self.refused):
                if self.scene.has_path(agent.at, move.stand, tolerance=_STAND_TOLERANCE):
                    after, end = self._after(move)
                    if after.has_path(end, goal, without=rest, tolerance=tolerance):
                        return move
        return None


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
