// The data of the page: an index that is read at once, and chunks that are unpacked when somebody looks.

const index = JSON.parse(document.getElementById("index").textContent);
const flaky = new Set(index.flaky);
const rows = index.rows.map(([id, domain, split, source, ...cells], n) => ({
  n, id, domain: index.domains[domain], split, source, change: null,
  cells: cells.map((cell) => cell && { mean: cell[0], n: cell[1], errors: cell[2], solved: cell[3], chunk: cell[4] }),
}));
const rowOf = new Map(rows.map((row) => [row.id, row]));

for (const row of rows) {
  const before = index.first === null ? 0 : row.cells[index.first];
  const after = index.last === null ? 0 : row.cells[index.last];
  if (before && after && before.mean !== null && after.mean !== null) row.change = after.mean - before.mean;
}

/** Whether rollouts of one group differ: some solved it, others did not. */
function isMixed(cell) {
  return Boolean(cell) && cell.solved !== null && cell.solved > 0 && cell.solved < cell.n;
}

/** The report's own list where it has one; else both outcomes in a sweep, at eval temperature. */
function isFlaky(row) {
  if (flaky.size) return flaky.has(row.id);
  return row.cells.some((cell, i) => index.columns[i].mode !== "train" && isMixed(cell));
}

const STATUS = {
  lost: (row) => row.change !== null && row.change < -1e-9,
  gained: (row) => row.change !== null && row.change > 1e-9,
  errors: (row) => row.cells.some((cell) => cell && cell.errors),
  flaky: isFlaky,
  mixed: (row) => row.cells.some(isMixed),
  unsolved: (row) => {
    const last = row.cells.findLast((cell) => cell);
    return Boolean(last) && !(last.mean >= 1);
  },
};

const unpacked = new Map();

/** Return a promise of the content of a chunk. */
function chunk(n) {
  if (!unpacked.has(n)) unpacked.set(n, unpack(document.getElementById(`chunk-${n}`).textContent));
  return unpacked.get(n);
}

async function unpack(base64) {
  if (!("DecompressionStream" in window)) throw new Error("this browser cannot unpack the trajectories");
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

/** Return a promise of a group with the task it is about, texts still as numbers into `texts`; null: left out. */
async function groupAt(row, column) {
  const cell = row.cells[column];
  if (!cell || cell.chunk < 0) return null;
  const part = await chunk(cell.chunk);
  const group = part.groups[`${row.n}.${column}`];
  return { ...group, task: part.scenarios[group.scenario], text: (n) => part.texts[n] };
}
