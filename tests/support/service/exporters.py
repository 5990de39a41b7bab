"""What the tests of production/service/test_exporters.py share with the slow ones."""

from collections.abc import Sequence

from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from support.loop_service import TOKEN

SECRET = "sk-proj-Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z"


def exporter(url: str, *, timeout: float = 1, gzip: bool = False) -> OTLPSpanExporter:
    return OTLPSpanExporter(
        f"{url}/v1/traces",
        timeout=timeout,
        headers={"Authorization": f"Bearer {TOKEN}"},
        compression=Compression.Gzip if gzip else Compression.NoCompression,
    )


def made(count: int) -> Sequence[ReadableSpan]:
    """Return spans of agents, each of a trace of its own."""
    memory = InMemorySpanExporter()
    provider = TracerProvider(resource=Resource({"service.name": "shop"}), shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(memory))
    tracer = provider.get_tracer("test")
    for number in range(count):
        with tracer.start_as_current_span("invoke_agent shop") as span:
            span.set_attribute("gen_ai.operation.name", "invoke_agent")
            span.set_attribute("gen_ai.agent.description", f"{number}: the key is {SECRET}")
    provider.shutdown()
    return memory.get_finished_spans()
