// Draws the charts of a report, shows the view that the address names, and hands out the cells as a
// file. Other pages draw with `drawChart`, and call `drawReport` again when they hold newer parts.
const drawChart = (element, spec, config) =>
  vegaEmbed(element, spec, {
    mode: "vega-lite",
    renderer: "svg",
    actions: false,
    // Interprets expressions instead of compiling them, so the page needs no right to make code.
    ast: true,
    defaultStyle: false,
    config,
    tooltip: { disableDefaultStyle: true },
  });

const drawReport = (() => {
  "use strict";
  const MOST_TICKS = 9;
  let drawn = [];
  let trend = null;
  let follow = () => {};
  addEventListener("hashchange", () => follow());

  // The same chart of another range or measure, from 0 at its start.
  const trendOf = (report, explorer, view) => {
    const { boundaries, measures, shown, names, first } = report.explorer;
    const measure = measures[view.measure];
    const [a, b] = view.range;
    const publishers = measure.levels[0] === measures[shown].levels[0];
    const lines = report.publishers.map((name) => measure.values[0].indexOf(name));
    if (!publishers || (view.measure === shown && a === 0 && b === boundaries.length - 1)) {
      return report.trend;
    }
    const rows = lines.map((index) => ({ boundary: boundaries[a], publisher: measure.values[0][index], estimate: 0, low: 0, high: 0 }));
    for (let place = a + 1; place <= b; place += 1) {
      lines.forEach((index) => {
        const cell = explorer.ranges[view.measure].cell(1, index, [a, place]);
        const decimals = explorer.decimalsOf(measure.metric, cell.error);
        rows.push({
          boundary: boundaries[place],
          publisher: measure.values[0][index],
          estimate: cell.estimate,
          low: cell.low,
          high: cell.high,
          when: names[place - 1],
          amount: explorer.amount(cell.estimate, decimals),
          interval: explorer.between(cell.low, cell.high, decimals),
        });
      });
    }
    const spec = structuredClone(report.trend);
    const every = Math.ceil((b - a) / MOST_TICKS);
    const ticks = boundaries.slice(a, b).filter((_, k) => k % every === 0);
    spec.data.values = rows;
    spec.encoding.x.scale.domain = [boundaries[a], boundaries[b]];
    spec.encoding.x.axis.values = ticks;
    spec.params.find(({ name }) => name === "labels").value = Object.fromEntries(
      ticks.map((tick) => [tick, first[boundaries.indexOf(tick)].replace(/ \d{4}$/, "")]),
    );
    spec.params.find(({ name }) => name === "from").value = boundaries[a];
    // What holds for all slots at once is that of the whole campaign.
    spec.layer = spec.layer.filter(({ encoding }) => encoding.y.field !== "band_low");
    const points = spec.layer.at(-1).encoding;
    points.tooltip = points.tooltip.filter(({ field }) => field !== "band");
    spec.layer.forEach(({ encoding }) => {
      encoding.y.scale.domainMin = Math.min(0, ...rows.map(({ low }) => low));
      encoding.y.scale.domainMax = Math.max(0, ...rows.map(({ high }) => high));
    });
    return spec;
  };

  const bringForward = (trend, publishers) => {
    const chips = [...document.querySelectorAll("#lines .chip")];
    const pick = async () => {
      const index = chips.findIndex((chip) => chip.getAttribute("aria-pressed") === "true");
      const { view } = await trend();
      view.signal("picked", index < 0 ? "" : publishers[index]).runAsync();
    };
    chips.forEach((chip) => {
      chip.addEventListener("click", () => {
        const picked = chip.getAttribute("aria-pressed") !== "true";
        chips.forEach((other) => other.setAttribute("aria-pressed", String(picked && other === chip)));
        pick();
      });
    });
    return pick;
  };

  return async () => {
    const report = JSON.parse(document.getElementById("report-data").textContent);
    const explorer = explorerOf(report.explorer);
    const draw = (id, spec) => drawChart(document.getElementById(id), spec, report.config);
    const leave = (chart) => chart?.then((old) => old.view.finalize());
    [trend, ...drawn].forEach(leave);
    trend = null;

    let view = explorer.address.read(location.hash);
    let shownTrend = "";
    const pick = bringForward(() => trend, report.publishers);
    const drawTrend = () => {
      const wanted = `${view.range} ${view.measure}`;
      if (wanted !== shownTrend) {
        shownTrend = wanted;
        leave(trend);
        trend = draw("chart-trend", trendOf(report, explorer, view));
        pick();
      }
      return trend;
    };
    const show = () => {
      explorer.showChoices(view, change);
      explorer.showFigures(view);
      explorer.showTable(view, change);
      return drawTrend();
    };
    // What had the focus is made anew, and gets it again.
    const change = (choice, focused) => {
      view = { ...view, ...choice };
      // Within a notebook the page has no address of its own.
      if (location.protocol !== "about:") {
        history.replaceState(null, "", `#${explorer.address.write(view)}`);
      }
      show();
      const same = ({ dataset }) => [dataset.row, `sort ${dataset.sort}`, `preset ${dataset.preset}`].includes(focused);
      [...document.querySelectorAll("button")].find(same)?.focus();
    };
    follow = () => {
      view = explorer.address.read(location.hash);
      show();
    };
    explorer.listen(change, () => view);
    document.querySelectorAll("[data-explorer]").forEach((part) => part.removeAttribute("hidden"));

    show();
    drawn = [
      ...report.bars.map((spec, index) => draw(`chart-bars-${index}`, spec)),
      ...report.lift.map((spec, index) => draw(`chart-lift-${index}`, spec)),
    ];
    const download = document.getElementById("download");
    if (download) {
      // The mark at the start makes spreadsheets read the names as UTF-8.
      download.href = URL.createObjectURL(new Blob(["\ufeff", report.csv], { type: "text/csv" }));
    }
    await Promise.all([trend, ...drawn]);
    document.documentElement.setAttribute("data-drawn", "yes");
  };
})();

if (document.getElementById("report-data")) {
  drawReport();
}
