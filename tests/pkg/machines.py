"""How long state machines of hypothesis run: briefly for every change, at length every night; always the same."""

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

_LENIENT = {"deadline": None, "derandomize": True, "database": None, "print_blob": True}
_LENIENT["suppress_health_check"] = list(HealthCheck)
LENGTHS = [
    pytest.param(settings(max_examples=8, stateful_step_count=20, **_LENIENT), id="brief"),
    pytest.param(settings(max_examples=200, stateful_step_count=50, **_LENIENT), id="long", marks=pytest.mark.nightly),
]


def run_machine(machine, length):
    run_state_machine_as_test(machine, settings=length)
