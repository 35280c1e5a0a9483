"""An artifact held against the NumPy meaning of its workload: both run on copies of the same arrays, and what they leave is compared."""
