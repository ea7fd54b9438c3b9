"""Cubes that are pushed (alone and in rows), held and kicked on an empty floor: doorstep's and the reference's figures.

Run from the root of the project: python -m tests.physics.ensembles
Prints every line of tests/data/contact_ensembles.csv, cube_rows.csv and cube_rest.csv as ours / reference / ratio.
"""

import csv
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tests.reference import constants as c
from tests.reference.boxes import rotation_matrices, yaw_of
from tests.scenes import BACK, FORWARD, RIGHT, STRAIGHT, Scene

DATA = Path(__file__).resolve().parents[1] / "data"
WORLDS = 256
TOUCHING = c.AGENT_SIDE / 2 + c.CUBE_SIDE / 2
ERRORS = {"cube_forward_m": "cube_forward_se", "agent_forward_m": "agent_forward_se"}
COLUMNS = ("cube_forward_m", "agent_forward_m", "cube_abs_yaw_rad", "cube_tilt_deg", "agent_z_m", "agent_turn_rad")

# The reference detects a contact only if the bounds of both bodies at the start of a step are closer than this, metres:
# a faster agent enters the cube in that step, and is moved out of it in the next.
REFERENCE_REACH = 0.32


@dataclass(frozen=True)
class Case:
    """What the agent does to the cube ahead of it, as described in the first line of the table."""

    name: str
    amount: int
    angle: int
    turn: int
    grabs: bool
    lasts: int  # steps
    off_centre: float
    gaps: tuple[float, float]

    @property
    def goes_around(self):
        """The agent moves sideways and turns with the cube that it holds: 'forward' is along x, its first direction."""
        return self.angle == RIGHT


def case_of(name):
    verb, value = re.search(r"(push|pull|sideways|turn) (\d)", name).groups()  # type: ignore[union-attr]
    grabs = name.startswith("grab")
    return Case(
        name,
        amount=0 if verb == "turn" else int(value),
        angle={"pull": BACK, "sideways": RIGHT}.get(verb, FORWARD),
        turn=int(value) if verb == "turn" else STRAIGHT,
        grabs=grabs,
        lasts=1 if name.startswith("one step") else 10**9,
        off_centre=0.8 if "off centre" in name else 0.0,
        gaps=(0.05, 0.9) if grabs else (0.0, 1.0) if re.search(r"0\.\.1( m)?$", name) else (0.0, 0.1),
    )


def read_table(name):
    return list(csv.DictReader(line for line in (DATA / name).read_text().splitlines() if not line.startswith("#")))


def contact_rows():
    """The reference's figures by case and step."""
    rows = {}
    for row in read_table("contact_ensembles.csv"):
        figures = {name: float(row[name]) for name in (*COLUMNS, *ERRORS.values())}
        rows.setdefault(row["case"], {})[int(row["step"])] = figures
    return rows


def play_case(case, steps, seed=1, late_contacts=False):
    """Means over starts drawn as in the reference's measurement, after each of `steps`.

    With `late_contacts` an agent passes into a resting cube wherever the reference does not detect the contact.
    """
    generator = np.random.default_rng(seed)
    scene = Scene(WORLDS, episode_length=10**6).open_floor()
    yaw = generator.uniform(-0.1, 0.1, WORLDS)
    scene.place(0, case.off_centre + generator.uniform(-0.2, 0.2, WORLDS), 0.0, yaw=yaw)
    cube = scene.place_cube(0, 0.0, TOUCHING + generator.uniform(*case.gaps, WORLDS))
    start = scene.body_positions.copy()
    across = 0 if case.goes_around else 1
    turned, figures = np.zeros(WORLDS), {}
    for step in range(1, max(steps) + 1):
        if case.grabs and step == 1:
            scene.act(0, FORWARD, STRAIGHT, 1, agents=0)
        elif step <= case.lasts:
            scene.act(case.amount, case.angle, case.turn, 0, agents=0)
        else:
            scene.act()
        before = yaw_of(scene.body_rotations[:, 0])
        step_past(scene, cube, undetected(scene, cube) if late_contacts else np.zeros(WORLDS, dtype=bool))
        turned += np.angle(np.exp(1j * (yaw_of(scene.body_rotations[:, 0]) - before)))
        if step not in steps:
            continue
        assert (scene.agent_grabs[:, 0] == (cube if case.grabs else -1)).all()
        moved = scene.body_positions.astype(np.float64) - start
        axes = rotation_matrices(scene.body_rotations[:, cube])
        values = (
            moved[:, cube, across],
            scene.body_positions[:, 0, across] if case.goes_around else moved[:, 0, across],
            np.abs(np.arctan2(axes[:, 1, 0], axes[:, 0, 0])),
            np.degrees(np.arccos(np.clip(axes[:, 2, 2], -1, 1))),
            scene.body_positions[:, 0, 2],
            turned,
        )
        figures[step] = {name: float(np.mean(value)) for name, value in zip(COLUMNS, values, strict=True)}
    return figures


def undetected(scene, cube):
    """Worlds whose cube rests too far from the agent for the reference to notice a contact in the next step."""
    yaws = yaw_of(scene.body_rotations[:, [0, cube]])
    reach = (np.abs(np.cos(yaws)) + np.abs(np.sin(yaws))) @ (c.AGENT_SIDE / 2, c.CUBE_SIDE / 2)
    apart = np.abs(scene.body_positions[:, 0, :2] - scene.body_positions[:, cube, :2]).max(axis=1) - reach
    return np.asarray((scene.body_linear_velocities[:, cube] == 0).all(axis=1) & (apart > REFERENCE_REACH))


def step_past(scene, cube, worlds):
    """Steps; in these worlds the cube is out of the way for that time."""
    place = scene.body_positions[worlds, cube].copy()
    scene.body_positions[worlds, cube, 2] += 1000.0
    scene.step()
    scene.body_positions[worlds, cube] = place
    scene.body_linear_velocities[worlds, cube] = 0
    scene.body_angular_velocities[worlds, cube] = 0


@dataclass(frozen=True)
class Row:
    """Cubes in a row that an agent pushes from its end, as described in the comments of cube_rows.csv."""

    start: str  # "touching": exactly 3 m apart; "near": with gaps of 5 to 25 cm, and not quite aligned
    cubes: int
    amount: int


def row_table():
    """The reference's figures by row and step: how far the cubes have moved, from the agent's one on, metres."""
    rows = {}
    for line in read_table("cube_rows.csv"):
        moved = [float(line[name]) for name in ("moved_1", "moved_2", "moved_3") if line[name]]
        row = Row(line["start"], int(line["cubes"]), int(line["amount"]))
        rows.setdefault(row, {})[int(line["steps"])] = moved
    return rows


def push_row(row, steps, seed=1):
    """As row_table(), for doorstep; of all cubes."""
    generator = np.random.default_rng(seed)
    scene = Scene(WORLDS, episode_length=10**6).open_floor()
    near = row.start == "near"
    aside, turned, first = (0.2, 0.05, 12.7) if near else (0.5, 0.1, 13.0)
    yaw = generator.uniform(-turned, turned, WORLDS)
    scene.place(0, generator.uniform(-aside, aside, WORLDS), 10.0 if near else 10.3, yaw=yaw)
    for cube in range(row.cubes):
        x, gap = (generator.uniform((-0.1, 0.0), 0.1, (WORLDS, 2)) * near).T
        scene.place_cube(cube, x, first + cube * (c.CUBE_SIDE + 0.15 * near) + gap)
    start = scene.body_positions[:, scene.cubes, 1].copy()
    scene.act(row.amount, FORWARD, STRAIGHT, 0, agents=0)
    figures = {}
    for step in range(1, max(steps) + 1):
        scene.step()
        moved = (scene.body_positions[:, scene.cubes, 1] - start)[:, : row.cubes]
        figures[step] = moved.mean(axis=0).astype(float).tolist()
    return {step: figures[step] for step in steps}


TIME_STEP = 0.04
MOVING = 1e-3  # metres in a step


def kick_cubes(kick, steps, worlds=512, seed=2):
    """Cubes alone on the floor, with random yaw, velocity and spin about z; nobody acts. What cube_rest.csv has."""
    generator = np.random.default_rng(seed)
    scene = Scene(worlds, episode_length=10**6).open_floor()
    scene.place(0, 0.0, -400.0)
    cube = scene.place_cube(0, 0.0, 0.0, yaw=generator.uniform(-np.pi, np.pi, worlds))
    speed, direction = generator.uniform(0, kick, worlds), generator.uniform(-np.pi, np.pi, worlds)
    scene.body_linear_velocities[:, cube, 0] = speed * np.cos(direction)
    scene.body_linear_velocities[:, cube, 1] = speed * np.sin(direction)
    scene.body_angular_velocities[:, cube, 2] = generator.uniform(-kick / 4, kick / 4, worlds)
    found = {}
    for step in range(1, max(steps) + 1):
        before = scene.body_positions[:, cube, :2].copy()
        scene.step()
        moved = np.linalg.norm(scene.body_positions[:, cube, :2] - before, axis=-1)
        moving = moved > MOVING
        distance = np.linalg.norm(scene.body_positions[:, cube, :2], axis=-1)
        speed = float(moved[moving].mean() / TIME_STEP) if moving.any() else 0.0
        found[step] = {"still_moving": float(moving.mean()), "speed_of_those_m_s": speed}
        found[step] |= {"mean_distance_m": float(distance.mean()), "p95_distance_m": float(np.percentile(distance, 95))}
    return {step: found[step] for step in steps}


def compared(ours, reference):
    return f"{ours:8.3f} {reference:8.3f} {ours / reference if reference else np.nan:5.2f}"


def main():
    print("ours, reference, ratio")
    for name, rows in contact_rows().items():
        case = case_of(name)
        late, figures = case.gaps[1] == 1.0, play_case(case, list(rows))
        as_reference = play_case(case, list(rows), late_contacts=True) if late else figures
        print(f"\n{name}\n step" + "".join(f"  {column:>22}" for column in COLUMNS))
        for step, reference in rows.items():
            print(f"{step:5d}" + "".join(f"  {compared(figures[step][k], reference[k])}" for k in COLUMNS))
            if late and step <= 10:
                print(" late" + "".join(f"  {compared(as_reference[step][k], reference[k])}" for k in COLUMNS))
    for cubes, moved in row_table().items():
        print(f"\n{cubes.cubes} cubes, {cubes.start}, pushed with {cubes.amount}\n step  moved, metres")
        ours = push_row(cubes, list(moved))
        for step, expected in moved.items():
            print(f"{step:5d}" + "".join(f"  {compared(*pair)}" for pair in zip(ours[step], expected, strict=False)))
    for kick in (0.5, 2.0):
        kicks = [row for row in read_table("cube_rest.csv") if float(row["kick_up_to_m_s"]) == kick]
        figures_at = kick_cubes(kick, [int(row["step"]) for row in kicks])
        print(f"\nkicked with up to {kick} m/s\n step  still moving  speed  mean distance  95%")
        for row in kicks:
            rest = figures_at[int(row["step"])].items()
            print(f"{row['step']:>5}" + "".join(f"  {compared(value, float(row[name]))}" for name, value in rest))


if __name__ == "__main__":
    main()
