"""Where personal data stands, at the edges of its shapes."""

import pytest

from pytest_tfgrpo.privacy.personal import is_phone, personal_of
from pytest_tfgrpo.privacy.redact import Redactor


def found(text: str, *, addresses: bool = False) -> set[tuple[str, str]]:
    """Return what of a text is personal data, with its kind."""
    return {(text[start:end], kind) for start, end, kind in personal_of(text, addresses)}


@pytest.mark.parametrize("name", ["css", "GIF", "html", "jpeg", "JPG", "json", "pdf", "Png", "svg", "txt"])
def test_the_name_of_a_file_is_no_address_whatever_its_capitals(name: str) -> None:
    assert found(f"logo@icons.{name}") == set()


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("see 'ann@example.org'", "ann@example.org"),
        ("**ann@example.org**", "ann@example.org"),
        ("(~-ann-b@example.org)", "ann-b@example.org"),
        ("git@example.org", "git@example.org"),  # nothing of a repository follows
        ("git@example.org:own/er", None),
        ("my.git@example.org:own/er", "my.git@example.org"),
        ("a@example.org-b", None),
    ],
)
def test_signs_before_an_address_are_no_part_of_it_and_a_remote_of_git_is_none(
    text: str, address: str | None
) -> None:
    assert found(text) == (set() if address is None else {(address, "email")})


def test_every_address_and_every_iban_of_a_text_has_its_place() -> None:
    assert found("a@ex.io b@ex.io") == {("a@ex.io", "email"), ("b@ex.io", "email")}
    two = "DE89370400440532013000 and GB82WEST12345698765432"
    assert {value for value, kind in found(two) if kind == "iban"} == set(two.split(" and "))


@pytest.mark.parametrize("before", ["x", "7", ""])
def test_an_iban_does_not_begin_within_a_word(before: str) -> None:
    iban = "DE89370400440532013000"
    assert ((iban, "iban") in found(before + iban)) is (before == "")


@pytest.mark.parametrize(
    "iban",
    [
        "ME25505000012345678951",
        "NO9386011117947",
        "MT84MALT011000012345MTLCAST001S",
        "FR1420041010050500013M02606",
    ],
)
def test_an_iban_has_the_length_of_its_country(iban: str) -> None:
    assert (iban, "iban") in found(iban)
    assert (iban, "iban") not in found(f"{iban}1")


@pytest.mark.parametrize(
    ("number", "taken"),
    [
        ("+1 415555", False),  # 7 digits
        ("+1 4155555", True),
        ("+14155555", False),  # 8 without a separator
        ("+141555552", True),
        ("+49 30901820123456", False),  # 16 digits
        ("+49 3090182012345", True),
        ("+801 41 55 52 67", False),  # no country has this code
        ("+49 41 55 52 67", True),
        ("0301 12345678", True),  # 12 digits
        ("0301 123456789", False),
        ("030 12345", False),  # 8 digits
        ("030 123456", True),
    ],
)
def test_how_many_digits_a_telephone_number_has(number: str, taken: bool) -> None:
    assert ("phone" in {kind for _, kind in found(number)}) is taken


@pytest.mark.parametrize("sign", ["(", ".", "/"])
def test_a_word_that_goes_on_as_code_or_as_a_path_names_no_telephone_number(sign: str) -> None:
    assert found(f"call{sign}5550143") == set()
    assert found("call 5550143") == {("5550143", "phone")}


def test_a_value_is_a_telephone_number_by_its_key_unless_it_is_long_or_has_other_letters() -> None:
    assert is_phone("phone", "5 5 5 0 1 4 3")
    assert not is_phone("phone", "5 5 5 0 1 4 3".ljust(30))
    assert is_phone("phone", "5550143".ljust(29))
    assert not is_phone("phone", "555 014")
    assert not is_phone("phone", "٥٥٥٠١٤٣")
    assert not is_phone("phones", "5550143")


@pytest.mark.parametrize(
    "address", ["93.184.216.34", "2001:0db8:85a3:0000:0000:8a2e:0370:7334", "::ffff:5db8:d822"]
)
@pytest.mark.parametrize("sign", ["", " ", "=", "_", ".", "-", "x"])
def test_an_address_of_the_internet_stands_by_itself(address: str, sign: str) -> None:
    apart = sign in ("", " ", "=") or (sign == "-" and ":" in address)
    assert (found(sign + address, addresses=True) == {(address, "ip")}) is apart
    assert found(address) == set()


def test_numbers_of_personal_data_stay_where_addresses_alone_are_asked_for() -> None:
    text = "93.184.216.34 4111 1111 1111 1111"
    assert Redactor(personal=False, addresses=True).text(text) == text
