"use strict";
// Every page works without this script: forms and links ask the server for whole pages. With it, tables are
// exchanged in place, a running study is followed, and a verification is waited for.
(() => {
  const fetched = async (address, signal) => {
    const answer = await fetch(address, { headers: { Accept: "text/html" }, signal });
    return new DOMParser().parseFromString(await answer.text(), "text/html");
  };
  // A choice that was made while another one is answered replaces it.
  let latest;
  const swap = async (address, isCaller) => {
    latest?.abort();
    const own = (latest = new AbortController());
    const region = document.getElementById("region");
    region?.setAttribute("aria-busy", "true");
    try {
      const page = await fetched(address, own.signal);
      const part = page.getElementById("region");
      if (!region || !part) {
        location.assign(address);
        return;
      }
      region.replaceWith(part);
      document.title = page.title;
      history.pushState(null, "", address);
      if (isCaller) [...part.querySelectorAll("a[data-swap]")].find(isCaller)?.focus();
    } catch {
      if (!own.signal.aborted) location.assign(address);
    }
  };
  // Whoever pressed a key on a heading goes on from there: the same heading of the new table has the focus.
  const sameAs = (link) => {
    const column = link.closest("th")?.cellIndex;
    return (other) => (link.rel ? other.rel === link.rel : other.closest("th")?.cellIndex === column);
  };
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-swap]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    swap(link.href, sameAs(link));
  });
  const submitted = (form) => {
    const address = new URL(form.action);
    const fields = [...new FormData(form)].filter(([, value]) => value !== "");
    address.search = new URLSearchParams(fields);
    swap(address.href);
  };
  document.addEventListener("submit", (event) => {
    if (!event.target.matches("form[data-swap]")) return;
    event.preventDefault();
    submitted(event.target);
  });
  document.addEventListener("change", (event) => {
    const form = event.target.closest("form[data-swap]");
    if (form && event.target.matches("select")) submitted(form);
  });
  window.addEventListener("popstate", () => location.reload());

  const live = document.getElementById("live");
  if (live) {
    const lost = document.getElementById("lost");
    const follow = () => {
      const events = new EventSource(live.dataset.events);
      events.addEventListener("open", () => (lost.hidden = true));
      events.addEventListener("error", () => {
        lost.hidden = false;
        // A browser that was refused does not ask again by itself.
        if (events.readyState === EventSource.CLOSED) setTimeout(follow, 5000);
      });
      events.addEventListener("snapshot", (event) => {
        // The server escapes every text of it; the policy of the page forbids scripts in it.
        live.innerHTML = event.data;
      });
      events.addEventListener("ended", () => {
        events.close();
        setTimeout(() => location.assign(live.dataset.done), 1500);
      });
    };
    follow();
  }

  const waitFor = async (part) => {
    await new Promise((done) => setTimeout(done, Number(part.dataset.reload)));
    const found = (await fetched(location.href)).getElementById(part.id);
    if (!found) return;
    part.replaceWith(found);
    if (found.dataset.reload) waitFor(found);
  };
  const waiting = document.querySelector("[data-reload]");
  if (waiting) waitFor(waiting);
})();
