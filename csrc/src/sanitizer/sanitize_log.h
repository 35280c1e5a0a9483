/* sanitize_log.h: what the tasks were that the record no longer keeps, for reports. The sanitizer owns one pto_task_log. */
#ifndef PTO_SANITIZE_LOG_H
#define PTO_SANITIZE_LOG_H
#include "../record/state.h"

#pragma GCC visibility push(hidden)

typedef struct pto_task_log {
    int64_t *task;             /* [n] of a node; -1: none */
    int32_t *site;
    int64_t *begin;            /* [n + 1] in index */
    int64_t *index;
    int64_t n, n_index, task_capacity, site_capacity, begin_capacity, index_capacity;
} pto_task_log;

void pto_task_log_free(pto_task_log *log);
bool pto_task_log_add(pto_task_log *log, const pto_record *record);

#pragma GCC visibility pop

#endif
