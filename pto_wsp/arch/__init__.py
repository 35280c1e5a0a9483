"""Machines: their models, instruction sets, and what a kernel costs on them."""
