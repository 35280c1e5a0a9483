/* sim_routes.h: which links a copy between two ranks takes, one after another, by the rules of pto_sim_options.

   A link is the queue of its pool and of the first worker of its rank. Ranks are counted row-major over the axes of a torus. */
#ifndef PTO_SIM_ROUTES_H
#define PTO_SIM_ROUTES_H
#include <stdbool.h>
#include <stdint.h>

#include "pto_wsp.h"

#pragma GCC visibility push(hidden)

#define PTO_RANKS_FACTOR 65536         /* of the rank that a copy reads from, in pto_columns.task_ranks */

int64_t pto_sim_n_links(const pto_sim_options *options, int64_t source, int64_t target);       /* of a route; 0: they are one rank */
int64_t pto_sim_first_link(const pto_sim_options *options, int64_t source, int64_t target);    /* its queue; they are not one rank */
/* The queue of the link behind `link` on the route to rank `target`; -1: `link` leads to `target`. */
int64_t pto_sim_next_link(const pto_sim_options *options, int64_t link, int64_t target);

#pragma GCC visibility pop

#endif
