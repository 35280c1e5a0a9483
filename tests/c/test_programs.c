/* test_programs.c: several programs at once: on pools of their own, on one that they share, one record on two pools; cancelling one of
   them, and threads that do not start. */
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { N_PROGRAMS = 4, N_CELLS = 64, N_STEPS = 30 };

typedef struct program {
    pto_record *record;
    pto_pool *pool;
    int64_t cells[N_CELLS];
    int32_t cancel;
    int32_t ways;                      /* of these it takes turns: plainly, by calendar, at home, by priority */
    int32_t n_wrong;
} program;

static program programs[N_PROGRAMS];

/* scalars: the cell, what to add; it also takes in its left neighbour */
static int32_t step(const pto_arg *args, const int64_t *scalars, char *scratch, pto_context *context)
{
    (void)scratch, (void)context;
    uint64_t *cell = (uint64_t *)args[0].data;
    *cell = *cell * 3 + *(uint64_t *)args[1].data + (uint64_t)scalars[0];
    return 0;
}

static int n_naps, may_go;

static int32_t nap(const pto_arg *args, const int64_t *scalars, char *scratch, pto_context *context)
{
    (void)args, (void)scalars, (void)scratch, (void)context;
    __atomic_fetch_add(&n_naps, 1, __ATOMIC_RELAXED);
    while (!__atomic_load_n(&may_go, __ATOMIC_SEQ_CST))
        nanosleep(&(struct timespec){0, 100000}, NULL);
    return 0;
}

static const pto_kernel kernels[] = {{step, 0}, {nap, 0}};

static pto_arg cell(program *p, int64_t at, int32_t flags)
{
    return (pto_arg){.data = (char *)&p->cells[at], .extent = {1, 1}, .stride = {1, 1}, .elem_bytes = 8, .flags = flags};
}

static void make(program *p, int64_t shift, bool naps)
{
    p->record = pto_record_new(&(pto_record_options){.infer = 1, .keep = PTO_KEEP_POSITION | PTO_KEEP_PRIORITY});
    pto_sink *sink = pto_record_sink(p->record);
    for (int64_t i = 0; i < N_STEPS * N_CELLS; i++) {
        int64_t at = i % N_CELLS, add = i + shift;
        pto_arg args[2] = {cell(p, at, PTO_READ | PTO_WRITE), cell(p, (at + N_CELLS - 1) % N_CELLS, PTO_READ)};
        sink->submit(sink, &(pto_task){.kernel = naps && i % 64 == 0, .worker = at % 3, .position = i, .priority = at % 4, .cost = 100, .n_args = 2,
                                       .args = args, .n_scalars = 1, .scalars = &add});
    }
}

static void expected_of(int64_t shift, int64_t *cells)
{
    memset(cells, 0, N_CELLS * 8);
    for (int64_t i = 0; i < N_STEPS * N_CELLS; i++)
        cells[i % N_CELLS] = (int64_t)((uint64_t)cells[i % N_CELLS] * 3 + (uint64_t)cells[(i + N_CELLS - 1) % N_CELLS] +
                                       (uint64_t)(i + shift));
}

static void *run_often(void *user)
{
    static const int32_t places[] = {PTO_PLACE_ANY, PTO_PLACE_CALENDAR, PTO_PLACE_HOME, PTO_PLACE_HOME};
    program *p = user;
    int64_t expected[N_CELLS];
    expected_of(p - programs, expected);
    for (int32_t i = 0; i < CASES(15); i++) {
        pto_execute_result result;
        memset(p->cells, 0, sizeof p->cells);
        pto_execute_options options = {.places = places[i % p->ways], .by_priority = i % p->ways == 3, .cancel = &p->cancel};
        int32_t status = pto_execute(p->pool, p->record, kernels, 2, &options, &result);
        p->n_wrong += status != PTO_OK || result.n_run != N_STEPS * N_CELLS || memcmp(p->cells, expected, sizeof expected) != 0;
    }
    return NULL;
}

static void programs_do_not_disturb_one_another(void)
{
    pto_pool *shared = pto_pool_new(2);
    for (int32_t own = 0; own < 3; own++) {
        pthread_t threads[N_PROGRAMS];
        for (int32_t i = 0; i < N_PROGRAMS; i++) {
            programs[i] = (program){.pool = own == 1 || (own == 2 && i % 2) ? pto_pool_new(1 + i) : shared, .ways = 1 + i};
            make(&programs[i], i, false);
        }
        for (int32_t i = 0; i < N_PROGRAMS; i++)
            pthread_create(&threads[i], NULL, run_often, &programs[i]);
        for (int32_t i = 0; i < N_PROGRAMS; i++) {
            pthread_join(threads[i], NULL);
            CHECK_EQ(programs[i].n_wrong, 0);
            pto_record_free(programs[i].record);
            if (programs[i].pool != shared)
                pto_pool_free(programs[i].pool);
        }
    }
    pto_pool_free(shared);
}

/* ---- cancelling ---- */

static void *run_once(void *user)
{
    program *p = user;
    pto_execute_result result;
    p->n_wrong = pto_execute(p->pool, p->record, kernels, 2, &(pto_execute_options){.cancel = &p->cancel}, &result);
    return NULL;
}

/* One runs until the cancel has been said, two wait for its pool: who is cancelled ends, whether it runs or waits, and nobody else. */
static void only_the_run_that_is_cancelled_ends(void)
{
    pto_pool *pool = pto_pool_new(2);
    for (int32_t victim = 0; victim < 3; victim++) {
        pthread_t threads[3];
        n_naps = may_go = 0;
        for (int32_t i = 0; i < 3; i++) {
            programs[i] = (program){.pool = pool};
            make(&programs[i], i, i == 0);
            pthread_create(&threads[i], NULL, run_once, &programs[i]);
            while (i == 0 && __atomic_load_n(&n_naps, __ATOMIC_RELAXED) == 0)
                nanosleep(&(struct timespec){0, 100000}, NULL);
        }
        pto_pool_cancel_run(pool, &programs[victim].cancel);
        __atomic_store_n(&may_go, 1, __ATOMIC_SEQ_CST);
        for (int32_t i = 0; i < 3; i++) {
            pthread_join(threads[i], NULL);
            CHECK_EQ(programs[i].n_wrong, i == victim ? PTO_E_CANCELLED : PTO_OK);
        }
        programs[victim].cancel = 0;
        run_once(&programs[victim]);   /* the next run works */
        CHECK_EQ(programs[victim].n_wrong, PTO_OK);
        for (int32_t i = 0; i < 3; i++)
            pto_record_free(programs[i].record);
    }
    pto_pool_free(pool);
}

/* ---- threads that do not start ---- */

#ifndef PTO_TEST_SLOW
static int64_t address_space_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long pages = 0;
    if (file == NULL || fscanf(file, "%ld", &pages) != 1)
        pages = 0;
    if (file != NULL)
        fclose(file);
    return pages * (int64_t)sysconf(_SC_PAGESIZE);
}

/* In a process of its own, without room for the stacks of threads. */
static int without_room(void)
{
    struct rlimit before, limit;
    getrlimit(RLIMIT_AS, &before);
    limit = before;
    limit.rlim_cur = (rlim_t)address_space_bytes() + (12 << 20);
    if (setrlimit(RLIMIT_AS, &limit) != 0)
        return 1;
    if (pto_pool_new(16) != NULL)      /* the first threads may start, and end again */
        return 2;
    pto_pool *alone = pto_pool_new(1);
    if (alone == NULL)
        return 3;
    pto_pool_free(alone);
    setrlimit(RLIMIT_AS, &before);
    pto_pool *pool = pto_pool_new(3);
    if (pool == NULL)
        return 4;
    programs[0] = (program){.pool = pool, .ways = 4};
    make(&programs[0], 0, false);
    run_often(&programs[0]);
    return programs[0].n_wrong == 0 ? 0 : 5;
}
#endif

static void threads_that_do_not_start_are_told(void)
{
#ifndef PTO_TEST_SLOW
    int status = -1;
    if (address_space_bytes() == 0)
        return;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(without_room());
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
#endif
}

int main(void)
{
    static const check_test tests[] = {TEST(programs_do_not_disturb_one_another), TEST(only_the_run_that_is_cancelled_ends),
                                       TEST(threads_that_do_not_start_are_told)};
    return RUN_TESTS(tests);
}
