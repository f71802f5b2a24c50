"""`apply` of many checks all of them first, and counts what became of them."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from maestropy.cli.client.bundles import applying
from maestropy.cli.client.formats import TABLE
from maestropy.sdk import errors
from maestropy.sdk.work import Work


def work(name: str) -> Work:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name.lower()}}
    return Work(name, consumer="c").add(manifest)


def test_one_bad_work_of_many_is_found_before_the_first_write() -> None:
    with pytest.raises(errors.Invalid, match=r"1 of 3 are invalid, the first is c/BAD: .*; nothing was applied"):
        applying.check_all([work("a"), work("BAD"), work("b")], [])


def test_a_bad_bundle_is_found_too() -> None:
    with pytest.raises(errors.Invalid, match="2 of 3 are invalid"):
        applying.check_all([work("a")], [{"manifests": [{}]}, {"consumer_name": "c", "frob": 1, "manifests": []}])


def test_a_bundle_that_exists_needs_no_consumer() -> None:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    applying.check_all([], [{"id": "55c61e54-a3f6-563d-9fec-b1fe297bdfdb", "manifests": [manifest]}])


def test_a_single_work_keeps_its_own_error() -> None:
    with pytest.raises(errors.Invalid, match="cannot use work 'BAD'"):
        applying.check_all([work("BAD")], [])


class Client:
    """Stores works until the second, which it rejects."""

    def works(self, _: str) -> "Client":
        return self

    def apply(self, desired: Work, *, dry_run: bool) -> Any:
        assert not dry_run
        if desired.name == "b":
            raise errors.Conflict("no")
        return SimpleNamespace(work=desired, operation="created")


def test_a_failure_is_reported_with_the_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    run = applying.Applying(cast("Any", Client()), dry_run="none", output=TABLE, count=4)
    with pytest.raises(errors.Conflict):
        run.apply_all([work(name) for name in "abcd"], [])
    shown = capsys.readouterr()
    assert shown.err == "Of 4, 1 were applied, 1 failed or was interrupted, 2 were not begun\n"
    assert "Name: c/a" in shown.out


def test_work_under_deletion_gets_advice_for_a_shell() -> None:
    def apply(desired: Work, *, dry_run: bool) -> Any:
        raise errors.Conflict("the resource is under deletion, id: 1", advice="delete(name, wait=True)")

    client = SimpleNamespace(works=lambda _: SimpleNamespace(apply=apply))
    run = applying.Applying(cast("Any", client), dry_run="none", output=TABLE, count=1)
    with pytest.raises(errors.Conflict) as raised:
        run.apply_all([work("a")], [])
    assert raised.value.advice == "wait until it is gone: maestro resourcebundle wait c/a --for=delete"
