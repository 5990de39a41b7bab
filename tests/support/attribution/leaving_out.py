"""What the tests of learning/attribution/test_leaving_out.py share with the slow ones."""

from pytest_tfgrpo.core.lessons import Experience
from support.builders import PACK_STAMP, make_experience


def lessons(count: int = 6, run: str = "run1") -> list[Experience]:
    return [
        make_experience(
            n,
            id=f"{run}-{n}",
            run_id=run,
            summary32=f"For letter words use tool number {n}.",
            stamp_signature=PACK_STAMP,
        )
        for n in range(count)
    ]
