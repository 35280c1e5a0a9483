/* sim_service.h: workers that take time to dispatch and to retire tasks: each does one thing after another.

   Ownership: pto_sim owns the service, the service owns its servers; it is closed, and nothing of it is used, where dispatching and retiring
   take no time. Units: times in cycles. */
#ifndef PTO_SIM_SERVICE_H
#define PTO_SIM_SERVICE_H
#include "sim_executors.h"

#pragma GCC visibility push(hidden)

typedef struct pto_sim_server {
    pto_sim_heap ended;        /* (end, node) of tasks that it is to retire */
    pto_sim_heap wanted;       /* dispatches that its queues asked for; the server passes over what its queue no longer asks for */
    int64_t node;              /* that it dispatches or retires, -1: it is free */
    int64_t executor;          /* that it dispatches to, -1: it retires */
} pto_sim_server;

typedef struct pto_sim_service {
    const pto_sim_options *options;
    pto_sim_clock *clock;
    pto_sim_nodes *nodes;
    pto_sim_trace *trace;
    pto_sim_pools *pools;
    pto_sim_executors *executors;
    pto_sim_server *servers;   /* [n_servers] by worker, from the first dispatch on */
    int64_t n_servers;
    pto_sim_entry *asked;      /* [n_asked] by queue, where workers share nothing: the dispatch that it wants, (since, node); node -1: none */
    int64_t n_asked, asked_capacity;
} pto_sim_service;

void pto_sim_service_init(pto_sim_service *service, pto_sim_executors *executors);
void pto_sim_service_close(pto_sim_service *service);
bool pto_sim_service_retire(pto_sim_service *service, int64_t executor, int64_t node);     /* its task has ended. False: no memory */
bool pto_sim_serve(pto_sim_service *service);              /* free workers begin what is to be done. False: no memory */
/* The earliest service to end does so now. Returns the node of a task that has been retired; -1: the service was a dispatch, or failed. */
int64_t pto_sim_end_service(pto_sim_service *service);

#pragma GCC visibility pop

#endif
