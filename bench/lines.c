/* The lines of `kseg dump --like 4.3 --print-data-log`, for a log of magic 2 without compression and control records. Ends
 * with 1 at the first batch that is damaged or of another kind. Texts are copied unchanged, since the data sets have only
 * UTF-8; Kafka's tool and kseg must replace other bytes. */
#include "batches.h"

#define OUTPUT_SIZE (256 << 10)
#define LONGEST_REST 1024 /* of a line: more bytes than its words and numbers, and the commas of its headers */

typedef struct {
    const uint8_t *at, *end;
} cursor;

typedef struct {
    const uint8_t *at;
    int64_t size; /* -1: null */
} bytes;

static uint8_t output[OUTPUT_SIZE + BUFFER_SIZE + LONGEST_REST];
static size_t used;
static char two_digits[200];
static uint64_t log_start;
static const char *log_path;

static void flush(void)
{
    for (size_t done = 0; done < used;) {
        ssize_t written = write(STDOUT_FILENO, output + done, used - done);
        if (written < 0)
            _exit(1);
        done += (size_t)written;
    }
    used = 0;
}

static inline void put(const void *text, size_t size)
{
    memcpy(output + used, text, size);
    used += size;
}

#define PUT(text) put(text, sizeof(text) - 1)

static inline void put_number(int64_t number)
{
    char digits[20], *at = digits + sizeof(digits);
    uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;
    for (; rest >= 100; rest /= 100)
        memcpy(at -= 2, two_digits + 2 * (rest % 100), 2);
    if (rest >= 10)
        memcpy(at -= 2, two_digits + 2 * rest, 2);
    else
        *--at = (char)('0' + rest);
    if (number < 0)
        *--at = '-';
    put(at, (size_t)(digits + sizeof(digits) - at));
}

/* Reads a zig-zag number. A missing one is -2, which is no size. */
static inline int64_t number_of(cursor *records)
{
    uint64_t value = 0;
    for (int shift = 0; records->at < records->end && shift < 64; shift += 7) {
        uint8_t byte = *records->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
    }
    return -2;
}

/* Reads bytes after their size; returns 0 if they aren't there. */
static inline int take_bytes(cursor *records, bytes *taken)
{
    taken->size = number_of(records);
    if (taken->size < -1 || taken->size > records->end - records->at)
        return 0;
    taken->at = records->at;
    if (taken->size > 0)
        records->at += taken->size;
    return 1;
}

static int put_header_keys(cursor *records)
{
    bytes key, value;
    int64_t count = number_of(records);
    for (int64_t i = 0; i < count; i++) {
        if (!take_bytes(records, &key) || key.size < 0 || !take_bytes(records, &value))
            return 0;
        if (i)
            PUT(",");
        put(key.at, (size_t)key.size);
    }
    return count >= 0;
}

static inline void put_time(int is_append_time, int64_t timestamp)
{
    if (is_append_time)
        PUT(" LogAppendTime: ");
    else
        PUT(" CreateTime: ");
    put_number(timestamp);
}

static int put_record(cursor *records, int64_t base_offset, int64_t base_time, int64_t append_time, int64_t base_sequence)
{
    bytes key, value;
    int64_t size = number_of(records), timestamp, delta;
    cursor record = {records->at, records->at + size};
    if (size < 1 || size > records->end - records->at)
        return 0;
    records->at = record.end;
    record.at++; /* attributes */
    timestamp = base_time + number_of(&record);
    delta = number_of(&record);
    if (!take_bytes(&record, &key) || !take_bytes(&record, &value))
        return 0;
    PUT("| offset: ");
    put_number(base_offset + delta);
    put_time(append_time >= 0, append_time >= 0 ? append_time : timestamp);
    PUT(" keySize: ");
    put_number(key.size);
    PUT(" valueSize: ");
    put_number(value.size);
    PUT(" sequence: ");
    put_number(base_sequence < 0 ? -1 : (base_sequence + delta) & 0x7fffffff);
    PUT(" headerKeys: [");
    if (!put_header_keys(&record) || record.at != record.end)
        return 0;
    PUT("]");
    if (key.size >= 0) {
        PUT(" key: ");
        put(key.at, (size_t)key.size);
    }
    if (value.size >= 0) {
        PUT(" payload: ");
        put(value.at, (size_t)value.size);
    }
    PUT("\n");
    if (used > OUTPUT_SIZE)
        flush();
    return 1;
}

static void put_flag(int flag)
{
    if (flag)
        PUT("true");
    else
        PUT("false");
}

static int take_batch(const uint8_t *at, size_t size, uint64_t position)
{
    int64_t base_offset = (int64_t)big_endian(at, 8), last_delta = (int32_t)big_endian(at + 23, 4);
    int64_t base_time = (int64_t)big_endian(at + 27, 8), last_time = (int64_t)big_endian(at + 35, 8);
    int64_t base_sequence = (int32_t)big_endian(at + 53, 4), count = (int32_t)big_endian(at + 57, 4);
    int is_append_time = at[22] >> 3 & 1;
    cursor records = {at + HEADER_SIZE, at + size};
    if (at[22] & 0x27) /* a codec, or control records */
        return 0;
    if (position == 0) {
        PUT("Dumping ");
        put(log_path, strlen(log_path));
        PUT("\nLog starting offset: ");
        put_number((int64_t)log_start);
        PUT("\n");
    }
    PUT("baseOffset: ");
    put_number(base_offset);
    PUT(" lastOffset: ");
    put_number(base_offset + last_delta);
    PUT(" count: ");
    put_number(count);
    PUT(" baseSequence: ");
    put_number(base_sequence);
    PUT(" lastSequence: ");
    put_number(base_sequence < 0 ? -1 : (base_sequence + last_delta) & 0x7fffffff);
    PUT(" producerId: ");
    put_number((int64_t)big_endian(at + 43, 8));
    PUT(" producerEpoch: ");
    put_number((int16_t)big_endian(at + 51, 2));
    PUT(" partitionLeaderEpoch: ");
    put_number((int32_t)big_endian(at + 12, 4));
    PUT(" isTransactional: ");
    put_flag(at[22] >> 4 & 1);
    PUT(" isControl: false deleteHorizonMs: OptionalLong");
    if (at[22] >> 6 & 1) {
        PUT("[");
        put_number(base_time);
        PUT("]");
    } else {
        PUT(".empty");
    }
    PUT(" position: ");
    put_number((int64_t)position);
    put_time(is_append_time, last_time);
    PUT(" size: ");
    put_number((int64_t)size);
    PUT(" magic: 2 compresscodec: none crc: ");
    put_number((int64_t)big_endian(at + CRC_POSITION, 4));
    PUT(" isvalid: true\n");
    while (count-- > 0)
        if (!put_record(&records, base_offset, base_time, is_append_time ? last_time : -1, base_sequence))
            return 0;
    return records.at == records.end;
}

int main(int count, char **arguments)
{
    const char *name;
    int is_damaged;
    for (int i = 0; i < 100; i++) {
        two_digits[2 * i] = (char)('0' + i / 10);
        two_digits[2 * i + 1] = (char)('0' + i % 10);
    }
    if (count != 2)
        return 1;
    log_path = arguments[1];
    name = strrchr(log_path, '/');
    for (name = name ? name + 1 : log_path; *name >= '0' && *name <= '9'; name++)
        log_start = 10 * log_start + (uint64_t)(*name - '0');
    is_damaged = read_batches(log_path);
    flush();
    return is_damaged;
}
