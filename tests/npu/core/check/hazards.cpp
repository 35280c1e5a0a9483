#include "check/hazards.h"

#include <algorithm>
#include <iterator>

namespace pto::emu {

namespace {

bool self_ordered(pipe_t pipe) { return pipe == PIPE_S || pipe == PIPE_M; }

}  // namespace

void Order::reset() { *this = Order(); }

void Order::join(Clock &into, const Clock &from) {
    for (int pipe = 0; pipe < kPipes; ++pipe) into[pipe] = std::max(into[pipe], from[pipe]);
}

// The scalar unit hands instructions out: what it has waited for, they come after.
void Order::dispatch(pipe_t pipe) {
    join(clocks_[pipe], clocks_[PIPE_S]);
    ++issued_[pipe];
}

void Order::begin(pipe_t pipe, uint32_t step) {
    pipe_ = pipe;
    step_ = step;
    dispatch(pipe);
}

void Order::end() {
    if (self_ordered(pipe_)) clocks_[pipe_][pipe_] = issued_[pipe_];
}

void Order::set(pipe_t after, pipe_t before, int event, uint32_t step) {
    dispatch(after);
    Flag &flag = flags_[slot(after, before, event)];
    flag.set = true;
    flag.step = step;
    flag.clock = clocks_[after];
    flag.clock[after] = issued_[after];
    if (self_ordered(after)) clocks_[after][after] = issued_[after];
}

void Order::wait(pipe_t after, pipe_t before, int event) {
    dispatch(before);
    Flag &flag = flags_[slot(after, before, event)];
    flag.set = false;
    flag.taken = issued_[before];
    join(clocks_[before], flag.clock);
    if (self_ordered(before)) clocks_[before][before] = issued_[before];
}

bool Order::was_taken(pipe_t after, pipe_t before, int event) const {
    const uint32_t taken = flags_[slot(after, before, event)].taken;
    return taken == 0 || std::max(clocks_[after][before], clocks_[PIPE_S][before]) >= taken;
}

void Order::barrier(pipe_t pipe) {
    if (pipe != PIPE_ALL) {
        dispatch(pipe);
        clocks_[pipe][pipe] = issued_[pipe];
        return;
    }
    for (Clock &clock : clocks_) clock = issued_;
}

Conflict Order::touch(Trace &trace, bool write) const {
    Conflict conflict;
    const Clock &clock = clocks_[pipe_];
    const uint32_t now = issued_[pipe_];
    const auto open = [&](int pipe, uint32_t number) { return number > clock[pipe] && !(pipe == pipe_ && number == now); };
    if (open(trace.write_pipe, trace.write)) {
        conflict = {true, true, static_cast<pipe_t>(trace.write_pipe), trace.write_step};
    } else if (write) {
        for (int pipe = 0; pipe < kPipes && !conflict.found; ++pipe) {
            if (open(pipe, trace.read[pipe])) conflict = {true, false, static_cast<pipe_t>(pipe), trace.read_step[pipe]};
        }
    }
    if (write) {
        trace = Trace();
        trace.write = now;
        trace.write_pipe = static_cast<uint8_t>(pipe_);
        trace.write_step = step_;
    } else {
        trace.read[pipe_] = now;
        trace.read_step[pipe_] = step_;
    }
    return conflict;
}

void GlobalTraces::split(uint64_t at) {
    auto next = pieces_.upper_bound(at);
    if (next == pieces_.begin()) return;
    auto piece = std::prev(next);
    if (piece->first == at || piece->second.last <= at) return;
    pieces_.emplace_hint(next, at, piece->second);
    piece->second.last = at;
}

// [first, last): what was touched before is split at the ends, what was not is filled in.
Conflict GlobalTraces::touch(const Order &order, uint64_t first, uint64_t last, bool write) {
    split(first);
    split(last);
    Conflict conflict;
    auto piece = pieces_.lower_bound(first);
    for (uint64_t at = first; at < last;) {
        const uint64_t start = piece == pieces_.end() ? last : std::min(piece->first, last);
        if (at < start) {
            Trace fresh;
            order.touch(fresh, write);
            pieces_.emplace_hint(piece, at, Piece{start, fresh});
            at = start;
            continue;
        }
        const Conflict found = order.touch(piece->second.trace, write);
        if (found.found && !conflict.found) conflict = found;
        at = piece->second.last;
        ++piece;
    }
    return conflict;
}

}  // namespace pto::emu
