/* sanitize_log.c: call and indices of the tasks that a record has dropped. A race may be with one of them. */
#include "sanitize_log.h"

#include <stdlib.h>
#include <string.h>

#include "../collections/array.h"

void pto_task_log_free(pto_task_log *log)
{
    free(log->task);
    free(log->site);
    free(log->begin);
    free(log->index);
    memset(log, 0, sizeof *log);
}

bool pto_task_log_add(pto_task_log *log, const pto_record *r)
{
    int64_t need = log->n + r->n_nodes + 1;
    if (!PTO_RESERVE(log->task, log->task_capacity, need) || !PTO_RESERVE(log->site, log->site_capacity, need) ||
        !PTO_RESERVE(log->begin, log->begin_capacity, need) ||
        !PTO_RESERVE(log->index, log->index_capacity, log->n_index + r->n_index))
        return false;
    for (int64_t node = 0; node < r->n_nodes; node++) {
        int64_t task = r->node_task[node];
        log->task[log->n] = task < 0 ? -1 : r->first_task + task;
        log->site[log->n] = task < 0 ? -1 : r->task_site[task];
        log->begin[log->n++] = log->n_index;
        if (task < 0)
            continue;
        int64_t begin = r->index_begin[task], n = r->index_begin[task + 1] - begin;
        if (n > 0)
            memcpy(log->index + log->n_index, r->index + begin, (size_t)n * sizeof *r->index);
        log->n_index += n;
    }
    log->begin[log->n] = log->n_index;
    return true;
}
