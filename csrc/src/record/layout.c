/* layout.c: the library's half of the handshake. */
#include "pto_layout.h"

static const pto_layout layout_rows[] = {PTO_LAYOUT_ALL};

int32_t pto_abi_version(void)
{
    return PTO_ABI_VERSION;
}

int32_t pto_abi_layout(const pto_layout **out)
{
    *out = layout_rows;
    return (int32_t)(sizeof layout_rows / sizeof *layout_rows);
}
