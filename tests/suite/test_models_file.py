"""The file of endpoints and prices: what it says, and what it deserves."""

import json
from pathlib import Path

import pytest

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.llm.endpoints import Batching, Endpoint, ModelsConfig
from pytest_tfgrpo.llm.models import Models
from pytest_tfgrpo.llm.prices import LongPrompt, Price
from pytest_tfgrpo.suite.models_file import load_models

WHOLE = """
endpoints:
  local:
    base_url: http://127.0.0.1:8080/v1
    free: true
    concurrency: 4
    system_role: user
    structured: json_object
    logprobs: off
    seed: false
  hosted:
    base_url: https://models.example/v1
    api_key_env: HOSTED_KEY
    headers: {X-Version: "2026-01-01"}
    headers_env: {X-Project: HOSTED_PROJECT}
    timeout_s: 300
    retries: 2
    max_tokens: 32000
    max_tokens_field: max_completion_tokens
    temperature: false
    reasoning_effort: high
    logprobs: processed
    thoughts: [[<plan>, </plan>]]
    extra_body: {service_tier: flex, metadata: {team: a}}
    insecure: true
    response_max_bytes: 100000
prices:
  house-model: {input: 1.5, output: 6, cached_input: 0.1, as_of: 2026-10-01, source: the contract}
  gpt-4o: {input: 2, output: 9}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "models.yaml"


def load(file: Path, text: str) -> ModelsConfig:
    file.write_text(text, encoding="utf-8")
    return load_models(file)


def refusal(file: Path, text: str) -> str:
    with pytest.raises(SettingError) as caught:
        load(file, text)
    return str(caught.value)


def test_endpoints_are_read_with_all_their_fields(file: Path) -> None:
    config = load(file, WHOLE)
    assert config.source == str(file)
    assert config.endpoints["local"] == Endpoint(
        name="local",
        base_url="http://127.0.0.1:8080/v1",
        free=True,
        concurrency=4,
        system_role="user",
        structured="json_object",
        seed=False,
    )
    assert config.endpoints["hosted"] == Endpoint(
        name="hosted",
        base_url="https://models.example/v1",
        api_key_env="HOSTED_KEY",
        headers={"X-Version": "2026-01-01"},
        headers_env={"X-Project": "HOSTED_PROJECT"},
        timeout_s=300,
        retries=2,
        max_tokens=32000,
        max_tokens_field="max_completion_tokens",
        temperature=False,
        reasoning_effort="high",
        logprobs="processed",
        thoughts=(("<plan>", "</plan>"),),
        extra_body={"service_tier": "flex", "metadata": {"team": "a"}},
        insecure=True,
        response_max_bytes=100_000,
    )


def test_own_prices_extend_and_override_the_packaged_ones(file: Path) -> None:
    packaged, own = load_models(None).prices, load(file, WHOLE).prices
    assert own.packaged == packaged.packaged
    assert own.own("gpt-4o", "") == Price(input=2, output=9) != packaged.packaged["gpt-4o"]
    assert own.own("gpt-4o-mini", "") is None
    assert own.own("house-model", "") == Price(
        input=1.5, output=6, cached_input=0.1, as_of="2026-10-01", source="the contract"
    )


def test_the_packaged_prices_are_dated_and_valid(file: Path) -> None:
    packaged = Path(str(__import__("pytest_tfgrpo").__file__)).parent / "llm" / "prices.json"
    listed = json.loads(packaged.read_text("utf-8"))
    assert "US dollars per million tokens" in listed.pop("about")
    table = load(file, json.dumps(listed)).prices
    assert table.prices == table.packaged
    for name, price in table.prices.items():
        assert price.output >= price.input >= (price.cached_input or 0.0), name


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "{}", "endpoints: {}\nprices: {}\n"])
def test_an_empty_file_changes_nothing(file: Path, text: str) -> None:
    config = load(file, text)
    assert (config.endpoints, config.prices) == ({}, load_models(None).prices)


def test_the_default_endpoint_keeps_its_usual_key_unless_it_has_an_address_of_its_own(file: Path) -> None:
    assert (
        load(file, "endpoints: {default: {retries: 1}}").endpoints["default"].api_key_env == "OPENAI_API_KEY"
    )
    own = "endpoints: {default: {api_key_env: MY_KEY}}"
    assert load(file, own).endpoints["default"].api_key_env == "MY_KEY"
    moved = "endpoints: {default: {base_url: 'https://models.example/v1'}}"
    assert load(file, moved).endpoints["default"].api_key_env is None


BATCHED = """endpoints:
  on: {base_url: "http://h", batch: {}}
  some: {base_url: "http://h", batch: {gather_s: 30, completion_window: 2d}}
  off: {base_url: "http://h", batch: false}
"""


def test_calls_go_in_batches_where_a_mapping_or_true_says_so(file: Path) -> None:
    found = {name: one.batch for name, one in load(file, BATCHED).endpoints.items()}
    assert found == {"on": Batching(), "some": Batching(gather_s=30, completion_window="2d"), "off": None}
    assert load(file, BATCHED.replace("{}", "true")).endpoints["on"].batch == Batching()


def test_a_price_above_a_length_of_prompts_is_a_price_of_its_own(file: Path) -> None:
    text = "prices: {m: {input: 1, output: 2, above: {prompt: 200000, input: 3, output: 4}}}"
    price = load(file, text).prices.own("m", "")
    assert price is not None
    assert price.above == LongPrompt(prompt=200_000, price=Price(input=3, output=4))
    assert (price.input, price.output) == (1, 2)
    assert price.table == load(file, WHOLE).prices.prices["house-model"].table == "models.yaml"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("endpoint: {}", "1: #/endpoint: unknown key 'endpoint'; did you mean 'endpoints'?"),
        ("endpoints:\n  x: {}", "2: #/endpoints/x: missing key 'base_url'"),
        (
            "new: {input: 1, output: 2}",
            "1: #/new: unknown key 'new'; write prices: {new: {input: 0.5, output: 2}}, in US",
        ),
        (
            "prices: {new: {input: 1, output: 2, input_cost_per_token: 1.0e-7}}",
            "1: #/prices/new/input_cost_per_token: unknown key 'input_cost_per_token'; "
            "did you mean 'input'?; write prices: {MODEL: {input: 0.5, output: 2}}, in US dollars",
        ),
        (
            "endpoints:\n  x:\n    base_url: http://h\n    api_key: sk-1234567890abcdefghijkl",
            "4: #/endpoints/x/api_key: unknown key 'api_key'; did you mean 'api_key_env'?",
        ),
        (
            "endpoints:\n  x:\n    base_url: http://h\n    timeout_s: 0",
            "4: #/endpoints/x/timeout_s: 0 is less than or equal to the minimum of 0",
        ),
        (
            "endpoints:\n  x:\n    base_url: http://h\n    free: no",
            "4: #/endpoints/x/free: 'no' is not of type boolean; write true or false",
        ),
        (
            "endpoints:\n  x:\n    base_url: http://h\n    logprobs: true",
            "4: #/endpoints/x/logprobs: True is not one of ['off', 'raw', 'processed', 'unknown']",
        ),
        (
            "endpoints:\n  x:\n    base_url: ftp://h",
            "3: #/endpoints/x/base_url: must be http://host/... or https://host/..., not 'ftp://h'",
        ),
        ("endpoints:\n  a b: {base_url: 'http://h'}", "2: #/endpoints/a b: 'a b' must be letters, digits"),
        ("endpoints:\n  a@b: {base_url: 'http://h'}", "2: #/endpoints/a@b: 'a@b' must be letters, digits"),
        (
            "endpoints:\n  x:\n    base_url: http://h\n    extra_body:\n      messages: []",
            "5: #/endpoints/x/extra_body/messages: 'messages' is not for extra_body",
        ),
        (
            "endpoints:\n  x:\n    base_url: http://h\n    extra_body: {stream_options: {a: 1}}",
            "4: #/endpoints/x/extra_body/stream_options: 'stream_options' is not for extra_body",
        ),
        (
            "endpoints:\n  x:\n    base_url: http://h\n    headers: {Host: evil}",
            "4: #/endpoints/x/headers/Host: 'Host' is set by the client",
        ),
        (
            "endpoints:\n  x:\n    base_url: http://h\n    headers: {'a b': c}",
            "4: #/endpoints/x/headers/a b: 'a b' is not the name of a header",
        ),
        (
            'endpoints:\n  x:\n    base_url: http://h\n    headers: {X-A: "1\\r\\nX-B: 2"}',
            "4: #/endpoints/x/headers/X-A: '1\\r\\nX-B: 2' must be printable ASCII characters",
        ),
        (
            "endpoints:\n  x:\n    base_url: http://h\n    headers: {X-A: ü}",
            "4: #/endpoints/x/headers/X-A: 'ü' must be printable ASCII characters",
        ),
        (
            "endpoints:\n  x:\n    base_url: http://h\n    batch: true\n    concurrency: auto",
            "5: #/endpoints/x/concurrency: auto is not for batches",
        ),
        (
            "endpoints:\n  x:\n    base_url: http://h\n    batch: {}\n    hedge_after_s: 1",
            "5: #/endpoints/x/hedge_after_s: is not for batches",
        ),
        (
            f"{BATCHED}pools:\n  p: [{{endpoint: on}}]",
            "6: #/pools/p/0/endpoint: endpoint 'on' makes its calls in batches, which no pool shares out",
        ),
        (
            "endpoints:\n  x:\n    base_url: http://h\n    headers: {X-A: '1'}\n    headers_env: {x-a: B}",
            "2: #/endpoints/x: sets a header twice",
        ),
        ("prices:\n  m: {input: 1}", "2: #/prices/m: missing key 'output'"),
        ("prices:\n  m: {input: -1, output: 1}", "2: #/prices/m/input: -1 is less than the minimum of 0"),
        ("prices:\n  m: {input: .nan, output: 1}", "2: #/prices/m/input: '.nan' is not of type number"),
        ("currency: EUR", "1: #/currency: 'EUR' is not one of ['USD']"),
        ("prices: ]", "1: #: not YAML"),
        ("a: 1\na: 2", "2: #/a: duplicate key 'a'; first on line 1"),
        ("- x", "1: #: ['x'] is not of type object"),
    ],
)
def test_a_mistake_is_named_with_its_place(file: Path, text: str, expected: str) -> None:
    assert refusal(file, text).startswith(f"models: {file}:{expected}")


@pytest.mark.parametrize(
    "line",
    [
        "api_key_env: sk-1234567890abcdefghijkl",
        "api_key_env: 0123456789abcdef0123456789abcdef",
        "api_key_env: AKIA1234567890ABCDEF",
        "headers: {Authorization: Bearer hunter2hunter2}",
        "headers: {X-Api-Key: hunter2hunter2}",
        "headers: {X-Note: sk-1234567890abcdefghijkl}",
        "headers: {X-Note: [sk-1234567890abcdefghijkl]}",
        "headers_env: {X-Key: sk-1234567890abcdefghijkl}",
        "extra_body: {key: sk-1234567890abcdefghijkl}",
        "api_key_env: [sk-1234567890abcdefghijkl]",
    ],
)
def test_a_key_in_the_file_is_refused_and_not_repeated(file: Path, line: str) -> None:
    told = refusal(file, f"endpoints:\n  x:\n    base_url: https://models.example/v1\n    {line}\n")
    assert told.startswith(f"models: {file}:4: #/endpoints/x/")
    for secret in ("sk-123", "0123456789abcdef", "hunter2", "AKIA1234"):
        assert secret not in told


def test_a_file_that_is_not_there_is_named(file: Path) -> None:
    with pytest.raises(SettingError, match=r"models.yaml:1: #: cannot be read: No such file"):
        load_models(file)


def test_what_is_loaded_can_be_opened(file: Path) -> None:
    class NoPurse:
        async def reserve(self, bound: object) -> None: ...

        def settle(self, bound: object, *, usd: float | None, tokens: int | None) -> None: ...

    models = Models(load(file, WHOLE), environ={}, spending=NoPurse(), max_tokens=10)
    assert models.open("openai:m@local").paid is False
    with pytest.raises(SettingError, match=r"HOSTED_PROJECT is not set"):
        models.open("openai:m@hosted")


POOLED = """endpoints:
  a: {base_url: "https://a.example/v1"}
  b: {base_url: "https://b.example/v1", api_key_env: B_KEY}
  b2: {base_url: "https://b.example/v1", api_key_env: OTHER_KEY}
  twin: {base_url: "https://a.example/v1"}
"""


def test_a_pool_lists_endpoints_with_weights_and_names_of_the_model(file: Path) -> None:
    pools = "pools:\n  p: [{endpoint: a, weight: 3}, {endpoint: b, model: org/m}, {endpoint: b2}]\n"
    (shares,) = load(file, POOLED + pools).pools.values()
    assert [(one.endpoint, one.weight, one.model) for one in shares] == [
        ("a", 3, None), ("b", 1, "org/m"), ("b2", 1, None)
    ]  # fmt: skip


def test_the_members_of_a_pool_may_be_alike(file: Path) -> None:
    told = load(
        file,
        POOLED + "pools:\n  p: {alike: true, members: [{endpoint: a}]}\n  q: {members: [{endpoint: b}]}\n",
    )
    assert (told.alike, [one.endpoint for one in told.pools["p"]]) == ({"p"}, ["a"])
    assert load(file, POOLED + "pools:\n  p: [{endpoint: a}]\n").alike == frozenset()


@pytest.mark.parametrize(
    ("pools", "pointer", "said"),
    [
        ("p: {alike: true, members: [{endpoint: aa}]}", "p/members/0/endpoint", "there is no endpoint 'aa'"),
        ("p: {alike: 1, members: [{endpoint: a}]}", "p/alike", ""),
        ("p: {alike: true}", "p", ""),
        ("p: [{endpoint: a}, {endpoint: b}, {endpoint: a}]", "p/2/endpoint", "endpoint 'a' is listed twice"),
        ("p: [{endpoint: a}, {endpoint: twin}]", "p/1/endpoint", "'a', the server of 'twin', is listed"),
        ("p: [{endpoint: aa}]", "p/0/endpoint", "there is no endpoint 'aa'; did you mean 'a'?"),
        ("p: [{endpoint: defalt}]", "p/0/endpoint", "'defalt'; did you mean 'default'?"),
        ("p: []", "p", ""),
        ("a: [{endpoint: a}]", "a", "'a' is the name of an endpoint already"),
        ("default: [{endpoint: a}]", "default", "'default' is the name of an endpoint already"),
        ("x y: [{endpoint: a}]", "x y", "must be letters, digits"),
        ("p: [{endpoint: a, weight: 0}]", "p/0/weight", ""),
        ("p: [{endpoint: a, weight: 1.5}]", "p/0/weight", ""),
        ("p: [{endpoint: a, wait: 1}]", "p/0/wait", ""),
        ("p: [{weight: 1}]", "p/0", ""),
    ],
)  # fmt: skip
def test_a_pool_that_cannot_be_is_refused_by_line_and_place(
    file: Path, pools: str, pointer: str, said: str
) -> None:
    told = refusal(file, f"{POOLED}pools:\n  {pools}\n")
    assert told.startswith(f"models: {file}:7: #/pools/{pointer}: ")
    assert said in told


def test_an_endpoint_that_is_not_there_is_named_wherever_a_pool_lists_it(file: Path) -> None:
    told = refusal(file, f"{POOLED}pools:\n  p: [{{endpoint: zz}}, {{endpoint: zz}}]\n").splitlines()
    assert ["there is no endpoint 'zz'" in one for one in told] == [True, True]
