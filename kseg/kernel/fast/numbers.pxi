# The numbers that the parts share: those of kseg.kernel.contract, places in a batch, limits.

# The numbers of kseg.kernel.contract; a test holds them equal.
cpdef enum Stop:
    END, BAD_LENGTH, BAD_MAGIC, BAD_CRC, FULL

cpdef enum Problem:
    BAD_RECORD, BAD_COUNT, BAD_CONTROL, BAD_MESSAGE

cdef enum:
    BASE_OFFSET, LAST_OFFSET, COUNT, BASE_SEQUENCE, LAST_SEQUENCE, PRODUCER_ID, PRODUCER_EPOCH, PARTITION_LEADER_EPOCH
    IS_TRANSACTIONAL, IS_CONTROL, HAS_DELETE_HORIZON, BASE_TIMESTAMP, MAX_TIMESTAMP, TIMESTAMP_TYPE, POSITION, SIZE
    MAGIC, CODEC, CRC, IS_VALID, ATTRIBUTES
    OFFSET, TIMESTAMP, SEQUENCE, KEY_SIZE, VALUE_SIZE, HEADER_COUNT, RECORD_CRC, RECORD_IS_VALID, RECORD_CODEC
    RECORD_MAGIC, CONTROL_TYPE, CONTROL_VERSION, COORDINATOR_EPOCH, TIMESTAMP_DELTA, RECORD_ATTRIBUTES

cpdef enum Op:
    LITERAL, INTEGER, WORD, TEXT, HEADER_KEYS, SKIP_IF_NULL, SKIP_IF_ZERO, JSON_TEXT, JSON_HEADERS, JSON_TIME
    SKIP_UNLESS_NULL, SKIP_UNLESS_ZERO, SKIP_IF_NEGATIVE, CSV_TEXT, CSV_HEADERS, TIME, CSV_SAFE_TEXT, JSON_VALUE

cdef enum:
    SLOTS = 36
    TEXTS = 7
    FIRST_DECODED_TEXT = 3
    ROW = 3
    LOG_OVERHEAD = 12
    MAGIC_AT = 16
    BATCH_HEADER = 61
    V0_ENTRY = 12 + 14
    V1_ENTRY = 12 + 22
    UNKNOWN_CONTROL = 7
    MALFORMED_CONTROL = 8
    CONTROL_TEMPLATES = 9
    LONGEST_NUMBER = 48  # more bytes than an integer or an ISO time needs
    NOTHING = 100  # operations of the kernel's own: only a literal,
    END_OF_LINE = 101  # and the end of a template
    PIECE = 16384  # bytes of a text that are decoded between two looks at the room left
    MANY_HEADERS = 1000
    SHORT = 32  # literals up to this size are copied by one copy of this size; what it writes too much is written over
    WIDEST = 6  # bytes that one byte of text can become: \u0000 in JSON
