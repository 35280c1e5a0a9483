/* positions.c: sort the positions of tasks in a calendar: by worker, position and id. */
#include "positions.h"

#include <stdlib.h>

static int by_position(const void *left, const void *right)
{
    const pto_position *a = left, *b = right;
    if (a->worker != b->worker)
        return a->worker < b->worker ? -1 : 1;
    if (a->position != b->position)
        return a->position < b->position ? -1 : 1;
    return a->id < b->id ? -1 : 1;
}

void pto_positions_sort(pto_position *positions, int64_t n)
{
    qsort(positions, (size_t)n, sizeof *positions, by_position);
}
