"""Checkpoints of training, which are read as checkpoints and as policies. Needs PyTorch."""

from __future__ import annotations

from collections.abc import Sequence

from tests.fuzz.targets.policies import Policies

import doorstep
from doorstep.training import Trainer, TrainingConfig, load_checkpoint, save_checkpoint
from doorstep.training.checkpoint import METADATA_KEY

SMALL = (
    *("levels=curated", "curriculum.type=learnability", "experience.retries=0.5"),
    *("simulator.num_worlds=2", "simulator.num_threads=1", "simulator.episode_length=20", "num_threads=1"),
    *("experience.num_steps=4", "experience.inference=torch", "network.widths=[2,2]", "network.type=mlp"),
    *("ppo.num_minibatches=1", "ppo.chunk_length=4"),
)


class Checkpoints(Policies):
    metadata_key = METADATA_KEY

    def __init__(self) -> None:
        super().__init__()
        self._trainer = Trainer(TrainingConfig(num_updates=4).changed(*SMALL))
        self._trainer.update()
        self._beginning = self._trainer.checkpoint()

    def inputs(self) -> Sequence[bytes]:
        save_checkpoint(self.path, self._beginning)
        return [self.path.read_bytes()]

    def run(self, data: bytes) -> str:
        self.path.write_bytes(data)
        checkpoint = load_checkpoint(self.path)
        save_checkpoint(self.path, checkpoint)
        try:
            self._trainer.restore(checkpoint)
        except doorstep.StateError:
            return f"read, does not fit; {self._played(data)}"
        self._trainer.update()
        self._trainer.restore(self._beginning)
        return f"restored; {self._played(data)}"

    def _played(self, data: bytes) -> str:
        try:
            return super().run(data)
        except doorstep.StateError:
            return "no policy"
