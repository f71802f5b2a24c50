"""Say which objects no work may contain: the agent's own records, which all its works depend on.

A work that contained the AppliedManifestWork of another work would own it, and with the first work the objects of the
second would be deleted; with the definition of AppliedManifestWorks those of every work. Whoever may change the lease
stops the agent. The rest of an installation (deployment, service account, roles, namespace) is not protected: agents
are installed and updated by works too, and the permissions of the agent say who may.
"""

from maestropy.agent.decide import ownership
from maestropy.wire.works import status

LEASE = "maestro-agent-lock"
"""The name of the lease of leader election, the Go agent's."""
_RESOURCE = "appliedmanifestworks"
_DEFINITION = f"{_RESOURCE}.{ownership.GROUP}"
_REMEDY = "no work may contain it; remove it from the work"


def problem(meta: status.ResourceMeta) -> str:
    """Return why no work may contain this object, or an empty string."""
    if meta.group == ownership.GROUP and (meta.kind == ownership.KIND or meta.resource == _RESOURCE):
        return f"AppliedManifestWork {meta.name} is a record of the agent: {_REMEDY}"
    text = _problem(meta.group, meta.resource, meta.name)
    return f"{meta.kind} {meta.name} {text}: {_REMEDY}" if text else ""


def is_record(resource: ownership.AppliedResource) -> bool:
    """Return whether an object that a work owned is a record of the agent, which is never deleted with the work."""
    is_applied_work = resource.group == ownership.GROUP and resource.resource == _RESOURCE
    return is_applied_work or bool(_problem(resource.group, resource.resource, resource.name))


def _problem(group: str, resource: str, name: str) -> str:
    match group, resource:
        case "apiextensions.k8s.io", "customresourcedefinitions" if name == _DEFINITION:
            return "defines the records of the agent"
        case "apiregistration.k8s.io", "apiservices" if name.partition(".")[2] == ownership.GROUP:
            return "serves the records of the agent"
        case "coordination.k8s.io", "leases" if name == LEASE:
            return "says which agent acts"
        case _:
            return ""
