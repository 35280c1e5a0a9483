from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from tests.laws.generated_kernels import recipes
from tests.laws.test_kernels import compare_generated


@seed(12345)
@given(st.lists(recipes(max_steps=12), min_size=12, max_size=24))
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck), database=None)
def test_more(rs): compare_generated(rs)
