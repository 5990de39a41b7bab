// Several runs side by side: a column with score and answer for each, and their answers in an opened row.

const compared = index.compare || null;
/** The runs in order; `at` is the place among the others, undefined for the run whose rows these are. */
const sides = compared ? compared.runs.map((run, at) => ({ ...run, at })) : [];
if (compared) sides.splice(compared.place, 0, { name: compared.name, link: compared.link, asked: compared.asked, left_out: index.left_out });
const sideRows = new Map(compared ? compared.rows.map(([n, ...cells]) => {
  const found = cells.map((cell) => cell && { mean: cell[0], n: cell[1], errors: cell[2], solved: cell[3], chunk: cell[4], place: cell[5], sameTask: Boolean(cell[6]), shown: cell.slice(7) });
  found.splice(compared.place, 0, rows[n].cells[index.last] || null);
  return [n, found];
}) : []);
/** In what the answers in an opened row are marked: as against which run, and whether at all. */
const marking = { from: 0, on: true };

/** The results of a row by run, null where one took no part; none where it is not compared. */
function sideCells(row) {
  return sideRows.get(row.n) || [];
}

/** The mean of a run minus that of the first; null without both, and where the tasks differ. */
function changeOf(row, place) {
  const cells = sideCells(row), from = cells[0], to = cells[place];
  const known = from && to && from.mean !== null && to.mean !== null && from.sameTask !== false && to.sameTask !== false;
  return known ? to.mean - from.mean : null;
}

/** What a row changed by, in words: between runs in a comparison, else from start to end; empty where nothing is known. */
function changeSaid(row) {
  if (!sideRows.has(row.n)) return row.change === null ? "" : `, change ${signed(row.change)}`;
  const known = sides.slice(1).map(({ name }, i) => [name, changeOf(row, i + 1)]).filter(([, change]) => change !== null);
  return known.length ? `, against ${sides[0].name}: ${known.map(([name, change]) => `${name} ${signed(change)}`).join(", ")}` : "";
}

function means(row) {
  return sideCells(row).filter((cell) => cell && cell.mean !== null).map((cell) => cell.mean);
}

/** Whether one run alone fails: it did not solve each rollout, and all others that have a score did. */
function onlyFails(row, place) {
  const own = sideCells(row)[place], all = means(row);
  return Boolean(own) && own.mean !== null && own.mean < 1 && all.length > 1 && all.filter((mean) => mean < 1).length === 1;
}

/** Add to the filter what only several runs have. */
function offerSides() {
  if (!compared) return;
  const answers = new Set(compared.answers);
  const cells = (row) => [...row.cells, ...sideCells(row)];
  const add = (box, value, name, test) => { STATUS[value] = test; box.append(make("option", { value }, name)); };
  const group = (label) => { const box = make("optgroup", { label }); controls.status.append(box); return box; };
  STATUS.errors = (row) => cells(row).some((cell) => cell && cell.errors);
  STATUS.mixed = (row) => cells(row).some(isMixed);
  const all = group("all of them");
  add(all, "differ", "scores differ", (row) => Math.max(...means(row)) - Math.min(...means(row)) > 1e-9);
  add(all, "answers", "answers differ", (row) => answers.has(row.n));
  add(all, "all-fail", "all fail", (row) => means(row).length > 0 && means(row).every((mean) => mean < 1));
  const only = group("one of them");
  sides.forEach(({ name }, i) => add(only, `only-${i}`, `only ${name} fails`, (row) => onlyFails(row, i)));
  const against = group(`against ${sides[0].name}`);
  sides.slice(1).forEach(({ name }, i) => {
    add(against, `worse-${i + 1}`, `${name} worse than ${sides[0].name}`, (row) => changeOf(row, i + 1) < -1e-9);
    add(against, `better-${i + 1}`, `${name} better than ${sides[0].name}`, (row) => changeOf(row, i + 1) > 1e-9);
  });
}

/** The column of a run: its score, what failed and its answer. */
function sideColumn({ name, at }, place) {
  const of = (key) => (row) => (at === undefined ? row[key] : row[`${key}-${at}`]) || "";
  const found = (row) => sideCells(row)[place] || null;
  return { key: `side-${place}`, name, title: `${name}: mean score, what failed, and the answer of its worst rollout`, kind: "side", shown: true, found,
    value: (row) => found(row)?.mean ?? null, answer: of("answer"), failed: of("failed"), change: (row) => (place ? changeOf(row, place) : null), route: (row) => routeTo(row.id), cell: () => index.last };
}

/** The columns of the scenario table, where runs are compared with one for each in the place of answer, start and end. */
function withSides(split, columns) {
  if (!rows.some((row) => row.split === split && sideRows.has(row.n))) return columns;
  const alone = compared.alone;
  const differences = sides.slice(1).map(({ name }, i) => ({ key: `change-${i + 1}`, name: alone && sides.length === 2 ? "change" : `${name} - ${sides[0].name}`, title: `mean score of ${name} minus that of ${sides[0].name}`, kind: "change",
    shown: !alone || sides.length === 2, value: (row) => changeOf(row, i + 1), route: (row) => routeTo(row.id), cell: () => index.last }));
  return columns.flatMap((column) => {
    if (column.key === "answer") return sides.map(sideColumn);
    if (column.key === "end") return differences;
    if (!["start", "change", "failed"].includes(column.key)) return column;
    return alone ? [] : { ...column, name: `${column.name} of ${compared.name}`, shown: false };
  });
}

/** What a file of the table's rows has of each run. */
function exportedSides(row) {
  return Object.fromEntries(sides.flatMap(({ name }, i) => {
    const column = sideColumn(sides[i], i), cell = column.found(row) || { mean: null, n: 0, errors: 0 };
    return Object.entries({ score: cell.mean, rollouts: cell.n, errors: cell.errors, answer: column.answer(row), failed: column.failed(row) }).map(([what, value]) => [`${name} ${what}`, value]);
  }));
}

/** An answer whose parts that the other one lacks are marked. */
function markedBlock(parts, label) {
  if (!parts.some(({ text }) => text)) return make("p", { className: "soft" }, "(empty)");
  const block = make("pre", { tabIndex: 0, "aria-label": label });
  for (const { same, text } of parts) {
    const end = same ? 0 : text.trimEnd().length || text.length;  // a marked line break would be a box on the next line
    block.append(...(end ? [make("mark", {}, text.slice(0, end))] : []), visible(text.slice(end)));
  }
  return block;
}

/** What two answers say where they first differ, in words. */
function firstDifference(left, right, parts, longest = 80) {
  if (left.answer === right.answer) return "The two answers are equal.";
  const at = parts.map((one) => one.findIndex((part) => !part.same));
  const said = parts.map((one, i) => (at[i] < 0 ? "nothing more" : `“${one[at[i]].text.trim().slice(0, longest) || "space"}”`));
  return `First difference: ${left.name} has ${said[0]}, ${right.name} has ${said[1]}.`;
}

/** Scroll each answer that does not fit to what differs first. */
function scrollToMarks(view) {
  const places = [...view.querySelectorAll(".answers pre")].map((block) => {  // all is measured before anything moves
    const mark = block.querySelector("mark");
    const hidden = mark && block.scrollHeight > block.clientHeight;
    return [block, hidden ? mark.getBoundingClientRect().top - block.getBoundingClientRect().top - 48 : 0];
  });
  for (const [block, further] of places) if (further) block.scrollTop += further;
}

/** A promise of the runs that have a row, each with its result and its group; null for what the page lacks. `own` is a promise. */
async function runsOf(row, own) {
  const found = await Promise.all(sides.map(async (side, place) => {
    const cell = sideCells(row)[place];
    if (!cell) return null;
    const group = side.at === undefined ? await own : await groupIn(cell.chunk, `${cell.place}.0`);
    return { ...side, cell, group: group && group.rollouts.length ? group : null };
  }));
  return found.filter(Boolean);
}

/** A rollout of a run, to be set beside others. */
function sideOf(one, place) {
  const rollout = one.group.rollouts[place];
  return { rollout, text: one.group.text, name: `${one.name} r${rollout.index}`, answer: one.group.text(rollout.answer) };
}

/** A promise of the answers of all runs to one scenario; null where it is not compared. `own` is a promise of the own group. */
async function sidesView(row, column, own) {
  if (column !== index.last || !sideRows.has(row.n)) return null;
  const runs = await runsOf(row, own), there = runs.filter((one) => one.group);
  const parts = [];
  if (runs.length > 1) parts.push(make("h3", {}, `${runs.slice(0, -1).map((one) => one.name).join(", ")} and ${runs.at(-1).name} side by side`));
  if (runs.some(({ cell }) => cell.sameTask === false)) parts.push(make("p", { className: "bad" }, "Another run has a different task under this id: their answers are not comparable."));
  for (const one of runs) if (!one.group) parts.push(make("p", { className: "soft" }, `To keep this page small, it leaves out the rollouts of ${one.name}. Show them with: `, make("code", {}, `tfgrpo show ${one.asked}.${row.id}.r0`)));
  if (there.length) parts.push(choiceView(there, row));
  if (there.some(({ group }) => group.rollouts.length > 1)) parts.push(make("h4", {}, "All rollouts"), rolloutsTable(runs));
  return { group: there.length ? there[0].group : null, view: make("section", { id: "beside", "aria-label": "answers of the runs" }, parts) };
}

/** The scores of all rollouts of each run, and what they answer. */
function rolloutsTable(runs) {
  return dataTable("the runs", ["run", "mean", " scores of its rollouts", " its answers"], runs.map(({ name, cell, group }) => [name, number(cell.mean),
    group ? group.rollouts.map((rollout) => number(rollout.score, 2)).join(" ") : "not in this page",
    group ? [...new Set(group.rollouts.map((rollout) => gistOf(group.text(rollout.answer))))].join(" | ") : ""]));
}

/** The rollouts that are shown at first: of the run of the page, that which the first other one was paired with. */
function firstShown(runs) {
  const paired = runs.find(({ cell }) => cell.shown && cell.shown[1] >= 0);
  return runs.map(({ cell }) => (cell.shown ? cell.shown[0] : paired ? paired.cell.shown[1] : 0));
}

/** A rollout of each run, which the reader chooses, in columns. */
function choiceView(runs, row) {
  const chosen = firstShown(runs);
  const view = make("div");
  const from = () => Math.max(0, runs.findIndex(({ name }) => name === sides[marking.from].name));
  const draw = () => {
    const shown = runs.map((one, i) => sideOf(one, chosen[i]));
    view.replaceChildren(...columnsView(runs, shown, from(), row, (i, place) => { chosen[i] = place; draw(); }));
    requestAnimationFrame(() => scrollToMarks(view));
  };
  const on = make("input", { type: "checkbox", checked: marking.on });
  on.addEventListener("change", () => { marking.on = on.checked; draw(); });
  const against = make("select", {}, runs.map(({ name }, i) => make("option", { value: name, selected: i === from() }, name)));
  against.addEventListener("change", () => { marking.from = sides.findIndex(({ name }) => name === against.value); draw(); });
  draw();
  const set = runs.some(({ group }) => group.rollouts.some((rollout) => kindOf(group.text(rollout.answer))));
  return make("div", {}, runs.length > 1 ? make("div", { className: "controls" }, make("label", {}, on, ` mark differences${set ? " in the raw text" : ""}`), runs.length > 2 ? make("label", {}, "from ", against) : null) : null, view);
}

/** The columns: answers, with what differs from that of the run `from`, and below them the steps of each two. */
function columnsView(runs, shown, from, row, choose) {
  const pairs = shown.map((one, i) => (i === from || !marking.on ? null : marked(shown[from].answer, one.answer)));
  const two = shown.length === 2 && marking.on;
  const first = (i) => firstDifference(shown[from], shown[i], pairs[i], two ? 80 : 30);
  const columns = runs.map((one, i) => {
    const parts = two && i === from ? pairs[1 - i][0] : pairs[i] ? pairs[i][1] : marking.on && runs.length > 1 ? [{ same: true, text: shown[i].answer }] : null;
    const said = !pairs[i] || two ? "" : shown[i].answer === shown[from].answer ? `The same as ${shown[from].name}.` : first(i);
    return sideView(one, shown[i], row, parts, said, (place) => choose(i, place));
  });
  const steps = shown.map((one, i) => (i !== from && [one, shown[from]].some(({ rollout }) => rollout.frames.length || rollout.frames > 0) ? stepsView(shown[Math.min(from, i)], shown[Math.max(from, i)]) : null));
  return [two ? make("p", { className: "first-difference" }, first(1 - from)) : "", make("div", { className: "sides" }, columns), ...steps.filter(Boolean)];
}

function stepsView(left, right) {
  const details = make("details", {}, make("summary", {}, `Steps of ${left.name} and ${right.name}`));
  details.addEventListener("toggle", () => { if (details.open && details.children.length === 1) details.append(pairView(left, right, false)); });
  return details;
}

/** One column: whose it is and its score, how it failed, the answer, and what judged it. */
function sideView(one, { rollout, text, name, answer }, row, parts, said, choose) {
  const select = make("select", { "aria-label": `rollout of ${one.name}` }, one.group.rollouts.map((other, place) =>
    make("option", { value: String(place), selected: other === rollout }, `${one.name} r${other.index}: ${other.status === "error" ? "error" : number(other.score)}`)));
  select.addEventListener("change", () => choose(Number(select.value)));
  const whose = make("b", {}, one.link ? make("a", { href: `${one.link}${routeTo(row.id)}` }, one.name) : one.name);
  const score = make("b", { className: `score ${heatOf(rollout.score)}` }, number(rollout.score));
  const failure = rollout.failure ? make("p", { className: "bad" }, `${rollout.failure[0]}: `, text(rollout.failure[1])) : "";
  const judged = rollout.judge ? make("p", {}, `judge ${number(rollout.judge[0])}: `, text(rollout.judge[1])) : null;
  return make("div", { className: "side" },
    make("div", {}, make("p", {}, whose, " ", score, " ", one.group.rollouts.length > 1 ? select : ""), make("p", { className: "soft" }, `${whole(rollout.tokens)} tokens, ${money(rollout.cost)}, ${duration(rollout.ms)}`)),
    make("div", {}, failure, said ? make("p", { className: "soft differs" }, said) : ""),
    make("div", { className: "answers" }, parts ? [markedBlock(parts, `answer of ${name}`), picturesIn(answer, rollout.pictures)] : answerView(answer, `answer of ${name}`, rollout.pictures)),
    make("div", {}, checksList(rollout, text), judged, scoresTable(rollout, text), one.group.asked && (compared.alone || one.at !== undefined) ? promptView(one.group) : null,
      make("p", { className: "copies" }, copyButton("copy tfgrpo show", `tfgrpo show ${shellWord(rollout.id)}`))));
}

/** What the checks say, a line each: a column is too narrow for a table. */
function checksList(rollout, text) {
  if (!rollout.checks.length) return null;
  const result = (credit) => make("strong", { className: credit >= 1 ? "good" : "bad" }, credit >= 1 ? "passed" : credit > 0 ? `${number(credit, 2)} of` : "failed");
  return make("ul", { className: "checks", "aria-label": "checks" }, rollout.checks.map(([kind, weight, credit, reason]) =>
    make("li", {}, result(credit), ` ${kind}`, weight === 1 ? "" : ` (weight ${weight})`, text(reason) ? `: ${text(reason)}` : "")));
}

function heatOf(mean) {
  return mean === null || mean === undefined ? "none" : `h${Math.round(Math.min(1, Math.max(0, mean)) * 10)}`;
}

/** An opened row of a page that shows all runs alike. */
function aloneView(row, beside) {
  const task = beside && beside.group ? taskView(beside.group) : make("p", {}, "This page contains no rollout of it.");
  return [task, beside ? beside.view : ""];
}

function noteLeftOut() {
  const notes = byId(compared && compared.alone ? "notes" : "compare-notes");
  for (const { name, at, left_out: { frames = 0, group = 0 } } of sides) {
    if (at === undefined && !compared.alone) continue;
    if (frames) notes.append(make("li", {}, `To keep this page small, it leaves out the steps of ${plural(frames, "rollout")} of ${name}, those that are shown first last. tfgrpo show ID prints them.`));
    if (group) notes.append(make("li", {}, `It shows only the numbers of ${plural(group, "scenario")} of ${name}. tfgrpo show ID prints their rollouts.`));
  }
}
