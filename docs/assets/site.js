// What the theme leaves without a name, or out of the keyboard's reach, gets one here.
const name_landmarks = () => {
  document.querySelector("[data-md-component=search]")?.setAttribute("aria-label", "Search");
  for (const nav of document.querySelectorAll("nav[aria-labelledby]")) {
    const title = nav.parentElement.querySelector("label, a");
    nav.setAttribute("aria-label", `Pages: ${title.textContent.trim()}`);
    nav.removeAttribute("aria-labelledby");
  }
  document.querySelectorAll(".md-nav--secondary nav[aria-label]:not([data-named])").forEach((nav) => {
    nav.setAttribute("aria-label", `Headings: ${nav.getAttribute("aria-label")}`);
    nav.dataset.named = "";
  });
  document.querySelectorAll(".md-code__nav:not([aria-label])").forEach((nav) =>
    nav.setAttribute("aria-label", `Code block ${document.querySelectorAll(".md-code__nav[aria-label]").length + 1}`));
  for (const wide of document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex]), pre > code:not([tabindex])"))
    if (wide.scrollWidth > wide.clientWidth) wide.tabIndex = 0;
};

new MutationObserver(name_landmarks).observe(document.body, { childList: true, subtree: true });
addEventListener("resize", name_landmarks);
name_landmarks();

// The search splits words at hyphens, takes any of the parts, and two hyphens for "not this word". Names such as
// --drop-offset and bad-length are asked for whole: with all of their parts.
const post = Worker.prototype.postMessage;
Worker.prototype.postMessage = function (message, ...rest) {
  const { data } = message;
  const parts = (_, before, name) => before + name.split("-").map((part) => `+${part}`).join(" ");
  const asked = typeof data === "string" ? data.replace(/(^|\s)(?:--)?(\w+(?:-\w+)+|(?<=--)\w+)/g, parts) : data;
  post.call(this, { ...message, data: asked }, ...rest);
};
