"""The examples in the docstrings are true."""

import doctest
import importlib

import pytest

MODULES = [
    "doorstep.action_dump",
    "doorstep.cameras",
    "doorstep.event",
    "doorstep.interop",
    "doorstep.notebook",
    "doorstep.policies",
    "doorstep.render.camera",
    "doorstep.render.png",
    "doorstep.replay",
    "doorstep.simulator",
    "doorstep.state",
    "doorstep.tensor",
    "doorstep.video",
    "doorstep._native.c_api",
    "doorstep._native.process",
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_are_true(name: str) -> None:
    if name == "doorstep.video":
        pytest.importorskip("av")
    failed, attempted = doctest.testmod(importlib.import_module(name))
    assert attempted > 0
    assert failed == 0
