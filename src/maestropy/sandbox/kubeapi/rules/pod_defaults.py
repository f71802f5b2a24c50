"""Default the fields of pods and pod templates. Pure."""

from typing import Any

Json = dict[str, Any]

_CONTAINER_LISTS = ("initContainers", "containers", "ephemeralContainers")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


def filled(obj: Json, **values: Any) -> Json:
    """Return `obj` with `values` for the fields that are not set."""
    return {**obj, **{name: value for name, value in values.items() if obj.get(name) is None}}


def template(part: Json, **values: Any) -> Json:
    """Return a pod template with defaults."""
    return {**filled(part, metadata={}), "spec": pod_spec(filled(part.get("spec") or {}, **values))}


def pod_spec(spec: Json) -> Json:
    """Return the spec of a pod with defaults."""
    result = filled(
        spec,
        restartPolicy="Always",
        terminationGracePeriodSeconds=30,
        dnsPolicy="ClusterFirst",
        securityContext={},
        schedulerName="default-scheduler",
    )
    if result.get("serviceAccountName"):
        result = filled(result, serviceAccount=result["serviceAccountName"])
    for field in _CONTAINER_LISTS:
        if field in result:
            result[field] = [_container(container) for container in result[field]]
    if "volumes" in result:
        result["volumes"] = [_volume(volume) for volume in result["volumes"]]
    return result


def _container(container: Json) -> Json:
    image = str(container.get("image", ""))
    tag = image.rsplit("/", 1)[-1].partition("@")[0].partition(":")[2]
    floating = "@" not in image and tag in ("", "latest")
    result = filled(
        container,
        resources={},
        terminationMessagePath="/dev/termination-log",
        terminationMessagePolicy="File",
        imagePullPolicy="Always" if floating else "IfNotPresent",
    )
    if "ports" in result:
        result["ports"] = [filled(port, protocol="TCP") for port in result["ports"]]
    for probe in _PROBES:
        if probe in result:
            result[probe] = _probe(result[probe])
    if "env" in result:
        result["env"] = [_variable(variable) for variable in result["env"]]
    return result


def _probe(probe: Json) -> Json:
    result = filled(probe, timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3)
    if "httpGet" in result:
        result["httpGet"] = filled(result["httpGet"], path="/", scheme="HTTP")
    return result


def _variable(variable: Json) -> Json:
    reference = (variable.get("valueFrom") or {}).get("fieldRef")
    if not reference:
        return variable
    return {**variable, "valueFrom": {**variable["valueFrom"], "fieldRef": filled(reference, apiVersion="v1")}}


def _volume(volume: Json) -> Json:
    result = dict(volume)
    for source in ("configMap", "secret", "projected", "downwardAPI"):
        if isinstance(result.get(source), dict):
            result[source] = filled(result[source], defaultMode=420)
    if set(result) == {"name"}:
        result["emptyDir"] = {}
    return result
