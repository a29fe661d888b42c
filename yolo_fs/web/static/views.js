// The views: each takes the state and returns an element. They compute nothing that a command would say otherwise.
import { clock, el, plain, short, span, svg, words } from "./dom.js";

const SIGNS = { complete: "✓", running: "◐", ready: "○", waiting: "◌", pending: "·", skipped: "–" };
const FEW = 200;

const commit = (oid) => oid ? el("code.commit", { title: oid }, short(oid)) : null;
const card = (title, key, ...inside) => el("section.card", { "data-key": key, "aria-label": title }, el("h2", {}, title), ...inside);
/** What is over is one line, until somebody unfolds it. */
const folded = (title, key, said, ...inside) => el("section.card", { "data-key": key, "aria-label": title }, el("details", { "data-key": `${key}-over` }, el("summary", {}, el("h2", {}, title), el("span.count", {}, said)), ...inside));
const empty = (text) => el("p.none", {}, text);

/** Return a path: its folder in small print, or left out where everything lies in it. */
function path(name, folder = "") {
  const shown = folder && plain(name).startsWith(folder) ? plain(name).slice(folder.length) : plain(name);
  const at = shown.lastIndexOf("/") + 1;
  return el("span.path", { title: name }, el("span.folder", {}, shown.slice(0, at)), shown.slice(at));
}

const PLANNING = ".yolo-planning/";
const home = (state) => `${PLANNING}phases/${state.phase}/`;

function findings(list) {
  return el("ul.findings", {}, list.map((one) => el(`li.${one.level === "warning" ? "warning" : "error"}`, {},
    el("span.where", {}, one.line ? `line ${one.line}${one.at ? ` ${one.at}` : ""}` : "file"),
    el("strong", {}, words(one.reason)), " ", one.message,
    one.expected ? el("span.mend", {}, `expected ${one.expected}`) : null,
    one.hint ? el("span.mend", {}, one.hint) : null)));
}

// --- team ---

const isNarrow = matchMedia("(max-width: 760px)");

export function team(state) {
  const { board } = state;
  const phase = state.phaseNow();
  return el("div.view.team", {}, needsYou(state), inTheWay(state),
    phase ? [summary(state, phase), cause(phase), steps(state, phase)] : card("Team", "none", empty("No phase has a committed file yet. The first file of an agent begins one, or you create one:"), command(state, "yolo-fs phase new SLUG")),
    el("div.column", { "data-key": "work" }, phase ? escalations(state, phase) : null, refused(state), deleted(state), phase ? [gates(state, phase), plans(phase)] : null),
    el("div.column", { "data-key": "aside" }, atWork(state), recent(state), phase ? waits(phase) : null, board.crew ? crew(board.crew) : null));
}

/** What waits for a person: the same list as `yolo-fs inbox`. */
function needsYou(state) {
  if (state.at) return null;
  const waiting = state.board.inbox ?? [];
  if (!waiting.length) return el("section.card.calm", { "data-key": "needs", "aria-label": "Inbox" }, el("p", {}, el("span.sign.complete", { "aria-hidden": "true" }, "✓ "), "Nothing waits for you."));
  return el("section.card.needs", { "data-key": "needs", "aria-label": "Inbox" }, el("h2", {}, `Waits for you: ${waiting.length}`),
    el("ul", {}, waiting.map((one) => item(state, one))));
}

/** What nobody answers by a command, and no list of files shows. */
function inTheWay(state) {
  if (state.at) return null;
  const { board } = state;
  const noted = [
    ...(board.forged ?? []).map((one) => `${one.file} was made by hand and is ignored: only committed evidence opens a gate`),
    ...(board.overdue ?? []),
    ...(board.crew?.stalls ?? []).map((one) => `${one.department} ${words(one.step)} has stalled: ${one.agent} is next; ${one.said}`),
  ];
  return noted.length ? card("In the way", "noted", el("ul", {}, noted.map((text) => el("li", {}, text)))) : null;
}

function item(state, one) {
  const age = one.since ? (state.clockMs() - Date.parse(one.since)) / 1000 : null;
  return el("li.item", { "data-key": one.id, "data-kind": one.kind }, el("p", {}, el(`span.tag.${one.kind}`, {}, words(one.kind)), one.question, age === null ? null : el("span.why", { title: one.since }, ` ${span(age)} ago`)),
    one.options.length ? el("ol.options", {}, one.options.map((option) => el("li", {}, option))) : null, command(state, one.command));
}

/** A command, with a button that copies it: nothing here runs anything. */
function command(state, text) {
  if (!text) return null;
  return el("p.command", {}, el("code", {}, text), el("button.copy", { type: "button", "aria-label": `Copy: ${text}`, onclick: (event) => state.copy(text, event.target) }, "Copy"));
}

function summary(state, phase) {
  const { pace } = phase;
  const all = phase.departments.flatMap((one) => one.plans);
  const done = all.filter((one) => one.standing === "complete").length;
  const until = phase.complete || state.at ? pace.last_s : state.clockMs() / 1000;
  const facts = [
    pace.began_s ? `${phase.complete ? "took" : "for"} ${span(until - pace.began_s)}` : null,
    !phase.complete && pace.left_s >= 60 ? `about ${span(pace.left_s)} left at this pace` : null,
    all.length ? `${done} of ${all.length} plans complete` : null,
  ].filter(Boolean);
  return el("section.card.summary", { "data-key": "summary", "aria-label": "Phase" },
    el("div.share", {}, el("span.number", {}, `${pace.steps_done}/${pace.steps}`), el("span.of", {}, "steps done")),
    el("div", {}, el("h2", {}, phase.complete ? `${phase.phase} is complete` : `${phase.phase}: ${words(phase.step)}`),
      el("progress", { max: pace.steps, value: pace.steps_done, "aria-label": "Steps done" }),
      el("p.paced", {}, facts.join(" · ")),
      phase.complete ? null : el("p", {}, turn(phase.next)),
      phase.complete || phase.step === "signoff" ? el("p", {}, `Sign-off: ${phase.sign_off.decision} (${phase.sign_off.why}).`) : null));
}

const turn = (next) => next ? `Next: ${next.sentence}` : "";

/** What everything waits for, in one sentence, and below it who stands behind it. */
function cause(phase) {
  if (!phase.root_cause) return null;
  const { sentence, command: does, tree } = phase.root_cause;
  return el("section.card.cause", { "data-key": "cause", "aria-label": "Root cause" }, el("h2", {}, "What blocks the phase"),
    el("p.sentence", {}, sentence), does ? el("p.command", {}, el("code", {}, does)) : null,
    tree.waiters.length ? el("details", {}, el("summary", {}, "Who waits for it"), branch(tree.waiters)) : null);
}

const branch = (waiters) => el("ul.tree", {}, waiters.map((one) => el("li", {}, el("strong", {}, one.name), el("span.why", {}, ` ${one.why}${one.where ? ` (${one.where})` : ""}`), one.waiters.length ? branch(one.waiters) : null)));

function steps(state, phase) {
  const known = new Map();
  for (const one of [...phase.departments.flatMap((each) => each.steps), ...phase.steps]) known.set(one.step, one.number);
  const order = [...known].sort((a, b) => a[1] - b[1]);
  const rows = [...phase.departments, { department: "phase", steps: phase.steps, next: phase.next, blockers: [] }];
  const cellOf = (row, step) => cell(state, row, row.steps.find((one) => one.step === step));
  const grid = isNarrow.matches
    ? el("table.grid.upright", {}, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, el("span.hidden", {}, "Step")), rows.map((row) => el("th", { scope: "col" }, row.department)))),
      el("tbody", {}, order.map(([step, number]) => el("tr", { "data-key": step }, el("th", { scope: "row" }, el("span.no", {}, number), el("span.name", {}, words(step))), rows.map((row) => cellOf(row, step))))))
    : el("table.grid", {}, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, el("span.hidden", {}, "Department")),
      order.map(([step, number]) => el("th", { scope: "col", title: words(step) }, el("span.no", {}, number), el("span.name", {}, words(step)))))),
    el("tbody", {}, rows.map((row) => el("tr", { "data-key": row.department }, el("th", { scope: "row" }, row.department), order.map(([step]) => cellOf(row, step))))));
  return card("Departments and steps", "steps", el("div.wide", { tabindex: 0, role: "group", "aria-label": "Departments and steps, scrolls" }, grid),
    detail(state, rows), el("p.legend", {}, Object.entries(SIGNS).map(([standing, sign]) => el("span", {}, el(`span.sign.${standing}`, { "aria-hidden": "true" }, sign), standing))));
}

function cell(state, row, one) {
  if (!one) return el("td.off", {});
  const key = `${row.department}/${one.step}`;
  const age = one.by && state.ages.get(one.by);
  const says = `${row.department}, ${words(one.step)}: ${one.standing}${one.standing === "complete" ? ` by ${short(one.by)}` : ""}${age ? `, ${clock(age)}` : ""}`;
  return el("td", {}, el(`button.cell.${one.standing}`, { type: "button", title: says, "aria-label": says, "aria-expanded": String(state.open === key),
    "data-cell": key, "data-standing": one.standing, "data-by": one.by, onclick: () => state.toggle(key) }, SIGNS[one.standing]));
}

function detail(state, rows) {
  const [department, step] = (state.open ?? "").split("/");
  const row = rows.find((one) => one.department === department);
  const one = row?.steps.find((each) => each.step === step);
  if (!one) return null;
  const at = state.ages.get(one.by);
  return el("div.detail", { "data-key": "detail", role: "region", "aria-label": `${department}, ${words(step)}` },
    el("h3", {}, `${department}: ${words(step)} is ${one.standing}`),
    one.standing === "complete" && one.by ? el("p", {}, "Proved by ", commit(one.by), at ? ` of ${clock(at)}, ${span((state.clockMs() - at) / 1000)} ago` : "") : null,
    one.standing === "skipped" ? el("p", {}, `Skipped by rule: ${one.by}`) : null,
    one.missing.length ? el("ul.lacks", {}, one.missing.map((lack) => el("li", {}, lack))) : null,
    row.next?.step === step ? el("p", {}, turn(row.next), row.next.why ? ` ${row.next.why}` : "", row.next.writes.length ? el("span.mend", {}, `writes ${row.next.writes.join(", ")}`) : null) : null,
    (row.blockers ?? []).map((said) => el("p.warning", {}, said)));
}

// --- who is at work ---

/** The agents that the company runs now, and what the run has cost, beside each role's budget. */
function atWork(state) {
  const run = state.at ? null : state.company.filter((one) => !state.phase || one.phase === state.phase).at(-1);
  if (!run) return null;
  const running = run.acts.filter((act) => !act.ended && act.pid);
  const bill = ([name, one]) => [name, String(one.starts), one.tokens.toLocaleString("en"), one.budget ? one.budget.toLocaleString("en") : "–", `${one.cost_usd.toFixed(2)} USD`];
  const hosts = Object.entries(run.by_host), isMixed = hosts.length > 1;
  return el("section.card", { "data-key": "company", "aria-label": "At work" }, el("h2", {}, running.length ? `At work: ${running.length}` : `Last run: ${plain(run.outcome || "not ended", 60)}`),
    running.length ? table(["Agent", "Act", "Since", "Last tool", "Tokens", "Cost"], running.map((act) => [isMixed ? `${act.agent} (${act.host})` : act.agent, act.task || words(act.step), span(state.clockMs() / 1000 - act.started), act.tool || "–", act.tokens.toLocaleString("en"), `${act.cost_usd.toFixed(2)} USD`])) : null,
    el("details", { "data-key": "bill" }, el("summary", {}, `Bill: ${run.tokens.toLocaleString("en")} tokens, ${run.cost_usd.toFixed(2)} USD`),
      table(["Role", "Starts", "Tokens", "Context budget", "Cost"], Object.entries(run.by_role).map(bill)), table(["Step", "Starts", "Tokens", "", "Cost"], Object.entries(run.by_step).map(bill)),
      isMixed ? table(["Host", "Starts", "Tokens", "", "Cost"], hosts.map(bill)) : null));
}

function gates(state, phase) {
  const shown = el("div.gates", {}, phase.gates.map((gate) => el(`details.gate.${gate.open ? "open" : "closed"}`, { "data-key": gate.gate, "data-gate": gate.gate, "data-open": String(gate.open) },
    el("summary", {}, el("span.sign", { "aria-hidden": "true" }, gate.open ? "✓" : "▌▐"), gate.gate, el("span.count", {}, gate.open ? "open" : `${gate.missing.length} missing${gate.blocking ? "" : ", not blocking"}`)),
    gate.open ? el("ul", {}, gate.evidence.map((one) => el("li", {}, path(one.path, home(state)), " ", commit(one.commit)))) :
      el("ul.lacks", {}, gate.missing.map((one) => el("li", {}, lack(one)))))));
  const isOver = phase.gates.length > 0 && phase.gates.every((gate) => gate.open);
  return isOver ? folded("Gates", "gates", `${phase.gates.length} of ${phase.gates.length} open`, shown) : card("Gates", "gates", shown);
}

function lack(one) {
  return [`${one.what} `, el("span.why", {}, `(${one.file}${one.line ? `:${one.line}` : ""})`), one.command ? el("p.command", {}, el("code", {}, one.command)) : null];
}

function plans(phase) {
  const all = phase.departments.flatMap((one) => one.plans.map((plan) => ({ ...plan, department: one.department })));
  if (!all.length) return null;
  const shown = el("ul.plans", {}, all.map((plan) => el("li", { "data-key": plan.plan },
    el("details", {}, el("summary", {}, el(`span.sign.${plan.standing}`, { "aria-hidden": "true" }, SIGNS[plan.standing] ?? "◐"),
      el("span.id", {}, plan.plan), el("span.title", {}, plan.title), el("span.count", {}, `${plan.department}, wave ${plan.wave}, ${plan.tasks_done}/${plan.tasks_total} tasks, ${plan.standing}`)),
    el("ul", {}, plan.tasks.map((task) => el("li", {}, el("span.id", {}, task.task), task.action, " ", commit(task.commit)))),
    plan.missing.length ? el("ul.lacks", {}, plan.missing.map((one) => el("li", {}, one))) : null,
    plan.blocked_by.length ? el("p.warning", {}, `waits for ${plan.blocked_by.join(", ")}`) : null))));
  const isOver = all.every((plan) => plan.standing === "complete");
  return isOver ? folded("Plans", "plans", `${all.length} of ${all.length} complete`, shown) : card("Plans", "plans", shown);
}

// --- who waits for whom ---

function waits(phase) {
  const all = phase.waits ?? [];
  if (!all.length) return null;
  const circular = new Set(phase.alarms.filter((one) => one.kind === "deadlock").flatMap((one) => one.waits.map((wait) => `${wait.waiter}>${wait.on}`)));
  const isCircle = (wait) => circular.has(`${wait.waiter}>${wait.on}`);
  return el("section.card", { "data-key": "waits", "aria-label": "Who waits for whom" }, circular.size ? graph(all, isCircle) : null, el("details", { open: circular.size > 0, "data-key": "edges" }, el("summary", {}, el("h2", {}, "Who waits for whom"), el("span.count", {}, String(all.length))),
    el("ul.waits", {}, all.slice(0, FEW).map((wait) => el(`li${isCircle(wait) ? ".error" : ""}`, {},
      el("strong", {}, wait.waiter), " waits for ", el("strong", {}, wait.on), el("span.why", {}, ` ${wait.why} (${wait.where})`),
      isCircle(wait) ? " — part of a cycle, which never ends on its own" : "", wait.remedy ? el("span.mend", {}, wait.remedy) : null))), more(all, FEW)));
}

function graph(all, isCircle) {
  const names = [...new Set(all.flatMap((wait) => [wait.waiter, wait.on]))];
  if (names.length > 24) return null;
  const rank = new Map(names.map((name) => [name, 0]));
  for (let round = 0; round < names.length; round += 1) {
    for (const wait of all) if (!isCircle(wait)) rank.set(wait.on, Math.max(rank.get(wait.on), Math.min(rank.get(wait.waiter) + 1, 5)));
  }
  const columns = [];
  for (const name of names) (columns[rank.get(name)] ??= []).push(name);
  const filled = columns.filter(Boolean);
  const tall = Math.max(...filled.map((one) => one.length));
  const place = new Map();
  filled.forEach((column, x) => column.forEach((name, y) => place.set(name, [20 + x * 210, 14 + y * 34 + (tall - column.length) * 17])));
  const drawn = svg("svg", { viewBox: `0 0 ${filled.length * 210} ${tall * 34 + 8}`, width: filled.length * 210, height: tall * 34 + 8, role: "img", "aria-label": "Who waits for whom", class: "graph" });
  for (const wait of all) {
    const [[x1, y1], [x2, y2]] = [place.get(wait.waiter), place.get(wait.on)];
    const bend = x1 >= x2 ? 60 : 0;
    drawn.append(svg("path", { d: `M${x1 + 150} ${y1}C${x1 + 175} ${y1 + bend} ${x2 - 30} ${y2 + bend} ${x2 - 6} ${y2}`, class: isCircle(wait) ? "edge circle" : "edge" }));
    drawn.append(svg("circle", { cx: x2 - 5, cy: y2, r: 2.5, class: isCircle(wait) ? "tip circle" : "tip" }));
  }
  for (const [name, [x, y]] of place) {
    drawn.append(svg("rect", { x, y: y - 12, width: 150, height: 24, rx: 6, class: "node" }), svg("text", { x: x + 8, y: y + 4 }, plain(name, 22)));
  }
  return el("div.wide", { tabindex: 0, role: "group", "aria-label": "Graph of waits, scrolls" }, drawn);
}

// --- escalations and agents ---

function escalations(state, phase) {
  const open = phase.escalations.filter((one) => one.standing !== "resolved");
  const over = phase.escalations.filter((one) => one.standing === "resolved");
  if (!phase.escalations.length) return null;
  return el("section.card", { "data-key": "escalations", "aria-label": "Escalations" }, el("h2", {}, "Escalations"), open.map((one) => escalation(state, one)),
    over.length ? el("details", { "data-key": "resolved" }, el("summary", {}, `${over.length} resolved`), over.map((one) => escalation(state, one))) : null);
}

function escalation(state, one) {
  const due = one.deadline ? (Date.parse(one.deadline) - state.clockMs()) / 1000 : null;
  return el(`article.escalation.${one.standing}`, { "data-key": one.id, "data-escalation": one.id, "data-holder": one.holder }, el("h3", {}, one.id, " ", el("span.count", {}, `${one.severity}, ${one.standing}`)),
    el("ol.ladder", {}, one.path.map((role) => el(`li${one.holder.endsWith(role) || one.holder === role ? ".holder" : ""}`, {}, role))),
    el("p", {}, one.holder ? `With ${one.holder}: ${one.history[0]?.reason || one.owed}` : `Decided: ${one.decision}`),
    due === null ? null : el("p.countdown", { role: "timer" }, due > 0 ? `moves up in ${span(due)}` : `answer overdue by ${span(-due)}`),
    el("details", {}, el("summary", {}, counted(one.history.length, "step")), el("ul", {}, one.history.map((each) => el("li", {}, el("time", {}, `${plain(each.dt).slice(0, 19).replace("T", " ")} `), `${each.agent} → ${each.to}: ${each.decision ?? each.reason ?? ""}`)))));
}

function crew(found) {
  const open = found.circuits.filter((one) => one.state !== "closed");
  if (!found.agents.length && !open.length && !found.shutdowns.length) return null;
  return card("Agents", "agents", el("ul.agents", {}, found.agents.slice(0, FEW).map((one) => el("li", { "data-key": one.id },
    el(`span.health.${one.health}`, {}, words(one.health)), el("strong", {}, one.name || one.id), ` since ${plain(one.since).replace("T", " ").replace("Z", "")}`)),
  open.map((one) => el("li.error", {}, `circuit of the ${one.dept}: ${one.state}; ${one.why}`))));
}

// --- what is refused, and what happened ---

function refused(state) {
  const wrong = (state.board.candidates ?? []).filter((one) => one.standing === "rejected" || one.standing === "held");
  if (!wrong.length) return null;
  return card("Refused and held", "refused", el("ul.refused", {}, wrong.slice(0, FEW).map((one) => el(`li.${one.standing}`, { "data-key": one.path, "data-path": one.path, "data-standing": one.standing },
    el("p", {}, el(`span.tag.${one.standing}`, {}, one.standing), el("a", { href: state.link({ view: "artifacts", path: one.path }) }, path(one.path, home(state))), el("span.why", {}, ` ${words(one.reason)}`)),
    one.findings.length ? findings(one.findings.slice(0, 10)) : null, more(one.findings, 10)))), more(wrong, FEW));
}

const isDeleted = (one) => one.reason === "deleted";

/** What a person took out of the work tree: `yolo-fs status` names the same. */
function deleted(state) {
  const gone = (state.board.candidates ?? []).filter(isDeleted);
  if (!gone.length) return null;
  return card("Deleted from the work tree; the branch has them still", "deleted", el("ul.refused", {}, gone.slice(0, FEW).map((one) => el("li", { "data-path": one.path },
    el("a", { href: state.link({ view: "artifacts", path: one.path }) }, path(one.path, home(state)))))), more(gone, FEW));
}

/** Say how many of a list are not drawn. */
function more(all, drawn) {
  return all.length > drawn ? el("p.why", {}, `${all.length - drawn} more are not shown here; 'yolo-fs status -v' has all`) : null;
}

function recent(state) {
  if (state.at) return past(state);
  const rows = state.events.slice(0, Math.max(12, state.unshown));
  if (!rows.length) return null;
  return card("What happened", "events", el("ol.events", { reversed: true }, rows.map((one) => {
    const said = one.happening ?? { actor: "", verb: one.type, object: one.subject, why: "", path: "", commit: "" };
    return el("li", { "data-key": `e${one.seq}`, "data-seq": one.seq }, el("time", { datetime: one.time, title: `${one.time}: ${one.type}` }, plain(one.time).slice(11, 16)),
      el("span.what", {}, el("strong", {}, said.actor), ` ${said.verb} `, said.path ? el("a", { href: state.link({ view: "artifacts", path: said.path, at: "" }) }, path(said.path, home(state))) : said.object,
        said.why ? el("span.why", {}, ` ${words(said.why)}`) : null, " ", said.commit ? el("a", { href: state.link({ at: said.commit }), title: "Show the team at this commit" }, commit(said.commit)) : null));
  })));
}

/** What the phase's history had at the moment that is looked at; nothing that came later. */
function past(state) {
  const until = state.clockMs();
  const known = (state.timeline?.moments ?? []).filter((one) => one.at_ms <= until);
  const here = known.findIndex((one) => one.commit.startsWith(state.at));
  const rows = known.slice(0, here < 0 ? known.length : here + 1).slice(-12).reverse();
  return card("What had happened", "events", el("ol.events", { reversed: true }, rows.map((one) => el("li", { "data-key": one.commit }, el("time", {}, clock(one.at_ms).slice(11, 16)),
    el("span.what", {}, one.subject, " ", el("a", { href: state.link({ at: one.commit }) }, commit(one.commit)))))), rows.length ? null : empty("Nothing yet."));
}

// --- time ---

export function time(state) {
  const plots = [["plans", "Plans complete"], ["steps", "Time per step, all departments together"], ["refusals", "Refusals by cause"], ["latency", "Commit latency"]];
  const left = state.timeline?.left ?? 0;
  return el("div.view.time", {}, card("Lanes", "lanes", left ? el("p.none", { role: "status" }, `reading history: ${left} commits left`) : null, picture(state, "lanes"),
    el("p.legend", {}, ["working", "review", "waiting", "refused"].map((use) => el("span", {}, el(`span.swatch.${use}`, {}), use)),
      el("span", {}, el("span.swatch.plan", {}), "plan, wave by wave"),
      [["refused", "refused"], ["held", "held"], ["opened", "gate opened"], ["escalation", "escalation"]].map(([kind, means]) => el("span", {}, el(`span.swatch.dot.${kind}`, {}), means)))),
  el("div.plots", {}, plots.map(([name, title]) => card(title, name, picture(state, name)))));
}

function picture(state, name) {
  const drawn = state.drawings.get(name);
  const holder = el("div.plot", { "data-plot": name, "data-kept": drawn?.key ?? "none" });
  if (drawn) holder.append(drawn.image.cloneNode(true));
  return holder;
}

// --- artifacts ---

export function artifacts(state) {
  const { board, filter } = state;
  const all = (board.candidates ?? state.pastArtifacts.map((one) => ({ ...one, standing: "committed", findings: [], reason: "" })))
    .filter((one) => !state.phase || one.path.includes(`/${state.phase}/`) || !one.path.includes("/phases/"));
  const counts = Object.groupBy ? Object.groupBy(all, (one) => one.standing) : {};
  const shown = all.filter((one) => (!filter.standing || one.standing === filter.standing) && one.path.toLowerCase().includes(filter.text));
  return el("div.view.artifacts", {}, card("Artifacts", "list",
    el("div.filters", { role: "group", "aria-label": "Verdict" }, ["", "rejected", "held", "pending", "committed"].map((standing) => el("button.chip", { type: "button", "aria-pressed": String(filter.standing === standing),
      onclick: () => state.setFilter({ standing }) }, standing || "all", " ", el("span.count", {}, String(standing ? counts[standing]?.length ?? 0 : all.length)))),
    el("input", { type: "search", id: "search", placeholder: "Search paths", "aria-label": "Search paths", oninput: (event) => state.setFilter({ text: event.target.value.toLowerCase() }) })),
    el("ul.list", {}, shown.slice(0, state.more).map((one) => el("li", { "data-key": one.path }, el("a", { href: state.link({ path: one.path }), "aria-current": state.path === one.path ? "true" : null },
      el(`span.tag.${one.standing}`, {}, one.standing), path(one.path, home(state)), isDeleted(one) ? el("span.why", {}, " deleted from the work tree") : null, one.findings.length ? el("span.count", {}, `${one.findings.length}`) : null)))),
    shown.length > state.more ? el("button.quiet", { type: "button", onclick: () => state.showMore() }, `Show more (${shown.length - state.more})`) : null,
    shown.length ? null : empty("No matches.")),
  state.artifact ? artifact(state, state.artifact) : state.path ? card(state.path, "text", empty(state.artifactError || "…")) : card("Text", "text", empty("Choose an artifact on the left.")));
}

function artifact(state, one) {
  const byLine = Map.groupBy ? Map.groupBy(one.findings, (each) => each.line) : new Map();
  const versions = one.versions.map((each) => el("option", { value: each.commit, selected: state.against === each.commit }, `${short(each.commit)} ${clock(each.at_s * 1000)} ${plain(each.subject, 60)}`));
  return el("section.card.text", { "data-key": "text", "aria-label": one.path }, el("h2", {}, path(one.path)),
    el("p.facts", {}, `${words(one.kind)}, ${one.size_bytes} bytes, ${one.versions.length} version${one.versions.length === 1 ? "" : "s"}, `, one.commit ? ["at ", commit(one.commit)] : "in the work tree"),
    one.versions.length ? el("label", {}, "Compare with ", el("select", { "aria-label": "Version to compare with", onchange: (event) => state.compare(event.target.value) }, el("option", { value: "" }, "no other version"), versions)) : null,
    byLine.get(0) ? findings(byLine.get(0)) : null,
    one.records.length && !state.other ? el("div.records", {}, one.records.map((each) => record(each, byLine))) : null,
    state.other ? sideBySide(state.other.lines, one.lines) : raw(one, el("ol.lines", { tabindex: 0, "aria-label": "Text, scrolls" }, one.lines.map((line, at) => el("li", {}, el("code", {}, line || " "), byLine.get(at + 1) && !one.records.length ? findings(byLine.get(at + 1)) : null)))),
    one.line_count > one.lines.length ? empty(`${one.line_count - one.lines.length} more lines are not shown.`) : null);
}

/** A record in the words of its schema. */
function record(one, byLine) {
  return el("article.record", { "data-line": one.line }, el("h3", {}, `${one.kind} `, el("span.count", {}, `line ${one.line}`)),
    el("dl.fields", {}, one.fields.map((each) => [el("dt", { title: each.key }, each.meaning), el("dd", {}, each.value)])), byLine.get(one.line) ? findings(byLine.get(one.line)) : null);
}

const raw = (one, lines) => one.records.length ? el("details", { "data-key": "raw" }, el("summary", {}, "Raw text"), lines) : lines;

/** Return two versions line by line: what both have stands once. */
function sideBySide(before, after) {
  let head = 0;
  while (head < Math.min(before.length, after.length) && before[head] === after[head]) head += 1;
  let tail = 0;
  while (tail < Math.min(before.length, after.length) - head && before.at(-1 - tail) === after.at(-1 - tail)) tail += 1;
  const gone = before.slice(head, before.length - tail);
  const come = after.slice(head, after.length - tail);
  const row = (kind, left, right) => el(`tr.${kind}`, {}, el("td", {}, el("code", {}, left ?? "")), el("td", {}, el("code", {}, right ?? "")));
  const same = (lines) => lines.map((line) => row("same", line, line));
  const changed = Array.from({ length: Math.max(gone.length, come.length) }, (_, at) => row("changed", gone[at], come[at]));
  return el("div.wide", { tabindex: 0, role: "group", "aria-label": "Versions side by side, scrolls" }, el("table.versions", {}, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "other version"), el("th", { scope: "col" }, "this version"))),
    el("tbody", {}, same(before.slice(0, head)), changed, same(before.slice(before.length - tail)))));
}

// --- handoffs and machines ---

export function handoffs(state) {
  const phase = state.phaseNow();
  const found = state.handoffs;
  const claims = phase?.handoffs ?? [];
  return el("div.view", {}, card("Handoffs", "lives", found?.lives.length ? el("ul.lives", {}, found.lives.map((one) => el("li", {}, el("p", {}, el("strong", {}, one.sender), " → ", el("strong", {}, one.receiver), " ", path(one.place)),
    el("ol.ladder", {}, one.stations.map((each) => el(`li${each.at_s ? ".holder" : ""}`, { title: each.at_s ? clock(each.at_s * 1000) : "not yet" }, each.stage, each.at_s ? el("span.count", {}, clock(each.at_s * 1000).slice(11)) : null)))))) : empty("No open handoffs.")),
  claims.length ? card("Claims of handoffs that the branch does not confirm", "claims", findings(claims)) : null,
  card("Product chain", "chain", found?.sessions.length ? found.sessions.map((one) => el("article", {}, el("h3", {}, one.session), el("ol.ladder", {}, one.envelopes.map((each) => el(`li.${each.is_error ? "failed" : "holder"}`, { title: each.path }, `${each.from} → ${each.to}`, each.is_error ? el("span.count", {}, " failed") : null))))) : empty("No product handoffs yet.")));
}

export function machines(state) {
  const joined = state.board.machines;
  if (!joined) return el("div.view", {}, card("Several machines", "machines", empty("This clone is in no team. The clones of a team are listed here, with their leases and their lag.")));
  const { clones, leases, waiting, lane } = joined;
  const here = clones.find((one) => one.is_here);
  return el("div.view", {},
    card(`Team ${plain(joined.team)}`, "clones", table(["Clone", "Branch", "Published", "Last", "Behind", "To publish", "Daemon"], clones.map((one) => [
      el("span", { title: one.root || "not a work tree of this repository" }, one.name, one.is_here ? el("span.count", {}, " here") : null), one.branch || "elsewhere", String(one.published),
      one.last_s ? el("span", { title: one.last }, clock(one.last_s * 1000)) : "never", known(one.behind), known(one.ahead),
      one.daemon_runs === null ? "unknown" : one.daemon_runs ? "runs" : "none"])),
    here.behind || here.ahead ? null : empty("This branch and the team have the same artifacts.")),
    lane ? card("Remote", "lane", el("p", {}, el("strong", {}, lane.remote), " ", lane.reason ? el("span.where", {}, words(lane.reason)) : lane.is_known ? `answers in ${Math.round(lane.round_trip_s * 1000)} ms` : "not contacted yet", lane.what ? ` ${lane.what}` : "", lane.since ? el("span.count", {}, ` since ${clock(Date.parse(lane.since))}`) : null)) : null,
    card("Leases", "leases", leases.length ? table(["Department", "Held by", "Since", "Epoch"], leases.map((one) => [one.dept, one.holder, one.since_s ? clock(one.since_s * 1000) : "unknown", String(one.epoch)])) : empty("No leases: every clone may publish for every department.")),
    card("Waiting", "waiting", waiting.length ? table(["Artifact", "Waits to", "Why", "Since"], waiting.map((one) => [
      path(one.path, PLANNING), one.waits_for === "choice" ? "be decided" : one.waits_for, one.reason ? el("span", {}, words(one.reason), one.what ? ` (${plain(one.what)})` : "") : "in progress", one.since_s ? clock(one.since_s * 1000) : "unknown"])) : empty("Nothing waits.")));
}

function table(titles, rows) {
  return el("div.wide", { tabindex: 0, role: "group", "aria-label": `${titles[0]}, scrolls` }, el("table.facts", {}, el("thead", {}, el("tr", {}, titles.map((one) => el("th", { scope: "col" }, one)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, row.map((one) => el("td", {}, one)))))));
}

const known = (number) => number === null ? "unknown" : String(number);
const counted = (number, what) => `${number} ${what}${number === 1 ? "" : "s"}`;
