"""How fast, side by side with the Go Maestro, in one run."""

import sys
from pathlib import Path

# The servers, agents, brokers and clusters of the peers' tests are what is measured here.
for _folder in ("tests/peers", "tests"):
    sys.path.append(str(Path(__file__).resolve().parent.parent / _folder))
