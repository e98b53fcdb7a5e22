// Draws the charts whose data stand in the page, each in the element that it names.
const drawCharts = (root) =>
  Promise.all(
    [...root.querySelectorAll("script[data-chart]")].map((script) => {
      const { spec, config } = JSON.parse(script.textContent);
      return drawChart(document.getElementById(script.dataset.chart), spec, config);
    }),
  ).then((drawn) => {
    document.documentElement.setAttribute("data-drawn", "yes");
    return drawn;
  });

drawCharts(document);
