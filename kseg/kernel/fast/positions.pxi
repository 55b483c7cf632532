# Where fields stand, and how they are read. Made from formats/header_fields.py by every build.
# unsafe: callers have a structure's bytes from `at` on, up to the field's end at least.

cdef enum:
    LOG_OVERHEAD = 12
    MAGIC_AT = 16
    LOG_ENTRY_HEADER_V0_SIZE = 22
    ENTRY_V0_OFFSET_AT = 0
    ENTRY_V0_MESSAGE_SIZE_AT = 8
    ENTRY_V0_CRC_AT = 12
    ENTRY_V0_MAGIC_AT = 16
    ENTRY_V0_ATTRIBUTES_AT = 17
    ENTRY_V0_KEY_LENGTH_AT = 18
    LOG_ENTRY_HEADER_V1_SIZE = 30
    ENTRY_V1_OFFSET_AT = 0
    ENTRY_V1_MESSAGE_SIZE_AT = 8
    ENTRY_V1_CRC_AT = 12
    ENTRY_V1_MAGIC_AT = 16
    ENTRY_V1_ATTRIBUTES_AT = 17
    ENTRY_V1_TIMESTAMP_AT = 18
    ENTRY_V1_KEY_LENGTH_AT = 26
    BATCH_HEADER_SIZE = 61
    BATCH_BASE_OFFSET_AT = 0
    BATCH_LENGTH_AT = 8
    BATCH_PARTITION_LEADER_EPOCH_AT = 12
    BATCH_MAGIC_AT = 16
    BATCH_CRC_AT = 17
    BATCH_ATTRIBUTES_AT = 21
    BATCH_LAST_OFFSET_DELTA_AT = 23
    BATCH_BASE_TIMESTAMP_AT = 27
    BATCH_MAX_TIMESTAMP_AT = 35
    BATCH_PRODUCER_ID_AT = 43
    BATCH_PRODUCER_EPOCH_AT = 51
    BATCH_BASE_SEQUENCE_AT = 53
    BATCH_RECORDS_COUNT_AT = 57
    CONTROL_RECORD_KEY_SIZE = 4
    CONTROL_KEY_VERSION_AT = 0
    CONTROL_KEY_TYPE_AT = 2
    END_TXN_MARKER_SIZE = 6
    MARKER_VERSION_AT = 0
    MARKER_COORDINATOR_EPOCH_AT = 2
    OFFSET_INDEX_ENTRY_SIZE = 8
    OFFSET_ENTRY_RELATIVE_OFFSET_AT = 0
    OFFSET_ENTRY_POSITION_AT = 4
    TIME_INDEX_ENTRY_SIZE = 12
    TIME_ENTRY_TIMESTAMP_AT = 0
    TIME_ENTRY_RELATIVE_OFFSET_AT = 8
    BATCH_FLAGS_AT = 22
    KNOWN_ATTRIBUTES_V0 = 7
    KNOWN_ATTRIBUTES_V1 = 15
    KNOWN_ATTRIBUTES_V2 = 127
    CODEC_MASK = 7
    CODEC_SHIFT = 0
    TIMESTAMP_TYPE_MASK = 8
    TIMESTAMP_TYPE_SHIFT = 3
    TRANSACTIONAL_MASK = 16
    TRANSACTIONAL_SHIFT = 4
    CONTROL_MASK = 32
    CONTROL_SHIFT = 5
    DELETE_HORIZON_MASK = 64
    DELETE_HORIZON_SHIFT = 6
    LEAST_SIZE_V0 = 26
    LEAST_SIZE_V1 = 34
    LEAST_SIZE_V2 = 61
    COLUMN_POSITION = 0
    COLUMN_BASE_OFFSET = 1
    COLUMN_SIZE = 2
    COLUMN_PARTITION_LEADER_EPOCH = 3
    COLUMN_MAGIC = 4
    COLUMN_CRC = 5
    COLUMN_ATTRIBUTES = 6
    COLUMN_LAST_OFFSET = 7
    COLUMN_BASE_TIMESTAMP = 8
    COLUMN_MAX_TIMESTAMP = 9
    COLUMN_PRODUCER_ID = 10
    COLUMN_PRODUCER_EPOCH = 11
    COLUMN_BASE_SEQUENCE = 12
    COLUMN_RECORDS_COUNT = 13
    COLUMN_IS_VALID = 14
    HEADER_VALUES = 15

cdef inline int64_t entry_v0_offset(const uint8_t* at) noexcept nogil: return <int64_t>big_endian(at + ENTRY_V0_OFFSET_AT, 8)
cdef inline int32_t entry_v0_message_size(const uint8_t* at) noexcept nogil: return <int32_t>big_endian(at + ENTRY_V0_MESSAGE_SIZE_AT, 4)
cdef inline uint32_t entry_v0_crc(const uint8_t* at) noexcept nogil: return <uint32_t>big_endian(at + ENTRY_V0_CRC_AT, 4)
cdef inline int8_t entry_v0_magic(const uint8_t* at) noexcept nogil: return <int8_t>big_endian(at + ENTRY_V0_MAGIC_AT, 1)
cdef inline int8_t entry_v0_attributes(const uint8_t* at) noexcept nogil: return <int8_t>big_endian(at + ENTRY_V0_ATTRIBUTES_AT, 1)
cdef inline int32_t entry_v0_key_length(const uint8_t* at) noexcept nogil: return <int32_t>big_endian(at + ENTRY_V0_KEY_LENGTH_AT, 4)
cdef inline int64_t entry_v1_offset(const uint8_t* at) noexcept nogil: return <int64_t>big_endian(at + ENTRY_V1_OFFSET_AT, 8)
cdef inline int32_t entry_v1_message_size(const uint8_t* at) noexcept nogil: return <int32_t>big_endian(at + ENTRY_V1_MESSAGE_SIZE_AT, 4)
cdef inline uint32_t entry_v1_crc(const uint8_t* at) noexcept nogil: return <uint32_t>big_endian(at + ENTRY_V1_CRC_AT, 4)
cdef inline int8_t entry_v1_magic(const uint8_t* at) noexcept nogil: return <int8_t>big_endian(at + ENTRY_V1_MAGIC_AT, 1)
cdef inline int8_t entry_v1_attributes(const uint8_t* at) noexcept nogil: return <int8_t>big_endian(at + ENTRY_V1_ATTRIBUTES_AT, 1)
cdef inline int64_t entry_v1_timestamp(const uint8_t* at) noexcept nogil: return <int64_t>big_endian(at + ENTRY_V1_TIMESTAMP_AT, 8)
cdef inline int32_t entry_v1_key_length(const uint8_t* at) noexcept nogil: return <int32_t>big_endian(at + ENTRY_V1_KEY_LENGTH_AT, 4)
cdef inline int64_t batch_base_offset(const uint8_t* at) noexcept nogil: return <int64_t>big_endian(at + BATCH_BASE_OFFSET_AT, 8)
cdef inline int32_t batch_length(const uint8_t* at) noexcept nogil: return <int32_t>big_endian(at + BATCH_LENGTH_AT, 4)
cdef inline int32_t batch_partition_leader_epoch(const uint8_t* at) noexcept nogil: return <int32_t>big_endian(at + BATCH_PARTITION_LEADER_EPOCH_AT, 4)
cdef inline int8_t batch_magic(const uint8_t* at) noexcept nogil: return <int8_t>big_endian(at + BATCH_MAGIC_AT, 1)
cdef inline uint32_t batch_crc(const uint8_t* at) noexcept nogil: return <uint32_t>big_endian(at + BATCH_CRC_AT, 4)
cdef inline int16_t batch_attributes(const uint8_t* at) noexcept nogil: return <int16_t>big_endian(at + BATCH_ATTRIBUTES_AT, 2)
cdef inline int32_t batch_last_offset_delta(const uint8_t* at) noexcept nogil: return <int32_t>big_endian(at + BATCH_LAST_OFFSET_DELTA_AT, 4)
cdef inline int64_t batch_base_timestamp(const uint8_t* at) noexcept nogil: return <int64_t>big_endian(at + BATCH_BASE_TIMESTAMP_AT, 8)
cdef inline int64_t batch_max_timestamp(const uint8_t* at) noexcept nogil: return <int64_t>big_endian(at + BATCH_MAX_TIMESTAMP_AT, 8)
cdef inline int64_t batch_producer_id(const uint8_t* at) noexcept nogil: return <int64_t>big_endian(at + BATCH_PRODUCER_ID_AT, 8)
cdef inline int16_t batch_producer_epoch(const uint8_t* at) noexcept nogil: return <int16_t>big_endian(at + BATCH_PRODUCER_EPOCH_AT, 2)
cdef inline int32_t batch_base_sequence(const uint8_t* at) noexcept nogil: return <int32_t>big_endian(at + BATCH_BASE_SEQUENCE_AT, 4)
cdef inline int32_t batch_records_count(const uint8_t* at) noexcept nogil: return <int32_t>big_endian(at + BATCH_RECORDS_COUNT_AT, 4)
cdef inline int16_t control_key_version(const uint8_t* at) noexcept nogil: return <int16_t>big_endian(at + CONTROL_KEY_VERSION_AT, 2)
cdef inline int16_t control_key_type(const uint8_t* at) noexcept nogil: return <int16_t>big_endian(at + CONTROL_KEY_TYPE_AT, 2)
cdef inline int16_t marker_version(const uint8_t* at) noexcept nogil: return <int16_t>big_endian(at + MARKER_VERSION_AT, 2)
cdef inline int32_t marker_coordinator_epoch(const uint8_t* at) noexcept nogil: return <int32_t>big_endian(at + MARKER_COORDINATOR_EPOCH_AT, 4)
cdef inline int32_t offset_entry_relative_offset(const uint8_t* at) noexcept nogil: return <int32_t>big_endian(at + OFFSET_ENTRY_RELATIVE_OFFSET_AT, 4)
cdef inline int32_t offset_entry_position(const uint8_t* at) noexcept nogil: return <int32_t>big_endian(at + OFFSET_ENTRY_POSITION_AT, 4)
cdef inline int64_t time_entry_timestamp(const uint8_t* at) noexcept nogil: return <int64_t>big_endian(at + TIME_ENTRY_TIMESTAMP_AT, 8)
cdef inline int32_t time_entry_relative_offset(const uint8_t* at) noexcept nogil: return <int32_t>big_endian(at + TIME_ENTRY_RELATIVE_OFFSET_AT, 4)


cdef inline void put_batch_header(const uint8_t* at, int64_t* to, Py_ssize_t step) noexcept nogil:
    """The fields that are values of a header as they are, into their columns."""
    to[COLUMN_BASE_OFFSET * step] = batch_base_offset(at)
    to[COLUMN_PARTITION_LEADER_EPOCH * step] = batch_partition_leader_epoch(at)
    to[COLUMN_MAGIC * step] = batch_magic(at)
    to[COLUMN_CRC * step] = batch_crc(at)
    to[COLUMN_ATTRIBUTES * step] = batch_attributes(at)
    to[COLUMN_BASE_TIMESTAMP * step] = batch_base_timestamp(at)
    to[COLUMN_MAX_TIMESTAMP * step] = batch_max_timestamp(at)
    to[COLUMN_PRODUCER_ID * step] = batch_producer_id(at)
    to[COLUMN_PRODUCER_EPOCH * step] = batch_producer_epoch(at)
    to[COLUMN_BASE_SEQUENCE * step] = batch_base_sequence(at)
    to[COLUMN_RECORDS_COUNT * step] = batch_records_count(at)
