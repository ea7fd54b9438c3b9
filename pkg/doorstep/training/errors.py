"""Errors of training that no argument has caused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from doorstep.errors import DoorstepError

if TYPE_CHECKING:
    import torch


class TrainingError(DoorstepError, RuntimeError):
    """Training cannot go on."""


class NonFiniteLossError(TrainingError, ArithmeticError):
    """A loss or a gradient is infinite or NaN.

    Attributes:
        loss, gradient_norm: of the minibatch.
        batch: the minibatch, tensors by name.
    """

    def __init__(self, loss: float, gradient_norm: float, batch: dict[str, torch.Tensor]) -> None:
        super().__init__(
            f"the loss is {loss} and the norm of its gradient {gradient_norm}",
            hint="lower ppo.learning_rate, or resume from the last checkpoint with another precision",
        )
        self.loss = loss
        self.gradient_norm = gradient_norm
        self.batch = batch


class LostRankError(TrainingError):
    """Another process of the run has ended, or cannot be reached."""
