"""A viewer, and a browser that shows its page. Test modules that need viser skip themselves without it."""

from contextlib import contextmanager

import pytest

import doorstep


@pytest.fixture
def open_viewer():
    """Opens a viewer; the arguments are those of Settings."""
    from tests.view.running import Running

    from doorstep.viewer.server import Settings, opened

    @contextmanager
    def open_one(**settings):
        with opened(Settings(port=0, **settings)) as (viewer, server), Running(viewer, server) as running:
            yield running

    return open_one


@pytest.fixture
def watch(open_viewer, browser):
    """Opens a viewer, and the browser's page on it; the arguments are those of Settings."""
    from tests.view.running import PATIENCE, Watched

    @contextmanager
    def watch_one(**settings):
        with open_viewer(**settings) as running, browser.new_page(viewport={"width": 700, "height": 900}) as page:
            page.set_default_timeout(1000 * PATIENCE)
            page.goto(running.url)
            yield Watched(running, page)

    return watch_one


@pytest.fixture
def sim():
    with doorstep.Simulator(4, seed=5) as one:
        yield one
