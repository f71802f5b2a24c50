"""Discovery, aggregated or not, and its cache."""

import asyncio
from typing import Any

import pytest

from maestropy.kube import discovery, errors
from maestropy.kube.client import KubeClient
from maestropy.kube.discovery import Discovery
from maestropy.kube.request import ResourceType
from tests.scripted_api import Answer, Asked, Script, ScriptedApi, fails, says

DEPLOYMENTS = ResourceType(group="apps", version="v1", plural="deployments", kind="Deployment", namespaced=True)
NAMESPACES = ResourceType(group="", version="v1", plural="namespaces", kind="Namespace", namespaced=False)
WIDGETS = ResourceType(group="example.com", version="v1", plural="widgets", kind="Widget", namespaced=True)


def aggregated(group: str, version: str, *resources: tuple[str, str, str]) -> dict[str, Any]:
    return {
        "metadata": {"name": group, "creationTimestamp": None} if group else {"creationTimestamp": None},
        "versions": [
            {
                "version": version,
                "resources": [
                    {
                        "resource": plural,
                        "responseKind": {"group": "", "version": "", "kind": kind},
                        "scope": scope,
                        "singularResource": kind.lower(),
                        "verbs": ["create", "get", "list"],
                        "subresources": [
                            {
                                "subresource": "scale",
                                "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
                                "verbs": ["get"],
                            }
                        ],
                    }
                    for plural, kind, scope in resources
                ],
                "freshness": "Current",
            }
        ],
    }


def together(*groups: dict[str, Any]) -> Answer:
    return says({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": list(groups)})


CORE = aggregated("", "v1", ("namespaces", "Namespace", "Cluster"))
APPS = aggregated("apps", "v1", ("deployments", "Deployment", "Namespaced"))
EXAMPLE = aggregated("example.com", "v1", ("widgets", "Widget", "Namespaced"))


def modern(groups: list[dict[str, Any]]) -> Script:
    async def script(received: Asked) -> Answer:
        assert received.header("accept").startswith(
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        )
        return {"/api": together(CORE), "/apis": together(*groups)}[received.path]

    return script


CLASSIC: dict[str, Answer] = {
    "/api": says({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}),
    "/api/v1": says(
        {
            "kind": "APIResourceList",
            "groupVersion": "v1",
            "resources": [
                {"name": "namespaces", "singularName": "", "namespaced": False, "kind": "Namespace", "verbs": ["get"]},
                {"name": "namespaces/status", "namespaced": False, "kind": "Namespace", "verbs": ["get"]},
            ],
        }
    ),
    "/apis": says(
        {
            "kind": "APIGroupList",
            "apiVersion": "v1",
            "groups": [
                {"name": "apps", "versions": [{"groupVersion": "apps/v1", "version": "v1"}]},
                {"name": "example.com", "versions": [{"groupVersion": "example.com/v1", "version": "v1"}]},
            ],
        }
    ),
    "/apis/apps/v1": says(
        {
            "kind": "APIResourceList",
            "groupVersion": "apps/v1",
            "resources": [
                {"name": "deployments", "namespaced": True, "kind": "Deployment"},
                {
                    "name": "deployments/scale",
                    "namespaced": True,
                    "group": "autoscaling",
                    "version": "v1",
                    "kind": "Scale",
                },
            ],
        }
    ),
    "/apis/example.com/v1": says({"resources": [{"name": "widgets", "namespaced": True, "kind": "Widget"}]}),
}


def classic(responses: dict[str, Answer]) -> Script:
    async def script(received: Asked) -> Answer:
        return responses[received.path]

    return script


class Time:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("script", [modern([APPS, EXAMPLE]), classic(CLASSIC)], ids=["aggregated", "classic"])
async def test_resolve(script: Script) -> None:
    async with ScriptedApi(script) as api, KubeClient(api.address()) as client:
        discovery = Discovery(client, monotonic=Time())
        assert await discovery.resolve("apps/v1", "Deployment") == DEPLOYMENTS
        request_count = len(api.asked)
        assert await discovery.resolve("v1", "Namespace") == NAMESPACES
        assert await discovery.resolve("example.com/v1", "Widget") == WIDGETS
        for version, kind in [("apps/v1", "Scale"), ("autoscaling/v1", "Scale"), ("apps/v2", "Deployment")]:
            with pytest.raises(errors.UnknownKind, match=f'^the server doesn\'t have a resource type "{kind}"$'):
                await discovery.resolve(version, kind)
        assert len(api.asked) == request_count


async def test_new_kind_is_found_after_the_minimum_interval() -> None:
    groups = [APPS]
    time = Time()
    async with ScriptedApi(modern(groups)) as api, KubeClient(api.address()) as client:
        discovery = Discovery(client, monotonic=time, seconds_between_reads=2)
        with pytest.raises(errors.UnknownKind):
            await discovery.resolve("example.com/v1", "Widget")
        groups.append(EXAMPLE)
        with pytest.raises(errors.UnknownKind):
            await discovery.resolve("example.com/v1", "Widget")
        time.now += 2
        assert await discovery.resolve("example.com/v1", "Widget") == WIDGETS
        assert len(api.asked) == 4


async def test_invalidation_reads_at_once() -> None:
    groups = [APPS]
    async with ScriptedApi(modern(groups)) as api, KubeClient(api.address()) as client:
        discovery = Discovery(client, monotonic=Time())
        await discovery.resolve("apps/v1", "Deployment")
        groups.append(EXAMPLE)
        discovery.invalidate()
        assert await discovery.resolve("example.com/v1", "Widget") == WIDGETS


async def test_change_during_a_read_causes_another_read() -> None:
    groups = [APPS]
    asked_for, may_answer = asyncio.Event(), asyncio.Event()

    async def script(received: Asked) -> Answer:
        response = await modern(groups)(received)
        asked_for.set()
        await may_answer.wait()
        return response

    async with ScriptedApi(script) as api, KubeClient(api.address()) as client:
        discovery = Discovery(client, monotonic=Time())

        async def change() -> None:
            await asked_for.wait()
            groups.append(EXAMPLE)
            discovery.invalidate()
            may_answer.set()

        await asyncio.gather(discovery.resolve("apps/v1", "Deployment"), change())
        assert await discovery.resolve("example.com/v1", "Widget") == WIDGETS


async def test_many_unknown_kinds_cause_one_read() -> None:
    async with ScriptedApi(modern([APPS])) as api, KubeClient(api.address()) as client:
        discovery = Discovery(client, monotonic=Time())
        results = await asyncio.gather(
            *(discovery.resolve("example.com/v1", f"Kind{number}") for number in range(200)), return_exceptions=True
        )
        assert {type(error) for error in results} == {errors.UnknownKind}
        assert len(api.asked) == 2


async def test_unreachable_api_server_is_not_an_unknown_kind() -> None:
    async def script(_: Asked) -> Answer:
        return fails(503, "ServiceUnavailable")

    async with ScriptedApi(script) as api, KubeClient(api.address()) as client:
        discovery = Discovery(client, monotonic=Time())
        for _ in range(2):
            with pytest.raises(errors.Unavailable):
                await discovery.resolve("v1", "Namespace")


@pytest.mark.parametrize(
    "failure", [fails(503, "ServiceUnavailable"), fails(404, "NotFound")], ids=["its-server-is-down", "it-has-gone"]
)
async def test_failed_group_keeps_its_resources_and_hides_no_other(failure: Answer) -> None:
    responses = dict(CLASSIC)
    time = Time()
    async with ScriptedApi(classic(responses)) as api, KubeClient(api.address()) as client:
        discovery = Discovery(client, monotonic=time)
        await discovery.resolve("v1", "Namespace")
        responses["/apis/example.com/v1"] = failure
        time.now += 10
        with pytest.raises(errors.UnknownKind):
            await discovery.resolve("v1", "Nothing")
        assert await discovery.resolve("example.com/v1", "Widget") == WIDGETS
        assert await discovery.resolve("apps/v1", "Deployment") == DEPLOYMENTS


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"items": "x"},
        {"items": [7, {"versions": None}, {"metadata": None, "versions": [{"resources": [None, {}]}]}]},
    ],
)
def test_malformed_documents_are_ignored(document: dict[str, Any]) -> None:
    assert len(discovery.parse_aggregated(document)) <= 1
