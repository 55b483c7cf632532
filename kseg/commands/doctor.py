"""`kseg doctor`: reports problems of the directories of a broker, most severe first."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kseg.cluster.now import Now, settle_now
from kseg.commands.options.command import WorkOptions, command
from kseg.doctor.check_up import CheckUpInWork
from kseg.doctor.examination import CheckUp, ExaminationSettings, examine, plan_examination
from kseg.doctor.kinds import KINDS
from kseg.errors import UsageError
from kseg.log.selection import PartitionChoice
from kseg.output.forms import form_named
from kseg.output.progress import Talk
from kseg.output.streams import flush_stdout, write_lines
from kseg.store.target import NewFile
from kseg.text.doctor_page import DoctorReport
from kseg.text.findings import passed_over_line, write_explanation
from kseg.times import parse_zone, time_or_none
from kseg.verify.verify import VerificationPlan

if TYPE_CHECKING:
    from kseg.text.broker_log import LogAnswer
    from kseg.text.bundle import Bundle


BUNDLE = "bundle"
"""Value of --explain that isn't a kind of finding."""


class BundleOptions(NamedTuple):
    """The file of a bundle, the kinds of names that stay in it, and the file with the key of the others."""

    bundle: Path | None
    keep: str
    key_file: Path | None

    def begin(self, inputs: Iterable[Path]) -> "Bundle | None":
        """Return the bundle to write, or None if there isn't one.

        Raises UsageError for options that exclude each other.
        """
        if self.bundle is None:
            if self.keep or self.key_file is not None:
                raise UsageError("--keep and --key-file need --bundle")
            return None
        from kseg.rewrite.redact import key_in
        from kseg.rewrite.redacted_names import name_kinds
        from kseg.text.bundle import Bundle

        key = None if self.key_file is None else key_in(self.key_file)
        return Bundle(NewFile(self.bundle, inputs), key, name_kinds(self.keep))


class DoctorOptions(NamedTuple):
    """The examined directories, and the form of the page."""

    paths: tuple[Path, ...]
    choice: PartitionChoice
    explain: str | None
    bundling: BundleOptions
    broker_log: Path | None
    quick: bool
    now: str | None
    zone: str
    verbose: bool
    output: str
    color: bool | None
    server_properties: Mapping[str, str]
    work: WorkOptions
    talk: Talk


@command(DoctorOptions)
def doctor(options: DoctorOptions) -> None:
    """Find a disk's problems, and the next step for each.

    Use `doctor` first if you suspect a problem on a broker's disk. It prints one page: problems, most severe first,
    each with the next command to run. It changes nothing.

    \b
    Examples:
      kseg doctor kafka-logs/
      kseg doctor disk1/ disk2/ --quick
      kseg doctor kafka-logs/ -o json | jq -r 'select(.severity == "error") | .command'
      kseg doctor --explain torn-tail
      kseg doctor --broker-log server.log kafka-logs/
      kseg doctor kafka-logs/ --bundle facts.tar.zst

    PATHS are log directories (all disks of a broker together), partition directories, or parents of these; by default
    the current directory. `doctor` makes all checks of `kseg verify`, and judges open transactions as `kseg txns` does.
    It finds timestamps in the future or in a wrong unit, with their producers and their effect on retention. It also
    shows the space by topic, deletable segments, and leftovers of deletions, moves and cleanings.

    The first line forecasts the start of a broker on these disks: it would start without problems; it starts, but
    loses or hides records, or serves wrong records; or it doesn't start, with the message that its log is likely to
    contain. It also counts records that were lost earlier. The second line lists the assumptions, such as how the
    broker was stopped.

    `doctor` reads every byte of the logs once. --quick reads as much as `kseg ls` does: it can't find damage within
    logs, open transactions, or the producers of timestamps.

    --broker-log adds a section about known lines of a broker's log: their findings, the file to look at, and whether
    PATHS have the problem. FILE may be a .gz. Without PATHS, `doctor` reads only the log.

    --bundle writes findings, sizes, offsets, times, settings and numbers of records, but no keys, values, headers or
    names. Names become substitutes; --keep topics keeps names of topics. `--bundle FILE --explain` lists the members
    and writes nothing.

    The exit status is 1 if there are errors or warnings. Findings from a broker's log count only without PATHS.
    """
    paths, work, talk = options.paths, options.work, options.talk
    bundle = options.bundling.begin(paths or (Path(),))
    is_shown = options.explain == BUNDLE
    if options.explain is not None and not (bundle and is_shown):
        write_explained(options.explain)
        return
    answer = None if options.broker_log is None else read_answer(options.broker_log, talk)
    if answer is not None and not paths:
        write_answer(answer, options)
        talk.end_with(not answer.is_well)
        return
    processes = work.begin()
    zone = parse_zone(options.zone)
    given_ms = time_or_none(options.now, zone)
    plan = plan_examination(paths or (Path(),), talk.refuse, options.choice)
    now = settle_now(given_ms, plan.cluster)
    settings = ExaminationSettings(
        now,
        is_quick=options.quick,
        keep_cache=work.keep_cache,
        counts_records=bundle is not None and not options.quick,
        static=options.server_properties,
    )
    for passed_over in plan.passed_over:
        talk.note(passed_over_line(passed_over))
    found = CheckUpInWork(plan, now=now, is_quick=options.quick, zone=zone)
    report = DoctorReport(
        form_named(options.output), found.result, verbose=options.verbose, quiet=talk.is_quiet, color=options.color
    )
    report.log_answer = answer
    with report, talk.bar(mixes=False) as bar:
        on_read = bar.counting("doctor", plan.size)
        unread = lambda path, reason: talk.note(f"{path}: not read: {reason}: retention is Kafka's default here")  # noqa: E731
        for examined in examine(plan, settings, processes=processes, on_read=on_read, on_unread=unread):
            found.take(examined)
            if bundle is not None:
                bundle.take(examined)
            for problem in examined.verified.problems:
                talk.refuse(problem)
        found.take_commits()
        report.is_complete = not talk.status
    flush_stdout()
    talk.note(*now.sentences())
    if bundle is not None and plan.orders:
        write_bundle(bundle, found.result(), plan, now, options)
    talk.end_with(not found.result().is_well)


def write_explained(name: str) -> None:
    """Write the meaning of a kind of finding, or the contents of a bundle."""
    if name != BUNDLE:
        write_explanation(name, KINDS)
        return
    from kseg.text.bundle import explain_members

    write_lines(explain_members())
    flush_stdout()


def write_bundle(bundle: "Bundle", found: CheckUp, plan: VerificationPlan, now: Now, options: DoctorOptions) -> None:
    """Write a bundle, or only list its contents."""
    from kseg.text.bundle import BundleFacts

    cluster, paths = plan.cluster, options.paths or (Path(),)
    metadata = [cluster.metadata(each) for each in cluster.clusters or (None,)]
    facts = BundleFacts(
        found, bundle.listings, [each for each in metadata if each], paths, not options.talk.status, now
    )
    options.talk.note(*bundle.write(facts, is_shown=options.explain == BUNDLE))


def read_answer(path: Path, talk: Talk) -> "LogAnswer":
    """Return the answer from a broker's log; note if it has none."""
    from kseg.findings.broker_log import named_causes, read_broker_log
    from kseg.text.broker_log import LogAnswer

    answer = LogAnswer(path, named_causes(read_broker_log(path)))
    if not answer.causes:
        talk.note(
            f"{path}: no line is known to tell of a finding; specify the log of the start that failed, or log"
            " directories"
        )
    return answer


def write_answer(answer: "LogAnswer", options: DoctorOptions) -> None:
    """Write the answer from a broker's log, without examining directories."""
    from kseg.output.pager import write_styled_lines

    form = form_named(options.output)
    if form.has_objects:
        for each in answer.objects(None):
            form.write_object(each)
    elif answer.causes:
        write_styled_lines(answer.lines(None, verbose=options.verbose), color=options.color)
    flush_stdout()
