"""Under DOORSTEP_REQUIRE_ALL, which .ci/run sets, a skipped test counts as failed, except for a few reasons.

So a missing browser, driver, package or library does not silently disable its tests.
"""

import os

# Beginnings of the reasons for which a test may always be skipped. `make test-frameworks` has an environment with ray.
# .github/workflows/nightly.yml tests a build with all machine code.
ALLOWED = (
    "no GPU: ", "no machine code: ", "this machine has an NVIDIA driver", "this machine has NVIDIA's driver",
    "could not import 'warp'", "warp is not installed", "could not import 'ray.rllib'", "could not import 'ray'",
    "no wheel of cibuildwheel: ", "this interpreter has a GIL", "Python calls __buffer__ from 3.12 on",
)  # fmt: skip


def refuse_skip(report):
    """Turns a skip into a failure, if every test has to run and the reason is not allowed."""
    if not os.environ.get("DOORSTEP_REQUIRE_ALL") or not report.skipped or not isinstance(report.longrepr, tuple):
        return
    reason = str(report.longrepr[2]).removeprefix("Skipped: ")
    if not reason.startswith(ALLOWED):
        report.outcome = "failed"
        report.longrepr = f"DOORSTEP_REQUIRE_ALL is set, but this is skipped: {reason}"
