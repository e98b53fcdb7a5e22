// Draws the charts, lets a publisher be brought forward, and hands out the cells as a file.
(() => {
  "use strict";
  const report = JSON.parse(document.getElementById("report-data").textContent);
  const options = {
    mode: "vega-lite",
    renderer: "svg",
    actions: false,
    // Interprets expressions instead of compiling them, so the page needs no right to make code.
    ast: true,
    defaultStyle: false,
    config: report.config,
    tooltip: { disableDefaultStyle: true },
  };
  const draw = (id, spec) => vegaEmbed(document.getElementById(id), spec, options);

  const trend = draw("chart-trend", report.trend);
  Promise.all([trend, ...report.bars.map((spec, index) => draw(`chart-bars-${index}`, spec))]).then(
    () => document.documentElement.setAttribute("data-drawn", "yes"),
  );

  const chips = [...document.querySelectorAll(".chip")];
  chips.forEach((chip, index) => {
    chip.addEventListener("click", async () => {
      const picked = chip.getAttribute("aria-pressed") !== "true";
      chips.forEach((other) => other.setAttribute("aria-pressed", String(picked && other === chip)));
      const { view } = await trend;
      view.signal("picked", picked ? report.publishers[index] : "").runAsync();
    });
  });

  const download = document.getElementById("download");
  if (download) {
    // The mark at the start makes spreadsheets read the names as UTF-8.
    download.href = URL.createObjectURL(new Blob(["\ufeff", report.csv], { type: "text/csv" }));
  }
})();
