/** Operator actions: a button, the dry run of the server in its words, the reason, the confirmation, and what was done. */
import { ApiError, post } from "./api.js";
import { el, fill } from "./dom.js";
import { clock, count } from "./format.js";
import { badge } from "./parts.js";
import { t } from "./texts.js";

let dialogs = 0;

/**
 * @typedef {{action: string, target: string, label: string}} Offer
 * @typedef {{note: string, role: string, can: Record<string, {needs: string, isAllowed: boolean}>}} Availability
 */

/**
 * Say why a page has no buttons; nothing if it may have some.
 * @param {Availability} actions
 */
export const actionsNote = (actions) => (actions.note ? el("p.muted", { "data-note": actions.note }, t(`actionsNote_${actions.note}`)) : null);

/**
 * The buttons of what a page offers. One that the viewer may not use is there, and says why.
 * @param {Offer[]} offers
 * @param {Availability} actions
 */
export function actionButtons(offers, actions) {
  const known = offers.filter((offer) => offer.action in actions.can);
  return known.length ? el("div.actions", {}, known.map((offer) => actionButton(offer, actions))) : null;
}

/**
 * @param {Offer} offer
 * @param {Availability} actions
 * @param {{close: () => void, opener: string}} [choice] The dialog that it is in, and what opened it.
 */
function actionButton(offer, actions, choice = undefined) {
  const { needs, isAllowed } = actions.can[offer.action];
  const key = `action ${offer.action} ${offer.target}`;
  const words = t(`action_${offer.action}`, { target: offer.label });
  if (isAllowed) {
    return el("button", { type: "button", "data-key": key, "data-action": offer.action, click: () => { choice?.close(); openAction(offer, choice?.opener ?? key); } }, words);
  }
  const why = actions.role ? t("actionNeedsRole", { needs, role: actions.role }) : t("actionNeedsRoleOfToken", { needs });
  const id = `why${(dialogs += 1)}`;
  // Not `disabled`: a button that cannot have the focus cannot tell a screen reader why.
  return el("span.action", {}, el("button", { type: "button", "data-key": key, "data-action": offer.action, "aria-disabled": "true", "aria-describedby": id }, words),
    el("span.muted", { id }, ` ${why}`));
}

/**
 * The button of a row, which opens the choice of its actions.
 * @param {string} name
 * @param {Offer[]} offers
 * @param {Availability|null} actions
 */
export function rowActions(name, offers, actions) {
  if (!actions || !offers.some((offer) => offer.action in actions.can)) return "";
  const key = `actions of ${name}`;
  return el("button.quiet", { type: "button", "data-key": key, "data-actions": name, "aria-label": t("actionsOf", { name }), title: t("actionsOf", { name }), click: () => choose(name, offers, actions, key) }, "⋯");
}

/**
 * @param {string} name
 * @param {Offer[]} offers
 * @param {Availability} actions
 * @param {string} opener
 */
function choose(name, offers, actions, opener) {
  const known = offers.filter((offer) => offer.action in actions.can);
  const dialog = makeDialog(t("actionsOf", { name }), opener);
  dialog.show(
    el("div.choices", {}, known.map((offer) => actionButton(offer, actions, { close: dialog.close, opener }))),
    el("div.buttons", {}, el("button", { type: "button", click: () => dialog.close() }, t("cancel"))));
}

/**
 * A modal dialog. The browser keeps the focus in it and closes it with Escape.
 * @param {string} title
 * @param {string} opener The data-key of the element that gets the focus back; pages are drawn again meanwhile.
 */
function makeDialog(title, opener) {
  const id = `dialog${(dialogs += 1)}`;
  const body = el("div");
  const dialog = /** @type {HTMLDialogElement} */ (el("dialog.act", { "aria-labelledby": id }, el("h2", { id }, title), body));
  dialog.addEventListener("close", () => {
    dialog.remove();
    if (document.querySelector("dialog[open]")) return;
    const again = [...document.querySelectorAll("[data-key]")].find((one) => one.getAttribute("data-key") === opener);
    if (again instanceof HTMLElement) again.focus();
  });
  document.body.append(dialog);
  dialog.showModal();
  return {
    show: (/** @type {any[]} */ ...children) => {
      fill(body, children);
      // What had the focus may be gone, and keys must lead on from here.
      /** @type {HTMLElement|null} */ (body.querySelector("input, button"))?.focus();
    },
    close: () => dialog.close(),
    isOpen: () => dialog.open,
  };
}

/**
 * Ask for the dry run, show it, and carry it out when it is confirmed.
 * @param {Offer} offer
 * @param {string} opener
 */
async function openAction(offer, opener) {
  const words = t(`action_${offer.action}`, { target: offer.label });
  const dialog = makeDialog(words, opener);
  const { action, target } = offer;
  const cancel = (/** @type {string} */ text) => el("button", { type: "button", "data-close": "", click: () => dialog.close() }, t(text));

  async function plan() {
    dialog.show(el("p", { role: "status" }, t("actionAsking")), el("div.buttons", {}, cancel("cancel")));
    try {
      const planned = await post("actions/plan", { action, target });
      if (dialog.isOpen()) show(planned);
    } catch (error) {
      if (dialog.isOpen()) dialog.show(problem(error), el("div.buttons", {}, again(), cancel("close")));
    }
  }

  const again = () => el("button", { type: "button", "data-again": "", click: plan }, t("actionAgain"));

  /** @param {any} planned */
  function show(planned) {
    if (!planned.isChange) return dialog.show(effects(planned), el("div.buttons", {}, cancel("close")));
    const reason = field("reason", t("actionReason"), t("actionReasonHelp"), { maxlength: 500 });
    const name = planned.needsName ? field("name", t("actionName", { target }), t("actionNameHelp"), { required: true }) : null;
    const failed = el("div");
    const confirm = /** @type {HTMLButtonElement} */ (el("button.primary", { type: "submit" }, words));
    const isNamed = () => !name || name.input.value.trim() === target;
    confirm.disabled = !isNamed();
    name?.input.addEventListener("input", () => (confirm.disabled = !isNamed()));
    const form = el("form", {
      submit: async (/** @type {Event} */ event) => {
        event.preventDefault();
        if (!isNamed()) return;
        confirm.disabled = true;
        fill(failed);
        try {
          const done = await post("actions", { action, target, plan: planned.plan, reason: reason.input.value.trim(), name: name ? name.input.value.trim() : "" });
          window.dispatchEvent(new Event("acted"));
          if (dialog.isOpen()) finish(done);
        } catch (error) {
          confirm.disabled = !isNamed();
          fill(failed, problem(error));
        }
      },
    }, reason.element, name?.element, failed, el("div.buttons", {}, confirm, again(), cancel("cancel")));
    dialog.show(effects(planned), form);
  }

  /** @param {any} done */
  function finish(done) {
    dialog.show(
      el("p", { role: "status", "data-done": "" }, badge(done.isChange ? "ok" : "info", t(done.isChange ? "actionDone" : "actionDoneBefore"))),
      effects(done),
      done.entry ? el("div", {}, el("h3", {}, t("actionEntry")), historyEntry(done.entry)) : done.isChange ? el("p.muted", {}, t("actionNoEntry")) : null,
      el("div.buttons", {}, cancel("close")));
  }

  await plan();
}

/** @param {any} plan */
function effects(plan) {
  const more = plan.workCount - plan.works.length;
  return el("div.plan", {},
    el("h3", {}, t("actionEffects")),
    el("ul", {}, plan.effects.map((/** @type {string} */ text) => el("li", {}, text))),
    plan.warnings.map((/** @type {string} */ text) => el("p.warning", {}, badge("warn", t("actionWarning")), ` ${text}`)),
    plan.works.length ? el("details", { open: plan.works.length <= 5 }, el("summary", {}, t(plan.workCount === 1 ? "actionWork" : "actionWorks", { count: count(plan.workCount) })),
      el("ul.plain.works", { tabindex: "0", "aria-label": t("works") }, plan.works.map(workLine)), more > 0 ? el("p.muted", {}, t("actionMoreWorks", { count: count(more) })) : null)
      : plan.workCount ? el("p", {}, t(plan.workCount === 1 ? "actionWork" : "actionWorks", { count: count(plan.workCount) })) : null);
}

/** @param {any} work */
const workLine = (work) => el("li", {}, work.name ? el("b", {}, work.name) : null, work.name ? " " : "", el("code", {}, work.id),
  work.version ? ` ${t("actionVersion", { version: work.version })}` : "", work.isDeleting ? el("span.muted", {}, ` ${t(work.version ? "actionDeleting" : "actionAbsent")}`) : null);

/** @param {any} entry */
function historyEntry(entry) {
  const who = [entry.by || t("actionNobody"), entry.address].filter(Boolean).join(" ");
  const said = [entry.detail.operator_reason ?? entry.detail.reason, entry.detail.requested_by].filter(Boolean).join(", ");
  return el("p.entry", { "data-entry": entry.kind }, el("time", { datetime: entry.time }, clock(entry.time)), " ", el("b", {}, entry.kind), ` ${who} `, el("span.muted", {}, said));
}

/** @param {unknown} error */
const problem = (error) => el("p.problem-text.t-bad", { role: "alert" }, t(isRefusal(error) ? "actionRefused" : "actionFailed", { problem: /** @type {Error} */ (error).message }));

/** A server that refuses has changed nothing; a lost answer leaves that open. @param {unknown} error */
const isRefusal = (error) => error instanceof ApiError && [400, 401, 403, 404, 409, 422].includes(error.status);

/**
 * @param {string} name
 * @param {string} label
 * @param {string} help
 * @param {Record<string, any>} more
 */
function field(name, label, help, more) {
  const id = `field${(dialogs += 1)}`;
  const input = /** @type {HTMLInputElement} */ (el("input", { id, name, type: "text", autocomplete: "off", spellcheck: "false", "aria-describedby": `${id}-help`, ...more }));
  return { input, element: el("div.field", {}, el("label", { for: id }, label), input, el("span.muted", { id: `${id}-help` }, help)) };
}
