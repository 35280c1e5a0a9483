/* run.c: one run of a saved program: bind, make the tasks, run them, simulate them. */
#define _GNU_SOURCE            /* sched_getaffinity */
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#if defined __linux__
#include <sched.h>
#include <sys/syscall.h>
#endif

#include "program.h"

#define EXPORTED __attribute__((visibility("default")))

EXPORTED const char *pto_program_name(const pto_program *p)
{
    return p->name;
}

EXPORTED int32_t pto_program_tensors(const pto_program *p, const pto_program_tensor **out)
{
    *out = p->tensors;
    return p->n_tensors;
}

EXPORTED int32_t pto_program_symbols(const pto_program *p, const pto_program_symbol **out)
{
    *out = p->symbols;
    return p->n_symbols;
}

static int32_t usable_cpus(void)
{
#if defined __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return CPU_COUNT(&set);
#endif
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int32_t)n : 1;
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* A process's first thread, which is given signals: Python's main one. Elsewhere than on Linux nobody says which that is. */
static bool is_main_thread(void)
{
#if defined __linux__
    return syscall(SYS_gettid) == getpid();
#else
    return false;
#endif
}

/* Feed what the record holds, where it holds all, and drain. */
static int32_t simulate(const pto_record *record, pto_sim *sim, pto_sim_result *timed)
{
    pto_columns columns;
    pto_record_columns(record, &columns);
    int32_t status = columns.first_node == 0 ? pto_sim_feed(sim, record) : PTO_OK;
    memset(timed, 0, sizeof *timed);
    timed->failed_task = -1;
    int32_t finished = pto_sim_finish(sim, timed);
    return status != PTO_OK ? status : finished;
}

/* It ended at a task: its window had no room, or its cycles do not fit 64 bits. */
static bool is_of_simulator(int32_t status)
{
    return status == PTO_E_WINDOW || status == PTO_E_OVERFLOW;
}

static int32_t refuse_simulator(pto_program_result *r)
{
    return pto_refuse(r, PTO_E_NOMEM, "no memory for the simulator");
}

/* Make the stream and simulate it before a kernel runs, where that may find that it cannot be run: nothing has been touched then. */
static int32_t rehearse(const pto_program *p, const pto_run_options *options, pto_record *record, pto_program_result *r)
{
    pto_sim *sim = pto_sim_new(&p->sim);
    if (sim == NULL)
        return refuse_simulator(r);
    const pto_run_options rehearsal = {.orchestrate = options->orchestrate, .bindings = options->bindings, .sim = sim,
                                       .interruptible = options->interruptible};
    pto_execute_result none;
    pto_sim_result timed;
    int32_t status = pto_run(NULL, record, &rehearsal, &none);
    if (status == PTO_E_CANCELLED)
        pto_refuse(r, status, "interrupted");
    bool is_made = status == PTO_OK || is_of_simulator(status);
    if (is_made)
        status = simulate(record, sim, &timed);
    if (is_of_simulator(status))
        pto_tell_ended(p, record, status, &timed, r);
    else if (status == PTO_E_DEADLOCK && is_made)
        pto_refuse(r, status, "the calendar does not fit the tasks of this run: an executor would wait for a task that stands behind its own");
    pto_sim_free(sim);
    return r->status;       /* of anything else the run itself finds the same, and says what it is */
}

/* Run the tasks, and tell what became of them. The simulator may have been fed on the way, and found a full window then. */
static int32_t run_tasks(const pto_program *p, const pto_run_options *options, pto_pool *pool, pto_record *record, pto_program_result *r)
{
    pto_execute_result run;
    pto_sim_result timed;
    memset(&run, 0, sizeof run);
    double started = now_ms();
    int32_t status = pto_run(pool, record, options, &run);
    r->run_ms = now_ms() - started;
    r->threads = run.threads;
    if (status != PTO_OK && !is_of_simulator(status))
        return pto_tell_failure(p, status, record, &run, r);
    status = simulate(record, options->sim, &timed);
    r->n_tasks = timed.n_tasks;
    r->total_cycles = timed.total_cycles;
    if (is_of_simulator(status))
        return pto_tell_ended(p, record, status, &timed, r);
    if (status == PTO_E_CANCELLED)
        return pto_refuse(r, status, "interrupted");
    return status == PTO_OK ? PTO_OK : pto_refuse(r, status, "the simulation ended with status %d", status);
}

static bool may_abort(const pto_sim_options *sim)
{
    bool any = sim->window_mode == PTO_WINDOW_ABORT;
    for (int32_t i = 0; i < sim->n_more; i++)
        any |= sim->more[i].mode == PTO_WINDOW_ABORT;
    return any;
}

static int32_t run_bound(const pto_program *p, const pto_bound *bound, pto_pool *pool, pto_record *record, pto_program_result *r)
{
    bool is_calendar = p->sim.is_calendar != 0;
    pto_sim_options simulated = p->sim;
    simulated.interruptible = is_main_thread();
    pto_sim *sim = pto_sim_new(&simulated);
    if (sim == NULL)
        return refuse_simulator(r);
    const pto_bindings bindings = {bound->tensors, bound->symbols, p->n_tensors, p->n_symbols};
    const pto_run_options options = {.orchestrate = p->artifact->orchestrate, .bindings = &bindings, .kernels = p->artifact->kernels,
                                     .n_kernels = p->artifact->n_kernels, .sim = sim, .execute = p->execute,
                                     .interruptible = is_main_thread()};
    int32_t status = is_calendar || may_abort(&p->sim) ? rehearse(p, &options, record, r) : PTO_OK;
    if (status == PTO_OK)
        status = run_tasks(p, &options, pool, record, r);
    pto_sim_free(sim);
    return status;
}

EXPORTED int32_t pto_program_run(const pto_program *p, const pto_program_array *arrays, const pto_program_value *values, int32_t threads,
                                 pto_program_result *r)
{
    memset(r, 0, sizeof *r);
    if (threads < 0 || threads > 1024)
        return pto_refuse(r, PTO_E_ARGUMENT, "threads is %d: expected 1 .. 1024, or 0 for all that this process may use", threads);
    pto_bound bound = {0};
    pto_pool *pool = NULL;
    pto_record *record = NULL;
    int32_t status = pto_bind_program(p, arrays, values, &bound, r);
    if (status == PTO_OK) {
        pool = pto_pool_new(threads > 0 ? threads : usable_cpus());
        record = pto_record_new(&p->record);
        status = pool != NULL && record != NULL
                     ? run_bound(p, &bound, pool, record, r)
                     : pto_refuse(r, PTO_E_NOMEM, "no memory, or no thread, for a run");
    }
    pto_record_free(record);
    if (pool != NULL)
        pto_pool_free(pool);
    pto_unbind(p, &bound);
    if (status == PTO_E_CANCELLED)
        raise(SIGINT);         /* what ended the run: for the handler that was there before */
    return r->status = status;
}
