/* sim_options.h: which options of a simulation fit together, and what they ask for. Options belong to the caller. */
#ifndef PTO_SIM_OPTIONS_H
#define PTO_SIM_OPTIONS_H
#include <stdbool.h>
#include <stddef.h>

#include "pto_wsp.h"

#pragma GCC visibility push(hidden)

bool pto_sim_options_fit(const pto_sim_options *options);
bool pto_sim_releases_at_once(const pto_sim_options *options);         /* a task, the moment it is submitted */
bool pto_sim_is_plain(const pto_sim_options *options);     /* every task is released as it is submitted, weighs 1, and leaves no trace */

#pragma GCC visibility pop

#endif
