"""What a server can be told, by the command line and the environment."""

from maestropy.flags.errors import SettingsError as SettingsError
from maestropy.server.settings.load import load as load
from maestropy.server.settings.locate import locate as locate
from maestropy.server.settings.model import ServerSettings as ServerSettings
from maestropy.server.settings.operation import DatabaseSettings as DatabaseSettings
from maestropy.server.settings.operation import DeliverySettings as DeliverySettings
from maestropy.server.settings.operation import InstanceSettings as InstanceSettings
from maestropy.server.settings.operation import LogSettings as LogSettings
from maestropy.server.settings.surfaces import BrokerSettings as BrokerSettings
from maestropy.server.settings.surfaces import GrpcSettings as GrpcSettings
from maestropy.server.settings.surfaces import HealthSettings as HealthSettings
from maestropy.server.settings.surfaces import HttpSettings as HttpSettings
from maestropy.server.settings.surfaces import MetricsSettings as MetricsSettings
from maestropy.server.settings.surfaces import RestAuthSettings as RestAuthSettings
