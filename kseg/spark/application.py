"""The application of spark-submit: `kseg spark-export` again, inside the session that spark-submit has set up."""

import sys

if __name__ == "__main__":
    if not sys.flags.safe_path:
        del sys.path[0]  # this file's folder has no top-level modules; nothing may be imported before this
    from runpy import run_module

    program = run_module("kseg.__main__")
    sys.exit(program["main"](["spark-export", "--submitted", *sys.argv[1:]]))
