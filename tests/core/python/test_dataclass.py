"""Frozen classes: ours do what those of the standard library do."""

import copy
import dataclasses
import inspect
import pickle
from dataclasses import FrozenInstanceError, field, replace

import pytest
from support.builders import make_rollout

from pytest_tfgrpo.core.python.dataclass import dataclass as ours
from pytest_tfgrpo.core.python.dataclass import maker_of

FROZEN = {"frozen": True, "kw_only": True, "slots": True}


def declare(decorator, **options):
    """One class by either decorator; its fields are its own, for a decorator writes its options into them."""
    body = {
        "__annotations__": {"name": str, "size": int, "parts": list[int], "note": str},
        "size": 1,
        "parts": field(default_factory=list),
        "note": field(default="", repr=False, compare=False),
    }
    return decorator(**options)(type("Record", (), body))


@ours(frozen=True, kw_only=True, slots=True)
class Kept:
    """At the top of a module, as pickle needs it."""

    name: str
    size: int = 1


@ours(frozen=True, slots=True)
class Longer(Kept):
    """One more field."""

    place: int


@pytest.fixture(params=[ours, dataclasses.dataclass], ids=["ours", "standard library"])
def record(request):
    return declare(request.param, **FROZEN)


def test_fields_have_their_values_and_defaults(record):
    made = record(name="a", parts=[3])
    assert (made.name, made.size, made.parts, made.note) == ("a", 1, [3], "")
    assert record(name="a").parts is not record(name="a").parts


def test_equal_fields_make_equal_objects_of_one_class(record):
    assert record(name="a") == record(name="a", note="not compared")
    assert record(name="a") != record(name="b")
    assert record(name="a") != declare(ours, **FROZEN)(name="a")


def test_hash_is_that_of_what_is_compared(record):
    small = declare(ours, **FROZEN)
    one = small(name="a", parts=(), note="x")
    assert hash(one) == hash(small(name="a", parts=()))
    with pytest.raises(TypeError, match="unhashable"):
        hash(record(name="a"))


def test_repr_names_the_fields(record):
    assert repr(record(name="a", note="hidden")) == "Record(name='a', size=1, parts=[])"


def test_nothing_can_be_set_or_deleted(record):
    made = record(name="a")
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'name'"):
        made.name = "b"
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'name'"):
        del made.name
    with pytest.raises((FrozenInstanceError, TypeError)):
        made.other = 1
    assert made.name == "a"


def test_wrong_arguments_are_refused_by_name(record):
    for arguments in ({}, {"name": "a", "colour": 1}):
        with pytest.raises(TypeError, match=r"Record.__init__\(\).*'(name|colour)'"):
            record(**arguments)
    with pytest.raises(TypeError, match="positional"):
        record("a")


def test_a_signature_names_the_fields_before_an_object_is_made(record):
    assert [*inspect.signature(record).parameters] == ["name", "size", "parts", "note"]


def test_the_standard_librarys_functions_know_them(record):
    made = record(name="a")
    assert [f.name for f in dataclasses.fields(record)] == ["name", "size", "parts", "note"]
    assert dataclasses.asdict(replace(made, size=2)) == {"name": "a", "size": 2, "parts": [], "note": ""}
    with pytest.raises(TypeError):
        replace(made, colour=1)


def test_a_copy_and_a_pickle_are_equal():
    made = Longer(3, name="a")
    assert made == copy.deepcopy(made) == copy.copy(made) == pickle.loads(pickle.dumps(made))


def test_inherited_fields_are_set_too():
    assert repr(Longer(3, name="a")) == "Longer(name='a', size=1, place=3)"
    assert hash(Longer(3, name="a")) == hash(Longer(3, name="a", size=1))


def test_a_method_of_the_body_stays():
    @ours(frozen=True, kw_only=True, slots=True)
    class Secret:
        value: str

        def __repr__(self) -> str:
            return "hidden"

    assert repr(Secret(value="a")) == "hidden"


def test_other_options_are_those_of_the_standard_library():
    made = declare(ours, slots=True)("a")
    made.size = 5
    assert made.size == 5


def test_a_maker_takes_the_values_of_all_fields_in_their_order():
    record = make_rollout(3, 0.5)
    values = [getattr(record, field.name) for field in dataclasses.fields(record)]
    made = maker_of(type(record))(values)
    assert (made, type(made)) == (record, type(record))
    with pytest.raises(ValueError, match="unpack"):
        maker_of(type(record))(values[1:])


def test_a_class_may_have_no_fields() -> None:
    @ours(frozen=True, slots=True)
    class Nothing:
        """Says all by its type."""

    assert Nothing() == Nothing()
