"""Settings that a command line can give: declared once, as documented fields of frozen dataclasses."""

from maestropy.flags.declaration import Flag as Flag
from maestropy.flags.declaration import flag as flag
from maestropy.flags.declaration import flags_of as flags_of
from maestropy.flags.errors import SettingsError as SettingsError
from maestropy.flags.filling import fill as fill
