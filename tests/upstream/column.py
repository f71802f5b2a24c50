"""Runs one suite in one column; started in namespaces of its own (`pod_network.enclosed`), where every port is free."""

import argparse
import os
from pathlib import Path

from tests.upstream.suites import SUITES


def main() -> None:
    """Run it; the reports say what came out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--suite", choices=SUITES, default="e2e")
    parser.add_argument("column")
    parser.add_argument("folder", type=Path)
    parser.add_argument("words", nargs="*", help="more flags for the suite")
    options = parser.parse_args()
    SUITES[options.suite](options.column, folder=options.folder, words=options.words)
    # Threads of pods are left to the end of the namespace.
    os._exit(0)


if __name__ == "__main__":
    main()
