"""What the agent knows about some kinds without being told: their status fields and when they are complete.

Kinds match exactly, version included.
"""

from maestropy.agent.decide.identity import Kind
from maestropy.wire import options, status


def _paths(**paths: str) -> tuple[options.JsonPath, ...]:
    return tuple(options.JsonPath(name=name, path=path) for name, path in paths.items())


STATUSES: dict[Kind, tuple[options.JsonPath, ...]] = {
    Kind("apps", "v1", "Deployment"): _paths(
        ReadyReplicas=".status.readyReplicas",
        Replicas=".status.replicas",
        AvailableReplicas=".status.availableReplicas",
    ),
    Kind("apps", "v1", "DaemonSet"): _paths(
        NumberReady=".status.numberReady",
        DesiredNumberScheduled=".status.desiredNumberScheduled",
        NumberAvailable=".status.numberAvailable",
    ),
    Kind("batch", "v1", "Job"): _paths(
        JobComplete='.status.conditions[?(@.type=="Complete")].status',
        JobSucceeded=".status.succeeded",
    ),
    Kind("", "v1", "Pod"): _paths(
        PodReady='.status.conditions[?(@.type=="Ready")].status',
        PodPhase=".status.phase",
    ),
}
"""The fields that `WellKnownStatus` reports, in the order they are reported."""

_JOB_IS_FINISHED = (
    "hasConditions(object.status) && object.status.conditions.exists("
    "c, (c.type == 'Complete' || c.type == 'Failed') && c.status == 'True')"
)
_POD_IS_FINISHED = "object.status.phase in ['Succeeded', 'Failed']"

CONDITIONS: dict[tuple[Kind, str], options.ConditionRule] = {
    (Kind("batch", "v1", "Job"), status.COMPLETE): options.ConditionRule(
        condition=status.COMPLETE,
        type=options.CEL,
        cel_expressions=(_JOB_IS_FINISHED,),
        message_expression="result ? 'Job is finished' : 'Job is not finished'",
    ),
    (Kind("", "v1", "Pod"), status.COMPLETE): options.ConditionRule(
        condition=status.COMPLETE,
        type=options.CEL,
        cel_expressions=(_POD_IS_FINISHED,),
        message_expression="'Pod is in phase ' + object.status.phase",
    ),
}
"""The rules behind `WellKnownConditions`."""
