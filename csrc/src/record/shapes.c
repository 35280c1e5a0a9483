/* shapes.c: what the boxes of arguments of one layout share, found once and kept for the next argument like it. */
#include "shapes.h"

#include <string.h>

/* A space for shapes without a pitch is one row; those that differ by less than four times share it. */
void pto_shape_as_row(pto_shape *shape)
{
    shape->pitch = 0;
    shape->rows = 1;
    shape->width = shape->box.hi;
    shape->row_shift = 0;
    shape->col_shift = 8;
    while ((int64_t)1 << shape->col_shift < shape->width)
        shape->col_shift += 2;
}

static void file_by_rows(pto_shape *shape, int64_t width)
{
    shape->pitch = shape->box.stride[0];
    shape->rows = shape->box.count[0];
    shape->width = width;
    shape->row_shift = 0;
    shape->col_shift = 6;
    while ((int64_t)1 << shape->row_shift < shape->rows)
        shape->row_shift++;
    while ((int64_t)1 << shape->col_shift < width)
        shape->col_shift++;
}

void pto_shape_find(pto_shape *shape, const pto_arg *arg)
{
    pto_arg from_zero = *arg;
    from_zero.data = NULL;
    memcpy(shape->extent, arg->extent, sizeof shape->extent);
    memcpy(shape->stride, arg->stride, sizeof shape->stride);
    shape->elem_bytes = arg->elem_bytes;
    shape->state = pto_box_of(&from_zero, &shape->box);
    if (shape->state != PTO_BOX_OK)
        return;
    shape->offset = shape->box.lo;
    shape->box.lo = 0;
    shape->box.hi -= shape->offset;
    int64_t width = pto_box_row(&shape->box);
    if (shape->box.n_dims > 0 && width <= shape->box.stride[0])
        file_by_rows(shape, width);
    else
        pto_shape_as_row(shape);
}
