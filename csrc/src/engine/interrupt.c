/* interrupt.c: Ctrl-C while the caller's own thread runs tasks.

   The handler that the caller's language has installed only leaves a note, to be read when control comes back to it. So for the
   length of a run the signal cancels the run instead; one that came too late for that is raised again afterwards. */
#include <signal.h>
#include <stdatomic.h>

#include "../internal.h"

static _Atomic(pto_pool *) interruptible;      /* one at a time: only a process's main thread asks for it */
static int32_t *interrupts;            /* its pto_execute_options.cancel */
static volatile sig_atomic_t interrupted;
static struct sigaction before;

static void on_interrupt(int number)
{
    (void)number;
    interrupted = 1;
    pto_pool *pool = atomic_load(&interruptible);
    if (pool != NULL)
        pto_pool_cancel_run(pool, interrupts);
}

bool pto_interrupt_open(pto_pool *pool, int32_t *cancel)
{
    struct sigaction here = {.sa_handler = on_interrupt, .sa_flags = SA_RESTART};
    pto_pool *none = NULL;
    if (sigaction(SIGINT, NULL, &before) != 0)
        return false;
    bool handled = (before.sa_flags & SA_SIGINFO) || (before.sa_handler != SIG_IGN && before.sa_handler != SIG_DFL);
    if (!handled || !atomic_compare_exchange_strong(&interruptible, &none, pool))
        return false;
    interrupted = 0;
    interrupts = cancel;
    sigemptyset(&here.sa_mask);
    if (sigaction(SIGINT, &here, NULL) == 0)
        return true;
    atomic_store(&interruptible, NULL);
    return false;
}

void pto_interrupt_close(int32_t status)
{
    sigaction(SIGINT, &before, NULL);
    atomic_store(&interruptible, NULL);
    if (interrupted && status != PTO_E_CANCELLED)
        raise(SIGINT);
}
