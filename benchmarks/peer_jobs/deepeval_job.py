"""The job in DeepEval: the answers are asked for first, as it takes test cases with their outputs."""

import asyncio

from deepeval import evaluate
from deepeval.evaluate import AsyncConfig, CacheConfig, DisplayConfig
from deepeval.metrics import ExactMatchMetric
from deepeval.test_case import LLMTestCase
from openai import AsyncOpenAI

COUNT, IN_FLIGHT = 1000, 64


async def answers() -> list[LLMTestCase]:
    slots, client = asyncio.Semaphore(IN_FLIGHT), AsyncOpenAI()

    async def ask(n: int) -> LLMTestCase:
        prompt = f"How many words has letter {n}?"
        async with slots:
            answer = await client.chat.completions.create(
                model="bench", messages=[{"role": "user", "content": prompt}]
            )
        text = answer.choices[0].message.content or ""
        return LLMTestCase(name=f"s{n}", input=prompt, actual_output=text, expected_output="3")

    return list(await asyncio.gather(*(ask(n) for n in range(COUNT))))


result = evaluate(
    test_cases=asyncio.run(answers()),
    metrics=[ExactMatchMetric()],
    async_config=AsyncConfig(max_concurrent=IN_FLIGHT),
    cache_config=CacheConfig(write_cache=False),
    display_config=DisplayConfig(show_indicator=False, print_results=False),
)
assert sum(bool(test.success) for test in result.test_results) == COUNT
