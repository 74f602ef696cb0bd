"use strict";
(() => {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const make = (tag, text, parent) => {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    if (parent) parent.append(element);
    return element;
  };

  // Charts: unpack the columns, choose the number of facet columns that fits, draw as SVG so that the
  // style sheet colours axes and text in light, dark and print alike.
  const charts = read("chart-data");
  const config = read("chart-config");
  const rows = (packed) => {
    const names = Object.keys(packed);
    const columns = names.map((name) => {
      const column = packed[name];
      return column.words ? column.codes.map((code) => column.words[code]) : column.values;
    });
    const length = columns.length ? columns[0].length : 0;
    return Array.from({ length }, (_, row) =>
      Object.fromEntries(names.map((name, column) => [name, columns[column][row]])));
  };
  const unpacked = {};
  const AXIS_WIDTH = 70;
  const PANEL_GAP = 22;
  const NARROW = 420;
  const PADDING = 12;
  const fitted = (chart, width) => {
    const spec = structuredClone(chart.spec);
    // Legends and names of rows fit themselves into the figure by it.
    spec.params = [{ name: "figure_width", value: width }, ...(spec.params ?? [])];
    if (!chart.panelWidth) {
      // A chart with rows cannot take the width of its container; its labels stand left of it.
      const labels = spec.usermeta && spec.usermeta.labelWidth;
      spec.width = labels ? Math.max(110, width - labels - PADDING) : "container";
      return spec;
    }
    const panels = spec.usermeta.panels;
    const fitting = Math.floor((width - AXIS_WIDTH) / (chart.panelWidth + PANEL_GAP));
    const columns = Math.max(1, Math.min(panels, spec.usermeta.columns || panels, fitting));
    if (spec.columns !== undefined || spec.facet) spec.columns = columns;
    spec.spec.width = Math.floor((width - AXIS_WIDTH) / columns) - PANEL_GAP;
    return spec;
  };
  // A title that is longer than its axis ends where the axis does.
  const titles = (width) => ({ titleLimit: Math.floor(0.78 * width), ...(width < NARROW ? { titleAnchor: "end" } : {}) });
  const draw = async (element) => {
    const chart = charts[element.dataset.chart];
    const spec = fitted(chart, element.clientWidth);
    unpacked[element.dataset.chart] ??= Object.fromEntries(
      Object.entries(chart.datasets).map(([name, packed]) => [name, rows(packed)]));
    spec.datasets = unpacked[element.dataset.chart];
    const drawn = async () => {
      // A heading stands above its panel alone.
      if (spec.facet) spec.facet.header = { ...spec.facet.header, labelLimit: spec.spec.width };
      const shown = await window.vegaEmbed(element, spec, {
        ast: true,
        config: { ...config, axisX: titles(element.clientWidth) },
        renderer: "svg",
        // Errors alone: a layer of which a choice shows no row is none, and Vega warns of its axis.
        logLevel: 1,
        actions: { export: true, source: false, compiled: false, editor: false },
        downloadFileName: element.dataset.chart,
      });
      // Names below an axis turn upright once its width is known; the drawing then needs more height.
      await shown.view.resize().runAsync();
    };
    try {
      await drawn();
      // What axes of panels and names of rows take is known once they are drawn.
      const panel = spec.spec ?? spec;
      for (let more = 0; more < 2 && Number.isFinite(panel.width); more += 1) {
        const excess = element.scrollWidth - element.clientWidth;
        if (excess <= 0) break;
        panel.width = Math.max(60, panel.width - Math.ceil(excess / (spec.columns ?? 1)));
        await drawn();
      }
    } catch (error) {
      element.replaceChildren();
      make("p", `This chart could not be drawn: ${error.message}`, element).className = "failed";
      console.error(error);
    }
  };
  const elements = [...document.querySelectorAll("[data-chart]")];
  const drawAll = async () => {
    for (const element of elements) await draw(element);
    document.documentElement.dataset.charts = "drawn";
  };
  let width = window.innerWidth;
  let timer = 0;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return;
    width = window.innerWidth;
    clearTimeout(timer);
    timer = setTimeout(drawAll, 250);
  });

  // Evidence: a card beside the number that was pointed at (passing) or chosen (stays until closed).
  const evidence = read("evidence-data");
  const card = document.getElementById("evidence");
  const insideQuantity = new RegExp(card.dataset.insideQuantity, "g");
  const word = (index) => evidence.words[index].replace(insideQuantity, "\u00a0");
  let origin = null;
  let pinned = false;
  const close = () => {
    if (card.hidden) return;
    const back = pinned && card.contains(document.activeElement) ? origin : null;
    card.hidden = true;
    pinned = false;
    origin = null;
    if (back) back.focus();
  };
  const pair = (list, name, value, small) => {
    make("dt", name, list);
    const description = make("dd", value, list);
    if (small) make("small", small, description);
  };
  const fillCard = (id) => {
    const [title, verdict, estimates, facts, queries, warnings] = evidence.findings[id];
    card.replaceChildren();
    make("h4", word(title), card);
    const list = make("dl", undefined, card);
    if (word(verdict)) pair(list, "verdict", word(verdict));
    for (const estimate of estimates) {
      const [role, value, interval, method, basis] = estimate.map(word);
      pair(list, role, value, `${interval}; ${method}; ${basis}`);
    }
    for (const [name, value] of facts) pair(list, word(name), word(value));
    for (const query of queries) pair(list, "computed from", word(query));
    for (const warning of warnings) pair(list, "warning", word(warning));
    make("p", id, card).className = "id";
    const button = make("button", "close", card);
    button.type = "button";
    button.addEventListener("click", close);
  };
  const place = (element) => {
    const box = element.getBoundingClientRect();
    card.hidden = false;
    const left = Math.min(box.left, window.innerWidth - card.offsetWidth - 12);
    const below = box.bottom + 6 + card.offsetHeight < window.innerHeight || box.top < card.offsetHeight;
    const top = below ? box.bottom + 6 : box.top - card.offsetHeight - 6;
    card.style.left = `${Math.max(6, left) + window.scrollX}px`;
    card.style.top = `${top + window.scrollY}px`;
  };
  const open = (element, pin) => {
    if (!(element.dataset.finding in evidence.findings)) return;
    if (pinned && !pin) return;
    fillCard(element.dataset.finding);
    place(element);
    origin = element;
    pinned = pin;
    if (pin) card.focus({ preventScroll: true });
  };
  const found = (event) => event.target instanceof Element && event.target.closest("[data-finding]");
  let hover = 0;
  document.addEventListener("mouseover", (event) => {
    clearTimeout(hover);
    const element = found(event);
    if (element) hover = setTimeout(() => open(element, false), 180);
    else if (!pinned && !card.contains(event.target)) hover = setTimeout(() => !pinned && close(), 200);
  });
  document.addEventListener("click", (event) => {
    const element = found(event);
    if (element) open(element, true);
    else if (!card.contains(event.target)) close();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close();
    if (event.key === "Enter" && found(event)) open(found(event), true);
  });
  // One tab stop per table: the arrow keys move between its cells.
  const CELLS = "td[data-finding]";
  for (const element of document.querySelectorAll("[data-finding]")) element.tabIndex = element.matches("td") ? -1 : 0;
  for (const table of document.querySelectorAll("[data-table]")) {
    const first = table.querySelector(CELLS);
    if (first) first.tabIndex = 0;
  }
  const STEPS = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
  document.addEventListener("keydown", (event) => {
    const step = STEPS[event.key];
    const cell = step && event.target instanceof Element && event.target.closest(CELLS);
    if (!cell) return;
    const row = cell.parentElement;
    const next = step[1]
      ? (step[1] > 0 ? cell.nextElementSibling : cell.previousElementSibling)
      : (step[0] > 0 ? row.nextElementSibling : row.previousElementSibling)?.cells[cell.cellIndex];
    if (!next || !next.matches(CELLS) || !next.offsetParent) return;
    cell.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
    event.preventDefault();
  });

  // Tables: sort by a heading, filter by words, show all rows.
  const orderOf = (cell, isNumber) => {
    if (!isNumber) return cell.textContent.trim();
    return cell.dataset.order === undefined ? null : Number(cell.dataset.order);
  };
  const compare = (a, b, direction) => {
    if (a === null || b === null) return (a === null) - (b === null);
    const sign = typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true });
    return direction * sign;
  };
  for (const table of document.querySelectorAll("[data-table]")) {
    const body = table.tBodies[0];
    const first = Number(table.dataset.first);
    const limit = () => [...body.rows].filter((row) => !row.classList.contains("filtered"))
      .forEach((row, index) => row.classList.toggle("more", index >= first));
    table.tHead.querySelectorAll("th").forEach((heading, column) => {
      heading.querySelector("button").addEventListener("click", () => {
        const ascending = heading.getAttribute("aria-sort") !== "ascending";
        table.tHead.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
        heading.setAttribute("aria-sort", ascending ? "ascending" : "descending");
        const isNumber = heading.classList.contains("num");
        const key = (row) => orderOf(row.cells[column], isNumber);
        body.append(...[...body.rows].sort((a, b) => compare(key(a), key(b), ascending ? 1 : -1)));
        limit();
      });
    });
    const filter = document.querySelector(`[data-filter="${table.dataset.table}"]`);
    if (filter) filter.addEventListener("input", () => {
      const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const row of body.rows) {
        const text = row.textContent.toLowerCase();
        row.classList.toggle("filtered", !words.every((one) => text.includes(one)));
      }
      limit();
    });
    const more = document.querySelector(`[data-more="${table.dataset.table}"]`);
    if (more) more.addEventListener("click", () => {
      const all = table.classList.toggle("all");
      more.textContent = all ? "Show fewer rows" : `Show all ${body.rows.length} rows`;
    });
  }

  // On paper nothing can be unfolded.
  window.addEventListener("beforeprint", () => {
    for (const fold of document.querySelectorAll("details.fold")) fold.open = true;
  });

  document.getElementById("theme").addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark"
      : window.matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });
  drawAll();
})();
