"""Configurations as JSON and YAML. An input begins with a line that names the class and the form."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from tests.fuzz.mutations import change_bytes, change_json
from tests.pkg.configs.drawn_configs import CLASSES, draw_config

import doorstep
from doorstep._configs.changes import apply_changes, to_changes

FORMS = ("json", "yaml")
MOST_WORLDS, MOST_LEVELS = 64, 64  # of a simulator that is made


class Configs:
    def __init__(self) -> None:
        self._classes = {cls.__name__: cls for cls in CLASSES}

    def inputs(self) -> Sequence[bytes]:
        found = [f"SimulatorConfig {form}\n".encode() + text for form, text in zip(FORMS, _SMALL, strict=True)]
        for name, cls in self._classes.items():
            config = draw_config(cls, random.Random(name))
            found += [f"{name} json\n{config.to_json()}".encode(), f"{name} yaml\n{config.to_yaml()}".encode()]
        return found

    def change(self, data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
        head, _, text = data.partition(b"\n")
        texts = [other.partition(b"\n")[2] for other in others]
        if chance.random() < 0.05:
            head = chance.choice(others).partition(b"\n")[0]
        # JSON is YAML, too: changed documents reach both readers
        changed = change_json(text, chance, texts) if text[:1] == b"{" else change_bytes(text, chance, texts)
        if head.endswith(b"json") and chance.random() < 0.3:
            head = head.replace(b"json", b"yaml")
        return head + b"\n" + changed

    def run(self, data: bytes) -> str:
        head, _, text = data.partition(b"\n")
        name, _, form = head.decode().partition(" ")
        cls: Any = self._classes[name]
        config = cls.from_json(text) if form == "json" else cls.from_yaml(text)
        assert cls.from_json(config.to_json()) == config
        assert cls.from_yaml(config.to_yaml()) == config
        assert apply_changes(config, to_changes(config)) == config
        if not isinstance(config, doorstep.SimulatorConfig) or not _is_small(config):
            return f"{name} read"
        with doorstep.Simulator.from_config(config) as sim:
            sim.step()
        return "stepped"

    def close(self) -> None:
        pass


_SMALL = (
    doorstep.SimulatorConfig(num_worlds=2, num_threads=1).to_json().encode(),
    doorstep.SimulatorConfig(num_worlds=1, num_agents=3, num_threads=1).to_yaml().encode(),
)


def _is_small(config: doorstep.SimulatorConfig) -> bool:
    has_few = config.num_worlds <= MOST_WORLDS and config.max_levels <= MOST_LEVELS
    return has_few and config.device == "cpu" and config.cameras is None
