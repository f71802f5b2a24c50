"""Identity and deletion mark of objects."""

import pytest

from maestropy.kube import objects
from maestropy.kube.errors import MalformedObject


@pytest.mark.parametrize("read", [objects.uid, objects.resource_version])
def test_absent_field_is_empty(read: object) -> None:
    assert callable(read)
    assert read({}) == ""
    assert read({"metadata": None}) == ""
    with pytest.raises(MalformedObject, match="metadata must be an object"):
        read({"metadata": "no"})
    with pytest.raises(MalformedObject, match="must be a string"):
        read({"metadata": {"uid": 1, "resourceVersion": 1}})


def test_terminating() -> None:
    assert objects.is_terminating({"metadata": {"deletionTimestamp": "2024-01-01T00:00:00Z"}})
    assert not objects.is_terminating({"metadata": {"deletionTimestamp": None}})
