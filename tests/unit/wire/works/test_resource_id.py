"""The resource ID of a work equals the one of every other client."""

from maestropy.wire.works import resource_id


def test_id_equals_a_recorded_one() -> None:
    computed = resource_id.resource_id(
        "mw-client-example",
        namespace="7ff1a8f4-8811-49b4-8c19-9271bc51975e",
        name="e44ec579-9646-549a-b679-db8d19d6da37",
    )
    assert computed == "55c61e54-a3f6-563d-9fec-b1fe297bdfdb"


def test_id_depends_on_source_namespace_and_name() -> None:
    ids = {
        resource_id.resource_id(source, namespace=namespace, name=name)
        for source in ("s1", "s2")
        for namespace in ("c1", "c2")
        for name in ("w1", "w2")
    }
    assert len(ids) == 8
