# Limits, and numbers of the compiled kernel's own.

cdef enum:
    LONGEST_NUMBER = 48  # more bytes than an integer or an ISO time needs
    NOTHING = 100  # operations of the kernel's own: only a literal,
    END_OF_LINE = 101  # and the end of a template
    PIECE = 16384  # bytes of a text that are decoded between two looks at the room left
    MANY_HEADERS = 1000
    MEMO_SLOTS = 8  # numbers that are remembered together at most, …
    MEMO_SIZE = 512  # … and bytes of their text
    NO_PROBLEM = -1
    SAME = 102  # passes over numbers that are the last line's: their text is copied,
    KEEP = 103  # and what keeps it otherwise
    SHORT = 32  # literals up to this size are copied by one copy of this size; what it writes too much is written over
    WIDEST = 6  # bytes that one byte of text can become: \u0000 in JSON
    NOT_CONTINUED = 0  # open transactions of producers: no batch was passed since somebody asked,
    CONTINUED = 1  # one was,
    CONTINUED_BY_BROKER = 2  # and has the broker's time
    LARGEST_SEQUENCE = 2147483647  # 0 follows
    LARGEST_INT32 = 2147483647
    MOST_WAITING = 32  # keys that are looked up together
    WORTH_KEEPING = 1 << 14  # rows of a table whose memory is kept for the next one
    MANY_ROWS = 1 << 18  # from so many on a table doubles; before, it becomes four times as large

cdef int64_t MOST_INT64 = 9223372036854775807LL
