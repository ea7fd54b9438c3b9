"""Argument types, options and checks that several commands share."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from doorstep._arguments import refuse
from doorstep._configs.rules import Optional
from doorstep._files import check_replaceable
from doorstep._observations import OBSERVATIONS, AnyObservations
from doorstep._reward import AnyReward, split_reward
from doorstep.errors import ArgumentError
from doorstep.levels import Rewards
from doorstep.levels.choice import table_levels
from doorstep.levels.files import AnyLevel
from doorstep.levels.reward_terms import RewardTerms
from doorstep.policy import SamplingParams, load_policy
from doorstep.policy.imported import import_member
from doorstep.recording import Recording
from doorstep.simulator import Simulator


def positive_integer(text: str) -> int:
    """For argparse: an integer of at least 1. Underscores and thousands separators may be used."""
    return _integer(text, 1)


def non_negative_integer(text: str) -> int:
    """For argparse: an integer of at least 0, written likewise."""
    return _integer(text, 0)


def _integer(text: str, low: int) -> int:
    try:
        value = int(text.replace(",", ""))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer") from None
    if value < low:
        raise argparse.ArgumentTypeError(f"{value} is not allowed; give at least {low}")
    return value


# Kinds of options: whole numbers, and files.
COUNT: dict[str, Any] = {"type": positive_integer, "metavar": "N"}
FILE: dict[str, Any] = {"type": Path, "metavar": "FILE"}


def check_output(output: Path, endings: Iterable[str] = (), option: str = "output") -> str:
    """Refuses an output that cannot be written, before the work; returns its ending, which is one of `endings` if there
    are any. option: the name of the option that has it."""
    ending, endings = output.suffix.lower(), tuple(endings)
    if endings and ending not in endings:
        allowed = " or ".join(endings)
        raise ArgumentError(f"--{option} {output} must end in {allowed}.", argument=option)
    try:
        if output.is_dir() or not output.absolute().parent.is_dir():
            raise ArgumentError(f"--{option} {output} is not a file in an existing folder.", argument=option)
        check_replaceable(output)
    except OSError as error:
        raise ArgumentError(f"--{option} {output} cannot be written: {error.strerror}.", argument=option) from error
    return ending


def add_world_arguments(parser: argparse.ArgumentParser, worlds: int, what: str = "number of worlds") -> None:
    """Number of worlds and agents, seed, device and reward; worlds: the default number."""
    parser.add_argument("--worlds", **COUNT, default=worlds, help=f"{what} ({worlds})")
    parser.add_argument("--agents", **COUNT, default=2, help="agents in each world, 1-8 (2)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the levels and of the actions (0)")
    add_device_argument(parser)
    add_reward_argument(parser)


def add_device_argument(parser: argparse.ArgumentParser) -> None:
    """Where the worlds are."""
    said = "device of the worlds: cpu, cuda, cuda:K or auto (cpu)"
    parser.add_argument("--device", default="cpu", metavar="DEVICE", help=said)


def add_threads_argument(parser: argparse.ArgumentParser) -> None:
    """How many threads step."""
    said = "threads that step; without it as many as this process may use"
    parser.add_argument("--threads", **COUNT, help=said)


def add_allow_host_argument(parser: argparse.ArgumentParser) -> None:
    """By which names browsers reach a server."""
    said = "a name by which browsers reach this, such as that of a proxy with TLS; may be given several times"
    parser.add_argument("--allow-host", action="append", default=[], dest="allow_hosts", metavar="NAME", help=said)


POLICIES = (
    "what chooses the actions: random, idle, scripted, trained, general, module:function, path/to/file.py:function, "
    "the folder of a run of doorstep train, a checkpoint or a policy file"
)


LEVELS = (
    "reference, room_types for levels of each type of the reference's rooms, curated for the levels that come with "
    'doorstep, the name of one of these, such as "let me in", or a file of doorstep.levels.save_levels()'
)

SAMPLING_OPTIONS = ("greedy", "temperature", "top_p")


def add_play_arguments(parser: argparse.ArgumentParser) -> None:
    """What chooses the actions, and how, and which levels are played; `policy_of()` and `levels_of()` load them."""
    parser.add_argument("--policy", default="random", metavar="POLICY", help=f"{POLICIES} (random)")
    said = f"{LEVELS}. Every world draws one of them at each reset, all equally likely (reference)"
    parser.add_argument("--levels", metavar="LEVELS", help=said)
    add_sampling_arguments(parser)


def add_sampling_arguments(parser: argparse.ArgumentParser) -> None:
    """How networks choose; `sampling_of()` reads it. Their random numbers follow from the seed of the worlds."""
    add = parser.add_argument_group("how networks choose actions (as their files say)").add_argument
    add("--greedy", action="store_const", const=True, help="the likeliest")
    add("--temperature", type=float, metavar="T", help="logits are divided by it: 0 is as greedy, 1 as trained")
    add("--top-p", type=float, metavar="P", help="only the fewest likely values whose probabilities reach this sum")


def sampling_of(arguments: argparse.Namespace) -> SamplingParams | None:
    """What the options say; None if none is given.

    Raises:
        ArgumentError: a value is out of range.
    """
    given = {name: getattr(arguments, name) for name in SAMPLING_OPTIONS}
    given = {name: value for name, value in given.items() if value is not None}
    return SamplingParams(**given) if given else None


def policy_of(arguments: argparse.Namespace) -> Any:
    """The policy of --policy.

    Raises:
        ArgumentError, StateError, OSError: as `load_policy()`.
    """
    return load_policy(arguments.policy, sampling=sampling_of(arguments))


def levels_of(arguments: argparse.Namespace) -> list[AnyLevel]:
    """The levels of --levels; none without it.

    Raises:
        ArgumentError: the file is refused, or --start rooms is given too.
        OSError: the file cannot be read.
    """
    if getattr(arguments, "levels", None) is None:
        return []
    levels = table_levels(arguments.levels)
    if getattr(arguments, "start", "normal") != "normal":
        message = "--start rooms is given together with --levels, which say where agents start."
        raise ArgumentError(message, argument="start")
    return levels


REWARDS = (
    "what agents are rewarded for: terms of doorstep.Rewards, such as goal=5,cube_approach=0.25; a .json or .yaml file "
    "with them; or module:name or path/to/file.py:name of Rewards"
)
_reward_rule = Optional(RewardTerms())


def add_reward_argument(parser: argparse.ArgumentParser) -> None:
    """What agents are rewarded for; `reward_of()` reads it."""
    parser.add_argument("--reward", metavar="REWARD", help=f"{REWARDS} (the rewards of the levels)")


def reward_of(arguments: argparse.Namespace) -> Rewards | None:
    """The terms of --reward; None without it.

    Raises:
        ArgumentError: it names a function, or is refused.
        OSError: the file cannot be read.
    """
    terms, function = split_reward(load_reward(arguments.reward))
    if function is not None:
        hint = "doorstep train and the environments take functions"
        refuse("reward", "terms, such as goal=5,cube_approach=0.25", arguments.reward, hint)
    return terms


def load_reward(text: str | None) -> AnyReward:
    """The terms, or the function, that a text of --reward says.

    Raises:
        ArgumentError, OSError: as `reward_of()`.
    """
    if text is None:
        return None
    is_member = ":" in text and not text.lstrip().startswith("{")
    found = import_member(text, "reward") if is_member else _reward_rule.from_text(text)
    if not callable(found):
        found = _reward_rule.check("reward", _reward_rule.from_plain("reward", found))
    reward: AnyReward = found
    return reward


def reward_text(reward: Rewards | None) -> str:
    """The text of terms, for a change of a config."""
    return _reward_rule.to_text(_reward_rule.to_plain(reward))


# Options that a recording decides: the field of its configuration, and the default without a recording.
_RECORDED = {
    "worlds": ("num_worlds", 1),
    "agents": ("num_agents", 2),
    "seed": ("seed", 0),
    "episode_length": ("episode_length", 200),
}
# Options that have no meaning for a recording, and their defaults without one.
_NOT_RECORDED = {"policy": "random", "start": "normal", **dict.fromkeys((*SAMPLING_OPTIONS, "levels", "reward"))}


def add_recording_arguments(parser: argparse.ArgumentParser) -> None:
    """A recording to play instead of a policy, and the length of episodes; call it after the functions above.

    Afterwards the options that a recording decides are None unless they are given: `open_recording()` sets them.
    """
    said = "a recording to play; its worlds, agents, seed and episode length are those of the file"
    parser.add_argument("--actions", **FILE, help=said)
    add_incomplete_argument(parser)
    said = "steps of an episode (200)"
    parser.add_argument("--episode-length", **COUNT, default=200, help=said)
    decided = [option for option in (*_RECORDED, *_NOT_RECORDED) if parser.get_default(option) is not None]
    parser.set_defaults(**dict.fromkeys(decided))


def add_incomplete_argument(parser: argparse.ArgumentParser) -> None:
    """Whether a truncated recording is read."""
    said = "read a recording whose end is missing, because its writer died, as far as it is complete"
    parser.add_argument("--incomplete", action="store_true", help=said)


def open_recording(arguments: argparse.Namespace) -> Recording | None:
    """The recording of --actions; None without one. Sets the options that it decides, or else their defaults.

    Raises:
        ArgumentError: an option contradicts the recording, or has no meaning for one.
        StateError: the file is not a recording, or damaged.
    """
    if arguments.actions is None:
        if arguments.incomplete:
            raise ArgumentError("--incomplete is given without --actions.", argument="incomplete")
        defaults = {option: default for option, (_, default) in _RECORDED.items()} | _NOT_RECORDED
        for option, given in vars(arguments).items():
            if given is None and option in defaults:
                setattr(arguments, option, defaults[option])
        return None
    for option in _NOT_RECORDED:
        if getattr(arguments, option, None) is not None:
            name = f"--{option.replace('_', '-')}"
            raise ArgumentError(f"{name} is given together with --actions, which has its own.", argument=option)
    recording = Recording(arguments.actions, incomplete=arguments.incomplete)
    try:
        _take_rules(arguments, recording)
    except BaseException:
        recording.close()
        raise
    return recording


def _take_rules(arguments: argparse.Namespace, recording: Recording) -> None:
    for option, (field, _) in _RECORDED.items():
        given, recorded = getattr(arguments, option), getattr(recording.config, field)
        if given not in (None, recorded):
            name = f"--{option.replace('_', '-')}"
            message = f"{name} is {given}, but {recording.path} was recorded with {recorded}."
            raise ArgumentError(message, argument=option, hint=f"Leave {name} out.")
        setattr(arguments, option, recorded)


def add_simulator_arguments(parser: argparse.ArgumentParser, worlds: int = 1024) -> None:
    """Options of a command that steps a simulator by itself; worlds: the default number."""
    add_world_arguments(parser, worlds)
    add_threads_argument(parser)
    parser.add_argument(
        "--start",
        choices=("normal", "rooms"),
        default="normal",
        help="normal: agents start where the level places them; rooms: among the cubes of the second and third room, "
        "where they push cubes in most steps",
    )


def simulator_of(arguments: argparse.Namespace, observations: AnyObservations = OBSERVATIONS) -> Simulator:
    """The simulator that the options describe. If there are levels, worlds play them once they are reset."""
    levels = levels_of(arguments)
    sim = Simulator(
        arguments.worlds,
        seed=arguments.seed,
        num_agents=arguments.agents,
        num_threads=arguments.threads,
        device=arguments.device,
        episode_length=getattr(arguments, "episode_length", 200),
        observations=observations,
        reward=reward_of(arguments),
        max_levels=len(levels),
    )
    if levels:
        try:
            sim.set_levels(levels)
        except BaseException:
            sim.close()
            raise
    return sim
