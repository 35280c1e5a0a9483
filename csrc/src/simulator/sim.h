/* sim.h: the simulator, for a run that feeds it. The functions of pto_library.h make, feed and finish a simulation; a pto_sim belongs to
   whoever made it. */
#ifndef PTO_SIM_H
#define PTO_SIM_H
#include <stdint.h>

#include "pto_wsp.h"

#pragma GCC visibility push(hidden)

void pto_sim_watch(pto_sim *sim, const volatile int32_t *cancel);      /* not 0 ends the simulation; NULL: nothing does */
int64_t pto_sim_completed(const pto_sim *sim);             /* all nodes before this one have completed at its time */

#pragma GCC visibility pop

#endif
