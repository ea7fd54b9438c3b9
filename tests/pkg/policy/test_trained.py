"""The policies that come with doorstep pass the doors."""

import doorstep

OF_EPISODES = {"seed": 2026, "num_threads": 1}  # in levels that were not trained on


def test_both_agents_leave_levels_that_they_have_never_seen():
    first, second, third = doorstep.evaluate("trained", episodes=96, worlds=64, **OF_EPISODES).score("trained").rooms
    assert min(first.all.value, second.all.value) > 0.97
    assert min(third.one.value, third.all.value) > 0.9


def test_the_general_one_leaves_rooms_of_every_type():
    evaluation = doorstep.evaluate("general", levels=["room_types", "reference"], episodes=48, **OF_EPISODES)
    out = {score.level: score.rooms[2].all.value for score in evaluation.scores}
    least = {"single_button": 0.95, "double_button": 0.95, "cube_blocking": 0.9, "cube_buttons": 0.55, "reference": 0.8}
    assert out.keys() == least.keys()
    assert all(out[level] > share for level, share in least.items()), out
