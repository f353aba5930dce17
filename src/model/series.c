#include "model/series.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <zstd.h>

#include "model/series_bytes.h"

enum form { FORM_CONST, FORM_VARINT, FORM_PLANES, FORM_PACKED };
enum plane { PLANE_FILL, PLANE_RAW, PLANE_ZSTD };

/* zstd frames begin with these four bytes: not worth storing a hundred times a block. */
static const uint8_t zstd_magic[4] = {0x28, 0xb5, 0x2f, 0xfd};
#define ZSTD_LEVEL 1 /* 3 and 9 were tried: 0 and 2 % smaller, 1.1 and 5 times as long */

/* The ways that are tried: how often differenced, and whether zigzag or the distance from the smallest. */
static const struct way {
    uint8_t order;
    bool is_zigzag;
} ways[] = {
    {0, false},
    {1, true },
    {1, false},
    {2, true }
};

struct series_coder {
    ZSTD_CCtx *pack;
    ZSTD_DCtx *unpack;
    uint64_t *numbers;
    uint8_t *bytes, *packed;
    size_t numbers_room, bytes_room, packed_room;
    struct buf best, other;
};

struct series_coder *series_coder_new(void) {
    struct series_coder *c = calloc(1, sizeof *c);
    if (!c || !(c->pack = ZSTD_createCCtx()) || !(c->unpack = ZSTD_createDCtx())) abort();
    ZSTD_CCtx_setParameter(c->pack, ZSTD_c_compressionLevel, ZSTD_LEVEL);
    ZSTD_CCtx_setParameter(c->pack, ZSTD_c_contentSizeFlag, 0);
    return c;
}

void series_coder_free(struct series_coder *c) {
    if (!c) return;
    ZSTD_freeCCtx(c->pack);
    ZSTD_freeDCtx(c->unpack);
    free(c->numbers);
    free(c->bytes);
    free(c->packed);
    buf_done(&c->best);
    buf_done(&c->other);
    free(c);
}

static void *room(void *have, size_t *have_bytes, size_t want_bytes) {
    if (*have_bytes >= want_bytes) return have;
    free(have);
    void *fresh = malloc(want_bytes);
    if (!fresh) abort();
    *have_bytes = want_bytes;
    return fresh;
}

static uint64_t *room_numbers(struct series_coder *c, size_t n) {
    return c->numbers = room(c->numbers, &c->numbers_room, n * sizeof *c->numbers);
}

/* The differences of a way, from the value number `order` on, as numbers that are small; *base is what the smallest
 * was. Arithmetic is modulo 2^64, so every int64 comes back. */
static uint64_t transform(const int64_t *v, size_t n, struct way w, uint64_t *ret, uint64_t *base) {
    const uint64_t *u = (const uint64_t *)v;
    size_t k = n - w.order;
    int64_t least = INT64_MAX;
    uint64_t most = 0;
    for (size_t i = 0; i < k; i++) {
        uint64_t d = w.order == 0 ? u[i] : w.order == 1 ? u[i + 1] - u[i] : u[i + 2] - 2 * u[i + 1] + u[i];
        if ((int64_t)d < least) least = (int64_t)d;
        ret[i] = d;
    }
    *base = w.is_zigzag ? 0 : (uint64_t)least;
    for (size_t i = 0; i < k; i++) {
        ret[i] = w.is_zigzag ? zigzag((int64_t)ret[i]) : ret[i] - *base;
        most |= ret[i];
    }
    return most;
}

/* Bytes that occur about equally often will not get smaller: zstd would find that out in a hundred times the time. */
static bool is_noise(const uint8_t *bytes, size_t n) {
    uint32_t count[256] = {0};
    double squares = 0;
    if (n < 512) return false;
    for (size_t i = 0; i < n; i++) count[bytes[i]]++;
    for (int i = 0; i < 256; i++) squares += (double)count[i] * count[i];
    return squares * 256 < (double)n * (double)n * 1.1 + 256.0 * (double)n;
}

static void put_plane(struct series_coder *c, const uint8_t *bytes, size_t n, struct buf *out) {
    size_t i = 1;
    while (i < n && bytes[i] == bytes[0]) i++;
    if (i == n) {
        varint_put(out, PLANE_FILL);
        buf_putc(out, (char)bytes[0]);
        return;
    }
    size_t packed = SIZE_MAX;
    if (n > 16 && !is_noise(bytes, n)) {
        c->packed = room(c->packed, &c->packed_room, ZSTD_compressBound(n));
        packed = ZSTD_compress2(c->pack, c->packed, c->packed_room, bytes, n);
        if (ZSTD_isError(packed) || packed < sizeof zstd_magic) packed = SIZE_MAX;
    }
    if (packed < n + sizeof zstd_magic) {
        packed -= sizeof zstd_magic;
        varint_put(out, packed << 2 | PLANE_ZSTD);
        buf_add(out, c->packed + sizeof zstd_magic, packed);
    } else {
        varint_put(out, PLANE_RAW);
        buf_add(out, bytes, n);
    }
}

/* Gives up when it grows beyond `most`. */
static bool put_planes(struct series_coder *c, const int64_t *v, size_t n, struct way w, size_t most, struct buf *out) {
    uint64_t base, *u = room_numbers(c, n);
    uint64_t used = transform(v, n, w, u, &base);
    unsigned width = used ? (71u - (unsigned)__builtin_clzll(used)) / 8 : 0;
    size_t k = n - w.order;
    buf_putc(out, (char)(FORM_PLANES | w.order << 2 | (w.is_zigzag ? 1 << 4 : 0)));
    buf_putc(out, (char)width);
    for (unsigned i = 0; i < w.order; i++) varint_put(out, zigzag(v[i]));
    if (!w.is_zigzag) varint_put(out, zigzag((int64_t)base));
    c->bytes = room(c->bytes, &c->bytes_room, k);
    for (unsigned p = 0; p < width; p++) {
        for (size_t i = 0; i < k; i++) c->bytes[i] = (uint8_t)(u[i] >> (8 * p));
        put_plane(c, c->bytes, k, out);
        if (out->len > most) return false;
    }
    return true;
}

static void put_varints(struct series_coder *c, const int64_t *v, size_t n, struct buf *out) {
    buf_putc(out, FORM_VARINT);
    buf_reserve(out, n * 10);
    uint8_t *to = (uint8_t *)out->s + out->len, *at = to;
    uint64_t before = 0;
    for (size_t i = 0; i < n; i++) {
        at = varint_write(at, zigzag((int64_t)((uint64_t)v[i] - before)));
        before = (uint64_t)v[i];
    }
    out->len += (size_t)(at - to);
    out->s[out->len] = 0;
}

/* Varints through zstd: the best for values that rarely change and then by much. */
static void put_packed(struct series_coder *c, const struct buf *varints, struct buf *out) {
    size_t n = varints->len - 1; /* without the form */
    c->packed = room(c->packed, &c->packed_room, ZSTD_compressBound(n));
    size_t packed = ZSTD_compress2(c->pack, c->packed, c->packed_room, varints->s + 1, n);
    if (ZSTD_isError(packed) || packed < sizeof zstd_magic) return;
    buf_putc(out, FORM_PACKED);
    varint_put(out, n);
    buf_add(out, c->packed + sizeof zstd_magic, packed - sizeof zstd_magic);
}

static void take_smaller(struct series_coder *c) {
    if (c->other.len == 0 || c->other.len >= c->best.len) return;
    struct buf swap = c->best;
    c->best = c->other;
    c->other = swap;
}

static bool is_constant(const int64_t *v, size_t n) {
    size_t i = 1;
    while (i < n && v[i] == v[0]) i++;
    return i >= n;
}

void series_column_put(struct series_coder *c, const int64_t *v, size_t n, enum series_effort effort, struct buf *out) {
    if (is_constant(v, n)) {
        buf_putc(out, FORM_CONST);
        varint_put(out, zigzag(v[0]));
        return;
    }
    if (effort == SERIES_QUICK) {
        put_varints(c, v, n, out);
        return;
    }
    buf_clear(&c->best);
    buf_clear(&c->other);
    put_varints(c, v, n, &c->best);
    put_packed(c, &c->best, &c->other);
    take_smaller(c);
    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        if (n <= ways[i].order) continue;
        buf_clear(&c->other);
        if (put_planes(c, v, n, ways[i], c->best.len, &c->other)) take_smaller(c);
    }
    buf_add(out, c->best.s, c->best.len);
}

static void get_varints(struct bytes *b, int64_t *ret, size_t n) {
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++) ret[i] = (int64_t)(v += (uint64_t)unzigzag(bytes_varint(b)));
}

/* One plane of k bytes: where it lies, or NULL. */
static const uint8_t *get_plane(struct series_coder *c, struct bytes *b, size_t k, uint8_t *fill) {
    uint64_t head = bytes_varint(b);
    size_t len = (size_t)(head >> 2);
    switch (head & 3) {
    case PLANE_FILL: *fill = bytes_u8(b); return NULL;
    case PLANE_RAW: return len == 0 ? bytes_take(b, k).at : (bytes_bad(b), NULL);
    case PLANE_ZSTD: break;
    default: bytes_bad(b); return NULL;
    }
    struct bytes piece = len <= ZSTD_compressBound(k) ? bytes_take(b, len) : (struct bytes){.is_bad = true};
    if (!piece.is_bad) {
        c->packed = room(c->packed, &c->packed_room, len + sizeof zstd_magic);
        c->bytes = room(c->bytes, &c->bytes_room, k);
        memcpy(c->packed, zstd_magic, sizeof zstd_magic);
        memcpy(c->packed + sizeof zstd_magic, piece.at, len);
        size_t got = ZSTD_decompressDCtx(c->unpack, c->bytes, k, c->packed, len + sizeof zstd_magic);
        if (!ZSTD_isError(got) && got == k) return c->bytes;
    }
    bytes_bad(b);
    return NULL;
}

/* What put_packed wrote, as far as b goes. */
static void get_packed(struct series_coder *c, struct bytes *b, int64_t *ret, size_t n) {
    size_t len = bytes_count(b, n * 10), packed = bytes_left(b);
    struct bytes piece = bytes_take(b, packed);
    if (b->is_bad || len < n || packed > ZSTD_compressBound(len)) {
        bytes_bad(b);
        return;
    }
    c->packed = room(c->packed, &c->packed_room, packed + sizeof zstd_magic);
    c->bytes = room(c->bytes, &c->bytes_room, len);
    memcpy(c->packed, zstd_magic, sizeof zstd_magic);
    memcpy(c->packed + sizeof zstd_magic, piece.at, packed);
    size_t got = ZSTD_decompressDCtx(c->unpack, c->bytes, len, c->packed, packed + sizeof zstd_magic);
    struct bytes varints = {.at = c->bytes, .end = c->bytes + len};
    if (!ZSTD_isError(got) && got == len) get_varints(&varints, ret, n);
    if (ZSTD_isError(got) || got != len || varints.is_bad || varints.at != varints.end) bytes_bad(b);
}

static void add_planes(struct series_coder *c, struct bytes *b, unsigned width, uint64_t *u, size_t k) {
    for (unsigned p = 0; p < width && !b->is_bad; p++) {
        uint8_t fill = 0;
        const uint8_t *plane = get_plane(c, b, k, &fill);
        if (b->is_bad) return;
        uint64_t whole = (uint64_t)fill << (8 * p);
        if (plane)
            for (size_t i = 0; i < k; i++) u[i] |= (uint64_t)plane[i] << (8 * p);
        else if (whole)
            for (size_t i = 0; i < k; i++) u[i] |= whole;
    }
}

static void get_planes(struct series_coder *c, struct bytes *b, uint8_t head, int64_t *ret, size_t n) {
    unsigned order = head >> 2 & 3, width = bytes_u8(b);
    bool is_zigzag = head >> 4 & 1;
    if (order > 2 || head >> 5 || width > 8 || order >= n) {
        bytes_bad(b);
        return;
    }
    uint64_t *u = (uint64_t *)ret + order;
    for (unsigned i = 0; i < order; i++) ret[i] = unzigzag(bytes_varint(b));
    uint64_t base = is_zigzag ? 0 : (uint64_t)unzigzag(bytes_varint(b));
    size_t k = n - order;
    memset(u, 0, k * sizeof *u);
    add_planes(c, b, width, u, k);
    for (size_t i = 0; i < k; i++) u[i] = is_zigzag ? (uint64_t)unzigzag(u[i]) : u[i] + base;
    if (order == 1)
        for (size_t i = 0; i < k; i++) u[i] += u[(ptrdiff_t)i - 1];
    if (order == 2)
        for (size_t i = 0; i < k; i++) u[i] += 2 * u[(ptrdiff_t)i - 1] - u[(ptrdiff_t)i - 2];
}

int series_column_get(struct series_coder *c, const uint8_t *bytes, size_t len, int64_t *ret, size_t n,
                      struct error *e) {
    if (n == 0 || n > SERIES_COLUMN_MAX) return fail(e, -EBADMSG, "a column of %zu values", n);
    struct bytes b = {.at = bytes, .end = bytes + len};
    uint8_t head = bytes_u8(&b);
    if (head == FORM_CONST) {
        int64_t v = unzigzag(bytes_varint(&b));
        for (size_t i = 0; i < n; i++) ret[i] = v;
    } else if (head == FORM_VARINT) {
        if (len < n)
            bytes_bad(&b); /* before a loop over values that cannot be there */
        else
            get_varints(&b, ret, n);
    } else if (head == FORM_PACKED) {
        get_packed(c, &b, ret, n);
    } else if ((head & 3) == FORM_PLANES) {
        get_planes(c, &b, head, ret, n);
    } else {
        bytes_bad(&b);
    }
    if (b.is_bad || b.at != b.end) return fail(e, -EBADMSG, "a column of %zu values is damaged", n);
    return 0;
}

/* Nearest whole number of |x| < 2^51, without a call into the maths library. */
static inline double nearest(double x) { return (x + 0x1.8p52) - 0x1.8p52; }

#define STEPS_MAX 0x1p50 /* below this a number of steps survives the way through a double and back */

static bool scale_by_catalogue(const double *v, size_t n, double scale, int64_t *ret) {
    double inverse = scale < 1 ? nearest(1 / scale) : 1 / scale;
    if (scale < 1 && fabs(inverse * scale - 1) > 1e-12) inverse = 1 / scale;
    for (size_t i = 0; i < n; i++) {
        double x = v[i] * inverse;
        if (!(fabs(x) < STEPS_MAX)) return false;
        double k = nearest(x);
        if (fabs(x - k) > 1e-6 + fabs(k) * 0x1p-51) return false;
        ret[i] = (int64_t)k;
    }
    return true;
}

static uint64_t bits_of(double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static bool scale_by_step(const double *v, size_t n, double step, int64_t *ret) {
    for (size_t i = 0; i < n; i++) {
        double x = v[i] / step;
        if (!(fabs(x) < STEPS_MAX)) return false;
        double k = nearest(x);
        if (bits_of(k * step) != bits_of(v[i])) return false;
        ret[i] = (int64_t)k;
    }
    return true;
}

enum series_kind series_scale(const double *v, size_t n, double scale, int64_t *ret, double *step) {
    /* What drivers and /proc count in: blocks, kilobytes, units, percent, thousandths. */
    static const double steps[] = {1024, 1000, 1, 0.01, 0.001};
    *step = scale;
    if (scale > 0 && scale_by_catalogue(v, n, scale, ret)) return SERIES_WHOLE;
    if (scale == 0)
        for (size_t i = 0; i < ARRAY_LEN(steps); i++)
            if (scale_by_step(v, n, steps[i], ret)) {
                *step = steps[i];
                return SERIES_STEP;
            }
    *step = 1;
    memcpy(ret, v, n * sizeof *v);
    return SERIES_REAL;
}
