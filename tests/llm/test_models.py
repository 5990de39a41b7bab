"""Specs, endpoints and keys: what is refused before anything is asked."""

from dataclasses import replace
from typing import Any

import pytest
from support.fake_model import FakeModel
from support.model_clients import KEY, PRICES, Ledger, request

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.wire.stamp import stamp
from pytest_tfgrpo.llm.completer import ChatCompleter
from pytest_tfgrpo.llm.endpoints import Endpoint, ModelsConfig
from pytest_tfgrpo.llm.models import Models
from pytest_tfgrpo.llm.server.url import parse_address


def models_of(*endpoints: Endpoint, spending: Any = None, **environ: str) -> Models:
    config = ModelsConfig(endpoints={e.name: e for e in endpoints}, prices=PRICES, source="models.yaml")
    return Models(config, environ=environ, spending=spending or Ledger(), max_tokens=1000)


def opened(models: Models, spec: str) -> ChatCompleter:
    model = models.open(spec)
    assert isinstance(model, ChatCompleter)
    return model


LOCAL = Endpoint(name="local", base_url="http://127.0.0.1:8080/v1", free=True)
HOSTED = Endpoint(name="hosted", base_url="https://models.example/v1", api_key_env="HOSTED_KEY")


@pytest.mark.parametrize(
    ("spec", "model", "name"),
    [
        ("openai:gpt-4o", "gpt-4o", "openai:gpt-4o"),
        ("openai:gpt-4o@default", "gpt-4o", "openai:gpt-4o"),
        ("openai: llama3:8b@local ", "llama3:8b", "openai:llama3:8b@local"),
        ("openai:meta/llama-3@local", "meta/llama-3", "openai:meta/llama-3@local"),
        ("openai:@cf/meta/llama-3", "@cf/meta/llama-3", "openai:@cf/meta/llama-3"),
        ("openai:@cf/meta/llama-3@local", "@cf/meta/llama-3", "openai:@cf/meta/llama-3@local"),
        ("openai:claude@20260101", "claude@20260101", "openai:claude@20260101"),
        ("openai:claude@v2@default", "claude@v2", "openai:claude@v2"),
        ("openai:@local", "@local", "openai:@local"),
    ],
)
def test_a_spec_names_a_model_and_perhaps_an_endpoint(spec: str, model: str, name: str) -> None:
    found = opened(models_of(LOCAL, OPENAI_API_KEY=KEY), spec)
    assert (found.identity["model"], found.name) == (model, name)


@pytest.mark.parametrize(
    "spec", ["openai:", "openai: ", "gpt-4o", "openai:a b", "openai:a\x1b[2J", "openai:" + "x" * 999]
)
def test_a_malformed_spec_is_refused(spec: str) -> None:
    with pytest.raises(SettingError, match="does not name a language model; write openai:<model>"):
        models_of(OPENAI_API_KEY=KEY).open(spec)


@pytest.mark.parametrize("name", ["locl", "Local", "local1", "hostd"])
def test_a_misspelt_endpoint_is_refused_with_the_nearest_one(name: str) -> None:
    with pytest.raises(
        SettingError, match=r"did you mean openai:m@(local|hosted)\? There are: default, hosted, local"
    ):
        models_of(LOCAL, HOSTED, OPENAI_API_KEY=KEY).open(f"openai:m@{name}")


def test_what_is_meant_for_an_unknown_endpoint_goes_to_no_other_one() -> None:
    no_file = Models(ModelsConfig(prices=PRICES), environ={}, spending=Ledger(), max_tokens=1000)
    with pytest.raises(
        SettingError, match=r"'openai:m@gpu' names no known endpoint; there are: default; set tfgrpo_models"
    ):
        no_file.open("openai:m@gpu")
    with pytest.raises(
        SettingError, match=r"default, local \(.*models.yaml\)\. If @gpu .* openai:m@gpu@default"
    ):
        models_of(LOCAL, OPENAI_API_KEY=KEY).open("openai:m@gpu")


def test_the_name_of_an_open_model_opens_it_again() -> None:
    models = models_of(OPENAI_API_KEY=KEY)
    model = models.open("openai:claude@v2@default")
    assert models.open(model.name) is model


def test_equal_specs_share_a_model() -> None:
    models = models_of(LOCAL, OPENAI_API_KEY=KEY)
    assert models.open("openai:m@local") is models.open("openai:m@local ")
    assert models.open("openai:m@local") is not models.open("openai:m")


def test_a_missing_key_is_refused_before_anything_is_asked() -> None:
    with pytest.raises(
        SettingError,
        match=r"OPENAI_API_KEY is not set.*'default' at https://api.openai.com/v1.*; set OPENAI_BASE_URL to",
    ):
        models_of().open("openai:gpt-4o")
    with pytest.raises(SettingError, match=r"HOSTED_KEY is not set.*'hosted'.*models.yaml"):
        models_of(HOSTED, OPENAI_API_KEY=KEY, HOSTED_KEY=" ").open("openai:m@hosted")


def test_a_dry_run_needs_no_key_but_still_a_fit_one() -> None:
    def dry(**environ: str) -> Models:
        config = ModelsConfig(endpoints={"hosted": HOSTED}, dry=True)
        return Models(config, environ=environ, spending=Ledger(), max_tokens=9)

    assert opened(dry(), "openai:m").paid
    assert opened(dry(), "openai:m@hosted").paid
    with pytest.raises(SettingError, match="must hold the key alone"):
        dry(OPENAI_API_KEY="Bearer x").open("openai:m")


@pytest.mark.parametrize("base_url", ["http://127.0.0.1:1/v1", "http://localhost:1/v1", "http://[::1]:1/v1"])
def test_a_server_on_this_machine_needs_no_key(base_url: str) -> None:
    models_of(OPENAI_BASE_URL=base_url).open("openai:m")


def test_an_endpoint_without_a_key_gets_none(recwarn: pytest.WarningsRecorder) -> None:
    lan = Endpoint(name="lan", base_url="http://gpu-box:8000/v1")
    model = opened(models_of(lan, OPENAI_API_KEY=KEY), "openai:m@lan")
    assert "Authorization" not in model._door.headers


@pytest.mark.parametrize(
    "base_url",
    [
        "http://models.example/v1",
        "http://127.0.0.1.example/v1",
        "http://localhost.example",
        "http://10.0.0.1/",
    ],
)
def test_a_key_does_not_go_unencrypted_to_another_machine(base_url: str) -> None:
    with pytest.raises(SettingError, match=r"would send a key unencrypted .*insecure: true"):
        models_of(OPENAI_API_KEY=KEY, OPENAI_BASE_URL=base_url).open("openai:m")
    fields = {"name": "x", "base_url": base_url, "headers_env": {"X-Key": "K"}}
    with pytest.raises(SettingError, match="unencrypted"):
        models_of(Endpoint(**fields), K=KEY).open("openai:m@x")
    models_of(Endpoint(**fields, insecure=True), K=KEY).open("openai:m@x")


@pytest.mark.parametrize(
    "base_url",
    [
        "models.example/v1",
        "ftp://models.example/v1",
        "https://",
        "https://user:hunter2@models.example/v1",
        f"https://{KEY}@models.example/v1",
        "https://models.example:0/v1",
        f"https://models.example/v1?key={KEY}",
        "https://models.example/v1#part",
        "https://models.example/v1/chat/completions",
        "https://models.example:port/v1",
        "https://mo dels.example/v1",
        "https://models.example/v1\r\nX-Injected: 1",
    ],
)
def test_an_address_that_is_none_is_refused_without_showing_what_it_hides(base_url: str) -> None:
    with pytest.raises(SettingError, match=r"^base URL .*environment OPENAI_BASE_URL") as caught:
        models_of(OPENAI_API_KEY=KEY, OPENAI_BASE_URL=base_url).open("openai:m")
    assert KEY not in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("key", ["kéy-of-many-characters", "key\nX-Injected: 1", "key\x00"])
def test_a_key_that_is_no_header_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(SettingError, match="OPENAI_API_KEY must hold printable ASCII") as caught:
        models_of(OPENAI_API_KEY=key).open("openai:m")
    assert key not in str(caught.value)


def test_calls_of_hosted_models_cost_money_and_free_ones_do_not() -> None:
    models = models_of(LOCAL, HOSTED, HOSTED_KEY=KEY)
    free, paid, unknown = (
        models.open(f"openai:{s}") for s in ("priced@local", "priced@hosted", "new@hosted")
    )
    assert (free.paid, paid.paid, unknown.paid) == (False, True, True)
    asked = request("x" * 1000, max_tokens=100)
    tokens = paid.bound(asked)["tokens"]
    assert tokens is not None
    assert 1100 <= tokens < 2000
    assert paid.bound(asked)["usd"] == pytest.approx((tokens - 100 + 100 * 10) / 1e6)
    assert unknown.bound(asked) == {"usd": None, "tokens": tokens}
    assert free.bound(asked) == {"usd": 0.0, "tokens": tokens}


def test_the_bound_has_the_limit_of_request_endpoint_and_setting_in_this_order() -> None:
    small = Endpoint(name="small", base_url="http://127.0.0.1:1/v1", max_tokens=50)
    models = models_of(LOCAL, small)
    least = models.open("openai:m@local").bound(request(max_tokens=1))["tokens"]
    assert least is not None
    assert models.open("openai:m@small").bound(request())["tokens"] == least + 49
    assert models.open("openai:m@local").bound(request())["tokens"] == least + 999


def test_an_identity_is_stable_and_has_everything_but_keys() -> None:
    fields: dict[str, Any] = {"name": "e", "base_url": "https://models.example/v1/", "api_key_env": "K"}

    def identity(key: str = KEY, **more: Any) -> str:
        model = models_of(Endpoint(**{**fields, **more}), K=key, K2=key).open("openai:m@e")
        assert key not in repr(model.identity)
        return stamp(dict(model.identity))

    usual = identity()
    assert identity() == usual
    assert identity(key="another-key-another-key") == usual
    for same in (
        {"timeout_s": 1.0},
        {"retries": 0},
        {"concurrency": 1},
        {"free": True},
        {"headers_env": {"X": "K2"}},
        {"logprobs": "raw"},
    ):
        assert identity(**same) == usual
    for other in (
        {"base_url": "https://elsewhere.example/v1"},
        {"system_role": "user"},
        {"seed": False},
        {"temperature": False},
        {"structured": "none"},
        {"max_tokens": 7},
        {"reasoning_effort": "low"},
        {"extra_body": {"top_p": 0.5}},
        {"headers": {"X-Version": "2"}},
    ):
        assert identity(**other) != usual


@pytest.mark.asyncio
async def test_several_endpoints_are_open_at_the_same_time_each_with_its_own_key() -> None:
    with FakeModel(keys=["key-of-the-first"]) as one, FakeModel(keys=["key-of-the-second"]) as two:
        models = models_of(
            Endpoint(name="one", base_url=one.base_url, api_key_env="ONE", headers={"X-Team": "a"}),
            Endpoint(name="two", base_url=two.base_url, headers_env={"Authorization": "TWO"}),
            ONE="key-of-the-first",
            TWO="Bearer key-of-the-second",
        )
        for name in ("one", "two"):
            assert (await models.open(f"openai:m@{name}").complete(request())).text == "hello"
        await models.aclose()
    assert one.headers[0]["x-team"] == "a"
    assert "x-team" not in two.headers[0]


def test_other_routes_of_a_server_keep_its_query() -> None:
    plain, azure = parse_address("https://a.example/v1/"), parse_address("https://b.example/v1?api-version=1")
    assert plain.url == "https://a.example/v1/chat/completions"
    assert azure.url == "https://b.example/v1/chat/completions?api-version=1"
    assert parse_address(" https://a.example/v1// ") == plain
    assert plain.route("/batches", {}) == "https://a.example/v1/batches"
    assert plain.route("/batches", {"limit": "1"}) == "https://a.example/v1/batches?limit=1"
    assert azure.route("/files", {"after": "x y"}) == "https://b.example/v1/files?api-version=1&after=x+y"


@pytest.mark.parametrize(
    "key",
    [
        "Bearer sk-abcdefgh",
        "bearer  sk-abcdefgh",
        "Authorization: Bearer sk-abcdefgh",
        "Bearer:sk-abcdefgh",
        "Bearer",
        '"Bearer sk-abcdefgh"',
        "'bearer=sk-abcdefgh'",
    ],
)
def test_a_key_with_the_words_before_it_is_an_error_that_says_so(key: str) -> None:
    with pytest.raises(SettingError, match=r"OPENAI_API_KEY must hold the key alone.*leave out") as caught:
        models_of(OPENAI_API_KEY=key).open("openai:m")
    assert "abcdefgh" not in str(caught.value)


def test_how_thoughts_are_told_from_answers_is_part_of_a_models_identity_unless_it_is_as_usual() -> None:
    tags = ((True, "usual"), (False, False), ((("a", "b"),), [["a", "b"]]))
    for given, shown in tags:
        found = opened(models_of(replace(LOCAL, thoughts=given)), "openai:m@local")
        assert found.identity.get("thoughts", "usual") == shown
