// Excerpts of search results are fetched, which browsers refuse to pages that are opened as files.
if (location.protocol === "file:" && typeof DOCUMENTATION_OPTIONS !== "undefined") {
  DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
}

// What is wider than the page can be moved to and fro, with a keyboard too.
const letKeysScroll = () => {
  for (const part of document.querySelectorAll(".highlight pre, .table-wrapper, figure.concept")) {
    part.toggleAttribute("tabindex", false);
    if (part.scrollWidth > part.clientWidth) {
      part.tabIndex = 0;
    }
  }
};
addEventListener("load", letKeysScroll);
addEventListener("resize", letKeysScroll);
