"""Paths that can't be opened or read while the rest can: reported at once, and remembered for the exit status."""

from kseg.errors import KsegError
from kseg.output.talk import talk


class Refusals:
    """Takes errors of single paths; `status` is the resulting exit status, 0 without any."""

    def __init__(self) -> None:
        self.status = 0

    def __call__(self, error: KsegError) -> None:
        """Reports an error, and remembers its status."""
        talk(f"kseg: {error}")
        self.status = max(self.status, error.status)
