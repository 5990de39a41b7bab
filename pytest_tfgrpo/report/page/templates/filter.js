// What of the scenario table is shown: its split, the filter, the columns; the address keeps all of it.

const controls = Object.fromEntries(["find", "domain", "tag", "status", "cluster", "lesson"].map((id) => [id, byId(id)]).filter(([, control]) => control));
const state = { split: "" };
let map = null;
let menu = null;

function matches() {
  const words = controls.find.value.toLowerCase().split(/\s+/).filter(Boolean);
  const { domain, tag, status, cluster, lesson } = controls;
  return rows.filter((row) => hasEvidence(row, cluster?.value, lesson?.value) && (!tag.value || row.tags.includes(tag.value)) && (!domain.value || row.domain === domain.value) &&
    (!status.value || STATUS[status.value](row)) && words.every((word) => haystack(row).includes(word)));
}

/** Show what matches; where the split at hand has nothing of it but another has, show that one. */
function filter() {
  const found = matches();
  const of = (split) => found.filter((row) => row.split === split);
  if (found.length && !of(state.split).length) setSplit(found[0].split);
  map.show(of(state.split));
  for (const button of byId("splits").children) {
    const split = button.dataset.split;
    button.setAttribute("aria-pressed", String(split === state.split));
    button.lastChild.textContent = whole(of(split).length);
  }
  const all = beyond ? beyond.splits[state.split] : rows.filter((row) => row.split === state.split).length;
  const shown = map.shown.length;
  byId("count").textContent = shown === all ? plural(all, "scenario") : `${whole(shown)} of ${plural(all, "scenario")}`;
}

function setSplit(split) {
  state.split = split;
  map.choose(menu.offer(columnsOf(split)));
  const order = byId("order");
  order.replaceChildren(...map.columns.map((column) => make("option", { value: column.key }, column.name)));
  if (compared && compared.alone) order.prepend(make("option", { value: "" }, "differences"));
  order.value = map.order.key;
}

/** Put the view into the address; what is usual is left out. */
function rememberFilter() {
  const chosen = new URLSearchParams(Object.entries(controls).filter(([, control]) => control.value).map(([name, control]) => [name, control.value]));
  if (state.split !== Object.keys(index.splits)[0]) chosen.set("split", state.split);
  if (menu.chosen) chosen.set("columns", menu.chosen.join(","));
  const query = chosen.toString();
  history.replaceState(null, "", "#scenarios" + (query ? "?" + query : ""));
}

/** Take the view from the address. */
function recallFilter(query) {
  for (const [name, control] of Object.entries(controls)) control.value = query.get(name) || "";
  menu.chosen = query.has("columns") ? query.get("columns").split(",") : null;
  const split = query.get("split");
  setSplit(Object.hasOwn(index.splits, split ?? "") ? split : state.split);
  lookFurther();
  filter();
  byId("scenarios").scrollIntoView();
}

function openScenarios() {
  if (!byId("map")) return;
  map = new ScenarioMap(byId("map"));
  menu = new ColumnMenu(byId("columns"), () => { setSplit(state.split); rememberFilter(); });
  byId("controls").hidden = false;
  for (const domain of index.domains) controls.domain.append(make("option", { value: domain }, domain));
  for (const tag of index.tags) controls.tag.append(make("option", { value: tag }, tag));
  controls.tag.parentElement.hidden = !index.tags.length;
  offerSides();
  for (const control of Object.values(controls)) control.addEventListener("input", () => { lookFurther(); filter(); rememberFilter(); });
  for (const split of compared && compared.alone ? [] : Object.keys(index.splits)) {
    const button = make("button", { type: "button", "data-split": split }, split, " ", make("span", { className: "soft" }));
    button.addEventListener("click", () => { setSplit(split); filter(); rememberFilter(); });
    byId("splits").append(button);
  }
  byId("save-csv").addEventListener("click", () => exportRows("csv"));
  byId("save-jsonl").addEventListener("click", () => exportRows("jsonl"));
  byId("order").addEventListener("input", () => map.sort(byId("order").value));
  byId("map").addEventListener("sorted", () => { byId("order").value = map.order.key; });
  if (compared) map.order = { key: compared.alone ? "" : "change-1", down: false };
  setSplit(Object.keys(index.splits)[0]);
  filter();
  noteLeftOut();
  const { frames = 0, group = 0 } = served || (compared && compared.alone) ? {} : index.left_out;
  if (frames) byId("notes").append(make("li", {}, `To keep this page small, it leaves out the steps of ${plural(frames, "rollout")}, starting with those that are neither best nor worst of an informative group. tfgrpo show ID prints them.`));
  if (group) byId("notes").append(make("li", {}, `It shows only the numbers of ${plural(group, "group")}. tfgrpo show ID prints their rollouts.`));
  readWords().then((there) => { if (there) filter(); });
}
