/* columns.h: how the columns of a record grow: to at least so many rows; false without memory. The record owns them. */
#ifndef PTO_COLUMNS_H
#define PTO_COLUMNS_H
#include "state.h"

#pragma GCC visibility push(hidden)

bool pto_record_grow_tasks(pto_record *record, int64_t need);
bool pto_record_grow_nodes(pto_record *record, int64_t need);
bool pto_record_grow_edges(pto_record *record, int64_t need);
bool pto_record_grow_marks(pto_record *record, int64_t need);
bool pto_record_grow_values(pto_record *record, int64_t n_args, int64_t n_scalars, int64_t n_index);
void pto_record_free_columns(pto_record *record);

#pragma GCC visibility pop

#endif
