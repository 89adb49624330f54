"use strict";
// Ranks as you type: it sends the query and the edited document to the server of this page and shows the lists of the
// rankers. Texts of the data only ever become text nodes, and values of inputs.
(() => {
  const find = (selector) => document.querySelector(selector);
  const make = (tag, text = "", style = "") => {
    const node = document.createElement(tag);
    node.textContent = text;
    if (style) node.className = style;
    return node;
  };
  const DELAY_MS = 250;
  const SHOWN_ROWS = 10;
  const BUSY_MS = 200;
  const about = JSON.parse(find("#data").content.textContent);
  const [query, title, body, live] = ["#query", "#title", "#body", "#live"].map(find);
  let baseQuery = "";
  let original = null; // the selected document as the collection has it, and as the inputs show it
  const unfolded = new Set(); // the rankers whose whole list is shown

  // ---- requests: one ranking at a time; a change during a request is ranked after it

  const send = async (action, fields) => {
    const options = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(fields) };
    let answer;
    try {
      answer = await (await fetch(`api/${action}`, options)).json();
    } catch {
      throw new Error("The server does not answer. Is 'shaketable view' still running?");
    }
    if (answer.error) throw new Error(answer.error);
    return answer;
  };
  const complain = (text = "") => {
    find("#error").textContent = text;
    find("#error").hidden = !text;
  };
  const attempt = async (work) => {
    try {
      complain();
      await work();
    } catch (error) {
      complain(error.message);
    }
  };
  const wait = async (button, work) => {
    button.disabled = true;
    document.body.setAttribute("aria-busy", "true");
    await attempt(work);
    document.body.removeAttribute("aria-busy");
    button.disabled = false;
  };

  const isEdited = () => original && (title.value !== original.shownTitle || body.value !== original.shownBody);
  const describeDocument = () => ({
    docno: original.docno,
    // an input changes line ends; a text that you did not edit is sent as the collection has it
    title: title.value === original.shownTitle ? original.title : title.value,
    body: body.value === original.shownBody ? original.body : body.value,
  });
  const describeCase = () => ({
    query: query.value,
    ...(baseQuery && baseQuery !== query.value ? { base_query: baseQuery } : {}),
    ...(original ? describeDocument() : {}),
  });

  let isRunning = false;
  let isStale = false;
  const refresh = async () => {
    clearTimeout(timer);
    if (isRunning) {
      isStale = true;
      return;
    }
    isRunning = true;
    const busy = setTimeout(() => find("#lists").setAttribute("aria-busy", "true"), BUSY_MS);
    do {
      isStale = false;
      showCase();
      if (!query.value.trim()) {
        find("#lists").replaceChildren(make("p", "Type a query to see the list of each ranker.", "soft"));
      } else {
        await attempt(async () => showAnswer(await send("rank", describeCase())));
      }
    } while (isStale);
    clearTimeout(busy);
    find("#lists").removeAttribute("aria-busy");
    isRunning = false;
  };
  let timer;
  const refreshSoon = () => {
    clearTimeout(timer);
    showCase();
    if (live.checked) timer = setTimeout(refresh, DELAY_MS);
  };

  // ---- the lists

  const showCase = () => {
    const edited = isEdited();
    find("#restore").disabled = find("#save").disabled = !edited;
    find("#compared").hidden = !baseQuery;
    if (!edited) find("#difference").hidden = true;
  };
  const showAnswer = (answer) => {
    find("#lists").replaceChildren(...answer.rankers.map(makeList));
    showPassages(find("#base-query"), answer.query_difference?.before, baseQuery);
    showPassages(find("#changed-query"), answer.query_difference?.after, query.value);
    const changed = answer.text_difference?.after.length > 0;
    find("#difference").hidden = !changed;
    if (changed) {
      showPassages(find("#before"), answer.text_difference.before);
      showPassages(find("#after"), answer.text_difference.after);
    }
    if (original) find("#moves").replaceChildren(...answer.rankers.map(makeMove));
  };
  const showPassages = (node, passages, text = "") => {
    const parts = passages?.length ? passages : [[text, ""]];
    node.replaceChildren(...parts.flatMap(([words, mark]) => [make(mark || "span", words), " "]));
  };
  const makeList = (ranker) => {
    const section = make("div");
    const heading = make("h2", ranker.name);
    section.append(heading);
    if (ranker.error) {
      section.append(make("p", ranker.error, "alert"));
      return section;
    }
    heading.append(" ", make("small", ranker.searches ? "searches" : "re-ranks the first stage"));
    if (ranker.note) section.append(make("p", ranker.note, "soft"));
    if (!ranker.rows.length) section.append(make("p", "No document is ranked for this query.", "soft"));
    const list = make("ol", "", "ranked");
    const whole = unfolded.has(ranker.name);
    let before = 0;
    for (const row of ranker.rows) {
      const isSelected = row.docno === original?.docno;
      if (!whole && row.rank > SHOWN_ROWS && !isSelected) continue;
      if (row.rank > before + 1) list.append(make("li", `… ${row.rank - before - 1} more …`, "gap"));
      before = row.rank;
      list.append(makeRow(row, isSelected));
    }
    section.append(list);
    if (ranker.rows.length > SHOWN_ROWS) {
      const isAll = ranker.rows.length === ranker.count;
      const all = isAll ? `Show all ${ranker.count}` : `Show the first ${ranker.rows.length} of ${ranker.count}`;
      const more = make("button", whole ? `Show the first ${SHOWN_ROWS}` : all);
      more.type = "button";
      more.onclick = () => {
        if (!unfolded.delete(ranker.name)) unfolded.add(ranker.name);
        const fresh = makeList(ranker);
        section.replaceWith(fresh);
        fresh.lastChild.focus();
      };
      section.append(more);
    }
    return section;
  };
  const makeRow = (row, isSelected) => {
    const item = make("li");
    const button = make("button");
    button.type = "button";
    button.setAttribute("aria-pressed", String(isSelected));
    button.dataset.docno = row.docno;
    const name = make("span", "", "name");
    name.append(make("span", row.docno, "docno"));
    const moved = row.rank_before !== null && row.rank_before !== row.rank;
    if (moved) {
      item.className = row.rank_before === 0 || row.rank_before > row.rank ? "up" : "down";
      name.append(" ", make("span", row.rank_before === 0 ? "new" : `was ${row.rank_before}`, "move"));
    }
    button.append(make("span", row.rank, "place"), name, make("span", row.score_text, "score"));
    const text = make("span", "", "text");
    if (row.title) text.append(make("span", row.title, "heading"), " ");
    text.append(row.text);
    button.append(text);
    button.onclick = () => attempt(() => select(row.docno));
    item.append(button);
    return item;
  };
  const makeMove = (ranker) => {
    const row = make("tr");
    const head = make("th", ranker.name);
    head.scope = "row";
    row.append(head);
    const move = ranker.move;
    if (!move) {
      const cell = make("td", ranker.error ?? "cannot score an edited text", "soft");
      cell.colSpan = 2;
      row.append(cell);
      return row;
    }
    const isMoved = move.rank_before !== move.rank_after;
    const style = move.rank_after < move.rank_before ? "gain" : "loss";
    const both = (before, after, differ) => (differ ? `${before} → ${after}` : `${after}`);
    // a document that a ranker does not list is added at the end: its rank is at least this one
    const [before, after] = [
      move.listed_before ? move.rank_before : `≥ ${move.rank_before}`,
      move.listed_after || move.rank_after < ranker.count ? move.rank_after : `≥ ${move.rank_after}`,
    ];
    row.append(make("td", both(before, after, isMoved), `n ranks ${isMoved ? style : ""}`));
    const isScored = move.score_before !== move.score_after;
    const score = make("td", both(move.score_before_text, move.score_after_text, isScored), "n");
    if (isScored) score.append(make("small", move.difference_text));
    row.append(score);
    return row;
  };

  // ---- the document

  const setText = (document_) => {
    title.value = document_.title;
    body.value = document_.body;
  };
  const select = async (docno) => {
    const found = await send("document", { docno });
    setText(found);
    original = { docno, ...found, shownTitle: title.value, shownBody: body.value };
    find("#document-title").textContent = `Document ${docno}`;
    find("#hint").hidden = true;
    find("#edit").hidden = false;
    find("#outcome").textContent = "";
    find("#saved").replaceChildren();
    find("#moves").replaceChildren();
    await refresh();
    const { top } = find("#editor").getBoundingClientRect();
    if (top < 0 || top > innerHeight / 2) find("#editor").scrollIntoView();
    find("#document-title").focus({ preventScroll: true });
  };
  const summarize = (select_, known, limit = "") => {
    const show = () => {
      const chosen = known.find((one) => one.name === select_.value);
      find(`#${select_.id}-summary`).textContent = chosen ? `${chosen.name}: ${chosen.summary}${limit}` : "";
    };
    select_.onchange = show;
    show();
  };

  // ---- events

  find("#ask").onsubmit = (event) => {
    event.preventDefault();
    refresh();
  };
  query.oninput = title.oninput = body.oninput = () => {
    find("#outcome").textContent = "";
    refreshSoon();
  };
  find("#known").onchange = (event) => {
    if (!event.target.value) return;
    query.value = about.queries[Number(event.target.value)];
    baseQuery = "";
    refresh();
  };
  find("#change-query").onclick = (event) =>
    wait(event.target, async () => {
      const changed = await send("transform-query", { query: query.value, name: find("#query-change").value });
      baseQuery ||= query.value;
      query.value = changed.query;
      await refresh();
    });
  find("#pin").onclick = () => {
    baseQuery = query.value;
    refresh();
    query.focus();
  };
  find("#forget").onclick = () => {
    baseQuery = "";
    refresh();
    query.focus();
  };
  find("#restore").onclick = () => {
    setText(original);
    find("#outcome").textContent = "";
    refresh();
    body.focus();
  };
  find("#change-text").onclick = (event) =>
    wait(event.target, async () => {
      const fields = { query: query.value, ...describeDocument(), name: find("#text-change").value };
      setText(await send("transform-document", fields));
      find("#outcome").textContent = `${fields.name} changed the text.`;
      await refresh();
    });
  find("#attack").onclick = (event) =>
    wait(event.target, async () => {
      const [name, ranker] = [find("#recipe").value, find("#target").value];
      find("#outcome").textContent = `Attacking ${ranker} …`;
      try {
        const found = await send("recipe", { query: query.value, ...describeDocument(), name, ranker });
        setText(found);
        const times = `${found.trials} ${found.trials === 1 ? "text" : "texts"}`;
        find("#outcome").textContent =
          found.rank_after < found.rank_before
            ? `${name} brought it from rank ${found.rank_before} to ${found.rank_after} of ${ranker}; it tried ${times}.`
            : `${name} found no text with a better rank; it tried ${times}.`;
      } catch (error) {
        find("#outcome").textContent = "";
        throw error;
      }
      await refresh();
    });
  find("#keep").onsubmit = (event) => {
    event.preventDefault();
    attempt(async () => {
      const expect = find("input[name=expect]:checked").value;
      const kept = await send("save", { query: query.value, ...describeDocument(), expect });
      const count = kept.count === 1 ? "1 pair" : `${kept.count} pairs`;
      find("#saved").replaceChildren(
        make("span", `Saved: ${kept.file} has ${count}. Test them with this command:`),
        make("pre", kept.command),
      );
    });
  };

  // ---- the start

  const clean = (text) => text.replace(/[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
  about.queries.forEach((text, number) => {
    const option = make("option", clean(text));
    option.value = number;
    find("#known").append(option);
  });
  if (about.query_count > about.queries.length) {
    const rest = make("option", `… and ${about.query_count - about.queries.length} more; type the query`);
    rest.disabled = true;
    find("#known").append(rest);
  }
  if (!about.scoring_rankers.length) find("#attack").disabled = true;
  live.checked = about.is_live;
  summarize(find("#query-change"), about.query_transforms);
  summarize(find("#text-change"), about.transforms);
  const limit = ` It tries at most ${about.max_trials} texts, or ${about.max_list_trials} if a score depends on the list.`;
  summarize(find("#recipe"), about.recipes, limit);
  query.value = about.queries[0] ?? "";
  document.documentElement.classList.add("live");
  refresh();
})();
