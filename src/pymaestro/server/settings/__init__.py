"""What a server can be told, by the command line and the environment."""

from pymaestro.flags.errors import SettingsError as SettingsError
from pymaestro.server.settings.load import load as load
from pymaestro.server.settings.locate import locate as locate
from pymaestro.server.settings.model import ServerSettings as ServerSettings
from pymaestro.server.settings.operation import DatabaseSettings as DatabaseSettings
from pymaestro.server.settings.operation import DeliverySettings as DeliverySettings
from pymaestro.server.settings.operation import InstanceSettings as InstanceSettings
from pymaestro.server.settings.operation import LogSettings as LogSettings
from pymaestro.server.settings.surfaces import BrokerSettings as BrokerSettings
from pymaestro.server.settings.surfaces import GrpcSettings as GrpcSettings
from pymaestro.server.settings.surfaces import HealthSettings as HealthSettings
from pymaestro.server.settings.surfaces import HttpSettings as HttpSettings
from pymaestro.server.settings.surfaces import MetricsSettings as MetricsSettings
from pymaestro.server.settings.surfaces import RestAuthSettings as RestAuthSettings
