"""Makes the segment of the documentation's sample, `golden/docs/test-1-0`, with Kafka 2.0.1's record classes.

    python tools/make_sample.py --out DIR && diff -r DIR golden/docs/test-1-0

Needs Java 17 with its compiler, and Maven, which fetches the classes. The same bytes each time.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from kafka_classes import KafkaClasses

CLIENTS = "org.apache.kafka:kafka-clients:2.0.1"


def main() -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="directory for the three files")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        classes = KafkaClasses([CLIENTS], ["WriteSample"], Path(work))
        silent = ["-Dorg.slf4j.simpleLogger.defaultLogLevel=off"]
        subprocess.run(classes.command("WriteSample", str(arguments.out), options=silent), check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
