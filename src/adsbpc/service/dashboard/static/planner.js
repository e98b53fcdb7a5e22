// Sliders, and what to expect of the campaign: asked for anew with every change.
(() => {
  "use strict";
  const form = document.getElementById("campaign-form");
  const said = document.getElementById("said");
  const field = (name) => form.elements.namedItem(name);

  // Fields that only matter with some choice of another: any of several, a star for whatever it is.
  const holds = (condition) => {
    const [name, values] = condition.split("=");
    const value = field(name).value.trim();
    return values === "*" ? value !== "" : values.split("|").includes(value);
  };
  const showWhatMatters = () => {
    form.querySelectorAll("[data-when]").forEach((element) => {
      element.hidden = !element.dataset.when.split(" ").some(holds);
    });
  };

  // A slider and a number are one value; budgets slide by factors.
  const toNumber = (slider) => {
    const value = Number(slider.value);
    return slider.dataset.scale === "log" ? Number((10 ** (value / 100)).toPrecision(2)) : value;
  };
  const toSlider = (slider, text) => {
    const value = Number(text);
    if (value > 0) {
      slider.value = slider.dataset.scale === "log" ? 100 * Math.log10(value) : value;
    }
  };
  const sliders = [...form.querySelectorAll("input[type=range]")];
  const follow = () =>
    sliders.forEach((slider) => {
      const input = field(slider.dataset.for);
      toSlider(slider, input.value);
      slider.setAttribute("aria-valuetext", input.value);
    });

  const names = () => field("publishers").value.split("\n").filter((line) => line.trim());

  const planned = [...form.querySelectorAll("[data-planned]")];
  const tell = () => {
    const told = [...form.querySelectorAll(".figures > div")].map((each) =>
      [...each.children].map((part) => part.textContent).join(" "),
    );
    said.textContent = told.length ? `Expected: ${told.join(", ")}` : "The plan needs a correction";
  };

  let asking = null;
  let timer = 0;
  const plan = async () => {
    asking?.abort();
    asking = new AbortController();
    const body = new URLSearchParams(new FormData(form));
    body.set("action", "plan");
    planned.forEach((part) => part.setAttribute("aria-busy", "true"));
    try {
      // A button of the form is called "action" too.
      const answer = await fetch(form.getAttribute("action"), {
        method: "POST",
        body,
        signal: asking.signal,
        headers: { Accept: "text/html" },
      });
      if (answer.redirected || !answer.ok) {
        throw new Error(`The plan was answered with ${answer.status}`);
      }
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      planned.forEach((part) => part.replaceChildren(...fresh.getElementById(part.id).childNodes));
      await drawCharts(form);
      tell();
    } catch (error) {
      if (error.name === "AbortError") {
        return;
      }
      const failure = document.createElement("p");
      failure.className = "wrong";
      failure.textContent = "The plan could not be fetched. Try again, or sign in again in another tab.";
      document.getElementById("figures").replaceChildren(failure);
      said.textContent = failure.textContent;
    }
    planned.forEach((part) => part.removeAttribute("aria-busy"));
  };
  const planSoon = () => {
    clearTimeout(timer);
    timer = setTimeout(plan, 250);
  };

  form.addEventListener("input", (event) => {
    const slider = event.target.closest("input[type=range]");
    if (slider) {
      field(slider.dataset.for).value = toNumber(slider);
    }
    if (event.target.name === "publishers" && names().length) {
      field("count").value = names().length;
    }
    showWhatMatters();
    follow();
    planSoon();
  });

  sliders.forEach((slider) => {
    slider.hidden = false;
  });
  document.getElementById("plan-button").hidden = true;
  document.getElementById("wrongs")?.focus();
  showWhatMatters();
  follow();
})();
