/* CRC-32 (IEEE, of v0 and v1 messages) and CRC-32C (Castagnoli, of v2 batches).
 *
 * Eight bytes a step from tables; CRC-32C by the processor's own instruction where it has one, found at run time by a
 * function with its own target attribute, so that the build needs no flags. That instruction gives its result three steps
 * later: three stretches of the bytes are worked on at once, whose CRCs are then moved to the end of the last. CRC-32 has
 * no instruction: carry-less products move blocks of 16 bytes to the end, where the table takes the last block. Source:
 * Gopal et al., Fast CRC Computation for Generic Polynomials Using PCLMULQDQ, Intel 2009. */
#ifndef KSEG_CRC_H
#define KSEG_CRC_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint32_t crc_table[8][256];

static crc_table crc32_table, crc32c_table;
static int crc32c_in_hardware;

static void crc_fill(crc_table table, uint32_t polynomial)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? (crc >> 1) ^ polynomial : crc >> 1;
        table[0][i] = crc;
    }
    for (uint32_t i = 0; i < 256; i++)
        for (int k = 1; k < 8; k++)
            table[k][i] = (table[k - 1][i] >> 8) ^ table[0][table[k - 1][i] & 0xff];
}

/* Continues a CRC, which is inverted neither before nor after. */
static uint32_t crc_by_table(const crc_table table, uint32_t crc, const uint8_t *at, size_t size)
{
    for (; size >= 8; size -= 8, at += 8) {
        uint32_t low = crc ^ (at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24);
        crc = table[7][low & 0xff] ^ table[6][low >> 8 & 0xff] ^ table[5][low >> 16 & 0xff] ^ table[4][low >> 24]
            ^ table[3][at[4]] ^ table[2][at[5]] ^ table[1][at[6]] ^ table[0][at[7]];
    }
    while (size--)
        crc = (crc >> 8) ^ table[0][(crc ^ *at++) & 0xff];
    return crc;
}

#if defined(__GNUC__) && defined(__x86_64__)
#include <wmmintrin.h>
#include <nmmintrin.h>
#define STRETCH 512

static uint32_t crc32c_past_one, crc32c_past_two; /* what moves a CRC past one stretch, and past two */

static int crc32c_supported(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
}

/* x to the power of n, modulo the polynomial, in reflected bits. */
static uint32_t crc_power(uint32_t polynomial, int n)
{
    uint32_t power = 0x80000000u;
    while (n--)
        power = power & 1 ? (power >> 1) ^ polynomial : power >> 1;
    return power;
}

__attribute__((target("sse4.2,pclmul")))
static uint64_t crc32c_product(uint64_t crc, uint32_t power)
{
    return (uint64_t)_mm_cvtsi128_si64(_mm_clmulepi64_si128(_mm_cvtsi64_si128((int64_t)crc), _mm_cvtsi64_si128(power), 0));
}

__attribute__((target("sse4.2,pclmul")))
static uint32_t crc32c_by_instruction(uint32_t before, const uint8_t *at, size_t size)
{
    uint64_t crc = before, second, third, words[3];
    for (; size >= 3 * STRETCH; size -= 3 * STRETCH, at += 3 * STRETCH) {
        second = third = 0;
        for (int i = 0; i < STRETCH; i += 8) {
            memcpy(&words[0], at + i, 8);
            memcpy(&words[1], at + i + STRETCH, 8);
            memcpy(&words[2], at + i + 2 * STRETCH, 8);
            crc = _mm_crc32_u64(crc, words[0]);
            second = _mm_crc32_u64(second, words[1]);
            third = _mm_crc32_u64(third, words[2]);
        }
        /* The instruction multiplies by x to the 32nd and reduces; a reflected product is one bit short of its place. */
        crc = _mm_crc32_u64(0, crc32c_product(crc, crc32c_past_two) ^ crc32c_product(second, crc32c_past_one)) ^ third;
    }
    for (; size >= 8; size -= 8, at += 8) {
        memcpy(&words[0], at, 8);
        crc = _mm_crc32_u64(crc, words[0]);
    }
    while (size--)
        crc = _mm_crc32_u8((uint32_t)crc, *at++);
    return (uint32_t)crc;
}

#define LANES 4
#define LOADED(at) _mm_loadu_si128((const __m128i *)(at))
#define MOVED(block, powers) _mm_xor_si128(_mm_clmulepi64_si128(block, powers, 0x00), _mm_clmulepi64_si128(block, powers, 0x11))
#define POWER(n) ((long long)crc_power(0xedb88320u, n) << 1)
#define POWERS(bytes) _mm_set_epi64x(POWER(8 * (bytes) - 32), POWER(8 * (bytes) + 32))

/* What moves the halves of 16 bytes past one such block, and past LANES of them. */
static __m128i crc32_past_one, crc32_past_lanes;

/* Continues from the inverted CRC of no bytes, which inverts the first four bytes. No bytes are left over at the end: zeros
 * before the first byte complete the first block, and don't change the CRC. unsafe: there are 32 bytes. */
__attribute__((target("ssse3,pclmul")))
static uint32_t crc32_by_instruction(const uint8_t *at, size_t size)
{
    static const uint8_t inverted[32] = {0xff, 0xff, 0xff, 0xff};
    static const uint8_t moves[32] = {128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128,
                                      0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    size_t before = size & 15;
    __m128i lanes[LANES], block = _mm_xor_si128(LOADED(at), LOADED(inverted));
    block = _mm_shuffle_epi8(block, LOADED(moves + before));
    lanes[0] = MOVED(block, crc32_past_one);
    at += before;
    lanes[0] = _mm_xor_si128(lanes[0], _mm_xor_si128(LOADED(at), LOADED(inverted + before)));
    size -= before + 16;
    at += 16;
    if (size >= (LANES + LANES - 1) * 16) {
        for (int i = 1; i < LANES; i++, at += 16)
            lanes[i] = LOADED(at);
        for (size -= (LANES - 1) * 16; size >= LANES * 16; size -= LANES * 16, at += LANES * 16)
            for (int i = 0; i < LANES; i++)
                lanes[i] = _mm_xor_si128(MOVED(lanes[i], crc32_past_lanes), LOADED(at + 16 * i));
        for (int i = 1; i < LANES; i++)
            lanes[0] = _mm_xor_si128(MOVED(lanes[0], crc32_past_one), lanes[i]);
    }
    for (; size; size -= 16, at += 16)
        lanes[0] = _mm_xor_si128(MOVED(lanes[0], crc32_past_one), LOADED(at));
    return crc_by_table(crc32_table, 0, (const uint8_t *)lanes, 16);
}

static void crc32c_prepare(void)
{
    crc32c_past_one = crc_power(0x82f63b78u, 8 * STRETCH - 33);
    crc32c_past_two = crc_power(0x82f63b78u, 8 * 2 * STRETCH - 33);
    crc32_past_one = POWERS(16);
    crc32_past_lanes = POWERS(16 * LANES);
}
#elif defined(__GNUC__) && defined(__aarch64__) && defined(__linux__)
#include <arm_acle.h>
#include <sys/auxv.h>
static void crc32c_prepare(void) { }
static int crc32c_supported(void) { return (getauxval(16 /* AT_HWCAP */) & (1 << 7) /* HWCAP_CRC32 */) != 0; }
__attribute__((target("+crc")))
static uint32_t crc32c_by_instruction(uint32_t crc, const uint8_t *at, size_t size)
{
    uint64_t word;
    for (; size >= 8; size -= 8, at += 8) {
        memcpy(&word, at, 8);
        crc = __crc32cd(crc, word);
    }
    while (size--)
        crc = __crc32cb(crc, *at++);
    return crc;
}
#else
static void crc32c_prepare(void) { }
static int crc32c_supported(void) { return 0; }
static uint32_t crc32c_by_instruction(uint32_t crc, const uint8_t *at, size_t size) { return crc_by_table(crc32c_table, crc, at, size); }
#endif

static void crc_prepare(void)
{
    crc_fill(crc32_table, 0xedb88320u);
    crc_fill(crc32c_table, 0x82f63b78u);
    crc32c_prepare();
    crc32c_in_hardware = crc32c_supported();
}

static uint32_t crc32_of(const uint8_t *at, size_t size)
{
#ifdef STRETCH
    if (crc32c_in_hardware && size >= 32)
        return ~crc32_by_instruction(at, size);
#endif
    return ~crc_by_table(crc32_table, 0xffffffffu, at, size);
}

static uint32_t crc32c_continue(uint32_t crc, const uint8_t *at, size_t size)
{
    return crc32c_in_hardware ? crc32c_by_instruction(crc, at, size) : crc_by_table(crc32c_table, crc, at, size);
}

static uint32_t crc32c_of(const uint8_t *at, size_t size) { return ~crc32c_continue(0xffffffffu, at, size); }

#endif
