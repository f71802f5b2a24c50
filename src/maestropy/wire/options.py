"""How a work wants its manifests treated: update strategies, feedback, condition rules, deletion and executor.

All of these are read-only views. Unknown members and unknown values are no concern here: whoever acts on a value says
what it does not understand.
"""

from dataclasses import dataclass

from maestropy.wire import jsontypes
from maestropy.wire.jsontypes import Object

FOREGROUND = "Foreground"
ORPHAN = "Orphan"
SELECTIVELY_ORPHAN = "SelectivelyOrphan"

UPDATE = "Update"
CREATE_ONLY = "CreateOnly"
SERVER_SIDE_APPLY = "ServerSideApply"
READ_ONLY = "ReadOnly"

WELL_KNOWN_STATUS = "WellKnownStatus"
JSON_PATHS = "JSONPaths"
POLL = "Poll"
WATCH = "Watch"

WELL_KNOWN_CONDITIONS = "WellKnownConditions"
CEL = "CEL"

ON_SPOKE_PRESENT = "OnSpokePresent"
ON_SPOKE_CHANGE = "OnSpokeChange"

SERVICE_ACCOUNT = "ServiceAccount"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceIdentifier:
    """Names one object, or several by `*` where a rule allows it."""

    group: str = ""
    resource: str = ""
    name: str = ""
    namespace: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonPath:
    """A value to read from an object."""

    name: str
    path: str
    version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackRule:
    """Which values of an object to report."""

    type: str
    json_paths: tuple[JsonPath, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IgnoreFields:
    """Fields that server-side apply leaves alone."""

    condition: str
    json_paths: tuple[str, ...] = ()
    json_pointers: tuple[str, ...] = ()
    jq_path_expressions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateStrategy:
    """How an object is brought to its wanted state."""

    type: str
    force: bool = False
    field_manager: str = ""
    ignore_fields: tuple[IgnoreFields, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionRule:
    """A condition to compute from an object."""

    condition: str
    type: str
    cel_expressions: tuple[str, ...] = ()
    message: str = ""
    message_expression: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestConfig:
    """The wishes for the objects that an identifier names."""

    resource_identifier: ResourceIdentifier
    feedback_rules: tuple[FeedbackRule, ...] = ()
    update_strategy: UpdateStrategy | None = None
    condition_rules: tuple[ConditionRule, ...] = ()
    feedback_scrape_type: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOption:
    """What happens to the objects when the work goes."""

    propagation_policy: str
    orphaning_rules: tuple[ResourceIdentifier, ...] = ()
    ttl_seconds_after_finished: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Executor:
    """As whom the agent applies the manifests."""

    type: str
    namespace: str
    name: str


def read_manifest_config(found: Object) -> ManifestConfig:
    """Read one of `manifestConfigs`."""
    strategy = found.get("updateStrategy")
    return ManifestConfig(
        resource_identifier=_identifier(jsontypes.object_at(found, "resourceIdentifier")),
        feedback_rules=tuple(map(_feedback_rule, jsontypes.objects_at(found, "feedbackRules"))),
        update_strategy=None if strategy is None else _strategy(jsontypes.object_at(found, "updateStrategy")),
        condition_rules=tuple(map(_condition_rule, jsontypes.objects_at(found, "conditionRules"))),
        feedback_scrape_type=jsontypes.text_at(found, "feedbackScrapeType"),
    )


def read_delete_option(found: Object) -> DeleteOption:
    """Read a `deleteOption`."""
    ttl = found.get("ttlSecondsAfterFinished")
    rules = jsontypes.objects_at(found, "selectivelyOrphans", "orphaningRules")
    return DeleteOption(
        propagation_policy=jsontypes.text_at(found, "propagationPolicy"),
        orphaning_rules=tuple(map(_identifier, rules)),
        ttl_seconds_after_finished=None if ttl is None else jsontypes.integer_at(found, "ttlSecondsAfterFinished"),
    )


def read_executor(found: Object) -> Executor:
    """Read an `executor`."""
    subject = jsontypes.object_at(found, "subject")
    return Executor(
        type=jsontypes.text_at(subject, "type"),
        namespace=jsontypes.text_at(subject, "serviceAccount", "namespace"),
        name=jsontypes.text_at(subject, "serviceAccount", "name"),
    )


def _identifier(found: Object) -> ResourceIdentifier:
    return ResourceIdentifier(
        group=jsontypes.text_at(found, "group"),
        resource=jsontypes.text_at(found, "resource"),
        name=jsontypes.text_at(found, "name"),
        namespace=jsontypes.text_at(found, "namespace"),
    )


def _feedback_rule(found: Object) -> FeedbackRule:
    return FeedbackRule(
        type=jsontypes.text_at(found, "type"),
        json_paths=tuple(
            JsonPath(
                name=jsontypes.text_at(path, "name"),
                path=jsontypes.text_at(path, "path"),
                version=jsontypes.text_at(path, "version"),
            )
            for path in jsontypes.objects_at(found, "jsonPaths")
        ),
    )


def _strategy(found: Object) -> UpdateStrategy:
    apply = jsontypes.object_at(found, "serverSideApply")
    return UpdateStrategy(
        type=jsontypes.text_at(found, "type"),
        force=jsontypes.boolean_at(apply, "force"),
        field_manager=jsontypes.text_at(apply, "fieldManager"),
        ignore_fields=tuple(map(_ignore_fields, jsontypes.objects_at(apply, "ignoreFields"))),
    )


def _ignore_fields(found: Object) -> IgnoreFields:
    return IgnoreFields(
        condition=jsontypes.text_at(found, "condition"),
        json_paths=tuple(jsontypes.texts_at(found, "jsonPaths")),
        json_pointers=tuple(jsontypes.texts_at(found, "jsonPointers")),
        jq_path_expressions=tuple(jsontypes.texts_at(found, "jqPathExpressions")),
    )


def _condition_rule(found: Object) -> ConditionRule:
    return ConditionRule(
        condition=jsontypes.text_at(found, "condition"),
        type=jsontypes.text_at(found, "type"),
        cel_expressions=tuple(jsontypes.texts_at(found, "celExpressions")),
        message=jsontypes.text_at(found, "message"),
        message_expression=jsontypes.text_at(found, "messageExpression"),
    )
