"""The notebook of the tutorial runs as it is, and shows what it promises."""

import ast
import base64
import json
import os
import re

import pytest
from tests.docs.notebook import cells_of
from tests.docs.pages import DOCS, ROOT
from tests.forks import server
from tests.render.pixels import read_png

NOTEBOOK = DOCS / "tutorial" / "first_agent.ipynb"


def test_its_form_is_that_of_notebooks_without_outputs_and_only_its_first_code_cell_installs():
    notebook = json.loads(NOTEBOOK.read_text("utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    cells = notebook["cells"]
    assert len({cell["id"] for cell in cells}) == len(cells)
    for cell in cells:
        code = {"execution_count", "outputs"} if cell["cell_type"] == "code" else set()
        assert set(cell) == {"cell_type", "id", "metadata", "source"} | code
        assert not cell.get("outputs")
        assert all(line.endswith("\n") for line in cell["source"][:-1])
    first, *others = [cell for cell in cells if cell["cell_type"] == "code"]
    extra = re.fullmatch(r'%pip install --quiet "doorstep\[(\w+)\]"', "".join(first["source"]))
    assert f"\n{extra[1]} = [" in (ROOT / "pyproject.toml").read_text("utf-8")
    assert [cell["id"] for cell in cells_of(NOTEBOOK)] == [cell["id"] for cell in others]
    for cell in cells_of(NOTEBOOK):
        ast.parse(cell["text"])


@pytest.mark.slow
def test_it_runs_as_it_is_and_shows_a_picture_and_two_replays(tmp_path):
    pytest.importorskip("torch")
    code, environment = "from tests.docs.notebook import main; main()", {**os.environ, "PYTHONPATH": str(ROOT)}
    done = server("torch").run(code, str(NOTEBOOK), folder=tmp_path, environment=environment, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    shown = {cell["id"]: cell for cell in json.loads(done.stdout.splitlines()[-1])}
    assert read_png(base64.b64decode(shown["picture"]["png"])).shape == (480, 640, 3)
    assert "returns: -" in shown["random"]["printed"]
    steps = [int(words.replace(",", "")) for words in re.findall(r"([\d,]+) steps:", shown["training"]["printed"])]
    assert steps == sorted(steps) != []
    for name in ("replay", "replay_trained"):
        assert shown[name]["html"].startswith("<iframe")
    assert {path.name for path in (tmp_path / "rooms").iterdir()} >= {"config.json", "log.jsonl"}
