"""Writes kseg/formats/schemas/: the facts of Kafka's message schemas, read out of the jars of Kafka's releases.

The jars come from Maven Central by `mvn` and go to a temporary folder, unless --jars names one that has them
(FOLDER/RELEASE/*.jar). Only names, types, version ranges, tags and defaults are taken. The same jars give the same
bytes.

    python tools/read_schemas.py
    python tools/read_schemas.py --jars kafka-jars --into schemas
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

INTO = Path(__file__).parent.parent / "kseg" / "formats" / "schemas"
SCHEMA_PATH = re.compile(r"(common/)?(message|metadata)/\w+\.json")
COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)

Schema = dict[str, Any]

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion><groupId>schemas</groupId><artifactId>schemas</artifactId><version>1</version>
  <dependencies><dependency>
    <groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{release}</version>
    <exclusions><exclusion>
      <groupId>org.apache.kafka</groupId><artifactId>kafka-tools-api</artifactId>
    </exclusion></exclusions>
  </dependency></dependencies>
</project>
"""

CONSUMER_PROTOCOL = {"ConsumerProtocolSubscription", "ConsumerProtocolAssignment"}
CONTROL_RECORDS = {
    "ControlRecordTypeSchema",
    "EndTxnMarker",
    "LeaderChangeMessage",
    "SnapshotHeaderRecord",
    "SnapshotFooterRecord",
    "KRaftVersionRecord",
    "VotersRecord",
}
EARLY_METADATA = {
    "DelegationTokenRecord",
    "FeatureLevelRecord",
    "ProducerIdsRecord",
    "RemoveFeatureLevelRecord",
    "UserScramCredentialRecord",
}
EARLY_SHARE_GROUPS = {
    "ShareGroupMetadataValue",
    "ShareGroupPartitionMetadataKey",
    "ShareGroupPartitionMetadataValue",
    "ShareGroupStatePartitionMetadataValue",
    "ShareSnapshotValue",
    "ShareUpdateValue",
}


class Table(NamedTuple):
    """A module to write: from which release, what it is, and which messages of which jar go into it."""

    module: str
    release: str
    title: str
    takes: Callable[[str, Schema], bool]
    """Called with the jar's name (without release) and the schema."""


def is_protocol(jar: str, schema: Schema) -> bool:
    """Whether it is a request, a response, or a header of these."""
    return jar == "kafka-clients" and schema["type"] in ("request", "response", "header")


TABLES = (
    Table("consumer_offsets", "4.4.0", "`__consumer_offsets`", lambda jar, _: jar == "kafka-group-coordinator"),
    Table("transaction_state", "4.4.0", "`__transaction_state`", lambda jar, _: jar == "kafka-transaction-coordinator"),
    Table("cluster_metadata", "4.4.0", "`__cluster_metadata`", lambda jar, _: jar == "kafka-metadata"),
    Table("share_group_state", "4.4.0", "`__share_group_state`", lambda jar, _: jar == "kafka-share-coordinator"),
    Table(
        "remote_log_metadata",
        "4.4.0",
        "`__remote_log_metadata`",
        lambda jar, schema: jar == "kafka-storage" and schema["type"] == "metadata",
    ),
    Table(
        "consumer_protocol",
        "4.4.0",
        "what consumers put into their groups' subscriptions and assignments",
        lambda _, schema: schema["name"] in CONSUMER_PROTOCOL,
    ),
    Table("control_records", "4.4.0", "control records", lambda _, schema: schema["name"] in CONTROL_RECORDS),
    Table("protocol", "4.4.0", "requests, responses and their headers", is_protocol),
    Table(
        "share_groups_4_0",
        "4.0.0",
        "share groups as 4.0 had them, in the same versions as later but with other fields",
        lambda _, schema: schema["name"] in EARLY_SHARE_GROUPS,
    ),
    Table(
        "cluster_metadata_3_1",
        "3.1.2",
        "`__cluster_metadata` as 3.0 and 3.1 had them, in the same versions as later but with other fields",
        lambda jar, schema: jar == "kafka-metadata" and schema["name"] in EARLY_METADATA,
    ),
    Table(
        "cluster_metadata_2_8",
        "2.8.2",
        "`__cluster_metadata` as the 2.8 preview wrote it, after frame version 0",
        lambda jar, _: jar == "kafka-metadata",
    ),
)


def download(release: str, into: Path) -> None:
    """Copies Kafka's own jars of a release into a folder, by Maven."""
    into.mkdir(parents=True)
    pom = into / "pom.xml"
    pom.write_text(POM.format(release=release))
    goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", "-DincludeGroupIds=org.apache.kafka"]
    subprocess.run(["mvn", "-q", "-B", "-f", str(pom), *goal, f"-DoutputDirectory={into}"], check=True)


def read_schemas(folder: Path, release: str) -> Iterator[tuple[str, Schema]]:
    """Each schema of a release's jars, with the name of its jar."""
    for jar in sorted(folder.glob(f"kafka*-{release}.jar")):
        with zipfile.ZipFile(jar) as archive:
            for path in sorted(archive.namelist()):
                if SCHEMA_PATH.fullmatch(path):
                    text = COMMENT.sub("", archive.read(path).decode()).lstrip()
                    # 2.8 has files with stray text after the schema; Kafka's own reader stops at its end too.
                    yield jar.name.removesuffix(f"-{release}.jar"), json.JSONDecoder().raw_decode(text)[0]


def camel_case(name: str) -> str:
    """A field's name as Kafka's JSON has it."""
    return name[0].lower() + name[1:]


def constant_name(name: str) -> str:
    """`KRaftVersionRecord` → `KRAFT_VERSION_RECORD`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.replace("KRaft", "Kraft")).upper()


def default_value(kind: str, default: object) -> bool | int | str | None:
    """A default as Python has it; None where it is the type's own.

    An unquoted null is no default for Kafka's generator: such lists and structures begin empty.
    """
    if default is None or default == "" or isinstance(default, bool):
        return default or None
    if default == "null" or kind == "string":
        return str(default)
    if kind == "bool":
        return True if default == "true" else None
    return int(str(default), 0) or None


def field_source(field: Schema, structures: dict[str, list[Schema]]) -> str:
    """The call that makes a field, with the fields of its structure."""
    kind = field["type"]
    tagged = field.get("taggedVersions", "none")
    # Tagged fields may leave their versions to taggedVersions.
    arguments = [repr(camel_case(field["name"])), repr(kind), repr(field.get("versions", tagged))]
    default = default_value(kind, field.get("default"))
    options = {
        "nullable": field.get("nullableVersions"),
        "tag": None if "tag" not in field else int(field["tag"]),
        "tagged": field.get("taggedVersions"),
        "default": default,
        "flexible": field.get("flexibleVersions"),
    }
    arguments += [f"{name}={value!r}" for name, value in options.items() if value is not None]
    inner = field.get("fields", structures.get(kind.removeprefix("[]")))
    if inner:
        arguments.append(f"fields={fields_source(inner, structures)}")
    return f"Field({', '.join(arguments)})"


def fields_source(fields: list[Schema], structures: dict[str, list[Schema]]) -> str:
    """A tuple of fields."""
    return "(" + "".join(f"{field_source(field, structures)}," for field in fields) + ")"


def message_source(schema: Schema) -> str:
    """The assignment of a message to its constant."""
    structures = {structure["name"]: structure["fields"] for structure in schema.get("commonStructs", [])}
    arguments = [
        repr(schema["name"]),
        repr(schema["type"]),
        repr(schema.get("apiKey")),
        repr(schema["validVersions"]),
        # 2.8's schemas say nothing where they mean "none".
        repr(schema.get("flexibleVersions", "none")),
        fields_source(schema.get("fields", []), structures),
    ]
    return f"{constant_name(schema['name'])} = MessageSchema({', '.join(arguments)})\n"


def register_source(schemas: list[Schema]) -> str:
    """Dictionaries from number to message, one for each kind that has numbers."""
    names = {
        "coordinator-key": "KEYS",
        "coordinator-value": "VALUES",
        "metadata": "RECORDS",
        "request": "REQUESTS",
        "response": "RESPONSES",
    }
    text = ""
    for kind, name in names.items():
        entries = sorted((s["apiKey"], s["name"]) for s in schemas if s["type"] == kind and "apiKey" in s)
        if entries:
            lines = "".join(f"{number}: {constant_name(message)},\n" for number, message in entries)
            text += f"\n{name}: dict[int, MessageSchema] = {{\n{lines}}}\n"
    return text


def module_source(table: Table, schemas: list[Schema]) -> str:
    """A whole module."""
    schemas = sorted(schemas, key=lambda schema: (schema.get("apiKey", -1), schema["name"]))
    title = f'"""Messages of {table.title}.\n\nWritten by tools/read_schemas.py from Kafka {table.release}.\n"""'
    imports = "from kseg.formats.schemas.schema import Field, MessageSchema"
    return "\n".join([title, "", imports, "", *map(message_source, schemas)]) + register_source(schemas)


def main() -> None:
    """Writes all tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jars", type=Path, help="folder with, or for, a folder of jars per release")
    parser.add_argument("--into", type=Path, default=INTO, help="folder to write the modules into")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        jars = arguments.jars or Path(temporary)
        for release in sorted({table.release for table in TABLES}):
            if not (jars / release).is_dir():
                download(release, jars / release)
            schemas = list(read_schemas(jars / release, release))
            for table in TABLES:
                if table.release == release:
                    chosen = [schema for jar, schema in schemas if table.takes(jar, schema)]
                    (arguments.into / f"{table.module}.py").write_text(module_source(table, chosen))
                    print(f"{table.module}: {len(chosen)} messages of {release}")
    modules = [str(arguments.into / f"{table.module}.py") for table in TABLES]
    subprocess.run([sys.executable, "-m", "ruff", "format", "--quiet", *modules], check=True)


if __name__ == "__main__":
    main()
