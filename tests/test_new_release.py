"""The list of what a new release of Kafka has that kseg doesn't know, and the files of kseg that change."""

import json
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kseg.cluster.settings import TOPIC_SETTINGS
from kseg.findings.broker_log import KNOWN_LINES
from kseg.releases import NEWEST, Release, all_releases
from tests import golden
from tools import new_release
from tools.new_release import report
from tools.read_schemas import FILES
from tools.read_schemas import NEWEST as NEWEST_SCHEMAS
from tools.release.differences import (
    CODES,
    PLACES,
    SCHEMAS,
    Difference,
    code_differences,
    import_differences,
    line_differences,
    schema_differences,
    setting_differences,
)
from tools.release.jars import cited_classes, members_of, strings_of

ROOT = golden.ROOT.parent
JARS = {
    "consumer_offsets": "kafka-group-coordinator",
    "transaction_state": "kafka-transaction-coordinator",
    "cluster_metadata": "kafka-metadata",
    "share_group_state": "kafka-share-coordinator",
    "remote_log_metadata": "kafka-storage",
}


def known_schemas() -> list[tuple[str, dict[str, Any]]]:
    """Return kseg's messages as a release's jars would have them."""
    return [
        (JARS.get(file.name, "kafka-clients"), json.loads(line))
        for file in FILES
        if file.release == NEWEST_SCHEMAS
        for line in (ROOT / SCHEMAS / f"{file.name}.jsonl").read_text(encoding="utf-8").splitlines()
    ]


def test_a_release_with_the_messages_of_kseg_has_no_differences() -> None:
    assert list(schema_differences(known_schemas(), known_schemas())) == []


def test_new_changed_and_gone_messages_are_listed_with_their_file() -> None:
    new = known_schemas()
    schemas = {schema["name"]: schema for _, schema in new}
    versions, schemas["FetchRequest"]["validVersions"] = schemas["FetchRequest"]["validVersions"], "4-99"
    schemas["FetchRequest"]["fields"].append({"name": "Haste", "type": "int8", "versions": "99+"})
    new = [(jar, schema) for jar, schema in new if schema["name"] != "TopicRecord"]
    later = {"type": "metadata", "name": "LaterRecord", "validVersions": "0", "fields": [], "apiKey": 99}
    new.append(("kafka-metadata", later))
    new.append(("kafka-raft", {**later, "type": "data", "name": "OfNoFile"}))
    assert list(schema_differences(known_schemas(), new)) == [
        Difference("message", "new", "LaterRecord", f"{SCHEMAS}/cluster_metadata.jsonl"),
        Difference("message", "gone", "TopicRecord", f"{SCHEMAS}/cluster_metadata.jsonl"),
        Difference(
            "message",
            "changed",
            f"FetchRequest: validVersions {versions} → 4-99, new field haste",
            f"{SCHEMAS}/protocol.jsonl",
        ),
        Difference("message of no file", "new", "OfNoFile", "tools/read_schemas.py"),
    ]


def test_codes_are_new_if_neither_kseg_nor_the_known_release_has_them() -> None:
    known = [["Errors#code", "NONE", "0"], ["Errors#code", "OLD", "4"], ["CompressionType#id", "ZSTD", "4"]]
    new = [
        *(["Errors#code", "NONE", "0"], ["Errors#code", "UNKNOWN_TOPIC_OR_PARTITION", "3"]),
        *(["Errors#code", "WAIT", "999"], ["CompressionType#id", "ZSTD", "5"]),
    ]
    assert {(each.file, each.change, each.subject) for each in code_differences(known, new)} == {
        ("kseg/protocol/error_codes.py", "gone", "OLD"),
        ("kseg/protocol/error_codes.py", "new", "WAIT = 999"),
        ("kseg/formats/codes.py", "changed", "ZSTD = 4 → 5"),
    }


def test_settings_are_new_or_changed_unless_kseg_has_them() -> None:
    own = TOPIC_SETTINGS[0]
    rows = [["settings", "a", "INT 1"], ["settings", "b", "INT 1"], ["settings", "c", "INT 1"]]
    new = [*(["settings", "a", "INT 1"], ["settings", "b", "LONG 1"], ["settings", "d", "LIST "])]
    new.append(["settings", own.name, f"{own.type.name} {own.default}"])
    assert [(each.change, each.subject) for each in setting_differences(rows, new)] == [
        ("changed", "b: INT 1 → LONG 1"),
        ("gone", "c"),
        ("new", "d: LIST "),
    ]


def test_a_brokers_message_that_a_release_words_differently_is_gone() -> None:
    (line,) = (line for line in KNOWN_LINES if line.words == "Malformed line in partition metadata file [{file}]: ")
    known = {"A": b"Malformed line in partition metadata file [\x01]: ", "B": b"Expected [", "C": b"Something"}
    assert list(line_differences(known, {**known, "C": b"else"})) == []
    found = list(line_differences(known, {**known, "A": b"Wrong line in file [\x01]: "}))
    assert [(each.file, each.subject) for each in found] == [("kseg/findings/broker_log.py", line.readable)]


def test_texts_of_a_class_are_those_of_its_string_constants() -> None:
    def utf8(text: str) -> bytes:
        return struct.pack(">BH", 1, len(text.encode())) + text.encode()

    constants = [utf8("a name"), utf8("offset: \x01"), b"\x05" + bytes(8), b"\x08\0\2", b"\x0f\1\0\1"]
    data = b"\xca\xfe\xba\xbe\0\0\0\x3d" + struct.pack(">H", len(constants) + 2) + b"".join(constants)
    assert strings_of(data) == {"offset: \x01"}


JAVAP = """\
public class org.apache.kafka.Thing {
  public void read(int);
    Code:
       0: invokestatic  #12                 // Method lambda$read$3:()V

  public void read();
    Code:
       0: return

  private static void lambda$read$3();
    Code:
       0: bipush        7

  static {};
    Code:
       0: return
}
"""


def test_a_method_is_changed_if_its_code_or_that_of_its_lambdas_is() -> None:
    before = members_of(JAVAP)
    assert set(before) == {"read", "static"}
    assert members_of(JAVAP.replace("#12 ", "#97 ").replace("read$3", "read$8")) == before
    after = members_of(JAVAP.replace("bipush        7", "bipush        8"))
    assert [name for name in before if before[name] != after[name]] == ["read"]


def test_docstrings_name_classes_and_methods_as_sources() -> None:
    text = (
        "Return it. Source: LogSegment.translateOffset,\nTransactionsCommand.AbortTransactionCommand.\n\nNot: Cleaner."
    )
    assert list(cited_classes(text)) == [
        ("LogSegment", "translateOffset"),
        ("TransactionsCommand$AbortTransactionCommand", ""),
    ]


def test_the_list_names_each_file_with_its_step_and_classes_last() -> None:
    found = [
        Difference("class", "changed", "Cleaner: doClean", "kseg/log/compaction_plan.py"),
        Difference("error code", "new", "B = 2", PLACES["error code"].file),
        Difference("error code", "new", "A = 1", PLACES["error code"].file),
    ]
    assert list(report(found)) == [
        "kseg/protocol/error_codes.py (error code): add it to ErrorCode",
        "  new      B = 2",
        "  new      A = 1",
        "kseg/log/compaction_plan.py (class): read the new code of the methods",
        "  changed  Cleaner: doClean",
        "3 differences in 2 files",
    ]


def test_golden_data_is_recorded_only_if_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(new_release, "Jars", lambda release, work: None)
    monkeypatch.setattr(new_release, "differences", lambda known, new: ())
    (tmp_path / "make").write_text(f'#!/bin/sh\necho "$@" >{tmp_path}/made\n')
    (tmp_path / "make").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    for options, is_made in (([], False), (["--golden"], True)):
        monkeypatch.setattr(sys, "argv", ["new_release.py", "4.5.0", *options])
        assert new_release.main() == 0
        assert (tmp_path / "made").exists() == is_made
    assert (tmp_path / "made").read_text() == "golden RELEASE=4.5.0\n"


def test_each_kind_of_difference_has_a_file_that_exists() -> None:
    assert [place.file for place in PLACES.values() if not (ROOT / place.file).exists()] == []
    assert {kind for kind, _ in CODES.values()} <= {*PLACES}


def test_a_class_that_moved_is_listed_with_the_java_programs_that_import_it() -> None:
    known = {"org/apache/kafka/clients/admin/Admin", "org/apache/kafka/clients/consumer/KafkaConsumer"}
    found = list(import_differences(known, {"org/apache/kafka/clients/consumer/KafkaConsumer"}))
    assert ("Java program", "gone", "org.apache.kafka.clients.admin.Admin", "tools/WriteTopics.java") in found
    assert {each.subject for each in found} == {"org.apache.kafka.clients.admin.Admin"}


@pytest.mark.kafka
def test_kseg_knows_the_messages_and_settings_of_its_newest_release() -> None:
    command = [sys.executable, "tools/new_release.py", str(NEWEST), "--since", str(Release(all_releases()[-2]))]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "(class)" in ran.stdout
    assert "(message)" not in ran.stdout
    assert "(topic setting)" not in ran.stdout
