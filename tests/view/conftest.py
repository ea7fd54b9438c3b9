"""A viewer, and a browser that shows its page. Test modules that need viser skip themselves without it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.view.running import OpenViewer, Running, Watch, Watched


@pytest.fixture
def open_viewer() -> OpenViewer:
    """Opens a viewer; the arguments are those of Settings."""
    from tests.view.running import Running

    from doorstep.viewer.server import Settings, opened

    @contextmanager
    def open_one(**settings: Any) -> Iterator[Running]:
        with opened(Settings(port=0, **settings)) as (viewer, server), Running(viewer, server) as running:
            yield running

    return open_one


@pytest.fixture
def watch(open_viewer: OpenViewer, browser: Any) -> Watch:
    """Opens a viewer, and the browser's page on it; the arguments are those of Settings."""
    from tests.view.running import PATIENCE, Watched

    @contextmanager
    def watch_one(**settings: Any) -> Iterator[Watched]:
        with open_viewer(**settings) as running:
            page = browser.new_page(viewport={"width": 700, "height": 900})
            page.set_default_timeout(1000 * PATIENCE)
            try:
                page.goto(running.url)
                yield Watched(running, page)
            finally:
                page.close()

    return watch_one
