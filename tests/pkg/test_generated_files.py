"""What repeats the headers elsewhere is current: declarations in Python and C, tables of the documentation."""

import sys
from pathlib import Path

import pytest

with pytest.MonkeyPatch.context() as patch:
    patch.setattr(sys, "path", [*sys.path])  # to which one adds the sources, which processes of tests must not find
    import generate

    import generate_bindings

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("script", [generate_bindings, generate], ids=["bindings", "docs"])
def test_generated_files_are_current_and_the_check_names_those_that_are_not(script, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["generate", "--check"])
    texts, whole = {}, script.generate

    def recorded(*headers):
        texts.update(whole(*headers))
        return texts if script is generate_bindings else texts.items()

    monkeypatch.setattr(script, "generate", recorded)
    assert script.main() == 0
    assert capsys.readouterr() == ("", "")
    whole = {path: f"{text}\nx" for path, text in texts.items()}.items
    monkeypatch.setattr(script, "generate", lambda *_: dict(whole()) if script is generate_bindings else whole())
    assert script.main() == 1
    named = [line.partition(" ")[0] for line in capsys.readouterr().err.splitlines()]
    assert named == [str(path.relative_to(REPOSITORY)) for path in texts]
    assert len(named) > 4
    assert not any(path.read_text("utf-8").endswith("\nx") for path in texts)
