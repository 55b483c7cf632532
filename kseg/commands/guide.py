"""The help of `kseg` as a whole: commands by situation, words of other tools, and the environment's variables."""

from typing import NamedTuple


class Task(NamedTuple):
    """A user's task, and the command line for it."""

    wanted: str
    line: str


class Situation(NamedTuple):
    """A user's situation, and up to five tasks that help."""

    name: str
    tasks: tuple[Task, ...]


SITUATIONS = (
    Situation(
        "A broker doesn't start",
        (
            Task("Find the problems", "kseg doctor kafka-logs/"),
            Task("Check one partition", "kseg verify kafka-logs/orders-0"),
            Task("Save the intact batches", "kseg salvage kafka-logs/orders-0 --to saved"),
            Task("Rebuild indexes", "kseg reindex orders-0/ --to indexes"),
        ),
    ),
    Situation(
        "A consumer is stuck",
        (
            Task("Show groups and lags", "kseg groups kafka-logs/ --group 'ord*'"),
            Task("Find open transactions", "kseg txns kafka-logs/ --open"),
            Task("Plan a reset of offsets", "kseg groups kafka-logs/ -o reset-csv"),
        ),
    ),
    Situation(
        "A record can't be processed",
        (
            Task("Find the record", "kseg lookup orders-0/ --offset 203500"),
            Task("Save its value", "kseg get orders-0/ --offset 203500 --to value.bin"),
            Task("Copy the other records", "kseg slice orders-0/ --drop-offset 203500 --to new"),
        ),
    ),
    Situation(
        "A cluster is lost",
        (
            Task("Compare the replicas", "kseg diff broker1/ broker2/"),
            Task("Re-create the topics", "kseg metadata kafka-logs/ -o commands > new.sh"),
            Task("Replace all controllers", "kseg rebuild-metadata data1/ --node-id 3001 --to new"),
            Task("Read with any client", "kseg serve kafka-logs/"),
            Task("Recover deleted topics", "kseg carve disk.img --to carved"),
        ),
    ),
    Situation(
        "The disk fills up",
        (
            Task("List by size", "kseg ls kafka-logs/ --sort size"),
            Task("Compare codecs", "kseg report kafka-logs/ --to report.html"),
            Task("Plan to free 50 GB", "kseg retain kafka-logs/ --free 50GB"),
            Task("Preview compaction", "kseg compact orders-0/ --dry-run"),
            Task("Balance a broker's disks", "kseg plan-move data1/ data2/ > moves.json"),
        ),
    ),
    Situation(
        "Something has changed",
        (
            Task("List the changes", "kseg metadata kafka-logs/ --changes --from-time -2d"),
            Task("Compare two times", "kseg metadata kafka-logs/ --at -2d --diff now"),
        ),
    ),
    Situation(
        "Explore a disk",
        (
            Task("Write a report", "kseg report kafka-logs/ --to report.html"),
            Task("Browse on the screen", "kseg browse kafka-logs/"),
            Task("Query with SQL", "kseg query 'select count(*) from orders' kafka-logs/"),
            Task("Find a key's partition", "kseg where --key user-17 --partitions 12"),
        ),
    ),
    Situation(
        "Explore a file",
        (
            Task("Print records", "kseg dump orders-0/ --tail 10 -o table"),
            Task("Find records", "kseg dump orders-0/ --key customer-7 --from-time -1h"),
            Task("Print like Kafka's tool", "kseg dump --like 2.8 00000000000000203000.log"),
            Task("Explain each byte", "kseg explain 00000000000000203000.log --batch 0"),
        ),
    ),
    Situation(
        "Copy records elsewhere",
        (
            Task("To a cluster", "kseg restore kafka-logs/ --bootstrap broker:9092"),
            Task("To Parquet or tables", "kseg export kafka-logs/ exported"),
            Task("With Spark", "kseg spark-export kafka-logs/ exported"),
            Task("From a bucket", "kseg salvage bucket/ --topic zstd --to saved"),
        ),
    ),
    Situation(
        "Tests, captures, sharing",
        (
            Task("Build a partition", "kseg build records.jsonl --to orders-0"),
            Task("Read network traffic", "kseg protocol clients.pcap"),
            Task("Redact a disk", "kseg redact kafka-logs/ --to shared"),
        ),
    ),
)
"""Situations that together have every command."""

TASKS = tuple(task for situation in SITUATIONS for task in situation.tasks)
"""All tasks, in the order of the situations."""

OTHER_COMMANDS = {
    "cat": "dump",
    "changes": "metadata --changes",
    "check": "verify",
    "config": "metadata --show configs",
    "configs": "metadata --show configs",
    "consume": "dump",
    "find": "lookup",
    "lag": "groups",
    "offsets": "groups",
    "produce": "dump -o kcat",
    "repair": "salvage",
    "select": "query",
    "server": "serve",
    "sql": "query",
    "topics": "ls --by topic",
    "transactions": "txns",
    "undelete": "carve",
}
"""Other names for commands, which users of other tools may try."""

OTHER_WORDS = {
    "--chart": "-o chart",
    "--columns": "--fields",
    "--csv": "-o csv",
    "--explain": "--dry-run",
    "--from": "--input-format",
    "--hanging": "--open",
    "--html": "-o html",
    "--json": "-o json",
    "--out": "--to",
    "--output-dir": "--to",
    "--output-file": "--to",
    "--partitions": "--partition",
    "--reset-csv": "-o reset-csv",
    "--since": "--from-time",
    "--table": "-o table",
    "--topics": "--topic",
    "--until": "--to-time",
}
"""Other names for options, which users of other tools may try."""

FIRST_OPTIONS = {
    "dump": "--print-data-log --topic --from-offset --from-time --key --grep --limit --output --value-decoder --like",
    "ls": "--topic --by --sort --top --deep --output --now",
    "lookup": "--offset --timestamp --topic --partition --key --print-data-log --output",
    "doctor": "--quick --explain --broker-log --topic --bundle --output --now",
    "verify": "--cluster --explain --topic --output --limit",
    "salvage": "--to --dry-run --topic --drop-unreadable --output",
    "carve": "--to --dry-run --from --size --block-size --min-batches --output",
    "diff": "--records --leader --topic --output",
    "report": "--to --quick --output --days --now --topic",
    "redact": "--to --keep --key-file --output",
    "get": "--offset --field --topic --partition --to",
    "reindex": "--to --dry-run --topic --index-interval-bytes",
    "explain": "--batch --offset --position --grammar --output",
    "browse": "--offset --position --key-decoder --value-decoder --tz",
    "build": "--to --input-format --base-offset --compression --magic --timestamp",
    "slice": "--to --from-offset --to-offset --from-time --to-time --drop-offset --drop-key",
    "retain": "--free --retention-ms --retention-bytes --now --output --topic",
    "compact": "--to --dry-run --now --output --topic",
    "where": "--topic --key --partitions --group --transactional-id --output",
    "protocol": "--input-format --api --port --print-data-log --output",
    "serve": "--listen --advertise --topic --tls-cert --sasl-users --fail-on-damage",
    "restore": "--bootstrap --command-config --topic --topic-map --dry-run --yes --skip-damage --to-time --output",
    "groups": "--group --show --at --topic --output --now",
    "txns": "--open --explain --topic --output --now",
    "query": "--allow-files --topic --output --value-decoder --dry-run --quick --max-memory",
    "plan-move": "--within --by-capacity --output --topic",
    "metadata": "--show --settings --topic --at --changes --output",
    "rebuild-metadata": "--to --node-id --endpoint --accept-loss --dry-run",
    "export": "--to --topic --format --table --fail-on-damage --value-decoder --from-time --dry-run",
    "spark-export": "--to --master --topic --format --fail-on-damage --packages --conf --dry-run",
}
"""By command: the options that most people need, for `-h`; at most what fits on a screen of 24 lines."""

VARIABLES = {
    "KSEG_COMMAND_OPTION": "Default of an option: KSEG_DUMP_OUTPUT=json means `kseg dump -o json`.",
    "KSEG_CONFIG": 'TOML file of defaults: `tz = "local"` for all commands, a table such as [dump] for one.',
    "KSEG_REDACT_KEY": "Key of --redact for all commands; the list of processes doesn't show it.",
    "KSEG_PAGER": "Pager for long tables on a terminal, instead of PAGER; `cat` for none.",
    "KSEG_KERNEL": "Reader: `fast` in C, or `twin` in Python. [default: fast if available]",
    "KSEG_DEBUG": "Print Python's traceback at errors, if set to any value.",
    "KSEG_BOOTSTRAP": "Address of the server, set by `kseg serve` for its COMMAND.",
    "OPENLINEAGE_URL": "Collector of lineage events, the default of `--openlineage`.",
    "NO_COLOR": "Use no colours, if set to any value.",
    "PAGER": "Pager for long tables. [default: less]",
    "TMPDIR": "Directory of temporary files, such as unpacked archives and standard input.",
    "TZ": "Time zone of `--tz local`.",
}
"""Environment variables that kseg reads or sets, by name."""
