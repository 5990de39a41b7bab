"""What the tests of plugin/test_markers.py share with the slow ones."""

LONG = """
@pytest.fixture
def lengthy(rollout):
    assert rollout.answer * 40 == rollout.answer * 39 + "x", rollout.answer * 100

class Odd:
    pass

@pytest.mark.tfgrpo(**MARK)
def test_equal(rollout):
    assert [rollout.answer * 60, *range(30)] == [rollout.answer * 60, "other", *range(30)]

@pytest.mark.tfgrpo(**MARK | {"prompt": "How many words has 'a b'?"})
def test_call(rollout):
    assert not (rollout.answer * 300)

@pytest.mark.tfgrpo(**MARK | {"prompt": "How many words has 'a'?"})
def test_object(rollout):
    assert Odd() is None

@pytest.mark.tfgrpo(**MARK | {"prompt": "How many words has ''?"})
def test_fixture(rollout, lengthy):
    pass
"""
