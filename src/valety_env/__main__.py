"""`python -m valety_env`: the command line."""

import sys

from valety_env.cli import main

if __name__ == "__main__":
    sys.exit(main())
