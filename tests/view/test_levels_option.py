"""The viewer steps levels under the built-in policies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from doorstep.levels import curated

pytest.importorskip("viser")

from tests.view.running import until

if TYPE_CHECKING:
    from tests.view.running import OpenViewer


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["random", "scripted"])
def test_worlds_draw_from_the_levels(open_viewer: OpenViewer, policy: str) -> None:
    table = tuple(curated().values())
    with open_viewer(levels=table, worlds=30, policy=policy, keep_running=True) as running:
        assert running.ask(lambda viewer: viewer._sim.levels) == table
        assert running.ask(lambda viewer: len(set(viewer._sim.level_indices.to_numpy().ravel().tolist()))) > 5
        until(lambda: running.ask(lambda viewer: viewer._sim.step_count) > 2)
        assert running.error() == ""
