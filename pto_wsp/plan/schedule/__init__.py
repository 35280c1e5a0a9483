"""From a schedule to a plan: one directive, or one group of them, a file; `place.py` puts together what they say."""
