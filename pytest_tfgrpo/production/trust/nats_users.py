"""Users of a NATS server, each with the subjects that its part of the loop needs, and no others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.production.bus.streams import AUDIT, AUDIT_SUBJECT, DEAD_SUBJECT, STREAMS
from pytest_tfgrpo.production.deployment.serving import ROW as SERVING
from pytest_tfgrpo.production.training.jobs.job_rows import TABLE
from pytest_tfgrpo.production.training.jobs.request_intake import CONSUMER
from pytest_tfgrpo.production.training.jobs.states import KIND
from pytest_tfgrpo.production.training.versions.policies import ROW as POLICY
from pytest_tfgrpo.storage.event_store import STATE

_API = "$JS.API."
_ALL = tuple(spec.name for spec in STREAMS)
_SUBJECTS = tuple(pattern for spec in STREAMS for pattern in spec.patterns)
_TRAJECTORY, _FEEDBACK, _REWARD = "agent.rl.trajectory.v1", "agent.rl.feedback.v1", "agent.rl.reward.v1"
_RUNS = ("RL_TRAJECTORIES", "RL_FEEDBACK", "RL_REWARDS")
_BUCKETS = (f"KV_tfgrpo_{STATE}", f"KV_tfgrpo_{TABLE}")


@dataclass(frozen=True, kw_only=True, slots=True)
class NatsUser:
    """A user: what it publishes, reads and writes."""

    name: str
    about: str
    publishes: tuple[str, ...] = ()
    """Subjects of events."""
    reads: tuple[str, ...] = ()
    """Streams, and buckets of which it needs more than a row by its key."""
    writes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Keys by table."""
    requests: bool = False
    """Whether it takes training requests from their queue."""

    @property
    def variable(self) -> str:
        """The variable with its password."""
        return f"LOOP_NATS_{self.name.upper()}"

    @property
    def inbox(self) -> str:
        """Where it gets answers, which no other user can read."""
        return f"_INBOX_{self.name}"

    def allowed(self) -> list[str]:
        """Return the subjects that it may publish to."""
        chained = [AUDIT] if AUDIT_SUBJECT in self.publishes else []  # a record holds the hash of the last
        reads = dict.fromkeys((*self.reads, *chained))
        allowed = [*self.publishes, *(f"{_API}STREAM.INFO.{name}" for name in (*_ALL, *_BUCKETS))]
        for name in reads:
            allowed += [
                f"{_API}CONSUMER.CREATE.{name}",
                f"{_API}CONSUMER.MSG.NEXT.{name}.*",
                f"{_API}CONSUMER.DELETE.{name}.*",
            ]
        allowed += [f"{_API}STREAM.MSG.GET.{bucket}" for bucket in _BUCKETS]
        for table, keys in self.writes.items():
            bucket = f"tfgrpo_{table}"
            allowed += [*(f"$KV.{bucket}.{key}" for key in keys), f"{_API}STREAM.MSG.DELETE.KV_{bucket}"]
        if self.requests:
            place = f"RL_TRAINING.{CONSUMER}"
            allowed += [f"{_API}CONSUMER.{word}.{place}" for word in ("DURABLE.CREATE", "INFO")]
            allowed += [f"$JS.ACK.{place}.>"]
        return allowed

    def denied(self) -> list[str]:
        """Return the exceptions."""
        if self.requests or "RL_TRAINING" not in self.reads:
            return []
        return [f"{_API}CONSUMER.{word}.RL_TRAINING.{CONSUMER}" for word in ("MSG.NEXT", "DELETE")]


_EVERYTHING = {STATE: (">",), TABLE: (">",)}
USERS = (
    NatsUser(
        name="agent",
        about="publishes runs and feedback that hold no secrets, and reads which version is served",
        publishes=(_TRAJECTORY, _FEEDBACK),
    ),
    NatsUser(
        name="rewards",
        about="judges runs",
        publishes=(_REWARD, _FEEDBACK),
        reads=("RL_TRAJECTORIES",),
    ),
    NatsUser(
        name="trainer",
        about="takes training requests, reads evidence, and says how jobs go",
        publishes=("agent.rl.training.>", DEAD_SUBJECT, AUDIT_SUBJECT),
        reads=(*_RUNS, "RL_TRAINING", "RL_DEPLOYMENTS", *_BUCKETS),
        writes={STATE: (f"{KIND}.>",), TABLE: (">",)},
        requests=True,
    ),
    NatsUser(
        name="deployer",
        about="decides about versions: tfgrpo loop approve, reject, hold, advance, rollback, pin",
        publishes=("agent.rl.model.deployed.v1", AUDIT_SUBJECT),
        reads=("RL_DEPLOYMENTS", *_BUCKETS),
        writes={STATE: (SERVING, f"{POLICY}.>")},
    ),
    NatsUser(
        name="reader",
        about="reads: tfgrpo loop status, report, show, audit",
        publishes=(AUDIT_SUBJECT,),
        reads=(*_ALL, *_BUCKETS),
    ),
)
"""Parts of the loop that may be apart from the service."""
SERVICE = NatsUser(
    name="service",
    about="tfgrpo loop serve, forget and opt-out; makes the streams, and may not remove from the audit",
    publishes=_SUBJECTS,
    reads=(*_ALL, *_BUCKETS),
    writes=_EVERYTHING,
    requests=True,
)


def nats_config() -> str:
    """Return the part of a server's configuration that names the users; passwords are variables."""
    lines = [
        "# Users of the feedback loop. A password is a variable of nats-server, in quotes of its own:",
        f"#   export {SERVICE.variable}=\"'$(openssl rand -hex 24)'\"",
        "# A user has an inbox of its own, so each process needs it in loop.toml, beside user and password:",
        "#   [bus]",
        '#   url = "nats:nats://HOST:4222"',
        f'#   options = {{ user = "{SERVICE.name}", password = "...", inbox_prefix = "{SERVICE.inbox}" }}',
        "authorization {",
        "  users = [",
    ]
    for user in (SERVICE, *USERS):
        lines += _lines(user)
    return "\n".join([*lines, "  ]", "}"]) + "\n"


def _lines(user: NatsUser) -> Iterator[str]:
    yield f"    # {user.about}"
    yield f"    {{ user: {user.name}, password: ${user.variable}, permissions: {{"
    yield "        publish: {"
    made = [f"{_API}STREAM.CREATE.{name}" for name in (*_ALL, *_BUCKETS)] if user is SERVICE else []
    removed = [f"{_API}STREAM.MSG.DELETE.{name}" for name in _ALL if name != AUDIT] if user is SERVICE else []
    yield from _subjects("allow", [*user.allowed(), *made, *removed])
    if user.denied():
        yield from _subjects("deny", user.denied())
    yield "        }"
    yield f'        subscribe: {{ allow: ["{user.inbox}.>"] }}'
    yield "    } }"


def _subjects(word: str, subjects: list[str]) -> Iterator[str]:
    yield f"          {word}: ["
    yield from (f'            "{subject}"' for subject in subjects)
    yield "          ]"
