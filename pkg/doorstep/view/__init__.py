"""A live view of worlds in a browser: `doorstep view`.

The page is served by [viser](https://viser.studio), which the extra `view` installs; only this package imports it.
`serve` is the command. It runs a `Viewer`, which owns the simulator; what people do in the page reaches it as requests.
"""

from __future__ import annotations
