"""`doorstep evaluate`: compares policies on the same episodes."""

from __future__ import annotations

import argparse
import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from doorstep._arguments import count, shown
from doorstep._files import write_text
from doorstep.cli.argument_types import (
    COUNT,
    FILE,
    LEVELS,
    POLICIES,
    add_sampling_arguments,
    add_threads_argument,
    add_world_arguments,
    check_output,
    reward_of,
    sampling_of,
)
from doorstep.cli.terminal import Progress
from doorstep.errors import ArgumentError
from doorstep.policy.loading import imports_code

if TYPE_CHECKING:
    from doorstep.evaluation import Evaluation
    from doorstep.evaluation.config import EvaluationConfig
    from doorstep.evaluation.run import OnProgress
    from doorstep.metrics import MetricsStore

_TRACE_EVENTS = 200_000  # that the queue and the engine's replica keep: about 50,000 steps

# Short options, and the fields of EvaluationConfig that they are.
_SHORT = {
    **{name: name for name in ("levels", "episodes", "seed")},
    "worlds": "simulator.num_worlds",
    "agents": "simulator.num_agents",
    "episode_length": "simulator.episode_length",
    "device": "simulator.device",
    "threads": "simulator.num_threads",
}

SUMMARY = "Compare policies: let each play the same episodes, and count how well they do."

EXAMPLES = (
    "doorstep evaluate --policy trained --policy scripted --episodes 20",
    "doorstep evaluate --policy rooms --levels curated --json figures.json devices=cpu,cpu",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    add = parser.add_argument
    add(
        "changes",
        nargs="*",
        metavar="KEY=VALUE",
        help="change a field of the evaluation or its engine, such as simulator.strict=true, devices=cpu,cpu or "
        "scheduler.type=fair_share; the fields are those of an EvaluationConfig",
    )
    said = "a .json, .yaml or .yml file with the fields of an EvaluationConfig; options count more"
    add("--config", **FILE, help=said)
    said = "let the policies of the file of --config import modules and files of Python, which runs their code"
    add("--allow-code", action="store_true", help=said)
    said = f"{POLICIES}; give the option several times to compare policies (random)"
    add("--policy", action="append", dest="policies", metavar="POLICY", help=said)
    add_sampling_arguments(parser)
    add("--levels", metavar="LEVELS", help=f"what is played: {LEVELS} (reference)")
    add("--episodes", **COUNT, help="episodes that each policy plays in each level (100)")
    add("--episode-length", **COUNT, help="steps of an episode, in levels without a length of their own (200)")
    add_world_arguments(parser, 256, "worlds that are stepped at once; the figures do not depend on it")
    add_threads_argument(parser)
    parser.set_defaults(**dict.fromkeys(_SHORT))  # what is not given is the file's, or else EvaluationConfig's
    add("--json", **FILE, help="also write all figures, and what they depend on, as JSON")
    add("--plot", **FILE, help="also draw them: a .png, .svg or .pdf file; needs the extra doorstep[plot]")
    add("--metrics", **FILE, help="also write what the engine measured: a .prom file for Prometheus, or a .json file")
    add("--trace", **FILE, help="also write what the engine did last, for https://ui.perfetto.dev: a .json file")


def run(arguments: argparse.Namespace) -> int:
    """Plays, prints the table and writes the files."""
    from doorstep.evaluation.run import evaluate_config
    from doorstep.metrics import MetricsStore

    _check_files(arguments)
    config = _config_of(arguments)
    metrics = MetricsStore(trace=_TRACE_EVENTS if arguments.trace is not None else 0)
    with contextlib.ExitStack() as stack:
        evaluation = evaluate_config(config, _showing(stack), metrics)
    _report(evaluation)
    _report_engine(metrics)
    _write_files(arguments, evaluation, metrics)
    return 0


def _config_of(arguments: argparse.Namespace) -> EvaluationConfig:
    """The file's fields, with those that options and changes say.

    Raises:
        ArgumentError: a field is unknown, its value is refused, or the file names code that was not allowed.
        OSError: the file cannot be read.
    """
    from doorstep._configs.changes import apply_changes, split_changes
    from doorstep.evaluation.config import EvaluationConfig

    config = EvaluationConfig() if arguments.config is None else EvaluationConfig.load(arguments.config)
    changes = split_changes(arguments.changes)
    if arguments.policies is None and "policies" not in changes and not arguments.allow_code:
        _refuse_code(arguments.config, config.policies)
    given = {path: getattr(arguments, name) for name, path in _SHORT.items()} | {"policies": arguments.policies}
    given = {path: value for path, value in given.items() if value is not None}
    if arguments.reward is not None:
        given["reward"] = reward_of(arguments)
    config = apply_changes(config, {**given, **changes})
    sampling = sampling_of(arguments)
    return config if sampling is None else config.replace(sampling=sampling)


def _refuse_code(path: Path, policies: tuple[str, ...]) -> None:
    """A file may come from elsewhere; what is typed as --policy is the user's own."""
    for number, policy in enumerate(policies):
        if imports_code(policy):
            raise ArgumentError(
                f"{path}: policies[{number}] is {shown(policy)}, which runs code of Python that the file names",
                argument="policies",
                hint="read that code, then add --allow-code; or give --policy",
            )


def _check_files(arguments: argparse.Namespace) -> None:
    """Refuses files that cannot be written, and plots without matplotlib, before the work."""
    from doorstep.plots.figures import ENDINGS, load_matplotlib

    if arguments.json is not None:
        check_output(arguments.json, option="json")
    if arguments.plot is not None:
        check_output(arguments.plot, ENDINGS, option="plot")
        load_matplotlib()
    if arguments.metrics is not None:
        check_output(arguments.metrics, (".prom", ".json"), option="metrics")
    if arguments.trace is not None:
        check_output(arguments.trace, (".json",), option="trace")
    given: dict[Path, str] = {}
    for option in ("json", "plot", "metrics", "trace"):
        path = getattr(arguments, option)
        if path in given:
            raise ArgumentError(f"--{given[path]} and --{option} are both {path}; give two files.", argument=option)
        if path is not None:
            given[path] = option


def _showing(stack: contextlib.ExitStack) -> OnProgress:
    """Makes the display when the number of episodes is known."""
    progress: Progress | None = None

    def show(done: int, total: int, what: str) -> None:
        nonlocal progress
        if progress is None:
            progress = stack.enter_context(Progress(total, sys.stderr, "episode"))
        progress.update(done, what)

    return show


def _report(evaluation: Evaluation) -> None:
    rules = evaluation.rules
    played = f"{count(rules.episodes, 'episode')} of each policy in each level"
    print(f"doorstep {rules.doorstep}: {played}, {count(rules.num_agents, 'agent')}, seed {rules.seed}\n")
    print(evaluation)


def _report_engine(metrics: MetricsStore) -> None:
    """How the engine played; nothing if there was nothing for it to play."""
    if not any(series.name == "step_seconds" and series.count for series in metrics):
        return
    steps = metrics.total("episode_steps").count
    seconds = sum(metrics.total(name).sum for name in ("begin_seconds", "policy_seconds", "step_seconds"))
    occupancy = steps / metrics.total("world_steps").count
    median, late = metrics.total("queue_wait_seconds").quantiles([0.5, 0.99])
    print(
        f"\nengine: {steps:,} steps of episodes, {steps / seconds:,.0f} per second; worlds busy {occupancy:.1%};"
        f" requests waited {median:.2g} s (median), {late:.2g} s (99%)"
    )


def _write_files(arguments: argparse.Namespace, evaluation: Evaluation, metrics: MetricsStore) -> None:
    from doorstep.plots import plot_evaluation

    if arguments.json is not None:
        write_text(arguments.json, evaluation.to_json())
    if arguments.plot is not None:
        plot_evaluation(evaluation, arguments.plot)
    if arguments.metrics is not None:
        text = metrics.to_json() if arguments.metrics.suffix == ".json" else metrics.to_prometheus()
        write_text(arguments.metrics, text)
    if arguments.trace is not None:
        metrics.write_trace(arguments.trace)
