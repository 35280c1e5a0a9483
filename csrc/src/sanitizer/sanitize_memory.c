/* sanitize_memory.c: regions inside their tensors, and what is known of tensors that nobody has given contents. */
#include "sanitize_memory.h"

#include <stdlib.h>
#include <string.h>

#include "../collections/array.h"
#include "../record/regions.h"

bool pto_make_room(pto_room *room, int64_t bytes)
{
    return PTO_RESERVE(room->data, room->capacity, bytes);
}

bool pto_sanitize_memory(const pto_sanitizer *s, const pto_record *r, int64_t task, int32_t arg, char **lo, char **hi)
{
    const pto_arg *a = &r->args[r->arg_begin[task] + arg];
    int64_t row = -2 - (int64_t)a->buffer;
    if (row >= 0) {
        if (row >= r->arena.n || r->arena.blocks[row].data == NULL)
            return false;
        *lo = r->arena.blocks[row].data;
        *hi = *lo + r->arena.blocks[row].bytes;
        return true;
    }
    int32_t site = r->task_site[task];
    if (site < 0 || site >= s->options.n_sites)
        return false;
    int32_t slot = s->options.site_tensors[s->options.site_begin[site] + arg];
    const pto_tensor *t = &s->options.tensors[slot];
    *lo = t->data;
    *hi = t->data + s->options.elem_bytes[slot];
    for (int32_t d = 0; d < t->rank; d++) {
        int64_t reach = (t->dim[d] - 1) * t->stride[d] * s->options.elem_bytes[slot];
        if (t->dim[d] <= 0)
            *hi = *lo;
        else if (reach < 0)
            *lo += reach;
        else
            *hi += reach;
    }
    return true;
}

/* The first in program order is the one that is reported, whatever ran first. */
void pto_sanitize_blame(pto_sanitizer *s, const pto_record *r, int64_t task, int32_t kind, int32_t arg, int64_t row,
                        int64_t col, int64_t n)
{
    pto_misuse *m = &s->report.misuse;
    if (m->kind != PTO_MISUSE_NONE && m->task <= r->first_task + task)
        return;
    int64_t begin = r->index_begin[task];
    *m = (pto_misuse){.task = r->first_task + task, .site = r->task_site[task], .kind = kind, .arg = arg, .row = row, .col = col,
                      .n_elements = n, .n_index = (int32_t)(r->index_begin[task + 1] - begin)};
    for (int32_t i = 0; i < m->n_index; i++)
        m->index[i] = r->index[begin + i];
}

int32_t pto_sanitize_regions(pto_sanitizer *s, const pto_record *r, int64_t first_task)
{
    for (int64_t task = first_task; task < r->n_tasks; task++)
        for (int32_t i = 0; i < r->arg_begin[task + 1] - r->arg_begin[task]; i++) {
            pto_box box;
            char *lo, *hi;
            pto_box_state state = pto_box_of(&r->args[r->arg_begin[task] + i], &box);
            if (state == PTO_BOX_EMPTY || !pto_sanitize_memory(s, r, task, i, &lo, &hi))
                continue;
            if (state == PTO_BOX_INVALID || box.lo < (int64_t)(intptr_t)lo || box.hi > (int64_t)(intptr_t)hi) {
                pto_sanitize_blame(s, r, task, PTO_MISUSE_REGION, i, 0, 0, 0);
                return PTO_E_MISUSE;
            }
        }
    return PTO_OK;
}

/* ---- shadows ---- */

static bool begin_shadow(pto_shadow *shadow, char *data, int64_t bytes, int32_t elem_bytes)
{
    int64_t n = bytes / elem_bytes;
    if (!PTO_RESERVE(shadow->written, shadow->capacity, n + 1))
        return false;
    memset(shadow->written, 0, (size_t)n);
    shadow->data = data;
    shadow->n = shadow->n_unwritten = n;
    shadow->elem_bytes = elem_bytes;
    return true;
}

int32_t pto_shadows_start(pto_sanitizer *s)
{
    pto_shadows_forget(s);
    for (int32_t i = 0; i < s->options.n_tensors; i++) {
        const pto_tensor *t = &s->options.tensors[i];
        int64_t bytes = s->options.elem_bytes[i];
        for (int32_t d = 0; d < t->rank; d++)
            bytes *= t->dim[d];
        if (!s->options.undefined[i])
            continue;
        if (!begin_shadow(&s->bound[i], t->data, bytes, s->options.elem_bytes[i]))
            return PTO_E_NOMEM;
        memset(t->data, PTO_POISON, (size_t)bytes);
    }
    return PTO_OK;
}

void pto_shadows_forget(pto_sanitizer *s)
{
    for (int64_t i = 0; i < s->n_fresh; i++)
        s->fresh[i].data = NULL;
}

void pto_shadows_free(pto_sanitizer *s)
{
    for (int32_t i = 0; i < s->options.n_tensors; i++)
        free(s->bound[i].written);
    for (int64_t i = 0; i < s->n_fresh; i++)
        free(s->fresh[i].written);
    free(s->bound);
    free(s->fresh);
}

/* The record poisons fresh tensors when it makes them. */
bool pto_sanitize_shadow(pto_sanitizer *s, const pto_record *r, int64_t task, int32_t arg, pto_shadow **out)
{
    const pto_arg *a = &r->args[r->arg_begin[task] + arg];
    int64_t row = -2 - (int64_t)a->buffer;
    int32_t site = r->task_site[task];
    *out = NULL;
    if (row < 0) {
        if (site >= 0 && site < s->options.n_sites) {
            pto_shadow *shadow = &s->bound[s->options.site_tensors[s->options.site_begin[site] + arg]];
            *out = shadow->data == NULL ? NULL : shadow;
        }
        return true;
    }
    if (row >= r->arena.n || r->arena.blocks[row].data == NULL)
        return true;
    if (row >= s->n_fresh) {
        if (!PTO_RESERVE(s->fresh, s->fresh_capacity, row + 1))
            return false;
        memset(s->fresh + s->n_fresh, 0, (size_t)(row + 1 - s->n_fresh) * sizeof *s->fresh);
        s->n_fresh = row + 1;
    }
    const pto_block *block = &r->arena.blocks[row];
    pto_shadow *shadow = &s->fresh[row];
    if (shadow->data != block->data && !begin_shadow(shadow, block->data, block->bytes, a->elem_bytes))
        return false;
    *out = shadow;
    return true;
}
