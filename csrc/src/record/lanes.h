/* lanes.h: the last node of every lane: a hash table, owned by the record. */
#ifndef PTO_LANES_H
#define PTO_LANES_H
#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

typedef struct pto_lane {
    int64_t lane;              /* 0: the row is free */
    int64_t node;
} pto_lane;

typedef struct pto_lanes {
    pto_lane *rows;            /* open addressing, a power of two of rows, at most half of them taken */
    int64_t capacity;
    int64_t n;
} pto_lanes;

void pto_lanes_free(pto_lanes *lanes);
void pto_lanes_reset(pto_lanes *lanes);
bool pto_lanes_enter(pto_lanes *lanes, int64_t lane, int64_t node, int64_t *before);  /* before: the lane's last node, -1: none */

#pragma GCC visibility pop

#endif
