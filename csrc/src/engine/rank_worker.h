/* rank_worker.h: worker 0 of a run of one rank's part: it hands copies that are ready to the caller's function, and goes on from those that
   have ended. It runs no task but small ones, whose neighbours are copies; the other workers find all the rest in its deque. Without others it
   runs the rest as well, and looks at copies between two tasks. A copy is in nobody's way until it ends. */
#ifndef PTO_RANK_WORKER_H
#define PTO_RANK_WORKER_H
#include "state.h"

#pragma GCC visibility push(hidden)

void pto_rank_worker_work(pto_worker *worker);             /* worker 0's part of the run that is open, to its end */

#pragma GCC visibility pop

#endif
