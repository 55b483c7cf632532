"""Generated pages are current, man pages equal `--help`, and shell completion uses the same texts."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kseg.cli import COMMANDS
from tests import golden, run
from tests.loops import for_each
from tools import generate
from tools.generate import FILES, FOLDERS
from tools.generators.command_line import helps
from tools.generators.shared_files import COMPLETIONS

ROOT = golden.ROOT.parent
TOOL = [sys.executable, str(ROOT / "tools" / "generate.py")]


def test_generated_files_are_up_to_date() -> None:
    ran = subprocess.run([*TOOL, "--check"], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stdout + ran.stderr


QUICK = ("docs/reference/findings.md", "docs/reference/limits.md")
"""Files that are generated quickly."""


def test_pages_that_are_out_of_date_or_of_nothing_are_named_and_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The test runs for the given files and all folders: the others are up to date, as the test above shows."""
    monkeypatch.setattr(generate, "ROOT", tmp_path)
    monkeypatch.setattr(generate, "FILES", {name: FILES[name] for name in QUICK})
    for name in QUICK:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    for name in FOLDERS:
        shutil.copytree(ROOT / name, tmp_path / name)
    page = tmp_path / "docs" / "reference" / "limits.md"
    page.write_text("old\n", encoding="utf-8")
    left = tmp_path / "share" / "man" / "man1" / "kseg-gone.1"
    left.touch()
    monkeypatch.setattr(sys, "argv", ["generate.py", "--check"])
    assert (generate.main(), page.read_text(encoding="utf-8")) == (1, "old\n")
    names = ("docs/reference/limits.md", "share/man/man1/kseg-gone.1")
    assert capsys.readouterr().out == "".join(
        f"{each} is out of date: run python tools/generate.py\n" for each in names
    )
    monkeypatch.setattr(sys, "argv", ["generate.py"])
    assert generate.main() == 0
    assert not left.exists()
    assert page.read_bytes() == (ROOT / "docs" / "reference" / "limits.md").read_bytes()


def test_pictures_take_nothing_from_other_hosts() -> None:
    fetches = re.compile(r"@import|@font-face|<script|<image|href=|url\((?!#)")
    pictures = sorted((ROOT / "docs" / "pictures").glob("*.svg"))
    assert [path.name for path in pictures if fetches.search(path.read_text(encoding="utf-8"))] == []


REFERENCE = ROOT / "docs" / "reference" / "commands"


def options_in(text: str) -> dict[str, str]:
    """Return meanings in a page's tables, by option."""
    return dict(re.findall(r"^\| `(-.+?)` \| (.*) \|$", text, re.MULTILINE))


@for_each("command", COMMANDS)
def test_each_option_of_a_command_is_on_its_page(command: str) -> None:
    there = options_in((REFERENCE / f"{command}.md").read_text(encoding="utf-8"))
    (each,) = [found for found in helps() if found.name == command]
    assert there == {option.replace("|", "\\|"): meaning.replace("|", "\\|") for _, (option, meaning) in each.options()}


def test_page_has_the_examples_of_dump() -> None:
    text = (REFERENCE / "dump.md").read_text(encoding="utf-8")
    assert "kseg dump 00000000000000203000.log --print-data-log\n" in text


PAGES = sorted((ROOT / "share" / "man" / "man1").iterdir())


def test_each_command_has_its_man_page() -> None:
    assert {path.name for path in PAGES} == {"kseg.1", *(f"kseg-{name}.1" for name in COMMANDS)}


def test_man_page_of_dump_has_its_options() -> None:
    text = (ROOT / "share" / "man" / "man1" / "kseg-dump.1").read_text(encoding="utf-8")
    assert "\\fB\\-\\-from\\-offset OFFSET\\fR" in text
    assert all(line[:1] != "'" for line in text.splitlines())


@pytest.mark.skipif(shutil.which("groff") is None, reason="there is no groff here")
def test_man_pages_are_read_by_man_without_complaint() -> None:
    for page in PAGES:
        ran = subprocess.run(["groff", "-man", "-Tutf8", "-ww", str(page)], capture_output=True, text=True, check=True)
        assert ran.stderr == ""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_defines_a_function_for_the_shell(shell: str) -> None:
    ran = run.kseg(["completion", shell], ROOT)
    assert ran.status == 0
    assert f"_KSEG_COMPLETE={shell}_complete" in ran.stdout.decode()
    assert ran.stdout.decode().strip() == (ROOT / "share" / COMPLETIONS[shell]).read_text(encoding="utf-8").strip()


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("kseg du", "plain,dump"),
        ("kseg dump --from-", "plain,--from-offset\nplain,--from-time"),
        ("kseg dump -o ", "plain,text\nplain,json\nplain,csv\nplain,table\nplain,kcat"),
    ],
)
def test_bash_completes_commands_options_and_choices(line: str, found: str) -> None:
    words = line.split(" ")
    environment = {"_KSEG_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    kseg = str(Path(sys.executable).parent / "kseg")
    ran = subprocess.run([kseg], env=environment, capture_output=True, text=True, check=False)
    assert ran.stdout.strip() == found
