// The page: routes, keys, theme and print.

const detail = byId("detail"), help = byId("help");
let opened = 0;

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
  if (parts[0] === "scenario" && isPartial()) return seek(parts[1]);
  if (detail.open) detail.close();
  if (parts[0] === "lesson") return openLesson(parts[1]);
  byId(parts[0])?.querySelectorAll("details.long").forEach((details) => { details.open = true; });
  if (parts[0] === "scenarios" && map && [...query].length) recallFilter(query);
}

/** Open a scenario that the page does not have: where it is served once all are here. */
function seek(id) {
  if (detail.open) detail.close();
  byId("beyond").scrollIntoView();
  if (served) loadAll().then(() => { if (!isPartial()) route(); });
  else sayBeyond(`The scenario ${id} is not on this page.`);
}

/** Where no sweep or epoch is named: the final sweep where another run has it too, else the last one in which rollouts differ, else the last. */
function telling(row) {
  if (sideRows.has(row.n)) return index.last;
  const columns = row.cells.map((cell, i) => (cell ? i : -1)).filter((i) => i >= 0);
  return columns.findLast((i) => isMixed(row.cells[i])) ?? columns.at(-1);
}

async function openScenario(row, label, rollout) {
  const turn = ++opened;
  const column = label === undefined ? telling(row) : index.columns.findIndex((one) => one.label === label);
  const own = groupAt(row, column), coming = Promise.all([own, sidesView(row, column, own)]);  // unpacked while the dialog opens
  if (map && row.split !== state.split) { setSplit(row.split); filter(); }
  const at = map ? map.shown.indexOf(row) : -1;
  const step = (by, text, key) => {
    const other = at >= 0 ? map.shown[at + by] : undefined;
    return make("a", { className: "button", href: other ? routeTo(other.id, ...(label === undefined || !other.cells[column] ? [] : [label])) : null, "aria-disabled": other ? null : "true", "data-step": key, title: `key ${key}` }, text);
  };
  const close = make("button", { type: "button", title: "Escape" }, "Close");
  close.addEventListener("click", leave);
  const paper = make("button", { type: "button" }, "Print");
  paper.addEventListener("click", () => print());
  const tabs = make("ul", { className: "tabs" }, row.cells.map((one, i) => one && make("li", {},
    make("a", { href: routeTo(row.id, index.columns[i].label), "aria-current": i === column ? "true" : null, className: one.mean === null ? "none" : `h${Math.round(one.mean * 10)}` },
      `${index.columns[i].name} ${number(one.mean, 2)}`, one.errors ? ` ${one.errors} err` : ""))).filter(Boolean));
  const body = make("div", { className: "body" }, make("p", { className: "soft" }, "unpacking ..."));
  detail.replaceChildren(
    make("div", { className: "title" }, make("h2", { id: "detail-head", tabIndex: -1 }, row.id), make("div", { className: "buttons" }, step(-1, "Previous", "["), " ", step(1, "Next", "]"), " ", paper, " ", close)),
    make("p", { className: "soft" }, `${row.domain}, ${row.split} split, ${row.source}` + (row.tags.length ? `, tagged ${row.tags.join(" ")}` : "") + changeSaid(row)),
    make("p", { className: "copies" }, copiesOf(row, label === undefined ? [] : [label])),
    compared && compared.alone ? "" : make("nav", { "aria-label": "sweeps and epochs" }, tabs), body);
  detail.dataset.row = row.id;
  detail.dataset.column = String(column);
  if (!detail.open) detail.showModal();
  detail.scrollTop = 0;
  byId("detail-head").focus({ preventScroll: true });
  try {
    const [group, beside] = await coming;
    if (turn !== opened) return;
    if (compared && compared.alone) return body.replaceChildren(...aloneView(row, beside));
    if (group) body.replaceChildren(...groupView(group, rollout));
    else body.replaceChildren(absent(row, column));
    if (beside) body.firstElementChild.after(beside.view);
    body.firstElementChild.after(...evidenceView(row, column));
    const wanted = rollout !== undefined && body.querySelector(`details[id="r${CSS.escape(rollout)}"]`);
    if (wanted) wanted.scrollIntoView({ block: "start" });
  } catch (error) {
    body.replaceChildren(make("p", { className: "bad", role: "alert" }, `These rollouts cannot be shown: ${error.message}`));
  }
}

/** Buttons that copy what leads back to a scenario: the command that runs it again, and its address. */
function copiesOf(row, place) {
  const command = rerunCommand(row);
  const alone = row.split === "dev" ? make("span", { className: "soft" }, "A dev scenario runs only with the train scenarios that it validates.") : "";
  return [command === null ? alone : copyButton("copy pytest", command), copyButton("copy link", linkTo(row.id, ...place))];
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
  if (map) rememberFilter();
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
  const closed = `${detail.open ? "#detail" : "main"} details:not([open], .menu)`;
  for (const details of document.querySelectorAll(closed)) {
    details.open = true;
    details.dispatchEvent(new Event("toggle"));
    openedForPrint.push(details);
  }
  if (detail.open) openedForPrint.push(...unfoldSteps(detail));
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
openBeyond();
openScenarios();
addEventListener("hashchange", route);
route();
