"""Plots of training runs, of evaluations, and of where agents go; needs matplotlib: pip install "doorstep[plot]".

`plot_runs()` draws learning curves, `plot_positions()` recordings as heat maps; `doorstep plot` is the command.
`plot_evaluation()` draws what `doorstep evaluate --plot` does.
"""

from __future__ import annotations

from doorstep.plots.curves import plot_runs
from doorstep.plots.evaluations import plot_evaluation
from doorstep.plots.heat_maps import plot_positions

__all__ = ["plot_evaluation", "plot_positions", "plot_runs"]
