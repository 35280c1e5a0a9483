/* pto_program_api.h: a saved program as a C library: what it binds, and one call that runs it. Python's share of a run (checking what
   is bound, texts of errors) is in C here, so that a program needs no Python.

   Read twice, as pto_abi.h: by the compiler (through pto_program.h, which guards it) and unchanged by cffi's cdef, so no directives. */

typedef struct pto_program pto_program;

/* A tensor that a run binds. A run may bind other dims and outer strides, of the same rank and dtype. */
typedef struct pto_program_tensor {
    const char *name;
    const char *dtype;         /* as NumPy names it */
    int64_t dim[8];            /* as declared */
    int32_t rank;
    int32_t elem_bytes;
    int32_t is_read;           /* 1: tasks, or the walk over them, read it */
    int32_t is_written;        /* 1: tasks write it */
    int32_t is_made;           /* 1: results between tasks: a run makes it where nobody binds it */
    int32_t is_fresh;          /* 1: the workload makes it, time and again: it cannot be bound */
} pto_program_tensor;

/* A number that a run binds: a symbol, or the extent of an axis. */
typedef struct pto_program_symbol {
    const char *name;
    int32_t is_float;
    int32_t is_given;          /* 1: a run may leave it out, it is `value` then */
    int64_t value;
    int64_t least;             /* least .. most for whole numbers */
    int64_t most;
} pto_program_symbol;

/* Memory for a tensor; strides in elements. data NULL with is_bound 0: nobody bound it. */
typedef struct pto_program_array {
    void *data;
    int64_t dim[8];
    int64_t stride[8];
    int32_t rank;
    int32_t is_bound;
} pto_program_array;

typedef struct pto_program_value {
    double number;             /* of a float symbol */
    int64_t whole;             /* of any other */
    int32_t is_bound;
    int32_t reserved;
} pto_program_value;

typedef struct pto_program_result {
    int64_t n_tasks;
    int64_t total_cycles;      /* simulated */
    double run_ms;
    int32_t threads;           /* that took part */
    int32_t status;            /* PTO_E_ of pto_abi.h, 0 when all went well */
    char message[4096];        /* what went wrong, for people: "" when all went well */
} pto_program_result;

const char *pto_program_name(const pto_program *program);
int32_t pto_program_tensors(const pto_program *program, const pto_program_tensor **out);    /* the number of them; static */
int32_t pto_program_symbols(const pto_program *program, const pto_program_symbol **out);

/* Run. arrays and values are in the order of the tables; threads 0: all that this process may use. Returns result->status.
   Arrays are borrowed for the call. Where the caller is the process's first thread and handles SIGINT, the signal ends the run, with
   PTO_E_CANCELLED, and the handler is called then. Several threads may run programs at a time, each on arrays of its own. */
int32_t pto_program_run(const pto_program *program, const pto_program_array *arrays, const pto_program_value *values, int32_t threads,
                        pto_program_result *result);
