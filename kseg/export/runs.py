"""Which runs are under way: each leaves a marker in the destination, from before its first file to after its last.

What a run wrote is removed by others only when it is known to be over: its marker has gone, its process has gone, or
nobody can tell and the number that it was to take is taken.
"""

import json
from dataclasses import dataclass
from typing import NamedTuple
from uuid import uuid4

from kseg.errors import KsegError
from kseg.export.destination import Destination
from kseg.export.shapes import INT32, members, number, optional, parse_json, require_shape, text
from kseg.system.known_processes import Processes

RUNS = "_kseg/runs"
MOST_BYTES = 1 << 16
"""Of a marker."""
_PROCESS = members(
    {
        "host": text,
        "boot": optional(text),
        "namespace": optional(text),
        "pid": number(1, INT32),
        "started": optional(number(0)),
    }
)
_MARKER = members({"base": number(0, 99_999_999), "process": _PROCESS})


class ExportRun(NamedTuple):
    """A run that is under way. id: its own, in the names of what it writes; base: the number that it goes on from."""

    id: str
    base: int


def marker_name(run_id: str) -> str:
    """Where a run says that it is under way."""
    return f"{RUNS}/{run_id}.json"


def new_run(base: int) -> ExportRun:
    """A run with an id of its own, which nobody knows of yet."""
    return ExportRun(uuid4().hex[:8], base)


def mark(run: ExportRun, place: Destination, processes: Processes) -> bool:
    """Leaves a run's marker; from then on no other run takes away what this one writes. False if the id is taken."""
    content = json.dumps({"base": run.base, "process": processes.own()}).encode()
    return place.claim(marker_name(run.id), content)


@dataclass(frozen=True, slots=True)
class Marker:
    """What a run says of itself, as another run reads it. base: None if the marker says nothing that can be read."""

    run_id: str
    base: int | None
    host: str
    pid: int | None
    is_over: bool | None

    def is_left_alone(self, latest: int) -> bool:
        """Whether the run may still commit or is at work; `latest` is the highest number that is taken.

        If nothing is known about its process, numbers decide: a run whose number is taken has committed or lost.
        """
        if self.is_over is not None:
            return not self.is_over
        return self.base is None or self.base >= latest

    def __str__(self) -> str:
        """Who it is, and what to do if it is over."""
        who = "" if self.pid is None else f" (process {self.pid} on {self.host})"
        return f"run {self.run_id}{who} may be under way; if it is over, remove {marker_name(self.run_id)}"


def read_markers(place: Destination, processes: Processes) -> list[Marker]:
    """The runs that say they are under way."""
    names = [name for name in place.names(RUNS) if name.endswith(".json")]
    found = (_read_marker(name, place, processes) for name in names)
    return [marker for marker in found if marker is not None]


def _read_marker(name: str, place: Destination, processes: Processes) -> Marker | None:
    run_id = name.removeprefix(f"{RUNS}/").removesuffix(".json")
    try:
        content = place.read(name, MOST_BYTES)
        if content is None:
            return None
        found = parse_json(content, name)
        require_shape(found, _MARKER, name)
    except KsegError:
        return Marker(run_id, None, "", None, None)
    process = found["process"]
    return Marker(run_id, found["base"], process["host"], process["pid"], processes.is_over(process))
