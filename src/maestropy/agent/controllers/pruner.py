"""Prune the objects that a work no longer contains, by the list of objects in its AppliedManifestWork.

Objects are listed before they are created and until they are deleted, so that a crash in between loses none of them.
`decide.ownership` says which objects are untracked; `object_deleter` deletes them.
"""

from collections.abc import Sequence

from maestropy.agent.controllers.applier import ApplyOutcome
from maestropy.agent.controllers.object_deleter import PendingDeletions
from maestropy.agent.controllers.reconcile_context import ReconcileContext, owner_reference
from maestropy.agent.decide import agent_records, deletion, manifest_identity, ownership
from maestropy.kube import objects
from maestropy.kube.objects import Json
from maestropy.wire.works import status


class Pruner:
    """Keeps the list of a work's objects, and prunes those that have left it."""

    def __init__(self, context: ReconcileContext) -> None:
        self._context = context

    async def announce(self, applied_work: Json, planned_resources: Sequence[ownership.AppliedResource]) -> Json:
        """List the objects about to be created, so that they are found and deleted with the work after a crash."""
        previous = ownership.applied_resources(applied_work)
        known = {resource.key for resource in [*previous, *ownership.announced_resources(applied_work)]}
        unlisted = [resource for resource in planned_resources if resource.key not in known]
        return (
            await self._context.applied_works.set_applied_resources(applied_work, [*previous, *unlisted])
            if unlisted
            else applied_work
        )

    async def record_and_prune(
        self,
        applied_work: Json,
        outcomes: Sequence[ApplyOutcome],
        *,
        name: str,
        log_fields: dict[str, object],
        announced: Sequence[ownership.AppliedResource],
    ) -> PendingDeletions:
        """List the objects of the work in its AppliedManifestWork, and prune those it no longer contains."""
        if objects.is_terminating(applied_work):
            return PendingDeletions()
        current = [
            applied_resource(outcome) for outcome in outcomes if outcome.ref is not None and outcome.live is not None
        ]
        unresolved = [
            ownership.UnresolvedManifest(group=meta.group, namespace=meta.namespace, name=meta.name)
            for meta in (outcome.step.meta for outcome in outcomes if outcome.ref is None or outcome.problem)
        ]
        previous = [*ownership.applied_resources(applied_work), *announced]
        # An object that has a manifest and does not exist needs no pruning. A record of the agent, which a work could
        # once contain, loses our owner reference.
        manifest_keys = {
            manifest_identity.key_of(outcome.step.meta)
            for outcome in outcomes
            if outcome.ref is not None and not outcome.problem and not agent_records.problem(outcome.step.meta)
        }
        previous = [resource for resource in previous if resource.key not in manifest_keys]
        untracked = ownership.untracked(previous, current, unresolved=unresolved)
        possibly_referenced = [resource for resource in previous if resource not in untracked]
        if untracked:
            # Listed before anything is deleted, so that a crash in between loses no object.
            applied_work = await self._context.applied_works.set_applied_resources(
                applied_work, [*current, *possibly_referenced, *untracked]
            )
        pending = await self._context.object_deleter.delete_all(
            untracked,
            owner=owner_reference(applied_work, is_owned=False),
            reason=deletion.pruned_reason(name),
            base_fields=log_fields,
        )
        await self._context.applied_works.set_applied_resources(
            applied_work, [*current, *possibly_referenced, *pending.resources]
        )
        return pending


def applied_resource(outcome: ApplyOutcome) -> ownership.AppliedResource:
    """Return the list entry of an object that exists."""
    assert outcome.live is not None
    return resource_entry(outcome.step.meta, uid=outcome.live["metadata"]["uid"])


def resource_entry(meta: status.ResourceMeta, *, uid: str) -> ownership.AppliedResource:
    """Return the list entry of a manifest's object; without a UID while it is only planned."""
    return ownership.AppliedResource(
        group=meta.group,
        version=meta.version,
        resource=meta.resource,
        namespace=meta.namespace,
        name=meta.name,
        uid=uid,
    )
