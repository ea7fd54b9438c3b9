"""How long state machines of hypothesis run: briefly for every change, at length in the slow tier; always the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

_LENIENT: dict[str, Any] = {
    "deadline": None,
    "derandomize": True,
    "database": None,
    "suppress_health_check": list(HealthCheck),
    "print_blob": True,
}
LENGTHS = [
    pytest.param(settings(max_examples=8, stateful_step_count=20, **_LENIENT), id="brief"),
    pytest.param(settings(max_examples=200, stateful_step_count=50, **_LENIENT), id="long", marks=pytest.mark.slow),
]


def run_machine(machine: type[RuleBasedStateMachine], length: Any) -> None:
    run_state_machine_as_test(machine, settings=length)
