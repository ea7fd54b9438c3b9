"""A live view of worlds in a browser: `doorstep view`.

It serves one page with [viser](https://viser.studio), which the extra `view` brings; only this package
imports it. `serve` is the command; `Viewer` is what it runs: it owns the simulator, and everything that people do in
the page comes to it as a request.
"""

from __future__ import annotations
