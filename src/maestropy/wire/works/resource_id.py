"""Compute the resource ID of a work from source, namespace and name.

It is the extension `resourceid` of events, the primary key in the table `resources` and the name of the work on the
agent. A source that does not use the SDK may choose any other ID.
"""

import uuid

GROUP_RESOURCE = "manifestworks.work.open-cluster-management.io"


def resource_id(source: str, *, namespace: str, name: str) -> str:
    """Return the resource ID of the work `name` in `namespace` (the consumer) as published by `source`."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{source}-{GROUP_RESOURCE}-{namespace}-{name}"))
