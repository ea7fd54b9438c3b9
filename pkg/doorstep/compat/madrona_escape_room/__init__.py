"""The interface of the module `madrona_escape_room`, served by doorstep.

`python -m doorstep.compat.madrona_escape_room SCRIPT ARGS...` runs a script that imports `madrona_escape_room`; in
your own code, `from doorstep.compat import madrona_escape_room` does the same.

Tensors are simulator memory, read and written in place. Actions are not checked: values out of range are applied as
they are. A world whose `reset_tensor` is nonzero is regenerated at the end of the next `step()`, which does not raise
its done flag. With `auto_reset`, worlds are regenerated in the step that ends their episode. Without it,
`steps_remaining` stays at 0 and done at 1 until a reset.
"""

from __future__ import annotations

import doorstep
from doorstep._arguments import showing
from doorstep.compat.madrona_escape_room import madrona
from doorstep.compat.madrona_escape_room.madrona import ExecMode, Tensor

__all__ = ["SimManager", "madrona"]


class SimManager:
    """A batch of escape rooms with two agents each.

    Args:
        exec_mode: `madrona.ExecMode.CPU` or `madrona.ExecMode.CUDA`.
        gpu_id: number of the GPU; not used on the CPU.
        num_worlds: number of worlds, at least 1.
        rand_seed: seed of the levels, 0 to 2**32 - 1.
        auto_reset: whether worlds are regenerated when their episode ends.
        enable_batch_renderer: draw every agent's view, 64 x 64 pixels: `rgb_tensor()` and `depth_tensor()`.

    Raises:
        doorstep.ArgumentError: an argument is out of range.
        doorstep.DeviceError: exec_mode is CUDA, which cannot be used here.
        doorstep.RendererError: enable_batch_renderer is set, and the renderer cannot be used here.
    """

    __repr__ = showing("_simulator")

    def __init__(
        self,
        exec_mode: ExecMode,
        gpu_id: int,
        num_worlds: int,
        rand_seed: int,
        auto_reset: bool,
        enable_batch_renderer: bool = False,
    ) -> None:
        self._simulator = doorstep.Simulator(
            num_worlds,
            seed=rand_seed,
            device="cpu" if madrona.check_exec_mode(exec_mode) is ExecMode.CPU else f"cuda:{gpu_id}",
            auto_reset=bool(auto_reset),
            action_check="off",
            observations="by_name",
            cameras=doorstep.Cameras() if enable_batch_renderer else None,
        )

    def step(self) -> None:
        """Steps every world once; returns when that is done, on a GPU too."""
        self._simulator.step()
        self._simulator.wait()

    def reset_tensor(self) -> Tensor:
        """int32 [N, 1], writable: nonzero regenerates the world at the end of the next step."""
        return Tensor(self._simulator.resets)

    def action_tensor(self) -> Tensor:
        """int32 [N, 2, 4], writable: move amount 0-3, move angle 0-7, turn 0-4, grab 0-1."""
        return Tensor(self._simulator.actions)

    def reward_tensor(self) -> Tensor:
        """float32 [N, 2, 1]."""
        return Tensor(self._simulator.rewards)

    def done_tensor(self) -> Tensor:
        """int32 [N, 2, 1]: 1 where the episode ended in this step."""
        return Tensor(self._simulator.dones)

    def self_observation_tensor(self) -> Tensor:
        """float32 [N, 2, 8]: room x, room y, x, y, z, largest y, yaw, grabbing."""
        return Tensor(self._simulator.self_observations)

    def partner_observations_tensor(self) -> Tensor:
        """float32 [N, 2, 1, 3]: distance, bearing, grabbing."""
        return Tensor(self._simulator.partner_observations)

    def room_entity_observations_tensor(self) -> Tensor:
        """float32 [N, 2, 6, 3]: distance, bearing, kind."""
        return Tensor(self._simulator.room_entity_observations)

    def door_observation_tensor(self) -> Tensor:
        """float32 [N, 2, 3]: distance, bearing, open."""
        return Tensor(self._simulator.door_observations)

    def lidar_tensor(self) -> Tensor:
        """float32 [N, 2, 30, 2]: distance, kind."""
        return Tensor(self._simulator.lidar)

    def steps_remaining_tensor(self) -> Tensor:
        """int32 [N, 2, 1]."""
        return Tensor(self._simulator.steps_remaining)

    def rgb_tensor(self) -> Tensor:
        """uint8 [N, 2, 64, 64, 4]: red, green, blue, 255. ArgumentError without enable_batch_renderer."""
        self._check_batch_renderer("rgb_tensor()")
        return Tensor(self._simulator.rgb)

    def depth_tensor(self) -> Tensor:
        """float32 [N, 2, 64, 64, 1]: metres along the view's axis, 0 for the sky. ArgumentError as above."""
        self._check_batch_renderer("depth_tensor()")
        return Tensor(self._simulator.depth)

    def _check_batch_renderer(self, what: str) -> None:
        if self._simulator.cameras is None:
            raise doorstep.ArgumentError(
                f"{what} needs the batch renderer, which is off.",
                argument="enable_batch_renderer",
                hint="Make the SimManager with enable_batch_renderer=True.",
            )
