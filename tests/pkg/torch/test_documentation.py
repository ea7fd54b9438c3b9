"""The examples of doorstep.torch are true."""

import doctest
import importlib

import pytest

pytest.importorskip("torch")


@pytest.mark.parametrize("name", ["advantages", "batch", "multi_discrete"])
def test_examples_in_docstrings_are_true(name: str) -> None:
    failed, attempted = doctest.testmod(importlib.import_module(f"doorstep.torch.{name}"))
    assert attempted > 0
    assert failed == 0
