"""The public names, the cost of importing them, and the equal methods of both clients."""

import inspect
import pydoc
import subprocess
import sys
import threading
from typing import Any

import pytest

import maestropy
from maestropy import Maestro, MaestroError, RetryPolicy, Work, errors
from maestropy.sdk import blocking, consumers, resource_bundles, settings, works


def test_every_public_name_is_importable() -> None:
    assert all(getattr(maestropy, name) is not None for name in maestropy.__all__)
    assert sorted(maestropy.__all__) == maestropy.__all__
    with pytest.raises(AttributeError):
        _ = maestropy.nothing


def test_importing_the_package_does_not_import_the_client() -> None:
    script = "import sys, maestropy; sys.exit(any(name in sys.modules for name in ('grpc', 'httpx', 'asyncio')))"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


@pytest.mark.parametrize(
    ("original", "blocking_class"),
    [
        (works.AsyncWorks, blocking.Works),
        (consumers.AsyncConsumers, blocking.Consumers),
        (resource_bundles.AsyncResourceBundles, blocking.ResourceBundles),
        (maestropy.AsyncMaestro, maestropy.Maestro),
    ],
)
def test_blocking_client_has_the_methods_of_the_asynchronous_one(original: type, blocking_class: type) -> None:
    names = [name for name, _ in inspect.getmembers(original) if not name.startswith("_")]
    for name in names:
        assert name in vars(blocking_class), name
        assert vars(blocking_class)[name].__doc__


@pytest.mark.parametrize("client_class", [maestropy.AsyncMaestro, Maestro])
def test_help_lists_every_option_with_its_type(client_class: type) -> None:
    parameters = inspect.signature(client_class).parameters
    assert set(parameters) == {*settings.ClientOptions.__annotations__, "environ", "transport"}
    assert all(parameter.kind is inspect.Parameter.KEYWORD_ONLY for parameter in parameters.values())
    shown = pydoc.plain(pydoc.render_doc(client_class))
    assert "token_file: str | pathlib" in shown
    assert "kwargs" not in shown.partition("Methods defined here")[0]
    for name in parameters:
        assert name in (vars(client_class)["__init__"].__doc__ or "")


@pytest.mark.parametrize("name", sorted(settings.ClientOptions.__annotations__))
def test_option_that_is_none_means_its_default(name: str) -> None:
    environ = {"MAESTRO_API_URL": "http://127.0.0.1:1", "MAESTRO_TOKEN_FILE": "/token", "MAESTRO_SOURCE_ID": "me"}
    options: dict[str, Any] = {name: None}
    assert maestropy.AsyncMaestro(environ=environ, **options).settings == settings.load({}, environ)


async def test_client_closes_where_an_event_loop_runs() -> None:
    environ = {"MAESTRO_API_URL": "http://127.0.0.1:1", "MAESTRO_SOURCE_ID": "me"}
    with Maestro(environ=environ, retry=RetryPolicy(attempts=1)) as client, pytest.raises(errors.Unavailable):
        client.works("c1").get("x")
    assert not [thread for thread in threading.enumerate() if thread.name == "maestro-client"]


def test_closed_client_raises_an_error() -> None:
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
        with pytest.raises(MaestroError, match="the client is closed; create a new one"):
            call()
    watched.close()
    client.close()


def test_closed_client_raises_an_error_while_another_is_open() -> None:
    environ = {"MAESTRO_API_URL": "http://127.0.0.1:1", "MAESTRO_SOURCE_ID": "me"}
    with Maestro(environ=environ), Maestro(environ=environ) as client:
        works = client.works("c1")
        client.close()
        with pytest.raises(MaestroError, match="the client is closed"):
            works.get("x")


@pytest.mark.parametrize("size", [0, -1])
def test_page_size_below_one_is_rejected(size: int) -> None:
    with (
        Maestro(environ={}, api_url="http://127.0.0.1:1", source="me") as client,
        pytest.raises(errors.Invalid, match="page_size is"),
    ):
        next(client.works("c1").list(page_size=size))
