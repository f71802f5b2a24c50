"""`maestro server status` and `maestro agent status`: ask a running process which dependency is the reason.

They read `/readyz?verbose` of the health port. A Go server has none; then its `/healthcheck` is shown.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from maestropy.agent import settings as agent_configuration
from maestropy.aio import checks
from maestropy.cli import screen
from maestropy.cli.check import output
from maestropy.cli.errors import CommandError, UsageError
from maestropy.cli.parsing.settings_commands import SettingsCommand
from maestropy.flags.declaration import flag, flags_of
from maestropy.server import settings as server_configuration
from maestropy.server.settings.load import FLAGS
from maestropy.untrusted import printable

if TYPE_CHECKING:
    import httpx

_SECONDS: Final = 10.0
"""For connecting, the request and the whole answer."""
_OTHER_SCHEME_SECONDS: Final = 2.0
_MAX_BYTES: Final = 1024**2
_PORTS: Final = {
    "server": "8083 by default (--health-check-server-bindport)",
    "agent": "8443 by default (--listen)",
}
_LINE: Final = re.compile(
    r"\[(?P<mark>[-+!])\](?P<name>.+?) (?P<outcome>ok|warning|failed|not seen)(?:: (?P<detail>.*))?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressSettings:
    """Address"""

    url: str = field(default="", metadata=flag("--url"))
    """The health port, such as http://localhost:8083. Default: that of a process on this host with the same flags."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusSettings:
    """The settings of the command itself."""

    address: AddressSettings = field(default_factory=AddressSettings)


_URL_FLAGS: Final = {found.name: found for found in flags_of(StatusSettings)}


def server(values: Mapping[str, str]) -> int:
    """Show the status of a server."""
    chosen, flags = output.split(values)
    url = flags.pop("--url", "")
    if not url:
        settings = server_configuration.load(flags, os.environ)
        scheme = "https" if settings.health.enable_https else "http"
        url = f"{scheme}://{_host(settings.http.hostname)}:{settings.health.port}"
    return _show("server", url, output_format=chosen)


def agent(values: Mapping[str, str]) -> int:
    """Show the status of an agent."""
    chosen, flags = output.split(values)
    url = flags.pop("--url", "")
    if not url:
        # The name of the consumer does not matter for the address.
        settings = agent_configuration.load(
            {"--consumer-name": "any", "--grpc-url": "localhost:1", **flags}, os.environ
        )
        listen = settings.process.listen
        if listen is None:
            raise UsageError("this agent has no port (--listen=0); give --url of another one")
        url = f"https://{_host(listen.host)}:{listen.port}"
    return _show("agent", url, output_format=chosen)


def _host(host: str) -> str:
    if host in {"", "0.0.0.0", "::"}:  # noqa: S104 - compared, not bound
        return "localhost"
    return f"[{host}]" if ":" in host else host


def _show(kind: str, url: str, *, output_format: str) -> int:
    if not url.startswith(("http://", "https://")):
        raise UsageError(f"--url={url} has no scheme; give http://HOST:PORT or https://HOST:PORT")
    status_code, body = _read(kind, url.rstrip("/"))
    results = parse(body)
    if not results:
        raise CommandError(
            f"{url} answers, and not as the health port of a Maestro {kind} does; give --url with that port, "
            f"{_PORTS[kind]}"
        )
    if output_format == "json":
        return output.write(results, title="", output="json")
    reasons = [check for check in results if check.outcome is checks.Outcome.FAILED]
    verdict = "ready" if status_code == 200 else "not ready"
    because = f", because of {', '.join(check.name for check in reasons)}" if reasons else ""
    note = body.partition("\n")[0]
    if not note.startswith("["):
        screen.write(f"{printable.escape(note)}\n")
    return output.write(results, title=f"{kind} {url}: {verdict}{because}", output="text")


def _read(kind: str, url: str) -> tuple[int, str]:
    import asyncio

    import httpx

    try:
        return asyncio.run(asyncio.wait_for(_ask(kind, url), _SECONDS))
    except TimeoutError as error:
        raise CommandError(
            f"the {kind} at {url} has not answered completely within {_SECONDS:.0f} s; "
            "check that --url is its health port"
        ) from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        reason = str(error) or type(error).__name__
        raise CommandError(f"the {kind} at {url} does not answer: {reason}; {_advice(kind, url, error)}") from error


def _advice(kind: str, url: str, error: "httpx.HTTPError | httpx.InvalidURL") -> str:
    """Return what to change, if nobody answers as a health port does."""
    import asyncio

    import httpx

    scheme, _, rest = url.partition("://")
    other = f"{'http' if scheme == 'https' else 'https'}://{rest}"
    if isinstance(error, httpx.TransportError) and asyncio.run(_speaks(other)):
        return f"it answers over {other.partition(':')[0]}: give --url {other}"
    if isinstance(error, httpx.RemoteProtocolError):
        return f"it may be a port of gRPC; give --url with the health port, {_PORTS[kind]}"
    return f"check that it runs, and give --url of its health port, {_PORTS[kind]}"


async def _speaks(url: str) -> bool:
    """Return whether HTTP is spoken at this address."""
    import asyncio

    import httpx

    try:
        async with httpx.AsyncClient(verify=False, timeout=_OTHER_SCHEME_SECONDS, trust_env=False) as client:  # noqa: S501 - as in _ask
            await asyncio.wait_for(client.head(f"{url}/livez"), _OTHER_SCHEME_SECONDS)
    except (httpx.HTTPError, httpx.InvalidURL, TimeoutError):
        return False
    return True


async def _ask(kind: str, url: str) -> tuple[int, str]:
    import httpx

    # Like a kubelet: the certificate is not verified, and nothing secret is sent.
    async with httpx.AsyncClient(verify=False, timeout=_SECONDS, trust_env=False) as client:  # noqa: S501 - see above
        status_code, body = await _get(client, f"{url}/readyz?verbose")
        if status_code != 404 or kind != "server":
            return status_code, body
        status_code, body = await _get(client, f"{url}/healthcheck")
        if status_code == 404:
            return status_code, ""
        outcome = "ok" if status_code == 200 else "failed"
        return status_code, f"[{'+' if outcome == 'ok' else '-'}]healthcheck {outcome}: {body}"


async def _get(client: "httpx.AsyncClient", url: str) -> tuple[int, str]:
    # Not compressed, so that what is counted is what is kept.
    async with client.stream("GET", url, headers={"Accept-Encoding": "identity"}) as answer:
        body = bytearray()
        async for chunk in answer.aiter_raw():
            body += chunk
            if len(body) > _MAX_BYTES:
                raise CommandError(
                    f"{url} answers with more than {_MAX_BYTES // 1024**2} MiB; check that --url is the "
                    "health port of Maestro"
                )
        return answer.status_code, body.decode(errors="replace")


def parse(body: str) -> list[checks.Check]:
    """Return the checks of a response of `/readyz?verbose`."""
    return [
        checks.Check(name=found["name"], outcome=checks.Outcome(found["outcome"]), detail=found["detail"] or "")
        for found in map(_LINE.fullmatch, body.splitlines())
        if found is not None
    ]


_TEXT: Final = (
    "Show whether a running {kind} is ready, and which dependency is the reason if not: reads /readyz?verbose of its "
    "health port. Takes the flags of `maestro {kind}`."
)

SERVER = SettingsCommand(
    name="server status",
    flags=output.flags_with_output(FLAGS) | _URL_FLAGS,
    execute=server,
    text=_TEXT.format(kind="server"),
    examples=f"""\
Examples:

  maestro server status
      the server on this host

  maestro server status --url http://localhost:8083 -o json
      behind `kubectl port-forward deploy/maestro 8083`, for scripts

{output.EXIT_CODES}""",
)

AGENT = SettingsCommand(
    name="agent status",
    flags=output.flags_with_output(agent_configuration.FLAGS) | _URL_FLAGS,
    execute=agent,
    text=_TEXT.format(kind="agent"),
    examples=f"""\
Examples:

  maestro agent status
      the agent on this host

  maestro agent status --url https://localhost:8443 -o json
      behind `kubectl port-forward deploy/maestro-agent 8443`, for scripts

{output.EXIT_CODES}""",
)
