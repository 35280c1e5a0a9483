/* sim_clock.c: the event clock, see sim_clock.h. */
#include "sim_clock.h"

#include <stdlib.h>

void pto_sim_clock_close(pto_sim_clock *clock)
{
    for (int event = 0; event < PTO_SIM_N_EVENTS; event++)
        free(clock->events[event].data);
}
