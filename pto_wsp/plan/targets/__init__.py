"""What each target makes of a plan: the directives of its schedule, the forms of its workload."""
