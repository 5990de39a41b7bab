// Of a large run the page holds some scenarios; all others, and all rollouts, come from `tfgrpo view`.

const beyond = index.beyond || null;
const served = Boolean(beyond && beyond.key) && location.protocol === "http:";
const AT_ONCE = 4, REMEMBERED = 4;
const parts = new Map();
let loading = null;

/** Whether there are scenarios that the page does not have. */
function isPartial() {
  return Boolean(beyond) && rows.length < beyond.rows;
}

/** What the view has of a kind, for the row `n`. */
async function detailsOf(kind, n) {
  const answer = await fetch(`details/${beyond.key}/${kind}/${n}`).catch(() => null);
  if (!answer) throw new Error(`the view does not answer; start it again: ${beyond.command}`);
  if (!answer.ok) throw new Error(`the view has another version of this page; load the page again`);
  return gunzip(await answer.arrayBuffer());
}

/** The groups of a row and its neighbours; the last few stay at hand. */
function groupsAround(n) {
  if (!parts.has(n)) {
    const coming = detailsOf("groups", n);
    parts.set(n, coming);
    coming.catch(() => parts.delete(n));
    if (parts.size > REMEMBERED) parts.delete(parts.keys().next().value);
  }
  return parts.get(n);
}

function sayBeyond(text) {
  byId("beyond-state").textContent = text;
}

/** Load all scenarios, once; they stand after those of the page. */
function loadAll() {
  if (!loading) loading = loadRows().catch((error) => { loading = null; sayBeyond(`Not all scenarios are here: ${error.message}.`); });
  return loading;
}

async function loadRows() {
  byId("load-all").disabled = true;
  try {
    while (isPartial()) {
      sayBeyond(`Loading: ${whole(rows.length)} of ${plural(beyond.rows, "scenario")} are here.`);
      const starts = Array.from({ length: AT_ONCE }, (_, i) => rows.length + i * beyond.shard).filter((n) => n < beyond.rows);
      const before = rows.length;
      for (const part of await Promise.all(starts.map((n) => detailsOf("rows", n)))) take(part);
      if (rows.length === before) throw new Error("the view sends other scenarios; load the page again");
    }
    byId("beyond").hidden = true;
  } finally {
    byId("load-all").disabled = false;
  }
  setSplit(state.split);
  filter();
  places.clear();
  if (marks.size) countMarks();
}

/** Add the rows of a part that are not there yet, with what belongs to them. */
function take(part) {
  for (const [id, places] of Object.entries(part.tagged)) tagged.set(id, places);
  part.rows.forEach((record, i) => {
    if (part.start + i !== rows.length) return;
    addRow(record);
    for (const [key, values] of Object.entries(part.words)) rows.at(-1)[key] = values[i];
  });
  for (const id of part.flaky) flaky.add(id);
  for (const [id, checker] of Object.entries(part.checkers)) checkers.set(id, checker);
  for (const [id, groups] of Object.entries(part.taught)) index.lessons[id]?.[3].push(...groups.filter(([n]) => n >= index.rows.length));
  for (const [known, found] of [[clusterRows, part.clusters], [lessonRows, part.lessons]]) {
    for (const [key, places] of Object.entries(found)) for (const n of places) known.get(key)?.add(n);
  }
}

/** Load all scenarios where that can be, as somebody looks for one; returns whether they are on their way. */
function lookFurther() {
  if (!served || !isPartial()) return false;
  loadAll();
  return true;
}

function openBeyond() {
  if (!beyond || !byId("beyond")) return;
  byId("load-all").addEventListener("click", loadAll);
  byId("load-all").hidden = byId("beyond-here").hidden = !served;
  byId("beyond-elsewhere").hidden = served;
}
