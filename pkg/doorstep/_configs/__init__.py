"""Configurations: frozen dataclasses that check their fields, and are read from and written to dictionaries, JSON, YAML
and options of the command line.

A field's annotation says everything about it: its type, a rule where the type alone does not say what is allowed, and a
sentence:

    @dataclass(frozen=True)
    class TrainingConfig(Config):
        learning_rate: Annotated[float, Number(above=0, high=1), "Of the optimiser."] = 3e-4
        scheduler: Annotated[SchedulerConfig, "How replicas take requests."] = field(default_factory=PriorityScheduler)

`Checked` is the base of parts of configurations and documents, which share the rules. A `Document` is stored by itself.
`NativeConfig` is for those that have a native twin, `PolymorphicConfig` for those whose class a type tag chooses.
"""

from doorstep._configs.checked import Checked, Part
from doorstep._configs.config import Config
from doorstep._configs.document import Document
from doorstep._configs.native import NativeConfig
from doorstep._configs.polymorphic import PolymorphicConfig, Registry, registered
from doorstep._configs.rules import Anything, Choice, Device, Integer, Items, Number, Range, Rule, Text

__all__ = [
    "Anything",
    "Checked",
    "Choice",
    "Config",
    "Device",
    "Document",
    "Integer",
    "Items",
    "NativeConfig",
    "Number",
    "Part",
    "PolymorphicConfig",
    "Range",
    "Registry",
    "Rule",
    "Text",
    "registered",
]
