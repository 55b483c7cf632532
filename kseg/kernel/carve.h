/* The search for headers of batches and for other marks at any byte, and CRC-32C of ranges whose parts' CRCs are known,
 * for the compiled kernel. */
#ifndef KSEG_CARVE_H
#define KSEG_CARVE_H

#include <stdint.h>
#include "crc.h"

#if defined(__GNUC__) && !defined(__clang__)
#define WIDE __attribute__((optimize("O3")))
#else
#define WIDE
#endif

#define MOVE_BITS 9
#define MOVES (1 << MOVE_BITS)
#define MOVE_LEVELS 4
#define CRC32C_ORDER 2147483647u /* x to this power is 1 */

static uint32_t crc32c_moves[MOVE_LEVELS][MOVES]; /* factors that move a CRC past n, n * MOVES, n * MOVES^2, … bytes */

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

/* A polynomial as `crc32c_scaled` takes it: the instructions multiply by x to the 33rd, so that this divides by it. */
static uint32_t crc32c_factor(uint32_t b)
{
#ifdef STRETCH
    for (int i = 0; crc32c_in_hardware && i < 33; i++)
        b = b & 0x80000000u ? (b ^ 0x82f63b78u) << 1 | 1 : b << 1;
#endif
    return b;
}

/* The product of a CRC and a factor. */
#ifdef STRETCH
__attribute__((target("sse4.2,pclmul")))
static uint32_t crc32c_scaled_by_instruction(uint32_t crc, uint32_t factor)
{
    return (uint32_t)_mm_crc32_u64(0, crc32c_product(crc, factor));
}

static inline uint32_t crc32c_scaled(uint32_t crc, uint32_t factor)
{
    return crc32c_in_hardware ? crc32c_scaled_by_instruction(crc, factor) : crc32c_times(factor, crc);
}
#else
static uint32_t crc32c_scaled(uint32_t crc, uint32_t factor) { return crc32c_times(factor, crc); }
#endif

#ifdef STRETCH
static int has_32_bytes; /* in a register: AVX2 */
#endif

/* CRCs that are searched for: a bit for the slot of each. */
enum { CRC_SLOTS = 1 << 16, SLOT_WORDS = CRC_SLOTS / 64 };

static inline int64_t crc_slot(uint32_t crc) { return crc >> 16; }

/* Finds those of some blocks which begin `blocks` adjacent ones whose CRC has its slot's bit: their numbers, and these
 * CRCs. before: the CRC of all blocks before each. */
#define DEFINE_FIND_ADJACENT(name, attributes, scaled) \
    attributes static int64_t name(uint32_t *crcs, int64_t *numbers, const uint32_t *before, int64_t count, \
        int64_t blocks, uint32_t factor, const uint64_t *slots) \
    { \
        int64_t found = 0; \
        for (int64_t i = 0; i < count; i++) { \
            uint32_t crc = before[i + blocks] ^ scaled(before[i], factor); \
            crcs[found] = crc; \
            numbers[found] = i; \
            found += slots[crc_slot(crc) >> 6] >> (crc_slot(crc) & 63) & 1; \
        } \
        return found; \
    }

#ifdef STRETCH
DEFINE_FIND_ADJACENT(
    find_adjacent_by_instruction, __attribute__((target("sse4.2,pclmul"))), crc32c_scaled_by_instruction)
#endif
DEFINE_FIND_ADJACENT(find_adjacent_by_table, , crc32c_scaled)

static int64_t find_adjacent(uint32_t *crcs, int64_t *numbers, const uint32_t *before, int64_t count, int64_t blocks,
    uint32_t factor, const uint64_t *slots)
{
#ifdef STRETCH
    if (crc32c_in_hardware)
        return find_adjacent_by_instruction(crcs, numbers, before, count, blocks, factor, slots);
#endif
    return find_adjacent_by_table(crcs, numbers, before, count, blocks, factor, slots);
}

static void carve_prepare(void)
{
#ifdef STRETCH
    __builtin_cpu_init();
    has_32_bytes = __builtin_cpu_supports("avx2");
#endif
    /* Products by instructions: the tables are made at each start. */
    uint32_t to_factor = crc32c_factor(crc32c_factor(0x80000000u)), step = 0x00800000u; /* x to the 8th */
    for (int level = 0; level < MOVE_LEVELS; level++) {
        uint32_t power = 0x80000000u, move = crc32c_factor(step);
        for (int i = 0; i < MOVES; i++) {
            crc32c_moves[level][i] = crc32c_scaled(power, to_factor);
            power = crc32c_scaled(power, move);
        }
        step = power;
    }
}

/* The CRC after `size` zero bytes: less than MOVES^4 of them. */
static uint32_t crc32c_moved(uint32_t crc, uint64_t size)
{
    for (int level = 0; level < MOVE_LEVELS && size; level++, size >>= MOVE_BITS)
        if (size & (MOVES - 1))
            crc = crc32c_scaled(crc, crc32c_moves[level][size & (MOVES - 1)]);
    return crc;
}

/* The CRC before `size` zero bytes that it covers: fewer than the order. */
static uint32_t crc32c_moved_back(uint32_t crc, uint64_t size) { return crc32c_moved(crc, CRC32C_ORDER - size); }

/* Sets the CRCs before three more steps, of which each has STRETCH bytes. The three are computed at once, because the
 * instruction gives its result later. */
#ifdef STRETCH
__attribute__((target("sse4.2,pclmul")))
static void crc32c_three_steps_by_instruction(uint32_t *crcs, const uint8_t *at)
{
    uint64_t first = crcs[0], second = 0, third = 0, words[3];
    for (int i = 0; i < STRETCH; i += 8) {
        memcpy(&words[0], at + i, 8);
        memcpy(&words[1], at + i + STRETCH, 8);
        memcpy(&words[2], at + i + 2 * STRETCH, 8);
        first = _mm_crc32_u64(first, words[0]);
        second = _mm_crc32_u64(second, words[1]);
        third = _mm_crc32_u64(third, words[2]);
    }
    crcs[1] = (uint32_t)first;
    crcs[2] = crc32c_scaled_by_instruction(crcs[1], crc32c_past_one) ^ (uint32_t)second;
    crcs[3] = crc32c_scaled_by_instruction(crcs[2], crc32c_past_one) ^ (uint32_t)third;
}
#endif

/* Sets the CRCs before `count` more steps of some bytes, the first of which follows those of crcs[0]. */
static void crc32c_steps(uint32_t *crcs, const uint8_t *at, int64_t count, int64_t step)
{
#ifdef STRETCH
    for (; crc32c_in_hardware && step == STRETCH && count >= 3; count -= 3, crcs += 3, at += 3 * step)
        crc32c_three_steps_by_instruction(crcs, at);
#endif
    for (; count > 0; count--, crcs++, at += step)
        crcs[1] = crc32c_continue(crcs[0], at, step);
}

/* Bits that are 0 in each batch of format 2 below 64 MiB whose offset is below 2^56. */
#define MARK_AT(p) ((p)[0] | ((p)[8] & 0xfc) | ((p)[16] ^ 2) | (p)[21] | ((p)[22] & 0x80))

/* The same for messages of formats 0 and 1 below 64 MiB, whose lengths are not 0. */
#define LEGACY_MARK_AT(p) \
    ((p)[0] | ((p)[8] & 0xfc) | ((p)[16] & 0xfe) | ((p)[17] & 0xf0) | !((p)[8] | (p)[9] | (p)[10] | (p)[11]))

/* The first position from `at` on, before `end`, that is marked; `end` if there is none. The bytes of a header exist at
 * each of these positions. Compilers make wide instructions of the inner loop. */
#define DEFINE_SEARCH(name, attributes, is_marked_at) \
    attributes static int64_t name(const uint8_t *base, int64_t at, int64_t end) \
    { \
        for (; end - at >= 64; at += 64) { \
            const uint8_t *p = base + at; \
            uint8_t is_marked = 0; \
            for (int i = 0; i < 64; i++) \
                is_marked |= is_marked_at(p + i); \
            if (is_marked) \
                break; \
        } \
        while (at < end && !is_marked_at(base + at)) \
            at++; \
        return at; \
    }

#ifdef STRETCH
#define DEFINE_MARKED_POSITION(name, is_marked_at) \
    DEFINE_SEARCH(name##_by_16_bytes, WIDE, is_marked_at) \
    DEFINE_SEARCH(name##_by_32_bytes, WIDE __attribute__((target("avx2"))), is_marked_at) \
    static int64_t name(const uint8_t *base, int64_t at, int64_t end) \
    { \
        return has_32_bytes ? name##_by_32_bytes(base, at, end) : name##_by_16_bytes(base, at, end); \
    }
#else
#define DEFINE_MARKED_POSITION(name, is_marked_at) DEFINE_SEARCH(name, WIDE, is_marked_at)
#endif

#define IS_BATCH_MARK(p) (MARK_AT(p) == 0)
#define IS_ANY_MARK(p) ((MARK_AT(p) == 0) | (LEGACY_MARK_AT(p) == 0))
DEFINE_MARKED_POSITION(marked_position, IS_BATCH_MARK)
DEFINE_MARKED_POSITION(marked_position_of_any, IS_ANY_MARK)

/* The version of a text file, and the end of its line. */
#define IS_TEXT_MARK(p) (((p)[0] == '0') & ((p)[1] == '\n'))
DEFINE_MARKED_POSITION(marked_text, IS_TEXT_MARK)

#endif
