"""Read a message broker for an archive: login, certificates, topics, subscriptions. Publishes and takes no message."""

import os
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from maestropy.aio import checks
from maestropy.diagnose.collection.scope import Scope
from maestropy.diagnose.collection.staging import Staging
from maestropy.flags import SettingsError, document
from maestropy.trace.errors import InputUnreadable, NoAccess
from maestropy.transport.mqtt import config as mqtt_config
from maestropy.transport.mqtt import inspection as mqtt_inspection
from maestropy.transport.mqtt import topic_checks
from maestropy.transport.pubsub import config as pubsub_config

_FLAG: Final = "--broker-config"
_CLIENT: Final = "maestro-diagnose"
_SOURCE: Final = "maestro"


async def collect_broker(staging: Staging, path: Path, *, scope: Scope, now: datetime) -> int:
    """Write what a broker says, by the configuration file of a server; return how many documents."""
    try:
        section = document.read(path, flag=_FLAG, example="brokerHost: localhost:1883")
        if section.has("projectID"):
            return await _pubsub(staging, path, section, scope=scope)
        return await _mqtt(staging, path, scope=scope, now=now)
    except SettingsError as error:
        raise InputUnreadable(str(error)) from error


async def _mqtt(staging: Staging, path: Path, *, scope: Scope, now: datetime) -> int:
    endpoint = mqtt_config.read(path, flag=_FLAG).endpoint
    found = await mqtt_inspection.inspect(endpoint, client_id=_CLIENT, flag=_FLAG, now=now)
    about: list[dict[str, Any]] = []
    if not checks.has_failed(found):
        # Without a probe: nothing is published while an archive is collected.
        asked = topic_checks.Asked(source=_SOURCE, consumer=scope.consumer)
        state, more = await topic_checks.inspect(endpoint, asked, client_id=_CLIENT)
        found += more
        if state is not None:
            about.append({"trace": "broker", "kind": "mqtt", "system": dict(state.system)})
    return _write(staging, found, about)


async def _pubsub(staging: Staging, path: Path, section: document.Section, *, scope: Scope) -> int:
    try:
        from maestropy.transport.pubsub import inspection  # noqa: PLC0415 - Google's libraries are an extra
    except ModuleNotFoundError as error:
        raise NoAccess(f"{error.name} is not installed; install maestropy with its extra pubsub") from error
    if not section.section("topics").text("sourceEvents"):
        raise NoAccess(f"{_FLAG} {path} is not the file of a server, which names the topic of specs; give that one")
    endpoint = pubsub_config.read(path, flag=_FLAG, role="source", environ=os.environ).endpoint
    state, found = await inspection.inspect(endpoint, consumer=scope.consumer)
    about = [{"trace": "broker", "kind": "pubsub"}, *inspection.documents(state)] if state is not None else []
    return _write(staging, found, about)


def _write(staging: Staging, found: Sequence[checks.Check], about: Iterable[dict[str, Any]]) -> int:
    count = staging.documents(
        "server/broker.jsonl",
        [
            {"trace": "check", "name": check.name, "outcome": check.outcome.value, "detail": check.detail}
            for check in found
        ],
    )
    return count + staging.documents("server/broker-state.jsonl", list(about))
