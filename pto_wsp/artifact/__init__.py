"""Artifacts on disk: the C compiler, the store, manifests."""
