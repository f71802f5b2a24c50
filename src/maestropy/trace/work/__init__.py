"""From any identifier of a work to the whole relation: name, resource, applied works, manifests, live objects."""
