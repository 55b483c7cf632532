"""What all connections of a server share."""

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass

from kseg.serve.address import Address
from kseg.serve.figures import Figures
from kseg.serve.growth import Growth
from kseg.serve.limits import Limits
from kseg.serve.security import Security
from kseg.serve.served_cluster import ServedCluster


@dataclass(frozen=True, slots=True)
class Shared:
    """What is served, who works for clients, and what they may take.

    advertised: what clients are told to connect to; None: the address that they came to.
    figures: what clients get right now.
    note: called with a line for each request, and with why a connection is closed, if that is the client's doing.
    """

    served: ServedCluster
    workers: Executor
    growth: Growth
    advertised: Address | None
    limits: Limits
    figures: Figures
    security: Security
    note: Callable[[str], None]
