"""Calls that raise, in one line each."""

import pytest

import doorstep


def refuses(match, call, /, *given, error=doorstep.ArgumentError, argument=None, **named):
    """The call raises the error, whose text matches and which names the argument; None: whatever it says or names."""
    with pytest.raises(error, match=match) as caught:
        call(*given, **named)
    found = getattr(caught.value, "argument", None)
    del caught  # its traceback refers to this call and to what it was given
    assert argument is None or found == argument


def assert_refused(call, rows, error=doorstep.ArgumentError, argument=None):
    """The call refuses what each row begins with, keywords in a dictionary or one argument, with an error whose text
    contains, in this order, what " ... " separates in the row's text, and whose argument it names or is this one."""
    wrong = []
    for given, says in rows:
        try:
            call(**given) if isinstance(given, dict) else call(given)
        except error as caught:  # noqa: PERF203
            message, at, named = str(caught), 0, str(caught.argument)
            for piece in says.split(" ... "):
                at = message.find(piece, at) + len(piece) if at >= 0 and piece in message[at:] else -1
            if at < 0 or (named != argument if argument else named.rpartition(".")[2].partition("[")[0] not in message):
                wrong.append(f"{says!r} is not in {message!r}, or its argument is {named!r}")
        else:
            wrong.append(f"accepted: {given!r}")
    assert not wrong, "\n".join(wrong)


def raising(error, /, *arguments, **options):
    """A function that raises a new error of these arguments, whatever it is given."""

    def call(*_, **__):
        raise error(*arguments, **options)

    return call
