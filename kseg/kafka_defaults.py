"""What Kafka's settings are unless a cluster has them otherwise."""

BOOTSTRAP_SERVER = "localhost:9092"
"""Where a broker listens on its own machine: `listeners`."""
SEGMENT_BYTES = 1 << 30
"""`log.segment.bytes` / `segment.bytes`."""
SEGMENT_MS = 604_800_000
"""`log.roll.ms`, `log.roll.hours` / `segment.ms`."""
SEGMENT_INDEX_BYTES = 10 << 20
"""`log.index.size.max.bytes` / `segment.index.bytes`."""
INDEX_INTERVAL_BYTES = 4096
"""`log.index.interval.bytes` / `index.interval.bytes`."""
RETENTION_MS = 604_800_000
"""`log.retention.ms`, `.minutes`, `.hours` / `retention.ms`."""
UNLIMITED = -1
"""No retention. Default of `log.retention.bytes` / `retention.bytes`."""
DELETE_RETENTION_MS = 86_400_000
"""`log.cleaner.delete.retention.ms` / `delete.retention.ms`."""
PRODUCER_EXPIRATION_MS = 86_400_000
"""`producer.id.expiration.ms`."""
DEDUPE_BUFFER_SIZE = 134_217_728
"""`log.cleaner.dedupe.buffer.size`, of all threads of the cleaner together."""
LOAD_FACTOR = 0.9
"""`log.cleaner.io.buffer.load.factor`: how full the cleaner's table of keys may become."""
MIN_CLEANABLE_DIRTY_RATIO = 0.5
"""`log.cleaner.min.cleanable.ratio` / `min.cleanable.dirty.ratio`."""
MAX_COMPACTION_LAG_MS = 2**63 - 1
"""`log.cleaner.max.compaction.lag.ms` / `max.compaction.lag.ms`."""
MAXIMUM_TRANSACTION_MS = 900_000
"""The longest that a transaction may be open: `transaction.max.timeout.ms`."""
INTERNAL_TOPICS = frozenset(
    {"__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata", "__remote_log_metadata"}
)
"""Topics that brokers create themselves, and that clients don't subscribe to by a pattern."""
