"""Targets choose the consumer of a work."""

import asyncio
from pathlib import Path

import pytest

from maestropy import errors, targeting
from maestropy.sdk.targeting import TargetCluster


def consumer_of(target: targeting.Target) -> str:
    return asyncio.run(target.consumer())


def test_consumer_from_argument_environment_or_file(tmp_path: Path) -> None:
    assert consumer_of(targeting.static("us-east-mgmt-01")) == "us-east-mgmt-01"
    assert consumer_of(targeting.from_environment(environ={targeting.VARIABLE: " c1\n"})) == "c1"
    file = tmp_path / "management_cluster_consumer"
    target = targeting.from_file(file)
    file.write_text("c1\n")
    assert consumer_of(target) == "c1"
    file.write_text("c2\n")
    assert consumer_of(target) == "c2"
    file.write_text("data:\n  consumer: c3\n")
    assert consumer_of(targeting.from_file(file, key="consumer")) == "c3"


@pytest.mark.parametrize(
    ("make_target", "message"),
    [
        pytest.param(lambda: targeting.static("Not A Name"), "consumer is 'Not A Name'", id="name"),
        pytest.param(
            lambda: targeting.from_environment(environ={}), "MANAGEMENT_CLUSTER_CONSUMER is not set", id="unset"
        ),
        pytest.param(lambda: targeting.from_file("/nowhere"), "/nowhere cannot be read", id="no-file"),
        pytest.param(
            lambda: targeting.from_hyperfleet("https://me:hunter2@h"),
            "^api_url contains a user or password",
            id="login",
        ),
    ],
)
def test_error_names_the_origin_of_the_consumer(make_target: object, message: str) -> None:
    with pytest.raises(errors.ConfigError, match=message):
        consumer_of(make_target())  # type: ignore[operator]


def test_round_robin_and_least_loaded() -> None:
    clusters = [
        TargetCluster(consumer="b", load=1),
        TargetCluster(consumer="a", load=2),
        TargetCluster(consumer="c"),
    ]

    async def query() -> list[TargetCluster]:
        return clusters

    in_turn = targeting.from_query(query)
    assert [consumer_of(in_turn) for _ in range(4)] == ["a", "b", "c", "a"]
    least = targeting.from_query(query, choose=targeting.least_loaded)
    assert [consumer_of(least) for _ in range(2)] == ["b", "b"]
    clusters.clear()
    with pytest.raises(errors.NotFound):
        consumer_of(in_turn)


@pytest.mark.parametrize(
    ("body", "clusters"),
    [
        ([{"name": "a"}], [TargetCluster(consumer="a")]),
        ({"items": [{"id": "7", "name": "a", "load": 3}]}, [TargetCluster(consumer="a", load=3.0)]),
        ([], []),
    ],
)
def test_management_clusters_are_parsed(body: object, clusters: list[TargetCluster]) -> None:
    assert targeting.parse_management_clusters(body) == clusters


@pytest.mark.parametrize("body", [{}, 7, [1], [{"region": "x"}]])
def test_malformed_list_of_management_clusters_is_rejected(body: object) -> None:
    with pytest.raises(errors.Invalid):
        targeting.parse_management_clusters(body)


def mounted_config_map(folder: Path, **data: str) -> Path:
    """A ConfigMap as the kubelet mounts it: the keys are links into the folder of the current version."""
    version = folder / "..2026_11_16_10_00_00.1"
    version.mkdir(parents=True)
    (folder / "..data").symlink_to(version.name)
    for key, value in data.items():
        (version / key).write_text(value)
        (folder / key).symlink_to(Path("..data") / key)
    return folder


def test_consumer_from_a_mounted_config_map(tmp_path: Path) -> None:
    one = mounted_config_map(tmp_path / "one", management_cluster_consumer="c1\n")
    assert consumer_of(targeting.from_file(one)) == "c1"
    two = mounted_config_map(tmp_path / "two", consumer="c2", region="us-east")
    assert consumer_of(targeting.from_file(two, key="consumer")) == "c2"
    with pytest.raises(errors.ConfigError, match="has 2 keys; give key=… as one of: consumer, region"):
        consumer_of(targeting.from_file(two))
    with pytest.raises(errors.ConfigError, match="has no zone; give key=… as one of: consumer, region"):
        consumer_of(targeting.from_file(two, key="zone"))
