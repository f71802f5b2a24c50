"""Errors of the store.

`translate` turns the exceptions of the driver into these; code above the store never sees a driver exception.

    StoreError
    ├── DatabaseUnavailable      the database cannot be reached or is overloaded: try again later
    │   ├── DatabaseReadOnly     the database takes no writes: a standby, or set to read-only
    │   ├── RowLocked            another transaction holds the row for too long
    │   ├── StatementTimeout     a statement took longer than it may
    │   └── NoLoginToken         the identity provider issued no token to log in with
    ├── UniqueViolation          a unique constraint was violated
    ├── ForeignKeyViolation      a foreign key constraint was violated
    ├── InvalidValue             a value from outside that PostgreSQL cannot store
    └── StatementError           a wrong statement of ours, or an unknown schema
        └── PermissionMissing    the role of the address may not do what the store needs
"""

import asyncpg


class StoreError(Exception):
    """Base class: the store could not carry out a statement."""


class DatabaseUnavailable(StoreError):
    """The database cannot be reached, or cannot take more work now."""


class DatabaseReadOnly(DatabaseUnavailable):
    """The database takes no writes now: it is a standby, or read-only by its settings."""


class RowLocked(DatabaseUnavailable):
    """Another transaction holds one of the rows and did not end in time."""


class StatementTimeout(DatabaseUnavailable):
    """A statement took longer than it may, and was cancelled."""


class NoLoginToken(DatabaseUnavailable):
    """The identity provider issued no token to log in with; the message has the remedy."""


class UniqueViolation(StoreError):
    """A unique constraint was violated."""

    def __init__(self, message: str, *, constraint: str) -> None:
        super().__init__(message)
        self.constraint = constraint


class ForeignKeyViolation(StoreError):
    """A foreign key constraint was violated; `constraint` is its name."""

    def __init__(self, message: str, *, constraint: str) -> None:
        super().__init__(message)
        self.constraint = constraint


class InvalidValue(StoreError):
    """PostgreSQL cannot store a value that came from outside."""


class StatementError(StoreError):
    """A statement of the store does not fit the database."""


class PermissionMissing(StatementError):
    """The role of the address may not do what the store needs."""


def translate(error: BaseException) -> StoreError:
    """Return the store error for an exception of the driver."""
    reason = error.strerror if isinstance(error, OSError) else None  # without the number
    text = reason or str(error) or type(error).__name__
    match error:
        case asyncpg.UniqueViolationError():
            return UniqueViolation(text, constraint=error.constraint_name or "")
        case asyncpg.ForeignKeyViolationError() | asyncpg.RestrictViolationError():  # the second since PostgreSQL 18
            return ForeignKeyViolation(text, constraint=error.constraint_name or "")
        case asyncpg.LockNotAvailableError() | asyncpg.QueryCanceledError():
            return StatementTimeout(text) if isinstance(error, asyncpg.QueryCanceledError) else RowLocked(text)
        case asyncpg.ReadOnlySQLTransactionError():
            return DatabaseReadOnly(text)
        # The second: no schema of the search path that the role may use.
        case asyncpg.InsufficientPrivilegeError() | asyncpg.InvalidSchemaNameError():
            return PermissionMissing(text)
        case asyncpg.DataError() | asyncpg.ProgramLimitExceededError() | asyncpg.StatementTooComplexError():
            return InvalidValue(text)
        case (
            asyncpg.PostgresConnectionError()
            | asyncpg.InsufficientResourcesError()
            | asyncpg.OperatorInterventionError()
            | asyncpg.TransactionRollbackError()
            | asyncpg.ObjectNotInPrerequisiteStateError()  # an unavailable lock, a database closed for maintenance
            | asyncpg.InternalClientError()
            | asyncpg.InterfaceError()
            | asyncpg.InvalidAuthorizationSpecificationError()
            | asyncpg.InvalidCatalogNameError()
            | TimeoutError()
            | OSError()
        ):
            return DatabaseUnavailable(text)
        case _:
            return StatementError(text)


# What the driver raises; every `except DRIVER_ERRORS` calls `translate`.
DRIVER_ERRORS = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError)
