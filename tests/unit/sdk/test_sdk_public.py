"""The public face: its names, its price, and that both clients have the same methods."""

import inspect
import subprocess
import sys

import pytest

import pymaestro
from pymaestro.sdk import blocking, bundles, consumers, works


def test_every_public_name_is_there() -> None:
    assert all(getattr(pymaestro, name) is not None for name in pymaestro.__all__)
    assert sorted(pymaestro.__all__) == pymaestro.__all__
    with pytest.raises(AttributeError):
        _ = pymaestro.nothing  # type: ignore[attr-defined]


def test_importing_the_package_imports_nothing_else() -> None:
    script = "import sys, pymaestro; sys.exit(any(name in sys.modules for name in ('grpc', 'httpx', 'asyncio')))"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


@pytest.mark.parametrize(
    ("original", "without_await"),
    [
        (works.AsyncWorks, blocking.Works),
        (consumers.AsyncConsumers, blocking.Consumers),
        (bundles.AsyncBundles, blocking.Bundles),
        (pymaestro.AsyncMaestro, pymaestro.Maestro),
    ],
)
def test_both_clients_have_the_same_methods_with_documentation(original: type, without_await: type) -> None:
    names = [name for name, _ in inspect.getmembers(original) if not name.startswith("_")]
    for name in names:
        assert name in vars(without_await), name
        assert vars(without_await)[name].__doc__
