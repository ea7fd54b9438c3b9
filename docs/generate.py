"""Writes the tables of the documentation that come from the headers; the output is committed.

python docs/generate.py           writes them
python docs/generate.py --check   exits with 1 and names the pages that are not current

A table stands between the markers `<!-- generated: NAME -->` and `<!-- end -->` of a page: tensors, state fields and
camera tensors, renderers and fields of configurations from native/include, the stages of a step from
native/src/sim/stage_table.h, fields of configurations without a native twin from their classes, public names from the
sources of the package, golden results from theirs.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
STAGES = ROOT / "native" / "src" / "sim" / "stage_table.h"
sys.path[:0] = [str(DOCS), str(ROOT / "native")]

import config_tables  # noqa: E402
import public_names  # noqa: E402

from config_fields import choices, number, part_of  # noqa: E402
from header_parser import RENDER_HEADER_PATH, ConfigRow, Header, TensorRow, parse_header  # noqa: E402

MARKED = re.compile(r"(<!-- generated: (?P<name>\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a page is not current")
    check = parser.parse_args().check
    stale = [(path, text) for path, text in generate() if path.read_text("utf-8") != text]
    for path, text in stale:
        name = path.relative_to(ROOT)
        if check:
            print(f"{name} is not current: run python docs/generate.py", file=sys.stderr)
        else:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {name}")
    return 1 if check and stale else 0


def generate() -> Iterator[tuple[Path, str]]:
    """Every page that has generated tables, with its current text."""
    for path in sorted(DOCS.rglob("*.md")):
        text = path.read_text("utf-8")
        if MARKED.search(text):
            yield path, MARKED.sub(lambda match: f"{match[1]}{TABLES[match['name']]()}\n{match[3]}", text)


def tensor_table() -> str:
    return field_table(parse_header().tensors)


def state_table() -> str:
    return field_table(parse_header().state_fields)


def observation_part_table() -> str:
    """The values of an agent's part, and what they are."""
    rows = parse_header().observation_parts
    cells = [(f"`{row.name}`", f"[{', '.join(row.shape)}]", row.sentence) for row in rows]
    return table(("part", "shape", "is"), cells)


def camera_tensor_table() -> str:
    return field_table(parse_header(RENDER_HEADER_PATH).camera_tensors)


def renderer_table() -> str:
    rows = parse_header(RENDER_HEADER_PATH).renderers
    simulators = {"ANY": "on CPU and CUDA", "CPU": "on the CPU"}
    materials = {"NONE": "", "HLSL": " Takes [materials in HLSL](../developers/materials.md)."}
    return table(
        ("`renderer`", "draws simulators", "is"),
        [
            (
                f'`"{row.name}"`' + (', `"auto"`' if row is rows[0] else ""),
                simulators[row.simulators],
                row.sentence + materials[row.materials],
            )
            for row in rows
        ],
    )


def config_table(struct: str) -> str:
    header = parse_header()
    return table(
        ("field", "values", "default", "unit", "is"),
        [
            (
                f"`{row.name}`" + ("" if row.of == "ALL" else f" (`{row.of.lower()}`)"),
                allowed(header, row),
                default(header, row),
                row.unit,
                row.sentence,
            )
            for row in header.configs[struct]
        ],
    )


def allowed(header: Header, row: ConfigRow) -> str:
    match row.kind:
        case "FLAG":
            return "true, false"
        case "CHOICE" | "TYPE":
            return ", ".join(f"`{name}`" for name in choices(header, row))
        case "DEVICE":
            return "a device"
        case "DEVICES":
            return "devices, or none"
        case "OBSERVATIONS":
            return "parts, or `by_name`"
        case "PART":
            return f"a {part_of(row).lower()}"
    low, high = number(header, row.low), number(header, row.high)
    if row.high == "DS_NO_LIMIT":
        return f"at least {low:,}"
    if row.kind == "POSITIVE":
        return f"above {low:,}, at most {high:,}"
    return f"{low:,} to {high:,}" + (", or none" if row.kind == "OPTIONAL" else "")


def default(header: Header, row: ConfigRow) -> str:
    if row.kind == "REQUIRED":
        return "must be given"
    if row.kind == "OBSERVATIONS":
        return "all but `physics`"
    if row.kind == "PART":
        return "must be given" if row.name == "simulator" else "its default"
    if row.kind in ("CHOICE", "TYPE", "DEVICE"):
        return f"`{choices(header, row)[int(number(header, row.default))]}`"
    value = number(header, row.default)
    if row.kind == "FLAG":
        return str(bool(value)).lower()
    is_none = row.kind == "DEVICES" or (row.kind == "OPTIONAL" and value < number(header, row.low))
    return "none" if is_none else f"{value:,}"


def evaluation_table() -> str:
    from doorstep.evaluation.config import EvaluationConfig

    return table(config_tables.HEAD, list(config_tables.rows_of(EvaluationConfig)))


def ray_table() -> str:
    from doorstep.ray.config import RayConfig

    return table(config_tables.HEAD, list(config_tables.rows_of(RayConfig)))


def training_table(name: str) -> str:
    cls = getattr(config_tables.training_configs(), name)
    return table(config_tables.HEAD, list(config_tables.rows_of(cls)))


def training_type_table(base: str, default: str) -> str:
    configs = config_tables.training_configs()
    rows = config_tables.rows_of_types(getattr(configs, base), getattr(configs, default).type)
    return table(config_tables.HEAD, list(rows))


def golden_table() -> str:
    from doorstep._golden import HASHES, RUNS

    cells = [(name, f"{run.num_worlds}", f"{run.steps}", f"`{HASHES[name]:016X}`") for name, run in RUNS.items()]
    return table(("run", "worlds", "steps", "hash"), cells)


def field_table(rows: tuple[TensorRow, ...]) -> str:
    return table(
        ("name", "shape", "type", "access", "content"),
        [
            (
                f"`{row.name}`",
                f"[{', '.join(row.shape)}]",
                row.dtype.lower(),
                "read, write" if row.writable else "read",
                row.sentence,
            )
            for row in rows
        ],
    )


def stage_table() -> str:
    text = re.sub(r"\s*\\\n\s*", " ", STAGES.read_text("utf-8"))
    body = next(line for line in text.splitlines() if "define DS_STAGE_TABLE(X)" in line)
    rows = re.findall(r'X\((\w+), (\w+),\s*\(([^)]*)\),\s*"([^"]*)"\)', body)
    if len(rows) < body.count(" X("):
        raise ValueError(f"a row of the stage table in {STAGES} is not understood")
    return table(
        ("stage", "runs over", "reads", "writes", "does"),
        [
            (f"`{name}`", words(items), *map(", ".join, accesses(parameters)), sentence)
            for name, items, parameters, sentence in rows
        ],
    )


def accesses(parameters: str) -> tuple[list[str], list[str]]:
    """What a stage reads and what it writes, by the types of its parameters; see DS_STAGE_TABLE."""
    reads: list[str] = []
    writes: list[str] = []
    for parameter in parameters.split(", "):
        kind = parameter.rsplit(" ", 1)[0]
        plain = re.sub(r"const |Each<|[>&]", "", kind)
        if plain.endswith("Index") or plain == "AgentCount":
            continue
        (reads if "const " in kind else writes).append(words(plain))
    return reads, writes


def words(name: str) -> str:
    """`FlownPose` as "flown pose"."""
    return re.sub(r"(?<!^)([A-Z])", r" \1", name).lower()


def public_name_tables() -> str:
    modules = list(public_names.public_names())
    parts = [f"{sum(len(names) for _, names in modules)} names in {len(modules)} modules."]
    for module, names in modules:
        rows = [(f"`{name}`", sentence) for name, sentence in names.items()]
        parts += [f"## {module}", table(("name", "is"), rows)]
    return "\n\n".join(parts)


TABLES: dict[str, Callable[[], str]] = {
    "public_names": public_name_tables,
    "tensors": tensor_table,
    "observation_parts": observation_part_table,
    "state": state_table,
    "camera_tensors": camera_tensor_table,
    "renderers": renderer_table,
    "golden_results": golden_table,
    "stages": stage_table,
    "simulator_config": lambda: config_table("ds_simulator_config"),
    "sampling_config": lambda: config_table("ds_sampling_config"),
    "scheduler_config": lambda: config_table("ds_scheduler_config"),
    "controller_config": lambda: config_table("ds_controller_config"),
    "rollout_config": lambda: config_table("ds_rollout_config"),
    "evaluation_config": evaluation_table,
    "ray_config": ray_table,
    "training_config": lambda: training_table("TrainingConfig"),
    "curriculum_config": lambda: training_type_table("CurriculumConfig", "UniformCurriculum"),
    "network_config": lambda: training_type_table("NetworkConfig", "MLPNetwork"),
    "training_experience_config": lambda: training_table("ExperienceConfig"),
    "ppo_config": lambda: training_table("PPOConfig"),
}


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
