/* Copies ASCII text, and puts backslashes before the quotes and backslashes of a JSON string: many bytes a step.
 *
 * Where a quote comes next can't be foretold, and JSON in JSON is full of them: so there is no branch for it. A step moves
 * the bytes of a register apart by the set of its quotes. Only for processors that have the instructions, found at run time
 * as in crc.h. */
#ifndef KSEG_ASCII_H
#define KSEG_ASCII_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ASCII_SLACK 64 /* bytes that may be written after the text */
#define HIGH_BITS 0x8080808080808080u

/* Copies a word if it is ASCII. */
static inline int ascii_copy_word(uint8_t *out, const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, 8);
    memcpy(out, &word, 8);
    return (word & HIGH_BITS) == 0;
}

static size_t ascii_copy_by_words(uint8_t *out, const uint8_t *at, size_t size)
{
    size_t done = 0;
    while (size - done >= 8 && ascii_copy_word(out + done, at + done))
        done += 8;
    if (size >= 8 && size - done < 8 && ascii_copy_word(out + size - 8, at + size - 8))
        return size; /* the last word, some bytes of it again */
    for (; done < size && at[done] < 0x80; done++)
        out[done] = at[done];
    return done;
}

#if defined(__GNUC__) && defined(__x86_64__)
#include <immintrin.h>

#define ESCAPE_WORD 8
#define WIDE_TARGET "avx512bw,avx512vl,avx512vbmi2,bmi,bmi2,popcnt"

static uint8_t escape_moves[256][16]; /* for each byte of output its place: 0-7 in the word, 8 is a backslash */
static int has_shuffle, has_wide;

static void ascii_prepare(void)
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
    has_shuffle = __builtin_cpu_supports("ssse3") && __builtin_cpu_supports("popcnt");
    has_wide = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")
        && __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
}

__attribute__((target(WIDE_TARGET)))
static size_t ascii_copy_wide(uint8_t *out, const uint8_t *at, size_t size)
{
    for (size_t done = 0; done < size; done += 64) {
        size_t left = size - done;
        __m512i bytes = _mm512_maskz_loadu_epi8(left < 64 ? _bzhi_u64(~0ull, (unsigned)left) : ~0ull, at + done);
        uint64_t high = _mm512_movepi8_mask(bytes);
        _mm512_storeu_si512(out + done, bytes);
        if (high)
            return done + (size_t)__builtin_ctzll(high);
    }
    return size;
}

static inline size_t ascii_copy(uint8_t *out, const uint8_t *at, size_t size)
{
    return has_wide ? ascii_copy_wide(out, at, size) : ascii_copy_by_words(out, at, size);
}

/* Escapes words until fewer than eight bytes are left or one has a control character. */
__attribute__((target("ssse3,popcnt")))
static void escape_by_shuffle(uint8_t **out, const uint8_t **at, const uint8_t *stop, uint64_t *seen)
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
        *seen |= (uint64_t)_mm_cvtsi128_si64(word);
        word = _mm_shuffle_epi8(_mm_unpacklo_epi64(word, backslashes), _mm_loadu_si128((const __m128i *)escape_moves[marks]));
        _mm_storeu_si128((__m128i *)to, word);
        to += ESCAPE_WORD + __builtin_popcount((unsigned)marks);
    }
    *out = to;
    *at = from;
}

/* Escapes up to the first control character: each byte and a backslash are a pair, of which the compression drops the
 * backslashes without a quote. */
__attribute__((target(WIDE_TARGET)))
static void escape_wide(uint8_t **out, const uint8_t **at, const uint8_t *stop, uint64_t *seen)
{
    uint32_t control = 0, high = 0;
    uint8_t *to = *out;
    const uint8_t *from = *at;
    while (from < stop && !control) {
        uint32_t taken = stop - from < 32 ? _bzhi_u32(~0u, (unsigned)(stop - from)) : ~0u, quotes;
        __m256i bytes = _mm256_maskz_loadu_epi8(taken, from);
        control = taken & (_mm256_cmplt_epu8_mask(bytes, _mm256_set1_epi8(0x20)) | _mm256_cmpeq_epu8_mask(bytes, _mm256_set1_epi8(0x7f)));
        if (control)
            taken = _blsmsk_u32(control) >> 1;
        quotes = _mm256_cmpeq_epu8_mask(bytes, _mm256_set1_epi8('"')) | _mm256_cmpeq_epu8_mask(bytes, _mm256_set1_epi8('\\'));
        high |= _mm256_movepi8_mask(bytes) & taken;
        __m512i pairs = _mm512_or_si512(_mm512_slli_epi16(_mm512_cvtepu8_epi16(bytes), 8), _mm512_set1_epi16('\\'));
        uint64_t kept = _pdep_u64(quotes & taken, 0x5555555555555555u) | _pdep_u64(taken, 0xaaaaaaaaaaaaaaaau);
        _mm512_storeu_si512(to, _mm512_maskz_compress_epi8(kept, pairs));
        to += __builtin_popcountll(kept);
        from += __builtin_popcount(taken);
    }
    *seen |= high ? HIGH_BITS : 0;
    *out = to;
    *at = from;
}

static inline void escape_ascii(uint8_t **out, const uint8_t **at, const uint8_t *stop, uint64_t *seen)
{
    if (has_wide)
        escape_wide(out, at, stop, seen);
    else if (has_shuffle)
        escape_by_shuffle(out, at, stop, seen);
}
#else
static void ascii_prepare(void) { }
static inline size_t ascii_copy(uint8_t *out, const uint8_t *at, size_t size) { return ascii_copy_by_words(out, at, size); }

#define EACH(byte) ((byte) * (uint64_t)0x0101010101010101u)
/* Marks the bytes of a word that are zero, by their highest bit. */
#define ZEROS(word) ~((((word) & EACH(0x7f)) + EACH(0x7f)) | (word) | EACH(0x7f))

static inline void escape_ascii(uint8_t **out, const uint8_t **at, const uint8_t *stop, uint64_t *seen)
{
    for (uint64_t word; stop - *at >= 8; *at += 8, *out += 8) {
        memcpy(&word, *at, 8);
        if (ZEROS(word ^ EACH('"')) | ZEROS(word & EACH(0xe0)) | ZEROS(word ^ EACH('\\')) | ZEROS(word ^ EACH(0x7f)))
            return;
        *seen |= word;
        memcpy(*out, &word, 8);
    }
}
#endif

#endif
