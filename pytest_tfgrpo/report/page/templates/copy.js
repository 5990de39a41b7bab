// Commands and addresses that the reader can copy.

/** A word for a shell: as it is where that is safe, else in quotes. */
function shellWord(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replace(/'/g, `'"'"'`)}'`;
}

/** The command that runs a scenario again, by the agent of this run; null where there is none. */
function rerunCommand(row) {
  const checker = checkers.get(row.id);
  const file = row.source.replace(/:\d+$/, "");
  if (row.split === "dev" || (!checker && !file)) return null;
  const flags = [row.split === "train" && "--tfgrpo", index.actor && `--tfgrpo-actor=${index.actor}`];
  return ["pytest", ...flags.filter(Boolean), checker || `${file}::${row.id}`].map(shellWord).join(" ");
}

async function toClipboard(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = make("textarea", { value: text, readOnly: true, className: "hidden" });
    (document.querySelector("dialog[open]") || document.body).append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

/** A button that copies a text, and says so; the text is its title. */
function copyButton(name, text) {
  const button = make("button", { type: "button", className: "copy", title: visible(text), "aria-live": "polite" }, name);
  button.addEventListener("click", async () => {
    button.textContent = (await toClipboard(text)) ? "copied" : "cannot copy";
    button.focus();
    setTimeout(() => { button.textContent = name; }, 1500);
  });
  return button;
}

function linkTo(...parts) {
  return location.href.split("#")[0] + routeTo(...parts);
}
