"""The producer state that a log leads to, compared with brokers' snapshots."""

from kseg.cluster.cluster import Cluster
from kseg.index.producers import ProducerSnapshot, ProducerStates
from kseg.index.rebuild import rebuild
from kseg.log.partition import PartitionLog
from tests import golden


def spans(partition: PartitionLog) -> list[tuple[int, int]]:
    """Base and end offsets of segments that have a snapshot at their end, and one at their base or nothing before."""
    ends = [*partition.base_offsets[1:], partition.read_log_end_offset()]
    return [
        (base, end)
        for base, end in zip(partition.base_offsets, ends, strict=False)
        if end in partition.snapshots and (base in partition.snapshots or base == partition.base_offsets[0])
    ]


def test_states_are_those_of_the_next_snapshot() -> None:
    equal = forgotten = 0
    for root in sorted((golden.ROOT / "logs").glob("[0-9]*")):
        for partition in Cluster([root]).directories() if "remote" not in root.name else ():
            for base, end in spans(partition):
                states = partition.read_producer_states(base) or ProducerStates()
                slot = partition.floor_slot(base)
                assert slot is not None
                with partition.segments[slot].open_log() as log_file:
                    rebuild(log_file, states=states)
                with ProducerSnapshot(partition.snapshots[end].path) as snapshot:
                    expected = {entry.producer_id: entry for entry in snapshot.entries()}
                found = {number: state for number, state in states.producers.items() if number in expected}
                if tuple(map(int, root.name.partition("-")[0].split("."))) < (2, 4):
                    # A marker didn't bring its time yet.
                    found = {number: state._replace(timestamp=0) for number, state in found.items()}
                    expected = {number: state._replace(timestamp=0) for number, state in expected.items()}
                assert found == expected, (partition.path, end)
                equal += len(found) == len(states.producers)
                forgotten += len(found) != len(states.producers)
    print(f"{equal} snapshots equal; in {forgotten} the broker had let producers go by then")  # noqa: T201
    assert equal > 100
