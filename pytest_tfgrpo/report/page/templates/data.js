// The data of the page: an index that is read at once, and chunks that are unpacked when somebody looks.

const index = JSON.parse(document.getElementById("index").textContent);
const flaky = new Set(index.flaky);
/** Tags and checkers by the id of a scenario, which may be "constructor". */
const tagged = new Map(Object.entries(index.tagged)), checkers = new Map(Object.entries(index.checkers));
const rows = [], rowOf = new Map();

function addRow([id, domain, split, source, start, end, ...cells]) {
  const row = {
    n: rows.length, id, domain: index.domains[domain], split, source, start, end, change: null, rollout: -1,
    tags: (tagged.get(id) || []).map((n) => index.tags[n]),
    cells: cells.map((cell) => cell && { mean: cell[0], n: cell[1], errors: cell[2], solved: cell[3], chunk: cell[4] }),
  };
  const before = start === null ? null : row.cells[start];
  const after = end === null ? null : row.cells[end];
  if (before && after && before.mean !== null && after.mean !== null) row.change = after.mean - before.mean;
  rows.push(row);
  rowOf.set(id, row);
}

index.rows.forEach(addRow);

/** Give each row its words: the task, what is expected, an answer, what failed. Returns whether there are any. */
async function readWords() {
  const packed = byId("words");
  if (!packed) return false;
  for (const [key, values] of Object.entries(await unpack(packed.textContent))) values.forEach((value, n) => { rows[n][key] = value; });
  return true;
}

/** The text in which a search looks. */
function haystack(row) {
  return [row.id, row.domain, ...row.tags, row.task, row.expected, row.answer, row.failed, ...sides.map(({ at }) => row[`answer-${at}`])].filter(Boolean).join("\n").toLowerCase();
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
    const last = row.end === null ? null : row.cells[row.end];
    return Boolean(last) && !(last.mean >= 1);
  },
};

const unpacked = new Map();
const whenParsed = new Promise((resolve) => {
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", resolve);
  else resolve();
});

/** Return a promise of the content of a chunk. */
function chunk(n) {
  if (!unpacked.has(n)) unpacked.set(n, whenParsed.then(() => unpack(byId(`chunk-${n}`).textContent)));
  return unpacked.get(n);
}

/** The bytes of a text in base64; the browser's own way takes a hundredth of the time, where there is one. */
function bytesOf(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
  const binary = atob(base64), bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

function unpack(base64) {
  return gunzip(bytesOf(base64));
}

async function gunzip(bytes) {
  if (!("DecompressionStream" in window)) throw new Error("this browser cannot unpack the trajectories");
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

/** Return a promise of a group with the task it is about, texts still as numbers into `texts`; null: left out. */
async function groupIn(n, place) {
  if (n < 0) return null;
  return groupOf(await chunk(n), place);
}

function groupOf(part, place) {
  const group = part.groups[place];
  return { ...group, task: part.scenarios[group.scenario], text: (n) => part.texts[n] };
}

async function groupAt(row, column) {
  const cell = row.cells[column];
  const place = `${row.n}.${column}`;
  const group = !cell ? null : served ? groupOf(await groupsAround(row.n), place) : await groupIn(cell.chunk, place);
  return group && { ...group, row, column };
}
