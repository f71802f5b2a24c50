"""The public face: its names, its price, and that both clients have the same methods."""

import inspect
import subprocess
import sys

import pytest

import maestropy
from maestropy import Maestro, MaestroError, Work, errors
from maestropy.sdk import blocking, bundles, consumers, works


def test_every_public_name_is_there() -> None:
    assert all(getattr(maestropy, name) is not None for name in maestropy.__all__)
    assert sorted(maestropy.__all__) == maestropy.__all__
    with pytest.raises(AttributeError):
        _ = maestropy.nothing  # type: ignore[attr-defined]


def test_importing_the_package_imports_nothing_else() -> None:
    script = "import sys, maestropy; sys.exit(any(name in sys.modules for name in ('grpc', 'httpx', 'asyncio')))"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


@pytest.mark.parametrize(
    ("original", "without_await"),
    [
        (works.AsyncWorks, blocking.Works),
        (consumers.AsyncConsumers, blocking.Consumers),
        (bundles.AsyncBundles, blocking.Bundles),
        (maestropy.AsyncMaestro, maestropy.Maestro),
    ],
)
def test_both_clients_have_the_same_methods_with_documentation(original: type, without_await: type) -> None:
    names = [name for name, _ in inspect.getmembers(original) if not name.startswith("_")]
    for name in names:
        assert name in vars(without_await), name
        assert vars(without_await)[name].__doc__


def test_a_closed_client_says_so() -> None:
    with Maestro(environ={}, api_url="http://127.0.0.1:1", grpc_url="127.0.0.1:1", source="me") as client:
        works = client.works("c1")
        listed, watched = works.list(), works.watch()
    work = Work("x").add({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}})
    for call in (
        lambda: works.get("x"),
        lambda: works.create(work),
        lambda: next(listed),
        lambda: next(watched),
        lambda: client.consumers.get("c1"),
        lambda: client.works("c1"),
    ):
        with pytest.raises(MaestroError, match="the client is closed; make a new one"):
            call()
    watched.close()
    client.close()


def test_a_closed_client_says_so_while_another_one_is_open() -> None:
    environ = {"MAESTRO_API_URL": "http://127.0.0.1:1", "MAESTRO_SOURCE_ID": "me"}
    with Maestro(environ=environ), Maestro(environ=environ) as client:
        works = client.works("c1")
        client.close()
        with pytest.raises(MaestroError, match="the client is closed"):
            works.get("x")


@pytest.mark.parametrize("size", [0, -1])
def test_a_page_of_nothing_is_refused(size: int) -> None:
    with (
        Maestro(environ={}, api_url="http://127.0.0.1:1", source="me") as client,
        pytest.raises(errors.Invalid, match="page_size is"),
    ):
        next(client.works("c1").list(page_size=size))
