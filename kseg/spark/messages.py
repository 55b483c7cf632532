"""What kseg says of errors that come over from Spark's tasks, or from its JVM."""

from kseg import errors
from kseg.errors import ClusterError, KsegError

_OWN = "kseg.errors."
_NO_MESSAGES = ("SQLSTATE", "Driver stacktrace:")
"""Beginnings of lines that say nothing to a user."""


def error_of(error: Exception) -> KsegError:
    """The error as kseg's own: of the kind that a task raised, with its message; else the cluster has failed."""
    lines = _lines_of(error)
    own = [line for line in lines if line.startswith(_OWN)]
    if not own:
        return ClusterError(lines[-1] if lines else type(error).__name__)
    name, _, message = own[-1].removeprefix(_OWN).partition(": ")
    kind = getattr(errors, name, None)
    return kind(message) if isinstance(kind, type) and issubclass(kind, KsegError) else KsegError(message)


def message_of(error: Exception) -> str:
    """The last line of a Python error of a task, without the exception's name; else what the JVM said."""
    return error_of(error).message


def _lines_of(error: Exception) -> list[str]:
    java = getattr(error, "java_exception", None)
    text = str(error) if java is None else str(java.toString())
    return [line for line in text.splitlines() if line[:1].strip() and not line.startswith(_NO_MESSAGES)]
