"""State fields: strided, writable views into the worlds."""

import numpy as np
from tests.refuses import refuses

import doorstep
from doorstep.health import Health

# Name, shape after N for two agents (7 bodies, None where the level format decides), dtype, writable.
FIELDS = [
    *((f"body_{name}", (7, size), "float32", True) for name, size in (("positions", 3), ("rotations", 4))),
    *((f"body_{name}_velocities", (7, 3), "float32", True) for name in ("linear", "angular")),
    ("body_sizes", (7, 3), "float32", False),
    ("body_kinds", (7,), "int32", False),
    *((f"static_{name}", (None, 3), "float32", True) for name in ("positions", "sizes")),
    ("static_kinds", (None,), "int32", True),
    ("button_positions", (None, 3), "float32", True),
    *((f"button_{name}", (None,), "int32", True) for name in ("pressed", "doors")),
    *((f"door_{name}", (3,), "int32", True) for name in ("open", "static", "persistent")),
    ("agent_grabs", (2,), "int32", True),
    ("physics", (5,), "float32", False),
    ("agent_max_y", (2,), "float32", True),
    ("episode_index", (), "uint32", False),
]


def test_fields_are_those_of_the_contract_with_their_shape_dtype_and_access():
    with doorstep.Simulator(8) as sim:
        assert repr(sim.state) == f"StateFields({', '.join(name for name, *_ in FIELDS)})"
        for name, shape, dtype, writable in FIELDS:
            tensor = getattr(sim.state, name)
            assert (tensor.name, tensor.dtype, tensor.readonly) == (name, np.dtype(dtype), not writable)
            assert len(tensor.shape) == 1 + len(shape)
            assert all(want in (None, got) for want, got in zip((8, *shape), tensor.shape, strict=True))
            array = tensor.to_numpy()
            assert (array.flags.writeable, array.strides) == (writable, tensor.strides)
            assert getattr(sim.state, name) is tensor
        kinds = sim.state.body_kinds.to_numpy()  # agents first, then cubes
        assert (kinds[:, :2] == doorstep.EntityKind.AGENT).all()
        assert np.isin(kinds[:, 2:], (doorstep.EntityKind.NONE, doorstep.EntityKind.CUBE)).all()


def test_every_writable_field_reads_what_was_written_in_every_world_and_no_other():
    with doorstep.Simulator(67) as sim:  # more than a block of worlds
        for name, _, _, writable in FIELDS:
            tensor = getattr(sim.state, name)
            if not writable:
                refuses("only the simulator writes", tensor.copy_from_host, tensor.copy_to_host())
                continue
            others = {other: getattr(sim.state, other).copy_to_host() for other, *_ in FIELDS if other != name}
            values = np.random.default_rng(1).integers(0, 2, tensor.shape).astype(tensor.dtype)
            tensor.copy_from_host(values)
            assert (tensor.to_numpy() == values).all()
            assert (tensor.copy_to_host() == values).all()
            tensor.to_numpy()[66] = 1 - values[66]
            assert (tensor.copy_to_host()[66] == 1 - values[66]).all()
            for other, before in others.items():
                assert np.array_equal(getattr(sim.state, other).copy_to_host(), before, equal_nan=True), (name, other)


def test_strict_raises_after_trouble_and_steps_nothing():
    """Wherever it is written: in the first tile of worlds as in the last."""
    for field in ("body_positions", "agent_max_y", "static_positions", "static_sizes", "button_positions"):
        for world, num_worlds in ((1, 2), (3, 70), (150, 200)):
            with doorstep.Simulator(num_worlds, strict=True) as sim:
                getattr(sim.state, field).to_numpy()[world, 0] = np.nan
                sim.step()
                before, body = sim.state.body_positions.to_numpy().copy(), ", body 0" * (field == "body_positions")
                refuses(f"not finite: world {world}{body}", sim.step, error=doorstep.SimulationError)
                assert (sim.step_count, sim.health.nonfinite_values >= 1) == (1, True)
                assert np.array_equal(sim.state.body_positions, before, equal_nan=True)
                assert sim.health.culprit_world == world


def test_health_of_untroubled_worlds_is_all_zero():
    with doorstep.Simulator(2) as sim:
        sim.step()
        assert sim.health == Health(0, 0, 0, 0, None, None, None)
        refuses(None, setattr, sim.health, "clamped_actions", 1, error=AttributeError)
