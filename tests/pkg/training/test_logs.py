"""Records count episodes and doors; logs keep what was written."""

import json

import pytest

torch = pytest.importorskip("torch")

from tests.pkg.training.runs import rolled_out, small  # noqa: E402

from doorstep.levels import GeneratedLevel  # noqa: E402
from doorstep.training import Ranks, Trainer, read_log  # noqa: E402
from doorstep.training.logs import JsonLines, Record, summarize_episodes  # noqa: E402


def record_of(update):
    return Record(update, 10 * update, 0.5 * update, 20.0, 0, None, (), (), {"entropy": 1.0})


def test_episodes_are_counted_once_by_world():
    trainer, rollout = rolled_out()
    rollout.starts[1:] = False
    assert summarize_episodes(rollout, trainer._levels, 2, Ranks()).episodes == 0
    # world 0 ends after steps 2 and 9, world 3 after step 9; the others go on
    for step, world, returns, largest_y in (
        (2, 0, (1.0, 3.0), (14.0, 12.0)),
        (9, 0, (0.0, 0.0), (27.0, 13.4)),
        (9, 3, (5.0, 3.0), (80.0, 40.1)),
    ):
        rows = slice(2 * world, 2 * world + 2)
        rollout.starts[step + 1, rows] = True
        rollout.returns[step, rows] = torch.tensor(returns)
        rollout.largest_y[step, rows] = torch.tensor(largest_y)
    summary = summarize_episodes(rollout, trainer._levels, 2, Ranks())
    assert summary.episodes == 3
    assert summary.mean_return == pytest.approx((2 + 0 + 4) / 3)
    assert summary.rooms_one == pytest.approx((1, 2 / 3, 1 / 3))
    assert summary.rooms_all == pytest.approx((2 / 3, 1 / 3, 1 / 3))


def end_all_worlds(rollout, largest_y):
    rollout.starts[1:] = False
    rollout.starts[5] = True
    rollout.largest_y[4] = largest_y


def test_retries_are_not_counted_and_doors_in_levels_with_the_references_rooms():
    trainer, rollout = rolled_out()
    end_all_worlds(rollout, 14.0)
    rollout.natural[4, 2:] = False
    rollout.largest_y[4, 4:] = 80.0
    summary = summarize_episodes(rollout, trainer._levels, 2, Ranks())
    assert (summary.episodes, summary.rooms_all) == (2, (1.0, 0.0, 0.0))
    mixed = ["room_types", "reference"]
    for levels, rooms in (("room_types", ()), (GeneratedLevel(first_room=2), ()), (mixed, (1.0, 0.5, 0.0))):
        trainer = Trainer(small().changed(levels=levels))
        trainer.update()
        end_all_worlds(trainer._rollout, 14.0)
        if levels is mixed:
            trainer._rollout.levels[4] = torch.tensor([0, 1, 2, 3, 4, 4])
            trainer._rollout.largest_y[4, 10:] = 30.0
        summary = summarize_episodes(trainer._rollout, trainer._levels, 2, Ranks())
        assert (summary.episodes, summary.rooms_all) == (6, rooms)


def test_a_log_has_a_line_of_json_for_each_record_and_a_resumed_one_drops_later_and_broken_lines(tmp_path):
    path = tmp_path / "log.jsonl"
    log = JsonLines(path)
    for update in (1, 2, 3):
        log.write(record_of(update))
        lines = [json.loads(line) for line in path.read_text().splitlines()]  # before it is closed
        assert lines == [json.loads(json.dumps(record_of(one).to_dict())) for one in range(1, update + 1)]
    log.close()
    with open(path, "ab") as file:
        file.write(b'[1]\n"x"\n{"update": "1"}\n' + b"[" * 100_000 + b'\n{"update": 4, "wor')
    JsonLines(path, resumed_at=2).close()
    assert read_log(path) == lines[:2]
    JsonLines(path).close()
    assert path.read_bytes() == b""
