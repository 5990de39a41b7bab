// Answers of several runs side by side: what differs is marked, and the first difference is named.

const besides = index.compare ? index.compare.runs : [];
const besideRows = new Map(index.compare ? index.compare.rows.map(([n, ...cells]) => [n, cells.map((cell) => cell && {
  mean: cell[0], n: cell[1], errors: cell[2], chunk: cell[3], place: cell[4], sameTask: Boolean(cell[5]), shown: cell.slice(6),
})]) : []);
/** The mean in a run minus that in A: of B, or of the other run at a place; null without both, and where the tasks differ. */
function changeFromA(row, place) {
  const cells = besideRows.get(row.n);
  if (!cells || !cells[0]) return null;
  const to = place === undefined ? row.cells[index.last] : cells[place];
  const known = to && to.mean !== null && cells[0].mean !== null && cells[0].sameTask && to.sameTask !== false;
  return known ? to.mean - cells[0].mean : null;
}

/** Runs that are compared with A: their letters, and how the change of a row is found. */
const changes = besideRows.size ? [["B", (row) => changeFromA(row)], ...besides.slice(1).map(({ letter }, i) => [letter, (row) => changeFromA(row, i + 1)])] : [];
for (const [letter, change] of changes) {
  STATUS[`worse-${letter}`] = (row) => change(row) < -1e-9;
  STATUS[`better-${letter}`] = (row) => change(row) > 1e-9;
  for (const side of ["worse", "better"]) if (controls.status) controls.status.append(make("option", { value: `${side}-${letter}` }, `${letter} ${side} than A`));
}

/** What a row changed by, under its name: between runs in a comparison, else from start to end. */
function changesOf(row) {
  return besideRows.has(row.n) ? changes.map(([letter, change]) => [`${letter} - A`, change(row)]) : [["change", row.change]];
}

/** The columns of the scenario table, in a comparison with those of the other runs in the place of start and change. */
function withBesides(split, columns) {
  if (!rows.some((row) => row.split === split && besideRows.has(row.n))) return columns;
  const scores = besides.map(({ letter }, i) => {
    const found = (row) => (besideRows.get(row.n) || [])[i] || null;
    return { ...scoreColumn(`run-${letter}`, letter, `mean score in the final sweep of ${letter}`, () => index.last), found, value: (row) => found(row)?.mean ?? null };
  });
  const differences = changes.map(([letter, value]) => ({ key: `change-${letter}`, name: `${letter} - A`, title: `mean score of ${letter} minus that of A`, kind: "change", shown: true, value, route: (row) => endOf(row), cell: (row) => row.end }));
  const answers = besides.map(({ letter }) => textColumn(`answer-${letter}`, `answer of ${letter}`, `of the worst rollout of ${letter}, of equals the first`, { shown: letter === "A" }));
  return columns.flatMap((column) => {
    if (column.key === "answer") return [answers[0], { ...column, name: "answer of B" }, ...answers.slice(1)];
    if (column.key === "end") return [scores[0], { ...column, name: "B" }, ...scores.slice(1), ...differences];
    return column.key === "start" || column.key === "change" || column.key === "failed" ? { ...column, name: `${column.name} of B`, shown: false } : column;
  });
}

const WORDS = /\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu;
const LINES = /[^\n]*\n|[^\n]+/g;
const MOST_STEPS = 4_000_000;

/** The parts of two texts, each with whether the other text has it too: words, or lines where there are too many words. */
function marked(left, right) {
  const byWord = agreeing(left.match(WORDS) || [], right.match(WORDS) || []);
  const sides = byWord || agreeing(left.match(LINES) || [], right.match(LINES) || [], true);
  return sides.map(({ units, same }) => {
    const parts = [];
    units.forEach((unit, i) => {
      if (parts.length && parts.at(-1).same === same[i]) parts.at(-1).text += unit;
      else parts.push({ text: unit, same: same[i] });
    });
    return parts;
  });
}

/** For each unit of two lists whether the other one has it too, in order; null where that takes too long, if not `anyway`. */
function agreeing(a, b, anyway = false) {
  let start = 0, end = 0;
  const most = Math.min(a.length, b.length);
  while (start < most && a[start] === b[start]) start++;
  while (end < most - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const middle = [a, b].map((units) => units.slice(start, units.length - end));
  if (!anyway && middle[0].length * middle[1].length > MOST_STEPS) return null;
  return common(...middle).map((same, side) => ({
    units: [a, b][side], same: [...new Array(start).fill(true), ...same, ...new Array(end).fill(true)],
  }));
}

/** For each unit of two lists whether it is in their longest common subsequence; all differ where that takes too long. */
function common(a, b) {
  const kept = [a.map(() => false), b.map(() => false)];
  if (!a.length || !b.length || a.length * b.length > MOST_STEPS) return kept;
  const wide = b.length + 1;
  const best = new Uint16Array((a.length + 1) * wide);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      best[i * wide + j] = a[i] === b[j] ? best[(i + 1) * wide + j + 1] + 1 : Math.max(best[(i + 1) * wide + j], best[i * wide + j + 1]);
    }
  }
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    if (a[i] === b[j]) kept[0][i++] = kept[1][j++] = true;
    else if (best[(i + 1) * wide + j] >= best[i * wide + j + 1]) i++;
    else j++;
  }
  return kept;
}

/** An answer whose parts that the other one lacks are marked. */
function markedBlock(parts, label) {
  if (!parts.length) return make("p", { className: "soft" }, "(empty)");
  const block = make("pre", { tabIndex: 0, "aria-label": label });
  for (const part of parts) block.append(part.same ? visible(part.text) : make("mark", {}, part.text));
  return block;
}

/** What two answers say where they first differ, in words. */
function firstDifference(left, right, parts) {
  if (left.answer === right.answer) return "The two answers are equal.";
  const at = parts.map((side) => side.findIndex((part) => !part.same));
  const said = parts.map((side, i) => (at[i] < 0 ? "nothing more" : `“${side[at[i]].text.slice(0, 80)}”`));
  return `First difference: ${left.name} has ${said[0]}, ${right.name} has ${said[1]}.`;
}

function answersView(left, right) {
  const parts = marked(left.answer, right.answer);
  const side = (one, i) => make("div", {}, make("p", {}, make("b", {}, one.name), ` score ${number(one.rollout.score)}`),
    one.rollout.failure ? make("p", { className: "bad" }, `${one.rollout.failure[0]}: `, one.text(one.rollout.failure[1])) : null,
    markedBlock(parts[i], `answer of ${one.name}`), checksTable(one.rollout, one.text));
  return make("div", {}, make("p", { className: "first-difference" }, firstDifference(left, right, parts)),
    make("div", { className: "pair answers" }, side(left, 0), side(right, 1)));
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

/** A promise of the groups of a scenario in all runs, each with its letter; those that the page lacks have no rollouts. */
async function groupsBeside(row, own) {
  const found = besideRows.get(row.n).map(async (cell, i) => cell && {
    letter: besides[i].letter, asked: besides[i].asked, cell, group: await groupIn(cell.chunk, `${cell.place}.0`),
  });
  const [group, first, ...rest] = await Promise.all([own, ...found]);
  return [first, { letter: "B", asked: index.compare.asked, cell: row.cells[index.last], group }, ...rest].filter(Boolean);
}

/** A rollout as a side of a comparison. */
function sideOf(one, place) {
  const rollout = one.group.rollouts[place];
  return { rollout, text: one.group.text, name: `${one.letter} r${rollout.index}`, answer: one.group.text(rollout.answer) };
}

/** A promise of the answers of all runs to one scenario, any two side by side; null where no other run has it. `own` is a promise. */
async function compareView(row, column, own) {
  if (column !== index.last || !besideRows.has(row.n)) return null;
  const runs = await groupsBeside(row, own);
  const there = runs.filter((one) => one.group);
  const lines = runs.map(({ letter, cell, group }) => [letter, number(cell.mean), group ? group.rollouts.map((rollout) => number(rollout.score, 2)).join(" ") : "not in this page",
    group ? [...new Set(group.rollouts.map((rollout) => group.text(rollout.answer).slice(0, 80)))].join(" | ") : ""]);
  const changed = runs.some(({ cell }) => cell.sameTask === false);
  const parts = [make("h3", {}, `${runs.slice(0, -1).map((one) => one.letter).join(", ")} and ${runs.at(-1).letter} side by side`),
    changed ? make("p", { className: "bad" }, "Another run has a different task under this id: their answers are not comparable.") : null,
    dataTable("the runs", ["run", "mean", " scores of its rollouts", " its answers"], lines)];
  for (const one of runs) if (!one.group) parts.push(make("p", { className: "soft" }, `To keep this page small, it leaves out the rollouts of run ${one.letter}. Show them with: `, make("code", {}, `tfgrpo show ${one.asked}.${row.id}.r0`)));
  if (there.length > 1) parts.push(choiceView(there));
  return make("section", { id: "beside", "aria-label": "answers of the runs" }, parts);
}

/** Two rollouts of any runs, which the reader chooses. */
function choiceView(runs) {
  const [left, right] = [runs.find((one) => one.letter !== "B"), runs.find((one) => one.letter === "B") || runs[1]];
  const chosen = [[left, left.cell.shown[0]], [right, left.cell.shown[1]]];
  const every = runs.flatMap((one) => one.group.rollouts.map((rollout, place) => [one, place]));
  const view = make("div");
  const draw = () => {
    const sides = chosen.map(([one, place]) => sideOf(one, place));
    view.replaceChildren(answersView(...sides), make("details", {}, make("summary", {}, "Steps"), pairView(...sides, false)));
    requestAnimationFrame(() => scrollToMarks(view));
  };
  const choice = (side, label) => {
    const select = make("select", {}, every.map(([one, place], n) => {
      const rollout = one.group.rollouts[place];
      return make("option", { value: String(n), selected: chosen[side][0] === one && chosen[side][1] === place }, `${one.letter} r${rollout.index}: ${rollout.status === "error" ? "error" : number(rollout.score)}`);
    }));
    select.addEventListener("change", () => { chosen[side] = every[Number(select.value)]; draw(); });
    return make("label", {}, label + " ", select);
  };
  draw();
  return make("div", {}, make("div", { className: "controls" }, choice(0, "left"), choice(1, "right")), view);
}

for (const { letter, left_out: { frames = 0, group = 0 } } of besides) {
  const notes = document.getElementById("compare-notes");
  if (frames) notes.append(make("li", {}, `To keep this page small, it leaves out the steps of ${plural(frames, "rollout")} of run ${letter}, those that are shown first last. tfgrpo show ID prints them.`));
  if (group) notes.append(make("li", {}, `It shows only the numbers of ${plural(group, "scenario")} of run ${letter}. tfgrpo show ID prints their rollouts.`));
}
