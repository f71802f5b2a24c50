"""Settings of the server from the command line and the environment."""

from maestropy.flags.errors import SettingsError as SettingsError
from maestropy.server.settings.broker_file import check_broker_file as check_broker_file
from maestropy.server.settings.database import listening_address as listening_address
from maestropy.server.settings.database import locate as locate
from maestropy.server.settings.database import reading_address as reading_address
from maestropy.server.settings.hostname import check_hostname as check_hostname
from maestropy.server.settings.listeners import BrokerSettings as BrokerSettings
from maestropy.server.settings.listeners import GrpcSettings as GrpcSettings
from maestropy.server.settings.listeners import HealthSettings as HealthSettings
from maestropy.server.settings.listeners import HttpSettings as HttpSettings
from maestropy.server.settings.listeners import MetricsSettings as MetricsSettings
from maestropy.server.settings.listeners import RestAuthSettings as RestAuthSettings
from maestropy.server.settings.load import load as load
from maestropy.server.settings.model import ServerSettings as ServerSettings
from maestropy.server.settings.process import DatabaseSettings as DatabaseSettings
from maestropy.server.settings.process import DeliverySettings as DeliverySettings
from maestropy.server.settings.process import InstanceSettings as InstanceSettings
from maestropy.server.settings.process import LogSettings as LogSettings
