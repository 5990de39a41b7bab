"""What taking spans in costs of the processor, against redacting the same bytes alone, in one run.

    python benchmarks/loop_ingest.py [--quick]

Three kinds of traffic as OTLP/JSON: conversations of 20 turns, each of whose spans repeats all messages before;
single questions that never come again; and single questions on which the bytes are all texts. Taking in is
reading the request, opting out, redacting, encoding, and storing in the embedded bus, synced. Redacting alone
is `Redactor.text` on every text of the spans. Rounds alternate, each with new words; a line has milliseconds
of the processor a megabyte, and the median of the rounds' ratios.
"""
