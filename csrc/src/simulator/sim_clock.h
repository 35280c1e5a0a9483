/* sim_clock.h: the event clock of a simulation: virtual time, the events to come, the start of the executors, and the first error.

   Ownership: pto_sim owns the clock, the clock owns the memory of its events. The other parts hold a pointer to the clock: they add
   events; sim.c alone moves `now` and takes what is due. Units: times and durations in cycles, from 0 on. A sum that is too large is
   INT64_MAX, which no time reaches: the simulation ends there. */
#ifndef PTO_SIM_CLOCK_H
#define PTO_SIM_CLOCK_H
#include "pto_wsp.h"
#include "sim_heap.h"

#pragma GCC visibility push(hidden)

typedef enum pto_sim_event {
    PTO_SIM_TASK_ENDS,         /* id: its executor */
    PTO_SIM_SERVICE_ENDS,      /* id: the worker that dispatches or retires a task */
    PTO_SIM_DELAY_ENDS,        /* id: the node of a mark */
    PTO_SIM_EDGE_ARRIVES,      /* id: the link, from a worker of a grid to another one */
    PTO_SIM_SUBMISSION_ENDS,   /* id: the stream that has been busy with a task */
    PTO_SIM_START_COMES,       /* id: the executor whose task waits for the start that a calendar gives it */
    PTO_SIM_N_EVENTS
} pto_sim_event;

typedef struct pto_sim_clock {
    int64_t now;
    bool is_started;           /* executors may run */
    int64_t start_time;        /* when is_started became true */
    pto_sim_heap events[PTO_SIM_N_EVENTS];
    int32_t status;            /* the first error: a simulation that lost a task cannot go on */
    int64_t failed_task;       /* the task that the status is about; -1: none in particular */
    const volatile int32_t *cancel;    /* borrowed; not 0 ends the simulation */
    int32_t own_cancel;        /* while no run has brought a `cancel` */
} pto_sim_clock;

void pto_sim_clock_close(pto_sim_clock *clock);

static inline int64_t pto_sim_add(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static inline void pto_sim_start(pto_sim_clock *clock)     /* executors run from now on */
{
    clock->is_started = true;
    clock->start_time = clock->now;
}

static inline int64_t pto_sim_clock_next(const pto_sim_clock *clock)       /* the time of the earliest event, -1: there is none */
{
    int64_t next = -1;
    for (int event = 0; event < PTO_SIM_N_EVENTS; event++) {
        const pto_sim_heap *heap = &clock->events[event];
        if (heap->n > 0 && (next < 0 || heap->data[0].time < next))
            next = heap->data[0].time;
    }
    return next;
}

static inline bool pto_sim_clock_cancelled(pto_sim_clock *clock)       /* then the simulation has ended */
{
    if (__atomic_load_n(clock->cancel, __ATOMIC_RELAXED) == 0)
        return false;
    if (clock->status == PTO_OK)
        clock->status = PTO_E_CANCELLED;
    return true;
}

static inline bool pto_sim_clock_is_due(const pto_sim_clock *clock, pto_sim_event event)
{
    return clock->events[event].n > 0 && clock->events[event].data[0].time <= clock->now;
}

static inline int64_t pto_sim_clock_take(pto_sim_clock *clock, pto_sim_event event)    /* the id of the earliest event of a kind */
{
    return pto_sim_heap_pop(&clock->events[event]).id;
}

/* The functions below return false, so that a caller can fail and return at once. */
static inline bool pto_sim_fail_at(pto_sim_clock *clock, int32_t status, int64_t task)
{
    clock->status = status;
    clock->failed_task = task;
    return false;
}

static inline bool pto_sim_fail(pto_sim_clock *clock)      /* no memory */
{
    clock->status = PTO_E_NOMEM;
    return false;
}

static inline bool pto_sim_clock_add(pto_sim_clock *clock, pto_sim_event event, int64_t time, int64_t id)      /* false: no memory */
{
    return pto_sim_heap_push(&clock->events[event], (pto_sim_entry){time, id}) || pto_sim_fail(clock);
}

/* Add to a reported sum of cycles. `task`: whose cycles they are, -1 for none in particular. False: the sum is too large. */
static inline bool pto_sim_count(pto_sim_clock *clock, int64_t *sum, int64_t cycles, int64_t task)
{
    return !__builtin_add_overflow(*sum, cycles, sum) || pto_sim_fail_at(clock, PTO_E_OVERFLOW, task);
}

#pragma GCC visibility pop

#endif
