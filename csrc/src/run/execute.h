/* execute.h: run the tasks of a record on a pool that the caller holds. */
#ifndef PTO_EXECUTE_H
#define PTO_EXECUTE_H
#include "../record/state.h"

#pragma GCC visibility push(hidden)

/* Run the tasks behind `done`, which have not run; the rest has. */
int32_t pto_execute_held(pto_pool *pool, const pto_record *record, const pto_done *done, const pto_kernel *kernels,
                         int32_t n_kernels, const pto_execute_options *options, pto_execute_result *result);

#pragma GCC visibility pop

#endif
