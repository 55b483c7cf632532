"""Up to three exports into one place, interleaved step by step, with crashes between any two: no run's work is lost.

The exporters run kseg's own code; only the destination is a model.
"""

import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from kseg.export.commit.manifest import Manifest, Stub, manifest_name
from kseg.export.planning import Export
from kseg.export.report import reconcile
from kseg.export.settings import FileOptions
from tests.export import exports
from tests.export.stepped import Exporter, Store, pause_runs
from tests.loops import TAKES_ALL

TOPICS = 3
RECORDS = 4
EXAMPLES = 30 if TAKES_ALL else 12
EXPECTED = (None, "done", "crashed", "failed: a fault")
LOST = (
    "failed: another export wrote to the destination at the same time",
    "failed: the destination accepts only one export at a time",
)
ONE_FOLDER = FileOptions(partition_by=())
OTHERS: dict[str, tuple[tuple[int, dict[str, bool]], ...]] = {
    "adding": ((2, {"overwrite": True}), (0, {})),
    "overwriting": ((2, {"overwrite": True}), (0, {})),
    "merging": ((2, {"merge_files": True}), (0, {"overwrite": True}), (1, {"merge_files": True})),
}
"""Exporters that come while a run of a kind pauses: their topics and options."""
ENDS = ("goes on", "crashes", "fails")
SMALLEST = ("local", "adding")
SLOTS = st.integers(0, 2)
STEPS = ("create", "claim", "rename", "delete", "replace", "read", "names")
PLACES = {
    "local": (True, True),
    "local, partitions share files": (True, True, True),
    "object store": (False, True),
    "object store without a put on a condition": (False, False),
}


@pytest.fixture(scope="module")
def sources() -> Iterator[list[tuple[str, ...]]]:
    """Yield two partitions of each topic, whose values name the topic."""
    with TemporaryDirectory() as folder:
        for topic, partition in product(range(TOPICS), range(2)):
            directory = Path(folder, f"topic{topic}-{partition}")
            exports.write_log(directory, 0, RECORDS, per_batch=2, value=b"of topic %d" % topic)
        yield [tuple(f"{folder}/topic{topic}-{partition}" for partition in range(2)) for topic in range(TOPICS)]


class Histories:
    """The actions of exporters at one destination, and its invariants. Partitions share files if there are several."""

    def __init__(self, sources: list[tuple[str, ...]], store: Store) -> None:
        self.sources = [own if store.shares_files else own[:1] for own in sources]
        self.store = store

    def come(
        self, topic: int, *, overwrite: bool = False, merge_files: bool = False, is_known: bool = True
    ) -> Exporter:
        """Start an exporter of one topic into the shared folder."""
        export = Export(self.sources[topic], "memory", files=ONE_FOLDER, overwrite=overwrite, merge_files=merge_files)
        return Exporter(self.store, export, is_known=is_known)

    def end(self) -> None:
        """Let all remaining exporters end in turn, and then another one."""
        while any(exporter.outcome is None for exporter in self.store.exporters):
            for exporter in self.store.exporters:
                exporter.go(1)
        self.check()
        self.check_the_next_run_tidies_up()

    def check(self) -> None:
        """Assert that, after a run has ended, the manifest names the files of all claims."""
        store = self.store
        assert store.faults == []
        for exporter in store.exporters:
            assert exporter.outcome in EXPECTED or exporter.outcome.startswith(LOST), exporter.outcome
        has_lost = [exporter for exporter in store.exporters if (exporter.outcome or "").startswith(LOST)]
        assert not set(map(id, has_lost)) & set(map(id, store.claims))
        names = [name for name in store.files if name.startswith("_kseg/manifest-")]
        assert sorted(names) == [manifest_name(number + 1) for number in range(len(store.claims))]

    def find_manifest(self, number: int) -> Manifest | Stub:
        """Return the manifest of a number."""
        return Manifest.from_bytes(self.store.files[manifest_name(number)], manifest_name(number))

    def counting(self) -> Manifest:
        """Return the valid manifest."""
        found = self.find_manifest(len(self.store.claims))
        assert isinstance(found, Manifest)
        return found

    def check_whole(self) -> None:
        """Assert that the manifest's files exist and hold exactly the committed records."""
        expected: set[str] = set()
        for exporter in self.store.claims:
            expected = (set() if exporter.export.overwrite else expected) | {*exporter.export.sources}
        found = {}
        manifest = self.counting()
        for result in manifest.results:
            rows = [row for file in result.files for row in self.store.rows(file)]
            found[result.replica] = rows
        in_files = sum(map(self.store.row_count, set(manifest.paths())))
        assert in_files == sum(map(len, found.values()))  # a reader of complete files sees the same
        assert set(found) == expected
        assert "_SUCCESS" in self.store.files
        for path, rows in found.items():
            value = b"of topic %d" % next(topic for topic, own in enumerate(self.sources) if path in own)
            assert rows == [(offset, value) for offset in range(RECORDS)]

    def check_what_readers_see(self) -> None:
        """Assert that, if files are renamed and reported complete, they are those of exactly one manifest."""
        if self.store.renames and "_SUCCESS" in self.store.files:
            seen = {name for name in self.store.files if name.endswith(".parquet") and not name.startswith("_kseg/")}
            manifests = map(self.find_manifest, range(max(len(self.store.claims) - 1, 1), len(self.store.claims) + 1))
            assert seen in [set(found.paths()) for found in manifests if isinstance(found, Manifest)]

    def check_the_next_run_tidies_up(self) -> None:
        """Assert that a new export works, completes everything, and removes all traces of crashed runs."""
        if not self.store.claims_safely:  # a crashed run of unknown state excludes others until its marker is removed
            for name in [name for name in self.store.files if name.startswith("_kseg/runs/")]:
                del self.store.files[name]
        last = self.come(0)
        assert last.finish() == "done"
        self.check()
        self.check_whole()
        manifest = self.counting()
        there = {name for name in self.store.files if not name.startswith("_kseg/manifest-")}
        beside = {"_SUCCESS", "_kseg/report.json", "_kseg/damages.csv"}
        lost_track_of = {name for name in there if name.startswith("_kseg/runs/")}
        assert beside <= there
        report = json.loads(self.store.files["_kseg/report.json"])
        assert [part["topic"] for part in report["partitions"]] == [part.topic for part in reconcile(manifest.results)]
        if not lost_track_of:
            assert there == {*manifest.paths(), *beside}


class Commits(RuleBasedStateMachine):
    """A machine in which exporters come, do some steps, and crash; at the end all others end, and another one comes."""

    sources: list[tuple[str, ...]]
    place: str

    @initialize()
    def begin(self) -> None:
        self.histories = Histories(self.sources, Store(*PLACES[self.place]))
        self.slots: list[Exporter | None] = [None, None, None]

    @rule(slot=SLOTS, topic=st.integers(0, TOPICS - 1), **dict.fromkeys(("overwrite", "merge", "known"), st.booleans()))
    def come(self, slot: int, topic: int, overwrite: bool, merge: bool, known: bool) -> None:
        if self.slots[slot] is None or self.slots[slot].outcome is not None:
            come = self.histories.come
            self.slots[slot] = come(topic, overwrite=overwrite, merge_files=merge, is_known=known)

    @precondition(lambda self: any(self.slots))
    @rule(slot=SLOTS, count=st.integers(1, 8))
    def go(self, slot: int, count: int) -> None:
        if self.slots[slot] is not None:
            self.slots[slot].go(count)

    @precondition(lambda self: any(self.slots))
    @rule(slot=SLOTS, kind=st.sampled_from(STEPS), count=st.integers(1, 6))
    def go_to(self, slot: int, kind: str, count: int) -> None:
        if self.slots[slot] is not None:
            self.slots[slot].go_to(kind, count)

    @precondition(lambda self: any(self.slots))
    @rule(slot=SLOTS)
    def finish(self, slot: int) -> None:
        if self.slots[slot] is not None:
            self.slots[slot].finish()
            self.histories.check()

    @precondition(lambda self: any(self.slots))
    @rule(slot=SLOTS)
    def crash(self, slot: int) -> None:
        if self.slots[slot] is not None:
            self.slots[slot].crash()

    @precondition(lambda self: any(self.slots))
    @rule(slot=SLOTS)
    def fail(self, slot: int) -> None:
        if self.slots[slot] is not None and self.slots[slot].next_step != "begin":
            self.slots[slot].fail()

    def teardown(self) -> None:
        if hasattr(self, "histories"):
            self.histories.end()


@pytest.mark.parametrize("place", PLACES)
def test_no_runs_work_is_lost(sources: list[tuple[str, ...]], place: str) -> None:
    machine = type("CommitsHere", (Commits,), {"sources": sources, "place": place})
    run_state_machine_as_test(machine, settings=settings(max_examples=EXAMPLES, stateful_step_count=25))


@pytest.mark.parametrize("kind", ["adding", "overwriting", "merging"])
@pytest.mark.parametrize("place", PLACES)
def test_a_run_may_pause_anywhere_while_others_come(sources: list[tuple[str, ...]], place: str, kind: str) -> None:
    """Others come and end; then the run continues or never does, in turn, or each in one test if all are taken.

    The turns and the chosen steps differ, so that each way to end occurs at each step somewhere.
    """
    own, other = [*PLACES].index(place), [*OTHERS].index(kind)
    for shift in range(len(ENDS)) if TAKES_ALL and (place, kind) == SMALLEST else [own]:
        for number, (histories, pausing) in enumerate(paused_runs(sources, place, kind, 1, own + other)):
            for topic, options in OTHERS[kind]:
                if histories.come(topic, **options).finish() == "done":
                    histories.check_whole()
                histories.check()
            end_as(pausing, ENDS[(number + shift) % len(ENDS)])
            histories.end()


@pytest.mark.parametrize("kind", ["adding", "merging"])
@pytest.mark.parametrize("place", PLACES)
def test_a_run_may_pause_anywhere_while_another_pauses_too(
    sources: list[tuple[str, ...]], place: str, kind: str
) -> None:
    """The other run has written its files, or also claimed a number without moving its files: in turn, or both."""
    first = [*PLACES].index(place) + [*OTHERS].index(kind)
    stride = 1 if place == "local" else 3
    for shift in range(2) if TAKES_ALL and (place, kind) == SMALLEST else [first]:
        for number, (histories, pausing) in enumerate(paused_runs(sources, place, kind, stride, first)):
            other = histories.come(2, overwrite=kind != "merging", merge_files=kind == "merging")
            other.go_to("claim", 2 if PLACES[place][1] else 4)
            if (number + shift) % 2:  # its commit makes it fail
                other.go(1)
                other.crash()
            pausing.finish()
            histories.end()


@pytest.mark.parametrize("fails", [False, True], ids=["dies", "fails and dies while it cleans up"])
def test_a_first_run_leaves_nothing_in_the_way_once_its_marker_is_removed(
    sources: list[tuple[str, ...]], fails: bool
) -> None:
    """Stores without a put on a condition refuse other runs until then."""
    for count in range(1, 200):
        histories = Histories(sources, Store(*PLACES["object store without a put on a condition"]))
        dying = histories.come(0, is_known=False)
        if fails:
            dying.go_to("replace", 2)  # the result of its order
            dying.fail()
        dying.go(count)
        if dying.outcome is not None:
            break
        dying.crash()
        histories.end()
    assert dying.outcome is not None
    assert count > (4 if fails else 20)


@pytest.mark.parametrize("place", PLACES)
def test_an_overwriting_run_that_dies_leaves_the_valid_files(sources: list[tuple[str, ...]], place: str) -> None:
    """Also those whose run failed after its commit, so that its finished orders could be resumed."""
    histories = Histories(sources, Store(*PLACES[place]))
    failing = histories.come(1, is_known=False)
    while not histories.store.claims:
        failing.go(1)
    failing.go_to("delete", 1)
    failing.fail()
    failing.finish()
    overwriting = histories.come(1, overwrite=True, is_known=False)
    overwriting.go_to("replace", 1)  # the result of its order, or of the resumed one
    overwriting.crash()
    histories.end()


def paused_runs(
    sources: list[tuple[str, ...]], place: str, kind: str, stride: int, first: int
) -> Iterator[tuple[Histories, Exporter]]:
    """Yield runs after an ended one, each paused before another step, or a sample of these."""
    before = Histories(sources, Store(*PLACES[place]))
    before.come(0).finish()

    def begin() -> tuple[Histories, Exporter]:
        histories = Histories(sources, before.store.copy())
        return histories, histories.come(1, overwrite=kind == "overwriting", merge_files=kind == "merging")

    for histories, pausing in pause_runs(begin, stride, at_least=30, first=first):
        histories.check_what_readers_see()
        yield histories, pausing


def end_as(exporter: Exporter, ends: str) -> None:
    """Make an exporter crash, fail, or continue."""
    if ends == "crashes":
        exporter.crash()
    elif ends == "fails" and exporter.next_step != "begin":
        exporter.fail()
