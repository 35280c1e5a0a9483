"""Plans: a workload and its schedule, lowered to what an orchestrator does."""
