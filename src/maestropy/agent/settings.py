"""What an agent can be told, by the command line and the environment.

One documented field per flag: unit, reason, and what absence means. `load` makes and checks them; it reads no file,
those with the way to the server are for `maestropy.transport`.
"""

import ipaddress
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Literal

from maestropy.flags import Flag, SettingsError, fill, flag, flags_of
from maestropy.wire import names


@dataclass(frozen=True, slots=True, kw_only=True)
class Listen:
    """An address to listen on."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether only this computer can connect."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


def read_listen(text: str) -> Listen:
    """Return the address that `host:port` means; no host means every interface."""
    host, colon, port = text.rpartition(":")
    is_port = port.isascii() and port.isdigit() and int(port) < 65536
    is_bare_ipv6 = ":" in host and not (host.startswith("[") and host.endswith("]"))
    if not colon or not is_port or is_bare_ipv6:
        raise ValueError("is not an address; write host:port such as 0.0.0.0:8443, or nothing to switch it off")
    return Listen(host=host.removeprefix("[").removesuffix("]"), port=int(port))


@dataclass(frozen=True, slots=True, kw_only=True)
class HubSettings:
    """Server"""

    consumer_name: str = field(default="", metadata=flag("--consumer-name"))
    """Which consumer of the server this agent serves: the name of its cluster. Needed."""

    client_id: str = field(default="", metadata=flag("--cloudevents-client-id"))
    """The name under which this agent sends. Default: the consumer's name and `-work-agent`, as the charts write it."""

    driver: Literal["grpc", "mqtt", "pubsub", "kube"] = field(default="grpc", metadata=flag("--workload-source-driver"))
    """How works arrive. `grpc` is the server's built-in broker, hence the default; the Go agent's default is kube.
    `mqtt` is an outside broker, described by --workload-source-config. The others are not in this version."""

    config_file: Path | None = field(default=None, metadata=flag("--workload-source-config"))
    """YAML or JSON file with the server's address and our credentials. Give this or --grpc-url."""

    grpc_url: str | None = field(default=None, metadata=flag("--grpc-url"))
    """Address of the server's port for agents, host:port, in plain text: for laptops, in place of
    --workload-source-config. Records are named after this text, so one cluster should always use the same."""

    codecs: tuple[str, ...] = field(default=("manifestbundle",), metadata=flag("--cloudevents-client-codecs"))
    """Accepted because deployments pass it; the only codec is manifestbundle, here and in Maestro."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkSettings:
    """Works"""

    status_sync_interval: timedelta = field(default=timedelta(seconds=10), metadata=flag("--status-sync-interval"))
    """Time between looks at objects that cannot be watched. Those that can are reported when they change."""

    resync_interval: timedelta = field(default=timedelta(minutes=4), metadata=flag("--resync-interval"))
    """Time between full comparisons of a work with the cluster: the safety net below the watches."""

    eviction_grace_period: timedelta = field(
        default=timedelta(minutes=60), metadata=flag("--appliedmanifestwork-eviction-grace-period")
    )
    """How long objects stay whose work the server does not know any more. 876000h or more: for ever."""

    max_json_raw_length: int = field(default=1048576, metadata=flag("--max-json-raw-length"))
    """Longest structured feedback value, in bytes; 1 MiB."""

    max_feedback_watch: int = field(default=50, metadata=flag("--max-feedback-watch"))
    """Accepted because deployments pass it; every kind in use is watched once, however much feedback it gives."""

    workers: int = field(default=10, metadata=flag("--workload-agent-workers"))
    """Works that are worked on at the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """Cluster"""

    kubeconfig: Path | None = field(default=None, metadata=flag("--kubeconfig"))
    """kubeconfig of the cluster to manage. Absent: the cluster this runs in, else KUBECONFIG, else ~/.kube/config."""

    namespace: str | None = field(default=None, metadata=flag("--namespace"))
    """Where the lease of --disable-leader-election=false is kept. Absent: the namespace of the pod or kubeconfig."""

    qps: float = field(default=500.0, metadata=flag("--kube-api-qps"))
    """Requests a second to the API server in the long run; 0 sets no limit. The Go agent's 50 is what a burst of works
    waits for; API servers share themselves out fairly today, and an agent that watches asks only when it acts."""

    burst: int = field(default=1000, metadata=flag("--kube-api-burst"))
    """Requests at once after a quiet time; 100 in the Go agent, see --kube-api-qps."""

    disable_leader_election: bool = field(default=True, metadata=flag("--disable-leader-election"))
    """Act at once. With false, of several agents of one cluster only the holder of a lease acts."""

    install_crds: bool = field(default=True, metadata=flag("--install-crds"))
    """Create the AppliedManifestWork definition if the cluster lacks it. With false somebody else must have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSettings:
    """Process"""

    listen: Listen | None = field(
        default=Listen(host="0.0.0.0", port=8443),  # noqa: S104 - probes come from other hosts; metrics need a token
        metadata=flag("--listen", read=read_listen),
    )
    """Address of the HTTPS port for /healthz, /readyz, /livez and /metrics; port 0 lets the system choose. Empty: no
    such port. Metrics need a token that may get /metrics, unless the address is a loopback one."""

    config: Path | None = field(default=None, metadata=flag("--config"))
    """YAML or JSON file of an OpenShift operator. Only its leaderElection counts: disable, namespace, name, and
    leaseDuration, renewDeadline and retryPeriod, which are 137s, 107s and 26s without it."""

    terminate_on_files: tuple[str, ...] = field(default=(), metadata=flag("--terminate-on-files"))
    """Accepted because deployments pass it; certificates and tokens that change are read again without a restart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """Logging"""

    verbosity: int = field(default=2, metadata=flag("-v"))
    """How much to log, as klog counts. Default 2, as the charts set it: the lines a work can be traced by, no
    payloads; whole events begin at 4."""

    format: Literal["klog", "json"] = field(default="klog", metadata=flag("--log-format"))
    """`klog` is what Maestro's dashboards and runbooks read; `json` is one object per line."""

    pod_name: str = ""
    """The pod we run in, from POD_NAME; log lines carry it. Empty: they do not. No flag."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """Everything an agent can be told; read once at start, then passed on."""

    hub: HubSettings = field(default_factory=HubSettings)
    work: WorkSettings = field(default_factory=WorkSettings)
    cluster: ClusterSettings = field(default_factory=ClusterSettings)
    process: ProcessSettings = field(default_factory=ProcessSettings)
    log: LogSettings = field(default_factory=LogSettings)


FLAGS: Mapping[str, Flag] = {each.name: each for each in flags_of(AgentSettings)}


def load(given: Mapping[str, str], environ: Mapping[str, str]) -> AgentSettings:
    """Return the checked settings; `given` maps flags, such as `--consumer-name`, to their text."""
    settings = fill(AgentSettings(), given, flags=FLAGS, command="agent")
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
        yield "cluster name is required; give --consumer-name, the name of the consumer that this agent serves"
    for problem in names.dns1123_label(hub.consumer_name):
        yield f"--consumer-name={hub.consumer_name}: {problem}"
    if hub.driver not in ("grpc", "mqtt"):
        yield (
            f"--workload-source-driver={hub.driver} is not in this version yet; "
            "use --workload-source-driver=grpc and the server's --grpc-broker-bindport"
        )
    if hub.driver == "mqtt" and not hub.config_file:
        yield "--workload-source-driver=mqtt needs --workload-source-config; give the file that names the broker"
    if bool(hub.config_file) == bool(hub.grpc_url):
        yield (
            "--workload-source-config and --grpc-url are both given; leave one of them out"
            if hub.grpc_url
            else "where the server is is not known; give --workload-source-config or --grpc-url=host:port"
        )


def _numbers(settings: AgentSettings) -> Iterator[str]:
    least: dict[str, tuple[float, float]] = {
        "--workload-agent-workers": (settings.work.workers, 1),
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
            yield f"{name} must be longer than nothing; write a duration such as 10s"
    if work.eviction_grace_period < timedelta():
        yield "--appliedmanifestwork-eviction-grace-period is negative; write 0s or a duration such as 60m"
