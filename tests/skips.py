"""Under DOORSTEP_REQUIRE_ALL, which .ci/run sets, a test that is skipped is a test that failed, but for a few reasons.

So no browser, driver, package or library that went missing takes its tests along in silence.
"""

from __future__ import annotations

import os

import pytest

# How the reasons begin for which a test may be skipped wherever it runs.
ALLOWED = (
    "no GPU: ",
    "this machine has an NVIDIA driver",
    "this machine has NVIDIA's driver",
    "could not import 'warp'",
    "warp is not installed",
    "no wheel of cibuildwheel: ",
)


def refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Makes a skip a failure, if every test has to run and the reason is none of those allowed."""
    if not os.environ.get("DOORSTEP_REQUIRE_ALL") or not report.skipped or not isinstance(report.longrepr, tuple):
        return
    reason = str(report.longrepr[2]).removeprefix("Skipped: ")
    if not reason.startswith(ALLOWED):
        report.outcome = "failed"
        report.longrepr = f"DOORSTEP_REQUIRE_ALL is set, but this is skipped: {reason}"
