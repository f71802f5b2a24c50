"""Build a finding from its code: text of the catalogue, evidence, and advice with the names of this work. Pure."""

import re
import shlex
from collections.abc import Iterable
from pathlib import PurePath

from maestropy.journal import redact
from maestropy.trace.findings.codes import CODES
from maestropy.trace.findings.work_codes import AGENT_LOGS, LOCAL_AGENT_LOGS, REQUEST_LOGS
from maestropy.trace.output import Evidence, Finding
from maestropy.trace.work.judge.facts import Facts
from maestropy.trace.work.model import AccessStatus, LiveObject, ObjectKey

_PLACEHOLDER = re.compile(r"{(\w+)}")


def finding(
    code: str,
    facts: Facts,
    *,
    evidence: Iterable[Evidence] = (),
    about: LiveObject | None = None,
    owner: str = "",
    first_advice: Iterable[str] = (),
) -> Finding:
    """Return the finding `code` about a work; `about` and `owner` are what commands are to name.

    `first_advice` is shown before the advice of the catalogue.
    """
    known = CODES[code]
    names = {**_names(facts, about), "owner": owner}
    return Finding(
        code=code,
        severity=known.severity,
        title=known.title,
        detail=known.cause,
        evidence=tuple(Evidence(evidence_item.where, redact.text(evidence_item.says)) for evidence_item in evidence),
        advice=(*first_advice, *(text for command in known.advice if (text := _filled(command, names)))),
    )


def trace_logs(facts: Facts) -> str:
    """Return what to write for the logs in a command that traces a request: the folder, or a placeholder."""
    return shlex.quote(facts.expectations.logs) if facts.expectations.logs else REQUEST_LOGS


def bare_finding(
    code: str,
    *,
    title: str = "",
    evidence: Iterable[Evidence] = (),
    about: LiveObject | None = None,
    clusters: Iterable[AccessStatus] = (),
) -> Finding:
    """Return a finding about a query without a work; advice that needs the names of a work is left out."""
    known = CODES[code]
    names = _object_names(about.key, cluster=f"cluster {about.cluster}", clusters=clusters) if about else {}
    advice = tuple(text for command in known.advice if (text := _filled(command, names)))
    return Finding(
        code=code,
        severity=known.severity,
        title=title or known.title,
        detail=known.cause,
        evidence=tuple(evidence),
        advice=advice,
    )


def _names(facts: Facts, about: LiveObject | None) -> dict[str, str]:
    data = facts.data
    row = data.row
    first = next(iter(data.applied), None)
    lost = data.tombstones[0].resource_id if data.tombstones else ""
    known = about.cluster if about else first.cluster if first else ""
    cluster = f"cluster {known}" if known else next((cluster.description for cluster in facts.readable_clusters), "")
    if not cluster:
        # Also where the cluster could not be read: the commands are to be run there.
        cluster = next((access.description for access in facts.candidate_clusters), "")
    key = about.key if about else facts.manifest_rows[0].key if facts.manifest_rows else ObjectKey(group="", name="")
    return {
        **_object_names(key, cluster=cluster, clusters=data.clusters),
        "id": row.id if row else lost or (first.work_name if first else data.requested),
        "consumer": facts.consumer or (data.hold.consumer if data.hold else ""),
        "requested": data.requested,
        "applied": first.name if first else "",
        "agent_namespace": facts.expectations.agent_namespace,
        "access": facts.expectations.access_flags,
        **_log_names(facts),
    }


def _log_names(facts: Facts) -> dict[str, str]:
    """Return the logs of a system on this computer, as `maestro up` names them."""
    folder = facts.expectations.logs
    if not folder or not facts.consumer:
        return {}
    return {"logs": folder, "agent_log": str(PurePath(folder) / f"agent-{facts.consumer}.log")}


def _object_names(key: ObjectKey, *, cluster: str, clusters: Iterable[AccessStatus]) -> dict[str, str]:
    kind = key.plural or key.kind.lower()
    return {
        "kubectl": next((access.kubectl for access in clusters if access.description == cluster), ""),
        "kind": f"{kind}.{key.group}" if key.group and kind else kind,
        "name": key.name,
        "namespace": key.namespace,
    }


def _filled(template: str, names: dict[str, str]) -> str:
    """Put names into a command, quoted for a shell; empty if one is not known, except a namespace or a context."""
    text = template.replace("{{", "\x00").replace("}}", "\x01")
    if names.get("logs"):
        text = text.replace(AGENT_LOGS, LOCAL_AGENT_LOGS).replace(f" {REQUEST_LOGS}", " {logs}")
    if not names.get("namespace"):
        text = text.replace(" -n {namespace}", "")
    # Flags are quoted already, and none are needed for kubectl's own context.
    for flags in ("kubectl", "access"):
        text = text.replace(f" {{{flags}}}", f" {names[flags]}" if names.get(flags) else "")
    if any(not names.get(name, "") for name in _PLACEHOLDER.findall(text)):
        return ""
    filled = _PLACEHOLDER.sub(lambda match: shlex.quote(names[match[1]]), text)
    return filled.replace("\x00", "{").replace("\x01", "}")
