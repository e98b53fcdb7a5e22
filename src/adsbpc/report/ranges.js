// Sums over any range of slots, and changes between two of them, with their intervals: the same
// arithmetic as report/ranges.py, from running totals and how far they are off together. A place is
// an index into the boundaries that the page knows; 0 is before the first slot.
const rangesOf = (measure, boundaries, reach) => {
  "use strict";
  const { totals, adjusted, weights, variances, stretches, cut } = measure;

  // Products of what every row's noise adds to two ranges; rows that are left out add nothing.
  const products = ([a, b], [c, d]) => {
    const weight = (place, row) => weights[place][row] ?? 0;
    return variances.map((_, row) => (weight(b, row) - weight(a, row)) * (weight(d, row) - weight(c, row)));
  };
  const summed = (own, noise, first, end) => {
    let sum = 0;
    for (let row = first; row < end; row += 1) {
      sum += own[row] * noise[row];
    }
    return sum;
  };
  // The covariance of two ranges, from the rows of each stretch; then of one sum.
  const known = new Map();
  const together = (one, other) => {
    const key = `${one} ${other}`;
    if (!known.has(key)) {
      const own = products(one, other);
      const ends = stretches.map((_, k) => stretches[k + 1]?.first ?? own.length);
      known.set(
        key,
        stretches.map(({ first }, k) => summed(own, variances, first, ends[k])),
      );
    }
    return known.get(key);
  };
  const ofSum = (parts, depth, index) =>
    parts.reduce((sum, part, k) => sum + part * (stretches[k].times[depth][index] ?? stretches[k].times[depth][0]), 0);
  const partOf = (depth, index) => (cut ? cut.parts[depth][index] : 0);

  // What is added to a range because it was cut, or may be missing from it: model/cut.py.
  const additions = new Map();
  const added = ([a, b]) => {
    const key = `${a} ${b}`;
    if (!additions.has(key)) {
      additions.set(key, addedTo([a, b]));
    }
    return additions.get(key);
  };
  const addedTo = ([a, b]) => {
    const found = { total: 0, variance: 0, missing: 0, slopes: [] };
    if (!cut) {
      return found;
    }
    const own = products([a, b], [a, b]);
    const noise = together([a, b], [a, b]).reduce((sum, part, k) => sum + part * stretches[k].together, 0);
    const slots = Math.max(boundaries[b] - boundaries[a], cut.at_least);
    const expected = cut.expected.map((each) => each * slots);
    cut.columns.forEach((column, k) => {
      const count = column.counts[b] - column.counts[a];
      const squared = summed(own, column.variances, 0, own.length);
      let trust = 0;
      if (cut.is_added && count > 0) {
        const harm = noise > 0 ? (squared * cut.squared) / noise : 0;
        const doubt = 2 * Math.log1p(cut.trembling * harm) * squared;
        trust = Math.max(0, 1 - (doubt / count ** 2) ** cut.power);
      }
      const slope = trust > 0 ? 2 * cut.power - (2 * cut.power - 1) * trust : 0;
      found.slopes.push(slope);
      found.total += trust * count;
      found.variance += slope ** 2 * squared;
      const room = trust + (1 - trust) * cut.hiding;
      const hidden = Math.max((1 - trust) * count + room * Math.sqrt(squared), 0);
      if (!expected.length || count > cut.shown * Math.sqrt(squared)) {
        found.missing += hidden;
      } else {
        const least = Math.min(expected[k], cut.hiding * Math.sqrt(squared));
        found.missing += Math.min(Math.max(hidden, least), cut.caution * expected[k]);
      }
    });
    found.missing += cut.caution * (expected.at(-1) ?? 0);
    return found;
  };
  const addedTogether = (one, other) => {
    const own = products(one, other);
    const [mine, theirs] = [added(one).slopes, added(other).slopes];
    return mine.reduce(
      (sum, slope, k) => sum + slope * theirs[k] * summed(own, cut.columns[k].variances, 0, own.length),
      0,
    );
  };

  // As it was released, before any adjustment.
  const released = (depth, index, span) => {
    const [a, b] = span;
    const series = totals[depth][index];
    const [part, more] = [partOf(depth, index), added(span)];
    const estimate = series[b] - series[a] + part * more.total;
    const apart = part * (1 - part) * more.total;
    const noise = ofSum(together(span, span), depth, index);
    const uneven = cut ? (cut.uneven * apart) ** 2 + Math.max(apart, 0) : 0;
    const error = Math.sqrt(Math.max(noise + part ** 2 * more.variance + uneven, 0));
    const ownCut = more.missing * part;
    const room = cut ? ownCut * (1 - cut.unsure * (1 - part)) : 0;
    const spread = reach.withRoom(room, error) * error;
    const low = estimate - spread;
    return { estimate, error, low, high: estimate + ownCut + spread, cut: ownCut, room, noisy: low <= 0 };
  };

  const cell = (depth, index, [a, b]) => {
    const found = released(depth, index, [a, b]);
    if (!adjusted) {
      return found;
    }
    const estimate = adjusted[depth][index][b] - adjusted[depth][index][a];
    const low = Math.min(Math.max(found.low, 0), estimate);
    return { ...found, estimate, low, high: Math.max(found.high, estimate), noisy: low <= 0 };
  };

  const change = (depth, index, after, before) => {
    const [x, y] = [released(depth, index, after), released(depth, index, before)];
    const both =
      ofSum(together(after, before), depth, index) + partOf(depth, index) ** 2 * addedTogether(after, before);
    const noise = reach.plain * Math.sqrt(Math.max(x.error ** 2 + y.error ** 2 - 2 * both, 0));
    const missing = reach.extremes.map(([ofX, ofY]) => ofX * x.cut - ofY * y.cut);
    const difference = x.estimate - y.estimate;
    const ends = y.estimate > 0 ? quotientEnds(x, y, both, reach) : null;
    return {
      difference,
      low: difference + Math.min(...missing) - noise,
      high: difference + Math.max(...missing) + noise,
      ratio: ends && { value: x.estimate / y.estimate, low: ends[0], high: ends[1] },
    };
  };

  return { cell, change };
};

// How many standard errors ends leave, if so much may be missing between them: report/reach.py. And
// which parts may be missing of two figures at once.
const reachOf = ({ reach: byRoom, reach_step: step, extremes }) => ({
  plain: byRoom[0],
  extremes,
  withRoom: (room, error) => {
    if (room <= 0) {
      return byRoom[0];
    }
    if (room >= error * step * (byRoom.length - 1)) {
      return byRoom.at(-1);
    }
    const place = room / error / step;
    const before = Math.floor(place);
    return byRoom[before] + (place - before) * (byRoom[before + 1] - byRoom[before]);
  },
});

// Of one figure by another, what is missing of either included, null if it cannot be told: as
// report/ratios.py has it. `extremes` are the parts missing above and below the line.
const quotientEnds = (over, under, covariance, { plain, extremes }) => {
  const found = extremes.map(([above, below]) =>
    fieller(
      over.estimate + above * over.cut,
      under.estimate + below * under.cut,
      over.error ** 2,
      under.error ** 2,
      covariance,
      plain,
    ),
  );
  if (found.includes(null)) {
    return null;
  }
  return [Math.min(...found.map(([low]) => low)), Math.max(...found.map(([, high]) => high))];
};

// The interval of x / y, null if y cannot be told from 0 (Fieller 1954).
const fieller = (x, y, varX, varY, covariance, reach) => {
  const square = reach ** 2;
  const a = y ** 2 - square * varY;
  if (a <= 0) {
    return null;
  }
  const b = x * y - square * covariance;
  const c = x ** 2 - square * varX;
  const root = Math.sqrt(Math.max(b ** 2 - a * c, 0));
  return [(b - root) / a, (b + root) / a];
};

// A share of the total, as report/standings.py has it; null where the total may be nothing.
// `squares` is the sum of all squared errors; without it the total counts people once, and is no sum.
const shareOf = (cell, total, squares, reach) => {
  if (total.noisy) {
    return null;
  }
  const share = cell.estimate / total.estimate;
  const all = total.error ** 2;
  const own = cell.error ** 2;
  const variance = Math.max(own + (share ** 2 - (squares ? (2 * share * own) / squares : 0)) * all, 0);
  const width = (reach.plain * Math.sqrt(variance)) / total.estimate;
  const [value, low, high] = [share, share - width, share + width].map((end) => Math.min(Math.max(end, 0), 1));
  return { value, low, high };
};

// A ratio of totals, as report/ratios.py has it; null where nothing is paid, `told` false where the
// denominator may be nothing.
const ratioOf = (over, under, reach) => {
  if (typeof over === "number") {
    const told = under.low > 0;
    return over > 0 ? { told, value: over / under.estimate, low: over / under.high, high: over / under.low } : null;
  }
  if (typeof under === "number") {
    return under > 0
      ? { told: true, value: over.estimate / under, low: over.low / under, high: over.high / under }
      : null;
  }
  const ends = quotientEnds(over, under, 0, reach);
  if (!ends || under.low <= 0) {
    return { told: false };
  }
  return { told: true, value: over.estimate / under.estimate, low: ends[0], high: ends[1] };
};
