// What two texts have in common, word by word.

const WORDS = /\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu;
const LINES = /[^\n]*\n|[^\n]+/g;
const MOST_STEPS = 4_000_000;

/** The parts of two texts, each with whether the other text has it too: words, or lines where there are too many words. */
function marked(left, right) {
  const byWord = agreeing(left.match(WORDS) || [], right.match(WORDS) || []);
  const sides = byWord || agreeing(left.match(LINES) || [], right.match(LINES) || [], true);
  return sides.map(({ units, same }) => {
    const parts = [];
    units.forEach((unit, i) => {
      if (parts.length && parts.at(-1).same === same[i]) parts.at(-1).text += unit;
      else parts.push({ text: unit, same: same[i] });
    });
    return parts;
  });
}

/** For each unit of two lists whether the other one has it too, in order; null where that takes too long, if not `anyway`. */
function agreeing(a, b, anyway = false) {
  let start = 0, end = 0;
  const most = Math.min(a.length, b.length);
  while (start < most && a[start] === b[start]) start++;
  while (end < most - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const middle = [a, b].map((units) => units.slice(start, units.length - end));
  if (!anyway && middle[0].length * middle[1].length > MOST_STEPS) return null;
  return common(...middle).map((same, side) => ({
    units: [a, b][side], same: [...new Array(start).fill(true), ...same, ...new Array(end).fill(true)],
  }));
}

/** For each unit of two lists whether it is in a long common subsequence: around units that each has once, in order. */
function anchored(a, b) {
  const kept = [a.map(() => false), b.map(() => false)];
  const once = (units) => {
    const places = new Map();
    units.forEach((unit, i) => places.set(unit, places.has(unit) ? -1 : i));
    return places;
  };
  const own = once(a), other = once(b), ends = [], chain = [];
  for (const [unit, i] of own) {
    const j = other.get(unit) ?? -1;
    if (i < 0 || j < 0) continue;
    let low = 0, high = ends.length;  // the longest ascending row of places that ends here
    while (low < high) {
      const middle = (low + high) >> 1;
      if (chain[ends[middle]].j < j) low = middle + 1; else high = middle;
    }
    ends[low] = chain.push({ i, j, before: low ? ends[low - 1] : -1 }) - 1;
  }
  for (let at = ends.at(-1) ?? -1; at >= 0; at = chain[at].before) {
    for (const step of [1, -1]) {
      let { i, j } = chain[at];
      if (step < 0) { i--; j--; }
      for (; i >= 0 && j >= 0 && i < a.length && j < b.length && a[i] === b[j] && !kept[0][i] && !kept[1][j]; i += step, j += step) kept[0][i] = kept[1][j] = true;
    }
  }
  return kept;
}

/** For each unit of two lists whether it is in their longest common subsequence, or in a long one where that takes too long. */
function common(a, b) {
  if (a.length * b.length > MOST_STEPS) return anchored(a, b);
  const kept = [a.map(() => false), b.map(() => false)];
  if (!a.length || !b.length) return kept;
  const wide = b.length + 1;
  const best = new Uint16Array((a.length + 1) * wide);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      best[i * wide + j] = a[i] === b[j] ? best[(i + 1) * wide + j + 1] + 1 : Math.max(best[(i + 1) * wide + j], best[i * wide + j + 1]);
    }
  }
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    if (a[i] === b[j]) kept[0][i++] = kept[1][j++] = true;
    else if (best[(i + 1) * wide + j] >= best[i * wide + j + 1]) i++;
    else j++;
  }
  return kept;
}
