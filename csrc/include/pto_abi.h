/* pto_abi.h: the ABI text between the runtime library, every artifact and Python: tasks, marks, what an orchestrator writes to.
   pto_library.h, which goes with it, has what the library does with them.

   Both are read twice, by the C compiler (through pto_wsp.h, which guards them) and unchanged by cffi's cdef, so they hold no
   directives but #define of plain numbers. Sizes are in elements unless the name ends in _bytes; ids count from 0.
   Ownership: whoever calls *_new calls *_free; every pointer passed in is borrowed for the call unless said otherwise. */

#define PTO_ABI_VERSION 7
#define PTO_RANK 2
#define PTO_TENSOR_RANK 8
#define PTO_MAX_ARGS 32
#define PTO_MAX_SCALARS 16
#define PTO_MAX_INDEX 8

/* status codes: what every int32_t-returning function of the library returns */
#define PTO_OK 0
#define PTO_E_NOMEM 1
#define PTO_E_GUARD 2
#define PTO_E_KERNEL 3
#define PTO_E_CANCELLED 4
#define PTO_E_ARGUMENT 5
#define PTO_E_DEADLOCK 6
#define PTO_E_UNEXECUTED 8     /* a mark is to have run, and nothing executes: no pool */
#define PTO_E_RACE 9           /* the sanitizer's report has the tasks */
#define PTO_E_MISUSE 10        /* a task used memory that is not its own, or that nobody wrote: the sanitizer's report has it */
#define PTO_E_WINDOW 11        /* a window that does not wait was full */
#define PTO_E_OVERFLOW 12      /* cycles that do not fit 64 bits */
#define PTO_E_OUTPUTS 13       /* two arguments that a task writes share elements: pto_record_clash() has the task */

/* pto_arg.flags */
#define PTO_READ 1
#define PTO_WRITE 2
#define PTO_STAGE 4
#define PTO_KEPT 8             /* of an intermediate: its memory counts in a window of bytes */

/* why an edge exists; several bits may be set on one edge */
#define PTO_EDGE_RAW 1
#define PTO_EDGE_WAR 2
#define PTO_EDGE_WAW 4
#define PTO_EDGE_ORDER 8
#define PTO_EDGE_AFTER 16
#define PTO_EDGE_CHANNEL 32
#define PTO_EDGE_EVENT 64
#define PTO_EDGE_READ 128          /* the orchestrator reads what the source writes */
#define PTO_EDGE_LANE 256          /* the same lane: a stream of the schedule */

/* node kinds of a record: a join completes when its predecessors have, a mark also has a place in a stream; neither is a task */
#define PTO_NODE_TASK 0
#define PTO_NODE_JOIN 1
#define PTO_NODE_MARK 2

/* pto_mark.flags */
#define PTO_MARK_BLOCKS 1          /* its stream submits nothing more before it has completed */
#define PTO_MARK_NOW 2             /* all that it waits for has run when mark() returns: the orchestrator goes on to read memory */
#define PTO_MARK_RESTS 4           /* its stream has nothing to submit for now: simulated time goes on without it until its next node */

/* pto_mark.stall: what a stream that stands at a mark waits for; but for a read, once its structural predecessors have completed */
#define PTO_STALL_NONE 0           /* what stands before it */
#define PTO_STALL_CHANNEL_EMPTY 1
#define PTO_STALL_CHANNEL_FULL 2
#define PTO_STALL_READ 3
#define PTO_STALL_EVENT 4
#define PTO_N_STALLS 5

/* pto_stuck.waits_for */
#define PTO_STUCK_SEND 1           /* the channel is full; without slots: nobody receives */
#define PTO_STUCK_RECEIVE 2        /* the channel is empty */
#define PTO_STUCK_TURN 3           /* another producer or consumer of the channel is next */
#define PTO_STUCK_EVENT 4          /* the event has not been recorded */
#define PTO_STUCK_CLOSED 5         /* the channel is empty and closed: there will be no token */
#define PTO_STUCK_LOST 6           /* nobody takes what has been sent */
#define PTO_STUCK_NEVER 7          /* the process that records the event has ended */

/* What one parameter of one task is bound to: a strided box of at most two dimensions, its valid part. */
typedef struct pto_arg {
    char *data;                /* the first element */
    int64_t extent[PTO_RANK];  /* valid rows, valid columns; 0 in either means empty */
    int64_t stride[PTO_RANK];  /* in elements, may be 0 or negative */
    int32_t buffer;            /* alias group: arguments of different groups share no memory */
    int32_t flags;             /* PTO_READ, PTO_WRITE; PTO_STAGE: copy before use, it overlaps a written argument */
    int32_t elem_bytes;
    int32_t reserved;
} pto_arg;

/* What a kernel knows about the failure that it is about to return, all 0 where it has nothing to add. Of a guard: row and col are
   where the piece starts, lower and upper the last row and column that it may start at. */
typedef struct pto_fault {
    int64_t row;               /* the element, in the tile of the statement that failed */
    int64_t col;
    int64_t value;             /* 64 bits: an integer, or the bits of a double */
    int64_t lower;             /* where the value had to be in lower .. upper, both included */
    int64_t upper;
} pto_fault;

/* What a task may tell its runtime while it runs. One a worker: valid until the entry returns, private to the thread. */
typedef struct pto_context {
    int64_t node;              /* which task runs: the position of its node in the record */
    struct pto_prints *prints;     /* NULL: nobody reads, nothing is kept */
    /* Keep a copy of rows x cols elements: value number `statement` of the kernel's printed ones; steps in elements. */
    void (*print)(struct pto_context *context, int32_t statement, const void *data, int32_t elem_bytes, int64_t rows,
                  int64_t cols, int64_t row_step, int64_t col_step);
    pto_fault fault;
    const volatile int32_t *cancel;    /* not 0: nobody wants what the task makes, it may return PTO_CANCELLED. Never NULL */
} pto_context;

/* what an entry returns that has seen its run cancelled: what the task writes is undefined then */
#define PTO_CANCELLED -1

/* A kernel's entry: 0, PTO_CANCELLED, or 1 + the number of what failed, its guards first. Scalars are 64-bit slots (floats: bits of a
   double). scratch is 64-byte aligned and private to the thread. */
typedef int32_t (*pto_kernel_fn)(const pto_arg *args, const int64_t *scalars, char *scratch, pto_context *context);

typedef struct pto_kernel {
    pto_kernel_fn entry;
    int64_t scratch_bytes;
} pto_kernel;

/* One task as the orchestrator submits it. Arrays are borrowed for the call. */
typedef struct pto_task {
    int32_t kernel;            /* index in the program's kernel table */
    int32_t site;              /* which call of the workload's text */
    int64_t worker;            /* home: which AICPU, from 0 */
    int64_t cost;              /* cycles on the architecture model, >= 0 */
    int32_t n_args;
    int32_t n_scalars;
    int32_t n_index;           /* bracket indices, for people */
    int32_t n_order;
    const pto_arg *args;
    const int64_t *scalars;
    const int64_t *index;
    const int64_t *order;      /* nodes that must complete first (structure), -1 entries are skipped */
    int32_t n_after;
    int32_t stream;            /* 0: the main program; every other one submits on a front of its own */
    const int64_t *after;      /* the same, from after= */
    int64_t lane;              /* a stream of the schedule, from 1: its tasks run one after another; 0: none */
    int64_t pool;              /* which of its AICPU's pools of executors runs it */
    int64_t priority;          /* of ready tasks the one with the highest goes first */
    int64_t position;          /* with a calendar: its place among the tasks of its worker */
    int64_t bytes;             /* that it moves between memory and its core */
    int64_t ranks;             /* of a mesh: 1 + the rank that it runs on, + 65536 * (1 + the rank that a copy reads from); 0: none */
} pto_task;

/* A node that is no task. It completes `delay` cycles after its predecessors have completed and its stream has come to it.
   Natively it has nothing to run and takes no time. Arrays are borrowed for the call. */
typedef struct pto_mark {
    int32_t stream;
    int32_t flags;             /* PTO_MARK_ bits */
    int32_t why;               /* PTO_EDGE_ bits of the edges from before */
    int32_t stall;             /* PTO_STALL_, for the figures of a stream that stands here */
    int32_t site;              /* which statement of the workload's text, -1: none */
    int32_t n_before;
    int32_t n_order;
    int32_t n_args;
    const int64_t *before;     /* nodes that must complete first, -1 entries are skipped */
    const int64_t *order;      /* the same (structure) */
    const pto_arg *args;       /* elements that the orchestrator reads: waits for their latest writers, where edges are inferred.
                                  No later write waits for the mark: a stream that reads blocks until it has read. */
    int64_t delay;             /* cycles, >= 0 */
} pto_mark;

/* A bound tensor: dims and strides in elements. */
typedef struct pto_tensor {
    char *data;
    int64_t dim[PTO_TENSOR_RANK];
    int64_t stride[PTO_TENSOR_RANK];
    int32_t buffer;
    int32_t rank;
} pto_tensor;

typedef struct pto_bindings {
    const pto_tensor *tensors;
    const int64_t *symbols;    /* 64-bit slots */
    int32_t n_tensors;
    int32_t n_symbols;
} pto_bindings;

/* A guard of the orchestrator that failed: which, and the values that it compared. */
typedef struct pto_guard {
    int32_t guard;
    int32_t n_index;
    int64_t found;
    int64_t lower;             /* found must be in lower .. upper, both included */
    int64_t upper;
    int64_t index[PTO_MAX_INDEX];
} pto_guard;

/* One process that cannot go on, in the report of a deadlock. */
typedef struct pto_stuck {
    int32_t stream;
    int32_t site;              /* the statement at which it stands */
    int32_t waits_for;         /* PTO_STUCK_ */
    int32_t channel;           /* or the event */
    int64_t position;          /* the token (or recording) that it waits for, from 0 */
    int32_t peer;              /* the stream that could let it go on, -1: none */
    int32_t reserved;
} pto_stuck;

/* What an orchestrator writes to. Functions return a node id >= 0, or -1 after an error that is kept in status: the
   orchestrator then returns at once. A join of no nodes is `empty`, of one node is that node.
   fresh makes a contiguous tensor that shares memory with no other, for tasks submitted between it and release; the memory is
   the record's. Its contents are undefined. Both return a status, as fail and stuck do.
   A loop that may take long without a call looks at cancel: not 0, and the orchestrator returns PTO_E_CANCELLED at once. */
typedef struct pto_sink {
    int64_t (*submit)(struct pto_sink *sink, const pto_task *task);
    int64_t (*join_open)(struct pto_sink *sink);
    int32_t (*join_add)(struct pto_sink *sink, int64_t join, int64_t node);
    int64_t (*join_close)(struct pto_sink *sink, int64_t join, int64_t empty);
    int32_t (*fail)(struct pto_sink *sink, const pto_guard *guard);
    int64_t (*mark)(struct pto_sink *sink, const pto_mark *mark);
    int32_t (*fresh)(struct pto_sink *sink, pto_tensor *out, int32_t elem_bytes, int32_t rank, const int64_t *dims);
    int32_t (*release)(struct pto_sink *sink, const pto_tensor *tensor);
    int32_t (*stuck)(struct pto_sink *sink, const pto_stuck *rows, int32_t n);     /* PTO_E_DEADLOCK */
    const volatile int32_t *cancel;    /* never NULL */
    int32_t status;
    int32_t reserved;
} pto_sink;

typedef int32_t (*pto_orchestrate_fn)(const pto_bindings *bindings, pto_sink *sink);

/* ---- handshake: the library's and each artifact's view of this text ---- */
typedef struct pto_layout {
    const char *name;          /* "struct" or "struct.field" */
    int64_t size_bytes;
    int64_t offset_bytes;
} pto_layout;

int32_t pto_abi_version(void);
int32_t pto_abi_layout(const pto_layout **out);      /* the number of rows; rows are static */

/* what an artifact's library exports */
typedef struct pto_artifact {
    int32_t abi_version;
    int32_t n_kernels;
    int32_t n_layout;
    int32_t reserved;
    const pto_kernel *kernels;
    const pto_layout *layout;
    pto_orchestrate_fn orchestrate;
    const char *digest;        /* of the plan that it was made from */
} pto_artifact;

const pto_artifact *pto_artifact_entry(void);
