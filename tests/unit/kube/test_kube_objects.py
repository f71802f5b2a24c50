"""What is true of every object."""

import pytest

from maestropy.kube import objects
from maestropy.kube.errors import Malformed


@pytest.mark.parametrize("read", [objects.uid, objects.resource_version])
def test_what_is_not_there_is_empty(read: object) -> None:
    assert callable(read)
    assert read({}) == ""
    assert read({"metadata": None}) == ""
    with pytest.raises(Malformed, match="metadata must be an object"):
        read({"metadata": "no"})
    with pytest.raises(Malformed, match="must be a string"):
        read({"metadata": {"uid": 1, "resourceVersion": 1}})


def test_terminating() -> None:
    assert objects.is_terminating({"metadata": {"deletionTimestamp": "2024-01-01T00:00:00Z"}})
    assert not objects.is_terminating({"metadata": {"deletionTimestamp": None}})
