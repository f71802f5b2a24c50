"""The two-resource task of the tests: a Namespace and a ConfigMap that is created after it and deleted before it."""

import copy
from typing import Any

import yaml

_BOTH_PRESENT = 'resource_states.?space.orValue("") == "present" && resource_states.?settings.orValue("") == "present"'
_ONE_GONE = (
    'resource_states.?space.orValue("") == "confirmed_deleted" '
    '|| resource_states.?settings.orValue("") == "confirmed_deleted"'
)
_BOTH_GONE = (
    'resource_states.?space.orValue("") == "confirmed_deleted" '
    '&& resource_states.?settings.orValue("") == "confirmed_deleted"'
)
_CURRENT = " && ".join(
    f'resources.{name}.?metadata.?annotations[?"hyperfleet.io/generation"].orValue("") == string(generation)'
    for name in ("space", "settings")
)
_READY = f'{_BOTH_PRESENT} && {_CURRENT} && resources.space.?status.?phase.orValue("") == "Active"'
_SUCCESS = 'adapter.?executionStatus.orValue("") == "success"'
_SKIPPED = "adapter.?resourcesSkipped.orValue(false)"
_FINAL = f"is_deleting && {_SUCCESS} && !{_SKIPPED} && {_BOTH_GONE}"

TASK = f"""
schema_version: "2.0"
params:
  - name: clusterId
    source: event.id
    type: string
    required: true
  - name: cluster
    source:
      api_call: {{method: GET, url: "/clusters/{{{{ .clusterId }}}}", timeout: 10s}}
  - name: generation
    source: cluster.generation
    type: int
  - name: is_deleting
    source: {{expression: 'cluster.?deleted_time.hasValue()'}}
resources:
  - name: space
    transport: far
    manifest:
      apiVersion: v1
      kind: Namespace
      metadata:
        name: "{{{{ .clusterId }}}}-far"
        annotations: {{hyperfleet.io/generation: "{{{{ .generation }}}}"}}
    discovery: {{by_name: "{{{{ .clusterId }}}}-far"}}
    lifecycle:
      delete:
        when: {{expression: 'is_deleting && resource_states.?settings.orValue("") == "confirmed_deleted"'}}
  - name: settings
    transport: far
    manifest: |
      apiVersion: v1
      kind: ConfigMap
      metadata:
        name: settings
        namespace: {{{{ .clusterId }}}}-far
        annotations:
          hyperfleet.io/generation: "{{{{ .generation }}}}"
      data:
      {{{{ range $name, $value := .cluster.spec.settings }}}}
        {{{{ $name }}}}: {{{{ $value | quote }}}}
      {{{{ end }}}}
        id: "{{{{ .clusterId }}}}"
    discovery: {{namespace: "{{{{ .clusterId }}}}-far", by_name: settings}}
    lifecycle:
      create:
        when: {{expression: 'is_deleting || resource_states.?space.orValue("") == "present"'}}
      delete:
        when: {{expression: is_deleting}}
post:
  payloads:
    - name: report
      build:
        adapter: "{{{{ .adapter.name }}}}"
        conditions:
          - type: Applied
            status: {{expression: '{_ONE_GONE} ? "False" : {_BOTH_PRESENT} ? "True" : "Unknown"'}}
            reason:
              expression: '{_ONE_GONE} ? "ResourceNotFound" : {_BOTH_PRESENT} ? "ResourcesObserved" : "MirrorNotSynced"'
          - type: Available
            status:
              expression: >-
                {_ONE_GONE} ? "False" : {_READY} ? "True" : {_BOTH_PRESENT} && {_CURRENT} ? "False" : "Unknown"
            reason:
              expression: >-
                {_ONE_GONE} ? "ResourceNotFound" : {_READY} ? "LiveResourcesReady"
                : {_BOTH_PRESENT} && {_CURRENT} ? "NamespaceNotActive" : "GenerationPending"
          - type: Health
            status: {{expression: '{_SUCCESS} && !{_SKIPPED} ? "True" : "False"'}}
            reason:
              expression: '!({_SUCCESS}) ? "ExecutionFailed" : {_SKIPPED} ? "ResourcesSkipped" : "Healthy"'
            message: {{expression: 'adapter.?executionError.?message.orValue(adapter.?skipReason.orValue(""))'}}
          - type: Finalized
            status: {{expression: '{_FINAL} ? "True" : "False"'}}
            reason:
              expression: '!is_deleting ? "NotDeleting" : {_FINAL} ? "CleanupConfirmed" : "CleanupInProgress"'
        observed_generation: {{expression: generation}}
  post_actions:
    - name: sendReport
      api_call: {{method: PUT, url: "/clusters/{{{{ .clusterId }}}}/statuses", body: "{{{{ .report }}}}"}}
"""

DEPLOYMENT: dict[str, Any] = {
    "adapter": {"name": "two"},
    "clients": {"hyperfleet_api": {"base_url": "http://127.0.0.1:8000"}},
    "stores": {"desires": {"type": "redis", "url": "rediss://127.0.0.1:6379"}},
    "transports": {
        "far": {
            "type": "remote",
            "store": "desires",
            "target_cluster": "{{ .clusterId }}",
            "resource_plurals": {"v1/Namespace": "namespaces", "v1/ConfigMap": "configmaps"},
        }
    },
}


_PARSED: dict[str, Any] = yaml.safe_load(TASK)


def task() -> dict[str, Any]:
    """A fresh copy of the task."""
    return copy.deepcopy(_PARSED)


def changed(document: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy with one member set, added or, for `...`, removed; `path` is such as `resources/0/name`."""
    copied = copy.deepcopy(document)
    *parents, last = (int(part) if part.isdigit() else part for part in path.split("/"))
    inner: Any = copied
    for part in parents:
        inner = inner[part]
    if value is ...:
        del inner[last]
    else:
        inner[last] = value
    return copied
