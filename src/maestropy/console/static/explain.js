/** Every code of the catalogue, searchable. */
import { read } from "./api.js";
import { el, fill } from "./dom.js";
import { count } from "./format.js";
import { advice, badge, readFailed, searchField } from "./parts.js";
import { t } from "./texts.js";

/** @param {{params: URLSearchParams, id: string, replace: (path: string) => void}} context */
export function explainView({ params, id, replace }) {
  let text = id || (params.get("q") ?? "");
  /** @type {any[]} */
  let codes = [];
  const shown = el("span.muted", { role: "status" });
  const body = el("div", {}, el("p.empty", {}, t("loading")));
  const element = el("div.page", {}, el("h1", { tabindex: "-1" }, t("explain")), el("p.muted", {}, t("codesHelp")),
    el("div.filters", {}, searchField({
      label: t("filterCodes"), value: text,
      change: (value) => {
        text = value.trim();
        replace(`#/explain${text ? `?${new URLSearchParams({ q: text })}` : ""}`);
        draw();
      },
    }), shown), body);

  function draw() {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const found = codes.filter((one) => words.every((word) => one.searched.includes(word)));
    fill(shown, t("of", { count: count(found.length), all: count(codes.length) }));
    fill(body, found.length ? found.map((one) => code(one, found.length <= 3)) : el("p.empty", {}, t("noMatch")));
    document.documentElement.dataset.ready = String(found.length);
  }

  async function refresh() {
    if (codes.length) return;
    try {
      const page = await read("codes");
      codes = page.items.map((/** @type {any} */ one) => ({ ...one, searched: [one.code, one.name, one.title, one.cause, ...one.advice, ...one.phrases].join("\n").toLowerCase() }));
      draw();
    } catch (error) {
      readFailed(error, body, refresh);
    }
  }
  return { title: t("explain"), element, refresh, end() {} };
}

/**
 * @param {any} one
 * @param {boolean} isOpen
 */
function code(one, isOpen) {
  const where = one.stage ? t("stage", { number: one.stage }) : one.hop;
  return el("details.finding", { open: isOpen, "data-key": one.code },
    el("summary", {}, badge(one.severity, one.code), " ", el("b", {}, one.name ? `${one.name}: ` : "", one.title), where ? el("span.muted", {}, ` ${where}`) : null),
    el("p", {}, one.cause),
    one.advice.length ? el("div", {}, el("h3", {}, t("remedy")), one.advice.map(advice)) : null,
    lines(t("phrases"), one.phrases), lines(t("normal"), one.normal));
}

/**
 * @param {string} title
 * @param {string[]} texts
 */
const lines = (title, texts) => (texts.length ? el("div", {}, el("h3", {}, title), el("ul.evidence", {}, texts.map((text) => el("li", {}, el("code", {}, text))))) : null);
