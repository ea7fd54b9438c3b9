"""The page of public names has what the package offers, and says of each name what it is."""

from public_names import public_names

import doorstep


def test_every_name_has_a_sentence():
    names = {f"{module}.{name}": sentence for module, rows in public_names() for name, sentence in rows.items()}
    assert len(names) > 100
    assert not [name for name, sentence in names.items() if not sentence]


def test_names_of_the_package_are_there_and_stand_once():
    modules = dict(public_names())
    assert set(modules["doorstep"]) == set(doorstep.__all__) - {"__version__"}
    assert "EpisodeRequest" not in modules["doorstep.rollouts"]  # which offers it too
    assert "write_minari" in modules["doorstep.rollouts"]
