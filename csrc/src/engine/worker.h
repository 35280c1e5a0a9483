/* worker.h: what a worker does in a run: find a node, run it, release its successors. */
#ifndef PTO_WORKER_H
#define PTO_WORKER_H
#include "state.h"

#pragma GCC visibility push(hidden)

bool pto_worker_work(pto_worker *worker);                  /* run what can be found; false if nothing was */

#pragma GCC visibility pop

#endif
