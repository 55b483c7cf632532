# Limits, and the compiled kernel's own numbers.

cdef enum:
    LONGEST_NUMBER = 48  # more bytes than an integer or an ISO time needs
    NOTHING = 100  # operations of the kernel's own: only a literal,
    END_OF_LINE = 101  # and the end of a template
    PIECE = 16384  # bytes of a text that are decoded between two looks at the room left
    MANY_HEADERS = 1000
    NO_PROBLEM = -1
    SHORT = 32  # literals up to this size are copied in one piece of this size; excess bytes are overwritten
    WIDEST = 6  # most bytes that one byte of text can become: \u0000 in JSON
    NOT_CONTINUED = 0  # open transactions of producers: no batch was passed since the last call,
    CONTINUED = 1  # one was,
    CONTINUED_BY_BROKER = 2  # and it has the broker's time
    LARGEST_SEQUENCE = 2147483647  # 0 follows
    LARGEST_INT32 = 2147483647
    MOST_WAITING = 32  # most keys that are looked up together
    WORTH_FILLING = 16  # records of a batch from which a template of its own pays
    WORTH_KEEPING = 1 << 14  # rows of a table whose memory is kept for the next one
    MANY_ROWS = 1 << 18  # number of rows from which a table doubles; before, it grows fourfold

cdef int64_t MOST_INT64 = 9223372036854775807LL
