"""Ctrl-C at every place of a call where Python may raise KeyboardInterrupt, each in a run of its own."""

import dis
import gc
import re
import sys

# CPython handles signals in the main thread when a function begins or goes on, after a call of a function in C, and at
# a jump back. These are the instructions of all its versions that do so.
_HANDLES_SIGNALS = re.compile("RESUME|CALL(?!_INTRINSIC)|JUMP_BACKWARD|POP_JUMP_BACKWARD|JUMP_ABSOLUTE")


class _Watch:
    """Traces what a call executes outside its own file."""

    def __init__(self, call, stop):
        self._file, self._stop = call.__code__.co_filename, stop
        self._handles_signals = {}  # whether the latest instruction does
        self.seen = {}

    def __call__(self, frame, event, _):
        if frame.f_code.co_filename == self._file:
            return None
        if frame.f_back is not None:
            self._handles_signals[frame.f_back] = False  # a function in Python returns without a look at signals
        self._handles_signals[frame] = True
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._step

    def forget_frames(self):
        """Those that go on later, of generators, refer to this, and must not keep all others."""
        self._handles_signals.clear()

    def _step(self, frame, event, _):
        if event == "return":  # what is local to the function goes when it does
            self._handles_signals.pop(frame, None)
        if event == "exception":  # also one that is thrown into a generator, to close it: no look at signals
            self._handles_signals[frame] = False
        if event != "opcode":
            return self._step
        place = frame.f_code, frame.f_lasti
        if self._handles_signals[frame]:
            self.seen[place] = None
            if place == self._stop:
                self._stop = None
                raise KeyboardInterrupt
        name = dis.opname[frame.f_code.co_code[frame.f_lasti]]
        self._handles_signals[frame] = _HANDLES_SIGNALS.match(name) is not None
        return self._step


def _run(call, stop):
    watch, before = _Watch(call, stop), sys.gettrace()
    gc.disable()  # whose callbacks of other libraries are no places of the call
    try:
        sys.settrace(watch)
        try:
            call()
        finally:
            sys.settrace(before)  # a Ctrl-C that the last finalizer of the call has postponed is raised here
    finally:
        gc.enable()
        watch.forget_frames()
    return watch


def interrupted_everywhere(call):
    """Makes the call again and again, each time interrupted at another place, and yields the place after each."""
    done, waiting = set(), []
    for _ in range(2):  # since CPython 3.12 a function that is traced for the first time shows no instructions
        waiting = list(_run(call, None).seen)
        yield "nowhere"
    while waiting:
        place = waiting.pop()
        done.add(place)
        try:
            seen = _run(call, place).seen
        except BaseException as error:
            if not isinstance(error, KeyboardInterrupt) and not isinstance(error.__context__, KeyboardInterrupt):
                raise
            seen = {}
        code, offset = place
        line = next((row for start, end, row in code.co_lines() if start <= offset < end), None)
        yield f"{code.co_filename}:{line} ({code.co_name}, instruction {offset})"
        waiting += [other for other in seen if other not in done and other not in waiting]
