/* test_ranks.c: two ranks of one program, each a pool in this process with memory and a record of its own. Copies go through a mailbox that
   does what MPI may do: a receive's memory is undefined from the begin on, a send is read late, and ends come late and in any order. Each
   kernel checks its inputs, so that a copy that begins too early or ends before its data is there shows. */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "check.h"

enum { CELLS = 48, OWN = 8, MAX_STEPS = 8000, WIDE = 6000, PATIENCE_S = 10, MAX_DELAY = 4, STATUS_BYTES = 24 };

/* What one process holds: it uses the cells of its rank alone, of the others it knows only where they would be. */
typedef struct memory {
    int64_t cells[2][CELLS];   /* by rank */
    int64_t whole[OWN];        /* an array that every rank has: see OWN_COPY */
    int64_t read[2][OWN];      /* by rank, what control reads: all copies become this rank's */
} memory;

enum { MIX, SMALL, COPY, OWN_COPY, LOOK, N_KERNELS };

typedef struct step {
    int32_t kernel, rank, source;      /* source -1: no copy between ranks */
    int64_t from, to, n, stride;       /* cells, n of them; LOOK has no `to` */
    int64_t salt, expected, nap;
} step;

static step steps[MAX_STEPS];
static int64_t n_steps, fails_at;
static bool naps;                      /* of the shape: kernels sleep now and then */
static memory reference[2], at_start[2], found[2];
static pto_pool *pools[2][5];          /* by rank and threads */

static uint64_t hash(const pto_arg *arg, uint64_t sum)
{
    for (int64_t i = 0; i < arg->extent[1]; i++)
        sum = sum * 31 + (uint64_t)((int64_t *)arg->data)[i * arg->stride[1]];
    return sum;
}

static void nap(int64_t microseconds)
{
    if (microseconds > 0)
        nanosleep(&(struct timespec){0, microseconds * 1000}, NULL);
}

/* ---- kernels ---- */

/* Not commutative. Fails when its inputs are not what they are in program order. */
static int32_t mix(const pto_arg *args, const int64_t *scalars, char *scratch, pto_context *context)
{
    (void)scratch, (void)context;
    uint64_t sum = hash(&args[1], hash(&args[0], (uint64_t)scalars[0]));
    if ((int64_t)sum != scalars[1])
        return 1;
    nap(scalars[2]);
    for (int64_t i = 0; i < args[1].extent[1]; i++)
        ((int64_t *)args[1].data)[i * args[1].stride[1]] = (int64_t)(sum * 7 + (uint64_t)i);
    return 0;
}

static int32_t copy(const pto_arg *args, const int64_t *scalars, char *scratch, pto_context *context)
{
    (void)scalars, (void)scratch, (void)context;
    for (int64_t i = 0; i < args[1].extent[1]; i++)
        ((int64_t *)args[1].data)[i * args[1].stride[1]] = ((int64_t *)args[0].data)[i * args[0].stride[1]];
    return 0;
}

static int32_t look(const pto_arg *args, const int64_t *scalars, char *scratch, pto_context *context)
{
    (void)scratch, (void)context;
    nap(scalars[2]);
    return (int64_t)hash(&args[0], (uint64_t)scalars[0]) == scalars[1] ? 0 : 2;
}

static const pto_kernel kernels[] = {{mix, 0}, {mix, 0}, {copy, 0}, {copy, 0}, {look, 0}};
static const uint8_t is_move[N_KERNELS] = {[SMALL] = 1, [COPY] = 1, [OWN_COPY] = 1};
static const int32_t own_rank[N_KERNELS] = {-1, -1, -1, 0, -1};       /* sites are kernels here */
static const int64_t own_shift[2][N_KERNELS] = {{0}, {[OWN_COPY] = sizeof reference->cells[0]}};

/* ---- programs ---- */

static int32_t args_of(const step *s, memory *m, pto_arg *args)
{
    const pto_arg like = {.extent = {1, s->n}, .stride = {s->n * s->stride, s->stride}, .elem_bytes = 8};
    args[0] = args[1] = like;
    args[0].data = (char *)&m->cells[s->source >= 0 ? s->source : s->rank][s->from];
    args[0].flags = PTO_READ;
    args[1].data = s->kernel == OWN_COPY ? (char *)m->whole : (char *)&m->cells[s->rank][s->to];
    args[1].flags = s->kernel == COPY || s->kernel == OWN_COPY ? PTO_WRITE : PTO_READ | PTO_WRITE;
    return s->kernel == LOOK ? 1 : 2;
}

/* Add a step, and run it on the reference, where both ranks share the cells. */
static void add(step s)
{
    memory *m = &reference[0];
    pto_arg args[2];
    s.salt = n_steps;
    s.nap = naps && (s.kernel == MIX || s.kernel == LOOK) && pick(0, 3) == 0 ? pick(1, 150) : 0;
    args_of(&s, m, args);
    if (s.kernel == OWN_COPY) {
        for (int32_t rank = 0; rank < 2; rank++)
            memcpy(reference[rank].whole, &m->cells[rank][s.from], (size_t)s.n * 8);
    } else if (s.kernel == COPY) {
        copy(args, NULL, NULL, NULL);
    } else {
        s.expected = (int64_t)(s.kernel == LOOK ? hash(&args[0], (uint64_t)s.salt) : hash(&args[1], hash(&args[0], (uint64_t)s.salt)));
        if (s.kernel != LOOK)
            mix(args, (const int64_t[]){s.salt, s.expected, 0}, NULL, NULL);
    }
    steps[n_steps++] = s;
}

static void begin_program(bool with_naps)
{
    n_steps = 0;
    fails_at = -1;
    naps = with_naps;
    for (int32_t i = 0; i < (int32_t)(sizeof(memory) / 8); i++)
        ((int64_t *)&reference[0])[i] = pick(0, INT64_MAX / 2);
    reference[1] = reference[0];
    for (int32_t rank = 0; rank < 2; rank++) {         /* each has garbage where the other's cells would be */
        at_start[rank] = reference[0];
        memset(at_start[rank].cells[1 - rank], 0x5A + rank, sizeof reference->cells[0]);
    }
}

static void there(int32_t source, int64_t from, int64_t to, int64_t n, int64_t stride)
{
    add((step){COPY, 1 - source, source, from, to, n, stride, 0, 0, 0});
}

static void here(int32_t kernel, int32_t rank, int64_t from, int64_t to, int64_t n)
{
    add((step){kernel, rank, kernel == COPY || kernel == OWN_COPY ? rank : -1, from, to, n, 1, 0, 0, 0});
}

/* The same cells there and back: each write waits until what it overwrites has been sent. */
static void there_and_back(void)
{
    begin_program(pick(0, 1));
    for (int64_t i = 0, n = CASES(400) + 20; i < n; i++) {
        int32_t rank = i % 2;
        here(i % 3 ? SMALL : MIX, rank, 8, 0, 4);
        there(rank, 0, 0, 4, 1);
        here(i % 5 ? SMALL : MIX, rank, 12, 0, 2);
    }
}

static void all_to_all(void)
{
    begin_program(pick(0, 1));
    for (int64_t round = 0, n = CASES(60) + 4; round < n; round++) {
        for (int32_t rank = 0; rank < 2; rank++)
            for (int64_t c = 0; c < 12; c++)
                here(round % 2 ? MIX : SMALL, rank, 24 + c, c, 1);
        for (int64_t c = 0; c < 12; c++)
            for (int32_t rank = 0; rank < 2; rank++)
                there(rank, c, 24 + c, 1, 1);
    }
}

/* Kernels that take long on cells of their own, and copies among others, that take turns with one reader. */
static void copies_beside_kernels(void)
{
    begin_program(true);
    for (int64_t i = 0, n = CASES(300) + 20; i < n; i++) {
        here(MIX, i % 2, 30 + i % 7, 38 + i % 5, 2);
        there(i / 2 % 2, i % 10, (i * 3) % 10 + 10, pick(1, 4), pick(1, 2));
        here(LOOK, i % 2, pick(8, 16), 0, 3);
    }
}

static void many_small_tasks(void)
{
    begin_program(pick(0, 3) == 0);
    for (int64_t i = 0, n = CASES(3000) + 200; i < n; i++) {
        int32_t rank = (int32_t)pick(0, 1);
        int64_t kind = pick(0, 9);
        if (kind < 3)
            there(rank, pick(0, CELLS - 8), pick(0, CELLS - 8), pick(0, 4), pick(1, 2));
        else if (kind == 3)
            here(OWN_COPY, 0, pick(0, CELLS - OWN), 0, pick(1, OWN));
        else
            here(kind < 7 ? SMALL : kind < 9 ? MIX : LOOK, rank, pick(0, CELLS - 4), pick(0, CELLS - 4), pick(1, 4));
    }
}

/* The end of one copy makes more tasks ready than a deque holds, and the next copy waits for all of them. */
static void very_many_wait_for_one_copy(void)
{
    begin_program(false);
    here(MIX, 0, 1, 0, 1);
    there(0, 0, 0, 1, 1);
    for (int64_t i = 0; i < WIDE; i++)
        here(LOOK, 1, 0, 0, 1);
    there(0, 1, 0, 1, 1);
    there(1, 0, 2, 1, 1);
}

static void (*const shapes[])(void) = {there_and_back, all_to_all, copies_beside_kernels, many_small_tasks, very_many_wait_for_one_copy};

static int32_t orchestrate(const pto_bindings *bindings, pto_sink *sink)
{
    memory *m = (memory *)bindings->tensors[0].data;
    for (int64_t i = 0; i < n_steps && sink->status == PTO_OK; i++) {
        const step *s = &steps[i];
        pto_arg args[2];
        int64_t scalars[3] = {s->salt, i == fails_at ? s->expected + 1 : s->expected, s->nap};
        sink->submit(sink, &(pto_task){.kernel = s->kernel, .site = s->kernel, .cost = 1, .n_args = args_of(s, m, args), .n_scalars = 3,
                                       .args = args, .scalars = scalars, .priority = i % 7,
                                       .ranks = 1 + s->rank + 65536 * (int64_t)(1 + s->source)});
    }
    return sink->status;
}

/* ---- the mailbox ---- */

typedef struct letter {                /* by source and order: both ends of a copy */
    pto_transfer send, receive;
    bool is_sent, is_awaited, is_taken, is_packed;
    int32_t delay;
    int64_t packed[OWN];
} letter;

typedef struct open_transfer {
    letter *letter;
    int64_t node;
    int32_t delay;
    bool receives;
} open_transfer;

struct rank_run;

/* What is kept of a copy, to be begun anew in the next run of the same tasks: a handle points at it. */
typedef struct request {
    struct rank_run *run;
    pto_transfer transfer;
    open_transfer open;
} request;

static pthread_mutex_t mail_lock = PTHREAD_MUTEX_INITIALIZER;
static letter letters[2][MAX_STEPS];   /* under mail_lock, as all here */
static const char *wrong;              /* the first thing that was */
static bool is_over;                   /* a rank has failed */
static int64_t moved_ns;

typedef struct rank_run {
    int32_t rank, threads;
    pto_record *record;
    pto_ranks *ranks;
    pto_execute_options execute;
    int32_t status;
    pto_execute_result result;
    uint64_t random;                   /* of the mailbox's delays; progress runs on the thread of the run alone */
    int64_t n_open;
    open_transfer open[MAX_STEPS];
    bool keeps;                        /* requests; `again`: the run is of the tasks that the record has */
    bool again, executes;              /* `executes`: what is recorded first, by pto_execute */
    int64_t n_kept, n_started, sent[2];
    request kept[MAX_STEPS];
} rank_run;

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int32_t draw(rank_run *run, int32_t n)          /* 0 .. n - 1 */
{
    run->random = run->random * 6364136223846793005u + 1442695040888963407u;
    return (int32_t)((run->random >> 33) % (uint64_t)n);
}

static int64_t *element(const pto_transfer *t, int64_t i)
{
    return (int64_t *)t->data + i * t->stride[1];
}

static open_transfer begin(rank_run *run, const pto_transfer *t)
{
    letter *l = t->order < 0 || t->order >= MAX_STEPS ? NULL : &letters[t->receives ? t->peer : run->rank][t->order];
    bool in_one_piece = t->extent[1] == 1 || t->stride[1] == 1;
    if (l == NULL || t->peer != 1 - run->rank || (t->receives ? l->is_awaited : l->is_sent) || t->extent[0] != 1 || t->elem_bytes != 8 ||
        t->bytes != (in_one_piece ? t->extent[1] * 8 : 0) || t->key != (t->order * 2 + t->receives) * 2 + t->peer) {
        wrong = "a transfer was begun twice, or is not what the program has";
        return (open_transfer){0};
    }
    *(t->receives ? &l->receive : &l->send) = *t;
    *(t->receives ? &l->is_awaited : &l->is_sent) = true;
    if (t->receives) {
        for (int64_t i = 0; i < t->extent[1]; i++)
            *element(t, i) = -1;
    } else if (draw(run, 3) == 0) {    /* buffered: taken at once */
        l->is_packed = true;
        for (int64_t i = 0; i < t->extent[1]; i++)
            l->packed[i] = *element(t, i);
    } else {
        l->delay = draw(run, MAX_DELAY);
    }
    return (open_transfer){l, t->node, draw(run, MAX_DELAY), t->receives};
}

/* Both ends are there: the receiver takes the elements from the sender's memory, which must still hold them. */
static void take(letter *l)
{
    if (l->send.extent[1] != l->receive.extent[1])
        wrong = "the two ends of a copy differ";
    for (int64_t i = 0; i < l->receive.extent[1] && wrong == NULL; i++)
        *element(&l->receive, i) = l->is_packed ? l->packed[i] : *element(&l->send, i);
    l->is_taken = true;
}

static bool has_ended(open_transfer *o)
{
    letter *l = o->letter;
    if (o->receives && l->is_sent && !l->is_taken && (l->is_packed || l->delay-- <= 0))
        take(l);
    return (l->is_taken || (l->is_packed && !o->receives)) && o->delay-- <= 0;
}

static int32_t start(void *handle)
{
    request *r;
    memcpy(&r, handle, sizeof r);
    pthread_mutex_lock(&mail_lock);
    r->open = begin(r->run, &r->transfer);
    r->run->n_started++;
    moved_ns = now_ns();
    pthread_mutex_unlock(&mail_lock);
    return 0;
}

static int32_t test(int32_t n, void *handles, int32_t *n_ended, int32_t *ended, void *statuses)
{
    memset(statuses, 0x55, (size_t)n * STATUS_BYTES);
    *n_ended = 0;
    pthread_mutex_lock(&mail_lock);
    for (int32_t i = n; i-- > 0 && wrong == NULL;) {        /* not the oldest first: no order of ends is wrong */
        request *r;
        memcpy(&r, (char *)handles + (size_t)i * sizeof r, sizeof r);
        if (has_ended(&r->open))
            ended[(*n_ended)++] = i;
    }
    if (*n_ended > 0)
        moved_ns = now_ns();
    pthread_mutex_unlock(&mail_lock);
    return 0;
}

static int64_t progress(void *user, const pto_transfer *ready, int64_t n_ready, int64_t *ended, int64_t idle_ns)
{
    rank_run *run = user;
    int64_t n = 0;
    pthread_mutex_lock(&mail_lock);
    for (int64_t i = 0; i < n_ready; i++) {
        run->open[run->n_open] = begin(run, &ready[i]);
        run->n_open++;
        if (run->keeps && !run->again && ready[i].bytes > 0 && draw(run, 8) > 0) {
            request *kept = &run->kept[run->n_kept++];
            *kept = (request){.run = run, .transfer = ready[i]};
            if (pto_ranks_keep(run->ranks, ready[i].key, &kept) != PTO_OK)
                wrong = "no memory";
        }
    }
    for (int64_t i = run->n_open; i-- > 0 && wrong == NULL;)
        if (has_ended(&run->open[i])) {
            ended[n++] = run->open[i].node;
            run->open[i] = run->open[--run->n_open];
        }
    if (n + n_ready > 0)
        moved_ns = now_ns();
    else if (now_ns() - moved_ns > PATIENCE_S * INT64_C(1000000000) && wrong == NULL)
        wrong = "nothing goes on";
    bool must_end = wrong != NULL || is_over;
    pthread_mutex_unlock(&mail_lock);
    if (n + n_ready == 0)
        nap(idle_ns > 0 ? 30 : 0);
    return must_end ? -1 : n;
}

/* ---- runs ---- */

static rank_run runs[2];

static void *run_rank(void *user)
{
    rank_run *run = user;
    const pto_tensor here_all = {.data = (char *)&found[run->rank], .rank = 1, .dim = {sizeof(memory)}, .stride = {1}};
    const pto_bindings bindings = {.tensors = &here_all, .n_tensors = 1};
    const pto_run_options options = {.orchestrate = run->again ? NULL : orchestrate, .bindings = &bindings, .kernels = kernels, .n_kernels = N_KERNELS,
                                     .execute = run->execute};
    pto_pool *pool = pools[run->rank][run->threads];
    if (!run->executes || !run->again)
        run->status = pto_run(run->executes ? NULL : pool, run->record, &options, &run->result);
    if (run->executes)
        run->status = pto_execute(pool, run->record, kernels, N_KERNELS, &run->execute, &run->result);
    pthread_mutex_lock(&mail_lock);
    is_over = is_over || run->status != PTO_OK;
    pthread_mutex_unlock(&mail_lock);
    return NULL;
}

/* With what a run before has left in the engine, the mailbox is empty. */
static void run_both(void)
{
    static bool gave_up;               /* each wait in vain takes long */
    pthread_t other;
    CHECK(!gave_up);
    if (gave_up)
        return;
    memset(letters, 0, sizeof letters);
    memcpy(found, at_start, sizeof found);
    wrong = NULL;
    is_over = false;
    moved_ns = now_ns();
    for (int32_t rank = 0; rank < 2; rank++) {
        runs[rank].n_open = 0;
        runs[rank].random = (uint64_t)pick(0, INT64_MAX / 2);
    }
    pthread_create(&other, NULL, run_rank, &runs[1]);
    run_rank(&runs[0]);
    pthread_join(other, NULL);
    gave_up = wrong != NULL;
}

static void open_runs(int32_t threads, int64_t max_tasks, int32_t by_priority)
{
    static pto_spread spread[2];
    for (int32_t rank = 0; rank < 2; rank++) {
        spread[rank] = (pto_spread){(char *)found[rank].read, sizeof reference->read[0]};
        const pto_ranks_options options = {.rank = rank, .n_ranks = 2, .is_move = is_move, .own_rank = own_rank, .spread = &spread[rank],
                                           .own_shift_bytes = own_shift[rank], .n_spread = 1, .progress = progress, .user = &runs[rank],
                                           .start = start, .test = test, .request_bytes = sizeof(request *), .status_bytes = STATUS_BYTES,
                                           .spin_ns = pick(0, 1) * 20000, .sent_bytes = runs[rank].sent};
        runs[rank] = (rank_run){.rank = rank, .threads = threads, .ranks = pto_ranks_new(&options), .keeps = max_tasks == 0};
        runs[rank].execute = (pto_execute_options){.ranks = runs[rank].ranks, .by_priority = by_priority};
        runs[rank].record = pto_record_new(&(pto_record_options){.infer = 1, .keep = PTO_KEEP_PRIORITY | PTO_KEEP_RANKS,
                                                                 .max_tasks = max_tasks});
    }
}

static void close_runs(void)
{
    for (int32_t rank = 0; rank < 2; rank++) {
        pto_record_free(runs[rank].record);
        pto_ranks_free(runs[rank].ranks);
    }
}

static int64_t bytes_sent(int32_t rank)
{
    int64_t bytes = 0;
    for (int64_t i = 0; i < n_steps; i++)
        if (steps[i].source == rank && steps[i].rank != rank)
            bytes += steps[i].n * 8;
    return bytes;
}

static void expect_program_order(void)
{
    run_both();
    if (wrong != NULL)
        printf("    %s\n", wrong);
    CHECK(wrong == NULL);
    for (int32_t rank = 0; rank < 2; rank++) {
        CHECK_EQ(runs[rank].status, PTO_OK);
        CHECK_EQ(runs[rank].result.n_run, n_steps);
        CHECK_EQ(runs[rank].n_open, 0);
        CHECK_EQ(runs[rank].sent[1 - rank], bytes_sent(rank));
        CHECK_EQ(pto_ranks_runs(runs[rank].ranks), -1);
        CHECK(memcmp(found[rank].cells[rank], reference[0].cells[rank], sizeof reference->cells[0]) == 0);
        CHECK(memcmp(found[rank].cells[1 - rank], at_start[rank].cells[1 - rank], sizeof reference->cells[0]) == 0);
        CHECK(memcmp(found[rank].whole, reference[rank].whole, sizeof reference->whole) == 0);
        for (int32_t k = 0; k < 2; k++)
            CHECK(memcmp(found[rank].read[k], at_start[rank].read[rank], sizeof reference->read[0]) == 0);
    }
}

/* The same tasks again: the copies that were kept begin without `progress`. */
static void expect_the_same_again(void)
{
    for (int32_t rank = 0; rank < 2; rank++)
        runs[rank].again = true;
    expect_program_order();
    for (int32_t rank = 0; rank < 2; rank++) {
        CHECK_EQ(runs[rank].n_started, runs[rank].n_kept);
        runs[rank].again = false;
        runs[rank].n_started = runs[rank].n_kept = 0;
        pto_ranks_forget(runs[rank].ranks);
    }
}

/* Pools of one thread, which runs tasks and moves copies, and of more, of which one moves copies. */
static const int32_t pool_sizes[] = {1, 2, 4};

static void expect_of_shape(void (*shape)(void))
{
    for (int32_t k = 0; k < 3; k++)
        for (int32_t by_priority = 0; by_priority < 2; by_priority++) {
            open_runs(pool_sizes[k], 0, by_priority);
            for (int64_t again = 0; again < 3; again++) {      /* the record of one program after another */
                shape();
                expect_program_order();
                expect_the_same_again();
            }
            close_runs();
        }
}

static void copies_there_and_back_take_turns(void)
{
    expect_of_shape(there_and_back);
}

static void all_to_all_takes_turns_with_tasks(void)
{
    expect_of_shape(all_to_all);
}

static void copies_go_on_beside_kernels(void)
{
    expect_of_shape(copies_beside_kernels);
}

static void many_small_tasks_give_program_order(void)
{
    expect_of_shape(many_small_tasks);
}

static void tasks_that_no_deque_holds_run_once(void)
{
    expect_of_shape(very_many_wait_for_one_copy);
}

/* A piece is a graph of its own: the numbers of copies go on from the piece before. */
static void chunks_give_program_order(void)
{
    for (int32_t k = 0; k < 3; k++) {
        open_runs(pool_sizes[k], 64, 0);
        for (int64_t again = 0; again < 4; again++) {
            shapes[again]();
            expect_program_order();
        }
        close_runs();
    }
}

/* One rank's kernel fails in the middle of copies: both runs end, and the next is whole. */
static void a_failure_ends_both_runs_and_the_next_is_whole(void)
{
    for (int32_t k = 0; k < 3; k++) {
        open_runs(pool_sizes[k], 0, k == 2);
        for (int64_t again = 0; again < CASES(10) + 3; again++) {
            shapes[again % 4]();
            do
                fails_at = pick(n_steps / 4, n_steps - 1);
            while (steps[fails_at].kernel == COPY || steps[fails_at].kernel == OWN_COPY);
            run_both();
            int32_t rank = steps[fails_at].rank;
            CHECK(wrong == NULL);
            CHECK_EQ(runs[rank].status, PTO_E_KERNEL);
            CHECK_EQ(runs[rank].result.failed_task, fails_at);
            CHECK(runs[1 - rank].status == PTO_E_CANCELLED || runs[1 - rank].status == PTO_OK);      /* it may have nothing to wait for */
            for (rank = 0; rank < 2; rank++) {                 /* what was kept may be under way */
                pto_ranks_forget(runs[rank].ranks);
                runs[rank].n_kept = 0;
            }
            fails_at = -1;
            expect_program_order();
            expect_the_same_again();
        }
        close_runs();
    }
}

static void what_is_recorded_is_executed_alike(void)
{
    for (int32_t k = 0; k < 3; k++) {
        open_runs(pool_sizes[k], 0, 0);
        runs[0].executes = runs[1].executes = true;
        for (int64_t again = 0; again < 3; again++) {
            shapes[again + 1]();
            expect_program_order();
            expect_the_same_again();
        }
        close_runs();
    }
}

/* The tasks of a record name the copies of the rank that it was made for, so no other rank can run them. */
static void the_record_of_other_ranks_is_refused(void)
{
    open_runs(2, 0, 0);
    there_and_back();
    const pto_tensor here_all = {.data = (char *)&found[0], .rank = 1, .dim = {sizeof(memory)}, .stride = {1}};
    const pto_bindings bindings = {.tensors = &here_all, .n_tensors = 1};
    pto_run_options options = {.orchestrate = orchestrate, .bindings = &bindings};
    pto_execute_result result;
    CHECK_EQ(pto_run(NULL, runs[0].record, &options, &result), PTO_OK);
    CHECK_EQ(pto_execute(pools[0][2], runs[0].record, kernels, N_KERNELS, &runs[0].execute, &result), PTO_E_ARGUMENT);
    options.execute.ranks = runs[1].ranks;
    CHECK_EQ(pto_run(NULL, runs[0].record, &options, &result), PTO_OK);
    CHECK_EQ(pto_execute(pools[0][2], runs[0].record, kernels, N_KERNELS, &runs[0].execute, &result), PTO_E_ARGUMENT);
    close_runs();
}

int main(void)
{
    for (int32_t rank = 0; rank < 2; rank++)
        for (int32_t k = 0; k < 3; k++)
            pools[rank][pool_sizes[k]] = pto_pool_new(pool_sizes[k]);
    static const check_test tests[] = {
        TEST(copies_there_and_back_take_turns), TEST(all_to_all_takes_turns_with_tasks), TEST(copies_go_on_beside_kernels),
        TEST(many_small_tasks_give_program_order), TEST(tasks_that_no_deque_holds_run_once), TEST(chunks_give_program_order),
        TEST(a_failure_ends_both_runs_and_the_next_is_whole), TEST(what_is_recorded_is_executed_alike),
        TEST(the_record_of_other_ranks_is_refused)};
    int failed = RUN_TESTS(tests);
    for (int32_t rank = 0; rank < 2; rank++)
        for (int32_t k = 0; k < 3; k++)
            pto_pool_free(pools[rank][pool_sizes[k]]);
    return failed;
}
