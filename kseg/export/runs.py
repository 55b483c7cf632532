"""Which runs are under way: each leaves a marker in the destination, from before its first file to after its last.

What a run wrote is removed by others only when it is known to be over: its marker has gone, its process has gone, or
nobody can tell and the number that it was to take is taken.
"""

import json
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from kseg.errors import KsegError
from kseg.export.destination import Destination
from kseg.export.shapes import INT32, members, number, optional, parse_json, require_shape, text

RUNS = "_kseg/runs"
MOST_BYTES = 1 << 16
"""Of a marker."""
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
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


class Processes:
    """Knows of processes whether they are over: of those that this boot of this machine's system has started."""

    def own(self) -> dict[str, Any]:
        """What tells this process from any other, here and elsewhere; null where the system doesn't say."""
        return {
            "host": socket.gethostname(),
            "boot": _boot(),
            "namespace": _namespace(),
            "pid": os.getpid(),
            "started": _state_and_start(os.getpid())[1],
        }

    def is_over(self, process: Mapping[str, Any]) -> bool | None:
        """Whether a process that `own` described has ended; None if it can't be told from here."""
        own = self.own()
        if own["boot"] is None or any(own[name] != process[name] for name in ("boot", "namespace")):
            return None
        try:
            os.kill(process["pid"], 0)
        except ProcessLookupError:
            return True
        except OSError:
            pass  # it is another user's, but there
        state, started = _state_and_start(process["pid"])
        return None if started is None else state in "ZX" or started != process["started"]


HERE = Processes()


def _boot() -> str | None:
    return _BOOT_ID.read_text(encoding="ascii").strip() if _BOOT_ID.exists() else None


def _namespace() -> str | None:
    """Numbers of processes mean something in it only: each container has its own."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return None


def _state_and_start(pid: int) -> tuple[str, int | None]:
    """A process' state, and when it was started, in ticks since the boot; see proc_pid_stat(5)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return fields[0], int(fields[19])
    except (OSError, IndexError, ValueError):
        return "", None


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
