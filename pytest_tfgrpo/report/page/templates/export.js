// What of the scenario table is shown, as a file: CSV that no spreadsheet works on, or JSON lines.

const FORMULA = /^[\s"']*[=+\-@＝＋－＠]/;
const AFTER_SEPARATOR = /(;[\s"']*)(?=[=+\-@＝＋－＠])/g;

/** A text that a spreadsheet takes for a text, whatever separator it reads the file by. */
function inert(text) {
  const flat = visible(text).replace(/\s+/g, " ");
  return (FORMULA.test(flat) ? "'" : "") + flat.replace(AFTER_SEPARATOR, "$1'");
}

/** The rows of the table by column, as far as anything is known: id, words, and each score with its errors. */
function exported(row) {
  const found = { id: row.id, domain: row.domain, split: row.split, source: row.source, tags: row.tags.join(", ") };
  for (const key of ["task", "expected", ...(sideRows.has(row.n) ? [] : ["answer", "failed"])]) if (row[key] !== undefined) found[key] = row[key];
  if (sideRows.has(row.n)) Object.assign(found, exportedSides(row));
  if (compared && compared.alone) return found;
  found.start = row.start === null ? null : row.cells[row.start].mean;
  found.end = row.end === null ? null : row.cells[row.end].mean;
  found.change = row.change === null ? null : Number(row.change.toFixed(4));
  for (const i of index.splits[row.split]) {
    const cell = row.cells[i] || { mean: null, n: 0, errors: 0 };
    const { label } = index.columns[i];
    Object.assign(found, { [label]: cell.mean, [`${label} rollouts`]: cell.n, [`${label} errors`]: cell.errors });
  }
  return found;
}

function csv(lines) {
  const quoted = (value) => (typeof value === "number" ? String(value) : value === null ? "" : `"${inert(value).replace(/"/g, '""')}"`);
  const heads = Object.keys(lines[0] || {});
  return "\ufeff" + [heads, ...lines.map((line) => heads.map((head) => line[head]))].map((line) => line.map(quoted).join(",")).join("\r\n") + "\r\n";
}

function jsonLines(lines) {
  return lines.map((line) => JSON.stringify(line) + "\n").join("");
}

function saveFile(name, type, text) {
  const link = make("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

function exportRows(kind) {
  const lines = map.shown.map(exported);
  const name = `scenarios-${state.split}-${index.run}`.replace(/[^\w.-]/g, "_");
  if (kind === "csv") saveFile(name + ".csv", "text/csv", csv(lines));
  else saveFile(name + ".jsonl", "application/jsonl", jsonLines(lines));
}
