"""The flags that lead kubectl to the clusters of a trace, as printed commands have them."""

from pathlib import Path

import pytest

from maestropy.trace.access.cluster_selection import ClusterOptions, KubeconfigLocation, management_clusters

CONFIG = """\
apiVersion: v1
kind: Config
current-context: mgmt one
clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
contexts:
- {name: mgmt one, context: {cluster: a, user: u}}
- {name: mgmt-2, context: {cluster: a, user: u}}
"""


@pytest.mark.parametrize(
    ("options", "flags"),
    [
        pytest.param(ClusterOptions(), ["--context 'mgmt one'"], id="current-context"),
        pytest.param(ClusterOptions(mgmt_contexts=["c=mgmt-2"]), ["--context mgmt-2"], id="context"),
        pytest.param(ClusterOptions(mgmt_kubeconfigs=["c=FILE"]), ["--kubeconfig FILE"], id="file"),
        pytest.param(
            ClusterOptions(mgmt_kubeconfigs=["FILE"], mgmt_contexts=["mgmt-2", "mgmt one"]),
            ["--kubeconfig FILE --context mgmt-2", "--kubeconfig FILE --context 'mgmt one'"],
            id="file-and-contexts",
        ),
    ],
)
def test_kubectl_flags_name_the_cluster(options: ClusterOptions, flags: list[str], tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(CONFIG)
    files = [text.replace("FILE", str(path)) for text in options.mgmt_kubeconfigs]
    location = KubeconfigLocation(environ={"KUBECONFIG": str(path)}, home=tmp_path)
    targets = management_clusters(ClusterOptions(mgmt_contexts=options.mgmt_contexts, mgmt_kubeconfigs=files), location)
    assert [target.kubectl for target in targets] == [text.replace("FILE", str(path)) for text in flags]
