"""Printed lines of logs, and options, of DumpLogSegments by release."""

from kseg.formats.codes import ControlType
from kseg.kernel.contract import GapRule
from kseg.named_tuple import NamedTuple
from kseg.releases import Release, Since, value_in

# --- v0/v1 only: a line per message, up to 0.10.2 --------------------------------------------------------------------

_L0 = (
    "offset: {offset} position: {position} isvalid: {recordIsValid} payloadsize: {valueSize} magic: {recordMagic}"
    " compresscodec: {recordCompression:scala} crc: {recordCrc}{keySize? keysize: {keySize}}"
)
_L1 = (
    "offset: {offset} position: {position} {timestampType}: {timestamp} isvalid: {recordIsValid}"
    " payloadsize: {valueSize} magic: {recordMagic} compresscodec: {recordCompression:scala} crc: {recordCrc}"
    "{keySize? keysize: {keySize}}"
)
_L1_CAPITAL = _L1.replace("recordCompression:scala", "recordCompression:capital")

# --- a line per batch ------------------------------------------------------------------------------------------------

_B1 = (
    "baseOffset: {baseOffset} lastOffset: {lastOffset} baseSequence: {baseSequence} lastSequence: {lastSequence}"
    " producerId: {producerId} producerEpoch: {producerEpoch} partitionLeaderEpoch: {partitionLeaderEpoch}"
    " isTransactional: {isTransactional} position: {position} {timestampType}: {maxTimestamp} isvalid: {isValid}"
    " size: {size} magic: {magic} compresscodec: {compression:capital} crc: {crc}"
)
_B1_LEGACY = (
    "offset: {lastOffset} position: {position} {timestampType}: {maxTimestamp} isvalid: {isValid} size: {size}"
    " magic: {magic} compresscodec: {compression:capital} crc: {crc}"
)
_B2 = _B1.replace(" baseSequence", " count: {count} baseSequence", 1)
_B3 = _B2.replace(" position", " isControl: {isControl} position", 1)
_B4 = _B3.replace(" isvalid: {isValid}", "") + " isvalid: {isValid}"
_B4_LEGACY = _B1_LEGACY.replace(" isvalid: {isValid}", "") + " isvalid: {isValid}"
_B5 = _B4.replace(":capital", "")
_B5_LEGACY = _B4_LEGACY.replace(":capital", "")
_B6 = _B5.replace(
    " position",
    " deleteHorizonMs: {hasDeleteHorizon?OptionalLong[{baseTimestamp}]}{hasDeleteHorizon!OptionalLong.empty} position",
    1,
)

# --- a line per record -----------------------------------------------------------------------------------------------

_R2 = (
    "offset: {offset} position: {position} {timestampType}: {timestamp} isvalid: true keysize: {keySize}"
    " valuesize: {valueSize} magic: {magic} compresscodec: {compression:capital} producerId: {producerId}"
    " sequence: {sequence} isTransactional: {isTransactional} headerKeys: [{headerKeys}]"
)
_R2_LEGACY = (
    "offset: {offset} position: {position} {timestampType}: {timestamp} isvalid: {recordIsValid} keysize: {keySize}"
    " valuesize: {valueSize} magic: {magic} compresscodec: {compression:capital} crc: {recordCrc}"
)
_R3 = _R2.replace(" sequence", " producerEpoch: {producerEpoch} sequence", 1)
_R4 = (
    "| offset: {offset} {timestampType}: {timestamp} keysize: {keySize} valuesize: {valueSize} sequence: {sequence}"
    " headerKeys: [{headerKeys}]"
)
_R4_LEGACY = (
    "| offset: {offset} {timestampType}: {timestamp} keysize: {keySize} valuesize: {valueSize} crc: {recordCrc}"
    " isvalid: {recordIsValid}"
)
_R5 = (
    "| offset: {offset} isValid: true crc: null keySize: {keySize} valueSize: {valueSize} {timestampType}: {timestamp}"
    " baseOffset: {baseOffset} lastOffset: {lastOffset} baseSequence: {baseSequence} lastSequence: {lastSequence}"
    " producerEpoch: {producerEpoch} partitionLeaderEpoch: {partitionLeaderEpoch} batchSize: {size} magic: {magic}"
    " compressType: {compression:capital} position: {position} sequence: {sequence} headerKeys: [{headerKeys}]"
)
_R5_LEGACY = (
    "| offset: {offset} isValid: {recordIsValid} crc: {recordCrc} keySize: {keySize} valueSize: {valueSize}"
    " {timestampType}: {timestamp} baseOffset: {baseOffset} lastOffset: {lastOffset} baseSequence: -1 lastSequence: -1"
    " producerEpoch: -1 partitionLeaderEpoch: -1 batchSize: {size} magic: {magic} compressType: {compression:capital}"
    " position: {position} crc: {recordCrc} isvalid: {recordIsValid}"
)
_R6 = (
    "| offset: {offset} {timestampType}: {timestamp} keySize: {keySize} valueSize: {valueSize} sequence: {sequence}"
    " headerKeys: [{headerKeys}]"
)
_R7_LEGACY = (
    "| offset: {offset} {timestampType}: {timestamp} keySize: {keySize} valueSize: {valueSize}"
    " isValid: {recordIsValid} crc: {recordCrc}"
)
_R6_LEGACY = _R7_LEGACY + "\\}"  # an error that the tool kept for thirteen releases


class Lines(NamedTuple):
    """The templates of one kind of line, by format."""

    v2: str
    legacy: str


MESSAGE_LINES: Since[Lines | None] = (
    ((0, 8), Lines(_L0, _L0)),
    ((0, 10, 1), Lines(_L1, _L1)),
    ((0, 10, 2), Lines(_L1_CAPITAL, _L1_CAPITAL)),
    ((0, 11), None),
)
"""Up to 0.10.2, messages and wrappers have the same line."""

BATCH_LINES: Since[Lines] = (
    ((0, 11), Lines(_B1, _B1_LEGACY)),
    ((2, 0, 0), Lines(_B2, _B1_LEGACY)),
    ((2, 0, 1), Lines(_B3, _B1_LEGACY)),
    ((2, 2), Lines(_B4, _B4_LEGACY)),
    ((3, 0), Lines(_B5, _B5_LEGACY)),
    ((3, 2), Lines(_B6, _B5_LEGACY)),
)

BATCH_LINES_WHEN_DEEP: Since[bool] = (((0, 11), False), ((2, 2), True))

RECORD_LINES: Since[Lines] = (
    ((0, 11, 0, 0), Lines(_R2, _R2_LEGACY)),
    ((0, 11, 0, 2), Lines(_R3, _R2_LEGACY)),
    ((2, 2), Lines(_R4, _R4_LEGACY)),
    ((2, 8), Lines(_R5, _R5_LEGACY)),
    ((3, 0), Lines(_R6, _R6_LEGACY)),
    ((4, 3), Lines(_R6, _R7_LEGACY)),
)

DEEP_WHEN_PRINTING: Since[bool] = (((0, 8), False), ((1, 1), True))

DECODERS_PRINT: Since[bool] = (((0, 8), False), ((0, 10, 1), True))
"""True if a decoder's option implies --print-data-log."""

KEY_AND_PAYLOAD: Since[str] = (
    ((0, 8), "{key? key: {key}} payload: {value?{value}}{value!null}"),
    ((0, 9, 0, 1), "{value?{key? key: {key}} payload: {value}}"),
    ((2, 4), "{key? key: {key}}{value? payload: {value}}"),
)

KEY_AND_PAYLOAD_ALONE: Since[str] = (
    ((2, 8), "{key?| key: {key}}{value? payload: {value}}"),
    ((4, 3), "{key?| key: {key}{value? payload: {value}}}{key!{value?| payload: {value}}}"),
)
"""The line with --skip-record-metadata."""

# --- around the lines ------------------------------------------------------------------------------------------------

STARTING_OFFSET: Since[str] = (((0, 8), "Starting offset: {offset}"), ((3, 3), "Log starting offset: {offset}"))
SNAPSHOT_END = "Snapshot end offset: {offset}, epoch: {epoch}"
BOOTSTRAP_SNAPSHOT = "KRaft bootstrap snapshot"
"""First lines: of a log, of a metadata snapshot, and of a snapshot without an offset in its name."""
TRAILING_BYTES = "Found {size} invalid bytes at the end of {name}"

GAP_RULE: Since[GapRule] = (((0, 8), GapRule.PLAIN_MESSAGES), ((0, 11), GapRule.ALL_RECORDS))
"""The records that the tool checks for consecutive offsets."""
OFFSET_BEFORE_FIRST: Since[int | None] = (((0, 8), None), ((4, 3), -1))
"""The offset that must precede a log's first one, or else there is a gap. None: any."""

# --- control records -------------------------------------------------------------------------------------------------

_MARKER = " endTxnMarker: {name} coordinatorEpoch: {{coordinatorEpoch}}"
_NAMED = " controlType: {name}({{controlType}})"
_UNKNOWN = " controlType: UNKNOWN({controlType})"

CONTROL_NAMES: Since[dict[int, str]] = (
    ((0, 11), {}),
    ((2, 7), {2: "QUORUM_REASSIGNMENT", 3: "LEADER_CHANGE"}),
    ((3, 0), {2: "LEADER_CHANGE", 3: "SNAPSHOT_HEADER", 4: "SNAPSHOT_FOOTER"}),
    ((3, 8), {2: "LEADER_CHANGE", 3: "SNAPSHOT_HEADER", 4: "SNAPSHOT_FOOTER", 5: "KRAFT_VERSION", 6: "KRAFT_VOTERS"}),
)

_SNAPSHOT_BODIES = {3: " SnapshotHeader {decoded}", 4: " SnapshotFooter {decoded}"}
_KRAFT_BODIES = {5: " KRaftVersion {decoded}", 6: " KRaftVoters {decoded}"}
CONTROL_BODIES: Since[dict[int, str]] = (
    ((0, 11), {}),
    ((3, 3), _SNAPSHOT_BODIES),
    ((3, 8), _SNAPSHOT_BODIES | _KRAFT_BODIES),
    ((4, 1), {2: " LeaderChange: {decoded}"} | _SNAPSHOT_BODIES | _KRAFT_BODIES),
)
"""Control records whose value is printed as JSON, in `{decoded}`."""


def control_suffixes(release: Release) -> tuple[str, ...]:
    """Return the text after a control record's line, for types 0 … 6, for unknown and for unreadable ones."""
    names, bodies = value_in(release, CONTROL_NAMES), value_in(release, CONTROL_BODIES)
    suffixes = []
    for kind in ControlType:
        if kind in (ControlType.ABORT, ControlType.COMMIT):
            suffixes.append(_MARKER.format(name=kind.name))
        elif kind in bodies:
            suffixes.append(bodies[kind])
        else:
            suffixes.append(_NAMED.format(name=names[kind]) if kind in names else _UNKNOWN)
    return (*suffixes, _UNKNOWN, "")


MISMATCHES = "Mismatches in :{path}"
MISMATCH = "  Index offset: {}, log offset: {}"
TIMESTAMP_MISMATCHES = "Found timestamp mismatch in :{path}"
TIMESTAMP_MISMATCH = "  Index timestamp: {}, log timestamp: {}"
OUT_OF_ORDER_TIMESTAMPS = "Found out of order timestamp in :{path}"
OUT_OF_ORDER_TIMESTAMP = "  Index timestamp: {}, Previously indexed timestamp: {}"
OFFSETS_NOT_FOUND: Since[str] = (
    ((0, 8), "The following indexed offsets are not found in the log."),
    ((4, 3), "The following indexed offsets are not found in :{path}"),
)
OFFSET_NOT_FOUND = "Indexed offset: {}, found log offset: {}"
NON_CONSECUTIVE: Since[str] = (
    ((0, 8), "Non-secutive offsets in :{path}"),
    ((0, 11), "Non-consecutive offsets in :{path}"),
    ((2, 3), "Non-consecutive offsets in {path}"),
)
FOLLOWED_BY = "  {} is followed by {}"

LAST_FOUND_FIRST: Since[bool] = (((0, 8), True), ((4, 3), False))
"""The order of mismatches and gaps; from 4.3 on, each offset appears once, mismatches descend and gaps ascend."""


INTERNAL_DECODERS = (
    "offsets-decoder",
    "transaction-log-decoder",
    "cluster-metadata-decoder",
    "remote-log-metadata-decoder",
    "share-group-state-decoder",
)
"""Options of internal topics' decoders; if several are given, Kafka uses the first of these."""

OPTION_RELEASES: dict[str, tuple[str, tuple[int, ...]]] = {
    "index_sanity_check": ("--index-sanity-check", (0, 10)),
    "skip_record_metadata": ("--skip-record-metadata", (2, 8)),
    "max_bytes": ("--max-bytes", (3, 3)),
    "offsets-decoder": ("--offsets-decoder", (0, 9, 0, 1)),
    "transaction-log-decoder": ("--transaction-log-decoder", (0, 11)),
    "cluster-metadata-decoder": ("--cluster-metadata-decoder", (2, 8)),
    "remote-log-metadata-decoder": ("--remote-log-metadata-decoder", (3, 9)),
    "share-group-state-decoder": ("--share-group-state-decoder", (4, 0)),
}
"""Kafka's options that some releases lack: their names, and the first release that has them."""

OLD_CLASS_PREFIX, CLASS_PREFIX = "kafka.serializer.", "org.apache.kafka.tools.api."
"""Packages of the decoder classes, up to 3.7 and from 3.8 on."""

NAMES_OLD_CLASSES: Since[bool] = (((0, 8), False), ((3, 8), True), ((4, 0), False))
"""True if the tool prints a message if a class is given by its old name."""

_DEPRECATED_CLASS = "{old} is deprecated. Please use {new} instead"


def deprecated_class_lines(key_class: str | None, value_class: str | None, release: Release) -> list[str]:
    """Return the lines that a release prints for old class names, the value's first."""
    if not value_in(release, NAMES_OLD_CLASSES):
        return []
    old = [name for name in (value_class, key_class) if name is not None and name.startswith(OLD_CLASS_PREFIX)]
    return [_DEPRECATED_CLASS.format(old=name, new=CLASS_PREFIX + name.removeprefix(OLD_CLASS_PREFIX)) for name in old]
