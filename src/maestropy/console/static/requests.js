/** The newest requests with their nine stages as they happen, and the waterfall of one. */
import { read } from "./api.js";
import { el, refill } from "./dom.js";
import { clock, exact, milliseconds } from "./format.js";
import { badge, codeLink, readFailed, searchField, section, sign, tone } from "./parts.js";
import { t } from "./texts.js";
import { finding } from "./work.js";

/** @param {{params: URLSearchParams, replace: (path: string) => void}} context */
export function requestsView({ params, replace }) {
  let text = params.get("q") ?? "";
  const body = el("div", {}, el("p.empty", {}, t("loading")));
  const element = el("div.page", {}, el("h1", { tabindex: "-1" }, t("requests")),
    el("div.filters", {}, searchField({
      label: t("filterRequests"), value: text,
      change: (value) => {
        text = value.trim();
        replace(`#/requests${text ? `?${new URLSearchParams({ q: text })}` : ""}`);
        refresh();
      },
    })), body);

  async function refresh() {
    try {
      const page = await read("requests", { q: text });
      const problem = page.problem ? el("p.muted", {}, t("logProblem", { problem: page.problem })) : null;
      if (!page.hasLogs) refill(body, el("p.empty", {}, t("noLogs")));
      else if (!page.items.length) refill(body, problem, el("p.empty", {}, text ? t("noMatch") : t("noRequests")));
      else refill(body, problem, el("ul.plain.requests", {}, page.items.map((/** @type {any} */ one) => el("li", {}, requestRow(one)))));
      document.documentElement.dataset.ready = String(page.items.length);
    } catch (error) {
      readFailed(error, body, refresh);
    }
  }
  return { title: t("requests"), element, refresh, end() {} };
}

/** @param {any} row */
export function requestRow(row) {
  const name = row.workName || row.resourceId;
  return el("div.request", {},
    el("time", { datetime: row.start }, clock(row.start)),
    el("a.strong", { href: `#/request/${encodeURIComponent(row.name)}`, "data-key": row.name }, `${row.action.replace("_request", "")} ${name}${row.version ? ` v${row.version}` : ""}`),
    el("span.muted", {}, row.consumer),
    strip(row.stages),
    badge(row.verdict, row.verdict),
    el("span.right", {}, milliseconds(row.durationMs)),
    row.code ? el("span", { title: row.title }, codeLink(row.code), ` ${row.title}`) : el("span"));
}

/** @param {string[]} stages */
function strip(stages) {
  const words = stages.map((state, index) => `${index + 1} ${state}`).join(", ");
  return el("span.strip", { role: "img", "aria-label": `${t("stages")}: ${words}` },
    stages.map((state, index) => el(`span.b-${tone(state)}`, { title: `${index + 1} ${state}` }, String(index + 1))));
}

/** @param {{id: string}} context */
export function requestView({ id }) {
  const element = el("div.page", {}, el("h1", { tabindex: "-1" }, t("request")), el("p.empty", {}, t("loading")));

  async function refresh() {
    try {
      const page = await read(`requests/${encodeURIComponent(id)}`);
      const { key } = page;
      refill(element,
        el("p", {}, el("a", { href: "#/requests", "data-key": "back" }, `← ${t("requests")}`), " ",
          el("a", { href: `#/work/${encodeURIComponent(key.resourceId)}`, "data-key": "work" }, t("work"))),
        el("h1", { tabindex: "-1" }, `${key.action} ${key.workName || key.resourceId}${key.version ? ` v${key.version}` : ""} `, badge(page.verdict, page.verdict)),
        el("p.muted", {}, [key.consumer, key.source, key.opId && `operation ${key.opId}`, milliseconds(page.durationMs)].filter(Boolean).join(" · ")),
        section("waterfall", t("waterfall"), waterfall(page)),
        section("findings", t("findings"), page.findings.map(finding)),
        section("log", t("logLines"), el("ol.timeline", {}, page.timeline.map((/** @type {any} */ one) => el("li", {},
          el("time", { datetime: one.ts }, exact(one.ts)), el("b", {}, one.stage ? String(one.stage) : "–"), el("span", {}, one.pod), el("span.muted", {}, one.text))))));
      document.documentElement.dataset.ready = id;
    } catch (error) {
      readFailed(error, element, refresh);
    }
  }
  return { title: t("request"), element, refresh, end() {} };
}

/** @param {any} page */
function waterfall(page) {
  const moments = page.stages.flatMap((/** @type {any} */ one) => (one.first ? [Date.parse(one.first), Date.parse(one.last ?? one.first)] : []));
  const [low, high] = [Math.min(...moments), Math.max(...moments)];
  const span = Math.max(1, high - low);
  return el("ol.waterfall", {}, page.stages.map((/** @type {any} */ stage) => {
    const bar = el(`i.bar.b-${tone(stage.state)}`, { "aria-hidden": "true" });
    if (stage.first) {
      const [from, to] = [Date.parse(stage.first), Date.parse(stage.last ?? stage.first)];
      bar.style.marginLeft = `${((from - low) / span) * 90}%`;
      bar.style.width = `${Math.max(1.5, ((to - from) / span) * 90)}%`;
    }
    const title = page.titles[stage.n - 1].title;
    return el("li", {},
      el(`span.num.b-${tone(stage.state)}`, {}, String(stage.n)),
      el("span", {}, title),
      el("span", {}, el("span.sign", { "aria-hidden": "true" }, `${sign(stage.state)} `), stage.state),
      el("span.right", {}, stage.hopMs === null ? "" : `+${milliseconds(stage.hopMs)}`),
      el("span.track", {}, bar),
      el("span.muted", {}, stage.note ?? stage.pods.join(", ")));
  }));
}
