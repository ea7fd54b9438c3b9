"""What tests of recordings share."""

import pytest


@pytest.fixture
def path(tmp_path):
    """Of a recording that a test writes."""
    return tmp_path / "run.rec"
