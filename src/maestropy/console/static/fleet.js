/** The landing page: what is wrong now, the flow of the last minutes, and every cluster. */
import { actionButtons, actionsNote, rowActions } from "./actions.js";
import { read } from "./api.js";
import { el, fill, refill } from "./dom.js";
import { age, count, duration, lasted, milliseconds } from "./format.js";
import { makeList } from "./list.js";
import { badge, codeLink, readFailed, searchField, section, tone } from "./parts.js";
import { t } from "./texts.js";

const STAGES = ["receive", "publish", "agent gets", "applied", "agent reports", "status in", "stored", "broadcast", "sent"];

/** @param {{params: URLSearchParams}} context */
export function fleetView({ params }) {
  let text = params.get("q") ?? "";
  const totals = el("div.tiles");
  const problems = el("div", { "aria-live": "polite" });
  const flow = el("div");
  const shown = el("span.muted");
  const none = el("p.empty", { hidden: true });
  const tools = el("div");
  /** @type {import("./actions.js").Availability|null} */
  let actions = null;
  const list = makeList({
    label: t("clusters"),
    style: "consumers",
    sort: "worst",
    columns: [
      { key: "name", title: t("colCluster"), sort: "name", cell: clusterCell },
      { key: "agent", title: t("colAgent"), sort: "worst", cell: agentCell },
      { key: "contact", title: t("colContact"), sort: "contact", style: "minor", cell: (row) => (row.agent === "connected" ? t("now") : age(row.contact)) },
      { key: "works", title: t("colWorks"), sort: "works", style: "right", cell: (row) => count(row.works) },
      { key: "errors", title: t("colErrors"), style: "right", cell: (row) => number(row.errors, "bad") },
      { key: "warnings", title: t("colWarnings"), style: "right", cell: (row) => number(row.warnings, "warn") },
      { key: "behind", title: t("colBehind"), style: "minor.right", cell: (row) => number(row.behind, "wait") },
      { key: "lag", title: t("colLag"), sort: "lag", style: "minor.right", cell: (row) => (row.lagSeconds === null ? "–" : duration(row.lagSeconds)) },
      { key: "instance", title: t("colInstance"), style: "minor", cell: (row) => row.instance || "–" },
      { key: "actions", title: t("colActions"), style: "act", cell: (row) => rowActions(row.name, row.offers, actions) },
    ],
    read: async (offset, limit) => {
      const page = await read("consumers", { q: text, sort, offset, limit });
      actions = page.actions;
      return page;
    },
    order: (chosen) => (sort = chosen),
    href: (row) => worksOf(row.name),
    name: (row) => row.name,
    counted: (total) => {
      fill(shown, count(total));
      none.hidden = total > 0;
      fill(none, text ? t("noMatch") : t("noConsumers"));
    },
    failed: (error) => readFailed(error, problems, () => refresh()),
  });
  let sort = "worst";

  const element = el("div.page", {},
    el("h1", { tabindex: "-1" }, t("fleet")),
    totals,
    section("wrong", t("wrongNow"), problems),
    section("flow", t("flow"), flow),
    section("clusters", t("clusters"),
      el("div.filters", {}, searchField({ label: t("filterConsumers"), value: text, change: (value) => { text = value; list.restart(); } }), shown),
      none, list.element, tools));

  async function refresh() {
    try {
      const [fleet] = await Promise.all([read("fleet"), list.refresh()]);
      drawTotals(totals, fleet);
      refill(tools, actionsNote(fleet.actions), actionButtons(fleet.offers, fleet.actions));
      refill(problems, fleet.problems.length ? el("ol.problems", {}, fleet.problems.map(problem)) : calm(fleet));
      refill(flow, drawFlow(fleet));
      document.documentElement.dataset.ready = String(fleet.totals.works);
    } catch (error) {
      readFailed(error, problems, refresh);
    }
  }

  return { title: t("fleet"), element, refresh, end: list.end, key: list.key };
}

/** @param {string} name */
const worksOf = (name) => `#/works?q=${encodeURIComponent(`consumer:${quoted(name)}`)}`;

/** @param {string} value */
export const quoted = (value) => (/[\s"'\\]/.test(value) ? `"${value.replace(/(["\\])/g, "\\$1")}"` : value);

/** @param {any} fleet */
function calm(fleet) {
  const { source } = fleet;
  if (!source.isComplete) return el("p.empty", {}, source.problem ? t("apiProblemFirst", source) : t("loadingWorks", { loaded: count(source.loaded), total: count(source.total) }));
  const never = fleet.neverConnected;
  if (never.length) return el("p.calm", {}, t("noneWrong", { names: never.join(", ") + (fleet.totals.agentsNever > never.length ? ", …" : "") }));
  return el("p.calm", {}, el("span.sign.t-ok", { "aria-hidden": "true" }, "✓ "), t("allWell"));
}

/**
 * @param {Element} element
 * @param {any} fleet
 */
function drawTotals(element, fleet) {
  const { totals } = fleet;
  const tile = (/** @type {string} */ key, /** @type {number} */ value, /** @type {string} */ state, /** @type {string} */ href) =>
    el("a.tile", { href, "data-key": key }, el(`b.t-${value ? tone(state) : "grey"}`, {}, count(value)), el("span", {}, t(key)));
  refill(element,
    tile("works", totals.works, "", "#/works"),
    tile("healthy", totals.healthy, "ok", "#/works?q=is:healthy"),
    tile("warnings", totals.warnings, "warn", "#/works?q=severity:warn"),
    tile("errors", totals.errors, "error", "#/works?q=severity:error"),
    tile("agentsConnected", totals.agentsConnected, "ok", "#/fleet"),
    tile("agentsAway", totals.agentsAway, "error", "#/fleet"),
    totals.agentsNever ? tile("agentsNever", totals.agentsNever, "warn", "#/fleet") : null,
    totals.agentsUnknown ? tile("agentsUnknown", totals.agentsUnknown, "", "#/fleet") : null);
}

/** @param {any} item */
function problem(item) {
  const names = item.consumers.slice(0, 5).join(", ") + (item.consumerCount > 5 ? ", …" : "");
  const unit = item.unit === "agents" ? ["unitAgent", "unitAgents"] : ["unitWork", "unitWorks"];
  const where = item.consumerCount === 1 ? t("onCluster", { names }) : t("onClusters", { count: count(item.consumerCount), names });
  return el("li.problem", {},
    badge(item.severity, item.name || item.severity),
    el("div", {},
      el("a.strong", { href: item.link, "data-key": `${item.code} ${item.link}` }, item.title),
      el("span.muted", {}, ` ${t(item.count === 1 ? unit[0] : unit[1], { count: count(item.count) })} ${where}`, item.since ? `, ${t("since", { time: lasted(item.since) })}` : ""),
      item.evidence ? el("p.evidence", {}, item.evidence) : null),
    codeLink(item.code));
}

/** @param {any} fleet */
function drawFlow(fleet) {
  const { rates, hops } = fleet;
  const cell = (/** @type {string} */ value, /** @type {string} */ text) => el("div.measure", {}, el("b", {}, value), el("span", {}, text));
  const cells = rates.isKnown
    ? [
        cell(t("perSecond", { rate: (rates.requests / rates.seconds).toFixed(1) }), t("specRequests")),
        cell(t("perSecond", { rate: (rates.statuses / rates.seconds).toFixed(1) }), t("statuses")),
        cell(milliseconds(rates.p50Ms), t("untilReported")),
        cell(milliseconds(rates.p90Ms), t("untilReported90")),
      ]
    : [el("p.muted", {}, t("flowUnknown"))];
  for (let number = 1; number < 9; number += 1) {
    const hop = hops[`${number}-${number + 1}`];
    if (hop) {
      const words = t("hopLatency", { from: STAGES[number - 1], to: STAGES[number], p50: milliseconds(hop.p50), p90: milliseconds(hop.p90), n: count(hop.n) });
      cells.push(el("div.measure", { title: words }, el("b", {}, milliseconds(hop.p50)), el("span", {}, STAGES[number]), el("span.hidden", {}, words)));
    }
  }
  return el("div.measures", {}, cells);
}

/** @param {any} row */
function clusterCell(row) {
  return el("span", {}, el("a", { href: worksOf(row.name) }, row.name), row.isHeld ? el("span", {}, " ", badge("warn", t("held"))) : null, row.isPaused ? el("span", {}, " ", badge("warn", t("paused"))) : null);
}

/** @param {any} row */
function agentCell(row) {
  const element = badge(row.agent, t(row.agent));
  element.title = row.agent === "unknown" || row.agent === "never" ? t(`${row.agent}Agent`) : t("since", { time: lasted(row.agentSince) });
  return element;
}

/**
 * @param {number} value
 * @param {string} colour
 */
const number = (value, colour) => el(`span.t-${value ? colour : "grey"}`, {}, count(value));
