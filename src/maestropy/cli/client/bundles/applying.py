"""Apply works and resource bundles one by one, or only check them (`--dry-run`), and print the result."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from maestropy.cli import screen
from maestropy.cli.client import output as rendering
from maestropy.cli.client.bundles import steps
from maestropy.cli.client.formats import Format
from maestropy.untrusted import printable

if TYPE_CHECKING:
    from maestropy.sdk.blocking import Maestro
    from maestropy.sdk.work import Work

DryRun = Literal["none", "client", "server"]
_WOULD_BE = {"created": "would be created", "updated": "would be updated", "unchanged": "is unchanged"}


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedBundle:
    """One resource bundle that was applied."""

    id: str
    name: str
    """CONSUMER/NAME."""


def check_all(works: "Sequence[Work]", bundles: Sequence[dict[str, Any]]) -> None:
    """Check everything before the first write; raises Invalid with the first that is invalid."""
    from maestropy.sdk import errors, resource_bundles

    failures = []
    for work in works:
        try:
            work.validate()
        except errors.Invalid as error:
            failures.append((f"{work.consumer}/{work.name}", error))
    for bundle in bundles:
        # One that exists has the consumer that is stored.
        known = {"consumer_name": "stored", **bundle} if bundle.get("id") else bundle
        try:
            resource_bundles.validate(known)
        except errors.Invalid as error:
            failures.append((steps.full_name(bundle), error))
    count = len(works) + len(bundles)
    if failures and count == 1:
        raise failures[0][1]
    if failures:
        name, first = failures[0]
        number = f"{len(failures)} of {count} are invalid, the first is {name}"
        raise errors.Invalid(f"{number}: {first.reason}; nothing was applied", advice=first.advice)


class Applying:
    """One run of `apply`."""

    def __init__(self, client: "Maestro", *, dry_run: DryRun, output: Format, count: int) -> None:
        self._client = client
        self._dry_run = dry_run
        self._output = output
        self._count = count
        self._is_one = count == 1
        self._documents: list[dict[str, Any]] = []
        self.applied: list[AppliedBundle] = []

    def apply_all(self, works: "Sequence[Work]", bundles: Sequence[dict[str, Any]]) -> None:
        """Apply one after the other; the first failure ends it, and the numbers of the others are printed."""
        try:
            for desired in works:
                self.apply_work(desired)
            for bundle in bundles:
                self.apply_bundle(bundle)
        except BaseException:
            if not self._is_one and self._dry_run == "none":
                done = len(self.applied)
                screen.write_error(
                    f"Of {self._count}, {done} were applied, 1 failed or was interrupted, "
                    f"{self._count - done - 1} were not begun\n"
                )
            raise

    def apply_work(self, desired: "Work") -> None:
        """Apply one work."""
        works = self._client.works(desired.consumer)
        if self._dry_run == "client":
            identity = desired.manifest_work.with_metadata(uid=works.id_of(desired.name))
            self._done(desired.validate().wrap(identity), "")
        else:
            with steps.deletion_advice(f"{desired.consumer}/{desired.name}"):
                done = works.apply(desired, dry_run=self._dry_run == "server")
            self._done(done.work, done.operation)

    def _done(self, work: "Work", operation: str) -> None:
        self._print(AppliedBundle(id=work.id, name=f"{work.consumer}/{work.name}"), operation, work.to_dict())

    def apply_bundle(self, bundle: dict[str, Any]) -> None:
        """Apply one resource bundle."""
        from maestropy.sdk import resource_bundles

        key = str(bundle.get("id", ""))
        with steps.translated_errors(key), steps.deletion_advice(key):
            if self._dry_run == "client":
                resource_bundles.validate(bundle)
                bundle_id = str(bundle.get("id") or "")
            else:
                bundle_id = self._client.resource_bundles.apply(bundle, dry_run=self._dry_run == "server")
        operation = "" if self._dry_run == "none" else "updated" if bundle.get("id") else "created"
        is_read = self._dry_run == "none" and not self._output.is_table
        document = steps.get(self._client, bundle_id) if is_read else {**bundle, "id": bundle_id}
        name = steps.full_name(document)
        self._print(AppliedBundle(id=bundle_id, name=name), operation, document)

    def _print(self, applied: AppliedBundle, operation: str, document: dict[str, Any]) -> None:
        self.applied.append(applied)
        self._documents.append(document)
        if not self._output.is_table:
            return
        lines = [self._sentence(operation), f"ID: {printable.escape(applied.id)}"]
        if not self._is_one or self._dry_run != "none":
            lines.append(f"Name: {printable.escape(applied.name)}")
        screen.write("".join(f"{line}\n" for line in lines))

    def _sentence(self, operation: str) -> str:
        if self._dry_run == "client":
            return "Resource bundle is valid (client dry run):"
        if self._dry_run == "server":
            return f"Resource bundle {_WOULD_BE[operation]} (server dry run):"
        return f"Resource bundle applied successfully{f' ({operation})' if operation else ''}:"

    def finish(self) -> None:
        """Print the applied objects, if the output is not text: one as it is, several as a List."""
        if self._output.is_table:
            return
        if self._output.kind == "name":
            screen.write("".join(f"{printable.escape(applied.id)}\n" for applied in self.applied))
            return
        documents = self._documents
        whole = documents[0] if self._is_one else {"apiVersion": "v1", "kind": "List", "items": documents}
        if self._output.kind == "custom-columns":
            columns = rendering.BUNDLES
            screen.write(rendering.listing({"items": documents}, output=self._output, columns=columns))
        else:
            screen.write(rendering.single(whole, output=self._output, fields=lambda _: ()))
