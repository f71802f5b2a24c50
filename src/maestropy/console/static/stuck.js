/** Works that do not go on, grouped by their cause, each with its remedy. */
import { actionButtons, actionsNote } from "./actions.js";
import { read } from "./api.js";
import { el, refill } from "./dom.js";
import { age, count } from "./format.js";
import { advice, badge, codeLink, readFailed } from "./parts.js";
import { t } from "./texts.js";

export function stuckView() {
  const body = el("div", {}, el("p.empty", {}, t("loading")));
  const element = el("div.page", {}, el("h1", { tabindex: "-1" }, t("stuck")), el("p.muted", {}, t("stuckHelp")), body);

  async function refresh() {
    try {
      const page = await read("stuck");
      const kinds = page.kinds.filter((/** @type {string} */ kind) => page.groups.some((/** @type {any} */ one) => one.kind === kind));
      if (!kinds.length) refill(body, el("p.calm", {}, el("span.sign.t-ok", { "aria-hidden": "true" }, "✓ "), t("stuckNone")));
      else refill(body, actionsNote(page.actions), kinds.map((/** @type {string} */ kind) => el("section", { "aria-label": t(`kind_${kind}`) },
        el("h2", {}, t(`kind_${kind}`)), page.groups.filter((/** @type {any} */ one) => one.kind === kind).map((/** @type {any} */ one) => group(one, page.actions)),
        page.leftOut[kind] ? el("p.muted", {}, t("moreCauses", { count: count(page.leftOut[kind]) })) : null)));
      document.documentElement.dataset.ready = String(page.groups.length);
    } catch (error) {
      readFailed(error, body, refresh);
    }
  }
  return { title: t("stuck"), element, refresh, end() {} };
}

/**
 * @param {any} one
 * @param {import("./actions.js").Availability} actions
 */
function group(one, actions) {
  const more = one.link && one.count > one.works.length;
  return el("article.finding", {},
    el("h3", {}, badge(one.severity, one.name), ` ${one.cause} `, el("span.muted", {}, `${t(one.count === 1 ? "unitWork" : "unitWorks", { count: count(one.count) })}, ${t("oldest", { time: age(one.since) })}`), " ", codeLink(one.code)),
    el("p", {}, el("b", {}, one.title), ` ${one.explanation}`),
    el("ul.works-of", {}, one.works.map((/** @type {any} */ work) => el("li", {},
      el("a", { href: `#/work/${encodeURIComponent(work.id)}`, "data-key": `${one.code} ${work.id}` }, work.name || work.id),
      el("span.muted", {}, ` ${work.consumer}, ${age(work.since)}`)))),
    more ? el("p", {}, el("a", { href: one.link, "data-key": `all ${one.code} ${one.cause}` }, t("moreWorks", { count: count(one.count) }))) : null,
    el("h4", {}, t("remedy")), actionButtons(one.offers, actions), one.advice.map(advice));
}
