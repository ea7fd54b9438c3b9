"""What tests of recordings share."""

from pathlib import Path

import pytest


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Of a recording that a test writes."""
    return tmp_path / "run.rec"
