// Which dtypes each instruction takes, by family: what the instruction page's columns state, without what its simulation refused.
//
// Where a column states nothing, or only a part (64-bit dtypes), the other family's column stands in; where neither does, nothing is legal
// but for TSEL and TSELS, which take the floats that comparisons give masks for.

#include "check/dtypes.h"

#include <cstring>
#include <string>
#include <unordered_map>

namespace pto::emu {

namespace {

struct Row {
    const char *op, *a2a3, *a5;  // a5 null: as a2a3
};

const Row kRows[] = {
    {"TLOAD", "f32 f16 bf16 i32 u32 i16 u16 i8 u8 i64 u64", nullptr},
    {"TSTORE", "f32 f16 bf16 i32 u32 i16 u16 i8 u8 i64 u64", nullptr},
    {"TABS", "f32 f16", "f32 f16 i32 i16 i8"},
    {"TADD", "f32 f16 i32 i16", "f32 f16 bf16 i32 u32 i16 u16 i8 u8 i64 u64"},
    {"TAND", "i16 u16", nullptr},
    {"TCMP", "f32 f16 i32", "f32 f16 bf16 i32 u32 i16 u16 i8 u8 i64 u64"},
    {"TCVT", "f32 f16 bf16 i32 i16 i8 u8 i64", "f32 f16 bf16 i32 u32 i16 u16 i8 u8 i64"},
    {"TDIV", "f32 f16", "f32 f16 i32 u32 i16 u16 i64 u64"},
    {"TEXP", "f32 f16", nullptr},
    {"TFMOD", "f32", "f32 f16 i32 u32 i16 u16"},
    {"TFUSEDMULADD", "f32 f16", nullptr},
    {"TFUSEDMULADDRELU", "f32 f16", nullptr},
    {"TLOG", "f32 f16", nullptr},
    {"TMAX", "f32 f16 i32 i16", "f32 f16 bf16 i32 u32 i16 u16 i8 u8 i64 u64"},
    {"TMIN", "f32 f16 i32 i16", "f32 f16 bf16 i32 u32 i16 u16 i8 u8 i64 u64"},
    {"TMUL", "f32 f16 i32 i16", "f32 f16 bf16 i32 u32 i16 u16 i64 u64"},
    {"TMULADDDST", "f32 f16", nullptr},
    {"TNEG", "f32 f16 i32 i16", "f32 f16 bf16 i32 u32 i16 u16"},
    {"TNOT", "i32 u32 i16 u16 i8 u8", nullptr},
    {"TOR", "i16 u16", nullptr},
    {"TPOW", "", "i8 u8"},
    {"TPRELU", "f32 f16 u8", "f32 f16"},
    {"TRECIP", "f32 f16", nullptr},
    {"TRELU", "f32 f16 i32", nullptr},
    {"TREM", "f32 i32", "f32 f16 i32 u32 i16 u16 i64 u64"},
    {"TRSQRT", "f32 f16", nullptr},
    {"TSEL", "f32 f16", nullptr},
    {"TSHL", "i32 u32 i16 u16 i8 u8", "i32 u32 i16 u16 i8 u8 i64 u64"},
    {"TSHR", "i32 u32 i16 u16 i8 u8", "i32 u32 i16 u16 i8 u8 i64 u64"},
    {"TSQRT", "f32 f16", nullptr},
    {"TSUB", "f32 f16 i32 i16", "f32 f16 bf16 i32 u32 i16 u16 i8 u8 i64 u64"},
    {"TSUBRELU", "f32 f16", nullptr},
    {"TXOR", "i16 u16", "i32 u32 i16 u16 i8 u8"},
    {"TADDS", "f32 f16 i32 i16", "f32 f16 bf16 i32 u32 i16 u16 i8 u8 i64 u64"},
    {"TADDSC", "f32 f16 i32 i16", nullptr},
    {"TANDS", "i32 u32 i16 u16", "i16 u16"},
    {"TAXPY", "f32 f16", nullptr},
    {"TCMPS", "f32 f16 i32 i16 u16", "f32 f16 bf16 i32 u32 i16 u16 i8 u8 i64 u64"},
    {"TDIVS", "f32 f16 i32 i16", "f32 f16 i32 u32 i16 u16 i64 u64"},
    {"TEXPANDS", "f32 f16 bf16 i32 u32 i16 u16 i8 u8", "f32 f16 bf16 i32 u32 i16 u16 i8 u8 i64 u64"},
    {"TFMODS", "f32", "f32 f16"},
    {"TLRELU", "f32 f16", nullptr},
    {"TMAXS", "f32 f16 i32 i16", "f32 f16 bf16 i32 u32 i16 u16 i8 u8 i64 u64"},
    {"TMINS", "f32 f16 i32 i16", "f32 f16 bf16 i32 u32 i16 u16 i8 u8 i64 u64"},
    {"TMULS", "f32 f16 i32 i16", "f32 f16 bf16 i32 u32 i16 u16 i64 u64"},
    {"TORS", "i32 u32 i16 u16", "i16 u16"},
    {"TPOWS", "", "i8 u8"},
    {"TREMS", "f32 i32", "f32 f16 i64 u64"},
    {"TSELS", "f32 f16", "f32 f16 i32 u32 i16 u16 i8 u8 i64 u64"},
    {"TSHLS", "i32 u32 i16 u16 i8 u8", "i32 u32 i16 u16 i8 u8 i64 u64"},
    {"TSHRS", "i32 u32 i16 u16 i8 u8", "i32 u32 i16 u16 i8 u8 i64 u64"},
    {"TSUBS", "f32 f16 i32 i16", "f32 f16 bf16 i32 u32 i16 u16 i8 u8 i64 u64"},
    {"TSUBSC", "f32 f16 i32 i16", nullptr},
    {"TXORS", "i32 u32 i16 u16", "i16 u16"},
    {"TCOLARGMAX", "f32 f16 i32 u32 u16", "i32 u32 i8 u8"},
    {"TCOLARGMIN", "f32 f16 i32 u32 u16", "i32 u32 i8 u8"},
    {"TCOLEXPAND", "f32 f16 bf16 i32 u32 i16 u16 i8 u8", "f32 f16 bf16 i32 u32 i16 u16 i8 u8 i64 u64"},
    {"TCOLEXPANDADD", "f32 f16 i32 i16", "f32 f16 i32 u32 i16 u16 i8"},
    {"TCOLEXPANDDIV", "f32 f16 i32 i16", "f32 f16 i32 u32 i16 u16 i8"},
    {"TCOLEXPANDEXPDIF", "f32 f16 i32 i16", "f32 f16 i32 u32 i16 u16 i8 u8"},
    {"TCOLEXPANDMAX", "f32 f16 i32 i16", "f32 f16 i32 u32 i16 u16 i8"},
    {"TCOLEXPANDMIN", "f32 f16 i32 i16", "f32 f16 i32 u32 i16 u16 i8"},
    {"TCOLEXPANDMUL", "f32 f16 i32 i16", "f32 f16 i32 u32 i16 u16 i8 u8"},
    {"TCOLEXPANDSUB", "f32 f16 i32 i16", "f32 f16 i32 u32 i16 u16 i8"},
    {"TCOLMAX", "f32 f16", "f32 f16 i64 u64"},
    {"TCOLMIN", "f32 f16 i32 i16", "f32 f16 i32 i16 i64 u64"},
    {"TCOLPROD", "f32 f16 i32 i16", "f32 f16 bf16 i32 u32 i16 u16"},
    {"TCOLSUM", "f32 f16", "f32 f16 i64 u64"},
    {"TROWARGMAX", "f32 f16 bf16 i32 u32 i16 u16", nullptr},
    {"TROWARGMIN", "f32 f16 bf16 i32 u32 i16 u16", nullptr},
    {"TROWEXPAND", "f32 f16 bf16 i32 u32 i16 u16 i8 u8", "f32 f16 bf16 i32 u32 i16 u16 i8 u8 i64 u64"},
    {"TROWEXPANDADD", "f32 f16 i32 i16", "f32 f16 i32 u32 i16 u16 i8"},
    {"TROWEXPANDDIV", "f32 f16 i32 i16", "f32 f16 i32 u32 i16 u16 i8"},
    {"TROWEXPANDEXPDIF", "f32 f16 i32 i16", "f32 f16 i32 u32 i16 u16 i8 u8"},
    {"TROWEXPANDMAX", "f32 f16 i32 i16", "f32 f16 i32 u32 i16 u16 i8"},
    {"TROWEXPANDMIN", "f32 f16 i32 i16", "f32 f16 i32 u32 i16 u16 i8"},
    {"TROWEXPANDMUL", "f32 f16 i32 i16", "f32 f16 i32 u32 i16 u16 i8 u8"},
    {"TROWEXPANDSUB", "f32 f16 i32 i16", "f32 f16 i32 u32 i16 u16 i8"},
    {"TROWMAX", "f32 f16 i32 i16", "f32 f16 i32 i16 i8 u8 i64 u64"},
    {"TROWMIN", "f32 f16 i32 i16", "f32 f16 i32 i16 i8 u8 i64 u64"},
    {"TROWPROD", "f32 f16 i32 i16", nullptr},
    {"TROWSUM", "f32 f16 i32 i16", "f32 f16 i32 i16 i64 u64"},
    {"TMATMUL", "f32 f16 bf16 i8", nullptr},
    {"TMATMUL_ACC", "f32 f16 bf16 i8", nullptr},
    {"TMATMUL_BIAS", "f32 f16 bf16 i8", nullptr},
    {"TCONCAT", "f32 f16 bf16 i32 u32 i16 u16 i8 u8", nullptr},
    {"TDEINTERLEAVE", "f32 f16 bf16 i32 u32 i16 u16 i8 u8", nullptr},
    {"TEXTRACT", "f32 f16 bf16 i32 i8", "f32 f16 bf16 i32 u32 i16 u16 i8 u8"},
    {"TINSERT", "", "f32 f16 bf16 i32 i8"},
    {"TINTERLEAVE", "f32 f16 bf16 i32 u32 i16 u16 i8 u8", nullptr},
    {"TMOV", "f32 f16 i32 i64 u64", "f32 f16 bf16 i32 i8 u8 i64 u64"},
    {"TPAIRREDUCESUM", "f32 f16", nullptr},
    {"TTRANS", "f32 f16 bf16 i32 u32 i16 u16", "f32 f16 bf16 i32 u32 i16 u16 i8 u8"},
    {"TCI", "f32 f16 bf16 i32 u32 i16 u16", "i32 u32 i16 u16"},
    {"TGATHER", "f32 f16 i32 u32", "f32 f16 bf16 i32 u32 i16 u16 i8 u8 i64 u64"},
    {"TMRGSORT", "f32 f16", nullptr},
    {"TPARTADD", "f32 f16 i32 i16", "f32 f16 bf16 i32 u32 i16 u16 i8 u8 i64 u64"},
    {"TPARTMAX", "f32 f16 i32 i16", "f32 f16 bf16 i32 u32 i16 u16 i8 u8 i64 u64"},
    {"TPARTMIN", "f32 f16 i32 i16", "f32 f16 bf16 i32 u32 i16 u16 i8 u8 i64 u64"},
    {"TPARTMUL", "f32 f16 i32 i16", "f32 f16 bf16 i32 u32 i16 u16 i8 u8"},
    {"TPRINT", "f32 f16", nullptr},
    {"TSCATTER", "f32 f16 bf16 i32 u32 i16 u16 i8 u8", "f32 f16 bf16 i32 u32 i16 u16 i8 u8 i64 u64"},
    {"TSORT32", "f32 f16", nullptr},
    {"TTRI", "f32 f16 i32 u32 i16 u16", "f32 f16 bf16 i32 u32 i16 u16 i8 u8 i64 u64"},
};

const Row *find(const char *op) {
    static const std::unordered_map<std::string, const Row *> rows = [] {
        std::unordered_map<std::string, const Row *> found;
        for (const Row &row : kRows) found.emplace(row.op, &row);
        return found;
    }();
    const auto found = rows.find(op);
    return found == rows.end() ? nullptr : found->second;
}

}  // namespace

const char *dtypes_of(const char *op, Family family) {
    const Row *row = find(op);
    if (row == nullptr) return nullptr;
    return family == Family::a5 && row->a5 != nullptr ? row->a5 : row->a2a3;
}

bool takes(const char *dtypes, const char *dtype) {
    const size_t length = std::strlen(dtype);
    for (const char *at = dtypes; (at = std::strstr(at, dtype)) != nullptr; at += length) {
        const bool starts = at == dtypes || at[-1] == ' ', ends = at[length] == ' ' || at[length] == 0;
        if (starts && ends) return true;
    }
    return false;
}

}  // namespace pto::emu
