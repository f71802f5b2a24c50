"""Order the test files for `pytest -n`: the files that start processes first and mixed, the unit tests last.

With `--no-loadscope-reorder` workers take the files in this order. Long files then begin early, short ones fill the
end, and tests of one kind (such as the attacks, which keep the processor busy) seldom run beside each other.
`tests.conftest` imports the hook.
"""

from collections import defaultdict
from collections.abc import Iterable

import pytest

_LAST = "tests/unit"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sort the tests of a worker; without workers, their order stays."""
    if hasattr(config, "workerinput"):
        places = ordered(item.nodeid.partition("::")[0] for item in items)
        items.sort(key=lambda item: places[item.nodeid.partition("::")[0]])


def ordered(files: Iterable[str]) -> dict[str, tuple[bool, float]]:
    """Return the place of each file: those of each folder are spread evenly over the whole run."""
    folders: dict[str, list[str]] = defaultdict(list)
    for file in dict.fromkeys(files):
        folders["/".join(file.split("/")[:2])].append(file)
    return {
        file: (folder == _LAST, (position + 0.5) / len(names))
        for folder, names in folders.items()
        for position, file in enumerate(names)
    }
