from shop import VERSION


def test_pages_are_fast():
    assert VERSION == 2
