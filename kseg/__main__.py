"""The process `kseg`, also as `python -m kseg`: signals end it quietly from the first import to the end."""

import gc
import os
import sys

if __name__ == "__main__" and not sys.flags.safe_path:
    # `-m` put the current directory there: modules next to data aren't kseg's. Nothing may be imported before.
    del sys.path[0]


INTERRUPTED = 130  # as in kseg.system.signals, which may not be imported by then

try:
    from kseg.system.safe_path import leave_out_current_directory

    leave_out_current_directory()
    from kseg.system.signals import interrupted_status, leave_at_interrupt
except KeyboardInterrupt:
    os._exit(INTERRUPTED)


def main(arguments: "list[str] | None" = None) -> int:
    """Run a command line, by default the process's own; return its exit status."""
    leave_at_interrupt()
    gc.disable()  # until the command begins: objects of the start stay, and collecting garbage among them takes long
    from kseg.system.late_modules import put_off_imports

    put_off_imports()
    from kseg.cli import main as run

    try:
        status = run(arguments)
    except KeyboardInterrupt:  # after the command's end, before its exit status is returned
        status = interrupted_status()
    leave_at_interrupt()
    gc.freeze()  # nor is a collection needed at the end
    return status


def run() -> int:
    """Run as `main`, and end the process without cleaning up Python, unless something waits for that."""
    status = main()
    import atexit
    import threading

    # The threads of obstore abort a process whose interpreter is already finalized.
    if "obstore" in sys.modules or (atexit._ncallbacks() == 0 and threading.active_count() == 1):
        sys.stdout.flush()
        os._exit(status)
    return status


if __name__ == "__main__":
    sys.exit(run())
