"""Statements of README and docs are true: commands print the output, Python runs, links work, lists are complete."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryFile
from typing import NamedTuple

import click
import pytest

import kseg
from kseg.cli import COMMANDS, cli, main
from kseg.commands.guide import TASKS, VARIABLES
from tests import golden, run
from tests.loops import for_each
from tests.sandbox import make_programs, make_sandbox
from tools.generators.command_line import helps

ROOT = golden.ROOT.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
ANYTHING = "…"


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_programs(tmp_path_factory.mktemp("programs"))


def blocks(language: str) -> list[tuple[str, str]]:
    """Return fenced blocks of a language in all pages: their places, and their texts."""
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for match in re.finditer(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            line = text.count("\n", 0, match.start()) + 1
            found.append((f"{page.relative_to(ROOT)}:{line}", match[1]))
    return found


class Example(NamedTuple):
    """A command line, or a piece of Python: its place, and the lines shown below it, or None if there aren't any."""

    place: str
    code: str
    shown: list[str] | None = None

    def __str__(self) -> str:
        return f"{self.place}: {self.code.splitlines()[0]}"


def console_runs() -> list[Example]:
    """Return each `$ command` of the console blocks, with the lines shown below it."""
    runs = []
    for place, text in blocks("console"):
        for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            command, *shown = part.rstrip("\n").split("\n")
            runs.append(Example(place, command, shown))
    return runs


SHELL_SIGNS = set("|<>;&$`*?~\\#")
OF_THE_PROCESS = "--gentle"
"""Option that changes its process, which must not be this one."""
SERVES = "kseg serve "
"""Command that ends with its child command: without one, the test adds one."""


def is_plain(line: str) -> bool:
    """Return True if a line needs no shell: one run of kseg with literal arguments."""
    can_be_here = OF_THE_PROCESS not in line and not line.startswith(SERVES)
    return line.startswith("kseg ") and can_be_here and not SHELL_SIGNS & set(without_texts(line))


def without_texts(line: str) -> str:
    """Return a line in whose quoted texts there are only letters."""
    return re.sub(r"""'[^']*'|"(?:[^"\\$`]|\\["\\])*\"""", lambda text: "x" * len(text[0]), line)


def cut(line: str) -> tuple[str, str]:
    """Return the part of a line that may run in this process, and the shell's rest; else an empty part and all.

    Starts of processes would take most of the time. `head` ends a run early, before all its output on stderr.
    """
    place = re.search("[|>]|$", without_texts(line))
    assert place is not None
    first, rest = line[: place.start()], line[place.start() :]
    return (first, rest) if is_plain(first) and not re.search("[ |&;]kseg |head", rest) else ("", line)


def run_line(line: str, directory: Path, programs: str, stderr: int = subprocess.PIPE) -> run.Run:
    """Run a line; return its end and output: of both streams, or of one in the order in which a file would get it."""
    first, rest = cut(line)
    if first and not rest and stderr == subprocess.STDOUT:
        return printed_here(shlex.split(first)[1:], directory)
    ran = run.kseg(shlex.split(first)[1:], directory) if first else run.Run(0, b"", b"")
    if first and not rest:
        return ran
    done = subprocess.run(
        ["/bin/bash", "-o", "pipefail", "-c", f"cat {rest}" if first else line],
        cwd=directory,
        env={**os.environ, "PATH": programs},
        input=ran.stdout,
        stdout=subprocess.PIPE,
        stderr=stderr,
        check=False,
    )
    status = done.returncode or ran.status
    if stderr == subprocess.STDOUT:
        return run.Run(status, ran.stderr + done.stdout, b"")
    return run.Run(status, done.stdout, ran.stderr + done.stderr)


@for_each("example", console_runs(), shards=4)
def test_commands_print_what_is_shown(example: Example, restored: Path, programs: str, tmp_path: Path) -> None:
    command = example.code
    assert re.search(r"(^|[ ;])kseg ", command), "console blocks hold runs of kseg; use sh for what isn't run"
    for path in restored.iterdir():  # the command's own files are next to them
        (tmp_path / path.name).symlink_to(path)
    printed = run_line(command, tmp_path, programs, subprocess.STDOUT).stdout
    assert example.shown is not None
    assert is_excerpt(example.shown, printed.decode().splitlines()), f"printed:\n{printed.decode()[:5000]}"


def printed_here(arguments: list[str], directory: Path) -> run.Run:
    """Run kseg in this process; return its output on both streams, in the order in which a file would get it."""
    with TemporaryFile() as file:
        stdout, stderr = (os.fdopen(os.dup(file.fileno()), "w", encoding="utf-8", newline="\n") for _ in range(2))
        with stdout, stderr, chdir(directory), redirect_stdout(stdout), redirect_stderr(stderr):
            status = main(arguments)
        file.seek(0)
        return run.Run(status, file.read(), b"")


FIRST_PAGES = ["README.md", "docs/start/first-minutes.md", "docs/start/kafka-tools.md"]
BUILT = "pip() { :; }; make() { :; }"
"""Replacement of installations: `.venv/` exists already."""
PART = "--- what is pasted next ---"


def pasted_lines(page: str) -> list[tuple[str, list[str] | None]]:
    """Return the shell lines of a page for pasting, part by part, each with its shown output, if any."""
    text = (ROOT / page).read_text(encoding="utf-8")
    parts: list[tuple[str, list[str] | None]] = []
    for language, block in re.findall(r"^```(sh|console|python)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        if language == "sh":
            parts.append((block, None))
        elif language == "python":
            parts.append((f"python - <<'END'\n{block}END\n", None))
        else:
            runs = [run.rstrip("\n").split("\n") for run in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]
            parts += [(command, shown) for command, *shown in runs]
    return parts


@for_each("page", FIRST_PAGES, ids=str)
def test_first_pages_run_as_they_are_pasted(page: str, restored: Path, tmp_path: Path) -> None:
    """All blocks run in one shell, in order, from a clone's root, with no other directories than the page's."""
    for folder in (".venv/bin", "golden"):
        (tmp_path / folder).mkdir(parents=True)
    for path in restored.iterdir():
        (tmp_path / "golden" / path.name).symlink_to(path)
    (tmp_path / ".venv/bin/kseg").symlink_to(Path(sys.executable).with_name("kseg"))
    (tmp_path / ".venv/bin/python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (tmp_path / ".venv/bin/python").chmod(0o755)
    parts = pasted_lines(page)
    lines = [BUILT, *(f"{code}\n[ $? = 0 ] || echo fails\necho {PART}" for code, _ in parts)]
    ran = subprocess.run(
        ["/bin/bash", "-c", "\n".join(lines)],
        cwd=tmp_path,
        env={**os.environ, "PATH": os.defpath, "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    *printed_parts, after = ran.stdout.split(f"{PART}\n")
    assert after == ""
    for (code, shown), printed in zip(parts, printed_parts, strict=True):
        assert shown is not None or "fails\n" not in printed, printed
        assert shown is None or is_excerpt(shown, printed.removesuffix("fails\n").splitlines()), f"{code}\n{printed}"


def is_excerpt(shown: list[str], printed: list[str]) -> bool:
    """Return True if the shown lines are all printed lines; a line `…` replaces any number of lines."""
    pattern = "".join(r"(?:.*\n)*?" if line == ANYTHING else re.escape(line) + r"\n" for line in shown)
    return re.fullmatch(pattern, "".join(line + "\n" for line in printed)) is not None


def python_runs() -> list[Example]:
    """Return the python blocks, each with the lines of the text block directly after it, or None if there isn't one."""
    runs = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for match in re.finditer(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", text, re.MULTILINE | re.DOTALL):
            line = text.count("\n", 0, match.start()) + 1
            shown = None if match[2] is None else match[2].splitlines()
            runs.append(Example(f"{page.relative_to(ROOT)}:{line}", match[1], shown))
    return runs


@for_each("example", python_runs())
def test_python_examples_print_what_is_shown(
    example: Example,
    restored: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    for path in restored.iterdir():  # the example's own files are next to them
        (tmp_path / path.name).symlink_to(path)
    capfd.readouterr()  # discards output of earlier examples
    with chdir(tmp_path):
        exec(compile(example.code, "example", "exec"), {"__name__": "example"})
    printed = capfd.readouterr().out
    assert printed != ""
    assert example.shown is None or is_excerpt(example.shown, printed.splitlines()), f"printed:\n{printed[:5000]}"


# --- examples without shown output ------------------------------------------------------------------------------------

LARGE, SMALL = "--free 50GB", "--free 5KB"
"""More and less than the sandbox holds."""
UNENDING = "--follow"
FINDS_NOTHING = ("-1h", "-2d")
"""Nothing of the examples was written in these last hours and days."""
ON_A_SCREEN = "kseg browse "
"""Beginning of examples that open their files, and then need a terminal."""
NO_SCREEN = b"kseg: browse needs a terminal; use `kseg explain` to print fields and bytes\n"
ELSEWHERE = ("kseg spark-export ", "kseg restore ")
"""Beginnings of examples that need a cluster or an object store: only their options are checked."""
OF_CHANGES = " --unwrap "
"""An option that needs a database's topics, which the sandbox lacks: only the options are checked."""


def examples() -> list[Example]:
    """Return the examples of each command's help, and the lines of sh blocks that run kseg."""
    shown = {line: f"kseg {each.name} --help" for each in helps() for line in each.examples}
    shown |= dict.fromkeys((task.line for task in TASKS), "kseg help")
    for place, text in blocks("sh"):
        if not place.startswith("docs/reference/commands/"):
            shown |= dict.fromkeys((line for line in text.splitlines() if re.search(r"(^|\| )kseg ", line)), place)
    once = {re.sub("([<>]) +", r"\1", line): line for line in shown}  # lines that only differ in a blank do the same
    return [Example(shown[line], line) for line in once.values()]


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_sandbox(tmp_path_factory.mktemp("sandbox"))


@for_each("example", examples(), shards=4)
def test_examples_run(example: Example, template: Path, programs: str, tmp_path: Path) -> None:
    """Each runs on its own copy of a machine with the files that examples name."""
    command = example.code
    if command.startswith(ELSEWHERE) or OF_CHANGES in command:
        check_options(shlex.split(command)[1:])
        return
    root = tmp_path / "root"
    shutil.copytree(template, root, copy_function=os.link)
    if " saved/" in command:
        shutil.copytree(root / "orders-0", root / "saved/orders-0")
    if " carved/" in command:
        shutil.copytree(root / "orders-0", root / "carved/carved-0001-0")
    if command.endswith(" --to orders-0"):
        shutil.rmtree(root / "orders-0")  # existing files aren't overwritten
    line = command.replace(UNENDING, f"{UNENDING} --limit 10").replace("~/", f"{root}/").replace(LARGE, SMALL)
    if line.startswith(SERVES) and " -- " not in line:
        line = f"{line} -- echo {{bootstrap}}"
    ran = run_line(line, root, programs)
    if line.startswith(ON_A_SCREEN):
        assert (ran.status, ran.stderr) == (2, NO_SCREEN)
        return
    assert ran.status == 0, ran.stderr.decode()
    finds_nothing = any(time in command for time in FINDS_NOTHING) or " --open" in command  # notes alone
    assert ran.stdout or finds_nothing or set(command) & {">"} or " --to " in command


@for_each("page", sorted((ROOT / "docs/how-to").glob("*.md")), ids=lambda page: page.name)
def test_each_task_has_an_example_that_is_run(page: Path) -> None:
    name = page.relative_to(ROOT).as_posix()
    shown = [place for language in ("console", "python") for place, _ in blocks(language)]
    lines = [line for place, text in blocks("sh") if place.startswith(name) for line in text.splitlines()]
    is_run = any(line.startswith("kseg ") and not line.startswith(ELSEWHERE) for line in lines)
    assert is_run or any(place.startswith(name) for place in shown)


def check_options(arguments: list[str]) -> None:
    """Fail with UsageError if a command doesn't have such options."""
    command = cli.get_command(click.Context(cli), arguments[0])
    assert command is not None
    command.make_context(arguments[0], arguments[1:])


@for_each("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_files_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


@for_each("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_headings_lead_to_one(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", page.read_text(encoding="utf-8"))
    assert [
        (link, name) for link, name in links if name not in name_headings(page.parent / link if link else page)
    ] == []


def name_headings(page: Path) -> set[str]:
    """Return the anchors of a page's headings, named as the site names them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+?)(?: \{ *#([\w-]+) *\})?$", text, re.MULTILINE)
    words = {name or re.sub(r"[^\w\s-]", "", heading).strip().lower() for heading, name in headings}
    return {re.sub(r"[-\s]+", "-", each) for each in words} | set(re.findall(r'id="([^"]+)"', text))


def test_readme_lists_each_command_once() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Commands\n")[2].partition("\n## ")[0]
    listed = re.findall(r"`([\w-]+)`", text)
    assert sorted(listed) == sorted(COMMANDS)


def test_readme_is_short() -> None:
    assert (ROOT / "README.md").read_text(encoding="utf-8").count("\n") < 120


def test_commands_of_readmes_table_run(restored: Path, tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"^\| .* \| `kseg (.*)` \|$", text, re.MULTILINE)
    assert len(commands) == 5
    for command in commands:
        arguments = [str(tmp_path / part) if part == "lake" else part for part in shlex.split(command)]
        assert run.kseg(arguments, restored).status in (0, 1), command


def test_architecture_lists_each_module() -> None:
    listed = set(listed_in_architecture())
    there = {path.relative_to(ROOT).as_posix() for path in (ROOT / "kseg").rglob("*.py") if is_listed_alone(path)}
    kernel = ROOT / "kseg" / "kernel"
    compiled = [*kernel.glob("*.pyx"), *kernel.glob("*.h"), *kernel.glob("fast/*.pxi")]
    compiled = [path for path in compiled if path.name != "declarations.pxi"]  # it only exists after a build
    assert listed == there | {path.relative_to(ROOT).as_posix() for path in compiled}


def is_listed_alone(path: Path) -> bool:
    """Return True if a module is listed; packages' empty `__init__` modules aren't."""
    is_package = path.name == "__init__.py"
    return not (is_package and path.read_text(encoding="utf-8").count("\n") < 3)


def listed_in_architecture() -> list[str]:
    """Return paths of the files in the listing of kseg/.

    Folders end with a slash, and their contents are indented.
    """
    (text,) = [text for place, text in blocks("listing") if place.startswith("docs/developers/architecture.md")]
    folders: list[tuple[int, str]] = []
    files = []
    for line in text.splitlines():
        name, depth = line.split()[0], len(line) - len(line.lstrip())
        folders = [folder for folder in folders if folder[0] < depth]
        path = "".join(folder for _, folder in folders) + name
        if name.endswith("/"):
            folders.append((depth, name))
        else:
            files.append(path)
    return files


def test_python_reference_has_each_public_name_once() -> None:
    page = (ROOT / "docs/python/reference.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^::: kseg\.(\w+)$", page, re.MULTILINE)) == kseg.__all__


def test_environment_has_what_the_help_says_of_each_variable() -> None:
    page = (ROOT / "docs/reference/environment.md").read_text(encoding="utf-8")
    rows = "".join(f"| `{name}` | {meaning} |\n" for name, meaning in VARIABLES.items())
    assert f"| variable | effect |\n|---|---|\n{rows}\n" in page
