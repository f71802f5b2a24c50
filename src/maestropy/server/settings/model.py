"""All settings of the server as one value."""

import ipaddress
from dataclasses import dataclass, field
from typing import Literal

from maestropy.server.settings.console_login import ConsoleLoginSettings
from maestropy.server.settings.listeners import (
    BrokerSettings,
    GrpcSettings,
    HealthSettings,
    HttpSettings,
    MetricsSettings,
    RestAuthSettings,
)
from maestropy.server.settings.process import (
    DatabaseSettings,
    DeliverySettings,
    HistorySettings,
    InstanceSettings,
    LogSettings,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """All settings; read once at start."""

    http: HttpSettings = field(default_factory=HttpSettings)
    rest_auth: RestAuthSettings = field(default_factory=RestAuthSettings)
    console_login: ConsoleLoginSettings = field(default_factory=ConsoleLoginSettings)
    metrics: MetricsSettings = field(default_factory=MetricsSettings)
    health: HealthSettings = field(default_factory=HealthSettings)
    grpc: GrpcSettings = field(default_factory=GrpcSettings)
    broker: BrokerSettings = field(default_factory=BrokerSettings)
    delivery: DeliverySettings = field(default_factory=DeliverySettings)
    history: HistorySettings = field(default_factory=HistorySettings)
    database: DatabaseSettings = field(default_factory=DatabaseSettings)
    instance: InstanceSettings = field(default_factory=InstanceSettings)
    log: LogSettings = field(default_factory=LogSettings)

    @property
    def is_loopback_only(self) -> bool:
        """Whether only clients on this host can reach the listeners."""
        if self.http.hostname == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.http.hostname).is_loopback
        except ValueError:
            return False

    @property
    def serves_agents(self) -> bool:
        """Whether agents connect to this process."""
        return self.broker.type == "grpc" and not self.broker.disabled

    @property
    def message_broker(self) -> Literal["mqtt", "pubsub", ""]:
        """The message broker through which agents are reached; empty if there is none."""
        return "" if self.broker.type == "grpc" or self.broker.disabled else self.broker.type
