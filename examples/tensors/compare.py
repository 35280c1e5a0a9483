"""Run the functions of an example with their default and their tuned plans, beside their NumPy meaning; the examples' own `main`."""

import numpy as np

ARCH = "ascend_910b"


def compare(functions, draw, expected, tolerance=1e-5):
    """Print a line a plan: the largest error against the NumPy meaning, tasks, simulated cycles. Return 1 where a result is off.

    `functions`: to each the entries of its tuned plan.
    """
    failed = 0
    for function, entries in functions.items():
        default = function.plan(**draw(), arch=ARCH)
        for name, plan in (("default", default), ("tuned", default.but(**entries))):
            data = draw()
            results = function(**data, plan=plan)
            error = max(relative_error(found, wanted) for _, found, wanted in outcomes(function, data, results, expected(**draw())))
            stats = function.lower(plan, **data).compile(arch=ARCH).run().stats
            print(f"{function.__name__}, {name} plan: error {error:.1e}, {stats.task_count} tasks, {stats.total_cycles:,} cycles"
                  f"{'' if error <= tolerance else ': FAILED'}")
            failed |= not error <= tolerance        # so for NaN
    return int(failed)


def outcomes(function, data, results, wanted):
    """Yield a name, what was found and what is expected, for each result and each array of `data` that the function wrote."""
    wanted = wanted[function] if isinstance(wanted, dict) else wanted
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    written = wanted[-1] if isinstance(wanted[-1], dict) else {}
    results = results if isinstance(results, tuple) else (results,)
    for number, pair in enumerate(zip(results, wanted[:-1] if written else wanted, strict=True)):
        yield f"result {number}", *pair
    for name, value in written.items():
        yield name, data[name], value


def relative_error(found, wanted):
    """Return the largest distance over the largest number expected; of whole numbers that are codes, one step is no error."""
    if found.shape != wanted.shape:
        return np.inf
    distance = np.abs(found.astype(np.float64) - wanted)
    if found.dtype == np.int8:
        distance = np.maximum(distance - 1, 0)
    return float(distance.max(initial=0) / max(np.abs(wanted).max(initial=0), 1e-30))
