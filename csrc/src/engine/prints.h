/* prints.h: pto_context.print of a run: what it does with the values that tasks print. */
#ifndef PTO_PRINTS_H
#define PTO_PRINTS_H
#include "state.h"

#pragma GCC visibility push(hidden)

/* Keep what a task prints. */
void pto_print_value(pto_context *context, int32_t statement, const void *data, int32_t elem_bytes, int64_t rows, int64_t cols,
                     int64_t row_step, int64_t col_step);

/* The same of a run whose prints nobody keeps. */
void pto_print_nothing(pto_context *context, int32_t statement, const void *data, int32_t elem_bytes, int64_t rows, int64_t cols,
                     int64_t row_step, int64_t col_step);

#pragma GCC visibility pop

#endif
