"""The scripted policy: agents solve levels without training, by planning on the simulator's state.

How it is built, from the ground up:

- `geometry`: rectangles on the floor; `paths`: ways on a grid.
- `level`: walls, doors and buttons on a grid, and which places doors connect; made once per level.
- `scene`: a world at one moment, and the ways that are free at that moment.
- `goal`: where agents are to go; `cube_paths`: long ways of cubes; `cube_moves`: their parts, in straight lines;
  `clearing`: which cube has to make room.
- `actions`: one step towards a place, with or without a cube; `duties`: what one agent does, step by step; `plan`: who
  does what; `crew`: when that is decided anew.
- `reader`, `policy`: a crew for every world, over copies of the state.

Nothing in it knows the three rooms of the reference's levels, or any other level: it looks for the closed doors on the
way to the goal, for their buttons, and for cubes that can be put there or that are in the way.
"""

from doorstep.planner.policy import ScriptedPolicy as ScriptedPolicy

__all__ = ["ScriptedPolicy"]
