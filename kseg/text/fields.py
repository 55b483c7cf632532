"""Fields of the objects and rows that commands print: one declaration for each name."""

from kseg.output.columns import Field, Kind, Unit


def _times(name: str, of: str) -> tuple[Field, Field]:
    """Declare the timestamp and the time of a subject."""
    timestamp = Field(f"{name}Timestamp", Kind.INTEGER, f"Timestamp of {of}.", Unit.TIMESTAMP)
    return timestamp, Field(f"{name}Time", Kind.TEXT, f"Time of {of}.", Unit.ISO_TIME)


# --- names of topics, partitions and places ---------------------------------------------------------------------------

TOPIC = Field("topic", Kind.TEXT, "Name of the topic.")
TOPIC_ID = Field("topicId", Kind.TEXT, "Id of the topic.")
TOPIC_ID_SOURCE = Field("topicIdSource", Kind.TEXT, "File that the topic id comes from.")
PARTITION = Field("partition", Kind.INT32, "Number of the partition.")
DIRECTORY = Field("directory", Kind.TEXT, "Directory of the partition or, in sums, log directory.", Unit.PATH)
PATH = Field("path", Kind.TEXT, "Path of a log directory, or of a copy of a partition.", Unit.PATH)
FILE = Field("file", Kind.TEXT, "Path of the file.", Unit.PATH)
SEGMENT = Field("segment", Kind.TEXT, "Name of the segment's log file.")
STATE = Field("state", Kind.TEXT, "State of the partition, group, transaction, or broker.")
REASON = Field("reason", Kind.TEXT, "Reason for the row's state.")
PROBLEM = Field("problem", Kind.TEXT, "Problem with the row's file.")
PROBLEMS = Field("problems", Kind.TEXTS, "Problems with the partition's files.")
KIND = Field("kind", Kind.TEXT, "Kind of the file with the evidence, of the tasks, or of the change.")
TOLD = Field("told", Kind.TEXT, "Evidence in the file.")
NAME = Field("name", Kind.TEXT, "Name of the feature, setting, quota, partition's directory, or summed item.")

# --- counts -----------------------------------------------------------------------------------------------------------

TOPICS = Field("topics", Kind.INTEGER, "Number of topics.", Unit.COUNT)
PARTITIONS = Field("partitions", Kind.INTEGER, "Number of directories of partitions.", Unit.COUNT)
COPY_COUNT = Field(
    "copyCount", Kind.INTEGER, "Number of those directories that are further copies of a partition.", Unit.COUNT
)
NOT_IN_USE = Field(
    "notInUse", Kind.INTEGER, "Number of those directories that are strays, being moved, or being deleted.", Unit.COUNT
)
INCOMPLETE = Field("incomplete", Kind.INTEGER, "Number of partitions with a file that can't be read.", Unit.COUNT)
SEGMENTS = Field("segments", Kind.INTEGER, "Number of segments.", Unit.COUNT)
RECORDS = Field(
    "records", Kind.INTEGER, "Number of records; in `kseg diff`, of records that only this copy has.", Unit.COUNT
)
BATCHES = Field("batches", Kind.INTEGER, "Number of batches.", Unit.COUNT)
OPEN_TRANSACTIONS = Field("openTransactions", Kind.INTEGER, "Number of open transactions.", Unit.COUNT)
ABORTED_TRANSACTIONS = Field(
    "abortedTransactions", Kind.INTEGER, "Number of entries in the transaction index.", Unit.COUNT
)
INDEX_ENTRIES = Field("indexEntries", Kind.INTEGER, "Number of entries in the offset index.", Unit.COUNT)
TIME_INDEX_ENTRIES = Field("timeIndexEntries", Kind.INTEGER, "Number of entries in the time index.", Unit.COUNT)
UNHEALTHY_SEGMENTS = Field(
    "unhealthySegments", Kind.INTEGER, "Number of segments with a problem in an index.", Unit.COUNT
)

# --- sizes ------------------------------------------------------------------------------------------------------------

BYTES = Field("bytes", Kind.INTEGER, "Size of the logs, or of the bytes that are read.", Unit.BYTES)
SIZE = Field("size", Kind.INTEGER, "Size of the batch or of the partition.", Unit.BYTES)
ALLOCATED_BYTES = Field("allocatedBytes", Kind.INTEGER, "Space on the disk for all files.", Unit.BYTES)
CACHED_BYTES = Field("cachedBytes", Kind.INTEGER, "Size of the part of the logs in the page cache.", Unit.BYTES)
STORED_BYTES = Field("storedBytes", Kind.INTEGER, "Size of the objects in the remote tier.", Unit.BYTES)
BEFORE = Field("before", Kind.INTEGER, "Used space before the moves.", Unit.BYTES)
AFTER = Field("after", Kind.INTEGER, "Used space after the moves.", Unit.BYTES)
AVAILABLE = Field("available", Kind.INTEGER, "Free space on the disk.", Unit.BYTES)

# --- offsets ----------------------------------------------------------------------------------------------------------

OFFSET = Field(
    "offset", Kind.INTEGER, "Committed offset, or offset of the metadata, the change, or the evidence.", Unit.OFFSET
)
POSITION = Field("position", Kind.INTEGER, "Position in the file.", Unit.POSITION)
BASE_OFFSET = Field("baseOffset", Kind.INTEGER, "First offset of the segment or batch.", Unit.OFFSET)
FIRST_OFFSET = Field("firstOffset", Kind.INTEGER, "Offset of the first record.", Unit.OFFSET)
LAST_OFFSET = Field("lastOffset", Kind.INTEGER, "Offset of the last record.", Unit.OFFSET)
END_OFFSET = Field("endOffset", Kind.INTEGER, "Offset of the marker, or next offset of the metadata.", Unit.OFFSET)
LOG_START_OFFSET = Field("logStartOffset", Kind.INTEGER, "First readable offset.", Unit.OFFSET)
LOCAL_START_OFFSET = Field("localStartOffset", Kind.INTEGER, "First offset on the local disk.", Unit.OFFSET)
LOG_END_OFFSET = Field("logEndOffset", Kind.INTEGER, "Next offset to be written.", Unit.OFFSET)
LAST_STABLE_OFFSET = Field(
    "lastStableOffset", Kind.INTEGER, "First offset of an open transaction, or log end offset.", Unit.OFFSET
)
HIGH_WATERMARK = Field("highWatermark", Kind.INTEGER, "End of the replicated records.", Unit.OFFSET)
RECOVERY_POINT = Field("recoveryPoint", Kind.INTEGER, "End of the flushed records.", Unit.OFFSET)
START_OFFSET = Field("startOffset", Kind.INTEGER, "First offset of the share-partition or leader epoch.", Unit.OFFSET)
RECORD_OFFSET = Field("recordOffset", Kind.INTEGER, "Offset of the row's record in the internal topic.", Unit.OFFSET)
JOINED_FROM_OFFSET = Field(
    "joinedFromOffset", Kind.INTEGER, "First offset of the local log that continues the tier.", Unit.OFFSET
)
DAMAGE_POSITION = Field("damagePosition", Kind.INTEGER, "Position of the first damage in the log.", Unit.POSITION)

# --- epochs and nodes -------------------------------------------------------------------------------------------------

LEADER_EPOCH = Field("leaderEpoch", Kind.INTEGER, "Latest known leader epoch.")
LAST_EPOCH = Field("lastEpoch", Kind.INTEGER, "Leader epoch of the last batch.")
KNOWN_EPOCH = Field("knownEpoch", Kind.INTEGER, "Leader epoch that the node or the used copy knows.")
PARTITION_LEADER_EPOCH = Field("partitionLeaderEpoch", Kind.INTEGER, "Leader epoch of the batch.")
PARTITION_EPOCH = Field("partitionEpoch", Kind.INTEGER, "Epoch of the partition's registration.")
EPOCH = Field("epoch", Kind.INTEGER, "Epoch of the group, member, or broker.")
COORDINATOR_EPOCH = Field("coordinatorEpoch", Kind.INTEGER, "Epoch of the coordinator that wrote the marker.")
LEADER = Field("leader", Kind.INTEGER, "Broker id of the partition's leader.")
REPLICAS = Field("replicas", Kind.INTEGERS, "Broker ids of the replicas.")
REPLICATION_FACTOR = Field("replicationFactor", Kind.INTEGER, "Number of replicas of the first partition.")
REPLICA_COUNT = Field("replicaCount", Kind.INTEGER, "Number of replicas in the log directory.", Unit.COUNT)
ISR = Field("isr", Kind.INTEGERS, "Broker ids of the in-sync replicas.")
ELIGIBLE_LEADER_REPLICAS = Field("eligibleLeaderReplicas", Kind.INTEGERS, "Broker ids of the eligible leader replicas.")
LAST_KNOWN_ELR = Field("lastKnownElr", Kind.INTEGERS, "Broker ids of the last known eligible leader replicas.")
ADDING_REPLICAS = Field("addingReplicas", Kind.INTEGERS, "Broker ids of the replicas being added.")
REMOVING_REPLICAS = Field("removingReplicas", Kind.INTEGERS, "Broker ids of the replicas being removed.")
IS_RECOVERING = Field("isRecovering", Kind.BOOLEAN, "True if the leader recovers after an unclean election.")
DIRECTORIES = Field("directories", Kind.OBJECTS, "Log directories of the replicas.")
BROKER_ID = Field("brokerId", Kind.INTEGER, "Id of the broker.")
CONTROLLER_ID = Field("controllerId", Kind.INTEGER, "Id of the controller.")
VOTER_ID = Field("voterId", Kind.INTEGER, "Id of the voter.")
NODE_ID = Field("nodeId", Kind.INTEGER, "Id of the node.")
CLUSTER_ID = Field("clusterId", Kind.TEXT, "Id of the cluster.")
DIRECTORY_ID = Field("directoryId", Kind.TEXT, "Id of the log directory.")
INCARNATION_ID = Field("incarnationId", Kind.TEXT, "Id of the node's current run.")
RACK = Field("rack", Kind.TEXT, "Rack of the broker or member.")
ENDPOINTS = Field("endpoints", Kind.OBJECTS, "Listeners of the node.")
FEATURES = Field("features", Kind.OBJECTS, "Features that the node supports.")
LOG_DIRS = Field("logDirs", Kind.TEXTS, "Ids of the broker's log directories.")
CORDONED_LOG_DIRS = Field("cordonedLogDirs", Kind.TEXTS, "Ids of the log directories that accept no new replicas.")
IS_FENCED = Field("isFenced", Kind.BOOLEAN, "True if the broker is fenced.")
IS_IN_CONTROLLED_SHUTDOWN = Field("isInControlledShutdown", Kind.BOOLEAN, "True if the broker is shutting down.")
IS_CORDONED = Field("isCordoned", Kind.BOOLEAN, "True if the log directory accepts no new replicas.")
LEVEL = Field("level", Kind.INTEGER, "Finalized level of the feature.")

# --- timestamps and durations -----------------------------------------------------------------------------------------

TIMESTAMP = Field("timestamp", Kind.INTEGER, "Timestamp of the last metadata record, or of the change.", Unit.TIMESTAMP)
TIME = Field("time", Kind.TEXT, "Time of the last metadata record, or of the change.", Unit.ISO_TIME)
FIRST_TIMESTAMP, FIRST_TIME = _times("first", "the first record")
LAST_TIMESTAMP, LAST_TIME = _times("last", "the last record")
END_TIMESTAMP, END_TIME = _times("end", "the transaction's marker")
START_TIMESTAMP, START_TIME = _times("start", "the transaction's start")
TIMEOUT_TIMESTAMP, TIMEOUT_TIME = _times("timeout", "the timeout that ends the transaction")
LAST_UPDATE_TIMESTAMP, LAST_UPDATE_TIME = _times("lastUpdate", "the last update")
LARGEST_TIMESTAMP = Field("largestTimestamp", Kind.INTEGER, "Largest timestamp of the records.", Unit.TIMESTAMP)
BASE_TIMESTAMP = Field("baseTimestamp", Kind.INTEGER, "Base timestamp of the batch.", Unit.TIMESTAMP)
MAX_TIMESTAMP = Field("maxTimestamp", Kind.INTEGER, "Largest timestamp of the batch, or of the token.", Unit.TIMESTAMP)
NOW = Field("now", Kind.TEXT, 'Time used as "now" for ages, retention and cleaning.', Unit.ISO_TIME)
NOW_SOURCE = Field(
    "nowSource",
    Kind.TEXT,
    "Origin of `now`: `given`, `clock`, `disk` (latest time that a broker wrote), or `files` (modification times).",
)
MAX_TIME = Field("maxTime", Kind.TEXT, "Latest time of the token's expiration.", Unit.ISO_TIME)
STATE_TIMESTAMP, STATE_TIME = _times("state", "the group's change of state")
COMMIT_TIMESTAMP, COMMIT_TIME = _times("commit", "the commit")
EXPIRE_TIMESTAMP, EXPIRE_TIME = _times("expire", "the commit's expiration")
ISSUE_TIMESTAMP, ISSUE_TIME = _times("issue", "the token's issue")
EXPIRATION_TIMESTAMP, EXPIRATION_TIME = _times("expiration", "the expiration")
CLEANED_BY_TIMESTAMP = Field(
    "cleanedByTimestamp", Kind.INTEGER, "Latest possible timestamp of the last cleaning.", Unit.TIMESTAMP
)
EXPIRES = Field("expires", Kind.INTEGER, "Timestamp at which retention by time deletes the segment.", Unit.TIMESTAMP)
DELETED_AT = Field("deletedAt", Kind.INTEGER, "Offset of the record that removes the topic.", Unit.OFFSET)
DURATION_MS = Field("durationMs", Kind.INTEGER, "Duration of the transaction.", Unit.MS)
TIMEOUT_MS = Field("timeoutMs", Kind.INTEGER, "Timeout of the transaction.", Unit.MS)
BEHIND_MS = Field("behindMs", Kind.INTEGER, "Time between the last records of this copy and the used one.", Unit.MS)

# --- segments ---------------------------------------------------------------------------------------------------------

CODECS = Field("codecs", Kind.TEXTS, "Compression codecs of the batches.")
MAGICS = Field("magics", Kind.INTEGERS, "Formats of the batches.")
COMPRESSION_RATIO = Field(
    "compressionRatio", Kind.NUMBER, "Uncompressed size of the records divided by their stored size.", Unit.RATIO
)
PRODUCER_IDS = Field("producerIds", Kind.INTEGERS, "Producer ids of the batches.")
INDEX_HEALTH = Field("indexHealth", Kind.TEXT, "Problem with the indexes, or `ok`.")
ROLLED = Field("rolled", Kind.TEXT, "Reason for the segment's end, or `active`.")
RETENTION = Field("retention", Kind.TEXT, "Decision of retention.")
STANDING = Field("standing", Kind.TEXT, "State of the segment in the remote tier.")
STANDINGS = Field("standings", Kind.OBJECT, "Numbers of remote segments by state, other than those in use.")
KEY_ID = Field("keyId", Kind.TEXT, "Id of the key pair that the remote segment is encrypted with.")
KEY_IDS = Field("keyIds", Kind.TEXTS, "Ids of the key pairs that remote segments are encrypted with.")
SEGMENT_ID = Field("segmentId", Kind.TEXT, "Id of the remote segment.")
LAYOUT = Field("layout", Kind.TEXT, "Layout of the remote tier.")
LEFTOVERS = Field("leftovers", Kind.TEXTS, "Names of leftover files.")
ORPHANS = Field("orphans", Kind.TEXTS, "Names of index files without a log.")
SEGMENTS_TO_DELETE = Field("segmentsToDelete", Kind.INTEGER, "Number of segments that retention deletes.", Unit.COUNT)
BYTES_TO_DELETE = Field("bytesToDelete", Kind.INTEGER, "Size of the segments that retention deletes.", Unit.BYTES)
SELECTED_RECORDS = Field("selectedRecords", Kind.INTEGER, "Number of selected records.", Unit.COUNT)
SELECTED_BATCHES = Field("selectedBatches", Kind.INTEGER, "Number of batches with selected records.", Unit.COUNT)
SELECTED_BYTES = Field("selectedBytes", Kind.INTEGER, "Size of these batches.", Unit.BYTES)
SELECTED_FIRST_OFFSET = Field("selectedFirstOffset", Kind.INTEGER, "Offset of the first selected record.", Unit.OFFSET)
SELECTED_LAST_OFFSET = Field("selectedLastOffset", Kind.INTEGER, "Offset of the last selected record.", Unit.OFFSET)
SELECTED_FIRST_TIMESTAMP = Field(
    "selectedFirstTimestamp", Kind.INTEGER, "Timestamp of the first selected record.", Unit.TIMESTAMP
)
SELECTED_LARGEST_TIMESTAMP = Field(
    "selectedLargestTimestamp", Kind.INTEGER, "Largest timestamp of the selected records.", Unit.TIMESTAMP
)

# --- cleaning ---------------------------------------------------------------------------------------------------------

DIRTY_RATIO = Field("dirtyRatio", Kind.NUMBER, "Dirty ratio as the log cleaner computes it.", Unit.RATIO)
CLEANABLE = Field("cleanable", Kind.BOOLEAN, "True if the log cleaner would clean the partition.")
CLEANABLE_REASON = Field("cleanableReason", Kind.TEXT, "Reason for the cleaner's decision.")
CLEANABLE_PARTITIONS = Field("cleanablePartitions", Kind.INTEGER, "Number of partitions to clean.", Unit.COUNT)
FIRST_DIRTY_OFFSET = Field("firstDirtyOffset", Kind.INTEGER, "First dirty offset.", Unit.OFFSET)
FIRST_UNCLEANABLE_OFFSET = Field(
    "firstUncleanableOffset", Kind.INTEGER, "First offset that the log cleaner can't clean yet.", Unit.OFFSET
)
CLEAN_BYTES = Field("cleanBytes", Kind.INTEGER, "Size of the clean segments.", Unit.BYTES)
CLEANABLE_BYTES = Field("cleanableBytes", Kind.INTEGER, "Size of the cleanable segments.", Unit.BYTES)
CLEANER_STOP = Field("cleanerStop", Kind.TEXT, "Limit that the log cleaner stops at.")
CLEANER_STOP_OFFSET = Field("cleanerStopOffset", Kind.INTEGER, "Offset of the log cleaner's limit.", Unit.OFFSET)
KEYS_TO_CLEAN_AT_MOST = Field("keysToCleanAtMost", Kind.INTEGER, "Upper limit of the number of keys to clean.")
KEYS_AT_ONCE = Field("keysAtOnce", Kind.INTEGER, "Number of keys that the log cleaner takes at once.", Unit.COUNT)

# --- retention --------------------------------------------------------------------------------------------------------

SETTING = Field("setting", Kind.TEXT, "Setting to change.")
BEFORE_MS = Field("beforeMs", Kind.INTEGER, "Current value of the setting.", Unit.MS)
AFTER_MS = Field("afterMs", Kind.INTEGER, "Value of the setting after the change.", Unit.MS)

# --- groups -----------------------------------------------------------------------------------------------------------

GROUP = Field("group", Kind.TEXT, "Id of the group.")
COORDINATOR_PARTITION = Field("coordinatorPartition", Kind.INTEGER, "Partition of the internal topic with the row.")
GROUP_TYPE = Field("groupType", Kind.TEXT, "Type of the group.")
PROTOCOL_TYPE = Field("protocolType", Kind.TEXT, "Type of the group's protocol.")
PROTOCOL = Field("protocol", Kind.TEXT, "Assignment strategy that the members agreed on.")
ASSIGNOR = Field("assignor", Kind.TEXT, "Assignor of the group or member.")
ASSIGNMENT_EPOCH = Field("assignmentEpoch", Kind.INTEGER, "Epoch of the target assignment.")
LEADER_MEMBER_ID = Field("leaderMemberId", Kind.TEXT, "Member id of the group's leader.")
MEMBERS = Field("members", Kind.INTEGER, "Number of members.", Unit.COUNT)
COMMITS = Field("commits", Kind.INTEGER, "Number of commits.", Unit.COUNT)
PENDING_COMMITS = Field("pendingCommits", Kind.INTEGER, "Number of commits in open transactions.", Unit.COUNT)
LAG = Field("lag", Kind.INTEGER, "Number of offsets between the commit and the end of the log.", Unit.COUNT)
LAG_REASON = Field("lagReason", Kind.TEXT, "Reason for the lag, or for an unknown lag.")
BEYOND_LOG_END = Field("beyondLogEnd", Kind.INTEGER, "Number of commits beyond the end of their log.", Unit.COUNT)
UNKNOWN_LAGS = Field("unknownLags", Kind.INTEGER, "Number of commits without a known log end.", Unit.COUNT)
PENDING_PRODUCER_ID = Field("pendingProducerId", Kind.INTEGER, "Producer id of the commit's open transaction.")
METADATA = Field("metadata", Kind.TEXT, "Metadata that the consumer committed.")
DELIVERY_COMPLETE_COUNT = Field(
    "deliveryCompleteCount", Kind.INTEGER, "Number of delivered records after the start offset.", Unit.COUNT
)
MEMBER_ID = Field("memberId", Kind.TEXT, "Id of the member.")
GROUP_INSTANCE_ID = Field("groupInstanceId", Kind.TEXT, "Instance id of a static member.")
CLIENT_ID = Field("clientId", Kind.TEXT, "Client id of the member.")
CLIENT_HOST = Field("clientHost", Kind.TEXT, "Host of the member.")
SUBSCRIBED_TOPICS = Field("subscribedTopics", Kind.TEXTS, "Topics that the member subscribes to.")
SUBSCRIBED_REGEX = Field("subscribedRegex", Kind.TEXT, "Pattern of topics that the member subscribes to.")
_ASSIGNED = (
    TOPIC,
    TOPIC_ID,
    KIND,
    Field("subtopologyId", Kind.TEXT, "Id of the tasks' subtopology."),
    Field("partitions", Kind.INTEGERS, "Numbers of the partitions."),
)
"""Members of assignments."""
ASSIGNMENT = Field("assignment", Kind.OBJECTS, "Partitions or tasks of the member.", members=_ASSIGNED)
TARGET_ASSIGNMENT = Field(
    "targetAssignment", Kind.OBJECTS, "Partitions or tasks in the member's target assignment.", members=_ASSIGNED
)

# --- transactions -----------------------------------------------------------------------------------------------------

PRODUCER_ID = Field("producerId", Kind.INTEGER, "Producer id.")
PRODUCER_EPOCH = Field("producerEpoch", Kind.INTEGER, "Producer epoch.")
BASE_SEQUENCE = Field("baseSequence", Kind.INTEGER, "Sequence of the batch's first record.")
TRANSACTIONAL_ID = Field("transactionalId", Kind.TEXT, "Transactional id.")
TRANSACTION_PARTITIONS = Field("transactionPartitions", Kind.TEXTS, "Partitions in the transaction.")
PREVIOUS_PRODUCER_ID = Field("previousProducerId", Kind.INTEGER, "Producer id before the current one.")
NEXT_PRODUCER_ID = Field("nextProducerId", Kind.INTEGER, "Next producer id.")
CLIENT_TRANSACTION_VERSION = Field(
    "clientTransactionVersion", Kind.INTEGER, "Version of the transaction protocol that the client uses."
)
IS_HANGING = Field("isHanging", Kind.BOOLEAN, "True if no coordinator will end the transaction.")
IS_OPEN = Field("isOpen", Kind.BOOLEAN, "True if the transaction is open.")
IS_OVERDUE = Field("isOverdue", Kind.BOOLEAN, "True if the transaction is open beyond its timeout.")
BLOCKS_LAST_STABLE_OFFSET = Field(
    "blocksLastStableOffset", Kind.BOOLEAN, "True if the transaction holds back the last stable offset."
)
ABORT_COMMAND = Field("abortCommand", Kind.TEXT, "Command that aborts the transaction.")
EVIDENCE = Field("evidence", Kind.TEXT, "Files with evidence of the transaction, if the log is damaged.")

# --- moves ------------------------------------------------------------------------------------------------------------

FROM = Field("from", Kind.TEXT, "Log directory to move the partition from.")
TO = Field("to", Kind.TEXT, "Log directory to move the partition to.")

# --- copies -----------------------------------------------------------------------------------------------------------

VERDICT = Field("verdict", Kind.TEXT, "Result of the comparison.")
MISSING = Field("missing", Kind.INTEGER, "Number of records that this copy lacks.", Unit.COUNT)
FIRST_DIFFERENCE = Field("firstDifference", Kind.INTEGER, "First offset that differs.", Unit.OFFSET)
DIVERGENCE_OFFSET = Field("divergenceOffset", Kind.INTEGER, "First offset after the common lineage.", Unit.OFFSET)
TO_OFFSET = Field("toOffset", Kind.INTEGER, "Offset that the copy is truncated to.", Unit.OFFSET)
LOST_RECORDS = Field(
    "lostRecords", Kind.INTEGER, "Number of records removed by the truncation that the leader lacks.", Unit.COUNT
)

# --- metadata ---------------------------------------------------------------------------------------------------------

RESOURCE_TYPE = Field("resourceType", Kind.TEXT, "Type of the resource.")
RESOURCE = Field("resource", Kind.TEXT, "Name of the resource.")
PATTERN_TYPE = Field("patternType", Kind.TEXT, "Type of the pattern of resource names.")
PRINCIPAL = Field("principal", Kind.TEXT, "Principal of the ACL.")
HOST = Field("host", Kind.TEXT, "Host of the ACL.")
OPERATION = Field("operation", Kind.TEXT, "Operation of the ACL.")
PERMISSION = Field("permission", Kind.TEXT, "Permission of the ACL.")
ENTITY = Field("entity", Kind.OBJECTS, "Users, clients, or addresses that the quota is for.")
LIMIT = Field("limit", Kind.NUMBER, "Value of the quota.")
VALUE = Field("value", Kind.TEXT, "Value of the setting.")
SOURCE = Field("source", Kind.TEXT, "Source of the setting.")
MAY_DIFFER = Field("mayDiffer", Kind.BOOLEAN, "True if an unknown server.properties may set another value.")
USER = Field("user", Kind.TEXT, "Name of the user.")
MECHANISM = Field("mechanism", Kind.TEXT, "Mechanism of the credential.")
ITERATIONS = Field("iterations", Kind.INTEGER, "Number of the credential's iterations.")
TOKEN_ID = Field("tokenId", Kind.TEXT, "Id of the token.")
OWNER = Field("owner", Kind.TEXT, "Owner of the token.")
REQUESTER = Field("requester", Kind.TEXT, "Principal that requested the token.")
RENEWERS = Field("renewers", Kind.TEXTS, "Principals that may renew the token.")
CHECKPOINT = Field("checkpoint", Kind.TEXT, "Name of the metadata snapshot.")
MISSING_BEFORE = Field("missingBefore", Kind.INTEGER, "Offset before which records are missing.", Unit.OFFSET)
UNAPPLIED = Field("unapplied", Kind.INTEGER, "Number of records that kseg can't apply.", Unit.COUNT)
KRAFT_VERSION = Field("kraftVersion", Kind.INTEGER, "Version of KRaft.")
ACTION = Field("action", Kind.TEXT, "Kind of the change: created, changed, removed, fenced, ….")
DETAILS = Field("details", Kind.TEXT, "Values before and after the change, in words.")
OLD = Field("old", Kind.OBJECT, "Values before the change; null for a new entry.")
NEW = Field("new", Kind.OBJECT, "Values after the change; null for a removed entry.")
CHANGES = Field("changes", Kind.INTEGER, "Number of changes.", Unit.COUNT)
KNOWN_SINCE = Field("knownSince", Kind.TEXT, "Time before which changes are unknown.", Unit.ISO_TIME)
COMMITTED_END = Field("committedEnd", Kind.INTEGER, "Offset up to which most voters have the metadata.", Unit.OFFSET)
UNCOMMITTED = Field("uncommitted", Kind.INTEGER, "Number of changes that most voters lack.", Unit.COUNT)
IS_USED = Field("isUsed", Kind.BOOLEAN, "True if this copy is used.")
BEHIND_RECORDS = Field(
    "behindRecords", Kind.INTEGER, "Number of records that the used copy has and this one lacks.", Unit.COUNT
)
QUORUM = Field("quorum", Kind.TEXT, "Kind of quorum: static or dynamic.")
OLD_VOTERS = Field("oldVoters", Kind.INTEGERS, "Ids of the voters that are replaced.")

# --- queries ----------------------------------------------------------------------------------------------------------

TABLE = Field("table", Kind.TEXT, "Table that the query reads.")
COLUMNS = Field("columns", Kind.TEXTS, "Columns that the query reads.")
PARTITIONS_IN_ALL = Field("partitionsInAll", Kind.INTEGER, "Number of partitions, ignoring the condition.", Unit.COUNT)
OFFSETS = Field("offsets", Kind.TEXT, "Range of offsets that the query reads.")
BYTES_IN_ALL = Field("bytesInAll", Kind.INTEGER, "Size of the logs, ignoring the condition.", Unit.BYTES)
READS = Field("reads", Kind.TEXT, "Parts of batches that the query needs: headers, unchecked headers or records.")
CONDITION = Field("condition", Kind.TEXT, "Condition on the rows.")

# --- batches and findings ---------------------------------------------------------------------------------------------

COUNT = Field("count", Kind.INTEGER, "Number of the batch's records.", Unit.COUNT)
MAGIC = Field("magic", Kind.INTEGER, "Format of the batch.")
COMPRESSION = Field("compression", Kind.TEXT, "Compression codec of the batch.")
CRC = Field("crc", Kind.INTEGER, "Checksum of the batch.")
IS_VALID = Field("isValid", Kind.BOOLEAN, "True if the checksum is right, null if it wasn't checked.")
ATTRIBUTES = Field("attributes", Kind.INTEGER, "Attributes of the batch.")
TIMESTAMP_TYPE = Field("timestampType", Kind.INTEGER, "Code of the timestamp type.")
IS_TRANSACTIONAL = Field("isTransactional", Kind.BOOLEAN, "True if the batch belongs to a transaction.")
IS_CONTROL = Field("isControl", Kind.BOOLEAN, "True if the batch holds control records.")
ID = Field("id", Kind.TEXT, "Id of the kind of finding.")
SEVERITY = Field("severity", Kind.TEXT, "Severity of the finding.")
SENTENCE = Field("sentence", Kind.TEXT, "Description of the finding.")

# --- exports ----------------------------------------------------------------------------------------------------------

ORDERS = Field("orders", Kind.INTEGER, "Number of work orders.", Unit.COUNT)
FILE_COUNT = Field("fileCount", Kind.INTEGER, "Number of files to write.", Unit.COUNT)
FROM_OFFSET = Field("fromOffset", Kind.INTEGER, "First exported offset.", Unit.OFFSET)
RECORDS_IN = Field("recordsIn", Kind.INTEGER, "Number of records that were read.", Unit.COUNT)
RECORDS_OUT = Field("recordsOut", Kind.INTEGER, "Number of records that were written.", Unit.COUNT)
CONTROL_RECORDS = Field("controlRecords", Kind.INTEGER, "Number of control records.", Unit.COUNT)
ABORTED = Field("aborted", Kind.INTEGER, "Number of records of aborted transactions.", Unit.COUNT)
GAPS = Field("gaps", Kind.INTEGER, "Number of offsets without a record.", Unit.COUNT)
LOST = Field("lost", Kind.INTEGER, "Number of offsets that damage covers.", Unit.COUNT)
RECOVERED = Field("recovered", Kind.INTEGER, "Number of offsets that only another copy has intact.", Unit.COUNT)
PASSED_OVER = Field("passedOver", Kind.INTEGER, "Number of omitted records.", Unit.COUNT)
MISSED = Field("missed", Kind.INTEGER, "Number of offsets that left the log since the last run.", Unit.COUNT)
WITHHELD = Field("withheld", Kind.INTEGER, "Number of offsets from the start of an open transaction on.", Unit.COUNT)
UNASKED = Field("unasked", Kind.INTEGER, "Number of offsets outside the selected ranges.", Unit.COUNT)
UNSELECTED = Field("unselected", Kind.INTEGER, "Number of records that the selection excludes.", Unit.COUNT)

# --- requests ---------------------------------------------------------------------------------------------------------

API_KEY = Field("apiKey", Kind.INTEGER, "Key of the API.")
API = Field("api", Kind.TEXT, "Name of the API.")
API_VERSION = Field("apiVersion", Kind.INTEGER, "Version of the API.")
REQUESTS = Field("requests", Kind.INTEGER, "Number of requests.", Unit.COUNT)
RESPONSES = Field("responses", Kind.INTEGER, "Number of responses.", Unit.COUNT)
PROBLEM_COUNT = Field(
    "problemCount", Kind.INTEGER, "Number of requests and responses that can't be read completely.", Unit.COUNT
)

NAMES = tuple(each.name for each in tuple(globals().values()) if isinstance(each, Field))
"""Names of all fields."""
