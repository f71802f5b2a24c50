"""Define the well-known statuses and conditions of built-in kinds.

Kinds match exactly, version included.
"""

from maestropy.agent.decide.manifest_identity import GroupVersionKind
from maestropy.wire.works import options, status


def _paths(**paths: str) -> tuple[options.JsonPath, ...]:
    return tuple(options.JsonPath(name=name, path=path) for name, path in paths.items())


STATUSES: dict[GroupVersionKind, tuple[options.JsonPath, ...]] = {
    GroupVersionKind("apps", "v1", "Deployment"): _paths(
        ReadyReplicas=".status.readyReplicas",
        Replicas=".status.replicas",
        AvailableReplicas=".status.availableReplicas",
    ),
    GroupVersionKind("apps", "v1", "DaemonSet"): _paths(
        NumberReady=".status.numberReady",
        DesiredNumberScheduled=".status.desiredNumberScheduled",
        NumberAvailable=".status.numberAvailable",
    ),
    GroupVersionKind("batch", "v1", "Job"): _paths(
        JobComplete='.status.conditions[?(@.type=="Complete")].status',
        JobSucceeded=".status.succeeded",
    ),
    GroupVersionKind("", "v1", "Pod"): _paths(
        PodReady='.status.conditions[?(@.type=="Ready")].status',
        PodPhase=".status.phase",
    ),
}
"""The fields of `WellKnownStatus`, in the order they are reported."""

_JOB_IS_FINISHED = (
    "hasConditions(object.status) && object.status.conditions.exists("
    "c, (c.type == 'Complete' || c.type == 'Failed') && c.status == 'True')"
)
_POD_IS_FINISHED = "object.status.phase in ['Succeeded', 'Failed']"

CONDITIONS: dict[tuple[GroupVersionKind, str], options.ConditionRule] = {
    (GroupVersionKind("batch", "v1", "Job"), status.COMPLETE): options.ConditionRule(
        condition=status.COMPLETE,
        type=options.CEL,
        cel_expressions=(_JOB_IS_FINISHED,),
        message_expression="result ? 'Job is finished' : 'Job is not finished'",
    ),
    (GroupVersionKind("", "v1", "Pod"), status.COMPLETE): options.ConditionRule(
        condition=status.COMPLETE,
        type=options.CEL,
        cel_expressions=(_POD_IS_FINISHED,),
        message_expression="'Pod is in phase ' + object.status.phase",
    ),
}
"""The rules of `WellKnownConditions`."""
