// One scenario, opened: its task, its groups, their rollouts, and two of these side by side.

/** The lines of two lists of frames, matched in order so that as much as possible agrees. */
function aligned(left, right, same, alike) {
  const n = left.length, m = right.length;
  if (n * m > 250000) return Array.from({ length: Math.max(n, m) }, (_, i) => [left[i] || null, right[i] || null]);
  const best = Array.from({ length: n + 1 }, () => new Array(m + 1).fill(0));
  const worth = (i, j) => (same(left[i], right[j]) ? 3 : alike(left[i], right[j]) ? 2 : 0);
  for (let i = n - 1; i >= 0; i--) {
    for (let j = m - 1; j >= 0; j--) {
      const matched = worth(i, j) ? best[i + 1][j + 1] + worth(i, j) : 0;
      best[i][j] = Math.max(best[i + 1][j], best[i][j + 1], matched);
    }
  }
  const pairs = [];
  let i = 0, j = 0;
  while (i < n || j < m) {
    if (i < n && j < m && worth(i, j) && best[i][j] === best[i + 1][j + 1] + worth(i, j)) pairs.push([left[i++], right[j++]]);
    else if (j >= m || (i < n && best[i][j] === best[i + 1][j])) pairs.push([left[i++], null]);
    else pairs.push([null, right[j++]]);
  }
  return beside(pairs);
}

/** Put what only the left has beside what only the right has, where they follow each other. */
function beside(pairs) {
  const lines = [];
  let lefts = [], rights = [];
  const flush = () => {
    for (let k = 0; k < Math.max(lefts.length, rights.length); k++) lines.push([lefts[k] || null, rights[k] || null]);
    [lefts, rights] = [[], []];
  };
  for (const [left, right] of pairs) {
    if (left && right) { flush(); lines.push([left, right]); }
    else if (left) lefts.push(left);
    else rights.push(right);
  }
  flush();
  return lines;
}

/** How an attempt ended, in words: one without an answer failed no check. */
function outcomeOf(rollout) {
  if (rollout.status !== "failed") return rollout.status;
  return rollout.failure && rollout.failure[0] === "truncated" ? "cut off" : "no answer";
}

/** The start of a text, as one line. */
function gistOf(text) {
  return text.slice(0, 400).replace(/\s+/g, " ").slice(0, 80);
}

/** A table; heads that start with a space are of columns of text. */
function dataTable(label, heads, lines) {
  const kind = (i) => (i === 0 || heads[i].startsWith(" ") ? "text" : "");
  const cell = (value, i) => {
    const shown = value instanceof Node ? value : String(value);
    return i ? make("td", { className: kind(i), "data-name": heads[i].trim() }, shown) : make("th", { scope: "row", className: "text" }, shown);
  };
  return make("div", { className: "wide", role: "group", "aria-label": label, tabIndex: 0 },
    make("table", { className: "cards" },
      make("thead", {}, make("tr", {}, heads.map((head, i) => make("th", { scope: "col", className: kind(i) }, head.trim())))),
      make("tbody", {}, lines.map((line) => make("tr", {}, line.map(cell))))));
}

function framesLeftOut(rollout) {
  return make("p", { className: "soft" }, `${rollout.frames} frames are left out of this page to keep it small. Show them with: `, make("code", {}, `tfgrpo show ${rollout.id}`));
}

function checksTable(rollout, text) {
  if (!rollout.checks.length) return null;
  return dataTable("checks", ["check", "weight", "credit", " result", " reason"], rollout.checks.map(([kind, weight, credit, reason]) =>
    [kind, weight, number(credit), make("strong", { className: credit >= 1 ? "good" : "bad" }, credit >= 1 ? "passed" : credit > 0 ? "in part" : "failed"), text(reason)]));
}

function lessonList(ids, title) {
  if (!ids.length) return null;
  return make("div", {}, make("p", { className: "label" }, title), make("ul", {}, ids.map(lessonItem)));
}

function rolloutBody(rollout, group) {
  const { text } = group;
  const failure = rollout.failure && make("p", { className: "bad" }, make("b", {}, rollout.failure[0]), ": ", text(rollout.failure[1]));
  const judged = rollout.judge && make("p", {}, `judge ${number(rollout.judge[0])}: `, text(rollout.judge[1]));
  return [failure, make("p", { className: "label" }, "answer"), answerView(text(rollout.answer), "answer", rollout.pictures), markControls(rollout, group), checksTable(rollout, text), judged,
    scoresTable(rollout, text), lessonList(rollout.lessons, "lessons in its prompt"), lessonList(rollout.withheld, "lessons left out of its prompt at random"),
    make("p", { className: "copies" }, make("span", { className: "soft" }, `temperature ${rollout.temperature} `), copyButton("copy tfgrpo show", `tfgrpo show ${shellWord(rollout.id)}`),
      copyButton("copy link", linkTo(group.row.id, index.columns[group.column].label, String(rollout.index)))), ...chatView(rollout, group)];
}

/** The steps of two rollouts, each given with its name and the texts of its group; then their answers, if `closing`. */
function pairView(left, right, closing = true) {
  const [a, b] = [left.rollout, right.rollout];
  const framesOf = (rollout) => (Array.isArray(rollout.frames) ? rollout.frames : []);
  const equal = (m, n) => (m === undefined || n === undefined ? m === n : left.text(m) === right.text(n));
  const alike = (x, y) => x.kind === y.kind && equal(x.name, y.name);
  const same = (x, y) => alike(x, y) && equal(x.input, y.input) && equal(x.output, y.output) && equal(x.error, y.error);
  const head = ({ rollout, text, name }) => make("div", {}, make("p", {}, make("b", {}, name), ` score ${number(rollout.score)}, ${whole(rollout.tokens)} tokens, ${duration(rollout.ms)}`),
    rollout.failure ? make("p", { className: "bad" }, `${rollout.failure[0]}: `, text(rollout.failure[1])) : null);
  const lines = [make("div", { className: "pair heads" }, head(left), head(right))];
  let first = true;
  const add = (x, y, differs) => {
    const line = make("div", { className: differs ? "pair differs" : "pair" }, x || make("p", { className: "soft missing" }, "no such step"), y || make("p", { className: "soft missing" }, "no such step"));
    if (differs && first) line.prepend(make("p", { className: "first" }, "First difference"));
    if (differs) first = false;
    lines.push(line);
  };
  const seen = [0, 0];
  for (const [x, y] of aligned(framesOf(a), framesOf(b), same, alike)) {
    const differs = !x || !y || !same(x, y);
    const card = (frame, side, i) => frame && stepCard(frame, side.text, seen[i]++, { open: differs && lines.length <= MOST_OPEN });
    add(card(x, left, 0), card(y, right, 1), differs);
  }
  for (const rollout of [a, b]) if (!Array.isArray(rollout.frames)) lines.push(framesLeftOut(rollout));
  const close = ({ rollout, text }) => make("div", {}, make("p", { className: "label" }, "answer"), answerView(text(rollout.answer), "answer", rollout.pictures), checksTable(rollout, text));
  if (closing) add(close(left), close(right), !equal(a.answer, b.answer));
  if (first) lines.push(make("p", { className: "soft" }, "The two rollouts do not differ in any step."));
  return make("div", { className: "pairs" }, lines);
}

function sideBySide(group) {
  if (group.rollouts.length < 2) return null;
  const byId = new Map(group.rollouts.map((rollout) => [rollout.id, rollout]));
  const rest = group.rollouts.map((rollout) => rollout.id).filter((id) => !group.pair.includes(id));
  const chosen = [...group.pair, ...rest].slice(0, 2);
  const view = make("div");
  const draw = () => view.replaceChildren(pairView(...chosen.map((id) => ({ rollout: byId.get(id), text: group.text, name: `r${byId.get(id).index}` }))));
  const choice = (side, label) => {
    const select = make("select", {}, group.rollouts.map((rollout) =>
      make("option", { value: rollout.id, selected: rollout.id === chosen[side] }, `r${rollout.index}: ${rollout.status === "error" ? "error" : number(rollout.score)}`)));
    select.addEventListener("change", () => { chosen[side] = select.value; draw(); });
    return make("label", {}, label + " ", select);
  };
  draw();
  return make("section", { "aria-label": "side by side" },
    make("h3", {}, group.pair.length === 2 && group.informative ? "Winner against loser" : "Side by side"), make("div", { className: "controls" }, choice(0, "left"), choice(1, "right")), view);
}

/** What the user of a conversation says, message by message, and whom a model plays after the first. */
function conversationView(task, text) {
  const said = task.turns.map((turn, n) => make("div", { className: "frame user" }, make("p", { className: "frame-head" }, make("span", { className: "tag" }, `${n + 1} user`)), textBlock(text(turn), `message ${n + 1} of the user`)));
  if (!task.user) return said;
  return [...said, make("p", {}, "With the setting ", make("code", {}, "user"), ", a model plays the user after the first message."),
    dataTable("the user that a model plays", ["user", " text"], task.user.map(([name, what]) => [name, text(what)]))];
}

function taskView(group) {
  const { task, text } = group;
  const checks = task.checks.length ? dataTable("ground truth", ["check", "weight", " expects"], task.checks.map(([kind, weight, what]) => [kind, weight, text(what)])) : null;
  return make("details", { open: true }, make("summary", {}, "Task and ground truth"),
    task.turns ? conversationView(task, text) : text(task.prompt) === "" ? null : textBlock(text(task.prompt), "prompt"),
    text(task.input) === "" ? null : [make("p", { className: "label" }, "input"), textBlock(text(task.input), "input")],
    task.attachments.length ? make("p", {}, "files: " + task.attachments.join(", ")) : null,
    task.checker ? make("p", {}, "checked by ", make("code", {}, task.checker)) : null,
    task.truth === "checks" ? null : make("p", {}, `scores are estimates by ${task.truth}`), checks);
}

/** What every rollout of a group was asked: the text of its prompt pack with lessons, and the task as it was put. */
function promptView(group) {
  const { asked, text } = group;
  if (!asked) return make("p", { className: "soft" }, "The prompt as sent cannot be shown: the journal of this run lacks the data to rebuild it.");
  const system = asked.system.map(text).join("\n");
  return make("details", { className: "asked" }, make("summary", {}, `Prompt as sent, ${whole(system.length + text(asked.user).length)} characters`),
    make("p", { className: "label" }, "system: prompt pack and lessons"), textBlock(system, "system prompt"),
    make("p", { className: "label" }, "user: the task"), textBlock(text(asked.user), "user prompt"));
}

function groupView(group, wanted) {
  const { text } = group;
  const rollouts = group.rollouts.map((rollout) => {
    const fill = () => { if (details.open && details.children.length === 1) details.append(...rolloutBody(rollout, group).flat().filter(Boolean)); };
    const details = make("details", { id: `r${rollout.index}`, className: "rollout" }, make("summary", {}, `r${rollout.index}: ${rollout.status === "ok" ? "" : outcomeOf(rollout) + ", "}score ${number(rollout.score)}, ${Array.isArray(rollout.frames) ? rollout.frames.filter((frame) => frame.kind !== "user").length : rollout.frames} steps`, markBadge(rollout)));
    details.addEventListener("toggle", fill);
    if (String(rollout.index) === wanted) { details.open = true; fill(); }
    return details;
  });
  const why = (rollout) => (rollout.failure ? `${rollout.failure[0]}: ${text(rollout.failure[1])}` : rollout.checks.map((check) => text(check[3])).filter(Boolean).join("; ")).slice(0, 200);
  const summary = dataTable("rollouts", ["rollout", " status", "score", "reward", "rank", "advantage", "tokens", "cost", "latency", " answer", " why"], group.rollouts.map((rollout) =>
    [`r${rollout.index}`, make("span", { className: rollout.status === "ok" ? "" : "bad" }, outcomeOf(rollout)), number(rollout.score), number(rollout.reward), number(rollout.rank), number(rollout.advantage), whole(rollout.tokens), money(rollout.cost), duration(rollout.ms), gistOf(text(rollout.answer)), why(rollout)]));
  return [taskView(group), promptView(group), make("h3", {}, "Rollouts"), ["train", "evidence"].includes(index.columns[group.column].mode) ? make("p", { className: "soft" }, group.informative ? "Rewards differ: the group yields something to learn from." : "Rewards do not differ: the group yields nothing to learn from.") : null, summary, ...rollouts, sideBySide(group)].filter(Boolean);
}
