"""Restores the topic `topic` to a running broker, and prints the cost of that as JSON: SOURCE, BOOTSTRAP, NEW-NAME."""

import json
import sys
import time
from pathlib import Path
from resource import RUSAGE_SELF, getrusage

from kseg.client.brokers import Brokers
from kseg.cluster.cluster import Cluster
from kseg.log.selection import EVERY_PARTITION
from kseg.restore.plan import Planning, RestoreRequest
from kseg.restore.run import Step, run_restore
from kseg.restore.send import OnSent
from kseg.system.addresses import parse_address


def main() -> None:
    """Plan, send and check."""
    source, bootstrap, name = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    address = parse_address(bootstrap)
    assert address is not None
    request = RestoreRequest(EVERY_PARTITION, {"topic": name}, group=None, job=name)
    planning = Planning(Cluster([source]), request, [source], lambda _: None)
    for _ in planning.read():
        pass
    plan = planning.plan()
    seconds: dict[str, float] = {}

    def on_step(step: Step) -> OnSent:
        started = time.monotonic()

        def count(records: int, size: int) -> None:
            """Note the time up to these records."""
            seconds[step.value] = time.monotonic() - started

        return count

    with Brokers([address]) as brokers:
        run_restore(brokers, plan, request, on_step)
    used = getrusage(RUSAGE_SELF)
    cost = {"cpu_seconds": used.ru_utime + used.ru_stime, "peak_size": used.ru_maxrss * 1024}
    print(json.dumps({"records": plan.records, **seconds, **cost}))


if __name__ == "__main__":
    main()
