"use strict";
(() => {
  const MANY = 15;

  // What a cell is sorted by: its exact number, its number as it stands, or its words.
  const valueOf = (row, place) => {
    const cell = row.cells[place];
    if (cell.dataset.v !== undefined) return Number(cell.dataset.v);
    const text = cell.textContent.trim();
    if (text === "\u2013") return null;
    const number = Number(text.replaceAll(",", ""));
    return text !== "" && !Number.isNaN(number) ? number : text;
  };

  const compare = (one, other) => {
    if (one === null || other === null) return (one === null) - (other === null);
    if (typeof one === "number" && typeof other === "number") return one - other;
    return String(one).localeCompare(String(other), "en", { numeric: true });
  };

  const sortBy = (table, head, place) => {
    const body = table.tBodies[0];
    const isNumber = head.hasAttribute("align");
    const before = head.getAttribute("aria-sort");
    const rises = before === "none" ? !isNumber : before === "descending";
    for (const other of table.tHead.rows[0].cells) other.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", rises ? "ascending" : "descending");
    const rows = [...body.rows].map((row) => [valueOf(row, place), row]);
    rows.sort((one, other) => {
      if (one[0] === null || other[0] === null) return compare(one[0], other[0]);
      return rises ? compare(one[0], other[0]) : compare(other[0], one[0]);
    });
    body.append(...rows.map((pair) => pair[1]));
  };

  const addButtons = (table) => {
    [...table.tHead.rows[0].cells].forEach((head, place) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => sortBy(table, head, place));
    });
  };

  const addFilter = (table, frame) => {
    const label = document.createElement("label");
    const input = document.createElement("input");
    const count = document.createElement("span");
    label.className = "filter";
    input.type = "search";
    count.setAttribute("role", "status");
    label.append("Only rows with ", input, " ", count);
    frame.before(label);
    input.addEventListener("input", () => {
      const wanted = input.value.trim().toLowerCase();
      let shown = 0;
      for (const row of table.tBodies[0].rows) {
        row.hidden = wanted !== "" && !row.textContent.toLowerCase().includes(wanted);
        shown += row.hidden ? 0 : 1;
      }
      count.textContent = wanted === "" ? "" : `${shown} of ${table.tBodies[0].rows.length}`;
    });
  };

  for (const frame of document.querySelectorAll(".table")) {
    const table = frame.querySelector("table");
    if (table.tBodies[0].rows.length > 1) addButtons(table);
    if (table.tBodies[0].rows.length >= MANY) addFilter(table, frame);
  }
})();
