"""What comes in loses secrets and names; what joins events stays joinable."""

import json

from pytest_tfgrpo.production.door.scrubber import LONGEST_ATTRIBUTE


def test_an_attribute_of_10_mb_keeps_its_ends_and_stays_json(scrubber):
    messages = [{"role": "user", "content": f"{n} " + "word " * 200} for n in range(10_000)]
    text = scrubber.attribute("gen_ai.input.messages", json.dumps(messages))
    assert len(text.encode()) <= LONGEST_ATTRIBUTE
    found = json.loads(text)
    assert found[0]["content"].startswith("0 word")
    assert found[-1]["content"].startswith("9999 word")
