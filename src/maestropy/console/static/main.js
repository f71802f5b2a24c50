/** Start the console: the session, the pages by their address, the stream of changes, and the keys. */
import { ApiError, listen, read, session } from "./api.js";
import { byId, el, fill } from "./dom.js";
import { explainView } from "./explain.js";
import { fleetView } from "./fleet.js";
import { clock, count, stopClock } from "./format.js";
import { goBack, keepSession, offer, providerButton, renew, signOut } from "./login.js";
import { requestsView, requestView } from "./requests.js";
import { stuckView } from "./stuck.js";
import { KEYS, t, useArchiveTexts } from "./texts.js";
import { workView } from "./work.js";
import { worksView } from "./works.js";

/** @type {Record<string, (context: any) => View>} */
const VIEWS = {
  fleet: fleetView, works: worksView, work: workView, requests: requestsView, request: requestView, stuck: stuckView, explain: explainView,
  unknown: unknownView,
};
const PAGES = ["fleet", "works", "requests", "stuck", "explain"];

/**
 * @typedef {object} View
 * @property {string} title
 * @property {HTMLElement} element
 * @property {() => any} refresh
 * @property {() => void} end
 * @property {(event: KeyboardEvent) => void} [key]
 */

/** @type {View|null} */
let view = null;
/** @type {any} */
let state = null;
let shownGeneration = -1;
let shownAt = 0;
let pending = 0;
let readAt = "";
let stop = () => {};

async function start() {
  fill(byId("skip"), t("skip"));
  byId("skip").addEventListener("click", (event) => {
    event.preventDefault();
    byId("view").focus();
  });
  byId("nav").setAttribute("aria-label", t("navigation"));
  applyTheme(localStorage.getItem("theme"));
  window.addEventListener("hashchange", () => view && open());
  window.addEventListener("read-failed", onFailure);
  window.addEventListener("acted", () => schedule(0));
  document.addEventListener("keydown", onKey);
  document.addEventListener("visibilitychange", () => document.hidden || schedule(0));
  await enter();
}

/** @returns {Promise<void>} */
async function enter() {
  try {
    const who = await read("session");
    fill(byId("brand"), who.title);
    offer(who);
    if (!who.isSignedIn) return (await renew()) ? enter() : signIn(who.reason);
    if (who.archive) openArchive(who.archive);
    goBack();
    drawTools(who);
    keepSession(who, leave);
    follow();
    open();
  } catch (error) {
    if (!(error instanceof ApiError)) console.error(error);
    const again = el("button", { type: "button", click: enter }, t("retry"));
    fill(byId("view"), el("div.empty", { role: "alert" }, el("p", {}, t("error", { problem: /** @type {Error} */ (error).message })), again));
    window.setTimeout(() => view || enter(), 5_000);
  }
}

/** Listen to changes, from the beginning. */
function follow() {
  stop();
  stop = listen({ change: onChange, lost: onLost, polling: () => connection("polling"), expired: () => renewOrLeave(t("signIn")) });
}

/**
 * Go on with a renewed session, or ask to sign in.
 * @param {string} reason
 */
async function renewOrLeave(reason) {
  if (!(await renew())) return leave(reason);
  follow();
  schedule(0);
}

/** Show the page of the address. */
function open() {
  const [path, search] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...rest] = path.split("/");
  const page = name === "" ? "fleet" : Object.hasOwn(VIEWS, name) ? name : "unknown";
  view?.end();
  shownGeneration = state?.generation ?? -1;
  delete document.documentElement.dataset.ready;
  let id = "";
  try {
    id = decodeURIComponent(rest.join("/"));
  } catch {
    id = rest.join("/");
  }
  view = VIEWS[page]({ params: new URLSearchParams(search ?? ""), id, replace: (/** @type {string} */ hash) => history.replaceState(null, "", hash) });
  fill(byId("view"), view.element);
  document.title = `${view.title} · ${t("title")}`;
  drawNav(page);
  window.scrollTo(0, 0);
  view.element.querySelector("h1")?.focus({ preventScroll: true });
  view.refresh();
}

/** A page that does not exist says so. @returns {View} */
function unknownView() {
  const element = el("div.page", {}, el("h1", { tabindex: "-1" }, t("unknownPage")), el("p", {}, t("unknownPageHelp", { address: location.hash })), el("p", {}, el("a", { href: "#/fleet" }, t("fleet"))));
  return { title: t("unknownPage"), element, refresh: () => void (document.documentElement.dataset.ready = "unknown"), end() {} };
}

/** @param {string} page */
function drawNav(page) {
  const main = { work: "works", request: "requests" }[page] ?? page;
  fill(byId("nav"), PAGES.map((name) => el("a", { href: `#/${name}`, "aria-current": name === main ? "page" : undefined }, t(name))));
}

/** @param {any} next */
function onChange(next) {
  state = next;
  readAt = next.source.readAt ?? readAt;
  connection(next.source.problem ? "old" : "live");
  drawBanner(next);
  if (next.generation !== shownGeneration) schedule(Math.max(300, shownAt + 1_000 - Date.now()));
}

/**
 * Read the page again soon; a burst of changes is one read, and a hidden tab reads nothing.
 * @param {number} delay
 */
function schedule(delay) {
  if (pending || document.hidden || !view) return;
  pending = window.setTimeout(() => {
    pending = 0;
    shownGeneration = state?.generation ?? -1;
    shownAt = Date.now();
    view?.refresh();
  }, delay);
}

/** @param {Event} event */
function onFailure(event) {
  const error = /** @type {CustomEvent} */ (event).detail;
  if (!(error instanceof ApiError) || !view) return;
  if (error.status === 401) renewOrLeave(error.message);
  else if (error.status === 0) onLost();
}

function onLost() {
  connection("lost");
  const banner = byId("banner");
  fill(banner, t("reconnecting", { time: clock(readAt) || "–" }));
  banner.hidden = false;
}

/**
 * Say on every page that this is an archive, from when it is, and what it does not hold.
 * @param {any} archive
 */
function openArchive(archive) {
  stopClock(archive.collectedAt);
  useArchiveTexts();
  const about = byId("archive");
  fill(about,
    el("p", {}, t(archive.isAnonymised ? "archiveAnonymised" : "archive", { name: archive.name, time: archive.collectedAt.replace("T", " ").replace(/\.\d+/, "") })),
    archive.missing.length ? el("details", {}, el("summary", {}, t("archiveMissing", { count: count(archive.missing.length) })),
      el("ul", {}, archive.missing.map((/** @type {string} */ text) => el("li", {}, text)))) : el("p", {}, t("archiveWhole")));
  about.setAttribute("aria-label", t("archiveLabel"));
  about.hidden = false;
}

/** @param {any} next */
function drawBanner(next) {
  const banner = byId("banner");
  const { source } = next;
  if (source.problem) {
    const words = source.readAt ? t("apiProblem", { since: clock(source.problemSince), problem: source.problem, time: clock(source.readAt) }) : t("apiProblemFirst", source);
    if (banner.textContent !== words) fill(banner, words);
  }
  banner.hidden = !source.problem;
}

/** @param {"live"|"old"|"lost"|"polling"} how */
function connection(how) {
  const element = byId("connection");
  const loading = state && !state.source.isComplete && !state.source.problem;
  const words = how === "live" && loading ? t("loadingWorks", { loaded: count(state.source.loaded), total: count(state.source.total) }) : how === "lost" ? "" : t(how);
  if (element.textContent !== words) fill(element, words);
  element.dataset.state = how;
}

/** @param {any} who */
function drawTools(who) {
  fill(byId("tools"),
    el("button.quiet", { type: "button", click: toggleTheme, "aria-label": t("theme"), title: t("theme") }, "◐"),
    el("button.quiet", { type: "button", click: showKeys, "aria-label": t("keys"), title: t("keys") }, "?"),
    who.needsLogin ? el("span.muted", {}, who.user) : null,
    who.needsLogin ? el("button.quiet", { type: "button", click: async () => (await signOut()) || leave("") }, t("signOut")) : null);
}

/** @param {string} reason */
function leave(reason) {
  stop();
  view?.end();
  view = null;
  signIn(reason ? t("expired", { reason }) : "");
}

/** @param {string} reason */
function signIn(reason) {
  const input = /** @type {HTMLInputElement} */ (el("input", { type: "password", id: "token", autocomplete: "off", required: true, "aria-describedby": "token-help" }));
  const problem = el("p.t-bad", { role: "alert" });
  const provider = providerButton(problem);
  const form = el("form.sign-in", {
    submit: async (/** @type {Event} */ event) => {
      event.preventDefault();
      try {
        await session("POST", { token: input.value.trim() });
        input.value = "";
        await enter();
      } catch (error) {
        fill(problem, /** @type {Error} */ (error).message);
        input.focus();
      }
    },
  }, el("h1", { tabindex: "-1" }, t("signIn")), reason ? el("p.muted", {}, reason) : null, provider,
    el("label", { for: "token" }, t("token")), input, el("p.muted", { id: "token-help" }, t("tokenHelp")), problem,
    el("button", { type: "submit" }, t(provider ? "signInToken" : "signIn")));
  fill(byId("nav"));
  fill(byId("tools"));
  fill(byId("connection"));
  fill(byId("view"), form);
  document.documentElement.dataset.ready = "sign-in";
  (provider ?? input).focus();
}

/** @param {string|null} theme */
function applyTheme(theme) {
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
}

function toggleTheme() {
  const isDark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const theme = isDark ? "light" : "dark";
  localStorage.setItem("theme", theme);
  applyTheme(theme);
}

function showKeys() {
  const dialog = /** @type {HTMLDialogElement} */ (el("dialog", { "aria-labelledby": "keys-title" },
    el("h2", { id: "keys-title" }, t("keysTitle")),
    el("dl", {}, KEYS.map(([key, what]) => [el("dt", {}, el("kbd", {}, key)), el("dd", {}, what)])),
    el("button", { type: "button", click: () => dialog.close() }, t("close"))));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

/** @param {KeyboardEvent} event */
function onKey(event) {
  const target = /** @type {Element} */ (event.target);
  if (event.ctrlKey || event.metaKey || event.altKey || target.closest("input, textarea, select, dialog")) return;
  const page = PAGES[Number(event.key) - 1];
  if (page && view) location.hash = `#/${page}`;
  else if (event.key === "/" && view) {
    /** @type {HTMLElement|null} */ (view.element.querySelector("[data-search]"))?.focus();
    event.preventDefault();
  } else if (event.key === "?") showKeys();
  else if (event.key === "b") history.back();
  else if (view?.key && ["j", "k", "ArrowDown", "ArrowUp", "Enter"].includes(event.key) && target.closest("a, button, summary") === null) {
    if (["j", "k"].includes(event.key) && !target.closest("[role=grid]")) {
      /** @type {HTMLElement|null} */ (view.element.querySelector("[role=grid]"))?.focus({ preventScroll: true });
      view.key(event);
    }
  }
}

start();
