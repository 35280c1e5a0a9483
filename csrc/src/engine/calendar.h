/* calendar.h: running a record strictly by its calendar. The record's graph owns the lists. */
#ifndef PTO_CALENDAR_H
#define PTO_CALENDAR_H
#include "state.h"

#pragma GCC visibility push(hidden)

int32_t pto_lists_take(pto_pool *pool, const pto_record *record);        /* a copy in pool->start, by the ranges of workers */
bool pto_worker_follow(pto_worker *worker);                /* run its list to the end; false if nothing is left of it */

#pragma GCC visibility pop

#endif
