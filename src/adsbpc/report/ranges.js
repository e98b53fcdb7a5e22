// Sums over any range of slots, and changes between two of them, with their intervals: the same
// arithmetic as report/ranges.py, from running totals and how far they are off together. A place is
// an index into the boundaries that the page knows; 0 is before the first slot.
const rangesOf = (measure, reach) => {
  "use strict";
  const { totals, adjusted, views, noise, cut, cut_noise: cutNoise, uneven } = measure;

  const entry = (matrix, i, j) => (!matrix || !i || !j ? 0 : matrix[Math.max(i, j) - 1][Math.min(i, j) - 1]);
  const together = (matrix, [a, b], [c, d]) =>
    entry(matrix, b, d) - entry(matrix, b, c) - entry(matrix, a, d) + entry(matrix, a, c);
  const variance = (matrix, span) => Math.max(together(matrix, span, span), 0);

  // What was cut is spread over sums by what was released of them so far.
  const wholes = new Map();
  const shareOfCut = (depth, index, place) => {
    const key = `${depth} ${place}`;
    if (!wholes.has(key)) {
      wholes.set(key, totals[depth].reduce((sum, series) => sum + Math.max(series[place], 0), 0));
    }
    const whole = wholes.get(key);
    return whole ? Math.max(totals[depth][index][place], 0) / whole : 1 / totals[depth].length;
  };

  // As it was released, before any adjustment.
  const released = (depth, index, [a, b]) => {
    const series = totals[depth][index];
    const share = shareOfCut(depth, index, b);
    const allCut = Math.max(cut[b] - cut[a], 0);
    const estimate = series[b] - series[a];
    const error = Math.sqrt(variance(noise, [a, b]) * views[depth]);
    const ownCut = allCut * share;
    const cutError = Math.hypot(Math.sqrt(variance(cutNoise, [a, b])), uneven * allCut) * share;
    const low = estimate - reach * error;
    const high = estimate + ownCut + reach * Math.hypot(error, cutError);
    return { estimate, error, low, high, cut: ownCut, cutError, noisy: low <= 0 };
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
    const [own, other, both] = [
      [after, after],
      [before, before],
      [after, before],
    ].map(([one, two]) => together(noise, one, two) * views[depth]);
    const spread = Math.max(own + other - 2 * both, 0);
    const difference = x.estimate - y.estimate;
    const lowest = fieller(x.estimate, y.estimate + y.cut, own, other + y.cutError ** 2, both, reach);
    const highest = fieller(x.estimate + x.cut, y.estimate, own + x.cutError ** 2, other, both, reach);
    const told = lowest && highest && y.estimate > 0;
    return {
      difference,
      low: difference - y.cut - reach * Math.sqrt(spread + y.cutError ** 2),
      high: difference + x.cut + reach * Math.sqrt(spread + x.cutError ** 2),
      ratio: told ? { value: x.estimate / y.estimate, low: lowest[0], high: highest[1] } : null,
    };
  };

  return { cell, change };
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
// Without `count` the total counts people once, and is no sum.
const shareOf = (cell, total, count, reach) => {
  if (total.noisy) {
    return null;
  }
  const share = cell.estimate / total.estimate;
  const all = total.error ** 2;
  const variance = Math.max(cell.error ** 2 + (share ** 2 - (count ? (2 * share) / count : 0)) * all, 0);
  const width = (reach * Math.sqrt(variance)) / total.estimate;
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
  const [varX, varY] = [over.error ** 2, under.error ** 2];
  const smallest = fieller(over.estimate, under.estimate + under.cut, varX, varY + under.cutError ** 2, 0, reach);
  const largest = fieller(over.estimate + over.cut, under.estimate, varX + over.cutError ** 2, varY, 0, reach);
  if (!smallest || !largest || under.low <= 0) {
    return { told: false };
  }
  return { told: true, value: over.estimate / under.estimate, low: smallest[0], high: largest[1] };
};
