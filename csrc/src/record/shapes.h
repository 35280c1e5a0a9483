/* shapes.h: what the boxes of arguments of one layout share, found once and kept for the next argument like it. Shapes are values.
   Units: bytes, but for extents and strides, which are elements as in pto_arg. */
#ifndef PTO_SHAPES_H
#define PTO_SHAPES_H
#include "regions.h"

#pragma GCC visibility push(hidden)

/* What the boxes of arguments of one layout share. Zeros are that of no elements. */
typedef struct pto_shape {
    int64_t extent[PTO_RANK];  /* the layout, as in pto_arg */
    int64_t stride[PTO_RANK];
    int32_t elem_bytes;
    int32_t state;             /* pto_box_state; with OK: */
    int64_t id;                /* shapes of one id are the same */
    int64_t offset;            /* bytes from data to the box, <= 0 */
    pto_box box;               /* from 0 */
    int64_t pitch;             /* what the dependency map sees in it: rows this many bytes apart; 0: one */
    int64_t rows;
    int64_t width;             /* bytes of a row */
    int32_t row_shift, col_shift;      /* rows and width, as powers of two */
} pto_shape;

void pto_shape_find(pto_shape *shape, const pto_arg *arg);     /* id stays */
void pto_shape_as_row(pto_shape *shape);                   /* as if it had no pitch */

static inline bool pto_shape_is_of(const pto_shape *shape, const pto_arg *arg)
{
    return shape->extent[0] == arg->extent[0] && shape->extent[1] == arg->extent[1] && shape->stride[0] == arg->stride[0] &&
           shape->stride[1] == arg->stride[1] && shape->elem_bytes == arg->elem_bytes;
}

static inline bool pto_shape_is_valid(const pto_shape *shape, const pto_arg *arg)
{
    int64_t data = (int64_t)(intptr_t)arg->data;
    return shape->state != PTO_BOX_INVALID && (shape->state == PTO_BOX_EMPTY || (data <= PTO_FAR && data >= -PTO_FAR));
}

static inline int64_t pto_shape_lo(const pto_shape *shape, const pto_arg *arg)
{
    return (int64_t)(intptr_t)arg->data + shape->offset;
}

#pragma GCC visibility pop

#endif
