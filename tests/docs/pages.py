"""The pages of the documentation and their code blocks.

A comment on the line above a block says what is special about it; every other block runs:

    <!-- not run: REASON -->    only its form is checked
    <!-- needs a GPU -->        runs where there is one; its syntax is checked everywhere
    <!-- file: NAME -->         is a file of that name beside the page's other blocks
    <!-- smaller: A -> B; C -> D -->    runs with B in place of A, and D in place of C, which take less time

Commands of doorstep run with smaller numbers anyway, as SMALLER says.
"""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
# README.md comes first, then the pages in the order of their paths.
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")] + sorted(DOCS.rglob("*.md"))
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]

_FENCE = re.compile(r"^(?P<indent> *)```(?P<language>.*)$")
_COMMENT = re.compile(r"^ *<!-- (?P<text>.*) -->$")
_SNIPPET = re.compile(r'^--8<-- "(?P<path>[^"]+)"$', re.MULTILINE)

SMALLER = {
    r"(?<=--worlds )\d{3,}": "16",
    r"(?<=--steps )\d{2,}": "5",
    r"(?<=--skip )\d{2,}": "2",
    r"(?<=--episodes )\d{2,}": "2",
    r"(--resume .*--num-updates )\d+": r"\g<1>2",
    r"(?<=--num-updates )\d+(?!.*--resume)(?<! 2)": "1",
    r"^(\$ doorstep train (?!--print-config)[^#]*?)(\s*(?:#.*)?\n)$": r"\1 num_steps=16\2",
    r"^\$ doorstep render(?!.*--size)": "$ doorstep render --size 96x72",
}


class Block:
    """A fenced code block of a page.

    Attributes:
        line: number of its first line of code.
        language: the word after the fence.
        code: without indentation, included files in their place.
        comment: the text of the comment on the line above, or "".
        reason_not_to_run, file: the reason and the name that the comment gives, or "".
    """

    def __init__(self, line, language, code, comment):
        self.line, self.language, self.code, self.comment = line, language, code, comment
        self.reason_not_to_run, self.file = self._after("not run: "), self._after("file: ")
        self.needs_gpu = comment == "needs a GPU"

    def _after(self, beginning):
        return self.comment.removeprefix(beginning) if self.comment.startswith(beginning) else ""

    @property
    def as_run(self):
        """The code with smaller numbers, if the comment has them."""
        code = self.code
        for change in filter(None, self._after("smaller: ").split("; ")):
            old, _, new = change.partition(" -> ")
            assert old in code, f"line {self.line}: there is no {old!r}"
            code = code.replace(old, new)
        lines = code.splitlines(keepends=True)
        for pattern, smaller in SMALLER.items():
            lines = [re.sub(pattern, smaller, line) if line.startswith("$ doorstep ") else line for line in lines]
        return "".join(lines)


def blocks_of(page):
    """The code blocks of a page, in order."""
    lines, index = page.read_text("utf-8").splitlines(), 0
    while index < len(lines):
        opening = _FENCE.match(lines[index])
        index += 1
        if opening is None:
            continue
        first = index
        end = next(number for number in range(first, len(lines)) if lines[number].strip() == "```")
        above = _COMMENT.match(lines[first - 2]) if first >= 2 else None
        code = "\n".join(line.removeprefix(opening["indent"]) for line in lines[first:end]) + "\n"
        included = _SNIPPET.sub(lambda match: (ROOT / match["path"]).read_text("utf-8"), code)
        yield Block(first + 1, opening["language"], included, above["text"] if above else "")
        index = end + 1
