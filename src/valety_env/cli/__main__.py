"""`python -m valety_env.cli`, the command line without its script."""

import sys

from valety_env.cli import main

if __name__ == "__main__":
    sys.exit(main())
