"""A new file, written whole or not at all."""

import os
from contextlib import suppress
from pathlib import Path

from kseg.errors import UsageError
from kseg.system.new_directory import WriteError


def write_new_file(path: Path, content: bytes) -> None:
    """Writes a file where there is none.

    Raises UsageError if something is there, WriteError if it can't be written; then nothing is left of it.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError as error:
        raise UsageError("exists already: give the name of a new file", path) from error
    except OSError as error:
        raise WriteError(f"can't be written: {error.strerror}", path) from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except BaseException as error:
        with suppress(OSError):
            path.unlink()
        if isinstance(error, OSError):
            raise WriteError(f"can't be written: {error.strerror}", path) from error
        raise
