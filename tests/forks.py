"""Python code in a process of its own without the start of an interpreter: in a fork of a server, which has imported
what most tests need and has used none of it.

A fork has the variables, folder, streams and `__main__` that it is given, and ends as an interpreter does. Tests of
imports, of options of the interpreter and of its start need a new interpreter.
"""

import atexit
import contextlib
import functools
import gc
import importlib
import importlib.util
import itertools
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import types
import warnings
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
# What every server imports, and what one imports for code that uses a framework.
BASE = ("numpy", "pytest", "doorstep", "doorstep.cuda", "doorstep.cli", "doorstep.rollouts")
FRAMEWORKS = {
    "jax": ("jax",),
    "torch": ("torch", "torch._dynamo", "doorstep.training", "doorstep.evaluation"),  # optimizers need Dynamo
}
# CPython 3.12 warns of every fork beside threads; the tests fork on purpose.
WARNINGS = ("-W", "error", "-W", "ignore:This process:DeprecationWarning")
COMMAND = "import sys; from doorstep.cli import main; sys.exit(main())"
# Runs the file that the first argument names, with the others as its arguments.
SCRIPT = "import runpy, sys; del sys.argv[0]; runpy.run_path(sys.argv[0], run_name='__main__')"
LONGEST_MESSAGE = 1 << 17  # bytes
PATIENCE = 10  # seconds that a server has to end


class Fork:
    """A running process. Its status channel tells its number, then how it ended."""

    def __init__(self, status):
        self._status = status
        self.pid = int(status.recv(LONGEST_MESSAGE))

    def send_signal(self, number):
        os.kill(self.pid, number)

    def wait(self, timeout):
        """The exit status, as `subprocess` has it. A process that takes longer is killed."""
        with self._status:
            self._status.settimeout(timeout)
            try:
                return int(self._status.recv(LONGEST_MESSAGE))
            except TimeoutError:
                self.send_signal(signal.SIGKILL)
                raise subprocess.TimeoutExpired("a fork", timeout) from None


class ForkServer:
    """A process that has imported modules and whose forks run code: the descriptor of a socket for requests."""

    def __init__(self, requests):
        self._requests = requests

    def start(self, code, *arguments, stdout, stderr, environment=None, folder=PROJECT):
        """Begins to run code with arguments in `sys.argv[1:]`, in this process's environment if none is given."""
        variables = dict(os.environ if environment is None else environment)
        request = {"code": code, "arguments": arguments, "folder": str(folder), "environment": variables}
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, socket.fromfd(self._requests, socket.AF_UNIX, socket.SOCK_SEQPACKET) as requests:
            files = [file.fileno() for file in (theirs, stdout, stderr, requests)]
            socket.send_fds(requests, [json.dumps(request).encode()], files)
        return Fork(mine)

    def run(self, code, *arguments, timeout, **how):
        """Runs code to its end, as start() begins it, and reads what it printed."""
        with tempfile.TemporaryFile("w+") as stdout, tempfile.TemporaryFile("w+") as stderr:
            status = self.start(code, *arguments, stdout=stdout, stderr=stderr, **how).wait(timeout)
            stdout.seek(0)
            stderr.seek(0)
            return subprocess.CompletedProcess(["fork", *arguments], status, stdout.read(), stderr.read())


inherited = None  # in a fork, the server that made it


@functools.cache
def server(*frameworks, **variables):
    """The server of this process for users of some of FRAMEWORKS, if they are installed, which began with these
    variables. A fork's server is always the one that made it."""
    installed = [FRAMEWORKS[name] for name in frameworks if importlib.util.find_spec(name)]
    return inherited or begin_server([*BASE, *itertools.chain(*installed)], variables)


def begin_server(modules, variables):
    """Starts a process that has imported modules, and ends with this one."""
    mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    code = "import sys; from tests.forks import serve; serve(int(sys.argv[1]), sys.argv[2:])"
    path = os.pathsep.join(filter(None, sys.path))
    command = [sys.executable, *WARNINGS, "-X", "faulthandler", "-c", code, str(theirs.fileno()), *modules]
    how = {"cwd": PROJECT, "env": {**os.environ, **variables, "PYTHONPATH": path}, "stdin": subprocess.DEVNULL}
    with theirs:
        process = subprocess.Popen(command, pass_fds=[theirs.fileno()], **how)
    owner = os.getpid()

    @atexit.register
    def end():
        if os.getpid() == owner:
            mine.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(PATIENCE)
            process.kill()

    return ForkServer(mine.fileno())


def end_process():
    """Ends a fork at once: the end of an interpreter visits, and so copies, the memory of all modules of the server."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


# ---- The server's process


def serve(requests, modules):
    """Forks for each request, until the other end of the socket is closed. A fork returns when its code has run."""
    for module in modules:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()  # or every fork's first collection would copy the memory of all modules
    with socket.socket(fileno=requests) as connection, selectors.DefaultSelector() as selector:
        request = request_of_a_fork(connection, selector)
    if request is not None:
        run_request(request)


def request_of_a_fork(connection, selector):
    """Makes forks and tells how they end. Returns in each fork, with its request, and in the server at its end."""
    selector.register(connection, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fileobj is not connection:
                selector.unregister(key.fileobj)  # the handle of a fork that has ended
                pid, status = key.data
                how = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                with contextlib.suppress(BrokenPipeError):  # its user did not wait
                    os.write(status, str(how).encode())
                os.close(status)
                os.close(key.fd)
                continue
            message, files, *_ = socket.recv_fds(connection, LONGEST_MESSAGE, 4)
            if not message:
                return None
            pid = fork_with(*files)
            if pid == 0:
                return json.loads(message)
            selector.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, files[0]))


def fork_with(status, stdout, stderr, requests):
    """Forks. The server keeps the status channel, which it tells the child's number, and the child the others."""
    global inherited
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pid = os.fork()
    if pid == 0:
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        inherited = ForkServer(requests)
    else:
        os.write(status, str(pid).encode())
    for other in (requests if pid else status, stdout, stderr):
        os.close(other)
    return pid


def run_request(request):
    """Runs code as `python -c` does."""
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = ["-c", *request["arguments"]]
    for name, number, buffering in (("stdout", 1, -1), ("stderr", 2, 1)):  # the server's may be files, and these pipes
        errors = getattr(sys, name).errors
        setattr(sys, name, open(number, "w", buffering, encoding="utf-8", errors=errors, closefd=False))  # noqa: SIM115
    sys.modules["__main__"] = types.ModuleType("__main__")
    exec(compile(request["code"], "<string>", "exec"), vars(sys.modules["__main__"]))
