/* with_taskflow.cpp: Taskflow: a task graph with explicit edges, made once and run several times. */
#include <vector>

#include <taskflow/taskflow.hpp>

#include "graphs.h"

int main(int argc, char **argv)
{
    tf::Executor executor(argc > 1 ? atoi(argv[1]) : 2);
    for (int graph = 0; graph < N_GRAPHS; graph++) {
        double build = 1e30, run = 1e30, all = 1e30;
        make_graph(graph);
        for (int k = -N_CHECKED; k < N_TIMED; k++) {
            double begin = now_ns();
            tf::Taskflow flow;
            std::vector<tf::Task> tasks(N_TASKS);
            for (int32_t i = 0; i < N_TASKS; i++) {
                tasks[i] = flow.emplace([i] { body(i); });
                for (int32_t before : {first[i], second[i]})
                    if (before >= 0)
                        tasks[i].succeed(tasks[before]);
            }
            double built = now_ns();
            for (int again = 0; again < 3; again++) {
                check_order = k < 0;
                double start = now_ns();
                executor.run(flow).wait();
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
