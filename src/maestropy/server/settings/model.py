"""All settings of a server as one value."""

from dataclasses import dataclass, field

from maestropy.server.settings.operation import (
    DatabaseSettings,
    DeliverySettings,
    InstanceSettings,
    LogSettings,
)
from maestropy.server.settings.surfaces import (
    BrokerSettings,
    GrpcSettings,
    HealthSettings,
    HttpSettings,
    MetricsSettings,
    RestAuthSettings,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """Everything a server can be told; read once at start, then passed on."""

    http: HttpSettings = field(default_factory=HttpSettings)
    rest_auth: RestAuthSettings = field(default_factory=RestAuthSettings)
    metrics: MetricsSettings = field(default_factory=MetricsSettings)
    health: HealthSettings = field(default_factory=HealthSettings)
    grpc: GrpcSettings = field(default_factory=GrpcSettings)
    broker: BrokerSettings = field(default_factory=BrokerSettings)
    delivery: DeliverySettings = field(default_factory=DeliverySettings)
    database: DatabaseSettings = field(default_factory=DatabaseSettings)
    instance: InstanceSettings = field(default_factory=InstanceSettings)
    log: LogSettings = field(default_factory=LogSettings)

    @property
    def serves_agents(self) -> bool:
        """Whether agents connect to this process."""
        return self.broker.type == "grpc" and not self.broker.disabled

    @property
    def uses_mqtt(self) -> bool:
        """Whether agents are reached through an MQTT broker."""
        return self.broker.type == "mqtt" and not self.broker.disabled
