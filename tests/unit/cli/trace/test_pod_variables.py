"""The variables of the older dump script: each is honoured by itself, and flags override them."""

from dataclasses import replace
from typing import Any

import pytest

from maestropy.cli.trace.logs.pods import NO_PODS, Pods, with_variables


@pytest.mark.parametrize(
    ("variables", "changes"),
    [
        pytest.param({}, {}, id="none"),
        pytest.param({"namespace": ""}, {}, id="empty"),
        pytest.param({"namespace": "m2"}, {"only": "server", "server_namespace": "m2"}, id="namespace"),
        pytest.param(
            {"namespace": "maestro-agent"}, {"only": "agent", "agent_namespace": "maestro-agent"}, id="agents-namespace"
        ),
        pytest.param({"label": "app=m2"}, {"only": "server", "server_label": "app=m2"}, id="label"),
        pytest.param({"container": "service"}, {"only": "server", "server_container": "service"}, id="container"),
        pytest.param(
            {"container": "maestro-agent"}, {"only": "agent", "agent_container": "maestro-agent"}, id="agents-container"
        ),
        pytest.param(
            {"namespace": "maestro", "label": "app=maestro-agent", "container": "service"},
            {
                "only": "agent",
                "agent_namespace": "maestro",
                "agent_label": "app=maestro-agent",
                "agent_container": "service",
            },
            id="all-of-the-agent",
        ),
    ],
)
def test_each_variable_is_honoured_by_itself(variables: dict[str, str], changes: dict[str, Any]) -> None:
    assert with_variables(NO_PODS, variables) == replace(NO_PODS, **changes)


def test_flags_override_variables() -> None:
    pods = Pods(server_namespace="mine", server_context="svc", agent_context=["mgmt"])
    expected = replace(pods, server_container="service")
    assert with_variables(pods, {"namespace": "theirs", "container": "service"}) == expected
