"""Read the options of a ManifestWork: manifest configs, delete option and executor.

The values are read-only. Unknown members and unknown values are not checked here: the component that uses a value
reports an unknown one.
"""

from dataclasses import dataclass

from maestropy.wire import json_types
from maestropy.wire.json_types import Object

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
    """Identifies one object, or several with `*` where a rule allows it."""

    group: str = ""
    resource: str = ""
    name: str = ""
    namespace: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonPath:
    """A feedback value to read from an object by JSONPath."""

    name: str
    path: str
    version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackRule:
    """The feedback values of an object to report."""

    type: str
    json_paths: tuple[JsonPath, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IgnoreFields:
    """Fields that server-side apply does not change."""

    condition: str
    json_paths: tuple[str, ...] = ()
    json_pointers: tuple[str, ...] = ()
    jq_path_expressions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateStrategy:
    """How an object is updated to its desired state."""

    type: str
    force: bool = False
    field_manager: str = ""
    ignore_fields: tuple[IgnoreFields, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionRule:
    """A condition to evaluate on an object."""

    condition: str
    type: str
    cel_expressions: tuple[str, ...] = ()
    message: str = ""
    message_expression: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestConfig:
    """The options of the objects that an identifier selects."""

    resource_identifier: ResourceIdentifier
    feedback_rules: tuple[FeedbackRule, ...] = ()
    update_strategy: UpdateStrategy | None = None
    condition_rules: tuple[ConditionRule, ...] = ()
    feedback_scrape_type: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOption:
    """What happens to the objects when the work is deleted."""

    propagation_policy: str
    orphaning_rules: tuple[ResourceIdentifier, ...] = ()
    ttl_seconds_after_finished: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Executor:
    """The service account that applies the manifests."""

    type: str
    namespace: str
    name: str


def read_manifest_config(config: Object) -> ManifestConfig:
    """Read one of `manifestConfigs`."""
    strategy = config.get("updateStrategy")
    return ManifestConfig(
        resource_identifier=_identifier(json_types.object_at(config, "resourceIdentifier")),
        feedback_rules=tuple(map(_feedback_rule, json_types.objects_at(config, "feedbackRules"))),
        update_strategy=None if strategy is None else _strategy(json_types.object_at(config, "updateStrategy")),
        condition_rules=tuple(map(_condition_rule, json_types.objects_at(config, "conditionRules"))),
        feedback_scrape_type=json_types.text_at(config, "feedbackScrapeType"),
    )


def read_delete_option(option: Object) -> DeleteOption:
    """Read a `deleteOption`."""
    ttl = option.get("ttlSecondsAfterFinished")
    rules = json_types.objects_at(option, "selectivelyOrphans", "orphaningRules")
    return DeleteOption(
        propagation_policy=json_types.text_at(option, "propagationPolicy"),
        orphaning_rules=tuple(map(_identifier, rules)),
        ttl_seconds_after_finished=None if ttl is None else json_types.integer_at(option, "ttlSecondsAfterFinished"),
    )


def read_executor(executor: Object) -> Executor:
    """Read an `executor`."""
    subject = json_types.object_at(executor, "subject")
    return Executor(
        type=json_types.text_at(subject, "type"),
        namespace=json_types.text_at(subject, "serviceAccount", "namespace"),
        name=json_types.text_at(subject, "serviceAccount", "name"),
    )


def _identifier(identifier: Object) -> ResourceIdentifier:
    return ResourceIdentifier(
        group=json_types.text_at(identifier, "group"),
        resource=json_types.text_at(identifier, "resource"),
        name=json_types.text_at(identifier, "name"),
        namespace=json_types.text_at(identifier, "namespace"),
    )


def _feedback_rule(rule: Object) -> FeedbackRule:
    return FeedbackRule(
        type=json_types.text_at(rule, "type"),
        json_paths=tuple(
            JsonPath(
                name=json_types.text_at(path, "name"),
                path=json_types.text_at(path, "path"),
                version=json_types.text_at(path, "version"),
            )
            for path in json_types.objects_at(rule, "jsonPaths")
        ),
    )


def _strategy(strategy: Object) -> UpdateStrategy:
    apply = json_types.object_at(strategy, "serverSideApply")
    return UpdateStrategy(
        type=json_types.text_at(strategy, "type"),
        force=json_types.boolean_at(apply, "force"),
        field_manager=json_types.text_at(apply, "fieldManager"),
        ignore_fields=tuple(map(_ignore_fields, json_types.objects_at(apply, "ignoreFields"))),
    )


def _ignore_fields(ignored: Object) -> IgnoreFields:
    return IgnoreFields(
        condition=json_types.text_at(ignored, "condition"),
        json_paths=tuple(json_types.texts_at(ignored, "jsonPaths")),
        json_pointers=tuple(json_types.texts_at(ignored, "jsonPointers")),
        jq_path_expressions=tuple(json_types.texts_at(ignored, "jqPathExpressions")),
    )


def _condition_rule(rule: Object) -> ConditionRule:
    return ConditionRule(
        condition=json_types.text_at(rule, "condition"),
        type=json_types.text_at(rule, "type"),
        cel_expressions=tuple(json_types.texts_at(rule, "celExpressions")),
        message=json_types.text_at(rule, "message"),
        message_expression=json_types.text_at(rule, "messageExpression"),
    )
