constexpr int kL1A = 0x00000;  // 16384 bytes
constexpr int kL1B = 0x04000;  // 32768 bytes
constexpr int kL0ALeft = 0x00000;  // 16384 bytes
constexpr int kL0BRight = 0x00000;  // 32768 bytes
constexpr int kL0CAcc = 0x00000;  // 8192 bytes
    __gm__ float *const a_gm = pto_wsp::gm<float>(args, 0);
    const int64_t a_row_step = pto_wsp::stride(args, 0, 0);
    __gm__ float *const b_gm = pto_wsp::gm<float>(args, 1);
    const int64_t b_row_step = pto_wsp::stride(args, 1, 0);
    __gm__ float *const out_gm = pto_wsp::gm<float>(args, 2);
    const int64_t out_row_step = pto_wsp::stride(args, 2, 0);
    using MatF32_32x128 = Tile<TileType::Mat, float, 32, 128, BLayout::ColMajor, 32, 128, SLayout::RowMajor, 512>;
    using MatF32_128x64 = Tile<TileType::Mat, float, 128, 64, BLayout::ColMajor, 128, 64, SLayout::RowMajor, 512>;
    using LeftF32_32x128 = TileLeft<float, 32, 128, 32, 128>;
    using RightF32_128x64 = TileRight<float, 128, 64, 128, 64>;
    using AccF32_32x64 = TileAcc<float, 32, 64, 32, 64>;
    MatF32_32x128 a;
    TASSIGN(a, kL1A);
    MatF32_128x64 b;
    TASSIGN(b, kL1B);
    LeftF32_32x128 left;
    TASSIGN(left, kL0ALeft);
    RightF32_128x64 right;
    TASSIGN(right, kL0BRight);
    AccF32_32x64 acc;
    TASSIGN(acc, kL0CAcc);
    using GmA = GlobalTensor<float, Shape<1, 1, 1, 32, 128>, Stride<1, 1, 1, -1, 1>>;
    GmA g_a(a_gm, Shape<1, 1, 1, 32, 128>(), Stride<1, 1, 1, -1, 1>((int)a_row_step));
    TLOAD(a, g_a);
    using GmB = GlobalTensor<float, Shape<1, 1, 1, 128, 64>, Stride<1, 1, 1, -1, 1>>;
    GmB g_b(b_gm, Shape<1, 1, 1, 128, 64>(), Stride<1, 1, 1, -1, 1>((int)b_row_step));
    TLOAD(b, g_b);
    TEXTRACT(left, a, 0, 0);
    TEXTRACT(right, b, 0, 0);
    TMATMUL(acc, left, right);
    using GmOut = GlobalTensor<float, Shape<1, 1, 1, 32, 64>, Stride<1, 1, 1, -1, 1>>;
    GmOut g_out(out_gm, Shape<1, 1, 1, 32, 64>(), Stride<1, 1, 1, -1, 1>((int)out_row_step));
    TSTORE(g_out, acc);
