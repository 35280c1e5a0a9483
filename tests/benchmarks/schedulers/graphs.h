/* graphs.h: what every scheduler runs: four graphs of tasks, a body that can check the order, a clock, and the form of a result.

   Read by C and by C++. A task is its number; its predecessors are `first[i]` and `second[i]`, -1 for none. Tasks are empty while time is
   taken. Before that, `check_order` is set and each task sees to it that its predecessors have run, and that it runs once. */
#ifndef GRAPHS_H
#define GRAPHS_H
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef SIDE
#define SIDE 256
#endif
#define N_TASKS (SIDE * SIDE)
#define N_GRAPHS 4
#define REACH 1000                     /* how far back a predecessor of the random graph is */
#define N_CHECKED 3
#define N_TIMED 5

static const char *const graph_names[N_GRAPHS] = {"independent", "chain", "wavefront", "random"};
static int32_t first[N_TASKS], second[N_TASKS];
static int check_order;
static int runs[N_TASKS];              /* touched by atomic operations only */
static int n_early;

static void make_graph(int graph)
{
    uint32_t random = 12345;
    for (int32_t i = 0; i < N_TASKS; i++) {
        first[i] = second[i] = -1;
        if (graph == 1) {
            first[i] = i - 1;
        } else if (graph == 2) {
            first[i] = i >= SIDE ? i - SIDE : -1;
            second[i] = i % SIDE != 0 ? i - 1 : -1;
        } else if (graph == 3 && i > 0) {
            uint32_t reach = i < REACH ? (uint32_t)i : REACH;
            random = random * 1664525u + 1013904223u;
            first[i] = i - 1 - (int32_t)((random >> 8) % reach);
            random = random * 1664525u + 1013904223u;
            second[i] = i - 1 - (int32_t)((random >> 8) % reach);
            if (second[i] == first[i])
                second[i] = -1;
        }
    }
}

static void check_task(int64_t i)
{
    int32_t before[2] = {first[i], second[i]};
    for (int k = 0; k < 2; k++)
        if (before[k] >= 0 && __atomic_load_n(&runs[before[k]], __ATOMIC_RELAXED) == 0)
            __atomic_fetch_add(&n_early, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&runs[i], 1, __ATOMIC_RELAXED);
}

static inline void body(int64_t i)
{
    if (__builtin_expect(check_order, 0))
        check_task(i);
}

static void check_all(int graph)
{
    for (int32_t i = 0; i < N_TASKS; i++)
        if (runs[i] != 1 || n_early != 0) {
            fprintf(stderr, "%s: task %d ran %d times, %d ran before a predecessor\n", graph_names[graph], i, runs[i], n_early);
            exit(1);
        }
    memset(runs, 0, sizeof runs);
}

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static inline double least(double a, double b)
{
    return a < b ? a : b;
}

static void report(int graph, const char *phase, double ns)
{
    printf("%s %s %.2f\n", graph_names[graph], phase, ns / N_TASKS);
}

#endif
