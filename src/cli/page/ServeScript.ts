/**
 * The style sheet and the script of the served page. The script writes text only as text, never as markup, and asks only the
 * server that the page came from.
 *
 * One file: one script, which the page's policy names by its hash.
 */

/** Styles of the served page in addition to the sheet of all pages. */
export const serveSheet = `
main { min-height: 60vh; }
button {
  padding: 0.3rem 0.75rem; border: 1px solid var(--line); border-radius: 0.35rem; background: var(--sunk); color: var(--ink);
  font: inherit; font-size: 0.875rem; cursor: pointer;
}
button:hover:not(:disabled) { border-color: var(--accent); }
button:disabled { color: var(--quiet); cursor: default; }
button.handle { padding: 0 0.25rem; border-color: transparent; background: none; color: var(--link); font-family: var(--mono); font-size: 0.8125rem; text-decoration: underline; }
header button.scheme { float: right; }
.tools { display: flex; flex-wrap: wrap; gap: 0.5rem; margin: 0.75rem 0; }
.fill { display: block; width: 100%; min-width: 4rem; height: 0.5rem; margin-top: 0.2rem; border-radius: 3px; background: var(--sunk); overflow: hidden; }
.fill rect { fill: var(--accent); }
.fill.high rect { fill: var(--warm); }
.state { white-space: nowrap; }
.state.running { color: var(--warm); font-weight: 600; }
.rows .live { padding: 0.6rem 0 0.6rem 1.1rem; border-left: 3px solid var(--warm); }
.live pre { background: none; padding: 0 0 0 0.5rem; max-height: none; }
.live .event { margin: 0.15rem 0; padding-left: 0.5rem; color: var(--quiet); font-size: 0.8125rem; max-width: none; overflow-wrap: anywhere; }
.live .event.bad { color: var(--warm); }
form.say { position: static; border-top: 1px solid var(--line); border-bottom: 0; align-items: stretch; }
form.say textarea {
  flex: 1 1 16rem; min-width: 0; min-height: 4.5rem; padding: 0.5rem 0.6rem; border: 1px solid var(--line); border-radius: 0.35rem;
  background: var(--sunk); color: var(--ink); font: inherit; resize: vertical;
}
dialog {
  width: min(52rem, calc(100vw - 2rem)); max-height: calc(100vh - 4rem); padding: 1rem 1.25rem; border: 1px solid var(--line);
  border-radius: 0.5rem; background: var(--paper); color: var(--ink);
}
dialog::backdrop { background: rgb(0 0 0 / 0.45); }
dialog form { position: static; border-bottom: 0; }
#alert { color: var(--warm); min-height: 1.4em; margin: 0.5rem 0 0; max-width: none; }
#alert:empty { display: none; }
.title { font-weight: 600; overflow-wrap: anywhere; }
td.n, th.n { text-align: right; }
table.sessions th:first-child { width: 45%; }
table.sessions th:nth-child(3) { width: 22%; }
@media (max-width: 640px) {
  table.sessions thead { display: none; }
  table.sessions, table.sessions tbody { display: block; }
  table.sessions tr { display: grid; grid-template-columns: 1fr auto; gap: 0 0.75rem; padding: 0.6rem 0; border-top: 1px solid var(--line); }
  table.sessions td { display: block; padding: 0.1rem 0; border: 0; text-align: left; }
  table.sessions td:first-child { grid-column: 1 / -1; }
  table.sessions td[data-name]::before { content: attr(data-name) " "; color: var(--quiet); font-size: 0.8125rem; }
  header button.scheme { margin: 0 0 0 0.5rem; }
}
`

/** The part of a script that keeps the token of the page's address for the tab, as `store.token`. */
export const tokenScript = `const store = {
  get token() { try { return sessionStorage.getItem("token") || ""; } catch { return this.held || ""; } },
  set token(value) { this.held = value; try { sessionStorage.setItem("token", value); } catch {} }
};
const given = /^#token=([\\w.~-]+)/.exec(location.hash);
if (given !== null) {
  store.token = given[1];
  history.replaceState(null, "", location.pathname);
}
`

/** Shows the sessions, one of them live, and the texts behind handles. */
export const serveScript = `
"use strict";
(() => {
  const get = (id) => document.getElementById(id);
  const make = (name, props = {}, ...children) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(props)) {
      if (key === "data") Object.assign(element.dataset, value);
      else if (key.startsWith("aria-")) element.setAttribute(key, value);
      else element[key] = value;
    }
    element.append(...children);
    return element;
  };
  const number = (value) => Math.round(value).toLocaleString("en");
  const plural = (count, word) => number(count) + " " + word + (count === 1 ? "" : "s");
  const clip = (text, most) => text.length > most ? text.slice(0, most - 1) + "…" : text;
  const oneLine = (text) => text.replace(/[\\s\\p{Cc}\\p{Cf}]+/gu, " ").trim();
  const visible = (text) => text.replace(/[\\p{Cc}\\p{Cf}]/gu, (one) =>
    one === "\\n" || one === "\\t" || one === "\\u200d" || one === "\\u200c" ? one : one === "\\r" ? "" : "⟨U+" + one.codePointAt(0).toString(16).toUpperCase().padStart(4, "0") + "⟩");

${tokenScript}
  const alert = (text) => { get("alert").textContent = text; };
  const ask = async (method, path, body, more = {}) => {
    const response = await fetch("/v1/sessions" + path, {
      method,
      headers: { authorization: "Bearer " + store.token, ...(body === undefined ? {} : { "content-type": "application/json" }), ...more.headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(more.signal ? { signal: more.signal } : {})
    });
    if (response.ok) return response;
    const problem = await response.json().catch(() => ({ message: "the server answered " + response.status }));
    if (response.status === 401) showToken();
    throw Object.assign(new Error(problem.message), { status: response.status });
  };
  const read = async (path) => (await ask("GET", path)).json();
  const trying = (work) => async (...args) => {
    try { await work(...args); } catch (error) {
      if (error.name !== "AbortError") alert(error.message);
    }
  };

  // The token.
  const showToken = () => {
    get("enter").hidden = false;
    get("list").hidden = get("one").hidden = true;
    get("token").focus();
  };
  get("enter").addEventListener("submit", (event) => {
    event.preventDefault();
    store.token = get("token").value.trim();
    get("token").value = "";
    alert("");
    show();
  });

  // The list.
  const svg = (name, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };
  const fill = (part, whole) => {
    const share = whole > 0 ? Math.min(1, part / whole) : 0;
    const bar = svg("svg", { class: share > 0.8 ? "fill high" : "fill", viewBox: "0 0 100 1", preserveAspectRatio: "none", "aria-hidden": "true" });
    bar.append(svg("rect", { width: 100 * share, height: 1 }));
    return bar;
  };
  const cost = ({ total, estimated }) => total === null ? "unknown" : (estimated ? "≈ " : "") + "$" + total.toFixed(total < 1 ? 4 : 2);
  const when = (at) => new Date(at).toISOString().replace("T", " ").slice(0, 16) + " UTC";
  const nameOf = ({ title, firstPrompt, id }) => clip(oneLine(title ?? firstPrompt ?? ""), 90) || id;
  const stateOf = ({ running, isHeld, problem }) =>
    running !== null ? ["running", "running"] : isHeld ? ["in use elsewhere", ""] : problem !== null ? ["cannot be read", ""] : ["idle", ""];
  const cells = (row) => {
    const [state, kind] = stateOf(row);
    const sums = row.totals;
    const cell = (name, className, ...children) => make("td", { className, data: { name } }, ...children);
    return [
      make("td", {}, make("a", { className: "title", href: "#session=" + row.id, textContent: nameOf(row) }),
        make("div", { className: "note", textContent: [row.model, when(row.updatedAt)].filter(Boolean).join(" · ") })),
      make("td", {}, make("span", { className: "state " + kind, textContent: state })),
      cell("tokens", "n", sums ? number(sums.shown) + " of " + number(sums.window) : "–", ...(sums ? [fill(sums.shown, sums.window)] : [])),
      cell("cost", "n", sums ? cost(sums.cost) : "–"),
      cell("compressions", "n", sums ? number(sums.compressions) : "–")
    ];
  };
  let listTimer;
  const showList = trying(async () => {
    clearTimeout(listTimer);
    get("list").hidden = false;
    get("one").hidden = get("enter").hidden = true;
    document.title = "Sessions · palimpsest";
    try {
      const { sessions, more } = await read("/?limit=50&totals=true");
      const running = sessions.filter((row) => row.running !== null).length;
      get("about").textContent = sessions.length === 0
        ? "No sessions yet. Start one below."
        : plural(sessions.length + more, "session") + (more > 0 ? ", the newest " + sessions.length + " shown" : "") + ", " + (running === 0 ? "none is running" : number(running) + (running === 1 ? " is running" : " are running")) + ".";
      get("table").hidden = sessions.length === 0;
      get("rows").replaceChildren(...sessions.map((row) => make("tr", {}, ...cells(row))));
      alert("");
    } finally {
      if (!get("list").hidden && get("enter").hidden) listTimer = setTimeout(() => { if (document.hidden) listTimer = setTimeout(showList, 5000); else showList(); }, 5000);
    }
  });
  get("new").addEventListener("click", trying(async () => {
    const { id } = await (await ask("POST", "/", {})).json();
    location.hash = "session=" + id;
  }));

  // One session.
  let current;
  const kinds = { text: (message) => message.author === "summary" ? "summary" : message.author ? "program" : message.role, thought: () => "thought", call: () => "call", output: () => "output", media: () => "media", other: () => "other" };
  const kindWords = { user: "user text", model: "model text", program: "program", summary: "summary", thought: "thought", call: "call", output: "tool output", media: "media", other: "other" };
  const handleButton = (handle) => make("button", { type: "button", className: "handle", textContent: handle, title: "Recall", onclick: () => recall(handle) });
  const part = (message, one) => {
    const kind = kinds[one.kind](message);
    const block = make("div", { className: "part" });
    const line = make("p", {}, make("span", { className: "swatch k-" + kind }), make("b", { textContent: kindWords[kind] + (one.tool ? " " + one.tool : "") }), ", " + plural(one.tokens, "token"));
    if (one.handle) line.append(" · ", handleButton(one.handle));
    block.append(line);
    if (one.kind !== "media") block.append(make("pre", { textContent: visible(one.text) }));
    if (!one.isWhole && one.kind !== "media") block.append(make("p", { textContent: "… the rest is behind the handle" }));
    return block;
  };
  const row = (message, isOpen) => {
    const words = message.parts.map((one) => (one.tool ? one.tool + " " : "") + oneLine(one.text.slice(0, 400))).join(" · ");
    const isTurn = message.role === "user" && message.author === null && message.parts.some((one) => one.kind === "text");
    const shares = svg("svg", { class: "bar", viewBox: "0 0 100 1", preserveAspectRatio: "none", "aria-hidden": "true" });
    let at = 0;
    for (const one of message.parts) {
      const width = message.tokens > 0 ? 100 * one.tokens / Math.max(message.tokens, current.largest) : 0;
      shares.append(svg("rect", { class: "k-" + kinds[one.kind](message) + (message.isShown ? "" : " gone"), x: at, width, height: 1 }));
      at += width;
    }
    const details = make("details", { open: isOpen }, make("summary", {},
      make("span", { className: "id", textContent: message.id }), make("span", { className: "who", textContent: message.author ?? message.role }), shares,
      make("span", { className: "n", textContent: number(message.tokens) }), make("span", { className: "words", textContent: clip(words, 160) })));
    details.append(make("p", { className: "about", textContent: [message.isShown ? "in the current view" : "not in the current view", message.model ? "by " + message.model : "", message.at ? when(message.at) : ""].filter(Boolean).join(" · ") }),
      ...message.parts.map((one) => part(message, one)));
    return make("li", { id: message.id, className: isTurn ? "message turn" : "message" }, details);
  };
  const facts = (view) => {
    const [state] = stateOf(view);
    const { totals } = view;
    const pairs = [["State", state], ["Model", view.model ?? "unknown"], ["Context", number(totals.shown) + " of " + number(totals.window) + " tokens"], ["Contains", plural(totals.messages, "message") + ", " + plural(totals.compressions, "compression")], ["Cost", cost(totals.cost)], ["Updated", when(view.updatedAt)], ["Id", view.id]];
    get("facts").replaceChildren(...pairs.flatMap(([name, value]) => [make("dt", { textContent: name }), make("dd", { textContent: value })]));
    const bar = fill(totals.shown, totals.window);
    get("window").replaceChildren(bar);
  };
  const isRunning = (value) => {
    const state = get("facts").querySelector("dd");
    if (state && (value || state.textContent === "running")) state.textContent = value ? "running" : "idle";
    get("send").disabled = get("compress").disabled = get("undo").disabled = value;
    get("cancel").disabled = !value;
  };
  const refresh = async (scope, id) => {
    // A response that arrives after that of a later request is out of date.
    const asked = scope.asked += 1;
    const view = await read("/" + id + "?messages=60&chars=4000");
    if (scope !== current || asked < scope.shown) return view;
    scope.shown = asked;
    current.largest = view.messages.reduce((most, message) => Math.max(most, message.tokens), 1);
    document.title = nameOf(view) + " · palimpsest";
    get("name").textContent = nameOf(view);
    facts(view);
    const open = new Set([...document.querySelectorAll("#messages details[open]")].map((one) => one.parentElement.id));
    const last = view.messages.length - 1;
    get("messages").replaceChildren(...(view.earlier > 0 ? [make("li", { className: "gap", textContent: plural(view.earlier, "earlier message") + " not shown; search recalls what left the window" })] : []),
      ...view.messages.map((message, index) => row(message, open.has(message.id) || index >= last - 1)));
    get("none").hidden = view.messages.length > 0;
    isRunning(view.running !== null);
    return view;
  };

  // Live events.
  const eventLine = (live, text, isBad) => live.append(make("p", { className: "event" + (isBad ? " bad" : ""), textContent: clip(oneLine(text), 400) }));
  const liveOf = (message) => {
    const id = "live-" + message;
    const known = get(id);
    if (known) return known;
    const live = make("li", { id, className: "live" });
    get("messages").append(live);
    get("none").hidden = true;
    return live;
  };
  const answerOf = (live) => {
    const last = live.lastElementChild;
    if (last && last.className === "answer") return last;
    const pre = make("pre", { className: "answer" });
    live.append(pre);
    return pre;
  };
  const showEvent = (scope, { message, event }) => {
    const { _tag } = event;
    if (_tag === "Ping") return;
    if (_tag === "Reset" || _tag === "Changed") { trying(refresh)(scope, scope.id); return; }
    if (message === null) return;
    if (_tag === "TurnEnded") {
      isRunning(false);
      const live = get("live-" + message);
      trying(async () => {
        await refresh(scope, scope.id);
        if (event.error !== null && scope === current) alert(event.error);
        if (event.status !== "answered" && event.error === null) alert("The turn was " + event.status + ".");
      })();
      if (live) live.setAttribute("aria-busy", "false");
      return;
    }
    const live = liveOf(message);
    switch (_tag) {
      case "TurnStarted": isRunning(true); alert(""); live.replaceChildren(make("p", { className: "event" }, make("b", { textContent: "user" }))); live.append(make("pre", { textContent: visible(event.text) })); break;
      case "Content": answerOf(live).textContent += visible(event.text); break;
      case "Retry": answerOf(live).textContent = ""; eventLine(live, "asked again: " + event.message, true); break;
      case "Thought": eventLine(live, "thinks: " + (event.subject || event.description)); break;
      case "ToolCallStarted": eventLine(live, "calls " + event.title); break;
      case "ToolCallResponse": eventLine(live, event.name + ": " + event.status + (event.message ? ", " + event.message : ""), event.status !== "success"); break;
      case "SubagentActivity": eventLine(live, event.agent + ": " + (event.activity.title ?? event.activity.text ?? event.activity._tag)); break;
      case "ChatCompressed": eventLine(live, "compressed: " + number(event.before) + " → " + number(event.after) + " tokens (" + event.status + ")"); break;
      case "Finished": eventLine(live, "finished: " + number(event.tokens) + " of " + number(event.limit) + " tokens in the window"); break;
      case "Notice": case "Error": case "LimitReached": case "HookStopped": case "InvalidStream": case "ContextWindowWillOverflow": eventLine(live, event.message, _tag !== "Notice"); break;
      case "LoopDetected": eventLine(live, "repeats itself: " + event.detail, true); break;
    }
  };
  const follow = async (scope, lastEvent) => {
    let last = lastEvent;
    for (let wait = 500; scope === current; wait = Math.min(wait * 2, 8000)) {
      try {
        const response = await ask("GET", "/" + scope.id + "/events", undefined, { signal: scope.abort.signal, headers: { "last-event-id": last } });
        const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
        let text = "";
        get("connection").textContent = "live";
        for (;;) {
          const { done, value } = await reader.read();
          if (done) break;
          wait = 500;
          text += value;
          const blocks = text.split("\\n\\n");
          text = blocks.pop();
          for (const block of blocks) {
            const field = (name) => block.split("\\n").filter((line) => line.startsWith(name + ":")).map((line) => line.slice(name.length + 1).replace(/^ /, "")).join("\\n");
            const data = field("data");
            if (field("id") !== "") last = field("id");
            // Own JSON: an event of the server that the page came from.
            if (data !== "" && scope === current) showEvent(scope, JSON.parse(data));
          }
        }
      } catch (error) {
        if (scope !== current) return;
        if (error.status !== undefined && error.status < 500) { alert(error.message); return; }
      }
      if (scope !== current) return;
      get("connection").textContent = "reconnecting …";
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  };
  const showSession = trying(async (id) => {
    clearTimeout(listTimer);
    current?.abort.abort();
    const scope = { id, abort: new AbortController(), largest: 1, asked: 0, shown: 0 };
    current = scope;
    get("one").hidden = false;
    get("list").hidden = get("enter").hidden = true;
    get("messages").replaceChildren();
    get("none").hidden = true;
    get("name").textContent = id;
    alert("");
    const view = await refresh(scope, id);
    if (scope !== current) return;
    // Do not take the focus from a message that is being written.
    if (document.activeElement !== get("text")) get("name").focus({ preventScroll: true });
    void follow(scope, view.lastEvent);
  });
  get("say").addEventListener("submit", (event) => {
    event.preventDefault();
    const scope = current;
    const text = get("text").value;
    if (text.trim() === "" || get("send").disabled) return;
    trying(async () => {
      isRunning(true);
      try {
        const response = await ask("POST", "/" + scope.id + "/messages", { text, onDisconnect: "continue" });
        get("text").value = "";
        // The session's stream shows the turn. It may begin only after the turn has ended.
        await response.text().catch(() => "");
        if (scope === current) await refresh(scope, scope.id);
      } catch (error) { isRunning(false); throw error; }
    })();
  });
  get("text").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); get("say").requestSubmit(); }
  });
  const action = (name, path, describe) => get(name).addEventListener("click", trying(async () => {
    const scope = current;
    const button = get(name);
    button.disabled = true;
    try {
      const result = await (await ask("POST", "/" + scope.id + path, path === "/compress" ? {} : undefined)).json();
      await refresh(scope, scope.id);
      alert(describe(result));
    } finally { if (name !== "cancel") button.disabled = !get("cancel").disabled; }
  }));
  action("compress", "/compress", (result) => result.status + ": " + number(result.before) + " → " + number(result.after) + " tokens" + (result.reason ? " (" + result.reason + ")" : ""));
  action("undo", "/undo", (result) => result.done ? "The last compression was undone." : "There is no compression to undo.");
  action("cancel", "/cancel", (result) => result.cancelled ? "Cancelled." : "Nothing was running.");

  // Recall.
  let recalled;
  const recall = (handle) => {
    recalled = handle;
    get("recalled").textContent = handle;
    get("lines").value = get("grep").value = "";
    get("lines").disabled = false;
    get("grep").placeholder = "pattern";
    get("dialog").showModal();
    load();
  };
  const load = trying(async () => {
    get("excerpt").textContent = "…";
    const query = new URLSearchParams();
    const lines = get("lines").value.trim(), grep = get("grep").value;
    if (recalled === undefined) {
      if (grep === "") { get("excerpt").textContent = ""; get("size").textContent = "Searches everything that left the window."; return; }
      query.set("pattern", grep);
    } else {
      if (lines !== "") query.set("lines", /-/.test(lines) ? lines : lines + "-" + lines);
      if (grep !== "") query.set("grep", grep);
      query.set("maxTokens", "20000");
    }
    try {
      const found = await read("/" + current.id + "/recall" + (recalled === undefined ? "" : "/" + recalled) + "?" + query);
      get("excerpt").textContent = visible(found.text);
      get("size").textContent = recalled === undefined
        ? plural(found.matched, "match") .replace("matchs", "matches") + " in " + plural(found.searched, "part")
        : plural(found.totalLines, "line") + (found.omittedLines > 0 ? ", " + number(found.omittedLines) + " not shown" : "");
    } catch (error) { get("excerpt").textContent = ""; get("size").textContent = error.message; }
  });
  get("recall").addEventListener("submit", (event) => { event.preventDefault(); load(); });
  get("close").addEventListener("click", () => get("dialog").close());
  get("search").addEventListener("click", () => {
    recalled = undefined;
    get("recalled").textContent = "Search";
    get("lines").value = get("grep").value = "";
    get("lines").disabled = true;
    get("excerpt").textContent = "";
    get("size").textContent = "Searches everything that left the window.";
    get("dialog").showModal();
    get("grep").focus();
  });

  // Places.
  const show = () => {
    if (store.token === "") { showToken(); return; }
    const id = /^#session=([A-Za-z0-9_-]{1,64})$/.exec(location.hash);
    if (id) showSession(id[1]);
    else { current?.abort.abort(); current = undefined; showList(); }
  };
  addEventListener("hashchange", show);
  const root = document.documentElement;
  get("scheme").addEventListener("click", () => {
    const isDark = root.dataset.scheme ? root.dataset.scheme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.scheme = isDark ? "light" : "dark";
  });
  show();
})();
`
