"""How soon is a whole fleet ready for a test?

    python -m bench.fleet [runs]

PostgreSQL, a server, a Kubernetes API and an agent, as `maestropy.testing.running_fleet` starts them. The first run on
a computer makes the template of the database; the best of all runs counts.
"""

import sys
import time

STARTED = time.perf_counter()

from maestropy.testing import running_fleet


def main() -> None:
    print(f"import  {time.perf_counter() - STARTED:5.2f} s, once")
    ready, gone = [], []
    for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 5):
        begin = time.perf_counter()
        with running_fleet():
            ready.append(time.perf_counter() - begin)
            begin = time.perf_counter()
        gone.append(time.perf_counter() - begin)
    print(f"ready   {min(ready):5.2f} s  ({', '.join(f'{each:.2f}' for each in ready)})")
    print(f"stopped {min(gone):5.2f} s")


if __name__ == "__main__":
    main()
