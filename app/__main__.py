"""`python -m kernelport`, the same as the command `kernelport`. Runs on: anywhere."""

import sys

from .cli.main import main

if __name__ == "__main__":
    sys.exit(main())
