/* sanitize.c: what a sanitized run does, piece by piece: look for races, drop the edges that were only there to find them. */
#include "sanitize.h"

#include <stdlib.h>

#include "sanitize_memory.h"
#include "sanitize_races.h"

pto_sanitizer *pto_sanitizer_new(const pto_sanitizer_options *options)
{
    pto_sanitizer *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->options = *options;
    s->bound = calloc((size_t)options->n_tensors + 1, sizeof *s->bound);
    if (s->bound == NULL) {
        free(s);
        return NULL;
    }
    return s;
}

void pto_sanitizer_free(pto_sanitizer *s)
{
    if (s == NULL)
        return;
    pto_order_free(&s->order);
    pto_task_log_free(&s->log);
    pto_shadows_free(s);
    pto_room *rooms[] = {&s->before, &s->after, &s->filled, &s->copies.image, &s->copies.work, &s->copies.first, &s->copies.writable,
                         &s->copies.scratch};
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++)
        free(rooms[i]->data);
    free(s->sources);
    free(s);
}

void pto_sanitizer_read(const pto_sanitizer *s, pto_sanitizer_report *out)
{
    *out = s->report;
    out->races = s->races;
}

int32_t pto_sanitize_start(pto_sanitizer *s)
{
    pto_order_reset(&s->order);
    s->log.n = s->log.n_index = 0;
    s->report = (pto_sanitizer_report){.misuse = {.task = -1}};
    s->misuse_at = PTO_NO_NODE;
    return pto_shadows_start(s);
}

int32_t pto_sanitize_piece(pto_sanitizer *s, pto_record *record)
{
    int64_t begin = record->done.n_nodes;
    int32_t status = pto_sanitize_regions(s, record, record->done.n_tasks);
    s->misuse_at = PTO_NO_NODE;
    if (status == PTO_OK)
        status = pto_sanitize_races(s, record, begin);
    if (status == PTO_OK)
        pto_sanitize_strip(s, record, begin);
    return status;
}

int32_t pto_sanitize_dropped(pto_sanitizer *s, const pto_record *record)
{
    pto_shadows_forget(s);
    return pto_task_log_add(&s->log, record) ? PTO_OK : PTO_E_NOMEM;
}
