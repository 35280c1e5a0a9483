/* test_channel.c: processes written by hand on pto_channel.h: turns, slots, closing, rendezvous, what is reported when they stop. */
#include "check.h"
#include "pto_channel.h"

enum { MOST = 64 };

/* What a test's processes do: each a list of statements on the two channels and the event; 0 ends it. */
enum { SEND_A = 1, SEND_B, TAKE_A, TAKE_B, DRAIN_A, RECORD, PASS };

typedef struct frame {
    pto_process process;
    int64_t at;            /* the next statement */
    int64_t value;
    int64_t n_passed;
} frame;

static const int *scripts[4];
static pto_pipeline *current;
static int64_t taken[4][MOST], n_taken[4];
static int64_t n_calls;

static int32_t step(void *run, pto_process *process)
{
    (void)run;
    frame *self = (frame *)process;
    pto_pipeline *p = current;
    int number = process->stream - p->first_stream;
    n_calls++;
    for (;; self->at++) {
        int what = scripts[number][self->at], site = (int)self->at;
        if (what == 0)
            return pto_end_process(p, process);
        pto_channel *c = &p->channels[what == SEND_B || what == TAKE_B];
        int64_t before[1], payload[1] = {100 * number + self->value};
        const int64_t *token;
        switch (what) {
        case SEND_A:
        case SEND_B:
            if (pto_may_send(p, c, process, 1, site) == PTO_WAITS)
                return p->sink->status;
            if (pto_send(p, c, process, site, payload, before, 1, &process->after))
                return p->sink->status;
            self->value++;
            break;
        case RECORD:
            if (pto_record_event(p, p->events, process, site, -1, &process->after))
                return p->sink->status;
            break;
        case PASS:
            if (pto_may_pass(p, p->events, process, 1, site, self->n_passed) == PTO_WAITS)
                return p->sink->status;
            if (pto_pass_event(p, p->events, process, site, self->n_passed++, &process->after))
                return p->sink->status;
            break;
        case DRAIN_A:
            if (pto_may_take(p, c, process, 1, site, process->after) == PTO_WAITS)
                return p->sink->status;
            if (pto_is_drained(c))
                break;
            token = pto_take(p, c, process, site, &process->after);
            taken[number][n_taken[number]++] = token[0];
            self->at--;         /* the same again */
            break;
        default:
            if (pto_must_take(p, c, process, 1, site, process->after) == PTO_WAITS)
                return p->sink->status;
            token = pto_take(p, c, process, site, &process->after);
            taken[number][n_taken[number]++] = token[0];
        }
    }
}

typedef struct network {
    int64_t depth_a, depth_b;
    int32_t makers_a[2], takers_a[2], makers_b[1], takers_b[1];    /* streams, 0: none */
    int32_t n_processes, recorder;
    int64_t latency;
} network;

static pto_turns turns(const int32_t *streams, int32_t most)
{
    int32_t n = 0;
    while (n < most && streams[n] != 0)
        n++;
    return (pto_turns){streams, n, 0};
}

/* Run the scripts; returns the status, and the record for who wants to look. */
static int32_t run(const network *n, pto_record **record)
{
    *record = pto_record_new(&(pto_record_options){.infer = 1});
    pto_sink *sink = pto_record_sink(*record);
    pto_channel channels[2] = {
        {.number = 5, .n_payload = 1, .depth = n->depth_a, .latency = n->latency, .producers = turns(n->makers_a, 2),
         .consumers = turns(n->takers_a, 2), .arrived = -1},
        {.number = 6, .n_payload = 1, .depth = n->depth_b, .producers = turns(n->makers_b, 1), .consumers = turns(n->takers_b, 1),
         .arrived = -1}};
    pto_event event = {.number = 3, .recorder = n->recorder};
    const pto_process_kind kinds[1] = {{step, sizeof(frame), n->n_processes, 0}};
    pto_pipeline pipeline = pto_open_pipeline(sink, channels, 2, &event, 1, 1, 1);
    current = &pipeline;
    memset(taken, 0, sizeof taken);
    memset(n_taken, 0, sizeof n_taken);
    n_calls = 0;
    int64_t after = -1;
    return pto_run_pipeline(&pipeline, kinds, 1, NULL, &after);
}

static void script(int process, const int *statements)
{
    scripts[process] = statements;
}

/* ---- what goes where ---- */

static void tokens_arrive_in_order(void)
{
    const int from[] = {SEND_A, SEND_A, SEND_A, SEND_A, SEND_A, 0}, to[] = {DRAIN_A, 0};
    for (int64_t depth = 0; depth <= 6; depth++) {
        script(0, from);
        script(1, to);
        pto_record *record;
        CHECK_EQ(run(&(network){.depth_a = depth, .depth_b = 1, .makers_a = {1}, .takers_a = {2}, .n_processes = 2}, &record), PTO_OK);
        CHECK_EQ(n_taken[1], 5);
        for (int k = 0; k < 5; k++)
            CHECK_EQ(taken[1][k], k);
        pto_record_free(record);
    }
}

static void producers_and_consumers_take_turns(void)
{
    const int three[] = {SEND_A, SEND_A, SEND_A, 0}, one[] = {SEND_A, 0}, drain[] = {DRAIN_A, 0};
    script(0, three);
    script(1, one);
    script(2, drain);
    script(3, drain);
    pto_record *record;
    CHECK_EQ(run(&(network){.depth_a = 1, .depth_b = 1, .makers_a = {1, 2}, .takers_a = {3, 4}, .n_processes = 4}, &record), PTO_OK);
    /* merged: 0, 100, 1, 2 (process 1 has ended); dealt: the 1st and 3rd, the 2nd and 4th */
    CHECK(n_taken[2] == 2 && taken[2][0] == 0 && taken[2][1] == 1);
    CHECK(n_taken[3] == 2 && taken[3][0] == 100 && taken[3][1] == 2);
    pto_record_free(record);
}

static void a_consumer_that_ends_is_passed_over(void)
{
    const int four[] = {SEND_A, SEND_A, SEND_A, SEND_A, 0}, one[] = {TAKE_A, 0}, drain[] = {DRAIN_A, 0};
    script(0, four);
    script(1, one);
    script(2, drain);
    pto_record *record;
    CHECK_EQ(run(&(network){.depth_a = 2, .depth_b = 1, .makers_a = {1}, .takers_a = {2, 3}, .n_processes = 3}, &record), PTO_OK);
    CHECK(n_taken[1] == 1 && taken[1][0] == 0 && n_taken[2] == 3 && taken[2][0] == 1 && taken[2][2] == 3);
    pto_record_free(record);
}

static void rings_grow_with_what_is_sent(void)
{
    static int many[50], takes[3] = {DRAIN_A, 0};
    for (int k = 0; k < 49; k++)
        many[k] = SEND_A;
    script(0, many);
    script(1, takes);
    pto_record *record;
    CHECK_EQ(run(&(network){.depth_a = 1 << 20, .depth_b = 1, .makers_a = {1}, .takers_a = {2}, .n_processes = 2}, &record), PTO_OK);
    CHECK_EQ(n_taken[1], 49);
    for (int k = 0; k < 49; k++)
        CHECK_EQ(taken[1][k], k);
    CHECK(n_calls <= 4);       /* nobody ever waited for room */
    pto_record_free(record);
}

static void events_are_passed_one_by_one(void)
{
    const int records[] = {RECORD, SEND_A, RECORD, 0}, passes[] = {PASS, TAKE_A, PASS, 0};
    script(0, passes);
    script(1, records);
    pto_record *record;
    CHECK_EQ(run(&(network){.depth_a = 1, .depth_b = 1, .makers_a = {2}, .takers_a = {1}, .n_processes = 2, .recorder = 2}, &record),
             PTO_OK);
    CHECK(n_taken[0] == 1 && taken[0][0] == 100);
    pto_record_free(record);
}

/* ---- time ---- */

static int64_t cycles_of(const network *n)
{
    pto_record *record;
    CHECK_EQ(run(n, &record), PTO_OK);
    pto_columns c;
    pto_record_columns(record, &c);
    int64_t longest = 0;
    int64_t done[256] = {0};
    for (int64_t node = 0, mark = 0; node < c.n_nodes && node < 256; node++) {
        for (int64_t k = c.pred_begin[node]; k < c.pred_begin[node + 1]; k++)
            if (done[c.edge_src[k]] > done[node])
                done[node] = done[c.edge_src[k]];
        if (c.node_kind[node] == PTO_NODE_MARK)
            done[node] += c.mark_delay[mark++];
        if (done[node] > longest)
            longest = done[node];
    }
    pto_record_free(record);
    return longest;
}

static void latency_counts_once_a_token_and_slots_hold_senders(void)
{
    const int from[] = {SEND_A, SEND_A, SEND_A, SEND_A, 0}, to[] = {DRAIN_A, 0};
    script(0, from);
    script(1, to);
    network n = {.depth_b = 1, .makers_a = {1}, .takers_a = {2}, .n_processes = 2, .latency = 10};
    n.depth_a = 4;
    CHECK_EQ(cycles_of(&n), 10);       /* all sent at once */
    n.depth_a = 2;
    CHECK_EQ(cycles_of(&n), 20);       /* the 3rd waits until the 1st has been taken */
    n.depth_a = 1;
    CHECK_EQ(cycles_of(&n), 40);
    n.depth_a = 0;
    CHECK_EQ(cycles_of(&n), 40);       /* each waits until it is there */
}

/* ---- stops ---- */

static void check_row(const pto_stuck *row, int32_t stream, int32_t site, int32_t waits_for, int32_t channel, int64_t position, int32_t peer)
{
    CHECK_EQ(row->stream, stream);
    CHECK_EQ(row->site, site);
    CHECK_EQ(row->waits_for, waits_for);
    CHECK_EQ(row->channel, channel);
    CHECK_EQ(row->position, position);
    CHECK_EQ(row->peer, peer);
}

static void a_circle_of_waits_is_reported(void)
{
    const int one[] = {SEND_A, SEND_A, SEND_B, 0}, other[] = {TAKE_B, TAKE_A, TAKE_A, 0};
    script(0, one);
    script(1, other);
    const network n = {.depth_a = 1, .depth_b = 1, .makers_a = {1}, .takers_a = {2}, .makers_b = {1}, .takers_b = {2}, .n_processes = 2};
    pto_record *record;
    const pto_stuck *rows;
    CHECK_EQ(run(&n, &record), PTO_E_DEADLOCK);
    CHECK_EQ(pto_record_stuck(record, &rows), 2);
    check_row(&rows[0], 1, 1, PTO_STUCK_SEND, 5, 1, 2);
    check_row(&rows[1], 2, 0, PTO_STUCK_RECEIVE, 6, 0, 1);
    pto_record_free(record);
    network roomy = n;
    roomy.depth_a = 2;
    CHECK_EQ(run(&roomy, &record), PTO_OK);
    pto_record_free(record);
}

static void one_row(const network *n, int32_t stream, int32_t site, int32_t waits_for, int32_t channel, int64_t position, int32_t peer)
{
    pto_record *record;
    const pto_stuck *rows;
    CHECK_EQ(run(n, &record), PTO_E_DEADLOCK);
    if (pto_record_stuck(record, &rows) == 1)
        check_row(rows, stream, site, waits_for, channel, position, peer);
    else
        CHECK(!"one row");
    pto_record_free(record);
}

static void what_never_comes_is_reported(void)
{
    const int sends[] = {SEND_A, 0}, takes[] = {TAKE_A, TAKE_A, 0}, nothing[] = {0}, twice[] = {SEND_A, SEND_A, 0}, once[] = {TAKE_A, 0};
    const int passes[] = {PASS, PASS, 0}, records[] = {RECORD, 0};
    network n = {.depth_a = 2, .depth_b = 1, .makers_a = {1}, .takers_a = {2}, .n_processes = 2};
    script(0, sends);
    script(1, takes);
    one_row(&n, 2, 1, PTO_STUCK_CLOSED, 5, 1, -1);
    script(0, twice);
    script(1, once);
    one_row(&n, 1, 1, PTO_STUCK_LOST, 5, 1, -1);       /* two are sent before anybody takes: the second is left */
    script(0, sends);
    script(1, nothing);
    one_row(&n, 1, 0, PTO_STUCK_LOST, 5, 0, -1);
    script(0, records);
    script(1, passes);
    n.recorder = 1;
    one_row(&n, 2, 1, PTO_STUCK_NEVER, 3, 1, 1);
}

int main(void)
{
    static const check_test tests[] = {
        TEST(tokens_arrive_in_order), TEST(producers_and_consumers_take_turns), TEST(a_consumer_that_ends_is_passed_over),
        TEST(rings_grow_with_what_is_sent), TEST(events_are_passed_one_by_one), TEST(latency_counts_once_a_token_and_slots_hold_senders),
        TEST(a_circle_of_waits_is_reported), TEST(what_never_comes_is_reported)};
    return RUN_TESTS(tests);
}
