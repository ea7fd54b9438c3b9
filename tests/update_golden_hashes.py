"""Prints the table of golden hashes as the installed library computes it; paste it into pkg/doorstep/_golden.py.

Run from the root of the project: python -m tests.update_golden_hashes
"""

from doorstep._golden import RUNS


def main() -> None:
    print("HASHES: dict[str, int] = {")
    for name, run in RUNS.items():
        print(f'    "{name}": 0x{run.hash():016X},')
    print("}")


if __name__ == "__main__":
    main()
