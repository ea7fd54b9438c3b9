"""What owns memory, files, threads or handles, and what writes files, however it is stopped: copied, dropped, at an
error, at the end of the process or of a fork, killed, interrupted, or on a full disk."""

import ast
import contextlib
import copy
import errno
import gc
import importlib.util
import os
import pickle
import re
import resource
import signal
import sys
import types
import warnings
from contextlib import ExitStack, closing
from pathlib import Path

import numpy as np
import pytest
from tests.interop.modes import both_modes, environment
from tests.leaks import open_files
from tests.live_objects import soon_more_than

import doorstep
from doorstep import EpisodeRequest, RolloutEngine, SimulatorConfig, levels
from doorstep._copies import Owner
from doorstep.metrics import MetricsConfig, MetricsStore
from doorstep.recording import Recording, RecordingWriter
from doorstep.recording.layout import ChunkFile

ONE = SimulatorConfig(1, num_threads=1)

# ---- What owns something: a function of what closes it and of a folder, what it needs, and how it is used


def simulator(kept, **options):
    return kept.enter_context(doorstep.Simulator(2, **{"num_threads": 1, **options}))


def recorded(folder):
    doorstep.record(folder / "a.rec", steps=3).close()
    return folder / "a.rec"


def log(name, path):
    from doorstep.training import logs

    return getattr(logs, name)(path)


def trainer():
    from tests.pkg.training.runs import small

    from doorstep.training import Trainer

    return Trainer(small())


def gymnasium_rooms():
    from doorstep.envs.vector import EscapeRoomVectorEnv

    return closing(EscapeRoomVectorEnv(2, num_threads=1))


def play_one(engine):
    assert engine.run([EpisodeRequest(max_steps=2)])[0].length == 2


SEEN = {"cameras": doorstep.Cameras(width=8, height=8)}
EMBREE = {"cameras": doorstep.Cameras(width=8, height=8, renderer="embree"), "num_threads": 2}
OWNERS = {
    "Simulator": (lambda kept, folder: simulator(kept, num_threads=2, **SEEN), "", lambda sim: sim.step()),
    "Simulator, seen by Embree": (lambda kept, folder: simulator(kept, **EMBREE), "", lambda sim: sim.step()),
    "Tensor": (lambda kept, folder: simulator(kept).rewards, "", lambda tensor: tensor.to_numpy()),
    "Tensor, seen": (lambda kept, folder: simulator(kept, **SEEN).rgb, "", lambda tensor: tensor.to_numpy()),
    "StateFields": (lambda kept, folder: simulator(kept).state, "", lambda state: state.body_positions.to_numpy()),
    "StepEvent": (lambda kept, folder: simulator(kept).step_async(), "", lambda event: event.wait()),
    "Session": (lambda kept, folder: simulator(kept)._session, "", None),
    "Memory": (lambda kept, folder: simulator(kept)._session.memory, "", None),
    "Recording": (
        lambda kept, folder: kept.enter_context(Recording(recorded(folder))), "", lambda recording: recording.replay(),
    ),
    "ChunkFile": (lambda kept, folder: kept.enter_context(closing(ChunkFile(recorded(folder)))), "", None),
    "RecordingWriter": (
        lambda kept, folder: kept.enter_context(RecordingWriter(folder / "b.rec", simulator(kept))), "",
        lambda writer: writer.step(),
    ),
    "RolloutEngine": (lambda kept, folder: kept.enter_context(RolloutEngine(ONE)), "", play_one),
    "MetricsStore": (lambda kept, folder: MetricsStore(), "", lambda store: store.counter("things")),
    "Counter": (lambda kept, folder: MetricsStore().counter("things"), "", None),
    "MetricsHandle": (lambda kept, folder: MetricsStore()._handle, "", None),
    "EscapeRoomVectorEnv": (
        lambda kept, folder: kept.enter_context(gymnasium_rooms()), "gymnasium", lambda rooms: rooms.reset(seed=1),
    ),
    "Trainer": (lambda kept, folder: trainer(), "torch", lambda made: made.update()),
    "JsonLines": (lambda kept, folder: kept.enter_context(log("JsonLines", folder / "log")), "torch", None),
    "TensorBoardLog": (lambda kept, folder: kept.enter_context(log("TensorBoardLog", folder)), "tensorboard", None),
}  # fmt: skip


def is_there(need):
    needs = [need] if need in ("", "torch", "gymnasium") else ["torch", need]
    return all(importlib.util.find_spec(name) for name in needs if name)


def owners(torch=True):
    """Those whose libraries are installed."""
    table = {name: row for name, row in OWNERS.items() if is_there(row[1])}
    return table if torch else {name: row for name, row in table.items() if row[1] in ("", "gymnasium")}


def test_owners_refuse_copies_and_stay_as_they_are(tmp_path):
    for name, (make, _, use) in owners().items():
        if name.startswith(("Simulator", "EscapeRoom")):  # which are copied whole
            continue
        with ExitStack() as kept:
            owner, kind = make(kept, tmp_path), name.partition(",")[0]
            assert (type(owner).__name__, isinstance(owner, Owner)) == (kind, True)
            files = open_files(tmp_path)
            for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
                with pytest.raises(doorstep.CopyError, match=kind) as caught:
                    attempt({"inside": [owner]} if attempt is not copy.copy else owner)
                assert caught.value.hint
                assert isinstance(caught.value, TypeError)
            assert open_files(tmp_path) == files
            if use:
                use(owner)


WARN_OF_OPEN_FILES = {"JsonLines", "TensorBoardLog"}  # when they are dropped, as Python's own files do


def drop_in_a_cycle(make, use, folder):
    """Without a call of close()."""
    owner = [make(types.SimpleNamespace(enter_context=lambda made: getattr(made, "thing", made)), folder)]
    owner.append(owner)


def leave_by_an_error(make, use, folder):
    with contextlib.suppress(ZeroDivisionError), ExitStack() as kept:
        owner = make(kept, folder)
        if use:
            use(owner)
        raise ZeroDivisionError


@pytest.mark.parametrize("stop", [drop_in_a_cycle, leave_by_an_error])
def test_what_goes_leaves_no_memory_file_or_handle(stop, tmp_path):
    for name, (make, _, use) in owners().items():
        if stop is drop_in_a_cycle and name in WARN_OF_OPEN_FILES:
            continue
        gc.collect()
        before, files = doorstep.live_counts(), open_files(tmp_path)
        stop(make, use, tmp_path)
        gc.collect()
        assert soon_more_than(before) == {}, name
        assert open_files(tmp_path) == files, name
        assert not list(tmp_path.glob("*.part")), name


def in_forks(stop, folder, torch):
    """Each owner in a fork of this process, which ends as a script does. Returns in the forks, and at the end."""
    warnings.simplefilter("ignore")
    for name, (make, need, use) in owners().items():
        if torch == (need in ("", "gymnasium")):
            continue
        own = Path(folder) / re.sub(r"\W", "", name)
        own.mkdir()
        if stop == "exit":  # the fork's own, hidden in a module
            if os.fork() == 0:
                sys.kept = make(ExitStack(), own)
                return
        else:  # the parent's
            kept = ExitStack()
            owner = make(kept, own)
            if os.fork() == 0:
                return
        assert os.wait()[1] == 0, name
        if stop == "fork":
            if use:
                use(owner)
            kept.close()
            if name == "RecordingWriter":
                with Recording(own / "b.rec") as recording:
                    recording.replay()
            assert not list(own.glob("*.part"))
            del owner
    print("all")


@pytest.mark.parametrize("torch", [False, True], ids=["", "torch"])
@pytest.mark.parametrize("stop", ["exit", "fork"])
def test_processes_and_forks_end_cleanly_beside_owners(stop, torch, tmp_path, run_python):
    if torch:
        pytest.importorskip("torch")
    imported = "import torch; " if torch else ""
    code = f"{imported}from tests.pkg.test_stops import in_forks; in_forks({stop!r}, {str(tmp_path)!r}, {torch})"
    assert run_python(code) == "all\n"


AT_EXIT = {
    "live tensors": "sim = doorstep.Simulator(64); rewards = sim.rewards; sim.close()",
    "live arrays": "import numpy; array = numpy.asarray(doorstep.Simulator(64).rewards)",
    "an unconsumed capsule": "capsule = doorstep.Simulator(64).rewards.__dlpack__(max_version=(1, 0))",
    "a legacy capsule": "import sys; sys.s = doorstep.Simulator(64); sys.c = sys.s.rewards.__dlpack__()",
    "a running step": "sim = doorstep.Simulator(4096); event = sim.step_async()",
    "a running step that is seen":
        "sim = doorstep.Simulator(64, cameras=doorstep.Cameras(width=8, height=8)); event = sim.step_async()",
    "a bound step": "import sys; step = sys.step = doorstep.Simulator(64).step; step()",
    "the C API": "import sys; sys.api = doorstep.capi()",
    "an exit handler that steps": "import atexit; sim = doorstep.Simulator(64); atexit.register(sim.step)",
    "daemon threads that step and draw": """
import threading, time, weakref
weakref.finalize(threading, time.sleep, 0.1)  # runs after the simulator's end: its threads notice
sim = doorstep.Simulator(64)
begun = [threading.Event() for _ in range(3)]
def loop(number):
    while True:
        sim.render(width=64, height=48) if number == 2 else sim.step()
        begun[number].set()
for number in range(3):
    threading.Thread(target=loop, args=[number], daemon=True).start()
    begun[number].wait()
""",
}  # fmt: skip


@both_modes
def test_interpreter_exits_cleanly_with(mode, run_python):
    for name, code in AT_EXIT.items():
        assert run_python("import doorstep\n" + code, **environment(mode)) == "", name


# ---- The list is complete

COPIED_WHOLE = {"Simulator", "Rooms", "OverRooms", "AsyncEscapeRooms", "EscapeRoomPufferEnv"}  # tests/envs
HELD_BY_OWNERS = {"Exchange", "AgentCamera", "_Gate"}


def releases(tree):
    """Whether the class releases something: when it is closed, or at its end."""
    methods = {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}
    return bool(methods & {"close", "__del__"}) or re.search(r"[fF]inalize[r]?\(self\b", ast.unparse(tree)) is not None


def test_every_class_that_releases_something_is_an_owner():
    classes = {
        node.name: {ast.unparse(base) for base in node.bases}
        for path in Path(doorstep.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ClassDef) and releases(node) and node.name not in COPIED_WHOLE | HELD_BY_OWNERS
    }
    assert (classes["RecordingFile"], classes["Session"]) == ({"ClosingOwner"}, {"Owner"})
    refusing = {"Owner", "ClosingOwner", "_Made", "OverRooms", "OverSpecifiedRooms"}
    assert not {name for name, bases in classes.items() if not bases & refusing}, "these are copied with what they own"


# ---- What writes a file: a function that makes the function that writes, the file's ending, and what it needs


def evaluated():
    return doorstep.evaluate({"a": "random"}, episodes=2, episode_length=3)


def policy():
    from tests.fuzz.targets.policies import linear_layers

    from doorstep.policy.files import StoredPolicy, write_policy

    stored = StoredPolicy(linear_layers(), doorstep.policy.SamplingParams(), None, {})
    return lambda path: write_policy(path, stored)


def checkpoint():
    from doorstep.training import save_checkpoint

    made = trainer().checkpoint()
    return lambda path: save_checkpoint(path, made)


def replay_page(folder):
    return Recording(recorded(folder)).render


def run_of_a_simulator(path):
    with doorstep.Simulator(8, num_threads=1) as sim, RecordingWriter(path, sim, hash_interval=7) as writer:
        for step in range(40):
            sim.actions = np.random.default_rng(step).integers(0, doorstep.ACTIONS, sim.actions.shape)
            writer.step()


def record(path):
    doorstep.record(path, steps=90, seed=1, policy=doorstep.load_policy("random").seeded(1)).close()


def video():
    from doorstep.video import write_video

    frames = np.random.default_rng(0).integers(0, 256, (3, 48, 64, 3), np.uint8)
    return lambda path: write_video(path, frames)


def figure():
    from doorstep.plots import plot_evaluation

    made = evaluated()
    return lambda path: plot_evaluation(made, path)


def metrics_of_an_engine():
    with RolloutEngine(doorstep.RolloutConfig(ONE, metrics=MetricsConfig(trace=100))) as engine:
        engine.future(EpisodeRequest(seed=1, max_steps=9)).result()
        return engine.metrics


def picture(path):
    doorstep.render.write_png(path, np.random.default_rng(0).integers(0, 256, (48, 64, 3), np.uint8))


WRITERS = {
    "levels": (lambda folder: lambda path: levels.save_levels(path, [levels.reference()] * 40), ".json", ""),
    "evaluation": (lambda folder: evaluated().save, ".json", ""),
    "policy": (lambda folder: policy(), ".safetensors", ""),
    "picture": (lambda folder: picture, ".png", ""),
    "replay": (replay_page, ".html", ""),
    "recording": (lambda folder: run_of_a_simulator, ".rec", ""),
    "record": (lambda folder: record, ".rec", ""),
    "trace": (lambda folder: metrics_of_an_engine().write_trace, ".json", ""),
    "series": (lambda folder: metrics_of_an_engine().to_csv, ".csv", ""),
    "checkpoint": (lambda folder: checkpoint(), ".safetensors", "torch"),
    "video": (lambda folder: video(), ".gif", "av"),
    "figure": (lambda folder: figure(), ".png", "matplotlib"),
}


def on_full_disks(write, path, places):
    """The limit of a file's size stands for the disk's end: what goes beyond is EFBIG instead of ENOSPC."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    older = path.read_bytes()
    for size in sorted({1, len(older) - 1, *range(0, len(older), max(1, len(older) // places))}):
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        try:
            write(path)
        except OSError as error:
            assert error.errno == errno.EFBIG, error  # noqa: PT017
        else:
            raise AssertionError(f"what {size} bytes cannot hold was written")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert path.read_bytes() == older, size
        assert os.listdir(path.parent) == [path.name], size


class At:
    """Calls `stop` at a line of the modules that write files."""

    def __init__(self, line, stop):
        self.left, self.stop = line, stop

    def __call__(self, frame, event, _):
        if not frame.f_code.co_filename.endswith(("/_files.py", "/recording/writer.py")):
            return None
        if event == "line":
            self.left -= 1
            if self.left == 0:
                self.stop()
        return self

    def during(self, write, path):
        sys.settrace(self)
        try:
            write(path)
        finally:
            sys.settrace(None)


def interrupt():
    raise KeyboardInterrupt


def at_lines(write, path, places, stop):
    """The file is whole after any line at which its writer is stopped, and the next one removes what that one left."""
    older, all_lines = path.read_bytes(), At(0, None)
    all_lines.during(write, path)
    found = set()
    for line in range(1, -all_lines.left, max(1, -all_lines.left // places)):
        if stop == "killed":
            if os.fork() == 0:
                At(line, lambda: os.kill(os.getpid(), signal.SIGKILL)).during(write, path)
                os._exit(1)
            assert os.wait()[1] == signal.SIGKILL
        else:
            with contextlib.suppress(KeyboardInterrupt):
                At(line, interrupt).during(write, path)
        if path.suffix != ".rec" or stop == "killed":  # a recording that is interrupted ends there
            assert path.read_bytes() == older, line
        left = [each for each in path.parent.iterdir() if each != path]
        assert len(left) <= 1 or stop != "killed", line
        for each in left:  # Ctrl-C between two lines may keep the lock of a temporary file
            assert re.fullmatch(rf"\.doorstep-\d\.tmp|{path.name}\.\d\.part", each.name), line
            if each.suffix == ".part":
                found.add(complete_steps(each))
    write(path)
    assert os.listdir(path.parent) == [path.name] or stop != "killed"
    assert path.read_bytes() == older
    assert stop != "killed" or path.stem != "recording" or len(found) > 2


def complete_steps(part):
    """Of a recording without its end, which are right."""
    try:
        with Recording(part, incomplete=True) as recording:
            recording.replay(num_threads=1)
            return recording.num_steps
    except doorstep.StateError as error:
        assert "truncated" in str(error) or "is not a recording" in str(error)  # noqa: PT017
        return -1


def stop_writers(folder, how, needs, places):
    """In a process of its own, which has limits and forks."""
    warnings.simplefilter("ignore")
    for name, (make, ending, need) in WRITERS.items():
        if need not in needs or not is_there(need):
            continue
        os.makedirs(f"{folder}/{name}/other")
        os.makedirs(f"{folder}/{name}/own")
        write, path = make(Path(folder) / name / "other"), Path(folder) / name / "own" / f"{name}{ending}"
        write(path)
        if how == "full":
            on_full_disks(write, path, places)
        else:
            at_lines(write, path, places, how)
    print("all")


@pytest.mark.parametrize("how", ["full", "killed", "interrupted"])
@pytest.mark.parametrize(
    ("needs", "places"),
    [
        pytest.param([""], 7, id="some"),
        pytest.param([""], 100, marks=pytest.mark.slow, id="everywhere"),
        pytest.param(["torch", "av", "matplotlib"], 5, marks=pytest.mark.slow, id="libraries"),
    ],
)
def test_the_older_file_stays_when_a_writer_is_stopped(how, needs, places, tmp_path, run_python):
    imported = "import torch; " if "torch" in needs and is_there("torch") else ""
    arguments = f"{str(tmp_path)!r}, {how!r}, {needs}, {places}"
    assert run_python(f"{imported}from tests.pkg.test_stops import stop_writers; stop_writers({arguments})") == "all\n"
