"""The job in pydantic-evals, as its documentation has one: dataset, task, evaluator, printed report."""

import asyncio

from openai import AsyncOpenAI
from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import EqualsExpected

COUNT, IN_FLIGHT = 1000, 64


async def main() -> None:
    client = AsyncOpenAI()

    async def ask(prompt: str) -> str:
        answer = await client.chat.completions.create(
            model="bench", messages=[{"role": "user", "content": prompt}]
        )
        return answer.choices[0].message.content or ""

    cases = [
        Case(name=f"s{n}", inputs=f"How many words has letter {n}?", expected_output="3")
        for n in range(COUNT)
    ]
    dataset = Dataset(name="letters", cases=cases, evaluators=[EqualsExpected()])
    report = await dataset.evaluate(ask, max_concurrency=IN_FLIGHT)
    report.print()
    assert sum(case.assertions["EqualsExpected"].value is True for case in report.cases) == COUNT


asyncio.run(main())
