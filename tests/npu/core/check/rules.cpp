#include "check/rules.h"

#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

#include "check/isa_rules.h"

namespace pto::emu {

namespace {

unsigned bit_of(Family family) { return family == Family::a5 ? kA5 : kA2a3; }

std::string shape(int rows, int cols) { return "[" + std::to_string(rows) + ", " + std::to_string(cols) + "]"; }
std::string operand(int i) { return "operand " + std::to_string(i + 1); }

const std::vector<const Rule *> &rules_of(const char *op) {
    static const std::unordered_map<std::string, std::vector<const Rule *>> rules = [] {
        std::unordered_map<std::string, std::vector<const Rule *>> found;
        for (const Rule &rule : kRules) found[rule.op].push_back(&rule);
        return found;
    }();
    static const std::vector<const Rule *> none;
    const auto found = rules.find(op);
    return found == rules.end() ? none : found->second;
}

// Every demand but those of values, which check_values and check_number see to.
class Check {
  public:
    Check(const Step &step, const Rule &rule) : step_(step), rule_(rule) {}

    bool applies() const {
        if (!(rule_.families & bit_of(step_.site.family)) || rule_.n_tiles != step_.n_tiles()) return false;
        // The source of a move is its second tile.
        if (rule_.memory != kAnyMemory && static_cast<int>(step_.tile(1).type) != rule_.memory) return false;
        return rule_.widths == 0 || (rule_.widths >> bytes_of(at(0).dtype) & 1u);
    }

    void run() const {
        switch (rule_.demand) {
            case Demand::ONE_TYPE: return each_other([](const TileState &a, const TileState &b) { return storage(a, b) && type(a, b); });
            case Demand::ONE_STORAGE: return each_other(storage);
            case Demand::ONE_STORED_ROWS: return each_other([](const TileState &a, const TileState &b) { return a.rows == b.rows; });
            case Demand::ONE_VALID:
                return each_other([](const TileState &a, const TileState &b) {
                    return a.valid_rows == b.valid_rows && a.valid_cols == b.valid_cols;
                });
            case Demand::STORED_AS_PRODUCT:
                return hold(at(0).rows == at(1).rows && at(0).cols == at(2).cols && at(1).cols == at(2).rows,
                            "are stored as " + stored(0) + ", " + stored(1) + " and " + stored(2) + ", not M x N, M x K and K x N");
            case Demand::STORED_COLS_BY:
                return each([](const TileState &tile, int n) { return tile.cols % n == 0; }, "stored columns");
            case Demand::VALID_COLS_BY:
                return each([](const TileState &tile, int n) { return tile.valid_cols % n == 0; }, "valid columns");
            case Demand::BITS_OF:
                return hold(at(0).valid_rows == at(1).valid_rows && at(0).valid_cols * rule_.number == at(1).valid_cols,
                            "have valid parts of " + valid(0) + " and " + valid(1) + ", not a bit for each column");
            case Demand::TURNING_ROOM: {
                const int rows = (at(1).valid_rows + rule_.number - 1) / rule_.number * rule_.number;
                return hold(at(0).rows * at(0).cols >= rows * at(1).valid_cols,
                            "is scratch of " + stored(0) + ", of at least " + std::to_string(rows * at(1).valid_cols) + " elements");
            }
            case Demand::ONE_ROW: return each([](const TileState &tile, int) { return tile.valid_rows == 1; }, "one valid row");
            case Demand::U32:
                if (rule_.operands[0] == kNumber) return;   // its C++ type
                return each([](const TileState &tile, int) { return tile.dtype == Dtype::u32; }, "u32");
            case Demand::FLAGS_DOWN:
                for (const auto &[after, before] : {std::pair{PIPE_V, PIPE_S}, std::pair{PIPE_S, PIPE_V}}) {
                    step_.require(!machine().is_up(after, before, rule_.number),
                                  std::string("EVENT_ID") + std::to_string(rule_.number) + " from " + name_of(after) + " to " +
                                      name_of(before) + " is up, which the instruction sets itself");
                }
                return;
            case Demand::NOT_ZERO:
            case Demand::TEMPLATE: return;                  // when it runs; by its C++ form
        }
    }

  private:
    static bool storage(const TileState &a, const TileState &b) { return a.rows == b.rows && a.cols == b.cols; }
    static bool type(const TileState &a, const TileState &b) {
        return a.dtype == b.dtype && a.blocks == b.blocks && a.inner == b.inner && a.type_rows == b.type_rows && a.type_cols == b.type_cols;
    }

    const TileState &at(int i) const { return step_.tile(rule_.operands[i]); }
    std::string stored(int i) const { return shape(at(i).rows, at(i).cols); }
    std::string valid(int i) const { return shape(at(i).valid_rows, at(i).valid_cols); }
    int count() const {
        int n = 0;
        while (n < 4 && rule_.operands[n] >= 0) ++n;
        return n;
    }

    template <typename Holds>
    void each_other(Holds holds) const {
        for (int i = 1; i < count(); ++i) {
            const std::string what = rule_.demand == Demand::ONE_VALID ? " is valid in " + valid(i) + ", and "
                                                                       : " is stored as " + stored(i) + ", and ";
            const std::string other = rule_.demand == Demand::ONE_VALID ? valid(0) : stored(0);
            const bool types = rule_.demand == Demand::ONE_TYPE && storage(at(0), at(i));
            step_.require(holds(at(0), at(i)),
                          operand(rule_.operands[i]) +
                              (types ? " differs from " + operand(rule_.operands[0]) + " in its type: what it says of the valid part is " +
                                           shape(at(i).type_rows, at(i).type_cols) + ", and " + shape(at(0).type_rows, at(0).type_cols)
                                     : what + operand(rule_.operands[0]) + " as " + other));
        }
    }

    template <typename Holds>
    void each(Holds holds, const std::string &what) const {
        for (int i = 0; i < count(); ++i) {
            step_.require(holds(at(i), rule_.number), operand(rule_.operands[i]) + " is stored as " + stored(i) + " " + name_of(at(i).dtype) +
                                                          ", of which " + valid(i) + " is valid: not " + what + " in multiples of " +
                                                          std::to_string(rule_.number));
        }
    }

    void hold(bool holds, const std::string &what) const {
        std::string names = operand(rule_.operands[0]);
        if (rule_.demand != Demand::TURNING_ROOM) {
            for (int i = 1; i < count(); ++i) names += (i + 1 == count() ? " and " : ", ") + operand(rule_.operands[i]);
        }
        step_.require(holds, names + " " + what);
    }

    const Step &step_;
    const Rule &rule_;
};

bool demands(const Step &step, Demand demand, int tile) {
    for (const Rule *rule : rules_of(step.site.op)) {
        if (rule->demand == demand && (rule->families & bit_of(step.site.family)) && rule->operands[0] == tile) return true;
    }
    return false;
}

void check_conversion(const Step &step) {
    const Dtype to = step.tile(0).dtype, from = step.tile(1).dtype;
    for (const Conversion &one : kConversions) {
        if (one.from == from && one.to == to && (one.families & bit_of(step.site.family))) return;
    }
    fail(step.site, std::string("no conversion from ") + name_of(from) + " to " + name_of(to) + " on " +
                        (step.site.family == Family::a5 ? "a5" : "a2a3"));
}

}  // namespace

void check_rules(const Step &step) {
    for (const Forms &forms : kForms) {
        if (std::strcmp(forms.op, step.site.op) == 0) {
            step.require(forms.counts >> step.n_tiles() & 1u, "has no form of " + std::to_string(step.n_tiles()) + " tiles");
        }
    }
    if (std::strcmp(step.site.op, "TCVT") == 0) check_conversion(step);
    for (const Rule *rule : rules_of(step.site.op)) {
        const Check check(step, *rule);
        if (check.applies()) check.run();
    }
}

void check_values(const Step &step, int tile, const Grid &grid) {
    if (!demands(step, Demand::NOT_ZERO, tile)) return;
    for (size_t at = 0; at < grid.size(); ++at) {
        const bool zero = is_float(grid.dtype) ? real_of(grid.dtype, grid.bits[at]) == 0 : grid.bits[at] == 0;
        step.require(!zero || grid.doubts[at], operand(tile) + " has a 0 in row " + std::to_string(at / static_cast<size_t>(grid.cols)));
    }
}

void check_number(const Step &step) {
    if (!demands(step, Demand::NOT_ZERO, kNumber)) return;
    step.require(step.operands.number.is_real ? step.operands.number.real != 0 : step.operands.number.whole != 0, "its number is 0");
}

}  // namespace pto::emu
