// The page: filter, routes, keys, theme and print.

const byId = (id) => document.getElementById(id);
const detail = byId("detail"), help = byId("help");
const controls = { find: byId("find"), domain: byId("domain"), split: byId("split"), status: byId("status") };
let map = null;
let opened = 0;

function filter() {
  const words = controls.find.value.toLowerCase().split(/\s+/).filter(Boolean);
  const { domain, split, status } = controls;
  const found = rows.filter((row) =>
    (!domain.value || row.domain === domain.value) && (!split.value || row.split === split.value) && (!status.value || STATUS[status.value](row)) &&
    words.every((word) => row.id.toLowerCase().includes(word) || row.domain.toLowerCase().includes(word)));
  map.show(found);
  byId("count").textContent = found.length === rows.length ? plural(rows.length, "scenario") : `${whole(found.length)} of ${plural(rows.length, "scenario")}`;
}

function rememberFilter() {
  const chosen = new URLSearchParams(Object.entries(controls).filter(([, control]) => control.value).map(([name, control]) => [name, control.value]));
  const query = chosen.toString();
  history.replaceState(null, "", "#scenarios" + (query ? "?" + query : ""));
}

function openScenarios() {
  if (!byId("map")) return;
  map = new ScenarioMap(byId("map"));
  byId("controls").hidden = false;
  byId("plain").classList.add("replaced");
  for (const domain of index.domains) controls.domain.append(make("option", { value: domain }, domain));
  for (const split of new Set(rows.map((row) => row.split))) controls.split.append(make("option", { value: split }, split));
  for (const control of Object.values(controls)) control.addEventListener("input", () => { filter(); rememberFilter(); });
  if (rows.some((row) => row.change !== null)) map.sort("change");
  filter();
  const { frames = 0, group = 0 } = index.left_out;
  if (frames) byId("notes").append(make("li", {}, `To keep this page small, it leaves out the steps of ${plural(frames, "rollout")}, starting with those that are neither best nor worst of an informative group. tfgrpo show ID prints them.`));
  if (group) byId("notes").append(make("li", {}, `It shows only the numbers of ${plural(group, "group")}. tfgrpo show ID prints their rollouts.`));
}

function parse(hash) {
  const [path, query = ""] = hash.slice(1).split("?");
  try {
    return { parts: path.split("/").map(decodeURIComponent), query: new URLSearchParams(query) };
  } catch {
    return { parts: [""], query: new URLSearchParams() };
  }
}

function route() {
  const { parts, query } = parse(location.hash);
  if (parts[0] === "scenario" && rowOf.has(parts[1])) return openScenario(rowOf.get(parts[1]), parts[2], parts[3]);
  if (detail.open) detail.close();
  if (parts[0] === "scenarios" && map && [...query].length) {
    for (const [name, control] of Object.entries(controls)) control.value = query.get(name) || "";
    filter();
  }
}

/** Where no sweep or epoch is named: the last one in which rollouts differ, else the last. */
function telling(row) {
  const columns = row.cells.map((cell, i) => (cell ? i : -1)).filter((i) => i >= 0);
  return columns.findLast((i) => isMixed(row.cells[i])) ?? columns.at(-1);
}

async function openScenario(row, label, rollout) {
  const turn = ++opened;
  const column = label === undefined ? telling(row) : index.columns.findIndex((one) => one.label === label);
  const cell = row.cells[column];
  const at = map ? map.shown.indexOf(row) : -1;
  const step = (by, text, key) => {
    const other = at >= 0 ? map.shown[at + by] : undefined;
    return make("a", { className: "button", href: other ? routeTo(other.id, ...(label === undefined || !other.cells[column] ? [] : [label])) : null, "aria-disabled": other ? null : "true", "data-step": key, title: `key ${key}` }, text);
  };
  const close = make("button", { type: "button", title: "Escape" }, "Close");
  close.addEventListener("click", leave);
  const tabs = make("ul", { className: "tabs" }, row.cells.map((one, i) => one && make("li", {},
    make("a", { href: routeTo(row.id, index.columns[i].label), "aria-current": i === column ? "true" : null, className: one.mean === null ? "none" : `h${Math.round(one.mean * 10)}` },
      `${index.columns[i].label} ${number(one.mean, 2)}`, one.errors ? ` ${one.errors} err` : ""))).filter(Boolean));
  const body = make("div", { className: "body" }, make("p", { className: "soft" }, "unpacking ..."));
  detail.replaceChildren(
    make("div", { className: "title" }, make("h2", { id: "detail-head", tabIndex: -1 }, row.id), make("div", { className: "buttons" }, step(-1, "Previous", "["), " ", step(1, "Next", "]"), " ", close)),
    make("p", { className: "soft" }, `${row.domain}, ${row.split}, ${row.source}` + (row.change === null ? "" : `, change ${signed(row.change)}`)),
    make("nav", { "aria-label": "sweeps and epochs" }, tabs), body);
  detail.dataset.row = row.id;
  detail.dataset.column = String(column);
  if (!detail.open) detail.showModal();
  detail.scrollTop = 0;
  byId("detail-head").focus({ preventScroll: true });
  try {
    const group = cell ? await groupAt(row, column) : null;
    if (turn !== opened) return;
    if (group) body.replaceChildren(...groupView(group, rollout));
    else body.replaceChildren(absent(row, column));
    const wanted = rollout !== undefined && body.querySelector(`details[id="r${CSS.escape(rollout)}"]`);
    if (wanted) wanted.scrollIntoView({ block: "start" });
  } catch (error) {
    body.replaceChildren(make("p", { className: "bad", role: "alert" }, `These rollouts cannot be shown: ${error.message}`));
  }
}

/** What stands for a group whose rollouts are not in the page. */
function absent(row, column) {
  const cell = row.cells[column];
  if (!cell) return make("p", {}, "It did not run in this sweep or epoch.");
  const [, epoch = "0", sweep] = /^epoch(\d+)(?:-dev(\d+))?/.exec(index.columns[column].label) || [];
  const id = `${index.run}.e${epoch}${sweep ? `d${sweep}` : ""}.${row.id}.r0`;
  return make("p", {}, `Mean ${number(cell.mean)} over ${plural(cell.n, "rollout")}, ${plural(cell.errors, "error")}. This page does not contain the rollouts; show them one by one: `, make("code", {}, `tfgrpo show ${id}`));
}

/** Close the open scenario, and stay where the reader was. */
function leave() {
  history.pushState(null, "", "#scenarios");
  const { row, column } = detail.dataset;
  detail.close();
  if (map) map.focusOn(row, Number(column));
}

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  byId("theme").setAttribute("aria-pressed", String(isDark()));
}

function toggleTheme() {
  const theme = isDark() ? "light" : "dark";
  setTheme(theme);
  try { localStorage.setItem("tfgrpo-theme", theme); } catch { /* a page from a mail may not store anything */ }
}

function storedTheme() {
  try { return localStorage.getItem("tfgrpo-theme"); } catch { return null; }
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select, textarea")) return;
  const actions = {
    "/": () => { if (map && !detail.open) { byId("scenarios").scrollIntoView(); controls.find.focus(); } },
    "?": () => { if (!help.open) help.showModal(); },
    t: toggleTheme,
    "[": () => detail.open && detail.querySelector('[data-step="["]').click(),
    "]": () => detail.open && detail.querySelector('[data-step="]"]').click(),
  };
  if (!Object.hasOwn(actions, event.key)) return;
  event.preventDefault();
  actions[event.key]();
});

const openedForPrint = [];
addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("main details:not([open])")) { details.open = true; openedForPrint.push(details); }
});
addEventListener("afterprint", () => { for (const details of openedForPrint.splice(0)) details.open = false; });

detail.addEventListener("cancel", (event) => { event.preventDefault(); leave(); });
byId("buttons").hidden = false;
byId("theme").addEventListener("click", toggleTheme);
byId("print").addEventListener("click", () => print());
byId("help-open").addEventListener("click", () => help.showModal());
byId("help-close").addEventListener("click", () => help.close());
setTheme(storedTheme());
document.querySelectorAll("table.sortable").forEach(sortable);
openScenarios();
addEventListener("hashchange", route);
route();
