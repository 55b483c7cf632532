"""What spark-submit runs: `kseg spark-export` once more, inside the session that spark-submit has set up."""

import sys
from importlib import import_module

if __name__ == "__main__":
    sys.path.pop(0)  # this file's folder, whose modules aren't top-level ones
    sys.exit(import_module("kseg.cli").main(["spark-export", "--submitted", *sys.argv[1:]]))
