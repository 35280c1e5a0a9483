/* record.h: a record as a run sees it, beside the functions of pto_library.h. */
#ifndef PTO_RECORD_H
#define PTO_RECORD_H
#include "state.h"

#pragma GCC visibility push(hidden)

extern const volatile int32_t pto_never_cancelled;         /* the cancel flag of a sink outside a run */

/* The graph of the nodes from `begin` on, built when it is stale; the record owns it. */
int32_t pto_record_graph(const pto_record *record, int64_t begin, const pto_graph **out);

#pragma GCC visibility pop

#endif
