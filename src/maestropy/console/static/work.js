/** One work: its hops, the verdict of `trace work`, its objects, changes and history. */
import { actionButtons, actionsNote } from "./actions.js";
import { read } from "./api.js";
import { el, fill, refill } from "./dom.js";
import { age, clock, count, exact } from "./format.js";
import { advice, badge, codeLink, command, readFailed, section, sign, tone } from "./parts.js";
import { requestRow } from "./requests.js";
import { t } from "./texts.js";

/** @param {{id: string}} context */
export function workView({ id }) {
  const element = el("div.page", {}, el("h1", { tabindex: "-1" }, t("work")), el("p.empty", {}, t("loading")));
  /** The manifests that were read. @type {Map<number, {text: string, isCut: boolean}>} */
  const texts = new Map();
  /** Where the last drawing of the page shows a manifest. @type {Map<number, {shown: HTMLElement, note: HTMLElement}>} */
  const places = new Map();
  let chosen = { from: 0, to: 0 };

  async function refresh() {
    try {
      const page = await read(`works/${encodeURIComponent(id)}`);
      const before = element.querySelector("h1");
      const hadFocus = before === document.activeElement;
      refill(element, ...draw(page));
      if (hadFocus) element.querySelector("h1")?.focus({ preventScroll: true });
      document.title = `${page.work.workName || id} · ${t("title")}`;
      document.documentElement.dataset.ready = id;
    } catch (error) {
      readFailed(error, element, refresh);
    }
  }

  /** @param {any} page */
  function draw(page) {
    const { work } = page;
    return [
      el("p", {}, el("a", { href: "#/works", "data-key": "back" }, `← ${t("back")}`)),
      el("h1", { tabindex: "-1" }, work.workName || work.resourceId, " ", badge(work.severity, `${work.verdict} ${work.code}`)),
      el("p.summary", {}, work.summary),
      page.problem ? el("p.muted", {}, t("error", { problem: page.problem })) : null,
      section("hops", t("hops"), hopStrip(page.hops)),
      page.offers.length ? section("actions", t("actions"), actionsNote(page.actions), actionButtons(page.offers, page.actions)) : null,
      facts(work),
      section("findings", t("findings"), work.clustersRead || work.isDeleted ? null : el("p.muted", {}, t(work.databaseRead ? "clustersNotReadDatabase" : "clustersNotRead")), work.findings.map(finding)),
      section("objects", t("objects"), work.manifests.length ? el("ul.tree", {}, work.manifests.map(object)) : el("p.muted", {}, t("noObjects"))),
      section("changes", t("changes"), changes(page.versions)),
      section("timeline", t("timeline"), timeline(page)),
      section("requests", t("requestsOfWork"), requests(page)),
      section("commands", t("commands"), page.commands.map(command)),
    ];
  }

  /**
   * @param {any} item
   * @param {number} index
   */
  function object(item, index) {
    const name = [item.gvk.kind ?? item.gvk.resource, item.namespace, item.name].filter(Boolean).join(" / ");
    const shown = el("pre", { hidden: true, tabindex: "0" });
    const note = el("p.muted");
    places.set(index, { shown, note });
    const draw = () => {
      const manifest = texts.get(index);
      // The page may have been drawn again while the manifest was read.
      const place = places.get(index);
      if (!manifest || !place) return;
      if (manifest.isCut) fill(place.note, t("manifestCut", { command: `maestro resourcebundle get ${id}` }));
      fill(place.shown, manifest.text);
      place.shown.hidden = false;
    };
    const show = async () => {
      try {
        if (!texts.has(index)) texts.set(index, await read(`works/${encodeURIComponent(id)}/manifests/${index}`));
        draw();
      } catch (error) {
        fill(places.get(index)?.note ?? note, t("error", { problem: /** @type {Error} */ (error).message }));
      }
    };
    draw();
    const feedback = Object.entries(item.feedback);
    return el("li", {}, el("details", { "data-key": `object ${name}` },
      el("summary", {}, el("span.strong", {}, name), " ",
        item.conditions.map((/** @type {any} */ one) => el("span", {}, badge(conditionState(one), `${one.type}=${one.status}`), " ")),
        el("span.muted", {}, t(`live_${item.live}`))),
      item.conditions.length ? el("table", {}, el("caption.hidden", {}, t("conditions")),
        el("tbody", {}, item.conditions.map((/** @type {any} */ one) => el("tr", {},
          el("th", { scope: "row" }, one.type), el("td", {}, one.status), el("td", {}, one.reason), el("td", {}, one.message))))) : null,
      feedback.length ? el("div", {}, el("h3", {}, t("feedback")), el("dl.pairs", {}, feedback.map(([key, value]) => [el("dt", {}, key), el("dd", {}, typeof value === "string" ? value : JSON.stringify(value))]))) : null,
      item.finalizers.length ? el("p", {}, `finalizers: ${item.finalizers.join(", ")}`) : null,
      item.inDb ? el("button", { type: "button", click: show, "data-key": `show ${index}` }, t("showManifest")) : null,
      note, shown));
  }

  /** @param {any[]} versions */
  function changes(versions) {
    const numbers = versions.map((one) => one.version);
    if (numbers.length < 2) return el("p.muted", {}, t("noChanges"));
    chosen = { from: chosen.from || numbers[1], to: chosen.to || numbers[0] };
    const result = el("div");
    const drawResult = () => {
      const [low, high] = [Math.min(chosen.from, chosen.to), Math.max(chosen.from, chosen.to)];
      const between = versions.filter((one) => one.version > low && one.version <= high);
      const lines = between.flatMap((one) => one.changes.map((/** @type {any} */ change) => el("li", {}, el("span.muted", {}, `v${one.version} `), typeof change === "string" ? change : changeText(change))));
      fill(result, lines.length ? el("ul.changes", {}, lines) : el("p.muted", {}, t("noChanges")));
    };
    const pick = (/** @type {"from"|"to"} */ side) => {
      const select = /** @type {HTMLSelectElement} */ (el("select", { "aria-label": t(side), "data-key": side, change: () => { chosen[side] = Number(select.value); drawResult(); } },
        numbers.map((number) => el("option", { value: number, selected: number === chosen[side] }, String(number)))));
      return select;
    };
    drawResult();
    return el("div", {}, el("p.muted", {}, t("changesHelp")), el("p", {}, t("from"), " ", pick("from"), " ", t("to"), " ", pick("to")), result);
  }

  return { title: t("work"), element, refresh, end() {} };
}

/** @param {any} condition */
function conditionState(condition) {
  const isGood = condition.type === "Degraded" || condition.type === "Progressing" ? condition.status === "False" : condition.status === "True";
  return isGood ? "ok" : condition.status === "False" ? "error" : "warn";
}

/** @param {any} change */
const changeText = (change) => [change.object, change.path ?? change.type, change.from !== undefined ? `${change.from} → ${change.to}` : ""].filter(Boolean).join(" ");

/** @param {any[]} hops */
export function hopStrip(hops) {
  return el("ol.hops", {}, hops.map((hop) => el(`li.hop.h-${tone(hop.state)}`, {
    "data-hop": hop.hop, "data-state": hop.state, "data-stop": hop.isStop ? "" : undefined,
    "aria-current": hop.isStop ? "step" : undefined,
  },
    el("span.sign", { "aria-hidden": "true" }, sign(hop.state)),
    el("b", {}, t(`hop_${hop.hop}`)),
    el("span.state", {}, hop.state === "broken" ? t("firstBroken") : t(`state_${hop.state}`)),
    hop.at ? el("time", { datetime: hop.at, title: clock(hop.at) }, exact(hop.at)) : null,
    hop.says ? el("span.says", {}, hop.says) : null)));
}

/** @param {any} work */
function facts(work) {
  const { db } = work;
  const pairs = [
    [t("resourceId"), el("code", {}, work.resourceId)],
    [t("consumer"), el("a", { href: `#/works?q=${encodeURIComponent(`consumer:${work.consumer ?? ""}`)}`, "data-key": "consumer" }, work.consumer ?? "–")],
    [t("source"), work.source || t("sourceUnknown")],
    ...(db ? [
      [t("version"), db.status && db.status.version !== db.version ? t("versionReported", { version: db.version, observed: db.status.version }) : String(db.version)],
      [t("created"), moment(db.createdAt)],
      [t("updated"), moment(db.updatedAt)],
      ...(db.deletedAt ? [[t("deleted"), moment(db.deletedAt)]] : []),
      [t("labels"), Object.entries(db.labels).map(([key, value]) => `${key}=${value}`).join(" ") || "–"],
    ] : []),
  ];
  return el("dl.facts", {}, pairs.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

/** @param {string} time */
const moment = (time) => el("time", { datetime: time }, `${clock(time)} (${age(time)})`);

/** @param {any} item */
export function finding(item) {
  return el("article.finding", {},
    el("h3", {}, badge(item.severity, t(`severity_${item.severity}`)), " ", item.title, " ", codeLink(item.code)),
    item.detail ? el("p", {}, item.detail) : null,
    item.evidence.length ? el("div", {}, el("h4", {}, t("evidence")), el("ul.evidence", {}, item.evidence.map((/** @type {any} */ one) => el("li", {}, el("span.muted", {}, `${one.where ?? `${one.pod} ${one.file}:${one.line}`}: `), one.says ?? one.msg)))) : null,
    item.works?.length ? el("div", {}, el("h4", {}, t("otherWorks")), el("ul.works-of", {}, item.works.map((/** @type {any} */ one) => el("li", {}, el("a", { href: one.link, "data-key": `other ${one.id}` }, one.name), el("span.muted", {}, ` ${one.consumer}`))))) : null,
    item.advice.length ? el("div", {}, el("h4", {}, t("remedy")), item.advice.map(advice)) : null);
}

/** @param {any} page */
function timeline(page) {
  if (page.historyProblem) return el("p.muted", {}, page.historyProblem === "unsupported" ? t("historyUnsupported") : page.historyProblem);
  if (!page.history.length) return el("p.muted", {}, t("noHistory"));
  return el("ol.timeline", {}, page.history.map((/** @type {any} */ entry) => el("li", {},
    el("time", { datetime: entry.time, title: entry.time }, clock(entry.time)),
    el("b", {}, entry.kind),
    el("span", {}, entry.version ? `v${entry.version} ` : "", entry.by, entry.address ? ` ${entry.address}` : ""),
    el("span.muted", {}, detail(entry.detail)))));
}

/** @param {any} detail */
function detail(detail) {
  const parts = [];
  if (detail.observed_version) parts.push(`version ${detail.observed_version} is reported`);
  for (const change of (detail.conditions ?? []).slice(0, 4)) parts.push([change.object, `${change.type}=${change.to || "gone"}`, change.reason].filter(Boolean).join(" "));
  for (const change of (detail.changes ?? []).slice(0, 6)) parts.push(typeof change === "string" ? change : changeText(change));
  for (const text of [detail.operator_reason, detail.reason, detail.requested_by]) if (text) parts.push(String(text));
  if (!parts.length && detail.objects) parts.push(...detail.objects.slice(0, 4));
  const more = (detail.conditions?.length ?? 0) - 4;
  if (more > 0) parts.push(`+ ${count(more)}`);
  return parts.join(", ");
}

/** @param {any} page */
function requests(page) {
  if (!page.hasLogs) return el("p.muted", {}, t("noLogs"));
  if (!page.requests.length) return el("p.muted", {}, t("noRequests"));
  return el("ul.plain", {}, page.requests.map((/** @type {any} */ one) => el("li", {}, requestRow(one))));
}
