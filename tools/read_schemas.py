"""Writes kseg/formats/message_schemas/: Kafka's message schemas, one per line, from the jars of Kafka's releases.

The jars come from Maven Central by `mvn` and go to a temporary folder, unless --jars names one that has them
(FOLDER/RELEASE/*.jar). The lines have names, types, version ranges, tags and defaults, no descriptions. The same jars
give the same bytes.

    python tools/read_schemas.py
    python tools/read_schemas.py --jars kafka-jars --into schemas
"""

import argparse
import json
import re
import subprocess
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

INTO = Path(__file__).parent.parent / "kseg" / "formats" / "message_schemas"
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


class SchemaFile(NamedTuple):
    """A file to write, the release of its schemas, and its messages."""

    name: str
    release: str
    takes: Callable[[str, Schema], bool]
    """Called with the jar's name (without release) and the schema."""


def is_protocol(jar: str, schema: Schema) -> bool:
    """Return True if it is a request, a response, or a header of these."""
    return jar == "kafka-clients" and schema["type"] in ("request", "response", "header")


NEWEST = "4.4.0"
FILES = (
    SchemaFile("consumer_offsets", NEWEST, lambda jar, _: jar == "kafka-group-coordinator"),
    SchemaFile("transaction_state", NEWEST, lambda jar, _: jar == "kafka-transaction-coordinator"),
    SchemaFile("cluster_metadata", NEWEST, lambda jar, _: jar == "kafka-metadata"),
    SchemaFile("share_group_state", NEWEST, lambda jar, _: jar == "kafka-share-coordinator"),
    SchemaFile(
        "remote_log_metadata",
        NEWEST,
        lambda jar, schema: jar == "kafka-storage" and schema["type"] == "metadata",
    ),
    SchemaFile("consumer_protocol", NEWEST, lambda _, schema: schema["name"] in CONSUMER_PROTOCOL),
    SchemaFile("control_records", NEWEST, lambda _, schema: schema["name"] in CONTROL_RECORDS),
    SchemaFile("transaction_index", NEWEST, lambda _, schema: schema["name"] == "AbortedTxn"),
    SchemaFile("protocol", NEWEST, is_protocol),
    SchemaFile("share_groups_4_0", "4.0.0", lambda _, schema: schema["name"] in EARLY_SHARE_GROUPS),
    SchemaFile(
        "cluster_metadata_3_1",
        "3.1.2",
        lambda jar, schema: jar == "kafka-metadata" and schema["name"] in EARLY_METADATA,
    ),
    SchemaFile("cluster_metadata_2_8", "2.8.2", lambda jar, _: jar == "kafka-metadata"),
)


def download(release: str, into: Path) -> None:
    """Copy Kafka's own jars of a release into a folder, by Maven."""
    into.mkdir(parents=True)
    pom = into / "pom.xml"
    pom.write_text(POM.format(release=release))
    goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", "-DincludeGroupIds=org.apache.kafka"]
    subprocess.run(
        ["mvn", "-q", "-B", "-Dstyle.color=never", "-f", str(pom), *goal, f"-DoutputDirectory={into}"], check=True
    )


def read_schemas(folder: Path, release: str) -> Iterator[tuple[str, Schema]]:
    """Yield each schema of a release's jars, with the name of its jar."""
    for jar in sorted(folder.glob(f"kafka*-{release}.jar")):
        with zipfile.ZipFile(jar) as archive:
            for path in sorted(archive.namelist()):
                if SCHEMA_PATH.fullmatch(path):
                    text = COMMENT.sub("", archive.read(path).decode()).lstrip()
                    # 2.8 has files with stray text after the schema; Kafka's own reader stops at its end too.
                    yield jar.name.removesuffix(f"-{release}.jar"), json.JSONDecoder().raw_decode(text)[0]


def camel_case(name: str) -> str:
    """Return a field name in the spelling of Kafka's JSON."""
    return name[0].lower() + name[1:]


def default_value(kind: str, default: object) -> bool | int | str | None:
    """Return a default for JSON, or None if it is the type's own.

    An unquoted null isn't a default for Kafka's generator: such lists and structures begin empty.
    """
    if default is None or default == "" or isinstance(default, bool):
        return default or None
    if default == "null" or kind == "string":
        return str(default)
    if kind == "bool":
        return True if default == "true" else None
    return int(str(default), 0) or None


def without_nulls(members: Schema) -> Schema:
    """Return members with a value, in their order."""
    return {name: value for name, value in members.items() if value is not None}


def stored_fields(fields: list[Schema]) -> list[Schema]:
    """Return the members of fields that kseg uses."""
    return [
        without_nulls(
            {
                "name": camel_case(field["name"]),
                "type": field["type"],
                # Tagged fields may have their versions only in taggedVersions.
                "versions": field.get("versions", field.get("taggedVersions", "none")),
                "nullableVersions": field.get("nullableVersions"),
                "tag": field.get("tag"),
                "taggedVersions": field.get("taggedVersions"),
                "flexibleVersions": field.get("flexibleVersions"),
                "default": default_value(field["type"], field.get("default")),
                "fields": stored_fields(field["fields"]) if field.get("fields") else None,
            }
        )
        for field in fields
    ]


def stored_structures(structures: list[Schema]) -> list[Schema] | None:
    """Return the structures that several fields of a message share."""
    return [{"name": each["name"], "fields": stored_fields(each["fields"])} for each in structures] or None


def message_line(schema: Schema) -> str:
    """Return a message in kseg's form: Kafka's schema on one line, with kseg's members in a fixed order."""
    stored = without_nulls(
        {
            "apiKey": schema.get("apiKey"),
            "type": schema["type"],
            "name": schema["name"],
            "validVersions": schema["validVersions"],
            # 2.8's schemas omit the value for "none".
            "flexibleVersions": schema.get("flexibleVersions", "none"),
            "fields": stored_fields(schema.get("fields", [])),
            "commonStructs": stored_structures(schema.get("commonStructs", [])),
        }
    )
    return json.dumps(stored, separators=(",", ":")) + "\n"


def file_text(schemas: list[Schema]) -> str:
    """Return the lines of a file, by number and name."""
    schemas = sorted(schemas, key=lambda schema: (schema.get("apiKey", -1), schema["name"]))
    return "".join(map(message_line, schemas))


def main() -> None:
    """Write all files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jars", type=Path, help="folder with, or for, a folder of jars per release")
    parser.add_argument("--into", type=Path, default=INTO, help="folder to write the files into")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        jars = arguments.jars or Path(temporary)
        for release in sorted({file.release for file in FILES}):
            if not (jars / release).is_dir():
                download(release, jars / release)
            schemas = list(read_schemas(jars / release, release))
            for file in FILES:
                if file.release == release:
                    chosen = [schema for jar, schema in schemas if file.takes(jar, schema)]
                    (arguments.into / f"{file.name}.jsonl").write_text(file_text(chosen), encoding="utf-8")
                    print(f"{file.name}: {len(chosen)} messages of {release}")


if __name__ == "__main__":
    main()
