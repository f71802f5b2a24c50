"""A resource bundle is checked before it is sent."""

import pytest

from maestropy.sdk import errors, resource_bundles


def test_invalid_label_is_rejected_with_its_key() -> None:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": "default"}}
    bundle = {"consumer_name": "c1", "manifests": [manifest], "metadata": {"name": "w", "labels": {"a b": "c"}}}
    with pytest.raises(errors.Invalid, match=r'metadata\.labels: Invalid value: "a b"'):
        resource_bundles.validate(bundle)
    resource_bundles.validate({**bundle, "metadata": {"name": "w", "labels": {"a": "c"}}})
