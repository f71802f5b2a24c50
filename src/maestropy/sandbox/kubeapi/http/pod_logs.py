"""Answer `kubectl logs`: the sandbox runs no containers, so the log of each is one line that says so. Pure."""

from maestropy.sandbox.kubeapi import errors
from maestropy.sandbox.kubeapi.storage.store import StoredObject


def text(pod: StoredObject, container: str) -> str:
    """Return the log of a container of a pod; without a name, of the only one."""
    spec = pod.obj["spec"]
    images = {
        item["name"]: item.get("image", "")
        for part in ("initContainers", "containers")
        for item in spec.get(part) or ()
    }
    if not container and len(images) == 1:
        container = next(iter(images))
    if container not in images:
        if container:
            raise errors.bad_request(f"container {container} is not valid for pod {pod.name}")
        raise errors.bad_request(
            f"a container name must be specified for pod {pod.name}, choose one of: [{' '.join(images)}]"
        )
    return f"sandbox: container {container} ({images[container]}) is not run; it has no log\n"
