"""Works that are applied only as far as a service account may."""

from typing import Any

from conformance import objects_wanted as want
from conformance.fleet import Fleet, condition

Json = dict[str, Any]
WRITE = ("create", "update", "patch", "get")
RBAC = "rbac.authorization.k8s.io"


async def allow(fleet: Fleet, *verbs: str, name: str = "rights", **options: Any) -> None:
    """Let the account `sa` do this."""
    await fleet.cluster.create(want.role(fleet.namespace, name, *verbs, **options))
    await fleet.cluster.create(want.role_binding(fleet.namespace, name, role=name, account="sa"))


def two(fleet: Fleet) -> tuple[Json, Json]:
    return want.config_map(fleet.namespace, "cm1"), want.config_map(fleet.namespace, "cm2")


def publish(fleet: Fleet, *manifests: Json, **spec: Any) -> None:
    fleet.publish("w", *manifests, executor=want.executor(fleet.namespace, "sa"), **spec)


async def case_58_no_rights(fleet: Fleet) -> None:
    publish(fleet, *two(fleet))
    report = await fleet.sees("w", applied="F:FF", available="F:FF")
    assert condition(report.status.manifests[0], "Applied").message == (
        f"Failed to apply manifest: not allowed to apply the resource  configmaps, {fleet.namespace} cm1, "
        "will try again in 1m0s"
    )
    assert await fleet.cluster.get(two(fleet)[0]) is None


async def case_59_rights_for_one(fleet: Fleet) -> None:
    await allow(fleet, "update", "patch", "get", "delete", names=("cm1",))
    await allow(fleet, "create", name="create")
    publish(fleet, *two(fleet))
    await fleet.sees("w", applied="F:TF", available="F:TF")


async def case_60_all_rights(fleet: Fleet) -> None:
    await allow(fleet, *WRITE, "delete")
    publish(fleet, *two(fleet))
    await fleet.is_applied("w")


async def case_61_foreground_needs_delete(fleet: Fleet) -> None:
    await allow(fleet, *WRITE)
    publish(fleet, *two(fleet), deleteOption={"propagationPolicy": "Foreground"})
    await fleet.sees("w", applied="F:FF", available="F:FF")


async def case_62_orphan_needs_no_delete(fleet: Fleet) -> None:
    await allow(fleet, *WRITE)
    publish(fleet, *two(fleet), deleteOption={"propagationPolicy": "Orphan"})
    await fleet.is_applied("w")


async def case_63_selectively_orphaned_needs_delete_for_the_rest(fleet: Fleet) -> None:
    await allow(fleet, *WRITE)
    publish(fleet, *two(fleet), deleteOption=want.selectively(("configmaps", "cm1"), namespace=fleet.namespace))
    await fleet.sees("w", applied="F:TF", available="F:TF")


def roles(fleet: Fleet) -> tuple[Json, Json, Json]:
    name = fleet.namespace
    return (
        want.role(name, "given", "list", groups={"": ["secrets"]}),
        want.role_binding(name, "given", role="given", account="other"),
        want.config_map(name, "cm"),
    )


async def case_64_no_escalation(fleet: Fleet) -> None:
    await fleet.cluster.create(want.service_account(fleet.namespace, "sa"))
    await allow(fleet, *WRITE, "delete", groups={RBAC: ["roles", "rolebindings"]})
    publish(fleet, *roles(fleet))
    report = await fleet.sees("w", applied="F:FFF", available="F:FFF")
    assert "error: permission escalation" in condition(report.status.manifests[0], "Applied").message


async def case_65_no_escalation_beside_an_existing_role(fleet: Fleet) -> None:
    await fleet.cluster.create(roles(fleet)[0])
    await allow(fleet, *WRITE, "delete", groups={RBAC: ["roles", "rolebindings"]})
    publish(fleet, *roles(fleet))
    report = await fleet.sees("w", applied="F:FFF", available="F:TFF")
    assert "permission escalation" in condition(report.status.manifests[0], "Applied").message


async def case_66_escalation_allowed(fleet: Fleet) -> None:
    await allow(
        fleet, *WRITE, "delete", "escalate", "bind", groups={RBAC: ["roles", "rolebindings"], "": ["configmaps"]}
    )
    publish(fleet, *roles(fleet))
    await fleet.is_applied("w")


async def case_67_escalation_of_a_weaker_role(fleet: Fleet) -> None:
    await fleet.cluster.create(want.role(fleet.namespace, "given", "get", groups={"": ["secrets"]}))
    await allow(
        fleet, *WRITE, "delete", "escalate", "bind", groups={RBAC: ["roles", "rolebindings"], "": ["configmaps"]}
    )
    publish(fleet, *roles(fleet))
    await fleet.is_applied("w")
    live = await fleet.exists(roles(fleet)[0])
    assert live["rules"][0]["verbs"] == ["list"]


async def case_68_granted_then_revoked(fleet: Fleet) -> None:
    publish(fleet, *two(fleet))
    await fleet.sees("w", applied="F:FF", available="F:FF")
    await allow(fleet, *WRITE, "delete")
    await fleet.is_applied("w")
    await fleet.cluster.delete(want.role_binding(fleet.namespace, "rights", role="rights", account="sa"))
    publish(fleet, *two(fleet), want.config_map(fleet.namespace, "cm3"))
    await fleet.sees("w", applied="F:FFF", available="F:TTF")
    assert await fleet.cluster.get(two(fleet)[0])


async def case_3_9_only_service_accounts(fleet: Fleet) -> None:
    fleet.publish("w", two(fleet)[0], executor={"subject": {"type": "User"}})
    report = await fleet.sees("w", applied="F:F")
    assert condition(report.status.manifests[0], "Applied").message == (
        "Failed to apply manifest: only support ServiceAccount type for the executor"
    )
