"""The command that a server runs for, and what it gets: the address in its arguments and its environment."""

import asyncio
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from kseg.errors import UsageError

PLACEHOLDER = "{bootstrap}"
"""What becomes HOST:PORT in the command's arguments."""
_STATUS_OF_SIGNAL = 128


async def run_beside(
    words: Sequence[str],
    settings: Mapping[str, str],
    directory: Path,
    on_signal: Callable[[Callable[[int], None]], None],
) -> int:
    """Runs a command, and gives its exit status: 128 and the signal's number if a signal ended it.

    Args:
        words: the command and its arguments.
        settings: librdkafka's, with which the command reaches the server; its address among them.
        directory: a directory for the command's configuration.
        on_signal: is given what passes a signal on to the command.

    Raises:
        UsageError: the command can't be started.
    """
    configuration = directory / "kcat.conf"
    lines = (f"{name}={value}\n" for name, value in settings.items())
    configuration.write_text("".join(lines), encoding="utf-8")
    bootstrap = settings["bootstrap.servers"]
    environment = environment_beside(os.environ, bootstrap, configuration)
    try:
        process = await asyncio.create_subprocess_exec(
            *(word.replace(PLACEHOLDER, bootstrap) for word in words), env=environment
        )
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{words[0]}: can't be run: {reason}") from error

    def pass_on(number: int) -> None:
        if number != signal.SIGINT:  # which a terminal sends to both
            with suppress(ProcessLookupError):
                process.send_signal(number)

    on_signal(pass_on)
    status = await process.wait()
    return status if status >= 0 else _STATUS_OF_SIGNAL - status


def environment_beside(own: Mapping[str, str], bootstrap: str, configuration: Path) -> dict[str, str]:
    """The environment of the command: KSEG_BOOTSTRAP, and a configuration file that kcat reads by itself."""
    return {**own, "KSEG_BOOTSTRAP": bootstrap, "KCAT_CONFIG": str(configuration)}
