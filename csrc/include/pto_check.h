/* pto_check.h: does a tile hold a NaN or an infinity that nothing it was made from explains? For check_finite.

   A result explains itself when it is finite. A NaN is explained by a NaN among the elements that made it, an infinity by
   anything there that is not finite: exp(inf) is no fault, 1 / 0 is one.

   No <stdbool.h>: its macro would change the names of functions that end in the dtype bool. */
#ifndef PTO_FINITE_CHECK_H
#define PTO_FINITE_CHECK_H
#include <math.h>
#include <string.h>

#include "pto_wsp.h"

typedef enum pto_float {
    PTO_FLOAT_F64, PTO_FLOAT_F32, PTO_FLOAT_F16, PTO_FLOAT_BF16, PTO_FLOAT_FP8E4M3, PTO_FLOAT_FP8E5M2, PTO_FLOAT_NUMBER
} pto_float;

/* What made element (r, c) of a result: data[r * by_row + c * by_col + i * step0 + j * step1], i < n0, j < n1. A NUMBER is
   a double that the kernel was given: its infinity explains one, a NaN explains nothing. */
typedef struct pto_source {
    const void *data;
    pto_float kind;
    int64_t by_row, by_col;
    int64_t n0, step0, n1, step1;
} pto_source;

/* The bits of an element with its sign gone, and those of infinity: larger is a NaN. fp8e4m3 has a NaN next to its largest
   number; its bits are doubled, so that the infinity that it lacks lies between. */
static inline uint64_t pto_magnitude(const void *data, pto_float kind, int64_t at)
{
    uint64_t wide;
    uint32_t single;
    uint16_t half;
    switch (kind) {
    case PTO_FLOAT_F32:
        memcpy(&single, (const char *)data + at * 4, sizeof single);
        return single & 0x7fffffffu;
    case PTO_FLOAT_F16:
    case PTO_FLOAT_BF16:
        memcpy(&half, (const char *)data + at * 2, sizeof half);
        return half & 0x7fffu;
    case PTO_FLOAT_FP8E4M3:
        return (((const uint8_t *)data)[at] & 0x7fu) * 2u;
    case PTO_FLOAT_FP8E5M2:
        return ((const uint8_t *)data)[at] & 0x7fu;
    default:
        memcpy(&wide, (const char *)data + at * 8, sizeof wide);
        return wide & 0x7fffffffffffffffu;
    }
}

static inline uint64_t pto_infinity(pto_float kind)
{
    switch (kind) {
    case PTO_FLOAT_F32:
        return 0x7f800000u;
    case PTO_FLOAT_F16:
        return 0x7c00u;
    case PTO_FLOAT_BF16:
        return 0x7f80u;
    case PTO_FLOAT_FP8E4M3:
        return 0xfdu;
    case PTO_FLOAT_FP8E5M2:
        return 0x7cu;
    default:
        return 0x7ff0000000000000u;
    }
}

static inline double pto_widened_f16(uint16_t half)
{
    uint32_t bits = half & 0x3ffu;
    double wide;
    if ((half & 0x7c00u) == 0x7c00u)
        wide = bits ? NAN : INFINITY;
    else if ((half & 0x7c00u) == 0)
        wide = ldexp(bits, -24);
    else
        wide = ldexp(bits + 0x400u, ((half >> 10) & 31) - 25);
    return half >> 15 ? -wide : wide;
}

static inline double pto_widened_fp8e4m3(uint8_t bits)
{
    uint32_t digits = bits & 7u, exponent = (bits >> 3) & 15u;
    double wide = (bits & 0x7fu) == 0x7fu ? NAN : exponent == 0 ? ldexp(digits, -9) : ldexp(digits + 8u, (int)exponent - 10);
    return bits >> 7 ? -wide : wide;
}

static inline double pto_widened(const void *data, pto_float kind, int64_t at)
{
    double wide;
    float single;
    uint16_t half;
    uint32_t bits;
    switch (kind) {
    case PTO_FLOAT_F32:
        memcpy(&single, (const char *)data + at * 4, sizeof single);
        return single;
    case PTO_FLOAT_BF16:
        memcpy(&half, (const char *)data + at * 2, sizeof half);
        bits = (uint32_t)half << 16;
        memcpy(&single, &bits, sizeof single);
        return single;
    case PTO_FLOAT_F16:
        memcpy(&half, (const char *)data + at * 2, sizeof half);
        return pto_widened_f16(half);
    case PTO_FLOAT_FP8E4M3:
        return pto_widened_fp8e4m3(((const uint8_t *)data)[at]);
    case PTO_FLOAT_FP8E5M2:   /* the upper half of an f16 */
        return pto_widened_f16((uint16_t)(((const uint8_t *)data)[at] << 8));
    default:
        memcpy(&wide, (const char *)data + at * 8, sizeof wide);
        return wide;
    }
}

/* Whether no exponent is all ones (for fp8e4m3: no exponent and digits). One function a width, so that each vectorises; rows are neighbours of `cols` elements. */
#define PTO_ALL_FINITE(bits_type) \
    static inline _Bool pto_all_finite_##bits_type(const void *data, bits_type exponent, int64_t step, int64_t rows, int64_t cols) \
    { \
        for (int64_t r = 0; r < rows; r++) { \
            const char *row = (const char *)data + r * step * (int64_t)sizeof(bits_type); \
            bits_type odd = 0; \
            for (int64_t c = 0; c < cols; c++) { \
                bits_type bits; \
                memcpy(&bits, row + c * (int64_t)sizeof bits, sizeof bits); \
                odd |= (bits_type)((bits & exponent) == exponent); \
            } \
            if (odd) \
                return 0; \
        } \
        return 1; \
    }
PTO_ALL_FINITE(uint8_t)
PTO_ALL_FINITE(uint16_t)
PTO_ALL_FINITE(uint32_t)
PTO_ALL_FINITE(uint64_t)

static inline _Bool pto_all_finite(const void *data, pto_float kind, int64_t step, int64_t rows, int64_t cols)
{
    switch (kind) {
    case PTO_FLOAT_F32:
        return pto_all_finite_uint32_t(data, 0x7f800000u, step, rows, cols);
    case PTO_FLOAT_F16:
        return pto_all_finite_uint16_t(data, 0x7c00u, step, rows, cols);
    case PTO_FLOAT_BF16:
        return pto_all_finite_uint16_t(data, 0x7f80u, step, rows, cols);
    case PTO_FLOAT_FP8E4M3:
        return pto_all_finite_uint8_t(data, 0x7fu, step, rows, cols);
    case PTO_FLOAT_FP8E5M2:
        return pto_all_finite_uint8_t(data, 0x7cu, step, rows, cols);
    default:
        return pto_all_finite_uint64_t(data, 0x7ff0000000000000u, step, rows, cols);
    }
}

static inline _Bool pto_explains(const pto_source *source, int64_t row, int64_t col, _Bool nan)
{
    if (nan && source->kind == PTO_FLOAT_NUMBER)
        return 0;
    uint64_t infinity = pto_infinity(source->kind);
    for (int64_t i = 0; i < source->n0; i++)
        for (int64_t j = 0; j < source->n1; j++) {
            uint64_t bits = pto_magnitude(source->data, source->kind, row * source->by_row + col * source->by_col +
                                                                          i * source->step0 + j * source->step1);
            if (nan ? bits > infinity : source->kind == PTO_FLOAT_NUMBER ? bits == infinity : bits >= infinity)
                return 1;
        }
    return 0;
}

static inline int64_t pto_double_bits(double value)
{
    int64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* True when an element is not explained; it is then in context->fault: lower and upper hold what the first two sources of
   one element each gave. */
static _Bool pto_check_finite(pto_context *context, const void *data, pto_float kind, int64_t step, int64_t rows, int64_t cols,
                             int32_t n_sources, const pto_source *sources)
{
    if (pto_all_finite(data, kind, step, rows, cols))
        return 0;
    uint64_t infinity = pto_infinity(kind);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++) {
            uint64_t bits = pto_magnitude(data, kind, r * step + c);
            _Bool explained = bits < infinity;
            for (int32_t i = 0; i < n_sources && !explained; i++)
                explained = pto_explains(&sources[i], r, c, bits > infinity);
            if (explained)
                continue;
            double value = pto_widened(data, kind, r * step + c);
            context->fault = (pto_fault){.row = r, .col = c, .value = pto_double_bits(value)};
            for (int32_t i = 0; i < n_sources && i < 2; i++)
                if (sources[i].n0 * sources[i].n1 == 1)
                    (i == 0 ? &context->fault.lower : &context->fault.upper)[0] = pto_double_bits(
                        pto_widened(sources[i].data, sources[i].kind, r * sources[i].by_row + c * sources[i].by_col));
            return 1;
        }
    return 0;
}

#endif
