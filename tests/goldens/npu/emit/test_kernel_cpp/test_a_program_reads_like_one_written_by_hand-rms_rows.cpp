constexpr int kUbX = 0x00000;  // 8192 bytes
constexpr int kUbSq = 0x02000;  // 8192 bytes
constexpr int kUbStat = 0x04000;  // 64 bytes
constexpr int kUbWork = 0x04040;  // 8192 bytes
    __gm__ float *const x_gm = pto_wsp::gm<float>(args, 0);
    const int64_t x_row_step = pto_wsp::stride(args, 0, 1);
    const int64_t x_rows = pto_wsp::shape(args, 0, 1);
    __gm__ float *const out_gm = pto_wsp::gm<float>(args, 1);
    const int64_t out_row_step = pto_wsp::stride(args, 1, 1);
    const float eps = pto_wsp::f32(args, 2);
    using VecF32_16x128_dyn = Tile<TileType::Vec, float, 16, 128, BLayout::RowMajor, -1, -1>;
    using ColF32_16x1_dyn = Tile<TileType::Vec, float, 16, 1, BLayout::ColMajor, -1, -1>;
    using VecF32_1x16_dyn = Tile<TileType::Vec, float, 1, 16, BLayout::RowMajor, -1, -1>;
    if (x_rows <= 0) {
        return;
    }
    VecF32_16x128_dyn x((int)x_rows, 128);
    TASSIGN(x, kUbX);
    VecF32_16x128_dyn sq((int)x_rows, 128);
    TASSIGN(sq, kUbSq);
    ColF32_16x1_dyn stat((int)x_rows, 1);
    TASSIGN(stat, kUbStat);
    VecF32_1x16_dyn stat_row(1, (int)x_rows);
    TASSIGN(stat_row, kUbStat);
    VecF32_16x128_dyn work((int)x_rows, 128);
    TASSIGN(work, kUbWork);
    using GmX = GlobalTensor<float, Shape<1, 1, 1, -1, -1>, Stride<1, 1, 1, -1, 1>>;
    GmX g_x(x_gm, Shape<1, 1, 1, -1, -1>((int)x_rows, 128), Stride<1, 1, 1, -1, 1>((int)x_row_step));
    TLOAD(x, g_x);
    TMUL(sq, x, x);
    TROWSUM(stat, sq, work);
    TADDS(stat_row, stat_row, (float)eps);
    TROWEXPANDDIV(sq, x, stat);
    using GmOut = GlobalTensor<float, Shape<1, 1, 1, -1, -1>, Stride<1, 1, 1, -1, 1>>;
    GmOut g_out(out_gm, Shape<1, 1, 1, -1, -1>((int)x_rows, 128), Stride<1, 1, 1, -1, 1>((int)out_row_step));
    TSTORE(g_out, sq);
