// Draws the charts of a report, lets a publisher be brought forward, and hands out the cells as a
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
  let drawn = [];

  const bringForward = (trend, publishers) => {
    const chips = [...document.querySelectorAll(".chip")];
    chips.forEach((chip, index) => {
      chip.addEventListener("click", async () => {
        const picked = chip.getAttribute("aria-pressed") !== "true";
        chips.forEach((other) => other.setAttribute("aria-pressed", String(picked && other === chip)));
        const { view } = await trend;
        view.signal("picked", picked ? publishers[index] : "").runAsync();
      });
    });
  };

  return async () => {
    const report = JSON.parse(document.getElementById("report-data").textContent);
    const draw = (id, spec) => drawChart(document.getElementById(id), spec, report.config);
    drawn.forEach(({ view }) => view.finalize());
    drawn = [];
    const trend = draw("chart-trend", report.trend);
    const bars = report.bars.map((spec, index) => draw(`chart-bars-${index}`, spec));
    bringForward(trend, report.publishers);
    const download = document.getElementById("download");
    if (download) {
      // The mark at the start makes spreadsheets read the names as UTF-8.
      download.href = URL.createObjectURL(new Blob(["\ufeff", report.csv], { type: "text/csv" }));
    }
    drawn = await Promise.all([trend, ...bars]);
    document.documentElement.setAttribute("data-drawn", "yes");
  };
})();

if (document.getElementById("report-data")) {
  drawReport();
}
