"""The pages of the documentation and their code blocks.

A comment on the line above a block says what is special about it; every other block runs:

    <!-- not run: REASON -->    only its form is checked
    <!-- needs a GPU -->        runs where there is one; its syntax is checked everywhere
    <!-- file: NAME -->         is a file of that name beside the page's other blocks
    <!-- smaller: A -> B; C -> D -->    runs with B in place of A, and D in place of C, which take less time
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
# README.md comes first, then the pages in the order of their paths.
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")] + sorted(DOCS.rglob("*.md"))
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]

_FENCE = re.compile(r"^(?P<indent> *)```(?P<language>.*)$")
_COMMENT = re.compile(r"^ *<!-- (?P<text>.*) -->$")
_SNIPPET = re.compile(r'^--8<-- "(?P<path>[^"]+)"$', re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced code block of a page.

    Attributes:
        line: number of its first line of code.
        language: the word after the fence.
        code: without indentation, included files in their place.
        comment: the text of the comment on the line above, or "".
    """

    line: int
    language: str
    code: str
    comment: str

    @property
    def reason_not_to_run(self) -> str:
        """The reason that the comment gives, or ""."""
        return self.comment.removeprefix("not run: ") if self.comment.startswith("not run: ") else ""

    @property
    def needs_gpu(self) -> bool:
        return self.comment == "needs a GPU"

    @property
    def file(self) -> str:
        """The name that the block is saved under, or ""."""
        return self.comment.removeprefix("file: ") if self.comment.startswith("file: ") else ""

    @property
    def as_run(self) -> str:
        """The code with smaller numbers, if the comment has them."""
        code = self.code
        if self.comment.startswith("smaller: "):
            for change in self.comment.removeprefix("smaller: ").split("; "):
                old, _, new = change.partition(" -> ")
                assert old in code, f"line {self.line}: there is no {old!r}"
                code = code.replace(old, new)
        return code


def blocks_of(page: Path) -> Iterator[Block]:
    """The code blocks of a page, in order."""
    lines = page.read_text("utf-8").splitlines()
    index = 0
    while index < len(lines):
        opening = _FENCE.match(lines[index])
        index += 1
        if opening is None:
            continue
        first, end = index, index
        while lines[end].strip() != "```":
            end += 1
        above = _COMMENT.match(lines[first - 2]) if first >= 2 else None
        code = "\n".join(line.removeprefix(opening["indent"]) for line in lines[first:end]) + "\n"
        included = _SNIPPET.sub(lambda match: (ROOT / match["path"]).read_text("utf-8"), code)
        yield Block(first + 1, opening["language"], included, above["text"] if above else "")
        index = end + 1
