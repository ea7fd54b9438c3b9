"""Prints the table of golden hashes as the installed library computes it; paste it into tests/golden.py.

Run from the root of the project: python -m tests.update_golden_hashes
"""

from tests.golden import SCENES


def main() -> None:
    print("HASHES: dict[str, int] = {")
    for name, run in SCENES.items():
        print(f'    "{name}": 0x{run.history_hash():016X},')
    print("}")


if __name__ == "__main__":
    main()
