"""Extras in docs/start/install.md: the commands that need them, and the messages about missing ones."""

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

from tests import golden
from tests.loops import for_each

ROOT = golden.ROOT.parent
LOGS = "logs/4.3.1"
NEEDED = {
    "arrow": ("pyarrow", f"export {LOGS} NEW"),
    "delta": ("deltalake", f"export --format delta {LOGS} NEW"),
    "iceberg": ("pyiceberg", f"export --format iceberg {LOGS} NEW"),
    "hdfs": ("fsspec", f"export {LOGS} webhdfs://127.0.0.1:1/new"),
    "spark": ("pyspark", f"spark-export {LOGS} NEW"),
    "sql": ("duckdb", f"query 'FROM zstd' {LOGS}"),
    "browse": ("textual", f"browse {LOGS}"),
    "pcap": ("dpkt", "protocol protocol/4.3.1/clients.pcap"),
    "s3": ("obstore", "ls s3://bucket"),
    "gcs": ("obstore", "ls gs://bucket"),
    "azure": ("obstore", "ls az://container"),
    "http": ("obstore", "ls https://host/disk"),
    "tiered": ("Crypto", "verify tiered/bucket --private-key key1=tiered/private.pem"),
    "avro": ("fastavro", "dump --value-decoder avro --schema any.avsc docs/test-1-0"),
    "protobuf": ("google.protobuf", "dump --value-decoder protobuf --schema any.desc --message Any docs/test-1-0"),
    "msgpack": ("msgpack", "dump --value-decoder msgpack docs/test-1-0"),
}
"""By extra: a module of its library, and a command that needs it."""
USEFUL = {"patterns", "report", "fast-gzip"}
"""Extras that commands can do without, or that others depend on."""


@for_each("extra", NEEDED)
def test_command_whose_library_is_missing_gives_the_pip_line(extra: str, tmp_path: Path) -> None:
    module, line = NEEDED[extra]
    code = f"import sys; sys.modules[{module!r}] = None; from kseg.cli import main; sys.exit(main())"
    words = [str(tmp_path / "new") if word == "NEW" else word for word in shlex.split(line)]
    ran = subprocess.run(
        [sys.executable, "-c", code, *words], cwd=golden.ROOT, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 2, ran.stdout
    assert f"run `pip install 'kseg[{extra}]'`" in ran.stderr
    assert ran.stderr.count("\n") == 1
    assert not (tmp_path / "new").exists()


def test_page_names_each_extra_with_its_command() -> None:
    text = (ROOT / "docs" / "start" / "install.md").read_text(encoding="utf-8")
    table = text.split("| to use | install the extra |\n|---|---|\n")[1].split("\n\n")[0]
    rows = [row.strip("| ").split(" | ") for row in table.splitlines()]
    listed = {name for _, extras in rows for name in re.findall(r"`([\w-]+)`", extras)}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert listed == set(project["optional-dependencies"]) == {*NEEDED, *USEFUL}
