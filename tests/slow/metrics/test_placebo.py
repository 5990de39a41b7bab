from support.placebo_claims import claim_rates


def test_a_library_whose_text_does_not_matter_is_hardly_ever_claimed_where_a_placebo_ran() -> None:
    alone, both = claim_rates(1000, content=0.0, any_text=0.3)
    assert alone > 0.95
    assert both <= 0.03


def test_a_good_library_is_claimed_about_as_often_where_a_placebo_ran() -> None:
    alone, both = claim_rates(1000, content=0.12, any_text=0.0)
    assert alone > 0.8
    assert alone - both <= 0.05
