"""The id of a work must be the one every other client computes."""

from maestropy.wire import identity


def test_known_id() -> None:
    found = identity.resource_id(
        "mw-client-example",
        namespace="7ff1a8f4-8811-49b4-8c19-9271bc51975e",
        name="e44ec579-9646-549a-b679-db8d19d6da37",
    )
    assert found == "55c61e54-a3f6-563d-9fec-b1fe297bdfdb"


def test_every_part_counts() -> None:
    ids = {
        identity.resource_id(source, namespace=namespace, name=name)
        for source in ("s1", "s2")
        for namespace in ("c1", "c2")
        for name in ("w1", "w2")
    }
    assert len(ids) == 8
