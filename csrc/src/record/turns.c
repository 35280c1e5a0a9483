/* turns.c: sort the places of tasks in a calendar, for the engine and for the simulator. */
#include "../internal.h"

static int by_position(const void *left, const void *right)
{
    const pto_turn *a = left, *b = right;
    if (a->worker != b->worker)
        return a->worker < b->worker ? -1 : 1;
    if (a->position != b->position)
        return a->position < b->position ? -1 : 1;
    return a->id < b->id ? -1 : 1;
}

void pto_turns_sort(pto_turn *turns, int64_t n)
{
    qsort(turns, (size_t)n, sizeof *turns, by_position);
}
