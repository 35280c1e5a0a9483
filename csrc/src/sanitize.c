/* sanitize.c: what a sanitized run does, piece by piece: look for races, drop the edges that were only there to find them. */
#include "sanitize.h"

pto_sanitizer *pto_sanitizer_new(const pto_sanitizer_options *options)
{
    pto_sanitizer *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->options = *options;
    pto_sanitize_start(s);
    return s;
}

void pto_sanitizer_free(pto_sanitizer *s)
{
    if (s == NULL)
        return;
    pto_order_free(&s->order);
    pto_task_log_free(&s->log);
    free(s->sources);
    free(s);
}

void pto_sanitizer_read(const pto_sanitizer *s, pto_sanitizer_report *out)
{
    *out = s->report;
    out->races = s->races;
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

void pto_sanitize_start(pto_sanitizer *s)
{
    pto_order_reset(&s->order);
    s->log.n = s->log.n_index = 0;
    s->report = (pto_sanitizer_report){.misuse = {.task = -1}};
}

int32_t pto_sanitize_piece(pto_sanitizer *s, pto_record *record)
{
    int64_t begin = record->done.n_nodes;
    int32_t status = pto_sanitize_races(s, record, begin);
    if (status == PTO_OK)
        pto_sanitize_strip(s, record, begin);
    return status;
}

int32_t pto_sanitize_dropped(pto_sanitizer *s, const pto_record *record)
{
    return pto_task_log_add(&s->log, record) ? PTO_OK : PTO_E_NOMEM;
}
