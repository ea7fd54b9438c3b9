"""State fields: strided, writable views into the worlds."""

from typing import Any

import numpy as np
import pytest

import doorstep
from doorstep.health import Health

# Name, shape after N for two agents (7 bodies, None where the level format decides), dtype, writable.
FIELDS: list[tuple[str, tuple[int | None, ...], str, bool]] = [
    ("body_positions", (7, 3), "float32", True),
    ("body_rotations", (7, 4), "float32", True),
    ("body_linear_velocities", (7, 3), "float32", True),
    ("body_angular_velocities", (7, 3), "float32", True),
    ("body_sizes", (7, 3), "float32", False),
    ("body_kinds", (7,), "int32", False),
    ("static_positions", (None, 3), "float32", True),
    ("static_sizes", (None, 3), "float32", True),
    ("static_kinds", (None,), "int32", True),
    ("button_positions", (None, 3), "float32", True),
    ("button_pressed", (None,), "int32", True),
    ("button_doors", (None,), "int32", True),
    ("door_open", (3,), "int32", True),
    ("door_static", (3,), "int32", True),
    ("door_persistent", (3,), "int32", True),
    ("agent_grabs", (2,), "int32", True),
    ("physics", (5,), "float32", False),
    ("agent_max_y", (2,), "float32", True),
    ("episode_index", (), "uint32", False),
]


@pytest.mark.parametrize(("name", "shape", "dtype", "writable"), FIELDS)
def test_field_has_its_shape_dtype_and_access(
    name: str, shape: tuple[int | None, ...], dtype: str, writable: bool
) -> None:
    with doorstep.Simulator(3) as sim:
        tensor = getattr(sim.state, name)
        assert tensor.name == name
        assert len(tensor.shape) == 1 + len(shape)
        assert all(want in (None, got) for want, got in zip((3, *shape), tensor.shape, strict=True))
        assert tensor.dtype == np.dtype(dtype)
        assert tensor.readonly is not writable
        array = tensor.to_numpy()
        assert array.flags.writeable is writable
        assert array.strides == tensor.strides
        assert getattr(sim.state, name) is tensor


def test_fields_are_those_of_the_contract() -> None:
    with doorstep.Simulator(1) as sim:
        assert repr(sim.state) == f"StateFields({', '.join(name for name, *_ in FIELDS)})"


def test_bodies_are_agents_first_then_cubes() -> None:
    with doorstep.Simulator(8) as sim:
        kinds = sim.state.body_kinds.to_numpy()
        assert (kinds[:, :2] == doorstep.EntityKind.AGENT).all()
        assert np.isin(kinds[:, 2:], (doorstep.EntityKind.NONE, doorstep.EntityKind.CUBE)).all()


def test_an_edit_reaches_the_observations_on_refresh() -> None:
    with doorstep.Simulator(2) as sim:
        sim.state.body_positions.to_numpy()[1, 0] = (2.0, 6.0, 0.0)
        before = sim.self_observations.to_numpy().copy()
        sim.refresh()
        after = sim.self_observations.to_numpy()
        np.testing.assert_allclose(after[1, 0, 2:4], (2.0 / 40, 6.0 / 40), rtol=1e-6)
        assert (after[0] == before[0]).all()


def test_an_edit_reaches_the_next_step() -> None:
    with doorstep.Simulator(2) as sim:
        sim.state.body_positions.to_numpy()[0, 0, :2] = (0.0, 6.0)
        sim.step()
        np.testing.assert_allclose(sim.state.body_positions.to_numpy()[0, 0, :2], (0.0, 6.0), atol=0.1)


@pytest.mark.parametrize(("field", "value"), [("agent_grabs", 10_000), ("door_static", -5), ("button_doors", 2**30)])
def test_impossible_indices_are_set_back_and_counted(field: str, value: int) -> None:
    with doorstep.Simulator(2) as sim:
        array: Any = getattr(sim.state, field).to_numpy()
        array[1, 0] = value
        sim.step()
        assert sim.health.repaired_indices >= 1
        assert array[1, 0] != value


def test_strict_raises_after_trouble_and_steps_nothing() -> None:
    with doorstep.Simulator(2, strict=True) as sim:
        sim.state.body_positions.to_numpy()[1, 0, 0] = np.nan
        sim.step()
        before = sim.state.body_positions.to_numpy().copy()
        with pytest.raises(doorstep.SimulationError, match="world 1, body 0"):
            sim.step()
        assert sim.step_count == 1
        assert np.array_equal(sim.state.body_positions, before, equal_nan=True)
        health = sim.health
        assert health.nonfinite_values >= 1
        assert (health.culprit_world, health.culprit_body) == (1, 0)


def test_health_of_untroubled_worlds_is_all_zero() -> None:
    with doorstep.Simulator(2) as sim:
        sim.step()
        assert sim.health == Health(0, 0, 0, 0, None, None, None)
        with pytest.raises(AttributeError):
            sim.health.clamped_actions = 1  # type: ignore[misc]
