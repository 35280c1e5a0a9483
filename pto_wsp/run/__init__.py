"""Run programs: natively, in NumPy, under the sanitizer, in simulated time."""
