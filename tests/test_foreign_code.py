"""No code from the data's directory: modules in the current directory, or in a given one, are never imported."""

import ast
import os
import shutil
import sys
from pathlib import Path

import pytest
from confluent_kafka.schema_registry import Schema

from tests import golden, traps
from tests.architecture import ROOT
from tests.decode.schemas_topic import schema_key, schema_value, write_topic
from tests.export import exports
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.loops import for_each, some_of_each

UNPICKLING = {"pickle", "marshal", "shelve", "cloudpickle", "dill", "yaml"}
EVALUATING = {"eval", "exec", "compile", "__import__"}
KSEG = str(Path(sys.executable).with_name("kseg"))
COMMANDS = {
    "--help": 0,
    "--version": 0,
    "dump test-1-0 --print-data-log": 0,
    "dump test-1-0 -o table": 0,
    "dump bundle.tar": 0,
    "dump orders-0 --value-decoder avro --schema-registry _schemas-0 -o json": 0,
    "dump orders-0 --value-decoder protobuf --schema-registry _schemas-0 -o json": 0,
    "dump orders-0 --value-decoder msgpack -o json": 0,
    "dump test-1-0 --value-decoder decoders:decode -o json": 2,
    "dump test-1-0 --value-decoder ./decoders:decode -o json": 2,
    "ls . --deep": 0,
    "lookup test-1-0 --offset 203500": 0,
    "verify test-1-0 codecs-0 -j 2": 0,
    "salvage test-1-0 --to saved": 0,
    "reindex test-1-0 --to indexes": 0,
    "explain test-1-0/00000000000000203000.log --offset 203500": 0,
    "build records.jsonl --compression zstd --to built": 0,
    "slice test-1-0 --to piece": 0,
    "retain test-1-0": 0,
    "compact codecs-0 --to cleaned": 0,
    "where --key a --partitions 3": 0,
    "groups __consumer_offsets-1": 0,
    "txns __transaction_state-0": 0,
    "metadata __cluster_metadata-0": 0,
    "protocol clients.pcap": 0,
    "completion bash": 0,
    "export big-0 exported -j 2": 0,
}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return partitions, and next to them a trap for each name."""
    root = tmp_path_factory.mktemp("foreign") / "data"
    logs = golden.ROOT / "logs/4.3.1"
    shutil.copytree(golden.ROOT / "docs/test-1-0", root / "test-1-0")
    shutil.copytree(logs / "compacted-txn-0", root / "codecs-0")
    for name in ("__consumer_offsets-1", "__transaction_state-0", "__cluster_metadata-0"):
        shutil.copytree(logs / name, root / name)
    shutil.copy(golden.ROOT / "protocol/4.3.1/clients.pcap", root)
    shutil.make_archive(str(root / "bundle"), "tar", logs, "compacted-txn-0")
    (root / "records.jsonl").write_text('{"key":"a","value":"b"}\n')
    exports.write_log(root / "big-0", 0, 400, per_batch=4, value=bytes(100_000))  # worth processes
    schemas = [
        (1, Schema('{"type":"record","name":"A","fields":[{"name":"id","type":"long"}]}', "AVRO")),
        (2, Schema('syntax = "proto3"; message B { int64 id = 1; }', "PROTOBUF")),
    ]
    write_topic(
        root,
        [
            NewRecord(schema_key(f"s{number}", 1), schema_value(f"s{number}", 1, number, schema))
            for number, schema in schemas
        ],
    )
    values = [b"\0\0\0\0\1\2", b"\0\0\0\0\2\0\x08\2"]
    write_segment(root / "orders-0", [NewBatch([NewRecord(None, value, 0) for value in values])])
    traps.set_traps(root)
    traps.set_traps(root / "test-1-0")
    return root


def run(command: list[str], directory: Path, **environment: str) -> traps.Ended:
    """Run a command without the files of earlier ones."""
    for made in ("saved", "indexes", "built", "piece", "cleaned", "exported"):
        shutil.rmtree(directory / made, ignore_errors=True)
    return traps.run(command, directory, directory / "test-1-0", **environment)


def way_of(line: str) -> tuple[object, ...]:
    """Return the ways in which a line may import: decoders, processes, an archive, or the command itself."""
    ways = ("decoder", "-j", "bundle", "--help", "--version")
    return (COMMANDS[line], *(way in line for way in ways))


@for_each("line", some_of_each(COMMANDS, way_of, 3), shards=2)
def test_no_command_imports_what_lies_in_the_current_directory(line: str, directory: Path) -> None:
    status, sprung, stderr = run([KSEG, *line.split()], directory)
    assert (status, sprung) == (COMMANDS[line], set()), stderr


@pytest.mark.parametrize("line", ["ls test-1-0", "verify test-1-0", "dump test-1-0 --value-decoder decoders:decode"])
def test_nor_what_lies_in_a_given_one(line: str, directory: Path) -> None:
    _, sprung, stderr = run([KSEG, *line.split()], directory)
    assert sprung == set(), stderr


BY_MODULE = ["--version", "verify test-1-0 codecs-0 -j 2", "export big-0 exported -j 2"]


@pytest.mark.parametrize("line", BY_MODULE)
def test_python_p_m_kseg_imports_nothing_from_there(line: str, directory: Path) -> None:
    status, sprung, stderr = run([sys.executable, "-P", "-m", "kseg", *line.split()], directory)
    assert (status, sprung) == (0, set()), stderr


@pytest.fixture(scope="module")
def without_pythons_own(directory: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the same directory without traps for Python's own imports.

    With `-m` and PYTHONPATH, these come before a module begins.
    """
    root = tmp_path_factory.mktemp("own") / "data"
    shutil.copytree(directory, root)
    for folder in (root, root / "test-1-0"):
        traps.set_traps(folder)
    for environment in ({}, {"PYTHONPATH": with_empty_name(root)}):
        while (ran := run([sys.executable, "-m", "__hello__"], root, **environment)).status or ran.sprung:
            for trap in root.glob("*.py"):
                if trap.stem in ran.sprung or f'/{trap.name}", line'.encode() in ran.stderr:
                    trap.unlink()
    return root


def with_empty_name(directory: Path) -> str:
    return os.pathsep.join(("", str(directory.parent), os.environ.get("PYTHONPATH", "")))


@pytest.mark.parametrize("line", BY_MODULE)
def test_python_m_kseg_imports_no_more_than_python_does(line: str, without_pythons_own: Path) -> None:
    status, sprung, stderr = run([sys.executable, "-m", "kseg", *line.split()], without_pythons_own)
    assert (status, sprung) == (0, set()), stderr


@pytest.mark.parametrize("line", BY_MODULE)
def test_an_empty_name_in_pythonpath_isnt_the_current_directory(line: str, without_pythons_own: Path) -> None:
    command = [sys.executable, "-P", "-m", "kseg", *line.split()]
    path = with_empty_name(without_pythons_own)
    status, sprung, stderr = run(command, without_pythons_own, PYTHONPATH=path)
    assert (status, sprung) == (0, set()), stderr


def test_a_decoder_comes_from_pythonpath(directory: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("decode = lambda data, headers: len(data)\n")
    line = "dump test-1-0 --value-decoder mine:decode --limit 1 -o json --only records"
    status, sprung, stderr = run([KSEG, *line.split()], directory, PYTHONPATH=str(tmp_path))
    assert (status, sprung) == (0, set()), stderr


def test_nothing_that_is_read_is_unpickled_or_evaluated() -> None:
    """Only the pipes between a run's own processes carry pickled values."""
    found = set()
    words = UNPICKLING | EVALUATING
    texts = {path: path.read_text(encoding="utf-8") for path in (ROOT / "kseg").rglob("*.py")}
    for path, text in texts.items():
        for node in ast.walk(ast.parse(text)) if any(word in text for word in words) else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                names = {node.func.id} & EVALUATING
            elif isinstance(node, ast.Import):
                names = {each.name for each in node.names} & UNPICKLING
            else:
                names = {node.module} & UNPICKLING if isinstance(node, ast.ImportFrom) else set()
            found |= {(path.relative_to(ROOT).as_posix(), name) for name in names}
    assert found == {("kseg/system/processes.py", "pickle")}


def test_the_traps_work(directory: Path) -> None:
    program = "import sys; sys.path.insert(0, ''); import decoders"  # further modules, for a traceback, may follow
    assert "decoders" in run([sys.executable, "-P", "-c", program], directory).sprung
