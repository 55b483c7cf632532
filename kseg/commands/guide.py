"""What the help of `kseg` says beside its commands: what to do for what, and the environment's variables."""

from typing import NamedTuple


class Task(NamedTuple):
    """What somebody wants, and the line that does it."""

    wanted: str
    line: str


TASKS = (
    Task("Something is wrong, at 3 a.m.", "kseg doctor kafka-logs/"),
    Task("Look at a disk as a page", "kseg report kafka-logs/ --to report.html"),
    Task("A group is stuck", "kseg groups kafka-logs/ --group 'ord*'"),
    Task("read_committed stands still", "kseg txns kafka-logs/ --open"),
    Task("A partition won't load", "kseg verify kafka-logs/orders-0"),
    Task("Save what is intact", "kseg salvage kafka-logs/orders-0 --to saved"),
    Task("Which replica has the records", "kseg diff broker1/ broker2/"),
    Task("A topic out of a bucket", "kseg salvage bucket/ --topic zstd --to saved"),
    Task("Rebuild indexes", "kseg reindex orders-0/ --to indexes"),
    Task("A record stops its consumers", "kseg lookup orders-0/ --offset 203500 --print-data-log"),
    Task("Its value, as it was sent", "kseg get orders-0/ --offset 203500 --to value.bin"),
    Task("Take that record out", "kseg slice orders-0/ --drop-offset 203500 --to mended/orders-0"),
    Task(
        "Messages of a key and time",
        "kseg dump kafka-logs/ --topic orders --key customer-7 --from-time -2h --to-time -1h --merge time",
    ),
    Task("Messages as a table, JSON, CSV", "kseg dump orders-0/ --tail 10 -o table"),
    Task("Any question, in SQL", "kseg query 'select key, count(*) from orders group by key' kafka-logs/"),
    Task("Which partition a key is in", "kseg where --key user-17 --partitions 12"),
    Task("What fills the disk", "kseg ls kafka-logs/ --sort size"),
    Task("What retention frees, and when", "kseg retain kafka-logs/ --retention-ms 86400000"),
    Task("Free 50 GB by retention", "kseg retain kafka-logs/ --free 50GB"),
    Task("Level a broker's disks", "kseg plan-move data1/ data2/ > moves.json"),
    Task("What compaction leaves", "kseg compact orders-0/ --dry-run"),
    Task("Records back into a cluster", "kseg dump orders-0/ -o kcat > restore.sh"),
    Task("A group's offsets, for a reset", "kseg groups kafka-logs/ --group orders-billing -o reset-csv"),
    Task("A dead cluster as Parquet", "kseg export kafka-logs/ exported"),
    Task("The same with Spark", "kseg spark-export kafka-logs/ exported"),
    Task("A dead cluster's settings", "kseg metadata kafka-logs/"),
    Task("Topics, ACLs, quotas elsewhere", "kseg metadata kafka-logs/ --as-commands > carry-over.sh"),
    Task("All controllers lost", "kseg rebuild-metadata data1/ --node-id 3001 --to controller/"),
    Task("A partition out of records", "kseg build records.jsonl --to orders-0"),
    Task("What Kafka's own tool prints", "kseg dump --like 2.8 --files 00000000000000203000.log"),
    Task("What each byte means", "kseg explain 00000000000000203000.log --batch 0"),
    Task("Walk through a disk and its bytes", "kseg browse kafka-logs/"),
    Task("Any Kafka client, on a dead disk", "kseg serve kafka-logs/"),
    Task("What went over the network", "kseg protocol clients.pcap"),
)
"""Every command is in one of them."""

OTHER_COMMANDS = {
    "cat": "dump",
    "check": "verify",
    "config": "metadata --show configs",
    "configs": "metadata --show configs",
    "consume": "dump",
    "find": "lookup",
    "lag": "groups",
    "offsets": "groups",
    "produce": "dump -o kcat",
    "repair": "salvage",
    "restore": "dump -o kcat",
    "select": "query",
    "server": "serve",
    "sql": "query",
    "topics": "ls --by topic",
    "transactions": "txns",
}
"""What somebody may call a command who hasn't seen the list."""

OTHER_WORDS = {
    "--csv": "-o csv",
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
"""The same of options."""

VARIABLES = {
    "KSEG_COMMAND_OPTION": "Any option: KSEG_DUMP_OUTPUT=json is `kseg dump -o json`; the command line comes first.",
    "KSEG_CONFIG": 'A TOML file of defaults: `tz = "local"` for all commands, a table such as [dump] for one.',
    "KSEG_REDACT_KEY": "Key of --redact on all commands; it isn't visible in the list of processes.",
    "KSEG_PAGER": "Pager of long tables on a terminal, before PAGER; `cat` for none.",
    "KSEG_KERNEL": "`fast` or `twin`: the reader in C, or the same in Python; by default what there is.",
    "KSEG_DEBUG": "Set to anything, errors end with Python's traceback.",
    "NO_COLOR": "Set to anything, nothing is coloured.",
    "PAGER": "Pager of long tables, `less` by default.",
    "TMPDIR": "Where temporary files go: archives, standard input; a place that can't be used is an error.",
    "TZ": "The zone of `--tz local`.",
}
"""What kseg reads of the environment, by name."""
