"""Declare settings that command line flags set: documented fields of frozen dataclasses."""

from maestropy.flags.declaration import Flag as Flag
from maestropy.flags.declaration import flag as flag
from maestropy.flags.declaration import flags_of as flags_of
from maestropy.flags.errors import SettingsError as SettingsError
from maestropy.flags.overrides import override as override
