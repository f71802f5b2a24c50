"""Read a Maestro server for an archive: REST API, health and metrics ports, and the dates of its certificates."""

import asyncio
import ssl
import time
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import asdict
from email.utils import parsedate_to_datetime
from typing import Any, Final
from urllib.parse import urlsplit

import httpx

from maestropy.diagnose.collection.scope import Scope
from maestropy.diagnose.collection.sources.database import MOST_WORKS, TooManyWorks
from maestropy.diagnose.collection.staging import DocumentFile, Staging
from maestropy.sdk.client import AsyncMaestro
from maestropy.sdk.errors import MaestroError, Unsupported
from maestropy.trace.errors import NoAccess
from maestropy.trace.work import query

_SECONDS: Final = 10.0
_MOST_BYTES: Final = 32 << 20
_HISTORY: Final = 20_000
"""Entries of the history, the newest."""
_CONNECTIONS: Final = ("agent.connected", "agent.disconnected")


async def collect_works(client: AsyncMaestro, staging: Staging, *, scope: Scope) -> int:
    """Write the resource bundles; return how many there are."""
    try:
        with DocumentFile(staging, "server/resource-bundles.jsonl") as file:
            async with aclosing(client.resource_bundles.list(search=_search(scope))) as bundles:
                async for bundle in bundles:
                    file.add(bundle)
                    if file.count > MOST_WORKS:
                        break
    except MaestroError as error:
        raise NoAccess(f"the REST API does not list works: {error}") from error
    if file.count > MOST_WORKS:
        raise TooManyWorks
    return file.count


def _search(scope: Scope) -> str:
    terms = [f"consumer_name = '{_quoted(scope.consumer)}'"] if scope.consumer else []
    if scope.work:
        identifier = query.named_by(scope.work)
        if name := identifier.get("resource_id"):
            terms.append(f"id = '{_quoted(name)}'")
        elif name := identifier.get("work_name"):
            terms.append(f"payload->'metadata'->>'name' = '{_quoted(name)}'")
        else:
            raise NoAccess("--work takes a resource ID or a work name where only the REST API can be read")
    return " and ".join(terms)


def _quoted(text: str) -> str:
    return text.replace("'", "''")


async def collect_rest(client: AsyncMaestro, staging: Staging, *, scope: Scope) -> Sequence[str]:
    """Write consumers, holds and the history; return sentences about what the server does not have."""
    missing: list[str] = []
    try:
        search = f"name = '{_quoted(scope.consumer)}'" if scope.consumer else ""
        async with aclosing(client.consumers.list(search=search)) as consumers:
            staging.documents(
                "server/consumers.jsonl", [{"trace": "consumer", **asdict(consumer)} async for consumer in consumers]
            )
    except MaestroError as error:
        raise NoAccess(f"the REST API does not list consumers: {error}") from error
    try:
        holds = await client.consumers.holds()
        own = [hold for name, hold in holds.items() if scope.consumer in {"", name}]
        # As the database has them, so that one reader serves both.
        staging.documents(
            "server/holds.jsonl",
            [{"trace": "hold", "consumer_name": hold.consumer, **_without_consumer(asdict(hold))} for hold in own],
        )
        pauses = await client.consumers.pauses()
        staging.documents(
            "server/pauses.jsonl",
            [
                {"trace": "pause", "consumer_name": pause.consumer, **_without_consumer(asdict(pause))}
                for name, pause in pauses.items()
                if scope.consumer in {"", name}
            ],
        )
    except MaestroError as error:
        missing.append(f"no data-safety holds and no pauses: {error}")
    return missing


def _without_consumer(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name != "consumer"}


async def collect_history(client: AsyncMaestro, staging: Staging, *, scope: Scope) -> str:
    """Write the newest entries of the history; return why there are none."""
    since, until = scope.since_text or None, scope.until_text or None
    try:
        with DocumentFile(staging, "server/history.jsonl") as file:
            found = client.history(newest_first=True, limit=_HISTORY, since=since, until=until)
            async with aclosing(found) as entries:
                async for entry in entries:
                    if scope.consumer in {"", entry.consumer}:
                        fields = asdict(entry)
                        file.add({"trace": "history", "consumer_name": fields.pop("consumer"), **fields})
            if since:
                await _add_last_connections(client, file, scope=scope)
    except Unsupported:
        return "no history: the server keeps none, as a Go server"
    except MaestroError as error:
        return f"no history: {error}"
    return ""


async def _add_last_connections(client: AsyncMaestro, file: DocumentFile, *, scope: Scope) -> None:
    """Write the last connection or disconnection of each agent before the window: its state when that begins."""
    seen: set[str] = set()
    found = client.history(newest_first=True, limit=_HISTORY, until=scope.since_text, kinds=_CONNECTIONS)
    async with aclosing(found) as entries:
        async for entry in entries:
            if entry.consumer not in seen and scope.consumer in {"", entry.consumer}:
                seen.add(entry.consumer)
                fields = asdict(entry)
                file.add({"trace": "history", "consumer_name": fields.pop("consumer"), **fields})


async def collect_endpoint(staging: Staging, name: str, *, url: str, kind: str) -> Sequence[str]:
    """Write `/readyz?verbose` or `/metrics` of a process, and its clock; return problems."""
    paths = {"health": ("/readyz?verbose", "/healthcheck"), "metrics": ("/metrics",)}[kind]
    problems: list[str] = []
    for path in paths:
        problems = await _collect_path(staging, name, url=url, path=path, kind=kind)
        if not problems:
            break
    return problems


async def _collect_path(staging: Staging, name: str, *, url: str, path: str, kind: str) -> list[str]:
    # Like a kubelet: the certificate is not verified, and nothing secret is sent.
    async with httpx.AsyncClient(verify=False, timeout=_SECONDS, trust_env=False) as client:  # noqa: S501 - see above
        try:
            before = time.time()  # noqa: TID251 - compared with the clock of the other side
            async with asyncio.timeout(2 * _SECONDS), client.stream("GET", url.rstrip("/") + path) as response:
                content = b""
                async for chunk in response.aiter_bytes():
                    content += chunk
                    if len(content) > _MOST_BYTES:
                        return [f"{url}{path} sends more than {_MOST_BYTES >> 20} MiB, and is not read"]
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as error:
            reason = str(error) or type(error).__name__
            return [f"{url}{path} does not answer: {reason}; check that the port can be reached"]
    if response.status_code == httpx.codes.NOT_FOUND:
        # A Go server has no /readyz.
        return [f"{url}{path} does not exist; is it the {kind} port of a server or an agent?"]
    staging.text(f"{name}.{kind}.txt", content.decode("utf-8", "replace"))
    about = {"trace": "endpoint", "name": name, "kind": kind, "url": url, "status": response.status_code}
    staging.document(f"{name}.{kind}.jsonl", {**about, "ahead_seconds": _ahead(response, before)})
    return []


def _ahead(response: httpx.Response, before: float) -> float | None:
    """Return by how many seconds the clock of the server is ahead, to a second; None if it does not say."""
    try:
        return parsedate_to_datetime(response.headers.get("date", "")).timestamp() - before
    except (TypeError, ValueError):
        return None


async def collect_certificate(staging: Staging, name: str, *, url: str) -> str:
    """Write the dates of the certificate of an HTTPS address; return why there are none."""
    parts = urlsplit(url)
    if parts.scheme != "https" or not parts.hostname:
        return ""
    context = ssl.create_default_context()
    # The dates are wanted also of a certificate that is expired, or that this computer does not trust.
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        async with asyncio.timeout(_SECONDS):
            _, writer = await asyncio.open_connection(parts.hostname, parts.port or 443, ssl=context)
        try:
            encoded = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        finally:
            writer.close()
    except (OSError, TimeoutError) as error:
        return f"the certificate of {parts.hostname} cannot be read: {error or type(error).__name__}"
    staging.document(f"{name}.certificate.jsonl", {"trace": "certificate", "name": name, **_dates(encoded)})
    return ""


def _dates(encoded: bytes) -> dict[str, Any]:
    try:
        from cryptography import x509  # noqa: PLC0415 - not part of every installation
    except ModuleNotFoundError:
        return {"problem": "the package cryptography is not installed"}
    certificate = x509.load_der_x509_certificate(encoded)
    return {
        "not_before": certificate.not_valid_before_utc.isoformat(),
        "not_after": certificate.not_valid_after_utc.isoformat(),
        "subject": certificate.subject.rfc4514_string(),
    }
