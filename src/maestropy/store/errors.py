"""What can go wrong in the store, in our own words.

The driver's exceptions end in `translate`; nothing above the store ever sees one.

    StoreError
    ├── Unavailable    the database cannot be reached or refuses work now: try again later
    │   └── Locked     somebody else has the row, and did not finish in time
    ├── Conflict       a unique constraint said no
    ├── Dangling       a foreign key said no
    ├── BadValue       a value PostgreSQL cannot hold: the sender's fault
    └── Misuse         a query of ours is wrong, or the schema is not the one we know
"""

import asyncpg


class StoreError(Exception):
    """The store could not do what was asked."""


class Unavailable(StoreError):
    """The database cannot be reached, or cannot take more work now."""


class Locked(Unavailable):
    """Somebody else works on one of the rows, and did not finish in time."""


class Conflict(StoreError):
    """A unique constraint was violated."""

    def __init__(self, message: str, *, constraint: str) -> None:
        super().__init__(message)
        self.constraint = constraint


class Dangling(StoreError):
    """A foreign key was violated; `constraint` says which."""

    def __init__(self, message: str, *, constraint: str) -> None:
        super().__init__(message)
        self.constraint = constraint


class BadValue(StoreError):
    """PostgreSQL cannot represent a value that came from outside."""


class Misuse(StoreError):
    """A statement of ours does not fit the database."""


def translate(error: BaseException) -> StoreError:
    """Return the store error that `error` of the driver means."""
    text = str(error) or type(error).__name__
    match error:
        case asyncpg.UniqueViolationError():
            return Conflict(text, constraint=error.constraint_name or "")
        case asyncpg.ForeignKeyViolationError() | asyncpg.RestrictViolationError():  # the second since PostgreSQL 18
            return Dangling(text, constraint=error.constraint_name or "")
        case asyncpg.LockNotAvailableError():
            return Locked(text)
        case asyncpg.DataError() | asyncpg.ProgramLimitExceededError() | asyncpg.StatementTooComplexError():
            return BadValue(text)
        case (
            asyncpg.PostgresConnectionError()
            | asyncpg.InsufficientResourcesError()
            | asyncpg.OperatorInterventionError()
            | asyncpg.TransactionRollbackError()
            | asyncpg.ObjectNotInPrerequisiteStateError()  # a lock not to be had, a database closed for maintenance
            | asyncpg.ReadOnlySQLTransactionError()
            | asyncpg.InternalClientError()
            | asyncpg.InterfaceError()
            | asyncpg.InvalidAuthorizationSpecificationError()
            | asyncpg.InvalidCatalogNameError()
            | TimeoutError()
            | OSError()
        ):
            return Unavailable(text)
        case _:
            return Misuse(text)


# What a statement or a connection can raise; `except DRIVER_ERRORS` is the border.
DRIVER_ERRORS = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError)
