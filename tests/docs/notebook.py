"""Runs the code cells of a notebook in the current folder, as a reader would who runs them all.

It is run in a fork of a server: tests/forks.py. Its argument is the notebook. A cell with the tag "install" is not run:
doorstep is installed. For every other cell it prints, as JSON, what the cell printed and how its last value displays.
"""

import ast
import base64
import contextlib
import io
import json
import sys
from pathlib import Path


def cells_of(path):
    """The code cells that run, with their code as `text`."""
    cells = json.loads(path.read_text("utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code" and "install" not in cell["metadata"].get("tags", ())]
    return [{**cell, "text": "".join(cell["source"])} for cell in code]


def main():
    namespace = {"__name__": "__main__"}
    shown = [{"id": cell["id"], **run_cell(cell["text"], namespace)} for cell in cells_of(Path(sys.argv[1]))]
    print(json.dumps(shown))


def run_cell(text, namespace):
    """What a cell prints, and its last value as notebooks display it: nothing after a semicolon."""
    tree, printed = ast.parse(text), io.StringIO()
    last = tree.body.pop().value if isinstance(tree.body[-1], ast.Expr) else ast.Constant(None, lineno=1, col_offset=0)
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), namespace)
        value = eval(compile(ast.Expression(last), "<cell>", "eval"), namespace)
    is_hidden = value is None or text.rstrip().endswith(";")
    return {"printed": printed.getvalue(), **({} if is_hidden else display_of(value))}


def display_of(value):
    if hasattr(value, "_repr_png_"):
        return {"png": base64.b64encode(value._repr_png_()).decode()}
    return {"html": value._repr_html_()} if hasattr(value, "_repr_html_") else {"text": repr(value)}
