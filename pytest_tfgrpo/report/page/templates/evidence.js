// Lessons and their evidence, and clusters of failures: links both ways, and filters of the scenarios.

const clusterRows = new Map(Object.entries(index.clusters).map(([key, places]) => [key, new Set(places)]));
const lessonRows = new Map(Object.entries(index.lessons).map(([id, lesson]) => [id, new Set(lesson[4])]));

/** Whether a scenario is in the chosen cluster of failures, and its prompt carries the chosen lesson. */
function hasEvidence(row, cluster, lesson) {
  return (!cluster || Boolean(clusterRows.get(cluster)?.has(row.n))) && (!lesson || Boolean(lessonRows.get(lesson)?.has(row.n)));
}

/** A lesson in a list: a link to its place in the library, where it has one. */
function lessonItem(id) {
  const known = index.lessons[id];
  const words = known ? `${known[0]}: ${known[2]}` : id;
  const there = document.getElementById(`lesson/${id}`);
  return make("li", {}, there ? make("a", { href: `#lesson/${encodeURIComponent(id)}` }, words) : words);
}

/** The clusters by reason that rollouts of a scenario are in, as links to all scenarios of each. */
function failuresLike(row) {
  const keys = [...clusterRows].filter(([key, places]) => key.startsWith("reason-") && places.has(row.n)).map(([key]) => key);
  const named = (key) => make("a", { href: `#scenarios?cluster=${encodeURIComponent(key)}` }, controls.cluster.querySelector(`option[value="${key}"]`).textContent);
  return keys.length ? make("details", { className: "alike" }, make("summary", {}, `Why it fails in the final sweep, and what fails alike (${whole(keys.length)})`), make("ul", {}, keys.map((key) => make("li", {}, named(key))))) : null;
}

/** The lessons that a group taught, those in the prompts of its scenario in the final sweep, and what fails alike. */
function evidenceView(row, column) {
  const list = (title, open, wanted) => {
    const ids = Object.entries(index.lessons).filter(wanted).map(([id]) => id);
    return ids.length ? make("details", { open, className: "lessons" }, make("summary", {}, `${title} (${whole(ids.length)})`), make("ul", {}, ids.map(lessonItem))) : null;
  };
  return [
    list("Lessons learned from these rollouts", true, ([, lesson]) => lesson[3].some(([n, place]) => n === row.n && place === column)),
    list("Lessons in its prompt in the final sweep", false, ([id]) => lessonRows.get(id).has(row.n)),
    failuresLike(row),
  ].filter(Boolean);
}

/** Show a lesson in the library. */
function openLesson(id) {
  const there = document.getElementById(`lesson/${id}`);
  if (!there) return;
  for (let parent = there.closest("details"); parent; parent = parent.parentElement.closest("details")) parent.open = true;
  there.tabIndex = -1;
  there.scrollIntoView({ block: "center" });
  there.focus({ preventScroll: true });
}
