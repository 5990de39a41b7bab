// What additional rewarders gave a rollout, and what they say of it.

function scoresTable(rollout, text) {
  const named = Object.entries(rollout.extra).filter(([name]) => name !== "judge" || !rollout.judge);
  if (!named.length) return null;
  const why = rollout.evidence || {};
  return dataTable("scores of rewarders", ["metric", "score", " reason"], named.map(([name, value]) =>
    [name, number(value), Object.hasOwn(why, name) ? text(why[name]) : ""]));
}
