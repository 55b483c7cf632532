"""The process `kseg`, also as `python -m kseg`: signals end it quietly from the first import to the end."""

import gc
import os
import sys

if __name__ == "__main__" and not sys.flags.safe_path:
    # `-m` put the current directory there: what lies beside data is no module of ours. Nothing may be imported before.
    del sys.path[0]


INTERRUPTED = 130  # as in kseg.system.signals, which may not be imported then

try:
    from kseg.system.safe_path import leave_out_current_directory

    leave_out_current_directory()
    from kseg.system.signals import interrupted_status, leave_at_interrupt
except KeyboardInterrupt:
    os._exit(INTERRUPTED)


def main(arguments: "list[str] | None" = None) -> int:
    """Runs a command line, by default the process's own; gives its exit status."""
    leave_at_interrupt()
    gc.disable()  # until the command begins: what a start makes stays, and looking for garbage in it takes long
    from kseg.system.signals import put_off_inspect

    put_off_inspect()
    from kseg.cli import main as run

    try:
        status = run(arguments)
    except KeyboardInterrupt:  # when all was done but to say so
        status = interrupted_status()
    leave_at_interrupt()
    gc.freeze()  # nor is there anything to look for when all goes
    return status


def run() -> int:
    """Does what `main` does, and ends the process without taking it apart, unless something waits for that."""
    status = main()
    import atexit
    import threading

    # The threads of obstore abort a process that they find taken apart.
    if "obstore" in sys.modules or (atexit._ncallbacks() == 0 and threading.active_count() == 1):
        sys.stdout.flush()
        os._exit(status)
    return status


if __name__ == "__main__":
    sys.exit(run())
