"""Signed records: what a reporter says of tests, separate from what the tests themselves write."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator, Mapping

from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.core.wire.wire import Json

SignedRecord = Mapping[str, Json]
KEY_BYTES = 32


class ForgedReport(ValueError):
    """A line is not from the reporter, or lines of it were taken away."""


def read_signed(data: bytes, key: bytes) -> Iterator[SignedRecord]:
    """Yield the records of a report in order; raises ForgedReport.

    A line is the HMAC-SHA256 of its place and its record, a space, and the record as JSON. A last
    line without an end was being written when the reporter was killed, and is left out.
    """
    lines = data.split(b"\n")
    for place, line in enumerate(lines[:-1]):
        signature, _, record = line.partition(b" ")
        wanted = hmac.new(key, b"%d:%s" % (place, record), hashlib.sha256).hexdigest().encode()
        if not hmac.compare_digest(signature, wanted):
            raise ForgedReport(f"line {place + 1} of the report is not from the reporter")
        try:
            found = load_json(record)
        except ValueError as error:
            raise ForgedReport(f"line {place + 1} of the report is not JSON: {error}") from None
        if not isinstance(found, dict):
            raise ForgedReport(f"line {place + 1} of the report is not an object")
        yield found
