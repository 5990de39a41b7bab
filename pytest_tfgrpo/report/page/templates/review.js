// Marks of a reviewer: right, wrong or unsure, with a comment; kept by the browser, saved as a file, loaded again.

const MARKS_KEY = `tfgrpo-marks-${index.run}`, REVIEWER_KEY = "tfgrpo-reviewer", MARKS_SCHEMA = "tfgrpo.marks/1";
const OPINIONS = ["right", "wrong", "unsure"], MOST_MARKS = 20000, MOST_BYTES = 64e6, LISTED = 200;
const LENGTHS = { rollout: 400, scenario: 128, stamp: 64, comment: 2000, words: 500 };
const marks = new Map();
const review = Object.fromEntries(["review", "review-count", "review-message", "review-warning", "review-list", "reviewer", "marks-save", "marks-load", "marks-clear"].map((id) => [id, document.getElementById(id)]));
let reviewedRollout = null, stored = true, saved = true, counted = 0;

function hasPassed(rollout, task) {
  return task.truth === "checks" ? rollout.score !== null && rollout.score >= 1 : rollout.score !== null && rollout.score >= 0.5;
}

/** Return marks that a file or the storage has, without what is none; throws an Error that says why there are none. */
function readMarks(text) {
  let value;
  try { value = JSON.parse(text); } catch { throw new Error("it is not JSON"); }
  const schema = (value && value.schema) ?? MARKS_SCHEMA;
  if (schema !== MARKS_SCHEMA) throw new Error(`it has the schema ${JSON.stringify(schema).slice(0, 80)}, and this page reads ${MARKS_SCHEMA}`);
  if (!value || value.schema !== MARKS_SCHEMA || !Array.isArray(value.marks) || value.marks.length > MOST_MARKS) throw new Error("it is not a file of marks");
  if (value.run_id !== index.run) throw new Error(`its marks are of run ${String(value.run_id).slice(0, 100)}`);
  const found = new Map();
  for (const one of value.marks) {
    if (!one || !OPINIONS.includes(one.mark)) throw new Error("it has a mark that is neither right, wrong nor unsure");
    const mark = { mark: one.mark };
    for (const [name, length] of Object.entries(LENGTHS)) {
      const text = one[name] === undefined && ["comment", "words"].includes(name) ? "" : one[name];
      if (typeof text !== "string" || text.length > length) throw new Error(`a mark has no ${name} that fits`);
      mark[name] = text;
    }
    found.set(mark.rollout, mark);
  }
  return { marks: found, reviewer: typeof value.reviewer === "string" ? value.reviewer.slice(0, 80) : "" };
}

function marksText() {
  const listed = [...marks.values()].map(({ rollout, scenario, stamp, mark, comment, words }) => ({ rollout, scenario, stamp, mark, ...(comment && { comment }), ...(words && { words }) }));
  return JSON.stringify({ schema: MARKS_SCHEMA, run_id: index.run, reviewer: review.reviewer.value.trim(), marks: listed }, null, 1) + "\n";
}

function storeMarks() {
  saved = false;
  try {
    localStorage.setItem(MARKS_KEY, marksText());
    localStorage.setItem(REVIEWER_KEY, review.reviewer.value);
  } catch { stored = false; }
  review["review-warning"].hidden = stored;
  countMarks();
}

const places = new Map();

/** Return a promise of where a marked answer is, and whether it passed; null where the page does not have it.
 * The last sweep comes first: a control shares answers of the final one. */
function placeOf(mark) {
  const key = JSON.stringify([mark.scenario, mark.rollout]);
  if (!places.has(key)) places.set(key, findPlace(mark));
  return places.get(key);
}

async function findPlace(mark) {
  const row = rowOf.get(mark.scenario);
  for (let column = row ? row.cells.length - 1 : -1; column >= 0; column--) {
    const group = await groupAt(row, column).catch(() => null);  // a view may have ended
    const rollout = group && group.rollouts.find((one) => one.id === mark.rollout);
    if (rollout) return { label: `${row.id} ${index.columns[column].label} r${rollout.index}`, route: routeTo(row.id, index.columns[column].label, rollout.index), passed: hasPassed(rollout, group.task), stamp: group.task.stamp };
  }
  return null;
}

/** Say how many marks there are, and list where checks and marks disagree. */
async function countMarks() {
  const turn = ++counted, lines = [];
  let gone = 0;
  for (const mark of marks.values()) {
    const place = await placeOf(mark);
    if (turn !== counted) return;
    if (!place || place.stamp !== mark.stamp) gone++;
    else if (mark.mark === (place.passed ? "wrong" : "right")) {
      lines.push(make("li", {}, make("a", { href: place.route }, place.label), place.passed ? " passed, you call it wrong" : " failed, you call it right", mark.comment ? `: ${mark.comment.slice(0, 200)}` : ""));
    }
  }
  const n = (opinion) => [...marks.values()].filter((mark) => mark.mark === opinion).length;
  review["review-count"].textContent = marks.size === 0 ? "No marks yet: open a rollout, and say whether its answer is right." :
    `${plural(marks.size, "mark")}: ${n("right")} right, ${n("wrong")} wrong, ${n("unsure")} unsure. Checks and marks disagree on ${lines.length}.` + (gone ? ` ${gone} of an answer that this page does not have.` : "");
  review["review-list"].replaceChildren(...lines.slice(0, LISTED), ...(lines.length > LISTED ? [make("li", {}, `${lines.length - LISTED} more`)] : []));
  for (const id of ["marks-save", "marks-clear"]) review[id].disabled = marks.size === 0;
}

function badgeText(id) {
  const mark = marks.get(id);
  return mark ? `marked ${mark.mark}` : "";
}

/** What shows in the line of a rollout that it is marked. */
function markBadge(rollout) {
  return make("span", { className: "marked", "data-marked": rollout.id }, badgeText(rollout.id));
}

function showMark(id) {
  const mark = marks.get(id);
  for (const badge of detail.querySelectorAll("[data-marked]")) if (badge.dataset.marked === id) badge.textContent = badgeText(id);
  for (const form of detail.querySelectorAll(".mark")) {
    if (form.dataset.rollout !== id) continue;
    for (const button of form.querySelectorAll("button[data-mark]")) button.setAttribute("aria-pressed", String(Boolean(mark) && button.dataset.mark === mark.mark));
    form.querySelector(".remove").disabled = !mark;
    for (const name of ["comment", "words"]) {
      const field = form.querySelector(`[data-field="${name}"]`);
      if (field !== document.activeElement) field.value = mark ? mark[name] : "";
    }
    const passed = form.dataset.passed === "true";
    form.querySelector(".disagrees").textContent = mark && mark.mark === (passed ? "wrong" : "right") ? `The checks ${passed ? "passed" : "failed"} it: you disagree.` : "";
  }
}

/** The buttons and fields by which a reviewer marks a rollout. */
function markControls(rollout, group) {
  const answer = group.text(rollout.answer);
  const form = make("fieldset", { className: "mark", "data-rollout": rollout.id, "data-passed": String(hasPassed(rollout, group.task)) });
  const known = () => marks.get(rollout.id) || { rollout: rollout.id, scenario: group.task.id, stamp: group.task.stamp, mark: "unsure", comment: "", words: "" };
  const put = (change) => { marks.set(rollout.id, { ...known(), ...change }); storeMarks(); showMark(rollout.id); };
  const chosen = () => {
    const selection = getSelection(), text = selection.toString().trim();
    return text && text.length <= LENGTHS.words && form.parentNode.contains(selection.anchorNode) && answer.includes(text) ? { words: text } : {};
  };
  let pointed = {};  // the button that is pressed takes the selection away before its click
  form.addEventListener("pointerdown", () => { pointed = chosen(); });
  const buttons = OPINIONS.map((opinion) => {
    const button = make("button", { type: "button", "data-mark": opinion, "aria-pressed": "false", title: `key ${opinion[0]}` }, opinion);
    button.addEventListener("click", () => { put({ mark: opinion, ...pointed, ...chosen() }); pointed = {}; });
    return [button, " "];
  });
  const remove = make("button", { type: "button", className: "remove" }, "remove");
  remove.addEventListener("click", () => { marks.delete(rollout.id); storeMarks(); showMark(rollout.id); });
  const field = (tag, name, title, more) => {
    const input = make(tag, { "data-field": name, maxLength: LENGTHS[name], ...more });
    input.addEventListener("input", () => put({ [name]: input.value }));
    return make("label", {}, make("span", {}, title), input);
  };
  form.append(make("legend", {}, "Your mark"), ...buttons.flat(), remove, make("p", { className: "disagrees bad", role: "status" }),
    field("textarea", "comment", "comment", { rows: 2, title: "key c" }), field("input", "words", "words of the answer that decide it (select them, then mark)", {}));
  queueMicrotask(() => showMark(rollout.id));
  return form;
}

function saveMarks() {
  const link = make("a", { href: URL.createObjectURL(new Blob([marksText()], { type: "application/json" })), download: `marks-${index.run.replace(/[^\w.-]/g, "_")}.json` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  saved = true;
}

async function loadMarks() {
  const [file] = review["marks-load"].files;
  if (!file) return;
  try {
    if (file.size > MOST_BYTES) throw new Error("it is too large");
    const found = readMarks(await file.text());
    for (const [id, mark] of found.marks) marks.set(id, mark);
    if (!review.reviewer.value) review.reviewer.value = found.reviewer;
    storeMarks();
    review["review-message"].textContent = `Loaded ${plural(found.marks.size, "mark")}.`;
    for (const id of found.marks.keys()) showMark(id);
  } catch (error) {
    review["review-message"].textContent = visible(`This file was not loaded: ${error.message}.`);
  }
  review["marks-load"].value = "";
}

/** Open the rollout after the one that was opened last, or the first. */
function nextRollout() {
  const all = [...detail.querySelectorAll("details.rollout")];
  const next = all[all.findIndex((one) => one.id === reviewedRollout) + 1];
  if (!next) return;
  next.open = true;
  reviewedRollout = next.id;
  next.querySelector("summary").focus();
  next.scrollIntoView({ block: "start" });
}

function markByKey(event) {
  if (!document.getElementById("detail").open || event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select, textarea")) return;
  const inside = event.target.closest("details.rollout[open]");
  const at = inside || (reviewedRollout && detail.querySelector(`details.rollout[open][id="${CSS.escape(reviewedRollout)}"]`)) || detail.querySelector("details.rollout[open]");
  const opinion = OPINIONS.find((one) => one[0] === event.key);
  if (event.key === "n") nextRollout();
  else if (opinion && at) at.querySelector(`button[data-mark="${opinion}"]`)?.click();
  else if (event.key === "c" && at) at.querySelector('[data-field="comment"]')?.focus();
  else return;
  event.preventDefault();
}

function startReview() {
  if (!review.review || !rows.some((row) => row.cells.some((cell) => cell && cell.chunk >= 0))) return;
  try {
    review.reviewer.value = (localStorage.getItem(REVIEWER_KEY) || "").slice(0, 80);
    const text = localStorage.getItem(MARKS_KEY);
    for (const [id, mark] of text ? readMarks(text).marks : []) marks.set(id, mark);
  } catch (error) { stored = !(error instanceof DOMException); }
  review.review.hidden = false;
  document.querySelector('body > nav a[href="#scenarios"]').parentNode.after(make("li", {}, make("a", { href: "#review" }, "Review")));
  review["review-warning"].hidden = stored;
  review["marks-save"].addEventListener("click", saveMarks);
  review["marks-load"].addEventListener("change", loadMarks);
  review["marks-clear"].addEventListener("click", () => { if (confirm(`Remove ${plural(marks.size, "mark")} from this browser?`)) { marks.clear(); storeMarks(); } });
  review.reviewer.addEventListener("input", storeMarks);
  document.addEventListener("keydown", markByKey);
  document.addEventListener("toggle", (event) => { if (event.target.matches("details.rollout[open]")) reviewedRollout = event.target.id; }, true);
  addEventListener("beforeunload", (event) => { if (!stored && !saved && marks.size) event.preventDefault(); });
  countMarks();
}

startReview();
