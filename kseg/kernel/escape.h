/* Puts backslashes before the quotes and backslashes of a JSON string, eight bytes a step.
 *
 * Where a quote comes next can't be foretold, and JSON in JSON is full of them: so there is no branch for it. Eight bytes
 * and the backslashes among them are one shuffle, by a table of where each of the 256 sets of quotes moves the bytes. Only
 * for processors that have that instruction, found at run time as in crc.h. */
#ifndef KSEG_ESCAPE_H
#define KSEG_ESCAPE_H

#include <stddef.h>
#include <stdint.h>

#define ESCAPE_WORD 8

#if defined(__GNUC__) && defined(__x86_64__)
#include <tmmintrin.h>

static uint8_t escape_moves[256][16]; /* for each byte of output its place: 0-7 in the word, 8 is a backslash */
static int escape_in_hardware;

static void escape_prepare(void)
{
    for (int quotes = 0; quotes < 256; quotes++) {
        uint8_t *move = escape_moves[quotes];
        for (int i = 0; i < ESCAPE_WORD; i++) {
            if (quotes >> i & 1)
                *move++ = ESCAPE_WORD;
            *move++ = (uint8_t)i;
        }
    }
    __builtin_cpu_init();
    escape_in_hardware = __builtin_cpu_supports("ssse3") && __builtin_cpu_supports("popcnt");
}

/* Escapes words until fewer than eight bytes are left or one has a control character; 16 bytes of output may be written
 * for each, however many are wanted. */
__attribute__((target("ssse3,popcnt")))
static void escape_by_instruction(uint8_t **out, const uint8_t **at, const uint8_t *stop)
{
    const __m128i backslashes = _mm_set1_epi8('\\'), quotes = _mm_set1_epi8('"');
    uint8_t *to = *out;
    const uint8_t *from = *at;
    for (; stop - from >= ESCAPE_WORD; from += ESCAPE_WORD) {
        __m128i word = _mm_loadl_epi64((const __m128i *)from);
        __m128i control = _mm_or_si128(
            _mm_cmpeq_epi8(_mm_min_epu8(word, _mm_set1_epi8(0x1f)), word), _mm_cmpeq_epi8(word, _mm_set1_epi8(0x7f)));
        __m128i found = _mm_or_si128(_mm_cmpeq_epi8(word, quotes), _mm_cmpeq_epi8(word, backslashes));
        int marks = _mm_movemask_epi8(found) & 0xff;
        if (_mm_movemask_epi8(control) & 0xff)
            break;
        word = _mm_shuffle_epi8(_mm_unpacklo_epi64(word, backslashes), _mm_loadu_si128((const __m128i *)escape_moves[marks]));
        _mm_storeu_si128((__m128i *)to, word);
        to += ESCAPE_WORD + __builtin_popcount((unsigned)marks);
    }
    *out = to;
    *at = from;
}

static inline void escape_words(uint8_t **out, const uint8_t **at, const uint8_t *stop)
{
    if (escape_in_hardware)
        escape_by_instruction(out, at, stop);
}
#else
static void escape_prepare(void) { }
static inline void escape_words(uint8_t **out, const uint8_t **at, const uint8_t *stop) { (void)out, (void)at, (void)stop; }
#endif

#endif
