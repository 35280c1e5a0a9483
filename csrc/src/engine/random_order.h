/* random_order.h: run the tasks of a graph in a legal order that a seed gives. */
#ifndef PTO_RANDOM_ORDER_H
#define PTO_RANDOM_ORDER_H
#include "state.h"

#pragma GCC visibility push(hidden)

int32_t pto_run_in_random_order(pto_worker *worker, uint64_t seed);        /* on the calling thread alone */

#pragma GCC visibility pop

#endif
