"""What kseg says of errors that come over from Spark's tasks, or from its JVM."""


def message_of(error: Exception) -> str:
    """The last line of a Python error of a task, without the exception's name; else what the JVM said."""
    java = getattr(error, "java_exception", None)
    text = str(error) if java is None else str(java.toString())
    lines = [line for line in text.splitlines() if line[:1].strip() and not line.startswith(_NO_MESSAGES)]
    own = [line for line in lines if line.startswith("kseg.errors.")]
    if own:
        return own[-1].partition(": ")[2]
    return lines[-1] if lines else type(error).__name__


_NO_MESSAGES = ("SQLSTATE", "Driver stacktrace:")
"""Beginnings of lines that say nothing to a user."""
