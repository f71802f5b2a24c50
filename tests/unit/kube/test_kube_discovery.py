"""Discovery in both its forms, in the shapes API servers send, and how seldom it asks."""

import asyncio
from typing import Any

import pytest
from scripted_api import Answer, Asked, Script, ScriptedApi, fails, says

from maestropy.kube import discovery, errors
from maestropy.kube.client import KubeClient
from maestropy.kube.discovery import Discovery
from maestropy.kube.request import ResourceType

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
    async def script(asked: Asked) -> Answer:
        assert asked.header("accept").startswith("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
        return {"/api": together(CORE), "/apis": together(*groups)}[asked.path]

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


def classic(answers: dict[str, Answer]) -> Script:
    async def script(asked: Asked) -> Answer:
        return answers[asked.path]

    return script


class Time:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("script", [modern([APPS, EXAMPLE]), classic(CLASSIC)], ids=["aggregated", "classic"])
def test_resolve(script: Script) -> None:
    async def scenario() -> None:
        async with ScriptedApi(script) as api, KubeClient(api.address()) as client:
            found = Discovery(client, monotonic=Time())
            assert await found.resolve("apps/v1", "Deployment") == DEPLOYMENTS
            asked = len(api.asked)
            assert await found.resolve("v1", "Namespace") == NAMESPACES
            assert await found.resolve("example.com/v1", "Widget") == WIDGETS
            for version, kind in [("apps/v1", "Scale"), ("autoscaling/v1", "Scale"), ("apps/v2", "Deployment")]:
                with pytest.raises(errors.UnknownKind, match=f'^the server doesn\'t have a resource type "{kind}"$'):
                    await found.resolve(version, kind)
            assert len(api.asked) == asked

    asyncio.run(scenario())


def test_a_new_kind_is_found_once_it_may_ask_again() -> None:
    async def scenario() -> None:
        groups = [APPS]
        time = Time()
        async with ScriptedApi(modern(groups)) as api, KubeClient(api.address()) as client:
            found = Discovery(client, monotonic=time, seconds_between_reads=2)
            with pytest.raises(errors.UnknownKind):
                await found.resolve("example.com/v1", "Widget")
            groups.append(EXAMPLE)
            with pytest.raises(errors.UnknownKind):
                await found.resolve("example.com/v1", "Widget")
            time.now += 2
            assert await found.resolve("example.com/v1", "Widget") == WIDGETS
            assert len(api.asked) == 4

    asyncio.run(scenario())


def test_who_changed_it_need_not_wait() -> None:
    async def scenario() -> None:
        groups = [APPS]
        async with ScriptedApi(modern(groups)) as api, KubeClient(api.address()) as client:
            found = Discovery(client, monotonic=Time())
            await found.resolve("apps/v1", "Deployment")
            groups.append(EXAMPLE)
            found.invalidate()
            assert await found.resolve("example.com/v1", "Widget") == WIDGETS

    asyncio.run(scenario())


def test_what_changes_while_it_is_read_is_read_again() -> None:
    async def scenario() -> None:
        groups = [APPS]
        asked_for, may_answer = asyncio.Event(), asyncio.Event()

        async def script(asked: Asked) -> Answer:
            answer = await modern(groups)(asked)
            asked_for.set()
            await may_answer.wait()
            return answer

        async with ScriptedApi(script) as api, KubeClient(api.address()) as client:
            found = Discovery(client, monotonic=Time())

            async def change() -> None:
                await asked_for.wait()
                groups.append(EXAMPLE)
                found.invalidate()
                may_answer.set()

            await asyncio.gather(found.resolve("apps/v1", "Deployment"), change())
            assert await found.resolve("example.com/v1", "Widget") == WIDGETS

    asyncio.run(scenario())


def test_a_storm_of_unknown_kinds_asks_once() -> None:
    async def scenario() -> None:
        async with ScriptedApi(modern([APPS])) as api, KubeClient(api.address()) as client:
            found = Discovery(client, monotonic=Time())
            results = await asyncio.gather(
                *(found.resolve("example.com/v1", f"Kind{number}") for number in range(200)), return_exceptions=True
            )
            assert {type(each) for each in results} == {errors.UnknownKind}
            assert len(api.asked) == 2

    asyncio.run(scenario())


def test_an_api_server_that_is_away_is_no_unknown_kind() -> None:
    async def scenario() -> None:
        async def script(_: Asked) -> Answer:
            return fails(503, "ServiceUnavailable")

        async with ScriptedApi(script) as api, KubeClient(api.address()) as client:
            found = Discovery(client, monotonic=Time())
            for _ in range(2):
                with pytest.raises(errors.Unavailable):
                    await found.resolve("v1", "Namespace")

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "failure", [fails(503, "ServiceUnavailable"), fails(404, "NotFound")], ids=["its-server-is-down", "it-has-gone"]
)
def test_one_silent_group_hides_no_other_and_is_remembered(failure: Answer) -> None:
    async def scenario() -> None:
        answers = dict(CLASSIC)
        time = Time()
        async with ScriptedApi(classic(answers)) as api, KubeClient(api.address()) as client:
            found = Discovery(client, monotonic=time)
            await found.resolve("v1", "Namespace")
            answers["/apis/example.com/v1"] = failure
            time.now += 10
            with pytest.raises(errors.UnknownKind):
                await found.resolve("v1", "Nothing")
            assert await found.resolve("example.com/v1", "Widget") == WIDGETS
            assert await found.resolve("apps/v1", "Deployment") == DEPLOYMENTS

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"items": "x"},
        {"items": [7, {"versions": None}, {"metadata": None, "versions": [{"resources": [None, {}]}]}]},
    ],
)
def test_strange_documents_make_no_crash(document: dict[str, Any]) -> None:
    assert len(discovery.parse_aggregated(document)) <= 1
