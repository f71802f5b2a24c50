"""Define the settings of the agent: command line flags and environment.

One documented field per flag: unit, reason, and what absence means. `load` parses and validates them; it reads no file.
Connection files are read by `maestropy.transport`.
"""

import ipaddress
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Literal

from maestropy.agent.decide import data_safety
from maestropy.flags import Flag, SettingsError, flag, flags_of, override
from maestropy.wire import kubernetes_names


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenAddress:
    """An address to listen on."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether only clients on this host can connect."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


def read_listen_address(text: str) -> ListenAddress:
    """Return the address that `host:port` means; no host means every interface."""
    host, colon, port = text.rpartition(":")
    is_port = port.isascii() and port.isdigit() and int(port) < 65536
    is_bare_ipv6 = ":" in host and not (host.startswith("[") and host.endswith("]"))
    if not colon or not is_port or is_bare_ipv6:
        raise ValueError(
            "is not an address; write host:port such as 0.0.0.0:8443, or leave it empty to disable the port"
        )
    return ListenAddress(host=host.removeprefix("[").removesuffix("]"), port=int(port))


@dataclass(frozen=True, slots=True, kw_only=True)
class HubSettings:
    """Server"""

    consumer_name: str = field(default="", metadata=flag("--consumer-name"))
    """Name of the consumer: the cluster that this agent manages. Required."""

    client_id: str = field(default="", metadata=flag("--cloudevents-client-id"))
    """CloudEvents source of this agent's events. Default: the consumer name and `-work-agent`, as in the charts."""

    driver: Literal["grpc", "mqtt", "pubsub", "kube"] = field(default="grpc", metadata=flag("--workload-source-driver"))
    """How spec events arrive. `grpc` is the server's built-in broker and the default; the Go agent defaults to kube.
    `mqtt` (MQTT 5) and `pubsub` (Google Pub/Sub, which needs the extra `pubsub`) are external brokers, described by
    --workload-source-config. kube is not in this version."""

    config_file: Path | None = field(default=None, metadata=flag("--workload-source-config"))
    """YAML or JSON file with the server's address and our credentials. Give this or --grpc-url."""

    grpc_url: str | None = field(default=None, metadata=flag("--grpc-url"))
    """Address of the server's gRPC broker, host:port, without TLS: for laptops, in place of --workload-source-config.
    AppliedManifestWorks are named after this text, so one cluster should always use the same."""

    codecs: tuple[str, ...] = field(default=("manifestbundle",), metadata=flag("--cloudevents-client-codecs"))
    """Accepted because deployments pass it; the only codec is manifestbundle, here and in Maestro."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkSettings:
    """Works"""

    status_sync_interval: timedelta = field(default=timedelta(seconds=10), metadata=flag("--status-sync-interval"))
    """Interval for reading objects that cannot be watched. Watched objects are reported when they change."""

    resync_interval: timedelta = field(default=timedelta(minutes=4), metadata=flag("--resync-interval"))
    """Interval of full reconciles of a work. Drift that the watches miss is corrected then."""

    eviction_grace_period: timedelta = field(
        default=timedelta(minutes=60), metadata=flag("--appliedmanifestwork-eviction-grace-period")
    )
    """How long objects stay after their work is unknown to the server. 876000h or more: never evict."""

    orphan_limit_percent: int = field(
        default=data_safety.DEFAULT_LIMIT_PERCENT, metadata=flag("--orphan-limit-percent")
    )
    """Data safety: if the server lacks more than this share of the applied works, and more than 10 or at least half of
    them, none is evicted until an operator agrees with `maestro consumer adopt`. 100: no limit."""

    max_json_raw_length: int = field(default=1048576, metadata=flag("--max-json-raw-length"))
    """Maximum size of a JsonRaw feedback value in bytes; 1 MiB."""

    max_feedback_watch: int = field(default=50, metadata=flag("--max-feedback-watch"))
    """Accepted because deployments pass it; every kind in use is watched once, however many feedback rules it has."""

    workers: int = field(default=10, metadata=flag("--workload-agent-workers"))
    """Number of works that are reconciled at the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """Cluster"""

    kubeconfig: Path | None = field(default=None, metadata=flag("--kubeconfig"))
    """kubeconfig of the cluster to manage. Absent: the cluster this runs in, else KUBECONFIG, else ~/.kube/config."""

    namespace: str | None = field(default=None, metadata=flag("--namespace"))
    """Namespace of the lease of --disable-leader-election=false. Absent: the namespace of the pod or kubeconfig."""

    qps: float = field(default=500.0, metadata=flag("--kube-api-qps"))
    """Average requests per second to the API server; 0 sets no limit. The Go agent's 50 delays bursts of works; API
    servers have priority and fairness today, and an agent that watches sends few requests."""

    burst: int = field(default=1000, metadata=flag("--kube-api-burst"))
    """Requests at once after a quiet time; 100 in the Go agent, see --kube-api-qps."""

    disable_leader_election: bool = field(default=True, metadata=flag("--disable-leader-election"))
    """Start without leader election. With false, several agents of one cluster elect a leader by a lease."""

    install_crds: bool = field(default=True, metadata=flag("--install-crds"))
    """Create the AppliedManifestWork CRD if it is missing. With false it must be installed beforehand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSettings:
    """Process"""

    listen: ListenAddress | None = field(
        default=ListenAddress(host="0.0.0.0", port=8443),  # noqa: S104 - probes come from other hosts; metrics need a token
        metadata=flag("--listen", read=read_listen_address),
    )
    """Address of the HTTPS port for /healthz, /readyz, /livez and /metrics; port 0 lets the system choose. Empty: no
    such port. Metrics need a token that may get /metrics, unless it is a loopback address."""

    config: Path | None = field(default=None, metadata=flag("--config"))
    """YAML or JSON file of an OpenShift operator. Only its leaderElection counts: disable, namespace, name, and
    leaseDuration, renewDeadline and retryPeriod, which are 137s, 107s and 26s without it."""

    terminate_on_files: tuple[str, ...] = field(default=(), metadata=flag("--terminate-on-files"))
    """Accepted because deployments pass it; certificates and tokens that change are read again without a restart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentLogSettings:
    """Logging"""

    verbosity: int = field(default=2, metadata=flag("-v"))
    """klog verbosity. Default 2, as in the charts: the records a work can be traced by, no payloads; whole events
    begin at 4."""

    format: Literal["klog", "json"] = field(default="klog", metadata=flag("--log-format"))
    """`klog` is what Maestro's dashboards and runbooks read; `json` is one object per line."""

    pod_name: str = ""
    """The name of our pod, from POD_NAME; log records carry it. Empty: they do not. No flag."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """All settings of an agent; read once at start, then passed on."""

    hub: HubSettings = field(default_factory=HubSettings)
    work: WorkSettings = field(default_factory=WorkSettings)
    cluster: ClusterSettings = field(default_factory=ClusterSettings)
    process: ProcessSettings = field(default_factory=ProcessSettings)
    log: AgentLogSettings = field(default_factory=AgentLogSettings)


FLAGS: Mapping[str, Flag] = {setting.name: setting for setting in flags_of(AgentSettings)}


def load(values: Mapping[str, str], environ: Mapping[str, str]) -> AgentSettings:
    """Return the validated settings; `values` maps flags, such as `--consumer-name`, to their text."""
    settings = override(AgentSettings(), values, flags=FLAGS, command="agent")
    for complaint in _complaints(settings):
        raise SettingsError(complaint)
    hub = settings.hub
    return replace(
        settings,
        hub=replace(hub, client_id=hub.client_id or f"{hub.consumer_name}-work-agent"),
        log=replace(settings.log, pod_name=environ.get("POD_NAME", "")),
    )


def _complaints(settings: AgentSettings) -> Iterator[str]:
    yield from _hub(settings.hub)
    yield from _numbers(settings)
    yield from _durations(settings.work)


def _hub(hub: HubSettings) -> Iterator[str]:
    if not hub.consumer_name:
        yield "cluster name is required; give --consumer-name, the consumer whose cluster this agent manages"
    for problem in kubernetes_names.dns1123_label(hub.consumer_name):
        yield f"--consumer-name={hub.consumer_name}: {problem}"
    if hub.driver == "kube":
        yield (
            f"--workload-source-driver={hub.driver} is not in this version yet; "
            "use --workload-source-driver=grpc and the server's --grpc-broker-bindport"
        )
    if hub.driver in ("mqtt", "pubsub") and not hub.config_file:
        yield f"--workload-source-driver={hub.driver} needs --workload-source-config; give the file of the broker"
    if bool(hub.config_file) == bool(hub.grpc_url):
        yield (
            "--workload-source-config and --grpc-url are both given; leave one of them out"
            if hub.grpc_url
            else "the address of the server is missing; give --workload-source-config or --grpc-url=host:port"
        )


def _numbers(settings: AgentSettings) -> Iterator[str]:
    least: dict[str, tuple[float, float]] = {
        "--workload-agent-workers": (settings.work.workers, 1),
        "--orphan-limit-percent": (settings.work.orphan_limit_percent, 0),
        "--max-json-raw-length": (settings.work.max_json_raw_length, 0),
        "--max-feedback-watch": (settings.work.max_feedback_watch, 0),
        "--kube-api-qps": (settings.cluster.qps, 0),
        "--kube-api-burst": (settings.cluster.burst, 1),
        "-v": (settings.log.verbosity, 0),
    }
    for name, (value, lowest) in least.items():
        if not lowest <= value < math.inf:
            yield f"{name}={value}: use {lowest} or more"


def _durations(work: WorkSettings) -> Iterator[str]:
    positive = {
        "--status-sync-interval": work.status_sync_interval,
        "--resync-interval": work.resync_interval,
    }
    for name, length in positive.items():
        if length <= timedelta():
            yield f"{name} must be longer than zero; write a duration such as 10s"
    if work.eviction_grace_period < timedelta():
        yield "--appliedmanifestwork-eviction-grace-period is negative; write 0s or a duration such as 60m"
