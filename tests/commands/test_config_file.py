"""The file of defaults that KSEG_CONFIG names."""

from pathlib import Path

import pytest

from tests import golden, run

LOG = "docs/test-1-0/00000000000000203000.log"


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path of the empty file."""
    path = tmp_path / "kseg.toml"
    path.touch()
    monkeypatch.setenv("KSEG_CONFIG", str(path))
    return path


def kseg(*arguments: str) -> run.Run:
    return run.kseg(arguments, golden.ROOT)


def plain(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> run.Run:
    """Run a command without the file."""
    with monkeypatch.context() as without:
        without.delenv("KSEG_CONFIG")
        return kseg(*arguments)


@pytest.mark.parametrize(
    ("content", "line", "options"),
    [
        ("[dump]\noutput = 'json'\nlimit = 3", f"dump {LOG}", ["-o", "json", "--limit", "3"]),
        ("tz = '+01:00'\n[dump]\ntemplate = '{time}'", f"dump {LOG}", ["--tz", "+01:00", "--template", "{time}"]),
        ("[dump]\nprint-data-log = true\nmax-bytes = '20KiB'", f"dump {LOG}",
         ["--print-data-log", "--max-bytes", "20480"]),
        ("[dump]\ncontrol = false\no = 'csv'", f"dump {LOG}", ["--no-control", "-o", "csv"]),
        ("[dump]\noutput = 'json'\nredact = ['keys', 'values']\nredact-key = 'k'", f"dump {LOG}",
         ["-o", "json", "--redact", "keys", "--redact", "values", "--redact-key", "k"]),
        ("[ls]\nby = 'segment'\nretention-ms = 1", "ls docs --now 2026-01-01",
         ["--by", "segment", "--retention-ms", "1"]),
        ("now = 2026-01-01T00:00:00Z", "retain docs/test-1-0", ["--now", "2026-01-01"]),
        ("[verify]\noutput = 'json'", f"dump {LOG} --limit 1", []),
    ],
)  # fmt: skip
def test_it_gives_defaults(
    content: str, line: str, options: list[str], config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config.write_text(content)
    assert kseg(*line.split()) == plain(monkeypatch, *line.split(), *options)


def test_the_command_line_comes_first_and_then_the_variables(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config.write_text("limit = 1\n[dump]\noutput = 'json'\nlimit = 2")
    assert kseg("dump", LOG) == plain(monkeypatch, "dump", LOG, "-o", "json", "--limit", "2")
    monkeypatch.setenv("KSEG_DUMP_LIMIT", "3")
    assert kseg("dump", LOG) == plain(monkeypatch, "dump", LOG, "-o", "json", "--limit", "3")
    assert kseg("dump", LOG, "--limit", "4").stdout.count(b'"type":"record"') == 4


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("outptu = 'json'", "no command has an option 'outptu'"),
        ("[dmup]\noutput = 'json'", "no such command 'dmup'"),
        ("[dump]\nsort = 'size'", "`kseg dump` has no option 'sort'"),
    ],
)
def test_unknown_keys_are_named(content: str, said: str, config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config.write_text(content)
    wanted, told = plain(monkeypatch, "dump", LOG), kseg("dump", LOG)
    assert (told.status, told.stdout) == (wanted.status, wanted.stdout)
    assert told.stderr == f"kseg: {config}: {said}\n".encode() + wanted.stderr
    assert kseg("dump", LOG, "-q").stderr == b""


def test_keys_of_other_commands_mean_nothing_here(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config.write_text("sort = 'size'\n[verify]\nnothing-yet = 1")
    assert kseg("dump", LOG) == plain(monkeypatch, "dump", LOG)


def test_a_wrong_value_is_refused_as_on_the_command_line(config: Path) -> None:
    config.write_text("[dump]\noutput = 'xml'")
    ran = kseg("dump", LOG)
    assert ran.status == 2
    assert b"'xml' is not one of 'text'" in ran.stderr


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[dump\n", "line 1"),
        ("a = " + "[" * 100_000, "nested too deeply"),
        ("#" * 2_000_000, "more than 1048576 bytes"),
        (None, "No such file or directory"),
    ],
    ids=["cut", "deep", "large", "missing"],
)
def test_a_file_that_cant_be_read_is_an_error(content: str | None, said: str, config: Path) -> None:
    if content is None:
        config.unlink()
    else:
        config.write_text(content)
    ran = kseg("dump", LOG)
    assert (ran.status, ran.stdout) == (2, b"")
    assert ran.stderr.decode().startswith(f"kseg: {config}: KSEG_CONFIG: ")
    assert said in ran.stderr.decode()
