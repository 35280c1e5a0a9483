"""The call side of `jit`: arguments taken apart, arrays in and out, programs kept and found again."""
