// Shows a view: choices above, figures, and the table with its levels. All texts are set as text,
// because names may hold anything.
const explorerOf = (explorer) => {
  "use strict";
  const { boundaries, measures } = explorer;
  const reach = reachOf(explorer);
  const ranges = measures.map((measure) => rangesOf(measure, boundaries, reach));
  const address = viewIn(explorer);
  const places = boundaries.length - 1;
  const byId = (id) => document.getElementById(id);

  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    Object.entries(attributes).forEach(([name, value]) => element.setAttribute(name, value));
    element.append(...children);
    return element;
  };

  // Numbers as report/numbers.py writes them.
  const amount = (value, decimals) => {
    const text = value.toLocaleString("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
    return (Number(value.toFixed(decimals)) === 0 ? text.replace("-", "") : text).replace("-", "\u2212");
  };
  const decimalsOf = (metric, error) => {
    if (metric === "value") {
      return error < 10 ? 2 : 0;
    }
    return error > 0 ? Math.min(Math.max(-Math.floor(Math.log10(error)), 0), 2) : 0;
  };
  const between = (low, high, decimals) => `${amount(low, decimals)} to ${amount(high, decimals)}`;
  const percent = (share, digits = 0) => `${(100 * share).toFixed(digits)}%`;
  const signed = (value, decimals) => (value > 0 ? `+${amount(value, decimals)}` : amount(value, decimals));
  const signedPercent = (ratio) => `${signed(100 * (ratio - 1), 0)}%`;

  const slots = ([a, b]) => boundaries[b] - boundaries[a];
  const counted = (span) => `${slots(span)} ${explorer.word}${slots(span) === 1 ? "" : "s"}`;
  const dates = ([a, b]) =>
    explorer.first[a] === explorer.last[b - 1] ? explorer.first[a] : `${explorer.first[a]} to ${explorer.last[b - 1]}`;

  const total = (measure, span) => ranges[measure].cell(0, 0, span);
  const paid = ([a, b]) => explorer.spend[b] - explorer.spend[a];

  // Of a ratio with spend only the other part is noisy, so that its change is that part's.
  const changeOfRatio = ({ over, under }, { after, before }) => {
    if ((over !== "spend" && under !== "spend") || measures[over === "spend" ? under : over].once) {
      return null;
    }
    const times = paid(after) / paid(before);
    const found =
      over === "spend"
        ? ranges[under].change(0, 0, before, after).ratio
        : ranges[over].change(0, 0, after, before).ratio;
    if (!found || !Number.isFinite(times) || times <= 0) {
      return null;
    }
    const factor = over === "spend" ? times : 1 / times;
    return { value: factor * found.value, low: factor * found.low, high: factor * found.high };
  };

  const figuresOf = (view) => {
    const against = address.compared(view);
    const found = measures.map((measure, place) => {
      const cell = total(place, view.range);
      const decimals = decimalsOf(measure.metric, cell.error);
      const change = against && ranges[place].change(0, 0, against.after, against.before);
      return {
        label: measure.label,
        value: amount(cell.estimate, decimals),
        interval: between(cell.low, cell.high, decimals),
        change: change && (change.ratio ?? { difference: change, decimals }),
      };
    });
    explorer.ratios.forEach((each) => {
      // Who was counted before is in no later range, so that it divides nothing.
      if (view.range[0] > 0 && [each.over, each.under].some((which) => measures[which]?.once)) {
        return;
      }
      const part = (which) => (which === "spend" ? each.times * paid(view.range) : total(which, view.range));
      const ratio = ratioOf(part(each.over), part(each.under), reach);
      if (ratio) {
        found.push({
          label: each.name,
          value: ratio.told ? amount(ratio.value, 2) : "cannot be told",
          interval: ratio.told ? between(ratio.low, ratio.high, 2) : "yet",
          change: against && changeOfRatio(each, against),
        });
      }
    });
    return found;
  };

  const changeText = (change) =>
    change.difference
      ? `${signed(change.difference.difference, change.decimals)} (${signed(change.difference.low, change.decimals)} to ${signed(change.difference.high, change.decimals)})`
      : `${signedPercent(change.value)} (${signedPercent(change.low)} to ${signedPercent(change.high)})`;

  const showFigures = (view) => {
    const against = address.compared(view);
    byId("figures").replaceChildren(
      ...figuresOf(view).map((each) =>
        make(
          "div",
          {},
          make("dt", {}, each.label),
          make(
            "dd",
            {},
            `${each.value} `,
            make("small", {}, each.interval),
            ...(each.change ? [make("small", { class: "change" }, changeText(each.change))] : []),
          ),
        ),
      ),
    );
    byId("headline-title").textContent =
      view.range[0] === 0 && view.range[1] === places ? "So far" : dates(view.range);
    byId("compared").textContent = against
      ? ` Changes: ${dates(against.after)} against ${dates(against.before)}.`
      : "";
  };

  // Rows: first levels first, each with what is below it where that is open or searched for.
  const nameOf = (measure, depth, index) => measure.values[depth - 1][index % measure.values[depth - 1].length];
  const children = (measure, depth, index) => {
    const count = depth < measure.levels.length ? measure.values[depth].length : 0;
    return Array.from({ length: count }, (_, k) => index * count + k);
  };
  const pathOf = (measure, depth, index) =>
    depth === 0
      ? []
      : [...pathOf(measure, depth - 1, Math.floor(index / measure.values[depth - 1].length)), nameOf(measure, depth, index)];
  const keyOf = (measure, depth, index) => JSON.stringify(pathOf(measure, depth, index));
  const matches = (measure, depth, index, words) =>
    !words ||
    nameOf(measure, depth, index).toLowerCase().includes(words) ||
    children(measure, depth, index).some((child) => matches(measure, depth + 1, child, words));

  const line = (depth, index, view) => {
    const [a, b] = view.range;
    const step = Math.max(1, Math.ceil((b - a) / 60));
    const values = [];
    for (let place = b; place - step >= a; place -= step) {
      values.unshift(ranges[view.measure].cell(depth, index, [place - step, place]).estimate);
    }
    const [low, high] = [Math.min(0, ...values), Math.max(...values, 1e-9)];
    const points = values.map(
      (value, k) => `${((100 * (k + 0.5)) / values.length).toFixed(1)},${(20 - (18 * (value - low)) / (high - low)).toFixed(1)}`,
    );
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const drawn = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
    Object.entries({ viewBox: "0 0 100 22", class: "line", "aria-hidden": "true", preserveAspectRatio: "none" }).forEach(
      ([name, value]) => svg.setAttribute(name, value),
    );
    drawn.setAttribute("points", points.join(" "));
    svg.append(drawn);
    return svg;
  };

  const showTable = (view, change) => {
    const measure = measures[view.measure];
    const of = ranges[view.measure];
    const against = address.compared(view);
    const whole = of.cell(0, 0, view.range);
    const decimals = decimalsOf(measure.metric, measure.totals.length > 1 ? of.cell(1, 0, view.range).error : whole.error);
    const words = view.search.trim().toLowerCase();
    const squares = measure.once
      ? 0
      : measure.totals[1].reduce((sum, _, index) => sum + of.cell(1, index, view.range).error ** 2, 0);

    // What was paid beside the measure, where there is such a ratio and the range may be divided.
    const ratio = explorer.ratios.find(
      ({ over, under }) => [over, under].includes("spend") && [over, under].includes(view.measure),
    );
    const divides = ratio && !(measure.once && view.range[0] > 0);
    const ratioIn = (depth, index) => {
      const paid = measure.paid[depth]?.[index];
      if (!paid) {
        return "";
      }
      const spent = ratio.times * (paid[view.range[1]] - paid[view.range[0]]);
      const cell = of.cell(depth, index, view.range);
      const found = ratio.over === "spend" ? ratioOf(spent, cell, reach) : ratioOf(cell, spent, reach);
      return !found ? "" : found.told ? `${amount(found.value, 2)} (${between(found.low, found.high, 2)})` : "cannot be told";
    };

    const changed = (depth, index) => (against ? of.change(depth, index, against.after, against.before) : null);
    const rank = {
      name: (depth, index) => nameOf(measure, depth, index).toLowerCase(),
      total: (depth, index) => of.cell(depth, index, view.range).estimate,
      change: (depth, index) => changed(depth, index)?.difference ?? 0,
    }[view.sort];
    const ordered = (depth, indices, words) => {
      const found = indices.filter((index) => matches(measure, depth, index, words)).map((index) => [rank(depth, index), index]);
      const upwards = (view.sort === "name") !== view.up;
      const sign = upwards ? 1 : -1;
      // The sort is stable: ties stay in the order of the lists.
      found.sort(([x], [y]) => (x < y ? -sign : x > y ? sign : 0));
      return found.map(([, index]) => index);
    };

    const row = (depth, index, title) => {
      const cell = of.cell(depth, index, view.range);
      const share = depth === 1 ? shareOf(cell, whole, squares, reach) : null;
      const difference = changed(depth, index);
      const mark = cell.noisy
        ? [make("span", { class: "mark", role: "img", "aria-label": "cannot be told from zero" }, "~")]
        : [];
      return make(
        "tr",
        { class: `${cell.noisy ? "noisy " : ""}level-${depth}` },
        make("th", { scope: "row" }, ...title),
        make("td", {}, amount(cell.estimate, decimals), ...mark),
        make("td", {}, between(cell.low, cell.high, decimals)),
        make("td", {}, depth === 0 ? (whole.noisy ? "" : "100%") : share ? percent(share.value, 1) : ""),
        make("td", {}, share ? `${percent(share.low, 1)} to ${percent(share.high, 1)}` : ""),
        ...(difference
          ? [
              make(
                "td",
                { class: "change" },
                `${signed(difference.difference, decimals)} `,
                make("small", {}, `${signed(difference.low, decimals)} to ${signed(difference.high, decimals)}`),
              ),
            ]
          : []),
        ...(divides ? [make("td", { class: "ratio" }, ratioIn(depth, index))] : []),
        make("td", { class: "over-time" }, line(depth, index, view)),
      );
    };

    // Below a row that has the words in its name, everything is shown.
    const rowsOf = (depth, index, words) => {
      const name = nameOf(measure, depth, index);
      const within = name.toLowerCase().includes(words) ? "" : words;
      const below = children(measure, depth, index);
      const key = keyOf(measure, depth, index);
      const opened = below.length > 0 && (view.open.includes(key) || within);
      const title = [name];
      if (below.length) {
        const toggle = make("button", { type: "button", class: "toggle", "aria-expanded": String(Boolean(opened)) }, name);
        toggle.addEventListener("click", () => {
          const others = view.open.filter((each) => each !== key);
          change({ open: view.open.includes(key) ? others : [...others, key] }, key);
        });
        toggle.dataset.row = key;
        title[0] = toggle;
      }
      const own = row(depth, index, title);
      return opened ? [own, ...ordered(depth + 1, below, within).flatMap((child) => rowsOf(depth + 1, child, within))] : [own];
    };

    const heading = (key, title) => {
      const sorted = view.sort === key;
      const button = make("button", { type: "button", class: "sort" }, title);
      button.dataset.sort = key;
      button.addEventListener("click", () => change({ sort: key, up: sorted ? !view.up : false }, `sort ${key}`));
      const upwards = (key === "name") !== view.up;
      return make("th", { scope: "col", ...(sorted ? { "aria-sort": upwards ? "ascending" : "descending" } : {}) }, button);
    };
    const level = byId("breakdown").dataset.level;
    const first = measure.levels[0];
    const title = first[0].toUpperCase() + first.slice(1);
    const head = make(
      "tr",
      {},
      heading("name", title),
      heading("total", view.range[0] === 0 && view.range[1] === places ? "Total so far" : "Total"),
      make("th", { scope: "col" }, `${level} interval`),
      make("th", { scope: "col" }, "Share"),
      make("th", { scope: "col" }, `${level} interval`),
      ...(against ? [heading("change", "Change")] : []),
      ...(divides ? [make("th", { scope: "col" }, `${ratio.name[0].toUpperCase()}${ratio.name.slice(1)}`)] : []),
      make("th", { scope: "col" }, "Over time"),
    );
    const every = measure.totals[1].map((_, index) => index);
    const body = ordered(1, every, words).flatMap((index) => rowsOf(1, index, words));
    const table = byId("breakdown");
    table.tHead.replaceChildren(head);
    table.tBodies[0].replaceChildren(...body);
    table.tFoot.replaceChildren(row(0, 0, [first === "publisher" ? "All publishers" : "All"]));
    const missing = measure.left_out.join(" and ");
    byId("table-when").textContent =
      `${measure.title[0].toUpperCase()}${measure.title.slice(1)}, ${dates(view.range)}.` +
      (missing ? ` More than a page holds: ${missing} is in the files.` : "");
    byId("matches").textContent = words && !body.length ? "Nothing has that in its name." : "";
  };

  // Choices.
  const choose = (select, options, chosen) => {
    select.replaceChildren(
      ...options.map(([value, text]) => make("option", { value, ...(value === chosen ? { selected: "" } : {}) }, text)),
    );
  };
  const starts = () => explorer.first.map((text, place) => [String(place), text]);
  const ends = () => explorer.last.map((text, place) => [String(place + 1), text]);
  const showChoices = (view, change) => {
    const [a, b] = view.range;
    choose(byId("range-first"), starts(), String(a));
    choose(byId("range-last"), ends(), String(b));
    const others = Array.isArray(view.compare);
    choose(
      byId("compare"),
      [
        ["before", "the period before"],
        ["other", "another period"],
        ["none", "nothing"],
      ],
      others ? "other" : view.compare,
    );
    byId("compare-period").hidden = !others;
    if (others) {
      choose(byId("compare-first"), starts(), String(view.compare[0]));
      choose(byId("compare-last"), ends(), String(view.compare[1]));
    }
    choose(byId("measure"), measures.map((each, place) => [String(place), each.label]), String(view.measure));
    byId("measure-choice").hidden = measures.length < 2;
    const presets = [["All", [0, places]]];
    explorer.periods.forEach((period) => {
      const from = boundaries.indexOf(boundaries[places] - period);
      if (from > 0) {
        presets.push([`Last ${counted([from, places])}`, [from, places]]);
      }
    });
    byId("presets").replaceChildren(
      ...presets.map(([text, span]) => {
        const pressed = span[0] === a && span[1] === b;
        const button = make("button", { type: "button", class: "chip", "aria-pressed": String(pressed) }, text);
        button.dataset.preset = text;
        button.addEventListener("click", () => change({ range: span }, `preset ${text}`));
        return button;
      }),
    );
    byId("search").value = view.search;
  };

  const listen = (change, view) => {
    const number = (id) => Number(byId(id).value);
    const span = (one, other, moved) => {
      const [a, b] = [number(one), number(other)];
      return a < b ? [a, b] : moved === one ? [a, a + 1] : [b - 1, b];
    };
    const on = (id, event, act) => byId(id).addEventListener(event, act);
    ["range-first", "range-last"].forEach((id) =>
      on(id, "change", () => change({ range: span("range-first", "range-last", id) })),
    );
    ["compare-first", "compare-last"].forEach((id) =>
      on(id, "change", () => change({ compare: span("compare-first", "compare-last", id) })),
    );
    on("compare", "change", () => {
      const chosen = byId("compare").value;
      const first = address.compared({ ...view(), compare: "before" })?.before ?? [0, 1];
      change({ compare: chosen === "other" ? first : chosen });
    });
    on("measure", "change", () => change({ measure: number("measure"), open: [] }));
    on("search", "input", () => change({ search: byId("search").value }));
  };

  return { address, ranges, figuresOf, showFigures, showTable, showChoices, listen, amount, between, decimalsOf };
};
