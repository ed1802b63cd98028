(() => {
  "use strict";
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  for (const button of all("button.copy")) {
    const source = document.getElementById(button.dataset.copy);
    const say = (text) => {
      button.textContent = text;
      setTimeout(() => { button.textContent = "Copy"; }, 1600);
    };
    button.hidden = false;
    button.setAttribute("aria-live", "polite");
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(source.textContent);
        say("Copied");
      } catch {
        const range = document.createRange();
        range.selectNodeContents(source);
        getSelection().removeAllRanges();
        getSelection().addRange(range);
        say("Selected");
      }
    });
  }

  for (const input of all("input[data-filter]")) {
    const rows = all("tbody > tr", document.getElementById(input.dataset.filter));
    if (rows.length < 6) continue;
    const tools = input.closest(".tools");
    const count = tools.querySelector(".count");
    tools.hidden = false;
    input.addEventListener("input", () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
        if (!row.hidden) shown += 1;
      }
      count.textContent = words.length ? `${shown} of ${rows.length}` : "";
    });
  }

  const key = (row, column) => {
    const cell = row.cells[column];
    const number = cell && cell.dataset.v !== undefined ? Number(cell.dataset.v) : Number.NaN;
    const text = cell ? cell.textContent.trim() : "";
    const plain = Number(text.replace(/[,\u2013]/g, "") || Number.NaN);
    return Number.isNaN(number) ? (Number.isNaN(plain) ? text : plain) : number;
  };
  for (const table of all("table.sortable")) {
    const body = table.tBodies[0];
    if (!body || body.rows.length < 2) continue;
    all("thead th", table).forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") !== "descending";
        for (const other of all("thead th", table)) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const rows = [...body.rows].map((row) => [key(row, column), row]);
        rows.sort(([a], [b]) => {
          const order = typeof a === "number" && typeof b === "number" ? b - a : String(b).localeCompare(String(a));
          return down ? order : -order;
        });
        body.append(...rows.map(([, row]) => row));
      });
    });
  }
})();
