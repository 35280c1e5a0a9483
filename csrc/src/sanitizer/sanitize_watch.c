/* sanitize_watch.c: the report of a misuse, see sanitize_watch.h. */
#include "sanitize_watch.h"

#include "sanitize_memory.h"

int32_t pto_misused(const pto_watch *w, int32_t kind, int64_t arg, int64_t row, int64_t col, int64_t n)
{
    pto_sanitize_blame(w->s, w->record, w->task, kind, (int32_t)arg, row, col, n);
    w->s->misuse_at = w->at < w->s->misuse_at ? w->at : w->s->misuse_at;
    return 1;
}
