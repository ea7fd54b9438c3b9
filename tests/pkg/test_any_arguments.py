"""Whatever is passed for an argument of any public function, class or method is accepted, or refused with a typed
error; misspelt names are answered with the one that was meant."""

import dataclasses
import importlib
import inspect
import pkgutil
import re
from contextlib import ExitStack, suppress

import numpy as np
import pytest
from tests.refuses import assert_refused, refuses

import doorstep
from doorstep import envs, levels, metrics, policy, rollouts
from doorstep._arguments import shown
from doorstep._configs import Checked
from doorstep._native._generated import LayerKind

# ---- Names


def checked_classes(base=Checked):
    for cls in base.__subclasses__():
        if dataclasses.fields(cls) and cls.__module__.startswith("doorstep"):
            yield cls
        yield from checked_classes(cls)


def test_every_misspelt_keyword_is_answered_with_the_one_that_was_meant():
    functions = [*checked_classes(), doorstep.load_policy, doorstep.Level.from_ascii]
    functions += [getattr(doorstep, name) for name in ("Simulator", "EpisodeRequest", "evaluate", "record", "view")]
    for function in functions:
        keywords = list(inspect.signature(function).parameters)
        assert keywords
        for keyword in keywords:
            wrong = keyword[0] + keyword[2] + keyword[1] + keyword[3:] if len(keyword) > 4 else keyword
            if wrong != keyword:
                says = rf"got an unexpected keyword .*{wrong}'; did you mean '{keyword}'\?$"
                refuses(says, function, error=TypeError, **{wrong: 1})
        says = f"unexpected keyword argument 'frobnicate'; it takes {', '.join(keywords)}"
        refuses(says, function, error=TypeError, frobnicate=1)
    rows = [("n_worlds", "num_worlds"), ("ep_length", "episode_length"), ("obs", "observations"), ("level", "levels")]
    for wrong, right in rows:  # names of other libraries
        refuses(f"'{wrong}'; did you mean '{right}'", doorstep.Simulator, error=TypeError, **{wrong: 8})
    sim = doorstep.Simulator(1, num_threads=1)
    for wrong, right in (("obs", "observations"), ("lidr", "lidar")):
        refuses(f"^a Simulator has no '{wrong}'; did you mean '{right}'", getattr, sim, wrong, error=AttributeError)
    assert not any(hasattr(sim, name) for name in ("frobnicate", "rgb", "__frobnicate__"))


# ---- Values


class Unprintable:
    def __repr__(self):
        raise RuntimeError("code of a user")


class Taking:
    """A function or a type that takes anything."""

    def __init__(self, *_, **__):
        pass


VALUES = (
    *(None, True, -1, 0, 1, 7, 2**63, 2**200, -(2**63), 1.5, float("nan"), float("inf"), 1e308, 1j, np.float32("nan")),
    *("", "x", "\ud800", "a\0b", "/no/such/file.json", b"x", [], [1], [[1]], ["x"], {}, {"x": 1}, (), (1, 2, 3), {1}),
    *(np.arange(4), np.ones((2, 2)), np.array([None, "x"], object), np.array(["a"]), np.array(3)),
    *("x" * 10**5, "x" * 10**5 + ".json", {"x" * 10**5: 1}, ["x" * 10**5], "x:" + "x" * 10**5),
    *(object(), Unprintable(), Taking, lambda *_, **__: None),
)
OTHERS_MAKE = {  # these
    *("Tensor", "Policy", "PolicyLayer", "EpisodeResult", "Evaluation", "Checkpoint", "Curriculum", "EntityKind"),
    *("EpisodeSummary", "Record", "Action", "Health", "StepEvent", "StateFields", "TrainInterface", "ExecMode"),
}
NOT_CALLED = {
    *("view", "serve"),  # which wait for people
    *("train", "RayRolloutEngine", "write_minari", "plot_runs", "plot_positions"),  # which work for long
    *("copy_from_pointer", "copy_to_pointer", "summarize_episodes"),  # whose callers are trusted
    *("to_jax", "call"),  # which warn, or are gymnasium's
    *("implement", "make", "check_names", "rule_of_part"),  # of registries and rules
}  # fmt: skip
# All environments but these are made by what makes these, and import a library each.
ENVIRONMENTS = {name for name in envs.__all__ if "Env" in name or "Discrete" in name} - {"EscapeRoomVectorEnv"}
NOT_IMPORTED = re.compile(r"\._|__main__|doorstep\.(compat|envs\.|jax|ray|cli)")


def public_callables():
    """Functions and classes of all public modules that can be imported here, each once."""
    found = {}
    for module in pkgutil.walk_packages(doorstep.__path__, "doorstep."):
        if NOT_IMPORTED.search(module.name):
            continue
        with suppress(ImportError):
            imported = importlib.import_module(module.name)
            for name in set(getattr(imported, "__all__", ())) - OTHERS_MAKE - NOT_CALLED - ENVIRONMENTS:
                with suppress(ImportError, AttributeError):
                    made = getattr(imported, name)
                    is_ours = str(getattr(made, "__module__", "")).startswith("doorstep")
                    is_error = inspect.isclass(made) and issubclass(made, BaseException)
                    if callable(made) and is_ours and not is_error:
                        found[made] = name
    return dict(sorted(found.items(), key=lambda item: item[1]))


def methods_of(made):
    """The public methods that are doorstep's own, but those that end the object."""
    for name in dir(type(made)):
        method = getattr(made, name, None) if not name.startswith("_") and name not in ("close", *NOT_CALLED) else None
        if callable(method) and "doorstep" in str(getattr(method, "__module__", "")):
            yield f"{type(made).__name__}.{name}", method


class Examples:
    """Objects whose methods are called, and arguments that are accepted: by a parameter's name, or by names of a
    function and its parameter."""

    def __init__(self, kept, folder):
        level, config = levels.curated()["one door"], doorstep.SimulatorConfig(2, num_threads=1)
        sim = kept.enter_context(doorstep.Simulator(4, max_levels=1, num_threads=1))
        recorded = kept.enter_context(doorstep.record(folder / "run.rec", steps=5, num_worlds=2))
        engine = kept.enter_context(doorstep.RolloutEngine(num_worlds=4, num_threads=1, episode_length=10))
        request, store = doorstep.EpisodeRequest(max_steps=1), metrics.MetricsStore()
        results = engine.run([doorstep.EpisodeRequest(max_steps=1, record="actions")])
        path, layers = folder / "policy.safetensors", np.random.default_rng(0).normal(size=(19, 94)).astype(np.float32)
        arrays, sampling = {"weights": layers, "biases": layers[:, 0].copy()}, policy.SamplingParams()
        stored = policy.files.StoredLayer(LayerKind.LINEAR, 94, 19, arrays=arrays)
        policy.files.write_policy(path, policy.files.StoredPolicy([stored], sampling, doorstep.OBSERVATIONS, {}))
        network, seen = doorstep.load_policy(path), np.zeros((4, 2, 94), np.float32)
        evaluation = doorstep.evaluate(["idle"], levels=level, episodes=1, episode_length=5)
        levels.save_levels(folder / "levels.json", [level])
        self.objects = [sim, sim.rewards, recorded, engine, results[0], network, evaluation, store, level, config]
        self.objects += [sampling, doorstep.Cameras(), doorstep.RolloutConfig(config), doorstep.Rewards()]
        self.objects += [rollouts.SchedulerConfig.of("priority"), levels.reference()]
        picture, replayed = np.zeros((4, 4, 3), np.uint8), doorstep.Simulator.from_config(recorded.config)
        self.by_name = {
            "num_worlds": 2, "num_envs": 2, "num_agents": 2, "seed": 0, "count": 2, "step": 0, "number": 99,
            "name": "a", "config": config, "num_groups": 2, "hash_interval": 4, "request_id": 1, "seeds": [1, 2],
            "request": request, "requests": [request], "engine": engine, "trajectories": results, "sim": sim,
            "recording": recorded, "tensor": np.zeros(3), "tensors": [np.zeros(3)], "object": 1, "levels": [level],
            "data": sim.save(), "array": np.zeros((4, 2, 1)), "image": picture, "frames": [picture],
            "observations": seen, "sampling": sampling, "precision": "float32", "policy": "random", "text": "{}",
            "policies": ["idle"], "values": {}, "other": metrics.MetricsStore(), "evaluation": evaluation, "door": 0,
            "path": folder / "out.json", "output": folder / "out.safetensors", "folder": folder / "none",
            "max_steps": 1, "block": False, "timeout": 0.0, "episodes": 1, "episode_length": 3, "steps": 2,
            "width": 16, "height": 16, "samples": 1, "num_threads": 1, "x": 1, "y": 2, "size_x": 1, "size_y": 1,
            "min_x": 0, "max_x": 1, "min_y": 0, "max_y": 1, "start": 0, "end": 1, "spawns": [levels.Spawn(0, 3)],
            "simulator": config, "position": (0, 0, 1), "target": (1, 0, 0), "nbytes": 64,
            "load_levels.path": folder / "levels.json", "from_ascii.text": ".1.\n...", "Replay.sim": replayed,
            "Recording.path": folder / "run.rec", "load_policy.policy": path, "score.policy": "idle",
            "RolloutEngine.config": config, "EpisodeResult.record.config": config,
            "write_png.path": folder / "b.png", "write_video.path": folder / "d.gif",
            "Recording.render.path": folder / "a.png", "plot_evaluation.path": folder / "e.png",
        }  # fmt: skip
        kept.callback(replayed.close)
        with suppress(ImportError):
            self._add_gymnasium(kept)
        with suppress(ImportError):
            self._add_torch(folder)

    def _add_gymnasium(self, kept):
        from doorstep.envs.vector import EscapeRoomVectorEnv

        rooms = EscapeRoomVectorEnv(2, num_threads=1)
        kept.callback(rooms.close)
        self.objects.append(rooms)
        rooms.reset()
        self.by_name["EscapeRoomVectorEnv.step.actions"] = rooms.action_space.sample()

    def _add_torch(self, folder):
        import torch
        from tests.pkg.training.runs import small

        from doorstep import training

        trainer = training.Trainer(small())
        checkpoint, path = trainer.checkpoint(), folder / "checkpoint.safetensors"
        training.save_checkpoint(path, checkpoint)
        linear, numbers, flags = torch.nn.Linear(4, 19), torch.zeros(3, 4), torch.zeros(3, 4, dtype=torch.bool)
        self.objects += [trainer, small(), training.MLPNetwork()]
        self.by_name |= {
            "checkpoint": checkpoint, "module": linear, "heads": [linear], "part": slice(0, 4), "num_features": 94,
            "logits": torch.zeros(5, 19), "sizes": (4, 8, 5, 2), "actions": torch.zeros(5, 4, dtype=torch.int32),
            "Trainer.config": small(), "load_checkpoint.path": path, "export_policy.path": path, "read_log.path": path,
            "preset.name": "default", "rewards": numbers, "next_values": numbers, "log_ratios": numbers,
            "generalized_advantages.values": numbers, "v_trace.values": numbers,
            "terminations": flags, "truncations": flags,
        }  # fmt: skip

    def arguments(self, name, function):
        """Of a call that is accepted."""
        short, found = name.rpartition(".")[2], {}
        if short == "of":  # a config by its tag
            kind = function.__self__
            return {"tag": getattr(kind, "type", None) or kind.registry.classes()[0].type}
        for key, parameter in inspect.signature(function).parameters.items():
            if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
                continue
            names = [one for one in (f"{name}.{key}", f"{short}.{key}", key) if one in self.by_name]
            if names and (parameter.default is parameter.empty or "." in names[0] or key in CHEAP):
                found[key] = self.by_name[names[0]]
            else:
                assert parameter.default is not parameter.empty, f"{name} needs an example of {key}"
                found[key] = parameter.default
        return found


CHEAP = {"num_threads", "episodes", "episode_length", "steps", "width", "height", "samples", "max_steps", "timeout"}
CHEAP |= {"block", "num_worlds", "num_envs"}


def wrong_error_of(function, arguments):
    """What a call raises, unless that is a typed error that does not repeat a long value."""
    positional = inspect.isbuiltin(function) or any(
        parameter.kind == parameter.POSITIONAL_ONLY for parameter in inspect.signature(function).parameters.values()
    )
    try:
        made = function(*arguments.values()) if positional else function(**arguments)
        if hasattr(made, "close"):
            made.close()
    except Exception as error:
        is_typed = isinstance(error, (doorstep.DoorstepError, OSError)) and type(error) is not doorstep.DoorstepError
        return None if is_typed and len(str(error)) < 3000 else error
    return None


# Arguments whose errors are still those of Python, PyTorch or TensorBoard.
NOT_TYPED = {
    *("MultiDiscrete.validate_args", "describe_many.tensors", "RolloutEngine.config"),
    *("to_json.indent", "JsonLines.path"),
    *(f"{name}.{key}" for name in ("generalized_advantages", "v_trace") for key in ("gamma", "gae_lambda")),
    *("v_trace.rho_clip", "v_trace.c_clip", "TensorBoardLog.folder", "TensorBoardLog.resumed_at"),
}


@pytest.mark.parametrize("share", [5, pytest.param(1, marks=pytest.mark.nightly)])
def test_every_value_is_accepted_or_refused(share, tmp_path, monkeypatch):
    """Of values every fifth in turn, but all for what is cheap: parts of levels and configurations."""
    monkeypatch.chdir(tmp_path)  # some values are paths
    wrong, tried, number = [], set(), 0
    with ExitStack() as kept:
        examples = Examples(kept, tmp_path)
        calls = [(name, function) for function, name in public_callables().items()]
        calls += [call for made in examples.objects for call in methods_of(made)]
        for name, function in calls:
            of_class = getattr(function, "__func__", function)
            arguments = {} if of_class in tried else examples.arguments(name, function)
            tried.add(of_class)
            if arguments:
                assert not wrong_error_of(function, arguments), name
            for key in arguments:
                if {f"{name}.{key}", f"{name.rpartition('.')[2]}.{key}"} & NOT_TYPED:
                    continue
                number += 1
                is_cheap = inspect.isclass(function) and issubclass(function, Checked) and "Training" not in name
                wrong += [
                    f"{name}: {key} of {type(value)}: {error!r}"[:500]
                    for value in (VALUES if is_cheap else VALUES[number % share :: share])
                    if (error := wrong_error_of(function, {**arguments, key: value}))
                ]
    assert not wrong, "\n".join(wrong)
    assert number > 250  # without any other library


# ---- What messages show


def laughs(depth):
    """A list of 10 ** depth lists, in a few hundred bytes."""
    made = []
    for _ in range(depth):
        made = [made] * 10
    return made


def test_every_value_is_shown_in_messages_in_a_few_characters():
    rows = [
        ("x" * 10_000, "'" + "x" * 56 + "..."),
        (list(range(100)), str(list(range(100)))[:57] + "..."),
        (laughs(50), "[" * 51 + "], [],..."),
        ([10**5000, -(10**5000)], "[an integer of 16610 bits, an integer of 16610 bits]"),
        (Unprintable(), "a Unprintable"),
        ("\ud800", r"'\ud800'"),
    ]
    rows = [(value, f"num_worlds is {text}; it must be an integer") for value, text in rows]
    assert_refused(doorstep.Simulator, rows)
    assert shown({"a": (1,), "b": [{}, ()], 3: "c"}) == "{'a': (1,), 'b': [{}, ()], 3: 'c'}"
