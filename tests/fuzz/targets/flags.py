"""The command line: options of all commands, and changes of configurations, KEY=VALUE. Words are separated by 0."""

from __future__ import annotations

import contextlib
import io
import random
from collections.abc import Sequence

from tests.fuzz.mutations import EDGES, FLOATS, TEXTS, change_bytes
from tests.pkg.configs.drawn_configs import CLASSES, draw_config

from doorstep._configs.changes import apply_changes, split_changes, to_changes
from doorstep.cli import _COMMANDS, _parser

CHANGE = "change"  # in place of a command, followed by the name of a class


class Flags:
    def __init__(self) -> None:
        self._parser = _parser()
        self._configs = {cls.__name__: draw_config(cls, random.Random(cls.__name__)) for cls in CLASSES}
        self._words = [word for example in self._examples() for word in example[1:]]

    def _examples(self) -> list[list[str]]:
        return [example.split()[1:] for command in _COMMANDS.values() for example in command.EXAMPLES]

    def inputs(self) -> Sequence[bytes]:
        changes = [
            [CHANGE, name, *(f"{key}={text}" for key, text in to_changes(config).items())]
            for name, config in self._configs.items()
        ]
        return [_joined(words) for words in self._examples() + changes]

    def change(self, data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
        words = data.decode(errors="surrogateescape").split("\0")
        for _ in range(chance.choice((1, 1, 2, 4))):
            at = chance.randrange(len(words))
            key, equals, _ = words[at].partition("=")
            how = chance.random()
            if how < 0.45:
                words[at] = (key + "=" if equals else "") + _value(chance)
            elif how < 0.6:
                words[at] = chance.choice(self._words)
            elif how < 0.7 and len(words) > 1:
                del words[at]
            elif how < 0.8:
                words.insert(at, words[chance.randrange(len(words))])
            else:
                changed = change_bytes(words[at].encode(errors="surrogateescape"), chance)
                words[at] = changed.decode(errors="surrogateescape").replace("\0", "")
        return _joined(words)

    def run(self, data: bytes) -> str:
        words = data.decode(errors="surrogateescape").split("\0")
        if words[0] != CHANGE or len(words) < 2 or words[1] not in self._configs:
            return self._parse(words)
        config = self._configs[words[1]]
        changed = apply_changes(config, split_changes(words[2:]))
        assert type(config).from_json(changed.to_json()) == changed
        return "changed"

    def _parse(self, words: list[str]) -> str:
        with contextlib.redirect_stderr(io.StringIO()) as said, contextlib.redirect_stdout(io.StringIO()):
            code = None
            try:
                arguments = self._parser.parse_args(words)
            except SystemExit as end:
                code = end.code
        if code is None:
            return f"parsed {arguments.command}"
        assert code == 0 or (code == 2 and len(said.getvalue().splitlines()) == 1), (code, said.getvalue())
        return f"ends with {code}"

    def close(self) -> None:
        pass


def _joined(words: Sequence[str]) -> bytes:
    return "\0".join(words).encode(errors="surrogateescape")


def _value(chance: random.Random) -> str:
    number = str(chance.choice((*EDGES, *FLOATS, chance.randrange(-9, 99))))
    return chance.choice((number, number, chance.choice(TEXTS).replace("\0", "").replace("\ud800", ""), f"[{number}]"))
