"""Find out how to reach the Kubernetes API server that answers reviews.

| given | used | otherwise |
|---|---|---|
| a kubeconfig path | its current context | refused: file missing, not a kubeconfig, no current context |
| nothing, inside a pod | the pod's service account, its token re-read when rotated | |
| nothing, outside a pod | | refused: name a kubeconfig |

`KUBECONFIG` and `~/.kube/config` are not consulted: who may publish is not decided by whichever
cluster a shell happened to point at.
"""

from pathlib import Path

import msgspec
import yaml
from lightkube import KubeConfig, SingleConfig
from lightkube.config.client_adapter import user_auth, verify_cluster
from lightkube.config.models import User
from lightkube.core.exceptions import ConfigError

from pymaestro.kube.errors import BadConfig

FLAG = "--grpc-authorizer-config"


def load(kubeconfig: str) -> SingleConfig:
    """Return the connection values, checked so far as the files allow."""
    found = _in_file(Path(kubeconfig)) if kubeconfig else _in_cluster()
    # lightkube insists on a user; a context without one means a server that asks for no credentials.
    return found._replace(user=found.user or User())


def _in_file(path: Path) -> SingleConfig:
    try:
        found = KubeConfig.from_file(path).get()
        assert found is not None  # only a default, which is not given, could make it None
        if found.user is not None:
            user_auth(found.user)
        verify_cluster(found.cluster, found.user or User(), found.abs_file)
    except (ConfigError, OSError) as error:
        raise BadConfig(f"{FLAG}: {path} cannot be used: {error}") from error
    # The text of these may quote the file, and the file holds credentials.
    except (KeyError, TypeError, ValueError, AttributeError, yaml.YAMLError, msgspec.MsgspecError) as error:
        raise BadConfig(f"{FLAG}: {path} is not a kubeconfig") from error
    return found


def _in_cluster() -> SingleConfig:
    try:
        found = KubeConfig.from_service_account().get()
    except (ConfigError, KeyError, OSError) as error:
        raise BadConfig(
            f"{FLAG} is not set and there is no service account of a pod to use; name a kubeconfig file"
        ) from error
    assert found is not None  # from_service_account always sets its own context
    return found
