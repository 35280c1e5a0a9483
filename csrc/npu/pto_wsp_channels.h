// pto_wsp_channels.h: channels and events between the processes of a pipeline, on the one thread that makes tasks.
//
// Processes take turns, each going as far as it can. Nothing waits for a task: a token holds the ids of the tasks that it waits for, and
// who takes it hands them on to the tasks behind. Whom a token comes from and goes to is decided by whose turn it is, never by who came
// first: turns go round the producers, and round the consumers, that have not ended, in the order of their declaration.
#ifndef PTO_WSP_CHANNELS_H
#define PTO_WSP_CHANNELS_H

#ifndef PTO_WSP_EDGES
#error "define PTO_WSP_EDGES before pto_wsp_abi.h, and include that first"
#endif

namespace pto_wsp {

enum class Step { WAITS, ENDS, LEAVES };  // LEAVES: no more tasks are submitted

// Whose turn it is among processes, by the numbers of their streams.
class Turns {
  public:
    void join(int stream) { streams_.add({stream, false}); }
    int current() const {  // -1 when all have ended
        for (uint32_t k = 0; k < streams_.size(); ++k) {
            const Entry &entry = streams_[(at_ + k) % streams_.size()];
            if (!entry.ended) return entry.stream;
        }
        return -1;
    }
    void advance() {
        while (streams_[at_].ended) at_ = (at_ + 1) % streams_.size();
        at_ = (at_ + 1) % streams_.size();
    }
    void end(int stream) {
        for (uint32_t k = 0; k < streams_.size(); ++k) {
            if (streams_[k].stream == stream) streams_.data()[k].ended = true;
        }
    }

  private:
    struct Entry {
        int stream;
        bool ended;
    };
    List<Entry> streams_;
    uint32_t at_ = 0;
};

// Lists of ids, one after the other: what each token, slot or record waits for.
class IdLists {
  public:
    uint32_t size() const { return ends_.size(); }
    void add(const Ids &ids) {
        ids_.add(ids);
        ends_.add(ids_.size());
    }
    // Adds those of list k that are not there yet: tokens that go round bring the same ids again and again.
    void get(uint32_t k, Ids &into) const {
        for (uint32_t i = k == 0 ? 0 : ends_[k - 1]; i < ends_[k]; ++i) {
            if (!has(into, ids_[i])) into.add(ids_[i]);
        }
    }

  private:
    static bool has(const Ids &ids, const TaskId &id) {
        for (uint32_t i = 0; i < ids.size(); ++i) {
            if (memcmp(&ids[i], &id, sizeof id) == 0) return true;
        }
        return false;
    }
    Ids ids_;
    List<uint32_t> ends_;
};

class Endpoint;

// The processes of a pipeline while they run, counted in steps: where a round of turns makes none, nobody can go on.
class Network {
  public:
    void open(Endpoint &endpoint);
    void moved() { ++steps_; }
    // What a process returns that has to wait; where nobody can go on, each says where it stands.
    Step waits(int &at, int step, const char *where) {
        at = step;
        if (stuck_) fprintf(stderr, "pto_wsp: %s waits\n", where);
        return Step::WAITS;
    }
    Step leaves(const char *where) {
        fprintf(stderr, "pto_wsp: %s; no more tasks are submitted\n", where);
        return Step::LEAVES;
    }
    // Lets processes `first` up to but without `first + n` take turns until all have ended; false where that does not happen.
    template <typename F>
    bool run(int first, int n, F &&process);

  private:
    Endpoint *endpoints_ = nullptr;
    uint64_t steps_ = 0;
    bool stuck_ = false;
};

// What a process that ends is taken out of.
class Endpoint {
  public:
    virtual void end(int stream) = 0;
    virtual bool is_done() const = 0;  // nothing is left in it
    Endpoint *next = nullptr;
    const char *name = "";

  protected:
    ~Endpoint() = default;
};

inline void Network::open(Endpoint &endpoint) {
    endpoint.next = endpoints_;
    endpoints_ = &endpoint;
}

template <typename F>
bool Network::run(int first, int n, F &&process) {
    List<bool> ended;
    for (int k = 0; k < n; ++k) ended.add(false);
    for (int left = n; left > 0;) {
        const uint64_t before = steps_;
        for (int k = 0; k < n; ++k) {
            if (ended[static_cast<uint32_t>(k)]) continue;
            const Step step = process(first + k);
            if (step == Step::LEAVES) return false;
            if (step == Step::WAITS) continue;
            ended.data()[k] = true;
            for (Endpoint *endpoint = endpoints_; endpoint != nullptr; endpoint = endpoint->next) endpoint->end(first + k);
            --left;
            moved();
        }
        if (stuck_) return false;
        if (left > 0 && steps_ == before) {
            fprintf(stderr, "pto_wsp: no process can go on; no more tasks are submitted\n");
            stuck_ = true;  // once more, and each says where it stands
        }
    }
    for (Endpoint *endpoint = endpoints_; endpoint != nullptr; endpoint = endpoint->next) {
        if (!endpoint->is_done()) {
            fprintf(stderr, "pto_wsp: nobody takes what was sent to %s; no more tasks are submitted\n", endpoint->name);
            return false;
        }
    }
    return true;
}

// A channel of `depth` tokens of N numbers each; as many as it begins with, `initial`, may be left at the end. Lists of ids are those of tasks: `after` is what comes next in a process waits for.
template <uint32_t N>
class Channel final : public Endpoint {
  public:
    Channel(Network &network, const char *called, uint32_t depth, uint32_t initial = 0)
        : network_(network), depth_(depth), initial_(initial) {
        name = called;
        network.open(*this);
    }
    void gives(int stream) { producers_.join(stream); }
    void takes(int stream) { consumers_.join(stream); }
    void end(int stream) override {
        producers_.end(stream);
        consumers_.end(stream);
    }
    bool is_done() const override { return n_sent_ - n_received_ <= initial_; }
    bool closed() const { return producers_.current() < 0; }
    bool drained() const { return closed() && n_sent_ == n_received_; }

    bool may_send(int stream) const {
        if (producers_.current() != stream || (consumers_.current() < 0 && n_sent_ - n_received_ >= initial_)) return false;
        return depth_ == 0 ? freed_.size() > n_sent_ : n_sent_ - n_received_ < depth_;
    }
    // The next token. It waits for what stands before it, and what stands behind it for the receive that gave its slot back.
    void send(const int64_t *numbers, Ids &after) {
        if (depth_ == 0) {
            freed_.get(n_sent_, after);
        } else if (n_sent_ >= depth_) {
            freed_.get(n_sent_ - depth_, after);
        }
        tokens_.add(after);
        for (uint32_t k = 0; k < N; ++k) numbers_.add(numbers[k]);
        ++n_sent_;
        producers_.advance();
        network_.moved();
    }

    // Without depth a consumer that has come says so, and its producer goes on.
    bool may_take(int stream, const Ids &after) {
        if (consumers_.current() != stream || drained()) return false;
        if (n_sent_ != n_received_) return true;
        if (depth_ == 0 && !closed() && freed_.size() == n_sent_) {
            freed_.add(after);
            network_.moved();
        }
        return false;
    }
    // The numbers of the next token; what stands behind waits for what it waits for. They last until the next send.
    const int64_t *take(Ids &after) {
        tokens_.get(n_received_, after);
        if (depth_ != 0) freed_.add(after);
        const int64_t *const found = numbers_.data() + n_received_ * N;
        ++n_received_;
        consumers_.advance();
        network_.moved();
        return found;
    }

  private:
    Network &network_;
    uint32_t depth_, initial_;
    Turns producers_, consumers_;
    IdLists tokens_, freed_;
    List<int64_t> numbers_;
    uint32_t n_sent_ = 0, n_received_ = 0;
};

class Event final : public Endpoint {
  public:
    Event(Network &network, const char *called) : network_(network) {
        name = called;
        network.open(*this);
    }
    void end(int) override {}
    bool is_done() const override { return true; }
    void record(const Ids &after) {
        records_.add(after);
        network_.moved();
    }
    bool has(int64_t record) const { return record < static_cast<int64_t>(records_.size()); }
    void await(int64_t record, Ids &after) {
        records_.get(static_cast<uint32_t>(record), after);
        network_.moved();
    }

  private:
    Network &network_;
    IdLists records_;
};

}  // namespace pto_wsp

#endif  // PTO_WSP_CHANNELS_H
