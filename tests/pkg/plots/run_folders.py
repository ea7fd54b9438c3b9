"""Folders as training leaves them, made without training."""

import json


def record_of(update, episodes=4, returns=1.0, shares=(1.0, 0.5, 0.0)):
    """A line of a log; of an update in which no episode ended if `returns` is None."""
    if returns is None:
        episodes, shares = 0, ()
    times = {"world_steps": 1000 * update, "seconds": 0.5 * update, "world_steps_per_second": 2000.0}
    rooms = {"rooms_one": list(shares), "rooms_all": [share / 2 for share in shares]}
    rooms["losses"] = {"entropy": 1.0}
    return {"update": update, "episodes": episodes, "mean_return": returns, **times, **rooms}


def level_record_of(update, success, levels):
    """A line of the log of a run with levels: their episodes and successes."""
    counts = {name: {"episodes": ended, "successes": won, "weight": 0.5} for name, (ended, won) in levels.items()}
    return {**record_of(update), "rooms_one": [], "rooms_all": [], "success": success, "levels": counts}


def write_run(folder, records, seed=0, learning_rate=0.001):
    """A run's folder with config and log."""
    folder.mkdir()
    config = {"seed": seed, "simulator": {"seed": seed, "num_worlds": 4}, "ppo": {"learning_rate": learning_rate}}
    (folder / "config.json").write_text(json.dumps({**config, "num_updates": len(records)}))
    (folder / "log.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return folder
