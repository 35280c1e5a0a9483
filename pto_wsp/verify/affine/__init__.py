"""Integer sets that are affine in loop variables and symbolic sizes: is one empty, and if not, which point is in it?"""
