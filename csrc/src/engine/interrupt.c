/* interrupt.c: Ctrl-C while the caller's own thread makes tasks, runs them or simulates them.

   The handler that the caller's language has installed only leaves a note, to be read when control comes back to it. So for the
   length of a call the signal cancels it instead; one that came too late for that is raised again afterwards. */
#include "interrupt.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

static _Atomic(int32_t *) interrupts;  /* what a call looks at; one at a time: only a process's main thread asks for it */
static _Atomic(pto_pool *) interrupted_pool;
static volatile sig_atomic_t interrupted;
static struct sigaction before;

static void on_interrupt(int number)
{
    (void)number;
    int before_it = errno;
    interrupted = 1;
    int32_t *cancel = atomic_load(&interrupts);
    pto_pool *pool = atomic_load(&interrupted_pool);
    if (pool != NULL)
        pto_pool_cancel_run(pool, cancel);
    else if (cancel != NULL)
        __atomic_store_n(cancel, 1, __ATOMIC_SEQ_CST);
    errno = before_it;
}

bool pto_interrupt_open(pto_pool *pool, int32_t *cancel)
{
    struct sigaction here = {.sa_handler = on_interrupt, .sa_flags = SA_RESTART}, now;
    int32_t *none = NULL;
    if (sigaction(SIGINT, NULL, &now) != 0)
        return false;
    bool handled = (now.sa_flags & SA_SIGINFO) || (now.sa_handler != SIG_IGN && now.sa_handler != SIG_DFL);
    if (!handled || !atomic_compare_exchange_strong(&interrupts, &none, cancel))
        return false;      /* a call within a call, as the simulation of a record that is full: `before` is the outer call's */
    before = now;
    interrupted = 0;
    atomic_store(&interrupted_pool, pool);
    sigemptyset(&here.sa_mask);
    if (sigaction(SIGINT, &here, NULL) == 0)
        return true;
    atomic_store(&interrupted_pool, NULL);
    atomic_store(&interrupts, NULL);
    return false;
}

void pto_interrupt_close(int32_t status)
{
    sigaction(SIGINT, &before, NULL);
    atomic_store(&interrupted_pool, NULL);
    atomic_store(&interrupts, NULL);
    if (interrupted && status != PTO_E_CANCELLED)
        raise(SIGINT);
}
