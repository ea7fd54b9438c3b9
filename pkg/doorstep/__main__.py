"""`python -m doorstep` is the command `doorstep`."""

import sys

from doorstep.cli import main

if __name__ == "__main__":
    sys.exit(main())
