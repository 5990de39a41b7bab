"""The job in LangSmith's `evaluate`, offline: examples from memory, results not uploaded.

Its `aevaluate` sends traces even so, so this is the one with threads.
"""

from datetime import UTC, datetime
from uuid import uuid4

from langsmith import Client, evaluate
from langsmith.schemas import Example
from openai import OpenAI

COUNT, IN_FLIGHT = 1000, 64
client, dataset = OpenAI(), uuid4()


def ask(inputs: dict) -> dict:
    answer = client.chat.completions.create(
        model="bench", messages=[{"role": "user", "content": inputs["prompt"]}]
    )
    return {"answer": answer.choices[0].message.content}


def exact(outputs: dict, reference_outputs: dict) -> bool:
    return outputs["answer"] == reference_outputs["answer"]


examples = [
    Example(
        id=uuid4(),
        dataset_id=dataset,
        inputs={"prompt": f"How many words has letter {n}?"},
        outputs={"answer": "3"},
        created_at=datetime.now(UTC),
    )
    for n in range(COUNT)
]
results = evaluate(
    ask,
    data=examples,
    evaluators=[exact],
    max_concurrency=IN_FLIGHT,
    upload_results=False,
    client=Client(api_url="http://127.0.0.1:9", api_key="none", auto_batch_tracing=False),
)
assert sum(bool(row["evaluation_results"]["results"][0].score) for row in results) == COUNT
