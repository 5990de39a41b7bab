// Follows a run: asks for its figures and puts them into the page as text.

const EVERY_MS = 1000, HIDDEN_MS = 10000, CATCHING_UP_MS = 20;
const SCORES = "0123456789a";
const SIGNS = { add: "+", update: "~", merge: "~", remove: "-" };
const shown = { generation: -1, current: -1, marks: "", names: [] };

function at(id) {
  return document.getElementById(id);
}

function rows(table, content) {
  table.tBodies[0].replaceChildren(...content);
}

function cell(text, className) {
  return make("td", { className: className || null }, text);
}

/** Seconds as a reader says them: "40 s", "3 min", "2 h 05 min", "3 days". */
function span(seconds) {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes >= 2880) return `${Math.floor(minutes / 1440)} days`;
  return minutes < 90 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, "0")} min`;
}

function paid(row) {
  return money(row.unknown && !row.usd ? null : row.usd) + (row.unknown && row.usd ? "+" : "");
}

function stateOf(row, n, current) {
  if (row.status) return row.status === "complete" ? "done" : row.status + (row.reason ? ": " + row.reason : "");
  if (row.doing) return row.doing;
  if (n === current) return "now";
  if (row.planned === 0) return "shares the final sweep's answers";
  return row.done ? "under way" : row.mode === "dev" ? "if there are lessons" : "to come";
}

/** Rollouts of a phase: "12 of 84"; of the dev split, where the lessons decide how many, "12 of up to 84". */
function planned(row, of, most) {
  return row.planned === null ? most + whole(row.most) : of + whole(row.planned);
}

function drawNow(state) {
  const row = state.phases[state.current];
  if (!row) return;
  at("where").replaceChildren(make("b", {}, row.label),
    `phase ${state.current + 1} of ${state.phases.length}, ${whole(row.done)}${planned(row, " of ", " of up to ")} rollouts`
      + (row.doing ? `; now ${row.doing}` : ""));
  const bar = at("bar");
  if (row.planned) bar.value = Math.min(1, row.done / row.planned);
  else bar.removeAttribute("value");
  const budget = state.budget.usd === null ? "" : ` of ${money(state.budget.usd)}`;
  const tokens = state.budget.tokens === null ? "" : ` of ${whole(state.budget.tokens)}`;
  const facts = [
    ["mean so far", number(row.mean)],
    ["scenarios scored", `${whole(row.scored)} of ${whole(row.scenarios)}`],
    ["no answer", whole(row.failed)],
    ["errors", whole(row.errors), row.errors ? "bad" : ""],
    ["at a time", state.at_once === null ? "-" : `about ${Math.round(state.at_once)}`],
    ["left, without learning", state.left_s === null ? "-" : `about ${span(state.left_s)}`],
    ["tokens", whole(state.tokens) + tokens],
    ["cost", paid(state) + budget],
  ];
  at("facts").replaceChildren(...facts.map(([name, text, className]) =>
    make("div", {}, make("dt", {}, name), make("dd", { className: className || null }, text))));
}

function drawPhases(state) {
  rows(document.querySelector("#phases table"), state.phases.map((row, n) => make("tr",
    { className: n === state.current ? "current" : null },
    make("th", { scope: "row" }, row.label),
    cell(stateOf(row, n, state.current), "text"),
    cell(whole(row.done) + planned(row, "/", "/≤")),
    cell(number(row.mean)), cell(`${whole(row.scored)}/${whole(row.scenarios)}`),
    cell(whole(row.failed)), cell(whole(row.errors)),
    cell(row.lessons === null ? "-" : whole(row.lessons)), cell(whole(row.tokens)), cell(paid(row)))));
}

function drawScenarios(state) {
  const row = state.phases[state.current];
  if (!row) return;
  at("drawn").textContent = row.label;
  const tiles = at("tiles"), marks = state.marks;
  while (tiles.childElementCount > marks.length) tiles.lastChild.remove();
  for (let n = tiles.childElementCount; n < marks.length; n++) tiles.append(make("i", { className: "none" }));
  [...marks].forEach((mark, n) => {
    const score = SCORES.indexOf(mark);
    const kind = mark === "e" ? "failed" : score < 0 ? "none" : "h" + score;
    const tile = tiles.children[n];
    if (tile.className !== kind) tile.className = kind;
    const said = mark === "e" ? "errors only" : score < 0 ? "not scored yet" : `about ${(score / 10).toFixed(1)}`;
    tile.title = shown.names[n] === undefined ? said : `${visible(shown.names[n])}: ${said}`;
  });
  const more = row.scenarios - marks.length;
  tiles.setAttribute("aria-label", `${row.scored} of ${row.scenarios} scenarios scored, mean ${number(row.mean)}`);
  at("tiles-note").textContent = "One tile a scenario: hatched until it is scored, red where there are only errors, then from low to high."
    + (more > 0 ? ` ${whole(more)} more scenarios are not drawn.` : "");
  rows(at("domains"), state.domains.map(([name, all, scored, mean, start]) => make("tr", {},
    make("th", { scope: "row" }, name), cell(`${whole(scored)}/${whole(all)}`), cell(number(mean)), cell(number(start)))));
  at("lowest-part").hidden = !state.lowest.length;
  rows(at("lowest"), state.lowest.map(([id, domain, mean]) => make("tr", {},
    make("th", { scope: "row", className: "text" }, id), cell(domain, "text"), cell(number(mean)))));
}

function item(kind, text, about, sign) {
  return make("li", { className: kind }, sign ? make("span", { className: "sign", role: "img", "aria-label": kind }, sign) : "",
    make("div", {}, make("p", {}, text), make("p", { className: "soft" }, about)));
}

function drawTexts(state) {
  at("failures-note").textContent = state.failed > state.failures.length
    ? `The latest ${state.failures.length} of ${plural(state.failed, "rollout")} that failed a check, have no answer, or are errors.`
    : state.failed ? "" : "None so far.";
  document.querySelector("#failures ol").replaceChildren(...state.failures.map((row) => item(row.kind,
    row.text, `${row.scenario}, ${row.phase}, rollout ${row.index}: ${row.kind}`)));
  const tried = state.candidate === null ? "" : ` The dev split tries ${plural(state.candidate, "change")} now.`;
  at("lessons-note").textContent = (state.learned > state.lessons.length
    ? `The latest ${state.lessons.length} of ${plural(state.learned, "change")}.` : state.learned ? "" : "None yet.") + tried;
  document.querySelector("#lessons ol").replaceChildren(...state.lessons.map((row) => item(row.kind,
    row.text, [`epoch ${row.epoch}`, row.polarity, row.domain].filter(Boolean).join(", "), SIGNS[row.kind])));
  at("warnings").hidden = !state.warnings.length;
  document.querySelector("#warnings ul").replaceChildren(...state.warnings.map((text) => make("li", {}, text)));
}

function say(text, className) {
  const pulse = at("pulse");
  if (pulse.textContent !== text) pulse.textContent = text;
  pulse.className = "pulse " + className;
}

async function namesOf(state) {
  if (state.generation === shown.generation && state.current === shown.current) return;
  [shown.generation, shown.current] = [state.generation, state.current];
  shown.names = await (await fetch("names", { cache: "no-store" })).json();
}

/** Ask once and draw; return after how many milliseconds to ask again. */
async function follow() {
  const answer = await fetch("state", { cache: "no-store" });
  if (!answer.ok) throw new Error(answer.statusText);
  const state = await answer.json();
  if (state.over) {
    location.reload();
    return HIDDEN_MS;
  }
  if (state.problem) say(state.problem, "lost");
  else if (state.behind) say(`reading the journal, ${Math.floor(100 * state.read)} %`, "live");
  else say(state.finish ? "the run has ended; its report is being written" : "running", "live");
  if (state.phases) {
    at("since").textContent = `, started ${span(state.elapsed_s)} ago, ${plural(state.events, "event")}`;
    await namesOf(state);
    drawNow(state);
    drawPhases(state);
    drawScenarios(state);
    drawTexts(state);
  }
  return state.behind ? CATCHING_UP_MS : document.hidden ? HIDDEN_MS : EVERY_MS;
}

async function keepFollowing() {
  let wait = 2 * EVERY_MS;
  try {
    wait = await follow();
  } catch {
    say("no answer: the viewer has ended; start it again with tfgrpo view", "lost");
  }
  setTimeout(keepFollowing, wait);
}

document.addEventListener("visibilitychange", () => { if (!document.hidden) follow().catch(() => {}); });
keepFollowing();
