"""The process `kseg`, also as `python -m kseg`: Ctrl-C is quiet from the first import to the end."""

import os
import sys

INTERRUPTED = 130  # as in kseg.interrupts, which may not be imported then

try:
    from kseg.interrupts import leave_at_interrupt
except KeyboardInterrupt:
    os._exit(INTERRUPTED)


def main() -> int:
    """Runs the process's own command line; gives its exit status."""
    leave_at_interrupt()
    from kseg.cli import main as run

    status = run()
    leave_at_interrupt()
    return status


if __name__ == "__main__":
    sys.exit(main())
