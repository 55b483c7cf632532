"""The process `kseg`, also as `python -m kseg`: Ctrl-C is quiet from the first import to the end."""

import gc
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
    gc.disable()  # until the command begins: what a start makes stays, and looking for garbage in it takes long
    from kseg.cli import main as run

    status = run()
    leave_at_interrupt()
    gc.freeze()  # nor is there anything to look for when all goes
    return status


if __name__ == "__main__":
    sys.exit(main())
