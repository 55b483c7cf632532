"""`kseg doctor`: what is wrong with a broker's directories, the worst first."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kseg.cluster.now import settle_now
from kseg.commands.options.command import WorkOptions, command
from kseg.doctor.check_up import CheckUpInWork
from kseg.doctor.examination import ExaminationSettings, examine, plan_examination
from kseg.doctor.kinds import KINDS
from kseg.log.selection import PartitionChoice
from kseg.output.forms import form_named
from kseg.output.progress import Talk
from kseg.output.streams import flush_stdout
from kseg.text.doctor_page import DoctorReport
from kseg.text.findings import passed_over_line, write_explanation
from kseg.times import parse_zone, time_or_none

if TYPE_CHECKING:
    from kseg.text.broker_log import LogAnswer


class DoctorOptions(NamedTuple):
    """What is examined, and how the page looks."""

    paths: tuple[Path, ...]
    choice: PartitionChoice
    explain: str | None
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
    """Find a disk's problems and say what to do next.

    `doctor` prints one page about a broker's directories: their problems, most severe first, each with the next
    command to run.

    \b
    Examples:
      kseg doctor kafka-logs/
      kseg doctor disk1/ disk2/ --quick
      kseg doctor kafka-logs/ -o json | jq -r 'select(.severity == "error") | .command'
      kseg doctor --explain torn-tail
      kseg doctor --broker-log server.log kafka-logs/

    PATHS are log directories (all disks of a broker together), partition directories, or parents of these; by default
    the current directory. `doctor` makes all checks of `kseg verify`, judges open transactions by their coordinators
    as `kseg txns` does, and looks for times that are in the future, or in seconds, microseconds or nanoseconds instead
    of milliseconds: who wrote them, and which segments retention keeps or deletes for them. It shows what fills the
    disk, what retention would delete now, and what is left over from deletions, moves and cleanings.

    The first line says how a broker's start on these disks would end: it starts well; it starts, but loses or hides
    records, or serves wrong ones; or it doesn't start, with the words that it would most likely log. The second line
    says what was assumed, such as how the broker was stopped.

    It reads every byte of the logs, once. --quick reads what `kseg ls` reads, so it can't see damage within logs,
    open transactions, or who wrote a time. The commands that it prints change nothing by themselves.

    With --broker-log, a section before the page lists the known lines of a broker's log: the findings that each tells
    of, the file to look at, and whether it was found in PATHS. Without PATHS only the log is read.

    Findings are errors, warnings and notes, as for `verify`. The exit status is 1 if there are errors or warnings;
    those of a broker's log count only without PATHS.
    """
    if options.explain is not None:
        write_explanation(options.explain, KINDS)
        return
    paths, work, talk = options.paths, options.work, options.talk
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
        now, is_quick=options.quick, keep_cache=work.keep_cache, static=options.server_properties
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
            for problem in examined.verified.problems:
                talk.refuse(problem)
        found.take_commits()
        report.is_complete = not talk.status
    flush_stdout()
    talk.note(*now.sentences())
    talk.end_with(not found.result().is_well)


def read_answer(path: Path, talk: Talk) -> "LogAnswer":
    """What a broker's log tells; says so if that is nothing."""
    from kseg.findings.broker_log import named_causes, read_broker_log
    from kseg.text.broker_log import LogAnswer

    answer = LogAnswer(path, named_causes(read_broker_log(path)))
    if not answer.causes:
        talk.note(
            f"{path}: no line is known to tell of a finding; give the log of the start that failed, or log directories"
        )
    return answer


def write_answer(answer: "LogAnswer", options: DoctorOptions) -> None:
    """Writes what a broker's log tells, without directories to look into."""
    from kseg.output.pager import write_styled_lines

    form = form_named(options.output)
    if form.has_objects:
        for each in answer.objects(None):
            form.write_object(each)
    elif answer.causes:
        write_styled_lines(answer.lines(None, verbose=options.verbose), color=options.color)
    flush_stdout()
