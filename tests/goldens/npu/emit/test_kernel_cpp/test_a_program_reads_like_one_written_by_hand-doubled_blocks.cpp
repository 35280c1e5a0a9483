constexpr int kUbT = 0x00000;  // 512 bytes x 2
    __gm__ float *const x_gm = pto_wsp::gm<float>(args, 0);
    const int64_t x_row_step = pto_wsp::stride(args, 0, 0) * 2;
    const int64_t x_rows = (pto_wsp::shape(args, 0, 0) + 1) / 2;
    __gm__ float *const out_gm = pto_wsp::gm<float>(args, 1);
    const int64_t out_row_step = pto_wsp::stride(args, 1, 0);
    using VecF32_8x16 = Tile<TileType::Vec, float, 8, 16, BLayout::RowMajor, 8, 16>;
    for (int64_t block = 0; block < x_rows / 8; ++block) {
        VecF32_8x16 t;
        TASSIGN(t, (int)(kUbT + block % 2 * 512));
        using GmX = GlobalTensor<float, Shape<1, 1, 1, 8, 16>, Stride<1, 1, 1, -1, 1>>;
        GmX g_x(x_gm + block * 8 * x_row_step, Shape<1, 1, 1, 8, 16>(), Stride<1, 1, 1, -1, 1>((int)x_row_step));
        TLOAD(t, g_x);
        TADD(t, t, t);
        using GmOut = GlobalTensor<float, Shape<1, 1, 1, 8, 16>, Stride<1, 1, 1, -1, 1>>;
        GmOut g_out(out_gm + block * 8 * out_row_step, Shape<1, 1, 1, 8, 16>(), Stride<1, 1, 1, -1, 1>((int)out_row_step));
        TSTORE(g_out, t);
    }
