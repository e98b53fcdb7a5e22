// What a reader looks at: range, comparison, measure, order, search and open rows. It stands in the
// address, so that a link shows the same to somebody else.
const viewIn = (explorer) => {
  "use strict";
  const places = explorer.boundaries.length - 1;
  const normal = () => ({
    range: [0, places],
    compare: "before",
    measure: explorer.shown,
    sort: "total",
    up: false,
    search: "",
    open: [],
  });

  // Slots in the address are those of the campaign, first and last, whatever places a page has.
  const toText = ([a, b]) => `${explorer.boundaries[a] + 1}-${explorer.boundaries[b]}`;
  const toSpan = (text) => {
    const found = /^(\d{1,5})-(\d{1,5})$/.exec(text ?? "");
    const a = found ? explorer.boundaries.indexOf(Number(found[1]) - 1) : -1;
    const b = found ? explorer.boundaries.indexOf(Number(found[2])) : -1;
    return a >= 0 && b > a ? [a, b] : null;
  };

  const read = (hash) => {
    const given = new URLSearchParams(hash.replace(/^#/, ""));
    const view = normal();
    view.range = toSpan(given.get("range")) ?? view.range;
    const compare = given.get("compare");
    view.compare = compare === "none" ? compare : (toSpan(compare) ?? view.compare);
    const measure = explorer.measures.findIndex((each) => each.name === given.get("measure"));
    view.measure = measure >= 0 ? measure : view.measure;
    view.sort = ["name", "total", "change"].includes(given.get("sort")) ? given.get("sort") : view.sort;
    view.up = given.get("up") === "1";
    view.search = given.get("search") ?? "";
    view.open = given.getAll("open");
    return view;
  };

  const write = (view) => {
    const said = new URLSearchParams();
    const start = normal();
    const note = (key, text, usual) => text !== usual && said.set(key, text);
    note("range", toText(view.range), toText(start.range));
    note("compare", Array.isArray(view.compare) ? toText(view.compare) : view.compare, start.compare);
    note("measure", explorer.measures[view.measure].name, explorer.measures[start.measure].name);
    note("sort", view.sort, start.sort);
    note("up", view.up ? "1" : "0", "0");
    note("search", view.search, "");
    view.open.forEach((row) => said.append("open", row));
    return said.toString();
  };

  // What is set against what; null for nothing. From the first slot on there is no period before:
  // then the newest usual period stands against the one before it.
  const compared = ({ range: [a, b], compare }) => {
    if (compare === "none") {
      return null;
    }
    if (Array.isArray(compare)) {
      return { after: [a, b], before: compare };
    }
    if (a >= b - a) {
      return { after: [a, b], before: [2 * a - b, a] };
    }
    const period = Math.min(explorer.periods[0], Math.floor((b - a) / 2));
    return period > 0 ? { after: [b - period, b], before: [b - 2 * period, b - period] } : null;
  };

  return { read, write, compared, toText, toSpan };
};
