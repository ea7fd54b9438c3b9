"""The examples of doorstep.torch are true."""

import doctest
import importlib
from pathlib import Path

import pytest

pytest.importorskip("torch")

PAGE = Path(__file__).resolve().parents[3] / "docs" / "torch.md"


@pytest.mark.parametrize("name", ["doorstep.torch.training", "doorstep.torch.worlds"])
def test_examples_in_docstrings_are_true(name: str) -> None:
    failed, attempted = doctest.testmod(importlib.import_module(name))
    assert attempted > 0
    assert failed == 0


def test_examples_of_the_page_are_true() -> None:
    failed, attempted = doctest.testfile(str(PAGE), module_relative=False)
    assert attempted > 0
    assert failed == 0
