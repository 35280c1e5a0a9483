/* run.c: one run of a program: orchestrate, then execute, in chunks when there are more tasks than the record keeps.

   Below the cap no kernel runs before the orchestrator has finished, so a guard that fails leaves every tensor as it was.
   Past it each full chunk is executed, fed to the simulator and dropped. Without a pool nothing is executed: a caller who
   wants only the record, or only the simulation of a stream that is too long to keep, passes NULL. */
#include "internal.h"

typedef struct chunked_run {
    pto_pool *pool;
    const pto_run_options *options;
    pto_execute_result *result;
} chunked_run;

/* Execute and feed what the record holds; results add up over chunks. */
static int32_t finish_chunk(pto_record *record, chunked_run *run, bool feeds)
{
    const pto_run_options *o = run->options;
    if (run->pool != NULL) {
        if (pto_pool_cancelled(run->pool))
            return PTO_E_CANCELLED;
        pto_execute_result chunk;
        int32_t status = pto_execute_held(run->pool, record, o->kernels, o->n_kernels, &o->execute, &chunk);
        run->result->n_run += chunk.n_run;
        run->result->failed_task = chunk.failed_task;
        run->result->failed_guard = chunk.failed_guard;
        run->result->fault = chunk.fault;
        if (chunk.threads > run->result->threads)
            run->result->threads = chunk.threads;
        if (status != PTO_OK)
            return status;
    }
    return feeds && o->sim != NULL ? pto_sim_feed(o->sim, record) : PTO_OK;
}

static int32_t chunk_is_full(pto_record *record, void *user)
{
    return finish_chunk(record, user, true);
}

static int32_t orchestrate(pto_record *record, chunked_run *run)
{
    pto_record_reset(record);
    record->on_full = chunk_is_full;
    record->on_full_user = run;
    int32_t status = run->options->orchestrate(run->options->bindings, &record->sink);
    record->on_full = NULL;
    record->on_full_user = NULL;
    return record->sink.status != PTO_OK ? record->sink.status : status;
}

int32_t pto_run(pto_pool *pool, pto_record *record, const pto_run_options *options, pto_execute_result *result)
{
    *result = (pto_execute_result){.failed_task = -1, .threads = 1};
    chunked_run run = {pool, options, result};
    int32_t status = PTO_OK;
    bool interruptible = false;
    if (pool != NULL) {
        pto_pool_hold(pool);
        interruptible = options->interruptible && pto_interrupt_open(pool);
    }
    if (options->orchestrate != NULL)
        status = orchestrate(record, &run);
    else if (record->first_task > 0)
        status = PTO_E_ARGUMENT;       /* its first chunks are gone */
    if (status == PTO_OK)
        status = finish_chunk(record, &run, record->first_task > 0);
    if (interruptible)
        pto_interrupt_close(status);
    if (pool != NULL)
        pto_pool_release(pool);
    return status;
}
