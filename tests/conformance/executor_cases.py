"""Works with an executor: applied only as far as its permissions allow."""

from typing import Any

from tests.conformance import sample_manifests as samples
from tests.conformance.agent_environment import AgentEnvironment, condition

Json = dict[str, Any]
WRITE = ("create", "update", "patch", "get")
RBAC = "rbac.authorization.k8s.io"


async def allow(env: AgentEnvironment, *verbs: str, name: str = "rights", **options: Any) -> None:
    """Grant these verbs to the service account `sa`."""
    await env.cluster.create(samples.role(env.namespace, name, *verbs, **options))
    await env.cluster.create(samples.role_binding(env.namespace, name, role=name, account="sa"))


def two(env: AgentEnvironment) -> tuple[Json, Json]:
    return samples.config_map(env.namespace, "cm1"), samples.config_map(env.namespace, "cm2")


def publish(env: AgentEnvironment, *manifests: Json, **spec: Any) -> None:
    env.publish("w", *manifests, executor=samples.executor(env.namespace, "sa"), **spec)


async def case_executor_without_permissions_applies_nothing(env: AgentEnvironment) -> None:
    publish(env, *two(env))
    reported = await env.wait_for_conditions("w", applied="F:FF", available="F:FF")
    assert condition(reported.status.manifests[0], "Applied").message == (
        f"Failed to apply manifest: not allowed to apply the resource  configmaps, {env.namespace} cm1, "
        "will try again in 1m0s"
    )
    assert await env.cluster.get(two(env)[0]) is None


async def case_executor_with_permission_for_one_object(env: AgentEnvironment) -> None:
    await allow(env, "update", "patch", "get", "delete", names=("cm1",))
    await allow(env, "create", name="create")
    publish(env, *two(env))
    await env.wait_for_conditions("w", applied="F:TF", available="F:TF")


async def case_executor_with_all_permissions(env: AgentEnvironment) -> None:
    await allow(env, *WRITE, "delete")
    publish(env, *two(env))
    await env.wait_until_applied("w")


async def case_foreground_requires_delete_permission(env: AgentEnvironment) -> None:
    await allow(env, *WRITE)
    publish(env, *two(env), deleteOption={"propagationPolicy": "Foreground"})
    await env.wait_for_conditions("w", applied="F:FF", available="F:FF")


async def case_orphan_requires_no_delete_permission(env: AgentEnvironment) -> None:
    await allow(env, *WRITE)
    publish(env, *two(env), deleteOption={"propagationPolicy": "Orphan"})
    await env.wait_until_applied("w")


async def case_selectively_orphan_requires_delete_permission_for_owned_objects(env: AgentEnvironment) -> None:
    await allow(env, *WRITE)
    publish(env, *two(env), deleteOption=samples.selectively(("configmaps", "cm1"), namespace=env.namespace))
    await env.wait_for_conditions("w", applied="F:TF", available="F:TF")


def roles(env: AgentEnvironment) -> tuple[Json, Json, Json]:
    name = env.namespace
    return (
        samples.role(name, "given", "list", groups={"": ["secrets"]}),
        samples.role_binding(name, "given", role="given", account="other"),
        samples.config_map(name, "cm"),
    )


async def case_privilege_escalation_is_denied(env: AgentEnvironment) -> None:
    await env.cluster.create(samples.service_account(env.namespace, "sa"))
    await allow(env, *WRITE, "delete", groups={RBAC: ["roles", "rolebindings"]})
    publish(env, *roles(env))
    reported = await env.wait_for_conditions("w", applied="F:FFF", available="F:FFF")
    assert "error: permission escalation" in condition(reported.status.manifests[0], "Applied").message


async def case_privilege_escalation_is_denied_for_existing_role(env: AgentEnvironment) -> None:
    await env.cluster.create(roles(env)[0])
    await allow(env, *WRITE, "delete", groups={RBAC: ["roles", "rolebindings"]})
    publish(env, *roles(env))
    reported = await env.wait_for_conditions("w", applied="F:FFF", available="F:TFF")
    assert "permission escalation" in condition(reported.status.manifests[0], "Applied").message


async def case_escalate_and_bind_permissions_allow_roles(env: AgentEnvironment) -> None:
    await allow(env, *WRITE, "delete", "escalate", "bind", groups={RBAC: ["roles", "rolebindings"], "": ["configmaps"]})
    publish(env, *roles(env))
    await env.wait_until_applied("w")


async def case_escalate_permission_updates_weaker_role(env: AgentEnvironment) -> None:
    await env.cluster.create(samples.role(env.namespace, "given", "get", groups={"": ["secrets"]}))
    await allow(env, *WRITE, "delete", "escalate", "bind", groups={RBAC: ["roles", "rolebindings"], "": ["configmaps"]})
    publish(env, *roles(env))
    await env.wait_until_applied("w")
    live = await env.wait_for_object(roles(env)[0])
    assert live["rules"][0]["verbs"] == ["list"]


async def case_revoked_permission_keeps_applied_objects(env: AgentEnvironment) -> None:
    publish(env, *two(env))
    await env.wait_for_conditions("w", applied="F:FF", available="F:FF")
    await allow(env, *WRITE, "delete")
    await env.wait_until_applied("w")
    await env.cluster.delete(samples.role_binding(env.namespace, "rights", role="rights", account="sa"))
    publish(env, *two(env), samples.config_map(env.namespace, "cm3"))
    await env.wait_for_conditions("w", applied="F:FFF", available="F:TTF")
    assert await env.cluster.get(two(env)[0])


async def case_executor_must_be_service_account(env: AgentEnvironment) -> None:
    env.publish("w", two(env)[0], executor={"subject": {"type": "User"}})
    reported = await env.wait_for_conditions("w", applied="F:F")
    assert condition(reported.status.manifests[0], "Applied").message == (
        "Failed to apply manifest: only support ServiceAccount type for the executor"
    )
