from support.sweeps import claims_of_chance


def test_claims_of_chance_stay_as_rare_with_many_domains() -> None:
    assert claims_of_chance(60) <= 8  # 0.05, and three standard errors of 60 runs
