"""Who a work is on the wire: an id that everyone can compute from source, namespace and name.

It is the `resourceid` of events, the key of the server's row and the name of the work on the agent. Clients that
speak the protocol without the SDK may choose any other id; nothing here refuses one.
"""

import uuid

GROUP_RESOURCE = "manifestworks.work.open-cluster-management.io"


def resource_id(source: str, *, namespace: str, name: str) -> str:
    """Return the id of the work `name` in `namespace` (the consumer) as published by `source`."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{source}-{GROUP_RESOURCE}-{namespace}-{name}"))
