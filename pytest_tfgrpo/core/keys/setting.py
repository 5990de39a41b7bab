"""Typed keys: a row that says what a setting may be, and reads it from the values of a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

T_co = TypeVar("T_co", covariant=True)

if TYPE_CHECKING:
    from typing import Protocol

    class ByName(Protocol):
        """Values by the names of settings: a mapping, or all settings of an invocation."""

        def __getitem__(self, name: str, /) -> Any: ...


# A plain class: making a dataclass or a named tuple costs each start of pytest some tenths of a millisecond.


class Setting(Generic[T_co]):
    """One setting, whose values have the type `T_co`, ``int | None`` for example."""

    __slots__ = ("aliases", "default", "help", "ini_type", "name", "parse", "shapes")

    def __init__(
        self,
        name: str,
        shapes: str,
        parse: Callable[[Any], T_co],
        default: T_co,
        description: str,
        ini_type: str = "string",
        aliases: tuple[str, ...] = (),
    ) -> None:
        """`parse` returns the value or raises ValueError with a text that starts with ``must``.

        `shapes` lists what depends on the setting: ``prompts``, what a run asks, by its plan or by what it
        learned; ``answers``, the answer to one prompt, so a recording made with another value is refused;
        ``gate``, whether a run passes; ``none`` also where what is named has a stamp of its own (library).
        `aliases` are further environment variables, which the source document names.
        """
        self.name = name
        self.shapes = shapes.split()
        self.parse = parse
        self.default = default
        self.help = description
        self.ini_type = ini_type
        self.aliases = aliases

    def of(self, values: ByName) -> T_co:
        """Return the value; the default where a run made before the setting existed lacks it."""
        try:
            value: T_co = values[self.name]
        except KeyError:
            return self.default
        return value

    def recorded(self, values: ByName) -> T_co | None:
        """Return the value; None where a run made before the setting existed lacks it."""
        try:
            value: T_co = values[self.name]
        except KeyError:
            return None
        return value

    @property
    def flag(self) -> str:
        """The command line flag."""
        return "--tfgrpo-" + self.name.replace("_", "-")

    @property
    def env(self) -> str:
        """The environment variable."""
        return "TFGRPO_" + self.name.upper()

    @property
    def ini(self) -> str:
        """The key in the ini file."""
        return "tfgrpo_" + self.name
