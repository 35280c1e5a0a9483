/* failures.c: what ended a run, as text for people: what, where in the user's file, what was expected and found. */
#include <stdio.h>
#include <string.h>

#include "program.h"

#define FIRST_CHECK (1 << 20)      /* a kernel's checks of floats are numbered from here, past its guards */

void pto_say(pto_text *text, const char *format, ...)
{
    va_list rest;
    va_start(rest, format);
    int length = vsnprintf(text->at, text->room, format, rest);
    va_end(rest);
    size_t taken = length < 0 ? 0 : (size_t)length < text->room ? (size_t)length : text->room - 1;
    text->at += taken;
    text->room -= taken;
}

int32_t pto_refuse(pto_program_result *result, int32_t status, const char *format, ...)
{
    va_list rest;
    va_start(rest, format);
    vsnprintf(result->message, sizeof result->message, format, rest);
    va_end(rest);
    result->status = status;
    return status;
}

static const char *nth(const char *const *names, int32_t count, int32_t k)
{
    return k >= 0 && k < count ? names[k] : "?";
}

static int32_t tell_guard(const pto_program *p, const pto_guard *guard, int64_t n_run, pto_program_result *r)
{
    if (guard == NULL || guard->guard < 0 || guard->guard >= p->n_checks)
        return pto_refuse(r, PTO_E_GUARD, "a check failed");
    const pto_program_check *check = &p->checks[guard->guard];
    pto_text text = {r->message, sizeof r->message};
    pto_say(&text, "%s: `%s`\n  at %s\n  expected: ", check->what, check->subject, check->place);
    if (check->is_extent)
        pto_say(&text, ">= 0");
    else if (guard->upper < guard->lower)
        pto_say(&text, "nothing: it is empty");
    else if (guard->lower == guard->upper)
        pto_say(&text, "%lld", (long long)guard->lower);
    else
        pto_say(&text, "%lld .. %lld", (long long)guard->lower, (long long)guard->upper);
    pto_say(&text, "\n  found: %s%s%lld", check->value, check->value[0] ? " = " : "", (long long)guard->found);
    for (int32_t k = 0; k < guard->n_index && check->loops[k] != NULL; ++k)
        pto_say(&text, "%s%s = %lld", k == 0 ? "\n  in the iteration " : ", ", check->loops[k], (long long)guard->index[k]);
    if (n_run > 0)
        pto_say(&text, "\n  %lld tasks made before it had run, and what they wrote stays", (long long)n_run);
    return r->status = PTO_E_GUARD;
}

static void say_site(pto_text *text, const pto_program *p, const pto_program_site *site, const int64_t *index, int64_t count)
{
    pto_say(text, "%s", p->kernels[site->kernel].name);
    for (int64_t k = 0; k < count && site->labels[k] != NULL; ++k) {
        const char *label = site->labels[k];
        bool is_number = label[0] == '-' || (label[0] >= '0' && label[0] <= '9');
        pto_say(text, "%s%s%s%lld", k == 0 ? "[" : ", ", is_number ? "" : label, is_number ? "" : "=", (long long)index[k]);
    }
    if (count > 0 && site->labels[0] != NULL)
        pto_say(text, "]");
}

static void say_task(pto_text *text, const pto_program *p, const pto_columns *c, int64_t task)
{
    int64_t begin = c->index_begin[task];
    say_site(text, p, &p->sites[c->task_site[task]], c->index + begin, c->index_begin[task + 1] - begin);
}

static int32_t tell_clash(const pto_program *p, const pto_clash *clash, pto_program_result *r)
{
    pto_text text = {r->message, sizeof r->message};
    pto_say(&text, "task ");
    say_site(&text, p, &p->sites[clash->site], clash->index, clash->n_index);
    pto_say(&text, " writes the same elements twice: what its tensor arguments %d and %d are bound to overlaps", clash->first_arg + 1,
            clash->second_arg + 1);
    pto_say(&text, "\n  the task was made at %s", p->sites[clash->site].place);
    return r->status = PTO_E_OUTPUTS;
}

static int32_t tell_task(const pto_program *p, const pto_record *record, const pto_execute_result *run, pto_program_result *r)
{
    pto_columns c;
    pto_record_columns(record, &c);
    int64_t task = run->failed_task - c.first_task;
    if (task < 0 || task >= c.n_tasks)
        return pto_refuse(r, PTO_E_KERNEL, "task %lld failed", (long long)run->failed_task);
    const pto_program_site *site = &p->sites[c.task_site[task]];
    const pto_program_kernel *kernel = &p->kernels[site->kernel];
    const pto_fault *fault = &run->fault;
    pto_text text = {r->message, sizeof r->message};
    pto_say(&text, "task ");
    say_task(&text, p, &c, task);
    if (kernel->has_own_body) {
        pto_say(&text, " failed: its own C body returned %d", run->failed_guard + 1);
    } else if (run->failed_guard >= FIRST_CHECK) {
        double value;
        memcpy(&value, &fault->value, sizeof value);
        pto_say(&text, " made ");
        if (value != value)
            pto_say(&text, "nan");       /* without the sign that some of them have */
        else
            pto_say(&text, "%g", value);
        pto_say(&text, " out of finite numbers, at row %lld, column %lld", (long long)fault->row, (long long)fault->col);
    } else if (run->failed_guard >= 0 && run->failed_guard < kernel->n_guards) {
        const pto_program_guard *guard = &kernel->guards[run->failed_guard];
        pto_say(&text, " failed: %s%s\n  at %s\n", guard->what,
                guard->is_index ? ": an index lies outside" : " lies outside the region that is bound", guard->place);
        if (!guard->is_index)
            pto_say(&text, "  expected: a piece at row 0 .. %lld, column 0 .. %lld\n  found: row %lld, column %lld", (long long)fault->lower,
                    (long long)fault->upper, (long long)fault->row, (long long)fault->col);
        else if (fault->row < 0)
            pto_say(&text, "  expected: columns inside 0 .. %lld\n  found: columns %lld .. %lld", (long long)fault->upper,
                    (long long)fault->col, (long long)(fault->col + fault->value - 1));
        else
            pto_say(&text, "  expected: 0 .. %lld\n  found: %lld, at row %lld and column %lld of the index", (long long)fault->upper,
                    (long long)fault->value, (long long)fault->row, (long long)fault->col);
    } else {
        pto_say(&text, " failed");
    }
    pto_say(&text, "\n  the task was made at %s", site->place);
    return r->status = PTO_E_KERNEL;
}

static void say_window(pto_text *text, const pto_sim_options *sim, int64_t unit)
{
    static const char *const units[PTO_N_WINDOWS][2] = {
        {"task", "tasks"}, {"byte", "bytes"}, {"entry", "entries"}, {"edge", "edges"}, {"ready task", "ready tasks"}};
    int64_t size = sim->window;
    for (int32_t i = 0; i < sim->n_more; i++)
        size = sim->more[i].unit == unit ? sim->more[i].size : size;
    pto_say(text, " found no room in the window of %lld %s", (long long)size, units[unit][size != 1]);
}

int32_t pto_tell_ended(const pto_program *p, const pto_record *record, int32_t status, const pto_sim_result *timed,
                       pto_program_result *r)
{
    int64_t ended_task = timed->failed_task;
    pto_columns c;
    pto_record_columns(record, &c);
    int64_t task = ended_task - c.first_task;
    bool is_kept = ended_task >= 0 && task >= 0 && task < c.n_tasks;
    pto_text text = {r->message, sizeof r->message};
    pto_say(&text, status == PTO_E_OVERFLOW ? "simulated cycles do not fit 64 bits" : "");
    if (ended_task >= 0)
        pto_say(&text, status == PTO_E_OVERFLOW ? " at task " : "task ");
    if (is_kept)
        say_task(&text, p, &c, task);
    else if (ended_task >= 0)
        pto_say(&text, "%lld of the stream", (long long)ended_task);
    if (status == PTO_E_WINDOW)
        say_window(&text, &p->sim, timed->failed_window);
    if (is_kept)
        pto_say(&text, "\n  the task was made at %s", p->sites[c.task_site[task]].place);
    return r->status = status;
}

static int32_t tell_stuck(const pto_program *p, const pto_record *record, pto_program_result *r)
{
    const pto_stuck *rows;
    int32_t count = pto_record_stuck(record, &rows);
    pto_text text = {r->message, sizeof r->message};
    pto_say(&text, "processes wait for each other, or for what never comes");
    for (int32_t k = 0; k < count; ++k) {
        const pto_stuck *row = &rows[k];
        const char *channel = nth(p->channels, p->n_channels, row->channel);
        pto_say(&text, "\n  process `%s` ", nth(p->streams, p->n_streams, row->stream));
        switch (row->waits_for) {
        case PTO_STUCK_SEND: pto_say(&text, "sends to `%s`, which is full", channel); break;
        case PTO_STUCK_RECEIVE: pto_say(&text, "waits for a token of `%s`", channel); break;
        case PTO_STUCK_TURN: pto_say(&text, "waits for its turn at `%s`", channel); break;
        case PTO_STUCK_CLOSED: pto_say(&text, "takes a token from `%s`, which is closed and empty", channel); break;
        case PTO_STUCK_LOST: pto_say(&text, "sends to `%s`, from which nobody takes", channel); break;
        default: pto_say(&text, "waits for a record of event `%s`", nth(p->events, p->n_events, row->channel)); break;
        }
    }
    return r->status = PTO_E_DEADLOCK;
}

int32_t pto_tell_failure(const pto_program *p, int32_t status, const pto_record *record, const pto_execute_result *run,
                         pto_program_result *r)
{
    switch (status) {
    case PTO_OK: return PTO_OK;
    case PTO_E_GUARD: return tell_guard(p, pto_record_guard(record), run->n_run, r);
    case PTO_E_KERNEL: return tell_task(p, record, run, r);
    case PTO_E_DEADLOCK: return tell_stuck(p, record, r);
    case PTO_E_OUTPUTS: return tell_clash(p, pto_record_clash(record), r);
    case PTO_E_NOMEM: return pto_refuse(r, status, "the run ran out of memory");
    case PTO_E_CANCELLED: return pto_refuse(r, status, "interrupted");
    default: return pto_refuse(r, status, "the run ended with status %d", status);
    }
}
