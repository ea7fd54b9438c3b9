"""Plots of training runs, and of where agents go; needs matplotlib: pip install "doorstep[plot]".

`plot_runs()` draws learning curves, `plot_positions()` recordings as heat maps; `doorstep plot` is the command.
`doorstep.evaluation.plot()` draws evaluations.
"""

from __future__ import annotations

from doorstep.plots.curves import plot_runs
from doorstep.plots.heat_maps import plot_positions

__all__ = ["plot_positions", "plot_runs"]
