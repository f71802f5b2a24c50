/** Small parts that several pages share: badges, commands to copy, messages, filters. */
import { ApiError } from "./api.js";
import { el, fill } from "./dom.js";
import { t } from "./texts.js";

/** The tone of a severity, a state or a verdict, for its colour; every tone has a sign too. */
const TONES = {
  error: "bad", broken: "bad", failed: "bad", missing: "bad", away: "bad", never: "warn", incomplete: "bad",
  warn: "warn", old: "warn", waiting: "wait", pending: "wait",
  info: "ok", ok: "ok", connected: "ok", complete: "ok",
};
const SIGNS = { bad: "✕", warn: "!", ok: "✓", wait: "…", grey: "–" };

/** @param {string} state */
export const tone = (state) => TONES[/** @type {keyof typeof TONES} */ (state)] ?? "grey";

/** @param {string} state */
export const sign = (state) => SIGNS[/** @type {keyof typeof SIGNS} */ (tone(state))];

/**
 * A coloured badge with a sign, so that colour is not the only difference.
 * @param {string} state
 * @param {string} text
 */
export const badge = (state, text) =>
  el(`span.badge.b-${tone(state)}`, {}, el("span.sign", { "aria-hidden": "true" }, sign(state)), ` ${text}`);

/** @param {string} code */
export const codeLink = (code) =>
  el("a.code", { href: `#/explain/${encodeURIComponent(code)}`, "aria-label": t("explainCode", { code }) }, code);

/**
 * A command with a button that copies it.
 * @param {string} text
 */
export function command(text) {
  const button = el("button.quiet.copy", {
    type: "button",
    "aria-label": `${t("copy")}: ${text}`,
    click: async () => {
      try {
        await navigator.clipboard.writeText(text);
        button.textContent = t("copied");
      } catch {
        button.textContent = t("notCopied");
      }
      window.setTimeout(() => (button.textContent = t("copy")), 2_000);
    },
  }, t("copy"));
  return el("div.command", {}, el("code", {}, text), button);
}

/**
 * Advice is a command or a sentence; only commands can be copied.
 * @param {string} text
 */
export const advice = (text) =>
  /^(maestro|kubectl|tail|psql|grep) /.test(text) ? command(text) : el("p.do", {}, text);

/**
 * Say that a page could not be read.
 * @param {Error} error
 * @param {() => void} again
 */
export function failure(error, again) {
  // What is no answer of the server is a mistake of this program.
  if (!(error instanceof ApiError)) console.error(error);
  return el("div.empty", { role: "alert" },
    el("p", {}, t("error", { problem: error.message })),
    el("button", { type: "button", click: again }, t("retry")));
}

/**
 * Handle a page that could not be read. What is shown stays; the banner says how old it is.
 * @param {unknown} problem
 * @param {Element} element Where a page says it that has shown nothing yet.
 * @param {() => void} again
 */
export function readFailed(problem, element, again) {
  const error = /** @type {Error} */ (problem);
  if (error.name === "AbortError") return;
  window.dispatchEvent(new CustomEvent("read-failed", { detail: error }));
  const isSaidElsewhere = error instanceof ApiError && (error.status === 0 || error.status === 401);
  if (!isSaidElsewhere || document.documentElement.dataset.ready === undefined) fill(element, failure(error, again));
}

/**
 * A search field that tells when it changed, after a pause in typing.
 * @param {{label: string, help?: string, value: string, change: (value: string) => void}} options
 */
export function searchField({ label, help, value, change }) {
  let timer = 0;
  function apply() {
    window.clearTimeout(timer);
    timer = 0;
    change(input.value);
  }
  const input = /** @type {HTMLInputElement} */ (el("input", {
    type: "search", value, "aria-label": label, placeholder: help ?? label, spellcheck: "false", autocomplete: "off",
    "data-key": "search", "data-search": "", title: help,
    input: () => {
      window.clearTimeout(timer);
      timer = window.setTimeout(apply, 200);
    },
    keydown: (/** @type {KeyboardEvent} */ event) => {
      if (!["Escape", "Enter", "ArrowDown"].includes(event.key)) return;
      // All three leave the field for the list, where j and k work; the browser clears a search field on Escape.
      event.preventDefault();
      event.stopPropagation();
      if (timer) apply();
      input.blur();
      /** @type {HTMLElement|null} */ (input.closest(".page")?.querySelector("[role=grid]"))?.focus({ preventScroll: true });
    },
  }));
  return input;
}

/**
 * A heading with its section.
 * @param {string} id
 * @param {string} title
 * @param {...any} children
 */
export const section = (id, title, ...children) =>
  el("section", { "aria-labelledby": `h-${id}`, id: `s-${id}` }, el("h2", { id: `h-${id}` }, title), ...children);
