"""Files of traces and scores, taken in as if they had come from the exporters of the services."""

from __future__ import annotations

import gzip
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO, Protocol

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.production.imports.langfuse import ScoreScales, is_score, read_langfuse
from pytest_tfgrpo.production.imports.trace_order import TraceOrder
from pytest_tfgrpo.telemetry.traces.otlp.otlp_lines import read_otlp_lines
from pytest_tfgrpo.telemetry.traces.turns import RefusedSpan, RefusedTrace, TraceSpan

SUFFIXES = (".json", ".jsonl", ".json.gz", ".jsonl.gz")
"""Ends of the names of the files that are read in a folder."""
_MANIFESTS = "manifests"
"""Folder of Langfuse's lists of the files of an export."""
_START = 65_536
_OTLP = re.compile(rb'"resource(?:Spans|Logs|Metrics)"\s*:')
"""Starts a file of export requests, as the file exporter of an OpenTelemetry Collector writes them."""
_BATCH = 500


class SpansTaken(Protocol):
    """What became of spans."""

    @property
    def accepted(self) -> int:
        """How many are durable."""
        ...

    @property
    def opted_out(self) -> int:
        """How many are not kept because somebody does not want them kept."""
        ...


class SpanIntake(Protocol):
    """Where spans go in."""

    def spans(self, found: Iterable[TraceSpan | RefusedSpan]) -> SpansTaken:
        """Take spans, and what was refused of them; return once they are durable."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportResult:
    """What became of what is in files."""

    files: int
    traces: int
    spans: int
    """Read, those of scores apart."""
    scores: int
    repeated: int
    """Rows that are in the files twice; the last counts."""
    accepted: int
    """Spans and scores that are durable."""
    opted_out: int
    refused: Mapping[str, int]
    """Rows by the reason why they are not used."""

    def lines(self) -> list[str]:
        """Return the result as text, one line for each thing."""
        found = [f"{self.files} files: {self.spans} spans and {self.scores} scores of {self.traces} traces"]
        if self.repeated:
            found.append(f"repeated in the files: {self.repeated}")
        found.append(f"accepted: {self.accepted}")
        found.append(f"opted out: {self.opted_out}")
        reasons = ", ".join(f"{number} {reason}" for reason, number in sorted(self.refused.items()))
        found.append(f"refused: {reasons or 0}")
        return found


def import_files(
    paths: Sequence[Path], intake: SpanIntake, scales: ScoreScales = MappingProxyType({})
) -> ImportResult:
    """Take in files of OTLP JSON lines and of Langfuse, and those in folders; a repetition is harmless.

    Langfuse's are observations and scores, as JSON or JSON lines; files may be gzipped. `scales` has the
    lowest and highest values of scores that are not from 0 to 1, by name. Raises SettingError for a path that
    is not there, has another form, or is damaged, before anything is taken in.
    """
    for name, (low, high) in scales.items():
        if not low < high:
            raise SettingError(f"scale {name}: {low} is not below {high}")
    files = list(_files(paths))
    refused: list[RefusedSpan] = []
    counts: Counter[str] = Counter()
    with closing(TraceOrder()) as order:
        for path in files:
            for one in _spans(path, scales):
                kept = one if isinstance(one, RefusedSpan) else _ordered(one, order)
                if kept is not None:
                    refused.append(kept)
                    counts[kept.reason.value] += 1
        taken = _Taken(intake)
        for at in range(0, len(refused), _BATCH):
            taken.give(refused[at : at + _BATCH])
        taken.give_traces(order.traces())
        return ImportResult(
            files=len(files),
            traces=taken.traces,
            spans=taken.spans,
            scores=taken.scores,
            repeated=order.repeated,
            accepted=taken.accepted,
            opted_out=taken.opted_out,
            refused=dict(counts),
        )


def _ordered(span: TraceSpan, order: TraceOrder) -> RefusedSpan | None:
    try:
        order.add(span)
    except RecursionError:  # a value that could be read, but is nested too deeply to be written
        return RefusedSpan(RefusedTrace.MALFORMED, span.place, span.key, span.parent)
    return None


class _Taken:
    """Passes spans to the intake, whole traces at a time, and counts."""

    def __init__(self, intake: SpanIntake) -> None:
        self._intake = intake
        self.traces = self.spans = self.scores = self.accepted = self.opted_out = 0

    def give_traces(self, traces: Iterable[list[TraceSpan]]) -> None:
        batch: list[TraceSpan] = []
        for trace in traces:
            self.traces += 1
            self.scores += sum(map(is_score, trace))
            batch += trace
            if len(batch) >= _BATCH:
                self.give(batch)
                batch = []
        self.give(batch)
        self.spans -= self.scores

    def give(self, spans: Sequence[TraceSpan | RefusedSpan]) -> None:
        if spans:
            found = self._intake.spans(spans)
            self.accepted += found.accepted
            self.opted_out += found.opted_out
            self.spans += sum(isinstance(span, TraceSpan) for span in spans)


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            found = [
                file
                for file in sorted(path.rglob("*"))
                if file.name.endswith(SUFFIXES) and file.parent.name != _MANIFESTS and file.is_file()
            ]
            if not found:
                raise SettingError(f"{path}: no file in it ends with one of {', '.join(SUFFIXES)}")
            yield from found
        elif not path.is_file():
            raise SettingError(f"{path}: there is no such file; give files or folders of OTLP or Langfuse")
        elif path.suffix in (".parquet", ".csv"):
            raise SettingError(
                f"{path}: is not read; export as JSON or JSONL, which Langfuse's settings offer"
            )
        else:
            yield path


def _spans(path: Path, scales: ScoreScales) -> Iterator[TraceSpan | RefusedSpan]:
    """Yield the spans of a file; raises SettingError for one that cannot be read."""
    try:
        with _opened(path) as file:
            start = file.read(_START)
        with _opened(path) as file:
            if _OTLP.search(start):
                yield from read_otlp_lines(file, path.name)
            else:
                yield from read_langfuse(file, path.name, scales)
    except EOFError:
        yield RefusedSpan(RefusedTrace.NOT_JSON, f"{path.name}: its end is missing")
    except (OSError, zlib.error) as error:
        raise SettingError(f"{path}: cannot be read: {error}") from error


def _opened(path: Path) -> BinaryIO:
    return gzip.open(path) if path.suffix == ".gz" else path.open("rb")  # type: ignore[return-value]
