/* interrupt.h: Ctrl-C during a call, on the main thread. */
#ifndef PTO_INTERRUPT_H
#define PTO_INTERRUPT_H
#include <stdbool.h>

#include "pto_wsp.h"

#pragma GCC visibility push(hidden)

/* From here on SIGINT cancels: it sets *cancel, and ends the run of the pool that has this cancel (NULL: there is none). False, and nothing
   changed: nobody handles the signal, or another call has it. */
bool pto_interrupt_open(pto_pool *pool, int32_t *cancel);
void pto_interrupt_close(int32_t status);                  /* back to what was; status: how the run ended */

#pragma GCC visibility pop

#endif
