/* run.c: one run of a program: orchestrate, then execute, in chunks when there are more tasks than the record keeps.

   Below the cap no kernel runs before the orchestrator has finished or reads what tasks write (PTO_MARK_NOW), so a guard that
   fails first leaves every tensor as it was. Such a mark executes what has been recorded and not run, unless all that it waits
   for has run; the record keeps it.
   Past the cap each full chunk is executed, fed to the simulator and dropped. Without a pool nothing is executed: a caller who
   wants only the record, or only the simulation of a stream that is too long to keep, passes NULL. */
#include "../engine/interrupt.h"
#include "../engine/pool.h"
#include "../engine/ranks.h"
#include "../engine/wall.h"
#include "../record/record.h"
#include "../sanitizer/sanitize.h"
#include "../simulator/sim.h"
#include "execute.h"

typedef struct chunked_run {
    pto_pool *pool;
    const pto_run_options *options;
    pto_execute_result *result;
} chunked_run;

/* Execute what the record holds and has not run; results add up over pieces. */
static int32_t execute(pto_record *record, void *user)
{
    const chunked_run *run = user;
    const pto_run_options *o = run->options;
    if (pto_pool_cancelled(run->pool))
        return PTO_E_CANCELLED;
    if (o->execute.sanitizer != NULL) {
        int32_t found = pto_sanitize_piece(o->execute.sanitizer, record);
        if (found != PTO_OK)
            return found;
    }
    pto_execute_result piece;
    int32_t status = pto_execute_held(run->pool, record, &record->done, o->kernels, o->n_kernels, &o->execute, &piece);
    record->done = (pto_done){record->n_nodes, record->n_tasks, record->total_cost};
    run->result->n_run += piece.n_run;
    run->result->failed_task = piece.failed_task;
    run->result->failed_guard = piece.failed_guard;
    run->result->fault = piece.fault;
    if (piece.threads > run->result->threads)
        run->result->threads = piece.threads;
    if (status == PTO_OK && o->execute.ranks != NULL)
        pto_ranks_spread(o->execute.ranks);
    return status;
}

static int32_t finish_chunk(pto_record *record, chunked_run *run, bool feeds)
{
    int32_t status = run->pool != NULL ? execute(record, run) : PTO_OK;
    if (status != PTO_OK || !feeds)
        return status;
    if (run->options->on_chunk != NULL) {
        pto_columns columns;
        pto_record_columns(record, &columns);
        return run->options->on_chunk(&columns, run->options->user);
    }
    return run->options->sim != NULL ? pto_sim_feed(run->options->sim, record) : status;
}

static int32_t chunk_is_full(pto_record *record, void *user)
{
    const chunked_run *run = user;
    int32_t status = finish_chunk(record, user, true);
    /* natively all has run; in simulated time what other streams have been fed may be far behind */
    record->completed_node = run->options->sim != NULL ? pto_sim_completed(run->options->sim) : INT64_MAX;
    if (status == PTO_OK && run->options->execute.sanitizer != NULL)
        status = pto_sanitize_dropped(run->options->execute.sanitizer, record);
    return status;
}

static int32_t orchestrate(pto_record *record, chunked_run *run)
{
    pto_record_reset(record);
    record->on_full = chunk_is_full;
    record->on_now = run->pool != NULL ? execute : NULL;
    record->hook_user = run;
    const pto_ranks *ranks = run->options->execute.ranks;
    record->skips_now = run->pool != NULL && ranks == NULL && run->options->execute.sanitizer == NULL;   /* ranks execute as many pieces */
    record->shift_bytes = record->shifted_by = ranks != NULL ? ranks->options.own_shift_bytes : NULL;
    int32_t status = run->options->orchestrate(run->options->bindings, &record->sink);
    record->on_full = record->on_now = NULL;
    record->skips_now = false;
    record->hook_user = NULL;
    record->shift_bytes = NULL;
    return record->sink.status != PTO_OK ? record->sink.status : status;
}

int32_t pto_run(pto_pool *pool, pto_record *record, const pto_run_options *options, pto_execute_result *result)
{
    *result = (pto_execute_result){.failed_task = -1, .threads = 1};
    if (options->execute.sanitizer != NULL) {
        if (pool == NULL || options->orchestrate == NULL || options->execute.order_seed == 0 || options->execute.wall != NULL)
            return PTO_E_ARGUMENT;
        int32_t started = pto_sanitize_start(options->execute.sanitizer);
        if (started != PTO_OK)
            return started;
    }
    chunked_run run = {pool, options, result};
    int32_t status = PTO_OK;
    int32_t own = 0, *cancel = options->execute.cancel != NULL ? options->execute.cancel : &own;
    bool interruptible = options->interruptible && pto_interrupt_open(pool, cancel);
    if (pool != NULL) {
        if (!pto_pool_hold(pool, cancel)) {
            if (interruptible)
                pto_interrupt_close(PTO_E_CANCELLED);
            return PTO_E_CANCELLED;
        }
        if (options->execute.wall != NULL)
            pto_wall_start(options->execute.wall);
    }
    if (options->execute.ranks != NULL)
        pto_ranks_start(options->execute.ranks);
    record->sink.cancel = cancel;
    if (options->sim != NULL)
        pto_sim_watch(options->sim, cancel);
    if (options->orchestrate != NULL)
        status = orchestrate(record, &run);
    else if (record->first_node > 0)
        status = PTO_E_ARGUMENT;       /* its first chunks are gone */
    else
        pto_arena_poison(&record->arena);
    if (status == PTO_OK)
        status = finish_chunk(record, &run, record->first_node > 0);
    record->done = (pto_done){0};
    record->sink.cancel = &pto_never_cancelled;
    if (options->sim != NULL)
        pto_sim_watch(options->sim, NULL);
    if (interruptible)
        pto_interrupt_close(status);
    if (pool != NULL)
        pto_pool_release(pool);
    return status;
}
