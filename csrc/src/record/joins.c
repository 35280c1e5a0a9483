/* joins.c: the joins that an orchestrator has open. A closed one keeps its memory for the next, so a join in a loop
   allocates once. */
#include "joins.h"

#include "../collections/array.h"

enum { JOIN_OPEN = -2, JOIN_NONE = -1 };

void pto_joins_free(pto_joins *joins)
{
    for (int64_t i = 0; i < joins->n; i++)
        free(joins->data[i].nodes);
    free(joins->data);
    memset(joins, 0, sizeof *joins);
    joins->first_free = JOIN_NONE;
}

void pto_joins_reset(pto_joins *joins)
{
    joins->first_free = JOIN_NONE;
    for (int64_t i = joins->n - 1; i >= 0; i--) {
        joins->data[i].next_free = joins->first_free;
        joins->first_free = i;
    }
}

int64_t pto_joins_open(pto_joins *joins)
{
    int64_t join = joins->first_free;
    if (join == JOIN_NONE) {
        if (!PTO_RESERVE(joins->data, joins->capacity, joins->n + 1))
            return -1;
        join = joins->n++;
        joins->data[join] = (pto_join){0};
    } else {
        joins->first_free = joins->data[join].next_free;
    }
    joins->data[join].n = 0;
    joins->data[join].next_free = JOIN_OPEN;
    return join;
}

pto_join *pto_joins_get(pto_joins *joins, int64_t join)
{
    if (join < 0 || join >= joins->n || joins->data[join].next_free != JOIN_OPEN)
        return NULL;
    return &joins->data[join];
}

void pto_joins_close(pto_joins *joins, int64_t join)
{
    joins->data[join].next_free = joins->first_free;
    joins->first_free = join;
}
