"""Training with a compiled network."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from tests.pkg.training.runs import small

from doorstep.training import Trainer


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.usefixtures("inductor")
def test_a_compiled_network_trains_as_the_plain_one() -> None:
    plain, compiled = (Trainer(small(f"compile={flag}")) for flag in ("false", "true"))
    for _ in range(2):
        expected, found = plain.update(), compiled.update()
    assert found.losses["value_loss"] == pytest.approx(expected.losses["value_loss"], rel=1e-3)
    assert found.losses["entropy"] == pytest.approx(expected.losses["entropy"], rel=1e-3)
