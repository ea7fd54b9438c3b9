"""Writes episodes that engines have played as a dataset of Minari, the format of offline reinforcement learning."""

from __future__ import annotations

import collections
import io
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doorstep._action_forms import ACTION_FORMS, NUM_ACTIONS, ActionForm
from doorstep._arguments import check_choice, check_text, refuse
from doorstep._files import write_text
from doorstep._native import ACTIONS
from doorstep._observations import OBSERVATIONS, flat_size, or_default
from doorstep._optional import import_optional
from doorstep.config import SimulatorConfig
from doorstep.errors import StateError
from doorstep.rollouts.config import RolloutConfig
from doorstep.rollouts.results import EpisodeResult

_NAMES = ("author", "author_email")  # of these Minari keeps sets
_ABOUT = (*_NAMES, "code_permalink", "algorithm_name", "description")


def write_minari(
    dataset_id: str, results: Iterable[EpisodeResult], *, actions: ActionForm = "multi_discrete", **about: str
) -> Any:
    """Writes episodes as a dataset of [Minari](https://minari.farama.org), in its folder of datasets.

    Minari's episodes have one agent, so an episode of A agents becomes A, one after the other. Each has the seed of the
    request, `options` with "agent" and the request's "tag", `observations` float32 [T + 1, F], `actions`, `rewards`
    float32 [T], and `terminations` and `truncations` bool [T]: the goal terminates, time truncates.

    Of one agent in the reference's levels, with the observations and rewards of an engine that is given itself, or the
    default ones, a dataset has an `env_spec`: `dataset.recover_environment()` makes the environment.

    >>> import doorstep, os, tempfile
    >>> from doorstep.rollouts import write_minari
    >>> os.environ["MINARI_DATASETS_PATH"] = tempfile.mkdtemp()
    >>> requests = [doorstep.EpisodeRequest(seed=seed, max_steps=20, record="observations") for seed in range(8)]
    >>> with doorstep.RolloutEngine(doorstep.SimulatorConfig(8)) as engine:
    ...     ids = engine.submit(requests)
    ...     dataset = write_minari("doorstep/random-v0", engine, actions="discrete")
    >>> dataset.total_episodes, dataset.total_steps, dataset.action_space
    (16, 320, Discrete(320))

    Args:
        dataset_id: "namespace/name-v0", as Minari wants it; there must be no such dataset yet.
        results: episodes that record "observations", all of as many numbers; an engine gives what it has not answered
            yet. Those that were not played to their end, or have no observations, are left out with a UserWarning.
        actions: "multi_discrete": int32 [T, 4], as in `doorstep.ACTIONS`. "discrete": one number, int64 [T], that of
            `numpy.ravel_multi_index(action, doorstep.ACTIONS)`, which most libraries of offline learning want: d3rlpy's
            `MDPDataset` takes four integers for one action of eight, without a word. "tuple": four, int64 [T] each.
        about: what the dataset says about itself: author, author_email, code_permalink, algorithm_name, description.

    Returns:
        The `minari.MinariDataset`.

    Raises:
        ArgumentError: `dataset_id` is no name of a dataset, or that of one that exists; `actions` or a name in `about`
            is another one: no result was taken. Or no result can be written, one is no result, or they have different
            numbers of observations. Nothing was written.
        LibraryError: Minari is missing: pip install "doorstep[minari]".
        OSError: the dataset cannot be written; nothing of it is left.
    """
    minari, gymnasium, *_ = (
        import_optional(name, "datasets need Minari", "minari") for name in ("minari", "gymnasium", "h5py", "PIL")
    )
    check_choice("actions", actions, ACTION_FORMS)
    for name, text in about.items():
        check_text(check_choice("about", name, _ABOUT), text)
    folder, namespaces = _destination(minari, dataset_id)
    with tempfile.TemporaryDirectory(prefix=".doorstep-", dir=minari.storage.get_dataset_path()) as beside:
        episodes = _writable(results)
        new = Path(beside, "dataset")
        new.mkdir()
        storage = minari.dataset.minari_storage.MinariStorage.new(
            new / "data",
            observation_space=gymnasium.spaces.Box(-np.inf, np.inf, (_num_inputs(episodes[0]),), np.float32),
            action_space=_action_space(gymnasium.spaces, actions),
            env_spec=_env_spec(gymnasium, results, episodes, actions),
        )
        sets = {name: {about.pop(name)} for name in _NAMES if name in about}
        storage.update_metadata({"dataset_id": dataset_id, "minari_version": minari.__version__, **about, **sets})
        # In memory: HDF5 ends the process when it cannot write a file.
        path, storage._file_path = storage._file_path, io.BytesIO()
        storage.update_episodes(
            minari.data_collector.EpisodeBuffer(**fields) for result in episodes for fields in _buffers(result, actions)
        )
        path.write_bytes(storage._file_path.getbuffer())
        storage.update_metadata({"dataset_size": storage.get_size()})
        for namespace in namespaces:
            namespace.mkdir(exist_ok=True)
            if not (file := namespace / minari.namespace.NAMESPACE_METADATA_FILENAME).exists():
                write_text(file, "{}")
        new.rename(folder)
    return minari.load_dataset(dataset_id)


def _destination(minari: Any, dataset_id: object) -> tuple[Path, list[Path]]:
    """The folder of a new dataset, and those of its namespaces, outermost first."""
    requirement = "'name-v0' or 'namespace/name-v0', of letters, digits, - and _, at least two in a namespace"
    try:
        namespace, *_ = minari.dataset.minari_dataset.parse_dataset_id(dataset_id)
    except (TypeError, ValueError):
        refuse("dataset_id", requirement, dataset_id)
    folder, *outer = map(
        minari.storage.get_dataset_path, (dataset_id, *minari.namespace.namespace_hierarchy(namespace))
    )
    if folder.exists():
        refuse("dataset_id", "new, but this dataset already exists", dataset_id, "choose another version")
    return folder, outer


def _writable(results: Iterable[EpisodeResult]) -> list[EpisodeResult]:
    """Takes all results, and warns of those that are left out."""
    episodes: list[EpisodeResult] = []
    left_out: collections.Counter[str] = collections.Counter()
    for result in _each(results):
        if not isinstance(result, EpisodeResult):
            refuse("results", "doorstep.EpisodeResult objects, or an engine", result)
        if not result.finished or result.observations is None:
            left_out["without observations" if result.finished else f"{result.reason} {result.error}".rstrip()] += 1
        elif episodes and _num_inputs(result) != _num_inputs(episodes[0]):
            refuse("results", "episodes with equal numbers of observations", result, "write a dataset for each")
        else:
            episodes.append(result)
    kinds = ", ".join(f"{number} {kind}" for kind, number in left_out.items())
    if not episodes:
        hint = 'request episodes with record="observations"'
        refuse("results", "episodes that were played to their end and have observations", kinds or results, hint)
    if left_out:
        warnings.warn(f"results that a dataset cannot have are left out: {kinds}", UserWarning, stacklevel=3)
    return episodes


def _each(results: Any) -> Iterator[Any]:
    """All results. An episode that failed ends the loop over an engine, which goes on in another one."""
    goes_on = isinstance(results, Iterable)
    while goes_on:
        goes_on = False
        try:
            yield from results
        except StateError as error:
            if not hasattr(error, "result"):
                raise
            yield error.result
            goes_on = hasattr(results, "submit")


def _num_inputs(result: Any) -> int:
    return int(result.observations.shape[2])


def _action_space(spaces: Any, actions: ActionForm) -> Any:
    if actions == "discrete":
        return spaces.Discrete(NUM_ACTIONS)
    if actions == "tuple":
        return spaces.Tuple([spaces.Discrete(size) for size in ACTIONS])
    return spaces.MultiDiscrete(ACTIONS, dtype=np.int32)


def _env_spec(gymnasium: Any, results: object, episodes: list[EpisodeResult], actions: ActionForm) -> Any:
    """What makes the environment of gymnasium in which one agent would have played so; None: it is not known."""
    num_agents = len(episodes[0].returns)
    config = getattr(results, "config", None)
    if not isinstance(config, RolloutConfig):
        config = RolloutConfig(SimulatorConfig(1, num_agents=num_agents))
    rules, requests = config.simulator, [result.request for result in episodes]
    parts = or_default(rules.observations)
    if num_agents != 1 or config.reward is not None or flat_size(parts, 1) != _num_inputs(episodes[0]):
        return None
    if any(request.level is not None or request.state is not None for request in requests):
        return None
    longest = max(request.max_steps or rules.episode_length for request in requests)
    kwargs: dict[str, Any] = {"num_agents": 1, "episode_length": min(longest, rules.episode_length), "actions": actions}
    if parts != OBSERVATIONS:
        kwargs["observations"] = parts
    return gymnasium.envs.registration.EnvSpec(
        "doorstep/EscapeRoom-v0", entry_point="doorstep.envs:EscapeRoomEnv", kwargs=kwargs
    )


def _buffers(result: Any, form: ActionForm) -> Iterator[dict[str, Any]]:
    """The fields of an EpisodeBuffer for each agent of an EpisodeResult with observations."""
    observations = np.concatenate([result.observations, result.last_observations[None]])
    actions = np.clip(result.actions, 0, np.subtract(ACTIONS, 1, dtype=np.int32))  # as the simulator does
    is_last = np.arange(result.length) == result.length - 1
    is_goal = result.reason == "goal"
    for agent in range(observations.shape[1]):
        yield {
            "seed": result.request.seed,
            "options": {"agent": agent, "tag": result.request.tag},
            "observations": observations[:, agent],
            "actions": _in_form(actions[:, agent], form),
            "rewards": result.rewards[:, agent],
            "terminations": is_last & is_goal,
            "truncations": is_last & (not is_goal),
        }


def _in_form(actions: NDArray[np.int32], form: ActionForm) -> Any:
    components = tuple(actions.T.astype(np.int64))
    if form == "discrete":
        return np.ravel_multi_index(components, ACTIONS)
    return components if form == "tuple" else actions
