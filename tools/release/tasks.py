"""Tasks that people bring to kseg, as command lines on golden files, with words of their output.

They run in each installation of a release, so that a bundle without a library or a file of kseg is found.
"""

from typing import NamedTuple


class Task(NamedTuple):
    """A task, its line for a shell in /golden, words that it prints, and its exit status."""

    about: str
    line: str
    words: str
    status: int = 0


DISK = "start/base-4.3.1-clean.tar.gz"
TASKS = (
    Task(
        "a broker that doesn't start", "kseg doctor damaged/210-wiped-batch", "next: kseg salvage damaged/210-wiped", 1
    ),
    Task("a consumer stuck at an offset", "kseg get docs/test-1-0 --offset 203500 --field value", "local test"),
    Task(
        "records lost after an election",
        "kseg slice docs/test-1-0 --to-offset 205000 --to /tmp/test-1-0; kseg diff docs/test-1-0 /tmp/test-1-0",
        "lacks 4130 records that another copy has",
        1,
    ),
    Task("a full disk", "kseg retain logs/4.3.1 --free 20%", "Deletable now: 1 segment, 8.8 KiB"),
    Task("a lagging group", f"kseg groups {DISK} --group readers", "an open transaction holds back 5 of 103 offsets"),
    Task("a blocking transaction", f"kseg txns {DISK} --open", "36 transactions, 180 records"),
    Task("disks without a cluster", f"kseg verify --cluster {DISK}", "54 recoverable"),
    Task(
        "a record by time and content",
        "kseg dump docs/test-1-0 --from-time '2020-02-13 12:38:18.413' --grep '100$' --limit 1 -o table",
        "2020-02-13T12:38:18.413Z",
    ),
    Task("a key's partition", "kseg where --key user-17 --topic zstd logs/4.3.1", "logs/4.3.1/zstd-0"),
    Task("CSV", "kseg dump logs/4.3.1 --topic zstd -o csv", '"k1","row 1 thistle anchor'),
    Task("JSON", "kseg dump logs/4.3.1 --topic zstd -o json", '"key":"k1","value":"row 1 thistle anchor'),
    Task("Parquet", "kseg export logs/4.3.1 --topic zstd /tmp/parquet", "290 of 290 records"),
    Task("SQL", "kseg query 'select count(*) as n from zstd' logs/4.3.1", "290"),
    Task("an archive from somebody", "kseg doctor start/base-4.4.0-killed.tar.gz", "would start without problems"),
    Task("changed settings", "kseg metadata logs/4.4.0-made --changes", "retention.ms=-1"),
    Task("a client of a dead disk", "kseg serve logs/4.3.1 -- sh -c 'echo at $KSEG_BOOTSTRAP'", "at 127.0.0.1:"),
    Task("the largest topics", "kseg ls logs/4.3.1 --sort size", "Total: 8 topics, 8 partitions, 9 segments"),
    Task(
        "other codecs",
        "kseg report logs/4.3.1 --to /tmp/report.html && grep -o 'zstd would save about [^.]*' /tmp/report.html",
        "zstd would save about 716 B",
    ),
    Task(
        "a backup to compare",
        "cp -r logs/4.3.1 /tmp/backup && rm -r /tmp/backup/zstd-0 && kseg diff logs/4.3.1 /tmp/backup",
        "zstd: partition 0 missing in /tmp/backup",
        1,
    ),
    Task(
        "a damaged segment",
        "kseg salvage damaged/210-wiped-batch --to /tmp/saved",
        "2 batches, 1036 bytes in 1 segment",
        1,
    ),
    Task(
        "a topic for a test cluster",
        f"kseg serve logs/4.3.1 -- kseg restore {DISK} --topic plain-00 --bootstrap {{bootstrap}} --dry-run",
        "has no CreateTopics that kseg can send",  # a served disk is read-only: kseg connected, and saw that
        3,
    ),
    Task(
        "files of all kinds",
        "for f in $(find logs/4.3.1 -type f); do kseg explain $f >/dev/null || exit 9; done; kseg explain MANIFEST",
        "it is text; kseg doesn't read such files",
        2,
    ),
    Task("a copy for a vendor", "kseg redact logs/4.3.1 --to /tmp/shared", "1010 records in 118 batches"),
)
