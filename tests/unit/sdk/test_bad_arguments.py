"""An argument that cannot be sent raises Invalid with its name, before anything is sent."""

from collections.abc import Callable
from typing import Any, cast

import pytest

from maestropy.sdk.blocking import Maestro
from maestropy.sdk.errors import Invalid
from maestropy.sdk.work import Work

HALF = "a\ud800"
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
    "consumer-name": (lambda client: client.consumers.create(HALF), "name"),
    "consumer-label": (lambda client: client.consumers.create("c", labels={"x": HALF}), r"body\.labels\.x holds half"),
    "consumer-get": (lambda client: client.consumers.get(HALF), "cannot be searched for"),
    "bundle": (lambda client: client.resource_bundles.get(HALF), "bundle_id holds half"),
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
