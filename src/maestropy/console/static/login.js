/** Sign in at an OpenID provider, renew the session before its token expires, and sign out. No script sees a token. */
import { ApiError, read, session } from "./api.js";
import { el, fill } from "./dom.js";
import { t } from "./texts.js";

const RETURN = "return";
const AGAIN_SECONDS = 20;
const LONGEST = 2_000_000;

let provider = "";
let isRenewable = false;
let timer = 0;
/** @type {Promise<boolean>|null} */
let renewing = null;

/**
 * Remember what the server says of the login.
 * @param {any} who
 */
export function offer(who) {
  provider = who.provider ?? "";
  isRenewable = typeof who.renewIn === "number";
}

/**
 * Return the button that leads to the provider; null if there is none.
 * @param {HTMLElement} problem Where to say why it does not.
 * @returns {HTMLElement|null}
 */
export function providerButton(problem) {
  if (!provider) return null;
  return el("button.primary", {
    type: "button",
    id: "provider",
    click: async () => {
      try {
        const { location: address } = await session("POST", {}, "session/login");
        // The fragment is the page that was open; it never leaves the browser.
        sessionStorage.setItem(RETURN, location.hash);
        location.assign(address);
      } catch (error) {
        fill(problem, /** @type {Error} */ (error).message);
      }
    },
  }, t("signInAt", { provider }));
}

/** Show the page that was open before the sign-in. */
export function goBack() {
  const hash = sessionStorage.getItem(RETURN);
  sessionStorage.removeItem(RETURN);
  if (hash && !location.hash) history.replaceState(null, "", hash);
}

/**
 * Renew the session. One tab does it for all: most providers take a refresh token once only.
 * @returns {Promise<boolean>} Whether there is a session now.
 */
export function renew() {
  if (!isRenewable) return Promise.resolve(false);
  renewing ??= locked(async () => {
    const who = await read("session");
    if (who.isSignedIn && who.renewIn > 0) return keepSession(who, leaving);
    const renewed = await session("POST", {}, "session/renewal");
    return keepSession(renewed, leaving);
  }).catch((error) => {
    // Without an answer the session may go on; a refusal is its end.
    if (!(error instanceof ApiError) || (error.status > 0 && error.status < 500)) isRenewable = false;
    return false;
  }).finally(() => {
    renewing = null;
  });
  return renewing;
}

/** @type {(reason: string) => void} */
let leaving = () => {};

/**
 * Renew the session in time, and leave when it ends.
 * @param {any} who
 * @param {(reason: string) => void} leave
 * @returns {boolean} True, for a session that goes on.
 */
export function keepSession(who, leave) {
  leaving = leave;
  window.clearTimeout(timer);
  isRenewable = typeof who.renewIn === "number";
  if (typeof who.endsIn !== "number") return true;
  const seconds = Math.min(isRenewable ? who.renewIn : who.endsIn, LONGEST);
  timer = window.setTimeout(isRenewable ? onDue : () => leave(t("sessionEnded")), seconds * 1000);
  return true;
}

async function onDue() {
  if (await renew()) return;
  if (isRenewable) timer = window.setTimeout(onDue, AGAIN_SECONDS * 1000);
  else leaving(t("sessionEnded"));
}

/**
 * End the session.
 * @returns {Promise<boolean>} Whether the provider goes on with it.
 */
export async function signOut() {
  window.clearTimeout(timer);
  isRenewable = false;
  const { location: address } = await session("DELETE");
  if (address) location.assign(address);
  return Boolean(address);
}

/**
 * Run something while no other tab runs it.
 * @param {() => Promise<boolean>} work
 * @returns {Promise<boolean>}
 */
async function locked(work) {
  return navigator.locks ? navigator.locks.request("maestro-console-session", work) : work();
}
