"""Types of control records, each with the grammar of its value."""

from kseg.formats.codes import ControlType
from kseg.formats.control import END_TXN_MARKER, KRAFT_VERSION, LEADER_CHANGE, SNAPSHOT_FOOTER, SNAPSHOT_HEADER, VOTERS

CONTROL_VALUES = {
    ControlType.ABORT: END_TXN_MARKER,
    ControlType.COMMIT: END_TXN_MARKER,
    ControlType.LEADER_CHANGE: LEADER_CHANGE,
    ControlType.SNAPSHOT_HEADER: SNAPSHOT_HEADER,
    ControlType.SNAPSHOT_FOOTER: SNAPSHOT_FOOTER,
    ControlType.KRAFT_VERSION: KRAFT_VERSION,
    ControlType.KRAFT_VOTERS: VOTERS,
}
"""Type of a control record to its value's grammar. 2.7 and 2.8 wrote LEADER_CHANGE with the number 3."""
