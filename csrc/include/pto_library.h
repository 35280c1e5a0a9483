/* pto_library.h: the ABI text of the runtime library: records, prints, the sanitizer, the engine, the simulator, runs.
   See pto_abi.h for the rules of both. */

/* ---- record: the tasks of one run in submission order, with the edges between them ---- */
typedef struct pto_record pto_record;

#define PTO_ARENA_BYTES 268435456

typedef struct pto_record_options {
    int64_t max_tasks;         /* tasks kept; past it pto_run executes and drops them, else PTO_E_NOMEM; 0: no cap */
    int64_t window;            /* fresh tensors use the memory of others again whose users are a window earlier; 0: none */
    int64_t arena_bytes;       /* of fresh tensors kept with their tasks, as max_tasks; 0: PTO_ARENA_BYTES */
    int32_t infer;             /* 1: edges from overlapping regions, 0: only order, after and before */
    int32_t poison;            /* 1: fresh tensors are full of 0xFF (NaN) before each run */
    int32_t keep;              /* PTO_KEEP_ bits: which columns that a schedule may leave out are kept; the others are NULL */
    int32_t window_unit;       /* PTO_WINDOW_; of bytes: of fresh tensors in use at a time */
    int32_t forgets_nothing;   /* 0: conflicts with dropped tasks that have completed are forgotten, but for a window of tasks */
    int32_t reserved;
} pto_record_options;

/* What a window is counted in: what a task takes of it, from its submission until it and all earlier tasks of its stream have completed */
#define PTO_WINDOW_TASKS 0     /* 1 */
#define PTO_WINDOW_BYTES 1     /* the bytes of intermediates that it writes: args[].flags has PTO_KEPT and PTO_WRITE */
#define PTO_WINDOW_ENTRIES 2   /* 1 for each argument in memory */
#define PTO_WINDOW_EDGES 3     /* 1 for each node that it waits for, as recorded: a join is one */
#define PTO_WINDOW_READY 4     /* another span: 1 from the time at which it is ready and released until an executor takes it */
#define PTO_N_WINDOWS 5

/* pto_record_options.keep */
#define PTO_KEEP_LANE 1        /* and tasks of a lane get edges */
#define PTO_KEEP_POOL 2
#define PTO_KEEP_PRIORITY 4
#define PTO_KEEP_POSITION 8
#define PTO_KEEP_BYTES 16
#define PTO_KEEP_RANKS 32

/* Columns of a record. Edges are in CSR form by node: preds of node n are edge_src[pred_begin[n] .. pred_begin[n+1]),
   ascending and without repeats; edge_why has PTO_EDGE_ bits; edge_arg is (argument of src << 16) | argument of dst for an edge from
   regions, -1 otherwise. Node ids in a record that has dropped tasks are absolute: the first node kept is first_node. */
typedef struct pto_columns {
    int64_t n_tasks;           /* kept */
    int64_t n_nodes;
    int64_t n_edges;
    int64_t n_marks;
    int64_t first_node;
    int64_t first_task;
    int64_t total_tasks;       /* kept and dropped */
    const uint8_t *node_kind;      /* [n_nodes] */
    const int64_t *node_task;      /* [n_nodes] task position in the kept columns, -1 for a join or mark */
    const int64_t *pred_begin;     /* [n_nodes + 1] */
    const int64_t *edge_src;       /* [n_edges] absolute node ids */
    const uint16_t *edge_why;      /* [n_edges] */
    const int32_t *edge_arg;       /* [n_edges] */
    const int64_t *task_node;      /* [n_tasks] absolute node id */
    const int32_t *task_kernel;    /* [n_tasks] */
    const int32_t *task_site;      /* [n_tasks] */
    const int64_t *task_worker;    /* [n_tasks] */
    const int64_t *task_cost;      /* [n_tasks] */
    const int32_t *task_stream;    /* [n_tasks] */
    const int64_t *task_lane;      /* [n_tasks] or NULL: all 0, as the five that follow */
    const int64_t *task_pool;
    const int64_t *task_priority;
    const int64_t *task_position;
    const int64_t *task_bytes;
    const int64_t *task_ranks;
    const int64_t *arg_begin;      /* [n_tasks + 1] */
    const pto_arg *args;
    const int64_t *scalar_begin;   /* [n_tasks + 1] */
    const int64_t *scalars;
    const int64_t *index_begin;    /* [n_tasks + 1] */
    const int64_t *index;
    const int64_t *mark_node;      /* [n_marks] absolute node id, ascending */
    const int64_t *mark_delay;     /* [n_marks] */
    const int32_t *mark_stream;    /* [n_marks] */
    const int32_t *mark_site;      /* [n_marks] */
    const uint8_t *mark_flags;     /* [n_marks] */
    const uint8_t *mark_stall;     /* [n_marks] */
} pto_columns;

pto_record *pto_record_new(const pto_record_options *options);
void pto_record_free(pto_record *record);
void pto_record_reset(pto_record *record);
pto_sink *pto_record_sink(pto_record *record);      /* borrowed, lives as long as the record */
void pto_record_columns(const pto_record *record, pto_columns *out);   /* valid until the record changes */
const pto_guard *pto_record_guard(const pto_record *record);           /* the first guard that failed, or NULL */
int32_t pto_record_stuck(const pto_record *record, const pto_stuck **out);  /* the rows of a deadlock; 0: there was none */

/* A task, by its call and indices, and two of its arguments that it writes and that share elements. */
typedef struct pto_clash {
    int32_t site, first_arg, second_arg, n_index;
    int64_t index[PTO_MAX_INDEX];
} pto_clash;

const pto_clash *pto_record_clash(const pto_record *record);           /* the one that ended the stream, or NULL */

/* The memory of fresh tensors. */
typedef struct pto_memory {
    int64_t peak_bytes;        /* most that was in use at a time since the stream began */
    int64_t held_bytes;        /* taken from the system */
    int64_t n_gates;           /* of the tasks kept: times that tasks wait for those a window earlier, to use memory again */
} pto_memory;

void pto_record_memory(const pto_record *record, pto_memory *out);

/* True when two strided boxes share a byte: exact unless max_steps is used up, then true. */
int32_t pto_regions_overlap(const pto_arg *a, const pto_arg *b, int64_t max_steps);

/* ---- prints: values that kernels show, kept while they run ---- */
#define PTO_PRINT_BYTES 128    /* what a printed value counts for beside its elements */

typedef struct pto_prints pto_prints;

typedef struct pto_prints_options {
    int64_t max_bytes;         /* kept; what comes later in program order is dropped */
    int64_t threshold;         /* a value of more elements is kept at its edges only */
    int64_t edge;              /* rows and columns kept at either edge */
} pto_prints_options;

/* One value; of rows or columns that are not all kept, the first half of those kept are the first, the others the last. */
typedef struct pto_printed {
    int64_t task;              /* absolute task id */
    int64_t order;             /* grows from value to value of one task */
    int64_t index[PTO_MAX_INDEX];
    int32_t n_index;
    int32_t site;
    int32_t statement;         /* which print of the kernel */
    int32_t reserved;
    int64_t rows;
    int64_t cols;
    int64_t kept_rows;
    int64_t kept_cols;
    int64_t data;              /* in pto_prints_view.data; row-major, without gaps */
    int64_t size_bytes;
} pto_printed;

typedef struct pto_prints_view {
    int64_t n;
    int64_t n_total;           /* those dropped included */
    const pto_printed *rows;   /* [n] in program order */
    const char *data;
} pto_prints_view;

pto_prints *pto_prints_new(const pto_prints_options *options);     /* NULL when memory ran out */
void pto_prints_free(pto_prints *prints);
void pto_prints_read(pto_prints *prints, pto_prints_view *out);    /* not while a run writes; valid until the next one */

/* ---- sanitizer: what a run is watched for ---- */
#define PTO_MAX_RACES 16       /* kept, each of another pair of arguments */

/* pto_misuse.kind */
#define PTO_MISUSE_NONE 0
#define PTO_MISUSE_REGION 1    /* a region is not inside its tensor */
#define PTO_MISUSE_UNWRITTEN 2 /* what an element holds that nobody wrote decides what the task gives */
#define PTO_MISUSE_WRITE 3     /* an own body wrote outside the regions that it writes */
#define PTO_MISUSE_READ 4      /* what stands outside its regions decides what an own body gives */
#define PTO_MISUSE_SCRATCH 5   /* an own body wrote outside its scratch memory */

typedef struct pto_sanitizer pto_sanitizer;

typedef struct pto_sanitizer_options {
    int32_t keep;              /* PTO_EDGE_ bits that the schedule asked for: edges without one go once they have been checked */
    int32_t n_sites;
    int32_t n_tensors;
    int32_t n_kernels;
    const pto_tensor *tensors;         /* [n_tensors] as bound; all arrays are borrowed while the sanitizer lives */
    const int32_t *elem_bytes;         /* [n_tensors] */
    const uint8_t *undefined;          /* [n_tensors] 1: contiguous, and nobody has given it contents when a run starts */
    const int32_t *site_begin;         /* [n_sites + 1] */
    const int32_t *site_tensors;       /* the tensor of each memory argument of a site */
    const uint8_t *site_combines;      /* of each memory argument: how it accumulates, 0: not at all; NULL: none does */
    const uint8_t *own_body;   /* [n_kernels] 1: the body is the user's text, and runs on copies */
    const int64_t *apart;      /* [n_apart] rising: number of one argument << 32 | number of another, counted as in site_tensors: their */
    int64_t n_apart;           /* kernels touch different elements, whatever their regions share; each pair in both orders */
} pto_sanitizer_options;

/* Two tasks on the same elements, one of them writing, that the workload leaves without an order. */
typedef struct pto_race {
    int64_t first_task;        /* absolute task ids; second -1: the orchestrator reads, at mark second_site */
    int64_t second_task;
    int64_t first_index[PTO_MAX_INDEX];
    int64_t second_index[PTO_MAX_INDEX];
    int32_t n_first_index;
    int32_t n_second_index;
    int32_t first_site;
    int32_t second_site;
    int32_t first_arg;
    int32_t second_arg;
    int32_t has_regions;       /* 0: the first task has been dropped, only the second's is known */
    int32_t reserved;
    const char *base;          /* the first element of the second's tensor */
    pto_arg first_region;
    pto_arg second_region;
} pto_race;

typedef struct pto_misuse {
    int64_t task;              /* absolute */
    int64_t index[PTO_MAX_INDEX];
    int32_t n_index;
    int32_t site;
    int32_t kind;
    int32_t arg;
    int64_t row;               /* the element, counted from the region's first: outside it with WRITE and READ */
    int64_t col;
    int64_t n_elements;        /* of how many the same holds, 0: not counted */
} pto_misuse;

typedef struct pto_sanitizer_report {
    int64_t n_pairs;           /* of tasks on the same elements, as far as edges join them */
    int64_t n_races;           /* of these without an order */
    int64_t n_unchecked;       /* of these whose order was not found out */
    int64_t n_unwatched;       /* tasks with an own body whose regions are too large to copy */
    int32_t n_rows;
    int32_t reserved;
    const pto_race *races;     /* [n_rows] in program order */
    pto_misuse misuse;         /* the first in the order of the run */
} pto_sanitizer_report;

pto_sanitizer *pto_sanitizer_new(const pto_sanitizer_options *options);    /* NULL when memory ran out */
void pto_sanitizer_free(pto_sanitizer *sanitizer);
void pto_sanitizer_read(const pto_sanitizer *sanitizer, pto_sanitizer_report *out);   /* of the last run; valid until the next */

/* ---- wall-clock trace: when each task of a run began and ended ---- */
typedef struct pto_wall pto_wall;

typedef struct pto_wall_row {
    int64_t start_ns;          /* by the monotonic clock, of all threads alike */
    int64_t end_ns;
    int32_t thread;            /* 0: the one that called; -1: the task has not run */
    int32_t reserved;
} pto_wall_row;

typedef struct pto_wall_view {
    int64_t n;                 /* rows, one a task in submission order */
    int32_t is_cut;            /* 1: the record dropped tasks, and nothing is kept */
    int32_t reserved;
    double row_ns;             /* what keeping a row took a task, timed at the begin of the run: two looks at the clock, one write */
    const pto_wall_row *rows;  /* [n] */
} pto_wall_view;

pto_wall *pto_wall_new(void);  /* NULL when memory ran out */
void pto_wall_free(pto_wall *wall);
void pto_wall_read(const pto_wall *wall, pto_wall_view *out);  /* of the last run; not while one writes; valid until the next one */

/* ---- native engine ---- */
typedef struct pto_pool pto_pool;

/* ---- one rank's part of a plan: tasks of other ranks pass, copies between this rank and another one are the caller's to move ---- */
#define PTO_SMALL_BYTES 131072     /* of the arguments of a task that the thread that moves copies may run beside other workers */

typedef struct pto_ranks pto_ranks;

/* A copy that is ready: bytes that this rank sends, or room for those that it receives. */
typedef struct pto_transfer {
    char *data;                /* the first element */
    int64_t extent[PTO_RANK];  /* rows, columns; at least 1 */
    int64_t stride[PTO_RANK];  /* in elements */
    int64_t bytes;             /* of all elements, where they stand one behind the other; else 0 */
    int64_t order;             /* which of the copies from its source to its target it is, from 0 in program order: equal on both ranks */
    int64_t key;               /* of order, peer and receives: of one transfer in a run */
    int64_t node;              /* what says that it has ended */
    int32_t elem_bytes;
    int32_t peer;              /* the other rank */
    int32_t receives;
    int32_t site;
} pto_transfer;

/* Copies of a small tensor, one a rank, that control reads: after every wait all get the contents of this rank's. */
typedef struct pto_spread {
    char *data;
    int64_t copy_bytes;
} pto_spread;

/* Begins n_ready transfers; `ended` has room for the nodes of those that have ended by now. Returns how many, or -1 to end the run. idle_ns: for
   how long nothing has ended or run here; where it is not 0, a short time may pass within. Called now and then though nothing is ready. */
typedef int64_t (*pto_progress_fn)(void *user, const pto_transfer *ready, int64_t n_ready, int64_t *ended, int64_t idle_ns);

/* MPI_Start and MPI_Testsome, whose handles have request_bytes and whose statuses have status_bytes: what `user` is told of else. */
typedef int32_t (*pto_start_fn)(void *request);
typedef int32_t (*pto_test_fn)(int32_t n, void *requests, int32_t *n_ended, int32_t *ended, void *statuses);

typedef struct pto_ranks_options {
    int32_t rank;              /* this one; all arrays are borrowed while the ranks live */
    int32_t n_ranks;
    const uint8_t *is_move;    /* [n_kernels] 1: the kernel copies, or adds, and does nothing else */
    const int32_t *own_rank;   /* [n_sites] -1, or: the task on this rank stands for one on every rank, with a copy of its own; NULL: none */
    const int64_t *own_shift_bytes;    /* [n_sites] from the copy that such a task names to this rank's */
    const pto_spread *spread;  /* [n_spread] */
    int32_t n_spread;
    int32_t request_bytes;     /* at most 8 */
    int64_t *sent_bytes;       /* [n_ranks] to each rank in this run */
    int64_t spin_ns;           /* how long the thread that moves copies polls before `progress` may pass time */
    pto_progress_fn progress;  /* called by the thread that runs, as the next two are */
    void *user;
    pto_start_fn start;        /* NULL: `progress` begins all transfers */
    pto_test_fn test;
    int64_t status_bytes;
} pto_ranks_options;

pto_ranks *pto_ranks_new(const pto_ranks_options *options);    /* NULL when memory ran out */
void pto_ranks_free(pto_ranks *ranks);
int32_t pto_ranks_keep(pto_ranks *ranks, int64_t key, const void *request);    /* from now on `start` begins the transfer of this key with a copy
                                                                                  of the request's handle; PTO_E_NOMEM */
void pto_ranks_forget(pto_ranks *ranks);            /* keep none */
int64_t pto_ranks_under_way(const pto_ranks *ranks, const pto_transfer **out); /* what `start` has begun, the oldest first; by the thread that runs */
int32_t pto_ranks_error(const pto_ranks *ranks);    /* what `start` or `test` returned in the last run, which has ended it; 0: nothing */
int32_t pto_ranks_runs(pto_ranks *ranks);           /* from any thread: the site of a task that runs now, or -1 */

/* pto_execute_options.places: which thread runs a task */
#define PTO_PLACE_ANY 0            /* one that has nothing to do */
#define PTO_PLACE_HOME 1           /* task_worker mod threads; but a thread goes on with a task that it has made ready, if with no other
                                      of its own, and takes from others when it has nothing to do */
#define PTO_PLACE_CALENDAR 2       /* task_worker mod threads, strictly, in the order of task_position */

typedef struct pto_execute_options {
    uint64_t order_seed;       /* 0: fast; else one thread takes ready tasks in a seeded random legal order, whatever else is said */
    int32_t threads;           /* at most the pool's; 0: all */
    int32_t places;            /* PTO_PLACE_ */
    int32_t by_priority;       /* 1: a thread takes the ready task with the highest task_priority, of equal ones the lowest, of its own
                                  with PTO_PLACE_HOME, of all with PTO_PLACE_ANY */
    int32_t reserved;
    int32_t *cancel;           /* not 0 ends this run, and no other one of the pool: its loops that make tasks, and those of kernels, look at
                                  it; see pto_pool_cancel_run. NULL: only with the pool */
    pto_prints *prints;        /* NULL: what kernels print is not kept */
    pto_sanitizer *sanitizer;  /* NULL: nothing is watched; else order_seed is not 0 */
    pto_wall *wall;            /* NULL: nobody looks at a clock; else sanitizer is NULL */
    pto_ranks *ranks;          /* NULL: the tasks of all ranks run here; else sanitizer is NULL and order_seed 0. Of several threads
                                  the one that calls moves copies alone; a single one runs tasks between */
} pto_execute_options;

typedef struct pto_execute_result {
    int64_t failed_task;       /* absolute task id of the first failure in program order, whatever ran first, or -1 */
    int32_t failed_guard;      /* what the kernel returned, less 1 */
    int32_t threads;           /* that took part */
    int64_t n_run;             /* tasks completed */
    pto_fault fault;           /* what the failed task's kernel had to add */
} pto_execute_result;

pto_pool *pto_pool_new(int32_t threads);            /* NULL when no thread could start or memory ran out */
void pto_pool_free(pto_pool *pool);
int32_t pto_pool_threads(const pto_pool *pool);
void pto_pool_cancel(pto_pool *pool);               /* from any thread: the running execute stops after its current tasks, or within them */
void pto_pool_cancel_run(pto_pool *pool, int32_t *cancel);     /* the same of the run with this cancel, which may wait for the pool still */
int64_t pto_pool_n_run(pto_pool *pool, const int32_t *cancel);          /* from any thread: tasks that the run with this cancel has completed
                                                                           since it last had the pool; 0 while another run has it */
int32_t pto_execute(pto_pool *pool, const pto_record *record, const pto_kernel *kernels, int32_t n_kernels,
                    const pto_execute_options *options, pto_execute_result *result);

/* ---- simulator: virtual time ---- */
typedef struct pto_sim pto_sim;

/* A bound on what a stream has in flight, in one unit. */
typedef struct pto_window {
    int64_t size;              /* 0: none */
    int32_t unit;              /* PTO_WINDOW_ */
    int32_t mode;              /* PTO_WINDOW_ */
} pto_window;

/* What streams took of one unit, and how often they waited for it. */
typedef struct pto_window_use {
    int64_t stalls;            /* times a stream had to wait for room; with BENCHMARK: tasks that found none */
    int64_t stall_cycles;
    int64_t high_water;        /* most that tasks of one stream took at a time; 0 for a unit without a window */
} pto_window_use;

/* Several windows hold a stream together. A stream that waits for room waits for one of them at each time: the
   first in the order of their numbers that has none. A window of ready tasks holds a stream while as many of
   its tasks as the size are ready and nobody has taken them. They are counted once what ends at a time has ended, and once executors
   have taken what they can; what is submitted in between counts until then, ready or not. A task that becomes ready because another
   one ends needs no room, so nothing that runs ever waits for a window.

   pto_sim_options.window_mode: what becomes of a stream whose next task finds no room. One that takes nothing always does */
#define PTO_WINDOW_STALL 0         /* it waits; the simulation ends with PTO_E_WINDOW for a task that takes more than there is */
#define PTO_WINDOW_ABORT 1         /* once time were to go on while it waits, the simulation ends with PTO_E_WINDOW */
#define PTO_WINDOW_BENCHMARK 2     /* it is counted, and the stream goes on */

/* pto_sim_options.timing: when a submitted task is released, that is may run once it is ready */
#define PTO_TIMING_IMMEDIATE 0     /* at once */
#define PTO_TIMING_BATCHED 1       /* timing_n of a stream at a time; what is left when it cannot go on, then */
#define PTO_TIMING_INTERLEAVED 2   /* at once, and of ready tasks those of timing_n classes of lanes take turns: (lane - 1) mod timing_n */
#define PTO_TIMING_RATE 3          /* in the order of (submission, node) of all streams, each release_num / release_den cycles after the
                                      one before, rounded up, or when it is submitted, if that is later */

/* A stream cannot go on while its window or a blocking mark holds it, or when nothing is left in it: it rests, or all has been fed.
   One that is busy with a task (submit_cycles), be it the last, can. That is looked at before tasks start, when all that can be
   submitted at a time has been. */

#define PTO_AFTER_ALL -1           /* pto_sim_options.start_after: until no stream can go on */

#define PTO_MAX_POOLS 4096         /* the numbers of pools are below it */
#define PTO_MAX_CALENDAR 65536     /* the same of workers, where a calendar says how many there are */

#define PTO_ROUTE_NONE 0           /* a copy between two ranks takes one link, which its pool names */
#define PTO_ROUTE_TORUS 1
#define PTO_ROUTE_SWITCH 2
#define PTO_MAX_AXES 12            /* of a torus */

/* What runs tasks. At one time, what ends comes first, then submissions and releases, then dispatch; all of it again while tasks take
   no time.

   Queues. A task that is ready and released stands in the queue of its pool and worker (is_shared: of its pool) until an executor
   takes it. A queue gives its tasks to its idle executors, the lowest first. The task with the highest priority goes first, then the one
   that has been ready and released longest, then the lowest node. PTO_TIMING_INTERLEAVED: of those with the highest priority, the first
   one of the class of lanes that comes next, round and round, after the class that the queue served last; it begins with class 0.
   steals: once all queues have done so, every executor that is still idle, the lowest first, takes the task that goes first of the
   heads of all queues of its pool.

   Calendar. Every executor (pools have one a worker) runs its tasks in the order of task_position, which need not be dense; it waits
   for one that has not been submitted or is not ready. PTO_E_ARGUMENT: two tasks of a worker have one position. All tasks have to come
   in one feed (so a record without a cap), because it takes all of them to know the first. An order that contradicts the edges, or
   that the window does not let come about, ends with PTO_E_DEADLOCK. A calendar excludes is_shared, steals and interleaving, and
   priorities say nothing. Of a task that has a start, the executor waits for it with the task in its hands: dispatched, and not begun.

   Dispatch and retirement. Where either takes time, each worker does one thing after another, for its own executors, in the order in
   which they have been wanted: a retirement since the task ended, a dispatch since both the task was ready and released and an
   executor of the worker that may run it was idle. Of what is as old, retirements go first, then lower nodes. The task starts
   dispatch_cycles after its dispatch began. Its executor is idle again when it ends; others see it completed (its successors, the
   window, total_cycles) retire_cycles after its retirement began. A worker that is busy keeps what takes no time waiting too. Of
   several workers that may take one task (is_shared, steals) the lowest does.

   Memory. A task that moves bytes asks for bytes / cost a cycle while it runs, if it costs anything. While all together ask for more
   than bytes_per_cycle, all of them run slower by one factor, asked / bytes_per_cycle; the others do not. An end is rounded up to a
   whole cycle; what doubles lose, up to a millionth of a cycle, does not count.

   Places. With hop_cycles, workers are cores of a grid. An edge from task to task arrives as many steps later as rows and columns lie
   between their workers: a task is ready when its last edge has arrived, and held_by names the one that arrived last. Edges from or to
   a join or mark take no time. Not with is_shared or steals, which leave open where a task runs. critical_path counts the steps.

   Routes. With PTO_ROUTE_, a task whose task_ranks name two ranks is a copy that goes over links, one after another, and each has it as
   a whole before the next one begins (store and forward): it holds each for cost / links of its route, and completes at the end of the
   last. In a torus axis after axis, each the shorter way round, up where both are equal: link 2 * axis leads up, 2 * axis + 1 down. With
   a switch, link 0 of its source leads to the switch and link 1 of its target from there. Links are pools of one executor, from link_pool
   on, of the first worker of the rank that they leave (those from a switch: that they lead to). A copy on its way stands in the queue of
   its next link as a task that is ready since it came. link_buffers: a link begins with a copy that is to go on from its far end only
   while fewer than so many copies have begun on it and have not ended on their next link; those behind it wait as well. Links that wait
   for each other in a circle end with PTO_E_DEADLOCK. Not with is_shared, steals or a calendar. */
typedef struct pto_sim_options {
    int64_t n_workers;         /* AICPUs: the homes of tasks; 0, with a calendar: those that it names, and all below them */
    const int64_t *pool_size;  /* [n_pools] executors that a worker has of each pool; borrowed for pto_sim_new */
    int32_t n_pools;           /* 0: those that tasks name, of one executor a worker */
    int32_t keep_trace;        /* 1: what happened to every task */
    int32_t is_shared;         /* 1: all workers share one queue of ready tasks a pool */
    int32_t steals;            /* 1: an idle executor takes ready tasks of other workers in its pool */
    int32_t is_calendar;       /* 1: an executor runs its tasks in the order of task_position */
    int32_t timing;            /* PTO_TIMING_ */
    const int64_t *starts;     /* [n_starts] by task, with a calendar: it does not begin earlier; borrowed for pto_sim_new */
    int64_t n_starts;          /* of all tasks, 0: they have none */
    int64_t timing_n;
    int64_t release_num;
    int64_t release_den;
    int64_t window;            /* of each stream, 0: none */
    int32_t window_unit;       /* PTO_WINDOW_ */
    int32_t window_mode;       /* PTO_WINDOW_ */
    int64_t start_after;       /* tasks submitted before the first one runs, or PTO_AFTER_ALL; when no stream can go on, it starts too */
    int64_t submit_cycles;     /* of a stream's AICPU for each task: it is submitted first, then the stream is busy for so long */
    int64_t dispatch_cycles;   /* of a task's worker before it runs: one task after another */
    int64_t retire_cycles;     /* of a task's worker after it has run, before others see it completed */
    double bytes_per_cycle;    /* of the memory that all cores share, 0: not bounded. Running tasks that ask for more slow down evenly */
    int32_t interruptible;     /* 1: the main thread calls; SIGINT ends the simulation with PTO_E_CANCELLED, unseen by its handler */
    int32_t n_more;
    const pto_window *more;    /* [n_more] further windows of each stream, no two of one unit; borrowed for pto_sim_new */
    int64_t hop_cycles;        /* 0: workers have no places. Of each step between the workers of a grid, see above */
    int64_t grid_columns;      /* worker w is in row w / grid_columns and column w % grid_columns; with hop_cycles, at least 1 */
    int32_t route;             /* PTO_ROUTE_ */
    int32_t n_axes;            /* of a torus, or ring */
    int64_t axes[PTO_MAX_AXES];        /* [n_axes] ranks along each, counted row-major */
    int64_t rank_workers;      /* workers of a rank */
    int64_t link_pool;         /* the pool of link 0 */
    int64_t link_buffers;      /* copies that the far end of a link has room for, 0: any number */
} pto_sim_options;

/* A copy on one of several links of its route. */
typedef struct pto_sim_hop {
    int64_t task;
    int64_t executor;
    int64_t ready;             /* when it came to the link */
    int64_t start;
    int64_t end;
    int64_t held_by;           /* the task on the link that it waited for, -1: none */
} pto_sim_hop;

/* pto_sim_result.held: what a task waited for last before it ran */
#define PTO_HELD_NOT 0             /* nothing: it ran when it was submitted first */
#define PTO_HELD_EDGE 1            /* held_by: the node (a join, perhaps) that completed last of those that it waits for */
#define PTO_HELD_EXECUTOR 2        /* held_by: the task that ran on its executor before */
#define PTO_HELD_WINDOW 3          /* a window of tasks; held_by: the task whose end made room */
#define PTO_HELD_MARK 4            /* held_by: the mark that its stream stood at */
#define PTO_HELD_RELEASE 5         /* timing */
#define PTO_HELD_START 6           /* the start policy */
#define PTO_HELD_SUBMIT 7          /* the time that submitting takes */
#define PTO_HELD_DISPATCH 8        /* its worker dispatched or retired other tasks */
#define PTO_HELD_CALENDAR 9        /* held_by: the task before it in the calendar, which started after it could have; -1: its start there */
#define PTO_HELD_BYTES 10          /* a window of bytes, and so on; held_by as with PTO_HELD_WINDOW */
#define PTO_HELD_ENTRIES 11
#define PTO_HELD_EDGES 12
#define PTO_HELD_READY 13          /* held_by: the task that an executor took, which made room */

/* Arrays by executor are [n_executors]: pool by pool, in each worker by worker. Arrays by task are [n_tasks], NULL without keep_trace. */
typedef struct pto_sim_result {
    int64_t total_cycles;      /* when the last task completed, counted from 0, when the first stream begins to submit */
    int64_t n_tasks;
    int64_t n_executors;
    int64_t critical_path;     /* cycles of the longest chain of edges, delays and blocking marks */
    int64_t work;              /* cycles of all tasks */
    int64_t window_stalls;     /* those of the unit of pto_sim_options.window, as the two that follow */
    int64_t window_stall_cycles;
    int64_t window_high_water;
    pto_window_use windows[PTO_N_WINDOWS];     /* by unit */
    int64_t failed_task;       /* with PTO_E_WINDOW, the task that found no room, of several the first in the record; with PTO_E_ARGUMENT,
                                  the task that is at fault; with PTO_E_OVERFLOW the one whose cycles no 64 bits hold, or -1; -1 */
    int64_t failed_window;     /* with PTO_E_WINDOW, the unit of the window without room; -1 */
    int64_t failed_need;       /* and how much of it the task needs */
    int64_t stalls[PTO_N_STALLS];          /* times a stream stood at a mark, by PTO_STALL_ */
    int64_t stall_cycles[PTO_N_STALLS];
    int64_t memory_cycles;     /* cycles that tasks took longer because of others in memory */
    const int64_t *pool;       /* [n_executors] */
    const int64_t *busy;       /* cycles */
    const int64_t *waiting;    /* idle, and not late, while a task of its queue was submitted and not ready */
    const int64_t *late;       /* idle while a ready and released task stood in a queue of its pool, or while its task was dispatched.
                                  What is left of total_cycles: idle without work */
    const int64_t *tasks_run;
    const int64_t *submit;     /* by task: when it was submitted */
    const int64_t *start;
    const int64_t *end;
    const int64_t *complete;   /* when others saw it complete: with dispatch_cycles or retire_cycles after its end */
    const int64_t *ready;      /* when its last predecessor had completed */
    const int64_t *executor;
    const uint8_t *held;       /* PTO_HELD_ */
    const int64_t *held_by;    /* a node or task (by its number in the stream), -1: none */
    const pto_sim_hop *hops;   /* [n_hops] those that have ended, in this order; `start` and `executor` of such a task are its first one's */
    int64_t n_hops;            /* of tasks with several */
} pto_sim_result;

pto_sim *pto_sim_new(const pto_sim_options *options);       /* NULL: no memory, or options that contradict one another */
void pto_sim_free(pto_sim *sim);
int32_t pto_sim_feed(pto_sim *sim, const pto_record *record);          /* the tasks kept in record, in order */
int32_t pto_sim_feed_columns(pto_sim *sim, const pto_columns *columns);    /* the same of columns, which are borrowed for the call */
int32_t pto_sim_finish(pto_sim *sim, pto_sim_result *out);  /* drains; pointers live as long as sim */

/* ---- one run: orchestrate, then execute (in chunks past max_tasks, feeding sim chunk by chunk). Without a pool, NULL,
   nothing is executed: only the record is made and, past max_tasks, the simulator fed ---- */
typedef struct pto_run_options {
    pto_orchestrate_fn orchestrate;     /* NULL: the record is complete already, only execute it */
    const pto_bindings *bindings;
    const pto_kernel *kernels;
    pto_sim *sim;                       /* fed only once tasks are dropped, NULL: never */
    int32_t n_kernels;
    int32_t interruptible;              /* 1: the main thread calls; SIGINT ends the run with PTO_E_CANCELLED, unseen by its handler */
    pto_execute_options execute;
    int32_t (*on_chunk)(const pto_columns *columns, void *user);   /* NULL, or: given each chunk in place of sim; a status */
    void *user;
} pto_run_options;

int32_t pto_run(pto_pool *pool, pto_record *record, const pto_run_options *options, pto_execute_result *result);
