/* The search for headers of v2 batches at any byte, and CRC-32C of ranges whose parts' CRCs are known, for the compiled
 * kernel. */
#ifndef KSEG_CARVE_H
#define KSEG_CARVE_H

#include <stdint.h>
#include "crc.h"

#define MOVE_BITS 9
#define MOVES (1 << MOVE_BITS)

static uint32_t crc32c_moves[3][MOVES]; /* what moves a CRC past n bytes, past n * MOVES bytes, past n * MOVES^2 bytes */

/* The product of two polynomials modulo CRC-32C's, in reflected bits. */
static uint32_t crc32c_times(uint32_t a, uint32_t b)
{
    uint32_t product = 0;
    for (uint32_t bit = 0x80000000u; bit; bit >>= 1) {
        product ^= a & bit ? b : 0;
        b = (b >> 1) ^ (b & 1 ? 0x82f63b78u : 0);
    }
    return product;
}

static void carve_prepare(void)
{
    uint32_t step = 0x00800000u; /* x to the 8th */
    for (int level = 0; level < 3; level++) {
        crc32c_moves[level][0] = 0x80000000u;
        for (int i = 1; i < MOVES; i++)
            crc32c_moves[level][i] = crc32c_times(crc32c_moves[level][i - 1], step);
        step = crc32c_times(crc32c_moves[level][MOVES - 1], step);
    }
}

/* The CRC after `size` zero bytes: less than MOVES^3 of them. */
static uint32_t crc32c_moved(uint32_t crc, uint64_t size)
{
    for (int level = 0; level < 3 && size; level++, size >>= MOVE_BITS)
        if (size & (MOVES - 1))
            crc = crc32c_times(crc32c_moves[level][size & (MOVES - 1)], crc);
    return crc;
}

/* Bits that are 0 in each batch of format 2 below 64 MiB whose offset is below 2^56. */
#define MARK_AT(p) ((p)[0] | ((p)[8] & 0xfc) | ((p)[16] ^ 2) | (p)[21] | ((p)[22] & 0x80))

/* The first position from `at` on, before `end`, where they are 0; `end` if there is none. The bytes of a header exist at
 * each of these positions. Compilers make wide instructions of the inner loop. */
#if defined(__GNUC__) && !defined(__clang__)
__attribute__((optimize("O3")))
#endif
static int64_t marked_position(const uint8_t *base, int64_t at, int64_t end)
{
    for (; end - at >= 64; at += 64) {
        const uint8_t *p = base + at;
        uint8_t is_marked = 0;
        for (int i = 0; i < 64; i++)
            is_marked |= MARK_AT(p + i) == 0;
        if (is_marked)
            break;
    }
    while (at < end && MARK_AT(base + at))
        at++;
    return at;
}

#endif
