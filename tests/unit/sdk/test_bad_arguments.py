"""An argument that cannot be sent raises Invalid with its name, before anything is sent."""

from collections.abc import Callable
from typing import Any, cast

import pytest

from maestropy.sdk.blocking import Maestro
from maestropy.sdk.errors import Invalid
from maestropy.sdk.work import Work

HALF = "a\ud800"
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}


def deep() -> dict[str, Any]:
    manifest: dict[str, Any] = dict(CONFIG_MAP)
    inner = manifest
    for _ in range(100_000):
        inner["x"] = {}
        inner = inner["x"]
    return manifest


CALLS: dict[str, tuple[Callable[[Maestro], Any], str]] = {
    "name": (lambda client: client.works("c").apply(Work(HALF)), "name holds half"),
    "label": (lambda client: client.works("c").apply(Work("a", labels={"x": HALF})), r"metadata\.labels\.x holds half"),
    "consumer": (lambda client: client.works(HALF).get("a"), "consumer holds half"),
    "get": (lambda client: client.works("c").get(HALF), "name holds half"),
    "delete": (lambda client: client.works("c").delete(HALF), "name holds half"),
    "number": (lambda client: client.works("c").get(cast("Any", 7)), "name is of type int"),
    "search": (lambda client: list(client.works("c").list(search=HALF)), r"query\.search holds half"),
    "none": (lambda client: client.works("c").apply(cast("Any", None)), "the work is of type NoneType"),
    "create": (lambda client: client.works("c").create(cast("Any", {})), "the work is of type dict"),
    "timeout-nan": (lambda client: client.works("c").wait_for("a", timeout=float("nan")), "timeout is nan; give 0"),
    "timeout-negative": (lambda client: client.works("c").wait_for("a", timeout=-1), "timeout is -1; give 0 seconds"),
    "timeout-infinite": (lambda client: client.works("c").wait_for("a", timeout=1e999), "timeout is inf; give 0"),
    "timeout-huge": (lambda client: client.works("c").wait_for("a", timeout=10**400), "timeout is an integer of many"),
    "work-name": (lambda _: Work(cast("Any", 5)), "the name of a work is of type int; give a string"),
    "work-consumer": (lambda _: Work("a", consumer=cast("Any", 5)), "the consumer of a work is of type int"),
    "deep": (lambda client: client.works("c").apply(Work("a").add(deep())), "is nested more than 300 levels deep"),
    "timeout-text": (
        lambda client: client.works("c").wait_for("a", timeout=cast("Any", "x")),
        "timeout is 'x'; give 0",
    ),
    "timeout-of-delete": (lambda client: client.works("c").delete("a", wait=True, timeout=-1), "timeout is -1; give"),
    "condition": (lambda client: client.works("c").wait_for("a", cast("Any", 5)), "condition is 5; give a type such"),
    "condition-empty": (lambda client: client.works("c").wait_for("a", ""), "condition is ''; give a type such"),
    "concurrency": (lambda client: client.works("c").apply_many([], concurrency=cast("Any", "x")), "concurrency is x"),
    "feedback": (lambda _: Work("a").add(CONFIG_MAP, feedback=cast("Any", {"ready": 5})), r"feedback\['ready'\] is 5"),
    "spec": (lambda _: Work.from_dict({"metadata": {"name": "a"}, "spec": 5}), "spec must be an object"),
    "metadata": (lambda _: Work.from_dict({"metadata": 5}), "metadata must be an object"),
    "consumer-name": (lambda client: client.consumers.create(HALF), "name"),
    "consumer-label": (lambda client: client.consumers.create("c", labels={"x": HALF}), r"body\.labels\.x holds half"),
    "consumer-get": (lambda client: client.consumers.get(HALF), "cannot be searched for"),
    "bundle": (lambda client: client.resource_bundles.get(HALF), "bundle_id holds half"),
    "bundle-dots": (lambda client: client.resource_bundles.get(".."), "bundle_id '..' is no ID or name"),
    "bundle-slash": (lambda client: client.resource_bundles.resend("a/../b"), "bundle_id 'a/../b' is no ID or name"),
    "bundle-empty": (lambda client: list(client.resource_bundles.history("")), "bundle_id '' is no ID or name"),
    "consumer-dot": (lambda client: client.consumers.pause("."), "key '.' is no ID or name"),
    "consumer-slash": (lambda client: client.consumers.retire("a/b", works="delete"), "key 'a/b' is no ID or name"),
    "consumer-control": (lambda client: list(client.consumers.history("a\nb")), "is no ID or name"),
    "bundle-none": (lambda client: client.resource_bundles.apply(cast("Any", None)), "bundle is of type NoneType"),
}


@pytest.mark.parametrize("case", CALLS)
def test_a_bad_argument_is_named(case: str) -> None:
    call, message = CALLS[case]
    # Nothing listens there: a call that is sent fails otherwise.
    with (
        Maestro(api_url="http://127.0.0.1:1", grpc_url="127.0.0.1:1", source="test") as client,
        pytest.raises(Invalid, match=message) as caught,
    ):
        call(client)
    str(caught.value).encode()


def test_many_works_with_one_that_is_none_name_it() -> None:
    with (
        Maestro(api_url="http://127.0.0.1:1", grpc_url="127.0.0.1:1", source="test") as client,
        pytest.raises(Invalid, match="the work is of type NoneType"),
    ):
        client.works("c").apply_many([cast("Any", None)])
