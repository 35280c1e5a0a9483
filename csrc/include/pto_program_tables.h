/* pto_program_tables.h: what a saved program knows of itself, as its src/program.c gives it and csrc/program reads it. */
#ifndef PTO_PROGRAM_TABLES_H
#define PTO_PROGRAM_TABLES_H
#include "pto_program.h"
#include "pto_wsp.h"

/* What a tensor is beside what its user sees. */
typedef struct pto_program_slot {
    int32_t is_scalars;        /* 1: the orchestrator reads elements of it */
    int32_t is_unit_inner;     /* 1: neighbours of the last dimension lie side by side */
    int32_t is_signed;         /* of whole numbers */
    int32_t is_injective;      /* contracts, of a tensor that no task writes */
    int32_t is_monotone;
    int32_t fixed;             /* bit k: dimension k is bound with the extent declared */
} pto_program_slot;

/* A check of the orchestrator, by its number. */
typedef struct pto_program_check {
    const char *what;          /* as a sentence */
    const char *subject;       /* as the user wrote it */
    const char *value;         /* the expression that was checked, "" for a plain one */
    const char *place;         /* file:line */
    const char *const *loops;  /* the variables around it, NULL-terminated */
    int32_t is_extent;
} pto_program_check;

/* What a kernel's guard protects. */
typedef struct pto_program_guard {
    const char *what;
    const char *place;
    int32_t is_index;          /* 1: an index; 0: a piece of a region */
} pto_program_guard;

typedef struct pto_program_kernel {
    const char *name;
    const pto_program_guard *guards;
    int32_t n_guards;
    int32_t has_own_body;
} pto_program_kernel;

/* A call in the workload's text. */
typedef struct pto_program_site {
    const char *place;
    const char *const *labels; /* of its indices, NULL-terminated; a label that is a number stands for itself */
    int32_t kernel;
} pto_program_site;

/* The sparse axis of two tensors, by their slots. */
typedef struct pto_program_sparse {
    const char *name;
    int32_t indptr;
    int32_t indices;
} pto_program_sparse;

struct pto_program {
    const char *name;
    const pto_artifact *artifact;
    const pto_program_tensor *tensors;
    const pto_program_slot *slots;         /* [n_tensors] */
    const pto_program_symbol *symbols;
    const pto_program_check *checks;
    const pto_program_kernel *kernels;
    const pto_program_site *sites;
    const pto_program_sparse *sparse;
    const char *const *streams;            /* names of processes by stream */
    const char *const *channels;
    const char *const *events;
    const pto_record_options record;
    const pto_execute_options execute;
    const pto_sim_options sim;
    int32_t n_tensors;
    int32_t n_symbols;
    int32_t n_checks;
    int32_t n_sites;
    int32_t n_sparse;
    int32_t n_streams;
    int32_t n_channels;
    int32_t n_events;
};

/* The program of the library that this is compiled into: its src/program.c defines it. */
const pto_program *pto_program_here(void);

#endif
