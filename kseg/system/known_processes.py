"""Which process is which, and whether it has ended, as /proc tells; elsewhere than under Linux nobody can tell."""

import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Processes:
    """Knows of processes whether they are over: of those that this boot of this machine's system has started."""

    def own(self) -> dict[str, Any]:
        """What tells this process from any other, here and elsewhere; null where the system doesn't say."""
        return {
            "host": socket.gethostname(),
            "boot": (_BOOT_ID.read_text(encoding="ascii").strip() if _BOOT_ID.exists() else None),
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
