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
