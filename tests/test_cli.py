"""The command line's manners: exit status, messages, help, pipes."""

import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.metadata import Distribution, requires, version
from pathlib import Path
from platform import python_version
from sysconfig import get_platform

import click
import pytest

import kseg.cli as cli_module
from kseg.cli import COMMANDS, cli
from kseg.commands.guide import SITUATIONS, TASKS
from kseg.commands.options.types import Number
from kseg.releases import NEWEST, OLDEST
from tests import golden, run
from tests.fork_server import KSEG
from tests.loops import for_each
from tests.processes import default_signals, start_process

SAMPLE = "docs/test-1-0/00000000000000203000.log"
TORN = "damaged/004-torn-records/00000000000000077901.log"


def kseg(*arguments: str) -> run.Run:
    return run.kseg(arguments, golden.ROOT)


def in_shell(command: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run a line of sh in golden's root, with kseg on the path."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {**os.environ, "PATH": path, **environment}
    return subprocess.run(
        ["/bin/sh", "-c", command], cwd=golden.ROOT, env=env, capture_output=True, text=True, check=False
    )


def test_healthy_file_ends_with_0_and_says_nothing_on_stderr() -> None:
    ran = kseg("dump", SAMPLE)
    assert (ran.status, ran.stderr) == (0, b"")


def test_damage_ends_with_1_and_is_reported_on_stderr() -> None:
    ran = kseg("dump", TORN)
    assert ran.status == 1
    assert f"kseg: {TORN}: torn-tail at position 638".encode() in ran.stderr


def test_missing_file_ends_with_2_in_one_line() -> None:
    ran = kseg("dump", "nowhere/00000000000000000000.log")
    assert ran.status == 2
    assert ran.stderr.startswith(b"kseg: nowhere/00000000000000000000.log: ")
    assert ran.stderr.count(b"\n") == 1


def test_other_files_are_read_where_one_is_missing() -> None:
    alone = kseg("dump", SAMPLE)
    ran = kseg("dump", "nowhere/00000000000000000000.log", SAMPLE)
    assert ran.status == 2
    assert ran.stdout.endswith(alone.stdout)


def test_missing_file_outweighs_damage() -> None:
    assert kseg("dump", TORN, "nowhere.log").status == 2


def test_files_option_takes_a_list_as_kafkas_does() -> None:
    assert kseg("dump", "--files", f"{SAMPLE},{TORN}") == kseg("dump", SAMPLE, TORN)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["undump"], "no such command 'undump'"),
        (["dump", "--no-such-option"], "no such option"),
        (["dump", "--like", "0.7", SAMPLE], "0.7"),
        (["dump", "--like", "later", SAMPLE], "later"),
        (["dump", "--max-bytes", "many", SAMPLE], "many"),
        (["dump", "--value-decoder-class", "com.example.Decoder", SAMPLE], "com.example.Decoder"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_wrong_usage_ends_with_2_and_names_what_is_wrong(arguments: list[str], complaint: str) -> None:
    ran = kseg(*arguments)
    assert (ran.status, ran.stdout) == (2, b"")
    assert complaint in ran.stderr.decode()


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["dum"], "no such command 'dum', did you mean `kseg dump`? See `kseg --help`"),
        (["--versoin"], "no such option --versoin, did you mean --version? See `kseg --help`"),
        (
            ["dump", "--print-data"],
            "dump: no such option --print-data, did you mean --print-data-log? See `kseg dump --help`",
        ),
        (["dump", "--like"], "dump: option '--like' requires an argument; see `kseg dump --help`"),
        (["slice", "orders-0"], "slice: missing option '--to'; see `kseg slice --help`"),
        (["retain", "--now"], "retain: option '--now' requires an argument; see `kseg retain --help`"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_wrong_usage_is_one_line_that_tells_where_help_is(arguments: list[str], line: str) -> None:
    assert kseg(*arguments) == (2, b"", f"kseg: {line}\n".encode())


@for_each("name", COMMANDS)
def test_every_command_says_wrong_usage_in_one_line(name: str) -> None:
    ran = kseg(name, "--quux")
    assert (ran.status, ran.stdout) == (2, b"")
    pattern = f"kseg: {name}: no such option --quux(, did you mean .+\\? See|; see) `kseg {name} --help`\n"
    assert re.fullmatch(pattern, ran.stderr.decode())


def test_unknown_kernel_is_wrong_usage() -> None:
    ran = in_shell(f"kseg dump {SAMPLE}", KSEG_KERNEL="faster")
    assert ran.returncode == 2
    assert ran.stderr == "kseg: KSEG_KERNEL is 'faster'; set it to fast or twin\n"


def test_closed_pipe_ends_quietly() -> None:
    ran = in_shell(f"kseg dump --print-data-log {SAMPLE} {SAMPLE} {SAMPLE} | head -n 1")
    assert ran.stdout == f"Dumping {SAMPLE}\n"
    assert ran.stderr == ""


def test_full_disk_is_said_in_one_line() -> None:
    ran = in_shell(f"kseg dump {SAMPLE} >/dev/full")
    assert ran.returncode != 0
    assert ran.stderr.startswith("kseg: ")
    assert ran.stderr.count("\n") == 1


WRITERS = [
    f"dump {SAMPLE}",
    f"dump -o table {SAMPLE}",
    "ls docs",
    "ls -o table docs",
    "verify --explain all",
    "completion bash",
    "dump --help",
    "help",
    "help dump",
    "--help",
    "--version",
]


NOT_WRITTEN = "kseg: standard output: {}; the output is incomplete\n"
FULL, CLOSED = "No space left on device", "is closed"


def with_stream(name: str, reason: str, command: str) -> run.Run:
    """Run kseg with a stream that can't be written: a full device, or one that was closed before the start."""
    number = {"stdout": 1, "stderr": 2}[name]
    program = f"import os, sys; os.dup2(os.open('/dev/full', os.O_WRONLY), {number}); {KSEG}"
    if reason == CLOSED:
        program = f"import os, sys; os.close({number}); sys.{name} = None; {KSEG}"
    return run.process(command.split(), golden.ROOT, program=program)


@for_each("command, reason", list(itertools.product(WRITERS, (FULL, CLOSED))), ids=": ".join)
def test_stdout_that_takes_nothing_is_said_in_one_line(command: str, reason: str) -> None:
    assert with_stream("stdout", reason, command) == (2, b"", NOT_WRITTEN.format(reason).encode())


@pytest.mark.parametrize(("redirection", "reason"), [(">/dev/full", FULL), (">&-", CLOSED)])
def test_redirected_stdout_that_takes_nothing_is_said_in_one_line(redirection: str, reason: str) -> None:
    ran = in_shell(f"kseg dump {SAMPLE} {redirection}")
    assert (ran.returncode, ran.stderr) == (2, NOT_WRITTEN.format(reason))


@pytest.mark.parametrize(
    ("command", "status"),
    [
        (f"dump --progress {SAMPLE}", 0),
        (f"dump {TORN}", 1),
        (f"dump nowhere.log {SAMPLE}", 2),
        ("dump --no-such-option", 2),
        (f"verify {TORN}", 1),
        ("", 2),
    ],
)
def test_stderr_that_takes_nothing_changes_nothing(command: str, status: int) -> None:
    heard = run.process(command.split(), golden.ROOT)
    for reason in (FULL, CLOSED):
        assert with_stream("stderr", reason, command) == (status, heard.stdout, b""), reason


@pytest.mark.parametrize("redirection", ["2>/dev/full", "2>&-"])
def test_redirected_stderr_that_takes_nothing_changes_nothing(redirection: str) -> None:
    ran = in_shell(f"kseg dump {TORN} {redirection}")
    assert (ran.returncode, ran.stdout.encode()) == (1, kseg("dump", TORN).stdout)


def test_closed_standard_input_is_said_in_one_line(tmp_path: Path) -> None:
    ran = in_shell(f"kseg build --to {tmp_path}/new <&-")
    assert (ran.returncode, ran.stderr) == (2, "kseg: standard input: can't be read: Bad file descriptor\n")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("arguments", ["ls", "verify", "dump -o json --fields topic x.log"])
def test_current_directory_that_is_gone_is_said_in_one_line(arguments: str, tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    ran = in_shell(f"cd {tmp_path}/gone && rmdir ../gone && kseg {arguments}")
    assert ran.returncode == 2
    assert ran.stderr.startswith("kseg: ")
    assert ran.stderr.count("\n") == 1


@pytest.mark.parametrize("option", ["--print-data-log", "-o json", "-o table"])
def test_absolute_paths_are_read_where_the_current_directory_is_gone(option: str, tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    index = golden.ROOT / "docs/test-1-0/00000000000000203000.index"
    ran = in_shell(f"cd {tmp_path}/gone && rmdir ../gone && kseg dump {option} {index}")
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize("kernel_name", run.KERNELS)
def test_version_names_the_kernel(kernel_name: str) -> None:
    ran = in_shell("kseg --version", KSEG_KERNEL=kernel_name)
    assert (ran.returncode, ran.stdout.splitlines()[0]) == (0, f"kseg 0.1.0 (kernel: {kernel_name})")


def test_version_names_kafkas_releases_python_and_the_installed_libraries() -> None:
    _, releases, python, libraries = in_shell("kseg --version").stdout.splitlines()
    assert releases == f"Kafka: files and output of {OLDEST} to {NEWEST}"
    assert python == f"Python: {python_version()} on {get_platform()}"
    wanted = {re.split(r"[^\w.-]", line)[0] for line in requires("kseg") or ()}
    installed = [each for each in sorted(wanted) if next(Distribution.discover(name=each), None) is not None]
    assert libraries == f"libraries: {', '.join(f'{each} {version(each)}' for each in installed)}"


@pytest.fixture
def kernel_folder(tmp_path: Path) -> Path:
    """Return the folder of the kernel in a copy of kseg without a compiled one."""
    copy = tmp_path / "copy"
    shutil.copytree(Path(cli_module.__file__).parent, copy / "kseg", ignore=shutil.ignore_patterns("*.so", "fast.c"))
    return copy / "kseg" / "kernel"


def version_of_copy(kernel_folder: Path, wanted: str = "") -> str:
    """Return the line about kseg itself."""
    copy = str(kernel_folder.parent.parent)
    ran = in_shell(f"{sys.executable} -m kseg --version", KSEG_KERNEL=wanted, PYTHONPATH=copy)
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout.splitlines()[0]


def test_version_says_nothing_of_a_kernel_that_was_not_built(kernel_folder: Path) -> None:
    assert version_of_copy(kernel_folder) == "kseg 0.1.0 (kernel: twin)"


def test_version_tells_why_a_compiled_kernel_is_not_loaded(kernel_folder: Path) -> None:
    broken = kernel_folder / f"fast{EXTENSION_SUFFIXES[0]}"
    broken.write_bytes(b"no library")
    line = version_of_copy(kernel_folder)
    assert re.fullmatch(r"kseg 0\.1\.0 \(kernel: twin; fast can't be loaded: .+\)", line)
    assert str(broken) in line


def test_version_tells_of_a_kernel_that_was_compiled_for_another_python(kernel_folder: Path) -> None:
    (kernel_folder / "fast.cpython-34m.so").write_bytes(b"")
    told = "kseg 0.1.0 (kernel: twin; fast can't be loaded: fast.cpython-34m.so is for another Python)"
    assert version_of_copy(kernel_folder) == told


def test_version_of_the_twin_is_silent_about_the_compiled_kernel_if_the_twin_was_asked_for(kernel_folder: Path) -> None:
    (kernel_folder / "fast.cpython-34m.so").write_bytes(b"")
    assert version_of_copy(kernel_folder, "twin") == "kseg 0.1.0 (kernel: twin)"


def test_help_lists_each_command() -> None:
    ran = kseg("help", "commands")
    assert ran.status == 0
    listed = ran.stdout.decode().partition("Commands:\n")[2].partition("\n\n")[0]
    assert re.findall(r"^  (\S+)", listed, re.MULTILINE) == list(COMMANDS)


@for_each("name", COMMANDS)
def test_help_of_a_command_has_examples_after_what_it_is_for(name: str) -> None:
    ran = kseg(name, "--help")
    assert ran.status == 0
    usage, summary, *parts = ran.stdout.decode().split("\n\n")
    assert usage.startswith(f"Usage: kseg {name} ")
    assert summary.endswith(".")
    examples = next(part for part in parts[:2] if part.startswith("  Examples:"))
    heading, *lines = examples.splitlines()
    assert heading == "  Examples:"
    assert all(f"kseg {name} " in f"{line} " for line in lines)


def test_kseg_without_a_command_shows_its_help() -> None:
    ran = kseg()
    assert ran.stderr == kseg("help").stdout


def test_interrupt_ends_with_130() -> None:
    with start_process([Path(sys.executable).with_name("kseg"), "dump", SAMPLE], golden.ROOT) as process:
        assert process.stdout is not None
        process.stdout.read(1)  # it is at work now, and waits for the rest to be read
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate()
    assert (process.returncode, stderr.strip()) == (130, b"")


INTERRUPTED_IMPORT = """
import os, signal, sys

interrupted = sys.argv.pop(1)

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == interrupted:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder())
from kseg.__main__ import main
sys.exit(main())
"""


@pytest.mark.parametrize("module", ["kseg.cli", "click", "kseg.commands.dump", "kseg.reading.log_file"])
def test_interrupt_while_kseg_is_imported_is_quiet(module: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_IMPORT, module, "dump", SAMPLE],
        cwd=golden.ROOT,
        capture_output=True,
        preexec_fn=default_signals,
        check=False,
    )
    assert (ran.returncode, ran.stdout, ran.stderr.strip()) == (130, b"", b"")


def test_interrupt_ends_processes_that_share_the_work_quietly() -> None:
    command = [Path(sys.executable).with_name("kseg"), "verify", "-q", "-o", "json", "-j", "2", "damaged"]
    with start_process(command, golden.ROOT) as process:
        assert process.stdout is not None
        process.stdout.read(1)  # it waits for the rest to be read, which a pipe doesn't hold
        os.killpg(process.pid, signal.SIGINT)
        _, stderr = process.communicate()
    assert (process.returncode, stderr.strip()) == (130, b"")


# --- the environment -------------------------------------------------------------------------------------------------


def options_of(name: str) -> list[tuple[str, click.Option]]:
    """Return the variables of a command's options, with the options' names."""
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    found = []
    for option in command.params:
        if isinstance(option, click.Option) and not option.hidden:
            known = next((each for each in option.opts if each.startswith("--")), option.opts[0])
            found.append((f"KSEG_{name}_{known.lstrip('-')}".upper().replace("-", "_"), option))
    return found


REQUIRED = {
    "build": ("--to", "new"),
    "carve": ("disk.img", "--to", "new"),
    "compact": (".", "--to", "new"),
    "redact": (".", "--to", "new"),
    "restore": (".", "--bootstrap", "127.0.0.1:1", "--dry-run"),
    "slice": (".", "--to", "new"),
    "rebuild-metadata": ("--node-id", "1", "--dry-run"),
}
"""Required arguments of commands."""


def variables() -> list[tuple[str, str]]:
    """Return variables of options that take numbers or one of several words, as far as a wrong word is reported."""
    refusing = (Number, click.types.IntParamType, click.IntRange, click.Choice)
    return [
        (name, variable)
        for name in COMMANDS
        for variable, option in options_of(name)
        if isinstance(option.type, refusing) and not option.multiple
    ]


@for_each("name, variable", variables())
def test_each_option_has_a_variable(name: str, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "no such value")
    is_its_own = variable.endswith("_NODE_ID")  # the command line precedes the variable
    ran = kseg(name, *() if is_its_own else REQUIRED.get(name, ()))
    assert ran.status == 2
    assert b"no such value" in ran.stderr


@pytest.mark.parametrize(
    ("variables", "arguments"),
    [
        ({"KSEG_DUMP_OUTPUT": "json", "KSEG_DUMP_LIMIT": "3"}, ["-o", "json", "--limit", "3"]),
        ({"KSEG_DUMP_PRINT_DATA_LOG": "1"}, ["--print-data-log"]),
        (
            {"KSEG_DUMP_FROM_TIME": "2020-02-13 13:38:18", "KSEG_DUMP_TZ": "+01:00"},
            ["--from-time", "2020-02-13 13:38:18", "--tz", "+01:00"],
        ),
        ({"KSEG_DUMP_CONTROL": "false"}, ["--no-control"]),
    ],
)
def test_variables_mean_what_options_mean(
    variables: dict[str, str], arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = kseg("dump", SAMPLE, *arguments)
    assert wanted != kseg("dump", SAMPLE) or arguments == ["--no-control"]
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert kseg("dump", SAMPLE) == wanted


def test_option_on_the_line_comes_before_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = kseg("dump", SAMPLE, "--limit", "2")
    monkeypatch.setenv("KSEG_DUMP_LIMIT", "1")
    assert kseg("dump", SAMPLE, "--limit", "2") == wanted


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("KSEG_VERSION", ""),
        ("KSEG_DUMP_OUTPTU", "KSEG_DUMP_OUTPUT"),
        ("KSEG_DMUP_OUTPUT", "KSEG_DUMP_OUTPUT"),
        ("KSEG_REDACTKEY", "KSEG_REDACT_KEY"),
        ("KSEG_DUMP_FORM_TIME", "KSEG_DUMP_FROM_TIME"),
    ],
)
def test_variables_that_name_no_option_are_named(name: str, meant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = kseg("dump", SAMPLE)
    monkeypatch.setenv(name, "0.1.0")
    told = kseg("dump", SAMPLE)
    assert told.stdout == wanted.stdout
    hint = f", did you mean {meant}?" if meant else ""
    assert told.stderr.startswith(f"kseg: unknown environment variable {name}{hint}".encode())
    assert told.stderr.endswith(wanted.stderr)
    assert kseg("dump", SAMPLE, "-q").stderr == b""


def test_variables_of_other_commands_and_programs_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = kseg("dump", SAMPLE)
    for name in ("KSEG_LS_LIMIT", "KSEG_SPARK_EXPORT_ANYTHING", "MY_KSEG_DUMP", "KSEG_REDACT_KEY"):
        monkeypatch.setenv(name, "0.1.0")
    assert kseg("dump", SAMPLE) == wanted


# --- finding one's way -----------------------------------------------------------------------------------------------


def test_each_command_is_in_a_task_of_the_help() -> None:
    told = kseg("--help").stdout.decode()
    assert {name for name in COMMANDS if f"  kseg {name} " in told} == {*COMMANDS} - {"completion"}


def test_help_by_situation_fits_a_terminal_without_a_wrapped_command() -> None:
    lines = kseg("help").stdout.decode().splitlines()
    assert max(map(len, lines)) <= 80
    assert [line.partition("  kseg ")[2] for line in lines if re.match("  [A-Z].*  kseg ", line)] == [
        task.line.removeprefix("kseg ") for task in TASKS
    ]
    assert all(len(situation.tasks) <= 5 for situation in SITUATIONS)


def test_help_tells_the_variables_of_the_environment() -> None:
    told = kseg("help", "environment").stdout.decode()
    for name in ("KSEG_COMMAND_OPTION", "KSEG_DEBUG", "KSEG_KERNEL", "KSEG_REDACT_KEY", "NO_COLOR", "PAGER"):
        assert f"\n  {name} " in f"\n{told}"
    assert "KSEG_SPARK_EXPORT_OPTION" in kseg("spark-export", "--help").stdout.decode()


def test_help_is_a_command_too() -> None:
    assert kseg("help") == kseg("--help")
    listed = kseg("help", "commands").stdout.decode()
    for name in COMMANDS:
        assert kseg("help", name) == kseg(name, "--help")
        assert f"\n  {name} " in listed
    wrong = kseg("help", "dmup")
    assert wrong.status == 2
    assert wrong.stderr == b"kseg: help: no help about 'dmup', did you mean `kseg help dump`? See `kseg help --help`\n"


def test_help_explains_findings() -> None:
    assert kseg("help", "torn-tail").stdout == kseg("verify", "--explain", "torn-tail").stdout
    assert b"`kseg help torn-tail`" in kseg("help", "torn-tial").stderr


def test_help_finds_words_of_users() -> None:
    stuck = kseg("help", "stuck").stdout.decode()
    assert stuck.startswith("A consumer is stuck:\n  Show groups and lags     kseg groups ")
    assert "\n  kseg help hanging-transaction " in kseg("help", "hanging").stdout.decode()
    assert "\n  kseg help query " in kseg("help", "sql").stdout.decode()
    assert kseg("help", "xylophone").status == 2


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("ls --print-data-log", "no such option --print-data-log, which belongs to `kseg dump`, `kseg lookup` and"),
        ("dump --grammar", "no such option --grammar, which belongs to `kseg explain`; "),
        ("ls --outpu", "no such option --outpu, did you mean --output? "),
        ("salvage -o saved", "'saved' is not one of 'text', 'json'; use --to for a new directory; "),
        ("reindex -o saved", "no such option -o; use --to for a new directory; "),
    ],
)
def test_a_wrong_option_is_answered_with_the_right_one(line: str, told: str) -> None:
    ran = kseg(*line.split())
    assert (ran.status, ran.stdout) == (2, b"")
    assert told in ran.stderr.decode()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("dump --since -1h", "did you mean --from-time?"),
        ("dump --from 2026", "did you mean --from-offset or --from-time?"),
        ("verify --json", "did you mean -o json?"),
        ("get --output-file value", "did you mean --to?"),
        ("topics", "did you mean `kseg ls --by topic`?"),
    ],
)
def test_words_of_other_tools_are_answered(line: str, said: str) -> None:
    ran = kseg(*line.split())
    assert ran.status == 2
    assert said in ran.stderr.decode()
