/* What every reader of a log of magic 2 does at least: FILE is read, each batch's header is checked, and its CRC-32C.
 * Prints how many batches there are; ends with 1 at the first that isn't intact. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "../kseg/kernel/crc.h"

#define CHUNK_SIZE (256 << 10) /* small enough to stay in the processor's cache */
#define BUFFER_SIZE (8 << 20)  /* more than the largest batch of any data set */
#define LENGTH_POSITION 8     /* of a batch: the field that says how many bytes follow it … */
#define LENGTH_END 12
#define MAGIC_POSITION 16
#define CRC_POSITION 17
#define CRC_END 21     /* … where the bytes begin that the CRC is about … */
#define HEADER_SIZE 61 /* … and the records */

static uint8_t buffer[BUFFER_SIZE];

static uint32_t big_endian(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

int main(int count, char **arguments)
{
    int file = count == 2 ? open(arguments[1], O_RDONLY) : -1;
    size_t filled = 0, batches = 0;
    ssize_t added;
    crc_prepare();
    while (file >= 0 && (added = read(file, buffer + filled, CHUNK_SIZE)) > 0) {
        size_t at = 0;
        filled += (size_t)added;
        while (filled - at >= HEADER_SIZE) {
            size_t size = LENGTH_END + (size_t)big_endian(buffer + at + LENGTH_POSITION);
            if (buffer[at + MAGIC_POSITION] != 2 || size < HEADER_SIZE || size > BUFFER_SIZE - CHUNK_SIZE)
                return 1;
            if (size > filled - at)
                break;
            if (crc32c_of(buffer + at + CRC_END, size - CRC_END) != big_endian(buffer + at + CRC_POSITION))
                return 1;
            at += size;
            batches++;
        }
        filled -= at;
        memmove(buffer, buffer + at, filled);
    }
    printf("%zu\n", batches);
    return file < 0 || filled > 0;
}
