/* What stands for a content: kseg/redaction.py in C, which says what it is and why. Tests hold the two equal.
 *
 * BLAKE2b is that of RFC 7693, SHAKE256 that of FIPS 202. A content is replaced where it stands: it is read to its end
 * before the first byte is written. */
#ifndef KSEG_KEYED_H
#define KSEG_KEYED_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { KEYED_SHORT = 16, KEYED_ROUNDS = 8, KEYED_LONGEST_KEY = 64, SHAKE_RATE = 136, KEYED_SLOTS = 1 << 14 };
enum { KEYED_WORD, KEYED_PRINTABLE, KEYED_ANY, KEYED_TEXT, KEYED_UNKNOWN };

/* A short content and what stands for it: keys come again and again. */
typedef struct {
    uint8_t size, content[KEYED_SHORT], other[KEYED_SHORT];
} keyed_pair;

typedef struct {
    uint64_t start[8]; /* BLAKE2b's state after the key */
    uint8_t key[KEYED_LONGEST_KEY];
    size_t key_size;
    const uint8_t *singles[3]; /* by kind: what stands for the digit with that number */
    const uint8_t *printable; /* whether a character can be printed; null: not known yet */
    keyed_pair *known; /* KEYED_SLOTS of them */
} keyed_secret;

static inline uint64_t keyed_turned(uint64_t word, int count)
{
    return word >> (count & 63) | word << (-count & 63);
}

static inline uint64_t keyed_little(const uint8_t *at)
{
    return at[0] | (uint64_t)at[1] << 8 | (uint64_t)at[2] << 16 | (uint64_t)at[3] << 24 | (uint64_t)at[4] << 32
        | (uint64_t)at[5] << 40 | (uint64_t)at[6] << 48 | (uint64_t)at[7] << 56;
}

static inline void keyed_put_little(uint8_t *at, uint64_t word)
{
    for (int i = 0; i < 8; i++)
        at[i] = (uint8_t)(word >> 8 * i);
}

/* --- BLAKE2b: keyed hashes of 16 bytes --- */

static const uint64_t blake_first[8] = {
    0x6a09e667f3bcc908u, 0xbb67ae8584caa73bu, 0x3c6ef372fe94f82bu, 0xa54ff53a5f1d36f1u,
    0x510e527fade682d1u, 0x9b05688c2b3e6c1fu, 0x1f83d9abfb41bd6bu, 0x5be0cd19137e2179u,
};

#define BLAKE_MIX(a, b, c, d, x, y)                                                                                    \
    do {                                                                                                               \
        v[a] += v[b] + m[x], v[d] = keyed_turned(v[d] ^ v[a], 32), v[c] += v[d], v[b] = keyed_turned(v[b] ^ v[c], 24); \
        v[a] += v[b] + m[y], v[d] = keyed_turned(v[d] ^ v[a], 16), v[c] += v[d], v[b] = keyed_turned(v[b] ^ v[c], 63); \
    } while (0)
#define BLAKE_ROUND(s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13, s14, s15)                              \
    do {                                                                                                               \
        BLAKE_MIX(0, 4, 8, 12, s0, s1);                                                                                \
        BLAKE_MIX(1, 5, 9, 13, s2, s3);                                                                                \
        BLAKE_MIX(2, 6, 10, 14, s4, s5);                                                                               \
        BLAKE_MIX(3, 7, 11, 15, s6, s7);                                                                               \
        BLAKE_MIX(0, 5, 10, 15, s8, s9);                                                                               \
        BLAKE_MIX(1, 6, 11, 12, s10, s11);                                                                             \
        BLAKE_MIX(2, 7, 8, 13, s12, s13);                                                                              \
        BLAKE_MIX(3, 4, 9, 14, s14, s15);                                                                              \
    } while (0)

static void blake_take(uint64_t h[8], const uint8_t block[128], uint64_t count, int is_last)
{
    uint64_t v[16], m[16];
    for (int i = 0; i < 16; i++)
        m[i] = keyed_little(block + 8 * i);
    memcpy(v, h, 64);
    memcpy(v + 8, blake_first, 64);
    v[12] ^= count;
    if (is_last)
        v[14] = ~v[14];
    BLAKE_ROUND(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    BLAKE_ROUND(14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3);
    BLAKE_ROUND(11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4);
    BLAKE_ROUND(7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8);
    BLAKE_ROUND(9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13);
    BLAKE_ROUND(2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9);
    BLAKE_ROUND(12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11);
    BLAKE_ROUND(13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10);
    BLAKE_ROUND(6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5);
    BLAKE_ROUND(10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0);
    BLAKE_ROUND(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    BLAKE_ROUND(14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3);
    for (int i = 0; i < 8; i++)
        h[i] ^= v[i] ^ v[i + 8];
}

static void keyed_begin(keyed_secret *secret)
{
    uint8_t block[128] = { 0 };
    memcpy(block, secret->key, secret->key_size);
    memcpy(secret->start, blake_first, 64);
    secret->start[0] ^= 0x01010000u ^ (uint64_t)secret->key_size << 8 ^ KEYED_SHORT;
    blake_take(secret->start, block, 128, 0);
}

/* --- SHAKE256: as many bytes as are wanted --- */

typedef struct {
    uint64_t state[25];
    size_t at;
} shake;

static const uint64_t keccak_constants[24] = {
    0x0000000000000001u, 0x0000000000008082u, 0x800000000000808au, 0x8000000080008000u, 0x000000000000808bu,
    0x0000000080000001u, 0x8000000080008081u, 0x8000000000008009u, 0x000000000000008au, 0x0000000000000088u,
    0x0000000080008009u, 0x000000008000000au, 0x000000008000808bu, 0x800000000000008bu, 0x8000000000008089u,
    0x8000000000008003u, 0x8000000000008002u, 0x8000000000000080u, 0x000000000000800au, 0x800000008000000au,
    0x8000000080008081u, 0x8000000000008080u, 0x0000000080000001u, 0x8000000080008008u,
};

/* One round: columns' parities, then each row of moved and turned lanes, written out so that lanes stay in registers. */
#define KECCAK_ROW(y, i0, t0, x0, i1, t1, x1, i2, t2, x2, i3, t3, x3, i4, t4, x4)                                       \
    do {                                                                                                               \
        uint64_t r0 = keyed_turned(a[i0] ^ d[x0], 64 - t0), r1 = keyed_turned(a[i1] ^ d[x1], 64 - t1),                 \
                 r2 = keyed_turned(a[i2] ^ d[x2], 64 - t2), r3 = keyed_turned(a[i3] ^ d[x3], 64 - t3),                 \
                 r4 = keyed_turned(a[i4] ^ d[x4], 64 - t4);                                                            \
        b[y] = r0 ^ (~r1 & r2), b[y + 1] = r1 ^ (~r2 & r3), b[y + 2] = r2 ^ (~r3 & r4), b[y + 3] = r3 ^ (~r4 & r0),     \
              b[y + 4] = r4 ^ (~r0 & r1);                                                                              \
    } while (0)

static void keccak_round(const uint64_t a[25], uint64_t b[25], uint64_t constant)
{
    uint64_t c[5], d[5];
    for (int x = 0; x < 5; x++)
        c[x] = a[x] ^ a[x + 5] ^ a[x + 10] ^ a[x + 15] ^ a[x + 20];
    for (int x = 0; x < 5; x++)
        d[x] = c[(x + 4) % 5] ^ keyed_turned(c[(x + 1) % 5], 63);
    KECCAK_ROW(0, 0, 0, 0, 6, 44, 1, 12, 43, 2, 18, 21, 3, 24, 14, 4);
    KECCAK_ROW(5, 3, 28, 3, 9, 20, 4, 10, 3, 0, 16, 45, 1, 22, 61, 2);
    KECCAK_ROW(10, 1, 1, 1, 7, 6, 2, 13, 25, 3, 19, 8, 4, 20, 18, 0);
    KECCAK_ROW(15, 4, 27, 4, 5, 36, 0, 11, 10, 1, 17, 15, 2, 23, 56, 3);
    KECCAK_ROW(20, 2, 62, 2, 8, 55, 3, 14, 39, 4, 15, 41, 0, 21, 2, 1);
    b[0] ^= constant;
}

static void keccak(uint64_t a[25])
{
    uint64_t b[25];
    for (int round = 0; round < 24; round += 2) {
        keccak_round(a, b, keccak_constants[round]);
        keccak_round(b, a, keccak_constants[round + 1]);
    }
}

static inline void shake_put(shake *s, uint8_t byte)
{
    s->state[s->at / 8] ^= (uint64_t)byte << s->at % 8 * 8;
}

static void shake_take(shake *s, const uint8_t *at, size_t size)
{
    while (size--) {
        if (s->at % 8 == 0 && size >= 7) {
            s->state[s->at / 8] ^= keyed_little(at);
            s->at += 8, at += 8, size -= 7;
        } else {
            shake_put(s, *at++);
            s->at++;
        }
        if (s->at == SHAKE_RATE) {
            keccak(s->state);
            s->at = 0;
        }
    }
}

static inline uint8_t shake_next(shake *s)
{
    if (s->at == SHAKE_RATE) {
        keccak(s->state);
        s->at = 0;
    }
    uint8_t byte = (uint8_t)(s->state[s->at / 8] >> s->at % 8 * 8);
    s->at++;
    return byte;
}

static void shake_give(shake *s, uint8_t *at, size_t size)
{
    for (; size >= 8 && s->at % 8 == 0; at += 8, size -= 8, s->at += 8) {
        if (s->at == SHAKE_RATE) {
            keccak(s->state);
            s->at = 0;
        }
        keyed_put_little(at, s->state[s->at / 8]);
    }
    while (size--)
        *at++ = shake_next(s);
}

static void shake_of(shake *s, const keyed_secret *secret, const uint8_t *content, size_t size)
{
    memset(s, 0, sizeof *s);
    shake_take(s, secret->key, secret->key_size);
    shake_take(s, content, size);
    shake_put(s, 0x1f);
    s->at = SHAKE_RATE - 1;
    shake_put(s, 0x80);
    s->at = SHAKE_RATE;
}

/* --- kinds of contents --- */

static const char keyed_word[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
static uint8_t keyed_digit[256]; /* the number of a word's character, 64 for all others */
static const uint32_t keyed_gap_from = 0x34000, keyed_gap_to = 0xe0100, keyed_last = 0xe01f0;

static void keyed_prepare(void)
{
    memset(keyed_digit, 64, sizeof keyed_digit);
    for (uint8_t i = 0; i < 64; i++)
        keyed_digit[(uint8_t)keyed_word[i]] = i;
}

static inline int keyed_is_sign(uint8_t byte)
{
    return byte == '\t' || byte == '\n' || byte == '\r';
}

static inline size_t keyed_size(uint8_t lead)
{
    return lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

/* The character of some bytes, of which there are enough; of bytes that aren't UTF-8 one that can't be printed. */
static uint32_t keyed_code(const uint8_t *at, size_t size)
{
    static const uint32_t least[5] = { 0, 0, 0x80, 0x800, 0x10000 };
    uint32_t code = size == 1 ? at[0] : at[0] & (0xffu >> (size + 1));
    for (size_t i = 1; i < size; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (at[i] & 0x3f);
    }
    return code < least[size] || at[0] >= 0xf8 || (size > 1 && at[0] < 0xc0) ? 0 : code;
}

static inline int keyed_is_printable(const keyed_secret *secret, uint32_t code)
{
    if (code >= keyed_gap_from)
        return code >= keyed_gap_to && code < keyed_last
            && secret->printable[code - keyed_gap_to + keyed_gap_from];
    return secret->printable[code];
}

static int keyed_kind(const keyed_secret *secret, const uint8_t *at, size_t size)
{
    const uint8_t *stop = at + size;
    int has_more = 0;
    while (at < stop && keyed_digit[*at] < 64)
        at++;
    if (at == stop)
        return KEYED_WORD;
    while (at < stop) {
        if (*at < 0x80) {
            if (keyed_is_sign(*at))
                has_more = 1;
            else if (*at < 0x20 || *at == 0x7f)
                return KEYED_ANY;
            at++;
            continue;
        }
        size_t length = keyed_size(*at);
        if ((size_t)(stop - at) < length)
            return KEYED_ANY;
        if (secret->printable == NULL)
            return KEYED_UNKNOWN;
        if (!keyed_is_printable(secret, keyed_code(at, length)))
            return KEYED_ANY;
        has_more = 1;
        at += length;
    }
    return has_more ? KEYED_TEXT : KEYED_PRINTABLE;
}

static void keyed_put(uint8_t *at, uint32_t code, size_t size)
{
    static const uint8_t leads[5] = { 0, 0, 0xc0, 0xe0, 0xf0 };
    for (size_t i = size - 1; i > 0; i--, code >>= 6)
        at[i] = 0x80 | (code & 0x3f);
    at[0] = (uint8_t)(leads[size] | code);
}

#ifdef __SIZEOF_INT128__
enum { KEYED_IS_HERE = 1 };
typedef unsigned __int128 keyed_wide;

/* --- permutations of short contents: a Feistel network over two numbers --- */

static void keyed_mix(
    const keyed_secret *secret, uint64_t halves[2], const keyed_wide moduli[2], const uint8_t *shape, size_t shape_size)
{
    uint8_t block[128] = { 0 };
    memcpy(block + 1, shape, shape_size);
    for (int turn = 0; turn < KEYED_ROUNDS; turn++) {
        keyed_wide modulus = moduli[turn % 2], hash = 0;
        uint64_t state[8];
        block[0] = (uint8_t)turn;
        for (int i = 0; i < 8; i++)
            block[1 + shape_size + 15 - i] = (uint8_t)(halves[1] >> 8 * i);
        memcpy(state, secret->start, sizeof state);
        blake_take(state, block, 128 + 1 + shape_size + KEYED_SHORT, 1);
        for (int i = 0; i < KEYED_SHORT; i++)
            hash = hash << 8 | (uint8_t)(state[i / 8] >> i % 8 * 8);
        hash = (modulus & (modulus - 1)) == 0 ? hash & (modulus - 1) : hash % (uint64_t)modulus;
        hash += halves[0];
        halves[0] = halves[1];
        halves[1] = (uint64_t)(hash >= modulus ? hash - modulus : hash);
    }
}

static void keyed_permute(const keyed_secret *secret, uint8_t *at, size_t size, int kind)
{
    static const uint32_t radices[3] = { 64, 95, 256 };
    static const uint8_t firsts[3] = { 0, 0x20, 0 };
    uint32_t radix = radices[kind];
    uint8_t shape[2] = { (uint8_t)size, (uint8_t)radix }, digits[KEYED_SHORT];
    size_t half = size / 2, bounds[3] = { 0, half, size };
    uint64_t halves[2] = { 0, 0 };
    keyed_wide moduli[2] = { 1, 1 };
    for (size_t i = 0; i < size; i++)
        digits[i] = kind == KEYED_WORD ? keyed_digit[at[i]] : (uint8_t)(at[i] - firsts[kind]);
    if (size == 1) {
        at[0] = secret->singles[kind][digits[0]];
        return;
    }
    for (int side = 0; side < 2; side++)
        for (size_t i = bounds[side]; i < bounds[side + 1]; i++) {
            halves[side] = halves[side] * radix + digits[i];
            moduli[side] *= radix;
        }
    keyed_mix(secret, halves, moduli, shape, sizeof shape);
    for (int side = 0; side < 2; side++)
        for (size_t i = bounds[side + 1]; i-- > bounds[side]; halves[side] /= radix) {
            uint8_t digit = (uint8_t)(halves[side] % radix);
            at[i] = kind == KEYED_WORD ? (uint8_t)keyed_word[digit] : (uint8_t)(digit + firsts[kind]);
        }
}

/* Characters by their bytes: the first one, where the gap begins, how wide it is, and how many there are. */
static const uint32_t keyed_characters[5][4] = {
    { 0 }, { 0x20, 0x7f, 0, 0x5f }, { 0x80, 0x800, 0, 0x780 }, { 0x800, 0xd800, 0x800, 0xf000 },
    { 0x10000, 0x34000, 0xac100, 0x240f0 },
};

static void keyed_permute_text(const keyed_secret *secret, uint8_t *at, size_t size)
{
    uint8_t shape[4 + KEYED_SHORT] = "text", *sizes = shape + 4;
    size_t length = 0;
    keyed_wide number = 0, count = 1, root = 0;
    for (size_t i = 0; i < size; i += sizes[length++]) {
        sizes[length] = (uint8_t)keyed_size(at[i]);
        const uint32_t *of = keyed_characters[sizes[length]];
        uint32_t code = keyed_code(at + i, sizes[length]);
        number = number * of[3] + code - of[0] - (code >= of[1] ? of[2] : 0);
        count *= of[3];
    }
    for (uint64_t bit = (uint64_t)1 << 56; bit > 0; bit >>= 1)
        root += (root + bit) * (root + bit) < count ? bit : 0;
    root++; /* the least number whose square isn't less */
    const keyed_wide moduli[2] = { root, root };
    for (int is_one = 0; !is_one;) {
        uint64_t halves[2] = { (uint64_t)(number / root), (uint64_t)(number % root) };
        keyed_mix(secret, halves, moduli, shape, 4 + length);
        number = halves[0] * root + halves[1];
        is_one = number < count;
        keyed_wide left = number;
        size_t end = size;
        for (size_t i = length; is_one && i-- > 0;) {
            const uint32_t *of = keyed_characters[sizes[i]];
            uint32_t code = of[0] + (uint32_t)(left % of[3]);
            code += code >= of[1] ? of[2] : 0;
            left /= of[3];
            end -= sizes[i];
            keyed_put(at + end, code, sizes[i]);
            is_one = keyed_is_printable(secret, code);
        }
    }
}

/* --- all contents --- */

static void keyed_stream_text(const keyed_secret *secret, uint8_t *at, size_t size)
{
    static const uint32_t letters[5][2] = { { 0 }, { 0 }, { 0x100, 0x150 }, { 0x4e00, 0x51a6 }, { 0x20000, 0xa6d7 } };
    shake stream;
    shake_of(&stream, secret, at, size);
    for (size_t length; size > 0; at += length, size -= length) {
        uint32_t number = 0;
        for (int i = 0; i < 4; i++)
            number = number << 8 | shake_next(&stream);
        length = keyed_size(*at);
        if (length > 1)
            keyed_put(at, letters[length][0] + number % letters[length][1], length);
        else if (!keyed_is_sign(*at))
            *at = (uint8_t)keyed_word[number % 64];
    }
}

static int keyed_make(const keyed_secret *secret, uint8_t *at, size_t size);

static void keyed_replace_text(const keyed_secret *secret, uint8_t *at, size_t size)
{
    uint8_t body[KEYED_SHORT];
    size_t length = 0;
    for (size_t i = 0; i < size; i++)
        if (!keyed_is_sign(at[i])) {
            if (length == KEYED_SHORT) {
                keyed_stream_text(secret, at, size);
                return;
            }
            body[length++] = at[i];
        }
    if (length == size) {
        keyed_permute_text(secret, at, size);
        return;
    }
    keyed_make(secret, body, length);
    const uint8_t *next = body;
    for (size_t i = 0; i < size; i++)
        if (!keyed_is_sign(at[i]))
            at[i] = *next++;
}

static int keyed_make(const keyed_secret *secret, uint8_t *at, size_t size)
{
    int kind = keyed_kind(secret, at, size);
    if (secret->printable == NULL && kind != KEYED_WORD && kind != KEYED_PRINTABLE)
        return 0;
    if (size == 0)
        return 1;
    if (kind == KEYED_TEXT) {
        keyed_replace_text(secret, at, size);
    } else if (size <= KEYED_SHORT) {
        do {
            keyed_permute(secret, at, size, kind);
        } while (keyed_kind(secret, at, size) != kind);
    } else {
        shake stream;
        shake_of(&stream, secret, at, size);
        shake_give(&stream, at, size);
        if (kind != KEYED_ANY || keyed_kind(secret, at, size) != KEYED_ANY)
            for (size_t i = 0; i < size; i++)
                at[i] = (uint8_t)keyed_word[at[i] % 64];
    }
    return 1;
}

/* Replaces a content; 0 if `printable` has to be known first. */
static int keyed_replace(const keyed_secret *secret, uint8_t *at, size_t size)
{
    keyed_pair pair = { 0 };
    if (size > KEYED_SHORT)
        return keyed_make(secret, at, size);
    pair.size = (uint8_t)size;
    memcpy(pair.content, at, size);
    uint64_t mixed = keyed_little(pair.content) * 0x9e3779b97f4a7c15u ^ keyed_little(pair.content + 8) * 0xc2b2ae3d27d4eb4fu;
    keyed_pair *known = secret->known + (mixed ^ mixed >> 32) * 0x9e3779b97f4a7c15u / ((uint64_t)-1 / KEYED_SLOTS + 1);
    if (known->size == size && memcmp(known->content, pair.content, size) == 0) {
        memcpy(at, known->other, size);
        return 1;
    }
    if (!keyed_make(secret, at, size))
        return 0;
    memcpy(pair.other, at, size);
    *known = pair;
    return 1;
}
#else
enum { KEYED_IS_HERE = 0 }; /* kseg/redaction.py does it */
static int keyed_replace(const keyed_secret *secret, uint8_t *at, size_t size)
{
    (void)secret, (void)at, (void)size;
    return 1;
}
#endif
#endif
