// The columns of the scenario table: what each shows, sorts by and opens, and which of them are shown.

/** Where a text or the change of a row leads: to the end of the row, and to the rollout that the row quotes. */
function endOf(row, rollout) {
  const parts = row.end === null ? [] : [index.columns[row.end].label];
  return routeTo(row.id, ...parts, ...(parts.length && rollout >= 0 ? [String(rollout)] : []));
}

function textColumn(key, name, title, extra = {}) {
  return { key, name, title, kind: "text", shown: true, value: (row) => row[key] || null, route: (row) => endOf(row), cell: (row) => row.end, ...extra };
}

/** A column of scores; `cell` gives the column of the index that it stands for in a row. */
function scoreColumn(key, name, title, cell, shown = true) {
  const found = (row) => { const i = cell(row); return i === null ? null : row.cells[i] || null; };
  return { key, name, title, kind: "score", shown, cell, found, value: (row) => found(row)?.mean ?? null,
    route: (row) => { const i = cell(row); return i === null ? routeTo(row.id) : routeTo(row.id, index.columns[i].label); } };
}

/** All columns that a split can show, in order. */
function columnsOf(split) {
  const inSplit = rows.filter((row) => row.split === split);
  const told = Boolean(byId("words"));
  const changes = inSplit.some((row) => row.start !== null);
  const ends = new Set(inSplit.flatMap((row) => [row.start, row.end]));
  const sweeps = index.splits[split].filter((i) => !changes || ends.size > 2 || !ends.has(i));
  const one = (i) => (i === null ? "" : `: ${index.columns[i].name}`);
  const whole = split === "eval" ? one : () => "";
  const sample = inSplit.find((row) => row.end !== null) || { start: null, end: null };
  return withSides(split, [
    { key: "id", name: "scenario", title: "id and domain", kind: "id", shown: true, value: (row) => row.id, route: (row) => routeTo(row.id), cell: (row) => row.end },
    ...(told ? [
      textColumn("task", "task", "the task of the agent"),
      textColumn("expected", "expected", "what the checks expect"),
      textColumn("answer", "answer", "of the worst rollout at the end, of equals the first", { route: (row) => endOf(row, row.rollout) }),
      textColumn("failed", "failed check", "the first check that this rollout did not pass, or how it failed", { route: (row) => endOf(row, row.rollout) }),
    ] : []),
    textColumn("domain", "domain", "", { shown: !told }),
    textColumn("source", "source", "file and line", { shown: false }),
    ...(changes ? [scoreColumn("start", "start", `mean score of its first sweep or epoch${whole(sample.start)}`, (row) => row.start)] : []),
    scoreColumn("end", changes ? "end" : "score", `mean score of its last sweep or epoch${whole(sample.end)}`, (row) => row.end),
    ...(changes ? [{ key: "change", name: "change", title: "end minus start", kind: "change", shown: true, value: (row) => row.change, route: (row) => endOf(row), cell: (row) => row.end }] : []),
    ...(sweeps.length > 1 || changes ? sweeps : []).map((i) => scoreColumn(String(i), index.columns[i].name, index.columns[i].label, () => i, false)),
  ]);
}

/** A menu in which the reader chooses columns; `changed` is called with the keys that are chosen. */
class ColumnMenu {
  constructor(box, changed) {
    this.box = box;
    this.changed = changed;
    this.chosen = null;
  }

  /** Offer the columns of a split; returns those that are shown. */
  offer(columns) {
    this.columns = columns;
    const shown = this.shown();
    this.box.replaceChildren(...columns.filter((column) => column.key !== "id").map((column) => {
      const check = make("input", { type: "checkbox", value: column.key, checked: shown.includes(column) });
      check.addEventListener("change", () => {
        const keys = new Set(this.shown().map((one) => one.key));
        if (check.checked) keys.add(column.key); else keys.delete(column.key);
        const usual = this.columns.filter((one) => one.shown).map((one) => one.key);
        this.chosen = usual.length === keys.size && usual.every((key) => keys.has(key)) ? null : [...keys];
        this.changed();
      });
      return make("label", {}, check, ` ${column.name}`);
    }));
    return shown;
  }

  shown() {
    return this.columns.filter((column) => column.key === "id" || (this.chosen ? this.chosen.includes(column.key) : column.shown));
  }
}
