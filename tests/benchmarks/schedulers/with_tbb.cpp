/* with_tbb.cpp: oneTBB's flow graph: a node a task, made once and run several times. */
#include <memory>
#include <vector>

#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/global_control.h>

#include "graphs.h"

using node = tbb::flow::continue_node<tbb::flow::continue_msg>;

int main(int argc, char **argv)
{
    tbb::global_control limit(tbb::global_control::max_allowed_parallelism, argc > 1 ? atoi(argv[1]) : 2);
    for (int graph = 0; graph < N_GRAPHS; graph++) {
        double build = 1e30, run = 1e30, all = 1e30;
        make_graph(graph);
        for (int k = -N_CHECKED; k < N_TIMED; k++) {
            double begin = now_ns();
            tbb::flow::graph tasks;
            std::vector<std::unique_ptr<node>> nodes(N_TASKS);
            for (int32_t i = 0; i < N_TASKS; i++) {
                nodes[i] = std::make_unique<node>(tasks, [i](const tbb::flow::continue_msg &) { body(i); });
                for (int32_t before : {first[i], second[i]})
                    if (before >= 0)
                        tbb::flow::make_edge(*nodes[before], *nodes[i]);
            }
            double built = now_ns();
            for (int again = 0; again < 3; again++) {
                check_order = k < 0;
                double start = now_ns();
                for (int32_t i = 0; i < N_TASKS; i++)
                    if (first[i] < 0 && second[i] < 0)
                        nodes[i]->try_put(tbb::flow::continue_msg());
                tasks.wait_for_all();
                double end = now_ns();
                if (k < 0) {
                    check_all(graph);
                    continue;
                }
                run = least(run, end - start);
                if (again == 0)
                    all = least(all, end - begin);
            }
            if (k >= 0)
                build = least(build, built - begin);
        }
        report(graph, "build", build);
        report(graph, "run", run);
        report(graph, "all", all);
    }
    return 0;
}
