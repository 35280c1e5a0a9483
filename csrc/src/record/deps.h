/* deps.h: dependency inference: which earlier tasks a task conflicts with. pto_deps_new gives a map that the caller owns. Nodes and tasks
   by absolute number; regions in bytes. */
#ifndef PTO_DEPS_H
#define PTO_DEPS_H
#include "edges.h"
#include "shapes.h"

#pragma GCC visibility push(hidden)

typedef struct pto_deps pto_deps;

pto_deps *pto_deps_new(bool prunes);                       /* without: pto_deps_prune does nothing */
void pto_deps_free(pto_deps *deps);
void pto_deps_reset(pto_deps *deps);
/* Add to `edges` every earlier access that conflicts with this task, then enter the task's own. shapes[i] goes with
   args[i]. */
int32_t pto_deps_submit(pto_deps *deps, int64_t node, int64_t task, int32_t n_args, const pto_arg *args,
                        const pto_shape *const *shapes, pto_edges *edges);
/* Add to `edges` the latest writers of what a mark reads. The read is not entered: it is over when the mark is. */
int32_t pto_deps_read(pto_deps *deps, int32_t n_args, const pto_arg *args, const pto_shape *const *shapes, pto_edges *edges);
/* Forget the accesses, from the oldest on, of tasks before first_task that are nodes before first_node. */
void pto_deps_prune(pto_deps *deps, int64_t first_task, int64_t first_node);
void pto_deps_forget(pto_deps *deps, int32_t buffer);      /* forget an alias group: no later task is of it */

#pragma GCC visibility pop

#endif
