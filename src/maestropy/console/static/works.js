/** Every work, filtered by anything. The server filters and sorts; the page holds what is on screen. */
import { read } from "./api.js";
import { el, fill } from "./dom.js";
import { age, clock, count } from "./format.js";
import { makeList } from "./list.js";
import { badge, codeLink, readFailed, searchField } from "./parts.js";
import { t } from "./texts.js";

const FILTERS = ["severity:error", "severity:warn", "is:stuck", "is:behind", "is:deleting", "is:unreported", "is:held", "is:paused"];

/** @param {{params: URLSearchParams, replace: (path: string) => void}} context */
export function worksView({ params, replace }) {
  let text = params.get("q") ?? "";
  let sort = params.get("sort") ?? "severity";
  const shown = el("span.muted", { role: "status" });
  const message = el("div");
  let all = 0;
  const list = makeList({
    label: t("works"),
    style: "works",
    sort,
    columns: [
      { key: "verdict", title: t("colVerdict"), sort: "severity", cell: (row) => badge(row.severity, row.verdict || row.code) },
      { key: "name", title: t("colName"), sort: "name", cell: (row) => el("a.strong", { href: href(row) }, row.name || row.id) },
      { key: "consumer", title: t("colCluster"), sort: "consumer", cell: (row) => row.consumer },
      { key: "version", title: t("colVersion"), sort: "version", style: "minor.right", cell: (row) => (row.observed === row.version ? String(row.version) : `${row.observed} → ${row.version}`) },
      { key: "updated", title: t("colUpdated"), sort: "updated", style: "minor", cell: (row) => el("time", { datetime: row.updated, title: clock(row.updated) }, age(row.updated)) },
      { key: "problem", title: t("colProblem"), style: "minor", cell: (row) => (row.problem ? el("span", { title: row.problem }, codeLink(row.code), ` ${row.problem}`) : el("span.muted", {}, row.conditions.join(" "))) },
      { key: "labels", title: t("colLabels"), style: "wide", cell: (row) => el("span.muted", {}, row.labels.join(" ")) },
    ],
    read: async (offset, limit) => {
      const page = await read("works", { q: text, sort, offset, limit });
      all = page.all;
      if (!page.source.isComplete && !page.source.problem) fill(message, el("p.muted", { role: "status" }, t("loadingWorks", { loaded: count(page.source.loaded), total: count(page.source.total) })));
      else if (page.source.leftOut) fill(message, el("p.muted", {}, t("leftOut", { count: count(page.source.leftOut), kept: count(all) })));
      else if (page.total > 0) fill(message);
      return page;
    },
    order: (chosen) => {
      sort = chosen;
      remember();
    },
    href,
    name: (row) => row.id,
    counted: (total) => {
      fill(shown, text ? t("of", { count: count(total), all: count(all) }) : count(total));
      if (total === 0) fill(message, nothing());
      document.documentElement.dataset.ready = String(total);
    },
    failed: (error) => readFailed(error, message, () => list.refresh()),
  });

  const field = searchField({ label: t("filter"), help: t("filterHelp"), value: text, change: choose });
  const chips = el("div.chips");
  const element = el("div.page.full", {},
    el("h1", { tabindex: "-1" }, t("works")),
    el("div.filters", {}, field, shown), chips, message, list.element);

  function nothing() {
    if (!text) return el("p.empty", {}, t("noWorks"));
    return el("p.empty", {}, t("noMatch"), " ", el("button", { type: "button", click: () => choose("") }, t("clearFilter")));
  }

  /** @param {string} value */
  function choose(value) {
    text = value.trim();
    if (field.value.trim() !== text) field.value = text;
    drawChips();
    fill(message);
    remember();
    list.restart();
  }

  function drawChips() {
    const words = text.split(/\s+/);
    fill(chips, FILTERS.map((term) => {
      const isOn = words.includes(term);
      return el("button.chip", {
        type: "button", "aria-pressed": String(isOn), "data-key": term,
        click: () => choose(isOn ? words.filter((word) => word !== term).join(" ") : `${text} ${term}`),
      }, term);
    }));
  }

  function remember() {
    const search = new URLSearchParams({ ...(text && { q: text }), ...(sort !== "severity" && { sort }) });
    replace(`#/works${search.size ? `?${search}` : ""}`);
  }

  drawChips();
  return { title: t("works"), element, refresh: list.refresh, end: list.end, key: list.key };
}

/** @param {any} row */
const href = (row) => `#/work/${encodeURIComponent(row.id)}`;
