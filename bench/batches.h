/* The reader of both peers in C: a log of magic 2 is read piece by piece, and each batch's header and CRC-32C are checked. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "../kseg/kernel/crc.h"

#define CHUNK_SIZE (256 << 10) /* small enough to stay in the processor's cache */
#define BUFFER_SIZE (8 << 20)  /* more than the largest batch of any data set */
#define LENGTH_POSITION 8     /* of a batch: the field with the number of bytes after it … */
#define LENGTH_END 12
#define MAGIC_POSITION 16
#define CRC_POSITION 17
#define CRC_END 21     /* … where the bytes begin that the CRC covers … */
#define HEADER_SIZE 61 /* … and the records */

static uint8_t buffer[BUFFER_SIZE];

static uint64_t big_endian(const uint8_t *at, int size)
{
    uint64_t value = 0;
    for (int i = 0; i < size; i++)
        value = value << 8 | at[i];
    return value;
}

/* Takes an intact batch at a position of the file; returns 0 to stop the reader. */
static int take_batch(const uint8_t *at, size_t size, uint64_t position);

/* Reads a log to its end; returns 1 at the first batch that isn't intact, or that isn't taken. */
static int read_batches(const char *path)
{
    int file = open(path, O_RDONLY);
    size_t filled = 0;
    uint64_t position = 0;
    ssize_t added;
    crc_prepare();
    while (file >= 0 && (added = read(file, buffer + filled, CHUNK_SIZE)) > 0) {
        size_t at = 0;
        filled += (size_t)added;
        while (filled - at >= HEADER_SIZE) {
            size_t size = LENGTH_END + (size_t)big_endian(buffer + at + LENGTH_POSITION, 4);
            if (buffer[at + MAGIC_POSITION] != 2 || size < HEADER_SIZE || size > BUFFER_SIZE - CHUNK_SIZE)
                return 1;
            if (size > filled - at)
                break;
            if (crc32c_of(buffer + at + CRC_END, size - CRC_END) != big_endian(buffer + at + CRC_POSITION, 4))
                return 1;
            if (!take_batch(buffer + at, size, position + at))
                return 1;
            at += size;
        }
        position += at;
        filled -= at;
        memmove(buffer, buffer + at, filled);
    }
    return file < 0 || filled > 0;
}
