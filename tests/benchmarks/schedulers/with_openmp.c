/* with_openmp.c: tasks with depend clauses; they are made and run at once, so there is one figure: `all`. */
#include <omp.h>

#include "graphs.h"

static char made[N_TASKS];

static void run(int graph)
{
#pragma omp parallel
#pragma omp single
    for (int32_t i = 0; i < N_TASKS; i++) {
        int32_t a = first[i] >= 0 ? first[i] : second[i], b = second[i] >= 0 ? second[i] : a;
        if (graph == 0) {
#pragma omp task firstprivate(i)
            body(i);
        } else if (a < 0) {
#pragma omp task firstprivate(i) depend(out : made[i])
            body(i);
        } else if (a == b) {
#pragma omp task firstprivate(i) depend(in : made[a]) depend(out : made[i])
            body(i);
        } else {
#pragma omp task firstprivate(i) depend(in : made[a], made[b]) depend(out : made[i])
            body(i);
        }
    }
}

int main(int argc, char **argv)
{
    omp_set_num_threads(argc > 1 ? atoi(argv[1]) : 2);
    for (int graph = 0; graph < N_GRAPHS; graph++) {
        double all = 1e30;
        make_graph(graph);
        for (int k = -N_CHECKED; k < N_TIMED; k++) {
            check_order = k < 0;
            double begin = now_ns();
            run(graph);
            if (k < 0)
                check_all(graph);
            else
                all = least(all, now_ns() - begin);
        }
        report(graph, "all", all);
    }
    return 0;
}
