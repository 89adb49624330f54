"use strict";
// Shows one section at a time, sorts, filters and exports tables, opens the queries of a number with their lists, and
// shows tooltips. Texts of the data only ever become text nodes. You can read the page without this script.
(() => {
  const find = (selector, root = document) => root.querySelector(selector);
  const every = (selector, root = document) => [...root.querySelectorAll(selector)];
  const make = (tag, text = "", style = "") => {
    const node = document.createElement(tag);
    node.textContent = text;
    if (style) node.className = style;
    return node;
  };

  // ---- the data: gzipped JSON in base64, unpacked on first use

  let unpacked;
  const unpack = async () => {
    const bytes = Uint8Array.from(atob(find("#data").content.textContent), (sign) => sign.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  };
  const data = () => (unpacked ??= unpack());
  const rowsOf = (table) => (table.cells[0] ?? []).map((_, row) => table.cells.map((column) => column[row]));

  // ---- table export: the same formats as in report/tables.py and report/files.py

  const harmless = (text) =>
    /^[=+\-@\t\r\n＝＋－＠]/.test(text) && !/^(?:[-+]?\d[\d.,]*\s*%?|-)$/.test(text) ? `'${text}` : text;
  const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const forms = {
    CSV: {
      ending: ".csv",
      write: (table, whole) => {
        const cell = (text, at) => quoted(text === whole.missing ? "" : table.numeric[at] ? text : harmless(text));
        const head = table.columns.map((name) => quoted(harmless(name)));
        return [head, ...rowsOf(table).map((row) => row.map(cell))].map((row) => row.join(",")).join("\n") + "\n";
      },
    },
    LaTeX: {
      ending: ".tex",
      write: (table, whole) => {
        const escaped = (text) => [...text].map((sign) => whole.latex[sign] ?? sign).join("").replace(/-(?=-)/g, "-{}");
        const signed = (text, at) => escaped(table.numeric[at] ? text.replace(/^-/, "\u2212") : text);
        const line = (row, cell = escaped) => `${row.map((text, at) => cell(text, at)).join(" & ")} \\\\`;
        const columns = table.numeric.map((numeric) => (numeric ? "r" : "l")).join("");
        const parts = [`\\begin{tabular}{${columns}}`, "\\toprule", line(table.columns), "\\midrule"];
        const rows = rowsOf(table).map((row) => line(row, signed));
        return [...parts, ...rows, "\\bottomrule", "\\end{tabular}"].join("\n") + "\n";
      },
    },
    Markdown: {
      ending: ".md",
      write: (table) => {
        const line = (row) => `| ${row.map((text) => text.replace(/([|\\`*_<>[\]])/g, "\\$1")).join(" | ")} |`;
        const rule = `|${table.numeric.map((numeric) => (numeric ? "--:" : ":--")).join("|")}|`;
        return [line(table.columns), rule, ...rowsOf(table).map(line)].join("\n") + "\n";
      },
    },
  };
  const save = async (table, form) => {
    const whole = await data();
    const link = make("a");
    const { ending, write } = forms[form];
    link.href = URL.createObjectURL(new Blob([write(table, whole)], { type: "text/plain" }));
    link.download = table.file.replace(/\.csv$/, "") + ending;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };

  // ---- tables: sort by a heading, filter by words, show more rows

  const STEP = 100;
  const number = (text) => {
    const found = /^[(|]?\s*([-+]?(?:\d[\d,]*\.?\d*(?:e[-+]?\d+)?|inf))/.exec(text);
    return found ? Number(found[1].replaceAll(",", "").replace("inf", "Infinity")) : NaN;
  };
  const keyOf = (row, at) => row.keys?.[at] ?? row.texts[at];
  const order = (rows, at) => {
    const known = rows.map((row) => keyOf(row, at)).filter((text) => text !== "" && text !== "–" && text !== "not tested");
    if (known.every((text) => !Number.isNaN(number(text)))) return (a, b) => number(a) - number(b);
    return (a, b) => a.localeCompare(b, "en", { numeric: true });
  };

  class Grid {
    // `table` is the table in the page; `source` is its entry in the data if the page does not show all rows
    constructor(table, source, opened) {
      this.table = table;
      this.body = table.tBodies[0];
      this.heads = [...table.tHead.rows[0].cells];
      this.source = source;
      this.opened = opened;
      this.whole = Number(table.dataset.count ?? 0) <= this.body.rows.length;
      this.rows = [...this.body.rows].map((tr) => ({
        texts: [...tr.cells].map((td) => td.textContent.trim()),
        keys: [...tr.cells].map((td) => td.dataset.sort),
        tr,
      }));
      this.words = "";
      this.limit = STEP;
      this.rows.forEach((row) => this.dress(row));
      this.heads.forEach((head, at) => this.sortable(head, at));
    }

    sortable(head, at) {
      const button = make("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.replaceChildren(button);
      button.addEventListener("click", () => this.sort(at));
    }

    dress(row) {
      if (this.opened) this.opened(this, row);
    }

    async load() {
      if (this.whole) return;
      const table = (await data()).tables[this.source];
      const kept = this.rows.length;
      for (const texts of rowsOf(table).slice(kept)) this.rows.push({ texts, tr: null });
      this.whole = true;
    }

    row(row) {
      if (row.tr) return row.tr;
      row.tr = make("tr");
      row.texts.forEach((text, at) => row.tr.append(make("td", text, this.heads[at].className)));
      this.dress(row);
      return row.tr;
    }

    async sort(at) {
      await this.load();
      const down = this.heads[at].getAttribute("aria-sort") === "ascending";
      this.heads.forEach((head) => head.removeAttribute("aria-sort"));
      this.heads[at].setAttribute("aria-sort", down ? "descending" : "ascending");
      const compare = order(this.rows, at);
      const empty = (row) => ["", "–", "not tested"].includes(row.texts[at]);
      this.rows.sort((a, b) =>
        empty(a) || empty(b) ? empty(a) - empty(b) : (down ? -1 : 1) * compare(keyOf(a, at), keyOf(b, at)));
      this.show();
    }

    async filter(words) {
      await this.load();
      this.words = words;
      this.limit = STEP;
      this.show();
    }

    async more() {
      await this.load();
      this.limit = this.body.rows.length < this.limit ? this.limit : this.limit + 5 * STEP;
      this.show();
    }

    show() {
      const words = this.words.toLowerCase().split(/\s+/).filter(Boolean);
      const fits = (row) => words.every((word) => row.texts.some((text) => text.toLowerCase().includes(word)));
      const found = this.rows.filter(fits);
      this.body.replaceChildren(...found.slice(0, this.limit).map((row) => this.row(row)));
      if (this.told) this.told(Math.min(this.limit, found.length), found.length, this.rows.length);
    }
  }

  // add tools above a table, and below it a line with the number of rows shown
  const equip = (grid, count, rest) => {
    const tools = make("div", "", "tools");
    if (count > 5) {
      const input = make("input");
      input.type = "search";
      input.placeholder = "Filter rows by words";
      input.setAttribute("aria-label", "Filter rows by words");
      input.addEventListener("input", () => grid.filter(input.value));
      tools.append(input);
    }
    const line = make("p", "", "soft rest");
    const more = make("button", "Show more rows", "more");
    more.type = "button";
    more.addEventListener("click", () => grid.more());
    grid.told = (shown, found, all) => {
      const some = found < all ? `${found} of ${all} rows fit` : `${all} rows`;
      line.replaceChildren(shown < found ? `The first ${shown} of ${some}. ` : found < all ? `${some}. ` : "");
      if (shown < found) line.append(more);
    };
    if (grid.source !== null) {
      for (const form of Object.keys(forms)) {
        const button = make("button", form);
        button.type = "button";
        button.title = "Download the whole table; numbers are as shown";
        button.addEventListener("click", async () => save((await data()).tables[grid.source], form));
        tools.append(button);
      }
    }
    grid.table.parentElement.before(tools);
    if (rest) {
      rest.append(" ", more);
      rest.after(line);
      grid.told = ((told) => (...counts) => (rest.remove(), told(...counts)))(grid.told);
    } else grid.table.parentElement.after(line);
  };

  // ---- the dialog with the queries of a number

  const drill = find("#drill");
  find(".close", drill).addEventListener("click", () => drill.close());
  drill.addEventListener("click", (event) => event.target === drill && drill.close());

  // Add a table to the dialog; columns and rows are texts
  const tabled = (parent, title, columns, numeric, rows, opened) => {
    const table = make("table");
    const head = table.createTHead().insertRow();
    columns.forEach((name, at) => {
      const th = make("th", name, numeric[at] ? "n" : rows.some((row) => row[at].length > 40) ? "t" : "");
      th.scope = "col";
      head.append(th);
    });
    table.createTBody();
    const wide = make("div", "", "wide");
    wide.append(table);
    if (title) parent.append(make("h3", title));
    parent.append(wide);
    const grid = new Grid(table, null, opened);
    grid.rows = rows.map((texts) => ({ texts, tr: null }));
    grid.whole = true;
    equip(grid, rows.length);
    grid.show();
    return grid;
  };

  // Return the rows of a table per query that have these texts in these columns. The result has the text of each query
  // and leaves out these columns.
  const chosen = (whole, at, wanted) => {
    const table = whole.tables[at];
    const wantedCells = Object.entries(wanted).map(([name, text]) => [table.columns.indexOf(name), text]);
    const rows = rowsOf(table).filter((row) => wantedCells.every(([index, text]) => row[index] === text));
    const query = table.columns.indexOf("query");
    const known = Object.keys(whole.queries).length > 0 && !("query" in wanted);
    const leftOut = new Set(wantedCells.map(([index]) => index));
    const asked = (row, what) =>
      row.flatMap((text, at) => (leftOut.has(at) ? [] : at === query && known ? [text, what] : [text]));
    return {
      columns: asked(table.columns, "as asked"),
      numeric: asked(table.numeric, false),
      rows: rows.map((row) => asked(row, whole.queries[row[query]] ?? "")),
    };
  };

  // ---- two lists of documents side by side

  const moved = (before, at, document) => {
    const was = before.indexOf(document);
    if (was < 0) return ["new", "new"];
    return was === at ? ["", ""] : was > at ? [`${was - at} up`, "up"] : [`${at - was} down`, "down"];
  };
  const listed = (whole, title, documents, mark) => {
    const list = make("section", "", "list");
    list.setAttribute("aria-label", title);
    list.append(make("h4", title), make("ol"));
    documents.forEach((document, at) => {
      const [docno, text] = whole.documents[document];
      const [said, style] = mark(document, at);
      const item = make("li", "", style);
      item.append(make("span", docno, "docno"));
      if (said) item.append(" ", make("span", said, "move"));
      if (text) item.append(" ", make("span", text, "text"));
      list.lastChild.append(item);
    });
    if (!documents.length) list.append(make("p", "No documents.", "soft"));
    return list;
  };
  const pairedLists = (whole, [left, before], [right, after]) => {
    const both = make("div", "", "lists");
    both.append(
      listed(whole, left, before, (document) => (after.includes(document) ? ["", ""] : ["not in the other list", "gone"])),
      listed(whole, right, after, (document, at) => moved(before, at, document)),
    );
    return both;
  };

  // Add the lists of two rankers for a query, with a menu above each
  const rankerLists = (parent, whole, qid, wanted) => {
    const names = Object.keys(whole.lists).filter((name) => whole.lists[name][qid]);
    if (names.length < 2) {
      if (names.length) parent.append(pairedLists(whole, [names[0], whole.lists[names[0]][qid]], ["", []]).firstChild);
      return;
    }
    const first = names.includes(whole.baseline) ? whole.baseline : names.includes("first stage") ? "first stage" : names[0];
    const chosen = [first, wanted && wanted !== first && names.includes(wanted) ? wanted : names.find((name) => name !== first)];
    const menus = make("div", "", "tools");
    const shown = make("div");
    const draw = () =>
      shown.replaceChildren(pairedLists(whole, ...chosen.map((name) => [name, whole.lists[name][qid]])));
    chosen.forEach((name, side) => {
      const menu = make("select");
      menu.setAttribute("aria-label", side ? "Ranker of the right list" : "Ranker of the left list");
      names.forEach((one) => menu.append(make("option", one)));
      menu.value = name;
      menu.addEventListener("change", () => ((chosen[side] = menu.value), draw()));
      menus.append(menu);
    });
    parent.append(make("h3", "The lists of two rankers"), menus, shown);
    draw();
  };

  const openQuery = async (qid, wanted) => {
    const whole = await data();
    const parent = open(`Query ${qid}`, whole.queries[qid] ?? "", "");
    rankerLists(parent, whole, qid, wanted);
    if (!parent.childNodes.length) parent.append(make("p", "This audit kept no lists of this query.", "soft"));
  };

  const open = (title, status, about) => {
    find("#drill-title").textContent = title;
    find(".status", drill).textContent = status;
    find(".about", drill).textContent = about;
    find(".found", drill).replaceChildren();
    find(".cases-of", drill).replaceChildren();
    if (!drill.open) drill.showModal();
    drill.scrollTop = 0;
    return find(".found", drill);
  };

  const openRows = async (at, wanted) => {
    const whole = await data();
    const found = chosen(whole, at, wanted);
    const title = Object.values(wanted).join(", ");
    const { name, file } = whole.tables[at];
    const parent = open(title, "", `${found.rows.length} rows of the table "${name}" (${file}).`);
    const grid = tabled(parent, "", found.columns, found.numeric, found.rows);
    const change = found.columns.findIndex((name) => ["change", "difference", "gain"].includes(name));
    if (change >= 0) await grid.sort(change);
  };

  const openCell = async (at) => {
    const whole = await data();
    const cell = whole.facet_cells[at];
    const parent = open(cell.title, cell.status, cell.about);
    if (!cell.values.length) parent.append(make("p", "This number has no values per query."));
    const rows = cell.values.map(([qid, value]) => [qid, whole.queries[qid] ?? "", value]);
    const cases = (qid) => {
      const below = find(".cases-of", drill);
      below.replaceChildren(make("h3", `Query ${qid}: ${whole.queries[qid] ?? ""}`));
      if (cell.lists[qid]) {
        const [change, before, after] = cell.lists[qid];
        below.append(make("h3", `Before and after: ${change}`));
        below.append(pairedLists(whole, ["before", before], ["after", after]));
      }
      rankerLists(below, whole, qid, cell.ranker);
      for (const detail of cell.details) {
        const found = chosen(whole, detail, { ranker: cell.ranker, query: qid });
        if (found.rows.length) tabled(below, whole.tables[detail].name, found.columns, found.numeric, found.rows);
      }
      below.scrollIntoView({ block: "start" });
      below.focus({ preventScroll: true });
    };
    if (rows.length) {
      const opened = (grid, row) => opener(row.tr.cells[0], () => cases(row.texts[0]));
      tabled(parent, "Its queries, worst first", ["query", "as asked", cell.name], [false, false, true], rows, opened);
    }
  };

  // Turn the text of a cell into a button
  const opener = (cell, act) => {
    const button = make("button", "", "open");
    button.type = "button";
    button.append(...cell.childNodes);
    cell.replaceChildren(button);
    button.addEventListener("click", act);
  };

  // Link a row to its queries; if the headings name rankers, link each cell instead
  const leads = (table) => {
    if (!table.dataset.detail) return null;
    const by = JSON.parse(table.dataset.by);
    return (grid, row) => {
      const names = grid.heads.map((head) => head.textContent);
      const wanted = Object.fromEntries(by.map((name) => [name, row.texts[names.indexOf(name)]]));
      const at = names.indexOf(by.includes("ranker") ? "ranker" : by[0]);
      opener(row.tr.cells[at], () => openRows(Number(table.dataset.detail), wanted));
    };
  };

  // ---- tooltips

  const tip = make("div", "", "tip");
  tip.setAttribute("role", "tooltip");
  tip.hidden = true;
  document.body.append(tip);
  const hints = new WeakMap();
  const hint = (node) => {
    if (!hints.has(node)) {
      const title = [...node.children].find((child) => child.tagName.toLowerCase() === "title");
      const text = title ? title.textContent.split("; ").join("\n") : (node.getAttribute("title") ?? "");
      if (title) {
        node.setAttribute("aria-label", title.textContent);
        title.remove();
      } else node.removeAttribute("title");
      hints.set(node, text);
    }
    return hints.get(node);
  };
  const near = (x, y) => {
    const { width, height } = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - width - 4))}px`;
    tip.style.top = `${y + 18 + height > innerHeight ? Math.max(4, y - height - 10) : y + 18}px`;
  };
  const point = (event) => {
    const node = event.target.closest?.("svg path, .term, abbr, .cell a");
    const text = node && (hints.has(node) || find(":scope > title", node) || node.title) ? hint(node) : "";
    tip.hidden = !text;
    if (!text) return;
    (node.closest("dialog") ?? document.body).append(tip);
    tip.textContent = text;
    const box = node.getBoundingClientRect();
    near(event.clientX || box.left, event.clientY || box.bottom);
  };
  document.addEventListener("pointerover", point);
  document.addEventListener("pointermove", (event) => tip.hidden || near(event.clientX, event.clientY));
  document.addEventListener("focusin", point);
  document.addEventListener("focusout", () => (tip.hidden = true));
  document.addEventListener("keydown", (event) => event.key === "Escape" && (tip.hidden = true));

  // ---- sections: one at a time; a section is set up when it is first shown

  const panels = every("main > section[id]");
  const entries = every(".contents a");
  const ready = new WeakSet();
  const prepare = (panel) => {
    if (ready.has(panel)) return;
    ready.add(panel);
    for (const table of every("table[data-table]", panel)) {
      const count = Number(table.dataset.count);
      const rest = table.parentElement.nextElementSibling;
      const byQuery = panel.id === "queries" ? (grid, row) => opener(row.tr.cells[0], () => openQuery(row.texts[0])) : null;
      const grid = new Grid(table, Number(table.dataset.table), byQuery ?? leads(table));
      equip(grid, count, rest?.classList.contains("rest") ? rest : null);
    }
  };
  const show = () => {
    const target = document.getElementById(location.hash.slice(1));
    const panel = target?.closest("main > section[id]") ?? panels[0];
    if (!panel) return;
    prepare(panel);
    for (const one of panels) one.hidden = one !== panel;
    for (const entry of entries) {
      const current = entry.hash === `#${panel.id}`;
      current ? entry.setAttribute("aria-current", "page") : entry.removeAttribute("aria-current");
      if (current) entry.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
    for (let fold = target?.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    target && target !== panel ? target.scrollIntoView({ block: "center" }) : scrollTo(0, 0);
  };
  addEventListener("hashchange", show);
  addEventListener("beforeprint", () => panels.forEach(prepare));

  // ---- set-up

  document.documentElement.classList.add("live");
  show();
  document.addEventListener("click", (event) => {
    const cell = event.target.closest?.("[data-cell]");
    if (cell) {
      event.preventDefault();
      openCell(Number(cell.dataset.cell));
      return;
    }
    const drawn = event.target.closest?.("[data-at]");
    const figure = drawn?.closest("[data-detail]");
    if (figure) {
      const texts = JSON.parse(drawn.dataset.at);
      const by = JSON.parse(figure.dataset.by);
      openRows(Number(figure.dataset.detail), Object.fromEntries(by.map((name, at) => [name, texts[at]])));
    }
  });
})();
