/* wall.c: the wall-clock trace of a run: when each task began and ended by the clock, and on which thread.

   Rows are made before tasks run, so that workers only write theirs. A stream that drops tasks has none: its memory would grow with it. */
#include "wall.h"

#include <stdlib.h>

#include "../collections/array.h"

#define PTO_TRIALS 8
#define PTO_TRIAL_ROWS 128

struct pto_wall {
    pto_wall_row *rows;
    int64_t n, capacity;
    double row_ns;
    bool is_cut;
};

/* What a row costs now: the shortest of some trials, because others may use this CPU meanwhile. */
static double time_of_row(void)
{
    pto_wall_row rows[PTO_TRIAL_ROWS];
    pto_wall_row *volatile out = rows;         /* so that the writes stay */
    int64_t best = INT64_MAX;
    for (int32_t trial = 0; trial < PTO_TRIALS; trial++) {
        int64_t begin = pto_now_ns();
        for (int32_t i = 0; i < PTO_TRIAL_ROWS; i++)
            pto_wall_note(&out[i], pto_now_ns(), 0);
        int64_t took = pto_now_ns() - begin;
        best = took < best ? took : best;
    }
    return (double)best / PTO_TRIAL_ROWS;
}

void pto_wall_start(pto_wall *wall)
{
    wall->n = 0;
    wall->is_cut = false;
    wall->row_ns = time_of_row();
}

int32_t pto_wall_rows(pto_wall *wall, const pto_record *record, pto_wall_row **rows)
{
    *rows = NULL;
    if (record->first_task > 0) {
        free(wall->rows);
        wall->rows = NULL;
        wall->n = wall->capacity = 0;
        wall->is_cut = true;
        return PTO_OK;
    }
    if (!PTO_RESERVE(wall->rows, wall->capacity, record->n_tasks))
        return PTO_E_NOMEM;
    while (wall->n < record->n_tasks)
        wall->rows[wall->n++] = (pto_wall_row){.thread = -1};
    *rows = wall->rows;
    return PTO_OK;
}

/* ---- entry ---- */

pto_wall *pto_wall_new(void)
{
    return calloc(1, sizeof(pto_wall));
}

void pto_wall_free(pto_wall *wall)
{
    if (wall != NULL)
        free(wall->rows);
    free(wall);
}

void pto_wall_read(const pto_wall *wall, pto_wall_view *out)
{
    *out = (pto_wall_view){.n = wall->n, .is_cut = wall->is_cut, .row_ns = wall->row_ns, .rows = wall->rows};
}
