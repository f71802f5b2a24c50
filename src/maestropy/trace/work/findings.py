"""Make a finding from its code: the catalogue's words, the evidence, and advice with the names of this work in it."""

import re
import shlex
from collections.abc import Iterable

from maestropy.journal import redact
from maestropy.trace.output import Evidence, Finding
from maestropy.trace.work.codes import CATALOGUE
from maestropy.trace.work.facts import Facts
from maestropy.trace.work.model import Live, ObjectKey

_PLACEHOLDER = re.compile(r"{(\w+)}")


def finding(code: str, facts: Facts, *, evidence: Iterable[Evidence] = (), about: Live | None = None) -> Finding:
    """Return the finding `code` about a work; `about` is the object that commands are to name."""
    known = CATALOGUE[code]
    names = _names(facts, about)
    return Finding(
        code=code,
        severity=known.severity,
        title=known.title,
        detail=known.cause,
        evidence=tuple(Evidence(where=each.where, says=redact.text(each.says)) for each in evidence),
        advice=tuple(text for each in known.advice if (text := _filled(each, names))),
    )


def bare_finding(code: str, *, title: str = "", evidence: Iterable[Evidence] = ()) -> Finding:
    """Return a finding about a question that found no work; advice that needs names it cannot have is left out."""
    known = CATALOGUE[code]
    advice = tuple(each for each in known.advice if "{" not in each)
    return Finding(
        code=code,
        severity=known.severity,
        title=title or known.title,
        detail=known.cause,
        evidence=tuple(evidence),
        advice=advice,
    )


def _names(facts: Facts, about: Live | None) -> dict[str, str]:
    gathered = facts.gathered
    row = gathered.row
    first = next(iter(gathered.applied), None)
    lost = gathered.tombstones[0].resource_id if gathered.tombstones else ""
    known = about.cluster if about else first.cluster if first else ""
    cluster = f"cluster {known}" if known else next((each.place for each in facts.its_clusters), "")
    key = about.key if about else facts.lines[0].key if facts.lines else ObjectKey(group="", name="")
    kind = key.plural or key.kind.lower()
    return {
        "id": row.id if row else lost or (first.work_name if first else gathered.asked),
        "consumer": facts.consumer,
        "asked": gathered.asked,
        "kubectl": next((each.kubectl for each in gathered.clusters if each.place == cluster), ""),
        "applied": first.name if first else "",
        "agent_namespace": facts.agent_namespace,
        "kind": f"{kind}.{key.group}" if key.group and kind else kind,
        "name": key.name,
        "namespace": key.namespace,
    }


def _filled(template: str, names: dict[str, str]) -> str:
    """Put names into a command, quoted for a shell; empty if one is not known, except a namespace or a context."""
    text = template.replace("{{", "\x00").replace("}}", "\x01")
    if not names["namespace"]:
        text = text.replace(" -n {namespace}", "")
    # The flags are quoted already, and none are needed for kubectl's own context.
    text = text.replace(" {kubectl}", f" {names['kubectl']}" if names["kubectl"] else "")
    if any(not names.get(each, "") for each in _PLACEHOLDER.findall(text)):
        return ""
    filled = _PLACEHOLDER.sub(lambda found: shlex.quote(names[found[1]]), text)
    return filled.replace("\x00", "{").replace("\x01", "}")
