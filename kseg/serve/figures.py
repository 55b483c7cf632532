"""What a server is doing right now: clients, bytes that go out, and the partition that was sent last."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

SHOWN_EVERY_SECONDS = 1.0
_MIB = 1 << 20


@dataclass(slots=True)
class Figures:
    """Connections now, bytes of records sent so far, and the directory that the last ones came from."""

    clients: int = 0
    sent_bytes: int = 0
    reading: str = ""

    def line(self, bytes_per_second: float) -> str:
        """The figures in a line."""
        clients = "1 client" if self.clients == 1 else f"{self.clients} clients"
        rate = f"{bytes_per_second / _MIB:.1f} MiB/s"
        return f"{clients}, {rate}, {self.reading}" if bytes_per_second else f"{clients}, {rate}"


async def show_figures(figures: Figures, show: Callable[[str], None]) -> None:
    """Shows a line of figures every second, for ever."""
    before, sent = monotonic(), figures.sent_bytes
    while True:
        await asyncio.sleep(SHOWN_EVERY_SECONDS)
        now = monotonic()
        show(figures.line((figures.sent_bytes - sent) / (now - before)))
        before, sent = now, figures.sent_bytes
