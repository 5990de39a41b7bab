// The transcript of a rollout as a chat: what was said, the tools that were called, and the steps within these.

const ROLES = { user: "user", model: "assistant", tool: "tool" };
const MANY_STEPS = 12, MOST_OPEN = 100;
const DEEPEST = 12;

/** A text under its name; nothing where there is none. */
function named(name, text, look = "label") {
  return text === "" ? [] : [make("p", { className: look }, name), answerView(text, name)];
}

/** A part that is closed at first, with its length, and filled when it is opened. */
function foldedText(name, text, look = "thoughts") {
  const details = make("details", { className: look }, make("summary", { className: "label" }, `${name}, ${plural(text.length, "character")}`));
  details.addEventListener("toggle", () => { if (details.children.length === 1) details.append(answerView(text, name)); });
  return details;
}

/** When a step ran and for how long, as a bar within the time of all; `times` has the start and the length of all. */
function timeBar(frame, times) {
  if (!times || !(times.length > 0) || !(frame.ms > 0)) return null;
  const bar = make("span", { className: "time" }, make("span", {}));
  const start = frame.at === undefined ? 0 : Math.max(0, frame.at - times.start);
  bar.firstChild.style.left = `${Math.min(99, 100 * start / times.length)}%`;
  bar.firstChild.style.width = `${Math.max(1, Math.min(100 - Math.min(99, 100 * start / times.length), 100 * frame.ms / times.length))}%`;
  bar.title = frame.at === undefined ? duration(frame.ms) : `from ${duration(start)} to ${duration(start + frame.ms)}`;
  return bar;
}

/** The time in which steps ran: the first start known and how long all took, or else the longest step alone. */
function timesOf(frames) {
  const timed = frames.filter((frame) => frame.at !== undefined);
  if (!timed.length) return { start: 0, length: frames.reduce((most, frame) => Math.max(most, frame.ms), 0) };
  const start = timed.reduce((least, frame) => Math.min(least, frame.at), Infinity);
  return { start, length: timed.reduce((most, frame) => Math.max(most, frame.at + frame.ms), start) - start };
}

/** What the user of a conversation says; what it replies to only where no step before shows that. */
function userBody(frame, text) {
  return [...named("the agent's answer", text(frame.input)), answerView(text(frame.output), "message of the user")];
}

function stepBody(frame, text) {
  if (frame.kind === "user") return userBody(frame, text);
  const tool = frame.kind === "tool", output = text(frame.output), failed = frame.error !== undefined;
  const input = text(frame.input);
  const asked = tool ? named("arguments", input) : input === "" ? [] : [foldedText("input", input)];
  return [...asked, ...(frame.thoughts === undefined ? [] : [foldedText("thoughts", text(frame.thoughts))]),
    ...(tool ? named("result", output) : output === "" && failed ? [] : [answerView(output, "output")]),
    ...(tool && output === "" && !failed ? [make("p", { className: "soft" }, "no result")] : []),
    ...(failed ? named("error", text(frame.error), "label bad") : [])];
}

/** One step that folds. `open`: at first; `times`: of all steps; `inner`: what belongs into it; `note`: what else its head says. */
function stepCard(frame, text, n, { open = true, times = null, inner = [], note = "" } = {}) {
  const user = frame.kind === "user", name = text(frame.name);
  const figures = user ? [] : [frame.tokens ? plural(frame.tokens, "token") : "", frame.cost === null || (frame.cost === 0 && !frame.tokens) ? "" : money(frame.cost), frame.ms ? duration(frame.ms) : "", frame.finish || ""].filter(Boolean);
  const who = user ? (name === "script" ? "" : `played by ${name}`) : figures.join(", ");
  const gist = text(frame.error === undefined ? frame.output : frame.error).slice(0, 160);
  const head = make("summary", { className: "frame-head" }, make("span", { className: "tag" }, `${n + 1} ${ROLES[frame.kind]}`), " ",
    user ? "" : make("b", {}, name), make("span", { className: "soft" }, ` ${who}`), frame.error === undefined ? "" : [" ", make("b", { className: "bad" }, "error")],
    note ? make("span", { className: "soft" }, ` ${note}`) : "", timeBar(frame, times), make("span", { className: "gist" }, gist));
  const step = make("details", { className: `frame ${frame.kind}` }, head);
  const fill = () => { if (step.open && step.children.length === 1) step.append(...stepBody(frame, text), ...inner); };
  step.addEventListener("toggle", fill);
  if (open) { step.open = true; fill(); }
  return step;
}

/** For each step the tool call that it was made in, -1 for none: only a tool before it, and none too deep to be drawn. */
function callsAround(frames) {
  const around = [], depths = [];
  frames.forEach((frame, n) => {
    let at = frame.inside ? n - frame.inside : -1;
    if (at < 0 || frames[at].kind !== "tool") at = -1;
    else if (depths[at] >= DEEPEST) at = around[at];
    around.push(at);
    depths.push(at < 0 ? 0 : depths[at] + 1);
  });
  return around;
}

/** The steps of a rollout, those within a tool call inside it; `answer` is what the rollout ended with. */
function nestedSteps(frames, text, answer) {
  const times = timesOf(frames), around = callsAround(frames), last = frames.findLastIndex((frame, n) => frame.kind === "model" && around[n] < 0);
  const inner = frames.map(() => []), counts = frames.map(() => 0), tops = [];
  const few = frames.length <= MANY_STEPS;
  for (let n = frames.length - 1; n >= 0; n--) {  // a tool is made after what is in it
    const frame = frames[n], within = inner[n].reverse(), said = plural(counts[n], "step") + " within";
    const repeats = n === last && text(frame.output) === answer && answer.length > 200;
    const open = !repeats && (few || (frames.length <= MOST_OPEN && (frame.kind !== "tool" || frame.error !== undefined)));
    const more = within.length ? [make("details", { className: "within", open: few }, make("summary", { className: "label" }, said), within)] : [];
    const card = stepCard(frame, text, n, { open, times, inner: more, note: repeats ? "the answer above" : within.length ? said : "" });
    if (around[n] < 0) tops.push(card);
    else {
      inner[around[n]].push(card);
      counts[around[n]] += 1 + counts[n];
    }
  }
  return tops.reverse();
}

/** Open all steps, also those that are made as those around them open; returns what was closed. */
function unfoldSteps(box) {
  const opened = [];
  for (let closed = [box]; closed.length;) {
    closed = [...box.querySelectorAll("details.frame:not([open]), details.within:not([open])")];
    for (const step of closed) {
      step.open = true;
      step.dispatchEvent(new Event("toggle"));
    }
    opened.push(...closed);
  }
  return opened;
}

/** All that was said in a rollout, from the prompt on. */
function chatView(rollout, group) {
  if (!Array.isArray(rollout.frames)) return [framesLeftOut(rollout)];
  const { asked, text } = group, { frames } = rollout;
  const system = asked ? asked.system.map(text).join("\n") : "", user = asked ? text(asked.user) : "";
  const starts = frames.length > 0 && frames[0].kind === "user";
  const fold = make("button", { type: "button", className: "fold" }, "fold all");
  const box = make("section", { className: "chat", "aria-label": "transcript" },
    make("p", { className: "label" }, `transcript, ${plural(frames.length, "step")} `, frames.length > 2 ? fold : ""),
    system === "" ? null : foldedText("system prompt", system, "prompted system"),
    user === "" || starts ? null : make("details", { className: "prompted user", open: user.length <= 1200 }, make("summary", { className: "label" }, `user prompt, ${plural(user.length, "character")}`), answerView(user, "user prompt")),
    nestedSteps(frames, text, text(rollout.answer)));
  fold.addEventListener("click", () => {
    const folded = fold.textContent === "fold all";
    if (folded) for (const step of box.querySelectorAll("details.frame, details.within")) step.open = false;
    else unfoldSteps(box);
    fold.textContent = folded ? "unfold all" : "fold all";
  });
  return [box];
}
