/* regions.h: the bytes that an argument reaches, as boxes, and whether two boxes meet. Boxes are values. Units: bytes and addresses. */
#ifndef PTO_REGIONS_H
#define PTO_REGIONS_H
#include <stdbool.h>
#include <stdint.h>

#include "pto_wsp.h"

#pragma GCC visibility push(hidden)

/* Steps an overlap test may take inside the library; past it two regions count as overlapping, which is always safe. */
#define PTO_OVERLAP_STEPS 16384
#define PTO_CLASH_STEPS (1 << 20)      /* the same of two arguments that a task writes, which are refused: worth more */

/* A strided byte set in canonical form: the bytes lo + sum(stride[i] * x[i]) + u, 0 <= x[i] < count[i], 0 <= u < width.
   Strides fall, all exceed width, all counts exceed 1: dense dimensions are folded into width. hi is past the last byte. */
typedef struct pto_box {
    int64_t lo;
    int64_t hi;
    int64_t width;
    int64_t stride[PTO_RANK];
    int64_t count[PTO_RANK];
    int64_t n_dims;
} pto_box;

typedef enum pto_box_state { PTO_BOX_EMPTY, PTO_BOX_OK, PTO_BOX_INVALID } pto_box_state;

/* Further than any address space reaches, and small enough that sums of a few stay within 64 bits. */
#define PTO_FAR ((int64_t)1 << 59)

/* INVALID: elements of no size, or reaching further than any address space. */
pto_box_state pto_box_of(const pto_arg *arg, pto_box *out);
bool pto_box_overlap(const pto_box *a, const pto_box *b, int64_t max_steps);
bool pto_box_meets(const pto_box *a, const pto_box *b, int64_t max_steps, bool *is_exact);   /* whether it was found out */
bool pto_box_covers(const pto_box *outer, const pto_box *inner);     /* may miss, never claims wrongly */

/* The bytes from the first to past the last of one row, where the first dimension counts rows. */
static inline int64_t pto_box_row(const pto_box *box)
{
    return box->n_dims == 0 ? box->width : box->hi - box->lo - box->stride[0] * (box->count[0] - 1);
}

static inline pto_box pto_box_at(const pto_box *from_zero, int64_t lo)
{
    pto_box box = *from_zero;
    box.lo = lo;
    box.hi += lo;
    return box;
}

static inline int64_t pto_floor_div(int64_t a, int64_t b)            /* b > 0 */
{
    int64_t q = a / b;
    return q - (a % b < 0);
}

#pragma GCC visibility pop

#endif
