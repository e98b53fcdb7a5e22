// When a slot becomes visible, fetches the page again and puts its newer content in place of the older.
(() => {
  "use strict";
  const main = document.getElementById("main");
  const said = document.getElementById("said");
  let waiting = false;
  let stream = null;

  const mark = () => document.getElementById("live");
  const show = (live) => {
    const element = mark();
    if (element) {
      element.hidden = live && "quiet" in element.dataset;
      element.classList.toggle("lost", !live);
      element.textContent = live ? "Live" : "Connecting";
    }
  };

  // What a reader had chosen stays chosen.
  const picked = () => document.querySelector('#lines .chip[aria-pressed="true"]')?.title;
  const pick = (title) =>
    [...document.querySelectorAll("#lines .chip")].find((chip) => chip.title === title)?.click();

  const replace = (fresh) => {
    const chosen = picked();
    const focused = main.contains(document.activeElement) && document.activeElement !== main;
    main.replaceChildren(...fresh.querySelector("#main").childNodes);
    document.title = fresh.title;
    if (focused) {
      main.focus({ preventScroll: true });
    }
    if (document.getElementById("report-data")) {
      drawReport();
      if (chosen) {
        pick(chosen);
      }
    }
    said.textContent = `New figures: ${document.querySelector(".summary").textContent}`;
    main.classList.remove("fresh");
    // Read, so that the browser starts the transition anew.
    void main.offsetWidth;
    main.classList.add("fresh");
  };

  const refresh = async () => {
    if (waiting) {
      return;
    }
    waiting = true;
    // Several slots may come at once, after a pause: they are fetched together.
    await new Promise((done) => setTimeout(done, 300));
    waiting = false;
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (answer.redirected || !answer.ok) {
      location.reload();
      return;
    }
    replace(new DOMParser().parseFromString(await answer.text(), "text/html"));
    if (!mark()) {
      // The campaign is complete.
      stream.close();
    } else {
      show(stream.readyState === EventSource.OPEN);
    }
  };

  // The page says after which slot to begin, so that none is missed in between.
  const listen = () => {
    stream = new EventSource(mark().dataset.stream);
    stream.addEventListener("open", () => show(true));
    stream.addEventListener("error", () => {
      show(false);
      // The server refuses to go on: perhaps nobody is signed in any more, which the page tells.
      if (stream.readyState === EventSource.CLOSED) {
        refresh().catch(() => {});
      }
    });
    stream.addEventListener("release", () => refresh().catch(() => show(false)));
  };

  // Browsers allow few connections to one server: a page that nobody sees must not keep one.
  document.addEventListener("visibilitychange", () => {
    stream.close();
    if (!document.hidden && mark()) {
      listen();
    }
  });
  addEventListener("pagehide", () => stream.close());
  addEventListener("pageshow", (event) => event.persisted && mark() && listen());
  listen();
})();
