/** Build elements. Texts of others become text nodes only: there is no way to HTML here. */

/**
 * Create an element.
 * @param {string} tag Its name, with classes after dots: `p.muted`.
 * @param {Record<string, any>} [attributes] Attributes; functions are listeners, `hidden` and the like may be booleans.
 * @param {...any} children Nodes, texts, and arrays of them at any depth; null and false are left out.
 * @returns {HTMLElement}
 */
export function el(tag, attributes = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  const element = document.createElement(name || "div");
  if (classes.length) element.classList.add(...classes);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === "function") element.addEventListener(key, value);
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  add(element, children);
  return element;
}

/**
 * Append children; texts become text nodes.
 * @param {Element} element
 * @param {any[]} children
 */
export function add(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/**
 * Replace all children.
 * @param {Element} element
 * @param {...any} children
 */
export function fill(element, ...children) {
  element.replaceChildren();
  add(element, children);
}

let isPressed = false;
/** @type {Map<Element, () => void>} */
const waiting = new Map();

function released() {
  isPressed = false;
  // The click comes right after the release, and has to find what was pressed.
  window.setTimeout(() => {
    const drawings = [...waiting.values()];
    waiting.clear();
    for (const draw of drawings) draw();
  });
}
document.addEventListener("pointerdown", () => (isPressed = true), true);
for (const end of ["pointerup", "pointercancel", "dragend"]) document.addEventListener(end, released, true);
window.addEventListener("blur", released);

/**
 * Draw now, or when the pointer is released: a button that is replaced while it is pressed would not be clicked.
 * @param {Element} element Of several drawings of one element only the last one counts.
 * @param {() => void} draw
 */
export function whenReleased(element, draw) {
  if (isPressed) waiting.set(element, draw);
  else draw();
}

/**
 * Replace the children of a section, but keep the focus on the element with the same data-key.
 * @param {Element} element
 * @param {...any} children
 */
export function refill(element, ...children) {
  whenReleased(element, () => refillNow(element, children));
}

/**
 * @param {Element} element
 * @param {any[]} children
 */
function refillNow(element, children) {
  const active = document.activeElement;
  const key = active && element.contains(active) ? active.getAttribute("data-key") : null;
  const open = new Set([...element.querySelectorAll("details[open][data-key]")].map((one) => one.getAttribute("data-key")));
  fill(element, children);
  for (const details of element.querySelectorAll("details[data-key]")) {
    if (open.has(details.getAttribute("data-key"))) details.setAttribute("open", "");
  }
  if (key !== null) {
    const same = [...element.querySelectorAll("[data-key]")].find((one) => one.getAttribute("data-key") === key);
    if (same instanceof HTMLElement) same.focus({ preventScroll: true });
  }
}

/**
 * Find an element that the page has.
 * @param {string} id
 * @returns {HTMLElement}
 */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`no element ${id}`);
  return found;
}
