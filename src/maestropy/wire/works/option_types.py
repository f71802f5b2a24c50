"""Define the JSON types of the options of a ManifestBundle, member by member.

A bundle with an option of another type can be stored, but no Go program can decode it: an agent drops it, and a Go
server on the same database can neither send nor list it. Only types are checked, not values. `null` counts as not set,
as in Go. Unknown members are rejected: these are the fields of the ManifestWork API of Open Cluster Management.
"""

import msgspec


class _Shape(msgspec.Struct, rename="camel", gc=False, forbid_unknown_fields=True):
    """Base of all option types."""


class _Identifier(_Shape):
    group: str | None = None
    resource: str | None = None
    name: str | None = None
    namespace: str | None = None


class _JsonPath(_Shape):
    name: str | None = None
    version: str | None = None
    path: str | None = None


class _FeedbackRule(_Shape):
    type: str | None = None
    json_paths: list[_JsonPath | None] | None = None


class _IgnoreField(_Shape):
    condition: str | None = None
    json_paths: list[str | None] | None = None
    json_pointers: list[str | None] | None = None
    jq_path_expressions: list[str | None] | None = None


class _ServerSideApply(_Shape):
    force: bool | None = None
    field_manager: str | None = None
    ignore_fields: list[_IgnoreField | None] | None = None


class _UpdateStrategy(_Shape):
    type: str | None = None
    server_side_apply: _ServerSideApply | None = None


class _ConditionRule(_Shape):
    condition: str | None = None
    type: str | None = None
    cel_expressions: list[str | None] | None = None
    message: str | None = None
    message_expression: str | None = None


class _Config(_Shape):
    resource_identifier: _Identifier | None = None
    feedback_rules: list[_FeedbackRule | None] | None = None
    update_strategy: _UpdateStrategy | None = None
    condition_rules: list[_ConditionRule | None] | None = None
    feedback_scrape_type: str | None = None


class _SelectivelyOrphan(_Shape):
    orphaning_rules: list[_Identifier | None] | None = None


class _DeleteOption(_Shape):
    propagation_policy: str | None = None
    selectively_orphans: _SelectivelyOrphan | None = None
    ttl_seconds_after_finished: int | None = None


class _ServiceAccount(_Shape):
    namespace: str | None = None
    name: str | None = None


class _Subject(_Shape):
    type: str | None = None
    service_account: _ServiceAccount | None = None


class _Executor(_Shape):
    subject: _Subject | None = None


class WorkOptions(_Shape):
    """All members of a bundle except its manifests."""

    manifest_configs: list[_Config | None] | None = None
    delete_option: _DeleteOption | None = None
    executer: _Executor | None = None
