/* lanes.c: the last node of every lane: a hash table, see lanes.h. */
#include "lanes.h"

#include <stdlib.h>
#include <string.h>

static int64_t place_of(const pto_lanes *lanes, int64_t lane)
{
    uint64_t hash = (uint64_t)lane * UINT64_C(0x9E3779B97F4A7C15);
    int64_t at = (int64_t)(hash >> 32) & (lanes->capacity - 1);
    while (lanes->rows[at].lane != 0 && lanes->rows[at].lane != lane)
        at = (at + 1) & (lanes->capacity - 1);
    return at;
}

static bool grow(pto_lanes *lanes)
{
    pto_lanes grown = {.capacity = lanes->capacity == 0 ? 16 : 2 * lanes->capacity, .n = lanes->n};
    grown.rows = calloc((size_t)grown.capacity, sizeof *grown.rows);
    if (grown.rows == NULL)
        return false;
    for (int64_t i = 0; i < lanes->capacity; i++)
        if (lanes->rows[i].lane != 0)
            grown.rows[place_of(&grown, lanes->rows[i].lane)] = lanes->rows[i];
    free(lanes->rows);
    *lanes = grown;
    return true;
}

bool pto_lanes_enter(pto_lanes *lanes, int64_t lane, int64_t node, int64_t *before)
{
    if (2 * (lanes->n + 1) > lanes->capacity && !grow(lanes))
        return false;
    pto_lane *row = &lanes->rows[place_of(lanes, lane)];
    *before = row->lane == lane ? row->node : -1;
    lanes->n += row->lane == 0;
    *row = (pto_lane){lane, node};
    return true;
}

void pto_lanes_reset(pto_lanes *lanes)
{
    if (lanes->rows != NULL)
        memset(lanes->rows, 0, (size_t)lanes->capacity * sizeof *lanes->rows);
    lanes->n = 0;
}

void pto_lanes_free(pto_lanes *lanes)
{
    free(lanes->rows);
}
