/* CRC-32 (IEEE, of v0 and v1 messages) and CRC-32C (Castagnoli, of v2 batches).
 *
 * Eight bytes a step from tables; CRC-32C by the processor's own instruction where it has one, found at run time by a
 * function with its own target attribute, so that the build needs no flags. */
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

static uint32_t crc_by_table(const crc_table table, const uint8_t *at, size_t size)
{
    uint32_t crc = 0xffffffffu;
    for (; size >= 8; size -= 8, at += 8) {
        uint32_t low = crc ^ (at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24);
        crc = table[7][low & 0xff] ^ table[6][low >> 8 & 0xff] ^ table[5][low >> 16 & 0xff] ^ table[4][low >> 24]
            ^ table[3][at[4]] ^ table[2][at[5]] ^ table[1][at[6]] ^ table[0][at[7]];
    }
    while (size--)
        crc = (crc >> 8) ^ table[0][(crc ^ *at++) & 0xff];
    return ~crc;
}

#if defined(__GNUC__) && defined(__x86_64__)
#include <nmmintrin.h>
static int crc32c_supported(void) { __builtin_cpu_init(); return __builtin_cpu_supports("sse4.2"); }
__attribute__((target("sse4.2")))
static uint32_t crc32c_by_instruction(const uint8_t *at, size_t size)
{
    uint64_t crc = 0xffffffffu, word;
    for (; size >= 8; size -= 8, at += 8) {
        memcpy(&word, at, 8);
        crc = _mm_crc32_u64(crc, word);
    }
    while (size--)
        crc = _mm_crc32_u8((uint32_t)crc, *at++);
    return ~(uint32_t)crc;
}
#elif defined(__GNUC__) && defined(__aarch64__) && defined(__linux__)
#include <arm_acle.h>
#include <sys/auxv.h>
static int crc32c_supported(void) { return (getauxval(16 /* AT_HWCAP */) & (1 << 7) /* HWCAP_CRC32 */) != 0; }
__attribute__((target("+crc")))
static uint32_t crc32c_by_instruction(const uint8_t *at, size_t size)
{
    uint32_t crc = 0xffffffffu;
    uint64_t word;
    for (; size >= 8; size -= 8, at += 8) {
        memcpy(&word, at, 8);
        crc = __crc32cd(crc, word);
    }
    while (size--)
        crc = __crc32cb(crc, *at++);
    return ~crc;
}
#else
static int crc32c_supported(void) { return 0; }
static uint32_t crc32c_by_instruction(const uint8_t *at, size_t size) { return crc_by_table(crc32c_table, at, size); }
#endif

static void crc_prepare(void)
{
    crc_fill(crc32_table, 0xedb88320u);
    crc_fill(crc32c_table, 0x82f63b78u);
    crc32c_in_hardware = crc32c_supported();
}

static uint32_t crc32_of(const uint8_t *at, size_t size) { return crc_by_table(crc32_table, at, size); }

static uint32_t crc32c_of(const uint8_t *at, size_t size)
{
    return crc32c_in_hardware ? crc32c_by_instruction(at, size) : crc_by_table(crc32c_table, at, size);
}

#endif
